-- Compiles all the time; then looks what samples that fell into the compiler
-- say about whom it worked for. Steps: work STREAM TIMER, check DUMP.
local step, path, timer = ...

local function work()
  local code = [[
    local function leaf(a, b) local c = a * b if c > 7 then c = c - a end return c end
    local function compiled(n)
      local t, s, u = 0, {}, ""
      for i = 1, n do
        t = t + leaf(i, t % 5) + leaf(t % 3, i) + leaf(i % 7, 2)
        s[i] = t
        if i % 50 == 0 then u = u .. i end
      end
      return t, u
    end
    return compiled
  ]]
  local function caller()
    return (assert(loadstring(code, "=generated"))()(120))
  end
  local function driver(seconds)
    local stop, n = os.clock() + seconds, 0
    repeat
      caller()
      n = n + 1
      if n % 50 == 0 then jit.flush() end
    until os.clock() > stop
    return n
  end
  jit.off(caller)
  jit.off(driver)
  jit.opt.start("hotloop=10", "hotexit=3")
  -- A function with JIT off gets hot once: the recorder refuses it. A sample that
  -- falls into that shows the driver's own stack.
  for _ = 1, 40 do driver(0) end
  local ok, message = misc.sysprof.start{mode = "C", interval = 0.1, path = path,
    timer = timer, max_overhead = 0}
  if not ok then
    print("not permitted: " .. message)
    return
  end
  local n = driver(0.5)
  assert(misc.sysprof.stop())
  print(n .. " times")
end

local function check()
  local seen, whole, all = {}, {}, 0
  local state, cut, frames
  local function judge()
    if state ~= "recorder" and state ~= "optimizer" and state ~= "assembler" then
      return
    end
    all = all + 1
    seen[state] = (seen[state] or 0) + 1
    -- leaf first: (leaf) compiled, caller, driver, work, main chunk
    local lua = {}
    for _, f in ipairs(frames) do
      local kind, name = f:match("^(%S+)%s+(.*)$")
      if kind == "Lua" or kind == "inlined" then lua[#lua + 1] = name end
    end
    local text = table.concat(lua, "; ")
    local good = cut == "whole" and text:find("compiled generated:%d+; caller %S+; driver %S+; work %S+; main chunk %S+$")
      and (text:find("^compiled") or text:find("^leaf"))
    whole[state] = (whole[state] or 0) + (good and 1 or 0)
    if not good then print(state .. ": " .. table.concat(frames, " | ")) end
  end
  for line in io.lines(path) do
    if line:find("^    ") then
      if state then frames[#frames + 1] = line:gsub("^%s+", "") end
    else
      if state then judge() end
      state, frames = nil, {}
      if line:find("^  sample ") then
        state = line:match('state="(.-)"')
        cut = line:match('cut="(.-)"')
      end
    end
  end
  for _, s in ipairs{"recorder", "optimizer", "assembler"} do
    io.write(("%s %d of %d; "):format(s, whole[s] or 0, seen[s] or 0))
  end
  print()
  assert(all > 100, "hardly any sample in the compiler")
  for _, s in ipairs{"recorder", "assembler"} do
    assert(seen[s] and seen[s] > 20, "none in the " .. s)
    assert(whole[s] == seen[s], "stacks of the " .. s .. " that are not whole")
  end
  assert((whole.optimizer or 0) == (seen.optimizer or 0), "stacks of the optimizer")
end

if step == "work" then work() else check() end
