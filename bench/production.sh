#!/bin/sh
# What a service pays that is always recorded (--preset production, --ring,
# --continuous): paired runs of the same library, with and without the recording,
# on programs that only compute and on nginx under load. Target: 0.5 % at most.
#
#   BUILD_DIR=build bench/production.sh [-n PAIRS] [-s SECONDS] [compute|nginx]...
#
# compute: CPU time of the whole process, with the profiler's threads. Work is the
# same in each run; the order changes from pair to pair. nginx: one worker, wrk on
# another core. Requests a second, and CPU time of the worker for each request, which
# a busy machine disturbs less. Both servers run all the time; one of them is idle.
# The start of a session is in the figures of compute, but not in those of nginx.
#
# The figure is the median of the pairs' ratios, and beside it half the distance
# between their quartiles. A machine that is not quiet makes that distance larger
# than the cost.
# shellcheck source=test/hosts/lib.sh
. "$(dirname "$0")/../test/hosts/lib.sh"
here=$(realpath "$(dirname "$0")")

pairs=11 seconds=5
while getopts n:s: option; do
  case $option in
  n) pairs=$OPTARG ;;
  s) seconds=$OPTARG ;;
  *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- compute nginx

mkdir -m 777 "$tmp/store"
settings="output=$tmp/store;preset=production;ring=100M;continuous=60s"
echo "load: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs; $pairs pairs of $seconds s"

# summary FILE: of ratios, as a cost in percent; and how far the median itself may be
# off by chance (its standard error, of as many normal values with these quartiles).
summary() {
  sort -n "$1" | awk '{ v[NR] = $1 } END {
    half = (v[int((NR * 3 + 3) / 4)] - v[int((NR + 3) / 4)]) * 50
    printf "%+6.2f %% (+-%.2f, of the median +-%.2f)",
      (v[int((NR + 1) / 2)] - 1) * 100, half, 1.858 * half / sqrt(NR) }'
}

# -- Programs that only compute ------------------------------------------------
cat > "$tmp/off" << END
#!/bin/sh
unset LJPROF_RECORD
exec "$build/bin/luajit" "\$@"
END
cat > "$tmp/on" << END
#!/bin/sh
export LJPROF_RECORD="output=$tmp/store;ring=100M;continuous=60s;\$PARTS"
exec "$build/bin/luajit" "\$@"
END
chmod +x "$tmp/on" "$tmp/off"

# size_for WORKLOAD: how large the work must be to take so many seconds of CPU time.
size_for() {
  "$build/bench/bench_pair" 1 "$tmp/off" "$tmp/off" "$1" 100 |
    awk -v s="$seconds" '{ printf "%d", 100 * s / ($2 + 0.001) + 1 }'
}

# instructions SIDE WORKLOAD SIZE: of one run, in user mode; nothing if the machine
# does not count them.
instructions() {
  perf stat -x, -e instructions:u -o "$tmp/perf.txt" "$tmp/$1" "$2" "$3" \
    > "$tmp/out.log" 2>&1 || return 0
  awk -F, '/instructions/ && $1 ~ /^[0-9]+$/ { print $1 }' "$tmp/perf.txt"
}

# cost PARTS WORKLOAD SIZE: of these settings, in percent of CPU time.
cost() {
  PARTS=$1 "$build/bench/bench_pair" "$pairs" "$tmp/on" "$tmp/off" "$2" "$3" |
    awk '{ printf "%+6.2f %% (+-%.2f)", ($1 - 1) * 100, $4 * 100 }'
}

compute() {
  echo "compute     preset              only CPU samples    only memory" \
    "        instructions (preset)"
  for name in numeric tables methods coroutines; do
    workload=$here/workloads/$name.lua
    size=$(size_for "$workload")
    all=$(cost preset=production "$workload" "$size")
    cpu=$(cost 'interval=10;timer=tick;max-overhead=1;flush=1000' "$workload" "$size")
    memory=$(cost 'cpu=no;memory;sample=512k;flush=1000' "$workload" "$size")
    on=$(PARTS=preset=production instructions on "$workload" "$size")
    off=$(instructions off "$workload" "$size")
    printf '  %-10s%-20s%-20s%-20s%s\n' "$name" "$all" "$cpu" "$memory" \
      "$(awk -v on="${on:-0}" -v off="${off:-0}" 'BEGIN {
        if (off > 0) printf "%+6.2f %%", (on / off - 1) * 100
        else printf "not counted here" }')"
  done
}

# -- nginx ---------------------------------------------------------------------
# server SIDE PORT: starts nginx with one worker.
server() {
  mkdir -p "$tmp/$1.d/body"
  chmod 777 "$tmp/$1.d" "$tmp/$1.d/body"
  cat > "$tmp/$1.d/nginx.conf" << END
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
worker_processes 1;
pid $tmp/$1.d/nginx.pid;
error_log $tmp/$1.d/error.log error;
events { worker_connections 128; }
http {
  access_log off;
  client_body_temp_path $tmp/$1.d/body;
  proxy_temp_path $tmp/$1.d/body;
  fastcgi_temp_path $tmp/$1.d/body;
  uwsgi_temp_path $tmp/$1.d/body;
  scgi_temp_path $tmp/$1.d/body;
  server {
    listen 127.0.0.1:$2;
    location / {
      content_by_lua_block {
        local cjson = require "cjson"
        local rows = {}
        for i = 1, 40 do
          rows[i] = { id = i, name = ("row %d"):format(i), even = i % 2 == 0 }
        end
        table.sort(rows, function(a, b) return a.name < b.name end)
        ngx.say(cjson.encode(rows))
      }
    }
  }
}
END
  "$tmp/$1.nginx" -c "$tmp/$1.d/nginx.conf" -p "$tmp/$1.d" > "$tmp/$1.log" 2>&1 &
  started="$started $!"
  for _ in $(seq 100); do
    curl -s -o "$tmp/answer" "http://127.0.0.1:$2/" && break
    sleep 0.05
  done
  grep -q '"row 1"' "$tmp/answer" || fail "nginx ($1) does not answer"
  eval "$1_worker=\$(tr -d ' ' < /proc/$!/task/$!/children)"
}

# ticks PID: CPU time, user and system.
ticks() {
  sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# load SIDE PORT: requests a second, and ticks for a million requests.
load() {
  worker=
  eval "worker=\$$1_worker"
  before=$(ticks "$worker")
  wrk -t1 -c8 -d"$seconds"s "http://127.0.0.1:$2/" > "$tmp/wrk.log"
  after=$(ticks "$worker")
  awk -v ticks=$((after - before)) '
    / requests in / { n = $1 }
    /Requests\/sec/ { rate = $2 }
    /Non-2xx/ { exit 1 }
    END { print rate, ticks * 1000000 / n }' "$tmp/wrk.log" ||
    fail "requests failed: $(cat "$tmp/wrk.log")"
}

nginx_pairs() {
  need nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson \
    wrk curl
  for side in on off; do
    {
      echo '#!/bin/sh'
      echo "export LD_LIBRARY_PATH='$build/lib'"
      [ $side = off ] || echo "export LJPROF_RECORD='$settings;service=nginx'"
      echo 'exec nginx "$@"'
    } > "$tmp/$side.nginx"
    chmod +x "$tmp/$side.nginx"
  done
  port=$((21011 + $$ % 20000))
  server off $port
  server on $((port + 1))
  [ "$(find "$tmp/store" -name 'nginx-*.ljp' | wc -l)" -ge 2 ] ||
    fail "nginx is not recorded: $(cat "$tmp/on.log" "$tmp/on.d/error.log")"
  load off $port > "$tmp/out.log" # Its traces are compiled.
  load on $((port + 1)) > "$tmp/out.log"
  : > "$tmp/rates"
  : > "$tmp/costs"
  for i in $(seq "$pairs"); do
    if [ $((i % 2)) = 0 ]; then
      off=$(load off $port)
      on=$(load on $((port + 1)))
    else
      on=$(load on $((port + 1)))
      off=$(load off $port)
    fi
    echo "$on $off" | awk '{ print $3 / $1 }' >> "$tmp/rates"
    echo "$on $off" | awk '{ print $2 / $4 }' >> "$tmp/costs"
  done
  "$build/bin/ljprof" exporter --textfile - "$tmp/store" > "$tmp/figures"
  echo "nginx          ${off%% *} requests a second without the recording"
  echo "  time for a request, by throughput   $(summary "$tmp/rates")"
  echo "  CPU time of the worker for it       $(summary "$tmp/costs")"
  echo "  samples $(figure samples_total), lost $(figure lost_events_total)," \
    "memory events $(figure memory_events_total), profiler's threads" \
    "$(figure overhead_threads_cpu_seconds_total) s of" \
    "$(figure process_cpu_seconds_total) s"
}

# figure NAME: the sum over all sessions of nginx.
figure() {
  grep "^ljprof_$1{service=\"nginx\"" "$tmp/figures" |
    awk '{ sum += $NF } END { printf "%.6g", sum }'
}

for what in "$@"; do
  case $what in
  compute) compute ;;
  nginx) nginx_pairs ;;
  *)
    echo "production: error: there is no measure '$what'" >&2
    exit 2
    ;;
  esac
done
