#!/bin/sh
# ljprof push of files: each engine gets what the file has, under the right
# labels, once; whatever the server does, the command says what became of it.
. "$(dirname "$0")/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
push() {
  "$ljprof" push --retry 0.01 --timeout 20 "$@"
}

record x.ljp
memory=''
record c.ljp
record d.ljp
sums_of x.ljp | sort > wanted
engine srv
url=http://127.0.0.1:$port

# What arrives.
for to in pyroscope ingest parca otlp; do
  plan srv
  set -- --to $to
  [ $to != ingest ] || set -- --to pyroscope --api ingest
  push "$@" "$url/" --service shop --host h1 --worker w7 \
    --service-version 1.2 --set zone=eu-1 x.ljp 2> said
  number=1
  case $to in pyroscope | ingest) number=2 ;; esac # Each profile for itself.
  grep -q "^ljprof push: $number sent" said || fail "$to: $(cat said)"
  python3 "$e2e/pushed.py" $to route srv/*.body > got
  case $to in
  otlp)
    sed -e 's/^[a-z_]* //' -e '/^samples/d' wanted | sort > want
    grep -E '^- (cpu|alloc|inuse)' got | sed 's/^- //' |
      grep -vE ' route=[^ ]+ ' > have || :
    grep -E '^- cpu route=/' got | sed 's/^- //' >> have
    sort -o have have
    set -- 'service.name shop' 'host.name h1' 'service.instance.id w7' \
      'service.version 1.2' 'zone eu-1'
    ;;
  *)
    cp wanted want
    grep -vE ' route=[^ ]+ |label|^keys' got > have
    grep -E '^process_cpu cpu route=/' got >> have
    sort -o have have
    grep -qx 'keys http_tenant route' got || fail "$to: $(grep keys got)"
    set -- 'service_name shop' 'host h1' 'worker w7' 'version 1.2' 'zone eu-1'
    ;;
  esac
  same "$to: sums by type, and by route" "$(cat want)" "$(cat have)"
  for label; do
    grep -q " label $label\$" got || fail "$to: no label $label in $(cat got)"
  done
  ok "$to: the labels"
done
plan srv
push --to parca "$url" x.ljp 2> /dev/null
python3 "$e2e/pushed.py" parca duration srv/*.body |
  sed -n 's/ [0-9]*$//; s/duration=//p' > got
same "Parca: what is in use has no duration, and is no difference" \
  "$(printf '%s\n' 'memory alloc_objects some' 'memory alloc_space some' \
    'memory inuse_objects none' 'memory inuse_space none' \
    'process_cpu cpu some' 'process_cpu samples some')" "$(cat got)"
plan srv
push --to pyroscope "$url" --all-labels x.ljp 2> /dev/null
same "--all-labels" "keys http_tenant route state thread type vm" \
  "$(python3 "$e2e/pushed.py" pyroscope route srv/*.body | tail -n 1)"
pid=$("$ljprof" dump x.ljp | sed -n "s/.* process pid=\([0-9]*\).*/\1/p" |
  head -n 1)
python3 "$e2e/pushed.py" pyroscope route srv/*.body > got
for label in "service_name luajit" "worker $pid"; do
  grep -qx "memory label $label" got || fail "no $label in $(cat got)"
done
ok "by default the program is the service, its number the worker"

"$ljprof" record --event wall -o wall.ljp -- "$BUILD_DIR/bin/luajit" labels.lua 1 \
  2> /dev/null
plan srv
push --to pyroscope "$url" wall.ljp 2> /dev/null
"$ljprof" export --to collapsed --value wall -o - wall.ljp 2> /dev/null |
  awk '{ s += $NF } END { printf "wall wall %.0f\n", s }' > want
python3 "$e2e/pushed.py" pyroscope route srv/*.body > got
same "a wall-clock session" "$(cat want)" "$(grep -x 'wall wall [0-9]*' got)"

# What the query of /ingest cannot say.
plan srv
push --to pyroscope --api ingest --service 'a shop,{&b}' --set 'odd=x=1,y}&' "$url" \
  c.ljp 2> said || fail "/ingest: $(cat said)"
python3 "$e2e/pushed.py" ingest route srv/*.body > got
for label in 'service_name a shop_{&b_' 'odd x=1_y_&'; do
  grep -qxF "process_cpu label $label" got || fail "no $label in $(cat got)"
done
head -n 1 srv/*.head | grep -q 'POST /ingest?name=a_shop___b_%7Bservice_name' ||
  fail "$(head -n 1 srv/*.head)"
ok "/ingest: names with any characters"
plan srv html
refuses "/ingest: a page" 1 "the answer is not of this engine" \
  push --to pyroscope --api ingest "$url" c.ljp

# Labels of the program that ours, or one another, would hide.
cat > clash.lua << 'END'
require("misc").profile.label{host = "app", version = "2", __name__ = "n",
  thread = "t", zone = "z", ["http.tenant"] = "x", http_tenant = "y"}
local s = 0
for i = 1, 1e8 do s = s + i % 7 end
END
"$ljprof" record --force -o clash.ljp -- "$BUILD_DIR/bin/luajit" clash.lua \
  2> /dev/null
for to in pyroscope parca; do
  plan srv
  push --to $to "$url" --service-version 1 --set zone=eu clash.ljp clash.ljp \
    2> said || fail "$(cat said)"
  python3 "$e2e/pushed.py" $to http_tenant srv/*.body > got ||
    fail "a key stands twice"
  same "$to: labels of the program whose keys are taken get others" \
    "keys app___name__ app_host app_http_tenant app_version app_zone http_tenant thread" \
    "$(tail -n 1 got)"
  grep -q "cpu http_tenant=y [1-9]" got || fail "$(cat got)"
  same "... which is said once" "1 5" \
    "$(grep -c "'host' is sent as 'app_host'" said) $(grep -c 'is sent as' said)"
done
plan srv
push --to pyroscope "$url" --all-labels clash.ljp 2> /dev/null
python3 "$e2e/pushed.py" pyroscope app_thread srv/*.body > got ||
  fail "a key stands twice with --all-labels"
grep -q "cpu app_thread=t [1-9]" got || fail "$(cat got)"
ok "--all-labels: thread is ours"
"$ljprof" export --to pprof -o clash.pb.gz clash.ljp 2> said
python3 "$e2e/pushed.py" pprof app_thread clash.pb.gz > got ||
  fail "a key stands twice in the export"
same "the export's keys" \
  "keys __name__ app_thread host http.tenant http_tenant state thread version vm zone" \
  "$(tail -n 1 got)"
grep -q "'thread' is 'app_thread' in the file" said || fail "$(cat said)"
ok "... which is said"
plan srv
push --to otlp "$url" --set process.pid=7 clash.ljp 2> said || fail "$(cat said)"
python3 "$e2e/pushed.py" otlp route srv/*.body > got ||
  fail "otlp: $(cat got)"
grep -qx -e '- label process.pid 7' got || fail "$(cat got)"
ok "otlp: --set goes before what the file says"

# Answers that pass: retried until the server takes it, in their order.
plan srv 503 429:0 408 500 502 504 ok ok
push --to pyroscope "$url" c.ljp d.ljp 2> said || fail "retries: $(cat said)"
same "a busy server gets it at last" "8 2" "$(requests srv) $(taken srv)"
same "one line about it" 1 "$(grep -c 'trying again' said)"
plan srv close taken-close garbage huge ok
push --to otlp "$url" c.ljp 2> said || fail "broken answers: $(cat said)"
same "broken answers are tried again" 5 "$(requests srv)"
plan srv taken-close ok
refuses "--in-doubt skip sends nothing twice" 1 "is not sent again" \
  push --to pyroscope --in-doubt skip "$url" c.ljp
same "... and says nothing was sent" "1 1" "$(requests srv) $(taken srv)"
plan srv ok taken-close ok
refuses "... nor does it on a connection that was used before" 1 \
  "is not sent again" push --to pyroscope --in-doubt skip "$url" c.ljp d.ljp
same "... which libcurl would send again by itself" "2 2" \
  "$(requests srv) $(taken srv)"
plan srv 403 403 403 403
https_proxy=$url
export https_proxy
refuses "what a proxy refuses was not sent" 1 "c.ljp (process_cpu): not sent" \
  push --to pyroscope --in-doubt skip --give-up 0.01 https://h.example c.ljp
unset https_proxy
plan srv hang ok
push --to pyroscope --timeout 1 "$url" c.ljp 2> said || fail "$(cat said)"
same "a server that never answers is left" 2 "$(requests srv)"
plan srv grpc:14 grpc:8 garbage close ok
push --to parca "$url" c.ljp 2> said || fail "gRPC: $(cat said)"
same "gRPC's busy server gets it at last" "5 1" "$(requests srv) $(taken srv)"

plan srv 202 204
push --to otlp "$url" c.ljp d.ljp 2> said || fail "202, 204: $(cat said)"
same "OTLP: 202 and 204 mean that it was taken" 2 "$(requests srv)"

# Answers that do not pass.
for status in 400 413 422; do
  plan srv $status ok
  refuses "$status" 1 "c.ljp (process_cpu): the server answers $status: because of the plan" \
    push --to pyroscope "$url" c.ljp d.ljp
  same "... is not retried, and the next file goes" "2 1" \
    "$(requests srv) $(taken srv)"
done
for status in 401 403 404 405; do
  plan srv $status ok
  refuses "$status" 1 "the server answers $status" \
    push --to pyroscope "$url" c.ljp d.ljp
  same "... ends the command" "1 0" "$(requests srv) $(taken srv)"
done
plan srv 302
refuses "a redirect" 1 "which is not followed" push --to pyroscope "$url" c.ljp
same "... is not followed" 1 "$(requests srv)"
plan srv html
refuses "a page" 1 "the answer is not of this engine: its type is 'text/html'" \
  push --to pyroscope "$url" c.ljp
plan srv partial
refuses "a partial success" 1 "the server refuses 1 profiles: bad" \
  push --to otlp "$url" c.ljp
plan srv grpc:3
refuses "gRPC's invalid argument" 1 "gRPC status 3: because" \
  push --to parca "$url" c.ljp
plan srv grpc:16
refuses "gRPC's unauthenticated" 1 "gRPC status 16: because" \
  push --to parca "$url" c.ljp
same "... is tried once" 1 "$(requests srv)"
plan srv
refuses "a server that does not know the path" 1 "the server answers 404" \
  push --to pyroscope "$url/elsewhere" c.ljp
grep -q 'POST /elsewhere/push.v1.PusherService/Push' srv/*.head ||
  fail "the path of the URL is lost"
ok "the path of the URL comes first"
LC_ALL=C grep -q "$(printf '\033')" out.txt && fail "escapes reach the terminal"
stop_engine
refuses "nobody listens" 1 "c.ljp (process_cpu): not sent" \
  push --to pyroscope --give-up 0.05 "$url" c.ljp

# Files.
engine srv
url=http://127.0.0.1:$port
plan srv
head -c $(($(wc -c < c.ljp) - 100)) c.ljp > cut.ljp
echo "no stream" > none.ljp
push --to pyroscope "$url" none.ljp missing.ljp cut.ljp c.ljp 2> said &&
  fail "bad files: success"
same "the good files among bad ones are sent" 2 "$(taken srv)"
for text in 'none.ljp: ' 'missing.ljp: No such file' 'cut.ljp: is damaged' \
  '2 sent .*, 2 could not be read'; do
  grep -q "$text" said || fail "no '$text' in $(cat said)"
done
ok "... and bad ones are named"

# Tokens, certificates.
printf 'secret-1\n' > token
plan srv
chmod 644 token
push --to pyroscope --token-file token --tenant t1 "$url" c.ljp 2> said
grep -q "'token' can be read by all users" said || fail "$(cat said)"
chmod 600 token
push --to pyroscope --token-file token "$url" c.ljp 2> said
grep -q "all users" said && fail "$(cat said)"
ok "a token that all users can read is noticed"
cat srv/*.head | tr -d '\r' > head_lines
for header in 'Authorization: Bearer secret-1' 'X-Scope-OrgID: t1'; do
  grep -qx "$header" head_lines || fail "no $header in $(cat head_lines)"
done
ok "the token and the tenant are sent"
plan srv 302
push --to pyroscope --token-file token "$url" c.ljp 2> said || :
grep -q secret said && fail "the token is shown"
ok "the token is not shown"
: > empty
printf 'a b' > words
refuses "an empty token" 1 "'empty': is empty" \
  push --to pyroscope --token-file empty "$url" c.ljp
refuses "a token of two words" 1 "holds more than one word" \
  push --to pyroscope --token-file words "$url" c.ljp
refuses "no token file" 1 "'none': No such file" \
  push --to pyroscope --token-file none "$url" c.ljp
refuses "a token over plain HTTP" 2 "is not sent over http://" \
  push --to pyroscope --token-file token http://profiles.example c.ljp
refuses "a token to a name that begins like an address of this machine" 2 \
  "is not sent over http://" \
  push --to pyroscope --token-file token http://127.0.0.1.evil.example c.ljp
plan srv
http_proxy=http://127.0.0.1:1 push --to pyroscope --token-file token \
  --give-up 0.05 "$url" c.ljp 2> said || fail "with a proxy: $(cat said)"
same "no proxy stands between us and this machine" 1 "$(taken srv)"
if command -v openssl > /dev/null; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
    -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout key.pem \
    -out cert.pem 2> /dev/null
  engine tls cert.pem key.pem
  url=https://127.0.0.1:$port
  refuses "a certificate of nobody" 1 "certificate" \
    push --to pyroscope "$url" c.ljp
  same "... gets nothing" 0 "$(requests tls)"
  push --to pyroscope --ca cert.pem "$url" c.ljp 2> /dev/null ||
    fail "--ca: not sent"
  same "--ca trusts it" 1 "$(taken tls)"
  # A folder of the system's authorities that has the server's certificate.
  mkdir authorities
  cp cert.pem "authorities/$(openssl x509 -hash -noout -in cert.pem).0"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
    -subj /CN=other -keyout other.key -out other.pem 2> /dev/null
  # shellcheck disable=SC2016 # for that shell
  alone='mount --bind authorities /etc/ssl/certs && exec "$@"'
  if unshare -rm sh -c "$alone" sh true 2> /dev/null; then
    refuses "--ca FILE: the system's authorities do not count" 1 "certificate" \
      unshare -rm sh -c "$alone" sh "$ljprof" push --to pyroscope \
      --ca other.pem "$url" c.ljp
  fi
  refuses "a certificate of another host" 1 "SSL" \
    push --to pyroscope --ca cert.pem --give-up 0.05 "https://localhost:$port" \
    c.ljp
  refuses "a file that is no certificate" 1 "words" \
    push --to pyroscope --ca words "$url" c.ljp
fi

# Misuse.
for wrong in "::" "ftp://h" "http://u:p@h" "http://h/?q" "nonsense//"; do
  refuses "the URL $wrong" any "ljprof push" push --to pyroscope --give-up 0.05 \
    "$wrong" c.ljp
done
refuses "no engine" 2 "no engine given" "$ljprof" push http://h c.ljp
refuses "an unknown engine" 2 "pyroscope, parca or otlp expected" \
  "$ljprof" push --to graphite http://h c.ljp
refuses "an unknown API" 2 "push or ingest expected" \
  "$ljprof" push --to pyroscope --api pull http://h x.ljp
refuses "--api of another engine" 2 "--api is for --to pyroscope" \
  "$ljprof" push --to otlp --api ingest http://h x.ljp
refuses "no URL" 2 "no URL given" "$ljprof" push --to otlp
refuses "no files" 2 "no files given" "$ljprof" push --to otlp http://h
refuses "--set without a value" 2 "KEY=VALUE expected" \
  "$ljprof" push --to otlp --set a http://h c.ljp
refuses "--set with our key" 2 "set by another option" \
  "$ljprof" push --to pyroscope --set host=a http://h c.ljp
refuses "--set twice" 2 "given twice" \
  "$ljprof" push --to pyroscope --set a=b --set a=c http://h c.ljp
refuses "--set with a bad key" 2 "a key has letters" \
  "$ljprof" push --to pyroscope --set a.b=c http://h c.ljp
for bad in 0 x 1e9 nan -1; do
  refuses "--timeout $bad" 2 "a time in seconds" \
    "$ljprof" push --to otlp --timeout=$bad http://h c.ljp
  refuses "--budget $bad" 2 "a size such as" \
    "$ljprof" push --to otlp --budget=$bad http://h c.ljp
done
