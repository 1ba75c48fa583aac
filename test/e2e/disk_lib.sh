# shellcheck shell=sh
# For tests of a full disk: a folder `disk` of few bytes in a mount namespace of its
# own, which somebody else fills.

# small_disk SIZE: makes it.
small_disk() {
  mkdir -p disk
  mount -t tmpfs -o "size=$1" none disk
}

# has_small_disks: whether that is possible here.
has_small_disks() {
  unshare -rm sh -c 'mount -t tmpfs -o size=1m none /mnt' 2> unshare.txt
}

# newest_number: of the files there.
newest_number() {
  find disk -name '*.ljp' | sed 's/.*Z-0*\([0-9]*\)-.*/\1/' | sort -n | tail -n 1
}

# fill_disk: takes all that is free, and again what a removal frees, for two seconds.
# After a quarter of that time, there is a file `filled`.
fill_disk() {
  until [ "$(find disk -name '*.ljp' | wc -l)" -ge 3 ]; do sleep 0.05; done
  n=0
  while [ $n -lt 40 ]; do
    cat /dev/zero > disk/filler.$n 2> /dev/null || :
    n=$((n + 1))
    [ $n != 10 ] || : > filled
    sleep 0.05
  done
}
