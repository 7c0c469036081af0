# Selects the version of a language, for this shell and for every command of the sandbox.
#
#   . /opt/code-interpreter/code-interpreter-env.sh <python|java|node|go> [VERSION]
#
# A prefix selects the newest that it fits: 3 is 3.11.2, 3.1 is not. Without a version the newest there is. What is not there is
# refused with the list of what is. Only builtins of bash: it runs at every start of a sandbox.
# shellcheck shell=bash

# "VERSION BIN-DIRECTORY" per line. The file is written when the image is made; the folders are for versions added later.
_interpreter_versions() {
  local language=$1 name version bin path
  while read -r name version bin; do
    if [ "$name" = "$language" ]; then printf '%s %s\n' "$version" "$bin"; fi
  done <"${INTERPRETER_VERSIONS_FILE:-/opt/code-interpreter/versions}"
  case "$language" in
    python) set -- /opt/python/versions/cpython-*/bin ;;
    node) set -- /opt/node/v*/bin ;;
    go) set -- /opt/go/*/bin ;;
    java) set -- /opt/java/*/bin ;;
  esac
  for path in "$@"; do
    [ -d "$path" ] || continue
    version=${path%/bin} version=${version##*/} version=${version#cpython-} version=${version#v}
    printf '%s %s\n' "${version%%-*}" "$path"
  done
}

# Whether version $1 is newer than $2, part by part.
_interpreter_newer() {
  local -a a b
  local i
  IFS=. read -r -a a <<<"$1"
  IFS=. read -r -a b <<<"$2"
  for i in 0 1 2 3; do
    if [ "${a[i]:-0}" != "${b[i]:-0}" ]; then
      [[ "${a[i]:-0}" =~ ^[0-9]+$ && "${b[i]:-0}" =~ ^[0-9]+$ ]] && [ "$((10#${a[i]:-0}))" -gt "$((10#${b[i]:-0}))" ]
      return
    fi
  done
  return 1
}

# An assignment that holds here, in the entry process's children, and in commands that execd starts.
_interpreter_export() {
  export "$1=$2"
  if [ -n "${EXECD_ENVS:-}" ]; then printf '%s=%s\n' "$1" "$2" >>"$EXECD_ENVS"; fi
}

# Sets _interpreter_found, or _interpreter_complaint when it fails.
_interpreter_select() {
  local language=$1 wanted=${2:-} version bin found='' found_bin='' there='' path=":$PATH:"
  case "$language" in
    python | java | node | go) ;;
    *)
      printf 'code-interpreter: no language "%s" here; there are python, java, node and go.\n' "$language" >&2
      return 2
      ;;
  esac
  wanted=${wanted#v}
  while read -r version bin; do
    there+="${there:+, }$version"
    if [ -z "$wanted" ] || [ "$version" = "$wanted" ] || [[ "$version" == "$wanted".* ]]; then
      if [ -z "$found" ] || _interpreter_newer "$version" "$found"; then found=$version found_bin=$bin; fi
    fi
  done < <(_interpreter_versions "$language")
  if [ -z "$found" ]; then
    printf 'code-interpreter: %s_VERSION=%s is not in this image; there are: %s. Choose one of them or a prefix of one.\n' \
      "${language^^}" "$wanted" "${there:-none}" >&2
    # For a file of variables: no quotes and no line ends, whatever was asked for.
    wanted=${wanted//[^[:alnum:].+_-]/?}
    _interpreter_complaint="code-interpreter: ${language^^}_VERSION=${wanted:0:40} is not in this image; there are: ${there:-none}."
    return 1
  fi

  _interpreter_found=$found
  # Another version that was selected before stands in front. The directories of the system stay where they are.
  while read -r version bin; do
    if [ "$bin" != "$found_bin" ] && [[ "$bin" != /usr/* ]]; then path=${path//:"$bin":/:}; fi
  done < <(_interpreter_versions "$language")
  if [[ "$path" != *":$found_bin:"* ]]; then path=:$found_bin$path; fi
  path=${path#:} path=${path%:}
  if [ "$path" != "$PATH" ]; then _interpreter_export PATH "$path"; fi
  case "$language" in
    java) _interpreter_export JAVA_HOME "${found_bin%/bin}" ;;
    go) _interpreter_export GOROOT "${found_bin%/bin}" ;;
  esac
}

_interpreter_select "$@"
