-- Decodes a profile in a format of Tarantool's profilers, and prints its sums.
-- It shares nothing with tools/lua, whose results it judges.
--
--   luajit tarantool_decode.lua FILE [cut]
--
-- ljm: a line KIND PLACE EVENTS BYTES for each place; ljp: STATE SAMPLES.
-- cut: the file may end anywhere.
local path, cut = ...
local data = assert(io.open(path, "rb")):read("*a")
local at = 1

local function byte()
  local b = data:byte(at)
  if not b then
    if cut then os.exit(0) end
    error("the file ends at byte " .. at - 1)
  end
  at = at + 1
  return b
end

local function number()
  local value, unit = 0, 1
  repeat
    local b = byte()
    value, unit = value + b % 128 * unit, unit * 128
  until b < 128
  return value
end

local function text()
  local n = number()
  local s = data:sub(at, at + n - 1)
  assert(#s == n, "a string ends behind the file")
  at = at + n
  return s
end

local function head(magic, version)
  local found = data:sub(at, at + 6)
  assert(found == magic .. string.char(version, 0, 0, 0),
    "no head of " .. magic .. " " .. version)
  at = at + 7
end

local names, lines, traces = {}, {}, {}

local function symbol(kind)
  if kind == 2 then
    local n, address, line = number(), number(), number()
    assert(n > 0 and names[address], "a trace without a function")
    traces[n] = ("TRACE %d %s:%d"):format(n, names[address], line)
    return
  end
  local address = number()
  assert(address > 0 and address < 2 ^ 53, "an address that no double holds")
  names[address] = text()
  lines[address] = kind == 0 and number() or nil
  assert(kind == 0 or kind == 1)
end

local function name(address)
  return names[address] or error(("no symbol at %#x"):format(address))
end

head("ljs", 3)
while true do
  local b = byte()
  if b == 128 then break end
  symbol(b)
end

local sums, order = {}, {}
local function count(key, events, bytes)
  if not sums[key] then
    sums[key] = {0, 0}
    order[#order + 1] = key
  end
  sums[key][1] = sums[key][1] + events
  sums[key][2] = sums[key][2] + bytes
end

local function place(source)
  if source == 1 then return "INTERNAL" end
  local n = number()
  if source == 4 then return traces[n] or error("no trace " .. n) end
  if source == 2 then
    assert(lines[n], "a C function as a Lua function")
    return name(n) .. ":" .. number()
  end
  assert(source == 3)
  return name(n)
end

local KINDS = {"alloc", "free", "realloc"}
local function memory()
  while true do
    local b = byte()
    if b == 128 then return end
    local kind, source = b % 4, math.floor(b / 4)
    if kind == 0 then
      symbol(source - 2)
    else
      local where = place(source)
      number() -- The address; the old one of a reallocation.
      local size = number()
      if kind == 3 then
        number()
        size = number() - size
      end
      count(KINDS[kind] .. " " .. where, 1, size)
    end
  end
end

local function samples()
  while true do
    local state = byte()
    if state == 128 then return end
    if state >= 10 then
      symbol(state - 10)
    elseif state == 9 then
      local n = number()
      number()
      number()
      count("9 " .. (traces[n] or error("no trace " .. n)), 1, 0)
    else
      local stack = {}
      if state >= 1 and state <= 3 then
        while true do
          local kind = byte()
          if kind == 128 then break end
          local n = number()
          stack[#stack + 1] = kind == 3 and "builtin " .. n or name(n)
          if kind == 1 then number() end
          assert(kind >= 1 and kind <= 3)
        end
      end
      while true do
        local n = number()
        if n == 0 then break end
        name(n)
      end
      count(state .. " " .. table.concat(stack, "<"), 1, 0)
    end
  end
end

if data:sub(at, at + 2) == "ljm" then
  head("ljm", 3)
  memory()
else
  head("ljp", 2)
  samples()
end
assert(at == #data + 1, "bytes follow the end")
table.sort(order)
for _, key in ipairs(order) do
  print(key, sums[key][1], sums[key][2])
end
