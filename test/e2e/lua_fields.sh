#!/bin/sh
# doc/reference/lua.md has each field that status and report return and each
# function and option that there is, and no other. (With the check of remembered
# stacks, whose figures are fields, too.)
. "$(dirname "$0")/lib.sh"

LJPROF_MEMPROF_CHECK=1 "$BUILD_DIR/bin/luajit" \
  "$SOURCE_DIR/test/e2e/lua_fields.lua" "$SOURCE_DIR/doc/reference/lua.md" \
  > out.txt 2>&1 || fail "$(cat out.txt)"
ok "the reference and the functions agree: $(cat out.txt)"
