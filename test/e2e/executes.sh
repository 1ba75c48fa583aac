#!/bin/sh
# A recorded process that executes another program: each program has a profile
# of its own, none replaces another, `ljprof record` tells of all, and nothing
# else is left behind.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit

cat > again.lua << 'EOL'
local ffi = require("ffi")
ffi.cdef[[
int fork(void); int getpid(void); int waitpid(int, int *, int);
int access(const char *, int);
int execvp(const char *, const char *const *);
]]
local C = ffi.C
local luajit, how, count, file = arg[1], arg[2], tonumber(arg[3]), arg[4]

local works = {}
works[0] = function() local t = {} for i = 1, 1000 do t[i] = {i} end end
works[1] = function() local t = {} for i = 1, 1000 do t[i] = {i, i} end end
works[2] = function() local t = {} for i = 1, 1000 do t[i] = {i, i, i} end end
function image_0() works[0]() end
function image_1() works[1]() end
function image_2() works[2]() end
local work = _G["image_" .. count]

-- Works until the file is there, and some samples are surely in it.
local function until_there(path)
  local began = os.clock()
  repeat
    work()
    assert(os.clock() - began < 60, path)
  until C.access(path, 0) == 0
  local stop = os.clock() + 0.2
  repeat work() until os.clock() > stop
end

local function execute(...)
  local args = {...}
  local list = ffi.new("const char *[?]", #args + 1, args)
  list[#args] = nil
  C.execvp(args[1], list)
  error("not executed: errno " .. ffi.errno())
end

local own = file .. "." .. C.getpid()
if how == "again" then -- the process itself, twice
  until_there(count == 0 and file or own .. "-" .. count + 1)
  if count < 2 then
    execute(luajit, arg[0], luajit, how, tostring(count + 1), file)
  end
elseif how == "kept" then -- its first file segments are gone by then
  until_there(count == 0 and file .. ".s3" or own .. "-2.s3")
  if count < 1 then
    execute(luajit, arg[0], luajit, how, tostring(count + 1), file)
  end
elseif how == "child" then -- a child that has recorded
  if count == 0 then
    local pid = C.fork()
    if pid == 0 then
      until_there(file .. "." .. C.getpid())
      execute(luajit, arg[0], luajit, how, "1", file)
    end
    C.waitpid(pid, nil, 0)
  else
    until_there(own .. "-2")
  end
elseif how == "early" then -- children that execute at any moment
  for i = 1, 60 do
    local pid = C.fork()
    if pid == 0 then
      local stop = os.clock() + i * 0.0001
      repeat until os.clock() > stop
      execute("true")
    end
    C.waitpid(pid, nil, 0)
  end
end
EOL

# recorded FILE FUNCTION: the file has samples of this function only.
recorded() {
  "$ljprof" export --to collapsed "$1" -o - > stacks.txt 2> export.txt ||
    fail "$1: $(cat export.txt)"
  grep -q "$2" stacks.txt || fail "$1 has no $2: $(head -n 5 stacks.txt)"
  ! grep 'image_' stacks.txt | grep -qv "$2" || fail "$1 has more than $2"
  ok "$2 is in ${1%%[0-9]*}..."
}

# recorded_in_one IMAGE FILE...: at least one of the files has samples. The last
# segment may have begun just now, and exec may have cut it short.
recorded_in_one() {
  image=$1
  shift
  last=$(printf '%s\n' "$@" | sort -V | tail -n 1)
  for segment in "$@"; do
    "$ljprof" check "$segment" > check.txt 2>&1 || [ "$segment" = "$last" ] ||
      fail "$segment: $(cat check.txt)"
    "$ljprof" export --to collapsed "$segment" -o - > stacks.txt 2> export.txt ||
      continue
    recorded "$segment" "$image"
    return
  done
  fail "no samples in $*"
}

# nothing WHAT: no temporary file is left.
nothing() {
  same "$1: nothing else is left" "" "$(find . -name '*.ljp-*')"
}

"$ljprof" record -o again.ljp --timer posix --flush 20 -- \
  "$luajit" again.lua "$luajit" again 0 again.ljp 2> err || fail "again: $(cat err)"
recorded again.ljp image_0
recorded again.ljp.*-2 image_1
recorded again.ljp.*-3 image_2
grep -q ': 2 more programs: ' err ||
  fail "not told: $(cat err)"
nothing again

# What --force may replace is replaced.
echo old > forced.ljp
"$ljprof" record --force -o forced.ljp -- "$luajit" -e 'os.exit(0)' 2> err ||
  fail "force: $(cat err)"
"$ljprof" check forced.ljp > /dev/null || fail "force: not replaced"
same "--force: no other file" forced.ljp "$(echo forced.ljp*)"

"$ljprof" record -o kept.ljp --timer posix --flush 20 --rotate-seconds 0.1 \
  --keep 2 -- "$luajit" again.lua "$luajit" kept 0 kept.ljp 2> err ||
  fail "kept: $(cat err)"
[ ! -e kept.ljp ] || fail "kept: the first file is there: $(ls)"
recorded_in_one image_0 kept.ljp.s*
recorded_in_one image_1 kept.ljp.*-2.s*

"$ljprof" record --children -o child.ljp --timer posix --flush 20 -- \
  "$luajit" again.lua "$luajit" child 0 child.ljp 2> err || fail "child: $(cat err)"
set -- child.ljp.*[0-9]
same "child: files" 2 "$#"
recorded child.ljp.*-2 image_1
case $1 in
*-2) recorded "$2" image_0 ;;
*) recorded "$1" image_0 ;;
esac
grep -q ': 1 child process: ' err || fail "not told: $(cat err)"
grep -q ': 1 more program: ' err || fail "not told: $(cat err)"
nothing child

"$ljprof" record --children -o early.ljp --timer posix --flush 10 -- \
  "$luajit" again.lua "$luajit" early 0 early.ljp 2> err || fail "early: $(cat err)"
nothing "early ($(find . -name 'early.ljp.*' | wc -l) of 60 children recorded)"

# Where files need a temporary name, `ljprof record` removes what was left.
"$ljprof" record --children -o left.ljp -- sh -c "
  touch left.ljp.ljp-99999999-0 left.ljp.7.ljp-99999999-12 left.ljp.ljp-$$-0
  touch left.ljp.ljp-99999999 left.ljp.x.ljp-99999999-0
  exec '$luajit' -e 'os.exit(0)'" 2> err || fail "left: $(cat err)"
same "what is no temporary file of an ended process stays" "left.ljp \
left.ljp.ljp-$$-0 left.ljp.ljp-99999999 left.ljp.x.ljp-99999999-0 " \
  "$(find . -name 'left*' | sed 's,^./,,' | LC_ALL=C sort | tr '\n' ' ')"
