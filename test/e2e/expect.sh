#!/bin/sh
# ljprof expect: budgets hold, are exceeded, or cannot be judged, by exit code,
# text, JSON and JUnit; budgets that cannot be parsed have their place marked.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
golden=$SOURCE_DIR/test/data/every-record.ljp
f4='total(f4 app/file4.lua:40)' # 40 of 212 samples: 13.8 % to 24.8 %

# gives WHAT CODE TEXT ARGUMENT...: the exit code, and exactly one line with TEXT.
gives() {
  what=$1 code=$2 text=$3 got=0
  shift 3
  "$ljprof" expect "$@" > out.txt 2>&1 || got=$?
  [ "$got" = "$code" ] || fail "$what: exit code $got: $(cat out.txt)"
  [ "$(grep -cF -- "$text" out.txt)" = 1 ] ||
    fail "$what: no line, or several, with '$text': $(cat out.txt)"
  ok "$what: $(grep -F -- "$text" out.txt)"
}

# The sampling error.
gives "surely within" 0 "holds     $f4 <= 30 %: 18.87 % (13." \
  "$golden" "$f4 <= 30 %"
gives "surely beyond" 1 "exceeded  $f4 <= 10 %: 18.87 % (13." \
  "$golden" "$f4 <= 10 %"
gives "beyond, within the error" 0 "beyond the limit by less than the sampling" \
  "$golden" "$f4 <= 17 %"
gives "the same, but strict" 1 "which --strict refuses" \
  "$golden" --strict "$f4 <= 17 %"
gives "within, within the error" 0 "the limit lies within the sampling error" \
  "$golden" "$f4 <= 20 %"
gives "strict where it is certain" 0 "holds " "$golden" --strict "$f4 <= 30 %"
gives "a time" 0 "holds " "$golden" "$f4 >= 20 ms"
gives "samples are counted" 0 "40 samples" "$golden" "$f4 == 40 samples"
gives "a function without its line" 0 "holds " "$golden" \
  'total(f4 file4.lua) == 40 samples'
gives "a file, from its end" 0 "holds " "$golden" 'total(file4.lua) <= 100 %'
gives "one of several: the worst counts" 1 "exceeded  samples < 3: 212" \
  "$golden" 'samples == 212' 'samples < 3' 'wall > 1 s'

# Its own share: equal, and with a factor.
gives "the base is the file itself" 0 "holds     cpu ==" \
  "$golden" "cpu == 1 * $golden" "cpu < 1.01 * $golden"
gives "an exact figure against the base" 1 "exceeded  cpu < 0.99 *" \
  "$golden" "cpu < 0.99 * $golden"
gives "two terms" 0 "holds " "$golden" "cpu <= $golden - 1 ms + 2 ms"
cp "$golden" 'with space.ljp'
gives "a quoted file" 0 "holds " "$golden" 'cpu <= "with space.ljp" * 1'

# What the file does not hold: a code of its own.
gives "no such measure" 3 "holds no wall-clock samples" "$golden" 'wall <= 1 s'
gives "no such name" 3 "no function, file, line or module 'lib.fm17'" \
  "$golden" 'total(lib.fm17) <= 3 %'
grep -q "did you mean 'lib.fn1[0-9]*'" out.txt || fail "no suggestion"
gives "no such name, and that is fine" 0 "holds " "$golden" \
  'total(nothing?) <= 50 %'
gives "no such file" 3 "nowhere.ljp: No such file" nowhere.ljp 'cpu <= 1 s'
gives "no such base" 3 "nowhere.ljp: No such file" \
  "$golden" 'cpu <= 2 * nowhere.ljp'
gives "a file that is no stream" 3 "expect.sh" \
  "$SOURCE_DIR/test/e2e/expect.sh" 'cpu <= 1 s'
gives "a file that was not closed" 3 "damaged or was not closed" \
  "$SOURCE_DIR/test/data/killed.ljp" 'cpu <= 1 s'
gives "the same on request" 0 "holds " --incomplete \
  "$SOURCE_DIR/test/data/killed.ljp" 'cpu <= 1 s'

# Wrong usage; the place is marked.
marks() { # WHAT TEXT COLUMN BUDGET
  gives "$1" 2 "$2" "$golden" "$4"
  same "$1: the mark" "$3" "$(awk '/^ *\^$/ { print index($0, "^") - 3 }' out.txt)"
}
marks "no unit" "a unit expected" 10 'live <= 20'
marks "an unknown unit" "unknown unit 'XB'" 11 'live <= 20 XB'
marks "a unit that does not fit" "'MB' is not a unit of 'cpu'" 9 'cpu <= 2 MB'
marks "units that do not go together" "'s' does not fit" 18 'live <= 1 MB + 30 s'
marks "a share of everything" "a share needs" 11 'live <= 20 %'
marks "an unknown figure" "did you mean 'live'" 0 'liv <= 3 MB'
marks "a figure like none" "'bytes': cpu, wall, gc-cost" 0 'bytes <= 3 MB'
marks "an unknown part" "did you mean 'own'" 0 'ownn(f) <= 3 %'
marks "a time of the file without a unit" "the number: ns, us, ms, s, min or h" \
  14 'duration <= 20'
grep -q 'samples' out.txt && fail "a duration in samples: $(cat out.txt)"
marks "a sign" "a number without a sign" 8 'live <= -20 MB'
marks "no comparison" "<=, >=" 5 'live 20'
marks "an open parenthesis" "no end" 3 'own(render <= 3 %'
marks "no factor sign" "a '*' expected" 13 'live <= 1.05 BASE.ljp'
marks "rubbish behind it" "or the end expected" 13 'live <= 1 MB ! x'
marks "hidden characters" "begins with a figure" 0 "$(printf '\033[31m')"
marks "two bytes in a character" "unknown unit" 19 'total(größe) <= 20 XB'
gives "no budget" 2 "no budget given" "$golden"
gives "no file" 2 "no file given"
gives "the file is not first" 2 "the file comes first" 'live <= 1 MB' "$golden"
refuses "check has a sister" 2 "ljprof expect FILE" \
  "$ljprof" check --expect 'live <= 1 MB' "$golden"

# A file of budgets.
printf '# the budgets\n\nsamples == 212\r\n  cpu <= 1 s\n' > budgets
gives "budgets from a file" 0 "holds     cpu <= 1 s" "$golden" --budgets budgets
same "each has its line" 2 "$(grep -c '^holds' out.txt)"
printf '\357\273\277# a mark before it\ntotal(a #b?) <= 1 %%\t # why \n#\n' > odd
gives "comments, and names that have the sign" 0 "total(a #b?) <= 1 %: 0 %" \
  "$golden" --budgets odd
same "no other budget" 1 "$(grep -c '^[a-z]' out.txt)"
big=9999999999999999999999999
product=$big
while [ ${#product} -lt 320 ]; do product="$product * $big"; done
gives "a limit that is no number" 3 "the limit is too large a number" \
  "$golden" "cpu <= $product * $golden"
gives "a difference that does not show" 1 "cpu <" \
  "$golden" "cpu <= 0.999999 * $golden"
grep -Eq ': [0-9]{9} ns, limit [0-9]{9} ns$' out.txt ||
  fail "not told apart: $(cat out.txt)"
echo 'live <= 20' >> budgets
gives "its line is named" 2 "budgets:5: a unit expected" \
  "$golden" --budgets budgets
gives "it is not there" 2 "nowhere: No such file" "$golden" --budgets nowhere
printf 'live\0' > zero
gives "it is no text" 2 "NUL bytes" "$golden" --budgets zero

# JSON and JUnit agree with the text.
code=0
"$ljprof" expect "$golden" --json --junit junit.xml 'samples == 212' \
  'samples < 3' 'wall > 1 s' "$f4 <= 17 %" > out.json || code=$?
same "the exit code with --json" 1 "$code"
if command -v python3 > python.txt; then
  python3 - << 'END' || fail "JSON or JUnit is wrong"
import json, xml.etree.ElementTree as tree
data = json.load(open("out.json"))
verdicts = [b["verdict"] for b in data["budgets"]]
assert verdicts == ["holds", "exceeded", "unknown", "holds"], verdicts
assert data["verdict"] == "exceeded" and data["notices"]
assert not data["budgets"][3]["certain"] and data["budgets"][0]["certain"]
share = data["budgets"][3]
assert share["value_low"] < share["limit"] < share["value"], share
suite = tree.parse("junit.xml").getroot()[0]
assert suite.attrib["tests"] == "4" and suite.attrib["failures"] == "1"
assert suite.attrib["errors"] == "1"
inside = [case[0].tag for case in suite]
assert inside == ["system-out", "failure", "error", "system-out"], inside
assert suite[3].attrib["name"].endswith("<= 17 %")
END
  ok "JSON and JUnit say the same"
fi
# The figures are those of the report, in both views.
if command -v python3 > python.txt; then
  python3 - "$ljprof" "$golden" << 'END' || fail "other figures than the report"
import json, subprocess, sys
ljprof, file = sys.argv[1:]
def run(*arguments):
    return json.loads(subprocess.run((ljprof, *arguments, file, "--json"),
                                     capture_output=True, text=True).stdout)
compared = 0
for view in (), ("--native",):
    for measure, unit in ("cpu", "ns"), ("alloc", "bytes"), ("peak", "bytes"):
        budgets, wanted = [], []
        for row in run("report", "--" + measure, *view)["rows"]:
            for part in "self", "total":
                budgets.append('%s.%s("%s") >= 0' % (
                    measure, part.replace("self", "own"), row["name"]))
                wanted.append(row[part + "_" + unit])
        got = json.loads(subprocess.run(
            (ljprof, "expect", file, "--json", *view, *budgets),
            capture_output=True, text=True).stdout)["budgets"]
        for budget, value in zip(got, wanted):
            if "name of" in budget["text"]: # Two modules have this function.
                continue
            assert budget["value"] == value, (budget, value)
            compared += 1
assert compared > 60, compared
END
  ok "figures are those of the report"
fi
gives "an existing file is kept" 3 "junit.xml" \
  "$golden" --junit junit.xml 'samples == 212'
gives "it is replaced on request" 0 "holds " \
  "$golden" --junit junit.xml --force 'samples == 212'

[ -x "$BUILD_DIR/bin/luajit" ] || exit 0
# Every allocation is recorded: budgets are exact.
cat > app.lua << 'END'
local keep = {}
local function parse(n)
  for i = 1, n do
    keep[i] = {i}
  end
end
local function twin() return {1, 2} end
local function outer()
  local function twin() return {1, 2, 3} end
  keep.a = twin()
end
parse(tonumber(arg[1]))
keep.b = twin()
outer()
if arg[2] then
  for _ = 1, 3 do
    collectgarbage()
  end
end
END
sed 's/parse/read/; s/twin/pair/; s/outer/around/' app.lua > other.lua
sed -i 's/parse/read/g; s/twin/pair/g; s/outer/around/g' other.lua
record() { # FILE ARGUMENT...
  file=$1
  shift
  "$ljprof" record --memory --every --no-cpu -o "$file" -- \
    "$BUILD_DIR/bin/luajit" -joff "$@" > out.txt 2>&1 ||
    fail "not recorded: $(cat out.txt)"
}
record base.ljp app.lua 1000
record more.ljp app.lua 1100
record old.ljp app.lua 1000 collect
record other.ljp other.lua 1000
cp app.lua renamed.lua
record renamed.ljp renamed.lua 1000
gives "objects, by factor of another file" 0 "holds     alloc(parse)" \
  more.ljp 'alloc(parse) <= 1.15 * base.ljp + 0 objects'
gives "too many objects" 1 "exceeded  alloc(parse)" \
  more.ljp 'alloc(parse) <= 1.05 * base.ljp + 0 objects'
gives "two functions with one name" 3 "'twin' can be any of 2: twin app.lua:7" \
  base.ljp 'alloc(twin) <= 1 objects'
gives "one of them" 0 "holds " base.ljp 'alloc(twin app.lua:9) == 1 objects'
gives "a line: its function, and that function's table" 0 "holds " \
  base.ljp 'alloc.own(app.lua:7) == 2 objects'
gives "no leaks are known without GC cycles" 3 "two finished GC cycles" \
  base.ljp 'leaks == 0'
gives "what outlives GC cycles is a leak" 1 "exceeded  leaks == 0" \
  old.ljp 'leaks == 0'
gives "another program" 3 "is of another program: luajit other.lua, not luajit" \
  base.ljp 'alloc <= 2 * other.ljp'
gives "the same functions in a renamed script" 0 "holds " \
  base.ljp 'alloc <= 2 * renamed.ljp'
gives "no CPU time in a file of memory" 3 "write alloc.own(NAME) for memory" \
  base.ljp 'own(parse) <= 12 %'
