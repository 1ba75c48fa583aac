#!/bin/sh
# Above every view stands the time without samples: how much, in which thread,
# and why. Half of this program's CPU time is in a thread that blocks all
# signals.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
"$ljprof" record -o x.ljp "$BUILD_DIR/bin/unsampled_host" 500 2> record.txt ||
  fail "record: $(cat record.txt)"

# A part of the time is before the first round that finds the thread.
grep -Eq '[0-9]+ lost, [45][0-9][0-9]\.[0-9] ms not sampled: .*x.ljp$' \
  record.txt || fail "record's summary: $(cat record.txt)"
ok "record's summary: $(grep lost record.txt)"
why='[0-9.]+ ms of CPU time \([0-9]+\.[0-9] %\) not sampled: '
why=$why'the thread blocks the signal \(thread [0-9]+ "blocker" [0-9.]+ ms\)'

# tells WHAT FILE: the file says how much, why and where.
tells() {
  grep -Eq "$why" "$2" || fail "$1 says nothing: $(head -c 3000 "$2")"
  ok "$1 says it"
}
tells "record" record.txt
"$ljprof" check x.ljp > check.txt || fail "check: $(cat check.txt)"
tells "check" check.txt
grep -E '^CPU time [0-9.]+ m?s = samples [0-9.]+ ms \+ not sampled' check.txt ||
  fail "no balance in check: $(cat check.txt)"
ok "check has the balance"
for by in function line thread vm stack; do
  "$ljprof" report --by $by x.ljp > report.txt || fail "report --by $by"
  tells "report --by $by" report.txt
  grep -q '^CPU time: .* ms more not sampled' report.txt ||
    fail "nothing in the heading: $(head -n 4 report.txt)"
done
"$ljprof" report --tree x.ljp > report.txt
tells "report --tree" report.txt
"$ljprof" report --jit x.ljp > report.txt
tells "report --jit" report.txt
for format in collapsed speedscope callgrind perf-script chrome-trace; do
  "$ljprof" export --to $format -o - x.ljp > export.txt 2> notes.txt ||
    fail "export: $(cat notes.txt)"
  sed 's/\\"/"/g' export.txt notes.txt > all.txt
  tells "export --to $format" all.txt
done
"$ljprof" export --to pprof -o - x.ljp | gzip -dc | tr '\0' ' ' > export.txt
LC_ALL=C grep -aEq "$why" export.txt || fail "export --to pprof says nothing"
ok "export --to pprof says it"
"$ljprof" flame -o x.html x.ljp 2> notes.txt || fail "flame"
sed 's/\\"/"/g' x.html > x.txt
tells "the page" x.txt
"$ljprof" flame --svg -o x.svg x.ljp 2> notes.txt || fail "flame"
sed 's/&#34;/"/g' x.svg > x.txt
tells "the drawing" x.txt
"$ljprof" diff x.ljp x.ljp > diff.txt || fail "diff"
tells "diff" diff.txt
"$ljprof" diff --json x.ljp x.ljp | sed 's/\\"/"/g' > diff.txt || fail "diff"
tells "diff --json" diff.txt
"$ljprof" diff -o diff.html x.ljp x.ljp || fail "diff page"
sed 's/\\"/"/g' diff.html > x.txt
tells "the page of a comparison" x.txt

# JSON has the figures themselves.
for command in report check; do
  "$ljprof" $command --json x.ljp > json.txt
  grep -Eo '\{"thread":[0-9]+,"tid":[0-9]+,"name":"blocker","time":"cpu",'\
'"reason":"the thread blocks the signal","ns":[0-9]{8,9}\}' json.txt ||
    fail "$command --json: $(grep -o '"unsampled":.*' json.txt | head -c 900)"
  ok "$command --json: thread, reason and time"
done

# The profiler's own thread has its name, and its time is not the program's.
cat > rounds.lua << 'EOF'
local status, stop = misc.sysprof.status, os.clock() + 60
local changes, bytes = 0, status().bytes
repeat
  local pause = os.clock() + 0.002
  repeat until os.clock() > pause
  local now = status().bytes
  if now ~= bytes then changes, bytes = changes + 1, now end
until changes == 5 or os.clock() > stop
assert(changes == 5, "the writer never came")
EOF
"$ljprof" record --threads all --memory --every --flush 10 -o own.ljp -- \
  "$BUILD_DIR/bin/luajit" rounds.lua 2> err || fail "record: $(cat err)"
"$ljprof" report --by thread --top 0 own.ljp > report.txt || fail "report"
! grep -q 'ljprof' report.txt || fail "a row of our own: $(cat report.txt)"
"$ljprof" check own.ljp > check.txt || fail "check: $(cat check.txt)"
grep -Eq 'own threads \(thread [0-9]+ "ljprof-writer" [0-9.]+ m?s' check.txt ||
  fail "the writer has no name: $(cat check.txt)"
ok "check names the writer"
"$ljprof" report --json own.ljp > json.txt || fail "report --json"
figure() {
  sed -n "s/.*\"$1\":\([0-9]*\)[,}].*/\1/p" json.txt | head -n 1
}
[ "$(figure recorder_ns)" -gt 0 ] || fail "no time of the writer"
"$ljprof" dump own.ljp | awk '/ cpu-time time/{ sub(/.* ns=/, ""); n += $0 }
  END { printf "%.0f\n", n }' > used.txt
same "what the process used is the program's and the writer's" \
  "$(cat used.txt)" "$(($(figure used_ns) + $(figure recorder_ns)))"
