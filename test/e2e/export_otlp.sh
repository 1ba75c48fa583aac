#!/bin/sh
# ljprof export --to otlp: the rules of the schema hold, sums are those of the
# other exports, by label too, and names are right.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
check() {
  python3 "$SOURCE_DIR/test/e2e/otlp.py" "$@"
}

cat > labels.lua << 'END'
local label = require("misc").profile.label
local keep = {}
local function burn(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end
local function fill(n)
  for i = 1, n do keep[#keep + 1] = {i} end
end
for i = 1, 24 do
  label{route = i % 2 == 0 and "/a" or "/b"}
  burn(i % 2 == 0 and 3e6 or 1e6)
  fill(101)
end
END
"$ljprof" record --memory --sample 4096 -o x.ljp -- "$BUILD_DIR/bin/luajit" \
  labels.lua 2> /dev/null
"$ljprof" export --to otlp -o x.otlp x.ljp
check x.otlp > sums || fail "the rules of the schema"
ok "the rules of the schema hold"

# The sum of a collapsed export, and that by route.
for value in samples cpu alloc_objects alloc_space inuse_objects inuse_space; do
  "$ljprof" export --to collapsed --value $value -o - x.ljp > flat
  same "the sum of $value" "$(awk '{ s += $NF } END { printf "%.0f\n", s }' flat)" \
    "$(awk -v v=$value '$1 == v { print $2 }' sums)"
done
check x.otlp route > by_route
for route in /a /b; do
  "$ljprof" export --to collapsed --value cpu --label route=$route -o - x.ljp \
    > flat
  same "CPU time of $route" "$(awk '{ s += $NF } END { printf "%.0f\n", s }' flat)" \
    "$(awk -v r=$route '$1 == "cpu" && $2 == r { print $3 }' by_route)"
done
"$ljprof" export --to otlp --value cpu -o one.otlp x.ljp
same "--value chooses one profile" cpu "$(check one.otlp | sed 's/ .*//')"
"$ljprof" export --to otlp --label route=/a -o part.otlp x.ljp
same "--label chooses samples" /a \
  "$(check part.otlp route | awk '{ print $2 }' | sort -u)"
strings -n 3 x.otlp > names
same "the program is the service" "- label service.name luajit" \
  "$(python3 "$SOURCE_DIR/test/e2e/pushed.py" otlp route x.otlp | grep service)"
for name in burn fill labels.lua thread.name process.executable.name luajit; do
  grep -q "$name" names || fail "no $name in the file"
done
ok "functions, files and the process are named"

for file in "$SOURCE_DIR"/test/data/*.ljp; do
  case $file in
  */heap.ljp) continue ;; # A heap snapshot: no samples.
  esac
  "$ljprof" export --to otlp --force -o y.otlp "$file" 2> error ||
    fail "$file: $(cat error)"
  check y.otlp > /dev/null || fail "$file breaks the rules"
  ok "${file##*/} keeps the rules"
done
refuses "no data" 1 "has no samples and no memory events" \
  "$ljprof" export --to otlp -o z.otlp "$SOURCE_DIR/test/data/heap.ljp"
