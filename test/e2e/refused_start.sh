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
