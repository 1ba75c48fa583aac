#!/bin/bash
# ljprof export: each format has the same totals, as counted by the tools that
# read it.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data
golden=$data/every-record.ljp
export HOME=$SCRATCH LJPROF_DEBUG_PATH=$SCRATCH
unset DEBUGINFOD_URLS

# sum FILE RECORD FIELD: over the records of a dump, independent of the model.
sum() {
  "$ljprof" dump "$1" | awk -v r="$2" -v f="$3" '
    $1 == r { n++; for (i = 2; i <= NF; i++) if (index($i, f "=") == 1)
      s += substr($i, length(f) + 2) }
    END { printf "%d\n", f == "" ? n : s }'
}
# collapsed FILE VALUE: the sum of a collapsed export.
collapsed() {
  "$ljprof" export --to collapsed --value "$2" -o - "$1" |
    awk '{ s += $NF } END { printf "%d\n", s }'
}

samples=$(sum "$golden" sample '')
cpu=$(sum "$golden" sample weight)
same "collapsed: samples" "$samples" "$(collapsed "$golden" samples)"
same "collapsed: nanoseconds" "$cpu" "$(collapsed "$golden" cpu)"
# Every record of the file but a MEM of a realloc is of one of these stacks.
space=$("$ljprof" dump "$golden" | awk '$1 == "mem" && !/operation="free"/ {
  match($0, / size=[0-9]+/); s += substr($0, RSTART + 6, RLENGTH - 6) }
  END { printf "%d\n", s }')
if [ "$(sum "$golden" mem weight)" = 0 ]; then
  same "collapsed: bytes allocated" "$space" "$(collapsed "$golden" alloc_space)"
fi
same "without --value, samples come first" \
  "$("$ljprof" export --to collapsed --value samples -o - "$golden" | cksum)" \
  "$("$ljprof" export --to collapsed -o - "$golden" | cksum)"
"$ljprof" export --to collapsed -o c.txt "$golden" || fail "collapsed"
grep -qvE '^[^;]+(;[^;]+)* [0-9]+$' c.txt && fail "not collapsed: $(cat c.txt)"
same "each line is another stack" "$(wc -l < c.txt)" \
  "$(sed 's/ [0-9]*$//' c.txt | sort -u | wc -l)"
grep -q 'trace 1 app/file5.lua:[0-9]*_\[j\];' c.txt || fail "no suffix: $(cat c.txt)"
ok "compiled code has its suffix"
"$ljprof" export --to collapsed --lines -o lines.txt "$golden" || fail "--lines"
cmp -s c.txt lines.txt && fail "--lines changes nothing"
ok "--lines shows current lines"

# Reports and exports have the same totals.
"$ljprof" merge -o merged.ljp "$data/rotated.ljp" "$data/rotated.ljp.s1" \
  "$data/rotated.ljp.s2" || fail "merge"
for file in "$golden" merged.ljp; do
  "$ljprof" report --json "$file" > report.json 2> err.txt ||
    fail "report: $(cat err.txt)"
  for pair in samples:samples cpu_ns:cpu alloc_bytes:alloc_space \
    live_objects:inuse_objects live_bytes:inuse_space; do
    same "report and export agree: ${pair#*:} of ${file##*/}" \
      "$(grep -o "\"${pair%:*}\":[0-9]*" report.json | head -n 1 | grep -o '[0-9]*$')" \
      "$(collapsed "$file" "${pair#*:}")"
  done
done

# The totals in the other formats.
for format in collapsed pprof speedscope callgrind perf-script chrome-trace; do
  "$ljprof" export --to $format -o "x.$format" "$golden" || fail "$format"
  "$ljprof" export --to $format -o "y.$format" "$data/small-table.ljp" ||
    fail "$format"
  for file in killed.ljp rotated.ljp embedded.ljp every-record-zstd.ljp; do
    "$ljprof" export --to $format -o - "$data/$file" > out || fail "$format $file"
    [ -s out ] || fail "$format of $file is empty"
  done
done
ok "every format, every golden stream"

# perf script: its grammar and its number of samples.
awk '
  function bad(why) { print FILENAME ":" NR ": " why ": " $0; exit 1 }
  BEGIN { state = "between" }
  /^#/ { if (state != "between") bad("comment inside"); next }
  /^$/ { state = "between"; next }
  state == "between" {
    if ($0 !~ /^[^ ]+ [0-9]+\/[0-9]+ [0-9]+\.[0-9][0-9][0-9][0-9][0-9][0-9]: +[0-9]+ [a-z_-]+:$/)
      bad("head"); state = "stack"; n++; period += $4; next }
  state == "stack" {
    if ($0 !~ /^\t *[0-9a-f]+ .+ \([^()]*.*\)$/) bad("frame"); frames++; next }
  END { if (state == "stack") exit 1; print n, period, (frames > n) }' \
  x.perf-script > perf.txt || fail "perf-script: $(cat perf.txt)"
same "perf script: a block a sample, the periods add up" "$samples $cpu 1" \
  "$(cat perf.txt)"

# JSON formats and the totals in them.
cat > judge.py << 'PYTHON'
import json, sys
what, name = sys.argv[1:3]
d = json.load(open(name, encoding='utf-8'))
if what == 'speedscope':
    assert d['$schema'].endswith('file-format-schema.json')
    frames, total = d['shared']['frames'], 0
    assert all(f['name'] for f in frames)
    for p in d['profiles']:
        assert p['type'] == 'sampled' and len(p['samples']) == len(p['weights'])
        assert all(0 <= i < len(frames) for s in p['samples'] for i in s)
        assert sum(p['weights']) == p['endValue'] and p['startValue'] == 0
        total += p['endValue']
    print(total)
else:
    own = {}
    events = d['traceEvents']
    for e in events:
        assert e['ph'] in 'XMCi' and isinstance(e['name'], str)
        if e['ph'] == 'X': assert e['dur'] >= 0 and e['ts'] >= 0
    # Slices of a thread nest; what they have for themselves is the time.
    total = 0
    for tid in {e['tid'] for e in events if e['ph'] == 'X'}:
        ns = lambda v: round(v * 1000)
        s = sorted((ns(e['ts']), -ns(e['dur'])) for e in events
                   if e['ph'] == 'X' and e['tid'] == tid and e.get('cat') != 'GC')
        stack = []
        for ts, minus in s:
            while stack and stack[-1] <= ts: stack.pop()
            assert not stack or ts - minus <= stack[-1], 'slices cross'
            if not stack: total += -minus
            stack.append(ts - minus)
    print(total)
PYTHON
if command -v python3 > /dev/null; then
  same "speedscope: samples" "$samples" "$(python3 judge.py speedscope x.speedscope)"
  "$ljprof" export --to speedscope --value cpu -o s.json "$golden"
  same "speedscope: nanoseconds" "$cpu" "$(python3 judge.py speedscope s.json)"
  "$ljprof" export --to speedscope --value alloc_space -o a.json "$golden"
  same "speedscope: bytes" "$(collapsed "$golden" alloc_space)" \
    "$(python3 judge.py speedscope a.json)"
  same "chrome-trace: nanoseconds" "$cpu" "$(python3 judge.py chrome x.chrome-trace)"
else
  echo "skipped: there is no python3 to read JSON"
fi

# callgrind: checked by callgrind_annotate.
if command -v callgrind_annotate > /dev/null; then
  callgrind_annotate --auto=no x.callgrind > cg.txt 2> err.txt ||
    fail "callgrind_annotate: $(cat err.txt)"
  same "callgrind_annotate has nothing to complain about" "" "$(cat err.txt)"
  grouped() { echo "$1" | sed ':a; s/\B[0-9]\{3\}\>/,&/; ta'; }
  grep 'PROGRAM TOTALS' cg.txt | tr -s ' ' > totals.txt
  grep -q "^ *$(grouped "$samples") (100.0%) $(grouped "$cpu") (100.0%)" totals.txt ||
    fail "callgrind totals: $(cat totals.txt)"
  ok "callgrind_annotate agrees: $(cat totals.txt)"
  # The sum of own costs is the total that the file claims.
  same "callgrind: own costs add up" "$samples" "$(awk '
    /^calls=/ { skip = 1; next }
    /^[0-9]+ [0-9]/ { if (!skip) s += $2; skip = 0 }
    END { print s }' x.callgrind)"
else
  echo "skipped: there is no callgrind_annotate (Debian: valgrind)"
fi

# pprof: checked by go tool pprof.
gzip -t < x.pprof || fail "pprof's file is no gzip"
ok "pprof's file is compressed"
if command -v go > /dev/null; then
  raw() { # VALUE COLUMN
    go tool pprof -raw "$1" 2> err.txt | awk -v c="$2" '
      /^Samples:/ { on = 1; getline; print > "types.txt"; next }
      /^Locations/ { on = 0 }
      on && /^ *[0-9]+( +[0-9]+)*: / { sub(/:/, " "); s += $c }
      END { printf "%d\n", s }'
  }
  same "pprof -raw: samples" "$samples" "$(raw x.pprof 1)"
  same "pprof -raw: nanoseconds" "$cpu" "$(raw x.pprof 2)"
  same "pprof -raw: its types" \
    "samples/count cpu/nanoseconds alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes" \
    "$(sed 's/ *$//; s/\[dflt\]//g' types.txt)"
  n=3
  for value in alloc_objects alloc_space inuse_objects inuse_space; do
    same "pprof -raw: $value" "$(collapsed "$golden" $value)" "$(raw x.pprof $n)"
    n=$((n + 1))
  done
  go tool pprof -top -sample_index=samples x.pprof > top.txt 2> err.txt ||
    fail "pprof -top: $(cat err.txt)"
  grep -q "Total samples = $samples\b" top.txt || fail "$(cat top.txt)"
  grep -q ' events lost before the file' top.txt || fail "no word of losses"
  ok "pprof -top: the same total, and what was lost"
  go tool pprof -traces -sample_index=samples x.pprof > traces.txt 2> err.txt ||
    fail "pprof -traces: $(cat err.txt)"
  same "pprof -traces: the same total" "$samples" "$(awk '
    /^-+\+-+$/ { first = 1; next }
    first && /^ +[0-9]+ +[^ ]/ { s += $1; first = 0 }
    END { print s }' traces.txt)"
  go tool pprof -raw x.pprof 2> err.txt | grep -q '/usr/bin/example deadbeef' ||
    fail "no mapping with its build-id"
  ok "pprof has the modules and their build-ids"
else
  echo "skipped: there is no go (./run test --pprof installs it)"
fi

# A real profile: inlined C functions are lines of one location.
if "$BUILD_DIR/bin/luajit" -e '
    assert(misc.sysprof.start{path = "lj.ljp", interval = 1})
    local t0, t = os.clock(), {}
    while os.clock() - t0 < 0.5 do
      for i = 1, 100 do t[i] = (i * 7919) % 101 end
      table.sort(t, function(a, b) return a < b end)
      local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
      fib(18)
    end' 2> err.txt; then
  total=$(sum lj.ljp sample '')
  [ "$total" -gt 100 ] || fail "only $total samples"
  same "a profile: samples" "$total" "$(collapsed lj.ljp samples)"
  "$ljprof" export --to callgrind -o lj.cg lj.ljp || fail "callgrind"
  same "callgrind: no call costs more than all of them, recursion or not" 0 \
    "$(awk -v t="$total" '/^calls=/ { call = 1; next }
      call { if ($2 > t) bad++; call = 0 } END { print bad + 0 }' lj.cg)"
  grep -q '^cfn=.*fib' lj.cg || fail "no recursion in it"
  "$ljprof" export --to pprof -o lj.pprof lj.ljp || fail "pprof"
  if command -v go > /dev/null; then
    same "a profile: pprof" "$total" "$(raw lj.pprof 1)"
    # A location's further lines begin without an address.
    go tool pprof -raw lj.pprof 2> err.txt | awk '
      /^Locations/ { on = 1; next } /^Mappings/ { on = 0 }
      on && /^ +[0-9]+: 0x[0-9a-f]+ M=/ { place = 1; next }
      on && place && /^ +[a-z]/ && !/: 0x/ { inlined++ }
      END { exit !inlined }' || fail "no inlined lines in any location"
    ok "inlined C functions are lines of one location"
  fi
  # The same again from a file that brought its symbols, without any to look at.
  "$ljprof" embed lj.ljp -o e.ljp 2> err.txt || fail "embed: $(cat err.txt)"
  "$ljprof" export --to collapsed -o here.txt lj.ljp || fail "collapsed"
  mkdir -p empty
  if unshare -rm true 2> err.txt; then
    # shellcheck disable=SC2016 # sh expands them
    unshare -rm sh -c 'mount --bind empty "$1" &&
      exec "$2" export --to collapsed -o there.txt e.ljp' \
      sh "$BUILD_DIR/lib" "$ljprof" 2> err.txt || fail "there: $(cat err.txt)"
    diff here.txt there.txt > diff.txt || fail "embedded: $(head -n 5 diff.txt)"
    ok "with its symbols embedded it reads the same without the library"
  else
    echo "skipped: no file system of its own to hide the library in"
  fi
else
  echo "skipped: this build has no profiler"
fi

# Wrong usage.
refuses "an output that is there" 1 "exists (use --force" \
  "$ljprof" export --to collapsed -o c.txt "$golden"
"$ljprof" export --to collapsed --force -o c.txt "$data/killed.ljp" ||
  fail "--force"
refuses "no format" 2 "no format given" "$ljprof" export -o o.txt "$golden"
refuses "a format that does not exist" 2 "unknown format 'svg': collapsed, pprof, " \
  "$ljprof" export --to svg -o o.txt "$golden"
refuses "a value that does not exist" 2 "unknown value 'bytes': samples, cpu, " \
  "$ljprof" export --to collapsed --value bytes -o o.txt "$golden"
refuses "a value that the file has not" 1 "no data for the value 'alloc_space'" \
  "$ljprof" export --to collapsed --value alloc_space -o o.txt "$data/killed.ljp"
refuses "no output" 2 "no output file given" \
  "$ljprof" export --to collapsed "$golden"
refuses "what is no stream" 1 "not an ljprof stream" \
  "$ljprof" export --to collapsed -o o.txt "$0"
for format in collapsed pprof speedscope callgrind perf-script chrome-trace; do
  refuses "$format on a full disk" 1 "cannot write: No space left" \
    "$ljprof" export --to $format -o /dev/full "$golden"
  "$ljprof" export --to $format -o - "$golden" 2> err.txt | head -c 1 > one
  same "$format into a closed pipe is quiet" "" \
    "$(grep -v '^ljprof export: note: ' err.txt || :)"
done
same "nothing is left behind" "" "$(find . -name '.*.??????' -o -name 'o.txt')"
