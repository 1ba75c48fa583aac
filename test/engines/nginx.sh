#!/bin/sh
# nginx that is always recorded, with two workers under load, and a pusher that follows
# its folder. Pyroscope comes late, is killed in the middle of a request, is slow, is
# full, and is restarted; a request gets no answer; the pusher is killed; so is a
# worker. Each file's request is acknowledged once, and by function, route and tenant
# Pyroscope has exactly what the files have. Then Parca gets the same files, with the same
# faults (but it has no limits that make it full), and has the same functions.
#
# Between the pusher and the server stands gate.py or gate_grpc.py, which counts what is
# acknowledged: totals alone cannot show a request that was sent twice, since Pyroscope
# may unite equal profiles later.
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
mkdir "$store"
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

# through GATE URL: starts a gate to this server, whose folder is then $at.
through() {
  at=$tmp/${1%.py}
  mkdir "$at"
  : > "$at/log"
  python3 "$SOURCE_DIR/test/engines/$1" "$at" "$2" &
  gate="$gate $!"
  wait_for 30 test -s "$at/port" || fail "the gate does not start"
}
# follow ENGINE TIMEOUT DIR: starts a pusher.
follow() {
  "$ljprof" push --to "$1" --retry 0.1 --look 0.2 --timeout "$2" \
    "http://127.0.0.1:$(cat "$at/port")" --follow "$3" 2>> push.log &
  pusher=$!
}
mode() {
  echo "$1" > "$at/.next"
  mv "$at/.next" "$at/mode"
}
# logged OUTCOME: how many requests had it.
logged() {
  grep -c " $1\$" "$at/log" || :
}
# reaches N WHAT...: waits until the command prints N or more; more N WHAT...: until the
# number has grown by N.
reaches() {
  goal=$1
  shift
  for _ in $(seq 1200); do
    kill -0 $pusher 2> /dev/null || fail "the pusher has ended: $(tail -n 3 push.log)"
    [ "$("$@")" -lt "$goal" ] || return 0
    sleep 0.05
  done
  fail "$*: $("$@"), wanted $goal; $(tail -n 3 push.log)"
}
more() {
  goal=$1
  shift
  reaches $(($("$@") + goal)) "$@"
}
# hold [N]: the gate keeps requests. Waits for the first, of the next N files if need be.
hold() {
  held=$(cat "$at/held")
  mode hold
  [ $# = 0 ] || next "$1"
  reaches $((held + 1)) cat "$at/held"
}
kill_pusher() {
  kill -9 $pusher
  wait $pusher 2> /dev/null || :
}
# no_answers ENGINE DIR: after hold(). The server gets nothing from a pusher that does not
# wait long: a late answer would be no fault of ours.
no_answers() {
  echo "the pusher is killed"
  kill_pusher
  echo "requests get no answer"
  follow "$1" 2 "$2"
  more 3 cat "$at/held"
  kill_pusher
  follow "$1" 600 "$2"
  mode pass
}
# settled DIR: whether each file of it was sent, or has nothing that could be sent.
settled() {
  [ $(($(outcomes "$1/.push/journal" 3) + $(outcomes "$1/.push/journal" 6))) \
    -ge "$(find "$1" -name '*.ljp' | wc -l)" ] &&
    [ -z "$(find "$1/.push" -name '*.request')" ] || return 1
  records=$(wc -c < "$1/.push/journal")
  sleep 2
  [ "$records" = "$(wc -c < "$1/.push/journal")" ]
}
# sent_once DIR OUTCOME: what can be sent was acknowledged once; sets $sent.
sent_once() {
  sent=$(outcomes "$1/.push/journal" 3)
  for what in 4 5 7; do # Refused, dropped, doubtful.
    same "journal, $what" 0 "$(outcomes "$1/.push/journal" $what)"
  done
  same "requests without a known outcome" 0 "$(logged doubt)"
  sed -n "s/ $2\$//p" "$at/log" | sort > acknowledged
  same "different requests that are acknowledged" "$sent" \
    "$(sort -u acknowledged | wc -l)"
  same "requests that are acknowledged twice" '' "$(uniq -d acknowledged)"
}
# kill_between: kills the server when it has half of a request; the pusher sees then
# that nobody answers.
kill_between() {
  mode half
  more 1 cat "$at/half"
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

through gate.py "$url"
follow pyroscope 600 "$store"
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
hold
kill "$server"
wait "$server" || :
start_again
more 4 logged 200
hold
no_answers pyroscope "$store"
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
wait_for 120 settled "$store" || fail "of $files files are settled: $(cat push.log)"
kill $pusher
wait $pusher || fail "push: $(cat push.log)"
pusher=''
sent_once "$store" 200
echo "$files files, $sent sent; $(tail -n 1 push.log)"
[ "$sent" -ge 15 ] || fail "only $sent files were sent"

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

[ -n "$parca_program" ] || {
  echo "Parca: skipped: $LJPROF_NO_PARCA"
  exit 0
}
# next N: gives the pusher that many of the files, all of which can be sent.
(cd "$store" && ls -- *.pb.gz) > names
next() {
  head -n "$1" names | while read -r name; do
    ln "$store/${name%.pb.gz}" parca-store
  done
  sed -i "1,$1d" names
}
# parca_gets: waits until it has what it was given.
parca_gets() {
  wait_for 120 settled parca-store || fail "Parca has not got everything: $(cat push.log)"
}
# parca_again: starts it. Meanwhile the gate keeps requests.
parca_again() {
  mode wait
  start_parca
  mode pass
  parca_gets
}
mkdir parca-store
through gate_grpc.py "$parca_url"
next 2
follow parca 600 parca-store
echo "Parca comes late"
reaches 2 logged none
parca_again
echo "Parca is slow"
kill -STOP "$parca"
next 2
sleep 2
! settled parca-store || fail "Parca has everything, but was stopped"
kill -CONT "$parca"
parca_gets
for time in 1 2; do
  echo "Parca is killed in the middle of a request"
  mode half
  next 2
  reaches $time cat "$at/half"
  kill_parca
  more 1 logged none
  parca_again
done
echo "Parca is restarted in good order"
hold 2
kill "$parca"
wait "$parca" || :
parca_again
hold 2
no_answers parca parca-store
next 1000
parca_gets
kill $pusher
wait $pusher || fail "push: $(cat push.log)"
pusher=''
sent_once parca-store taken
same "files that Parca got" $((files - $(outcomes "$store/.push/journal" 6))) "$sent"
for value in cpu alloc_space inuse_space; do
  compare_parca "nginx, Parca" shop $value "$store"/*.pb.gz
done
