#!/bin/sh
# Snapshots in the file of a memory session: ljprof heap knows which lines allocated
# what is alive, and what was born between two snapshots.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof

cat > program.lua << 'END'
local every = arg[1] == "every"
Before = {}
for i = 1, 101 do Before[i] = { before = i } end
assert(misc.memprof.start(every and { path = "every.ljp", every = true }
  or { path = "sampled.ljp", sample = 512 }))
Cache, Log = {}, {}
local function remember(i)
  Cache[i] = { id = i }
end
local function note(i)
  Log[i] = string.format("entry %d", i)
end
for i = 1, 2003 do remember(i) end
for i = 1, 307 do note(i) end
assert(misc.memprof.snapshot { gc = true, wait = true })
for i = 1, 2003, 2 do Cache[i] = nil end
collectgarbage()
for i = 2004, 2710 do remember(i) end
assert(misc.memprof.snapshot { gc = true, wait = true })
misc.memprof.stop()
END
for mode in every sampled; do
  "$BUILD_DIR/bin/luajit" -joff program.lua $mode || fail "the program: $mode"
done
# heap OPTION... FILE: into out.txt; spaces are made single.
heap() {
  "$ljprof" heap "$@" > raw.txt || fail "heap $*: $(cat raw.txt)"
  sed 's/  */ /g; s/^ //' raw.txt > out.txt
}

heap --sites --snapshot 1 every.ljp
grep -q ' 200[345] remember program.lua:8$' out.txt || fail "$(cat out.txt)"
# Strings, and the VM's buffer and index of strings if they grew there.
grep -q ' 3\(0[789]\|10\) note program.lua:11$' out.txt || fail "$(cat out.txt)"
ok "lines have the objects that they allocated, and builtins those for them"
grep -q 'program.lua:3$' out.txt && fail "$(cat out.txt)"
grep -q ' objects, .* have no site: they are parts of the VM, or older' out.txt ||
  fail "$(cat out.txt)"
ok "what is older than the session has no site"
heap --sites every.ljp
# 1,001 of the first are left.
grep -q ' 17\(0[89]\|10\) remember program.lua:8$' out.txt || fail "$(cat out.txt)"
ok "the last snapshot is shown if none is chosen"
heap --path 'program.lua:8$' every.ljp
grep -q ' 1708 _G.Cache\[\*\] table {id}$' out.txt || fail "$(cat out.txt)"
ok "objects are found by the line that allocated them"

address=$("$ljprof" heap --json --path '^table \{id\}$' every.ljp |
  sed -n 's/.*"paths":\[{"address":"\(0x[0-9a-f]*\)".*/\1/p')
heap --path "$address" every.ljp
sed -n '/allocated by$/,$p' out.txt > birth.txt
grep -q '^[0-9.]* s [1-9][0-9]*$' birth.txt || fail "$(cat out.txt)"
same "its stack" "remember program.lua:8,main chunk program.lua:18," \
  "$(sed 1,2d birth.txt | sed 's/:13$/:18/' | tr '\n' ',')"
"$ljprof" heap --json --path "$address" every.ljp > out.json
grep -q '"births":\[{"event":[0-9]*,"sampled":false,"age_ns":[0-9]*,"survived":[1-9]' \
  out.json || fail "$(cat out.json)"
ok "one object has the stack that allocated it, and an age"

heap --diff every.ljp
grep -q ' (exact, by the session' out.txt || fail "$(cat out.txt)"
grep -q 'B 70[789] remember program.lua:8$' out.txt || fail "$(cat out.txt)"
grep -q 'B 70[789] _G.Cache table {' out.txt || fail "$(cat out.txt)"
ok "what was born between two snapshots of a session is exact"
born=$(sed -n 's/^Born in between and alive: \([0-9]*\) .*/\1/p' out.txt)
if [ "$born" -lt 707 ] || [ "$born" -ge 730 ]; then fail "born: $born"; fi
ok "born: $born"
heap --diff --snapshot 2,1 every.ljp
grep -q 'was taken after the second' out.txt || fail "$(cat out.txt)"
ok "two snapshots of a file are chosen"

heap --sites --snapshot 1 sampled.ljp
grep -q '^The session sampled: ' out.txt || fail "$(cat out.txt)"
# 2,003 tables of 48 bytes with a hash part of 24; a sample each 512 bytes.
objects=$(sed -n 's/^.*iB \([0-9]*\) [0-9]* remember program.lua:8$/\1/p' out.txt)
if [ "${objects:-0}" -lt 1000 ] || [ "$objects" -gt 4000 ]; then
  fail "$objects: $(cat out.txt)"
fi
ok "sampled: 2003 objects are estimated as $objects"
heap --diff sampled.ljp
grep -q '(likely, by address' out.txt || fail "$(cat out.txt)"
ok "samples make no identity"
"$BUILD_DIR/bin/luajit" -e "assert(misc.memprof.snapshot{path = 'alone.ljp', wait = true})"

# Garbage has sites, too.
cat > garbage.lua << 'END'
misc.memprof.start { path = "garbage.ljp", every = true }
collectgarbage("stop")
for _ = 1, 101 do local _ = { gone = {} } end
assert(misc.memprof.snapshot { wait = true })
misc.memprof.stop()
END
"$BUILD_DIR/bin/luajit" -joff garbage.lua || fail "garbage.lua"
for view in '--path gone' --sites ''; do
  # shellcheck disable=SC2086 # Words of an option.
  "$ljprof" heap --json --top 1000 $view garbage.ljp | tr '{' '\n' |
    sed -n 's/.*"retained":\([0-9]*\),"own":\([0-9]*\),.*/\1 \2/p' > sums.txt
  awk '$1 < $2 { bad = 1; print } END { exit bad || !NR }' sums.txt > less.txt ||
    fail "garbage, '$view': retained is less than own: $(cat less.txt)"
  ok "garbage retains itself: '$view'"
done
refuses "sites without a session" 1 "the lines that allocated are not known" \
  "$ljprof" heap --sites alone.ljp
