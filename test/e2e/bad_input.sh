#!/bin/sh
# Wrong input to ./run and to the scripts in cmake/ gets one clear line and a
# failing exit code, and nothing half-built counts as complete afterwards.
. "$(dirname "$0")/lib.sh"

run=$SOURCE_DIR/run
scripts=$SOURCE_DIR/cmake
cache=${LJPROF_CACHE:-$SOURCE_DIR/.cache}/sources
refuses "an unknown verb" 2 "there is no verb 'biuld'" "$run" biuld
refuses "an empty verb" 2 "there is no verb ''" "$run" ''
refuses "an unknown option" 2 "test knows no option '--bogus'" \
  "$run" test --bogus
refuses "an unknown base" 2 "no LuaJIT base is called 'lua'" \
  "$run" test --base lua
refuses "an argument too many" 2 "build takes no argument, and there is 'all'" \
  "$run" build all
refuses "two prefixes" 2 "install takes one folder, and there is '/b' too" \
  "$run" install /a /b

# Fetching, on a machine without archives or with one that does not answer.
refuses "a base not in the table" any "no LuaJIT base is called 'puc'" \
  "$scripts/fetch-luajit" puc "$SCRATCH/none"
"$scripts/fetch-luajit" luajit2 "$cache" > fetched.txt 2>&1 || fail "$(cat fetched.txt)"
mkdir damaged
for f in "$cache"/luajit2_*; do cp "$f" damaged/; done
printf x >> damaged/luajit2_2.1-20230119.orig.tar.xz
refuses "a wrong checksum" any "orig.tar.xz has the wrong SHA-256" \
  "$scripts/fetch-luajit" luajit2 damaged
mkdir -p bin etc-free
cat > bin/apt-get << 'EOF'
#!/bin/sh
echo "W: Failed to fetch: no route to host"
exit 100
EOF
chmod +x bin/apt-get
rm damaged/luajit2_2.1-20230119.orig.tar.xz
mkdir damaged/luajit2_2.1-20230119.orig.tar.xz
refuses "a folder in a file's place" any "orig.tar.xz has the wrong SHA-256" \
  "$scripts/fetch-luajit" luajit2 damaged
export LJPROF_APT_HELPER=/nonexistent
refuses "no network and no cache" any "no archive answers" \
  env PATH="$SCRATCH/bin:$PATH" "$scripts/fetch-luajit" luajit2 empty
[ ! -e empty ] || fail "a failed fetch left $(ls empty)"
same "what is cached needs no network" "$cache/luajit2_2.1-20230119-1.dsc" \
  "$(PATH="$SCRATCH/bin:$PATH" "$scripts/fetch-luajit" luajit2 "$cache")"
cat > bin/apt-get << 'EOF'
#!/bin/sh
case " $* " in
*" update "*)
  dir=$(sed -n 's/^Dir::State::lists "\(.*\)";/\1/p' "$2")
  : > "$dir/x_Sources"
  ;;
*) echo "E: Can not find version '2.1-20230119-1' of package 'luajit2'"
  exit 100 ;;
esac
EOF
refuses "a version that has left the archive" any "no longer hold luajit2" \
  env PATH="$SCRATCH/bin:$PATH" "$scripts/fetch-luajit" luajit2 empty
cat > bin/apt-get << 'EOF'
#!/bin/sh
case " $* " in
*" source "*)
  for f in luajit2_2.1-20230119-1.dsc luajit2_2.1-20230119.orig.tar.xz \
    luajit2_2.1-20230119-1.debian.tar.xz; do echo other > $f; done ;;
esac
EOF
refuses "an archive with other bytes" any "as fetched has the wrong SHA-256" \
  env PATH="$SCRATCH/bin:$PATH" "$scripts/fetch-luajit" luajit2 empty
[ ! -e empty ] || fail "a wrong download was kept: $(ls empty)"

# An archive's pool has the files of other releases as well. This replacement of
# apt-helper takes them from the cache.
cat > bin/apt-helper << EOF
#!/bin/sh
while [ "\$1" != download-file ]; do shift; done
echo "\$2" >> $SCRATCH/asked.txt
cp "$cache/\${2##*/}" "\$3"
[ ! -e $SCRATCH/spoil ] || echo other > "\$3"
EOF
chmod +x bin/apt-helper
export LJPROF_APT_HELPER="$SCRATCH/bin/apt-helper"
same "files come from an archive's pool" \
  "$SCRATCH/pooled/luajit2_2.1-20230119-1.dsc" \
  "$("$scripts/fetch-luajit" luajit2 "$SCRATCH/pooled" 2> fetched.txt)"
same "one file after the other" 3 \
  "$(grep -c '^[a-z+]*:.*/pool/main/l/luajit2/luajit2_' asked.txt)"
: > spoil
refuses "a pool with other bytes" any "as fetched has the wrong SHA-256" \
  "$scripts/fetch-luajit" luajit2 empty
[ ! -e empty ] || fail "a wrong download was kept: $(ls empty)"

# Staging: trees that are not LuaJIT 2.1, and patches that do not apply.
stage() {
  "$scripts/stage-luajit" "$@"
}
patches=$SOURCE_DIR/src/luajit/patches
mkdir not-luajit
refuses "a folder that is not LuaJIT" any "is not a LuaJIT 2.1 source tree" \
  stage "$SCRATCH/not-luajit" "$patches" out
cp -R "$BUILD_DIR/luajit/unpatched/stage" old
for f in old/src/luajit.h old/src/luajit_rolling.h; do
  [ -f $f ] || continue
  sed -i 's/LuaJIT 2\.1/LuaJIT 2.0/' $f
done
refuses "LuaJIT 2.0" any "its version reads '2.0." \
  stage "$SCRATCH/old" "$patches" out
refuses "no such folder" any "there is no LuaJIT source at" \
  stage "$SCRATCH/nowhere" "$patches" out
cp -R "$BUILD_DIR/luajit/unpatched/stage" other
sed -i '/LUA_JITLIBNAME/d' other/src/lib_init.c
refuses "a tree with changes of its own" any \
  "src/lib_init.c: lj_lib_load: there is no line '{ LUA_JITLIBNAME, luaopen_jit" \
  stage "$SCRATCH/other" "$patches" out
refuses "a tree with our patches" any "has the patches already (src/lj_alloc.c)" \
  stage "$BUILD_DIR/luajit/patched/stage" "$patches" out
# made NAME: makes a minimal folder that looks like a tree of LuaJIT.
made() {
  mkdir -p "$1/src" "$1/dynasm"
  : > "$1/Makefile"
  for f in Makefile lj_arch.h lib_init.c; do echo > "$1/src/$f"; done
  echo '#define LUAJIT_VERSION		"LuaJIT 2.1.0-beta3"' > "$1/src/luajit.h"
}
made tarantool
: > tarantool/src/lj_memprof.c
rm tarantool/Makefile
refuses "Tarantool's fork" any "is Tarantool's fork of LuaJIT" \
  stage "$SCRATCH/tarantool" "$patches" out
made raptor
: > raptor/src/lj_auditlog.c
refuses "RaptorJIT" any "is RaptorJIT, which has a VM of its own" \
  stage "$SCRATCH/raptor" "$patches" out
made emptied
refuses "a tree without its functions" any \
  "src/lib_init.c: there is no lj_lib_load" stage "$SCRATCH/emptied" "$patches" out
made unversioned
: > unversioned/src/luajit.h
refuses "a tree without a version" any "its version reads 'nothing'" \
  stage "$SCRATCH/unversioned" "$patches" out
echo 'no tarball' > broken.tar.xz
refuses "a broken tarball" any "cannot unpack $SCRATCH/broken.tar.xz" \
  stage "$SCRATCH/broken.tar.xz" "$patches" out
cp -R "$patches" named
echo 9999-missing.patch >> named/series
refuses "a patch that is not there" any "series names 9999-missing.patch" \
  stage "$SCRATCH/other" "$SCRATCH/named" out
[ ! -e out ] || fail "a failed stage left a tree"
same "nor anything else" "" "$(find . -maxdepth 1 -name 'out*' ! -name out.txt)"

# Trees of links and of files that cannot be written are taken like others. Root may
# write them all the same, so another user takes them, with copies of the scripts: the
# source may be in a folder of root's.
stage "$BUILD_DIR/luajit/unpatched/stage" "$patches" plain
cp -RL "$BUILD_DIR/luajit/unpatched/stage" fixed
cp -Rs "$SCRATCH/fixed" links
cp -R "$scripts" scripts
cp -R "$patches" patches
chmod -R a-w fixed
chmod 777 .
unprivileged=
[ "$(id -u)" != 0 ] || unprivileged="setpriv --reuid=65534 --clear-groups"
for tree in links fixed; do
  # shellcheck disable=SC2086 # words are wanted
  $unprivileged scripts/stage-luajit "$SCRATCH/$tree" "$SCRATCH/patches" \
    "$SCRATCH/got" > out.txt 2>&1 ||
    fail "a tree of $tree files is not taken: $(cat out.txt)"
  diff -r -x .ljprof-stamp plain got > out.txt || fail "$tree: $(head -n 3 out.txt)"
  [ -n "$(find got/src/lj_gc.c -perm -u+w)" ] || fail "$tree: lj_gc.c stays read-only"
  ok "a tree of $tree files"
  rm -rf got
done
chmod -R u+w fixed

# A tree without its stamp, such as a kill leaves, is made anew.
stage "$BUILD_DIR/luajit/unpatched/stage" "$patches" out
rm out/.ljprof-stamp out/src/lj_gc.c
stage "$BUILD_DIR/luajit/unpatched/stage" "$patches" out
[ -f out/src/lj_gc.c ] || fail "an incomplete tree counted as complete"
ok "an incomplete tree is made anew"

# A make that is killed in the middle of a file. This Makefile, in the place of
# LuaJIT's own, waits there if there is a file "stop".
mkdir -p vm/src/jit vm/src/host
for f in lua.h lauxlib.h lualib.h luaconf.h luajit.h lua.hpp luajit.o \
  jit/vmdef.lua; do echo "$f" > vm/src/$f; done
cat > vm/src/Makefile << EOF
libluajit.a:
	printf 'half ' > \$@
	if [ -e $SCRATCH/stop ]; then touch $SCRATCH/stopped; sleep 60; fi
	echo whole >> \$@
EOF
: > stop
setsid "$scripts/make-luajit" vm work made dest 1 A=1 > make.txt 2>&1 &
made=$!
n=0
until [ -e stopped ]; do
  n=$((n + 1))
  [ $n -lt 400 ] || fail "the stopping make did not start: $(cat make.txt)"
  sleep 0.05
done
kill -9 -$made
wait $made 2> /dev/null || :
same "half an archive" "half " "$(cat work/src/libluajit.a)"
[ ! -e made/libvm.a ] || fail "half an archive counts as built"
rm stop
"$scripts/make-luajit" vm work made dest 1 A=1
same "after a killed make everything is built anew" "half whole" \
  "$(cat made/libvm.a)"

# Configuring, without a compiler or for a target without GC64.
configure() {
  cmake -S "$SOURCE_DIR" -B conf -G Ninja -DBUILD_TESTING=OFF "$@"
}
refuses "a target without GC64" any "the profilers need an x86-64 target" \
  configure -DLUAJIT_XCFLAGS=-DLUAJIT_DISABLE_GC64
cp -R "$BUILD_DIR/luajit/unpatched/stage" flagged
sed -i 's/^#\(XCFLAGS+= -DLUAJIT_DISABLE_GC64\)/\1/' flagged/src/Makefile
refuses "a tree whose Makefile turns GC64 off" any "take out -DLUAJIT_DISABLE_GC64" \
  configure "-DLUAJIT_SOURCE_DIR=$SCRATCH/flagged"
# What a Makefile turns on, also by its other variables, is what all is built with.
# shellcheck disable=SC2016 # make expands it
same "flags of a tree's Makefile" "-DLUAJIT_DISABLE_GC64 -DMINE=1 -DLUA_USE_ASSERT" "$(
  sed -i -e 's/^XCFLAGS=.*/&\nMINE= -DMINE=1/' -e '/DISABLE_GC64/s/$/ $(MINE)/' \
    -e 's/^CCOPT=.*/& -DLUA_USE_ASSERT/' flagged/src/Makefile
  CFLAGS=-DNOT_MINE "$scripts/tree-flags" flagged "CC=${CC:-cc}")"
# alone WHAT: ./run prints one line, however much CMake prints.
alone() {
  same "$1: one line" 1 "$(grep -vc '^==> ' out.txt)"
}
copy_of_source clone
mkdir -p clone/.cache few
ln -s "$cache" clone/.cache/sources
for c in sh env dirname grep sed cat cmake ninja rm mkdir tr sort id tail; do
  ln -s "$(command -v $c)" few/$c
done
refuses "no compiler" any "there is no C compiler" \
  env -u CC PATH="$SCRATCH/few" clone/run build
alone "no compiler"
env_run() {
  env LJPROF_CACHE="${cache%/sources}" "$@" clone/run build
}
refuses "a compiler that is not there" any "no C compiler 'nosuchcc'" \
  env_run CC=nosuchcc
alone "a compiler that is not there"
refuses "a compiler that does not work" any \
  "the C compiler false does not work" env_run CC=false
alone "a compiler that does not work"
rm -rf clone/build
# A compiler's own arguments decide the target. Our check needs no 32-bit libc,
# but CMake's test of the compiler does.
echo 'int main(void) { return 0; }' > try.c
if ${CC:-cc} -m32 try.c -o try 2> try.txt; then
  refuses "a 32-bit target by CC" any "the profilers need an x86-64 target" \
    env_run CC="${CC:-cc} -m32"
  alone "a 32-bit target by CC"
  rm -rf clone/build
else
  echo "skipped, as there is no 32-bit libc: a 32-bit target by CC"
fi
refuses "a missing library" any "pkg-config does not find 'libzstd'" \
  env_run PKG_CONFIG_LIBDIR=/nonexistent
alone "a missing library"
rm -rf clone/build
sed -i 's/lj_lib_load/lj_lib_moved/' clone/src/luajit/patches/0001-*.patch
refuses "a patch that does not fit" any \
  "src/lib_init.c: there is no lj_lib_moved" env_run
alone "a patch that does not fit"
rm few/cmake
refuses "no cmake" any "the command 'cmake' is missing" \
  env PATH="$SCRATCH/few" clone/run build
