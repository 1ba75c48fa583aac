#!/bin/sh
# ljprof report --gc-cost: the rows add up to the collector's time, in each view;
# what does not stay pays only for sweeping; and what the file lacks is said.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
cat > app.lua << 'END'
local keep = {}
local function hold(n)
  for i = 1, n do
    keep[i] = {i, i}
  end
end
local function churn(n)
  local t
  for i = 1, n do
    t = {i, i}
  end
  return t
end
hold(20000)
local enough = os.clock() + 0.5
repeat
  churn(20000)
until os.clock() > enough
END
"$ljprof" record --memory --sample 4096 -o app.ljp -- "$BUILD_DIR/bin/luajit" \
  -joff app.lua > out.txt 2>&1 || fail "not recorded: $(cat out.txt)"
key() { # KEY: a number of the totals
  sed -n "1s/.*\"$1\":\([0-9]*\).*/\1/p" gc.json
}
row() { # NAME: the time of a row
  sed -n "s/.*\"name\":\"$1[^\"]*\",\"self_ns\":\([0-9]*\),.*/\1/p" gc.json
}
for by in function line stack type thread; do
  for view in "" --native; do
    # shellcheck disable=SC2086 # No word, or one.
    "$ljprof" report --gc-cost --by $by $view --json app.ljp > gc.json ||
      fail "--gc-cost --by $by"
    [ "$(key gc_samples)" -gt 0 ] || fail "no sample of the collector"
    sum=$(grep -o '"self_ns":[0-9]*' gc.json | cut -d: -f2 |
      awk '{ n += $1 } END { printf "%d", n }')
    same "by $by $view: rows add up" \
      $(($(key gc_mark_ns) + $(key gc_sweep_ns) + $(key gc_unknown_ns))) "$sum"
  done
done
# How long each phase took is a matter of samples. So only what holds for any
# time is asked.
"$ljprof" report --gc-cost --json app.ljp > gc.json || fail "--gc-cost"
[ "$(row churn)" -le "$(($(key gc_sweep_ns) + $(key gc_mark_ns) / 10))" ] ||
  fail "churn pays for marking: $(cat gc.json)"
[ "$(row hold)" -gt 0 ] || fail "what stays costs nothing: $(cat gc.json)"
ok "what does not stay pays for sweeping only"
"$ljprof" report --gc-cost app.ljp > gc.txt || fail "as text"
grep -Eq '^marking .*, sweeping .* in [0-9]+ sample' gc.txt ||
  fail "no phases: $(cat gc.txt)"
grep -q ' samples  *total' gc.txt && fail "a column of samples: $(cat gc.txt)"
grep -q '^ *~.* ~.* hold app.lua' gc.txt ||
  fail "what sampled memory costs is no estimate: $(cat gc.txt)"
ok "text: $(grep '^marking' gc.txt)"
"$ljprof" flame --svg --view gc-cost -o gc.svg app.ljp || fail "as a drawing"
grep -q '<title>hold' gc.svg || fail "no box of what stays: $(cat gc.svg)"
ok "drawn"
"$ljprof" expect app.ljp 'gc-cost(hold) <= 100 %' 'gc-cost <= 1 h' > out.txt ||
  fail "as budgets: $(cat out.txt)"
ok "budgets know it"

# What lua_close() frees is no phase of the collector, and is told apart.
cat > closes.lua << 'END'
local keep = {}
for i = 1, 400000 do
  keep[i] = {i, i}
end
if arg[1] then
  os.exit(0)
end
END
for how in "" leave; do
  # shellcheck disable=SC2086 # No word, or one.
  "$ljprof" record --memory --sample 4096 --force -o closes.ljp \
    "$BUILD_DIR/bin/luajit" -joff closes.lua $how > out.txt 2>&1 ||
    fail "not recorded: $(cat out.txt)"
  "$ljprof" report --gc-cost closes.ljp > gc.txt || fail "--gc-cost"
  "$ljprof" report --native --json closes.ljp > native.json || fail "--native"
  freed=$(grep -c '"name":"lj_gc_freeall"' native.json || :)
  same "closed VMs, as in the native view${how:+, none}" "$freed" \
    "$(grep -c '^freeing closed VMs took [0-9.]* [mu]*s more' gc.txt || :)"
done
same "a program that leaves its VM open" 0 "$freed"

"$ljprof" record --memory --every --no-cpu -o memory.ljp -- \
  "$BUILD_DIR/bin/luajit" -joff -e 'local t = {}' > out.txt 2>&1 ||
  fail "not recorded: $(cat out.txt)"
refuses "a file without CPU samples" 1 "needs CPU samples and memory events" \
  "$ljprof" report --gc-cost memory.ljp
refuses "a part of the session" 2 "so --time cannot be given with it" \
  "$ljprof" report --gc-cost --time 0..1 app.ljp
refuses "one of the threads" 2 "so --thread cannot be given with it" \
  "$ljprof" report --gc-cost --thread 1 app.ljp
refuses "a drawing of one of the threads" 2 "so --thread cannot be given with" \
  "$ljprof" flame --svg --view gc-cost --thread 1 -o one.svg app.ljp
refuses "two measures" 2 "only one of" "$ljprof" report --gc-cost --cpu app.ljp
