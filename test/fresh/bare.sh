# shellcheck shell=sh
# bare.sh: for scripts that have say() and die(), and stand in the project's root.

# bare_root SUITE WORK: makes a bare Debian (debootstrap, minbase) in WORK/root, from
# this machine's own archive and with its settings for apt. Needs root; sets $root.
bare_root() {
  suite=$1 work=$2 root=$2/root
  # This machine's own archive, and its keyring. What it has of its own release it
  # has of the others, too.
  mkdir -p "$work/parts"
  cmake/apt-sources "$work/parts"
  own=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release | tr -d '"')
  for f in "$work/parts"/ljprof.*; do
    [ ! -e "$f" ] || sed -i -e "s,\( \)$own\([-/ ]\),\1$suite\2,g" \
      -e "s,\( \)$own\$,\1$suite," "$f"
  done
  mirror=$({
    sed -n "s/^deb-src \(\[[^]]*\] \)\{0,1\}\([^ ]*\) $suite main\$/\2/p" \
      "$work/parts/ljprof.list" || :
    awk -v s="$suite" '/^URIs:/ { u = $2 }
      /^Suites:/ { for (i = 2; i <= NF; i++) if ($i == s) print u }' \
      "$work/parts/ljprof.sources" || :
  } 2> /dev/null | head -n 1)
  [ -n "$mirror" ] || die "/etc/apt lists no archive of Debian $suite"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -r "$keyring" ] || die "the archive's keyring $keyring is missing"
  for v in http https; do
    p=
    eval "$(apt-config shell p "Acquire::$v::Proxy")"
    [ -z "$p" ] || export "${v}_proxy=$p"
  done

  say "debootstrap of $suite from the machine's archive"
  debootstrap --variant=minbase --keyring="$keyring" "$suite" "$root" "$mirror" \
    > "$work/debootstrap.log" 2>&1 < /dev/null ||
    die "debootstrap: $(tail -n 1 "$work/debootstrap.log")"
  say "$(chroot "$root" dpkg-query -f . -W | wc -c) packages; of cc, gcc, cmake," \
    "git and sudo it has: $(chroot "$root" sh -c \
      'command -v cc gcc cmake git sudo || echo none')"

  # How this machine reaches the archive: sources, proxy settings, name service.
  rm -f "$root/etc/apt/sources.list"
  for f in "$work/parts"/ljprof.*; do
    sed -e 's/^deb-src /deb /' -e 's/^Types: deb-src/Types: deb/' "$f" \
      > "$root/etc/apt/sources.list.d/${f##*/}"
  done
  apt-config dump | grep -iE '^Acquire::(http|https|Check|Retries|ForceIPv)' \
    > "$root/etc/apt/apt.conf.d/99machine" || :
  for f in /etc/resolv.conf /etc/hosts; do
    [ ! -e "$f" ] || cat "$f" > "$root$f"
  done
}
