# shellcheck shell=sh
# For tests with heap snapshots in a session's file.

# all_bytes WHAT FILE [LEAST]: LEAST snapshots or more (1) are in the file, and each
# has the bytes that the VM counted when it was taken.
all_bytes() {
  "$BUILD_DIR/bin/storm_snapshots" "$2" > sums.txt || fail "$1: $2 is not readable"
  read -r moments ends bad < sums.txt
  if [ "$moments" != "$ends" ] || [ "$ends" -lt "${3:-1}" ] || [ "$bad" != 0 ]; then
    fail "$1: moments, snapshots, wrong sums: $(cat sums.txt)"
  fi
  ok "$1: $ends snapshots in the session's file have all bytes"
}
