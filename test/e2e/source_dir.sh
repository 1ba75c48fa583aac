#!/bin/sh
# Any LuaJIT v2.1 tree makes a library that records. This test takes the other
# one of Debian's two, unpacked like somebody's clone, with files that an
# earlier make has left in it.
. "$(dirname "$0")/lib.sh"

other=luajit
[ "${LJP_BASE:-luajit2}" = luajit2 ] || other=luajit2
cache=${LJPROF_CACHE:-$SOURCE_DIR/.cache}/sources
dsc=$("$SOURCE_DIR/cmake/fetch-luajit" $other "$cache") || fail "no $other"
"$SOURCE_DIR/cmake/stage-luajit" "$dsc" none tree || fail "no tree of $other"
rm -f tree/.ljprof-stamp
echo '#error "of an earlier make"' > tree/src/lj_bcdef.h
echo 'not an object' > tree/src/lj_api.o
find tree -type f -exec sha256sum {} + | sort > before.txt

cmake -S "$SOURCE_DIR" -B made -G Ninja -DBUILD_TESTING=OFF \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLUAJIT_SOURCE_DIR="$SCRATCH/tree" \
  > made.log 2>&1 || fail "$(cat made.log)"
cmake --build made --target luajit > made.log 2>&1 || fail "$(tail made.log)"
find tree -type f -exec sha256sum {} + | sort > after.txt
cmp -s before.txt after.txt || fail "the tree was changed: $(
  diff before.txt after.txt | head -n 3)"
ok "the tree is built elsewhere and stays as it was"

cat > work.lua << 'END'
local keep = {}
local function allocate_here()
  for i = 1, 1009 do keep[#keep + 1] = { i } end
end
print(jit.version, package.path:match("^[^;]*"))
assert(misc.memprof.start{ path = "work.ljp", every = true })
allocate_here()
assert(misc.memprof.stop())
END
made/bin/luajit work.lua > out.txt 2>&1 || fail "$(cat out.txt)"
grep -q '^LuaJIT 2\.1' out.txt || fail "$(cat out.txt)"
"$BUILD_DIR/bin/ljprof" report --alloc work.ljp > report.txt 2>&1 ||
  fail "$(cat report.txt)"
grep -q 'allocate_here work.lua' report.txt || fail "$(cat report.txt)"
ok "its library records: $(grep -m 1 allocate_here report.txt)"
