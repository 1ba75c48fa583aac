#!/bin/sh
# What each command prints as JSON is as its schema in doc/reference/schemas/ says.
# Streams and snapshots of every kind are shown in every view; json_schemas.py
# judges the outputs, and that the schemas have no key that no output has.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
data=$SOURCE_DIR/test/data
judge=$SOURCE_DIR/test/e2e/json_schemas.py
command -v python3 > /dev/null || {
  echo "skipped: there is no python3"
  exit 0
}
export PYTHONDONTWRITEBYTECODE=1
python3 "$judge" rules "$SOURCE_DIR" > rules.txt 2>&1 || fail "$(cat rules.txt)"
ok "$(cat rules.txt)"

# shows SCHEMA COMMAND [WORD]...: keeps what `ljprof COMMAND --json WORD...` prints
# in shown/, to be judged by this schema. The command may fail after it has printed.
mkdir shown
number=1000
shows() {
  schema=$1 command=$2
  shift 2
  number=$((number + 1))
  "$ljprof" "$command" --json "$@" > "shown/$number.$schema.json" 2> err.txt ||
    [ -s "shown/$number.$schema.json" ] || fail "$command --json $*: $(cat err.txt)"
  echo "$command --json $*" > "shown/$number.$schema.txt"
}

# -- Recordings -------------------------------------------------------------------
cat > work.lua << 'END'
local with = misc.profile.with
local Waiting = {}
Cache, Log = {}, {}
local function remember(i) Cache[i] = { id = i, { name = "entry " .. i } } end
local function wait() coroutine.yield() end
local function start(i)
  Waiting[i] = coroutine.create(wait)
  coroutine.resume(Waiting[i])
end
local function build(n)
  local s = ""
  for i = 1, n do s = s .. "some piece of text" end
  return #s
end
local function by_id(a, b) return a.id < b.id end
local function sort()
  local t = {}
  for i = 1, 500 do t[i] = { id = i * 7919 % 1009, f = function() return i end } end
  table.sort(t, by_id)
end
local function times(from, to, f)
  for i = from, to do f(i) end
end
for round = 0, 9 do
  with({ route = "/a", tenant = "x" }, times, round * 300, round * 300 + 299, remember)
  with({ route = "/b" }, times, round * 10 + 1, round * 10 + 10, start)
  build(1500)
  sort()
  collectgarbage()
  if arg[1] == "snapshots" and round == 5 then
    assert(misc.memprof.snapshot { gc = true, wait = true })
    misc.memprof.mark("half")
  end
end
local field = "only_one" -- no constant: LuaJIT would keep a second table with its fields
with({ route = "/once" }, function() Single = { [field] = {} } end)
local from = os.clock()
repeat build(400) until os.clock() - from > 0.2
if arg[1] == "snapshots" then
  assert(misc.memprof.snapshot { gc = true, wait = true })
end
END
# Memory that grows, and time in the kernel.
cat > grows.lua << 'END'
local cache, n = {}, 0
local out = io.open("/dev/null", "w")
out:setvbuf("no")
local function remember()
  n = n + 1
  cache[n] = { id = n, { n } }
  out:write("line ", n, "\n")
end
local from, round = os.clock(), 0
repeat
  round = round + 1
  for _ = 1, 100 do remember() end
  if round % 50 == 0 then collectgarbage() end
until os.clock() - from > 0.4
END
# Names that are not UTF-8.
odd=$(printf 'odd\377')
cat > odd.txt << 'END'
local function work?(n)
  local t = {}
  for i = 1, n do t[#t + 1] = { i, "?" } end
end
misc.profile.label { ["key?"] = "value?" }
local from = os.clock()
repeat work?(1e4) until os.clock() - from > 0.1
misc.memprof.mark("mark?")
Odd = { ["field?"] = {} }
assert(misc.memprof.snapshot { wait = true })
END
tr '?' '\377' < odd.txt > "$odd.lua"
record() { # NAME OPTIONS [WORD]...: NAME.ljp, a recording of this command
  name=$1 options=$2
  shift 2
  # shellcheck disable=SC2086 # options are words
  "$ljprof" record --interval 0.5 --timer posix $options -o "$name.ljp" -- \
    "$luajit" "$@" 2> err.txt || fail "$name: $(cat err.txt)"
}
record cpu '' work.lua
record wall '--event wall' work.lua
record every '--memory --every' work.lua snapshots
record sampled '--memory --sample 512' work.lua snapshots
record grows '--memory --every' grows.lua
record odd '--memory --sample 64k' "$odd.lua"
# A later file of a recording, and one that lacks a part of its beginning.
"$ljprof" record --memory --sample 256 --continuous 0.1s -o store -- \
  "$luajit" work.lua 2> err.txt || fail "later: $(cat err.txt)"
later=$(find store -name '*.ljp' | sort | sed -n 2p)
cp "$later" later.ljp
damage_live "$later"
# What two tables hold.
"$luajit" -e '
  Sessions, package.loaded.queue = {}, { waiting = {} }
  local Queue = package.loaded.queue.waiting
  local function fill(path)
    for i = #Queue + 1, #Queue + 1009 do
      local session = { name = "session" .. i, words = { "word" .. i } }
      Sessions[session.name], Queue[i] = session, session
    end
    assert(misc.memprof.snapshot { path = path, gc = true, wait = true })
  end
  fill("before.ljp")
  fill("two.ljp")' || fail "two tables"
"$BUILD_DIR/bin/labelled_stream" labelled.ljp || fail "labelled_stream"
for file in "$data"/tarantool/*.bin.zst; do
  name=${file##*/}
  "$luajit" "$SOURCE_DIR/test/e2e/tarantool.lua" unpack "$file" "${name%.zst}" ||
    fail "cannot unpack $name"
done
every=$data/every-record.ljp

# -- Reports ----------------------------------------------------------------------
for file in "$every" "$data/killed.ljp" cpu.ljp every.ljp sysprof-C-joff-coro.bin; do
  shows report-time report --cpu "$file"
  shows report-jit report --jit "$file"
done
shows report-time report --wall wall.ljp
shows report-jit report --jit wall.ljp
for by in function line module file kind trace stack thread vm state label:route; do
  shows report-time report --cpu --by $by cpu.ljp
  shows report-gc-cost report --gc-cost --by $by every.ljp
  for measure in alloc live peak churn; do
    shows report-memory report --$measure --by $by sampled.ljp
  done
  shows report-leaks report --leaks --by $by every.ljp
done
shows report-time report --native cpu.ljp
shows report-time report --label tenant=x labelled.ljp
shows report-leaks report --leaks --by type sampled.ljp
for by in function line stack type; do
  shows report-memory report --alloc --by $by every.ljp
done
shows report-memory report --alloc labelled.ljp
# What was not recorded has no rows.
shows report-memory report --alloc cpu.ljp
shows report-leaks report --leaks cpu.ljp
shows report-time report --wall cpu.ljp
shows report-gc-cost report --gc-cost "$data/heap.ljp"
for file in memprof-*.bin; do
  shows report-memory report --alloc "$file"
  shows report-leaks report --leaks --by line "$file"
done
shows report-memory report --live later.ljp
shows dump dump "$later"
shows dump dump later.ljp
for form in --tree --bottom-up; do
  shows report-tree report $form cpu.ljp
  shows report-tree report $form sysprof-C-joff-coro.bin
  for measure in cpu gc-cost alloc leaks; do
    shows report-tree report $form --$measure sampled.ljp
  done
done
for measure in cpu gc-cost alloc live; do
  shows annotate annotate --$measure sampled.ljp work.lua
done
shows annotate annotate --source "$SCRATCH/mkdir" cpu.ljp work.lua:build

# -- What is worth changing, comparisons, budgets ---------------------------------
for file in "$every" "$data/heap.ljp" cpu.ljp wall.ljp grows.ljp sampled.ljp \
  sysprof-C-joff-coro.bin; do
  shows advise advise "$file"
done
for by in --total --per-second --share; do
  shows diff diff $by "$every" "$data/vm-closed.ljp"
  shows diff diff $by cpu.ljp every.ljp
done
shows diff diff odd.ljp odd.ljp
shows diff diff --view leaks every.ljp sampled.ljp
shows diff diff sysprof-C-joff-coro.bin sysprof-C-joff-nested.bin
shows diff diff --share cpu.ljp sysprof-C-joff-coro.bin
shows expect expect "$every" 'live <= 1 MB' 'own(xyzzy) <= 1 %' 'total(f5) <= 1 s'
shows expect expect cpu.ljp 'own(build) <= 1 %' 'total(remember) <= 100 s' \
  'alloc <= 1 MB'
shows expect expect sampled.ljp 'live > 1 B' 'alloc.own(remember) < 1 GB'
shows expect expect "$data/killed.ljp" 'live <= 1 MB'

# -- Heap snapshots ---------------------------------------------------------------
for file in "$data/heap.ljp" every.ljp sampled.ljp; do
  shows heap heap "$file"
  shows heap-path heap --path . "$file"
  shows heap-retained-by heap --retained-by '^table' "$file"
  shows heap-dominators heap --dominators "$file"
  shows heap-coroutines heap --coroutines "$file"
  shows heap-strings heap --strings "$file"
done
for file in every.ljp sampled.ljp; do
  shows heap-sites heap --sites "$file"
  shows heap-sites heap --by label:route "$file"
  shows heap-diff heap --diff "$file"
  shows heap-path heap --label route=/a --path '^table' "$file"
done
shows heap-diff heap --diff --by label:route every.ljp
shows heap-diff heap --diff every.ljp "$data/heap.ljp"
shows heap-path heap --path '^table {only_one}$' every.ljp
shows heap heap two.ljp
shows heap-diff heap --diff before.ljp two.ljp

# -- Files as they are ------------------------------------------------------------
# Parts of files, files of something else, and streams that a fuzzer broke.
mkdir parts
{ head -c 3000 "$every" && echo garbage && tail -c +4000 "$every"; } > parts/garbage
tail -c +700 "$every" > parts/no-beginning
tail -c +6000 "$every" > parts/end
head -c -400 "$data/heap.ljp" > parts/heap
third=$(($(wc -c < two.ljp) / 3))
{ head -c $third two.ljp && tail -c $third two.ljp; } > parts/middle
cp "$SOURCE_DIR"/test/fuzz/corpus/reader/[01]* parts
for file in "$data"/*.ljp "$data"/*.ljp.s* parts/* cpu.ljp every.ljp odd.ljp; do
  shows check check "$file"
done
shows check check "$judge"
for file in "$data"/*.ljp "$data"/*.ljp.s* parts/[0-9]* parts/[g-n]* parts/end \
  labelled.ljp odd.ljp; do
  shows dump dump "$file"
done
for file in *.bin; do
  shows check-tarantool check "$file"
  shows dump-tarantool dump "$file"
done
head -c -100 sysprof-C-joff-coro.bin > parts/cut
{ cat sysprof-C-joff-coro.bin && echo more; } > parts/more
for file in parts/cut parts/more; do
  shows check-tarantool check "$file"
  shows dump-tarantool dump "$file"
done

# -- A running program ------------------------------------------------------------
cat > run.lua << 'END'
local function wait(n)
  local text = "a" .. n
  coroutine.yield(text)
end
local co = coroutine.create(wait)
coroutine.resume(co, 1)
local fresh = coroutine.create(wait)
io.open("begun", "w"):close()
local function work(n)
  local sum = n
  while true do sum = (sum + n) % 1e9 end
  return co, fresh, sum
end
work(7)
END
"$luajit" run.lua &
host=$!
# shellcheck disable=SC2016 # for end_test
at_end='[ -z "$host" ] || kill -9 $host'
tries=0
until [ -e begun ]; do
  tries=$((tries + 1))
  [ $tries -lt 600 ] || fail "the program does not begin"
  sleep 0.1
done
shows dump-stacks dump-stacks -p $host
shows dump-stacks dump-stacks --locals -p $host
shows heap heap -p $host
kill -9 $host
host=

# -- The verdict ------------------------------------------------------------------
"$ljprof" help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' | grep -vx ljprof |
  while read -r command; do
    ! "$ljprof" help "$command" | grep -q '^Usage.*--json\|^ *--json' ||
      echo "$command"
  done > commands.txt
[ "$(wc -l < commands.txt)" -ge 9 ] || fail "too few commands: $(cat commands.txt)"
while read -r command; do
  grep -q "^$command --json" shown/*.txt || echo "$command"
done < commands.txt > missed.txt
same "commands that print JSON and are not tried" "" "$(cat missed.txt)"
python3 "$judge" outputs "$SOURCE_DIR" shown > judged.txt 2>&1 ||
  fail "$(head -n 40 judged.txt)"
while read -r line; do ok "$line"; done < judged.txt
