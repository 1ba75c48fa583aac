#!/bin/sh
# ljprof export --to heapsnapshot: the file is well-formed and has all objects,
# bytes and references of the snapshot, with the retained sizes and paths of
# `ljprof heap`. Other tools read it in test/browser/heapsnapshot.test.mjs.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
command -v python3 > /dev/null || {
  echo "skipped: there is no python3"
  exit 0
}

# agrees NAME: the export of NAME.ljp has what other views show.
agrees() {
  "$ljprof" export --to heapsnapshot -o "$1.heapsnapshot" "$1.ljp" ||
    fail "$1: export"
  "$ljprof" dump --json "$1.ljp" > "$1.dump" || fail "$1: dump"
  "$ljprof" heap --json --top 50 "$1.ljp" > "$1.json" || fail "$1: heap"
  python3 "$SOURCE_DIR/test/e2e/heap_export.py" "$1.heapsnapshot" "$1.dump" \
    "$1.json" > said.txt 2>&1 || fail "$1: $(head -c 2000 said.txt)"
  ok "$1: $(cat said.txt)"
}

cat > all.lua << 'END'
-- Garbage that refers to what is alive, weak tables, keys of all types, buffers,
-- negative and large numbers as keys, strings that are cut, a running coroutine.
local ffi = require("ffi")
keep = { [-5] = {}, [1e6] = {}, [0.5] = {}, [true] = {}, [{}] = {} }
keep[("long "):rep(100)] = {}
keep["a \"quoted\"\n\t\\ key"] = {}
keep["\xff\xfe not UTF-8"] = { "\0zero" }
keep.weak_values = setmetatable({ {}, x = {}, keep }, { __mode = "v" })
keep.weak_keys = setmetatable({ [{}] = {}, [keep] = 1 }, { __mode = "k" })
keep.buffer = require("string.buffer").new(5000):put(("x"):rep(3000))
keep.cdata = ffi.new("int[200]")
keep.object = setmetatable({}, { __name = "Account" })
keep.thread = coroutine.create(function(a)
  local held = { a, "held by a coroutine" }
  coroutine.yield(held)
  return held
end)
coroutine.resume(keep.thread, {})
keep.callback = ffi.cast("void (*)(int)", function() return keep end)
collectgarbage("stop")
for _ = 1, 1000 do local _ = { keep, { keep } } end
local strings = tonumber(arg[1])
assert(misc.memprof.snapshot{ path = arg[2], wait = true, strings = strings })
END
"$BUILD_DIR/bin/luajit" all.lua 64 all.ljp || fail "the program"
agrees all
grep -q '1e6\|\[1000000\]\|"1000000"\|,1000000,' all.heapsnapshot || fail "key"
"$BUILD_DIR/bin/luajit" all.lua 0 secret.ljp || fail "the program"
"$ljprof" export --to heapsnapshot -o secret.heapsnapshot secret.ljp
grep -q 'held by\|quoted' secret.heapsnapshot && fail "contents were not wanted"
grep -q '"(string of 500 bytes)"' secret.heapsnapshot || fail "their lengths"
ok "without contents, strings have their lengths"
grep -q '"long long .*\.\.\. (500 bytes)"' all.heapsnapshot || fail "cut string"
ok "a string that is cut says so"

for name in cache coroutines userdata timers; do
  "$BUILD_DIR/bin/luajit" -e "dofile('$SOURCE_DIR/test/leaks/$name.lua')
    assert(misc.memprof.snapshot{path = '$name.ljp', gc = true, wait = true})" ||
    fail "$name: the program"
  agrees $name
done

# The next snapshot of a process has the same ids for the same objects.
"$BUILD_DIR/bin/luajit" -e 'keep = {{}, {}, "x", function() end}
  assert(misc.memprof.snapshot{path = "one.ljp", gc = true, wait = true})
  more = {{}}
  assert(misc.memprof.snapshot{path = "two.ljp", gc = true, wait = true})' ||
  fail "two snapshots"
for name in one two; do
  "$ljprof" export --to heapsnapshot -o $name.heapsnapshot $name.ljp
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(*sorted(d["nodes"][2::7]), sep="\n")' $name.heapsnapshot > $name.ids
done
sort one.ids > one.sorted
sort two.ids > two.sorted
gone=$(comm -23 one.sorted two.sorted | wc -l)
new=$(comm -13 one.sorted two.sorted | wc -l)
if [ "$gone" -gt 5 ] || [ "$new" -lt 2 ] || [ "$new" -gt 40 ]; then
  fail "ids: $gone are gone, $new are new"
fi
ok "ids stay the same ($new new ones)"

# In a session's file, ids are in the order of allocation, and the same in all of
# its snapshots; objects have the stacks that allocated them.
cat > session.lua << 'END'
misc.memprof.start{ path = "session.ljp", every = true }
local function make() return { made = true } end
keep = {}
for i = 1, 503 do keep[i] = make() end
assert(misc.memprof.snapshot{ wait = true, gc = true })
for i = 504, 701 do keep[i] = make() end
assert(misc.memprof.snapshot{ wait = true, gc = true })
assert(misc.memprof.stop())
END
"$BUILD_DIR/bin/luajit" session.lua || fail "session.lua"
for n in 1 2; do
  "$ljprof" export --to heapsnapshot --snapshot $n -o session$n.heapsnapshot \
    session.ljp 2> err.txt || fail "session: $(cat err.txt)"
  grep -q 'objects have an allocation in the session; the others were' err.txt ||
    fail "no note: $(cat err.txt)"
done
"$ljprof" dump --json session.ljp > session.dump
"$ljprof" heap --json --top 50 session.ljp > session.json
python3 "$SOURCE_DIR/test/e2e/heap_export.py" session2.heapsnapshot \
  session.dump session.json > said.txt 2>&1 || fail "$(head -c 2000 said.txt)"
ok "session: $(cat said.txt)"
python3 - << 'END' || fail "stacks and ids of a session"
import json
made = []
for n in '12':
    d = json.load(open(f'session{n}.heapsnapshot'))
    names, nodes, infos = d['strings'], d['nodes'], d['trace_function_infos']
    function = {}
    todo = [d['trace_tree']]
    while todo:
        tree = todo.pop()
        for i in range(0, len(tree), 5):
            function[tree[i]] = names[infos[6 * tree[i + 1] + 1]]
            todo.append(tree[i + 4])
    made.append({nodes[i + 2]: function[nodes[i + 5]]
                 for i in range(0, len(nodes), 7)
                 if nodes[i + 5] and names[nodes[i + 1]] == 'table {made}'})
assert [len(m) for m in made] == [503, 701], [len(m) for m in made]
assert set(made[0]) < set(made[1])
assert min(set(made[1]) - set(made[0])) > max(made[0])
assert set(made[1].values()) == {'make'}, set(made[1].values())
END
ok "objects have their stacks, and ids in the order of allocation"

# What is wrong is said.
cp cache.ljp cut.ljp
truncate -s -2000 cut.ljp
"$ljprof" export --to heapsnapshot -o cut.heapsnapshot cut.ljp 2> err.txt ||
  fail "a damaged snapshot"
grep -q 'note: the snapshot is damaged: its end is missing' err.txt ||
  fail "$(cat err.txt)"
python3 -m json.tool cut.heapsnapshot > /dev/null || fail "cut: no JSON"
ok "a damaged snapshot is exported with a note"
"$BUILD_DIR/bin/luajit" -e 'misc.memprof.start{path = "memory.ljp"}
  misc.memprof.stop()'
refuses "a file without a snapshot" 1 "it holds no heap snapshot" \
  "$ljprof" export --to heapsnapshot -o x.heapsnapshot memory.ljp
refuses "--value" 2 "a heap snapshot has no stacks" \
  "$ljprof" export --to heapsnapshot --value cpu -o x.heapsnapshot all.ljp
refuses "--snapshot" 2 "snapshot is for --to heapsnapshot" \
  "$ljprof" export --to pprof --snapshot 1 -o x.heapsnapshot all.ljp
refuses "a snapshot that is not there" 1 "all.ljp: " \
  "$ljprof" export --to heapsnapshot --snapshot 7 -o x.heapsnapshot all.ljp
refuses "a pipe" 1 "is not a regular file, but must be read twice" \
  sh -c "cat all.ljp | '$ljprof' export --to heapsnapshot -o x -"
[ ! -e x.heapsnapshot ] || fail "a refused export leaves a file"

# The check finds what is wrong.
for change in 's/^9,0,1,0,/9,0,1,8,/' 's/^6,\([0-9]*,[0-9]*\)/3,\1/'; do
  sed "$change" all.heapsnapshot > broken.heapsnapshot
  cmp -s all.heapsnapshot broken.heapsnapshot && fail "nothing is broken"
  if python3 "$SOURCE_DIR/test/e2e/heap_export.py" broken.heapsnapshot \
    all.dump all.json > said.txt 2>&1; then
    fail "$change is not found"
  fi
done
ok "the check finds other sizes and strengths"
