#!/bin/sh
# Our library can replace Debian's: it has the same soname and exports every
# symbol that Debian's library and the unpatched base export, and besides them
# only luaM_*, luaopen_misc and otel_thread_ctx_v1 (OTEP 4947).
. "$(dirname "$0")/lib.sh"

exported() {
  nm -D --defined-only "$1" | awk '{ print $3 }' | sort
}
lib=$BUILD_DIR/lib/libluajit-5.1.so.2
exported "$lib" > ours
same "soname" libluajit-5.1.so.2 \
  "$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
for link in libluajit-5.1.so libluajit-5.1.so.2; do
  [ -L "$BUILD_DIR/lib/$link" ] || fail "$link is not a link"
done

exported "$BUILD_DIR/unpatched/lib/libluajit-5.1.so.2" > base
[ "$(wc -l < base)" -ge 140 ] ||
  fail "the base exports too little: $(wc -l < base)"
same "nothing of the base is missing" "" "$(comm -13 ours base)"
comm -23 ours base > added
same "only luaM_*, luaopen_misc and otel_thread_ctx_v1 are added" "" \
  "$(grep -vE '^(luaM_|luaopen_misc$|otel_thread_ctx_v1$)' added || :)"
[ "$(grep -c '^luaM_' added)" -ge 8 ] || fail "luaM_* are missing: $(cat added)"
ok "$(wc -l < added) symbols of ours"

# Debian's own list comes with its source package.
list=$(find "$BUILD_DIR/luajit/patched/stage/debian" -name '*.symbols' \
  2> /dev/null || :)
if [ -n "$list" ]; then
  sed -n 's/^ *\(([^)]*)\)\{0,1\}\([A-Za-z_0-9]*\)@Base.*/\2/p' "$list" |
    sort > debian
  [ "$(wc -l < debian)" -ge 140 ] || fail "cannot read $list"
  same "nothing that Debian exports is missing" "" "$(comm -13 ours debian)"
fi
same "no text relocations" "" "$(readelf -d "$lib" | grep TEXTREL || :)"
# libgcc, which is part of the library for musl, takes no locks if nobody defines this
# symbol (cmake/musl-libgcc.c).
[ "${LJP_LIBC:-}" != musl ] ||
  same "libgcc takes its locks" "" \
    "$(nm "$lib" | grep -E ' [Uvw] __pthread_key_create$' || :)"

# A thread of ours that uses a stream of libc may let a child of fork() hang in exit()
# (src/base/lines.h). Only the command luajit uses streams.
streams='v?f?printf|fopen|fdopen|freopen|fmemopen|open_memstream|popen|tmpfile|fclose'
streams="$streams|getline|getdelim|fgets|fgetc|getc|fputs|fputc|putc|puts|putchar"
streams="$streams|fwrite|fread|fflush|fseek|perror|fscanf"
find -L "$BUILD_DIR/src" "$BUILD_DIR/profilers" -name '*.o' \
  -exec nm -A --undefined-only {} + > undefined
grep -E " U _*($streams)(64|_unlocked)?(_chk)?\$" undefined > used || :
grep -q '/command\.c\.o:' used || fail "the command's streams are not found"
same "code in a profiled program uses no stream" "" \
  "$(grep -v '/command\.c\.o:' used || :)"
