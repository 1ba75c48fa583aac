-- Makes traces with a known history, and compares LuaJIT's own view of them
-- with the stream. Two steps: work STREAM FACTS, then check DUMP FACTS.
local util = require("jit.util")
local step, stream, facts = ...

---------------------------------------------------------------- the program

local function hot(n)
  local t = 0
  for i = 1, n do
    t = t + i % 3
    if i % 7 == 0 then t = t - 1 end
  end
  return t
end

local function nyi(n)
  local t = 0
  for i = 1, n do
    local f = function() return i end -- cannot be compiled
    t = t + f()
  end
  return t
end

local function through(n) return (nyi(n)) end

local function stitched(n)
  local t = 0
  for i = 1, n do t = t + #debug.traceback() % 2 end -- left and resumed
  return t
end

local function short_lived(k)
  local code = ("local t = 0 for i = 1, 300 do t = t + i * %d end return t"):format(k)
  return loadstring(code, "=short" .. k)()
end

-- Writes LuaJIT's view of the traces that exist now.
local function tell(out, when)
  for number = 1, 200 do
    local i = util.traceinfo(number)
    if i then
      local code, address = util.tracemc(number)
      out:write(("%s %d %d %d %s %d %d\n"):format(when, number, i.nins, i.nexit,
        i.linktype:gsub(" ", "_"), #code, address % 2^47))
    end
  end
end

jit.off(tell)

local function work()
  local out = assert(io.open(facts, "w"))
  jit.opt.start("hotloop=20", "hotexit=5")
  hot(2000)
  tell(out, "before")
  assert(misc.sysprof.start{mode = "C", interval = 1, path = stream})
  through(300000)
  stitched(2000)
  for k = 1, 5 do short_lived(k) end
  tell(out, "middle")
  jit.flush(1)        -- the trace of hot; its code stays
  jit.off(nyi, true)  -- flushes the trace of nyi's closure, too
  collectgarbage() -- frees prototypes and traces of short_lived
  collectgarbage()
  jit.flush()
  hot(2000)
  tell(out, "after")
  out:close()
  assert(misc.sysprof.stop())
end

---------------------------------------------------------------- the check

local function fields(line)
  local r = {}
  for name, value in line:gmatch('(%w+_?%w*_?%w*)=(%S+)') do
    r[name] = tonumber(value) or value:gsub('"', "")
  end
  r.reason = line:match('reason="(.-)"')
  r.link_type = line:match('link_type="(.-)"')
  return r
end

local function read(path)
  local events, traces, protos, last = {}, {}, {}, nil
  for line in io.lines(path) do
    if line:find("^  trace%-event ") then
      last = fields(line)
      last.stack_text = {}
      events[#events + 1] = last
    elseif line:find("^    ") and last then
      table.insert(last.stack_text, (line:gsub("^%s+", "")))
    else
      last = nil
      if line:find("^  trace ") then
        local t = fields(line)
        traces[t.id] = t
      elseif line:find("^  proto ") then
        protos[fields(line).id] = line:match('name="(.-)"')
      end
    end
  end
  return events, traces, protos
end

-- The traces that are alive after the events of each stage are those that
-- LuaJIT has then, with all that LuaJIT knows about them. Returns the number of
-- traces in each stage.
local function check_stages(events, traces)
  local alive, stage = {}, nil
  local at = 1
  local function go_to(wanted) -- events up to a stage of the program
    while at <= #events do
      local e = events[at]
      if wanted == "before" and e.action ~= "exists" then break end
      if wanted == "middle" and e.action == "free" then break end
      if wanted == "middle" and e.action == "flush" then break end
      if e.action == "exists" or e.action == "stop" then
        local t = assert(traces[e.trace], "a trace that is not defined")
        alive[t.number] = t
      elseif e.action == "free" then
        alive[assert(traces[e.trace], "freed, never seen").number] = nil
      elseif e.action == "flush" and e.trace == 0 then
        alive = {}
      end
      at = at + 1
    end
  end
  local rows = {before = 0, middle = 0, after = 0}
  local function check_count()
    local count = 0
    for _ in pairs(alive) do count = count + 1 end
    assert(count == rows[stage], stage .. ": more traces than LuaJIT has")
  end
  for line in io.lines(facts) do
    local when, number, nins, nexit, link, size, address = line:match(
      "^(%w+) (%d+) (%d+) (%d+) (%S+) (%d+) (%d+)")
    if when ~= stage then
      if stage then check_count() end
      stage = when
      go_to(when)
    end
    rows[when] = rows[when] + 1
    local t = assert(alive[tonumber(number)], when .. ": no trace " .. number)
    assert(t.ir_count == tonumber(nins), "IR of " .. line)
    assert(t.snapshots == tonumber(nexit), "snapshots of " .. line)
    assert(t.code_size == tonumber(size), "code of " .. line)
    assert(t.link_type:gsub("[ -]", "_") == link:gsub("[ -]", "_"),
      t.link_type .. ", but " .. line)
    assert(tonumber(t.code_address) % 2^47 == tonumber(address), "address of " .. line)
  end
  assert(rows.before >= 2 and rows.middle >= rows.before + 5 and rows.after >= 2)
  return rows
end

-- Side traces name their parents.
local function check_parents(traces)
  local sides, joints = 0, 0
  for _, t in pairs(traces) do
    if t.parent ~= 0 and traces[t.parent].link_type == "stitch" then
      joints = joints + 1
      assert(t.root == 0 and t.parent_exit == 0, "a stitched trace is no side trace")
    elseif t.parent ~= 0 then
      sides = sides + 1
      assert(traces[t.parent] and traces[t.root], "parent or root not known")
      assert(t.parent_exit < traces[t.parent].snapshots, "no such exit")
    end
  end
  assert(sides >= 2, "no side traces")
  assert(joints >= 1, "no stitched traces")
end

-- LuaJIT uses numbers again; no id is used twice.
local function check_ids(events)
  local used = {}
  for _, e in ipairs(events) do
    if e.action == "stop" then
      assert(not used[e.trace], "an id twice")
      used[e.trace] = true
    end
  end
end

-- The reasons of aborts, and their places.
local function check_aborts(by, protos)
  local reasons = {}
  for _, e in ipairs(by.abort) do
    reasons[e.reason] = e
    assert(e.reason_number ~= 0 or e.reason:find("^error thrown"))
    assert(not e.reason:find("%%"), "a reason that is not filled in")
    assert(#e.stack_text >= 2, "an abort without a stack")
  end
  local a = assert(reasons["NYI: bytecode FNEW"], "no abort for the closure")
  assert(protos[a.proto] == "nyi" and a.line == 19)
  assert(a.stack_text[1]:find("nyi .*trace_events.lua:20"), a.stack_text[1])
  assert(a.stack_text[2]:find("through "), a.stack_text[2])
  local hit = false
  for _, e in ipairs(by.blacklist or {}) do
    hit = hit or protos[e.proto] == "nyi" and e.line == 19
  end
  assert(hit, "the loop of nyi is not blacklisted")
end

local function check()
  local events, traces, protos = read(stream)
  local n, by = {}, {}
  for _, e in ipairs(events) do
    n[e.action] = (n[e.action] or 0) + 1
    by[e.action] = by[e.action] or {}
    table.insert(by[e.action], e)
  end
  local rows = check_stages(events, traces)
  check_parents(traces)
  assert(n.exists == rows.before)
  check_ids(events)
  -- Each attempt ends.
  assert(n.start == n.stop + n.abort, "starts without an end")
  assert(n.free >= 7, "frees")
  assert(n.flush == 3, "jit.flush(1), jit.off(nyi), jit.flush()")
  assert(by.flush[1].trace == by.exists[1].trace, "another trace than 1")
  assert(protos[traces[by.flush[2].trace].proto] == "f", "not nyi's closure")
  assert(by.flush[3].trace == 0, "not all")
  check_aborts(by, protos)
  -- In order of time.
  for i = 2, #events do
    assert(events[i - 1].time_ns <= events[i].time_ns or
      events[i - 1].action == "exists", "events out of order")
  end
  print(("%d events, %d traces, %d aborts, %d frees"):format(#events, n.stop +
    n.exists, n.abort, n.free))
end

if step == "work" then work() else check() end
