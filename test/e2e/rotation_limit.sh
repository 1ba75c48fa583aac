#!/bin/sh
# A limit on the size of files (RLIMIT_FSIZE) ends no session that rotates: the
# next file segment begins before the limit, and nothing is lost. If not even
# one block fits below the limit, the session says that it has failed.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof

cat > work.lua << 'END'
local rotate, events = tonumber(arg[1]), tonumber(arg[2])
assert(misc.memprof.start({ path = "x.ljp", every = true,
  rotate_bytes = rotate }))
local keep = {}
for i = 1, events do keep[i % 97] = { i } end
local ok, message, number = misc.memprof.stop()
print(ok and "ok" or number)
END

# work BLOCKS BYTES EVENTS: runs with files of at most BLOCKS of 512 bytes.
work() {
  rm -f x.ljp*
  (ulimit -f "$1" && "$BUILD_DIR/bin/luajit" -joff work.lua "$2" "$3") ||
    fail "$*: exit code $?"
}

events=200000
same "a session that rotates" ok "$(work 1200 1e12 $events)"
[ -f x.ljp.s2 ] || fail "no file segments: $(ls -l)"
segment=0 news=0
for file in x.ljp x.ljp.s*; do
  same "$file" whole "$("$ljprof" check "$file" | tail -n 1)"
  segment=$((segment + 1))
done
n=0
while [ $n -lt $segment ]; do
  file=x.ljp$([ $n = 0 ] || echo ".s$n")
  [ "$(wc -c < "$file")" -le 614400 ] || fail "$file is too large"
  "$ljprof" dump --json "$file" > one.json
  grep -q '"type":"loss"' one.json && fail "$file: losses"
  more=$(grep -c '"operation":"alloc"' one.json || :)
  news=$((news + more))
  n=$((n + 1))
done
[ $news -ge $events ] || fail "$news allocations in the files, not $events"
ok "nothing is lost in $segment file segments"

# EFBIG is 27.
same "one that does not" 27 "$(work 1200 nil $events)"
same "one whose blocks do not fit" 27 "$(work 16 1e12 $events)"
