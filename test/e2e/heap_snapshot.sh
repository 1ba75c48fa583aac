#!/bin/sh
# Heap snapshots hold every byte that the VM counts, whatever the VM is doing;
# each file is whole; nothing of the copy remains.
. "$(dirname "$0")/lib.sh"

for jit in on off; do
  "$BUILD_DIR/bin/luajit" -j$jit "$SOURCE_DIR/test/e2e/heap_snapshot.lua" \
    > count.txt 2> err.txt || fail "JIT $jit: $(cat err.txt)"
  [ ! -s err.txt ] || fail "JIT $jit: $(cat err.txt)"
  ok "JIT $jit: $(cat count.txt) checks while the program runs"
  : > phases.txt
  for file in *.ljp; do
    "$BUILD_DIR/bin/ljprof" check "$file" > check.txt ||
      fail "$file: $(cat check.txt)"
    "$BUILD_DIR/bin/ljprof" dump "$file" > dump.txt || fail "$file: dump"
    sed -n 's/^  heap .*phase="\([^"]*\)".*/\1/p' dump.txt >> phases.txt
    awk '
      function field(key,   at) {
        at = index($0, " " key "=")
        return at ? substr($0, at + length(key) + 2) + 0 : 0
      }
      /^  object / { objects += !/type="-"/ }
      /^  ref / { refs += / key=0x/ ? 2 : 1 }
      /^  heap / { bytes = field("heap_bytes") }
      /^  heap-end / {
        ends++
        if (field("objects") != objects || field("refs") != refs ||
            field("bytes") != bytes)
          exit bad = 1
      }
      END { exit bad || ends != 1 }' dump.txt || fail "$file: the sums"
    grep -q 'dead=true' dump.txt && touch dead
  done
  for phase in pause propagate 'sweep strings' sweep finalize; do
    grep -q "^$phase\$" phases.txt || fail "JIT $jit: no snapshot in phase $phase"
  done
  [ -e dead ] || fail "JIT $jit: no dead object was seen"
  [ -e closing.ljp ] || fail "JIT $jit: no snapshot in lua_close()"
  [ -e behind.ljp ] || fail "JIT $jit: the program did not wait for its copy"
  set -- ./*.ljp
  ok "JIT $jit: $# files are whole, in all phases"
  rm -f ./*.ljp dead
done

"$BUILD_DIR/bin/heap_host" 60 host.ljp > host.txt || fail "heap_host"
"$BUILD_DIR/bin/ljprof" check host.ljp > check.txt || fail "$(cat check.txt)"
ok "a host with threads and children does not notice the copies"

# A limit on the size of files: an error, no signal, no half of a file.
for place in true false; do
  (ulimit -f 64 && "$BUILD_DIR/bin/luajit" -e "
    local t = {} for i = 1, 50000 do t[i] = {} end
    local r, message, number = misc.memprof.snapshot{
      path = 'limit.ljp', wait = true, in_place = $place}
    assert(r == nil and number == 27, message)") || fail "beyond the limit"
  [ ! -e limit.ljp ] || fail "a file beyond the limit is left"
done
ok "a snapshot beyond the limit on files is refused"

"$BUILD_DIR/bin/luajit" -e 'assert(misc.memprof.snapshot("exit.ljp")) os.exit(7)' ||
  code=$?
same "the exit code is the program's" 7 "${code:-0}"
"$BUILD_DIR/bin/ljprof" check exit.ljp > check.txt || fail "$(cat check.txt)"
ok "exit() waits for the copy"

# Compressed: the copy may take no memory, whatever the level. The VM stays the
# same meanwhile, so the files have the same objects.
cat > compress.lua << 'END'
local kept = {}
for i = 1, 20011 do kept[i] = { name = "object " .. i, before = kept[i - 1] } end
collectgarbage()
collectgarbage("stop")
local function take(name, level, in_place)
  return misc.memprof.snapshot{path = name, compress = level, in_place = in_place, wait = true}
end
local plain = assert(take("plain.ljp"))
local small, message, number = take("level1.ljp", 1)
if not small then
  assert(number == 95 and message:find("libzstd", 1, true), message)
  os.exit(2) -- there is none
end
for _, r in ipairs { small, assert(take("level19.ljp", 19)), assert(take("place.ljp", 3, true)) } do
  assert(r.file_bytes * 3 < plain.file_bytes, r.file_bytes .. " of " .. plain.file_bytes)
  assert(r.objects - plain.objects < 200, r.objects)
end
for _, wrong in ipairs { -1, 20, 1.5, "fast" } do
  local r, why, code = take("wrong.ljp", wrong)
  assert(r == nil and code == 22 and why:find("from 0 (none) to 19", 1, true), why)
end
local r, why = misc.memprof.snapshot{compress = 1}
assert(r == nil and why:find("compress is for a file of its own", 1, true), why)
END
code=0
"$BUILD_DIR/bin/luajit" compress.lua || code=$?
[ "$code" = 0 ] || [ "$code" = 2 ] || fail "compress.lua: $code"
for file in level1.ljp level19.ljp place.ljp; do
  [ "$code" = 0 ] || break
  "$BUILD_DIR/bin/ljprof" check "$file" > check.txt || fail "$(cat check.txt)"
  "$BUILD_DIR/bin/ljprof" heap "$file" > heap.txt || fail "$(cat heap.txt)"
  grep -q 'local kept .* {20011 items}$' heap.txt || fail "$(cat heap.txt)"
done
[ ! -e wrong.ljp ] || fail "a file of wrong options"
ok "compressed snapshots are whole (code $code)"
