#!/bin/sh
# Data flows one way, and includes show it: each folder includes only what
# ARCHITECTURE.md lets it. The check is tried on wrong lines first.
. "$(dirname "$0")/lib.sh"

# Of src/luajit, the profilers see this header and no other.
guest='src/luajit/guest\.h'
# What readers share with writers: the format and plain helpers beside it.
plain='src/base/(assert|format|status|varint|crc32c|block|sigsafe|signals)\.h'
lua='(lua|lauxlib|lualib|luajit)\.h'

# allowed FOLDER: a regular expression of the project's headers and Lua's that
# files of the folder may include. Other names in <> are the system's.
allowed() {
  case $1 in
  src) echo 'src/(base|push|writer|session)/[^/]*\.h' ;;
  src/luajit) echo "lj_[a-z0-9_]*\.h|$lua|src/(base|luajit|luajit/[a-z]*)/[^/]*\.h|[a-z_]*\.inc" ;;
  profilers) echo "$lua|profilers/[a-z]*/[^/]*\.h|src/(base|push|writer|session)/[^/]*\.h|$guest" ;;
  parsers) echo "parsers/[a-z0-9_/]*\.h|$plain" ;;
  tools) echo "tools/[a-z0-9_/]*\.h|parsers/[a-z0-9_/]*\.h|$plain" ;;
  *) fail "no rule for the folder $1" ;;
  esac
}

# files FOLDER: its own, not those of src/luajit for src.
files() {
  find "$1" -name '*.[ch]' | sort | case $1 in
  src) grep -v '^src/luajit/' ;;
  *) cat ;;
  esac
}

# violations TREE: one line for each include that breaks a rule.
violations() {
  for folder in src src/luajit profilers parsers tools; do
    # Quoted, or Lua's and LuaJIT's in angle brackets.
    (cd "$1" && files $folder | xargs -r grep -nHE \
      '^[[:space:]]*#[[:space:]]*include[[:space:]]*("|<(lua|lauxlib|lualib|luajit|lj_))') |
      RULE="^($(allowed $folder))\$" FOLDER=$folder awk -F '["<>]' '
        $2 !~ ENVIRON["RULE"] {
          split($1, place, ":")
          print place[1] ":" place[2] ": " ENVIRON["FOLDER"] \
                " may not include " $2
        }'
  done
}

# The check itself: each of these lines is a violation, the others are none.
mkdir -p wrong/src/luajit wrong/profilers wrong/parsers wrong/tools
echo '#include "src/luajit/guest.h"' > wrong/src/a.c
echo '# include <lua.h>' > wrong/src/b.c
echo '#include "profilers/unwind/unwind.h"' > wrong/src/luajit/c.c
echo '#include "src/luajit/vm/vmmap.h"' > wrong/profilers/d.c
echo '#include "lj_obj.h"' > wrong/profilers/e.h
echo '#include "src/push/ring.h"' > wrong/parsers/f.c
echo '#include "profilers/api/lmisclib.h"' > wrong/tools/g.c
echo '#include "ring.h"' > wrong/src/h.c
echo '#include "test/support/x.h"' > wrong/tools/i.c
same "nine planted violations are found" "9" "$(violations wrong | wc -l)"
rm -rf wrong/*
mkdir -p wrong/src/luajit wrong/profilers wrong/parsers wrong/tools
printf '%s\n' '#include "src/push/ring.h"' '#include <stdio.h>' > wrong/src/a.c
echo '#include "lj_obj.h"' > wrong/src/luajit/c.c
printf '%s\n' '#include "src/luajit/guest.h"' '#include "lua.h"' \
  > wrong/profilers/d.c
echo '#include "src/base/format.h"' > wrong/parsers/f.c
echo '#include "parsers/stream/reader.h"' > wrong/tools/g.c
same "allowed includes are none" "" "$(violations wrong)"

n=$(cd "$SOURCE_DIR" && find src profilers parsers tools -name '*.[ch]' | wc -l)
[ "$n" -ge 8 ] || fail "only $n files were found"
same "the project keeps its layers ($n files)" "" "$(violations "$SOURCE_DIR")"
