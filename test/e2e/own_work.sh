#!/bin/sh
# What our hooks do in the program's threads is [profiler] in all views, and never
# a function of the program's.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
script=$SOURCE_DIR/test/e2e/own_work.lua

# How our functions' names begin that the VM calls. A compiler may make jumps of
# calls, so static functions are among them.
OURS='ljp|every|hook|marker|memprof|proto|recorder|sampled|sysprof'

# samples_in_report OPTION...: the number of samples in the row [profiler].
samples_in_report() {
  "$ljprof" report --json --top 0 "$@" own.ljp |
    sed -n 's/^{"name":"\[profiler\]","self_samples":\([0-9]*\),.*/\1/p' \
      > row.txt
  [ -s row.txt ] || echo 0 > row.txt
  cat row.txt
}
# The same in collapsed stacks.
samples_in_export() {
  "$ljprof" export --to collapsed "$@" --force -o stacks.txt own.ljp 2> err ||
    fail "export: $(cat err)"
  awk '/(^|;)\[profiler\] [0-9]+$/ {n += $NF} END {print n + 0}' stacks.txt
}
for how in "" --memory "--memory --every" "--memory --event wall"; do
  # shellcheck disable=SC2086 # words are wanted here
  "$ljprof" record --interval 0.2 --force $how -o own.ljp "$script" 2> err ||
    fail "record $how: $(cat err)"
  n=$(samples_in_export)
  ! grep -E "(^|;)($OURS)_[a-z_]+(;| [0-9]+\$)" stacks.txt > ours.txt ||
    fail "record $how: functions of ours: $(head -n 3 ours.txt)"
  # Where the timer is coarse, there are few samples.
  [ -z "$how" ] || [ "$n" -gt 0 ] || fail "record $how: no samples in [profiler]"
  same "record $how: all views have the same [profiler]" "$n $n $n $n $n" \
    "$(samples_in_report) $(samples_in_report --native) $(
      samples_in_report --by line) $(samples_in_report --by file) $(
      samples_in_export --lua)"
  # What the program can change is no more than its own work. (Findings overlap.)
  most=$(awk '/;closures / && !/\[profiler\]/ {n += $NF} END {print n + 0}' \
    stacks.txt)
  "$ljprof" advise --json own.ljp > advice.json
  seen=$(grep "\"function\":\"closures\"" advice.json |
    sed "s/.*\"evidence\":{[^}]*\"samples\":\([0-9]*\).*/\1/" | sort -n | tail -n 1)
  [ "${seen:-0}" -le "$most" ] ||
    fail "record $how: $seen samples are evidence, but only $most in closures()"
done
