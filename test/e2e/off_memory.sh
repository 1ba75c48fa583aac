#!/bin/sh
# While no profiler runs, a function costs at most eight bytes outside of the
# VM's heap and none inside, before a session and after it. A name that no
# prototype holds any more costs some 20 bytes, once in the process.
. "$(dirname "$0")/lib.sh"

# measure FOLDER [session]: with the library of that build folder.
measure() {
  folder=$1
  shift
  LD_LIBRARY_PATH=$folder/lib "$BUILD_DIR/bench/bench_off_memory" "$@" \
    > memory.txt || fail "bench_off_memory $*: exit code $?"
  cat memory.txt
}
measure "$BUILD_DIR" > patched.txt
measure "$BUILD_DIR" session > session.txt

# within FILE WHAT LEAST MOST: the bytes of malloc() for one of these.
within() {
  bytes=$(sed -n "s/^$2  *[0-9][0-9]*  *[0-9.]*  *\(-*[0-9.]*\) .*/\1/p" "$1")
  awk -v b="$bytes" -v least="$3" -v most="$4" \
    'BEGIN { exit !(b != "" && b >= least && b < most) }' ||
    fail "$1: '$2' takes $bytes bytes, not $3 to $4"
  ok "$1: '$2' takes $bytes bytes"
}
# Less than 8.5, because tables grow in steps.
within patched.txt "unnamed function" 4 8.5
within patched.txt "function of a module" 4 8.5
within patched.txt "function inside" 4 8.5
within patched.txt "function, other name" 4 32
# Notes about the trace that is being compiled belong to no VM.
within patched.txt "VM that compiles" 1 8192
within session.txt "unnamed function" 4 8.5
within session.txt "function of a module" 4 8.5
within session.txt "function inside" 4 8.5

[ -d "$BUILD_DIR/unpatched" ] || exit 0
measure "$BUILD_DIR/unpatched" > unpatched.txt
within unpatched.txt "unnamed function" 0 0.1
heap() {
  sed -n -e '/^trace/d' \
    -e 's/^\(.*function[a-z, ]*\)  *[0-9][0-9]*  *\([0-9.]*\) .*/\1 \2/p' "$1"
}
same "the VM's heap grows as without the patches" "$(heap unpatched.txt)" \
  "$(heap patched.txt)"
