#!/bin/sh
# nginx whose labels are published on the environment's request: each handler finds,
# between sleeps, cosockets, light threads and subrequests, that its thread shows its own
# labels; a reader outside sees labels of some request or nothing, and nothing when all
# is quiet.
. "$(dirname "$0")/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache wrk curl
seconds=${LJP_LABELS_SECONDS:-3}

config() {
  nginx_config "
  lua_package_cpath '$build/published/?.so;;';
  init_by_lua_block {
    local published = require('published')
    assert(misc.profile.status().publish_labels)
    assert(misc.profile.label_requests { route = 'uri' })
    -- more: the other labels; without it, those that labels() has.
    function check(route, more)
      local a = misc.profile.labels().a
      more = more or (a and 'a=' .. a .. ',' or '')
      local wanted = more .. 'route=' .. route
      local shown = published.shown()
      assert(shown == wanted, ngx.get_phase() .. ': ' .. wanted .. ' but ' ..
        tostring(shown))
    end
  }" << EOF2
    location = /pid { content_by_lua_block {
      check("/pid", "")
      ngx.say(ngx.worker.pid())
    } }
    location = /pong { content_by_lua_block { check("/pong", "") ngx.print("pong") } }
    location ~ ^/[abc]\$ {
      access_by_lua_block { check(ngx.var.uri, "") ngx.sleep(0.001) check(ngx.var.uri, "") }
      header_filter_by_lua_block {
        check(ngx.var.uri) -- as the handler that sends
      }
      log_by_lua_block { check(ngx.var.uri, "") }
      content_by_lua_block {
        local route, tenant = ngx.var.uri, ngx.var.arg_t
        misc.profile.label { a = tenant }
        local mine = "a=" .. tenant .. ","
        check(route, mine)
        local threads = {}
        for i = 1, 2 do
          threads[i] = ngx.thread.spawn(function()
            check(route, mine)
            misc.profile.label { a = tenant .. i }
            for _ = 1, 3 do
              ngx.sleep(0.001)
              check(route, "a=" .. tenant .. i .. ",")
            end
          end)
        end
        check(route, mine)
        local socket = ngx.socket.tcp()
        assert(socket:connect("127.0.0.1", $port))
        socket:send("GET /pong HTTP/1.0\\r\\n\\r\\n")
        assert(socket:receive("*a"):find("pong", 1, true))
        socket:close()
        check(route, mine)
        assert(ngx.location.capture("/pong").body == "pong")
        check(route, mine)
        for i = 1, 2 do assert(ngx.thread.wait(threads[i])) end
        local co = coroutine.wrap(function()
          misc.profile.label { a = "co" }
          check(route, "a=co,")
          coroutine.yield()
          check(route, "a=co,")
        end)
        co()
        check(route, mine)
        co()
        misc.profile.with({ b = 1 }, function()
          ngx.sleep(0.001)
          check(route, mine .. "b=1,")
        end)
        check(route, mine)
        ngx.say("ok")
      }
    }
EOF2
  sed -i 's,^worker_processes 2;,worker_processes 1;,' "$tmp/nginx.conf"
}
answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/pid"
}
plain() {
  LJPROF_PUBLISH_LABELS=1 LD_LIBRARY_PATH=$LD_LIBRARY_PATH \
    exec nginx -p "$tmp" -c "$tmp/nginx.conf"
}

nginx_start plain
master=$child
worker=$(answers)
maps_ours "$worker"
reader=$build/bin/published_reader
LD_LIBRARY_PATH=$LD_LIBRARY_PATH wrk -t1 -c7 -d"$seconds"s \
  -s "$(dirname "$0")/routes.lua" "http://127.0.0.1:$port/" > "$tmp/wrk.log" 2>&1 &
load=$!
started="$started $load"
while kill -0 $load 2> /dev/null; do
  "$reader" "$worker" >> "$tmp/seen" || fail "the reader fails"
done
wait $load || fail "wrk"
! grep -E 'Non-2xx|Socket errors' "$tmp/wrk.log" || fail "requests failed"
grep 'requests in' "$tmp/wrk.log"
! grep 'lua entry thread aborted\|failed to run' "$tmp/error.log" || fail "wrong labels"
grep -qvx -- - "$tmp/seen" || fail "the reader saw no labels"
! grep -vxE -- '-|((a=[a-z]+[12]?,)?(b=1,)?route=/[a-z]+)' "$tmp/seen" ||
  fail "the reader saw something else"
echo "the reader saw $(sort -u "$tmp/seen" | wc -l) different things"
same 'nothing is shown when all is quiet' - "$("$reader" "$worker")"
nginx_end "$master" "$child"
