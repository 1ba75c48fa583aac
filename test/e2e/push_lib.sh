# shellcheck shell=sh
# What the tests of ljprof push share: a fake engine, and a recorded file.
ljprof=$BUILD_DIR/bin/ljprof
e2e=$SOURCE_DIR/test/e2e
export PYTHONDONTWRITEBYTECODE=1
engine_pid=''
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='[ -z "$engine_pid" ] || kill "$engine_pid"'

# engine DIR [CERT KEY]: starts a fake engine with this folder; sets $port.
engine() {
  stop_engine
  mkdir -p "$1"
  rm -f "$1/port"
  python3 "$e2e/fake_engine.py" "$@" &
  engine_pid=$!
  for _ in $(seq 600); do
    [ ! -s "$1/port" ] || break
    sleep 0.1
  done
  # shellcheck disable=SC2034 # for the test
  port=$(cat "$1/port")
}

# stop_engine: ends it.
stop_engine() {
  [ -z "$engine_pid" ] || {
    kill "$engine_pid"
    wait "$engine_pid" 2> /dev/null || :
  }
  engine_pid=''
}

# plan DIR WORD...: what the engine does next; forgets earlier requests.
plan() {
  plan_dir=$1
  shift
  rm -f "$plan_dir"/*.head "$plan_dir"/*.body "$plan_dir/taken"
  printf '%s\n' "$@" > "$plan_dir/plan"
}

# requests DIR, taken DIR: the number of requests, and of those taken.
requests() {
  find "$1" -name '*.body' | wc -l
}
taken() {
  [ ! -f "$1/taken" ] || wc -l < "$1/taken"
  [ -f "$1/taken" ] || echo 0
}

# outcomes JOURNAL WHAT: how many records of a journal say this.
outcomes() {
  python3 -c 'import sys
data = open(sys.argv[1], "rb").read()
print(sum(data[i + 8] == int(sys.argv[2]) for i in range(0, len(data), 40)))' "$@"
}

# record NAME [SCALE]: a file with CPU time, labelled, and memory, unless $memory is
# empty. For Pyroscope each is a request.
memory='--memory --sample 4096'
record() {
  cat > labels.lua << 'END'
local label = require("misc").profile.label
local scale = tonumber(arg[1])
local keep = {}
local function burn(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end
local function fill(n)
  for i = 1, n do keep[#keep + 1] = {i} end
end
for i = 1, 8 do
  label{route = i % 2 == 0 and "/a" or "/b", ["http.tenant"] = "x"}
  burn(scale * (i % 2 == 0 and 3e6 or 1e6))
  fill(101)
end
END
  # shellcheck disable=SC2086 # words
  "$ljprof" record $memory --force -o "$1" -- \
    "$BUILD_DIR/bin/luajit" labels.lua "${2:-1}" 2> /dev/null
}

# sums_of FILE NAME ROUTE: what "$pushed" must tell of a file: the sums of the
# collapsed exports.
sums_of() {
  for value in cpu samples alloc_objects alloc_space inuse_objects inuse_space; do
    name=process_cpu
    case $value in
    *_*) name=memory ;;
    esac
    "$ljprof" export --to collapsed --value $value -o - "$1" 2> /dev/null |
      awk -v w="$name $value" '{ s += $NF } END { printf "%s %.0f\n", w, s }'
  done
  for route in /a /b; do
    "$ljprof" export --to collapsed --value cpu --label route=$route -o - "$1" 2> /dev/null |
      awk -v w="process_cpu cpu route=$route" '{ s += $NF } END { printf "%s %.0f\n", w, s }'
  done
}
