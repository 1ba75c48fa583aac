#!/bin/sh
# ljprof record around a real nginx: master and workers, reloads in the middle
# of requests, a clean stop. Each process leaves a complete stream, and the
# workers' streams name Lua's functions, inside nginx's own functions. The VM of
# each configuration has its memory recorded, in all workers.
. "$(dirname "$0")/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core wrk curl

chmod 777 "$tmp" # The workers run as another user.
cat > "$tmp/busy.lua" << 'EOF'
local busy = {}
local function split(text)
  local words = {}
  for w in text:gmatch("%a+") do words[#words + 1] = w end
  return words
end
function busy.work()
  local n = 0
  for i = 1, 50 do n = n + #split("one two three four " .. i) end
  return n
end
return busy
EOF
config() {
  nginx_config "lua_package_path \"$tmp/?.lua;;\";" << EOF
    location = / {
      content_by_lua_block { ngx.say(require("busy").work()) }
    }
EOF
}

answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/"
}

nginx_start "$build/bin/ljprof" record --children --memory --sample 4096 --force \
  -o "$tmp/n.ljp" -- nginx -p "$tmp" -c "$tmp/nginx.conf"
recorder=$child
master=$(cat "$tmp/nginx.pid")
started="$started $master"
same answer 200 "$(answers)"
maps_ours "$master"
for _ in 1 2; do
  wrk -t1 -c5 -d2s "http://127.0.0.1:$port/" > "$tmp/wrk.log" 2>&1 &
  driver=$!
  started="$started $driver"
  sleep 1
  kill -HUP "$master" # The old workers finish their requests.
  wait "$driver" || fail "wrk failed"
done
answers > "$tmp/last.txt"
same 'answer after reloads' 200 "$(cat "$tmp/last.txt")"
nginx_end "$master" "$recorder"

workers=0 working=0
for file in "$tmp"/n.ljp*; do
  "$build/bin/ljprof" check "$file" > "$tmp/check.log" 2>&1 ||
    fail "$(basename "$file"): $(tail -n 1 "$tmp/check.log")"
  grep -Eq '^memory of ([0-9]+) of \1 VMs?$' "$tmp/check.log" ||
    fail "$(basename "$file"): $(grep ^memory "$tmp/check.log" || echo none)"
  [ "$file" != "$tmp/n.ljp" ] || continue
  workers=$((workers + 1))
  "$build/bin/ljprof" export --to collapsed "$file" -o "$file.txt" ||
    fail "no stacks in $(basename "$file")"
  grep -q 'ngx_http_lua_run_thread;.*;work [^;]*;split ' "$file.txt" || continue
  working=$((working + 1))
  "$build/bin/ljprof" report --alloc "$file" > "$file.txt" ||
    fail "no memory in $(basename "$file")"
  grep -q ' split ' "$file.txt" || fail "$(basename "$file"): $(cat "$file.txt")"
done
same 'workers, each with a complete stream' 6 "$workers"
[ "$working" -ge 4 ] ||
  fail "only $working streams have Lua's functions inside nginx's"
echo "$working of $workers streams have Lua's functions inside nginx's"
