#!/bin/sh
# Objects that several others hold: no holder retains them, yet the overview and the
# comparison name the holders. What the FFI holds has its names.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof

snapshot() { # NAME CODE
  "$BUILD_DIR/bin/luajit" -e "
    local function snapshot(name)
      assert(misc.memprof.snapshot{path = name, gc = true, wait = true})
    end
    $2
    snapshot('$1.ljp')" || fail "$1: the program"
  "$ljprof" heap "$1.ljp" > "$1.txt" || fail "$1: $(cat "$1.txt")"
}

# The objects are in two tables, names besides (strings that others hold, too).
fill='for i = #Queue + 1, #Queue + 1009 do
  local session = { name = "session" .. i, words = { "word" .. i } }
  Sessions[session.name] = session
  Queue[i] = session
end'
snapshot two "
  Sessions, package.loaded.queue = {}, { waiting = {} }
  Queue = package.loaded.queue.waiting
  debug.getregistry().waiting = Queue
  $fill
  snapshot('before.ljp')
  $fill
  Queue = nil"
sed -n 5p two.txt > row.txt
grep -q 'iB  _G.Sessions  table {.*}, not alone: also registry.waiting$' row.txt ||
  fail "$(cat two.txt)"
ok "what two tables hold has both of them: $(sed 's/  */ /g' row.txt)"
[ "$(grep -c 'not alone' two.txt)" = 1 ] || fail "$(cat two.txt)"
"$ljprof" heap --diff before.ljp two.ljp > diff.txt || fail "$(cat diff.txt)"
sed -n 7p diff.txt > row.txt
# A session, its list of words, its name and its word.
grep -q 'iB *4036  _G.Sessions  table {.*}, not alone: also registry.waiting$' \
  row.txt || fail "$(cat diff.txt)"
ok "so has what was born: $(sed 's/  */ /g' row.txt)"
"$ljprof" heap --json two.ljp > two.json || fail "JSON"
python3 - two.json << 'END' || fail "$(cat two.json)"
import json, sys
row = json.load(open(sys.argv[1]))["retainers"][0]
assert row["path"] == "_G.Sessions" and row["alone"] is False, row
assert row["also"] == "registry.waiting", row
assert row["held"] > 1009 * 2 * 80 and row["retained"] < row["held"] / 2, row
END
ok "JSON has both sums, and the other holder"

# A table of nodes that are a list besides, in one object: the object has all.
snapshot lru "
  coroutine.wrap(function() -- So that no slot of the stack holds a node.
    local Lru = { nodes = {} }
    package.loaded.lru = function() return Lru end
    for i = 1, 1009 do
      local node = { key = 'k' .. i, newer = Lru.newest }
      Lru.newest = node
      Lru.nodes[node.key] = node
    end
  end)()"
grep -q 'package.loaded.lru upvalue Lru of function .*:[0-9]*  table {' lru.txt ||
  fail "$(cat lru.txt)"
grep 'not alone' lru.txt && fail "its parts are no further holders"
ok "parts of one object are not told again"

# A root that has both holders tells less than they do.
snapshot roots "
  First, Second = {}, {}
  for i = 1, 1009 do First[i] = { i } Second['k' .. i] = First[i] end"
grep -q 'iB  _G.\(First  .*: also _G.Second\|Second  .*: also _G.First\)$' roots.txt ||
  fail "$(cat roots.txt)"
ok "two global tables that hold the same are named"

# Weak tables hold nothing.
snapshot weak "
  Strong, Weak = {}, setmetatable({}, { __mode = 'v' })
  for i = 1, 1009 do Strong[i] = { i } Weak[i] = Strong[i] end"
grep -q 'iB  _G.Strong  table {1009 items}$' weak.txt || fail "$(cat weak.txt)"
ok "a weak table is no other holder"

snapshot ffi "
  local ffi = require('ffi')
  ffi.cdef 'typedef struct { int x; } point_t;'
  local seen = {}
  ffi.metatype('point_t', { __index = function(_, k) seen[k] = { k } return seen[k] end })
  local point = ffi.new('point_t')
  for i = 1, 1009 do local _ = point['key' .. i] end
  for i = 1, 307 do
    local view = { ('text' .. i):rep(100) }
    ffi.cast('void (*)(int)', function() return view end)
  end"
grep -q 'iB  FFI callbacks  table {308 items}$' ffi.txt || fail "$(cat ffi.txt)"
ok "callbacks have their name"
grep -q 'iB  FFI metatype point_t.__index upvalue seen of function' ffi.txt ||
  fail "$(cat ffi.txt)"
"$ljprof" heap --path '^key7$' ffi.ljp > path.txt || fail "--path"
grep -q 'FFI metatype point_t.__index upvalue seen .* <key>' path.txt ||
  fail "$(cat path.txt)"
ok "so has the metatable of a C type"
