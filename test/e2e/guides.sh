#!/bin/sh
# The commands of the guides work as printed, and print such output
# (guides.py). A guide that needs a program that is not installed is not run.
# shellcheck disable=SC2016 # backquotes of Markdown
. "$(dirname "$0")/lib.sh"

unset LUA_INIT LUA_PATH LUA_CPATH
PATH=$BUILD_DIR/bin:$PATH
export LC_ALL=C
check() {
  code=0
  python3 "$SOURCE_DIR/test/e2e/guides.py" "$@" > out.txt 2>&1 || code=$?
}

# The check proves itself on planted guides.
plant() { # plant COMMAND OUTPUT...
  {
    echo '<!-- run -->'
    printf '```lua a/x.lua\nprint(("x"):rep(3))\n```\n'
    echo '```console'
    printf '%s\n' "$@"
    echo '```'
  } > planted.md
  check planted.md
}
# shellcheck disable=SC1003 # a backslash at the end of a line
plant '$ luajit a/x.lua' 'xxx' '$ echo app.lua:12 \' '  7' 'app.lua:12 5' '...'
same "what works passes" "0 planted.md: 2 commands" "$code $(cat out.txt)"
plant '$ luajit a/y.lua'
same "a command that fails is found" 1 "$code"
plant '$ luajit a/x.lua' 'xxxx'
same "other output is found" 1 "$code"
plant '$ echo app.lua:12 5' 'app.lua:13 5'
same "another place is found" 1 "$code"

# What a guide needs of the LuaJIT, as if it were a program: newer ones ask for the
# time zone in os.date(); nginx needs a function of OpenResty's.
mkdir has
library=$BUILD_DIR/lib/libluajit-5.1.so.2
! grep -qw tzset "$library" || ln -s /bin/true has/tzset-in-os.date
! grep -qw lua_setexdata "$library" || ln -s /bin/true has/luajit-of-openresty
PATH=$PATH:$SCRATCH/has

chmod 755 "$SCRATCH" # for servers that drop root
for guide in "$SOURCE_DIR"/doc/guide/*.md; do
  check "$guide"
  [ "$code" = 0 ] || fail "$(cat out.txt)"
  [ ! -s out.txt ] || ok "$(cat out.txt)"
done
[ "$passed" -gt 4 ] || fail "no guide was run"
