#!/bin/sh
# nginx with its Lua module serves a page that uses strings, tables, cjson, the
# FFI, cosockets, coroutines and timers. wrk, with a Lua script, then puts load
# on it. Everything runs on 127.0.0.1 with a prefix, port and processes of its
# own.
. "$(dirname "$0")/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson \
  wrk curl

config() {
  nginx_config 'lua_shared_dict counters 1m;' << EOF
    location = /pid { content_by_lua_block { ngx.say(ngx.worker.pid()) } }
    location = /echo {
      content_by_lua_block {
        ngx.req.read_body()
        ngx.print(string.reverse(ngx.req.get_body_data() or ""))
      }
    }
    location = /timer {
      content_by_lua_block {
        local counters = ngx.shared.counters
        assert(ngx.timer.at(0, function(_, add)
          counters:incr("fired", add, 0)
        end, 13))
        for _ = 1, 100 do
          if (counters:get("fired") or 0) >= 13 then break end
          ngx.sleep(0.02)
        end
        ngx.say("fired ", counters:get("fired"))
      }
    }
    location = /page {
      content_by_lua_block {
        local n = tonumber(ngx.var.arg_n) or 5
        local cjson, ffi = require("cjson"), require("ffi")
        local lru = assert(require("resty.lrucache").new(7))
        for i = 1, n do lru:set(i, ("%03d"):format(i)) end
        local words = {}
        for w in ("one two three"):gmatch("%a+") do
          words[#words + 1] = w:upper()
        end
        table.sort(words, function(a, b) return a > b end)
        local gen, sum = coroutine.wrap(function()
          for i = 1, n do coroutine.yield(i) end
        end), 0
        for i in gen do sum = sum + i end
        local socket = ngx.socket.tcp()
        assert(socket:connect("127.0.0.1", $port))
        assert(socket:send("POST /echo HTTP/1.0\r\nContent-Length: 6\r\n\r\nabcdef"))
        local answer = assert(socket:receive("*a")):match("\r\n\r\n(.*)")
        socket:close()
        local numbers = ffi.new("int[?]", n)
        for i = 0, n - 1 do numbers[i] = i end
        local ok, err = pcall(error, { code = 404 })
        ngx.say(cjson.encode { words, sum, answer, lru:get(n),
          tonumber(numbers[n - 1]), ok, err.code, type(misc), (jit.status()) })
      }
    }
EOF
}

answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/pid"
}

plain() {
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH exec nginx -p "$tmp" -c "$tmp/nginx.conf"
}
nginx_start plain
master=$child
maps_ours "$master"
maps_ours "$(answers)"
same page '[["TWO","THREE","ONE"],15,"fedcba","005",4,false,404,"table",true]' \
  "$(curl -sf "http://127.0.0.1:$port/page")"
same timer 'fired 13' "$(curl -sf "http://127.0.0.1:$port/timer")"

# wrk's script makes the requests, and counts and checks the answers.
cat > "$tmp/drive.lua" << 'EOF'
local threads, n = {}, 0
function setup(thread)
  thread:set("id", #threads + 1)
  threads[#threads + 1] = thread
end
function init()
  good, bad = 0, 0
end
function request()
  n = n % 50 + 1
  return wrk.format("GET", "/page?n=" .. n)
end
function response(status, _, body)
  if status == 200 and body:find('"fedcba"', 1, true) then
    good = good + 1
  else
    bad = bad + 1
  end
end
function done(summary, latency)
  local good, bad = 0, 0
  for _, thread in ipairs(threads) do
    good, bad = good + thread:get("good"), bad + thread:get("bad")
  end
  io.write(("good=%s bad=%d errors=%d misc=%s jit=%s\n"):format(
    good >= 100 and "many" or good, bad,
    summary.errors.connect + summary.errors.read + summary.errors.write +
    summary.errors.status + summary.errors.timeout, type(misc),
    tostring(jit.status())))
end
EOF
LD_LIBRARY_PATH=$LD_LIBRARY_PATH wrk -t2 -c7 -d3s -s "$tmp/drive.lua" \
  "http://127.0.0.1:$port/" > "$tmp/wrk.log" 2>&1 &
driver=$!
started="$started $driver"
sleep 1
maps_ours "$driver"
wait "$driver" || fail "wrk failed"
same wrk 'good=many bad=0 errors=0 misc=table jit=true' \
  "$(grep '^good=' "$tmp/wrk.log")"
grep 'Requests/sec' "$tmp/wrk.log"

# A reload makes new Lua states beside old ones; a clean stop follows.
kill -HUP "$master"
sleep 1
same 'page after a reload' \
  '[["TWO","THREE","ONE"],6,"fedcba","003",2,false,404,"table",true]' \
  "$(curl -sf "http://127.0.0.1:$port/page?n=3")"
nginx_end "$master" "$master"
