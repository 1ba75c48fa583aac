#!/bin/sh
# The CPU profiler through Lua: its interface, the content of its stream, and
# what happens to a session when the program ends, in each way that it can.
. "$(dirname "$0")/lib.sh"

lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof
here=$SOURCE_DIR/test/e2e

"$lua" "$here/sysprof_api.lua" > api.txt 2>&1 || fail "$(cat api.txt)"
ok "the interface: $(tail -n 1 api.txt)"

for file in turn.bin.s*; do
  same "$file can be read alone" whole "$("$ljprof" check "$file" | tail -n 1)"
done

# samples FILE: the sample lines of a stream.
samples() {
  "$ljprof" dump --json "$1" | grep '"type":"sample"' || :
}

# Content: the callers, the lines, and the host frames below.
"$lua" "$here/sysprof_work.lua" work.bin stop
same "a whole stream" whole "$("$ljprof" check work.bin | tail -n 1)"
samples work.bin > all.txt
n=$(wc -l < all.txt)
[ "$n" -ge 150 ] || fail "only $n samples of 0.4 s"
stack='"text":"leaf sysprof_work.lua:10[^}]*},{[^}]*"text":"middle [^}]*},{[^}]*"text":"main chunk '
stack=$(echo "$stack" | sed 's/sysprof_work.lua:10/[^"]*sysprof_work.lua:[0-9]*/')
found=$(grep -c "$stack.*\"kind\":\"host\"" all.txt || :)
[ "$((found * 100))" -ge "$((n * 90))" ] ||
  fail "leaf under middle under main over host frames: $found of $n samples:
$(grep -v "$stack" all.txt | head -n 3)"
ok "leaf, middle, main, host frames: $found of $n samples"
same "no stack is cut" "" "$(grep -v '"cut":"whole"' all.txt | head -n 1)"
# The work is on the lines of the loop.
lines=$("$ljprof" dump --json work.bin | grep -c '"cut":"whole"' || :)
[ "$lines" = "$n" ] || fail "$lines whole of $n"

# Mode L: the leaf and the innermost guest frame. A sample of a system call has a
# [kernel] frame above these; one of our own code, [profiler]. The second script
# has many of the latter, since a memory session records its allocations.
# leaves WHAT FILE: fails unless the samples of the file have no other frames.
leaves() {
  samples "$2" |
    sed 's/"frames":\[{[^}]*"kind":"\(kernel\|profiler\)"[^}]*},*/"frames":[/' \
      > leaf.txt
  same "mode L, $1: two frames at most" "" "$(awk -F'"node":' 'NF > 3' leaf.txt)"
  same "mode L, $1: the second frame is a guest's" "" \
    "$(grep '},{' leaf.txt | grep -v '},{[^}]*"kind":"\(Lua\|inlined\|builtin\|C\)"')"
  grep -q '"text":"leaf ' leaf.txt ||
    fail "mode L, $1, has no leaf: $(head -n 2 leaf.txt)"
}
"$lua" "$here/sysprof_work.lua" leaf.bin stop 'mode="L"'
leaves "a loop" leaf.bin
"$lua" -e '
  local function leaf(t)
    for i = 1, 1000 do t[i] = {} end
  end
  assert(misc.memprof.start{path = "leaf.mem", every = true})
  assert(misc.sysprof.start{path = "leaf.bin", mode = "L"})
  local t0 = os.clock()
  while os.clock() - t0 < 0.4 do leaf({}) end'
leaves "allocations" leaf.bin
samples leaf.bin | grep -q '"frames":\[{[^}]*"kind":"profiler"' ||
  fail "mode L: no sample in the recorder of allocations"

# Ends.
for how in none exit error; do
  rm -f end.bin
  "$lua" "$here/sysprof_work.lua" end.bin $how > out.txt 2>&1 || :
  same "the program ends by $how" whole "$("$ljprof" check end.bin | tail -n 1)"
  [ "$(samples end.bin | wc -l)" -ge 150 ] || fail "$how: few samples"
done
rm -f end.bin
sh -c "\"$lua\" \"$here/sysprof_work.lua\" end.bin kill flush=50" > out.txt 2>&1 || :
[ "$(samples end.bin | wc -l)" -ge 100 ] ||
  fail "kill -9: $(samples end.bin | wc -l) samples"
"$ljprof" check end.bin > check.txt || :
grep -q '0 gaps of 0 bytes' check.txt || fail "$(cat check.txt)"
ok "kill -9 leaves all but the last moment"

# Growing and deep stacks. A deferred sample does not show the hook that took
# it.
"$lua" "$here/sysprof_grow.lua" grow.bin > grow.txt 2>&1 ||
  fail "$(cat grow.txt)"
ok "growing stacks: $(cat grow.txt)"
same "a whole stream" whole "$("$ljprof" check grow.bin | tail -n 1)"
"$ljprof" dump --json grow.bin > grow.json
grep -q '"type":"interval",.*"why":"handling took too large a share"' \
  grow.json || fail "no change of the interval is recorded"
ok "changes of the interval are recorded"
nm "$BUILD_DIR/lib/libluajit-5.1.so.2" | sort |
  awk '/ ljp_sampler_take_deferred$/ { print $1; getline; print $1 }' > range.txt
[ "$(wc -l < range.txt)" = 2 ] || fail "no ljp_sampler_take_deferred: $(cat range.txt)"
grep -o '"frames":\[{[^}]*"text":"libluajit-5.1.so.2+0x[0-9a-f]*"' grow.json |
  sed 's/.*+0x//; s/"//' | sort -u > leaves.txt
[ -s leaves.txt ] || fail "no leaf in the library"
same "no stack begins in the hook" "" "$("$lua" -e '
  local lines = io.lines("range.txt")
  local low, high = tonumber(lines(), 16), tonumber(lines(), 16)
  for leaf in io.lines("leaves.txt") do
    local at = tonumber(leaf, 16)
    if at >= low and at < high then print(leaf) end
  end')"

# fork().
for how in stop follow; do
  rm -f fork.bin*
  "$lua" "$here/sysprof_fork.lua" fork.bin $how > fork.txt 2>&1 ||
    fail "fork, $how: $(cat fork.txt)"
  samples fork.bin > parent.txt
  grep -q '"text":"in_parent ' parent.txt || fail "$how: nothing of the parent"
  same "fork, $how: nothing of the child in its parent's file" 0 \
    "$(grep -c '"text":"in_child ' parent.txt || :)"
done
samples fork.bin.* > child.txt
[ "$(grep -c '"text":"in_child ' child.txt)" -ge 100 ] ||
  fail "fork, follow: $(wc -l < child.txt) samples of the child"
ok "fork, follow: the child has a file of its own"
# With musl, a copy made by a raw clone() may hang in malloc() (doc/guide/musl.md).
hows='fork clone'
[ "${LJP_LIBC:-}" != musl ] || hows=fork
for what in sysprof memprof profile; do
  for how in $hows; do
    rm -f clone.bin*
    timeout 60 "$lua" "$here/raw_clone.lua" clone.bin $what "$how" \
      > clone.txt 2>&1 || fail "$how, $what: $(cat clone.txt)"
    for f in clone.bin*; do
      "$ljprof" check "$f" > clone.txt 2>&1 ||
        fail "$how, $what, $f: $(cat clone.txt)"
    done
  done
done
ok "$hows: a session ends there at once, and another may begin"
i=0
while [ $i -lt 20 ]; do
  "$lua" "$here/sysprof_forks.lua" forks.bin > forks.txt 2>&1 ||
    fail "fork, again and again: $(cat forks.txt)"
  rm -f forks.bin*
  i=$((i + 1))
done
ok "fork: 600 children while tables are made"
