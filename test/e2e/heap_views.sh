#!/bin/sh
# The views of ljprof heap, on programs that leak (test/leaks) and on lists, trees
# and coroutines whose figures are known.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof

# snapshot NAME CODE: runs the code, then writes NAME.ljp.
snapshot() {
  "$BUILD_DIR/bin/luajit" -e "$2
    assert(misc.memprof.snapshot{path = '$1.ljp', gc = true, wait = true})" ||
    fail "$1: the program"
}

# heap FILE OPTION...: into out.txt; spaces are made single.
heap() {
  file=$1
  shift
  "$ljprof" heap "$@" "$file.ljp" > raw.txt || fail "heap $*: $(cat raw.txt)"
  sed 's/  */ /g; s/^ //' raw.txt > out.txt
}

has() { # WHAT LINE: a line of out.txt begins so
  awk -v line="$2" 'index($0, line) == 1 { found = 1 } END { exit !found }' out.txt ||
    fail "$1: no line '$2' in: $(cat out.txt)"
  ok "$1"
}

# -- Types -------------------------------------------------------------------------

snapshot types "
  Waiting = coroutine.create(function(body) coroutine.yield() return body end)
  coroutine.resume(Waiting, ('c'):rep(100003))"
"$ljprof" heap --json types.ljp |
  sed -n 's/.*{"retained":\([0-9]*\),"own":\([0-9]*\),"objects":2,"type":"thread"}.*/\1 \2/p' > sums.txt
read -r retained own < sums.txt || fail "types: no threads"
[ "$retained" -gt $((own + 100003)) ] || fail "threads retain $retained, own $own"
ok "types have what they retain"

snapshot class "
  local Class = {}
  package.loaded['app.class'] = Class
  Objects = {}
  for i = 1, 1009 do Objects[i] = setmetatable({ id = i }, Class) end"
heap class
grep -q ' 1009 table with the metatable package.loaded\["app.class"\]$' out.txt ||
  fail "$(cat out.txt)"
ok "objects of a module's class are tables with its metatable"

snapshot sets "
  Set, Mixed = {}, { name = 'mixed' }
  for i = 1, 1009 do Set[{ i }] = true end
  for i = 1, 307 do Mixed[{}] = { i } Mixed[i] = { i } end
  Times = {}
  for i = 1, 509 do Times[i + 0.5] = { i } end"
heap sets
grep -q ' _G.Set table {1009 objects as keys}$' out.txt || fail "$(cat out.txt)"
grep -q ' _G.Mixed table {name; 307 items; 307 objects as keys}$' out.txt ||
  fail "$(cat out.txt)"
grep -q ' _G.Times table {509 items}$' out.txt || fail "$(cat out.txt)"
ok "a table whose keys are objects or fractions does not look empty"

# -- Compiled code holds its constants, but nobody looks for them there ----------------

cat > traces.lua << 'END'
jit.on()
local held = {}
function Work(keep) for i = 1, 307 do keep(i) end end
local function keep(i) held[i] = { "row" .. i } end
Work(keep)
assert(misc.memprof.snapshot{path = "traces.ljp", gc = true, wait = true})
END
"$BUILD_DIR/bin/luajit" -Ohotloop=10 traces.lua || fail "traces.lua"
heap traces --path '^row'
grep -q ' main thread local held of function traces.lua:0 at line 6\[\*\]\[\*\] string$' \
  out.txt || fail "$(cat out.txt)"
ok "what a stack and a trace hold is said to be on the stack"
"$ljprof" dump traces.ljp | grep -q ' type="trace" ' || fail "no trace was made"
heap traces --path '^trace$'
grep -q ' _G.Work <prototype> <trace> trace$' out.txt || fail "$(cat out.txt)"
ok "traces have their prototypes"

# -- Ways, and what would go --------------------------------------------------------

snapshot users "
  Cache = {}
  for i = 1, 211 do
    Cache['user:' .. i] = { name = 'n' .. i, address = { city = 'c' .. i } }
  end
  Alone = { body = ('b'):rep(10007) }"
heap users --path '^c[0-9]+$'
has "objects held in the same way are one row" \
  "$(printf '%s' "$(sed -n 's/^\(.* 211\) _G.Cache\[\*\].address.city string$/\1/p' out.txt)") _G.Cache[*].address.city string"
same "what matches is counted" "211 objects match '^c[0-9]+\$'" \
  "$(grep match out.txt)"
heap users --path 'table \{address, name}'
grep -q ' 211 _G.Cache\[\*\] table {address, name}$' out.txt || fail "$(cat out.txt)"
ok "a kind is found"
heap users --path '^Alone$'
grep -q ' 1 _G.Alone table {body}$' out.txt || fail "$(cat out.txt)"
ok "what stands under a key is found, with its whole path"
address=$("$ljprof" heap --json --path '^Alone$' users.ljp |
  sed 's/.*"address":"\(0x[0-9a-f]*\)"[^}]*_G.Alone",.*/\1/')
heap users --path "$address"
grep -q ' 1 _G.Alone table {body}$' out.txt || fail "$address: $(cat out.txt)"
ok "an object is found by its address"
"$ljprof" dump users.ljp | grep -q "object .*address=$address " ||
  fail "dump does not show $address"
ok "dump shows the same address"
heap users --retained-by '^Cache$'
# 211 tables, as many below them, names, cities and keys; the cache itself; its
# name, which the table of globals has as a key.
has "what would go is counted" "If nothing held them, 1057 objects would go:"
grep -q ' 211 table {address, name}$' out.txt || fail "$(cat out.txt)"
grep -q ' 211 table {city}$' out.txt || fail "$(cat out.txt)"
ok "what would go is told by kind"
heap users --path 'no such string'
has "nothing may match" "0 objects match 'no such string'"

snapshot deep "
  for i = 1, 30011 do List = { next = List, value = {} } end
  local function tree(n)
    return n > 0 and { left = tree(n - 1), right = tree(n - 1), leaf = {} } or nil
  end
  Tree = tree(9)"
heap deep --path 'table {next, value}'
grep -q ' 30009 _G.List.next \.\.\. table {next, value}$' out.txt || fail "$(cat out.txt)"
ok "a long list is one row"
heap deep --path '^leaf$' --top 1000
[ "$(grep -c 'leaf table of plain' out.txt)" -lt 30 ] || fail "$(cat out.txt)"
ok "a tree has few ways"

# -- Dominators ---------------------------------------------------------------------

heap users --dominators
grep -q ' 211 x table {address, name}$' out.txt || fail "$(cat out.txt)"
grep -q ' 211 x table {city}$' out.txt || fail "$(cat out.txt)"
ok "siblings of a kind are merged, level by level"
grep -q 'B    \.Cache  table {' raw.txt || fail "$(cat raw.txt)"
heap users --dominators --depth 1
grep -q 'city' out.txt && fail "$(cat out.txt)"
ok "--depth limits the tree"

# -- Coroutines ---------------------------------------------------------------------

cat > coroutines.lua << 'END'
Waiting, Fresh, Done, Failed = {}, {}, {}, {}
local function wait(id)
  local request = { id = id, body = ("b"):rep(100) .. id }
  coroutine.yield(request)
  return request
end
local function body(id) return (wait(id)) end
for i = 1, 307 do
  Waiting[i] = coroutine.create(body)
  coroutine.resume(Waiting[i], i)
end
for i = 1, 101 do Fresh[i] = coroutine.create(body) end
for i = 1, 53 do
  Done[i] = coroutine.create(function() end)
  coroutine.resume(Done[i])
end
for i = 1, 23 do
  Failed[i] = coroutine.create(function() error("no") end)
  coroutine.resume(Failed[i])
end
END
snapshot coroutines "dofile('coroutines.lua')"
heap coroutines --coroutines
grep -q ' 307 suspended _G.Waiting\[\*\]$' out.txt || fail "$(cat out.txt)"
grep -A 3 ' 307 suspended' out.txt | tail -3 > stack.txt
printf '%s\n' coroutine.yield 'function coroutines.lua:2 at line 4' \
  'function coroutines.lua:7 at line 7' > wanted.txt
same "the stack on which coroutines wait" "$(cat wanted.txt)" "$(cat stack.txt)"
grep -q ' 101 not begun _G.Fresh\[\*\]$' out.txt || fail "$(cat out.txt)"
grep -q ' 53 finished _G.Done\[\*\]$' out.txt || fail "$(cat out.txt)"
grep -q ' 23 failed _G.Failed\[\*\]$' out.txt || fail "$(cat out.txt)"
grep -q ' 1 main main thread$' out.txt || fail "$(cat out.txt)"
ok "coroutines have their status"
has "coroutines are counted" "485 coroutines on "

# -- Strings ------------------------------------------------------------------------

snapshot strings "
  Log, Big = {}, ('z'):rep(70001)
  for i = 1000, 1498 do Log[i - 999] = 'GET /item/' .. i .. ' took ' .. i .. ' ms' end
  Users, Alone = {}, { other = 'user-7' }
  for i = 1001, 1307 do Users[i] = 'user-' .. i end"
heap strings --strings
grep -q ' 499 .* "GET /item/# took # ms" _G.Log\[\*\]$' out.txt || fail "$(cat out.txt)"
ok "strings that differ in numbers are one row"
grep -q ' 308 .* "user-#" _G.Users\[\*\] (and in other ways)$' out.txt ||
  fail "$(cat out.txt)"
ok "strings that are not all held in one way"
grep -q ' 499 _G.Log\[\*\] string$' out.txt || fail "$(cat out.txt)"
ok "strings are told by who holds them"
grep -A 1 'largest strings' out.txt | grep -q '_G.Big string "zzz' || fail "$(cat out.txt)"
ok "the largest string comes first"

# -- Builtins, JSON, options --------------------------------------------------------

heap strings --path '^(ipairs|gmatch|math\.floor)'
grep -q '_G.ipairs ipairs$' out.txt || fail "$(cat out.txt)"
grep -q '_G.string.gmatch string.gmatch$' out.txt || fail "$(cat out.txt)"
"$ljprof" heap --top 1000 strings.ljp | grep 'builtin #' && fail "a builtin has no name"
ok "builtins have their names in Lua"
for view in '' --dominators --coroutines --strings '--path table' '--retained-by table'
do
  # shellcheck disable=SC2086 # Words of an option.
  "$ljprof" heap --json $view coroutines.ljp > view.json || fail "--json $view"
  grep -q '"complete":true' view.json || fail "$view: $(cat view.json)"
done
ok "each view is written as JSON"
heap strings --snapshot 1
refuses "a snapshot that is not there" 1 \
  "there is no snapshot 2: it holds 1, numbered from 1" \
  "$ljprof" heap --snapshot 2 strings.ljp
refuses "--snapshot" 2 "wants a number from 1 to 4294967295, not 'last'" \
  "$ljprof" heap --snapshot last strings.ljp
refuses "--depth" 2 "wants a number from 1 to 100, not '101'" \
  "$ljprof" heap --depth 101 strings.ljp
refuses "two views" 2 "and --strings are two views: choose one" \
  "$ljprof" heap --strings --path x strings.ljp
refuses "a wrong expression, before anything else" 2 "'(' is not a regular expression" \
  "$ljprof" heap nothing.ljp --path '('
refuses "a wrong expression" 2 "'(' is not a regular expression: Unmatched" \
  "$ljprof" heap --path '(' strings.ljp
