-- Programs for jitdump.sh, and the check of their files: each field, and the
-- code and names of the traces that LuaJIT has. Steps: work STREAM FACTS;
-- refused; check DUMP MAP FACTS SESSIONS [cut].
local step = ...
local ffi = require("ffi")
ffi.cdef[[int getpid(void); int symlink(const char *, const char *); int fork(void);
int waitpid(int, int *, int); void _exit(int);]]
local pid = ffi.C.getpid()

local function slurp(path)
  local f = assert(io.open(path, "rb"))
  local s = f:read("*a")
  f:close()
  return s
end

---------------------------------------------------------------- programs

local function add(a, b)
  return a + b
end

local function sum(n)
  local t = 0
  for i = 1, n do
    t = add(t, i)
    if i % 7 == 0 then t = t - 1 end
  end
  return t
end

local function product(n)
  local t = 1
  for i = 1, n do t = t * i % 1009 end
  return t
end

local function tell(out)
  local util = require("jit.util")
  for number = 1, 100 do
    local i = util.traceinfo(number)
    if i then
      local code, address = util.tracemc(number)
      out:write(("%d %d %s\n"):format(number, address % 2^47,
        (code:gsub(".", function(c) return ("%02x"):format(c:byte()) end))))
    end
  end
end
jit.off(tell, true)

local function work(stream, facts)
  sum(1000)
  assert(misc.sysprof.start{mode = "C", path = stream, jitdump = true})
  product(1000)
  assert(misc.sysprof.stop())
  -- Again: the same files, which get the existing traces once more.
  assert(misc.sysprof.start{mode = "C", path = stream, jitdump = true})
  loadstring("local t = 0 for i = 1, 300 do t = t + i end", "=(odd\nname)")()
  assert(misc.sysprof.stop())
  local out = assert(io.open(facts, "w"))
  tell(out)
  out:close()
  print(pid)
end

-- Files of others are neither written nor removed.
local function refused()
  local map, dump = "/tmp/perf-" .. pid .. ".map", "jit-" .. pid .. ".dump"
  local function try(what, in_the_way)
    local ok, message, code = misc.sysprof.start{mode = "C", path = "r.ljp",
      jitdump = true}
    assert(ok == nil and code == 17, what .. ": started")
    assert(message:find(in_the_way, 1, true) and message:find("remove it"), message)
    assert(misc.sysprof.status().state ~= "running")
  end
  local victim = assert(io.open("victim", "w"))
  victim:write("precious")
  victim:close()
  assert(ffi.C.symlink("victim", map) == 0)
  try("a link", map)
  assert(os.remove(map))
  assert(ffi.C.symlink("new", map) == 0)
  try("a dangling link", map)
  assert(os.remove(map))
  assert(not io.open("new"))
  assert(io.open(dump, "w")):close()
  try("a file", dump)
  assert(slurp(dump) == "" and slurp("victim") == "precious")
  assert(not io.open(map), "the other file is left")
  assert(os.remove(dump))
  local ok, message = misc.profile.start{path = "r.ljp", jitdump = true, cpu = false}
  assert(not ok and message:find("jitdump"), message)
  ok, message = misc.sysprof.start{mode = "C", path = "r.ljp", jitdump = 1}
  assert(not ok and message:find("'jitdump' is 1, but must be true or false"), message)
  -- A session that fails for another reason leaves no files.
  ok = misc.sysprof.start{mode = "C", path = "no/such/folder", jitdump = true}
  assert(not ok and not io.open(map) and not io.open(dump))
  assert(misc.sysprof.start{mode = "C", path = "r.ljp", jitdump = true})
  assert(misc.sysprof.stop())
  -- A file that another program puts in their place stays as it is.
  assert(os.remove(dump))
  assert(io.open(dump, "w")):close()
  try("another file", dump)
  os.remove(map)
  os.remove(dump)
end

-- The child of a fork has files of its own.
local function forked()
  sum(1000)
  assert(misc.sysprof.start{mode = "C", path = "f.ljp", jitdump = true, fork = "follow"})
  local child = ffi.C.fork()
  if child == 0 then
    product(1000)
    misc.sysprof.stop()
    ffi.C._exit(0)
  end
  loadstring("local t = 0 for i = 1, 300 do t = t + i end", "=parent")()
  ffi.C.waitpid(child, nil, 0)
  assert(misc.sysprof.stop())
  print(pid, child)
end

-- Writes more than the file size limit allows.
local function large(stream)
  assert(misc.sysprof.start{mode = "C", path = stream, jitdump = true, interval = 20})
  for k = 1, 200 do
    local lines = {"local t, a, b, c = 0, 1, 2, 3 for i = 1, 100 do"}
    for n = 1, 60 do lines[#lines + 1] = ("t = t + a * %d.5 + i b = t - %d c = c + b * i"):format(n, k) end
    lines[#lines + 1] = "end return t, b, c"
    assert(loadstring(table.concat(lines, "\n"), "=large"))()
  end
  assert(misc.sysprof.stop())
  print(pid)
end

---------------------------------------------------------------- the check

local data, at
local function bytes(n)
  assert(at + n - 1 <= #data, "a record beyond the end")
  at = at + n
  return data:sub(at - n, at - 1)
end
local function number(n)
  local v = 0
  for i = n, 1, -1 do v = v * 256 + data:byte(at + i - 1) end
  at = at + n
  return v
end
local function text(limit)
  local stop = assert(data:find("\0", at, true), "a name without an end")
  assert(stop < limit, "a name beyond its record")
  local s = data:sub(at, stop - 1)
  at = stop + 1
  return s
end

local function check(dump, map, facts, cut)
  data, at = slurp(dump), 1
  assert(number(4) == 0x4a695444 and number(4) == 1, "magic, version")
  assert(number(4) == 40 and number(4) == 62 and number(4) == 0, "size, machine")
  local of = number(4)
  assert(dump:find("jit%-" .. of .. "%.dump$"), "the pid")
  local began = number(8)
  assert(number(8) == 0 and began > 0, "flags")
  local loads, lines, last, closed, before = {}, nil, began, false, 0
  while at <= #data do
    local start, id, size, time = at, number(4), number(4), number(8)
    local stop = start + size
    assert(not closed and stop - 1 <= #data, "after the end, or beyond it")
    assert(time >= last, "times go back")
    last = time
    if id == 2 then
      lines = {address = number(8), n = number(8)}
      local low = 0
      for i = 1, lines.n do
        local l = {address = number(8), line = number(4), other = number(4)}
        l.file = text(stop)
        assert(l.address >= low and l.other == 0 and #l.file > 0)
        assert(not l.file:find("%c"), "a name of several lines")
        low = l.address
        lines[i] = l
      end
    elseif id == 0 then
      local l = {pid = number(4), tid = number(4), vma = number(8),
        address = number(8), size = number(8), index = number(8)}
      l.name = text(stop)
      l.code = bytes(l.size)
      assert(l.pid == of and l.tid == of and l.vma == l.address)
      assert(lines and lines.address == l.address, "lines of another trace")
      assert(lines[1].address == l.address and
        lines[lines.n].address == l.address + l.size, "lines do not cover the code")
      l.lines, lines = lines, nil
      loads[#loads + 1] = l
    else
      assert(id == 3 and size == 16, "a record that we do not write")
      closed = true
    end
    assert(at == stop, "a record that is longer or shorter than it says")
  end
  assert(closed or cut, "not closed")
  -- The map has the same.
  local n = 0
  for line in io.lines(map) do
    n = n + 1
    local address, size, name = line:match("^(%x+) (%x+) (.+)$")
    local l = assert(loads[n], "more in the map")
    assert(tonumber(address, 16) == l.address and tonumber(size, 16) == l.size and
      name == l.name, line)
  end
  assert(n == #loads or cut and n >= #loads - 1, "less in the map")
  local names, found = {}, 0
  for _, l in ipairs(loads) do names[l.name] = (names[l.name] or 0) + 1 end
  for line in facts and io.lines(facts) or function() end do
    local trace, address, code = line:match("^(%d+) (%d+) (%x+)$")
    for _, l in ipairs(loads) do
      if l.address == tonumber(address) and l.name:find("^TRACE_" .. trace .. "::") then
        local same, hex = 0, l.code:gsub(".", function(c) return ("%02x"):format(c:byte()) end)
        assert(#hex == #code, "code of another length")
        for i = 1, #hex, 2 do same = same + (hex:sub(i, i + 1) == code:sub(i, i + 1) and 1 or 0) end
        -- LuaJIT patches a jump when it makes a side trace.
        assert(same >= #hex / 2 - 8, "other code")
        found = found + 1
        break
      end
    end
  end
  return loads, names, found
end

if step == "work" then
  work(select(2, ...))
elseif step == "refused" then
  refused()
elseif step == "forked" then
  forked()
elseif step == "large" then
  large(select(2, ...))
elseif step == "check" then
  local _, dump, map, facts = ...
  local loads, names, found = check(dump, map, facts)
  local all = 0
  for _ in io.lines(facts) do all = all + 1 end
  assert(found == all and all >= 4, "traces that LuaJIT has are not in it")
  local function has(pattern)
    for name in pairs(names) do
      if name:find(pattern) then return name end
    end
    error("no trace named " .. pattern)
  end
  assert(names[has("::sum@.*jitdump.lua:25$")] >= 2, "an existing trace is in each session")
  has("::product@.*:34$")
  has("::main chunk@%(odd%?name%):1$")
  -- The line of an inlined function, and that of its caller.
  for _, l in ipairs(loads) do
    if l.name:find("product@") then
      for _, line in ipairs(l.lines) do
        assert(line.line == 34 and line.file:find("jitdump.lua$"))
      end
    end
  end
  print(#loads .. " traces")
elseif step == "child" then
  local _, dump, map, wanted, unwanted = ...
  local _, names = check(dump, map)
  local all = {}
  for name in pairs(names) do all[#all + 1] = name end
  all = table.concat(all, "\n")
  assert(all:find(wanted, 1, true) and all:find("sum@", 1, true), all)
  assert(not all:find(unwanted, 1, true), all)
elseif step == "cut" then
  local _, dump, map = ...
  local loads = check(dump, map, nil, true)
  print(#loads)
end
