#!/bin/sh
# A store survives a full disk, a clock that was set, names that are taken, and
# processes that cannot be told apart by their numbers. The program runs on, and
# what is missing is said.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disk_lib.sh"

ljprof=$BUILD_DIR/bin/ljprof luajit=$BUILD_DIR/bin/luajit

cat > app.lua << 'END'
local ends, keep = os.clock() + tonumber(arg[1]), {}
while os.clock() < ends do
  for i = 1, 1000 do keep[i % 97] = { tostring(i) } end
end
print("result 4711")
END
# shellcheck disable=SC2016 # for later
at_end='[ -z "${app-}" ] || kill -9 $app'

# -- A clock that was set back -------------------------------------------------
# A file from 2099 is older than what comes after it, because its number is. So it
# goes first, and names go on from its number.
"$ljprof" record --service web -o store -- app.lua 0.1 > said 2>&1
first=$(echo store/*.ljp)
mv "$first" store/web-20990101T000000Z-00000050-77.ljp
"$ljprof" record --ring 1M --memory --every --flush 20 --service web -o store -- \
  app.lua 3 > said 2>&1 || fail "$(cat said)"
[ -f "$(echo store/web-20[0-8]*-*.ljp | cut -d ' ' -f 1)" ] || fail "$(ls store)"
case $(find store -name '*.ljp' | sed 's/.*Z-//' | sort | head -n 1) in
000000[0-4]* | 00000050-*) fail "the numbers do not go on: $(ls store)" ;;
esac
[ ! -f store/web-20990101T000000Z-00000050-77.ljp ] ||
  fail "the oldest file is still there: $(ls store)"
ok "the clock was set back: the oldest file has gone first"

# -- Names that are taken ------------------------------------------------------
# Two processes with the same number, as in two containers, record into one
# folder at once: neither loses a file.
if unshare -rpf true 2> unshare.txt; then
  mkdir twins
  for n in 1 2; do
    LJPROF_RECORD="output=$PWD/twins;service=web;continuous=0.1s;flush=10" \
      unshare -rpf "$luajit" app.lua 1 > out.$n 2>&1 &
    eval "twin$n=\$!"
  done
  # shellcheck disable=SC2154
  wait "$twin1" || fail "$(cat out.1)"
  # shellcheck disable=SC2154
  wait "$twin2" || fail "$(cat out.2)"
  if [ "$(cat out.1 out.2 | sort -u)" = "result 4711" ]; then
    for file in twins/*.ljp; do
      "$ljprof" dump "$file" | sed -n 's/^block 0 .*stream \([0-9a-f]*\).*/\1/p'
      same "$file" whole "$("$ljprof" check "$file" | tail -n 1)"
    done > twins.txt
    n=$(find twins -name '*-1.ljp' | wc -l)
    [ "$n" -ge 10 ] || fail "$n files: $(ls twins)"
    "$ljprof" gather twins > list.txt
    same "two processes with number 1" 2 "$(grep -c '^web  *1  dead ' list.txt)"
  else
    fail "the twins say: $(cat out.1 out.2)"
  fi
fi

# -- A full disk ---------------------------------------------------------------
cat > full.sh << 'END'
set -eu
. "$SOURCE_DIR/test/e2e/disk_lib.sh"
small_disk 3m
LJPROF_RECORD="output=$PWD/disk;service=web;ring=2M;memory;every;flush=20" \
  "$1" app.lua 8 > out 2> err &
app=$!
fill_disk
last=$(newest_number)
rm -f disk/filler.*
wait $app
echo "$last $(newest_number)" > numbers
cp disk/*.ljp .
END
if has_small_disks; then
  unshare -rm sh full.sh "$luajit" > full.txt 2>&1 || fail "$(cat full.txt err)"
  same "the program runs on with a full disk" "result 4711" "$(cat out)"
  same "it prints nothing about that" "" "$(cat err)"
  read -r last now < numbers
  [ "$now" -gt "$last" ] || fail "after $last there is no file"
  ok "recording went on when there was room: from file $last to $now"
  lost=0
  for file in web-*.ljp; do
    "$ljprof" check "$file" > check.txt 2>&1 || :
    grep -q 'write error' check.txt && lost=1
    # On a busy machine a file may be over before its first sample.
    "$ljprof" report "$file" > report.txt 2>&1 ||
      grep -q 'the file has no CPU samples' report.txt ||
      fail "$(cat report.txt)"
  done
  grep -l 'the disk was full' report.txt > said || :
  for file in web-*.ljp; do
    "$ljprof" dump "$file" | grep -q 'the disk or the budget was full, so events are missing' && lost=2
  done
  [ $lost != 0 ] || fail "the losses are not said in $(ls web-*.ljp)"
  ok "what was lost is counted"
fi

# A process that may no longer begin files, as a worker that has given up root's
# rights in a folder of root's, keeps within the budget: events are losses then.
if [ "$(id -u)" = 0 ]; then
  cat > drops.lua << 'END'
local ffi = require("ffi")
ffi.cdef "int setuid(unsigned); int setgid(unsigned);"
assert(ffi.C.setgid(65534) == 0 and ffi.C.setuid(65534) == 0)
local keep, past = {}, os.clock() + 1.5
repeat
  for i = 1, 20000 do keep[i % 97] = { i } end
until os.clock() > past
END
  rm -rf roots
  "$ljprof" record --ring 1M --every --memory -o roots -- drops.lua > said 2>&1 || :
  kib=$(find roots -name '*.ljp' -printf '%s\n' | awk '{ n += $1 } END { print int(n / 1024) }')
  if [ "${kib:-0}" -lt 100 ] || [ "$kib" -gt 3072 ]; then
    fail "the files take $kib KiB: $(cat said)"
  fi
  "$ljprof" check roots/*.ljp > check.txt 2>&1 || :
  grep -q 'write error' check.txt || fail "no losses are told: $(cat check.txt)"
  ok "a process that may begin no file stops at $kib KiB, and says what it lost"
fi
