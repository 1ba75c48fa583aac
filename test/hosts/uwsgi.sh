#!/bin/sh
# uWSGI with a master, two workers and three threads in each, which block all
# signals and have a VM of their own, under ljprof record.
. "$(dirname "$0")/record_lib.sh"
need uwsgi-core uwsgi-plugin-luajit curl

cat > "$tmp/app.lua" << 'EOL'
local function digest(name)
  local h = 0
  for _ = 1, 300 do
    for c in name:gmatch(".") do h = (h * 31 + c:byte()) % 65521 end
  end
  return h
end
return function(env)
  local body = ("%d\n"):format(digest(env.PATH_INFO))
  return 200, {["Content-Type"] = "text/plain"}, coroutine.wrap(function()
    coroutine.yield(body)
  end)
end
EOL
port=$((20011 + $$ % 12000))
# The plugin's file must have the name of its symbol.
mkdir "$tmp/plugins"
cp /usr/lib/uwsgi/plugins/luajit_plugin.so "$tmp/plugins/lua_plugin.so"
record_start uwsgi-core --plugins-dir "$tmp/plugins" \
  --plugins-dir /usr/lib/uwsgi/plugins --plugin http,lua \
  --http-socket "127.0.0.1:$port" --http-socket-modifier1 6 \
  --lua "$tmp/app.lua" --master --workers 2 --threads 3 --die-on-term \
  --disable-logging
get() {
  curl -sf --max-time 10 "http://127.0.0.1:$port/[1-100]/abc"
}
answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/"
}
wait_for 20 answers || fail "uWSGI does not answer"
maps_ours "$(record_host)"
for client in 1 2 3 4; do
  get > "$tmp/client$client.txt" &
  clients="${clients:-} $!"
done
for client in $clients; do
  wait "$client" || fail "a client fails"
done
same answers 400 "$(cat "$tmp"/client?.txt | grep -c '^[0-9]*$')"
for client in 2 3 4; do
  cmp "$tmp/client1.txt" "$tmp/client$client.txt" || fail "answers differ"
done
kill "$(record_host)"
record_end
same 'files: the master and two workers' 3 "$(record_files | wc -l)"
whole
names 'digest '
