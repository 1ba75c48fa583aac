#!/bin/sh
# nginx that is always recorded, with two workers under load, and a pusher that follows
# its folder. Pyroscope comes late, is killed in the middle of a request, is slow, is
# full, and is restarted; a request gets no answer; the pusher is killed; so is a
# worker. Each file's request is acknowledged once, and by function, route and tenant
# Pyroscope has exactly what the files have. Parca gets the same files, is slow, and
# has the same functions.
#
# Between the pusher and Pyroscope stands gate.py, which counts what is acknowledged:
# totals alone cannot show a request that was sent twice, since Pyroscope may unite
# equal profiles later.
# shellcheck source=test/hosts/nginx_lib.sh
. "$(dirname "$0")/../hosts/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache wrk curl
cd "$tmp"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
# shellcheck source=test/engines/pyroscope_lib.sh
. "$SOURCE_DIR/test/engines/pyroscope_lib.sh"
# shellcheck source=test/engines/parca_lib.sh
. "$SOURCE_DIR/test/engines/parca_lib.sh"
gate='' pusher='' driver=''
ljprof=$build/bin/ljprof
store=$tmp/store
mkdir "$store" gate
: > gate/log
chmod 777 "$tmp" "$store" # The workers run as another user.

end() {
  code=$?
  set +e
  # shellcheck disable=SC2086 # words are wanted
  kill -9 $pusher $gate $driver $server $parca 2> /dev/null
  (exit $code)
  cleanup
}
trap end EXIT

config() {
  nginx_config '
  init_by_lua_block {
    assert(misc.profile.label_requests { route = "uri", tenant = "arg_t" })
    local units = { ["/a"] = 1, ["/b"] = 2, ["/c"] = 3 }
    function work(route, n)
      local kept
      for i = 1, units[route] * n do kept = { ("%099d"):format(i) } end
      return kept
    end
    kept = {}
  }' << 'END'
    location = /pong { content_by_lua_block { ngx.print("pong") } }
    location ~ ^/[abc]$ {
      content_by_lua_block {
        local route, tenant = ngx.var.uri, ngx.var.arg_t
        local n = tenant == "x" and 200 or 100
        local thread = ngx.thread.spawn(function()
          ngx.sleep(0.005)
          kept[#kept % 1000 + 1] = work(route, n)
        end)
        kept[math.random(1000)] = work(route, n)
        assert(ngx.thread.wait(thread))
        ngx.say("ok")
      }
    }
END
}
answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/pong"
}

# follow TIMEOUT: starts a pusher.
follow() {
  "$ljprof" push --to pyroscope --retry 0.1 --look 0.2 --timeout "$1" \
    "http://127.0.0.1:$(cat gate/port)" --follow "$store" 2>> push.log &
  pusher=$!
}
mode() {
  echo "$1" > gate/.next
  mv gate/.next gate/mode
}
# logged OUTCOME: how many requests had it.
logged() {
  grep -c " $1\$" gate/log || :
}
# more N WHAT...: waits until the number that the command prints has grown by N.
more() {
  goal=$1
  shift
  before=$("$@")
  for _ in $(seq 1200); do
    kill -0 $pusher 2> /dev/null || fail "the pusher has ended: $(tail -n 3 push.log)"
    [ "$("$@")" -lt $((before + goal)) ] || return 0
    sleep 0.05
  done
  fail "$*: $("$@"), wanted $goal more than $before; $(tail -n 3 push.log)"
}
# kill_between: kills the server when it has half of a request; the pusher sees then
# that nobody answers.
kill_between() {
  mode half
  more 1 cat gate/half
  kill_server
  more 1 logged none
}
# start_again [OPTION...]: of the server. Meanwhile the gate keeps requests, so that
# the pusher's waits do not become long.
start_again() {
  mode wait
  start_server "$@"
  mode pass
}

cat > web.conf << EOF
output = $store
service = shop
preset = production
interval = 1
sample = 4k
flush = 100
ring = 500M
continuous = 3s
EOF
nginx_start env LJPROF_RECORD="$tmp/web.conf" LD_LIBRARY_PATH="$build/lib" \
  nginx -p "$tmp" -c "$tmp/nginx.conf"
master=$(cat nginx.pid)
maps_ours "$master"
wrk -t1 -c10 -d600s -s "$SOURCE_DIR/test/hosts/routes.lua" "http://127.0.0.1:$port/" > wrk.log 2>&1 &
driver=$!

python3 "$SOURCE_DIR/test/engines/gate.py" gate "$url" &
gate=$!
wait_for 30 test -s gate/port || fail "the gate does not start"
follow 600
echo "the server comes late"
more 2 logged none
start_again
more 4 logged 200
echo "the server is killed in the middle of a request"
kill_between
start_again
more 4 logged 200
echo "the server is slow"
kill -STOP "$server"
sleep 2
kill -CONT "$server"
more 3 logged 200
echo "the server is full"
kill_between
start_again -distributor.ingestion-rate-limit-mb=0.001 \
  -distributor.ingestion-burst-size-mb=0.001
more 2 logged 429
kill_between
start_again
more 4 logged 200
echo "a worker is killed, and nginx reads its configuration again"
kill -9 "$(awk '{ print $1 }' "/proc/$master/task/$master/children")"
kill -HUP "$master"
more 4 logged 200
echo "the server is restarted in good order"
mode hold
more 1 cat gate/held
kill "$server"
wait "$server" || :
start_again
more 4 logged 200
echo "the pusher is killed"
mode hold
more 1 cat gate/held
kill -9 $pusher
wait $pusher 2> /dev/null || :
follow 2
echo "requests get no answer"
more 3 cat gate/held
mode pass
more 4 logged 200

kill -INT $driver
wait $driver || fail "wrk: $(cat wrk.log)"
driver=''
! grep 'Non-2xx' wrk.log || fail "requests failed"
grep 'requests in' wrk.log
kill -QUIT "$master"
wait "$child" || fail "nginx ended with $?"
started=''
if grep -E '\[(crit|emerg|error)\]' error.log >&2; then
  fail "nginx's log holds errors"
fi
files=$(find "$store" -name '*.ljp' | wc -l)
# settled: nothing waits, and nothing has come for two seconds.
settled() {
  [ $(($(outcomes "$store/.push/journal" 3) + $(outcomes "$store/.push/journal" 6))) \
    -ge "$files" ] && [ -z "$(find "$store/.push" -name '*.request')" ] || return 1
  records=$(wc -c < "$store/.push/journal")
  sleep 2
  [ "$records" = "$(wc -c < "$store/.push/journal")" ]
}
wait_for 120 settled || fail "of $files files are settled: $(cat push.log)"
kill $pusher
wait $pusher || fail "push: $(cat push.log)"
pusher=''
sent=$(outcomes "$store/.push/journal" 3)
echo "$files files, $sent sent; $(tail -n 1 push.log)"
[ "$sent" -ge 15 ] || fail "only $sent files were sent"
for what in 4 5 7; do # Refused, dropped, doubtful.
  same "journal, $what" 0 "$(outcomes "$store/.push/journal" $what)"
done
same "requests without a known outcome" 0 "$(logged doubt)"
sed -n 's/ 200$//p' gate/log | sort > acknowledged
same "different requests that are acknowledged" "$sent" "$(sort -u acknowledged | wc -l)"
same "requests that are acknowledged twice" '' "$(uniq -d acknowledged)"

for file in "$store"/*.ljp; do
  "$ljprof" export --to pprof --force -o "$file.pb.gz" "$file" 2> export.log ||
    grep -q 'has no samples and no memory events' export.log ||
    fail "$(cat export.log)"
done
# shellcheck disable=SC2034 # for compare()
selections='- route=/a route=/b route=/c tenant=x tenant=y'
compare nginx "$CPU" shop cpu "$store"/*.pb.gz
seconds=$(awk '$1 == "total" { print int($2 / 1e9) }' want)
[ "$seconds" -ge 1 ] || fail "only $seconds s of CPU time"
for value in alloc_space inuse_space; do
  compare nginx memory:$value:bytes:space:bytes shop $value "$store"/*.pb.gz
done

# Parca takes gRPC over HTTP/2, which the gate does not speak. It comes late, and does
# nothing for a while when most files are still to come.
mkdir parca-store
parca_has() {
  [ $(($(outcomes parca-spool/journal 3) + $(outcomes parca-spool/journal 6))) \
    -ge "$(find parca-store -name '*.ljp' | wc -l)" ]
}
find "$store" -name '*.ljp' | sort | head -n 5 |
  while read -r file; do ln "$file" parca-store; done
"$ljprof" push --to parca --retry 0.1 --look 0.2 --spool parca-spool "$parca_url" \
  --follow parca-store 2> parca-push.log &
pusher=$!
wait_for 30 grep -q 'trying again' parca-push.log || fail "$(cat parca-push.log)"
start_parca
wait_for 120 parca_has || fail "of five files: $(cat parca-push.log)"
kill -STOP "$parca"
find "$store" -name '*.ljp' | sort | tail -n +6 |
  while read -r file; do ln "$file" parca-store; done
sleep 2
! parca_has || fail "Parca has everything, but was stopped"
kill -CONT "$parca"
wait_for 120 parca_has || fail "of $files files: $(cat parca-push.log)"
same "files that Parca got" \
  $((files - $(outcomes "$store/.push/journal" 6))) "$(outcomes parca-spool/journal 3)"
kill $pusher
wait $pusher || fail "push: $(cat parca-push.log)"
pusher=''
for value in cpu alloc_space inuse_space; do
  compare_parca "nginx, Parca" $value "$store"/*.pb.gz
done
