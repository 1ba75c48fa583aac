#!/bin/sh
# The series applies without fuzz to both of Debian's LuaJITs, each patch says
# what it changes and why, and together the patches add fewer than 150 lines.
. "$(dirname "$0")/lib.sh"

patches=$SOURCE_DIR/src/luajit/patches
cache=${LJPROF_CACHE:-$SOURCE_DIR/.cache}/sources
series=$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$patches/series")
for base in luajit2 luajit; do
  dsc=$("$SOURCE_DIR/cmake/fetch-luajit" $base "$cache")
  "$SOURCE_DIR/cmake/stage-luajit" "$dsc" "$patches" "$base" ||
    fail "the series does not apply to $base"
  [ -f $base/.ljprof-stamp ] || fail "$base is incomplete"
  ok "applies to $base"
done
for p in $series; do
  [ "$(sed '/^--- /,$d' "$patches/$p" | grep -c .)" -ge 2 ] ||
    fail "$p does not say what it changes and why"
done
ok "every patch says what it changes and why"
same "every patch is in the series" "$(echo "$series" | sort)" \
  "$(cd "$patches" && find . -name '*.patch' | sed 's,^\./,,' | sort)"
added=$(cat "$patches"/*.patch | grep -c '^+\([^+]\|$\)')
[ "$added" -gt 0 ] || fail "the series adds nothing"
[ "$added" -lt 150 ] || fail "the series adds $added lines, more than 149"
ok "the series adds $added lines"
