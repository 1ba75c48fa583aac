#!/bin/sh
# `ljprof exporter` writes figures of the sessions in a store for Prometheus. They
# are those of the streams, never go down, and follow Prometheus' conventions.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof luajit=$BUILD_DIR/bin/luajit
# shellcheck disable=SC2016 # for later
at_end='[ -z "${alive-}" ] || kill -9 $alive'

cat > app.lua << 'END'
local ends, keep = os.clock() + tonumber(arg[1]), {}
while tonumber(arg[1]) == 0 or os.clock() < ends do
  for i = 1, 1000 do keep[i % 9973] = { tostring(i) } end
  if io.open("stop") then break end
end
END
settings="output=$PWD/store;service=web;memory;continuous=0.3s;flush=20"
mkdir store
LJPROF_RECORD=$settings "$luajit" app.lua 1.5

# figure NAME [LABELS]: its value in m.prom; several: their sum.
figure() {
  grep "^$1{.*${2-}" m.prom | awk '{ sum += $NF } END { printf "%.9f", sum }'
}
# sum PATTERN FIELD: of all records in the files with the pattern.
records() {
  for file in store/*.ljp; do "$ljprof" dump --json "$file"; done |
    grep -e "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" |
    awk '{ sum += $1 } END { printf "%.9f", sum / 1e9 }'
}
events() {
  for file in store/*.ljp; do "$ljprof" dump --json "$file"; done | grep -c "$1"
}

"$ljprof" exporter --textfile m.prom store
[ "$(events '"type":"sample"')" -gt 100 ] || fail "few samples"
same "samples" "$(events '"type":"sample"').000000000" \
  "$(figure ljprof_samples_total)"
same "memory events" "$(events '"type":"mem"').000000000" \
  "$(figure ljprof_memory_events_total)"
same "CPU time" "$(records '"type":"cpu-time"' ns)" \
  "$(figure ljprof_process_cpu_seconds_total)"
same "sampled CPU time" "$(records '"type":"sample"' weight)" \
  "$(figure ljprof_sampled_cpu_seconds_total)"
same "CPU time in the collector" \
  "$(records '"type":"sample".*"state":"GC"' weight)" \
  "$(figure ljprof_gc_cpu_seconds_total)"
[ "$(figure ljprof_gc_cpu_seconds_total)" != 0.000000000 ] || fail "no collector"
same "the profiler's threads" \
  "$(records '"type":"unsampled".*"why":"in the profiler' ns)" \
  "$(figure ljprof_overhead_threads_cpu_seconds_total)"
same "the session has ended" 0.000000000 "$(figure ljprof_session_running)"
same "files" "$(find store -name '*.ljp' | wc -l)" \
  "$(sed -n 's/^ljprof_store_files{service="web"} //p' m.prom)"

# The form: each figure has HELP and TYPE before it, once; counters and only they
# end in _total; names, labels and values are as Prometheus wants them; no line
# comes twice.
awk '
  /^# HELP / { if (help[$3]++) bad("HELP twice"); name = $3; next }
  /^# TYPE / {
    if (type[$3]) bad("TYPE twice")
    if ($3 != name) bad("TYPE without HELP")
    type[$3] = $4
    if (($4 == "counter") != ($3 ~ /_total$/)) bad("not the name of a " $4)
    next
  }
  /^#/ { bad("a comment") }
  {
    if (!match($0, /^[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? [0-9]+(\.[0-9]+)?$/))
      bad("not the form")
    split($0, part, /[{ ]/)
    if (part[1] != name) bad("not behind its TYPE")
    if (seen[$0]++) bad("twice")
    n++
  }
  function bad(why) { print why ": " $0; failed = 1 }
  END { if (n < 10) bad(n " lines"); exit failed }' m.prom > form.txt ||
  fail "$(cat form.txt)"
ok "$(grep -vc '^#' m.prom) figures have Prometheus' form"
if command -v promtool > where.txt; then
  promtool check metrics < m.prom || fail "promtool refuses m.prom"
fi
same "others may read the file" 644 "$(stat -c %a m.prom)"

# -- Counters never go down --------------------------------------------------
LJPROF_RECORD=$settings "$luajit" app.lua 0 &
alive=$!
while [ "$(find store -name "*-$alive.ljp" | wc -l)" -lt 3 ]; do sleep 0.05; done
"$ljprof" exporter --textfile m.prom store
same "a session runs" 1.000000000 "$(figure ljprof_session_running)"
case $(figure ljprof_heap_bytes "pid=\"$alive\"") in
0.*) fail "no heap: $(grep heap m.prom)" ;;
esac
same "the interval is known" 0.001000000 \
  "$(figure ljprof_sample_interval_seconds "pid=\"$alive\"")"
grep -q "^ljprof_program_vms{pid=\"$alive\",program=\"luajit\"} 1$" m.prom ||
  fail "the program is not there: $(grep program_vms m.prom)"
grep -q "^ljprof_program_sessions{pid=\"$alive\",program=\"luajit\",kind=\"memory\"} 1$" \
  m.prom || fail "its session: $(grep program_sessions m.prom)"
names='ljprof_samples_total ljprof_process_cpu_seconds_total
  ljprof_sampled_cpu_seconds_total ljprof_gc_cpu_seconds_total
  ljprof_overhead_threads_cpu_seconds_total'
for name in $names; do figure "$name" > "before.$name"; done
"$ljprof" gather --ring 0 store > pruned.txt 2>&1
same "the files of the other process are gone" 0 \
  "$(find store -name '*.ljp' ! -name "*-$alive.ljp" | wc -l)"
while [ "$(find store -name "*-$alive.ljp" | wc -l)" -lt 3 ]; do sleep 0.05; done
"$ljprof" exporter --textfile m.prom store
for name in $names; do
  figure "$name" > now
  awk 'NR == 1 { before = $1 } END { exit !($1 >= before) }' \
    "before.$name" now || fail "$name went down: $(cat "before.$name" now)"
done
ok "no counter went down when files were removed"
# The file that is being written may go before it is read again.
newest() { find store -name "*-$alive.ljp" | sort | tail -n 1; }
grows() { # The newest file has more than its head.
  file=$(newest)
  head=$(wc -c < "$file")
  for _ in 1 2 3 4 5 6 7 8; do
    sleep 0.02
    [ "$(wc -c < "$file")" -lt $((head + 400)) ] || return 0
  done
  return 1
}
until grows; do :; done
kill -STOP "$alive"
"$ljprof" exporter --textfile m.prom store
for name in $names; do figure "$name" > "before.$name"; done
rm store/*-"$alive.ljp"
"$ljprof" exporter --textfile m.prom store
for name in $names; do
  same "$name without its file" "$(cat "before.$name")" "$(figure "$name")"
done
kill -CONT "$alive"
ok "what a file said that has gone stays"
while [ "$(find store -name "*-$alive.ljp" | wc -l)" -lt 2 ]; do sleep 0.05; done

# Run again with nothing new, a counter of what has ended is the same.
grep "_total{.*" m.prom | grep -v "pid=\"$alive\"" > ended.1
"$ljprof" exporter --textfile m.prom store
grep "_total{.*" m.prom | grep -v "pid=\"$alive\"" > ended.2
cmp ended.1 ended.2 || fail "a session that has ended has grown"
[ -s ended.1 ] || fail "the session that has ended is missing"
"$ljprof" exporter --recent 0 --textfile m.prom store
sleep 1.1
"$ljprof" exporter --recent 0 --textfile m.prom store
same "only sessions that run" 1 "$(grep -c '^ljprof_samples_total' m.prom)"

# A file that goes on: --every writes until a signal comes.
"$ljprof" exporter --textfile m.prom --every 0.2 store &
exporter=$!
before=$(stat -c %i m.prom) n=0
while [ $n -lt 3 ]; do
  now=$(stat -c %i m.prom)
  [ "$now" = "$before" ] || n=$((n + 1))
  before=$now
  sleep 0.05
done
kill -TERM $exporter
code=0
wait $exporter || code=$?
[ $code = 0 ] || [ $code = 143 ] || fail "--every ended with $code"
ok "--every writes again and again"
kill -9 $alive
wait $alive 2> /dev/null || :
alive=

# -- A signal just before the pause ------------------------------------------
cat > early.c << 'END'
#include <dlfcn.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>
int nanosleep(const struct timespec *t, struct timespec *left)
{
  int (*real)(const struct timespec *, struct timespec *);
  *(void **)&real = dlsym(RTLD_NEXT, "nanosleep");
  raise(SIGTERM);
  return real(t, left);
}
int pselect(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t,
            const sigset_t *mask)
{
  int (*real)(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
              const sigset_t *);
  *(void **)&real = dlsym(RTLD_NEXT, "pselect");
  raise(SIGTERM);
  return real(n, r, w, e, t, mask);
}
END
# A sanitizer wants to be the first library.
if ! nm "$ljprof" 2> /dev/null | grep -q '__[at]san_init' &&
  ${CC:-cc} -D_GNU_SOURCE -shared -fPIC -o early.so early.c -ldl; then
  LD_PRELOAD=$PWD/early.so timeout 20 "$ljprof" exporter --textfile e.prom \
    --every 60s store || fail "a signal before the pause: $?"
  ok "a signal just before the pause ends it"
fi

# -- Bad input ---------------------------------------------------------------
echo "no stream" > store/web-20260101T000000Z-00000001-1.ljp
"$ljprof" exporter --textfile m.prom store
same "a file that cannot be read is counted" 1 \
  "$(sed -n 's/^ljprof_store_unreadable_files //p' m.prom)"
for text in 'ljprof-exporter 2' 'nonsense' \
  'ljprof-exporter 1
session 5 service' 'ljprof-exporter 1
session 0 service x' 'ljprof-exporter 1
session 5 service a/b' 'ljprof-exporter 1
session 5 service x pid 99999999999999999999999' 'ljprof-exporter 1
session 5 pid 4' 'ljprof-exporter 1
session 5 service x
session 5 service y'; do
  echo "$text" > .m.prom.state
  "$ljprof" exporter --textfile m.prom store 2> err
  same "a state that is damaged" \
    "ljprof exporter: note: .m.prom.state: it is damaged: the counters begin anew" \
    "$(cat err)"
done
printf 'ljprof-exporter 1\nsession 7 service x samples 3 future 9\n' > .m.prom.state
"$ljprof" exporter --textfile m.prom store 2> err
same "unknown words are passed over" "" "$(cat err)"
grep -q '^ljprof_samples_total{service="x".* 3$' m.prom ||
  fail "the session of the state is missing: $(cat m.prom)"
refuses "no file" 2 "--textfile FILE" "$ljprof" exporter store
refuses "no time" 2 "--every is 'x', but must be" \
  "$ljprof" exporter --textfile m.prom --every x store
refuses "no folder" 1 "nowhere: No such file" \
  "$ljprof" exporter --textfile m.prom nowhere
