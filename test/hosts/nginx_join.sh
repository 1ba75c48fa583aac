#!/bin/sh
# A worker of nginx under wrk is joined many times (LJP_JOIN_COUNT, 1000), and then
# recorded: no request is lost, no answer changes, and the worker has the threads,
# descriptors and memory of before.
. "$(dirname "$0")/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache wrk curl
count=${LJP_JOIN_COUNT:-1000}

config() {
  nginx_config '' << EOF
    location = /pid { content_by_lua_block { ngx.say(ngx.worker.pid()) } }
    location = /page {
      content_by_lua_block {
        local n, parts, sum = tonumber(ngx.var.arg_n), {}, 0
        for i = 1, n do
          parts[i] = ("%d:%s"):format(i, ("x"):rep(i % 7))
          sum = sum + i * i % 13
        end
        if n % 10 == 0 then ngx.sleep(0.001) end
        ngx.say(#table.concat(parts, ","), " ", sum)
      }
    }
EOF
  sed -i 's/^worker_processes 2;/worker_processes 1;/' "$tmp/nginx.conf"
}

answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/pid"
}
plain() {
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH exec nginx -p "$tmp" -c "$tmp/nginx.conf"
}
nginx_start plain
master=$child
worker=$(answers)
maps_ours "$worker"

# Each answer is compared with what the same request got from a plain Lua.
cat > "$tmp/drive.lua" << 'EOF'
local threads, n = {}, 0
function setup(thread)
  threads[#threads + 1] = thread
end
function init()
  good, bad = 0, 0
end
local function wanted(n)
  local length, sum = n - 1, 0
  for i = 1, n do
    length = length + #tostring(i) + 1 + i % 7
    sum = sum + i * i % 13
  end
  return length .. " " .. sum .. "\n"
end
local known = {}
for i = 1, 50 do known[wanted(i)] = true end
function request()
  n = n % 50 + 1
  return wrk.format("GET", "/page?n=" .. n)
end
function response(status, _, body)
  if status == 200 and known[body] then
    good = good + 1
  else
    bad = bad + 1
  end
end
function done(summary)
  local good, bad, errors = 0, 0, 0
  for _, thread in ipairs(threads) do
    good, bad = good + thread:get("good"), bad + thread:get("bad")
  end
  for _, count in pairs(summary.errors) do errors = errors + count end
  io.write(("good=%d lost=%d bad=%d errors=%d\n"):format(good,
    summary.requests - good - bad, bad, errors))
end
EOF
# load SECONDS: in the background.
load() {
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH wrk -t1 -c7 -d"$1"s -s "$tmp/drive.lua" \
    "http://127.0.0.1:$port/" > "$tmp/wrk.log" 2>&1 &
  driver=$!
  started="$started $driver"
}
# loaded WHAT: the load has ended, and nothing was lost.
loaded() {
  wait "$driver" || fail "$1: wrk failed"
  same "$1" 'lost=0 bad=0 errors=0' \
    "$(sed -n 's/^good=[1-9][0-9]* //p' "$tmp/wrk.log")"
  grep -E '^good=|Requests/sec' "$tmp/wrk.log"
}
rss() {
  sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$worker/status"
}
files() { # of the worker, but for its connections
  find "/proc/$worker/fd" -type l ! -lname 'socket:*' | wc -l
}

load 5
sleep 1
"$build/bin/join_loop" "$worker" 20 > "$tmp/join.log" ||
  fail "$(cat "$tmp/join.log")"
loaded "20 visits"
threads_before=$(ls "/proc/$worker/task")
files_before=$(files)
rss_before=$(rss)

load $((5 + count / 20))
sleep 1
"$build/bin/join_loop" "$worker" "$count" > "$tmp/join.log" ||
  fail "$(cat "$tmp/join.log")"
kill -0 "$driver" 2> /dev/null || fail "the load ended before the visits"
sed "s/^/$count visits: /" "$tmp/join.log"
loaded "$count visits"
wait_for 10 test "$(ls "/proc/$worker/task")" = "$threads_before" ||
  fail "threads: $threads_before, now $(ls "/proc/$worker/task")"
same descriptors "$files_before" "$(files)"
grown=$(($(rss) - rss_before))
[ $grown -lt 1024 ] || fail "the worker has grown by $grown KiB"
echo "the worker has grown by $grown KiB"

load 6
sleep 1
"$build/bin/ljprof" record -p "$worker" --duration 3 -o "$tmp/nginx.ljp" \
  > "$tmp/record.log" 2>&1 || fail "record -p"
loaded "record -p"
"$build/bin/ljprof" check "$tmp/nginx.ljp" > "$tmp/check.log" ||
  fail "check: $(cat "$tmp/check.log")"
"$build/bin/ljprof" report "$tmp/nginx.ljp" > "$tmp/report.txt"
grep -q 'content_by_lua' "$tmp/report.txt" ||
  fail "no page in the report: $(cat "$tmp/report.txt")"
same "after record -p, descriptors" "$files_before" "$(files)"
nginx_end "$master" "$master"
