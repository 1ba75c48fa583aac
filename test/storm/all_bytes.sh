# shellcheck shell=sh
# For tests with heap snapshots in a session's file.

# all_bytes WHAT FILE [LEAST]: LEAST snapshots or more (1) are in the file, and each
# has the bytes that the VM counted when it was taken.
all_bytes() {
  "$BUILD_DIR/bin/ljprof" dump "$2" |
    awk '
      function field(key) { return substr($0, index($0, " " key "=") + length(key) + 2) + 0 }
      /^  heap-moment / { moments++; bytes[field("snapshot")] = field("heap_bytes") }
      /^  heap-end / { ends++; bad += bytes[field("snapshot")] != field("bytes") }
      END { print moments + 0, ends + 0, bad + 0 }' > sums.txt
  read -r moments ends bad < sums.txt
  if [ "$moments" != "$ends" ] || [ "$ends" -lt "${3:-1}" ] || [ "$bad" != 0 ]; then
    fail "$1: moments, snapshots, wrong sums: $(cat sums.txt)"
  fi
  ok "$1: $ends snapshots in the session's file have all bytes"
}
