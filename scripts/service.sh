# Starting and stopping the service in the background. Sourced after lib.sh; a service is a directory with config.toml, pid and log.
# shellcheck shell=bash

# The pid of the service in DIR, when it still runs. The start time tells it from a stranger that got the same number.
service_pid() {
  local pid start
  { read -r pid start <"$1/pid"; } 2>/dev/null || return 1
  [ "$(process_start "$pid")" = "$start" ] || return 1
  printf '%s' "$pid"
}

# When a process started, in clock ticks since boot: the 20th field behind the name, which may hold blanks.
process_start() {
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  read -ra stat <<<"${stat##*) }"
  printf '%s' "${stat[19]}"
}

# Is it an OpenSandbox server that answers on this port of the loopback interface?
is_healthy() { curl -fs --max-time 2 "http://127.0.0.1:$1/health" 2>/dev/null | grep -q '"healthy"'; }
is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

write_config() {
  local dir=$1 port=$2 state=$3
  mkdir -p "$dir"
  cat >"$dir/config.toml" <<TOML
[server]
host = "127.0.0.1"
port = $port

[runtime]
type = "native"

[native]
state_dir = "$state"
TOML
}

# Whoever the service runs as: root, unless the caller has set rootless.
as_service() { if [ -n "${rootless:-}" ]; then "$@"; else as_root "$@"; fi; }

# start_service BIN DIR PORT: returns when it answers.
start_service() {
  local bin dir=$2 port=$3 pid i
  bin=$(realpath "$1")
  as_service true  # a password is asked for here, not in the background
  # shellcheck disable=SC2016  # $$ and the arguments belong to the inner shell, whose pid the service keeps
  as_service setsid bash -c 'echo "$$" >"$2/pid.new"; exec "$1" --config "$2/config.toml"' - "$bin/opensandbox-server" "$dir" \
    >"$dir/log" 2>&1 </dev/null &
  for ((i = 0; i < 300; i++)); do
    if is_healthy "$port"; then
      pid=$(<"$dir/pid.new")
      echo "$pid $(process_start "$pid")" >"$dir/pid"
      return 0
    fi
    if [ "$i" -gt 5 ] && ! { pid=$(<"$dir/pid.new") && [ -d "/proc/$pid" ]; } 2>/dev/null; then break; fi
    sleep 0.05
  done
  tail -n 20 "$dir/log" >&2
  die "The service did not start; its log is $dir/log"
}

stop_service() {
  local dir=$1 pid i
  pid=$(service_pid "$dir") || return 0
  kill -TERM "$pid" 2>/dev/null || as_root kill -TERM "$pid"
  for ((i = 0; i < 200; i++)); do
    service_pid "$dir" >/dev/null || break
    sleep 0.05
  done
  if service_pid "$dir" >/dev/null; then die "The service (process $pid) does not stop; its log is $dir/log"; fi
  rm -f "$dir/pid" "$dir/pid.new"
}

# temporary_service BIN NAME: a service with a state directory and a port of its own, which ends with this script. Sets dir and port.
temporary_service() {
  temporary_bin=$1
  dir=$(mktemp -d "/var/tmp/opensandbox-$2-XXXXXX")  # a real disk, and reachable for the unprivileged server
  chmod 755 "$dir"
  port=$(free_port)
  trap end_temporary_service EXIT
  write_config "$dir" "$port" "$dir/state"
  start_service "$1" "$dir" "$port"
}

# shellcheck disable=SC2317  # the trap calls it
end_temporary_service() {
  "$temporary_bin/osb" rm --all --server "127.0.0.1:$port" >/dev/null 2>&1 || true
  stop_service "$dir"
  as_root rm -rf "$dir"
}

# A port below the range that the kernel hands out by itself.
free_port() {
  local candidate
  for ((candidate = 18400 + RANDOM % 1000; candidate < 20000; candidate++)); do
    if ! is_taken "$candidate"; then break; fi
  done
  printf '%s' "$candidate"
}
