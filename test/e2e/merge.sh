#!/bin/bash
# ljprof merge and ljprof embed: the output has everything that was in the input,
# and files that do not belong together are refused.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data

# told FILE: events with their stacks by name, without ids and offsets, which
# differ between input and output.
told() {
  "$ljprof" dump "$1" | sed -nE '/^ *(sample|mem|gc|mark|trace-event|vmstate|interval|module-gone|vm-close|thread-end) |^    [a-zA-Z]/p' |
    sed -E 's/ (thread|vm|producer|stack|trace|proto|module)=[0-9]+//g
      s/(address|old_address)=0x[0-9a-f]{1,4}([0-9a-f]{12}) /\1=0x\2 /g
      s/ (address|old_address)=0x0*/ \1=/g'
}
# whole FILE
whole() {
  "$ljprof" check "$1" > check.txt || fail "$1 is not whole: $(cat check.txt)"
  grep -qx whole check.txt || fail "$1 is not whole"
}

# Segments, in any order.
"$ljprof" merge -o segments.ljp "$data/rotated.ljp.s2" "$data/rotated.ljp" \
  "$data/rotated.ljp.s1" 2> err.txt || fail "segments: $(cat err.txt)"
whole segments.ljp
same "segments are put together in order" "" "$(cat err.txt)"
cat "$data"/rotated.ljp "$data"/rotated.ljp.s1 "$data"/rotated.ljp.s2 |
  cmp - segments.ljp || fail "other bytes"
ok "byte for byte"
"$ljprof" merge -o hole.ljp "$data/rotated.ljp.s2" "$data/rotated.ljp" \
  2> err.txt || fail "two of three segments"
grep -qE '^ljprof merge: note: 10 blocks are missing between .*rotated.ljp and .*rotated.ljp.s2$' \
  err.txt || fail "no word of the missing segment: $(cat err.txt)"
"$ljprof" check hole.ljp > check.txt && fail "a missing segment passes"
grep -q '10 blocks missing' check.txt || fail "$(cat check.txt)"
ok "a missing segment is told, and stays missing"

# Sessions: the output has all their events, without a mix-up.
"$BUILD_DIR/bin/rework" stream "$data/rotated.ljp" other.ljp 0xabc1
"$BUILD_DIR/bin/rework" stream "$data/rotated.ljp.s1" other.ljp.s1 0xabc1
"$BUILD_DIR/bin/rework" stream "$data/rotated.ljp.s2" other.ljp.s2 0xabc1
"$BUILD_DIR/bin/rework" stream "$data/small-table.ljp" small.ljp 0xabc2
"$ljprof" merge -o all.ljp "$data/every-record.ljp" other.ljp.s1 small.ljp \
  other.ljp.s2 other.ljp 2> err.txt || fail "sessions: $(cat err.txt)"
whole all.ljp
same "sessions are put together" "" "$(cat err.txt)"
# (Segments are read together, because a reader keeps definitions.)
"$ljprof" merge -o other-all.ljp other.ljp other.ljp.s1 other.ljp.s2
for f in "$data/every-record.ljp" other-all.ljp small.ljp; do
  told "$f"
done > want.txt
told all.ljp > got.txt
[ "$(wc -l < want.txt)" -gt 1000 ] || fail "only $(wc -l < want.txt) lines"
diff want.txt got.txt > diff.txt || fail "other events: $(head diff.txt)"
ok "every event is there, with its stack ($(wc -l < got.txt) lines)"
# count FILE NAME: number of records of this name, by ljprof check.
count() {
  "$ljprof" check "$1" | awk -v n="$2" '$1 == n { print $2 }'
}
for what in samples mem mark gc loss; do
  sum=0
  for f in "$data/every-record.ljp" other.ljp other.ljp.s1 other.ljp.s2 \
    small.ljp; do
    n=$(count "$f" $what)
    sum=$((sum + ${n:-0}))
  done
  same "as many of $what" "$sum" "$(count all.ljp $what)"
done
# used FILE: number of different VMs, threads and producers in events.
used() {
  "$ljprof" dump "$1" | awk '$1 ~ /^(sample|mem|gc|mark|vmstate|loss|overrun)$/ {
    for (i = 2; i <= NF; i++) if ($i ~ /^(vm|thread|producer)=[1-9]/) print $1, $i
  }' | sort -u | wc -l
}
same "ids of things are the session's own" \
  "$(($(used "$data/every-record.ljp") + $(used other-all.ljp) + $(used small.ljp)))" \
  "$(used all.ljp)"
addresses() { # of all.ljp, of this form
  "$ljprof" dump all.ljp | grep -cE "^ *mem .* address=0x$1 " || :
}
same "addresses of the first session are what they were" \
  "$(count "$data/every-record.ljp" mem)" "$(addresses '[0-9a-f]{1,12}')"
same "no other session shares them" "$(count other-all.ljp mem)" \
  "$(addresses '1[0-9a-f]{12}')"
losses() {
  "$ljprof" check "$1" | sed -n 's/^lost *\([0-9]*\) of producer [0-9]*: \(.*\)/\1 \2/p' | sort
}
same "losses are kept apart" "$(
  {
    losses "$data/every-record.ljp"
    losses other.ljp.s2
    losses small.ljp
  } | sort
)" "$(losses all.ljp)"

"$BUILD_DIR/bin/rework" losses "$data/killed.ljp" l1.ljp
"$BUILD_DIR/bin/rework" stream l1.ljp l2.ljp 0xabc4
"$ljprof" merge -o l.ljp l1.ljp l2.ljp 2> err.txt || fail "losses"
"$ljprof" check l.ljp > check.txt || :
same "losses of the writer itself add up" 1 \
  "$(grep -cE '^lost +62 of producer 0: ring full$' check.txt)"

# A killed session and a damaged session.
"$BUILD_DIR/bin/rework" stream "$data/killed.ljp" killed.ljp 0xabc3
"$ljprof" merge -o killed-too.ljp "$data/every-record.ljp" killed.ljp \
  2> err.txt || fail "with a killed one: $(cat err.txt)"
grep -q 'not every file that was merged had been closed' err.txt ||
  fail "no word of the killed one: $(cat err.txt)"
"$ljprof" check killed-too.ljp > check.txt && fail "it says that it was closed"
grep -q '^not closed' check.txt || fail "$(cat check.txt)"
ok "a session that was killed is told"
{
  head -c 1000 killed.ljp
  printf 'X'
  tail -c +1002 killed.ljp
} > flip.ljp
"$ljprof" merge -o damaged.ljp flip.ljp "$data/every-record.ljp" 2> err.txt ||
  fail "with a damaged one: $(cat err.txt)"
grep -qE 'note: flip.ljp: left out: [0-9]+ damaged bytes in 1 places' err.txt ||
  fail "no word of the damage: $(cat err.txt)"
"$ljprof" dump damaged.ljp | grep -q 'note .*text="flip.ljp: left out:' ||
  fail "no word of the damage in the file"
same "what was missing stays missing" "1 blocks missing" \
  "$("$ljprof" check damaged.ljp | grep -o '1 blocks missing')"

# Files that do not belong together.
refuses "the same file twice" 1 "are the same part of a session" \
  "$ljprof" merge -o no.ljp "$data/killed.ljp" "$data/killed.ljp"
if [ -x "$BUILD_DIR/bin/luajit" ] && "$BUILD_DIR/bin/luajit" -e \
  'assert(misc and misc.sysprof and misc.sysprof.start{path = "lj.ljp", interval = 0.1})
   local t = {} for i = 1, 3e6 do t[i % 97] = i .. "" end' 2> err.txt; then
  refuses "files of two programs" 1 "they do not belong together" \
    "$ljprof" merge -o no.ljp lj.ljp "$data/killed.ljp"
  [ ! -e no.ljp ] || fail "a file is left"
  "$ljprof" merge --unrelated -o yes.ljp "$data/every-record.ljp" lj.ljp ||
    fail "--unrelated"
  whole yes.ljp
  { told "$data/every-record.ljp"; told lj.ljp; } | sed 's/time_ns=[0-9]*//' > want.txt
  told yes.ljp | sed 's/time_ns=[0-9]*//' > got.txt
  diff want.txt got.txt > diff.txt || fail "unrelated: $(head diff.txt)"
  ok "unless that is asked for"
  # Embedding: the same records, and symbols.
  cp lj.ljp before.ljp
  "$ljprof" embed lj.ljp -o embedded.ljp 2> err.txt || fail "embed: $(cat err.txt)"
  whole embedded.ljp
  told before.ljp > want.txt
  told embedded.ljp > got.txt
  diff want.txt got.txt > diff.txt || fail "embed: $(head diff.txt)"
  "$ljprof" dump embedded.ljp |
    grep -qE 'symbol module=[0-9]+ address=0x[0-9a-f]+ level=0 line=[0-9]+ function="main"' ||
    fail "main() has no symbol"
  ok "embedding keeps every record, and brings symbols"
  "$ljprof" embed lj.ljp || fail "in place"
  cmp lj.ljp embedded.ljp || fail "in place"
  "$ljprof" embed lj.ljp 2> err.txt || fail "twice"
  same "a second time there is nothing to do" \
    "ljprof embed: note: lj.ljp: already has its symbols" "$(cat err.txt)"
  cmp lj.ljp embedded.ljp || fail "twice"
  "$ljprof" merge -o e2.ljp embedded.ljp "$data/every-record.ljp" --unrelated ||
    fail "merge of an embedded file"
  same "symbols are merged, too" "$(count embedded.ljp symbol)" \
    "$(count e2.ljp symbol)"
else
  echo "skipped: this build has no profiler"
fi

# Embedding into a damaged file and into an open file.
"$BUILD_DIR/bin/rework" symbols "$data/every-record.ljp" golden.ljp
cmp golden.ljp "$data/embedded.ljp" || fail "the golden stream has changed"
whole golden.ljp
told golden.ljp > got.txt
told "$data/every-record.ljp" | diff - got.txt > diff.txt ||
  fail "golden: $(head diff.txt)"
ok "the golden stream with symbols is what is written"
refuses "a file that is still open, in place" 1 "was not closed" \
  "$ljprof" embed killed.ljp
"$ljprof" embed flip.ljp -o flip2.ljp 2> err.txt || fail "$(cat err.txt)"
told flip.ljp > want.txt
told flip2.ljp > got.txt
diff want.txt got.txt || fail "damage"
same "damage is kept as it is" \
  "$("$ljprof" check flip.ljp | grep -o '[0-9]* gaps of .* missing')" \
  "$("$ljprof" check flip2.ljp | grep -o '[0-9]* gaps of .* missing')"

# Output.
refuses "an output that is there" 1 "exists (use --force to replace it)" \
  "$ljprof" merge -o all.ljp "$data/killed.ljp"
refuses "no output" 2 "no output file given" "$ljprof" merge "$data/killed.ljp"
refuses "an option without its value" 2 "needs a value" \
  "$ljprof" merge "$data/killed.ljp" -o
refuses "a folder that is not there" 1 "No such file" \
  "$ljprof" merge -o nowhere/x.ljp "$data/killed.ljp"
refuses "a full disk" 1 "cannot write: No space left" \
  "$ljprof" merge -o /dev/full "$data/killed.ljp"
# shellcheck disable=SC2016 # sh expands them
refuses "a pipe as input" 1 "must be read twice" \
  sh -c '"$1" embed -o x.ljp /dev/stdin < /dev/null' sh "$ljprof"
refuses "what is no stream" 1 "not an ljprof stream" \
  "$ljprof" merge -o x.ljp "$0"
"$ljprof" merge -o - "$data/killed.ljp" | cmp - "$data/killed.ljp" ||
  fail "to standard output"
ok "to standard output"
"$ljprof" merge -o - "$data/killed.ljp" 2> err.txt | head -c 1 > one.txt
same "a closed pipe is quiet" "" "$(cat err.txt)"
(
  ulimit -f 1
  trap '' XFSZ
  "$ljprof" merge -o big.ljp "$data/every-record.ljp" 2> err.txt && exit 1
  [ ! -e big.ljp ]
) || fail "half a file is left"
same "nothing is left of a file that did not fit" "" \
  "$(find . -name '.big*' -o -name 'big.ljp' -o -name 'x.ljp' -o -name '*no.ljp')"
"$ljprof" merge -o all.ljp --force "$data/killed.ljp" || fail "--force"
cmp all.ljp "$data/killed.ljp" || fail "--force"
ok "--force replaces"

# Two workers of one service run one script.
if [ -x "$BUILD_DIR/bin/luajit" ]; then
  for script in web jobs; do
    echo 'local t = {}' > $script.lua
    "$ljprof" record --memory --every --no-cpu -o $script.ljp $script.lua \
      2> err.txt || fail "$(cat err.txt)"
  done
  mkdir sub && cp web.lua sub/web.lua
  "$ljprof" record --memory --every --no-cpu -o web2.ljp sub/web.lua 2> err.txt ||
    fail "$(cat err.txt)"
  "$ljprof" merge -o two.ljp web.ljp jobs.ljp web2.ljp 2> err.txt || fail "merge"
  same "files of different scripts" "ljprof merge: note: the files are of \
different scripts: web.ljp of web.lua, jobs.ljp of jobs.lua" "$(cat err.txt)"
  "$ljprof" merge -o two.ljp --force web.ljp web2.ljp 2> err.txt || fail "merge"
  same "files of one script" "" "$(cat err.txt)"
  "$ljprof" merge -o two.ljp --force --unrelated web.ljp jobs.ljp 2> err.txt ||
    fail "merge --unrelated"
  same "on request" "" "$(cat err.txt)"
fi
