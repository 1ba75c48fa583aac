-- A program with children, for join_children.sh: each line of the file "plan" that
-- it has not read yet makes one. The first ones are there before it is joined.
local ffi = require("ffi")
ffi.cdef[[
int fork(void);
int getpid(void);
int usleep(unsigned);
int execvp(const char *, char *const *);
int waitpid(int, int *, int);
int kill(int, int);
void _exit(int);
]]
local C = ffi.C

local function round(n)
  local sum = 0
  for i = 1, n do sum = sum + i % 7 end
  return sum
end
local function spin() while true do round(1e5) end end

local function execute(words)
  local argv = ffi.new("char *[?]", #words + 1)
  for i, word in ipairs(words) do
    argv[i - 1] = ffi.new("char[?]", #word + 1, word)
  end
  C.execvp(words[1], argv)
  C._exit(127)
end

local function note(name, pid)
  local f = assert(io.open(name, "w"))
  f:write(pid)
  f:close()
end

local make = {
  spins = function() note("spins.pid", C.getpid()) spin() end,
  family = function() -- a child with a child of its own
    if C.fork() == 0 then note("inner.pid", C.getpid()) spin() end
    note("family.pid", C.getpid())
    spin()
  end,
  other = function() note("other.pid", C.getpid()) execute{"sleep", "60"} end,
  lua = function()
    note("lua.pid", C.getpid())
    execute{LUAJIT, "-e", [[local function round(n)
      local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum
    end while true do round(1e5) end]]}
  end,
  later = function() -- executes another program when it has been recorded
    note("later.pid", C.getpid())
    repeat round(1e5) until io.open("go")
    execute{LUAJIT, "-e", [[local function round(n)
      local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum
    end while true do round(1e5) end]]}
  end,
  stuck = function() -- cannot be joined, which takes ten seconds
    note("stuck.pid", C.getpid())
    execute{os.getenv("BUILD_DIR") .. "/bin/join_faulty", "wedged"}
  end,
  short = function() C._exit(0) end,
}

LUAJIT = arg[1]
local done = 0
while not io.open("over") do
  if io.open("become") then execute{"sleep", "60"} end
  local n = 0
  for what in io.lines("plan") do
    n = n + 1
    if n > done then
      done = n
      if C.fork() == 0 then make[what]() end
    end
  end
  for _ = 1, 20 do round(1e5) end
  while C.waitpid(-1, nil, 1) > 0 do end
end
