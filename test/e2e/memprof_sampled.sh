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
