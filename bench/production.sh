#!/bin/sh
# What a service pays that is always recorded (--preset production, --ring,
# --continuous): paired runs of the same library, with and without the recording,
# on programs that only compute and on nginx under load. Aim: 0.5 % of CPU time for
# programs that compute, and at most 1 % of nginx's throughput, which slower machines miss
# (doc/guide/always-on.md).
#
#   BUILD_DIR=build bench/production.sh [-n PAIRS] [-s SECONDS] [MEASURE]...
#
# compute: CPU time of the whole process, with the profiler's threads. Work is the
# same in each run; the order changes from pair to pair. The figure is the median of
# the pairs' ratios, and beside it half the distance between their quartiles.
#
# nginx: one worker, wrk on another core. Time for a request, and CPU time of the
# worker and of the profiler's threads for it; PAIRS pairs of servers. See
# production_nginx.py. nginx-cpu and nginx-memory: the same with half of the recording.
# nginx-hello: with a handler that says one word, so that what each request of nginx
# pays for a second thread weighs most. nginx-routes: with handlers that label each
# request by its route and its tenant, and make strings. nginx-where and
# nginx-where-routes: the time that each part of the worker (VM, C library, kernel,
# profiler) takes for a request, without and with the recording, measured by perf.
#
# misses: of programs that allocate, in the first caches for code and data (32 KiB each,
# simulated by valgrind). The first figure is that of a run without a session. The other
# two are what a session that records memory adds: with samples so far apart that hardly
# one is taken (never), and with one sample for each 512 KiB. The start is in none of them.
# Samples and the collector's phases are too rare for their code and data to stay in the
# caches, so a count of instructions says too little.
#
# The start of a session is in the figures of compute, but not in those of nginx. A
# machine that is not quiet makes the spread larger than the cost.
# shellcheck source=test/hosts/lib.sh
. "$(dirname "$0")/../test/hosts/lib.sh"
here=$(realpath "$(dirname "$0")")

pairs='' seconds=5
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
settings="output=$tmp/store;ring=100M;continuous=60s"
only_cpu='interval=10;timer=tick;max-overhead=1;flush=1000'
only_memory='cpu=no;memory;sample=512k;max-samples=100;flush=1000'
echo "load: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs"

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
  PARTS=$1 "$build/bench/bench_pair" "${pairs:-11}" "$tmp/on" "$tmp/off" "$2" "$3" |
    awk '{ printf "%+6.2f %% (+-%.2f)", ($1 - 1) * 100, $4 * 100 }'
}

compute() {
  echo "compute     preset              only CPU samples    only memory" \
    "        instructions (preset)"
  for name in numeric tables methods coroutines; do
    workload=$here/workloads/$name.lua
    size=$(size_for "$workload")
    all=$(cost preset=production "$workload" "$size")
    cpu=$(cost "$only_cpu" "$workload" "$size")
    memory=$(cost "$only_memory" "$workload" "$size")
    on=$(PARTS=preset=production instructions on "$workload" "$size")
    off=$(instructions off "$workload" "$size")
    printf '  %-10s%-20s%-20s%-20s%s\n' "$name" "$all" "$cpu" "$memory" \
      "$(awk -v on="${on:-0}" -v off="${off:-0}" 'BEGIN {
        if (off > 0) printf "%+6.2f %%", (on / off - 1) * 100
        else printf "not counted here" }')"
  done
}

# -- nginx ---------------------------------------------------------------------
# nginx_ready NAME: prints it; sets port, and the number of pairs unless it was given.
nginx_ready() {
  need nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson wrk \
    python3
  rm -rf "$tmp/store"
  mkdir -m 777 "$tmp/store"
  chmod 755 "$tmp"
  port=$((10011 + $$ % 20000)) # below those that the kernel gives to clients
  echo "$1, ${pairs:=40} pairs of servers:"
}

# nginx_pairs NAME PARTS [HANDLER]
nginx_pairs() {
  nginx_ready "$1"
  python3 "$here/production_nginx.py" "$build" "$tmp" "$port" "$pairs" \
    "${3:-rows}" "LJPROF_RECORD=$settings;service=nginx;$2"
  [ "$(find "$tmp/store" -name 'nginx-*.ljp' | wc -l)" -ge "$pairs" ] ||
    fail "nginx is not recorded: $(cat "$tmp/on.d/error.log")"
  "$build/bin/ljprof" exporter --textfile - "$tmp/store" > "$tmp/figures"
  echo "  samples $(figure samples_total), lost $(figure lost_events_total)," \
    "memory events $(figure memory_events_total), profiler's threads" \
    "$(figure overhead_threads_cpu_seconds_total) s of" \
    "$(figure process_cpu_seconds_total) s"
}

# nginx_where HANDLER
nginx_where() {
  need linux-perf
  nginx_ready "nginx, $1, where the recording's cost is"
  python3 -B "$here/production_where.py" "$build" "$tmp" "$port" "$pairs" "$1" \
    "LJPROF_RECORD=$settings;service=nginx;preset=production"
}

# -- Misses --------------------------------------------------------------------
# counts PARTS JIT WORKLOAD SIZE: instructions, misses for code, misses for data
counts() {
  setarch "$(uname -m)" -R env -i LD_PRELOAD="$build/bench/even_start.so" \
    LJP_BENCH_SEED="$seed" ${1:+"LJPROF_RECORD=$settings;$1"} \
    valgrind --tool=cachegrind --smc-check=all-non-file --cachegrind-out-file=/dev/null \
    --cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=16777216,16,64 \
    "$build/bin/luajit" "-j$2" "$3" "$4" 2>&1 > /dev/null |
    sed -nE 's/.*(I *refs|[ID]1 *misses): *([0-9,]*).*/\2/p' | tr -d , | xargs
}

# row WORKLOAD PARTS: the same of some work, without the start: what a run with twice the
# work counts more. WORKLOAD.off: with the JIT compiler off. PARTS '': no session.
row() {
  case $1 in
  *.off) jit=off ;;
  *) jit=on ;;
  esac
  {
    counts "$2" $jit "$here/workloads/${1%.off}.lua" 60
    counts "$2" $jit "$here/workloads/${1%.off}.lua" 120
  } | xargs | awk 'NF == 6 { print $4 - $1, $5 - $2, $6 - $3; done = 1 }
    END { exit !done }' || fail "valgrind has not counted $1"
}

misses() {
  command -v valgrind > /dev/null || fail "valgrind is missing: ./run deps"
  echo "misses per million instructions      code (never)(512 KiB)     data (never)(512 KiB)"
  for seed in 7 8 9; do
    for name in closures closures.off tables tables.off coroutines; do
      off=$(row $name '')
      never=$(row $name 'cpu=no;memory;sample=1G;flush=1000')
      memory=$(row $name "$only_memory")
      echo "$name $off $never $memory" | awk -v seed="$seed" '{
        million = $2 / 1e6
        printf "  %-14s seed %d%19.0f%+8.0f%+9.0f%13.0f%+8.0f%+9.0f\n", $1, seed,
          $3 / million, ($6 - $3) / million, ($9 - $3) / million,
          $4 / million, ($7 - $4) / million, ($10 - $4) / million
      }'
    done
  done
}

# figure NAME: the sum over all sessions of nginx.
figure() {
  grep "^ljprof_$1{service=\"nginx\"" "$tmp/figures" |
    awk '{ sum += $NF } END { printf "%.6g", sum }'
}

for what in "$@"; do
  case $what in
  compute) compute ;;
  misses) misses ;;
  nginx) nginx_pairs nginx preset=production ;;
  nginx-cpu) nginx_pairs "nginx, only CPU samples" "$only_cpu" ;;
  nginx-memory) nginx_pairs "nginx, only memory" "$only_memory" ;;
  nginx-hello) nginx_pairs "nginx, one word" preset=production hello ;;
  nginx-routes)
    nginx_pairs "nginx, 3 routes and 2 tenants" preset=production routes
    ;;
  nginx-where) nginx_where rows ;;
  nginx-where-routes) nginx_where routes ;;
  *)
    echo "production: error: there is no measure '$what'" >&2
    exit 2
    ;;
  esac
done
