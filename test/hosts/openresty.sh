#!/bin/sh
# ljprof record around an nginx that is laid out like OpenResty's: nginx itself
# needs LuaJIT, which lies below the prefix and is found by RPATH, and a command
# outside is a link to nginx. Master and workers run with our library and no other.
. "$(dirname "$0")/nginx_lib.sh"
need nginx libnginx-mod-http-lua lua-resty-core patchelf curl

chmod 777 "$tmp" # The workers run as another user.
prefix=$tmp/openresty
mkdir -p "$prefix/nginx/sbin" "$prefix/luajit/lib" "$prefix/bin"
cp "$build/unpatched/lib/libluajit-5.1.so.2" "$prefix/luajit/lib/"
cp "$(command -v nginx)" "$prefix/nginx/sbin/nginx"
ln -s ../nginx/sbin/nginx "$prefix/bin/openresty"
patchelf --add-needed libluajit-5.1.so.2 --force-rpath \
  --set-rpath "$prefix/luajit/lib" "$prefix/nginx/sbin/nginx"
unset LD_LIBRARY_PATH

config() {
  nginx_config '' << 'EOF'
    location = / {
      content_by_lua_block {
        local function busy()
          local s = 0
          for i = 1, 2e6 do s = s + i % 7 end
          return s
        end
        busy()
        ngx.say(jit.version, " ", misc and "ours" or "another", " ",
          os.getenv("LD_PRELOAD") or "unset")
      }
    }
EOF
}
answers() {
  curl -sf --max-time 5 "http://127.0.0.1:$port/"
}

nginx_start "$prefix/bin/openresty" -p "$tmp" -c "$tmp/nginx.conf"
same 'alone' another "$(answers | awk '{ print $(NF - 1) }')"
nginx_end "$child" "$child"

nginx_start "$build/bin/ljprof" record --children --force -o "$tmp/n.ljp" -- \
  "$prefix/bin/openresty" -p "$tmp" -c "$tmp/nginx.conf"
recorder=$child
master=$(cat "$tmp/nginx.pid")
started="$started $master"
maps_ours "$master"
for _ in 1 2 3 4 5 6 7 8; do
  same 'answer' 'ours unset' "$(answers | awk '{ print $(NF - 1), $NF }')"
done
nginx_end "$master" "$recorder"
found=
for file in "$tmp"/n.ljp.*; do
  "$build/bin/ljprof" check "$file" > "$tmp/check.log" 2>&1 ||
    fail "$(basename "$file"): $(tail -n 1 "$tmp/check.log")"
  "$build/bin/ljprof" report "$file" > "$tmp/report.txt" || continue
  ! grep -q ' busy ' "$tmp/report.txt" || found=1
done
[ -n "$found" ] || fail "no worker names the function: $(cat "$tmp/report.txt")"
echo "the workers' streams name Lua's functions"
