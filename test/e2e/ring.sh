#!/bin/sh
# The files of a service in a store stay within the budget of --ring, whatever
# ends its processes: the oldest go first, what is being written stays, and each
# file can be read alone. --continuous makes a file of each stretch of time.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof

# prefork.lua CHILDREN: a master that only waits, and workers that allocate until
# there is a file `stop`. Each writes its number into a file.
cat > prefork.lua << 'END'
local ffi = require("ffi")
ffi.cdef "int fork(void); int waitpid(int, int *, int); int getpid(void);"
local function exists(name)
  local f = io.open(name)
  return f and f:close()
end
local function work()
  local f = assert(io.open("pid." .. ffi.C.getpid(), "w"))
  f:close()
  local keep = {}
  while not exists("stop") do
    for i = 1, 20000 do keep[i % 97] = { i } end
  end
  os.exit(0)
end
for i = 1, tonumber(arg[1]) do
  if ffi.C.fork() == 0 then work() end
end
while ffi.C.waitpid(-1, nil, 0) > 0 do end
END

# kib: what the files of the store take on the disk, in whole pages.
kib() {
  find store -name '*.ljp' -printf '%s\n' 2> /dev/null |
    awk '{ sum += int(($1 + 4095) / 4096) * 4 } END { print sum + 0 }'
}

# watch_room LIMIT TIMES: fails if the files ever take more KiB. Sets `most`.
most=0
watch_room() {
  n=0
  while [ $n -lt "$2" ]; do
    now=$(kib)
    [ "$now" -le "$most" ] || most=$now
    [ "$now" -le "$1" ] || fail "the files take $now KiB, more than $1"
    n=$((n + 1))
    sleep 0.05
  done
}

# wait_sequence N: until the store has a file with this number or a later one.
wait_sequence() {
  tries=0
  until sequences 2> /dev/null |
    awk -v least="$1" '$1 >= least { found = 1 } END { exit !found }'; do
    tries=$((tries + 1))
    [ $tries -lt 2400 ] || fail "no file with number $1: $(ls store)"
    watch_room "$limit" 1
  done
}

# sequences: the numbers of all files, sorted.
sequences() {
  find store -name '*.ljp' | sed -n 's/.*Z-0*\([0-9]*\)-.*/\1/p' | sort -n
}

# The bound: the budget, and 1 MiB for each process.
workers=3 budget=4096
limit=$((budget + (workers + 1) * 1024))
# shellcheck disable=SC2016 # for later
at_end='for file in "$SCRATCH"/pid.*; do kill -9 "${file##*pid.}"; done 2> /dev/null'
"$ljprof" record --ring ${budget}k --memory --every --flush 50 -o store -- \
  prefork.lua $workers > said 2>&1 &
recorder=$!
wait_sequence 40
ok "3 workers have made 40 files, which took $most KiB at most"
# The master has written number 1 from the beginning on.
sequences > left.txt
same "the master's file stays" 1 "$(head -n 1 left.txt)"
second=$(sed -n 2p left.txt)
[ "$second" -gt 5 ] || fail "no file was removed: $(ls store)"
ok "the oldest are gone: number 1 is followed by $second"

# A worker, then the recorder, are killed. The others go on, and within the
# budget; the last file of the killed one is an old one now, and goes, too.
set -- pid.*
[ $# = $workers ] || fail "the workers are $*"
victim=${1#pid.}
# Meanwhile the others stand still, so that its last file is still there.
kill -STOP "${2#pid.}" "${3#pid.}"
kill -9 "$victim"
kill -9 $recorder
wait $recorder 2> /dev/null || :
last=$(sequences | tail -n 1)
left=$(find store -name "*-$victim.ljp" | sort | tail -n 1)
[ -f "$left" ] || fail "the killed worker has left no file"
"$ljprof" check "$left" > check.txt 2>&1 || :
kill -CONT "${2#pid.}" "${3#pid.}"
grep -q 'the last block\|not closed\|whole' check.txt ||
  fail "the file of the killed worker: $(cat check.txt)"
wait_sequence $((last + 40))
[ ! -f "$left" ] || fail "the file of the killed worker stays: $(ls store)"
ok "without the recorder, and a worker killed: $most KiB at most"

# Nobody has lost the file that it writes.
for pid in "${2#pid.}" "${3#pid.}"; do
  for fd in /proc/"$pid"/fd/*; do
    case $(readlink "$fd") in
    *.ljp\ \(deleted\)) fail "a file that $pid writes was removed" ;;
    esac
  done
done
ok "no file was removed while it was written"

touch stop
for pid in "${2#pid.}" "${3#pid.}"; do
  while kill -0 "$pid" 2> /dev/null; do sleep 0.05; done
done
watch_room "$limit" 1
for file in store/*.ljp; do
  "$ljprof" report "$file" > report.txt 2>&1 ||
    fail "$file cannot be read alone: $(cat report.txt)"
  grep -q 'prefork.lua' report.txt || fail "$file: no function of the program"
done
ok "each of the $(sequences | wc -l) files that are left can be read alone"

# -- A file each second ------------------------------------------------------
cat > wait.lua << 'END'
local ends = os.time() + 4
while os.time() < ends do local t = { tostring(ends) } end
END
"$ljprof" record --continuous 1s --flush 20 -o minutes -- wait.lua > said 2>&1
grep -q 'samples.* files of 1 process in minutes$' said || fail "$(cat said)"
n=0 before=''
for file in minutes/*.ljp; do
  name=${file#minutes/}
  case $name in
  wait-????????T??????Z-0000000$((n + 1))-*.ljp) ;;
  *) fail "the name $name, which is number $((n + 1))" ;;
  esac
  [ -z "$before" ] || [ "$(printf '%s\n' "$before" "$name" | sort | head -n 1)" = \
    "$before" ] || fail "$name does not come after $before"
  before=$name n=$((n + 1))
  same "$name" whole "$("$ljprof" check "$file" | tail -n 1)"
done
[ $n -ge 4 ] || fail "$n files of more than 3 seconds"
ok "names sort by time: $n files"
# Each but the first begins on a whole second, to within the time of a round.
"$ljprof" merge -o all.ljp minutes/*.ljp
same "the files are one session" whole "$("$ljprof" check all.ljp | tail -n 1)"

# -- What is refused ---------------------------------------------------------
refuses "a budget that is too small" 2 "--ring is '100k', but must be" \
  "$ljprof" record --ring 100k wait.lua
refuses "--keep in a store" 2 "--keep counts the files of one process" \
  "$ljprof" record --ring 10M --keep 3 wait.lua
refuses "two lengths" 2 "--continuous and --rotate-seconds contradict" \
  "$ljprof" record --continuous 1s --rotate-seconds 2 wait.lua
refuses "a service that is no name" 2 "--service is 'a/b', but must be" \
  "$ljprof" record --service a/b wait.lua
refuses "--force" 2 "--force replaces a file" \
  "$ljprof" record --ring 10M --force wait.lua
refuses "-p" 2 "--ring, --continuous and --service are for a program" \
  "$ljprof" record --ring 10M -p $$
refuses "a preset that is not known" 2 "--preset is 'fast', but must be" \
  "$ljprof" record --preset fast wait.lua
touch file
refuses "a file in place of a folder" 1 "file is not a folder" \
  "$ljprof" record --ring 10M -o file wait.lua
refuses "a folder that cannot be made" 1 "cannot write into nowhere/store" \
  "$ljprof" record --ring 10M -o nowhere/store wait.lua
