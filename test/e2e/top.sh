#!/bin/sh
# ljprof top in a terminal of tmux: what it shows, each key, sizes, growing and
# damaged files, and the terminal afterwards, however the view ends.
# shellcheck disable=SC2016 # $ of the shell in the terminal
. "$(dirname "$0")/lib.sh"

. "$(dirname "$0")/top_lib.sh"
data=$SOURCE_DIR/test/data
pid=
at_end='$mux kill-server 2> /dev/null; [ -z "$pid" ] || kill -9 $pid 2> /dev/null; wait'

refuses "no terminal" 2 "needs a terminal" "$ljprof" top "$data/killed.ljp"
refuses "a span that is too long" 2 "'61' is not a number from 0 to 60" \
  "$ljprof" top --seconds 61 "$data/killed.ljp"

cat > work.lua << 'END'
local kept = {}
local evil = load("local n = ... local x = 0 for i = 1, n do x = x + i % 7 end return x",
  "=evil\27[31m\27]0;title\7name")
local function spin(n) local h = 0 for i = 1, n do h = (h * 31 + i) % 1000003 end return h end
local function fill(n) for i = 1, n do kept[i % 997] = {tostring(i)} end end
local i, stop = 0
repeat
  i = i + 1
  spin(20000) evil(5000) fill(200)
  if i % 50 == 0 then collectgarbage() end
  stop = arg[1] and i >= tonumber(arg[1]) or not arg[1] and io.open("stop")
until stop
END
"$ljprof" record --memory -o ended.ljp work.lua 6000 2> err || fail "$(cat err)"

terminal

opens() { # WHAT FILE [OPTIONS]
  what=$1
  shift
  type_line "'$ljprof' top $*"
  sees "$what" '\[functions\]'
}

# -- What it shows. ------------------------------------------------------------
opens "functions" ended.ljp
sees "its state" '^ended, all .*  ended\.ljp  pid [0-9]'
sees "figures" '^CPU [0-9.]*%  GC [0-9.]*%  alloc [0-9.]* [KMG]*i*B/s'
sees "a heading" '^ *own *own% *total *total%  function (sorted by own)'
"$ljprof" report --json ended.ljp > report.json
for name in spin fill evil tostring; do
  sees "the function $name" " $name"
done
# The first row is that of the report, with the same amounts.
"$ljprof" report ended.ljp > report.txt
first=$(awk '/^ +self/ { getline; print $NF; exit }' report.txt)
wanted=$(awk '/^ +self/ { getline; print $1, $2, $3; exit }' report.txt)
screen > screen.txt
same "the first row is that of the report ($first)" "$wanted" \
  "$(awk '/sorted by own/ { getline; print $1, $2, $3; exit }' screen.txt)"
shows 'evil\\x1b\[31m\\x1b\]0;title\\x07name' ||
  fail "the name with control characters: $(cat screen.txt)"
ok "control characters are shown, not obeyed"
same "the window's title is not the file's" 0 \
  "$($mux display-message -p '#{pane_title}' | grep -c title || :)"
same "all 24 rows" 24 "$($mux display-message -p '#{pane_height}')"
tail -n 1 screen.txt | grep -q '^\[functions\] Tab view' ||
  fail "no keys in the last row: $(cat screen.txt)"

# -- Keys. ---------------------------------------------------------------------
keys 2
sees "2: lines" '\[lines\]'
sees "a line" ' work\.lua:[0-9]'
keys 3
sees "3: stacks" 'spin work\.lua:4 < main chunk work\.lua:9'
keys 4
sees "4: sites" '^ *allocated *objects *share  line'
sees "a site" '[KM]iB/s .* work\.lua:5'
keys 5
sees "5: heap" '^    phases .*[ams]'
sees "the curve's scale" '^ *[0-9.]* [KM]iB .*[#█▁▂▃▄▅▆▇]'
sees "the letters of phases are explained, to the end" \
  '^m mark, a atomic, .*, x closed; [0-9][0-9]* cycles$'
sees "the VM's heap" 'VM 1$'
keys 6
sees "6: traces" '^traces compiled [0-9.]*/s  aborted [0-9.]*/s'
sees "states" '^ *[0-9.]* [mu]*s *[0-9.]*%  compiled'
keys 7
sees "7: threads" '%  thread 1 ('
keys 8
sees "8: VMs" '%  VM 1$'
keys 9
sees "9: labels" '^no labels yet'
keys Tab
sees "Tab goes round" '\[functions\]'
keys BTab
sees "Shift-Tab goes back" '\[labels\]'
keys 1 s
sees "s: sorted by total" '(sorted by total)'
until_ok "the main chunk has most in total" sh -c "$mux capture-pane -p |
  grep -A 1 'sorted by total' | grep -q 'main chunk work.lua'"
keys s
sees "s: sorted by name" '(sorted by name)'
keys s
sees "s: sorted by own" '(sorted by own)'
keys /
sees "/: a prompt" '^filter (regex): _'
$mux send-keys -l 'spi[n]'
keys Enter
until_ok "a filter hides other rows" hides ' fill'
sees "what it hides is said" 'more rows do not match the filter'
sees "what it matches is there" ' spin work.lua'
keys /
$mux send-keys -l '['
keys Enter
sees "a filter that is no regex" 'the filter is not a regular expression'
keys Escape
sees "Escape: all rows" ' fill'
keys w
sees "w: seconds" '^ended, last '
keys w w w w
sees "w: everything again" '^ended, all '
keys t
sees "t: one thread" 'all .*, thread 1'
keys t
until_ok "t: all threads" hides ', thread '
keys v
sees "v: one VM" 'all [^,]*, VM 1  ended\.ljp'
keys v
until_ok "v: all VMs" hides ', VM 1'
keys n
sees "n: machine code" 'lj_\|lua_\|_start'
keys n
until_ok "n: without machine code" hides 'lj_\|_start'
keys f
sees "f: frozen" '^frozen.* ended\.ljp'
keys Space
sees "Space: not frozen" '^ended'
keys '?'
sees "?: help" '^S  *save the view to a file'
keys x
sees "a key closes the help" '\[functions\]'
$mux resize-window -x 40 -y 8
until_ok "not resized" sh -c "$mux capture-pane -p | sed -n 8p | grep -q '^.func'"
keys '?'
sees "?: help without enough room" '^arrows scroll, another key closes'
shows '^q  *quit' && fail "the help has room"
keys End
sees "its end" '^q  *quit'
keys Up Up Up Up Up Up Up
sees "the help scrolls" '^/  *filter rows'
keys x
sees "a key closes it" '\[functions\]'
$mux resize-window -x 50 -y 24
until_ok "not all figures are whole" sh -c "$mux capture-pane -p | sed -n 2p |
  grep -q '^CPU .*\\(alloc [0-9.]* [KMG]*i*B/s\\|heap [0-9.]* [KMG]*i*B\\)\$'"
ok "figures without room are left out, not cut"
$mux resize-window -x 80 -y 24
keys S
sees "S: asks for a name" '^save as: top\.txt_'
keys Enter
sees "S: saved" "^saved as 'top\.txt'"
grep -q ' spin work.lua' top.txt || fail "top.txt has no view: $(cat top.txt)"
keys S Enter
sees "S: does not replace a file" "cannot write 'top\.txt': File exists"
keys p
sees "p: asks for a name" '^page (\.html): top\.html_'
keys BSpace BSpace BSpace BSpace BSpace
$mux send-keys -l -- '-a.html'
keys Enter
sees "p: a page" "^wrote the page 'top-a\.html'"
grep -q 'spin' top-a.html || fail "the page is empty"
keys w p Enter
sees "p: a page of the last seconds" "^wrote the page 'top\.html'"
grep -q 'Only what happened in the seconds' top.html ||
  fail "the page does not say which seconds it has"
keys r
sees "r: not of a file" '^r records a running program (-p PID); this is a file already'
keys p C-u Escape Down Up Right Left NPage PPage End Home C-l
sees "moves" '\[functions\]'

# -- Labels. ---------------------------------------------------------------------
keys q
until_ok "q" hides '\[functions\]'
"$BUILD_DIR/bin/labelled_stream" labels.ljp || fail "labelled_stream"
opens "labels" --no-symbols --seconds 0 labels.ljp
keys l
sees "l: by a label" '^ *time *share  label:route'
sees "its values" '^ *48\.00 ms *64\.86%  /a'
sees "work without it" '%  (none)'
keys l
sees "l: by the next label" '^ *31\.00 ms *41\.89%  x'
keys l
sees "l: by the first again" 'label:route'
keys q
until_ok "q" hides '\[labels\]'
opens "one label" --no-symbols --seconds 0 --label route=/b labels.ljp
sees "the title has it" '^ended, all .*, route=/b  labels\.ljp'
keys l
sees "only that" '100\.00%  /b'
shows '/a' && fail "rows of another label"
keys p C-u
$mux send-keys -l labels.html
keys Enter
sees "p: a page of the label" "^wrote the page 'labels\.html'"
grep -F -q '"route":"/b"' labels.html || fail "the page has no /b"
! grep -F -q '"route":"/a"' labels.html || fail "the page has another label"
refuses "no label" 2 "--label: 'route' is not KEY=VALUE" \
  "$ljprof" top --label route labels.ljp

# -- More rows than there is room for. -------------------------------------------
keys q
until_ok "q" hides '\[labels\]'
awk 'BEGIN { print "local t = {}"; for (i = 0; i < 3000; i++) print "t[1] = {1}" }' > rows.lua
"$ljprof" record --memory --every -o rows.ljp rows.lua 2> err || fail "$(cat err)"
opens "many rows" --no-symbols rows.ljp
keys 4 End
sees "the rows without room are counted" \
  '[0-9][0-9]* more rows have no room here: .* saves all of them'
more=$(sed -n 's/ more rows have no room.*//p' screen.txt)
keys S C-u
$mux send-keys -l rows.txt
keys Enter
sees "they are saved" "^saved as 'rows\.txt'"
same "all rows are in the file" yes \
  "$([ "$(grep -c ' rows\.lua:' rows.txt)" -ge 3000 ] && echo yes)"
[ "$more" -lt 3000 ] || fail "$more rows are missing on the screen"
keys q
until_ok "q" hides '\[sites\]'
type_line clear
opens "as before" ended.ljp

# -- Sizes. ----------------------------------------------------------------------
for size in 120x40 40x10 20x5 9x3 80x24; do
  $mux resize-window -x "${size%x*}" -y "${size#*x}"
  until_ok "$size: the last row is not the last" sh -c \
    "$mux capture-pane -p | sed -n '${size#*x}p' | grep -q '^.func'"
  ok "resized to $size"
done
keys 5
for size in 30x8 132x50 80x24; do
  $mux resize-window -x "${size%x*}" -y "${size#*x}"
  until_ok "$size: the heap does not fit" sh -c \
    "$mux capture-pane -p | sed -n '${size#*x}p' | grep -q '^.heap.'"
done
ok "the heap's curve follows the size"

# -- How it ends. ------------------------------------------------------------------
keys q
is_right "q"
opens "again" "$SCRATCH/ended.ljp"
keys C-c
is_right "Ctrl-C"
opens "again" "$SCRATCH/ended.ljp"
keys C-z
is_right "Ctrl-Z"
type_line fg
sees "fg goes on" '\[functions\]'
keys q
is_right "after fg"

for signal in TERM HUP KILL; do
  opens "again" "$SCRATCH/ended.ljp"
  kill -$signal "$(guard)"
  is_right "the guard gets $signal"
done
for signal in TERM KILL ABRT; do
  opens "again" "$SCRATCH/ended.ljp"
  kill -$signal "$(child ljprof-screen)"
  is_right "the screen gets $signal"
done
opens "again" "$SCRATCH/ended.ljp"
one=$(guard) two=$(child ljprof-screen)
kill -STOP "$one" # else the screen ends when the guard does
kill -9 "$two" "$one"
is_right "guard and screen are killed at once"
opens "again" "$SCRATCH/ended.ljp"
one=$(guard)
env kill -9 -- "-$one"
is_right "the whole group is killed"
opens "again" "$SCRATCH/ended.ljp"
one=$(child ljprof-screen)
kill -9 "$(child ljprof-worker "$one")"
sees "the worker is killed" 'the process that reads the file has died'
keys q
is_right "after the worker was killed"
until_ok "processes are left behind" sh -c "! pgrep -f '$SCRATCH/[e]nded.ljp' > left.txt"
ok "no process is left"

# -- Files that grow, end, or are damaged. ------------------------------------------
record_live() { # until there is a file stop
  "$ljprof" record --memory -o live.ljp work.lua > /dev/null 2>&1 &
  tries=0
  until [ -s live.ljp ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "nothing was recorded"
    sleep 0.1
  done
}
record_live
pid=$("$ljprof" dump live.ljp | sed -n 's/^ *process pid=\([0-9]*\) .*/\1/p')
[ -n "$pid" ] || fail "no process: $("$ljprof" dump live.ljp | head -n 5)"
opens "a file that grows" live.ljp
sees "it says so" '^still recording, last '
keys w w w
sees "w: from the last 10 seconds over 30 and 60 to everything" \
  '^still recording, all '
keys w
sees "w: from everything to the last 5" '^still recording, last '
keys q
until_ok "q" hides '\[functions\]'
opens "the same file" live.ljp
sees "it says so" '^still recording, last '
sees "what the program does" ' spin work.lua'
keys 4
sees "sites" ' work.lua:5'
keys f
sees "f: frozen" '^frozen'
keys f
sees "f: goes on" '^still recording'
kill -9 "$pid"
sees "its writer was killed" '^cut short, all '
keys q
is_right "after a file that was cut short"
rm live.ljp # It does not add up, on purpose.
wait
rm -f stop
record_live
pid=
opens "standard input" "- < live.ljp"
sees "it says so" '^still recording, last '
touch stop
wait
sees "the program has ended" '^ended, all '
keys q
is_right "after standard input"
mkfifo fifo
cat ended.ljp > fifo &
opens "a FIFO" fifo
sees "it is read to its end" '^ended, all .* fifo'
keys q
is_right "after a FIFO"
wait
cp "$data"/rotated.ljp* .
opens "a file with more segments" rotated.ljp
sees "the segments" '^ended, all '
until_ok "a segment is missing" hides '^!'
keys q
is_right "after segments"
rm rotated.ljp.s2
opens "a file without its last segment" rotated.ljp
sees "a missing segment" '^continued in the next file, all '
keys q
is_right "after a missing segment"
rm rotated.ljp*
head -c 300000 /dev/urandom > noise
{
  head -c 3000 ended.ljp
  head -c 300 noise
  tail -c +3001 ended.ljp
} > damaged.ljp
opens "a damaged file" damaged.ljp
sees "the damage is said" '^!the file is damaged: [0-9]* gap'
keys q
is_right "after a damaged file"
rm damaged.ljp
refuses "what is no stream" any "needs a terminal" "$ljprof" top noise
type_line "'$ljprof' top noise; echo code=\$?"
sees "what is no stream" '^code=1'
shows 'not an ljprof stream' || fail "not said: $(cat screen.txt)"
type_line "TERM=nonsense '$ljprof' top ended.ljp; echo code=\$?"
sees "an unknown terminal" '^code=2'
