# What the tests with nginx share; they source it instead of lib.sh. A test
# defines two functions: config() writes the configuration for $port with
# nginx_config, and answers() succeeds when the server answers.
# shellcheck shell=sh
# shellcheck source=test/hosts/lib.sh
. "$(dirname "$0")/../hosts/lib.sh"

mkdir "$tmp/logs" "$tmp/body"

# nginx_config HTTP: one server at 127.0.0.1:$port with two workers. HTTP is the
# configuration beside the server; the server's own comes from standard input.
nginx_config() {
  cat > "$tmp/nginx.conf" << EOF
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
worker_processes 2;
pid $tmp/nginx.pid;
error_log $tmp/error.log notice;
events { worker_connections 128; }
http {
  access_log off;
  client_body_temp_path $tmp/body;
  proxy_temp_path $tmp/body;
  fastcgi_temp_path $tmp/body;
  uwsgi_temp_path $tmp/body;
  scgi_temp_path $tmp/body;
  $1
  server {
    listen 127.0.0.1:$port;
$(cat)
  }
}
EOF
}

# nginx_start COMMAND...: starts the command as $child and returns when the
# server answers. If the port is taken, nginx exits at once, and the next port
# is tried.
nginx_start() {
  port=$((20011 + $$ % 12000))
  for _ in 1 2 3 4 5; do
    config
    "$@" > "$tmp/nginx.log" 2>&1 &
    child=$!
    started="$started $child"
    if wait_for 5 answers && kill -0 "$child" 2> /dev/null; then
      return
    fi
    kill "$child" 2> /dev/null || :
    wait "$child" || :
    started=
    port=$((port + 7))
  done
  fail "nginx does not start"
}

# nginx_end MASTER CHILD: stops nginx cleanly; our CHILD then exits with 0.
nginx_end() {
  kill -QUIT "$1"
  status=0
  wait "$2" || status=$?
  started=
  same 'exit status' 0 "$status"
  if grep -E '\[(alert|crit|emerg|error)\]' "$tmp/error.log" >&2; then
    fail "nginx's log holds errors"
  fi
}
