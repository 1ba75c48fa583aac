#!/bin/sh
# Requests of three routes and two tenants under wrk, with cosockets, light threads
# and timers: each label's share of CPU time and of allocated bytes is within one
# point of what the handlers themselves measured. First the handlers set the labels;
# then they know nothing of them, and label_requests does.
. "$(dirname "$0")/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache wrk curl
seconds=${LJP_LABELS_SECONDS:-10}

# work: about as much CPU time and memory for each unit; adds up what it took.
init='
  init_by_lua_block {
    local ffi = require("ffi")
    ffi.cdef [[
      struct ljp_time { long s, ns; };
      int clock_gettime(int clock, struct ljp_time *at);
    ]]
    local at = ffi.new("struct ljp_time")
    local function used()
      ffi.C.clock_gettime(3, at)
      return tonumber(at.s) * 1e9 + tonumber(at.ns)
    end
    spent = {}
    local function add(key, value, ns)
      local name = key .. " " .. value
      spent[name] = (spent[name] or 0) + ns
    end
    local number = 0
    function work(route, tenant, units)
      local before, kept = used()
      for i = 1, units * 3000 do
        number = number + 1
        kept = ("%099d"):format(number)
      end
      local ns = used() - before
      add("route.ns", route, ns)
      add("tenant.ns", tenant, ns)
      add("route.strings", route, units)
      add("tenant.strings", tenant, units)
      return kept
    end
    units = { ["/a"] = 1, ["/b"] = 2, ["/c"] = 3 }
    function check(route, tenant)
      local labels = misc.profile.labels()
      assert(labels.route == route and labels.tenant == tenant,
        ngx.get_phase() .. ": " .. tostring(labels.route))
    end
'
by_handlers='assert(misc.profile.label { route = route, tenant = tenant })'
by_requests='assert(misc.profile.label_requests { route = "uri", tenant = "arg_t",
  none = "arg_none" })'
checks='
      header_filter_by_lua_block { check(ngx.var.uri, ngx.var.arg_t) }
      log_by_lua_block { check(ngx.var.uri, ngx.var.arg_t) }
'
config() {
  nginx_config "$init $in_init }" << EOF
    location = /pid { content_by_lua_block { ngx.say(ngx.worker.pid()) } }
    location = /pong { content_by_lua_block { ngx.print("pong") } }
    location = /spent {
      content_by_lua_block {
        for name, ns in pairs(spent) do ngx.say(name, " ", ("%.0f"):format(ns)) end
        spent = {}
      }
    }
    location ~ ^/[abc]\$ {
      $in_location
      content_by_lua_block {
        local route, tenant = ngx.var.uri, ngx.var.arg_t
        $in_handler
        check(route, tenant)
        local n = units[route] * (tenant == "x" and 2 or 1)
        work(route, tenant, n)
        local threads = {}
        for i = 1, 2 do
          threads[i] = ngx.thread.spawn(function()
            work(route, tenant, n)
            ngx.sleep(0.001)
            check(route, tenant)
            work(route, tenant, n)
          end)
        end
        local socket = ngx.socket.tcp()
        assert(socket:connect("127.0.0.1", $port))
        socket:send("GET /pong HTTP/1.0\\r\\n\\r\\n")
        assert(socket:receive("*a"):find("pong", 1, true))
        socket:close()
        work(route, tenant, n)
        for i = 1, 2 do assert(ngx.thread.wait(threads[i])) end
        local co = coroutine.wrap(function()
          work(route, tenant, n)
          coroutine.yield()
          work(route, tenant, n)
        end)
        co()
        co()
        assert(ngx.timer.at(0, function()
          assert(not next(misc.profile.labels()))
          misc.profile.with({ route = route, tenant = tenant }, work, route,
            tenant, n)
        end))
        misc.profile.with({ route = "/inner" }, ngx.sleep, 0.001)
        work(route, tenant, n)
        ngx.say("ok")
      }
    }
EOF
  # As root, for the finer timer.
  sed -i 's,^worker_processes 2;,worker_processes 1; user root;,' "$tmp/nginx.conf"
}

answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/pid"
}
plain() {
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH exec nginx -p "$tmp" -c "$tmp/nginx.conf"
}

# judge KEY UNIT COLUMN OPTION...: the shares in the report, and of the handlers.
judge() {
  "$build/bin/ljprof" report --json --top 0 --by "label:$1" "$4" "$tmp/labels.ljp" \
    > "$tmp/report.json" || fail "report --by label:$1"
  python3 - "$tmp/report.json" "$tmp/spent" "$1" "$2" "$3" << 'EOF' || fail "$1"
import json, sys
report, spent, key, unit, column = sys.argv[1:]
got = {r["name"]: r[column] for r in json.load(open(report))["rows"]}
lines = [line.split() for line in open(spent)]
wanted = {v: float(n) for k, v, n in lines if k == f"{key}.{unit}"}
all_got = sum(got.get(v, 0) for v in wanted)
all_wanted = sum(wanted.values())
worst = 0
for v in sorted(wanted):
    a, b = 100 * got.get(v, 0) / all_got, 100 * wanted[v] / all_wanted
    worst = max(worst, abs(a - b))
    print(f"{unit} of {key} {v}: {a:.2f} %, as the handlers say {b:.2f} %")
assert len(wanted) >= 2 and worst <= 1, f"off by {worst:.2f} points"
EOF
}

# session: one session under load, and what its report says.
session() {
  nginx_start plain
  master=$child
  worker=$(answers)
  maps_ours "$worker"
  curl -sf "http://127.0.0.1:$port/spent" > /dev/null
  rm -f "$tmp/labels.ljp" "$tmp/record.log"
  "$build/bin/ljprof" record -p "$worker" --memory --sample 64k --interval 0.2 \
    -o "$tmp/labels.ljp" > "$tmp/record.log" 2>&1 &
  recorder=$!
  started="$started $recorder"
  wait_for 10 grep -q . "$tmp/record.log" || fail "record does not begin"
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH wrk -t1 -c7 -d"$seconds"s -s "$(dirname "$0")/routes.lua" \
    "http://127.0.0.1:$port/" > "$tmp/wrk.log" 2>&1 || fail "wrk"
  ! grep -E 'Non-2xx|Socket errors' "$tmp/wrk.log" || fail "requests failed"
  grep 'requests in' "$tmp/wrk.log"
  kill -TERM "$recorder"
  wait "$recorder" || fail "record"
  curl -sf "http://127.0.0.1:$port/spent" > "$tmp/spent"
  ! grep 'assert' "$tmp/error.log" || fail "a label was wrong"
  for key in route tenant; do
    judge $key ns self_ns --cpu
    judge $key strings self_bytes --alloc
  done
  nginx_end "$master" "$child"
}

in_init='' in_location='' in_handler=$by_handlers
session
echo "now without the handlers"
in_init=$by_requests in_location=$checks in_handler=''
session
