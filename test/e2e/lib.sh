# shellcheck shell=sh
# What the shell tests share. A test gets SOURCE_DIR and BUILD_DIR from its
# caller, and runs in a scratch folder of its own that is removed afterwards.
set -eu
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-test.XXXXXX")
trap end_test EXIT
trap 'exit 1' HUP INT TERM
cd "$SCRATCH"
passed=0

# end_test: what each test does at its end, first the command in at_end. What its
# streams tell of must add up.
at_end=:
end_test() {
  code=$?
  cd /
  eval "$at_end" || :
  if [ $code = 0 ] && [ -x "$BUILD_DIR/bin/account" ]; then
    "$BUILD_DIR/bin/account" "$SCRATCH" || code=1
  fi
  rm -rf "$SCRATCH"
  trap - EXIT
  exit $code
}

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# ok WHAT: one more check has passed.
ok() {
  passed=$((passed + 1))
  echo "ok $passed - $*"
}

# same WHAT WANTED GOT: fails unless the two are equal.
same() {
  [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
  ok "$1"
}

# refuses WHAT CODE TEXT COMMAND...: fails unless the command ends with this
# exit code (CODE may be "any": not 0) and prints exactly one line that holds
# TEXT.
refuses() {
  what=$1 code=$2 text=$3
  shift 3
  got=0
  "$@" > out.txt 2>&1 < /dev/null || got=$?
  [ "$got" != 0 ] || fail "$what: the command succeeded"
  [ "$code" = any ] || [ "$code" = "$got" ] ||
    fail "$what: exit code $got, wanted $code"
  line=$(grep -F -e "$text" out.txt) ||
    fail "$what: no line with '$text' in: $(cat out.txt)"
  [ "$(echo "$line" | wc -l)" = 1 ] || fail "$what: more than one line: $line"
  ok "$what: $line"
}

# read_pipe COMMAND...: makes `pipe`, which can be opened for writing from now on,
# and runs a command in the background that reads it to piped. end_pipe: waits for
# that.
read_pipe() {
  rm -f pipe
  mkfifo pipe
  exec 3<> pipe # So no open waits.
  exec 4< pipe
  "$@" <&4 > piped 2> /dev/null 3>&- &
  pipe_reader=$!
  exec 4<&-
}
end_pipe() {
  exec 3>&-
  wait "$pipe_reader" || :
}

# damage_live FILE: damages the first block that has live memory of files before.
damage_live() {
  at=$("$BUILD_DIR/bin/ljprof" dump --json "$1" | python3 -c 'import json, sys
for line in sys.stdin:
    e = json.loads(line)
    if e["type"] == "block":
        at = e["offset"]
    elif e["type"] == "live":
        print(at)
        break')
  [ -n "$at" ] || fail "$1: no block has live memory of files before"
  printf 'damage' | dd of="$1" bs=1 seek=$((at + 100)) conv=notrunc 2> dd.txt
}

# tree_files DIR: the files of a source tree, without what builds leave there.
tree_files() {
  (cd "$1" && find . \( -name .git -o -name .cache -o -name build \
    -o -name 'build-*' -o -name node_modules \) -prune -o -type f -print) |
    sed 's,^\./,,' | sort
}

# copy_of_source DIR: a private copy of the source tree, to break things in.
copy_of_source() {
  mkdir -p "$1"
  tree_files "$SOURCE_DIR" > copy.txt
  (cd "$SOURCE_DIR" && tar -cf - -T "$SCRATCH/copy.txt") |
    (cd "$1" && tar -xf -)
}

# balanced WHAT VMS ALL FILE: fails unless the file is whole, records the memory
# of VMS of ALL VMs, and the growth of these by LuaJIT's own count is what the
# events add up to, VM by VM.
balanced() {
  "$BUILD_DIR/bin/ljprof" check "$4" > check.txt || fail "$1: $(cat check.txt)"
  grep -Eq "^memory of $2 of $3 VMs?: .*: difference 0\$" check.txt ||
    fail "$1: wanted $2 of $3 VMs and no difference: $(grep '^memory' check.txt)"
  ok "$1: $(grep '^memory' check.txt)"
}
