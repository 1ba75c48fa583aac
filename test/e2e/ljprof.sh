#!/bin/sh
# The ljprof command: help, exit codes, wrong usage; dump and check of golden
# streams, of files that are not streams, of pipes and of closed pipes.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data

# The command itself.
"$ljprof" --help > help.txt || fail "--help failed"
for command in dump check embed merge export; do
  grep -q "^  $command " help.txt || fail "--help does not name $command"
  "$ljprof" $command --help > own.txt
  grep -q "^Usage: ljprof $command" own.txt || fail "$command --help"
  "$ljprof" help $command | cmp - own.txt || fail "help $command"
done
ok "help names each command, and each has its own"
"$ljprof" --version | grep -qE '^ljprof [0-9.]+ \(stream format [0-9.]+\)$' ||
  fail "--version"
ok "the version is told"
refuses "no command" 2 "no command given" "$ljprof"
refuses "an unknown command names the nearest" 2 \
  "unknown command 'chek'; did you mean 'check'?" "$ljprof" chek
refuses "a command like none" 2 \
  "unknown command 'compile' (see ljprof --help)" "$ljprof" compile
refuses "help on no command" 2 "unknown command 'xyzzy'" "$ljprof" help xyzzy
: > typed.ljp
: > typed.lua
refuses "a file in place of a command" 2 "type 'ljprof report typed.ljp'" \
  "$ljprof" typed.ljp
refuses "a script in place of a command" 2 "type 'ljprof record typed.lua'" \
  "$ljprof" typed.lua
refuses "an unknown option" 2 "unknown option '--jsn'" \
  "$ljprof" dump --jsn "$data/killed.ljp"
refuses "no file" 2 "no file given" "$ljprof" check
refuses "two files" 2 "this command takes one file" "$ljprof" check a b

# Files that are not streams: one error line each, without waiting.
soon() {
  timeout 20 "$@"
}
: > empty
echo "print('hello')" > text.txt
refuses "a file that is not there" 1 "No such file" "$ljprof" check nothing
refuses "an empty file" 1 "it is empty" "$ljprof" check empty
refuses "a text" 1 "not an ljprof stream" "$ljprof" dump text.txt
refuses "a program" 1 "not an ljprof stream" "$ljprof" check "$ljprof"
refuses "a folder" 1 "is a directory" "$ljprof" check .
refuses "/dev/zero" 1 "character device" soon "$ljprof" check /dev/zero
refuses "/dev/null" 1 "character device" "$ljprof" dump -
refuses "no right to read, or no file" 1 "ljprof check: " \
  "$ljprof" check "$(printf 'a\033[2Jb')"
grep -q "$(printf '\033')" out.txt && fail "an escape reached the terminal"
ok "names from outside cannot move the cursor"
yes | soon "$ljprof" check - > out.txt 2> err.txt &&
  fail "an endless pipe of text passed"
grep -q "no whole block in" err.txt || fail "endless text: $(cat err.txt)"
ok "an endless pipe of text is given up: $(cat err.txt)"
same "and told in one line" 1 "$(wc -l < err.txt)"
python=$(command -v python3 || :)
if [ -n "$python" ]; then
  "$python" -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
  refuses "a socket" 1 "is a socket" soon "$ljprof" check sock
fi

# A FIFO and standard input are read like the file.
"$ljprof" dump "$data/every-record.ljp" > file.txt || fail "dump failed"
"$ljprof" dump - < "$data/every-record.ljp" > stdin.txt || fail "dump -"
# shellcheck disable=SC2002 # a pipe is wanted
cat "$data/every-record.ljp" | "$ljprof" dump - > pipe.txt || fail "dump pipe"
mkfifo fifo
cat "$data/every-record.ljp" > fifo &
soon "$ljprof" dump fifo > fifo.txt || fail "dump of a FIFO"
for way in stdin pipe fifo; do
  cmp file.txt $way.txt || fail "$way reads otherwise than the file"
done
ok "file, standard input, pipe and FIFO read the same"

# The content of a dump.
for shown in 'block offset=0 seq=0 session=0x1234567800000001' \
  'mark time_ns=1000000000008 thread=1 vm=1 value=-17 text="request \\"a\\"\\x0a"' \
  'thread id=2 tid=4243 name="worker"' 'loss .*reason="ring full" count=29' \
  'sample .*thread=1 .*state="unknown" weight=1009000 .*stack=17' \
  'trace id=3 .*link_type="loop" ir_count=101 snapshots=11 marks=23 flags=1' \
  'trace-event .*action="abort" .*reason="NYI: bytecode 51" .*stack=3' \
  '    builtin  lib.fn17' '    Lua      f11 app/file4.lua:113' \
  'finish .*closed="end" clean=true'; do
  grep -q "$shown" file.txt || fail "dump does not show: $shown"
done
ok "a dump shows each field, and stacks by name"
for file in "$data"/*.ljp*; do
  "$ljprof" dump --json "$file" > dump.json || fail "dump --json $file"
  "$ljprof" check --json "$file" > check.json || :
  if [ -n "$python" ]; then
    "$python" -c 'if True:
      import json, sys
      for name in sys.argv[1:]:
        for line in open(name, encoding="utf-8"):
          assert isinstance(json.loads(line), dict)
    ' dump.json check.json || fail "no JSON from $file"
  fi
  same "as many objects as records in ${file##*/}" \
    "$("$ljprof" dump "$file" | grep -vc '^    ')" "$(wc -l < dump.json)"
done

# The content of a check.
"$ljprof" check "$data/every-record.ljp" > check.txt || fail "check: whole"
grep -qx 'whole' check.txt || fail "check does not say whole"
grep -qE '^lost +29 of producer 2: ring full$' check.txt || fail "no losses"
ok "a whole stream checks as such, its losses by reason"
check() { # FILE: exit code and output without counts
  code=0
  "$ljprof" check "$1" > check.txt 2>&1 || code=$?
  echo "$code"
}
same "not closed is 1" 1 "$(check "$data/killed.ljp")"
grep -q '^not closed' check.txt || fail "killed.ljp: no word of it"
size=$(wc -c < "$data/every-record.ljp")
head -c $((size - 1)) "$data/every-record.ljp" > cut.ljp
same "cut by a byte is 1" 1 "$(check cut.ljp)"
grep -qE '^gap at offset [0-9]+: [0-9]+ bytes, 1 block missing: the input ends inside a block$' \
  check.txt || fail "no gap in: $(cat check.txt)"
{
  head -c 1000 "$data/every-record.ljp"
  printf 'X'
  tail -c +1002 "$data/every-record.ljp"
} > flip.ljp
same "a changed byte is 1" 1 "$(check flip.ljp)"
gap=$(sed -n 's/^gap at offset \([0-9]*\): .* 1 block missing: block payload with a wrong.*/\1/p' check.txt)
if [ -z "$gap" ] || [ "$gap" -gt 1000 ]; then
  fail "no gap in: $(cat check.txt)"
fi
grep -qE '^mem .*, [0-9]+ more lost in gaps$' check.txt ||
  fail "the lost events are not counted: $(cat check.txt)"
ok "what a gap swallowed is counted"
"$ljprof" dump flip.ljp > flip.txt || fail "dump of a damaged stream"
grep -q "^gap offset=$gap " flip.txt || fail "no gap in the dump"
grep -q 'unknown (lost in a gap)' flip.txt || fail "no word of lost definitions"
ok "definitions that were lost are shown as lost"

# A session ended by an error: the file is whole, the session is not.
cat > busy.lua << 'EOF'
assert(misc.sysprof.start{path = "limited.ljp", interval = 0.1, flush = 10})
local function down(n) return n > 0 and 1 + down(n - 1) or 0 end
local till, status = os.clock() + 10
repeat
  for i = 1, 60 do down(i) end
  status = misc.sysprof.status()
until status.state ~= "running" or os.clock() > till
local ok, why, errno = misc.sysprof.stop()
print(status.state, ok, errno)
EOF
# Now and then the last block ends so close to the limit that the error does not
# fit either: the next try has other blocks.
for try in 1 2 3 4 5; do
  rm -f limited.ljp
  same "a file that may not grow ends the session, not the program ($try)" \
    "failed	nil	27" "$(ulimit -f 8 && "$BUILD_DIR/bin/luajit" busy.lua)"
  same "ended by an error is 1 ($try)" 1 "$(check limited.ljp)"
  grep -q '^not closed' check.txt || break
done
grep -qx 'the session was ended by an error: input/output error (File too large)' \
  check.txt || fail "no error in: $(cat check.txt)"
grep -q 'lost .* of producer .*: write error' check.txt ||
  fail "no losses in: $(cat check.txt)"
ok "a stream says which error ended it and what was lost"

# Output that cannot be written.
"$ljprof" dump "$data/every-record.ljp" 2> err.txt | head -n 1 > one.txt
same "a closed pipe is quiet" "" "$(cat err.txt)"
# shellcheck disable=SC2016 # sh expands them
refuses "a full disk" 1 "cannot write: No space left" \
  sh -c '"$1" dump "$2" > /dev/full' sh "$ljprof" "$data/every-record.ljp"
