#!/usr/bin/env bash
# The entry process of a code interpreter sandbox: selects the versions that PYTHON_VERSION, JAVA_VERSION, NODE_VERSION and
# GO_VERSION ask for, or what there is instead, then waits. Code is run by execd, which starts its kernels on demand; nothing has
# to be started here.
set -u
notice=

for language in python java node go; do
  variable=${language^^}_VERSION
  # shellcheck source=/dev/null
  . /opt/code-interpreter/code-interpreter-env.sh "$language" "${!variable:-}" && continue
  # A sandbox with another version is better than none, as long as it says so: here, for the sandbox's diagnostics, and in the
  # first result of a cell, for whoever runs code.
  complaint=$_interpreter_complaint
  # shellcheck source=/dev/null
  . /opt/code-interpreter/code-interpreter-env.sh "$language" || continue
  going_on="Going on with $language $_interpreter_found."
  printf 'code-interpreter: %s\n' "$going_on" >&2
  notice+="${notice:+ }$complaint $going_on"
done
if [ -n "$notice" ] && [ -n "${EXECD_ENVS:-}" ]; then printf "CODE_INTERPRETER_NOTICE='%s'\n" "$notice" >>"$EXECD_ENVS"; fi

cd /workspace || exit 1
exec tail -f /dev/null
