-- heap_graph.lua FIRST LAST OBJECTS: for each seed builds a random heap, takes a
-- snapshot, and compares what it says of each object with what Lua's debug library
-- says: addresses, keys, values, weakness, metatables, environments, upvalues with
-- their values, frames with lines and locals of coroutines. LJPROF: the command.
local ffi = require("ffi")
local first, last, count = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
local ljprof = assert(os.getenv("LJPROF"))

local random = 1
local function rnd(n)
  random = (random * 16807) % 2147483647
  return random % n + 1
end

-- -- A random heap ---------------------------------------------------------------

local function make_coroutine(a, b)
  local co = coroutine.create(function(x, y)
    local inner = { x }
    local function deeper(n, what)
      local kept = what
      if n == 0 then
        coroutine.yield(kept, inner, y)
      else
        deeper(n - 1, what)
        return kept, n
      end
    end
    deeper(rnd(4), y)
    return inner, x
  end)
  coroutine.resume(co, a, b)
  return co
end

-- Once: each declaration of a struct is another C type, of which there are 65,536.
local struct = ffi.typeof("struct { int a; double b[3]; }")

local make = {
  function() return {} end,
  function(any) return { any(), any(), any() } end,
  function(any) return { id = any(), name = "name " .. rnd(50), [any()] = any() } end,
  function(any)
    local mode = ({ "k", "v", "kv", "x" })[rnd(4)]
    return setmetatable({ any(), x = any(), [any()] = any() }, { __mode = mode })
  end,
  function(any) return setmetatable({}, any("table")) end,
  function(any)
    local a, b = any(), any()
    return function() return a, b end, function(c) a = c return b end
  end,
  function(any) return setfenv(function() return x end, any("table")) end,
  function(any) return make_coroutine(any(), any()) end,
  function(any)
    local ud = newproxy(true)
    getmetatable(ud).__index = any()
    return debug.setfenv(ud, any("table"))
  end,
  function() return struct() end,
  function() return ("string %d"):format(rnd(1e6)) end,
  function(any) return { [1.5 * rnd(9)] = any(), [true] = any(), [-rnd(9)] = any() } end,
  function(any) return { [2 ^ (40 + rnd(20))] = any(), [io.write] = any() } end,
  function(any) return ("x"):gmatch(tostring(any())) end,
}

local function build(n)
  local all = { {} }
  local function any(kind)
    if kind == "table" then
      for _ = 1, 20 do
        local o = all[rnd(#all)]
        if type(o) == "table" and not getmetatable(o) then return o end
      end
      return {}
    end
    if rnd(6) == 1 then return rnd(1000) end
    return all[rnd(#all)]
  end
  while #all < n do
    local a, b = make[rnd(#make)](any)
    all[#all + 1] = a
    all[#all + 1] = b
  end
  -- Late references make cycles.
  for _ = 1, n / 4 do
    local o = all[rnd(#all)]
    if type(o) == "table" then rawset(o, rnd(3) == 1 and "link" or rnd(12), any()) end
  end
  return all
end

-- -- The walk with the debug library ---------------------------------------------

-- The address of an object itself; "%p" shows where its contents begin.
local headers = { userdata = 48, cdata = 16 }
local function name_of(o)
  local address = tonumber(ffi.cast("uintptr_t", ffi.cast("void *",
    tonumber(("%p"):format(o)))))
  return ("0x%x"):format(address - (headers[type(o)] or 0))
end

local collectable = { string = true, table = true, ["function"] = true, thread = true,
  userdata = true, cdata = true }
local bits = ffi.new("union { double d; uint64_t u; }")

local function key_name(k)
  local kind = type(k)
  if collectable[kind] then return name_of(k) end
  if kind == "number" and k == math.floor(k) and math.abs(k) <= 2 ^ 53 then
    return ("[%.0f]"):format(k)
  elseif kind == "number" then
    bits.d = k
    return "#" .. tostring(bits.u):gsub("ULL", "")
  end
  return tostring(k)
end

-- Calls put(HOW, TARGET) for each reference of o, and todo(OBJECT).
local function table_refs(t, put, todo)
  local mt = debug.getmetatable(t)
  if mt then put("metatable", name_of(mt)) todo(mt) end
  local mode = type(mt) == "table" and rawget(mt, "__mode")
  mode = type(mode) == "string" and mode or ""
  local weak_k, weak_v = mode:find("k"), mode:find("v")
  for k, v in next, t do
    local key, value = collectable[type(k)], collectable[type(v)]
    local how = ""
    if value and weak_v and type(v) ~= "string" then how = " weak" end
    if key and value and weak_k and type(k) ~= "string" then how = how .. " weak_key" end
    if key and not value and weak_k and type(k) ~= "string" then how = " weak" end
    if value then
      put("at " .. key_name(k) .. how, name_of(v))
      todo(v)
    elseif key then
      put("key" .. how, name_of(k))
    end
    if key then todo(k) end
  end
end

local function function_refs(f, put, todo)
  put("environment", name_of(debug.getfenv(f)))
  todo(debug.getfenv(f))
  local lua = debug.getinfo(f, "S").what ~= "C"
  for i = 1, 255 do
    local name, value = debug.getupvalue(f, i)
    if not name then break end
    local target = collectable[type(value)] and name_of(value) or "-"
    if lua then
      local id = ("%p"):format(debug.upvalueid(f, i))
      put("upvalue " .. i - 1, id)
      put("value of " .. id, target)
    elseif target ~= "-" then
      put("upvalue " .. i - 1, target)
    end
    if target ~= "-" then todo(value) end
  end
end

local function thread_refs(co, put, todo)
  for level = 0, 200 do
    local info = debug.getinfo(co, level, "fl")
    if not info then break end
    local line = info.currentline > 0 and info.currentline or 0
    put(("frame %d line %d"):format(level, line), name_of(info.func))
    todo(info.func)
    for i = 1, 250 do
      local name, value = debug.getlocal(co, level, i)
      if not name then break end
      if collectable[type(value)] and name:sub(1, 1) ~= "(" then
        put(("frame %d local %s"):format(level, name), name_of(value))
        todo(value)
      end
    end
  end
end

-- Of each object that root leads to: its type, and its references as a text.
local function walk(root)
  local seen, list, objects = { [_G] = true }, {}, {}
  local function todo(o)
    if collectable[type(o)] and not seen[o] then
      seen[o] = true
      list[#list + 1] = o
    end
  end
  todo(root)
  local i = 1
  while list[i] do
    local o, mine = list[i], {}
    local function put(how, target) mine[#mine + 1] = how .. " -> " .. target end
    local kind = type(o)
    if kind == "table" then
      table_refs(o, put, todo)
    elseif kind == "function" then
      function_refs(o, put, todo)
    elseif kind == "thread" then
      thread_refs(o, put, todo)
    elseif kind == "userdata" then
      local mt = debug.getmetatable(o)
      if mt then put("metatable", name_of(mt)) todo(mt) end
      put("environment", name_of(debug.getfenv(o)))
      todo(debug.getfenv(o))
    end
    table.sort(mine)
    objects[name_of(o)] = { type = kind, text = table.concat(mine, "\n") }
    i = i + 1
  end
  return objects, #list
end

-- -- The snapshot ------------------------------------------------------------------

local function field(line, key)
  -- Without patterns: most of the time goes into this function.
  local _, at = line:find(" " .. key .. "=", 1, true)
  if not at then return nil end
  if line:byte(at + 1) == 34 then -- a quotation mark
    return line:sub(at + 2, line:find('"', at + 2, true) - 1)
  end
  return line:sub(at + 1, (line:find(" ", at + 1, true) or 0) - 1)
end

local function flags(line)
  return (line:find(" weak=true") and " weak" or "")
    .. (line:find(" weak_key=true") and " weak_key" or "")
end

local how_text = {
  key = function(line) return "key" .. flags(line) end,
  field = function(line) return "at " .. field(line, "key") .. flags(line) end,
  item = function(line) return "at [" .. field(line, "number") .. "]" .. flags(line) end,
  ["number key"] = function(line) return "at #" .. field(line, "number") .. flags(line) end,
  ["boolean key"] = function(line)
    return "at " .. (field(line, "number") == "1" and "true" or "false") .. flags(line)
  end,
  metatable = function() return "metatable" end,
  environment = function(_, object) return object.type ~= "thread" and "environment" end,
  upvalue = function(line) return "upvalue " .. field(line, "number") end,
  frame = function(line, object)
    object.level = (object.level or -1) + 1
    return ("frame %d line %s"):format(object.level, field(line, "number"))
  end,
  ["local"] = function(line, object)
    return ("frame %d local %s"):format(object.level, field(line, "name"))
  end,
}
how_text["integer key"] = how_text.item

local function read_snapshot(path)
  local objects, values = {}, {}
  local dump = assert(io.popen(("'%s' dump %s"):format(ljprof, path)))
  for line in dump:lines() do
    if line:sub(1, 9) == "  object " then
      local address = field(line, "address")
      objects[address] = objects[address] or { type = field(line, "type"), refs = {} }
    elseif line:sub(1, 6) == "  ref " then
      local source, how, target = field(line, "object"), field(line, "how"),
        field(line, "target")
      local object = objects[source]
      local text = how_text[how] and how_text[how](line, object)
      if how == "value" then values[source] = target end
      if text then object.refs[#object.refs + 1] = text .. " -> " .. target end
      if how == "upvalue" then object.upvalues = object.upvalues or {}
        object.upvalues[#object.upvalues + 1] = target end
    end
  end
  dump:close()
  for _, object in pairs(objects) do
    for _, id in ipairs(object.upvalues or {}) do
      if objects[id] and objects[id].type == "upvalue" then
        object.refs[#object.refs + 1] = ("value of %s -> %s"):format(id, values[id] or "-")
      end
    end
    table.sort(object.refs)
    object.text = table.concat(object.refs, "\n")
  end
  return objects
end

local total, strong = 0, 0
for seed = first, last do
  random = seed
  local heap = build(count)
  collectgarbage() -- and no weak reference goes away while we walk
  collectgarbage("stop")
  local path = ("graph-%d.ljp"):format(seed)
  local r = assert(misc.memprof.snapshot { path = path, wait = true,
    in_place = seed % 2 == 0, strings = 0 })
  assert(r.bytes == r.heap_bytes, "the bytes")
  local wanted, n = walk(heap)
  local got = read_snapshot(path)
  for address, object in pairs(wanted) do
    local has = got[address]
    if not has or has.type ~= object.type or has.text ~= object.text then
      error(("seed %d, %s %s:\n--- Lua\n%s\n--- snapshot (%s)\n%s"):format(seed,
        object.type, address, object.text, has and has.type, has and has.text))
    end
    strong = strong + select(2, object.text:gsub("\n", "\n"))
  end
  total = total + n
  collectgarbage("restart")
  os.remove(path)
end
print(("%d objects, %d references"):format(total, strong))
