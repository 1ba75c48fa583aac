#!/bin/sh
# `ljprof gather` lists the files of a store by process, makes one file of what
# dead processes have left, and removes what is too old or too much. It touches
# nothing that is being written, says what it removes, and leaves what is damaged.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof

# app.lua SECONDS: works; with 0 until it is killed.
cat > app.lua << 'END'
local ends, keep = os.clock() + tonumber(arg[1]), {}
local file = assert(io.open("running", "w"))
file:close()
while tonumber(arg[1]) == 0 or os.clock() < ends do
  for i = 1, 1000 do keep[i % 97] = { tostring(i) } end
end
END
# shellcheck disable=SC2016 # for later
at_end='[ -z "${alive-}" ] || kill -9 $alive'

# record SECONDS: into the store, some files.
record() {
  "$ljprof" record --continuous 0.2s --flush 20 --service web -o store -- \
    app.lua "$1" > said 2>&1 || fail "$(cat said)"
}
# samples FILE: their number.
samples() {
  "$ljprof" dump --json "$1" | grep -c '"type":"sample"' || :
}
count() { find store -name '*.ljp' | wc -l; }
# others: files of all but the process that lives, which makes new ones.
others() { find store -name '*.ljp' ! -name "*-$alive.ljp" | wc -l; }

record 0.7
record 0.5
wanted=0
for file in store/*.ljp; do
  wanted=$((wanted + $(samples "$file")))
done
files=$(count)
[ "$files" -ge 4 ] || fail "$files files"

# A third process lives, and a fourth was killed.
LJPROF_RECORD="output=$PWD/store;service=web;continuous=0.2s;flush=20" \
  "$BUILD_DIR/bin/luajit" app.lua 0 &
alive=$!
while [ "$(find store -name "*-$alive.ljp" | wc -l)" -lt 3 ]; do sleep 0.05; done
rm -f running
LJPROF_RECORD="output=$PWD/store;service=web;continuous=0.2s;flush=20" \
  "$BUILD_DIR/bin/luajit" app.lua 0 &
killed=$!
while [ "$(find store -name "*-$killed.ljp" | wc -l)" -lt 2 ]; do sleep 0.05; done
kill -9 $killed
wait $killed 2> /dev/null || :
for file in store/*-"$killed".ljp; do
  wanted=$((wanted + $(samples "$file")))
done

"$ljprof" gather store > list.txt
grep -q "^web  *$alive  alive  *[0-9]" list.txt || fail "$(cat list.txt)"
grep -q "^web  *$killed  dead  *[0-9]" list.txt || fail "$(cat list.txt)"
same "two more dead processes are listed" 3 "$(grep -c ' dead ' list.txt)"
[ "$("$ljprof" gather --service other store 2>&1)" = \
  "ljprof gather: note: store: there are no recordings" ] ||
  fail "another service: $("$ljprof" gather --service other store 2>&1)"

# One file among good ones is damaged, one is no stream at all.
bad=$(find store -name "*-00000002-*.ljp")
lost=$(samples "$bad")
bytes=$(wc -c < "$bad")
head -c 16 /dev/urandom |
  dd of="$bad" bs=1 seek=$((bytes / 2)) conv=notrunc 2> /dev/null
cp "$bad" bad.ljp
echo "no stream" > store/web-20260101T000000Z-00000001-1.ljp
code=0
"$ljprof" gather --merge store > out.txt 2>&1 || code=$?
same "damage is a failure" 1 "$code"
grep -q "^ljprof gather: ${bad#store/} is damaged in .* it stays as it is" out.txt ||
  fail "the damaged file: $(cat out.txt)"
grep -q 'web-20260101T000000Z-00000001-1.ljp: .* it stays as it is' out.txt ||
  fail "the file that is no stream: $(cat out.txt)"
cmp "$bad" bad.ljp || fail "the damaged file has changed"
grep -q 'files are in web-.*-merged.ljp now' out.txt || fail "$(cat out.txt)"
merged=$(find store -name '*-merged.ljp')
[ -f "$merged" ] || fail "the merged files are '$merged'"
same "all samples of the dead are in it, but those of the damaged file" \
  $((wanted - lost)) "$(samples "$merged")"
same "their other files are gone" 1 \
  "$(find store -name 'web-*.ljp' ! -name '*-merged.ljp' \
    ! -name "*-$alive.ljp" ! -name '*Z-00000001-1.ljp' | wc -l)"
[ "$(cat store/.*.made-of | wc -l)" -ge 4 ] || fail "no list of hashes is there"
ok "a list of what it is made of stays beside it"
same "no list of parts is left" "" "$(find store -name '.*.parts')"
kill -0 $alive || fail "the program that is recorded has ended"

# -- Interrupted -------------------------------------------------------------
# The merged file had its name, but its parts were still there: they go, and are
# not counted twice. A list without a merged file means nothing.
record 0.5
newest=$(find store -name 'web-*.ljp' ! -name "*-$alive.ljp" | sort | tail -n 1)
part=${newest#store/}
echo "$part" > "store/.$(basename "$merged").parts"
echo "$part" > store/.web-20260101T000000Z-00000009-merged.ljp.parts
printf '../bad.ljp\n%s\nbad.ljp\n' "$(basename "$merged")" \
  >> "store/.$(basename "$merged").parts"
before=$(others)
"$ljprof" gather --ring 1G store > out.txt 2>&1
same "what was merged is removed" $((before - 1)) "$(others)"
[ ! -f "$newest" ] || fail "the part stays"
if [ ! -f "$merged" ] || [ ! -f bad.ljp ]; then fail "what is no part was removed"; fi
same "no list is left" "" "$(find store -name '.*.parts')"

# -- Pruning -----------------------------------------------------------------
# Two at once remove no more than one.
record 1
kib() { find store -name '*.ljp' -printf '%s\n' | awk '{ s += int(($1 + 4095) / 4096) * 4 } END { print s }'; }
total=$(kib) limit=$(($(kib) / 2))
"$ljprof" gather --ring ${limit}k store > one.txt 2>&1 &
other=$!
"$ljprof" gather --ring ${limit}k store > two.txt 2>&1
wait $other
now=$(kib)
[ "$now" -le "$total" ] || fail "$now of $total KiB are left"
removed=$(cat one.txt two.txt | grep -c '^ljprof gather: note: removed web-')
[ "$removed" -ge 1 ] || fail "nothing was removed: $(cat one.txt two.txt)"
same "no file was removed twice" "$removed" \
  "$(sed -n 's/.*note: removed //p' one.txt two.txt | sort -u | wc -l)"
oldest=$(sed -n 's/.*note: removed //p' one.txt two.txt | sed 's/.*Z-//' | sort | tail -n 1)
first=$(find store -name '*.ljp' ! -name "*-$alive.ljp" | sed 's/.*Z-//' | sort | head -n 1)
[ -z "$first" ] || [ "$(printf '%s\n' "$oldest" "$first" | sort | head -n 1)" = "$oldest" ] ||
  fail "$oldest was removed before $first"
ok "the oldest $removed files were removed"

# By age: an hour-old file goes, the others stay. With a file from the future
# nothing goes.
record 0.5
old=$(find store -name 'web-*.ljp' ! -name "*-$alive.ljp" | sort | tail -n 1)
touch -d '2 hours ago' "$old"
"$ljprof" gather --age 1h store > out.txt 2>&1 || fail "$(cat out.txt)"
same "one is old" "ljprof gather: note: removed ${old#store/}" "$(cat out.txt)"
old=$(find store -name 'web-*.ljp' ! -name "*-$alive.ljp" | sort | tail -n 1)
touch -d '2 hours ago' "$old"
cp "$old" store/web-20990101T000000Z-99999999-1.ljp
refuses "a file from the future" 1 "is from the future" \
  "$ljprof" gather --age 1h store
[ -f "$old" ] || fail "$old was removed, though the clock is wrong"
rm store/web-20990101T000000Z-99999999-1.ljp

# What is written stays, whatever is asked for.
"$ljprof" gather --ring 0 store > out.txt 2>&1 || fail "$(cat out.txt)"
same "nothing is left of the others" 0 "$(others)"
# (Between two files, none is being written.)
tries=0
while ! grep -q 'web: the files that are being written take more' out.txt; do
  tries=$((tries + 1))
  [ $tries -lt 100 ] || fail "$(cat out.txt)"
  "$ljprof" gather --ring 0 store > out.txt 2>&1 || fail "$(cat out.txt)"
done
for fd in "/proc/$alive/fd/"*; do
  case $(readlink "$fd") in
  *.ljp\ \(deleted\)) fail "the file that is being written was removed" ;;
  esac
done
kill -9 $alive
wait $alive 2> /dev/null || :
"$ljprof" gather --ring 0 store > out.txt 2>&1
same "then that one goes, too" 0 "$(count)"
alive=

# -- What is refused ---------------------------------------------------------
refuses "no folder" 1 "nowhere: No such file" "$ljprof" gather nowhere
refuses "a file" 1 "app.lua: Not a directory" "$ljprof" gather app.lua
refuses "no age" 2 "--age is 'old', but must be" "$ljprof" gather --age old store
refuses "no size" 2 "--ring is 'x', but must be" "$ljprof" gather --ring x store
refuses "no service" 2 "--service is '/', but must be" \
  "$ljprof" gather --service / store
