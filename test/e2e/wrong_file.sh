#!/bin/sh
# A Lua script in a profile's place, and a file that was cut before anything was
# recorded: each command says in one line what it is, and what to do.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data

# each TEXT FILE: all commands refuse the file with this text.
each() {
  text=$1 file=$2
  refuses "report" 1 "$text" "$ljprof" report "$file"
  refuses "annotate" 1 "$text" "$ljprof" annotate "$file" place.lua
  refuses "advise" 1 "$text" "$ljprof" advise "$file"
  refuses "export" 1 "$text" "$ljprof" export --to pprof -o - "$file"
  refuses "diff" 1 "$text" "$ljprof" diff "$data/every-record.ljp" "$file"
  refuses "expect" 3 "${3:-$text}" "$ljprof" expect "$file" 'cpu < 1 s'
}
echo 'print(1)' > "script.lua"
text="script.lua: a Lua script, not a profile: 'ljprof record script.lua' runs and"
each "$text" "script.lua"
for command in check dump embed "merge -o merged.ljp" "flame -o page.html"; do
  # shellcheck disable=SC2086 # words are wanted here
  refuses "$command" 1 "$text" "$ljprof" $command "script.lua"
done
: > empty.lua
refuses "an empty script" 1 "a Lua script, not" "$ljprof" report empty.lua
printf '#!/usr/bin/env luajit\nprint(1)\n' > tool
refuses "a script by its first line" 1 "'ljprof record tool' runs" \
  "$ljprof" report tool
printf '\033LJ\002' > compiled
refuses "bytecode" 1 "'ljprof record compiled' runs" "$ljprof" report compiled
printf '#!/bin/sh\n' > other
refuses "another script" 1 "not an ljprof stream" "$ljprof" report other
cp "$data/every-record.ljp" profile.lua
"$ljprof" report profile.lua > out.txt || fail "a profile with such a name"
ok "a profile with such a name"

head -c 400 "$data/every-record.ljp" > cut.ljp
each "it is damaged or was not closed ('ljprof check' tells more)" cut.ljp \
  "is damaged or was not closed"
refuses "another measure" 1 "'ljprof check' tells more" \
  "$ljprof" report --alloc cut.ljp
