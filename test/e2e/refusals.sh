#!/bin/sh
# What no view may do: leave half a file on a full disk, complain when its reader
# closes the pipe, guess the content of a file of a newer version, accept a wrong
# regex, or show nothing without a message.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data
golden=$data/every-record.ljp

# Sets the version to 9 and corrects the checksum of the header.
python3 - "$golden" newer.ljp << 'EOF'
import struct, sys
data = bytearray(open(sys.argv[1], 'rb').read())
def crc32c(b):
    c = 0xffffffff
    for x in b:
        c ^= x
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    return c ^ 0xffffffff
assert data[:4] == b'\x89LJP' and data[4] == 1
data[4] = 9
data[52:56] = struct.pack('<I', crc32c(data[:52]))
open(sys.argv[2], 'wb').write(data)
EOF

each() { # Runs $1 with each view of one file, and its arguments.
  "$1" report "$2"
  "$1" report --json "$2"
  "$1" report --tree "$2"
  "$1" report --bottom-up "$2"
  "$1" dump "$2"
  "$1" dump --json "$2"
  "$1" check "$2"
  "$1" flame -o - "$2"
  "$1" flame --svg -o - "$2"
  "$1" diff "$2" "$2" --all
  "$1" diff "$2" "$2" --json
  "$1" merge -o - "$2"
  "$1" embed -o - "$2"
  for format in collapsed pprof speedscope callgrind perf-script chrome-trace; do
    "$1" export --to $format -o - "$2"
  done
}

no_room() {
  code=0
  "$ljprof" "$@" > /dev/full 2> err.txt || code=$?
  same "$* on a full disk" 1 "$code"
  grep -v '^ljprof [a-z]*: note: ' err.txt > said.txt || :
  grep -q 'No space left on device' said.txt || fail "$*: $(cat err.txt)"
  same "$*: one line" 1 "$(wc -l < said.txt)"
}
each no_room "$golden"
ok "a full disk is said by every view"

reader_gone() {
  "$ljprof" "$@" 2> err.txt | head -c 1 > one.txt
  grep -v '^ljprof [a-z]*: note: ' err.txt > said.txt || :
  same "$*, its reader gone, is quiet" "" "$(cat said.txt)"
}
each reader_gone "$golden"
ok "a reader that goes away is no failure"

newer() {
  code=0
  "$ljprof" "$@" > out.txt 2> err.txt || code=$?
  same "$* of a newer version" 1 "$code"
  grep -q 'version 9' err.txt || fail "$*: $(cat err.txt)"
  same "$*: nothing is shown" 0 "$(wc -c < out.txt)"
}
each newer newer.ljp
newer diff "$golden" newer.ljp
newer diff newer.ljp "$golden"
newer merge -o - "$golden" newer.ljp
ok "a newer version is named, and nothing guessed, alone or among others"

for option in --focus --ignore; do
  for bad in '(' '[a' 'a{2,1}' '*'; do
    code=0
    "$ljprof" report $option "$bad" "$golden" > out.txt 2> err.txt || code=$?
    [ "$bad$code" != '*0' ] || continue # POSIX leaves that one open.
    [ $code = 1 ] || [ $code = 2 ] || fail "$option '$bad': $code"
    grep -qF "$bad" err.txt || fail "$option '$bad': $(cat err.txt)"
    same "$option '$bad': one line" 1 "$(wc -l < err.txt)"
    same "$option '$bad': nothing is shown" 0 "$(wc -c < out.txt)"
  done
done
ok "a regex that does not compile is named"

nothing() {
  code=0
  "$ljprof" "$@" > out.txt 2> err.txt || code=$?
  same "$*: nothing is selected" 1 "$code"
  [ -s err.txt ] || [ -s out.txt ] || fail "$*: not a word"
}
nothing report --focus 'no such function' "$golden"
nothing report --time 900..901 "$golden"
nothing report --thread 'no such thread' "$golden"
nothing report --json --focus 'no such function' "$golden"
nothing flame --thread 'no such thread' -o - "$golden"
nothing diff --thread 'no such thread' "$golden" "$golden"
ok "an empty selection is said"

# All views of a file count the same samples.
python3 - "$ljprof" "$data" << 'EOF' > totals.txt || fail "$(cat totals.txt)"
import json, subprocess, sys
ljprof, data = sys.argv[1:]
def run(*words):
    return subprocess.run([ljprof, *words], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()
checks = 0
for name in ('every-record', 'every-record-zstd', 'small-table', 'killed',
             'rotated'):
    file = f'{data}/{name}.ljp'
    def report(*words):
        return json.loads(run('report', '--json', *words, file))
    want = report('--cpu')['totals']
    samples, ns = want['samples'], want['cpu_ns']
    assert samples > 0
    for by in ('function', 'line', 'module', 'file', 'kind', 'trace', 'stack',
               'thread', 'vm', 'state'):
        rows = report('--cpu', '--by', by)
        assert rows['totals']['samples'] == samples, (name, by)
        if by in ('function', 'stack', 'thread', 'vm', 'state', 'kind'):
            assert sum(r['self_samples'] for r in rows['rows']) == samples, \
                (name, by)
            assert sum(r['self_ns'] for r in rows['rows']) == ns, (name, by)
        checks += 1
    for value, total in (('samples', samples), ('cpu', ns)):
        lines = run('export', '--to', 'collapsed', '-o', '-', '--value', value,
                    file).splitlines()
        assert sum(int(l.rsplit(' ', 1)[1]) for l in lines) == total, \
            (name, 'collapsed', value)
        checks += 1
    diff = json.loads(run('diff', '--json', '--view', 'cpu', file, file))
    assert diff['totals']['before_samples'] == samples == \
        diff['totals']['after_samples'], (name, 'diff', diff['totals'])
    # Values are per second of recording.
    seconds = diff['totals']['before_duration_ns'] / 1e9
    assert abs(diff['totals']['before_value'] * seconds - ns) <= seconds, name
    checks += 1
print(f'{checks} views agree')
EOF
ok "$(cat totals.txt)"
