#!/bin/sh
# The CPU profiler in host programs: threads, VMs, signals, the C interface.
. "$(dirname "$0")/lib.sh"

host=$BUILD_DIR/bin/sysprof_host
ljprof=$BUILD_DIR/bin/ljprof
for case in threads short moving conflict sleeps reset starved other close \
  writer backtracer slow; do
  "$host" $case $case.bin > $case.txt 2>&1 ||
    fail "$case: exit code $?: $(cat $case.txt)"
  same "$case: a whole stream" whole "$("$ljprof" check $case.bin | tail -n 1)"
  "$ljprof" dump --json $case.bin > $case.json
  grep '"type":"sample"' $case.json > $case.samples || :
done

# count CASE PATTERN...: samples with all patterns.
count() {
  file=$1.samples
  shift
  cat "$file" > left
  for pattern in "$@"; do
    grep -e "$pattern" < left > more.txt || true
    mv more.txt left
  done
  wc -l < left
}
atleast() {
  [ "$3" -ge "$2" ] || fail "$1: $3, wanted at least $2"
  ok "$1: $3"
}

atleast "samples of the first thread's VM" 200 \
  "$(count threads '"thread":1,' '"vm":1,' '"text":"in_first ')"
atleast "samples of the second thread's VM" 100 \
  "$(count threads '"vm":2,' '"text":"in_second ')"
same "no stack mixes the two" 0 \
  "$(count threads '"text":"in_first ' '"text":"in_second ')"
same "no VM in the wrong thread" 0 \
  "$(count threads '"thread":1,' '"text":"in_second ')"
grep -q '"type":"thread",.*"name":"second"' threads.json ||
  fail "no thread named second: $(grep '"thread"' threads.json | head -n 5)"
ok "threads have their names"
second=$(sed -n 's/.*"type":"thread","id":\([0-9]*\),.*"name":"nolua".*/\1/p' \
  threads.json)
[ -n "$second" ] || fail "no thread nolua"
same "nothing of a thread without Lua" 0 "$(count threads "\"thread\":$second,")"

atleast "samples of threads that live shortly" 200 \
  "$(count short '"text":"in_short ')"
same "each with its VM, from the first on" 0 \
  "$(count short '"vm":0,' '"text":"in_short ')"
sampled=$(grep '"text":"in_short ' short.samples |
  sed 's/.*"thread":\([0-9]*\),.*/\1/' | sort -u | wc -l)
same "all of them" 23 "$sampled"

grep -q '"type":"note",.*has a handler of its own for signal 23 (SIGURG)' \
  reset.json || fail "no note that the program took the signal"
ok "a signal that the program takes for itself is noted"

atleast "a VM in its first thread" 100 "$(count moving '"text":"in_main ')"
atleast "and in another" 100 "$(count moving '"thread":[^1],' '"text":"in_moved ')"

all=$(wc -l < writer.samples)
atleast "samples through a writer" 150 "$all"
atleast "with the function" $((all / 2)) "$(count writer '"text":"c_started ')"
atleast "samples by libunwind's frames" 150 \
  "$(count backtracer '"text":"c_started ' 'sysprof_host+')"

same "a thread in our own handler does not block the signal" "" \
  "$(grep '"type":"unsampled",' slow.json | grep -i block || :)"
