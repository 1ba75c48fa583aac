# shellcheck shell=sh
# run-lib.sh: how ./run installs packages of Debian, and runs commands quietly.
# The lists packages_GROUP are in `run`, and so are say() and die().

# deps GROUP...: installs the missing packages of these groups.
deps() {
  wanted=
  for group in "$@"; do
    eval "wanted=\"\$wanted \$packages_$group\""
  done
  command -v dpkg-query > /dev/null || {
    say "this is not a Debian system: not installing packages ($*)"
    return 0
  }
  # A package counts as installed if it is, or if another one that provides it
  # is (as pkgconf provides pkg-config).
  have=$(dpkg-query -W -f \
    '${db:Status-Abbrev}${Package} ${Provides}\n' 2> /dev/null |
    sed -n 's/^ii //p' | sed 's/([^)]*)//g' | tr ',' ' ' | tr -s ' ' '\n' |
    sort -u)
  missing=
  for p in $wanted; do
    echo "$have" | grep -qxF "$p" || missing="$missing $p"
  done
  [ -n "$missing" ] || return 0
  say "installing Debian packages:$missing"
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null ||
      die "packages are missing, you are not root, and there is no sudo;" \
        "install them as root:$missing"
    as_root=sudo
  fi
  mkdir -p .cache
  # shellcheck disable=SC2086 # words are wanted here
  install_them() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
      -o DPkg::Lock::Timeout=600 install --no-install-recommends $missing \
      > .cache/apt.log 2>&1 < /dev/null
  }
  install_them || {
    $as_root apt-get -q -o DPkg::Lock::Timeout=600 update > .cache/apt.log \
      2>&1 < /dev/null || :
    install_them
  } || {
    grep '^[EW]:' .cache/apt.log | head -n 3 >&2
    die "apt-get could not install:$missing (log: .cache/apt.log)"
  }
}

# tool NAME PACKAGE: for systems where deps() does not install packages.
tool() {
  command -v "$1" > /dev/null ||
    die "the command '$1' is missing (Debian package $2): ./run deps"
}

# logged LOG COMMAND...: quiet on success. On failure it prints the one line
# that gives the reason, or the end of the log if no line does.
logged() {
  log=$1
  shift
  "$@" > "$log" 2>&1 < /dev/null && return 0
  if grep -q 'ljprof: error:' "$log"; then
    # CMake wraps its messages; ours are one line.
    echo "$(sed -n '/ljprof: error:/,/^$/p' "$log" | tr -s '\n ' '  ' |
      sed -e 's/^.*ljprof: error:/ljprof: error:/' -e 's/ CMake Error.*//' \
        -e 's/ FAILED:.*//' -e 's/ ninja: .*//' -e 's/ Call Stack.*//' \
        -e 's/ *$//') (log: $log)" >&2
    exit 1
  elif grep -q 'is not able to compile a simple test' "$log"; then
    die "the C compiler ${CC:-cc} does not work (log: $log)"
  elif grep -q 'required packages\{0,1\} w.* not found' "$log"; then
    die "pkg-config does not find$(
      sed -n "s/^--   \(No package\|Package\) \('[^']*'\).*/ \2/p" "$log" |
        sort -u | tr -d '\n'): ./run deps installs it on Debian (log: $log)"
  elif grep -q '  file cannot create directory' "$log"; then
    die "$(sed -n 's/^ *file \(cannot create directory: .*\)\. .*/\1/p' \
      "$log" | head -n 1) (log: $log)"
  fi
  tail -n 30 "$log" >&2
  die "failed: $* (log: $log)"
}
