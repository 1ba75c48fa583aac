-- Coroutines that make, resume and drop each other at random, with errors, yields and
-- tracebacks: all that they are told, line by line.

local seed, steps, alive
local function random(n)
  seed = seed * 16807 % 2147483647
  return seed % n + 1
end
local function chance(n) return random(n) == 1 end

local function say(...)
  local words = {}
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    words[i] = type(value) == "string" and value or
      (type(value) == "number" or type(value) == "boolean") and tostring(value) or
      type(value)
  end
  print(table.concat(words, " "))
end

-- Values to pass: none, a few with holes, or many.
local function some()
  local count, values = random(6) - 1, {}
  for i = 1, count do values[i] = random(100) end
  if chance(3) then values[1] = nil end
  return unpack(values, 1, count == 5 and 60 or count)
end

local act
local function body(depth)
  return function(...)
    say("begins at", depth, select("#", ...))
    act(depth)
    if chance(4) then error("thrown at " .. depth, random(3) - 1) end
    return some()
  end
end

local acts = {
  function(depth)
    local co = coroutine.create(body(depth + 1))
    alive[#alive + 1] = co
    if depth < 15 then say("new", coroutine.resume(co, some())) end
  end,
  function(depth)
    local co = alive[random(#alive + 1)]
    if co and depth < 40 then
      say("old", coroutine.status(co))
      say("old", coroutine.resume(co, some()))
      say("old", coroutine.status(co))
    end
  end,
  function(depth)
    local f = coroutine.wrap(body(depth + 1))
    if depth < 15 then
      say("wrapped", pcall(f, some()))
      say("wrapped", pcall(f))
    end
    alive[#alive + 1] = coroutine.create(f)
  end,
  function(depth)
    if depth > 0 then say("yields", coroutine.yield(some())) end
  end,
  function(depth)
    say("pcall", pcall(function() act(depth) error("caught") end))
  end,
  function(depth)
    say("xpcall", xpcall(function()
      act(depth)
      return nil + 1
    end, function(message)
      return (debug.traceback(message, random(2)):gsub("0x%x+", "ADDR"))
    end))
  end,
  function()
    for a, b in coroutine.wrap(function()
      for i = 1, random(4) do coroutine.yield(i, i * i) end
    end) do
      say("loop", a, b)
    end
  end,
  function()
    if #alive > 3 then table.remove(alive, random(#alive)) end
    if chance(5) then collectgarbage() end
  end,
  function()
    say("sort", pcall(table.sort, { 3, 2, 1 }, function(a, b)
      if chance(5) then error("unsorted", 0) end
      return select(2, coroutine.resume(coroutine.create(function()
        return a < b
      end)))
    end))
  end,
}
function act(depth)
  for _ = 1, random(5) do
    steps = steps + 1
    if steps > 1500 then return end
    acts[random(#acts)](depth)
  end
end

for first = 1, 8 do
  seed, steps, alive = first * 7919, 0, {}
  for _ = 1, 20 do
    say("tree", pcall(coroutine.wrap(body(1))))
    act(0)
  end
end
