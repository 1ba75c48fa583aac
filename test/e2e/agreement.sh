#!/bin/sh
# All views, exports and the page's data of one file agree to the sample and the
# byte, function by function, in the Lua view and in the native one: of golden
# streams, and of new sessions of CPU time, wall-clock time and memory (every
# event and sampled), with several threads and VMs.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
command -v python3 > /dev/null || {
  echo "skipped: there is no python3"
  exit 0
}

agrees() {
  python3 "$(dirname "$0")/agreement.py" "$ljprof" "$1" > agrees.txt 2>&1 ||
    fail "$2: $(head -n 5 agrees.txt)"
  ok "$2: $(cat agrees.txt)"
}

for name in every-record rotated; do
  agrees "$SOURCE_DIR/test/data/$name.ljp" "$name"
done

"$BUILD_DIR/bin/labelled_stream" labelled.ljp || fail "labelled_stream"
agrees labelled.ljp "labelled"

[ "$("$luajit" -e 'print(misc.sysprof.start and 1)')" = 1 ] || {
  echo "skipped: this build has no profiler"
  exit 0
}

cat > app.lua << 'END'
local function by_price(a, b) return a.price < b.price end
local function items(n)
  local t = {}
  for i = 1, n do t[i] = {price = i * 7919 % 10007, name = "n" .. i % 100} end
  table.sort(t, by_price)
  return t
end
local kept = {}
for round = 1, 12 do
  kept[round] = coroutine.wrap(items)(1500)
  assert(select(2, ("a <b> & c "):rep(3000):gsub("[<>&]", "?")) == 9000)
  pcall(error, {})
end
END
record() {
  name=$1
  shift
  "$ljprof" record --interval 0.3 --timer posix -o "$name.ljp" "$@" \
    > out.txt 2>&1 || fail "$name: $(cat out.txt)"
}
record every --memory --every -- "$luajit" app.lua
record sampled --memory --sample 4k -- "$luajit" app.lua
record interpreted --memory --every -- "$luajit" -joff app.lua
record wall --event wall -- "$luajit" app.lua
record threads --memory --every -- "$BUILD_DIR/bin/memory_vms" threads
record threads-sampled --memory --sample 64 -- "$BUILD_DIR/bin/memory_vms" threads
"$ljprof" merge -o merged.ljp every.ljp interpreted.ljp || fail "merge"
for name in sampled wall threads threads-sampled merged; do
  agrees "$name.ljp" "$name"
done
