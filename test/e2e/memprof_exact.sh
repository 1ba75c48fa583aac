#!/bin/sh
# Everything that a program with known allocations does is in the stream: how
# many, how large, of what type, on which line, in which function; and the sum
# is what LuaJIT itself counts. With and without the compiler.
. "$(dirname "$0")/lib.sh"

for jit in on off; do
  "$BUILD_DIR/bin/luajit" -j$jit "$SOURCE_DIR/test/e2e/memprof_exact.lua" \
    exact.ljp > wanted.txt || fail "JIT $jit: the program"
  "$BUILD_DIR/bin/ljprof" check exact.ljp > check.txt ||
    fail "JIT $jit: $(cat check.txt)"
  "$BUILD_DIR/bin/ljprof" dump exact.ljp > dump.txt

  # The innermost Lua frame of each allocation.
  awk '
    function put() {
      if (have) print line, type, bytes, name
      have = 0
    }
    function field(key,   at) {
      at = index($0, " " key "=")
      return substr($0, at + length(key) + 2)
    }
    /^  mem / {
      put()
      if ($0 !~ /operation="free"/) {
        have = 1; line = 0; name = "?"
        bytes = field("size") + 0
        type = field("type"); sub(/^"/, "", type); sub(/".*/, "", type)
        gsub(/ /, "_", type)
      }
      next
    }
    /^    (Lua|inlined) / && have && !line {
      line = $NF; sub(/.*:/, "", line); name = $2
      next
    }
    /^  [a-z]/ { put() }
    END { put() }' dump.txt > allocs.txt

  while read -r line type bytes count name; do
    got=$(awk -v line="$line" -v type="$type" -v bytes="$bytes" -v name="$name" '
      $1 == line && $2 == type && (bytes == "any" || $3 == bytes) &&
        $4 == name { n++ }
      END { print n + 0 }' allocs.txt)
    same "JIT $jit: $type of $bytes bytes in $name" "$count" "$got"
  done < wanted.txt

  # Traces, and what makes them, are allocated by the compiler itself.
  got=$(grep -c 'operation="alloc".* type="trace"' dump.txt || :)
  case $jit in
  on) [ "$got" -gt 5 ] || fail "JIT on: $got traces" ;;
  off) same "JIT off: traces" 0 "$got" ;;
  esac

  # Start + allocated - freed = end.
  awk '
    function number(key,   at) {
      at = index($0, " " key "=")
      return at ? substr($0, at + length(key) + 2) + 0 : 0
    }
    /^  gc / { if (!seen++) first = number("heap_bytes"); last = number("heap_bytes") }
    /^  mem / && !/failed=true/ {
      if ($0 ~ /operation="free"/) sum -= number("size")
      else sum += number("size") - number("old_size")
      n++
    }
    END {
      printf "%d events: %d + %d = %d, heap %d\n", n, first, sum, first + sum, last
      exit !(n > 2000 && first + sum == last)
    }' dump.txt > sum.txt || fail "JIT $jit: bytes: $(cat sum.txt)"
  ok "JIT $jit: every byte has its event: $(cat sum.txt)"
done
