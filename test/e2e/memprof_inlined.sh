#!/bin/sh
# Each allocation of compiled code has the very chain of functions and lines that
# did it, inlined ones included: all events of a known size, not most of them.
# With the compiler on, eager, and off.
. "$(dirname "$0")/lib.sh"

for jit in on on,hotloop=2,hotexit=2 off; do
  options=-j${jit%%,*}
  [ "${jit#*,}" = "$jit" ] || options="$options -O${jit#*,}"
  # shellcheck disable=SC2086 # one or two words
  "$BUILD_DIR/bin/luajit" $options "$SOURCE_DIR/test/e2e/memprof_inlined.lua" \
    inlined.ljp > wanted.txt || fail "JIT $jit: the program"
  "$BUILD_DIR/bin/ljprof" check inlined.ljp > check.txt ||
    fail "JIT $jit: $(cat check.txt)"
  # Types and sizes as wanted, with the chains that they have.
  "$BUILD_DIR/bin/ljprof" dump inlined.ljp | awk '
    function field(key,   at) {
      at = index($0, " " key "=")
      return substr($0, at + length(key) + 2)
    }
    function put() {
      # Upvalues are all of one size: those of the cases themselves do not count.
      if (chain != "" && (key in known) && (key !~ /^upvalue/ || chain ~ /^closed:/))
        seen[key " " chain]++
      chain = ""; on = 0
    }
    NR == FNR { known[$1 " " $2] = 1; wanted[$1 " " $2 " " $4] = $3; next }
    /^  [a-z]/ { put() }
    /^  mem / && !/operation="free"/ {
      type = field("type"); sub(/^"/, "", type); sub(/".*/, "", type)
      gsub(/ /, "_", type)
      key = type " " field("size") + 0
      compiled[/state="compiled"/] += (key in known)
      on = 1
      next
    }
    on && /^    (Lua|inlined) / {
      line = $NF; sub(/.*:/, "", line)
      if ($2 == "run" || $2 == "main") on = 0
      else chain = chain (chain == "" ? "" : "<") $2 ":" line
    }
    END {
      put()
      for (chain in wanted)
        if (seen[chain] != wanted[chain]) {
          print "wanted " wanted[chain] " of " chain ", got " seen[chain] + 0
          bad = 1
        }
      for (chain in seen)
        if (!(chain in wanted)) { print "got " seen[chain] " of " chain; bad = 1 }
      print compiled[1] + 0 " of " compiled[0] + compiled[1] " in compiled code"
      exit bad
    }' wanted.txt - > result.txt || fail "JIT $jit: $(cat result.txt)"
  case $jit in
  off) grep -q '^0 of' result.txt || fail "JIT off, and: $(cat result.txt)" ;;
  *)
    # Or nothing would have been tried.
    awk '/in compiled code/ { exit !($1 > 0.7 * $3) }' result.txt ||
      fail "JIT $jit: $(cat result.txt)"
    ;;
  esac
  ok "JIT $jit: $(cat result.txt)"
done
