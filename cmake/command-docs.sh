#!/bin/sh
# command-docs.sh LJPROF VERSION OUT: man pages and shell completion, made of
# what the command says of itself (its table of commands and their --help), so
# that none of them can say anything else.
# shellcheck disable=SC2016 # what is written are programs
set -eu
ljprof=$1 version=$2 out=$3
mkdir -p "$out/man" "$out/bash" "$out/zsh"

"$ljprof" --help > "$out/help.txt"
commands=$(sed -n 's/^  \([a-z][a-z]*\)  *[^ ].*/\1/p' "$out/help.txt" |
  grep -vx ljprof)
[ -n "$commands" ] || {
  echo "command-docs.sh: $ljprof names no commands" >&2
  exit 1
}

# Text to roff: as it stands, without roff's own characters.
roff() {
  sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/'/\\\\(aq/g" -e 's/^\./\\\&./'
}

about() { # COMMAND: its line in the table
  sed -n "s/^  $1  *//p" "$out/help.txt" | head -n 1
}

# Every option in the help of a command, each once.
options() {
  "$ljprof" "$1" --help | tr -c 'a-z-' '\n' | grep -E '^--?[a-z]+(-[a-z]+)*$' |
    sort -u
}

# What a value of an option can be (the tests compare it with the help): words,
# "@dirs" for a folder, nothing for files or whatever else.
options_with_values='report:--by export:--to export:--value flame:--view
  diff:--view record:--event record:--timer record:--mode record:--threads
  flame:--source annotate:--source'
values() { # COMMAND:OPTION
  case $1 in
  report:--by)
    echo function line module file kind trace stack thread vm state type
    ;;
  export:--to)
    echo collapsed pprof speedscope callgrind perf-script chrome-trace
    ;;
  export:--value)
    echo samples cpu wall_samples wall alloc_objects alloc_space \
      inuse_objects inuse_space
    ;;
  *:--view) echo cpu wall alloc live leaks ;;
  record:--event) echo cpu wall ;;
  record:--timer) echo auto perf trap posix ;;
  record:--mode) echo C L D ;;
  record:--threads) echo lua all this ;;
  *:--source) echo @dirs ;;
  esac
}

zsh_values() { # a case for each option with values
  for option in $options_with_values; do
    if [ "$(values "$option")" = @dirs ]; then
      echo "  $option) _files -/ ;;"
    else
      echo "  $option) compadd -- $(values "$option") ;;"
    fi
  done
}

for command in $commands; do
  {
    printf '.TH LJPROF\\-%s 1 "" "ljprof %s" "ljprof"\n.SH NAME\n' \
      "$(echo "$command" | tr '[:lower:]' '[:upper:]')" "$version"
    printf 'ljprof\\-%s \\- %s\n' "$command" "$(about "$command" | roff)"
    printf '.SH SYNOPSIS\n.nf\n'
    "$ljprof" "$command" --help | sed -n -e '/^Usage: /,/^[A-Z][^:]*[^:]$/p' |
      grep -E '^(Usage:|  +ljprof )' | sed 's/^Usage: *//; s/^  *//' | roff
    printf '.fi\n.SH DESCRIPTION\n.nf\n'
    "$ljprof" "$command" --help | grep -vE '^(Usage:|  +ljprof )' | roff
    printf '.fi\n.SH SEE ALSO\n.BR ljprof (1)\n'
  } > "$out/man/ljprof-$command.1"
done
{
  printf '.TH LJPROF 1 "" "ljprof %s" "ljprof"\n.SH NAME\n' "$version"
  printf 'ljprof \\- views of what the LuaJIT profiler has recorded\n'
  printf '.SH SYNOPSIS\n.B ljprof\nCOMMAND [OPTION]... FILE\n'
  printf '.SH DESCRIPTION\n.nf\n'
  sed 1d "$out/help.txt" | roff
  printf '.fi\n.SH ENVIRONMENT\n.TP\n.B LJPROF_DEBUG_PATH\n'
  printf 'Folders with debug files, separated by colons.\n'
  printf '.TP\n.B DEBUGINFOD_URLS\nServers to ask for debug files; none '
  printf 'without it.\n.TP\n.B NO_COLOR\nIf set, no colours on a terminal.\n'
  printf '.SH SEE ALSO\n'
  separator=
  for command in $commands; do
    printf '%s.BR ljprof\\-%s (1)' "$separator" "$command"
    separator=',
'
  done
  printf '\n'
} > "$out/man/ljprof.1"

{
  echo '# bash completion of ljprof; made by the build.'
  echo '_ljprof() {'
  echo '  local word=${COMP_WORDS[COMP_CWORD]} words='
  echo '  local before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}'
  echo '  COMPREPLY=()'
  echo '  # bash takes --to=x for three words.'
  echo '  if [ "$word" = = ]; then'
  echo '    word='
  echo '  elif [ "$before" = = ]; then'
  echo '    before=${COMP_WORDS[COMP_CWORD-2]}'
  echo '  fi'
  echo '  if [ "$COMP_CWORD" -eq 1 ]; then'
  echo "    words='$(echo "$commands" | tr '\n' ' ')--help --version'"
  echo '  elif [[ $word == -* ]]; then'
  echo '    case $command in'
  for command in $commands; do
    # shellcheck disable=SC2046,SC2005 # one line of them
    echo "    $command) words='$(echo $(options "$command"))' ;;"
  done
  echo '    esac'
  echo '  else'
  echo '    case $command:$before in'
  for option in $options_with_values; do
    if [ "$(values "$option")" = @dirs ]; then
      echo "    $option)"
      echo '      COMPREPLY=($(compgen -d -- "$word"))'
      echo '      return ;;'
    else
      echo "    $option) words='$(values "$option")' ;;"
    fi
  done
  echo '    record:record | record:--)'
  echo '      COMPREPLY=($(compgen -c -f -- "$word"))'
  echo '      return ;;'
  echo '    esac'
  echo '  fi'
  echo '  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))'
  echo '}'
  echo 'complete -o default -F _ljprof ljprof'
} > "$out/bash/ljprof"

{
  echo '#compdef ljprof'
  echo '# zsh completion of ljprof; made by the build.'
  echo 'local -a commands'
  echo 'if (( CURRENT == 2 )); then'
  echo '  commands=('
  for command in $commands; do
    echo "    '$command:$(about "$command" | sed "s/'/'\\\\''/g")'"
  done
  echo '  )'
  echo "  _describe 'command' commands"
  echo 'elif [[ $PREFIX == -*=* ]]; then'
  echo '  local before=${PREFIX%%=*}'
  echo '  compset -P "*="'
  echo '  case $words[2]:$before in'
  zsh_values
  echo '  *) _files ;;'
  echo '  esac'
  echo 'elif [[ $PREFIX == -* ]]; then'
  echo '  case $words[2] in'
  for command in $commands; do
    # shellcheck disable=SC2046,SC2005
    echo "  $command) compadd -- $(echo $(options "$command")) ;;"
  done
  echo '  esac'
  echo 'else'
  echo '  case $words[2]:$words[CURRENT-1] in'
  zsh_values
  echo '  record:record | record:--) _command_names -e; _files ;;'
  echo '  *) _files ;;'
  echo '  esac'
  echo 'fi'
} > "$out/zsh/_ljprof"
