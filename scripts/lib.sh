# Shared by quickstart, test and install-deps. Sourced, never run; the caller has `set -euo pipefail` and sits in the root of
# the repository.
# shellcheck shell=bash

say() { printf '%s\n' "$*"; }
die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Seconds since the epoch with microseconds, and the difference of two of them for people. EPOCHREALTIME follows the locale.
now() { printf '%s' "${EPOCHREALTIME/,/.}"; }
took() {
  awk -v a="$1" -v b="$(now)" 'BEGIN { d = b - a
    if (d < 1) printf "%.1f ms", d * 1000; else if (d < 60) printf "%.1f s", d; else printf "%d min %02d s", d / 60, d % 60 }'
}

# Runs a command as root: as it is when we are, else through sudo.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "This needs root: run it as root, or install sudo. (It was about to run: $*)"
  fi
}

# Runs a command with its output in a log; shows a sign of life now and then, and the end of the log on failure.
logged() {
  local log=$1 pid waited=0
  shift
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    waited=$((waited + 1))
    if [ $((waited % 75)) -eq 0 ]; then say "    ... $(tail -n 1 "$log" | cut -c1-100)"; fi
  done
  if ! wait "$pid"; then
    tail -n 40 "$log" >&2
    printf 'That failed; all of it is in %s\n' "$log" >&2
    return 1
  fi
}

# The packages named in the given files that are not installed. "package?command" is not wanted where the command exists: it may
# come from elsewhere.
missing_packages() {
  local wanted=() entry
  while read -r entry; do
    if [[ $entry != *\?* ]]; then
      wanted+=("$entry")
    elif ! command -v "${entry#*\?}" >/dev/null; then
      wanted+=("${entry%%\?*}")
    fi
  done < <(sed 's/#.*//' "$@" | tr -s ' \n' '\n' | grep .)
  # shellcheck disable=SC2016  # dpkg-query expands it
  printf '%s\n' "${wanted[@]}" |
    grep -vxF -f <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p') || true
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# Installs what is missing. The package lists are fetched only when apt does not know a package or cannot get it.
install_packages() {
  local missing
  command -v apt-get >/dev/null || die "This needs Debian 12 (apt-get). Elsewhere install what scripts/packages lists, then build with cmake."
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "    installing: ${missing[*]}"
  mkdir -p build
  if ! apt_install "${missing[@]}" >build/apt.log 2>&1 </dev/null; then
    logged build/apt.log as_root apt-get update
    logged build/apt.log apt_install "${missing[@]}"
  fi
}

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  mkdir -p build
  logged "build/configure-$preset.log" cmake --preset "$preset"
  logged "build/build-$preset.log" cmake --build "build/$preset" --target "$@"
}
