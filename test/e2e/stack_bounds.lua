-- How much stack a function takes with everything that it calls: the compiler's
-- own figures (-fstack-usage) along the calls in the linked library's code.
-- Calls through pointers are not followed; what they lead to is a root of its
-- own. Usage: luajit stack_bounds.lua FIGURES CODE CALLS ROOT=BYTES...
--   FIGURES  lines of the compiler's *.su files
--   CODE     objdump -d of the library
--   CALLS    what holds for calls that the loader binds when they are first
--            made:
--              bound   a session has bound them
--              binds   each may be made for the first time, which takes stack
--              early   there are none
--              begins  the root calls ljp_side_bind() before anything else
local figures, code, mode = arg[1], arg[2], arg[3]

-- Functions in assembly have no figures.
local bytes = {
  ljp_side_call = 24, ljp_registers_here = 8, ljp_saferead_word = 8,
  ljp_saferead_words = 8, ljp_saferead_equal = 8, ljp_saferead_same = 8,
  ljp_every_hook = 88, ljp_sampled_own_hook = 64, ljp_sampled_hook = 64,
  ljp_sampled_refused = 64,
}
-- Functions of other libraries get a generous figure.
local OTHER = 512
local others = {
  memcpy = 64, memmove = 64, memset = 64, memcmp = 64, strlen = 64,
  sigfillset = 64, sigdelset = 64, sigaddset = 64, sigandset = 64,
  __errno_location = 64, log = 128, expm1 = 128,
  snprintf = 2560, lj_debug_uvname = 64, lj_debug_line = 128,
}

-- The loader's own need: it saves all registers, 2.7 KiB with AVX-512.
local BINDING = 4096

-- These call each other for each segment, four at most (LJP_BELOW_DEEP).
local times = { below_follow = 4, ljp_below_put_together = 4 }

-- Hooks call these only while a session runs; the last one does nothing before
-- the first session.
local in_session = {
  ljp_trace_reason = true, ljp_chunk_name_get = true, proto_die = true,
  ljp_copy_notice = true,
}

-- A compiler may split a function: NAME.part.0, NAME.isra.0, NAME.cold.
local function plain(name)
  return (name:gsub("[.@].*", ""))
end

for line in io.lines(figures) do
  local name, n = line:match("^[^\t]*:([^:\t]+)\t(%d+)\t")
  if name then
    name = plain(name)
    bytes[name] = math.max(bytes[name] or 0, tonumber(n) * (times[name] or 1))
  end
end

-- lazy: the names in the section whose slots are bound at the first call. (The
-- slots of .plt.got are bound at load.)
local calls, first, lazy, at, section = {}, {}, {}, nil, nil
for line in io.lines(code) do
  section = line:match("^Disassembly of section (.*):$") or section
  local head = line:match("^%x+ <([^>+]+)>:$")
  if head then
    at = plain(head)
    calls[at] = calls[at] or {}
    if head:match("@plt$") and (section == ".plt" or section == ".plt.sec") then
      lazy[at] = true
    end
  elseif at then
    line = line:gsub("\taddr32 ", "\t")
    local how, to = line:match("\t([cj]%a+)%s.*<([^>+@]+)[^>]*>")
    if how and (how:match("^call") or how:match("^j")) then
      to = plain(to)
      if to ~= at and not to:match("_failed$") then
        calls[at][to] = true
        first[at] = first[at] or to
      end
    end
  end
end
assert(next(lazy), "no calls are bound lazily: is this the library's code?")

-- The deepest way down from a function, in bytes and in words. A result that
-- depends on what is on the path, because functions call each other, is not
-- kept.
local known = {}
local function deepest(name, path)
  if known[name] then
    return known[name][1], known[name][2], false
  end
  if path[name] then
    if not times[name] then
      error(name .. "() calls itself")
    end
    return 0, "", true
  end
  local own = bytes[name] or others[name] or OTHER
  if lazy[name] and not bytes[name] then
    if mode == "early" then
      error(table.concat(path, " ") .. ": the call of " .. name ..
        "() is not bound at load (ljp_bind_early in CMakeLists.txt)", 0)
    end
    own = own + (mode == "binds" and BINDING or 0)
  end
  path[name] = true
  path[#path + 1] = name
  local most, way, depends = 0, "", false
  local leaf = not bytes[name] or (mode == "early" and in_session[name])
  for to in pairs(leaf and {} or calls[name]) do
    local n, w, d = deepest(to, path)
    depends = depends or d
    if n > most then
      most, way = n, w
    end
  end
  path[name] = nil
  path[#path] = nil
  way = " " .. name .. ":" .. own .. way
  if not depends then
    known[name] = { own + most, way }
  end
  return own + most, way, depends
end

local failed
for i = 4, #arg do
  local name, limit = arg[i]:match("^([%w_]+)=(%d+)$")
  limit = tonumber(limit)
  if not bytes[name] then
    print("no figure for " .. name)
    failed = true
  elseif mode == "begins" and first[name] ~= "ljp_side_bind" then
    print(name .. " calls " .. tostring(first[name]) .. " first")
    failed = true
  else
    local n, way = deepest(name, {})
    print(("%s %s: %d of %d bytes:%s"):format(n <= limit and "ok" or "TOO MUCH",
      name, n, limit, way))
    failed = failed or n > limit
  end
end
os.exit(failed and 1 or 0)
