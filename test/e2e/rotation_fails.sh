#!/bin/sh
# A rotation that fails keeps the present file segment going: nothing is lost,
# the file says it, `ljprof record` says it once and exits with 1, and the next
# file segment comes as soon as it can.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit

cat > fails.lua << 'EOL'
local ffi = require("ffi")
ffi.cdef[[
int rename(const char *, const char *);
int access(const char *, int);
int setresuid(unsigned, unsigned, unsigned);
int setresgid(unsigned, unsigned, unsigned);
int close(int);
int open(const char *, int, ...);
struct rlimit { unsigned long cur, max; };
int prlimit(int, int, const struct rlimit *, struct rlimit *);
]]
local C = ffi.C
local deeds = {}

-- Works until the condition holds.
local function until_(what, condition)
  local began = os.clock()
  repeat
    local t = {}
    for i = 1, 1000 do t[i] = {i} end
    assert(os.clock() - began < 60, what)
  until condition()
end
local function there(path) return C.access(path, 0) == 0 end
local function work(seconds)
  local stop = os.clock() + seconds
  until_("work", function() return os.clock() > stop end)
end

-- The folder is away for a while.
function deeds.folder()
  assert(C.rename("out", "away") == 0)
  work(0.6)
  assert(not there("away/x.ljp.s1"))
  assert(C.rename("away", "out") == 0)
  until_("second segment", function() return there("out/x.ljp.s1") end)
end

-- The program drops root, as a daemon does.
function deeds.setuid()
  assert(C.setresgid(65534, 65534, 65534) == 0)
  assert(C.setresuid(65534, 65534, 65534) == 0)
  work(0.6)
end

-- There are no descriptors left, and later there are again.
function deeds.descriptors()
  local limit = ffi.new("struct rlimit")
  assert(C.prlimit(0, 7, nil, limit) == 0)
  limit.cur = C.open("/dev/null", 0)
  C.close(limit.cur)
  assert(C.prlimit(0, 7, limit, nil) == 0)
  work(0.6)
  assert(not there("out/x.ljp.s1"))
  limit.cur = limit.max
  assert(C.prlimit(0, 7, limit, nil) == 0)
  until_("second segment", function() return there("out/x.ljp.s1") end)
end

-- The next file's name is that of a folder.
function deeds.name()
  work(0.6)
end

-- Nothing can be created on this disk.
function deeds.disk()
  work(0.6)
end

deeds[arg[1]]()
print("done")
EOL

# fails DEED ERROR: the program runs to its end, and the error is told.
fails() {
  code=0
  "$ljprof" record --force -o out/x.ljp --flush 20 --rotate-seconds 0.3 -- \
    "$luajit" fails.lua "$1" > out.txt 2> err || code=$?
  same "$1: the program's output" "done" "$(cat out.txt)"
  same "$1: exit code ($(cat err))" 1 "$code"
  same "$1: told once" 1 "$(grep -c "file segment 1 could not be begun, this \
one continues: $2\$" err)"
  "$ljprof" check out/x.ljp > check.txt || fail "not whole: $(cat check.txt)"
  grep -q "^error: \"file segment 1 could not be begun" check.txt ||
    fail "$1: check does not say it: $(cat check.txt)"
  "$ljprof" report out/x.ljp | grep -q "^! file segment 1 could not be" ||
    fail "$1: report does not say it: $("$ljprof" report out/x.ljp)"
  # 1 ms a sample, 0.6 s without a second file segment.
  got=$(awk '/^samples /{print $2}' check.txt)
  [ "$got" -ge 300 ] || fail "$1: only $got samples in the first file segment"
  same "$1: nothing is left" "" "$(find out away -name '*.ljp-*' 2> /dev/null)"
  ok "$1: the first file segment continues: $got samples"
}

# turned WHAT: there is a second file segment, and nothing is missing between.
turned() {
  "$ljprof" merge -o all.ljp --force out/x.ljp out/x.ljp.s* 2> err ||
    fail "$1: merge: $(cat err)"
  same "$1: nothing missing between the two" "" "$(cat err)"
  "$ljprof" check all.ljp > check.txt || fail "not whole: $(cat check.txt)"
  "$ljprof" dump out/x.ljp.s1 | grep -q 'file segment 1 was begun after' ||
    fail "$1: the second segment does not say how it came about"
  ok "$1: the next one came when it could"
}

fresh() {
  rm -rf out
  mkdir out
}

fresh
fails folder "No such file or directory"
turned folder
fresh
fails descriptors "[Nn]o file descriptors\|Too many open files"
turned descriptors
fresh
mkdir out/x.ljp.s1
fails name "Is a directory"
if [ "$(id -u)" = 0 ]; then
  fresh
  chmod 711 .
  fails setuid "Permission denied"
  fresh
  # Room for one file and its folder.
  if mount -t tmpfs -o nr_inodes=2,size=1m none out 2> /dev/null; then
    at_end="umount $SCRATCH/out"
    fails disk "No space left on device"
  fi
fi

# A FIFO gets the first file segment only, and stays when that is not to be kept.
cat > fifo.lua <<'EOL'
assert(misc.sysprof.start({ mode = "C", path = "pipe", rotate_seconds = 0.1,
  keep = 1 }))
local began = os.clock()
while os.clock() - began < 0.5 do end
assert(misc.sysprof.stop())
EOL
read_pipe cat
"$luajit" fifo.lua > out.txt 2> err || fail "a FIFO: $(cat err)"
end_pipe
[ -n "$(find . -name "pipe.s*")" ] || fail "a FIFO: no segment: $(ls)"
[ -p pipe ] || fail "the FIFO is removed"
ok "a FIFO is never removed by rotation"
