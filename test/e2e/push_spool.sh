#!/bin/sh
# The spool of ljprof push: requests survive kill -9, damage and an absent server,
# keep their order, and go once; the oldest go when there is no room.
. "$(dirname "$0")/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
push() {
  "$ljprof" push --to pyroscope --retry 0.01 --timeout 20 "$@"
}
# start ARGUMENT...: the same in the background; sets $victim to its process.
start() {
  "$ljprof" push --to pyroscope --retry 0.01 --timeout 20 "$@" 2> said &
  victim=$!
}
victim=''
# shellcheck disable=SC2034 # for record
memory=''
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='kill -9 $victim $engine_pid 2> /dev/null'
# stored: the workers of the requests that the engine has taken, in their order.
stored() {
  [ ! -f srv/taken ] || while read -r number; do
    python3 "$e2e/pushed.py" pyroscope route "srv/$number.body" |
      sed -n 's/^process_cpu label worker //p'
  done < srv/taken | tr '\n' ' '
}

for i in 1 2 3 4 5; do
  record $i.ljp
done
engine srv
url=http://127.0.0.1:$port

# Once, by the content.
plan srv
push --spool sp "$url" --worker w1 1.ljp 2> /dev/null
cp 1.ljp copy.ljp
push --spool sp "$url" 1.ljp copy.ljp 2> said || fail "known: $(cat said)"
same "a file is sent once, under any name" 1 "$(requests srv)"
same "... and that is said" "ljprof push: 0 sent (0 bytes), 2 were known already" \
  "$(cat said)"
same "nothing stays in the spool" "journal lock " "$(find sp -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')"

# An absent server: all waits, in the order of the command line.
rm -rf sp
stop_engine
for i in 3 1 2; do
  push --spool sp --worker w$i --give-up 0.05 "$url" $i.ljp 2> said && fail "sent"
done
grep -q '0 sent (0 bytes), 3 wait in the spool' said || fail "$(cat said)"
ok "requests wait for an absent server"
engine srv
url=http://127.0.0.1:$port
plan srv 503 429
push --spool sp --worker w4 "$url" 4.ljp 2> said || fail "$(cat said)"
same "... and go in the order in which they came" "w3 w1 w2 w4 " "$(stored)"

# The token is wrong: nothing is lost.
rm -rf sp
plan srv 401 401
for i in 1 2; do
  refuses "401" 1 "401" push --spool sp --worker w$i "$url" $i.ljp
done
push --spool sp --worker w3 "$url" 3.ljp 2> /dev/null || fail "after 401"
same "a wrong token loses nothing" "w1 w2 w3 " "$(stored)"
plan srv 401
refuses "401 for the first of three" 1 "401" push --spool sp7 --worker w "$url" \
  1.ljp 2.ljp 3.ljp
push --spool sp7 --worker w "$url" 1.ljp 2> /dev/null || fail "after 401"
same "... and the others are in the spool, too" 3 "$(taken srv)"
plan srv 400
push --spool sp --worker w4 "$url" 4.ljp 2> /dev/null && fail "400: success"
push --spool sp --worker w4 "$url" 4.ljp 2> said
same "what was refused is not sent again" 1 "$(requests srv)"

# kill -9 at each place: while the request is at the server, which answers late or
# never; the next start sends what has no outcome.
for word in hang late; do
  rm -rf sp
  plan srv $word
  start --spool sp --worker w1 "$url" 1.ljp
  until [ "$(requests srv)" = 1 ]; do sleep 0.05; done
  kill -9 $victim
  wait $victim 2> /dev/null || :
  ls sp/*.request > /dev/null || fail "$word: the request is gone"
  push --spool sp --worker w1 --in-doubt skip "$url" 1.ljp 2> said && fail "skip"
  grep -q 'may have been sent' said || fail "$word: $(cat said)"
  same "--in-doubt skip, after kill -9 ($word): once" 1 "$(requests srv)"
done
rm -rf sp
plan srv hang
start --spool sp --worker w1 "$url" 1.ljp
until [ "$(requests srv)" = 1 ]; do sleep 0.05; done
kill -9 $victim
wait $victim 2> /dev/null || :
push --spool sp "$url" 2.ljp --worker w2 2> /dev/null || fail "after kill -9"
same "--in-doubt send: it goes again, and first" "w1 w2 " "$(stored)"

# Many kills at random moments: each file is taken, in order, and only once where
# the engine answers at once and --in-doubt is skip.
rm -rf sp
plan srv
tries=0
while :; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || fail "it never ends"
  start --spool sp --in-doubt skip "$url" 1.ljp 2.ljp 3.ljp 4.ljp 5.ljp
  # On a busy machine a command needs more than that.
  sleep "$((tries / 20)).$(printf %03d $((tries * 17 % 400)))"
  if kill -9 $victim 2> /dev/null; then
    wait $victim 2> /dev/null || :
    continue
  fi
  wait $victim && break
  break
done
doubtful=$(outcomes sp/journal 7)
touch srv/taken
while read -r number; do
  md5sum < "srv/$number.body"
done < srv/taken > bodies
same "after $tries starts no file was taken twice" "$(wc -l < bodies)" \
  "$(sort -u bodies | wc -l)"
[ $(($(wc -l < bodies) + doubtful)) -ge 5 ] ||
  fail "$(wc -l < bodies) of 5 were taken, $doubtful are in doubt: $(cat said)"
ok "... and none was lost: $(wc -l < bodies) taken, $doubtful in doubt"

# No room: the oldest go.
rm -rf sp
plan srv
push --lua --worker w1 "$url" ./?.ljp 2> /dev/null
# Room for two, whichever they are: a request has a head of 256 bytes. (Without
# machine code, the sizes are much the same.)
size=$((2 * (300 + $(wc -c srv/*.body | grep -v total | sort -n | awk 'END { print $1 }'))))
stop_engine
for i in 1 2 3 4 5; do
  push --lua --spool sp --budget $size --worker w$i --give-up 0.02 "$url" $i.ljp \
    2> said && fail "sent"
done
grep -q 'the spool is full: .* were dropped, the oldest first' said ||
  fail "$(cat said)"
used=$(cat sp/*.request | wc -c)
[ "$used" -le "$size" ] || fail "$used bytes of $size in the spool"
ok "a full spool says what it drops"
engine srv
url=http://127.0.0.1:$port
plan srv
push --spool sp --budget $size "$url" 5.ljp 2> said || fail "$(cat said)"
same "... and keeps the newest" "w4 w5 " "$(stored)"
plan srv
push --lua --spool sp3 --budget $size --worker w "$url" ./?.ljp 2> said || fail "$(cat said)"
same "a server that takes all gets all, however small the spool is" 5 \
  "$(taken srv)"
plan srv
push --spool sp --budget $size "$url" 1.ljp 2> said
same "what was dropped stays so" 0 "$(requests srv)"
refuses "a request that never fits" 1 "is larger than the budget" \
  push --spool sp2 --budget 1K "$url" 1.ljp

# Pyroscope gets a request for each profile of a file, each with its own outcome.
memory='--memory --sample 4096'
record 6.ljp
sums_of 6.ljp | grep -v route | sort > want
# sums: of what was taken.
sums() {
  while read -r number; do
    python3 "$e2e/pushed.py" pyroscope route "srv/$number.body"
  done < srv/taken | grep -E '^(process_cpu|memory) [a-z_]* [0-9]*$' | sort
}
plan srv ok 429 ok
push --spool sp4 --in-doubt skip "$url" 6.ljp 2> said || fail "$(cat said)"
same "a profile that is refused for a while costs none of the others twice" \
  "3 $(cat want)" "$(requests srv) $(sums)"
plan srv 503
push --spool sp5 --in-doubt skip "$url" 6.ljp 2> said && fail "503: success"
grep -q '6.ljp (process_cpu): .* may have it, so it is not sent again' said ||
  fail "$(cat said)"
same "after 503 Pyroscope may have it" "$(grep memory want)" "$(sums)"
stop_engine
push --spool sp6 --give-up 0.05 "$url" 6.ljp 2> said && fail "sent"
truncate -s 40 sp6/journal # As if it was ended between the two.
rm "$(find sp6 -name '*.request' | sort | tail -n 1)"
engine srv
url=http://127.0.0.1:$port
plan srv
push --spool sp6 "$url" 6.ljp 2> said || fail "$(cat said)"
same "an end between the profiles of a file loses none" "$(cat want)" "$(sums)"

# Damage.
rm -rf sp
stop_engine
for i in 1 2 3; do
  push --spool sp --worker w$i --give-up 0.02 "$url" $i.ljp 2> /dev/null &&
    fail "sent"
done
set -- sp/*.request
printf "damaged!" | dd of="$2" bs=1 seek=700 conv=notrunc 2> /dev/null
: > sp/0000000000000009.making
printf 'LJPJ torn' >> sp/journal
engine srv
url=http://127.0.0.1:$port
plan srv
push --spool sp "$url" 4.ljp --worker w4 2> said && fail "damage: success"
same "a damaged request costs only itself" "w1 w3 w4 " "$(stored)"
for text in '1 were damaged in the spool' '1 damaged records'; do
  grep -q "$text" said || fail "no '$text' in $(cat said)"
done
same "... and is kept aside" "1 0" \
  "$(find sp -name '*.damaged' | wc -l) $(find sp -name '*.making' | wc -l)"
rm -rf sp
push --spool sp --worker w1 "$url" 1.ljp 2> /dev/null
dd if=/dev/zero of=sp/journal bs=1 seek=90 count=9 conv=notrunc 2> /dev/null
push --spool sp --worker w2 "$url" 2.ljp 2> said || fail "$(cat said)"
grep -q '1 damaged records: files may be sent twice' said || fail "$(cat said)"
ok "a damaged journal goes on, and that is said"

# Others.
plan srv hang
start --spool sp --worker w3 "$url" 3.ljp
until [ "$(requests srv)" = 1 ]; do sleep 0.05; done
refuses "a second push on a spool" 1 "another ljprof push uses it" \
  push --spool sp "$url" 4.ljp
kill -9 $victim
wait $victim 2> /dev/null || :
refuses "a spool of another engine" 1 "it holds requests for another engine" \
  "$ljprof" push --to otlp --spool sp "$url" 4.ljp
refuses "a spool in a missing folder" 1 "cannot be made: No such file" \
  push --spool no/such/sp "$url" 1.ljp
: > file
refuses "a spool that is a file" 1 "cannot be opened: Not a directory" \
  push --spool file "$url" 1.ljp
if [ "$(id -u)" = 0 ] && mkdir full && mount -t tmpfs -o size=16k none full \
  2> /dev/null; then
  # shellcheck disable=SC2016,SC2034 # for end_test()
  at_end='umount "$SCRATCH/full" 2> /dev/null; kill $engine_pid 2> /dev/null'
  stop_engine
  for i in 1 2 3 4 5; do
    push --spool full/sp --worker w$i --give-up 0.02 "$url" $i.ljp 2> said &&
      fail "sent"
  done
  grep -q 'were dropped, the oldest first' said || fail "full: $(cat said)"
  engine srv
  url=http://127.0.0.1:$port
  plan srv
  push --spool full/sp "$url" 5.ljp 2> said || fail "full: $(cat said)"
  stored | grep -q 'w5 $' || fail "a full disk: $(stored)"
  ok "a full disk: the oldest go, the newest are sent"
  umount full
fi
