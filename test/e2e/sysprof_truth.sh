#!/bin/sh
# The profile of a program whose times are known is right within one percentage
# point at 10,000 samples, on each timer, time in the kernel included.
. "$(dirname "$0")/lib.sh"

for timer in perf posix; do
  "$BUILD_DIR/bin/luajit" "$SOURCE_DIR/test/e2e/sysprof_truth.lua" \
    truth.bin $timer > truth.txt || fail "$timer: $(cat truth.txt)"
  if grep -q '^not permitted' truth.txt; then
    ok "$timer: $(cat truth.txt)"
    continue
  fi
  "$BUILD_DIR/bin/ljprof" dump --json truth.bin |
    grep '"type":"sample"' > samples.txt
  awk -v timer=$timer '
    NR == FNR { truth[$1] = $2; next }
    {
      match($0, /"weight":[0-9]+/)
      weight = substr($0, RSTART + 9, RLENGTH - 9)
      name = "other"
      if (match($0, /"text":"in_[a-z_]*/))
        name = substr($0, RSTART + 8, RLENGTH - 8)
      seen[name] += weight
      all += weight
      n++
    }
    END {
      for (name in truth) {
        if (name == "seconds")
          continue
        got = seen[name] / all * 100
        off = got - truth[name]
        printf "%s %s: %.2f %%, profile %.2f %%\n", timer, name, truth[name], got
        if (off > 1 || off < -1) bad = 1
      }
      ratio = all / 1e9 / truth["seconds"]
      printf "%s: %d samples, %.4f of the time\n", timer, n, ratio
      if (n < 10000 || ratio < 0.99 || ratio > 1.01) bad = 1
      exit bad
    }' truth.txt samples.txt > result.txt || fail "$(cat result.txt)"
  ok "$(tr '\n' ';' < result.txt)"
done
