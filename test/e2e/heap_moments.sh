#!/bin/sh
# Heap snapshots at hard moments of a host: several threads at once, fork(), exec(),
# exit() from anywhere, lua_close(). The host does what it does without, and each file
# is whole, or the one of before.
. "$(dirname "$0")/lib.sh"

# moment MODE CODE FILES: at least so many new files.
moment() {
  echo old > "$1.ljp"
  code=0
  "$BUILD_DIR/bin/heap_moments" "$1" "$1.ljp" > out.txt 2> err.txt || code=$?
  [ "$code" = "$2" ] || fail "$1: exit code $code: $(cat err.txt)"
  [ ! -s err.txt ] || fail "$1: $(cat err.txt)"
  new=0
  for file in "$1".ljp*; do
    case $file in
    *.ljp-*) fail "$1: $file is left" ;;
    esac
    [ "$(head -c 3 "$file")" = old ] && continue
    "$BUILD_DIR/bin/ljprof" check "$file" > check.txt || fail "$file: $(cat check.txt)"
    new=$((new + 1))
  done
  [ "$new" -ge "$3" ] || fail "$1: only $new new files"
  ok "$1: $new new files"
}

moment threads 0 22
moment foreign 0 1
moment running 0 1
moment allocator 0 1
moment close 0 1
moment exec 0 0
moment _exit 7 0
moment exit_thread 7 0
moment handler 7 0
moment handler_early 7 0
