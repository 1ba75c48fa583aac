#!/bin/sh
# ljprof push --follow: files of a folder go once, when they are complete, in their
# order, while others come; damaged ones are named.
. "$(dirname "$0")/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
pusher=''
# shellcheck disable=SC2034 # for record: one profile, one request
memory=''
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='kill $pusher $engine_pid 2> /dev/null'
follow() {
  "$ljprof" push --to pyroscope --retry 0.01 --look 0.1 "$@" 2> said &
  pusher=$!
}
# stop: ends the pusher by a signal; sets $code.
stop() {
  kill "$pusher"
  code=0
  wait "$pusher" || code=$?
  pusher=
}
# reach DIR N: waits until the engine has taken N requests.
reach() {
  for _ in $(seq 600); do
    [ "$(taken "$1")" -lt "$2" ] || return 0
    kill -0 "$pusher" 2> /dev/null || fail "the pusher has ended: $(cat said)"
    sleep 0.05
  done
  fail "only $(taken "$1") of $2 were taken: $(cat said)"
}
# segment SEQUENCE PID: a name of the store.
segment() {
  printf 'st/shop-20260101T0000%02dZ-%08d-%d.ljp' "$1" "$1" "$2"
}
workers() {
  [ ! -f srv/taken ] || while read -r number; do
    python3 "$e2e/pushed.py" pyroscope route "srv/$number.body" |
      sed -n 's/^process_cpu label worker //p'
  done < srv/taken | tr '\n' ' '
}
pid_of() {
  "$ljprof" dump "$1" 2> /dev/null | sed -n 's/.* process pid=\([0-9]*\).*/\1/p' | head -n 1
}

engine srv
url=http://127.0.0.1:$port
plan srv
mkdir st
pids=
for i in 1 2 3; do
  record r$i.ljp
  pids="$pids$(pid_of r$i.ljp) "
done
cp r3.ljp "$(segment 3 103)"
cp r1.ljp "$(segment 1 101)"
cp r2.ljp "$(segment 2 102)"
echo "no stream" > st/other.ljp
follow "$url" --follow st
reach srv 3
same "segments go by their numbers" "$pids" "$(workers)"
record r4.ljp
cp r4.ljp st/.hidden
mv st/.hidden "$(segment 4 104)"
reach srv 4
python3 "$e2e/pushed.py" pyroscope route srv/4.body > got
grep -qx 'process_cpu label service_name shop' got || fail "$(cat got)"
ok "the folder names the service"
refuses "a second pusher on the spool" 1 "another ljprof push uses it" \
  "$ljprof" push --to pyroscope "$url" --follow st
"$ljprof" gather --ring 1G --age 9000d st 2> gathered ||
  fail "gather beside a pusher: $(cat gathered)"
ok "ljprof gather works beside it"
first=$pusher
engine_of_first=$engine_pid
engine_pid=
engine other
"$ljprof" push --to otlp --look 0.1 --spool elsewhere \
  "http://127.0.0.1:$port" --follow st 2> said2 &
second=$!
for _ in $(seq 600); do
  [ "$(taken other)" -lt 4 ] || break
  sleep 0.05
done
kill $second
wait $second || fail "a second pusher: $(cat said2)"
same "a second pusher with its own spool sends to another engine" 4 \
  "$(taken other)"
stop_engine
engine_pid=$engine_of_first
pusher=$first
stop
same "a signal ends it" 0 "$code"
same "a file that is no stream is named once" 1 "$(grep -c 'other.ljp' said)"
grep -q '^ljprof push: 4 sent .*, 1 could not be read' said || fail "$(cat said)"
follow "$url" --follow st
record r5.ljp
cp r5.ljp "$(segment 5 105)"
reach srv 5
stop
same "after a start only new ones go" 5 "$(requests srv)"

# A spool for one request is enough while the server takes them.
mkdir many
cp r?.ljp many
size=$((256 + $(wc -c srv/*.body | grep -v total | sort -n | awk 'END { print int($1 * 5 / 4) }')))
plan srv
follow "$url" --follow many --budget $size
reach srv 5
stop
same "... and nothing is dropped" 0 "$(grep -c dropped said)"
rm -rf many

# The server goes and comes back while segments come and are pruned.
stop_engine
follow "$url" --follow st --in-doubt skip
for i in 6 7 8; do
  record r$i.ljp
  cp r$i.ljp "$(segment $i 10$i)"
done
for _ in $(seq 600); do
  [ "$(find st/.push -name '*.request' | wc -l)" -lt 3 ] || break
  sleep 0.05
done
rm st/shop-*
rm -rf srv/taken
stop
engine srv
url=http://127.0.0.1:$port
plan srv 429
follow "$url" --follow st
reach srv 3
stop
same "what was pruned meanwhile is not lost" \
  "$(for i in 6 7 8; do pid_of r$i.ljp; done | tr '\n' ' ')" "$(workers)"

# A request that the server never takes does not keep the others waiting for ever.
mkdir aside
"$ljprof" push --to otlp --spool aside/sp --give-up 0.01 http://127.0.0.1:1 \
  r1.ljp r2.ljp r3.ljp 2> said && fail "sent to nobody"
plan srv 500 500 500 500 500 ok ok 500
"$ljprof" push --to otlp --retry 0.2 --look 0.1 --aside 1.4 --spool aside/sp \
  "$url" --follow aside 2> said &
pusher=$!
reach srv 3
stop
same "one that is refused with 500 again and again goes last" \
  "$(for i in 2 3 1; do pid_of r$i.ljp; done)" \
  "$(while read -r number; do
    python3 "$e2e/pushed.py" otlp route "srv/$number.body" |
      sed -n 's/^- label service.instance.id //p'
  done < srv/taken)"
grep -q 'r1.ljp: the server answers 500: .*, 5 times: it is set aside' said ||
  fail "$(cat said)"
grep -q '3 sent .*, 1 were set aside' said || fail "$(cat said)"
ok "... and that is said"
rm -rf aside

# A file that nobody lets us read is named, and is sent when it can be read.
mkdir denied
cp r1.ljp r2.ljp denied
chmod 0 denied/r1.ljp
plan srv
ljprof_before=$ljprof
if [ "$(id -u)" = 0 ]; then # Root must not read it either.
  printf '#!/bin/sh\nexec setpriv --bounding-set=-all --inh-caps=-all "%s" "$@"\n' \
    "$ljprof" > bare
  chmod +x bare
  ljprof=./bare
fi
follow "$url" --follow denied
reach srv 1
sleep 0.5
same "a file that may not be read is named once" 1 \
  "$(grep -c 'r1.ljp: Permission denied' said)"
chmod 600 denied/r1.ljp
reach srv 2
stop
ok "... and sent when it may be"
ljprof=$ljprof_before
rm -rf denied

# What a person must mend does not end it, nor does a token that is not there for a
# moment; it says so once, and when it is over.
mkdir wrong
cp r1.ljp wrong
plan srv 401 404 302 html 405
follow "$url" --follow wrong
reach srv 1
cp r2.ljp wrong/.next
: > token
stop
grep -q '401: .*; trying again, with long pauses' said || fail "$(cat said)"
grep -q 'takes profiles again, after 5 attempts in' said || fail "$(cat said)"
same "it goes on after 401, 404, a redirect and a page" "1 6" \
  "$(grep -c 'trying again' said) $(requests srv)"
mv wrong/.next wrong/2.ljp
plan srv
follow "$url" --follow wrong --token-file token
until grep -q "token': is empty; trying again" said; do sleep 0.05; done
echo secret > token
reach srv 1
stop
ok "... and after an empty token"
cp r3.ljp wrong
# shellcheck disable=SC2046 # words
plan srv $(yes 429 | head -n 99)
follow "$url" --follow wrong --retry 0.002
until grep -q "429.*; still trying, after" said; do sleep 0.05; done
plan srv
reach srv 1
stop
same "a long outage is told again" 1 "$(grep -c 'takes profiles again' said)"
rm -rf wrong

# kill -9 again and again, with an engine that is slow now and then: nothing is
# lost, and nothing is taken twice but what was in doubt.
plan srv 503 late ok late 429 ok late
for i in 11 12 13 14 15 16; do
  record r$i.ljp
  cp r$i.ljp "$(segment $i 10$i)"
  follow "$url" --follow st
  sleep 0.$((i % 7))
  kill -9 "$pusher"
  wait "$pusher" 2> /dev/null || :
done
follow "$url" --follow st
for _ in $(seq 600); do
  [ "$(workers | tr ' ' '\n' | sort -u | grep -c .)" -lt 6 ] || break
  sleep 0.05
done
stop
same "after six kills everything has come, in order" \
  "$(for i in 11 12 13 14 15 16; do pid_of r$i.ljp; done | tr '\n' ' ')" \
  "$(workers | tr ' ' '\n' | uniq | tr '\n' ' ' | sed 's/ *$/ /')"

# Files that ljprof gather has merged: sent unless their parts were.
merge() {
  "$ljprof" gather --merge st 2> gathered || fail "gather: $(cat gathered)"
  [ "$(find st -name '*-merged.ljp' | wc -l)" = "$1" ] ||
    fail "no merged file: $(cat gathered) $(ls -a st)"
}
# look: follows until each file has been looked at.
look() {
  follow "$url" --follow st "$@"
  sleep 1
  stop
}
rm -rf st
mkdir st
cp r1.ljp "$(segment 1 101)"
cp r2.ljp "$(segment 2 102)"
plan srv
merge 1
look
same "a merged file, whose parts nobody has pushed, is sent" 1 "$(taken srv)"
cp r3.ljp "$(segment 3 103)"
cp r4.ljp "$(segment 4 104)"
plan srv
look
merge 2
look
same "... one whose parts were pushed is not" 2 "$(taken srv)"
grep -q 'which are pushed themselves: skipped' said || fail "$(cat said)"
cp r5.ljp "$(segment 5 105)"
look
cp r6.ljp "$(segment 6 106)"
merge 3
plan srv
cp -a st st2
look --in-doubt skip
same "... one of which a part was pushed is not sent twice" 0 "$(taken srv)"
grep -q 'of 2 other segments, of which 1 were pushed themselves: it is not sent' \
  said || fail "$(cat said)"
rm -rf st
mv st2 st
look
same "... or not lost" 1 "$(taken srv)"
rm "$(find st -name '*-merged.ljp' | head -n 1)"
"$ljprof" gather --age 9000d st
same "the lists of merged files go with them" 2 "$(find st -name '.*.made-of' | wc -l)"

# A file that grows is waited for.
rm -rf st
mkdir st
plan srv
cat > long.lua << 'END'
local f = assert(io.popen("true"))
f:close()
local t = {}
while not io.open("go") do
  for i = 1, 1e5 do t[i % 99] = {i} end
end
END
"$ljprof" record --memory -o st/long.ljp -- "$BUILD_DIR/bin/luajit" long.lua \
  2> /dev/null &
program=$!
until [ -s st/long.ljp ]; do sleep 0.05; done
follow "$url" --follow st
sleep 1
same "a file that is being recorded is not sent" 0 "$(requests srv)"
touch go
wait $program
reach srv 1
stop
"$ljprof" export --to collapsed --value cpu -o - st/long.ljp 2> /dev/null |
  awk '{ s += $NF } END { printf "process_cpu cpu %.0f\n", s }' > want
python3 "$e2e/pushed.py" pyroscope route srv/*.body | grep -x 'process_cpu cpu [0-9]*' \
  > have
same "... but when it is complete, whole" "$(cat want)" "$(cat have)"
# A service that is recorded all the time: what its files have is what the engine
# has.
plan srv
cat > service.lua << 'END'
local label = require("misc").profile.label
local t, from = {}, os.time()
local i = 0
while os.time() - from < 4 do
  i = i + 1
  label{route = i % 2 == 0 and "/a" or "/b"}
  for k = 1, 1e6 do t[k % 99] = {k} end
end
END
rm -rf st
mkdir st
follow "$url" --follow st
"$ljprof" record --memory --continuous 1s -o st -- "$BUILD_DIR/bin/luajit" \
  service.lua 2> /dev/null
reach srv 2
files=$(find st -name '*.ljp' | wc -l)
for _ in $(seq 600); do
  [ $(($(outcomes st/.push/journal 3) + $(outcomes st/.push/journal 6))) -lt \
    "$files" ] || break
  sleep 0.05
done
stop
for value in cpu alloc_space inuse_space; do
  for file in st/*.ljp; do
    "$ljprof" export --to collapsed --value $value -o - "$file" 2> /dev/null || :
  done | awk -v v=$value '{ s += $NF } END { printf "%s %.0f\n", v, s }'
done > want
python3 "$e2e/pushed.py" pyroscope route srv/*.body |
  sed -n 's/^[a-z_]* \(\(cpu\|alloc_space\|inuse_space\) [0-9]*\)$/\1/p' | sort \
  > have
sort -o want want
same "a service in $files files: all of them, once" "$(cat want)" "$(cat have)"
refuses "no folder" 1 "No such file" \
  "$ljprof" push --to otlp --spool sp "$url" --follow nowhere
refuses "files and a folder" 2 "takes no files" \
  "$ljprof" push --to otlp "$url" --follow st x.ljp
