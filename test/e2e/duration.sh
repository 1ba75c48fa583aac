#!/bin/sh
# A recording that ends after a given time: the file is whole, nothing of ours
# stays in the program, and the program runs on.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
script=$SOURCE_DIR/test/e2e/duration.lua

# only_before FILE: it is whole, and has nothing that came after the end. False:
# the machine was too busy for the program to do anything before the end.
only_before() {
  [ -e "$1" ] || return 1
  "$ljprof" check "$1" > check.txt || fail "$1: $(cat check.txt)"
  "$ljprof" report --native --top 0 "$1" > report.txt 2>&1 || return 1
  ! grep after_the_end report.txt || fail "$1: recorded after its end"
  grep -q before_the_end report.txt
}
# limited WHAT HOW OPTION...: records for a time, and for a longer one if the
# machine is too busy. The exit code is in $code, record's words are in err.
limited() {
  what=$1 how=$2
  shift 2
  for duration in 300ms 1 4s 16s; do
    rm -f ran-on child-ran-on out.ljp*
    code=0
    "$ljprof" record --duration $duration --flush 10 -o out.ljp "$@" "$script" \
      "$how" 2> err || code=$?
    [ -e ran-on ] || fail "$what: the program did not run on: $(cat err)"
    only_before out.ljp || continue
    [ "$how" = record ] || only_before "$(echo out.ljp.*)" || continue
    ok "$what: what came before the end, after $duration, and nothing else"
    return
  done
  fail "$what: nothing recorded: $(cat err)"
}
limited "CPU and memory" record --memory --sample 4k
same "the program's exit code" 7 "$code"
grep -q "the recording ended after [0-9.]* s, as --duration asked" err ||
  fail "not told: $(cat err)"
ok "record tells that the program ran on"
echo "local n = 0" > short.lua
"$ljprof" record --duration 1h -o short.ljp short.lua 2> err || fail "$(cat err)"
! grep "the recording ended" err || fail "the program ended first: $(cat err)"
limited "elapsed time" record --event wall
limited "a child" fork --children
[ -e child-ran-on ] || fail "the child did not run on: $(cat err)"
limited "memory" record --no-cpu --memory --every
[ "${LJP_LIBC:-}" = musl ] || # The shell has another C library.
  refuses "a VM that comes too late" 1 "nothing was recorded: its time was over" \
    "$ljprof" record --duration 1ms -o late.ljp sh -c \
    "until [ \$((i = i + 1)) = 100000 ]; do :; done
     exec '$luajit' -e 'os.exit(0)'"
for wrong in 0 -1 nan x 1x '' 1e99 5s5; do
  refuses "--duration '$wrong'" 2 "duration is '$wrong', but must be a number of" \
    "$ljprof" record --duration "$wrong" "$script" record
done
"$luajit" "$script" race > out.txt 2>&1 || fail "race: $(cat out.txt)"
ok "ends and stops at the same time: $(cat out.txt)"
# A child that is made while its parent's session ends is not recorded at all.
for how in profile memprof; do
  rm -f forked pipe.*
  read_pipe timeout 60 sh -c 'until [ -e forked ]; do sleep 0.01; done; cat'
  "$luajit" "$script" forks $how > out.txt 2>&1 || fail "forks: $(cat out.txt)"
  end_pipe
  for file in pipe.*; do
    [ ! -e "$file" ] || "$ljprof" check "$file" > check.txt ||
      fail "$how, a child: $(cat check.txt)"
  done
  ok "misc.$how: children made while the session ends"
done
for how in sysprof memprof profile; do
  "$luajit" "$script" $how > out.txt 2>&1 || fail "$how: $(cat out.txt)"
  for file in over early next last; do
    "$ljprof" check $file.ljp > check.txt || fail "$how: $(cat check.txt)"
  done
  ok "misc.$how.start{duration}"
done
