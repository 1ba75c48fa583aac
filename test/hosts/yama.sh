#!/bin/sh
# Yama: with each value of kernel.yama.ptrace_scope, who can join a program by its
# number, what is said to others, and that a socket helps. In a virtual machine with
# Debian's kernel, since few machines of tests have a kernel with Yama.
. "$(dirname "$0")/lib.sh"
need qemu-system-x86 busybox-static cpio
PATH=$PATH:/usr/sbin

kernel=
for file in /boot/vmlinuz-*; do
  config=/boot/config-${file#/boot/vmlinuz-}
  ! grep -qs '^CONFIG_SECURITY_YAMA=y' "$config" || kernel=$file
done
if [ -z "$kernel" ]; then
  package=$(apt-cache depends linux-image-cloud-amd64 2> /dev/null |
    sed -n 's/^ *Depends: *//p' | head -n 1)
  [ -n "$package" ] || {
    echo "skipped: there is no kernel with Yama, and no Debian package of one"
    exit 77
  }
  (cd "$tmp" && apt-get -q download "$package" > apt.log 2>&1) ||
    fail "cannot get the package $package"
  dpkg-deb -x "$tmp/$package"_*.deb "$tmp/kernel"
  kernel=$(ls "$tmp"/kernel/boot/vmlinuz-*)
fi
echo "kernel: ${kernel##*/}"

# -- What the machine has: our programs, their libraries, and a shell. ------------------
root=$tmp/root
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/etc"
setpriv=$(command -v setpriv)
cp "$(command -v busybox)" "$root/bin/busybox"
cp -L "$build/bin/luajit" "$build/bin/ljprof" "$setpriv" "$root/bin"
for file in $(ldd "$build/bin/luajit" "$build/bin/ljprof" "$setpriv" |
  grep -o '/[^ ]*' | sort -u); do
  case $file in
  *:) continue ;;
  esac
  to=$root$file
  case $file in
  "$build"/*) to=$root/lib/${file##*/} ;;
  esac
  mkdir -p "${to%/*}"
  cp -L "$file" "$to"
done
printf 'root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n' > "$root/etc/passwd"
cat > "$root/work.lua" << 'END'
local function round(n)
  local sum = 0
  for i = 1, n do sum = (sum * 31 + i) % 1000003 end
  return sum
end
while true do round(20011) end
END
cat > "$root/init" << 'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
chmod 1777 /tmp
cd /tmp
user="/bin/setpriv --reuid 1000 --regid 1000 --clear-groups"
# tries NAME COMMAND...: what it prints, and its exit code, on one line each.
tries() {
  name=$1
  shift
  "$@" > out.txt 2>&1
  code=$?
  echo "@$name=$code $(head -n 1 out.txt)"
}
echo
echo "@kernel=$(cat /proc/sys/kernel/yama/ptrace_scope 2>&1)"
for scope in 0 1 2 3; do
  echo $scope > /proc/sys/kernel/yama/ptrace_scope
  LJPROF_LISTEN=/tmp/app$scope.sock $user luajit /work.lua &
  pid=$!
  n=0
  until [ -S app$scope.sock ] || [ $n -gt 300 ]; do n=$((n + 1)); sleep 0.1; done
  tries user$scope $user ljprof status -p $pid
  tries root$scope ljprof status -p $pid
  tries socket$scope $user ljprof status -p /tmp/app$scope.sock
  tries record$scope $user ljprof record -p /tmp/app$scope.sock -o /tmp/user$scope.ljp \
    --duration 1s --timer posix
  tries check$scope $user ljprof check /tmp/user$scope.ljp
  ljprof list > list.txt 2>&1
  echo "@list$scope=$(grep -c " $pid " list.txt)"
  kill -0 $pid && echo "@alive$scope=yes"
  kill $pid
done
echo "@end"
sync
poweroff -f
END
chmod 755 "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) > "$tmp/initramfs"
timeout 550 qemu-system-x86_64 -accel tcg -cpu max -m 1024 -nographic \
  -no-reboot -net none -kernel "$kernel" -initrd "$tmp/initramfs" \
  -append 'console=ttyS0 quiet panic=-1' > "$tmp/machine.log" 2>&1 < /dev/null ||
  fail "the virtual machine does not run"
tr -d '\r' < "$tmp/machine.log" > "$tmp/said.log"
said() { # NAME
  sed -n "s/^.*@$1=//p" "$tmp/said.log"
}
# answers NAME REGEX
answers() {
  said "$1" | grep -Eq "^$2" || fail "$1: wanted '$2', got '$(said "$1")'"
  echo "$1: $(said "$1")"
}
grep -q '^@end' "$tmp/said.log" || fail "the tests in the machine did not end"
answers kernel '[0-3]$'
joined='0 process [0-9]* \(luajit\): library'
answers user0 "$joined"
answers user1 '1 .*ptrace_scope is 1, so only root may do that: try sudo'
answers user2 '1 .*ptrace_scope is 2, so only root may do that: try sudo'
answers user3 '1 .*ptrace_scope is 3, so nobody may do that until the machine is started'
for scope in 0 1 2; do answers root$scope "$joined"; done
answers root3 '1 .*ptrace_scope is 3, so nobody may do that until the machine is started'
for scope in 0 1 2 3; do
  answers socket$scope "$joined"
  answers record$scope '0 '
  answers check$scope '0 '
  answers alive$scope yes
done
