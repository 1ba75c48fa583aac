#!/bin/sh
# ljprof flame of a file with a heap snapshot has the tabs Retained and References,
# which add up to what `ljprof heap` says.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
command -v python3 > /dev/null || {
  echo "skipped: there is no python3"
  exit 0
}

# adds_up NAME: the page of NAME.ljp.
adds_up() {
  "$ljprof" flame "$1.ljp" -o "$1.html" || fail "$1: flame"
  "$ljprof" heap --json --top 1000 "$1.ljp" > "$1.json" || fail "$1: heap"
  python3 "$SOURCE_DIR/test/e2e/heap_flame.py" "$1.html" "$1.json" \
    > said.txt 2>&1 || fail "$1: $(head -c 2000 said.txt)"
  ok "$1: $(cat said.txt)"
}

for name in cache callbacks coroutines keys loaded userdata timers; do
  "$BUILD_DIR/bin/luajit" -e "dofile('$SOURCE_DIR/test/leaks/$name.lua')
    assert(misc.memprof.snapshot{path = '$name.ljp', wait = true})" ||
    fail "$name: the program"
  adds_up $name
done

# A long list is one box; a deep nest of different objects is cut, and many
# different small things are summed up: both are said.
"$BUILD_DIR/bin/luajit" -e '
  for i = 1, 200000 do list = {next = list} end
  local at = {}
  nest = at
  for i = 1, 3000 do
    local inner = {}
    at["key" .. i % 7 .. ("x"):rep(i % 11)] = {inner, ["k" .. i] = i}
    at = inner
  end
  many = {}
  for i = 1, 30000 do many[("%dth"):format(i)] = {["f" .. i] = {}} end
  collectgarbage("stop")
  for i = 1, 1000 do local _ = {list} end
  assert(misc.memprof.snapshot{path = "large.ljp", wait = true})' ||
  fail "large: the program"
adds_up large
grep -q '"(smaller ones)"' large.html || fail "no box for smaller ones"
grep -q '"Heap snapshot","[0-9]* objects, .* objects of garbage, ' large.html ||
  fail "no fact about garbage"
ok "what is left out is summed up"

# A drawing of one tab; a snapshot next to samples; what is wrong is said.
"$ljprof" flame cache.ljp --view references -o cache.svg || fail "svg"
grep -q 'upvalue cache of function' cache.svg || fail "the drawing has no way"
ok "a drawing of the references"
refuses "a thread" 2 "view retained shows the whole heap" \
  "$ljprof" flame cache.ljp --view retained --thread 1 -o x.svg
cp cache.ljp cut.ljp
truncate -s -2000 cut.ljp
"$ljprof" flame cut.ljp -o cut.html || fail "a damaged snapshot"
grep -q 'The heap snapshot is damaged' cut.html || fail "damage is not said"
ok "a damaged snapshot is shown, with a notice"
"$ljprof" flame - -o pipe.html < cache.ljp || fail "from a file on stdin"
grep -q '"id":"retained"' pipe.html || fail "stdin: no tab"
dd if=cache.ljp status=none | "$ljprof" flame - -o pipe.html --force || fail "from a pipe"
grep -q 'The heap snapshot is not shown: the input is not a regular file' pipe.html ||
  fail "a pipe is not said"
ok "a pipe cannot be read twice, and that is said"
