#!/bin/sh
# Scripts, files and commands of users of Tarantool's profilers: our exports in
# their formats, the Lua modules, and luajit -tm and -ts. A decoder that shares
# no code with either judges the files.
. "$(dirname "$0")/lib.sh"
luajit=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof
here=$SOURCE_DIR/test/e2e
LUA_CPATH="$BUILD_DIR/lib/test/?.so"
export LUA_CPATH

decode() {
  "$luajit" "$here/tarantool_decode.lua" "$@"
}

# -- The scenario, with the compiler off and on --------------------------------

for jit in off on; do
  "$luajit" -j$jit "$here/tarantool_scenario.lua" > out.txt 2> err.txt ||
    fail "scenario, JIT $jit: $(cat err.txt)"
  grep -q '^ok$' out.txt || fail "scenario, JIT $jit: $(cat out.txt)"
  ok "scenario, JIT $jit"
done

# -- Memory --------------------------------------------------------------------

cat > memory.lua << 'END'
local start, path = ...
jit.opt.start("hotloop=5")
local kept = {}
assert(misc.memprof.start(start == "every" and path or
  {path = path, sample = tonumber(start)}))
for i = 1, 100 do kept[i] = {i} end
local text = string.rep("x", 100000)
text = nil
collectgarbage()
assert(misc.memprof.stop())
END
"$luajit" memory.lua every every.ljp
"$ljprof" export --to ljm -o every.ljm every.ljp 2> notes.txt ||
  fail "export: $(cat notes.txt)"
grep -q 'note: left out: stacks' notes.txt || fail "notes: $(cat notes.txt)"
decode every.ljm > sums.txt 2>&1 || fail "ljm: $(cat sums.txt)"

# Events and bytes as ljprof itself counts them.
"$ljprof" dump every.ljp | awk '
  /^  mem / {
    op = $0; sub(/.*operation="/, "", op); sub(/".*/, "", op)
    size = $0; sub(/.* size=/, "", size)
    old = 0
    if (op == "realloc") { old = $0; sub(/.* old_size=/, "", old) }
    n[op]++; bytes[op] += size - old
  }
  END { for (op in n) print op, n[op], bytes[op] }' | sort > wanted.txt
awk -F '\t' '{ split($1, key, " "); n[key[1]] += $2; bytes[key[1]] += $3 }
  END { for (op in n) print op, n[op], bytes[op] }' sums.txt | sort > got.txt
same "events and bytes of ljm" "$(cat wanted.txt)" "$(cat got.txt)"
grep -q 'alloc TRACE 1 @memory.lua:6' sums.txt || fail "no trace: $(cat sums.txt)"

# The commands: they read our file as well as the exported one.
"$luajit" -tm every.ljp > ours.txt || fail "-tm of our file"
"$luajit" -tm every.ljm > theirs.txt || fail "-tm of ljm"
cmp -s ours.txt theirs.txt || fail "-tm differs: $(diff ours.txt theirs.txt)"
for part in ALLOCATIONS REALLOCATIONS DEALLOCATIONS 'HEAP SUMMARY:'; do
  grep -qx "$part" ours.txt || fail "-tm has no $part: $(cat ours.txt)"
done
tab=$(printf '\t')
line=$(awk -F '\t' '$1 == "alloc @memory.lua:7" { print $2 " events\t+" $3 "B" }' \
  sums.txt)
grep -qF "@memory.lua:7: $line$tab-0B" ours.txt ||
  fail "-tm of the large string: wanted $line in $(cat ours.txt)"
"$luajit" -joff -tm --leak-only --human-readable every.ljp > leaks.txt
same "first line of the leaks" "HEAP SUMMARY:" "$(head -n 1 leaks.txt)"
grep -qE 'memory.lua:6 holds [0-9.]+(KiB|B): [0-9]+ allocs, 0 frees' leaks.txt ||
  fail "leaks: $(cat leaks.txt)"
! grep -q ':7 holds' leaks.txt || fail "what is freed, leaks: $(cat leaks.txt)"

# Chunks whose names are empty, or nothing but a mark, keep their names.
cat > nameless.lua << 'END'
local chunks = {}
for i, name in ipairs{"", "@", "="} do
  chunks[i] = assert(loadstring("\n\n\nreturn {}", name))
end
assert(misc.memprof.start("nameless.ljp"))
local kept = {chunks[1](), chunks[2](), chunks[3]()}
assert(misc.memprof.stop())
END
"$luajit" -joff nameless.lua
"$ljprof" export --to ljm -o nameless.ljm nameless.ljp 2> /dev/null ||
  fail "export of chunks without a name"
for file in nameless.ljp nameless.ljm; do
  "$ljprof" report --by line "$file" > lines.txt || fail "report of $file"
  for name in '[string ""]:4' '@:4' '=:4'; do
    grep -qF " $name" lines.txt || fail "$file: no $name: $(cat lines.txt)"
  done
done
ok "chunks without a name"

refuses "ljm of ljm" 1 "by Tarantool's memprof, so it is in this format" \
  "$ljprof" export --to ljm -o x every.ljm

"$luajit" memory.lua 512 sampled.ljp
"$ljprof" export --to ljm -o sampled.ljm sampled.ljp 2> notes.txt
grep -q 'sampled: bytes are estimates' notes.txt ||
  fail "an estimate is not said to be one: $(cat notes.txt)"
decode sampled.ljm > sums.txt 2>&1 || fail "sampled ljm: $(cat sums.txt)"

# Two traces with one number, which Tarantool's tools would take for one; and one
# trace that is compiled twice.
cat > flush.lua << 'END'
jit.opt.start("hotloop=5")
local kept = {}
assert(misc.memprof.start("flush.ljp"))
for round = 1, 3 do
  jit.flush()
  if round < 3 then
    for i = 1, 100 do kept[i] = {i} end
  else
    for i = 1, 100 do kept[i] = {i} end
  end
end
assert(misc.memprof.stop())
END
"$luajit" flush.lua
"$ljprof" export --to ljm -o flush.ljm flush.ljp 2> notes.txt
grep -q 'start elsewhere: 1 have numbers above 65535' notes.txt ||
  fail "nothing said of the number: $(cat notes.txt)"
decode flush.ljm > sums.txt 2>&1 || fail "two traces: $(cat sums.txt)"
same "traces" "TRACE 1 @flush.lua:7,TRACE 65537 @flush.lua:9" "$(awk -F '\t' \
  '$1 ~ /^alloc TRACE/ { print substr($1, 7) }' sums.txt | paste -sd, -)"

# From a pipe, and what does not fit.
"$ljprof" export --to ljm -o - - < every.ljp 2> /dev/null | cmp - every.ljm ||
  fail "a pipe gives another file"
refuses "ljp of memory" 1 "has no samples: use --to ljm" \
  "$ljprof" export --to ljp -o x every.ljp
refuses "value of ljm" 2 "ljm holds events" \
  "$ljprof" export --to ljm --value cpu -o x every.ljp

# -- Samples -------------------------------------------------------------------

cat > samples.lua << 'END'
local path = ...
local function inner(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function outer(n) return (inner(n)) end
repeat
  assert(misc.sysprof.start{mode = "C", interval = 1, path = path})
  for _ = 1, 100 do
    outer(1e5)
    local _ = string.rep("x", 1e6)
  end
  assert(misc.sysprof.stop())
until misc.sysprof.report().samples > 20
print(misc.sysprof.report().samples)
END
for jit in off on; do
  wanted=$("$luajit" -j$jit samples.lua $jit.ljp)
  "$ljprof" export --to ljp -o $jit.bin $jit.ljp 2> notes.txt ||
    fail "export: $(cat notes.txt)"
  decode $jit.bin > sums.txt 2>&1 || fail "ljp: $(cat sums.txt)"
  same "samples of ljp, JIT $jit" "$wanted" \
    "$(awk -F '\t' '{ n += $2 } END { print n }' sums.txt)"
  "$luajit" -ts $jit.ljp > ours.txt 2> /dev/null || fail "-ts"
  "$luajit" -ts $jit.bin > theirs.txt || fail "-ts of ljp"
  cmp -s ours.txt theirs.txt || fail "-ts differs: $(diff ours.txt theirs.txt)"
  same "samples of -ts, JIT $jit" "$wanted" \
    "$(awk -F '\t' '{ n += $2 } END { print n }' ours.txt)"
done
grep -q "samples are in compiled code: ljp has their traces only" notes.txt ||
  fail "nothing said of compiled code: $(cat notes.txt)"
grep -q '^TRACE \[[0-9]*\] started at @samples.lua:2;' ours.txt ||
  fail "no trace in: $(cat ours.txt)"
"$luajit" -ts off.ljp 2> /dev/null |
  grep -q 'lua_pcall:0x[0-9a-f]*;@samples.lua:0;@samples.lua:3;@samples.lua:2;' ||
  fail "no joined stack in: $("$luajit" -ts off.ljp)"
"$luajit" -ts off.ljp 2> /dev/null | grep -q '@samples.lua:0;string.rep;' ||
  fail "no builtin in: $("$luajit" -ts off.ljp)"
refuses "ljm of samples" 1 "has no memory events: use --to ljp" \
  "$ljprof" export --to ljm -o x off.ljp
refuses "time in ljp" 2 "ljp counts samples" \
  "$ljprof" export --to ljp --value cpu -o x off.ljp

# -- Bad input -----------------------------------------------------------------

refuses "no tool" 1 "Available tools are" "$luajit" -t every.ljp
refuses "unknown tool" 1 "Available tools are" "$luajit" -tx every.ljp
for tool in m s; do
  refuses "no file, -t$tool" 1 "fopen, errno: 2: No such file" \
    "$luajit" -t$tool no/file
  refuses "option, -t$tool" 1 "unrecognized option" "$luajit" -t$tool --wrong x
  echo data > data
  refuses "garbage, -t$tool" 1 "Failed to parse symtab" "$luajit" -t$tool data
  printf 'ljs\001\000\000\000' > old
  refuses "version, -t$tool" 1 "expects 3, but your data is 1" \
    "$luajit" -t$tool old
  printf 'ljs\003\000\000\000\200' > alone
  refuses "no events, -t$tool" 1 "Failed to parse profile data" \
    "$luajit" -t$tool alone
  printf 'ljs\003\000\000\000\001\007\377\377\377\377\017name' > long
  refuses "4 GB, -t$tool" 1 "string of 4294967295 bytes is longer" \
    "$luajit" -t$tool long
done
refuses "-ts of memory" 1 "has no samples: use luajit -tm" \
  "$luajit" -ts every.ljp
refuses "-tm of samples" 1 "has no memory events: use luajit -ts" \
  "$luajit" -tm off.ljp
refuses "-ts of ljm" 1 "ljm (memory events: use luajit -tm)" \
  "$luajit" -ts every.ljm
refuses "-tm of ljp" 1 "ljp (samples: use luajit -ts)" "$luajit" -tm off.bin
refuses "-tm of a folder" 1 "errno: 21: Is a directory" "$luajit" -tm .

# A file without events says what is missing; samples have no lines to annotate.
printf 'ljs\003\000\000\000\200ljm\003\000\000\000\200' > empty.ljm
refuses "no event" 1 "nothing to show: no memory allocated" \
  "$ljprof" report empty.ljm
refuses "lines of ljp" 1 "Tarantool's sysprof records no lines" \
  "$ljprof" annotate off.bin samples.lua

# Cut anywhere, a file gives an error and no more. (The last bytes: each one.)
"$ljprof" export --to ljm --no-symbols -o small.ljm every.ljp 2> /dev/null
size=$(wc -c < small.ljm)
for at in 0 1 6 7 8 100 $((size / 2)) $((size - 9)) $((size - 3)) $((size - 1))
do
  head -c "$at" small.ljm > cut.ljm
  refuses "cut at $at" 1 "Failed to parse" "$luajit" -tm cut.ljm
done

# What comes before the cut is shown, up to the last whole event.
events_of() {
  "$ljprof" report --json "$1" |
    grep -oE '"(alloc|free|realloc)_events":[0-9]+' | cut -d: -f2 |
    awk '{ n += $1 } END { print n }'
}
for at in $((size / 2)) $((size - 9)) $((size - 1)); do
  head -c "$at" small.ljm > cut.ljm
  ! "$luajit" -tm cut.ljm > shown.txt 2> err.txt || fail "-tm of a cut file"
  same "events before the cut at $at" "$(events_of cut.ljm)" \
    "$(sed -n 's/.*: \([0-9]*\) events\t.*/\1/p' shown.txt |
      awk '{ n += $1 } END { print n }')"
  grep -q "the file ends at byte $at.*; what comes before it is shown" err.txt ||
    fail "the place of the cut: $(cat err.txt)"
done
head -c $(($(wc -c < off.bin) - 2)) off.bin > cut.bin
! "$luajit" -ts cut.bin > shown.txt 2> err.txt || fail "-ts of a cut file"
same "samples before the cut" "$("$ljprof" report --json cut.bin |
  sed -n 's/.*"samples":\([0-9]*\),.*/\1/p' | head -n 1)" \
  "$(awk -F '\t' '{ n += $2 } END { print n }' shown.txt)"
grep -q "within the event that begins at byte .*; what comes before" err.txt ||
  fail "the place of the cut: $(cat err.txt)"
{
  head -c $((size - 1)) small.ljm
  printf '\077'
} > bad.ljm
! "$luajit" -tm bad.ljm > shown.txt 2> err.txt || fail "-tm of a damaged file"
same "events before the damage" "$(events_of bad.ljm)" \
  "$(sed -n 's/.*: \([0-9]*\) events\t.*/\1/p' shown.txt |
    awk '{ n += $1 } END { print n }')"
grep -q "^Bad ev_header 63$\|	Bad ev_header 63$" err.txt ||
  fail "what is damaged: $(cat err.txt)"
# Scripts that load the modules get the error that they know.
"$luajit" -e 'local reader = require("utils.bufread").new("cut.ljm")
  local symbols = require("utils.symtab").parse(reader)
  print(pcall(require("memprof.parse").parse, reader, symbols))' > out.txt
grep -q "^false.fread, errno: 0: the file ends" out.txt ||
  fail "the modules: $(cat out.txt)"
ok "what comes before a cut"

# Without the command ljprof, the error says so.
cp -R "$BUILD_DIR/share/luajit-2.1" modules
PATH=/nonexistent LUA_PATH="$SCRATCH/modules/?.lua" "$luajit" \
  -e 'print(pcall(require("utils.bufread").new, "every.ljp"))' > out.txt
grep -q "the command ljprof, which converts it, is neither beside" out.txt ||
  fail "without ljprof: $(cat out.txt)"
ok "without ljprof"

echo "$passed checks"
