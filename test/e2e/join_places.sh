#!/bin/sh
# Programs that have no /proc, or that of another namespace of processes: they left
# their root, or were put into a namespace. ljprof lends them one.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

if [ "$(id -u)" != 0 ] || ! unshare -Urpf true 2> unshare.txt; then
  echo "skipped: this needs root and namespaces"
  exit 77
fi
cat > app.lua << 'END'
local function round(n)
  local sum = 0
  for i = 1, n do sum = (sum * 31 + i) % 1000003 end
  return sum
end
io.stdout:setvbuf("no")
io.stdout:write("ready\n")
while true do round(20011) end
END
# A root with what the program needs, but without /proc.
mkdir root
cp app.lua "$BUILD_DIR/bin/luajit" root
list=ldd
[ "${LJP_LIBC:-}" != musl ] || list="/lib/ld-musl-x86_64.so.1 --list"
for file in $($list "$BUILD_DIR/bin/luajit" | grep -o '[[:space:]]/[^ ]*'); do
  case $file in
  /lib* | /usr/*) to=root$file ;;
  *) to=root/lib/${file##*/} ;;
  esac
  mkdir -p "${to%/*}"
  cp -L "$file" "$to"
done

# place WHAT COMMAND...: runs the program there. $host: as it is called here.
place() {
  mode=$1
  shift
  : > host.txt
  "$@" > host.txt 2>&1 &
  outer=$!
  eventually "$mode: $(cat host.txt)" grep -q ready host.txt
  host=$(ps -o pid= --ppid $outer | tr -d ' ')
  host=${host:-$outer}
  tasks_before=$(ls "/proc/$host/task")
  files_before=$(ls "/proc/$host/fd")
}
leave() {
  eventually "$mode: threads and descriptors as before" settled
  kill -9 "$host"
  wait $outer 2> killed.txt || :
  host=
}
# seen: its only thread is sampled, shown and named.
seen() {
  for event in cpu wall; do
    "$ljprof" record -p "$host" -o place.ljp --force --duration 500ms \
      --event $event 2> record.txt || fail "$mode: $(cat record.txt)"
    "$ljprof" check place.ljp > check.txt || fail "$mode: $(cat check.txt)"
    "$ljprof" report place.ljp > report.txt || fail "$mode: $(cat record.txt)"
    grep -q ' round .*app\.lua:1' report.txt || fail "$mode: $(cat report.txt)"
    grep -q 'list of threads\|unknown program' report.txt && fail "$mode: $(cat report.txt)"
  done
  ok "$mode: its samples"
  "$ljprof" dump-stacks -p "$host" > stacks.txt 2> error.txt ||
    fail "$mode: $(cat error.txt)"
  same "$mode: no complaint" "" "$(cat error.txt)"
  same "$mode: one thread" 1 "$(grep -c '^Thread .* "luajit": running; VM 1' stacks.txt)"
  grep -q '^  round  *.*app.lua:[123]$' stacks.txt || fail "$mode: $(cat stacks.txt)"
  ok "$mode: its stack"
}
place "chroot" chroot root /luajit /app.lua
seen
leave
place "chroot, as another user" chroot --userspec=65534:65534 root /luajit /app.lua
seen
leave
place "a namespace with the /proc of ours" unshare -pf "$BUILD_DIR/bin/luajit" app.lua
seen
leave
place "namespaces without /proc" unshare -Urpf --root=root /luajit /app.lua
seen

# Who may not do that says what is missing.
if setpriv --bounding-set -sys_admin true 2> setpriv.txt; then
  poor="setpriv --bounding-set -sys_admin $ljprof"
  $poor dump-stacks -p "$host" > stacks.txt 2> error.txt || fail "$(cat error.txt)"
  grep -q "note: process $host (luajit): its threads are not known: it has no /proc" \
    error.txt || fail "$(cat error.txt)"
  $poor record -p "$host" -o place.ljp --force --duration 300ms 2> record.txt || :
  grep -q 'the list of threads cannot be read' record.txt || fail "$(cat record.txt)"
  ok "without the right to lend it"
fi
leave
