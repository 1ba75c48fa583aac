#!/bin/sh
# A process with several VMs. `ljprof record --memory` follows the memory of all
# VMs, including those made later, and tells them apart. Memory that a VM has
# when it is closed is freed. A session of one VM says how many it does not
# follow.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
TABLES=1009

record() { # CASE [OPTION...]
  case=$1
  shift
  "$ljprof" record --memory "$@" --force -o "$case.ljp" -- \
    "$BUILD_DIR/bin/memory_vms" "$case" > out.txt 2>&1 ||
    fail "$case: $(cat out.txt)"
}

# tables FILE NAME [VIEW]: the tables that functions of this name have allocated.
tables() {
  "$ljprof" dump "$1" | awk -v name="$2" '
    /^  mem / { table = / type="table"/ && /operation="alloc"/; next }
    /^    (Lua|inlined) / && table { if ($2 == name) n++; table = 0; next }
    /^  [a-z]/ { table = 0 }
    END { print n + 0 }'
}

# vms FILE NAME: the number of VMs in which functions of this name allocated.
vms() {
  "$ljprof" report --alloc --by vm --focus "^$2 " --json "$1" |
    tr '{' '\n' | grep -c '"name":"VM ' || :
}

for mode in "" --native; do
  # shellcheck disable=SC2086
  record probe --every $mode
  same "probe $mode: tables of the VM that is closed at once" $((TABLES + 2)) \
    "$(tables probe.ljp probe)"
  same "probe $mode: tables of the VM that works" $((TABLES + 2)) \
    "$(tables probe.ljp worker)"
  balanced "probe $mode" 2 2 probe.ljp

  # shellcheck disable=SC2086
  record threads --every $mode
  same "threads $mode: tables" $((8 * (TABLES + 2))) \
    "$(tables threads.ljp thread)"
  same "threads $mode: VMs" 8 "$(vms threads.ljp thread)"
  balanced "threads $mode" 8 8 threads.ljp
done

record loop --every
same "loop: tables" $((300 * (TABLES + 2))) "$(tables loop.ljp request)"
balanced "loop" 301 301 loop.ljp
"$ljprof" report --live --json loop.ljp > live.json
grep -q '"name":"worker ' live.json || fail "loop: the VM that stays has nothing"
grep -q '"name":"request ' live.json && fail "loop: a closed VM has live memory"
ok "loop: what closed VMs had is freed"

record loop --sample 50
"$ljprof" report --live --json loop.ljp > live.json
grep -q '"name":"worker ' live.json || fail "sampled: nothing is live"
grep -q '"name":"request ' live.json && fail "sampled: a closed VM has memory"
"$ljprof" report --alloc --json loop.ljp > alloc.json
grep -q '"name":"request ' alloc.json || fail "sampled: no VM but the first"
"$ljprof" check loop.ljp | grep -qx 'memory of 301 of 301 VMs' ||
  fail "sampled: $("$ljprof" check loop.ljp)"
ok "loop, sampled: all VMs are followed, and what closed ones had is freed"

"$BUILD_DIR/bin/memory_vms" late late.ljp || fail "late"
same "late: tables of the VM that starts the session" $((TABLES + 2)) \
  "$(tables late.ljp worker)"
same "late: tables of an older VM, once its collector has run" $((TABLES + 2)) \
  "$(tables late.ljp old)"
balanced "late" 2 2 late.ljp

"$BUILD_DIR/bin/memory_vms" own own.ljp || fail "own"
same "own: tables of the VM" $((TABLES + 2)) "$(tables own.ljp worker)"
same "own: tables of other VMs" 0 "$(tables own.ljp other)"
balanced "own" 1 3 own.ljp
"$ljprof" report --alloc own.ljp > report.txt
grep -q '^! memory of 1 of 3 VMs' report.txt ||
  fail "own: the report does not tell: $(head -5 report.txt)"
ok "a session of one VM says so above its report"

"$BUILD_DIR/bin/memory_vms" stop stop.ljp || fail "stop"
# A VM whose thread did not run meanwhile is not followed, which is told.
for i in 0 1 2 3 4; do
  balanced "session $i that ends while others allocate" '[1-5]' 5 stop.ljp.$i
done

"$BUILD_DIR/bin/memory_vms" storm storm.ljp || fail "storm"
for i in 0 1; do
  "$ljprof" check storm.ljp.$i > check.txt || fail "storm: $(cat check.txt)"
  # The program itself takes 1,009 bytes from each VM's allocator for a while.
  # Their events may lie on one side of a session's begin or end.
  off=$(sed -n 's/^memory.*: difference \(-*[0-9]*\).*/\1/p' check.txt)
  [ $((${off:-0} % 1009)) = 0 ] || fail "storm: $(cat check.txt)"
  ok "VMs come and go while sessions do: $(grep ^memory check.txt)"
  rm storm.ljp.$i
done
