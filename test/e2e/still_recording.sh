#!/bin/sh
# Files that are still being recorded: each command reads what is there, and
# says so. When the program is killed or ends, it says that instead.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
cat > grow.lua << 'END'
assert(misc.memprof.start{path = arg[1], flush = 10})
assert(misc.sysprof.start{interval = 1})
local kept = {}
local function leak(i) kept[i % 997] = {i, tostring(i)} end
local i = 0
repeat
  for _ = 1, 1000 do i = i + 1; leak(i) end
  local stop = io.open(arg[2])
until stop
misc.sysprof.stop()
misc.memprof.stop()
END

# grow FILE: a program that records until `stop` is there; its number in $pid.
grow() {
  rm -f stop
  "$BUILD_DIR/bin/luajit" grow.lua "$1" stop 2> grow.err &
  pid=$!
  tries=0
  until "$ljprof" report --alloc "$1" 2> /dev/null | grep -q ' leak '; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "nothing was recorded: $(cat grow.err)"
    sleep 0.1
  done
}
pid=
# shellcheck disable=SC2016 # at the test's end
at_end='[ -z "$pid" ] || kill -9 $pid 2> /dev/null; wait'

# told WHAT TEXT COMMAND...: the command succeeds and prints a line with TEXT.
told() {
  what=$1 text=$2
  shift 2
  "$@" > told.txt 2>&1 || fail "$what: $(head -n 3 told.txt)"
  grep -qF -e "$text" told.txt || fail "$what: no '$text': $(head -n 5 told.txt)"
  ok "$what"
}

still="! still recording: this is what the file has so far"
grow live.ljp
told "a report" "$still" "$ljprof" report --alloc live.ljp
grep -q 'leak' told.txt || fail "the report has no function: $(cat told.txt)"
told "a report in JSON" '"recording":true' "$ljprof" report --alloc --json live.ljp
"$ljprof" flame live.ljp -o live.html || fail "a page"
grep -q 'still recording' live.html || fail "the page does not say it"
"$ljprof" export --to collapsed --value alloc_space live.ljp -o stacks.txt ||
  fail "an export"
grep -q 'leak' stacks.txt || fail "the export has no function"
ok "a page and an export"
told "a dump" "recording=true" "$ljprof" dump live.ljp
told "standard input" "$still" "$ljprof" report --alloc - < live.ljp
refuses "a budget" 3 "is still being recorded (--incomplete judges" \
  "$ljprof" expect live.ljp 'alloc <= 1 TB'

# While the file grows, nothing is taken for damage, wherever the read ends.
for _ in $(seq 40); do
  code=0
  "$ljprof" check live.ljp > check.txt || code=$?
  same "check" 1 "$code"
  grep -qx 'still recording' check.txt || fail "$(cat check.txt)"
  grep -qx 'whole so far' check.txt || fail "$(cat check.txt)"
done

# A block of which only a part is there belongs to nobody's damage.
kill -STOP $pid
size=$(wc -c < live.ljp)
"$ljprof" check live.ljp > check.txt || :
grep -qx 'whole so far' check.txt || fail "stopped: $(cat check.txt)"
head -c $((size - 1)) live.ljp > part.ljp # A copy has no writer.
code=0
"$ljprof" check part.ljp > check.txt || code=$?
grep -q '^not closed' check.txt || fail "a copy: $(cat check.txt)"
grep -q 'still recording' check.txt && fail "a copy is recorded: $(cat check.txt)"
ok "a copy of the file is not being recorded"
truncate -s $((size - 1)) live.ljp # The writer seems to be within a block.
"$ljprof" check live.ljp > check.txt || :
grep -qx 'whole so far' check.txt || fail "a part: $(cat check.txt)"
ok "a block that is being written is not damage"

kill -9 $pid
wait $pid 2> /dev/null || :
code=0
"$ljprof" check live.ljp > check.txt || code=$?
grep -q '^not closed' check.txt || fail "killed: $(cat check.txt)"
grep -q '^DAMAGED' check.txt || fail "killed: $(cat check.txt)"
told "killed" "! the file was not closed" "$ljprof" report --alloc live.ljp
rm live.ljp part.ljp # They do not add up, on purpose.

grow ends.ljp
touch stop
wait $pid || fail "the program failed: $(cat grow.err)"
"$ljprof" check ends.ljp > check.txt || fail "ended: $(cat check.txt)"
same "ended" whole "$(tail -n 1 check.txt)"
"$ljprof" report --alloc ends.ljp > told.txt || fail "ended"
grep -q 'still recording' told.txt && fail "ended, and still recording"
ok "a file that has ended is whole"
