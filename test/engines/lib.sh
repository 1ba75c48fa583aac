# shellcheck shell=sh
# What the tests with any real engine share.

# engine_program NAME: the program. ./run test --engines builds it if none is given.
engine_program() {
  "$SOURCE_DIR/test/engines/make-engines" --look \
    "${LJPROF_CACHE:-$SOURCE_DIR/.cache}/engines" | sed -n "s/^$1 //p" | grep . ||
    fail "there is no $1: ./run test --engines builds it"
}

totals() {
  python3 "$SOURCE_DIR/test/engines/totals.py" "$@"
}
