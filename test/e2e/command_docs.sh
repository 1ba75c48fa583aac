#!/bin/sh
# Man pages, shell completion and the reference name every command and every
# option, and nothing else: the options in the tables of the code are those of the
# help, of the pages and of the completions. man, mandoc and the shells accept
# what was made.
# shellcheck disable=SC2016 # awk's fields, and backquotes of Markdown
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
docs=$BUILD_DIR/command-docs
reference=$SOURCE_DIR/doc/reference/commands.md
[ -d "$docs" ] || {
  echo "this build makes no documents of the command"
  exit 0
}
"$ljprof" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' |
  grep -vx ljprof > commands.txt
[ "$(wc -l < commands.txt)" -ge 4 ] || fail "no commands: $(cat commands.txt)"
while read -r command; do
  "$ljprof" "$command" --help > help.txt 2> absent.txt ||
    grep -q 'built without the analyzer' absent.txt || fail "$(cat absent.txt)"
  [ -s help.txt ] && echo "$command"
done < commands.txt > present.txt
mv present.txt commands.txt

# -- Options
in_lines() { # options, one in a line, sorted
  tr ' ' '\n' | grep -E '^--?[a-z]' | sort -u
}
# described FILE: the options of a help, which stand at the beginning of lines.
described() {
  grep '^  -' "$1" | sed 's/^  //; s/   *.*//' | tr -d ',' | in_lines
}
printf '  -o, --out F  to F --no\n  --a X, --b\n      --no --c\n  -v --w\n' > y
same "options of a help are found" "--a --b --out --w -o -v" \
  "$(described y | tr '\n' ' ' | sed 's/ $//')"

completed() { # SHELL COMMAND
  case $1 in
  bash) sed -n "s/^    $2) words='\(-.*\)' ;;/\1/p" "$docs/bash/ljprof" ;;
  zsh) sed -n "s/^  $2) compadd -- \(-.*\) ;;/\1/p" "$docs/zsh/_ljprof" ;;
  fish)
    sed -n "s/^.*_from $2' -\([slo]\) \([^ ]*\) .*/\1 \2/p" \
      "$docs/fish/ljprof.fish" | sed 's/^l /--/; s/^[so] /-/'
    ;;
  esac | in_lines
}
while read -r command; do
  page=$docs/man/ljprof-$command.1
  [ -f "$page" ] || fail "no page of $command"
  "$ljprof" "$command" --help > help.txt
  { "$ljprof" "$command" --help=options && echo "--help"; } > table.txt
  sed 's/ .*//' table.txt | sort -u > options.txt
  same "$command: the help has the options of the table" \
    "$(cat options.txt)" "$(described help.txt)"
  awk '$0 == ".TP" { getline; print }' "$page" | grep -F '\fB\-' |
    sed 's/\\-/-/g; s/\\f[BRI]/ /g; s/,/ /g' | in_lines > named.txt
  same "$command: so has the man page" "$(cat options.txt)" "$(cat named.txt)"
  for shell in bash zsh fish; do
    same "$command: so has the completion of $shell" "$(cat options.txt)" \
      "$(completed "$shell" "$command")"
  done
  # Words that an option may be: timer trap is an old name of perf.
  awk 'NF > 2' table.txt | sed 's/^--timer \(.*\) trap/--timer \1/' > words.txt
  while read -r option _ words; do
    grep -qxF "    $command:$option) words='$words' ;;" "$docs/bash/ljprof" ||
      fail "bash: the values of $command $option are not: $words"
    grep -qxF "  $command:$option) compadd -- $words ;;" "$docs/zsh/_ljprof" ||
      fail "zsh: the values of $command $option are not: $words"
  done < words.txt
  if command -v man > man.txt && command -v groff > groff.txt; then
    LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
      > formatted.txt 2> complaints.txt || fail "man cannot read $page"
    same "man on ljprof-$command" "" "$(cat complaints.txt)"
  fi
  ok "$command: $(wc -l < options.txt) options"
done < commands.txt
if command -v mandoc > mandoc.txt; then
  mandoc -T lint "$docs"/man/*.1 "$SOURCE_DIR"/packaging/*.1 > lint.txt 2>&1 || :
  same "mandoc on all pages" "" "$(cat lint.txt)"
fi

# -- The main page and the reference
same "each command has a page" \
  "$({ echo ljprof.1 && sed 's/.*/ljprof-&.1/' commands.txt; } | sort)" \
  "$(cd "$docs/man" && printf '%s\n' * | sort)"
last=$(tail -n 1 commands.txt)
while read -r command; do
  grep -qxF ".BR ljprof\\-$(echo "$command" | sed 's/-/\\-/g') (1)," \
    "$docs/man/ljprof.1" ||
    [ "$command" = "$last" ] ||
    fail "ljprof(1) does not lead to $command"
  grep -q "^| \`$command\` | " "$reference" ||
    fail "the table in doc/reference/commands.md lacks $command"
done < commands.txt
if "$ljprof" report --help > report.txt 2> absent.txt; then
  sed '1,/^<!-- \.\/run reference/d' "$reference" > there.txt
  cmp -s there.txt "$docs/commands.md" ||
    fail "doc/reference/commands.md has another help than the commands:" \
      "./run reference writes it. $(diff there.txt "$docs/commands.md" | head -n 5)"
  ok "the reference has the help of all commands"
  same "the reference has no other command" "$(sort commands.txt)" "$(sed -n \
    's/^| `\([a-z-]*\)` | [^|]*|[^|]*|$/\1/p' "$reference" | sort)"
fi

# The examples of packages set variables that exist.
grep -oE 'LJPROF_[A-Z_]+' -h "$SOURCE_DIR"/packaging/examples/* | sort -u \
  > variables.txt
grep -qx LJPROF_LISTEN variables.txt || fail "examples: $(cat variables.txt)"
while read -r variable; do
  grep -q "^| \`$variable\`" "$reference" || fail "an example sets $variable"
done < variables.txt
ok "variables of the examples exist"
for unit in push exporter; do
  file=$SOURCE_DIR/packaging/examples/ljprof-$unit.service
  # shellcheck disable=SC2013 # words
  for option in $(sed -n 's/^ExecStart=//p' "$file" | grep -oE -e ' --[a-z-]+'); do
    "$BUILD_DIR/bin/ljprof" help $unit | grep -q "^  *$option " ||
      fail "$file: $option"
  done
  grep -qx 'Restart=always' "$file" || fail "$file ends for good"
done
ok "the examples' units use options that exist, and begin again"

# -- Completion at work
if command -v bash > bash.txt; then
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
  bash_gives "check" che
  bash_gives "wall" record --event w
  bash_gives "perf posix" record --timer p
  bash_gives "record" help rec
  bash_gives "" check sour # Files, by bash itself.
  mkdir -p sources/here
  touch sources.txt
  if grep -qx report commands.txt; then
    bash_gives "--top" report --to
    bash_gives "collapsed callgrind chrome-trace" export --to c
    bash_gives "pprof perf-script" export --to = p
    bash_gives "trace thread type" report --by = t
    bash_gives "live leaks" diff --view l
    bash_gives "retained references" flame --view re
    bash_gives "sources" flame --source sour
  fi
fi
if command -v zsh > zsh.txt; then
  zsh -n "$docs/zsh/_ljprof" || fail "zsh cannot read its completion"
  ok "zsh reads its completion"
fi
if command -v fish > fish.txt; then
  export HOME="$PWD" XDG_CONFIG_HOME="$PWD" XDG_DATA_HOME="$PWD"
  fish -c "source $docs/fish/ljprof.fish; complete -C 'ljprof record --timer p'" \
    > fish.txt 2>&1
  same "fish completes record --timer p" "perf posix" \
    "$(cut -f1 fish.txt | sort | tr '\n' ' ' | sed 's/ $//')"
fi
