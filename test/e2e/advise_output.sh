#!/bin/sh
# ljprof advise: what it prints, and the guide. The golden streams hold events of
# every kind; which findings they give does not matter here.
. "$(dirname "$0")/lib.sh"
ljprof="$BUILD_DIR/bin/ljprof"
data="$SOURCE_DIR/test/data"
guide="$SOURCE_DIR/doc/guide/advice.md"

"$ljprof" advise --help | grep -q '^Usage: ljprof advise' || fail "--help"
refuses "two formats" 2 "only one of --json and --sarif" \
  "$ljprof" advise --json --sarif "$data/every-record.ljp"
refuses "no file" 2 "no file given" "$ljprof" advise
refuses "a file that is not there" 1 "No such file" "$ljprof" advise nothing.ljp
echo text > text.ljp
refuses "a text" 1 "not an ljprof stream" "$ljprof" advise text.ljp

# A file without samples of time is not too short.
echo 'local s for i = 1, 100000 do s = "text " .. i end' > memory.lua
"$ljprof" record --memory --sample 64k --no-cpu -o memory.ljp -- \
  "$BUILD_DIR/bin/luajit" memory.lua 2> err.txt || fail "$(cat err.txt)"
same "a file without samples of time" "Found nothing worth changing.
The file has no samples of time: only memory that grows was looked for." \
  "$("$ljprof" advise memory.ljp | grep -v '^!')"

# Where no collection ends, nothing tells what stays from garbage.
cat > uncollected.lua << 'LUA'
collectgarbage("stop")
local keep = {}
for i = 1, 100000 do keep[i % 10] = {i} end
LUA
"$ljprof" record --memory --every -o uncollected.ljp -- \
  "$BUILD_DIR/bin/luajit" uncollected.lua 2> err.txt || fail "$(cat err.txt)"
for format in "" --json; do
  # shellcheck disable=SC2086 # no word if there is no format
  "$ljprof" advise $format uncollected.ljp > out.txt || fail "advise $format"
  grep -q 'Fewer than 3 collections ended: .*call collectgarbage()' out.txt ||
    fail "advise $format: $(cat out.txt)"
done
ok "a program whose garbage is not collected"

# A program whose fault is found in each format.
cat > 'odd "name".lua' << 'LUA'
local function build(n)
  local s = ""
  for i = 1, n do s = s .. "some piece of text" end
  return #s
end
local sum = 0
for i = 1, 40 do sum = sum + build(3000) end
LUA
"$ljprof" record --timer posix --interval 0.5 -o a.ljp -- \
  "$BUILD_DIR/bin/luajit" 'odd "name".lua' 2> err.txt || fail "$(cat err.txt)"
"$ljprof" advise a.ljp > a.txt || fail "text"
grep -q 'guide: doc/guide/advice.md#concatenation-in-a-loop' a.txt ||
  fail "no finding in: $(cat a.txt)"
"$ljprof" advise --json a.ljp > a.json || fail "--json"
"$ljprof" advise --sarif a.ljp > a.sarif || fail "--sarif"
python3 - << 'PYTHON' || fail "the formats do not agree"
import json
a, s = json.load(open("a.json")), json.load(open("a.sarif"))
run, = s["runs"]
rules = run["tool"]["driver"]["rules"]
assert s["version"] == "2.1.0" and len(run["results"]) == len(a["findings"]) > 0
for f, r in zip(a["findings"], run["results"]):
    assert rules[r["ruleIndex"]]["id"] == r["ruleId"] == f["kind"]
    where = r["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "odd%20%22name%22.lua", where
    assert where["region"]["startLine"] == f["line"] == 3
    assert 0 <= r["rank"] <= 100 and f["title"] in r["message"]["text"]
    assert f["change"] in r["message"]["text"]
f = a["findings"][0]
assert (f["kind"], f["function"], f["file"]) == \
    ("concat-loop", "build", 'odd "name".lua'), f
assert f["gain"]["of"] == "cpu" and f["gain"]["ns"] > 0
assert f["evidence"]["samples"] <= f["gain"]["samples"] <= a["samples"]
PYTHON
ok "text, JSON and SARIF tell of the same findings"
for file in every-record killed rotated small-table vm-closed; do
  for format in --json --sarif; do
    code=0
    "$ljprof" advise $format "$data/$file.ljp" > out.json 2> err.txt || code=$?
    [ $code = 0 ] || { [ $code = 1 ] && grep -q "nothing to judge" err.txt; } ||
      fail "$file $format: $(cat err.txt)"
    [ $code = 1 ] || python3 -m json.tool out.json > /dev/null || fail "$file $format"
  done
done
ok "golden files"

# Each finding and each of LuaJIT's reasons has its section, and no section is
# left over.
grep -E '^##+ ' "$guide" | sed 's/^#* //' | tr 'A-Z ' 'a-z-' | sort > sections
{
  sed -n 's/^  {"[^"]*", "\([a-z-]*\)".*/\1/p' "$SOURCE_DIR/tools/advise/reasons.c"
  "$ljprof" advise --sarif a.ljp | tr '{' '\n' |
    sed -n 's/.*"text":"doc.guide.advice.md#\([a-z-]*\)".*/\1/p'
} | sort -u > linked
[ "$(wc -l < linked)" -ge 50 ] || fail "only $(wc -l < linked) links were found"
same "every section is linked, and every link has a section" "" \
  "$(comm -3 sections linked | grep -v 'ljprof-advise' || :)"
find "$BUILD_DIR/luajit" -name lj_traceerr.h | head -n 1 | xargs cat |
  sed -n 's/^TREDEF([A-Z]*,[^"]*"\([^"]*\)").*/\1/p' | sed 's/ *%[a-z].*//; s/ (.*//' > reasons
[ "$(wc -l < reasons)" -ge 30 ] || fail "lj_traceerr.h was not found"
same "no reason hides a later one" "" "$(sed -n 's/^  {"\([^"]*\)", ".*/\1/p' \
  "$SOURCE_DIR/tools/advise/reasons.c" | awk '{
    for (i = 1; i < NR; i++)
      if (index($0, t[i]) == 1 && substr($0, length(t[i]) + 1, 1) !~ /[A-Z]/)
        print
    t[NR] = $0
  }')"
while read -r reason; do
  grep -qF "{\"$reason" "$SOURCE_DIR/tools/advise/reasons.c" ||
    fail "LuaJIT's reason '$reason' has no entry"
done < reasons
ok "each of LuaJIT's $(wc -l < reasons) reasons has its entry"
