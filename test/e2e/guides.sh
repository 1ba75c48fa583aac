#!/bin/sh
# guides.sh: each page says of all its commands that they are run, or why not, and
# the check (guides.py) proves itself on planted pages. guides.sh PAGE: the commands
# of a page work as printed, and print such output. A page that needs a program that
# is not installed is skipped.
# shellcheck disable=SC2016 # backquotes of Markdown
. "$(dirname "$0")/lib.sh"

unset LUA_INIT LUA_PATH LUA_CPATH LJPROF_RECORD LJPROF_LISTEN
PATH=$BUILD_DIR/bin:$PATH
export LC_ALL=C
check() {
  code=0
  python3 "$SOURCE_DIR/test/e2e/guides.py" "$@" > out.txt 2>&1 || code=$?
}

# run_page PAGE: what a page may need besides programs looks like one in PATH: newer
# LuaJITs ask for the time zone in os.date(), nginx needs a function of OpenResty's,
# and a page joins a process that does not descend from ljprof.
run_page() {
  mkdir has
  library=$BUILD_DIR/lib/libluajit-5.1.so.2
  ! grep -qw tzset "$library" || ln -s /bin/true has/tzset-in-os.date
  ! grep -qw lua_setexdata "$library" || ln -s /bin/true has/luajit-of-openresty
  luajit -e 'while true do end' &
  ! ljprof status -p $! > out.txt 2>&1 || ln -s /bin/true has/permission-to-join
  kill $!
  PATH=$PATH:$SCRATCH/has
  chmod 755 "$SCRATCH" # for servers that drop root
  check "$SOURCE_DIR/$1"
  case $code in
  0) ok "$(cat out.txt)" ;;
  77)
    echo "skipped: $(cat out.txt)"
    exit 77
    ;;
  *) fail "$(cat out.txt)" ;;
  esac
}
if [ $# -gt 0 ]; then
  run_page "$1"
  exit 0
fi

plant() { # plant KIND LINE...: a page with a block.
  {
    printf '```lua a/x.lua\nprint(("x"):rep(3))\n```\n'
    [ -z "${mark:-}" ] || echo "$mark"
    echo "\`\`\`$1"
    shift
    printf '%s\n' "$@"
    echo '```'
  } > planted.md
  check planted.md
}
bad() { # bad WHAT TEXT: the planted page is at fault, and the check says so.
  same "$1" 1 "$code"
  grep -qF -e "$2" out.txt || fail "$1: no '$2' in: $(cat out.txt)"
}
# shellcheck disable=SC1003 # a backslash at the end of a line
plant console '$ luajit a/x.lua' 'xxx' '$ echo app.lua:12 \' '  7' 'app.lua:12 5' '...'
same "what works passes" "0 planted.md: 2 commands" "$code $(cat out.txt)"
plant console '$ luajit a/y.lua'
bad "a command that fails is found" "'luajit a/y.lua' did not end with 0"
plant console '$ luajit a/x.lua' 'xxxx'
bad "other output is found" "does not print
  xxxx"
plant console '$ echo app.lua:12 5' 'app.lua:13 5'
bad "another place is found" "app.lua:13 5"
plant console '$ echo 12.25 ms 4 % 7 search app.lua:12' \
  '11.2 ms 3.1% 9 search app.lua:12'
same "other figures pass" 0 "$code"
plant console '$ echo 12.25 ms 4 % 7 search app.lua:12' \
  '11.2 ms 3.1% 9 nothing of the kind'
bad "wrong words beside figures are found" "nothing of the kind"
plant console '$ printf "%s\n" "1 a" "2 b" "3 c" "4 d"' '9 a' '8 b' '7 c' '6 e'
bad "one wrong row of four is found" "6 e"
plant console '$ printf "%s\n" "1 a" "2 b" "3 c" "4 d" "5 e"' '9 a' '8 b' '7 c' '6 d' \
  '5 f x.lua:3'
same "one missing row of five passes if it is of a Lua function" 0 "$code"
plant console '$ printf "%s\n" "1 a" "2 b" "3 c" "4 d" "5 e"' '9 a' '8 b' '7 c' '6 d' '5 f'
bad "any other row must come again" "5 f"
plant console '$ echo 12' '12 and 5'
bad "words that are not there are found" "12 and 5"
plant sh '# a remark' 'luajit a/x.lua' 'luajit a/y.lua'
bad "a block without output is run, too" "'luajit a/y.lua'"
mark='<!-- exits with: 3 -->'
plant console '$ (exit 3) # first' '$ (exit 3)'
bad "only the last command may fail" "'(exit 3) # first' did not"
plant console '$ luajit a/x.lua' '$ (exit 3)'
same "a command may end with the code that is announced" 0 "$code"
plant console '$ true'
bad "a command must end with that code" "'true' did not end with 3"
plant console '$ exit 3'
bad "the shell of a page goes on to its end" "ends the shell"
mark='<!-- not run: needs the moon -->'
plant sh 'to-the-moon'
same "what is not run says why" "0 planted.md: 0 commands, 1 blocks not run (needs the moon)" \
  "$code $(cat out.txt)"
mark='<!-- not run -->'
plant sh 'to-the-moon'
bad "a reason is wanted" "without a reason: 'to-the-moon'"
printf '<!-- not run: x -->\nA sentence.\n```sh\nto-the-moon\n```\n' > planted.md
check planted.md
bad "a mark stands directly above its block" "no block is below 'not run'"
mark=''
plant '' 'ljprof list'
bad "a block says what it is" "does not say what it is: 'ljprof list'"
plant text '  LC_ALL=C ljprof list'
bad "commands stand in blocks that are run" "LC_ALL=C ljprof"
printf 'So:\n\n    ljprof list\n\n' > planted.md
check planted.md
bad "indented commands are found" "not in a block: 'ljprof list'"
printf '<!-- needs: /no/such -->\n```sh\nfalse\n```\n' > planted.md
check planted.md
same "a page whose programs are missing is skipped" \
  "77 planted.md: not run: /no/such not installed" "$code $(cat out.txt)"

check --check "$SOURCE_DIR/README.md" "$SOURCE_DIR"/doc/guide/*.md
[ "$code" = 0 ] || fail "$(grep -A 9 FAILED out.txt)"
cat out.txt
ok "$(wc -l < out.txt) pages say of all commands that they are run, or why not"
