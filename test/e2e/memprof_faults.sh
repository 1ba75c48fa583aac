#!/bin/sh
# Bad input, and what programs and systems do to a memory profiler: refused by
# name, or survived, with the program's output as it is without.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof
faults=$SOURCE_DIR/test/e2e/memprof_faults.lua

"$lua" "$SOURCE_DIR/test/e2e/memprof_api.lua" > api.txt 2>&1 ||
  fail "$(cat api.txt)"
ok "the interface: $(tail -n 1 api.txt)"
for file in both.bin cdata.bin errors.bin hook.bin twice.bin userdata.bin; do
  same "$file" whole "$("$ljprof" check $file | tail -n 1)"
done

# No memory left, by a limit of the system: the same error, at the same place.
# shellcheck disable=SC3045 # dash has ulimit -v
for case in limit bothlimit; do
  (ulimit -v 600000 && "$lua" "$faults" $case-plain none) > plain.txt 2>&1 ||
    fail "$case without a profiler: $(cat plain.txt)"
  grep -q 'not enough memory' plain.txt || fail "$case: $(cat plain.txt)"
  (ulimit -v 600000 && "$lua" "$faults" $case limit.ljp) > out.txt 2>&1 ||
    fail "$case: $(cat out.txt)"
  # How far it gets may differ by one: our threads have stacks, too.
  same "$case: the same error" "$(sed 's/^[0-9]*//' plain.txt)" \
    "$(sed 's/^[0-9]*//' out.txt)"
  same "$case: the file" whole "$("$ljprof" check limit.ljp | tail -n 1)"
  "$ljprof" dump limit.ljp > dump.txt
  n=$(grep -c '^  mem .*failed=true' dump.txt || :)
  [ "$n" -ge 2 ] || fail "$case: $n events of failed allocations"
  "$ljprof" report --alloc --json limit.ljp > report.json
  grep -q '"failed_alloc_events":[1-9]' report.json ||
    fail "$case: the report does not tell"
  grep -q '"heap_difference_bytes":0,' report.json ||
    fail "$case: $(head -c 1500 report.json)"
  ok "$case: $n failed allocations are told, and every byte is there"
done

# ... of which every mode tells the same, though a session that samples is not
# asked by the allocator that refuses.
# shellcheck disable=SC3045 # dash has ulimit -v
for case in refused sampledrefused seldomrefused; do
  (ulimit -v 600000 && "$lua" "$faults" $case $case.ljp) > out.txt 2>&1 ||
    fail "$case: $(cat out.txt)"
  same "$case: events, stacks cut" "21	0" "$(cat out.txt)"
  "$ljprof" dump $case.ljp > dump.txt
  grep '^  mem .*failed=true' dump.txt |
    sed -n 's/.*operation="\([a-z]*\)" address=[^ ]* size=\([0-9]*\) .*type="\([^"]*\)".*/\1 \2 \3/p' \
      > $case.txt
  same "$case: what was refused" "$(cat refused.txt)" "$(cat $case.txt)"
done
same "refused" 15 "$(sort -u refused.txt | wc -l)"

# A disk that is full.
if [ -c /dev/full ]; then
  for case in full bothfull; do
    "$lua" "$faults" $case-plain none > plain.txt
    "$lua" "$faults" $case /dev/full > out.txt 2> err.txt || : # it may not start
    if grep -q '/dev/full: No space left on device' err.txt; then
      ok "$case: $(cat err.txt)" | head -n 1
    else
      fail "$case: $(cat out.txt err.txt)"
    fi
  done
fi

# A child goes on without, or with a file of its own; its parent's has nothing of it.
"$lua" "$faults" fork fork.ljp > out.txt 2>&1 || fail "fork: $(cat out.txt)"
same "fork: the child" "child ended with	0 true" "$(tr '\n' ' ' < out.txt | sed 's/ $//')"
"$lua" "$faults" bothfork both.ljp > out.txt 2>&1 || fail "fork: $(cat out.txt)"
for case in follow bothfollow; do
  "$lua" "$faults" $case $case.ljp > out.txt 2>&1 || fail "$case: $(cat out.txt)"
  same "$case: the child" "child ended with	7 true" \
    "$(tr '\n' ' ' < out.txt | sed 's/ $//')"
  set -- $case.ljp.*
  if [ $# != 1 ] || [ ! -f "$1" ]; then
    fail "$case: files of children: $*"
  fi
  mv "$1" $case-child.ljp
done
# FILE least most: tables that were made, and every byte of each.
while read -r file least most; do
  same "$file" whole "$("$ljprof" check "$file" | tail -n 1)"
  "$ljprof" report --alloc --json "$file" > report.json
  grep -q '"heap_difference_bytes":0,' report.json ||
    fail "$file: $(head -c 1500 report.json)"
  "$ljprof" dump "$file" > dump.txt
  n=$(grep -c '^  mem .*="alloc".* type="table"' dump.txt || :)
  if [ "$n" -lt "$least" ] || [ "$n" -gt "$most" ]; then
    fail "$file: $n tables"
  fi
  ok "$file: $n tables, and every byte"
done << EOF
fork.ljp 40032 40200
both.ljp 40032 40200
follow.ljp 40032 40200
bothfollow.ljp 40032 40200
follow-child.ljp 30011 30100
bothfollow-child.ljp 30011 30100
EOF

# What recording costs is nobody else's time.
"$ljprof" export --to collapsed both.ljp -o both.txt
grep -q ';\[profiler\] [0-9]*$' both.txt || fail "no time of the profiler"
! grep -q '\[profiler\];' both.txt || fail "$(grep -m 3 '\[profiler\];' both.txt)"
ok "what recording took stands apart"

# ... wherever in a cycle of the collector it begins.
"$lua" "$faults" steps steps.ljp > out.txt 2>&1 || fail "steps: $(cat out.txt)"
same "steps: the children" "children ended with	203 true" \
  "$(tr '\n' ' ' < out.txt | sed 's/ $//')"
n=0
for file in steps.ljp steps.ljp.*; do
  "$ljprof" report --alloc --json "$file" > report.json
  grep -q '"heap_difference_bytes":0,' report.json ||
    fail "$file: $(head -c 1500 report.json)"
  n=$((n + 1))
done
same "steps: files" 30 "$n"

# Ends that nobody has announced.
for case in exit error forget; do
  "$lua" "$faults" $case $case.ljp > out.txt 2>&1 || : # two of them fail
  same "$case" whole "$("$ljprof" check $case.ljp | tail -n 1)"
  "$ljprof" report --alloc --json $case.ljp > report.json
  grep -q '"heap_difference_bytes":0,' report.json ||
    fail "$case: $(head -c 1500 report.json)"
  ok "$case: every byte"
done

# Somebody takes nothing of the stream until events are lost: status() tells as
# many of them as the stream does.
cat > stall.lua << 'END'
assert(misc.memprof.start { path = "stall", every = true })
local keep, began = nil, os.time()
repeat
  for i = 1, 1000 do keep = { i } end
  assert(os.time() - began < 60, "nothing is lost")
until misc.memprof.status().losses > 0
assert(io.open("go", "w")):close()
assert(misc.memprof.stop())
print(string.format("%d", misc.memprof.status().losses))
END
mkfifo stall
exec 3<> stall # whoever writes finds a reader
{
  while [ ! -e go ]; do sleep 0.1; done
  cat > stall.ljp
} < stall 3>&- &
"$lua" stall.lua > out.txt 2>&1 3>&- || {
  : > go
  fail "stall: $(cat out.txt)"
}
exec 3>&-
wait $!
"$ljprof" check stall.ljp > check.txt || : # not all is there
same "stall: what was lost" "$(awk '/^lost /{ print $2 }' check.txt)" \
  "$(cat out.txt)"
