#!/bin/sh
# A followed child that cannot make its file: the child says so on stderr, and
# `ljprof record` says so and exits with 1. What could be recorded is whole.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof

cat > forks.lua << 'END'
local ffi = require("ffi")
ffi.cdef("int rename(const char *, const char *); int fork(void);" ..
  "int waitpid(int, int *, int);")
local function work()
  local till = os.clock() + 0.05
  repeat local t = {} for i = 1, 1000 do t[i] = { i } end until os.clock() > till
end
work()
assert(ffi.C.rename("out", "away") == 0)
local child = ffi.C.fork()
if child == 0 then
  work()
  os.exit(0, true)
end
assert(ffi.C.waitpid(child, nil, 0) == child)
assert(ffi.C.rename("away", "out") == 0)
print(child)
os.exit(0, true)
END

mkdir out
code=0
"$ljprof" record --children -o out/x.ljp "$BUILD_DIR/bin/luajit" forks.lua \
  > child.txt 2> err.txt || code=$?
cat err.txt
same "the exit code" 1 $code
child=$(cat child.txt)
text="child process $child: $PWD/out/x.ljp.$child: No such file or directory"
same "the child says it" 1 "$(grep -cx "ljprof: not recorded: $text" err.txt)"
same "the record says it" 1 \
  "$(grep -c "^ljprof record: .*not recorded: $text" err.txt)"
same "the parent's file" whole "$("$ljprof" check out/x.ljp | tail -n 1)"
