#!/bin/sh
# Heap snapshots of programs at their limits: memory, processes, descriptors, the
# size of files, full disks. Each is whole, or refused with a reason, and the program
# goes on.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
limits=$SOURCE_DIR/test/e2e/heap_limits.lua
chmod 777 .

# under LIMIT WAY LEAST: at least so many snapshots are refused.
under() {
  "$lua" "$limits" "$1" "$2" > out.txt 2> err.txt || fail "$1, $2: $(cat err.txt)"
  [ ! -s err.txt ] || fail "$1, $2: $(cat err.txt)"
  read -r taken refused in_place < out.txt
  [ "$refused" -ge "$3" ] || fail "$1, $2: $refused snapshots of $taken refused"
  [ "$refused" -lt "$taken" ] || fail "$1, $2: no snapshot was taken"
  set -- "$1" "$2" ./*.ljp-*
  [ ! -e "$3" ] || fail "$1, $2: left: $*"
  ok "$1, $2: $refused of $taken refused, $in_place in place for want of a copy"
}

for way in copy behind place session; do
  under memory $way 10
  under descriptors $way 3
done
for way in copy place session; do
  under file_size $way 10
done
if [ "$(id -u)" != 0 ] || setpriv --reuid=54321 "$lua" -e '' 2> /dev/null; then
  under processes copy 0
  under processes behind 0
else
  echo "skipped: other users cannot run $lua"
fi
for file in ./*.ljp; do
  "$BUILD_DIR/bin/ljprof" check "$file" > check.txt 2>&1 || # limits end sessions, too
    case $file in
    *session.ljp) ;;
    *) fail "$file: $(cat check.txt)" ;;
    esac
done

# Disks of all sizes, in a space of our own. The file of before stays.
mkdir disk
cat > disk.sh << 'EOF'
set -eu
mount -t tmpfs -o size=16k ljprof disk
echo mounted
for kib in 16 24 32 48 64 96 128 192 256 384 512 1024; do
  mount -o remount,size=${kib}k disk
  rm -f disk/*
  echo old > disk/disk.ljp
  "$1" "$2" disk disk
  left=$(find disk -name '*.ljp-*')
  [ -z "$left" ] || echo "left: $left" >&2
  [ "$(head -c 3 disk/disk.ljp)" = old ] || "$3" check disk/disk.ljp > /dev/null
done
EOF
code=0
unshare -rm sh disk.sh "$lua" "$limits" "$BUILD_DIR/bin/ljprof" > out.txt 2> err.txt || code=$?
if grep -q mounted out.txt; then
  [ "$code" = 0 ] || fail "full disks: $(cat err.txt)"
  [ ! -s err.txt ] || fail "full disks: $(cat err.txt)"
  awk 'NF == 3 { taken += $1; refused += $2 }
    END { print refused + 0, taken + 0; exit !(refused > 3 && refused < taken) }' \
    out.txt > sums.txt || fail "full disks: $(cat out.txt)"
  ok "full disks: $(tr ' ' '/' < sums.txt) snapshots refused"
else
  echo "skipped: no disk can be mounted here: $(head -n 1 err.txt)"
fi

# A group of processes with too little memory for what the copy keeps.
group=/sys/fs/cgroup/memory/ljprof-test-$$
# shellcheck disable=SC2016,SC2034 # for end_test
at_end='rmdir "$group" 2> /dev/null'
if mkdir "$group" 2> /dev/null &&
  echo 130000000 2> /dev/null > "$group/memory.limit_in_bytes"; then
  # shellcheck disable=SC2016 # for the inner shell
  sh -c 'echo $$ > "$1/cgroup.procs" && exec "$2" "$3" group' sh "$group" "$lua" \
    "$limits" > out.txt 2> err.txt || fail "a group: $? $(cat err.txt)"
  "$BUILD_DIR/bin/ljprof" check next.ljp > check.txt || fail "$(cat check.txt)"
  read -r stopped _ < out.txt
  killed=$(sed -n 's/^oom_kill //p' "$group/memory.oom_control")
  [ "$stopped" = "${killed:-$stopped}" ] ||
    fail "$stopped copies kept pages, the system has ended $killed processes"
  ok "a group with little memory: the system ends the copy ($stopped), the program goes on"
else
  echo "skipped: no group of processes can be made here"
fi
