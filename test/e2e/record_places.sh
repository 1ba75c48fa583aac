#!/bin/sh
# ljprof record puts our library before the one that a program would find by
# itself: by RPATH or RUNPATH, of its own or of a library between, or of the
# program for a module that it opens later. The program's own environment stays
# as it was. What cannot be recorded is refused before it runs.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/places_lib.sh"

link rpath main.c run.c -Wl,"$old",-rpath,"$own" "$own/libluajit-5.1.so.2"
link runpath main.c run.c -Wl,"$new",-rpath,"$own" "$own/libluajit-5.1.so.2"
# shellcheck disable=SC2016 # the loader expands $ORIGIN
link origin main.c run.c -Wl,"$old",-rpath,'$ORIGIN/opt/luajit/lib' \
  "$own/libluajit-5.1.so.2"
link opt/mid/libmid.so -shared -fPIC run.c -Wl,"$old",-rpath,"$own" \
  "$own/libluajit-5.1.so.2"
link between main.c "-Wl,$new,-rpath,$SCRATCH/opt/mid" opt/mid/libmid.so \
  -Wl,--allow-shlib-undefined
# The module has no path; the program's RPATH serves it.
link module.so -shared -fPIC run.c "$own/libluajit-5.1.so.2"
link opener opens.c -Wl,"$old",-rpath,"$own" -ldl
# Without a soname the path itself is what the program needs.
link opt/libluajit.so -shared -fPIC -Wl,--whole-archive \
  "$BUILD_DIR/luajit/unpatched/libvm.a" -Wl,--no-whole-archive -lm -ldl
link absolute main.c run.c "$SCRATCH/opt/libluajit.so"
link named main.c run.c -Lopt -lluajit "-Wl,$new,-rpath,$SCRATCH/opt"
printf '#!%s/rpath\n' "$SCRATCH" > script
chmod +x script

recorded "RPATH" "unset unset" ./rpath
recorded "RUNPATH" "unset unset" ./runpath
recorded "RPATH with \$ORIGIN" "unset unset" ./origin
recorded "RPATH of a library between" "unset unset" ./between
recorded "a module, by the program's RPATH" "unset unset" \
  ./opener ./module.so
recorded "a needed path" "unset unset" ./absolute
recorded "another name" "unset unset" ./named
recorded "a script's interpreter" "unset unset" ./script
PATH=$SCRATCH:$PATH recorded "found in PATH" "unset unset" rpath
printf '#!/usr/bin/env rpath\n' > behind
printf '#!/usr/bin/env -S -u NONE A=1 ./rpath\n' > words
chmod +x behind words
PATH=$SCRATCH:$PATH recorded "found by env" "unset unset" ./behind
recorded "env with options" "unset unset" ./words

# The program's own list comes back.
echo 'int other_preload;' > other.c
link other.so -shared -fPIC other.c
LD_PRELOAD=$SCRATCH/other.so recorded "a list of its own" \
  "$SCRATCH/other.so $SCRATCH/other.so" ./rpath

# What cannot be known before is told, and --preload serves there.
refuses "a program behind a shell" any "own, use --preload)" \
  "$ljprof" record --force -o p.ljp sh -c ./rpath
ours=$(realpath "$BUILD_DIR/lib")/libluajit-5.1.so.2
"$ljprof" record --preload --force -o p.ljp sh -c 'exec ./rpath' 2> err ||
  fail "--preload: $(cat err)"
same "--preload reaches what a shell executes" "ours $ours $ours" "$(cat out)"
"$ljprof" record --preload --children --force -o p.ljp sh -c './rpath; :' \
  2> err || fail "--preload --children: $(cat err)"
same "--preload reaches children" "ours $ours $ours" "$(cat out)"

# Refused before it runs.
link static main.c run.c "$BUILD_DIR/luajit/unpatched/libvm.a" -lm -ldl -Wl,-E
strip static
rm -f out
refuses "a LuaJIT linked in" 1 "own LuaJIT linked into it statically" \
  "$ljprof" record --force -o p.ljp ./static
printf '#!%s/static\n' "$SCRATCH" > script
refuses "... behind a script" 1 "own LuaJIT linked into it statically" \
  "$ljprof" record --force -o p.ljp ./script
printf '#!/usr/bin/env static\n' > script
PATH=$SCRATCH:$PATH refuses "... behind env" 1 "/static has its own LuaJIT" \
  "$ljprof" record --force -o p.ljp ./script
[ ! -e out ] || fail "a refused program ran"
"$ljprof" record --children --force -o p.ljp ./static 2> err && fail "recorded"
same "with --children it runs" "foreign unset unset" "$(cat out)"
same "... and it is said" 1 "$(grep -c "note: ./static has its own LuaJIT" err)"

# patched OFFSET BYTES: a copy of the program with other bytes in its header.
patched() {
  cp rpath patched
  printf '%b' "$2" | dd of=patched bs=1 seek="$1" conv=notrunc 2> dd.log
}
patched 18 '\003\000' # EM_386
refuses "a program for another machine" 1 "is not an x86-64 program" \
  "$ljprof" record --force -o p.ljp ./patched
noted() {
  what=$1 text=$2
  shift 2
  "$ljprof" record --children --force -o p.ljp "$@" > log 2> err || :
  same "with --children it is a note: $what" 1 \
    "$(grep -c "^ljprof record: note: .* $text" err)"
}
noted "another machine" "is not an x86-64 program" ./patched
if [ "$(id -u)" = 0 ]; then
  cp rpath rights
  chown 65534 rights
  chmod 4755 rights
  # A file system may ignore such rights.
  findmnt -no OPTIONS -T . 2> findmnt.log | grep -q nosuid ||
    {
      refuses "a set-user-ID program" 1 "runs with other rights than yours" \
        "$ljprof" record --force -o p.ljp ./rights
      noted "a set-user-ID program" "runs with other rights" ./rights
    }
  rm -f out
  setpriv --no-new-privs "$ljprof" record --force -o p.ljp ./rights 2> err ||
    fail "no_new_privs: $(cat err)"
  same "... because ljprof gets none" "ours unset unset" "$(cat out)"
fi

# A damaged file is for exec to judge. Without its execute bit none runs.
size=$(stat -c %s rpath)
for cut in 1 4 20 63 64 100 500 $((size / 2)) $((size - 1)); do
  head -c "$cut" rpath > damaged
  code=0
  "$ljprof" record --force -o p.ljp ./damaged 2> err || code=$?
  [ "$code" -le 2 ] || [ "$code" = 126 ] || fail "cut at $cut: code $code"
done
for at in 32 40 54 56 58 60 62 $((64 + 8)) $((64 + 32)) $((120 + 32)); do
  patched "$at" '\377\377\377\177'
  chmod -x patched
  code=0
  "$ljprof" record --force -o p.ljp ./patched 2> err || code=$?
  [ "$code" -le 2 ] || [ "$code" = 126 ] || fail "byte $at: code $code"
done
ok "damaged programs"
