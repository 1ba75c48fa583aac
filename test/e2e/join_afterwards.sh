#!/bin/sh
# A program that was joined, recorded and left costs what it did before: the number of
# instructions of the same work, in compiled code and in the interpreter, by single
# steps. While its memory is recorded there are more, so the count can tell.
# shellcheck disable=SC2016 # expanded at the end
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

program=''
at_end='[ -z "$program" ] || kill -9 $program'
# order COMMAND ANSWER: waits for the answer. The lines before it are in answers.txt.
order() {
  : > answers.txt
  echo "$1" >&3
  eventually "$1: $(cat answers.txt)" grep -qx "$2" answers.txt
}
# starts ALLOCATOR: the program, which has warmed up; its counts are in before.txt.
starts() {
  allocator=$1
  rm -f orders
  mkfifo orders
  : > answers.txt
  "$BUILD_DIR/bin/join_afterwards" "$allocator" < orders >> answers.txt 2>&1 &
  program=$!
  exec 3> orders
  eventually "the program" test -s answers.txt
  host=$(cat answers.txt)
  tasks_before=$(ls "/proc/$host/task")
  files_before=$(ls "/proc/$host/fd")
  order "work 200" worked
  order count counted
  grep -v counted answers.txt > before.txt
  same "ten works were counted" 10 "$(grep -c '^[a-z_]* [0-9]*$' before.txt)"
  sed 's/^/instructions: /' before.txt
}
# compare LIMIT: prints the works with more instructions than before. A work that
# allocates may have LIMIT times as many, since its blocks have other addresses, and
# one with strings 3 % more, since they have other neighbours in the VM's table.
compare() {
  awk -v limit="$1" '
    function allowed() {
      if (/numeric|calls/) return 1
      return /strings/ && limit < 1.03 ? 1.03 : limit
    }
    NR == FNR { before[$1] = $2; next }
    /counted/ { next }
    $2 > before[$1] * allowed() { print $1, before[$1], $2 }
  ' before.txt answers.txt
}
# unchanged WHAT: each count is that of before.
unchanged() {
  eventually "$1: threads and descriptors as before" settled
  order "work 2" worked
  order count counted
  limit=1.01
  [ "$allocator" = host ] || limit=1.03
  more=$(compare $limit)
  [ -z "$more" ] || fail "$1: more instructions than before: $more"
  ok "$1: as many instructions as before"
}
# recorded WHAT OPTION...: while the program works.
recorded() {
  session=$1
  shift
  record "file.ljp" --force "$@"
  order "work 50" worked
  kill -INT "$client"
  wait "$client" || fail "$session: exit code $?: $(cat record.txt)"
  "$ljprof" check file.ljp > check.txt || fail "$session: $(cat check.txt)"
  unchanged "$session"
}
# While each memory event is recorded there are more.
recorded_meanwhile() {
  record meanwhile.ljp --force --memory --every --no-cpu
  order "work 5" worked
  order count counted
  more=$(compare 1.1 | sed 's/ .*//' | sort | tr '\n' ' ')
  case " $more" in
  *" off_tables "*" tables "*) ok "while memory is recorded, more: $more" ;;
  *) fail "while memory is recorded, more have only: $more" ;;
  esac
  kill -INT "$client"
  wait "$client" || fail "memory: exit code $?: $(cat record.txt)"
  unchanged "each memory event"
}
stops() {
  exec 3>&-
  wait "$program" || fail "the program ended with $?: $(cat answers.txt)"
  program=''
}

starts host
"$ljprof" status -p "$host" > status.txt 2>&1 || fail "$(cat status.txt)"
"$ljprof" dump-stacks -p "$host" > stacks.txt 2>&1 || fail "$(cat stacks.txt)"
unchanged "status and dump-stacks"
recorded "CPU samples" --threads all --interval 0.5
recorded "wall-clock samples" --event wall
recorded_meanwhile
recorded "sampled memory, and CPU" --memory --sample 4k
stops
starts own
recorded_meanwhile
recorded "sampled memory, and CPU" --memory --sample 4k
stops
