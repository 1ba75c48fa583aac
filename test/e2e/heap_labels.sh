#!/bin/sh
# ljprof heap by labels: which objects were allocated with which, who holds them, and
# which stacks of an export they are in.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof

cat > program.lua << 'END'
jit.off()
local every = arg[1] == "every"
local with = misc.profile.with
local function order(i) Orders[i] = { order = i } end
local function user(i) Users[i] = { user = "user-" .. i } end
local function plain(i) Plain[i] = { plain = i } end
local function wait() coroutine.yield() end
local function start()
  local co = coroutine.create(wait)
  coroutine.resume(co)
  Waiting[#Waiting + 1] = co
end
local function times(n, f) for i = 1, n do f(i) end end
Orders, Users, Waiting, Plain, Before = {}, {}, {}, {}, {}
with({ tenant = "a" }, function() for i = 1, 11 do Before[i] = { before = i } end end)
assert(misc.memprof.start { path = arg[1] .. ".ljp", every = every or nil,
  sample = not every and 256 or nil })
with({ route = "/orders", tenant = "a" }, times, 2003, order)
with({ route = "/users", tenant = "a" }, times, 307, user)
assert(misc.memprof.snapshot { gc = true, wait = true })
with({ route = "/wait", tenant = "b" }, times, 101, start)
times(53, plain)
assert(misc.memprof.snapshot { gc = true, wait = true })
misc.memprof.stop()
END
for mode in every sampled; do
  "$lua" program.lua $mode || fail "the program: $mode"
done
# heap OPTION... FILE: into out.txt; spaces are made single.
heap() {
  "$ljprof" heap "$@" > raw.txt || fail "heap $*: $(cat raw.txt)"
  sed 's/  */ /g; s/^ //' raw.txt > out.txt
}
has() { # WHAT EXPRESSION
  grep -qE "$2" out.txt || fail "$1: no line '$2' in: $(cat out.txt)"
  ok "$1"
}

heap --by label:route every.ljp
has "the values of a label are heads" '^retained own objects label:route$'
has "objects by the value of a label" '^.* 200[3-5] /orders$'
has "tables, strings" '^.* 61[4-7] /users$'
# Each coroutine has a function of its own, which no other object needs.
has "coroutines" '^.* 10[1-5] /wait$'
has "what has no such label" '^.* [1-9][0-9]* \(none\)$'
cp out.txt by.txt
heap --sites --by label:route every.ljp
same "--by alone is --sites by a label" "$(cat by.txt)" "$(cat out.txt)"
# The values add up to the lines.
sums() {
  "$ljprof" heap --json "$@" every.ljp | tr '{' '\n' |
    sed -n 's/^"retained":[0-9]*,"own":\([0-9]*\),"objects":\([0-9]*\),"\(site\|value\)".*/\1 \2/p' |
    awk '{ own += $1; n += $2 } END { print own + 0, n + 0 }'
}
same "values add up to the lines" "$(sums --sites --top 1000)" \
  "$(sums --by label:tenant --top 1000)"
heap --by label:tenant --label route=/users every.ljp
has "both options" '^.* 61[4-7] a$'
grep -q ' b$\|(none)$' out.txt && fail "$(cat out.txt)"
has "what has other labels is told" ' older than the session, or have other labels$'

heap --path '^table \{' --label tenant=a every.ljp
has "tables of one label" '^.* 2003 _G.Orders\[\*\] table \{order\}$'
has "and of its other values" '^.* 307 _G.Users\[\*\] table \{user\}$'
grep -q 'plain\|before' out.txt && fail "$(cat out.txt)"
has "how many have the label is told" \
  '^Only 26[0-9][0-9] of them are shown, .*: those that were allocated with the labels$'
heap --path '^table \{' --label tenant=a --label route=/users every.ljp
grep -q order out.txt && fail "$(cat out.txt)"
has "two labels" '^307 objects match'
heap --path '^table \{(plain|before|user)}' --label tenant= every.ljp
has "without a key: only objects whose labels are known" '^53 objects match'
heap --path '^table \{user}' --label tenant=b every.ljp
has "nothing may have both" '^0 objects match'
heap --retained-by '^table \{user}' --label tenant=a every.ljp
has "what would go with them" '^If nothing held them, 614 objects would go: '
heap --coroutines --label tenant=b every.ljp
has "coroutines of a label" '^101 coroutines on 1 different stacks; '
heap --strings --label route=/users every.ljp
has "strings of a label" ' 307 .* "user-#" _G\.Users\[\*\]\.user$'
same "and no others" 1 "$(sed -n '/what they look like/,/^$/p' out.txt | grep -c ' "')"
"$ljprof" heap --json --by label:route --label tenant=b every.ljp > out.json
grep -q '"labelled_objects":10[1-5],"labelled_bytes":[0-9]*,.*"labels":\[{"retained":[0-9]*,"own":[0-9]*,"objects":10[1-5],"value":"/wait"}\]' \
  out.json || fail "$(cat out.json)"
ok "as JSON"

address=$("$ljprof" heap --json --path '^table \{user}' every.ljp |
  sed -n 's/.*"paths":\[{"address":"\(0x[0-9a-f]*\)".*/\1/p')
heap --path "$address" every.ljp
same "one object has its labels" "label route=/users,label tenant=a," \
  "$(grep '^label ' out.txt | tr '\n' ',')"
"$ljprof" heap --json --path "$address" every.ljp > out.json
grep -q '"labels":\["route=/users","tenant=a"\]' out.json || fail "$(cat out.json)"
ok "as JSON, too"

heap --diff --by label:tenant every.ljp
has "what was born, by label" '^.*B 10[1-5] b$'
grep -q 'B [0-9]* a$' out.txt && fail "$(cat out.txt)"
heap --by label:route sampled.ljp
objects=$(sed -n 's/^.*iB \([0-9]*\) [0-9]* \/orders$/\1/p' out.txt)
if [ "${objects:-0}" -lt 1000 ] || [ "$objects" -gt 4000 ]; then
  fail "$objects: $(cat out.txt)"
fi
ok "sampled: 2003 objects are estimated as $objects"
heap --path '^table \{' --label tenant=a sampled.ljp
has "sampled objects only, which is said" '^Only .*: those that were sampled and '

# -- Stacks of an export -------------------------------------------------------------

"$ljprof" export --to heapsnapshot --by label:route -o x.heapsnapshot every.ljp ||
  fail "export"
python3 - << 'END' > said.txt 2>&1 || fail "export: $(cat said.txt)"
import json
d = json.load(open('x.heapsnapshot'))
names, nodes, infos = d['strings'], d['nodes'], d['trace_function_infos']
outermost, todo = {0: None}, [(d['trace_tree'], 0, None)]
while todo:
    tree, depth, label = todo.pop()
    for i in range(0, len(tree), 5):
        mine = names[infos[tree[i + 1] * 6 + 1]] if depth == 1 else label
        outermost[tree[i]] = mine
        todo.append((tree[i + 4], depth + 1, mine))
seen = {}
for i in range(0, len(nodes), 7):
    key = names[nodes[i + 1]], outermost[nodes[i + 5]]
    seen[key] = seen.get(key, 0) + 1
for key, n in ((('table {order}', 'route=/orders'), 2003),
               (('table {user}', 'route=/users'), 307),
               (('table {plain}', 'route=(none)'), 53)):
    if seen.get(key) != n:
        raise SystemExit('%s: %s of %d in %s' % (key, seen.get(key), n, seen))
END
ok "labels are the outermost frames of an export's stacks"

# -- Errors --------------------------------------------------------------------------

refuses "a key that the file does not have" 1 \
  "there is no label 'shop'; those of the file are 'route', 'tenant'" \
  "$ljprof" heap --by label:shop every.ljp
refuses "a value" 1 "the label 'tenant' never has the value 'c'; its values are" \
  "$ljprof" heap --sites --label tenant=c every.ljp
refuses "a key, in an export" 1 "there is no label 'shop'" \
  "$ljprof" export --to heapsnapshot --by label:shop -o y.heapsnapshot every.ljp
[ ! -e y.heapsnapshot ] || fail "a file is left"
refuses "a part of an export" 2 "heap snapshots are exported whole" \
  "$ljprof" export --to heapsnapshot --by label:route --label tenant=a -o y every.ljp
refuses "no KEY=VALUE" 2 "--label: 'tenant' is not KEY=VALUE" \
  "$ljprof" heap --sites --label tenant every.ljp
refuses "no label:KEY" 2 "--by: 'tenant' is not label:KEY" \
  "$ljprof" heap --by tenant every.ljp
for view in '' --dominators --diff; do
  # shellcheck disable=SC2086 # No option is no word.
  refuses "--label with '$view'" 2 "--label is for --path, --retained-by," \
    "$ljprof" heap $view --label tenant=a every.ljp
done
refuses "--by with another view" 2 "--by is for --sites and --diff" \
  "$ljprof" heap --strings --by label:tenant every.ljp
refuses "--by with two files" 2 "--by is for two snapshots in the file of one" \
  "$ljprof" heap --diff --by label:tenant every.ljp every.ljp
refuses "of a running program" 2 "no FILE, --diff, --sites, --label, --by or" \
  "$ljprof" heap -p 1 --by label:tenant
"$lua" -e "assert(misc.memprof.snapshot{path = 'alone.ljp', wait = true})"
refuses "without a session" 1 "the labels of allocations are not known" \
  "$ljprof" heap --path . --label tenant=a alone.ljp
