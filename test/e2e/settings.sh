#!/bin/sh
# A service that nobody starts by hand is recorded by LJPROF_RECORD, or by a file
# that it names. Whatever is wrong there, the program runs on as without it, and
# says once what is wrong.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof luajit=$BUILD_DIR/bin/luajit

cat > app.lua << 'END'
local ends, keep = os.clock() + (tonumber(arg[1]) or 0.3), {}
while os.clock() < ends do
  for i = 1, 1000 do keep[i % 97] = { tostring(i) } end
end
print("result 4711")
END

# run SETTINGS [ARGUMENT...]: the program's output in `out`, its errors in `err`.
run() {
  settings=$1
  shift
  code=0
  LJPROF_RECORD=$settings "$luajit" app.lua "$@" > out 2> err || code=$?
  [ "$code $(cat out)" = "0 result 4711" ] ||
    fail "$settings: exit code $code, '$(cat out)'; $(cat err)"
}

# recorded WHAT FOLDER SERVICE: a whole file with samples of the program.
recorded() {
  set -- "$1" "$2"/"$3"-*.ljp
  if [ $# != 2 ] || [ ! -f "$2" ]; then fail "$1: the files are $*"; fi
  same "$1" whole "$("$ljprof" check "$2" | tail -n 1)"
  "$ljprof" report "$2" > report.txt
  grep -q 'app.lua:[0-9]*$\|app.lua$' report.txt ||
    fail "$1: no function of app.lua in: $(cat report.txt)"
  file=$2
}

mkdir a b c d
run "output=$PWD/a; ring=50M; preset=production"
same "nothing is printed" "" "$(cat err)"
recorded "settings in the variable" a luajit
"$ljprof" dump --json "$file" > dump.json
for option in interval_us:10000.000 timer:tick memory.sample_bytes:524288; do
  grep -q "\"option.${option%:*}\",\"value\":\"${option#*:}\"" dump.json ||
    fail "no $option: $(grep option dump.json)"
done
ok "the preset takes 100 samples a second, and memory every 512 KiB"

cat > service.conf << END
# What is recorded of the service.
output = $PWD/b

service=web-1
  interval =   0.5
continuous = 1h
memory
END
run "$PWD/service.conf"
recorded "settings in a file" b web-1
grep -q ' bytes' report.txt || "$ljprof" report --alloc "$file" > report.txt
grep -q 'app.lua' report.txt || fail "no memory: $(cat report.txt)"

# A child of a program that is not recorded itself, and what a process executes.
cat > chain.sh << END
"$luajit" app.lua
exec "$luajit" app.lua
END
LJPROF_RECORD="output=$PWD/c;service=chain;ring=10M" sh chain.sh > out 2> err
same "two programs run" "result 4711 result 4711" "$(tr '\n' ' ' < out | sed 's/ $//')"
same "each has its file" 2 "$(find c -name 'chain-*.ljp' | wc -l)"

# German numbers have a comma; settings always have a point.
run "output=$PWD/d;interval=0.5;service=point"
recorded "numbers with a point" d point

# -- What is wrong ---------------------------------------------------------
# wrong WHAT SETTINGS TEXT: one line that says so, and no file.
wrong() {
  mkdir -p none
  run "$2"
  same "$1: one line" 1 "$(wc -l < err)"
  grep -qF "ljprof: not recorded: $3" err || fail "$1: $(cat err)"
  [ -z "$(ls none)" ] || fail "$1: files: $(ls none)"
  ok "$1: $(cat err)"
}
none=$PWD/none
wrong "no folder" "ring=10M" "LJPROF_RECORD: output is missing"
wrong "a folder that is not there" "output=$none/x;ring=10M" "$none/x: No such file"
wrong "a file in place of a folder" "output=$PWD/app.lua" "$PWD/app.lua: Not a directory"
wrong "an unknown setting" "output=$none;rnig=10M" \
  "LJPROF_RECORD: there is no setting 'rnig'; did you mean 'ring'?"
wrong "a setting far from all" "output=$none;frobnicate=1" \
  "LJPROF_RECORD: there is no setting 'frobnicate' (settings are options"
wrong "a size that is none" "output=$none;ring=lots" \
  "LJPROF_RECORD: ring is 'lots', but must be a number of bytes"
wrong "a time that is none" "output=$none;continuous=1x" \
  "LJPROF_RECORD: continuous is '1x', but must be a number of seconds"
wrong "a preset that is none" "output=$none;preset=fast" \
  "LJPROF_RECORD: preset is 'fast', but must be production"
wrong "a service that is no name" "output=$none;service=a/b" \
  "LJPROF_RECORD: service is 'a/b', but must be a name"
wrong "a switch that is none" "output=$none;memory=maybe" \
  "LJPROF_RECORD: memory is 'maybe', but must be yes or no"
wrong "a setting twice" "output=$none;ring=1M;ring=2M" \
  "LJPROF_RECORD: ring is given twice"
wrong "no value" "output=$none;ring=" "LJPROF_RECORD: ring has no value"
wrong "settings that contradict" "output=$none;sample=1k" \
  "LJPROF_RECORD: sample needs memory"
wrong "nothing to record" "output=$none;cpu=no" \
  "LJPROF_RECORD: cpu=no without memory records nothing"
wrong "keep in a store" "output=$none;keep=3" "LJPROF_RECORD: keep counts"
wrong "what only ljprof record has" "output=$none;report=1" \
  "LJPROF_RECORD: there is no setting 'report'"
wrong "a file that is not there" "$PWD/missing.conf" \
  "$PWD/missing.conf: No such file"
wrong "a folder in place of a file" "$PWD/none" "$PWD/none: this is not a regular"
printf 'output=%s\nring=1M\nring=2M\n' "$none" > twice.conf
wrong "a line of a file" "$PWD/twice.conf" "$PWD/twice.conf:3: ring is given twice"
printf 'output=%s\0\n' "$none" > nul.conf
wrong "a file that is no text" "$PWD/nul.conf" "$PWD/nul.conf: the file has a NUL"
head -c 70000 /dev/zero | tr '\0' '#' > large.conf
wrong "a file that is too large" "$PWD/large.conf" "$PWD/large.conf: the file is larger"
wrong "bytes that command a terminal" "output=$none;$(printf '\033[31m')=1" \
  "LJPROF_RECORD: there is no setting '?[31m'"
mkfifo pipe.conf
wrong "a pipe, which nobody writes to" "$PWD/pipe.conf" \
  "$PWD/pipe.conf: this is not a regular"
if [ "$(id -u)" != 0 ]; then
  mkdir closed
  chmod 500 closed
  wrong "a folder that is closed" "output=$PWD/closed" "$PWD/closed"
fi
