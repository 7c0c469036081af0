#!/usr/bin/env bash
# The entry process of a code interpreter sandbox: selects the versions that PYTHON_VERSION, JAVA_VERSION, NODE_VERSION and
# GO_VERSION ask for, then waits. Code is run by execd, which starts its kernels on demand; nothing has to be started here.
set -u

for language in python java node go; do
  variable=${language^^}_VERSION
  # shellcheck source=/dev/null
  . /opt/code-interpreter/code-interpreter-env.sh "$language" "${!variable:-}" || exit 1
done

cd /workspace || exit 1
exec tail -f /dev/null
