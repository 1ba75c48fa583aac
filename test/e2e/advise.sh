#!/bin/sh
# ljprof advise on programs with one planted fault each and on their repaired
# twins (test/advise).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/advise_lib.sh"

faults=0
for program in "$programs"/faults/*.lua; do
  name=$(basename "$program" .lua)
  # Where the kernel does not tell where threads wait, no wait is known.
  [ "$name" != lock ] || cat /proc/self/syscall > /dev/null 2>&1 || continue
  # On some CPUs the step from one key to the next takes less than the quarter of
  # the time that the finding needs: the loops around it wait for its result. The
  # share differs by some points from run to run.
  if grep -q '^-- kind: pairs' "$program"; then
    record probe "$program"
    steps=$("$ljprof" report --native probe.ljp |
      awk '/ lj_(vm|tab)_next$/ { n += $3 } END { print int(n) }')
    [ "$steps" -ge 33 ] || {
      echo "$name: the steps take $steps % on this CPU"
      continue
    }
  fi
  judge_pair "$name"
  faults=$((faults + 1))
  ok "$name: $(cat judged.txt)"
done
[ $faults -ge 12 ] || fail "only $faults faults"
