#!/bin/sh
# Heaps of odd shapes: long chains, huge tables and strings, deep stacks. Each snapshot
# has every byte, and each view of it ends, in memory that its objects bound, and in so
# much CPU time that a walk which takes squares of them would not.
# LJPROF_HEAP_SHAPES=large: as large as LuaJIT permits, for some minutes and 4 GB.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof

# views SHAPE SIZE MIB VIEWS: skipped below MIB of free memory.
views() {
  free=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
  if [ "$free" -lt "$3" ]; then
    echo "skipped: $1 of $2 needs $3 MiB of memory, $free MiB are free"
    return
  fi
  nice prlimit --cpu=600 "$lua" "$SOURCE_DIR/test/e2e/heap_shapes.lua" "$1" "$2" shape.ljp \
    > out.txt 2>&1 || fail "$1 of $2: $(cat out.txt)"
  read -r objects bytes file_bytes < out.txt
  "$ljprof" check shape.ljp > check.txt || fail "$1 of $2: $(cat check.txt)"
  most=$((200000000 + 2 * file_bytes + 300 * objects)) # --diff has two graphs.
  for view in $4; do
    set -- "$1" "$2" "$3" "$4" shape.ljp
    case $view in
    --path | --retained-by) set -- "$@" "$view" table ;;
    --diff) set -- "$@" --diff shape.ljp ;;
    *) set -- "$@" "$view" ;;
    esac
    code=0
    (shift 4 && nice prlimit --as=$most --cpu=300 "$ljprof" heap "$@") > view.txt \
      2> err.txt || code=$?
    [ "$code" = 0 ] || fail "$1 of $2: $view: exit code $code: $(cat err.txt)"
    set -- "$1" "$2" "$3" "$4"
  done
  prlimit --cpu=300 "$ljprof" heap --json shape.ljp | head -c 400 > view.txt
  grep -q "\"objects\":$objects,\"bytes\":$bytes,.*\"complete\":true" view.txt ||
    fail "$1 of $2: $objects objects, $bytes bytes, but: $(cat view.txt)"
  ok "$1 of $2: $objects objects, $bytes bytes"
}

all='--json --dominators --coroutines --strings --path --retained-by --diff'
if [ "${LJPROF_HEAP_SHAPES:-}" = large ]; then
  some='--json --dominators'
  views list 10000000 3000 "$some"
  views array 67108864 2000 "$all"
  views hash 16777216 2000 "$all"
  views string 1073741824 4000 "$all"
  views stack 100 500 "$all"
  views metatables 1000000 1000 "$all"
  views coroutines 100000 500 "$all"
  views ephemerons 100000 500 "$all"
else
  views list 100000 200 "$all"
  views array 1048576 200 "$all"
  views hash 262144 200 "$all"
  views string 16777216 200 "$all"
  views stack 3 100 "$all"
  views upvalues 60000 100 "$all"
  views metatables 200000 300 "$all"
  views coroutines 10000 200 "$all"
  views ephemerons 10000 200 "$all"
fi
