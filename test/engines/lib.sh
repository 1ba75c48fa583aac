# shellcheck shell=sh
# What the tests with any real engine share.

# engine_program NAME PATH: the program; PATH is what LJPROF_NAME says, or empty.
engine_program() {
  found=${2:-$(command -v "$1" || :)}
  [ -x "$found" ] || fail "no $1 in PATH, and LJPROF_$(echo "$1" |
    tr '[:lower:]' '[:upper:]') names none: install it"
  echo "$found"
}

totals() {
  python3 "$SOURCE_DIR/test/engines/totals.py" "$@"
}
