#!/bin/sh
# by_man.sh: runs in a bare system with the package. Each command here stands in a
# man page, as it is printed for a terminal; capitals are filled in.
set -eu

die() {
  echo "by_man: error: $*" >&2
  exit 1
}

page() { # NAME: what man shows
  MANWIDTH=100 LC_ALL=C.UTF-8 man "$1" 2> complaints.txt | cat
  [ ! -s complaints.txt ] || die "man $1: $(cat complaints.txt)"
}
# by PAGE LINE COMMAND...: the page prints the line; runs the command.
by() {
  page "$1" > page.txt
  grep -qF -- "$2" page.txt || die "man $1 does not have: $2"
  shift 2
  "$@" > out.txt 2> said.txt || die "$*: $(cat said.txt)"
}
for f in /usr/share/man/man1/*ljprof*.1.gz; do
  name=${f##*/}
  page "${name%.1.gz}" > page.txt
  [ "$(wc -l < page.txt)" -gt 10 ] || die "$name: $(cat page.txt)"
done

[ -s /usr/share/doc/ljprof/doc/guide/advice.md ] || die "the package has no guides"
by ljprof "ljprof record app.lua" ljprof record app.lua
file=$(echo app-*.ljp)
[ -s "$file" ] || die "no file: $(cat said.txt)"
by ljprof "ljprof report FILE" ljprof report "$file"
grep -q 'encode .*app.lua:3' out.txt || die "$(cat out.txt)"
by ljprof-record "-o, --output FILE" ljprof record --memory --output m.ljp app.lua
by ljprof-report "--alloc" ljprof report --alloc m.ljp
grep -q 'app.lua' out.txt || die "$(cat out.txt)"
by ljprof-flame "ljprof flame FILE -o PAGE.html" ljprof flame m.ljp -o page.html
grep -q encode page.html || die "no function encode in the page"
by ljprof-check "ljprof check [--json] FILE" ljprof check m.ljp
by luajit-ljprof "luajit-ljprof [OPTION]... [SCRIPT [ARGUMENT]...]" \
  luajit-ljprof app.lua 0.1
by luajit-ljprof 'misc.profile.start{path = "app.ljp"}' luajit-ljprof -e \
  'misc.profile.start{path = "app.ljp"} dofile("app.lua") misc.profile.stop()'
[ -s app.ljp ] || die "a script does not record itself"

# Running programs can be joined; the interpreter is found by its name, too.
luajit-ljprof app.lua 20 > out.txt &
program=$!
by ljprof-record "-p, --pid PID" sh -c "sleep 0.5; \
  exec ljprof record --pid $program --duration 500ms -o joined.ljp"
by ljprof-list "ljprof list" ljprof list
grep -q "$program .*app.lua" out.txt || die "ljprof list: $(cat out.txt)"
kill $program
ljprof report joined.ljp > out.txt || die "nothing was recorded by -p"
grep -q 'encode .*app.lua:3' out.txt || die "$(cat out.txt)"
by ljprof-record "[--] PROGRAM [ARGUMENT]..." \
  ljprof record -- luajit-ljprof app.lua 0.3

# Nothing is put in the place of anything.
for f in $(dpkg -L ljprof); do
  [ -d "$f" ] || [ "$(dpkg -S "$f")" = "ljprof: $f" ] || die "$f is of others, too"
done
! ldconfig -p | grep luajit || die "the loader finds the library by itself"
[ -z "$(dpkg-query -W -f '${Provides}' ljprof)" ] || die "it provides something"
! find /usr/bin -name luajit | grep . || die "there is a command luajit"
[ ! -e host ] || [ "$(./host)" = "42	function" ] ||
  die "a program built by pkg-config does not run"
rm -f ./*.ljp page.html
