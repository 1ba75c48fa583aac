#!/bin/sh
# Live memory of a recording in several files: each file alone shows the same as the
# merge of this file and all earlier ones.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disk_lib.sh"

ljprof=$BUILD_DIR/bin/ljprof luajit=$BUILD_DIR/bin/luajit

# Memory that is loaded at first, a leak, churn, coroutines with labels, and code
# that is compiled and thrown away.
cat > app.lua << 'END'
local with = misc.profile.with
local config, leak, sessions, n = {}, {}, {}, 0
local function load_config()
  for i = 1, 20000 do config[i] = { name = "entry " .. i } end
end
local function forget(i) leak[#leak + 1] = { i, { i } } end
local function session(i)
  return coroutine.create(function()
    local data = { i, {}, "session " .. i }
    coroutine.yield()
    return data
  end)
end
local function serve(i)
  sessions[i % 500] = session(i)
  coroutine.resume(sessions[i % 500])
end
local function template(i)
  return assert(loadstring("local function page" .. i ..
    "(t) for k = 1, 50 do t[k] = { k } end return t end return page" .. i))()({})
end
local pages = {}
load_config()
local ends = os.clock() + tonumber(arg[1])
repeat
  n = n + 1
  with({ route = "/a", tenant = n % 2 == 0 and "x" or "y" }, serve, n)
  if n % 10 == 0 then with({ route = "/leak" }, forget, n) end
  if n % 100 == 0 then pages[n % 1000 + 1] = template(n) end
until os.clock() > ends
if arg[2] then
  io.stdout:write("kill me\n")
  io.stdout:flush()
  while true do end
end
os.exit(0) -- The VM is not closed.
END

# The rows of a report in JSON. (Whether a function is shown as compiled depends on
# what was seen first; how often a leak grew, on the time of the first file. A file
# may begin when the producer has ended; then it does not tell the exact distance of
# samples, on which bounds depend.)
cat > rows.py << 'END'
import json, sys
f = json.load(open(sys.argv[1]))
t = f["totals"]
print(t["live_objects"], t["live_bytes"])
unlike = ("kind", "times") + tuple(sys.argv[2:])
print(*sorted(str(sorted((k, str(v)) for k, v in row.items() if not k.endswith(unlike)))
              for row in f["rows"]), sep="\n")
END
unlike=
alone_as_merged() { # NAME FILE...
  name=$1
  shift
  before=
  compared=0
  for file; do
    before="$before $file"
    [ "$before" != " $file" ] || continue
    # shellcheck disable=SC2086 # files
    "$ljprof" merge --force -o merged.ljp $before > merge.txt 2>&1 || fail "$(cat merge.txt)"
    for view in "--live" "--live --by label:route" "--live --by type" "--leaks" \
      "--live --by stack" "--live --label tenant=x"; do
      # shellcheck disable=SC2086 # words
      "$ljprof" report --json --top 0 $view "$file" > alone.json 2> err || fail "$file: $(cat err)"
      # shellcheck disable=SC2086
      "$ljprof" report --json --top 0 $view merged.ljp > merged.json 2> err || fail "$(cat err)"
      # shellcheck disable=SC2086
      python3 rows.py alone.json $unlike > alone.txt
      # shellcheck disable=SC2086
      python3 rows.py merged.json $unlike > merged.txt
      cmp -s alone.txt merged.txt || {
        diff alone.txt merged.txt | head -n 5 | cut -c 1-300 >&2
        fail "$name: $file $view differs from the merge of all files up to it"
      }
      [ "$(wc -l < alone.txt)" -gt 1 ] || fail "$view has no rows"
      compared=$((compared + 1))
    done
  done
  [ $compared -ge 6 ] || fail "$name: only $compared comparisons"
  ok "$name: $compared views of a file alone are those of all files until then"
}

# -- A folder of files, and a program that is killed -----------------------------
# shellcheck disable=SC2016 # for end_test
at_end='[ -z "${app-}" ] || kill -9 $app'
mkdir store
LJPROF_RECORD="output=$PWD/store;service=web;continuous=0.8s;memory;sample=2k;flush=50" \
  "$luajit" app.lua 2 killed > said &
app=$!
tries=0
until grep -q 'kill me' said; do
  tries=$((tries + 1))
  [ $tries -lt 600 ] || fail "the program does not come to its end"
  sleep 0.1
done
sleep 0.5
kill -9 $app
app=
alone_as_merged killed store/*.ljp
last=$(find store -name '*.ljp' | sort | tail -n 1)
"$ljprof" report --live "$last" > report.txt 2>&1 || fail "$(cat report.txt)"
grep -q '^alive when the file began: ~[0-9]* objects and ~[0-9]* bytes' report.txt ||
  fail "$(cat report.txt)"
! grep -q 'is not in it' report.txt || fail "$(cat report.txt)"
grep -q ' load_config ' report.txt || fail "$(cat report.txt)"
ok "the last file has what was loaded at the start"
"$ljprof" report --live --label route=/leak "$last" > report.txt 2>&1 ||
  fail "$(cat report.txt)"
grep -q ' forget ' report.txt || fail "$(cat report.txt)"
ok "and what each route holds"

# -- Rotation by size, without the JIT compiler ----------------------------------
"$ljprof" record --memory --sample 48k --rotate-bytes 100k -o one.ljp -- \
  "$luajit" -joff app.lua 2 > said 2>&1 || fail "$(cat said)"
unlike="_error _low _high"
alone_as_merged "by size" one.ljp one.ljp.s?

# -- A ring without a time --------------------------------------------------------
"$ljprof" record --memory --sample 16k --ring 4M -o ring -- "$luajit" app.lua 3 \
  > said 2>&1 || fail "$(cat said)"
# shellcheck disable=SC2046 # files
alone_as_merged "ring" $(find ring -name '*.ljp' | sort)

# -- Stacks that would fill each file ---------------------------------------------
# A file whose beginning is larger than the limit is not ended at once.
cat > deep.lua << 'END'
local kept = {}
local function down(n, i)
  if n == 0 then
    kept[#kept + 1] = string.rep("x", 60000) .. i
    return i
  end
  if n * i * 7919 % 128 < 64 then
    local left = down(n - 1, i)
    return left
  end
  local right = down(n - 1, i)
  return right
end
for i = 1, 150 do down(560, i) end
local ends = os.clock() + 2
while os.clock() < ends do end
os.exit(0)
END
"$ljprof" record --memory --sample 48k --no-cpu --rotate-bytes 100k --flush 50 -o deep.ljp -- \
  "$luajit" -joff deep.lua > said 2>&1 || fail "$(cat said)"
n=$(find . -name 'deep.ljp*' | wc -l)
if [ "$n" -lt 2 ] || [ "$n" -gt 20 ]; then
  fail "$n files"
fi
ok "deep stacks: $n files"

# -- A free that a full disk swallows -----------------------------------------------
cat > frees.lua << 'END'
local function wait(name)
  while not os.rename(name, name) do
    local ends = os.clock() + 0.02
    while os.clock() < ends do end
  end
end
local kept = {}
local function load_all()
  for i = 1, 500 do kept[i] = string.rep(string.char(33 + i % 90), 60000) .. i end
end
load_all()
wait("filled")
kept = nil
collectgarbage()
collectgarbage()
wait("stop")
os.exit(0)
END
cat > full.sh << 'END'
set -eu
. "$SOURCE_DIR/test/e2e/disk_lib.sh"
small_disk 2m
LJPROF_RECORD="output=$PWD/disk;service=web;continuous=0.3s;memory;sample=48k;flush=50" \
  "$1" -joff frees.lua 2> err &
app=$!
fill_disk
seen=$(newest_number)
rm -f disk/filler.*
while [ "$(newest_number)" -lt $((seen + 3)) ]; do sleep 0.1; done
touch stop
wait $app
mkdir kept
cp disk/*.ljp kept
END
if has_small_disks; then
  unshare -rm timeout 60 sh full.sh "$luajit" > full.txt 2>&1 || fail "$(cat full.txt err)"
  after=$(find kept -name '*.ljp' | sort | tail -n 1)
  "$ljprof" report --live "$after" > report.txt 2>&1 || :
  grep -qE 'events? lost' report.txt || fail "no event was lost: $(cat report.txt)"
  "$ljprof" report --json --live "$after" > full.json 2> err || :
  live=$(sed -n 's/.*"live_bytes":\([0-9]*\),.*/\1/p' full.json)
  [ -n "$live" ] || fail "$(cat err full.json)"
  [ "$live" -lt 1000000 ] || fail "$live bytes are live after they were freed"
  ok "what was freed while the disk was full is not live"
fi

# -- What is not kept is said -----------------------------------------------------
"$ljprof" record --memory --every --continuous 0.3s -o every -- "$luajit" app.lua 1 \
  > said 2>&1 || fail "$(cat said)"
second=$(find every -name '*.ljp' | sort | sed -n 2p)
"$ljprof" report --live "$second" > report.txt 2>&1 || fail "$(cat report.txt)"
grep -q 'this is file 2 of a recording: what was allocated before it is not in it' \
  report.txt || fail "$(cat report.txt)"
ok "every event: $(grep -o 'this is file 2.*' report.txt)"

# A file with damage where these blocks are.
cp "$last" broken.ljp
damage_live broken.ljp
"$ljprof" report --live broken.ljp > report.txt 2>&1 || :
grep -q ' of [0-9]* blocks that were alive when the file began could not be read' \
  report.txt || fail "$(cat report.txt)"
ok "damage: $(grep -o '[0-9]* of [0-9]* blocks.*' report.txt)"
