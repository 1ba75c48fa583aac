#!/bin/sh
# Names in a file may hold anything. No output of any command lets a control
# character, or a character that disguises its neighbours, through to a terminal
# or a browser.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit

# U+009B (which begins a terminal's command), U+061C, U+200B, U+2028, U+202E,
# U+2066, U+FEFF, U+E0041, ESC, and a byte that is not UTF-8 (0x9b).
hidden=$(printf '\302\233\330\234\342\200\213\342\200\250\342\200\256')
hidden=$hidden$(printf '\342\201\246\357\273\277\363\240\201\201\033\233')
bad='\xC2\x9B|\xD8\x9C|\xE2\x80\x8B|\xE2\x80\xA8|\xE2\x80\xAE|\xE2\x81\xA6'
bad=$bad'|\xEF\xBB\xBF|\xF3\xA0\x81\x81|\x1B|(?<![\xC2-\xF4\x80-\xBF])\x9B'

# Text from the file: names of chunks and functions, a mark, a thread's name,
# the program's path and arguments.
mkdir "d$hidden"
cp "$luajit" "d$hidden/lua$hidden"
cat > "d$hidden/w$hidden.lua" << 'END'
local hidden = arg[1]
local ffi = require("ffi")
ffi.cdef "int prctl(int, const char *);"
ffi.C.prctl(15, "t" .. hidden:sub(1, 12))
local code = [[
  local name, stop = ..., os.clock() + 0.1
  local t = {}
  _G[name] = function(i) t[i % 1000] = {tostring(i)} end
  local i = 0
  repeat i = i + 1; _G[name](i) until os.clock() > stop
  jit.flush()
]]
for _, chunk in ipairs{"=" .. hidden, "@" .. hidden, hidden} do
  assert(load(code, chunk))("f" .. hidden)
end
misc.memprof.mark(hidden)
END
"$ljprof" record --memory --interval=0.2 -o x.ljp -- "d$hidden/lua$hidden" \
  "d$hidden/w$hidden.lua" "$hidden" > out.txt 2> err.txt ||
  fail "record: $(cat -v err.txt)"
cp x.ljp "x$hidden.ljp"

# clean WHAT COMMAND...: the command's output, and its messages, are clean.
clean() {
  what=$1
  shift
  "$@" > shown 2>&1 < /dev/null || :
  [ -s shown ] || fail "$what: no output"
  if LC_ALL=C grep -aqP "$bad" shown; then
    fail "$what: $(LC_ALL=C grep -aP "$bad" shown | head -n 3 | cut -c 1-300 |
      cat -v)"
  fi
  ok "$what"
}
clean "record's messages" cat err.txt
for view in dump check; do
  clean "$view" "$ljprof" "$view" x.ljp
  clean "$view --json" "$ljprof" "$view" --json x.ljp
done
for view in "" --json --tree "--tree --json" --jit "--jit --json" \
  "--by line" "--by thread" "--by vm" "--by stack" --live "--live --json"; do
  # shellcheck disable=SC2086 # Options are words.
  clean "report $view" "$ljprof" report $view x.ljp
done
clean "report --since" "$ljprof" report --live --since "$hidden" x.ljp
clean "annotate" "$ljprof" annotate x.ljp "w$hidden.lua"
clean "annotate --json" "$ljprof" annotate --json x.ljp "w$hidden.lua"
clean "diff" "$ljprof" diff x.ljp x.ljp
clean "diff --json" "$ljprof" diff --json x.ljp x.ljp
for budget in "total(f$hidden) <= 3 %" "total($hidden) <= 3 %" "cpu <= 3 $hidden" \
  "live <= none$hidden"; do
  clean "expect" "$ljprof" expect x.ljp "$budget" --junit junit.xml --force
  clean "expect --json" "$ljprof" expect x.ljp "$budget" --json
done
clean "junit.xml" cat junit.xml
for format in collapsed speedscope callgrind perf-script chrome-trace; do
  clean "export --to $format" "$ljprof" export --to "$format" -o - x.ljp
done
"$ljprof" export --to pprof -o - x.ljp | gzip -dc > pprof.bin
! LC_ALL=C grep -aqP '\xC2\x9B\xD8|\x1B\x9B' pprof.bin ||
  fail "export --to pprof: $(LC_ALL=C grep -aoP '\w*\xC2\x9B\xD8' pprof.bin)"
grep -aq 'd?*/lu' pprof.bin || fail "export --to pprof: no names"
ok "export --to pprof"
"$ljprof" flame -o page.html x.ljp 2> err.txt || fail "$(cat -v err.txt)"
"$ljprof" flame --svg -o page.svg x.ljp 2> err.txt || fail "$(cat -v err.txt)"
for page in page.html page.svg; do
  # Escapes of JSON are no help: the browser shows what they stand for.
  if LC_ALL=C grep -aqP "$bad"'|(?<!\\)\\u(009b|061c|200b|20[26]|feff|001b)' \
    "$page"; then
    fail "$page: $(LC_ALL=C grep -aoP "($bad"')|.{20}\\u[02f].{20}' "$page" |
      head -n 3 | cat -v)"
  fi
  ok "$page"
done
clean "a file's name in errors" "$ljprof" check "none$hidden"
clean "a file's name in record" "$ljprof" record -o "x$hidden.ljp" true
