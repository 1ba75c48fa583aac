#!/bin/sh
# No source file is longer than 500 lines and no function longer than 80. A
# file that has outgrown the limit has found a second job; so has a function.
# Tables do not count as functions. Before the script checks the project, it
# checks planted files, some of which must fail.
. "$(dirname "$0")/lib.sh"
file_limit=500
function_limit=80

# files TREE: the source files to measure.
files() {
  tree_files "$1" | grep -E '\.(c|h|js|mjs|lua|sh)$|^run$|^cmake/[^.]*$'
}

# long_files TREE: a line "file lines" for each file above the limit.
long_files() {
  (cd "$1" && files . | xargs wc -l) |
    awk -v limit=$file_limit '$2 != "total" && $1 > limit { print $2, $1 }'
}

# long_functions TREE: a line "file name lines" for each function above the
# limit. A function begins and ends at column 0; in C its brace has a line of
# its own, and the name stands before the first parenthesis above it.
# shellcheck disable=SC2016 # awk's own fields
long_functions() {
  (cd "$1" && files . | xargs awk -v limit=$function_limit '
    function begin(text) {
      sub(/ *[(].*/, "", text)
      sub(/.*[ *]/, "", text)
      name = text
      first = FNR
    }
    FNR == 1 {
      first = 0
      kind = FILENAME
      if (!sub(/.*[.]/, "", kind)) kind = "sh"
    }
    kind ~ /^[ch]$/ && /^[A-Za-z_].*[(]/ { above = $0 }
    kind ~ /^[ch]$/ && /^[{]$/ { begin(above) }
    kind == "lua" && /^(local )?function / && !/ end$/ { begin($0) }
    kind ~ /^m?js$/ && /^(export )?(async )?function/ && !/[}]$/ { begin($0) }
    kind == "sh" && /^[a-z_0-9]+[(][)]/ && !/[}]$/ { begin($0) }
    /^(end|[}])/ {
      if (first && FNR - first + 1 > limit)
        print FILENAME, name, FNR - first + 1
      first = 0
    }')
}

# too_long TREE: a message for each file and each function above the limits.
too_long() {
  { long_files "$1" && long_functions "$1"; } | awk '
    NF == 2 { print $1 ": " $2 " lines" }
    NF == 3 { print $1 ": " $2 "() has " $3 " lines" }'
}

# body LINES FIRST LAST: prints LINES lines, which begin with FIRST and end with
# LAST.
body() {
  echo "$2"
  seq -f '  line(%g);' "$(($1 - 2))"
  echo "$3"
}

mkdir planted
{
  echo 'static int c_good(int a)'
  body 80 '{' '}'
  echo 'static const int *c_bad(int a,'
  echo '                        int b)'
  body 81 '{' '}'
  body 200 'static const int table[] = {' '};'
} > planted/a.c
{
  body 80 'local function lua_good()' 'end'
  body 99 'local function lua_short() return 1 end' 'x = 1'
  body 81 'local function lua_bad()' 'end'
} > planted/b.lua
{
  body 80 'sh_good() {' '}'
  body 81 'sh_bad() {' '}'
} > planted/c.sh
{
  body 80 'export function js_good() {' '}'
  body 81 'async function js_bad() {' '}'
} > planted/d.mjs
same "a function of 81 lines is too long, in each language" \
  "a.c c_bad 81, b.lua lua_bad 81, c.sh sh_bad 81, d.mjs js_bad 81" \
  "$(long_functions planted | paste -s -d ',' | sed 's/,/, /g')"
rm planted/*
seq 500 > planted/a.c
seq 501 > planted/b.h
seq 501 > planted/run
seq 501 > planted/data.txt
same "a file of 501 lines is too long" "b.h 501, run 501" \
  "$(long_files planted | paste -s -d ',' | sed 's/,/, /g')"

n=$(files "$SOURCE_DIR" | wc -l)
[ "$n" -ge 300 ] || fail "only $n files were found"
same "no file and no function is too long ($n files)" "" \
  "$(too_long "$SOURCE_DIR")"
