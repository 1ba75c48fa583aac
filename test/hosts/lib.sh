# For the tests of host programs: sourced by each, with $BUILD_DIR set.
#
# A host is a program of Debian's that links libluajit-5.1.so.2. It is started
# with LD_LIBRARY_PATH naming our build, must do real work, and its memory map
# must hold our library and no other LuaJIT.
# shellcheck shell=sh
set -eu
unset LUA_INIT LUA_PATH LUA_CPATH LD_PRELOAD
export LC_ALL=C

fail()
{
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

# Ends what this test started, and only that.
cleanup()
{
  status=$?
  for pid in $started; do
    kill "$pid" 2>/dev/null || :
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

# need PACKAGE...: installs what is missing. Services that come with a package
# must not start by themselves: policy-rc.d forbids it while we install.
need()
{
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null |
      grep -q '^ii' || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null || fail "not a Debian system:$missing"
  root=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "neither root nor sudo; install as root:$missing"
    root=sudo
  fi
  echo "installing:$missing"
  policy=/usr/sbin/policy-rc.d made=
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | $root tee $policy >/dev/null
    $root chmod 755 $policy
    made=1
  fi
  installed=1
  # shellcheck disable=SC2086 # several packages
  $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=600 install --no-install-recommends $missing \
    >"$tmp/apt.log" 2>&1 </dev/null || installed=
  [ -z "$made" ] || $root rm -f $policy
  [ -n "$installed" ] || fail "apt-get could not install:$missing"
}

# maps_ours PID: our library is mapped, and no other libluajit.
maps_ours()
{
  found=$(awk '$6 ~ /libluajit/ { print $6 }' "/proc/$1/maps" | sort -u)
  [ "$found" = "$library" ] ||
    fail "process $1 maps '$found' instead of '$library'"
  echo "process $1 maps $library"
}

# same WHAT WANTED GOT
same()
{
  [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
  echo "$1: $3"
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for()
{
  tries=$(($1 * 20))
  shift
  while ! "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.05
  done
}
