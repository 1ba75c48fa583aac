#!/bin/sh
# lint.sh BUILD_DIR: every static check. All of them run before the verdict:
# formatting, two analyzers, shell scripts, layers, lengths and names of files.
# Needs a build for its compile_commands.json.
set -eu
cd "$(dirname "$0")/.."
build=$1
failed=
log=$(mktemp)
commands=$(mktemp -d)
trap 'rm -rf "$log" "$log.tidy" "$commands"' EXIT

check() {
  name=$1
  shift
  if "$@" > "$log" 2>&1; then
    echo "lint: $name: ok"
  else
    echo "lint: $name: FAILED"
    sed 's/^/  /' "$log" | head -n 60
    failed="$failed $name"
  fi
}

# ours TEST...: files, without npm's packages.
ours() {
  find src profilers parsers tools test bench -name node_modules -prune -o \
    "$@" -print 2> /dev/null | sort
}

format() {
  ours -name '*.[ch]' | xargs clang-format --dry-run --Werror
}

# See .clang-tidy for the chosen checks. clang does not know gcc's choice of a way to
# thread-local variables.
tidy() {
  sed 's/ -mtls-dialect=gnu2//' "$build/compile_commands.json" \
    > "$commands/compile_commands.json"
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" |
    grep -E "^$PWD/(src|profilers|parsers|tools)/" | sort -u |
    xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p "$commands" \
      --warnings-as-errors='*' > "$log.tidy" 2>&1 && return 0
  # Only the verdicts: the analyzer's reasoning fills pages.
  grep -E ': (error|warning): ' "$log.tidy" | sort -u
  return 1
}

# cppcheck has other rules, and looks across the functions of a file.
cpp() {
  cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j "$(nproc)" \
    --enable=warning,portability --suppress=missingInclude \
    --suppress=unknownMacro -D__x86_64__ -D__linux__ -D__GNUC__=12 \
    -I . src profilers parsers tools
}

scripts() {
  {
    echo run
    echo .ci/run
    find cmake test bench packaging -name node_modules -prune -o -type f -perm -u+x \
      -print 2> /dev/null
  } | while read -r f; do
    case $(head -n 1 "$f") in
    '#!/bin/sh'* | '#!/bin/bash'*) echo "$f" ;;
    esac
  done | sort | xargs shellcheck -x -P SCRIPTDIR
}

# e2e NAME: a check of the source tree that is also a test.
e2e() {
  SOURCE_DIR=$PWD BUILD_DIR=$PWD/$build "test/e2e/$1.sh"
}

check format format
check clang-tidy tidy
check cppcheck cpp
check shellcheck scripts
check layers e2e layers
check lengths e2e lengths
check paths e2e paths
[ -z "$failed" ] || {
  echo "lint: failed:$failed" >&2
  exit 1
}
