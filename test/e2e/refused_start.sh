#!/bin/sh
# A start that is refused changes nothing: the file that was there stays, byte
# for byte, whatever the reason of the refusal. A start that succeeds replaces
# the file's contents only: mode and owner stay.
. "$(dirname "$0")/lib.sh"

luajit=$BUILD_DIR/bin/luajit

# precious MODE: makes the file that a start might destroy.
precious() {
  rm -f out.ljp
  echo precious > out.ljp
  chmod "$1" out.ljp
  before=$(stat -c '%i %a %u %Y' out.ljp)
}

# kept WHAT: fails unless the file is the one that precious made.
kept() {
  same "$1: the file" precious "$(tr -d '\0' < out.ljp)"
  same "$1: its inode, mode, owner and time" "$before" \
    "$(stat -c '%i %a %u %Y' out.ljp)"
  same "$1: nothing beside it" "" "$(find . -name '*.ljp-*')"
}

# refuse WHAT LIMIT CODE: the code must be refused under this limit.
refuse() {
  precious 640
  prlimit "$2" "$luajit" -e "local good, why = $3
      assert(not good, 'it was not refused')
      io.write(why)" > out.txt 2>&1 || fail "$1: $(cat out.txt)"
  kept "$1 ($(cat out.txt))"
}

refuse "no POSIX timer" --sigpending=0 \
  'misc.sysprof.start{path = "out.ljp", timer = "posix"}'
refuse "no POSIX timer, both profilers" --sigpending=0 \
  'misc.profile.start{path = "out.ljp", cpu = {timer = "posix"}}'
refuse "no POSIX timer, wall" --sigpending=0 \
  'misc.sysprof.start{path = "out.ljp", event = "wall", timer = "posix"}'
for fds in 4 5 6 7; do
  for timer in perf trap; do
    precious 600
    prlimit --nofile=$fds "$luajit" -e "print(misc.sysprof.start{
        path = 'out.ljp', timer = '$timer'})" \
      > out.txt 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- ||
      fail "$fds descriptors: $(cat out.txt)"
    case $(cat out.txt) in
    true) same "$timer, $fds descriptors: mode" 600 "$(stat -c %a out.ljp)" ;;
    *) kept "$timer, $fds descriptors: refused" ;;
    esac
  done
done

# Where a sandbox refuses perf's system call.
without_perf=$BUILD_DIR/zoo/tools/without_perf
if [ -x "$without_perf" ]; then
  for timer in perf trap; do
    precious 604
    "$without_perf" "$luajit" -e "assert(not misc.sysprof.start{
      path = 'out.ljp', timer = '$timer'})" > out.txt 2>&1 ||
      fail "$timer in a sandbox: $(cat out.txt)"
    kept "$timer in a sandbox"
  done
fi

# Nothing remains of the files for perf, but those of an earlier session do.
cat > dumps.lua << 'EOL'
local ffi = require("ffi")
ffi.cdef("int getpid(void);")
local function size(path)
  local file = io.open(path)
  return file and file:seek("end")
end
local pid = ffi.C.getpid()
local dump, map = "jit-" .. pid .. ".dump", "/tmp/perf-" .. pid .. ".map"
local function refused()
  for i = 1, 1e5 do local x = i % 7 end -- something to describe
  assert(not misc.sysprof.start{path = "out.ljp", timer = "posix",
    jitdump = true}, "not refused")
  assert(misc.memprof.start("first.ljp"))
  assert(not misc.profile.start{path = "out.ljp", jitdump = true,
    cpu = {timer = "perf"}}, "not refused")
  assert(misc.memprof.stop())
end
refused()
assert(not size(dump) and not size(map), "files of a refused session")
local started, why = misc.sysprof.start{path = "a.ljp", timer = "perf",
  jitdump = true}
if started then
  assert(misc.sysprof.stop())
  local dumped, mapped = size(dump), size(map)
  assert(dumped and mapped)
  for i = 1, 1e5 do local x = i % 5 end
  refused()
  assert(size(dump) == dumped and size(map) == mapped,
    "a refused session has added to the files")
end
os.remove(dump)
os.remove(map)
EOL
precious 640
prlimit --sigpending=0 "$luajit" dumps.lua > out.txt 2>&1 ||
  fail "jitdump: $(cat out.txt)"
kept "jitdump"
rm -f first.ljp a.ljp

# The CPU part of a session starts, the memory part is refused.
cat > second.lua << 'EOL'
assert(misc.memprof.start("first.ljp"))
local good, why = misc.profile.start{path = "out.ljp", cpu = {timer = "posix"}}
assert(not good and not misc.sysprof.status().running, why)
misc.memprof.stop()
EOL
precious 600
"$luajit" second.lua || fail "second.lua"
kept "memory profiler running already"

for mode in 600 640 666; do
  for profiler in 'sysprof.start{path = "out.ljp", timer = "posix"}' \
    'memprof.start{path = "out.ljp"}' 'profile.start{path = "out.ljp"}'; do
    precious $mode
    "$luajit" -e "assert(misc.$profiler)
      assert(io.open('out.ljp', 'rb'):read(4) == '\\137LJP', 'not in place')" ||
      fail "$profiler"
    same "$profiler keeps the mode" $mode "$(stat -c %a out.ljp)"
  done
done
if [ "$(id -u)" = 0 ]; then
  precious 600
  chown 65534:65534 out.ljp
  "$luajit" -e 'assert(misc.memprof.start("out.ljp"))' || fail "not started"
  same "the owner stays" "65534:65534 600" "$(stat -c '%u:%g %a' out.ljp)"
fi
