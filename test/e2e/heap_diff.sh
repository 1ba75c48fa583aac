#!/bin/sh
# ljprof heap --diff: what was born between two snapshots and lives, although
# addresses are used again; who holds it, and what grew.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof

# Of 2,003 old objects every second one goes, so that new ones take their places.
cat > program.lua << 'END'
local function snapshot(name)
  assert(misc.memprof.snapshot { path = name, gc = true, wait = true })
end
Old, Fresh, Names = {}, {}, {}
for i = 1, 2003 do Old[i] = { old = i } end
for i = 1, 307 do Names["before" .. i] = i end
snapshot("a.ljp")
for i = 1, 2003, 2 do Old[i] = nil end
collectgarbage()
for i = 1, 1709 do Fresh[i] = { fresh = i } end
for i = 1, 503 do Names["after" .. i] = i end
snapshot("b.ljp")
END
"$BUILD_DIR/bin/luajit" program.lua || fail "the program"
"$BUILD_DIR/bin/luajit" -e "assert(misc.memprof.snapshot{path = 'other.ljp', wait = true})" ||
  fail "the other program"
# diff OPTION...: into out.txt; spaces are made single.
diff_heaps() {
  "$ljprof" heap --diff "$@" > raw.txt || fail "heap --diff $*: $(cat raw.txt)"
  sed 's/  */ /g; s/^ //' raw.txt > out.txt
}
diff_heaps a.ljp b.ljp
[ "$(grep -c '^Before: \|^After: ' out.txt)" = 2 ] || fail "$(cat out.txt)"
grep -q ', taken 20[0-9-]* [0-9:]*$' out.txt || fail "$(cat out.txt)"
ok "both snapshots are named with their times"
same "new objects have their holder, wherever they are" " 1709 _G.Fresh table {1709 items}" \
  "$(sed -n 's/^[0-9.]* KiB\( .*items}\)$/\1/p' out.txt)"
grep -q 'B 503 _G.Names table {' out.txt || fail "$(cat out.txt)"
ok "new keys have their holder"
sed -n '/who holds/,/^$/p' out.txt | grep _G.Old && fail "$(cat out.txt)"
ok "what was there before is not new"
grep -q '^+[0-9.]* KiB +1709 _G.Fresh\[\*\]$' out.txt || fail "$(cat out.txt)"
grep -q '^+[0-9.]* KiB +1709 table {fresh}$' out.txt || fail "$(cat out.txt)"
grep 'table {old}' out.txt && fail "what shrank has not grown: $(cat out.txt)"
ok "growth is told by way and by kind"
born=$(sed -n 's/^Born in between and alive: \([0-9]*\) .*/\1/p' out.txt)
gone=$(sed -n 's/.*; gone: \([0-9]*\),.*/\1/p' out.txt)
# Tables and names; some of the program's own, such as the call's arguments.
if [ "$born" -lt 2212 ] || [ "$born" -ge 2240 ]; then fail "born: $born"; fi
if [ "$gone" -lt 1002 ] || [ "$gone" -ge 1030 ]; then fail "gone: $gone"; fi
ok "born: $born, gone: $gone"
"$ljprof" heap --diff --json a.ljp b.ljp > out.json || fail "--json"
grep -q "\"identity\":\"likely\",\"born_objects\":$born," out.json || fail "$(cat out.json)"
ok "JSON says the same"

diff_heaps a.ljp a.ljp
grep -q '^Born in between and alive: 0 objects' out.txt || fail "$(cat out.txt)"
[ "$(grep -c KiB out.txt)" = 2 ] || fail "$(cat out.txt)"
ok "a snapshot has not grown since itself"
diff_heaps b.ljp a.ljp
grep -q 'was taken after the second' out.txt || fail "$(cat out.txt)"
ok "the wrong order is said"
diff_heaps other.ljp b.ljp
grep -q '^The snapshots are of different processes ([0-9]* and [0-9]*)' out.txt ||
  fail "$(cat out.txt)"
# Some versions of LuaJIT keep the template of the constructor as such a table, too.
grep -q ' +17\(09\|10\) table {fresh}$' out.txt || fail "$(cat out.txt)"
grep -q 'who holds' out.txt && fail "$(cat out.txt)"
ok "of different processes, only sums are compared"

refuses "one snapshot" 1 "no snapshot of this VM comes before snapshot 1" \
  "$ljprof" heap --diff a.ljp
refuses "three files" 2 "unexpected argument 'c.ljp': --diff takes two files" \
  "$ljprof" heap --diff a.ljp b.ljp c.ljp
refuses "two files without --diff" 2 "this command takes one file; --diff takes two" \
  "$ljprof" heap a.ljp b.ljp
refuses "two snapshots of two files" 2 "two snapshots are for --diff with one file" \
  "$ljprof" heap --diff --snapshot 1,2 a.ljp b.ljp
refuses "a second snapshot that is not there" 1 "there is no snapshot 2: it holds 1" \
  "$ljprof" heap --diff --snapshot 1,2 a.ljp
"$BUILD_DIR/bin/luajit" -e "T = {} for i = 1, 40000 do T[i] = {} end
  assert(misc.memprof.snapshot{path = 'cut.ljp', wait = true})" || fail "cut.ljp"
truncate -s -2000 cut.ljp
"$ljprof" heap --diff a.ljp cut.ljp > out.txt && fail "damage is no success"
grep -q '^After: .*THIS SNAPSHOT IS DAMAGED$' out.txt || fail "$(cat out.txt)"
ok "damage is said"
