# What the tests of host programs share. BUILD_DIR is set by the caller.
#
# A host is a program from Debian that links libluajit-5.1.so.2. A test starts
# it with our build in LD_LIBRARY_PATH and lets it do real work. The host's
# memory map must contain our library and no other LuaJIT.
# shellcheck shell=sh
set -eu
unset LUA_INIT LUA_PATH LUA_CPATH LD_PRELOAD
export LC_ALL=C

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

build=$(realpath "${BUILD_DIR:?is not set}")
library=$(realpath "$build/lib/libluajit-5.1.so.2") ||
  fail "$build has no library: ./run build"
LD_LIBRARY_PATH=$build/lib
started=
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hosts.XXXXXX")
chmod 755 "$tmp"

# cleanup: ends the processes that this test started, and no others.
cleanup() {
  status=$?
  for pid in $started; do
    kill "$pid" 2> /dev/null || :
  done
  if [ $status -ne 0 ]; then
    for log in "$tmp"/*.log; do
      [ ! -s "$log" ] || { echo "--- $log" && tail -n 15 "$log"; } >&2
    done
  fi
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# need PACKAGE...: installs the missing packages. Their services must not start
# by themselves: policy-rc.d forbids that during the installation.
need() {
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2> /dev/null |
      grep -q '^ii' || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  command -v apt-get > /dev/null ||
    fail "this is not a Debian system; packages are missing:$missing"
  root=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null ||
      fail "packages are missing, you are not root, and there is no sudo;" \
        "install them as root:$missing"
    root=sudo
  fi
  echo "installing:$missing"
  policy=/usr/sbin/policy-rc.d made=
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | $root tee $policy > /dev/null
    $root chmod 755 $policy
    made=1
  fi
  installed=1
  # shellcheck disable=SC2086 # several packages
  $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=600 install --no-install-recommends $missing \
    > "$tmp/apt.log" 2>&1 < /dev/null || installed=
  [ -z "$made" ] || $root rm -f $policy
  [ -n "$installed" ] || fail "apt-get could not install:$missing"
}

# maps_ours PID: the process maps our library and no other libluajit.
maps_ours() {
  found=$(awk '$6 ~ /libluajit/ { print $6 }' "/proc/$1/maps" | sort -u)
  [ "$found" = "$library" ] ||
    fail "process $1 maps '$found' instead of '$library'"
  echo "process $1 maps $library"
}

# same WHAT WANTED GOT: fails unless the two are equal.
same() {
  [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
  echo "$1: $3"
}

# runs LOG COMMAND...: the command succeeds with our library. Its output goes to
# LOG.
runs() {
  log=$1 status=0
  shift
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH timeout 60 "$@" > "$log" 2>&1 < /dev/null ||
    status=$?
  same 'exit status' 0 "$status"
}

# wait_for SECONDS COMMAND...: repeats the command until it succeeds.
wait_for() {
  tries=$(($1 * 20))
  shift
  while ! "$@" > /dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.05
  done
}
