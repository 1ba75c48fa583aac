#!/bin/sh
# Labels in each view: reports by label, the filter, frames of labels, and what is
# said of labels that the file does not have.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
"$BUILD_DIR/bin/labelled_stream" one.ljp || fail "labelled_stream"
"$BUILD_DIR/bin/labelled_stream" two.ljp 13 || fail "labelled_stream"

# rows OPTION...: the names and self samples or objects of a report.
rows() {
  "$ljprof" report --json "$@" > rows.json 2> err.txt || fail "$*: $(cat err.txt)"
  sed -nE 's/^\{"name":"([^"]*)","self_(samples|objects)":([0-9]+).*/\1 \3/p' \
    rows.json | sort | tr '\n' ' ' | sed 's/ $//'
}

same "dump has sets of labels" 'labels id=1 route="/a" tenant="x"' \
  "$("$ljprof" dump one.ljp | sed -n 's/^  \(labels id=1 .*\)/\1/p')"
same "dump has them below stacks" 32 \
  "$("$ljprof" dump one.ljp | grep -c '^    labels   route="/a" tenant="x"')"
"$ljprof" dump --json one.ljp | grep -F -q \
  '{"type":"labels","id":3,"labels":[{"key":"route","value":"/b"}]}' ||
  fail "dump --json"
ok "dump --json has them"

same "report by label" "(none) 5 /a 48 /b 21" "$(rows --by label:route one.ljp)"
same "by another label" "(none) 26 x 31 y 17" "$(rows --by label:tenant one.ljp)"
same "live objects by label" "(none) 2 x 1 y 1" \
  "$(rows --live --by label:tenant one.ljp)"
same "leaks by label" "(none) 1 /a 2 /b 1" \
  "$(rows --leaks --by label:route one.ljp)"
same "the keys of the file" '"labels":[{"key":"route","values":2},{"key":"tenant","values":2}]' \
  "$(grep -o '"labels":[^]]*]' rows.json)"
"$ljprof" report one.ljp 2> err.txt | grep -q \
  '^labels: route (2 values), tenant (2 values) ' || fail "no line of labels"
ok "the text says which labels there are"
"$ljprof" report --by label:route one.ljp > text.txt 2>&1 || fail "text"
grep -q '^  48.00 ms  64.86%         48  /a$' text.txt || fail "$(cat text.txt)"
ok "the table has the values"

same "one label" "(no stack) 3 handle 0 query 18" \
  "$(rows --label route=/b one.ljp | sed -E 's/ app.lua:[0-9]+//g')"
same "two labels" "handle 0 query 17" \
  "$(rows --label route=/a --label=tenant=y one.ljp | sed -E 's/ app.lua:[0-9]+//g')"
same "without a label" "handle 0 query 5" \
  "$(rows --label route= one.ljp | sed -E 's/ app.lua:[0-9]+//g')"
same "a label in one thread" "(none) 5 /b 10" \
  "$(rows --by label:route --thread worker --label tenant= one.ljp)"
"$ljprof" report --json --label route=/b one.ljp > part.json 2> err.txt
grep -q '"alloc_bytes":7002,"free_events":1,"free_bytes":3001' part.json ||
  fail "memory of a label: $(cat part.json)"
ok "a block counts for the labels of its allocation, whoever frees it"

refuses "a key that no event has" 1 \
  "ljprof report: one.ljp: there is no label 'rout'; those of the file are 'route', 'tenant'" \
  "$ljprof" report --label rout=/a one.ljp
refuses "a value that no event has" 1 \
  "ljprof report: one.ljp: the label 'route' never has the value '/c'; its values are '/a', '/b'" \
  "$ljprof" report --label route=/c one.ljp
refuses "a file without labels" 1 \
  "ljprof report: $SOURCE_DIR/test/data/killed.ljp: there is no label 'route': the file has no labels" \
  "$ljprof" report --by label:route "$SOURCE_DIR/test/data/killed.ljp"
refuses "no value" 2 \
  "ljprof report: --label: 'route' is not KEY=VALUE (KEY= for what does not have KEY)" \
  "$ljprof" report --label route one.ljp
refuses "no key" 2 "ljprof flame: --by: 'label:' is not label:KEY" \
  "$ljprof" flame --by label: -o page.html one.ljp
refuses "the whole collector" 2 \
  "ljprof report: --gc-cost divides the collector's time over the whole session, so --label cannot be given with it" \
  "$ljprof" report --gc-cost --label route=/a one.ljp
refuses "a tree" 2 \
  "ljprof report: a tree can show functions, lines, files, modules or kinds, but not 'label:route'" \
  "$ljprof" report --tree --by label:route one.ljp
many=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do many="$many --label a=$i"; done
# shellcheck disable=SC2086 # They are words.
refuses "too many" 2 "ljprof report: option '--label' is given more than 16 times" \
  "$ljprof" report $many one.ljp

"$ljprof" export --to collapsed --by label:route --lua -o stacks.txt one.ljp \
  2> err.txt || fail "export: $(cat err.txt)"
same "frames of labels" "route=(none) 5 route=/a 48 route=/b 21" \
  "$(sed 's/;.* / /' stacks.txt | awk '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' |
    sort | tr '\n' ' ' | sed 's/ $//')"
"$ljprof" flame --by label:tenant -o page.svg one.ljp 2> err.txt ||
  fail "flame: $(cat err.txt)"
grep -q 'tenant=x' page.svg || fail "no frame in the drawing"
"$ljprof" flame --by label:tenant -o page.html one.ljp 2> err.txt ||
  fail "flame: $(cat err.txt)"
grep -q '"tenant=x"' page.html || fail "no frame in the page"
"$ljprof" flame -o whole.html one.ljp 2> err.txt || fail "flame: $(cat err.txt)"
for set in '{"route":"/a","tenant":"x"}' '{"route":"/a","tenant":"y"}' \
  '{"route":"/b"}'; do
  grep -F -q "\"labels\":$set" whole.html || fail "the page has no $set"
done
grep -F -q '"state":"interpreter"}' whole.html || fail "rows without labels"
ok "flame graphs are divided"
refuses "formats without labels" 2 \
  "ljprof export: --by: the format ljp is of Tarantool's tools, which know no labels" \
  "$ljprof" export --to ljp --by label:route -o x one.ljp

"$ljprof" merge --unrelated -o both.ljp one.ljp two.ljp 2> err.txt ||
  fail "merge: $(cat err.txt)"
same "merged sessions have the same sets" "(none) 10 /a 96 /b 55" \
  "$(rows --by label:route both.ljp)"
same "and as many values" 2 \
  "$(grep -o '"key":"route","values":[0-9]*' rows.json | grep -o '[0-9]*$')"
"$ljprof" diff --total --all --by label:route one.ljp two.ljp > diff.txt \
  2> err.txt || fail "diff: $(cat err.txt)"
grep -q 'route=/b' diff.txt || fail "diff: $(cat diff.txt)"
ok "diff compares by label"
"$ljprof" diff --json --label route=/a one.ljp two.ljp > diff.json 2> err.txt ||
  fail "diff: $(cat err.txt)"
ok "diff of one label"
"$ljprof" expect --label route=/b one.ljp 'samples <= 21 samples' \
  'live <= 4001 B' > expect.txt 2>&1 || fail "expect: $(cat expect.txt)"
ok "budgets of one label"
"$ljprof" advise --label route=/b one.ljp > advise.txt 2>&1 ||
  fail "advise: $(cat advise.txt)"
ok "advice on one label"
