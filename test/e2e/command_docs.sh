#!/bin/sh
# Man pages and shell completion: each command has a page with all its options,
# and man, bash and zsh accept them.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
docs=$BUILD_DIR/command-docs
[ -d "$docs" ] || {
  echo "this build makes no documents of the command"
  exit 0
}
"$ljprof" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' |
  grep -vx ljprof > commands.txt
[ "$(wc -l < commands.txt)" -ge 4 ] || fail "no commands: $(cat commands.txt)"
while read -r command; do
  page=$docs/man/ljprof-$command.1
  [ -f "$page" ] || fail "no page of $command"
  sed 's/\\-/-/g' "$page" > page.txt
  "$ljprof" "$command" --help | grep -oE '^  +--?[a-z][a-z-]*' |
    tr -d ' ' | sort -u > options.txt
  while read -r option; do
    grep -q -e "$option" page.txt || fail "$page lacks $option"
    for shell in bash/ljprof zsh/_ljprof; do
      grep -E "^ *$command\) .*[ ']$option([ ']|$)" "$docs/$shell" > hit.txt ||
        fail "completion ($shell) of $command lacks $option"
    done
  done < options.txt
  if command -v man > man.txt && command -v groff > groff.txt; then
    LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
      > formatted.txt 2> complaints.txt || fail "man cannot read $page"
    same "man on ljprof-$command" "" "$(cat complaints.txt)"
  fi
  ok "$command: a page, and completion of $(wc -l < options.txt) options"
done < commands.txt
if command -v bash > bash.txt; then
  cat > complete.bash << 'END'
source "$1"
COMP_WORDS=(ljprof report --to) COMP_CWORD=2
_ljprof
echo "${COMPREPLY[@]}"
COMP_WORDS=(ljprof che) COMP_CWORD=1
_ljprof
echo "${COMPREPLY[@]}"
END
  cat > values.bash << 'END'
source "$1"
shift
COMP_WORDS=(ljprof "$@") COMP_CWORD=$#
_ljprof
echo "${COMPREPLY[@]}"
END
  bash_gives() { # WANTED WORD...
    wanted=$1
    shift
    same "bash completes $*" "$wanted" \
      "$(bash values.bash "$docs/bash/ljprof" "$@")"
  }
  bash_gives "collapsed callgrind chrome-trace" export --to c
  bash_gives "pprof perf-script" export --to = p
  bash_gives "trace thread type" report --by = t
  bash_gives "wall" record --event w
  bash_gives "perf posix" record --timer p
  bash_gives "live leaks" diff --view l
  mkdir -p sources/here
  touch sources.txt
  bash_gives "sources" flame --source sour
  bash_gives "" report sour # Files, by bash itself.
  # The completion and the help have the same values.
  grep -oE "^ +(report|export|flame|diff|record):--[a-z]+\) words='[^']*'" \
    "$docs/bash/ljprof" > values.txt
  [ "$(wc -l < values.txt)" -eq 9 ] || fail "values: $(cat values.txt)"
  while IFS=": )" read -r command option _ list; do
    "$ljprof" "$command" --help > help.txt
    for value in $(echo "$list" | sed "s/^words=//" | tr -d "'"); do
      grep -qE "(^|[ ,])$value([ ,.:]|\$)" help.txt ||
        fail "ljprof $command --help does not know $option $value"
    done
  done < values.txt
  ok "values are those of the help"
  same "bash completes options and commands" "--top check" \
    "$(bash complete.bash "$docs/bash/ljprof" | tr '\n' ' ' | sed 's/ $//')"
fi
if command -v zsh > zsh.txt; then
  zsh -n "$docs/zsh/_ljprof" || fail "zsh cannot read its completion"
  ok "zsh reads its completion"
fi
