#!/bin/sh
# try.sh LJPROF LUAJIT whole|small: records a script with an unpacked ljprof, shows
# it, and joins a running program. small: a build without the analyzer.
set -eu
ljprof=$1 luajit=$2 what=$3
app=$(cd "$(dirname "$0")" && pwd)/app.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

die() {
  echo "try: error: $*" >&2
  exit 1
}

[ "$("$luajit" "$app" 0.1)" = 0 ] || die "the command luajit does not work"
[ "$("$luajit" -jv "$app" 0.1 2>&1 | grep -c 'TRACE')" -gt 0 ] ||
  die "luajit -jv finds no modules"
"$ljprof" record --memory -o app.ljp "$app" > out.txt 2>&1 || die "$(cat out.txt)"
"$ljprof" check app.ljp > check.txt || die "$(tail -n 2 check.txt)"
# A program that is found by a link is recorded with the library of the package.
"$ljprof" record -o link.ljp -- "$luajit" "$app" 0.3 > out.txt 2>&1 ||
  die "$(cat out.txt)"
"$luajit" "$app" 20 > out.txt &
program=$!
sleep 0.3
"$ljprof" record -p $program --duration 500ms -o joined.ljp 2> said.txt ||
  die "record -p: $(cat said.txt)"
kill $program
"$ljprof" check joined.ljp > check.txt || die "$(tail -n 2 check.txt)"
grep -qE '^[1-9][0-9]* samples|samples  *[1-9]' check.txt ||
  grep -qE '[1-9][0-9]* samples' said.txt || die "nothing: $(cat said.txt)"
[ "$what" = whole ] || exit 0
for f in app.ljp link.ljp joined.ljp; do
  "$ljprof" report "$f" > report.txt || die "report $f failed"
  grep -q 'encode .*app.lua:3' report.txt || die "$f: $(cat report.txt)"
done
"$ljprof" flame app.ljp -o app.html
grep -q encode app.html || die "the page has no function encode"
