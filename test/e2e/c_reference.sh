#!/bin/sh
# doc/reference/c.md has each name that lmisclib.h declares: functions, types,
# constants, and the fields of structures. (Those of struct luam_Metrics are in
# lua.md.)
. "$(dirname "$0")/lib.sh"

header=$SOURCE_DIR/profilers/api/lmisclib.h
sed -e 's,/\*.*\*/,,' -e '/\/\*/,/\*\//d' -e 's/ *$//' "$header" > code.h
# names: the names that the header declares.
names() {
  grep -oE '\b(luaM|luam|LUAM|PROFILE)_[A-Za-z_]+|luaopen_misc' code.h |
    grep -vE '^(LUAM_PROFILE_|luam_Prof_options)'
  awk '/^struct luam_Metrics/ { skip = 1 } /^};/ { skip = 0; inside = 0; next }
    /^struct .*\{/ { inside = 1; next } inside && !skip' code.h |
    sed -n -e 's/.*(\*\([a-z_]*\)).*/\1/p' -e 's/^ .*[ *]\([a-z_]*\);$/\1/p'
}
names | sort -u > names.txt
for wanted in luaM_label LUAM_SYSPROF_LEAF luam_Sysprof_Counters vmst_opt in_place \
  on_stop interval; do
  grep -qx "$wanted" names.txt || fail "the header's name $wanted is not found"
done
lost=
while read -r name; do
  grep -qw -e "$name" "$SOURCE_DIR/doc/reference/c.md" || lost="$lost $name"
done < names.txt
same "names of lmisclib.h without a word in the reference" "" "$lost"
awk '/^struct luam_Metrics/ { inside = 1; next } /^};/ { inside = 0 } inside' code.h |
  sed -n 's/^ .*[ *]\([a-z_]*\);.*/\1/p' > fields.txt
[ "$(wc -l < fields.txt)" -gt 15 ] || fail "the metrics are not found"
lost=
while read -r name; do
  grep -qw -e "$name" "$SOURCE_DIR/doc/reference/lua.md" || lost="$lost $name"
done < fields.txt
same "metrics without a word in the reference" "" "$lost"
