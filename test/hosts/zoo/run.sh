#!/bin/sh
# run.sh NAME: runs one program of the host zoo without any session and then in
# every mode, and compares. BUILD_DIR has the programs in zoo/, SOURCE_DIR the
# sources. See README.md.
#
# Exit code 77: the program cannot run here, for the reason that it gives.
set -eu
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
unset LUA_INIT LUA_PATH LUA_CPATH LD_PRELOAD LJPROF_RECORD
export LC_ALL=C
name=$1
zoo=$SOURCE_DIR/test/hosts/zoo
program=$BUILD_DIR/zoo/$name
ljprof=$BUILD_DIR/bin/ljprof
limit=${LJP_ZOO_SECONDS:-300}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/zoo.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM
chmod 755 "$tmp"
source=$zoo/$name.c
[ -e "$source" ] || source=$zoo/$name.cc

# said WORD: the value of a line "zoo: WORD VALUE" in the program's comment.
said() {
  sed -n "s,^\(\*\*\|//\) zoo: $1 *,,p" "$source"
}

# is WORD: whether the comment has such a line.
is() {
  grep -qE "^(\*\*|//) zoo: $1( |\$)" "$source"
}

# Sanitizers: no search for leaks, since most programs leave their VM open.
export ASAN_OPTIONS=detect_leaks=0

# The modes, and what each gives to ljprof record. "off" is our library without
# any session, "published" the same while labels are published; what all are compared
# with is LuaJIT without our patches.
modes='off published perf posix fallback wall sampled every native together children'
[ -z "${LJP_ZOO_MODES:-}" ] || modes=$LJP_ZOO_MODES
# shellcheck disable=SC2016 # expanded when it is used
options() {
  case $1 in
  perf | posix) echo "--timer $1" ;;
  fallback) echo "--timer auto" ;;
  wall) echo "--event wall" ;;
  sampled) echo "--memory --no-cpu --sample 16384" ;;
  every) echo "--memory --no-cpu --every" ;;
  native) echo "--memory --no-cpu --every --native" ;;
  together) echo "--memory --every --threads all" ;;
  children) echo "--memory --sample 16384 --children" ;;
  esac
  case $1 in
  sampled | every | native) ;;
  *) echo "--interval 0.25" ;;
  esac
  case $1 in
  fallback | wall | together | children) said options ;;
  esac
}

# refusal MODE: why this machine cannot record in a mode; nothing if it can.
refusal() {
  case $1 in
  perf)
    "$ljprof" record --timer "$1" --force -o "$tmp/probe.ljp" \
      "$BUILD_DIR/bin/luajit" -e '' 2>&1 | sed -n 's/.*not recorded: //p'
    ;;
  esac
}

# launch MODE CASE: runs the program. Its output is in out, its exit code in
# code, and the lines of standard error that are not ours in err. The output is
# taken from a pipe, so that it is complete when all processes have ended.
launch() {
  rm -rf "$tmp/work" "$tmp/rec"
  mkdir "$tmp/work" "$tmp/rec"
  chmod 777 "$tmp/work" "$tmp/rec"
  set -- "$1" ${2:+"$2"}
  mode=$1
  shift
  # shellcheck disable=SC2046 # words are wanted
  case $mode in
  none) set -- env LD_LIBRARY_PATH="$reference" "$program" "$@" ;;
  off) set -- env LD_LIBRARY_PATH="$BUILD_DIR/lib" "$program" "$@" ;;
  published) set -- env LD_LIBRARY_PATH="$BUILD_DIR/lib" LJPROF_PUBLISH_LABELS=1 \
    "$program" "$@" ;;
  fallback) set -- "$BUILD_DIR/zoo/tools/without_perf" "$ljprof" record \
    $(options "$mode") -o "$tmp/rec/out.ljp" -- "$program" "$@" ;;
  *) set -- "$ljprof" record $(options "$mode") -o "$tmp/rec/out.ljp" -- \
    "$program" "$@" ;;
  esac
  code=0
  {
    # shellcheck disable=SC2069 # the pipe gets standard output only
    (cd "$tmp/work" && status=0 &&
      { timeout -k 5 "$limit" "$@" 2> "$tmp/stderr" || status=$?; } &&
      echo "$status" > "$tmp/code") | cat > "$tmp/out"
  } < /dev/null
  code=$(cat "$tmp/code")
  # The shell says how a program was killed, but not if ljprof record tells.
  grep -vE '^(ljprof|timeout:|Killed|Aborted|Segmentation fault)' "$tmp/stderr" > "$tmp/err" || :
}

# has_session MODE
has_session() {
  [ "$1" != off ] && [ "$1" != published ]
}

# problem CASE MODE: the first thing that is wrong with the last launch, if any.
problem() {
  refuses=
  # For what it misses ljprof record fails in place of a program that succeeded.
  ! for_case cut "$1" || [ "$code$code_wanted" != 10 ] || code=0
  if has_session "$2" && { is refused || for_case may-refuse "$1"; } &&
    grep -q '^ljprof: not recorded' "$tmp/stderr"; then
    refuses=1
    [ "$code$code_wanted" != 10 ] || code=0
  fi
  # The same if an error has ended the recording.
  if is cut && [ "$code$code_wanted" = 10 ] &&
    grep -q 'the session was ended by an error' "$tmp/stderr"; then
    code=0
  fi
  if [ "$code" != "$code_wanted" ]; then
    echo "exit code $code, wanted $code_wanted: $(tail -n 3 "$tmp/stderr" |
      tr '\n' ' ')"
  elif ! cmp -s "$tmp/out" "$tmp/out.wanted"; then
    echo "output differs: $(diff "$tmp/out.wanted" "$tmp/out" |
      grep '^[<>]' | head -n 4 | tr '\n' ' ')"
  elif ! cmp -s "$tmp/err" "$tmp/err.wanted"; then
    echo "standard error differs: $(head -n 2 "$tmp/err" | tr '\n' ' ')"
  elif ! has_session "$2"; then
    return
  elif [ -n "$refuses" ]; then
    ! is refused || grep -qF "$(said refused)" "$tmp/stderr" ||
      echo "refused with other words: $(cat "$tmp/stderr")"
  elif is refused || grep -q '^ljprof: not recorded' "$tmp/stderr"; then
    echo "$(is refused && echo not) refused: $(cat "$tmp/stderr")"
  else
    wrong_files "$1" "$2"
  fi
}

# for_case WORD CASE: whether the comment has the word for this case. A word
# without values holds for all.
for_case() {
  is "$1" || return 1
  case " $(said "$1") " in
  '  ' | *" $2 "*) return 0 ;;
  esac
  return 1
}

# wrong_files CASE MODE: what is wrong with the recorded files, if anything.
wrong_files() {
  files=-1 all=-1 wanted=0
  [ "$2" != children ] || ! is children || wanted=$(said children)
  for file in $(find "$tmp/rec" -type f | sort); do
    # The same number again: the same process, which has executed another
    # program, or one in another namespace.
    all=$((all + 1))
    case ${file##*/} in
    *-*) ;;
    *) files=$((files + 1)) ;;
    esac
    case ${file##*/} in
    out.ljp) ;;
    out.ljp.*[!0-9-]* | [!o]*) echo "a file is left: ${file##*/}" && return ;;
    esac
    wrong_file "$1" "$2" "$file" | grep . && return
  done
  case " $wanted " in
  ' any ' | *" $files "* | *" $all "*) ;;
  *) echo "files of $files children instead of $wanted" ;;
  esac
}

# wrong_file CASE MODE FILE
wrong_file() {
  short=${3##*/}
  if ! "$ljprof" check "$3" > "$tmp/check" 2>&1; then
    if { for_case unclosed "$1" && grep -q '^not closed' "$tmp/check"; } ||
      { for_case cut "$1" && grep -q '^CUT SHORT' "$tmp/check"; }; then
      # A process that is ended during a write() leaves part of its last block.
      { ! grep '^gap ' "$tmp/check" |
        grep -qv ': the input ends inside a block$' &&
        grep -q '^0 malformed' "$tmp/check"; } ||
        echo "$short: damaged: $(grep -E ' gaps | malformed' "$tmp/check")"
      return
    fi
    echo "$short: $(tail -n 1 "$tmp/check"), $(tail -n 1 "$tmp/stderr")"
    return
  fi
  "$BUILD_DIR/bin/account" "$3" 2>&1 > "$tmp/account" |
    sed "s,^FAILED: accounting: .*/,," | tr '\n' ' ' | grep . && return
  [ "$short" = out.ljp ] || return 0
  case $2 in
  sampled | every | native | together | children)
    grep -q '^mem ' "$tmp/check" || echo "no memory events"
    ;;
  esac
  case $2 in
  sampled | every | native) ;;
  *) grep -qE '^(samples|unsampled) ' "$tmp/check" || echo "no samples" ;;
  esac
}

# known CASE MODE: why this is known to fail, if any.
known() {
  # shellcheck disable=SC2254 # a pattern
  while read -r who which why; do
    case $name${1:+/$1} in
    \#*) continue ;;
    $who) ;;
    *) continue ;;
    esac
    case ,$which, in
    ,\*, | *,"$2",*) echo "$why" && return ;;
    esac
  done < "$zoo/known"
}

failed=0
# attempt CASE MODE
attempt() {
  what=$name${1:+/$1}
  launch "$2" "$1"
  wrong=$(problem "$1" "$2")
  why=$(known "$1" "$2")
  if [ -n "$wrong" ] && [ -n "$why" ]; then
    echo "known  $what, $2: $wrong ($why)"
  elif [ -n "$wrong" ]; then
    echo "FAILED $what, $2: $wrong"
    failed=$((failed + 1))
  else
    echo "ok     $what, $2${why:+ (but listed in known: $why)}"
  fi
}

reference=$BUILD_DIR/unpatched/lib
[ -e "$reference/libluajit-5.1.so.2" ] || reference=$BUILD_DIR/lib
able='' ran=0
for mode in $modes; do
  why=$(refusal "$mode")
  if [ -n "$why" ]; then
    echo "skipped $mode: $why"
  else
    able="$able $mode"
  fi
done
cases=$(said cases)
for case in ${cases:-''}; do
  launch none "$case"
  if [ "$code" = 77 ]; then
    echo "skipped $name${case:+/$case}: $(tail -n 1 "$tmp/out")"
    continue
  fi
  code_wanted=$code
  mv "$tmp/out" "$tmp/out.wanted"
  mv "$tmp/err" "$tmp/err.wanted"
  case $code in
  1 | 12[4-7])
    echo "FAILED $name${case:+/$case}, unprofiled: exit code $code:" \
      "$(cat "$tmp/out.wanted" "$tmp/stderr" | tail -n 2)"
    failed=$((failed + 1))
    continue
    ;;
  esac
  ran=1
  for mode in $able; do
    attempt "$case" "$mode"
  done
done
[ $failed = 0 ] || { echo "$name: $failed failed" && exit 1; }
[ $ran = 1 ] || exit 77
