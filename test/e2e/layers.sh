#!/bin/sh
# Data flows one way, and the includes show it. Each folder includes only what
# the table below allows, and the folders form no circle. The check proves
# itself on planted mistakes before it looks at the project.
. "$(dirname "$0")/lib.sh"

# Each folder with the folders whose headers it may include, besides its own.
# "parsers/*" is every folder below parsers. Three words stand for headers that
# are not a whole folder:
#   plain  the file format and the helpers that readers share with writers
#   lua    Lua's public headers
#   vm     LuaJIT's private headers and the tables generated from its build
cat > table << END
src/base              -
src/push              src/base
src/writer            src/push src/base
src/session           src/writer src/push src/base

src/luajit            src/base lua
src/luajit/vm         src/luajit src/base vm
src/luajit/asm        src/luajit src/base vm
src/luajit/functions  src/luajit/vm src/luajit src/base vm
src/luajit/traces     src/luajit/functions src/luajit/vm src/luajit src/base vm
src/luajit/heap       src/luajit/vm src/luajit src/base vm
src/luajit/frames     src/luajit/traces src/luajit/functions src/luajit/asm \
                      src/luajit/vm src/luajit src/base vm
src/luajit/spine      src/luajit/frames src/luajit/vm src/luajit src/base vm
src/luajit/hooks      src/luajit/traces src/luajit/functions src/luajit/vm \
                      src/luajit src/base vm

profilers/unwind      src/luajit src/base
profilers/session     profilers/unwind src/session src/push src/luajit src/base
profilers/jit         profilers/session profilers/unwind \
                      src/session src/push src/luajit src/base
profilers/cpu         profilers/jit profilers/session profilers/unwind \
                      src/session src/push src/luajit src/base
profilers/memory      profilers/jit profilers/session profilers/unwind \
                      src/session src/push src/luajit src/base lua
profilers/join        profilers/cpu profilers/memory profilers/session \
                      profilers/unwind src/session src/push src/luajit src/base
profilers/api         profilers/cpu profilers/memory profilers/jit \
                      profilers/join profilers/session src/session src/luajit src/base lua

parsers/base          plain
parsers/stream        parsers/base plain
parsers/tarantool     parsers/stream parsers/base plain
parsers/symbols       parsers/stream parsers/base plain
parsers/heap          parsers/profile parsers/stream parsers/base plain
parsers/profile       parsers/tarantool parsers/symbols parsers/stream parsers/base plain

tools/shared          parsers/* plain
tools/exporter        tools/join tools/shared parsers/* plain
tools/gather          tools/shared parsers/* plain
tools/expect          tools/report tools/shared parsers/* plain
tools/advise          tools/shared parsers/* plain
tools/export          tools/heap tools/shared parsers/* plain
tools/heap            tools/join tools/shared parsers/* plain
tools/inspect         tools/shared parsers/* plain
tools/page            tools/heap tools/shared parsers/* plain
tools/join            tools/shared parsers/* plain
tools/push            tools/export tools/shared parsers/* plain
tools/record          tools/join tools/shared parsers/* plain
tools/stacks          tools/join tools/shared parsers/* plain
tools/report          tools/heap tools/shared parsers/* plain
tools/rewrite         tools/shared parsers/* plain
tools/top             tools/report tools/record tools/join tools/shared \
                      parsers/* plain
tools                 tools/* plain
END

# What the three words mean: extended regular expressions of whole names.
plain='src/base/(call_number|format|heap_format|join|join_message|join_stacks|shown|status|varint|crc32c|block|settings|sigsafe|signals|store_lock|store_name|store_room|assert|nearest|newfile|own_path|preload|tarantool|target|waits)\.h'
lua='(lua|lauxlib|lualib|luajit)\.h'
vm='(lj_[a-z0-9_]+\.h|[a-z_]+\.inc)'

# includes TREE: a line "file:line folder name" for each include of our own
# headers, Lua's or LuaJIT's; other names in angle brackets are the system's.
includes() {
  (cd "$1" && find src profilers parsers tools -name '*.[ch]' | sort |
    xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include') |
    sed -E 's,^((.*)/[^/]*:[0-9]+):[^"<]*(["<][^">]*).*,\1 \2 \3,' |
    grep -E " (\"|<$lua$|<lj_|<(src|profilers|parsers|tools|test)/)" |
    tr -d '"<'
}

# arrows: of includes, each pair of folders once.
arrows() {
  awk '{
    to = $3
    if (sub("/[^/]*$", "", to) && to != $2) print $2, to
  }' | sort -u
}

# violations TREE: a line for each include that the table does not allow, and
# for each folder that is not in the table or is only there.
violations() {
  find "$1/src" "$1/profilers" "$1/parsers" "$1/tools" -name '*.[ch]' |
    sed "s,^$1/,,; s,/[^/]*\$,," | sort -u > folders
  awk 'NF { print $1 }' table | sort > named
  comm -23 folders named | sed 's/$/: this folder is not in the table/'
  comm -13 folders named | sed 's/$/: the table names a folder without sources/'
  includes "$1" | PLAIN="^$plain\$" LUA="^$lua\$" VM="^$vm\$" awk '
    FILENAME == "table" {
      for (i = 2; i <= NF; i++) may[$1, $i] = 1
      may[$1, $1] = 1
      next
    }
    {
      folder = $3
      if (!sub("/[^/]*$", "", folder)) folder = "-"
      below = folder
      sub("/.*", "/*", below)
      if (may[$2, folder] || may[$2, below] || may[$2, "plain"] && $3 ~ ENVIRON["PLAIN"] ||
          may[$2, "lua"] && $3 ~ ENVIRON["LUA"] ||
          may[$2, "vm"] && $3 ~ ENVIRON["VM"])
        next
      print $1 ": " $2 " may not include " $3
    }' table -
}

# circles TREE: the folders that include each other, directly or not.
circles() {
  includes "$1" | arrows | tsort 2>&1 > order |
    sed -n 's/^tsort: \([^-]\)/\1/p'
}

# plant FILE INCLUDE...: a source file with these includes.
plant() {
  file=planted/$1
  shift
  mkdir -p "${file%/*}"
  for name in "$@"; do
    echo "#include $name"
  done > "$file"
}

# Every folder of the table exists in the planted tree.
plant_folders() {
  rm -rf planted
  awk 'NF { print $1 }' table | while read -r folder; do
    plant "$folder/empty.c"
  done
}

plant_folders
plant src/base/a.c '"src/push/ring.h"'
plant src/push/b.c '"src/writer/writer.h"'
plant src/writer/c.c '<lua.h>'
plant src/session/d.c '"src/luajit/walk.h"'
plant src/luajit/e.h '"lj_obj.h"'
plant src/luajit/traces/f.c '"src/push/ring.h"'
plant profilers/unwind/g.c '"profilers/cpu/sampler.h"'
plant profilers/cpu/h.c '"profilers/memory/track.h"'
plant profilers/memory/i.c '"profilers/api/options.h"'
plant profilers/cpu/j.c '"src/luajit/vm/lock.h"'
plant profilers/api/k.c '<lj_obj.h>'
plant parsers/stream/l.c '"parsers/profile/profile.h"'
plant parsers/stream/m.c '"src/base/clock.h"'
plant tools/export/n.c '"tools/page/page.h"'
plant tools/report/o.c '"src/session/session.h"'
plant tools/p.c '"parsers/stream/reader.h"'
plant tools/shared/q.c '"test/support/json.h"'
plant src/push/r.c '"ring.h"'
plant src/push/s.c '<src/session/session.h>'
printf '  #  include\t"src/session/session.h"\n' > planted/src/push/t.c
violations planted > found
for letter in a b c d e f g h i j k l m n o p q r s t; do
  grep -q "/$letter\.[ch]:" found || fail "the planted $letter.c is not found"
done
same "20 planted violations are found" "20" "$(wc -l < found)"

plant_folders
plant src/push/a.c '"src/push/ring.h"' '"src/base/futex.h"' '<stdio.h>'
plant src/luajit/vm/b.c '"lj_obj.h"' '"vmmap.inc"' '"src/luajit/walk.h"'
plant profilers/api/c.c '"lua.h"' '<lauxlib.h>' '"profilers/cpu/sysprof.h"'
plant parsers/stream/d.c '"src/base/format.h"' '<zstd.h>'
plant tools/e.c '"tools/report/report.h"' '"tools/shared/command.h"'
same "allowed includes are no violations" "" "$(violations planted)"

plant profilers/new/a.c
same "a new folder is an error" \
  "profilers/new: this folder is not in the table" "$(violations planted)"
rm -r planted/profilers/new planted/tools/page
same "a folder that is gone is an error" \
  "tools/page: the table names a folder without sources" "$(violations planted)"

plant_folders
plant src/luajit/frames/a.c '"src/luajit/traces/trace.h"'
plant src/luajit/traces/b.c '"src/luajit/vm/vms.h"'
same "a planted chain is no circle" "" "$(circles planted)"
plant src/luajit/vm/c.c '"src/luajit/frames/walk.h"'
same "a planted circle is found" \
  "src/luajit/frames src/luajit/traces src/luajit/vm" \
  "$(circles planted | sort | tr '\n' ' ' | sed 's/ $//')"

n=$(cd "$SOURCE_DIR" && find src profilers parsers tools -name '*.[ch]' | wc -l)
[ "$n" -ge 200 ] || fail "only $n files were found"
echo "The arrows that the code has:"
includes "$SOURCE_DIR" | arrows | awk '
  $1 != from {
    if (from) print line
    from = $1
    line = sprintf("%-21s ->", from)
  }
  { line = line " " $2 }
  END { print line }'
same "the project keeps its layers ($n files)" "" "$(violations "$SOURCE_DIR")"
same "no circle of folders" "" "$(circles "$SOURCE_DIR")"
