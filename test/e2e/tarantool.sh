#!/bin/sh
# Files of Tarantool's profilers: what every view says of them equals what
# Tarantool's own tools report, and independent decodes where those drop
# something. Bad files are refused, or shown as far as they go.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
data=$SOURCE_DIR/test/data/tarantool
run() { "$luajit" "$SOURCE_DIR/test/e2e/tarantool.lua" "$@"; }

for file in "$data"/*.bin.zst; do
  name=${file##*/}
  run unpack "$file" "${name%.zst}" || fail "cannot unpack $name"
done
for file in *.bin; do
  run compare "$ljprof" "$file" "$data/${file%.bin}" > out.txt 2>&1 ||
    fail "$file: $(cat out.txt)"
  ok "$file: $(tail -n 1 out.txt)"
done

# Times and processes are not in the files, and not in the views.
for file in memprof-enrich.bin sysprof-C-joff-coro.bin; do
  "$ljprof" report "$file" > text.txt || fail "report $file"
  "$ljprof" report --json "$file" > json.txt || fail "report --json $file"
  ! grep -E '[0-9] n?s( |$)|pid|over [0-9]' text.txt ||
    fail "$file: the report has times"
  ! grep -oE '"[a-z_]*_ns"|duration' json.txt || fail "$file: JSON has times"
done
ok "reports have no times"
"$ljprof" report --by state sysprof-C-joff-coro.bin > states.txt
same "states" "Lua builtin interpreter" \
  "$(awk 'NR > 3 { print $3 }' states.txt | xargs)"
refuses "times to select" 1 "it has no times to select by" \
  "$ljprof" report --time 1..2 memprof-enrich.bin
refuses "threads to select" 1 "it has no threads to select by" \
  "$ljprof" report --thread main sysprof-C-joff-coro.bin

# The other views count samples, or say what they need.
"$ljprof" export --to collapsed -o - sysprof-C-joff-nested.bin > stacks.txt ||
  fail "export --to collapsed"
same "collapsed stacks add up" 171 \
  "$(awk '{ n += $NF } END { print n }' stacks.txt)"
for format in pprof speedscope callgrind perf-script; do
  for file in memprof-jon-clos.bin sysprof-C-joff-coro.bin; do
    "$ljprof" export --to $format -o out --force "$file" ||
      fail "export --to $format $file"
  done
done
grep -q '^thread .* 1 cpu-clock:$' out || fail "samples of perf-script"
grep -q '^# recorded by .*: the file has no times' out ||
  fail "perf-script does not say what its times are: $(head -n 4 out)"
refuses "ljp of ljp" 1 "by Tarantool's sysprof, so it is in this format" \
  "$ljprof" export --to ljp -o x sysprof-C-joff-coro.bin
refuses "merge" 1 "is a file of Tarantool's profilers: only ljprof's own" \
  "$ljprof" merge -o x memprof-jon-clos.bin
refuses "embed" 1 "is a file of Tarantool's profilers: such files have" \
  "$ljprof" embed sysprof-C-joff-coro.bin
refuses "a trace of times" 1 "has no times" \
  "$ljprof" export --to chrome-trace -o - sysprof-C-joff-coro.bin
"$ljprof" flame --svg --native -o - sysprof-C-joff-coro.bin > page.svg || fail "flame --svg"
grep -q '<title>_start&#10;38 samples, 100.0 %' page.svg || fail "samples in SVG"
"$ljprof" flame -o page.html sysprof-C-joff-coro.bin || fail "flame"
grep -q '"untimed":true,"title"' page.html || fail "the page is not untimed"
grep -q '"name":"CPU","unit":"samples"' page.html || fail "samples in the page"
"$ljprof" diff memprof-joff-churn.bin memprof-jon-clos.bin > diff.txt ||
  fail "diff"
grep -q '^Allocations: 3.76 MiB before, 2.11 MiB after$' diff.txt ||
  fail "diff: $(cat diff.txt)"
"$ljprof" diff --json sysprof-C-joff-nested.bin sysprof-C-jon-nested.bin \
  > diff.json || fail "diff --json"
grep -q '"unit":"samples","per_second":false' diff.json || fail "diff of samples"
! grep -q '_ns"' diff.json || fail "diff has times"
refuses "times against samples" 1 "it can only be compared by shares" \
  "$ljprof" diff sysprof-C-joff-nested.bin "$SOURCE_DIR/test/data/every-record.ljp"
"$ljprof" diff --share sysprof-C-joff-nested.bin \
  "$SOURCE_DIR/test/data/every-record.ljp" > diff.txt || fail "diff --share"
ok "other views"

# Standard input, which cannot be read twice.
"$ljprof" report --json - < sysprof-C-joff-coro.bin > stdin.txt ||
  fail "report -"
"$ljprof" report --json sysprof-C-joff-coro.bin | cmp - stdin.txt ||
  fail "standard input differs"
ok "standard input"

# Files cut short: everything before the cut, and where it is.
head -c 200000 memprof-joff-churn.bin > cut.bin
"$ljprof" report --json cut.bin > json.txt || fail "report of a cut file"
grep -q '"alloc_events":3534,' json.txt || fail "events before the cut"
grep -q 'cut short: it ends at byte 200000, within the event that begins at byte 199991' \
  json.txt || fail "the place of the cut"
refuses "check of a cut file" 1 "whole=false" "$ljprof" check cut.bin
head -c 132584 sysprof-C-joff-nested.bin > cut.bin
"$ljprof" report --json cut.bin > json.txt || fail "report of a cut file"
grep -q '"samples":158,' json.txt || fail "samples before the cut"
ok "cut files"

# What is no such file, or is one that cannot be read.
symbols=$(LC_ALL=C grep -obUaF ljm memprof-joff-churn.bin | head -n 1 | cut -d: -f1)
head -c "$symbols" memprof-joff-churn.bin > symbols.bin
refuses "symbols alone" 1 "(5711 symbols) without events" \
  "$ljprof" report symbols.bin
head -c 1000 memprof-joff-churn.bin > part.bin
refuses "a part of the symbols" 1 "cut short: it ends at byte 1000, within the symbol table" \
  "$ljprof" report part.bin
printf 'ljs\002\0\0\0\200ljm\003\0\0\0\200' > old.bin
refuses "old symbols" 1 "have version 2; this program reads version 3" \
  "$ljprof" report old.bin
printf 'ljs\003\0\0\0\200ljp\001\0\0\0\200' > old.bin
refuses "old samples" 1 "(ljp) have version 1; this program reads version 2" \
  "$ljprof" report old.bin
printf 'ljs\003\0\0\0\200ljx\003\0\0\0\200' > other.bin
refuses "other events" 1 "neither memory events (ljm) nor samples (ljp)" \
  "$ljprof" dump other.bin
printf 'sjl\003\0\0\0\200' > other.bin
refuses "another order of bytes" 1 "not an ljprof stream" \
  "$ljprof" report other.bin
printf 'ljs\003\0\0\0\001\020\377\377\377\377\017abc' > long.bin
refuses "a string of 4 GB" 1 "a string of 4294967295 bytes" \
  "$ljprof" report long.bin
printf 'ljs\003\0\0\0\001\020\377\377\377\377\377\377\377\377\377\377\001' > long.bin
refuses "a number of 70 bits" 1 "a number of more than 64 bits" \
  "$ljprof" report long.bin

# Events of symbols that are not there, and a byte that makes no sense.
printf 'ljs\003\0\0\0\200ljm\003\0\0\0\011\020\007\100\005\015\040\100\006\021\003\100\007\077' \
  > unknown.bin
"$ljprof" report --json --by function unknown.bin > json.txt || fail "report unknown.bin"
for name in '(unknown Lua function 16)' '0x20' '(unknown trace 3)'; do
  grep -qF "\"name\":\"$name\"" json.txt || fail "no $name: $(cat json.txt)"
done
grep -q 'damaged at byte 28: 0x3f is no event' json.txt || fail "the bad byte"
ok "unknown symbols and a bad byte"

# A place that only shrinks blocks to nothing has its row, too.
printf 'ljs\003\0\0\0\200ljm\003\0\0\0\011\021\003\101\007\013\020\002\100\007\100\000\200' \
  > shrink.bin
"$ljprof" report --json --by line shrink.bin > json.txt || fail "report shrink.bin"
grep -q '"name":"(unknown Lua function 16)".*"reallocs":1,' json.txt ||
  fail "no row of reallocations to 0 bytes: $(cat json.txt)"
ok "reallocations to 0 bytes"

# A table has the newest symbols first: a trace comes before its function. And
# chunks whose names are empty, or nothing but a mark, are chunks of their own.
printf 'ljs\003\0\0\0\002\001\020\005\000\020\002@a\003\000\021\000\002\000\022\001@\002\000\023\001=\002\200ljm\003\0\0\0\021\001\100\007\011\021\002\101\007\011\022\002\102\007\011\023\002\103\007\200' \
  > order.bin
"$ljprof" report --json --by line order.bin > json.txt || fail "report order.bin"
for name in 'trace 1 a:5' '[string \"\"]:2' '@:2' '=:2'; do
  grep -qF "{\"name\":\"$name\"" json.txt || fail "no $name: $(cat json.txt)"
done
ok "a trace before its function, and chunks without a name"

# Long chunk names that begin alike stay apart, and their lines, too.
x=$(head -c 4999 /dev/zero | tr '\0' x)
printf 'ljs\003\0\0\0\000\020\210\047%sa\000\000\021\210\047%sb\000\200ljm\003\0\0\0\011\020\002\100\007\011\020\003\101\007\011\021\002\102\007\200' \
  "$x" "$x" > long.bin
"$ljprof" report --json --by line long.bin > json.txt || fail "report long.bin"
names=$(grep -oE '"name":"\[string \\"x{60}\.\.\.\\" 5000 bytes, [0-9a-f]{16}\]:[23]"' json.txt | sort -u)
same "names of long chunks" 3 "$(echo "$names" | wc -l)"
