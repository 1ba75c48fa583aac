#!/bin/sh
# Docs and comments name files. Each of these files exists, so that a file that
# was moved leaves no stale name. The check proves itself on planted names
# before it looks at the project.
#
# It checks a path whose first folder has the name of one of ours, written
# from the root or from any folder below; a path from one of the roots (src/, ...
# doc/) even without an ending; and the plain name of a C file or a header. It
# skips placeholders (test/e2e/NAME.sh, src/*.c) and the names of LuaJIT's own
# files (lj_*, lib_*, luajit.c).
# shellcheck disable=SC2016 # awk's own fields, and backquotes of Markdown
. "$(dirname "$0")/lib.sh"

kinds='md|c|cc|h|js|mjs|css|lua|sh|txt|cmake|patch|proto'

# stale TREE: a line "file:line: name" for each name of a file that is missing.
stale() {
  tree_files "$1" > files
  grep -E "\.($kinds)\$|^run\$|^cmake/|/compare\$" files |
    grep -v '^test/data/' > checked
  (cd "$1" && xargs awk -v list="$SCRATCH/files" '
    # Every file and folder, and every end of its path, is a name.
    function learn(path,   folder) {
      whole[path] = 1
      for (;;) {
        ours[path] = 1
        if (!sub("^[^/]*/", "", path)) return
      }
    }
    BEGIN {
      while ((getline path < list) > 0) {
        learn(path)
        while (sub("/[^/]*$", "", path)) {
          learn(path)
          folder = path
          sub(".*/", "", folder)
          folders[folder] = 1
        }
      }
      endings = "[.](c|h|md|lua|sh|js|mjs|txt|cmake|json|css|html|patch|proto)$"
      roots = "^(src|profilers|parsers|tools|test|bench|cmake|doc|examples)/."
      foreign = "(^|/)(lj_|lib_|luajit[.][ch]|vmdef[.]lua)"
      headers = "^(lua|lauxlib|lualib|cmocka|pprof[.]pb-c)[.]h$"
    }

    # c_comment(LINE): what of a line is inside of comments.
    function c_comment(line,   out, at, slashes) {
      out = ""
      while (line != "") {
        if (inside) {
          at = index(line, "*/")
          inside = !at
          out = out " " (at ? substr(line, 1, at - 1) : line)
          line = at ? substr(line, at + 2) : ""
          continue
        }
        at = index(line, "/*")
        slashes = match(line, "(^|[ \t;])//")
        if (slashes && (!at || slashes < at))
          return out " " substr(line, slashes)
        inside = at > 0
        line = at ? substr(line, at + 2) : ""
      }
      return out
    }
    FNR == 1 {
      inside = 0
      kind = FILENAME
      if (kind ~ "[.]txt$" || !sub(".*[.]", "", kind)) kind = "sh"
    }
    {
      if (kind ~ "^(c|cc|h|js|mjs|css|proto)$") text = c_comment($0)
      else if (kind == "md" || kind == "patch") text = $0
      else if (match($0, kind == "lua" ? "--" : "(^|[ \t])#"))
        text = substr($0, RSTART)
      else next
      while (match(text, "[A-Za-z0-9_.*$<>{}/-]+")) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        sub("^([.][.]?/)+", "", word)
        sub("[./]+$", "", word)
        if (word in ours || word ~ "[*$<>{}]|NAME" || word ~ foreign) continue
        first = word
        sub("/.*", "", first)
        if (first != word)
          name = first in folders && word ~ endings || word ~ roots
        else
          name = word ~ "[.][ch]$" && word !~ headers
        if (name) print FILENAME ":" FNR ": " word
      }
    }' < "$SCRATCH/checked")
}

# plant FILE LINE...
plant() {
  mkdir -p "planted/$(dirname "$1")"
  file=planted/$1
  shift
  printf '%s\n' "$@" > "$file"
}

plant src/push/ring.c '/* See src/push/ring.h, push/ring.h, ring.h; and also' \
  ' * src/base/gone1.h. */' 'int x; // gone2.c' '"src/base/data.h"'
plant src/push/ring.h '/* push/gone3.h */ "gone.h" /* gone4.c */'
plant test/e2e/a.sh '# In src/push/gone5.c, e2e/NAME.sh, src/lj_gc.c, sys/mman.h'
plant test/e2e/b.lua '-- Not e2e/gone6.lua, but e2e/b.lua.' 'x = "e2e/c.lua"'
plant doc/guide/a.md 'See `src/gone7/`, src/push/, (../../src/push/gone8.c).'
plant README.md '[guide](doc/guide/gone9.md), [other](doc/guide/a.md)'
stale planted > found
for n in 1 2 3 4 5 6 7 8 9; do
  grep -q "gone$n" found || fail "the planted name gone$n is not found"
done
same "nine planted names are found, and no others" "9" "$(wc -l < found)"

n=$(tree_files "$SOURCE_DIR" | wc -l)
[ "$n" -ge 300 ] || fail "only $n files were found"
same "docs and comments name files that exist" "" "$(stale "$SOURCE_DIR")"
