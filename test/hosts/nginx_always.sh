#!/bin/sh
# nginx that is always recorded, by settings in its environment: under load, with
# reloads, a worker that is killed, and a folder with a budget. The workers run as
# another user. No file is damaged or lost, the budget holds, and what dead workers
# have left is merged.
#
#   nginx_always.sh [SECONDS]: of load for each of the rounds, each of which ends
#   with a reload (2)
. "$(dirname "$0")/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core wrk curl
seconds=${1:-2} rounds=5 budget=8192
ljprof=$build/bin/ljprof
store=$tmp/store
mkdir "$store"
chmod 777 "$tmp" "$store" # The workers run as another user.

config() {
  nginx_config "" << EOF
    location = / {
      content_by_lua_block {
        local words = {}
        for i = 1, 50 do words[i] = ("%d %s"):format(i, tostring(words)) end
        table.sort(words)
        ngx.say(#words)
      }
    }
EOF
}
answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/"
}
# kib: what the files take on the disk, in whole pages.
kib() {
  find "$store" -name '*.ljp' -printf '%s\n' 2> /dev/null |
    awk '{ sum += int(($1 + 4095) / 4096) * 4 } END { print sum + 0 }'
}

cat > "$tmp/web.conf" << EOF
# All that nginx does, within 8 MiB.
output = $store
service = web
preset = production
interval = 0.2
sample = 2k
flush = 100
ring = ${budget}k
continuous = 1s
EOF
nginx_start env LJPROF_RECORD="$tmp/web.conf" LD_LIBRARY_PATH="$build/lib" \
  nginx -p "$tmp" -c "$tmp/nginx.conf"
master=$(cat "$tmp/nginx.pid")
same answer 50 "$(answers)"
maps_ours "$master"
[ ! -s "$tmp/nginx.log" ] || fail "nginx printed: $(cat "$tmp/nginx.log")"

# descriptors, resident: of the master.
descriptors() { find "/proc/$master/fd" -mindepth 1 | wc -l; }
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$master/status"; }

most=0 worker=0
for round in $(seq $rounds); do
  wrk -t1 -c5 -d"$seconds"s "http://127.0.0.1:$port/" > "$tmp/wrk.log" 2>&1 &
  driver=$!
  started="$started $driver"
  while kill -0 "$driver" 2> /dev/null; do
    now=$(kib)
    [ "$now" -le "$most" ] || most=$now
    sleep 0.1
  done
  wait "$driver" || fail "wrk failed"
  if [ "$round" = 3 ]; then # A worker dies; nginx starts another one.
    worker=$(awk '{ print $1 }' "/proc/$master/task/$master/children")
    kill -9 "$worker"
  fi
  kill -HUP "$master"
  wait_for 10 answers > "$tmp/last.txt" || fail "no answer after a reload"
  sleep 0.5 # The old workers end.
  [ "$round" != 1 ] || open=$(descriptors)
  echo "round $round: master $(resident) KiB resident, $(descriptors) descriptors"
done
[ "$(descriptors)" -le $((open + 2)) ] ||
  fail "the master had $open descriptors, and has $(descriptors) now"
# The master, two workers, and at a reload two more; 1 MiB each.
[ "$most" -le $((budget + 5 * 1024)) ] || fail "the files took $most KiB"
echo "the files took $most of $budget KiB"

# The recording of the workers that live goes on.
"$ljprof" gather "$store" > "$tmp/list.txt" 2>&1 || fail "$(cat "$tmp/list.txt")"
alive=$(grep -c ' alive ' "$tmp/list.txt") || fail "$(cat "$tmp/list.txt")"
[ "$alive" -ge 3 ] || fail "$alive processes are alive: $(cat "$tmp/list.txt")"
grep -q " $master  alive " "$tmp/list.txt" || fail "the master is not alive"
"$ljprof" exporter --textfile "$tmp/web.prom" "$store"
running=$(grep -c '^ljprof_session_running{service="web".* 1$' "$tmp/web.prom")
[ "$running" -ge 3 ] || fail "$running sessions run"
lost=$(awk '/^ljprof_lost_events_total/ { n += $NF } END { print n + 0 }' "$tmp/web.prom")
same 'events lost' 0 "$lost"

kill -QUIT "$master"
wait "$child" || fail "nginx ended with $?"
started=
if grep -E '\[(crit|emerg|error)\]' "$tmp/error.log" >&2; then
  fail "nginx's log holds errors"
fi

# samples FILE...: all of them.
samples() {
  for file in "$@"; do "$ljprof" dump --json "$file"; done |
    grep -c '"type":"sample"' || :
}
for file in "$store"/*.ljp; do
  "$ljprof" check "$file" > "$tmp/check.log" 2>&1 && continue
  case $file in
  *-"$worker".ljp) ;; # Its last file has no end.
  *) fail "$(basename "$file"): $(tail -n 2 "$tmp/check.log")" ;;
  esac
done
wanted=$(samples "$store"/*.ljp)
files=$(find "$store" -name '*.ljp' | wc -l)
[ "$wanted" -ge 500 ] || fail "only $wanted samples in $files files"
"$ljprof" gather --merge "$store" > "$tmp/merge.log" 2>&1 ||
  fail "$(cat "$tmp/merge.log")"
same "samples of $files files in $(find "$store" -name '*.ljp' | wc -l)" \
  "$wanted" "$(samples "$store"/*.ljp)"
"$ljprof" report --top 0 "$(find "$store" -name '*-merged.ljp' | head -n 1)" \
  > "$tmp/report.txt"
grep -q 'content_by_lua(nginx.conf:' "$tmp/report.txt" ||
  fail "no handler in: $(cat "$tmp/report.txt")"
