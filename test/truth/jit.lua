-- Compiled programs whose shares are known. They consist of equal steps, each
-- of which needs the result of the one before. So a processor spends the same
-- time in each step, and does everything else at the same time.
--
--   jit.lua CASE SECONDS INTERVAL TIMER FILE FUNCTIONS LINES
--
-- Writes the profile and two tables of "part seconds frame" (truth_judge), one
-- of functions and one of lines. The comment "--> CASE STEPS" at the end of a
-- line says how many steps the line takes in one round of that case.
local case, seconds, interval, timer, file, functions, lines = ...
local source = arg[0]
local session = dofile((source:gsub("[^/]+$", "session.lua")))
local cases = {}

-- Functions that call functions, with work at each level.
local function chain_h(x)
  x = 3 / (x + 1) --> chain 2
  x = 3 / (3 / (3 / (x + 1) + 1) + 1) --> chain 6
  return x
end
local function chain_g(x)
  x = chain_h(x)
  x = 3 / (3 / (x + 1) + 1) --> chain 2
  return (chain_h(x))
end
local function chain_f(x)
  x = 3 / (3 / (x + 1) + 1) --> chain 2
  x = chain_g(x)
  x = 3 / (x + 1) --> chain 1
  x = 3 / (3 / (x + 1) + 1) --> chain 2
  return x
end
function cases.chain(n)
  local x = 1
  for _ = 1, n do
    x = chain_f(x)
    x = 3 / (3 / (3 / (x + 1) + 1) + 1) --> chain 3
  end
  return x
end

-- Branches: side traces, one of which starts inside an inlined function. Four
-- iterations of the loop are a round. (When a trace begins, it loads the value
-- from memory, which costs little compared with the steps.)
local function sides_left(x)
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 6
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 6
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 6
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 6
  return x
end
local function sides_right(x, i)
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 18
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 18
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 18
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 18
  if i % 4 == 1 then
    x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 6
    x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 6
    x = 3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) --> sides 4
  end
  return x
end
function cases.sides(n)
  local x, left, right = 1, sides_left, sides_right
  for i = 1, n * 4 do
    if i % 4 == 0 then
      x = left(x)
    else
      x = right(x, i)
    end
    x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 24
    x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 24
    x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 24
    x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> sides 24
  end
  return x
end

-- Nested loops: each is a trace of its own; other traces connect them.
local function loops_few(x)
  for _ = 1, 50 do
    x = 3 / (3 / (x + 1) + 1) --> loops 200
  end
  return x
end
local function loops_many(x)
  for _ = 1, 80 do
    x = 3 / (3 / (x + 1) + 1) --> loops 160
    x = 3 / (3 / (3 / (x + 1) + 1) + 1) --> loops 240
  end
  return x
end
function cases.loops(n)
  local x = 1
  for _ = 1, n do
    for _ = 1, 2 do
      x = loops_few(x)
    end
    x = loops_many(x)
  end
  return x
end

-- Methods, fields, upvalues, metamethods, a function with varargs, pcall.
local Point = {}
Point.__index = Point
local add = 1
function Point:move()
  local x = self.x
  x = 3 / (3 / (x + add) + add) --> objects 2
  self.x = x
end
Point.__add = function(p, d)
  p.x = 3 / (3 / (3 / (p.x + d) + d) + d) --> objects 3
  return p
end
local function objects_any(...)
  local x, d = ...
  return 3 / (x + d) --> objects 1
end
local function objects_safe(x)
  return 3 / (3 / (3 / (x + 1) + 1) + 1) --> objects 3
end
local function objects_maker(d)
  return function(x)
    x = 3 / (3 / (x + d) + d) --> objects 2
    return 3 / (x + d) --> objects 1
  end
end
local objects_closure = objects_maker(1)
function cases.objects(n)
  local p, x = setmetatable({ x = 1 }, Point), 1
  for _ = 1, n do
    p.x = x
    p:move()
    p = p + 1
    x = objects_any(p.x, 1)
    local _, y = pcall(objects_safe, x)
    x = objects_closure(y)
  end
  return x
end

-- Tail calls, which are compiled as loops. One loop consists of two functions.
local function tails_alone(x, n)
  if n == 0 then
    return x
  end
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> tails 300
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> tails 300
  return tails_alone(x, n - 1)
end
local tails_pong
local function tails_ping(x, n)
  if n == 0 then
    return x
  end
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> tails 300
  return tails_pong(x, n - 1)
end
function tails_pong(x, n)
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> tails 300
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> tails 300
  x = 3 / (3 / (3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1) + 1) + 1) --> tails 300
  return tails_ping(x, n)
end
function cases.tails(n)
  local x = 1
  for _ = 1, n do
    x = tails_alone(x, 50)
    x = tails_ping(x, 50)
  end
  return x
end

-- Calls out of the trace into libm: a call is a step.
local exp = math.exp
local function calls_one(x)
  return exp(x) * -0.5 --> calls 1
end
local function calls_three(x)
  x = exp(x) * -0.5 --> calls 1
  return exp(exp(x) * -0.5) * -0.5 --> calls 2
end
function cases.calls(n)
  local x = 1
  for _ = 1, n do
    x = calls_one(x)
    x = calls_three(x)
  end
  return x
end

local function run(n)
  return cases[case](n)
end
-- Each round lasts some milliseconds.
local rounds, x = 1, 0
local function spent(n)
  local began = os.clock()
  x = x + run(n)
  return os.clock() - began
end
for _ = 1, 100 do
  run(10)
end
while spent(rounds) < 0.002 do
  rounds = rounds * 2
end

session(file, interval, timer)
local began = os.clock()
repeat
  run(rounds)
until os.clock() - began > tonumber(seconds)
local all = os.clock() - began
assert(misc.sysprof.stop())

-- Reads the steps from the comments.
local steps, total, of_function, order = {}, 0, {}, {}
local number, name = 0, nil
for line in io.lines(source) do
  number = number + 1
  name = line:match("^local function ([%w_]+)") or
    line:match("^function [%w_]+[.:]([%w_]+)") or
    line:match("^function ([%w_]+)") or line:match("^Point.(__add)") or
    line:match("^  return function%(") and "function:" .. number or name
  local of, count = line:match("%-%-> (%w+) (%d+)$")
  if of == case then
    steps[#steps + 1] = { name = name, line = number, count = tonumber(count) }
    total = total + count
    if not of_function[name] then
      order[#order + 1] = name
    end
    of_function[name] = (of_function[name] or 0) + count
  end
end
local out = assert(io.open(functions, "w"))
for _, f in ipairs(order) do
  out:write(("%s\t%.9f\t%s %s\n"):format(f, of_function[f] / total * all, f,
    source))
end
out:write("other\t0\t\n")
out:close()
out = assert(io.open(lines, "w"))
for _, s in ipairs(steps) do
  out:write(("%s:%d\t%.9f\t%s %s:%d\n"):format(s.name, s.line,
    s.count / total * all, s.name, source, s.line))
end
out:write("other\t0\t\n")
out:close()
