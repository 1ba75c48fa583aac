#!/bin/sh
# packages.sh OUT [SUITE...]: tests the packages in the folder OUT (./run package).
# On each bare Debian (default: bookworm and trixie, which are 12 and 13; or none) it
# installs the .deb, works by what the man pages say, removes it, and compares the
# files before and after. Then it installs the .rpm into a root of its own, and
# unpacks the tarballs. Needs root and the network; removes what it has made.
set -eu
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
here=test/packages

die() {
  echo "packages: error: $*" >&2
  exit 1
}

say() {
  echo "==> packages: $*"
}

. test/fresh/bare.sh # bare_root()

[ "$(id -u)" = 0 ] || die "a chroot needs root"
only() { # PATTERN: the one file of this pattern in OUT
  # shellcheck disable=SC2086 # a pattern
  set -- "$out"/$1
  [ "$# $(find "$1" -type f 2> /dev/null | wc -l)" = "1 1" ] ||
    die "not one file: $*"
  echo "$1"
}
deb=$(only 'ljprof_*_amd64.deb')
rpm=$(only 'ljprof-*.x86_64.rpm')
gnu=$(only 'ljprof-*-linux-gnu.tar.gz')
musl=$(only 'ljprof-*-linux-musl.tar.gz')

base=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-packages.XXXXXX")
chmod 755 "$base"
clean() {
  if awk -v r="$base/" 'index($2, r) == 1 { f = 1 } END { exit f }' \
    /proc/mounts; then
    rm -rf "$base"
  else
    say "not removing $base: something is still mounted below it" >&2
  fi
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

# inside COMMAND...: runs it in $root, with mounts of its own, which end with it.
inside() {
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --pid --fork --kill-child sh -c '
    root=$1
    shift
    mount --make-rprivate /
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    exec env -i HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      ${http_proxy:+http_proxy="$http_proxy"} \
      ${https_proxy:+https_proxy="$https_proxy"} chroot "$root" "$@"
  ' sh "$root" "$@" < /dev/null
}

# files: all that packages may leave, with type, mode and where links lead. Caches,
# logs and apt's own books are not counted.
files() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o \
    -path ./tmp -o -path ./root -o -path ./var/lib/apt -o -path ./var/cache -o \
    -path ./var/log -o -path ./var/lib/dpkg -o -path ./etc/ld.so.cache \) -prune \
    -o -printf '%y %m %p %l\n' | sort
  cd "$root/var/lib/dpkg/info" && find . | sort)
}

# -- The .deb on bare systems
[ $# -gt 0 ] || set -- bookworm trixie
for suite in "$@"; do
  [ "$suite" != none ] || continue
  work=$base/$suite
  mkdir "$work"
  bare_root "$suite" "$work"
  inside sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends \
    man-db' > "$work/apt.log" 2>&1 || die "apt-get: $(tail -n 3 "$work/apt.log")"
  files > "$work/before"
  cp "$deb" "$root/tmp/"
  say "$suite: installing ${deb##*/}"
  inside sh -c 'apt-get -q -y install --no-install-recommends /tmp/ljprof_*.deb' \
    > "$work/apt.log" 2>&1 || die "apt-get: $(tail -n 3 "$work/apt.log")"
  mkdir "$root/root/try"
  cp $here/by_man.sh $here/app.lua "$root/root/try/"
  if command -v cc > "$work/cc"; then
    # The compiler finds headers and library below $root, and the program later
    # finds the library where the package has it.
    PKG_CONFIG_LIBDIR=$(echo "$root"/usr/lib/*/pkgconfig) \
      pkg-config --cflags --libs luajit-ljprof |
      sed "s,-\([IL]\)/,-\1$root/,g" > "$work/flags"
    # shellcheck disable=SC2046 # words are wanted
    cc $here/host.c -o "$root/root/try/host" $(cat "$work/flags") ||
      die "a program does not build with $(cat "$work/flags")"
  fi
  inside sh -c 'cd /root/try && exec ./by_man.sh' || die "failed on $suite"
  inside sh -c 'dpkg -L ljprof' | sort > "$work/listed"
  # apt would keep what a package of the system recommends, as trixie's libc6 does
  # with a library that libcurl needs.
  inside sh -c 'apt-get -q -y purge ljprof && apt-get -q -y autoremove --purge \
    -o APT::AutoRemove::RecommendsImportant=false \
    -o APT::AutoRemove::SuggestsImportant=false' \
    > "$work/apt.log" 2>&1 || die "apt-get: $(tail -n 3 "$work/apt.log")"
  files > "$work/after"
  diff "$work/before" "$work/after" || die "$suite: removing leaves files"
  say "$suite: removed; of $(wc -l < "$work/listed") files and folders," \
    "nothing is left"
done

# -- The .rpm in a root of its own
root=$base/rpm
mkdir -p "$root"
say "installing ${rpm##*/} into a root of its own"
rpm --root "$root" --nodeps --noscripts --nosignature -i "$rpm" \
  > "$base/rpm.log" 2>&1 || die "rpm: $(tail -n 3 "$base/rpm.log")"
rpm --nosignature -qpl "$rpm" | sort > "$base/rpm.listed"
while read -r f; do
  [ -e "$root$f" ] || [ -L "$root$f" ] || die "the rpm has no $f"
done < "$base/rpm.listed"
for offered in $(rpm --nosignature -qp --provides "$rpm" | sed 's/ .*//') \
  $(rpm --nosignature -qp --requires "$rpm" | sed 's/ .*//'); do
  case $offered in
  *luajit-5*) die "the rpm offers or wants $offered" ;;
  esac
done
$here/try.sh "$root/usr/bin/ljprof" "$root/usr/bin/luajit-ljprof" whole
rpm --root "$root" --nodeps --noscripts -e ljprof
find "$root" ! -type d ! -path '*/var/lib/rpm/*' ! -path '*/usr/lib/sysimage/*' \
  ! -path '*/root/.rpmdb/*' > "$base/rpm.left"
[ ! -s "$base/rpm.left" ] || die "the rpm leaves $(cat "$base/rpm.left")"
say "$(wc -l < "$base/rpm.listed") files and folders, nothing is left"

# -- The tarballs, at places with a blank in their names
for tarball in "$gnu" "$musl"; do
  mkdir -p "$base/a place"
  tar -C "$base/a place" -xzf "$tarball"
  name=${tarball##*/}
  name=${name%.tar.gz}
  what=whole
  case $name in
  *musl)
    what=small
    [ -e /lib/ld-musl-x86_64.so.1 ] || {
      say "no musl here: $name is not run"
      continue
    }
    ;;
  esac
  say "unpacked ${tarball##*/}"
  $here/try.sh "$base/a place/$name/bin/ljprof" "$base/a place/$name/bin/luajit" \
    $what
done
say "passed"
