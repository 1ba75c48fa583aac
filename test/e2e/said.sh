#!/bin/sh
# What a view says of what is not there, and of what is: measures that the file does
# not have, threads, types of samples; functions by their names; all rows of JSON.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof

cat > said.lua << 'EOF'
local many = {}
for i = 1, 300 do
  many[i] = load(('local n = 0 for i = 1, 1e5 do n = n + i %% %d end return n')
    :format(i + 1), '=f' .. i)
end
local function busy(s)
  return (s:gsub('\x5c', '\\\\'))
end
local from, t = os.clock(), 0
repeat
  for i = 1, 300 do t = t + many[i]() end
until os.clock() - from > 0.5
from = os.clock()
repeat
  for _ = 1, 1000 do busy('a\\b') end
until os.clock() - from > 0.3
EOF
"$ljprof" record -o cpu.ljp -- "$BUILD_DIR/bin/luajit" said.lua 2> err.txt ||
  fail "$(cat err.txt)"
"$ljprof" record --memory --no-cpu -o memory.ljp -- "$BUILD_DIR/bin/luajit" \
  -e 'local t = {} for i = 1, 1e5 do t[i % 7] = {i} end' 2> err.txt ||
  fail "$(cat err.txt)"

refused() { # CODE TEXT COMMAND...: one line, and nothing shown.
  wanted=$1 text=$2 code=0
  shift 2
  "$ljprof" "$@" > out.txt 2> err.txt || code=$?
  same "$*" "$wanted" "$code"
  grep -qF -- "$text" err.txt || fail "$*: $(cat err.txt)"
  same "$*: one line" 1 "$(wc -l < err.txt)"
  same "$*: nothing is shown" 0 "$(wc -c < out.txt)"
}

for measure in alloc live leaks peak churn; do
  refused 1 "no memory events ('ljprof record --memory'" report --$measure cpu.ljp
done
refused 1 "no wall-clock samples" report --wall cpu.ljp
refused 1 "no CPU samples" report --cpu memory.ljp
ok "a measure that was not recorded is said, with how to record it"

for view in report flame diff; do
  case $view in
  report) set -- report cpu.ljp ;;
  flame) set -- flame -o - cpu.ljp ;;
  diff) set -- diff cpu.ljp cpu.ljp ;;
  esac
  refused 1 "there is no thread '9'; those of the file are '" "$@" --thread 9
  grep -qE "'luajit' \(number 1, OS number [0-9]+\)" err.txt ||
    fail "$(cat err.txt)"
done
ok "threads that are there are named"

refused 2 "samples have no type" report --by type cpu.ljp
"$ljprof" report --by type memory.ljp > out.txt || fail "types of memory"
ok "samples have no type"

rows=$("$ljprof" report --json cpu.ljp | grep -c '^{"name"')
[ "$rows" -gt 40 ] || fail "JSON has $rows rows"
same "JSON without --top" "$rows" \
  "$("$ljprof" report --json --top 0 cpu.ljp | grep -c '^{"name"')"
same "JSON with --top" 5 \
  "$("$ljprof" report --json --top 5 cpu.ljp | grep -c '^{"name"')"
ok "JSON has all rows"

"$ljprof" annotate cpu.ljp busy > out.txt 2> err.txt || fail "$(cat err.txt)"
"$ljprof" annotate cpu.ljp said.lua:busy > same.txt
cmp out.txt same.txt || fail "by its name alone: $(cat out.txt)"
same "no line behind the function" end "$(tail -n 1 out.txt | sed 's/.* //')"
grep -qF "return (s:gsub('\\x5c', '\\\\\\\\'))" out.txt || fail "$(cat out.txt)"
ok "annotate takes a name, and shows the source as it is"

"$ljprof" record --memory -o both.ljp -- "$BUILD_DIR/bin/luajit" said.lua \
  2> err.txt || fail "$(cat err.txt)"
opens() { # FILE: the type that readers of pprof's format show first.
  "$ljprof" export --to pprof -o - "$1" | gunzip | python3 -c '
import sys
data, at, strings, first = sys.stdin.buffer.read(), 0, [], 0
def number():
    global at
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return n
while at < len(data):
    tag = number()
    n = number()
    if tag == 6 << 3 | 2:
        strings.append(data[at:at + n].decode())
    if tag & 7 == 2:
        at += n
    elif tag == 14 << 3:
        first = n
print(strings[first])'
}
same "pprof opens" "cpu cpu " "$(opens both.ljp) $(opens cpu.ljp) $(opens memory.ljp)"

# Backslashes are shown as they are, and the command to type next works.
# shellcheck disable=SC1003 # The backslash is meant.
odd='a\b x\41'
echo 'for i = 1, 3e7 do end' > "$odd.lua"
"$ljprof" record -o "$odd.ljp" "$odd.lua" 2> err.txt || fail "$(cat err.txt)"
same "the next command" "ljprof report '$odd.ljp'" \
  "$(sed -n 's/^ljprof record: next: //p' err.txt)"
"$ljprof" report "$odd.ljp" > out.txt || fail "no report"
grep -qF "main chunk $odd.lua" out.txt || fail "$(cat out.txt)"
"$ljprof" annotate "$odd.ljp" "$odd.lua" > out.txt || fail "no source"
grep -qF "line  $odd.lua" out.txt || fail "$(cat out.txt)"
refuses "a file that is there" 1 "$odd.ljp exists" \
  "$ljprof" record -o "$odd.ljp" "$odd.lua"

# Builtins that LuaJIT has as bytecode are builtins in every view.
cat > bytecode.lua <<'EOF'
local t, from = {}, os.clock()
repeat
  for i = 1, 1e4 do t[i] = i end
  for _ = 1, 1e4 do table.remove(t) end
  for i = 1, 1e4 do table.foreach({i}, function(k) t[k] = nil end) end
until os.clock() - from > 0.3
EOF
for jit in on off; do
  "$ljprof" record --force -o bytecode.ljp -- "$BUILD_DIR/bin/luajit" -j$jit \
    bytecode.lua 2> err.txt || fail "$(cat err.txt)"
  {
    "$ljprof" report --json bytecode.ljp
    "$ljprof" report --jit --top 0 bytecode.ljp
    "$ljprof" export --to collapsed -o - bytecode.ljp
    "$ljprof" flame --svg -o - bytecode.ljp
    "$ljprof" dump bytecode.ljp | grep -v '^ *proto id='
    "$ljprof" export --to ljp --force -o bytecode.bin bytecode.ljp
    "$ljprof" report --json bytecode.bin
  } > rows.txt 2> err.txt
  ! grep -E '4294967295|\[string "' rows.txt > bad.txt || fail "$(head bad.txt)"
  grep -q '^{"name":"table.remove",.*"function":"table.remove","kind":"builtin"' \
    rows.txt || fail "no table.remove with -j$jit"
  "$BUILD_DIR/bin/luajit" -ts bytecode.bin > tool.txt || fail "luajit -ts"
  grep -q ';table.foreach:0;\|started at table.foreach:0;' tool.txt ||
    fail "no table.foreach in Tarantool's format: $(head -n 5 tool.txt)"
  ! grep 'table.[a-z]*:[^0]' tool.txt || fail "a builtin with a line"
done
ok "builtins in bytecode have their names"
