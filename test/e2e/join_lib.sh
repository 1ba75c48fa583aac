# shellcheck shell=sh
# Programs that are joined; for tests that have read lib.sh.
# shellcheck disable=SC2034,SC2016 # the tests read these
ljprof=$BUILD_DIR/bin/ljprof
faults=$BUILD_DIR/bin/join_faults # ljprof, which fails where it is told to
host='' door='' join_program=join_host

# Nothing that a test has started stays.
at_end='[ -z "$host" ] || kill -9 $host'

# eventually WHAT COMMAND...: waits until the command succeeds.
eventually() {
  what=$1
  shift
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "$what: not within a minute"
    sleep 0.1
  done
}
settled() {
  [ "$(ls "/proc/$host/task")" = "$tasks_before" ] &&
    [ "$(ls "/proc/$host/fd")" = "$files_before" ]
}
# has COUNT FOLDER: so many threads or descriptors at least.
has() {
  set -- "$1" "/proc/$host/$2"/*
  [ $# -gt "$1" ]
}
# begin MODE: starts $join_program in the background: $host.
begin() {
  mode=$1
  : > host.txt
  "$BUILD_DIR/bin/$join_program" "$mode" > host.txt 2>&1 &
  host=$!
  eventually "$mode: ready" grep -q ready host.txt
  case $mode in
  storm) eventually "$mode: threads" has 3 task ;;
  signals) eventually "$mode: descriptors" has 5 fd ;;
  epoll | poll | cancel | sleep | read | send | queue)
    eventually "$mode: descriptors" has 9 fd
    ;;
  esac
  sleep 0.1
  tasks_before=$(ls "/proc/$host/task")
  files_before=$(ls "/proc/$host/fd")
  mask_before=$(grep SigBlk "/proc/$host/status")
  wanted=$(sed -n "s/^$mode //p" << END
epoll epoll: interrupted 0 early 0
poll poll: interrupted 0 early 0
cancel cancel: interrupted 0 early 0
sleep sleep: interrupted 0 early 0
read read: interrupted 0 early 0
send send: interrupted 0 early 0
queue queue: interrupted 0 early 0
loop loop: wrong 0
busy busy: wrong 0
storm storm: done
signals signals: lost 0
END
  )
}
# end WHAT: the program is as it was, ends by SIGTERM, and met nothing strange.
end() {
  eventually "$1: threads and descriptors as before" settled
  [ "$mask_before" = "$(grep SigBlk "/proc/$host/status")" ] ||
    fail "$1: signals are blocked: $(grep SigBlk "/proc/$host/status")"
  kill -TERM "$host"
  code=0
  wait "$host" || code=$?
  host=
  [ "$code" = 0 ] || fail "$1: the program ended with $code: $(cat host.txt)"
  [ "$(tail -n 1 host.txt)" = "$wanted" ] ||
    fail "$1: wanted '$wanted', got: $(cat host.txt)"
}
# record FILE OPTION...: records $host in the background: $client. By its socket,
# if $door has one.
record() {
  file=$1
  shift
  : > record.txt
  # A shell lets what it starts in the background ignore SIGINT.
  env --default-signal=INT "$ljprof" record -p "${door:-$host}" -o "$file" --flush 20 \
    "$@" 2> record.txt &
  client=$!
  eventually "recording: $(cat record.txt)" grep -q "recording process" record.txt
}
some_samples() {
  [ "$("$ljprof" dump "$1" 2> /dev/null | grep -c '^ *samples')" -gt 2 ] ||
    [ "$(wc -c < "$1")" -gt 8000 ]
}
# whole WHAT FILE: it is, and its samples are in the program's function.
whole() {
  "$ljprof" check "$2" > check.txt || fail "$1: $(cat check.txt)"
  grep -q '^whole' check.txt || fail "$1: $(cat check.txt)"
  "$ljprof" report --top 0 "$2" > report.txt || fail "$1: report"
  grep -q ' round host' report.txt || fail "$1: $(cat report.txt)"
}
