#!/bin/sh
# ljprof mark -p: a mark in the session that runs in a program, whoever has begun
# it, and what is refused.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

refuses "no name" 2 "NAME of the mark is missing" "$ljprof" mark -p 1
refuses "an empty name" 2 "NAME is empty" "$ljprof" mark -p 1 ""
refuses "two names" 2 "unexpected argument 'b': a mark has one NAME" \
  "$ljprof" mark -p 1 a b
refuses "no process" 2 "-p PID is missing" "$ljprof" mark a
refuses "no number" 2 "-p is 'x'" "$ljprof" mark -p x a
refuses "no UTF-8" 2 "must be UTF-8" "$ljprof" mark -p 1 "$(printf 'a\377')"
long=$(head -c 4082 /dev/zero | tr '\0' m)
refuses "a long name" 2 "NAME has 4083 bytes, but a mark has at most 4082" \
  "$ljprof" mark -p 1 "$long+"

# marks FILE: the names of its marks, one on each line.
marks() {
  "$ljprof" dump "$1" | sed -n 's/^ *mark .*text="\([^"]*\)".*/\1/p'
}

# -- A session that ljprof has begun. ----------------------------------------------
begin loop
refuses "no session" 1 "no session runs, so there is nothing to mark" \
  "$ljprof" mark -p "$host" early
: > record.txt
env --default-signal=INT "$ljprof" record -p "$host" -o joined.ljp --flush 20 \
  2> record.txt &
client=$!
eventually "recording: $(cat record.txt)" grep -q "recording process" record.txt
"$ljprof" mark -p "$host" "request begins" > out.txt 2>&1 || fail "$(cat out.txt)"
same "it says nothing" "" "$(cat out.txt)"
"$ljprof" mark "für 5 €" --pid "$host" || fail "UTF-8"
"$ljprof" mark -p "$host" -- -x || fail "a dash"
"$ljprof" mark -p "$host" "$long" || fail "a long name"
kill -INT $client
wait $client || fail "$(cat record.txt)"
"$ljprof" check joined.ljp > check.txt || fail "$(cat check.txt)"
same "marks of a recording" "request begins
für 5 €
-x
$long" "$(marks joined.ljp)"
"$ljprof" flame joined.ljp -o joined.html || fail "no page"
grep -q 'request begins' joined.html || fail "the page has no mark"
ok "a page shows them"
end "marked"

# -- Sessions that the program has begun. ---------------------------------------------
cat > own.lua << 'END'
local start = assert(loadstring("return " .. arg[1]))()
assert(start())
local kept = {}
local file = assert(io.open("begun", "w")) file:close()
while not io.open("stop") do
  for i = 1, 1000 do kept[i] = {tostring(i)} end
end
misc.sysprof.stop() misc.memprof.stop() misc.profile.stop()
END
# own WHAT CODE: a program that runs this code.
own() {
  rm -f begun stop
  "$BUILD_DIR/bin/luajit" own.lua "function() return $2 end" 2> own.txt &
  host=$!
  eventually "$1: $(cat own.txt)" test -e begun
}
over() {
  touch stop
  wait "$host" || fail "$(cat own.txt)"
  host=
}
own "CPU" 'misc.sysprof.start{path = "cpu.ljp"}'
"$ljprof" mark -p "$host" "cpu" || fail "CPU"
over
same "a CPU session" "cpu" "$(marks cpu.ljp)"
own "memory" 'misc.memprof.start{path = "memory.ljp", every = true}'
"$ljprof" mark -p "$host" "memory" || fail "memory"
sleep 0.2
over
same "a memory session" "memory" "$(marks memory.ljp)"
"$ljprof" dump memory.ljp | grep '^ *mark ' | grep -q 'value=[1-9][0-9]\{4\}' ||
  fail "no heap size: $("$ljprof" dump memory.ljp | grep '^ *mark ')"
ok "it has the heap's size"
"$ljprof" report --live --since memory memory.ljp > report.txt 2>&1 ||
  fail "$(cat report.txt)"
grep -q "no mark" report.txt && fail "$(cat report.txt)"
grep -q 'mark after .*memory' report.txt || fail "$(cat report.txt)"
ok "a report begins there"
own "both" 'misc.profile.start{path = "both.ljp"}'
"$ljprof" mark -p "$host" "both" || fail "both"
over
same "a combined session has it once" "both" "$(marks both.ljp)"
own "two" 'misc.sysprof.start{path = "one.ljp"} and misc.memprof.start{path = "two.ljp"}'
"$ljprof" mark -p "$host" "each" || fail "each"
over
same "two sessions have one each" "each each" "$(marks one.ljp) $(marks two.ljp)"
own "ljm" 'misc.memprof.start{path = "old.bin", format = "ljm"}'
refuses "a format without marks" 1 'a file of format "ljm" has no marks' \
  "$ljprof" mark -p "$host" "x"
over
own "counters" 'misc.sysprof.start{path = "count.ljp", mode = "D"}'
refuses "a mode without marks" 1 'a session of mode "D" has counters only' \
  "$ljprof" mark -p "$host" "x"
over
