#!/bin/sh
# ljprof flame and ljprof diff: pages, drawings and reports of golden streams,
# existing output files, and errors.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data
whole=$data/every-record.ljp

# Each golden stream yields a page and a drawing.
for file in "$data"/*.ljp; do
  "$ljprof" flame "$file" -o page.html --force --no-symbols ||
    fail "no page of $file"
  head -c 15 page.html | grep -qix '<!doctype html>' || fail "no page: $file"
  tail -c 8 page.html | grep -q '</html>' || fail "the page has no end: $file"
  same "one script, one block of data: ${file##*/}" 2 \
    "$(grep -c '</script>' page.html)"
  # The page must not load anything.
  grep -qE "(src|href)=[\"'](https?:)?//" page.html &&
    fail "the page names something outside"
  "$ljprof" flame "$file" --svg -o page.svg --force --no-symbols ||
    fail "no drawing of $file"
  tail -n 1 page.svg | grep -qx '</svg>' || fail "the drawing has no end"
done
[ "$(wc -c < page.html)" -lt 200000 ] || fail "the page of a small file is large"
ok "the page of a small profile is small: $(wc -c < page.html) bytes"
if command -v python3 > /dev/null; then
  python3 -c 'import sys, xml.dom.minidom as d; d.parse("page.svg")' ||
    fail "a drawing is no XML"
  "$ljprof" flame "$whole" -o page.html --force --no-symbols
  python3 -c 'if True:
    import json, re
    page = open("page.html", encoding="utf-8").read()
    data = re.search("id=\"data\">([^<]*)</script>", page).group(1)
    data = json.loads(data)
    assert [v["id"] for v in data["views"]][:1] == ["cpu"], data["views"]
    assert data["title"] == "every-record.ljp"
    assert any("lost" in n["text"] for n in data["notices"]), data["notices"]
  ' || fail "the data of a page is wrong"
  ok "drawings are XML, data is JSON, losses are in it"
fi

# Standard output, existing files, full disks.
"$ljprof" flame "$whole" -o - > out.html || fail "-o -"
"$ljprof" flame "$whole" -o named.html || fail "a new file"
cmp out.html named.html || fail "-o - writes something else"
ok "-o - writes the same to standard output"
"$ljprof" flame - -o stdin.html < "$whole" || fail "from standard input"
ok "standard input is read"
echo kept > kept.html
refuses "a file that exists" 1 "kept.html" \
  "$ljprof" flame "$whole" -o kept.html
same "it is kept" kept "$(cat kept.html)"
refuses "a folder that is not there" 1 "nowhere" \
  "$ljprof" flame "$whole" -o nowhere/page.html
refuses "a full disk" 1 "No space left" "$ljprof" flame "$whole" -o /dev/full
"$ljprof" flame "$whole" -o - 2> err.txt | head -c 10 > ten.txt
same "a closed pipe is quiet" "" "$(cat err.txt)"

# Source lines: only measured lines of files below the folder.
mkdir -p app/sub elsewhere
file=$("$ljprof" dump "$whole" | sed -n 's/.* chunk="@\([^"]*file4.lua\)".*/\1/p' |
  head -n 1)
[ -n "$file" ] || fail "no Lua file in the stream"
mkdir -p "app/$(dirname "$file")" "elsewhere/$(dirname "$file")"
i=0
while [ $i -lt 300 ]; do
  i=$((i + 1))
  echo "line <$i> of it"
done > "app/$file"
"$ljprof" flame "$whole" --source app -o - --no-symbols > source.html ||
  fail "--source"
grep -q '"113":"line \\u003c113> of it"' source.html || fail "no line 113"
grep -q 'line \\u003c299>' source.html && fail "a line that was not measured"
ok "measured lines are shown"
mv "app/$file" "elsewhere/$file"
ln -s "$PWD/elsewhere/$file" "app/$file"
"$ljprof" flame "$whole" --source app -o - --no-symbols > source.html ||
  fail "--source with a link"
grep -q 'u003c113> of it' source.html && fail "a file outside the folder was read"
ok "nothing outside the folder is read"
refuses "a folder that is not there" 1 "cannot read this folder" \
  "$ljprof" flame "$whole" --source nowhere -o x.html

# Wrong usage.
refuses "no output" 2 "no output given" "$ljprof" flame "$whole"
"$ljprof" flame "$whole" -o named.svg || fail "a drawing by its name"
"$ljprof" flame "$whole" --svg -o - | cmp - named.svg ||
  fail "the name of a drawing makes no drawing"
ok "an output that ends in .svg is a drawing"
refuses "an unknown view" 2 "unknown view 'cpuu'" \
  "$ljprof" flame "$whole" --svg --view cpuu -o x.svg
refuses "a view of a page" 2 "for a drawing" \
  "$ljprof" flame "$whole" --view cpu -o x.html
refuses "a view without data" 1 "no data for the view 'wall'" \
  "$ljprof" flame "$data/killed.ljp" --svg --view wall -o x.svg
[ ! -e x.svg ] || fail "something was written"
refuses "no file" 1 "No such file" "$ljprof" flame nothing -o x.html
refuses "a text" 1 "not an ljprof stream" "$ljprof" flame "$SOURCE_DIR/run" -o x.html
[ ! -e x.html ] || fail "something was written"
ok "what fails writes nothing"

# A page of a damaged file shows what was lost.
size=$(wc -c < "$whole")
head -c $((size / 2)) "$whole" > cut.ljp
"$ljprof" flame cut.ljp -o cut.html || fail "a cut file"
grep -q '"notices":\[{' cut.html || fail "no notice of a cut file"
ok "half a file makes a page that says so"

# Comparing.
"$ljprof" diff "$whole" "$whole" --no-symbols > diff.txt || fail "diff"
grep -q '^! both files are of the same session$' diff.txt || fail "no notice"
same "nothing changed in three lists" 3 \
  "$(grep -c 'nothing beyond the sampling error' diff.txt)"
"$ljprof" diff "$whole" "$data/killed.ljp" --json --no-symbols > diff.json ||
  fail "diff --json"
head -c 11 diff.json | grep -q '^{"totals":{' || fail "totals do not come first"
"$ljprof" diff "$whole" "$whole" --json --no-symbols --native > native.json ||
  fail "diff --native"
if command -v python3 > /dev/null; then
  python3 -c 'if True:
    import collections, json
    for name in "diff.json", "native.json":
      rows = collections.Counter((r["name"], r["file"], r["line"], r["module"])
                                 for r in json.load(open(name))["rows"])
      assert max(rows.values()) == 1, rows.most_common(3)
  ' || fail "a diff lists a function twice"
  ok "a diff lists each function once"
  python3 -c 'if True:
    import json
    d = json.load(open("diff.json"))
    for side in "before", "after":
      own = sum(r["self_" + side] for r in d["rows"])
      assert abs(own - d["totals"][side + "_value"]) <= len(d["rows"]), side
      stacks = sum(s["self_" + side] for s in d["stacks"])
      assert abs(own - stacks) <= len(d["rows"]) + len(d["stacks"]), side
    for r in d["rows"]:
      sure = abs(r["self_change"]) > r["self_error"] + 1
      assert sure == (r["self_verdict"] != "same") or \
        abs(abs(r["self_change"]) - r["self_error"]) < 2, r
  ' || fail "the sums of a diff do not agree"
  ok "functions and stacks of a diff add up to the same"
fi
"$ljprof" diff "$whole" "$data/killed.ljp" -o diff.html || fail "diff page"
grep -q '"diff":true' diff.html || fail "no page of a diff"
refuses "a page that exists" 1 "diff.html" \
  "$ljprof" diff "$whole" "$whole" -o diff.html
refuses "one file" 2 "two files are needed" "$ljprof" diff "$whole"
refuses "three files" 2 "too many files" "$ljprof" diff "$whole" "$whole" "$whole"
refuses "no number" 2 "needs a number, not 'many'" \
  "$ljprof" diff "$whole" "$whole" --top many
refuses "nothing in common" 1 "the view 'wall' cannot be compared: " \
  "$ljprof" diff "$whole" "$data/killed.ljp" --view wall

# Kinds of frames have the same names in the page and in drawings, and those of
# reports, which may be longer.
sed -n '/define LJP_PAGE_KIND_LIST/,/_(DATA/s/.*", "\(.*\)").*/\1/p' \
  "$SOURCE_DIR/tools/page/page.h" > drawn.txt
sed -n '/^const KINDS/,/^\];/s/^  \[.[a-z]*., .\([A-Za-z ]*\)., .*/\1/p' \
  "$SOURCE_DIR/tools/viewer/data.js" | grep -v '^Group$' > page.txt
same "kinds in page and drawing" "$(cat drawn.txt)" "$(cat page.txt)"
"$ljprof" report --native --by kind --json "$data/every-record.ljp" |
  sed -n 's/^{"name":"\([a-zA-Z ]*\)".*/\1/p' > report.txt
for kind in Host Lua Builtin VM Profiler Cut; do
  grep -qix "$kind" report.txt || fail "reports know no $kind: $(cat report.txt)"
  grep -qx "$kind" page.txt || fail "the page knows no $kind"
done
ok "kinds have the names of reports"
