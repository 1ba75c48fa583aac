#!/bin/sh
# A limit of memory samples (max_samples): there are not many more, the estimates are
# right all the same, the file says how far apart samples were, and they come as close
# as before when the program allocates less. Phases of the collector that follow each
# other quickly are all in the file, in order.
. "$(dirname "$0")/lib.sh"

luajit=$BUILD_DIR/bin/luajit ljprof=$BUILD_DIR/bin/ljprof
program=$SOURCE_DIR/test/e2e/memprof_pace.lua

# judge WHAT: what the program printed and what the file has.
judge() {
  "$ljprof" check s.ljp > check.txt || fail "$1: $(cat check.txt)"
  "$ljprof" dump s.ljp > dump.txt
  awk -v what="$1" '
    function wrong(why) { print what ": " why; bad = 1 }
    function number(key,   at) {
      at = index($0, " " key "=")
      return substr($0, at + length(key) + 2) + 0
    }
    FNR == NR {
      if ($1 == "much") { samples = $2; estimate = $3; truth = $4; most = $5 }
      if ($1 == "little") now = $2
      if ($1 == "cycles") { told = $2; counted = $3 }
      if ($1 == "stopped") stopped = $2
      next
    }
    # A distance that has not changed is told again, once a second.
    /^  interval / && /why="more samples than the limit"/ {
      longer++
      if (number("interval") < distance) wrong("no longer: " $0)
      distance = number("interval")
    }
    /^  interval / && /why="load went down"/ {
      shorter++
      if (number("interval") >= distance) wrong("no shorter: " $0)
      distance = number("interval")
    }
    /^  gc / {
      phase = $0; sub(/.* phase="/, "", phase); sub(/".*/, "", phase)
      time = number("time_ns"); cycle = number("cycle"); gc++
      if (time < last_time) wrong("time went back: " $0)
      if (cycle != last_cycle && (cycle != last_cycle + 1 || phase != "pause"))
        wrong("cycle " last_cycle " and then " $0)
      # The first and the last tell of the heap only.
      if (gc > 1 && phase != last && !((last "," phase) in next_phase)) odd[last "," phase]++
      last_time = time; last_cycle = cycle; last = phase; heap = number("heap_bytes")
      if (!(heap > 1000 && heap < 1e9)) wrong("heap: " $0)
    }
    BEGIN {
      n = split("pause,propagate propagate,atomic atomic,sweep%strings " \
        "sweep%strings,sweep sweep,finalize sweep,pause finalize,pause " \
        "pause,sweep%strings propagate,sweep%strings", list, " ") # a full collection
      for (i = 1; i <= n; i++) { gsub("%", " ", list[i]); next_phase[list[i]] }
    }
    END {
      # Without the limit there would be truth / 4096 of them.
      if (truth / 4096 < 200000) wrong("the program has allocated little: " truth)
      if (most < 64 * 4096) wrong("at most " most " bytes apart")
      if (samples > truth / 4096 / 4) wrong(samples " samples of " truth " bytes")
      # Blocks are much smaller than the distance, so the variance is at most the sum
      # of distances times bytes. Six standard errors.
      error = sqrt(most * truth)
      if (estimate < truth - 6 * error || estimate > truth + 6 * error)
        wrong("estimated " estimate " of " truth " bytes, error " error)
      if (now != 4096) wrong("still " now " bytes apart at the end")
      if (!longer || !shorter || distance != 4096)
        wrong(longer " longer, " shorter " shorter, at last " distance)
      for (i in odd) wrong("from one phase to another: " i ", " odd[i] " times")
      # A full collection ends the cycle that is under way, which finalizes nothing.
      if (told < counted - 1 || told > counted + 3) wrong(told " cycles of " counted)
      if (stopped < told || last_cycle != stopped)
        wrong("the file has " last_cycle " cycles, the status " stopped ", before " told)
      if (gc < 4 * last_cycle) wrong(gc " phases in " last_cycle " cycles")
      printf "%s: %d of %d samples, estimate %+.2f standard errors, %d cycles\n", what,
        samples, truth / 4096, (estimate - truth) / error, last_cycle
      exit bad
    }' out.txt dump.txt > result.txt || fail "$(cat result.txt)"
  ok "$(cat result.txt)"
}

for jit in on off; do
  "$luajit" -j$jit "$program" s.ljp > out.txt || fail "the program, JIT $jit"
  judge "JIT $jit"
done
"$ljprof" report s.ljp > report.txt || fail "report"
grep -Eq '^estimated from [0-9]+ samples \(a limit made them rarer: one for [0-9.]+ [KM]iB at times\); ' \
  report.txt || fail "the report: $(cat report.txt)"
grep -q 'slowed itself' report.txt && fail "the report speaks of CPU samples"
ok "the report"

"$luajit" "$program" s.ljp fork > out.txt || fail "the program that forks"
judge fork
child=$(ls s.ljp.*)
"$ljprof" check "$child" > check.txt || fail "the child: $(cat check.txt)"
ok "a child"

# By the command, with all that a service has.
"$ljprof" record --preset production --no-cpu --force -o s.ljp -- "$luajit" -e '
  for i = 1, 3e6 do kept = {i} end' 2> err || fail "record: $(cat err)"
"$ljprof" dump s.ljp | grep -q 'key="option.memory.max_samples" value="100"' ||
  fail "the preset has no limit"
"$ljprof" record --preset production --max-samples 7 --no-cpu --force -o s.ljp -- \
  "$luajit" -e 'local _ = {}' 2> err || fail "record: $(cat err)"
"$ljprof" dump s.ljp | grep -q 'key="option.memory.max_samples" value="7"' ||
  fail "--max-samples"
ok "the preset"

# Mistakes.
for wrong in -1 1.5 x 1000001 ''; do
  refuses "--max-samples '$wrong'" 2 \
    "max-samples is '$wrong', but must be a whole number of samples a second" \
    "$ljprof" record --memory --max-samples "$wrong" -o no.ljp true
done
refuses "every event" 2 "max-samples and --every contradict each other" \
  "$ljprof" record --memory --every --max-samples 9 -o no.ljp true
refuses "no memory" 2 "--max-samples needs --memory" \
  "$ljprof" record --max-samples 9 -o no.ljp true
[ ! -e no.ljp ] || fail "a file was made"
"$luajit" - << 'END' || fail "wrong options"
local function refused(options, why)
  options.path = "no.ljp"
  local ok, message, number = misc.memprof.start(options)
  assert(ok == nil and number == 22 and message:find(why, 1, true), tostring(message))
  assert(not io.open("no.ljp"))
end
for _, wrong in ipairs { -1, 1.5, "x", 1000001, true } do
  refused({ max_samples = wrong }, "max_samples")
end
refused({ every = true, max_samples = 1 }, "contradict")
refused({ format = "ljm", max_samples = 1 }, "it records every event")
assert(misc.memprof.start { path = "yes.ljp", max_samples = 0, every = true })
assert(misc.memprof.stop())
END
ok "wrong limits"
