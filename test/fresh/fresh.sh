#!/bin/sh
# fresh.sh [SUITE]: makes a bare Debian (debootstrap, minbase; SUITE is bookworm,
# which is Debian 12 and the default, or trixie, or a later one) in a temporary
# folder, puts a copy of the committed source into it, and runs `./run demo` and
# `./run test` there. Then it removes what was built and does the same without a
# network, with the short tests. Nothing is installed by hand in between. The
# script needs root and the network, and removes what it has made.
#
# It uses this machine's own archive, which must hold that suite, and passes on
# this machine's apt settings (such as a proxy). LJPROF_FRESH_KEEP=1 keeps the
# folder, LJPROF_FRESH_ARGS is added to the first `./run test`, and
# LJPROF_FUZZ_SECONDS is the time for each fuzz target.
set -eu
cd "$(dirname "$0")/../.."

die() {
  echo "fresh: error: $*" >&2
  exit 1
}

say() {
  echo "==> fresh: $*"
}

. test/fresh/bare.sh # bare_root()

suite=${1:-bookworm}
case $suite in
*[!a-z]* | "") die "no Debian release is called '$suite': bookworm, trixie ..." ;;
esac
[ "$(id -u)" = 0 ] || die "a chroot needs root"
command -v debootstrap > /dev/null || die "debootstrap is missing"

work=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-fresh.XXXXXX")
chmod 755 "$work"
root=$work/root
clean() {
  if [ -n "${LJPROF_FRESH_KEEP:-}" ]; then
    say "kept: $work"
  elif awk -v r="$root" 'index($2, r) == 1 { f = 1 } END { exit f }' \
    /proc/mounts; then
    rm -rf "$work"
  else
    say "not removing $root: something is still mounted below it" >&2
  fi
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

bare_root "$suite" "$work"

mkdir -p "$root/root/ljprof"
if [ -e .git ]; then
  git archive HEAD | tar -C "$root/root/ljprof" -xf -
else
  tar --exclude='./build*' --exclude=./.cache -cf - . |
    tar -C "$root/root/ljprof" -xf -
fi

cat > "$root/root/go" << 'EOF'
#!/bin/sh
# Runs with mounts of its own, which end with it.
set -eu
mount -t proc proc /proc
mount -t sysfs sysfs /sys 2> /dev/null || :
cd /root/ljprof
date +%s > /root/start
./run demo
date +%s > /root/middle
# shellcheck disable=SC2086 # words are wanted
./run test $LJPROF_FRESH_ARGS
date +%s > /root/end
EOF
chmod +x "$root/root/go"

# go WHAT [NAMESPACES...]: one pass in the chroot, in namespaces of its own.
go() {
  what=$1
  shift
  say "./run demo and ./run test $LJPROF_FRESH_ARGS, $what"
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --pid --fork --kill-child "$@" sh -c '
    mount --make-rprivate /
    mount --rbind /dev "$1/dev"
    ip link set lo up 2> /dev/null || :
    exec env -i HOME=/root LANG=C.UTF-8 CI=true JOBS="${JOBS:-}" \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      LJPROF_FRESH_ARGS="${LJPROF_FRESH_ARGS:-}" \
      LJPROF_FUZZ_SECONDS="${LJPROF_FUZZ_SECONDS:-}" \
      ${http_proxy:+http_proxy="$http_proxy"} \
      ${https_proxy:+https_proxy="$https_proxy"} chroot "$1" /root/go
  ' sh "$root" < /dev/null || die "failed $what"
  start=$(cat "$root/root/start") middle=$(cat "$root/root/middle")
  say "$what: demo $((middle - start)) s," \
    "test $(($(cat "$root/root/end") - middle)) s"
}

export LJPROF_FRESH_ARGS="${LJPROF_FRESH_ARGS:-}"
go "with the network"
# Offline, everything is built again. What the tests judge is the same.
rm -rf "$root"/root/ljprof/build*
LJPROF_FRESH_ARGS=--short
go "without a network" --net
say "passed"
