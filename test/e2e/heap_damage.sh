#!/bin/sh
# ljprof check names each heap snapshot that is not whole, and says how much of it
# is there.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof

# check FILE CODE: into check.txt and check.json.
check() {
  code=0
  "$ljprof" check "$1" > check.txt 2>&1 || code=$?
  [ "$code" = "$2" ] || fail "$1: exit code $code: $(cat check.txt)"
  "$ljprof" check --json "$1" > check.json || :
}
says() { # WHAT LINE: an expression for a whole line of check.txt
  grep -qxE "$2" check.txt || fail "$1: no line '$2' in: $(cat check.txt)"
  ok "$1: $(grep -xE "$2" check.txt)"
}

cat > program.lua << 'END'
keep = {}
for i = 1, 60013 do keep[i] = { i, { name = "object " .. i } } end
if arg[1] == "session" then
  misc.memprof.start{ path = arg[2], every = true }
  assert(misc.memprof.snapshot{ wait = true })
  keep[1] = {}
  assert(misc.memprof.snapshot{ wait = true })
  assert(misc.memprof.stop())
else
  assert(misc.memprof.snapshot{ path = arg[2], wait = true })
end
END
"$lua" program.lua file whole.ljp || fail "the program"
check whole.ljp 0
says "a whole snapshot" "1 heap snapshot, 0 incomplete"

# blocks FILE: the line of each block in blocks.txt: offset, the block's bytes,
# and what it has of snapshots: H (beginning), o (objects), E (end), m (moment).
blocks() {
  "$ljprof" dump "$1" | awk '
    function put() { if (at != "") print at, stored, has "." }
    /^block / {
      put()
      has = ""
      at = $2; sub(/offset=/, "", at)
      stored = $0; sub(/.* stored_bytes=/, "", stored); sub(/ .*/, "", stored)
    }
    /^  heap / { has = has "H" }
    /^  heap-moment / { has = has "m" }
    /^  heap-end / { has = has "E" }
    /^  object / && has !~ /o$/ { has = has "o" }
    END { put() }' > blocks.txt
}
blocks whole.ljp
[ "$(grep -c 'o\.$' blocks.txt)" -ge 3 ] || fail "too few blocks: $(cat blocks.txt)"
some='[1-9][0-9]*'

# Cut behind each block.
parts=0
while read -r offset stored has; do
  head -c "$offset" whole.ljp > cut.ljp
  : "$stored $has"
  "$ljprof" dump cut.ljp > dump.txt 2> err.txt || continue # Nothing is left.
  check cut.ljp 1
  if grep -q '^  heap-end ' dump.txt; then
    says "all of it" "1 heap snapshot, 0 incomplete"
  elif grep -q '^  heap ' dump.txt; then
    grep -q '1 of VM 1 is incomplete, its end is missing: [0-9]* objects' \
      check.txt || fail "cut at $offset: $(cat check.txt)"
    parts=$((parts + 1))
  else
    grep -q 'heap snapshot' check.txt && fail "cut at $offset: $(cat check.txt)"
  fi
done < blocks.txt
[ "$parts" -ge 3 ] || fail "only $parts cuts are inside"
ok "a snapshot that was cut behind a block is named ($parts cuts)"
head -c "$(($(wc -c < whole.ljp) / 2))" whole.ljp > cut.ljp
check cut.ljp 1
says "half of a snapshot" \
  "heap snapshot 1 of VM 1 is incomplete, its end is missing: $some objects, $some references, $some of $some bytes are there"
objects=$("$ljprof" dump cut.ljp | grep -c '^  object .*type="[^-]')
grep -q "missing: $objects objects, " check.txt ||
  fail "there are $objects objects: $(cat check.txt)"
ok "the objects that are there are counted"
grep -q "\"kind\":\"snapshot\",\"snapshot\":1,\"vm\":1,\"begins\":true,\"ends\":false,\"objects\":$objects," check.json ||
  fail "$(cat check.json)"
grep -q '"heap_snapshots":1,"incomplete_heap_snapshots":1,' check.json ||
  fail "$(cat check.json)"
ok "as JSON"

# spoil FILE BLOCK: a byte in the middle of a block's records, into spoilt.ljp.
spoil() {
  blocks "$1"
  # shellcheck disable=SC2046 # Three words.
  set -- "$1" $(sed -n "$2" blocks.txt | head -n 1)
  cp "$1" spoilt.ljp
  printf '\377\377\377' | dd of=spoilt.ljp bs=1 conv=notrunc \
    seek="$(($2 + 64 + $3 / 2))" 2> dd.txt || fail "$(cat dd.txt)"
}
spoil whole.ljp '/ o\.$/p'
check spoilt.ljp 1
says "a block in the middle" \
  "heap snapshot 1 of VM 1 is incomplete: $some of $some objects, $some of $some references, $some of $some bytes are there"
spoil whole.ljp '/ [^E]*H[^E]*\.$/p'
check spoilt.ljp 1
says "the beginning" \
  "a heap snapshot is incomplete, its beginning is missing: $some of $some objects, $some of $some references are there"

# In a session's file, the other snapshot is whole.
"$lua" program.lua session session.ljp || fail "the program in a session"
check session.ljp 0
says "two whole snapshots" "2 heap snapshots, 0 incomplete"
spoil session.ljp '/ o\.$/p'
check spoilt.ljp 1
says "one of two" "2 heap snapshots, 1 incomplete"
says "which one" "heap snapshot 1 of VM 1 is incomplete: .*"
blocks session.ljp
awk '/H/ && n++ { print $1; exit }' blocks.txt > second.txt
head -c "$(cat second.txt)" session.ljp > cut.ljp
check cut.ljp 1
says "announced only" \
  "a heap snapshot of VM 1 is not in the file, only its place among the events"
says "and the one before is whole" "1 heap snapshot, 0 incomplete"
