#!/bin/sh
# Estimates from samples: objects and bytes, allocated and in use, each within
# five standard errors of the truth (one failure in a million runs by chance).
. "$(dirname "$0")/lib.sh"

"$BUILD_DIR/bin/luajit" "$SOURCE_DIR/test/e2e/memprof_sampled.lua" s.ljp ||
  fail "the program"
"$BUILD_DIR/bin/ljprof" check s.ljp > check.txt || fail "$(cat check.txt)"
"$BUILD_DIR/bin/ljprof" dump s.ljp | awk '
  function number(key,   at) {
    at = index($0, " " key "=")
    return substr($0, at + length(key) + 2) + 0
  }
  function judge(what, size, count, got,   chance, error) {
    chance = 1 - exp(-size / 4096)
    error = sqrt(count * (1 - chance) / chance)
    printf "%s of %d bytes: %d, estimated %.1f (error %.1f)\n", what, size,
      count, got, error
    if (got < count - 5 * error - 1 || got > count + 5 * error + 1) bad = 1
  }
  /^  mem / {
    split($4, a, "="); at = $0; sub(/.* address=/, "", at); sub(/ .*/, "", at)
    size = number("size"); objects = number("weight") / size
    if ($0 ~ /operation="alloc"/ && $0 ~ /type="cdata"/) {
      made[size] += objects; live[size] += objects; lives[at] = size
    } else if ($0 ~ /operation="free"/ && at in lives) {
      live[lives[at]] -= objects; delete lives[at]
    }
  }
  END {
    judge("made", 17, 200003, made[17]); judge("made", 4096, 20011, made[4096])
    judge("made", 1048575, 13, made[1048575])
    judge("live", 17, 100002, live[17]); judge("live", 4096, 10005, live[4096])
    exit bad
  }' > result.txt || fail "$(cat result.txt)"
while read -r line; do ok "$line"; done < result.txt

# What a report says of all of them: estimates in bounds, and the bounds where they
# belong (once in a million runs the truth is twice as far off).
for measure in alloc live leaks peak; do
  "$BUILD_DIR/bin/ljprof" report --$measure --by line --json s.ljp > report.json
  tr '{' '\n' < report.json | awk -v measure=$measure '
    function field(key) {
      match($0, "\"" key "\":[0-9]+")
      return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
    }
    /^"name":"\/[^"]*memprof_sampled.lua:10",/ {
      half = measure ~ /live|leaks/
      truth["objects"] = half ? 110114 : 220227
      truth["bytes"] = half ? 49000000 : 98996738
      for (what in truth) {
        low = field("self_" what "_low"); high = field("self_" what "_high")
        at = field("self_" what)
        far = low > 0 && low <= at && at <= high ? 0 : 1
        if (half && what == "bytes") truth[what] = at # of 13 large ones 6 or 7
        if (truth[what] < at - 2.1 * (at - low) || truth[what] > at + 2.1 * (high - at))
          far = 1
        printf "%s: %d %s, %d to %d, in truth %d\n", measure, at, what, low, high,
          truth[what]
        bad += far; seen++
      }
    }
    END { exit bad || seen != 2 }' > bounds.txt ||
    fail "$measure: $(cat bounds.txt report.json)"
  while read -r line; do ok "$line"; done < bounds.txt
done

# Whatever is sampled anew when it is reallocated, the figures add up, and each is
# marked as an estimate.
cat > grow.lua << 'EOF'
misc.memprof.start{path = "grow.ljp", sample = not arg[1] and 16384 or nil,
  every = arg[1] and true}
local kept = {}
for i = 1, 4000 do
  local t = {}
  for k = 1, 100 do t[k] = k end
  kept[i % 100] = t
end
misc.memprof.stop()
EOF
"$BUILD_DIR/bin/luajit" grow.lua || fail "a program whose tables grow"
"$BUILD_DIR/bin/ljprof" report --alloc grow.ljp > grow.txt || fail "$(cat grow.txt)"
sed -n 's/^allocated ~\([0-9]*\) objects and ~\([0-9]*\) bytes (~[0-9]* realloc'\
'ations), freed ~\([0-9]*\) and ~\([0-9]*\), live ~\([0-9]*\) and ~\([0-9]*\); pe'\
'ak ~[0-9]* bytes.*/\1 \2 \3 \4 \5 \6/p' grow.txt > sums.txt
read -r made made_bytes freed freed_bytes live live_bytes < sums.txt ||
  fail "the sums are not marked as estimates: $(cat grow.txt)"
[ "$made" -gt 0 ] || fail "nothing was allocated: $(cat grow.txt)"
[ "$made $made_bytes" = "$((freed + live)) $((freed_bytes + live_bytes))" ] ||
  fail "the sums do not add up: $(cat grow.txt)"
"$BUILD_DIR/bin/ljprof" diff --view alloc grow.ljp grow.ljp > diff.txt
[ "$(grep -c ", ~$made allocations" diff.txt)" -eq 2 ] ||
  fail "diff counts something else: $(cat diff.txt)"

# Reallocations are scaled, too: their estimate is far less than twice off.
reallocs() {
  "$BUILD_DIR/bin/ljprof" report --alloc --json grow.ljp |
    sed -n '1s/.*"realloc_events":\([0-9]*\).*/\1/p'
}
about=$(reallocs)
"$BUILD_DIR/bin/luajit" grow.lua every || fail "every event"
truth=$(reallocs)
[ "$truth" -gt 10000 ] || fail "only $truth reallocations"
if [ $((about * 2)) -lt "$truth" ] || [ "$about" -gt $((truth * 2)) ]; then
  fail "$about reallocations, in truth $truth"
fi
ok "$about reallocations, in truth $truth"
ok "estimates add up: $made objects allocated, $freed freed, $live live"
