# shellcheck shell=sh disable=SC2154 # the tests set ljprof
# What the tests with any real engine share.

# engine_program NAME: the program. ./run test --engines builds it if none is given.
engine_program() {
  "$SOURCE_DIR/test/engines/make-engines" --look \
    "${LJPROF_CACHE:-$SOURCE_DIR/.cache}/engines" | sed -n "s/^$1 //p" | grep . ||
    fail "there is no $1: ./run test --engines builds it"
}

# give NN: records fNN.ljp, exports it as fNN.pb.gz, and gives it to a pusher that
# follows the folder st.
give() {
  record "f$1.ljp"
  "$ljprof" export --to pprof --force -o "f$1.pb.gz" "f$1.ljp" 2> /dev/null
  cp "f$1.ljp" st/.next
  mv st/.next "st/shop-20260101T0000$1Z-000000$1-1$1.ljp"
}

totals() {
  python3 "$SOURCE_DIR/test/engines/totals.py" "$@"
}
