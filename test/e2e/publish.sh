#!/bin/sh
# Labels that a program publishes for other profilers (OTEP 4947), as these read them:
# what each thread shows is always what its coroutine is labelled with.
. "$(dirname "$0")/lib.sh"

luajit=$BUILD_DIR/bin/luajit
here=$SOURCE_DIR/test/e2e
LUA_CPATH="$BUILD_DIR/published/?.so"
export LUA_CPATH

for options in -joff -jon -Ohotloop=2,hotexit=1; do
  for seed in 1 2; do
    "$luajit" $options "$here/publish.lua" $seed > out.txt 2>&1 ||
      fail "$options, seed $seed: $(cat out.txt)"
  done
  ok "the Lua interface, $options: $(cat out.txt)"
done
LJPROF_PUBLISH_LABELS=1 "$luajit" "$here/publish.lua" > out.txt 2>&1 ||
  fail "LJPROF_PUBLISH_LABELS: $(cat out.txt)"
ok "on the environment's request: $(cat out.txt)"
LJPROF_PUBLISH_LABELS=0 "$luajit" -e \
  'assert(not require("published").keys())' || fail "LJPROF_PUBLISH_LABELS=0"
ok "0 is no request"

"$BUILD_DIR/bin/publish_host" > out.txt 2>&1 || fail "hosts: $(cat out.txt)"
ok "hosts: $(cat out.txt)"

# The same under a profiler of our own: samples interrupt every step.
"$BUILD_DIR/bin/ljprof" record --interval 0.1 --memory --force -o cpu.ljp \
  "$luajit" "$here/publish.lua" > out.txt 2>&1 || fail "recorded: $(cat out.txt)"
"$BUILD_DIR/bin/ljprof" check cpu.ljp > check.txt || fail "$(cat check.txt)"
ok "recorded: $(grep checks out.txt)"

# From outside, of a program that does not know.
cat > works.lua << 'END'
assert(misc.profile.publish_labels(true))
local function work(route)
  misc.profile.label { route = route, pid = arg[0] }
  io.write(route, "\n")
  io.flush()
  io.read()
  coroutine.yield()
end
for i = 1, 3 do
  coroutine.wrap(work)("/" .. i)
end
misc.profile.publish_labels(false)
io.write("end\n")
io.flush()
io.read()
END
mkfifo answers
"$luajit" works.lua < answers > said.txt &
pid=$!
# shellcheck disable=SC2016 # expanded at the end
at_end='kill $pid 2> /dev/null; wait $pid 2> /dev/null'
exec 5> answers
# said WORD: waits until the program says it.
said() {
  for _ in $(seq 100); do
    ! grep -qx "$1" said.txt || return 0
    sleep 0.1
  done
  fail "the program does not say $1"
}
for i in 1 2 3; do
  said "/$i"
  same "a reader outside, $i" "pid=works.lua,route=/$i" \
    "$("$BUILD_DIR/bin/published_reader" $pid)"
  echo >&5
done
said end
same "nothing is left" - "$("$BUILD_DIR/bin/published_reader" $pid)"
exec 5>&-
wait $pid || fail "the program fails"
at_end=:

readelf --dyn-syms -W "$BUILD_DIR/lib/libluajit-5.1.so.2" |
  grep -q 'TLS .*GLOBAL DEFAULT .* otel_thread_ctx_v1$' || fail "not exported"
ok "the variable is exported"
