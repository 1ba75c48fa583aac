#!/bin/sh
# What is wrong gets one clear line and a failing exit code, and nothing that
# is half-built is taken for whole afterwards.
. "$(dirname "$0")/lib.sh"

run=$SOURCE_DIR/run
scripts=$SOURCE_DIR/cmake
cache=${LJPROF_CACHE:-$SOURCE_DIR/.cache}/sources
refuses "an unknown verb" 2 "there is no verb 'biuld'" "$run" biuld
refuses "an unknown option" any "test knows no option '--bogus'" \
  "$run" test --bogus
refuses "an unknown base" any "no LuaJIT base is called 'lua'" \
  "$run" test --base lua

# Fetching. A machine without archives, or with one that does not answer.
refuses "a base not in the table" any "no LuaJIT base is called 'puc'" \
  "$scripts/fetch-luajit" puc "$SCRATCH/none"
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

# Staging. Trees that are not LuaJIT 2.1, patches that do not apply.
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
refuses "a patch that does not apply" any "src/lib_init.c, hunk #2" \
  stage "$SCRATCH/other" "$patches" out
cp -R "$patches" named
echo 9999-missing.patch >> named/series
refuses "a patch that is not there" any "series names 9999-missing.patch" \
  stage "$SCRATCH/other" "$SCRATCH/named" out
[ ! -e out ] || fail "a failed stage left a tree"
same "nor anything else" "" "$(find . -maxdepth 1 -name 'out*' ! -name out.txt)"

# A tree without its stamp, as a kill would leave one, is made anew.
stage "$BUILD_DIR/luajit/unpatched/stage" "$patches" out
rm out/.ljprof-stamp out/src/lj_gc.c
stage "$BUILD_DIR/luajit/unpatched/stage" "$patches" out
[ -f out/src/lj_gc.c ] || fail "a half tree was taken for whole"
ok "a half tree is made anew"

# Configuring. No compiler; a target without GC64.
configure() {
  cmake -S "$SOURCE_DIR" -B conf -G Ninja -DBUILD_TESTING=OFF "$@"
}
refuses "a target without GC64" any "the profilers need an x86-64 target" \
  configure -DLUAJIT_XCFLAGS=-DLUAJIT_DISABLE_GC64
copy_of_source clone
mkdir -p clone/.cache few
ln -s "$cache" clone/.cache/sources
for c in sh env dirname grep sed cat cmake ninja rm mkdir tr sort id tail; do
  ln -s "$(command -v $c)" few/$c
done
refuses "no compiler" any "there is no C compiler" \
  env -u CC PATH="$SCRATCH/few" clone/run build
rm few/cmake
refuses "no cmake" any "the command 'cmake' is missing" \
  env PATH="$SCRATCH/few" clone/run build
