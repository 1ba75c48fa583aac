#!/bin/sh
# The series fits every base that cmake/luajit-bases.txt names, each patch says
# what it changes and why, and together the patches add fewer than 150 lines.
. "$(dirname "$0")/lib.sh"

patches=$SOURCE_DIR/src/luajit/patches
cache=${LJPROF_CACHE:-$SOURCE_DIR/.cache}/sources
series=$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$patches/series")
bases=$(awk '$2 == "package" { print $1 }' \
  "$SOURCE_DIR/cmake/luajit-bases.txt")
for base in $bases; do
  if ! origin=$("$SOURCE_DIR/cmake/fetch-luajit" "$base" "$cache" 2> why.txt)
  then
    grep -q 'no archive answers\|no longer hold' why.txt ||
      fail "$base: $(cat why.txt)"
    [ "$base" != "${LJP_BASE:-luajit2}" ] || fail "$(cat why.txt)"
    ok "skipped: $(cat why.txt)"
    continue
  fi
  "$SOURCE_DIR/cmake/stage-luajit" "$origin" "$patches" "$base" ||
    fail "the series does not fit $base"
  [ -f "$base/.ljprof-stamp" ] || fail "$base is incomplete"
  ok "fits $base"
done
for p in $series; do
  [ "$(sed '/^--- /,$d' "$patches/$p" | grep -c .)" -ge 2 ] ||
    fail "$p does not say what it changes and why"
done
ok "every patch says what it changes and why"
same "every patch is in the series" "$(echo "$series" | sort)" \
  "$(cd "$patches" && find . -name '*.patch' | sed 's,^\./,,' | sort)"
# The hunks of all alternatives are counted, so a tree gets at most this number.
added=$(cat "$patches"/*.patch | grep -c '^+')
[ "$added" -gt 0 ] || fail "the series adds nothing"
[ "$added" -lt 150 ] || fail "the series adds $added lines, more than 149"
ok "the series adds $added lines"

# A hook between #if and #endif might not be compiled. Each file that the patches
# give a hook calls it in the object that was made of it.
mkdir objects
(cd objects && ar x "$BUILD_DIR/luajit/patched/libvm.a") || fail "no libvm.a"
calls=0
cat "$patches"/*.patch | awk '
  /^--- src\/.*\.c$/ { file = $2; sub(/^src\//, "", file); sub(/\.c$/, "", file) }
  /^--- .*\.h$/ { file = "" }
  /^@@/ { there = /^@@ where there is / ? $5 : "-" }
  file != "" && /^\+/ && match($0, /ljp_(hook|vm)_[a-z_]+/) {
    print file, substr($0, RSTART, RLENGTH), there
  }' | sort -u > calls.txt
while read -r object hook there; do
  [ "$there" = - ] || nm objects/"$object".o | grep -q " T $there\$" || continue
  nm objects/"$object".o | grep -q " U $hook\$" ||
    fail "$object.o does not call $hook"
  calls=$((calls + 1))
done < calls.txt
[ "$calls" -ge 20 ] || fail "only $calls calls were looked for"
ok "each hook is compiled where it was put: $calls calls"
