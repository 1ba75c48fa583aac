-- tarantool.lua unpack FILE.zst OUT: decompresses.
-- tarantool.lua compare LJPROF DUMP BASE: compares what ljprof says of a dump
-- with BASE.txt (the report of Tarantool's own tools), BASE.events.txt,
-- BASE.rawdump.txt, and with a decode of the dump made here.
local ffi = require("ffi")
local checks = dofile(arg[0]:gsub("[^/]+$", "checks.lua"))
local read = checks.read

local function same(what, wanted, got)
  checks.check(wanted == got, what .. ": wanted " .. tostring(wanted) ..
    ", got " .. tostring(got))
end

local function unpack_file(from, to)
  ffi.cdef[[
    unsigned long long ZSTD_getFrameContentSize(const void *src, size_t size);
    size_t ZSTD_decompress(void *to, size_t room, const void *src, size_t size);
  ]]
  local zstd = ffi.load("libzstd.so.1")
  local packed = read(from)
  local size = tonumber(zstd.ZSTD_getFrameContentSize(packed, #packed))
  local data = ffi.new("uint8_t[?]", size)
  same(from, size, tonumber(zstd.ZSTD_decompress(data, size, packed, #packed)))
  local f = assert(io.open(to, "wb"))
  f:write(ffi.string(data, size))
  f:close()
end

local function lines_of(command)
  local f = assert(io.popen(command))
  local text = f:read("*a")
  f:close()
  return text:gmatch("[^\n]+")
end

local ljprof, dump, base
local function report(options)
  local rows = {}
  for line in lines_of(("%s report --json --top 0 %s %s"):format(
      ljprof, options, dump)) do
    local name = line:match('^{"name":"(.-)","self_')
    if name then
      local row = { name = name:gsub('\\"', '"') }
      for key, value in line:gmatch('"([a-z_]+)":([0-9.]+)') do
        row[key] = tonumber(value)
      end
      row.stack = line:match('"stack":%[(.*)%]')
      rows[#rows + 1] = row
    end
  end
  return rows
end

-- A place as ljprof names it, in Tarantool's words.
-- LuaJIT's names of functions, by the names that ljprof shows.
local luajit_names = {}
for own, shown in read((arg[0]:gsub("test/e2e/[^/]*$",
    "parsers/profile/plain_names.c"))):gmatch('{"([^"]*)", "([^"]*)"}') do
  luajit_names[shown] = own
end
local function their_name(name)
  if luajit_names[name] then return luajit_names[name] end
  local trace, start = name:match("^trace (%d+) (.*)$")
  if trace then
    return ("TRACE [%s] started at %s"):format(trace, start)
  end
  return (name:gsub('^%[string "(.*)"%]', "%1"))
end
local function plain(place)
  return (place:gsub(":0x%x+$", ""):gsub("@", ""))
end

-- -- A decoder of its own -------------------------------------------------

local function bytes_of(data)
  local r = { at = 1 }
  function r.byte()
    r.at = r.at + 1
    return data:byte(r.at - 1)
  end
  function r.number()
    local n, unit = 0, 1
    while true do
      local b = r.byte()
      n = n + b % 128 * unit
      if b < 128 then return n end
      unit = unit * 128
    end
  end
  function r.text(n)
    n = n or r.number()
    r.at = r.at + n
    return data:sub(r.at - n, r.at - 1)
  end
  return r
end

-- The names that symbols give to keys.
local function names_of(r)
  local s = { protos = {}, traces = {} }
  local c, sorted, aliases, alias_count = {}, nil, {}, 0
  function s.read(kind)
    local key = r.number()
    if kind == 0 then
      local chunk = r.text()
      r.number()
      if chunk:find("\n") and not aliases[chunk] then
        alias_count = alias_count + 1
        aliases[chunk] = "function_alias_" .. alias_count
      end
      s.protos[key] = aliases[chunk] or chunk:gsub("^@", "")
    elseif kind == 1 then
      if not c[key] then sorted = nil end
      c[key] = r.text()
    else
      local proto = r.number()
      s.traces[key] = ("TRACE [%d] started at %s:%d"):format(key,
        s.protos[proto], r.number())
    end
  end
  function s.c(address)
    if not sorted then
      sorted = {}
      for key in pairs(c) do sorted[#sorted + 1] = key end
      table.sort(sorted)
    end
    local low, high = 0, #sorted
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if sorted[middle] <= address then low = middle else high = middle - 1 end
    end
    return low > 0 and c[sorted[low]]
  end
  function s.place(source)
    if source == 1 then return "INTERNAL" end
    local key = r.number()
    if source == 2 then return s.protos[key] .. ":" .. r.number() end
    return source == 3 and s.c(key) or s.traces[key]
  end
  return s
end

local function decode_memory(data)
  local r = bytes_of(data)
  local names = names_of(r)
  same("magic", "ljs\3\0\0\0", r.text(7))
  for head in r.byte do
    if head == 0x80 then break end
    names.read(head)
  end
  same("magic", "ljm\3\0\0\0", r.text(7))
  local kinds, counts, live, bytes = { "ALLOC", "FREE", "REALLOC" }, {}, {}, {}
  local sources, doubtful = { "INT", "LFUNC", "CFUNC", "TRACE" }, {}
  for head in r.byte do
    if head == 0x80 then break end
    local kind, source = head % 4, math.floor(head / 4)
    local what = (kinds[kind] or "SYMTAB") .. "/" .. sources[source]
    counts[what] = (counts[what] or 0) + 1
    local place = kind > 0 and names.place(source) or names.read(source - 2)
    if kind >= 2 then
      local old = live[r.number()]
      r.number()
      if kind == 3 and (not old or old[1] ~= place) then
        doubtful[place], doubtful[old and old[1] or place] = true, true
      end
      if old then
        bytes[old[1]] = bytes[old[1]] - old[2]
        live[old[3]] = nil
      end
    end
    if kind % 2 == 1 then
      local address, n = r.number(), r.number()
      live[address] = { place, n, address }
      bytes[place] = (bytes[place] or 0) + n
    end
  end
  same("all is read", #data, r.at - 1)
  return counts, bytes, doubtful
end

-- -- memprof --------------------------------------------------------------

-- The sums of a section of their report by place.
local function their_sums(text, section, next_section)
  local sums = {}
  local part = text:match("\n" .. section .. "\n(.-)\n" .. next_section)
  for line in part:gmatch("[^\n]+") do
    local place, n, plus, minus =
      line:match("^(%S.*): (%d+) events\t%+(%d+)B\t%-(%d+)B$")
    if place then
      local sum = sums[plain(place)] or { 0, 0, 0 }
      sums[plain(place)] = { sum[1] + n, sum[2] + plus, sum[3] + minus }
    end
  end
  return sums
end

local function compare_sums(what, theirs, ours)
  for place, sum in pairs(theirs) do
    local mine = ours[place] or {}
    for i = 1, 3 do
      same(("%s, %s, number %d"):format(what, place, i), sum[i], mine[i] or 0)
    end
  end
  for place, sum in pairs(ours) do
    checks.check(theirs[place] or sum[1] == 0, what .. ": " .. place ..
      " is not in their report")
  end
end

local function compare_memory()
  local text = "\n" .. read(base .. ".txt")
  local alloc, realloc, free = {}, {}, {}
  for _, row in ipairs(report("--by line")) do
    local place = their_name(row.name)
    alloc[place] = { row.self_objects, row.self_bytes - row.realloc_bytes, 0 }
    realloc[place] = { row.reallocs, row.realloc_bytes, row.realloc_old_bytes }
    free[place] = { row.frees, 0, row.free_bytes }
  end
  compare_sums("allocations", their_sums(text, "ALLOCATIONS", "REALLOC"), alloc)
  compare_sums("reallocations", their_sums(text, "REALLOCATIONS", "DEALLOC"), realloc)
  compare_sums("deallocations", their_sums(text, "DEALLOCATIONS", "HEAP"), free)

  -- What is live. When a place reallocates another one's block, their report
  -- leaves the block's bytes with that other place, and takes them from the new
  -- one at the free; blocks of before the session it never counts. So only
  -- places without such blocks are right there.
  local counts, bytes, doubtful = decode_memory(read(dump))
  local live = {}
  for _, row in ipairs(report("--live --by line")) do
    live[their_name(row.name)] = row.self_bytes
  end
  for place, n in pairs(bytes) do same("live at " .. place, n, live[place] or 0) end
  for place in pairs(live) do checks.check(bytes[place], "live at " .. place) end
  local compared = 0
  for place, n in text:match("\nHEAP SUMMARY:\n(.*)"):gmatch(
      "([^\n]-) holds (%d+)B:") do
    if not doubtful[plain(place)] then
      same("their live at " .. place, tonumber(n), live[plain(place)])
      compared = compared + 1
    end
  end
  checks.check(compared > 2, "places that are compared")

  local by_dump = {}
  for line in lines_of(("%s dump %s"):format(ljprof, dump)) do
    local kind, source = line:match('^(%l+) offset=%d+ source="(%a+)"')
    if kind then
      source = ({ INTERNAL = "INT", Lua = "LFUNC", C = "CFUNC",
        trace = "TRACE" })[source]
      local what = kind:upper() .. "/" .. source
      by_dump[what] = (by_dump[what] or 0) + 1
    end
  end
  local expected = 0
  for what, n in read(base .. ".events.txt"):gmatch("(%u+/%u+)=(%d+)") do
    same("events " .. what, tonumber(n), counts[what])
    if not what:find("SYMTAB") then
      same("dump " .. what, tonumber(n), by_dump[what])
      expected = expected + 1
    end
  end
  checks.check(expected > 2, "kinds of events")
end

-- -- sysprof --------------------------------------------------------------

-- The samples as BASE.rawdump.txt writes them, by ljprof's dump.
local function dumped_samples()
  local protos, traces, c, starts = {}, {}, {}, {}
  local samples, hosts, count = {}, 0, 0
  local function floor_name(address)
    local best
    for i = 1, #starts do
      if starts[i] <= address and (not best or starts[i] > best) then
        best = starts[i]
      end
    end
    return c[best]
  end
  for line in lines_of(("%s dump --json %s"):format(ljprof, dump)) do
    local kind = line:match('"kind":"([%a ]+)"')
    if kind == "Lua function" then
      protos[line:match('"proto":"(0x%x+)"')] = line:match('"chunk":"(.-)"')
    elseif kind == "C function" then
      local address = tonumber(line:match('"address":"(0x%x+)"'))
      c[address] = line:match('"name":"(.-)"')
      starts[#starts + 1] = address
    elseif kind == "trace" then
      local number, proto, at =
        line:match('"trace":(%d+),"proto":"(0x%x+)","line":(%d+)')
      traces[number] = ("TRACE [%s] started at %s:%s"):format(number,
        protos[proto], at)
    end
    local state = line:match('"state":"(%u+)"')
    if state then
      local stack = {}
      for frame in (line:match('"guest":%[(.-)%]') or ""):gmatch("{(.-)}") do
        local proto = frame:match('"proto":"(0x%x+)"')
        local address = frame:match('"function":"(0x%x+)"')
        local at = frame:match('"line":(%d+)') or "-9223372036854775808"
        table.insert(stack, 1, proto and protos[proto] .. ":" .. at or
          address and "C:" .. floor_name(tonumber(address)) or
          "FF:" .. frame:match('"name":"(.-)"'))
      end
      local text = ("%s lua=[%s]"):format(state, table.concat(stack, ";"))
      if state == "TRACE" then
        local number, proto, at =
          line:match('"trace":(%d+),"proto":"(0x%x+)","line":(%d+)')
        text = ("TRACE %s proto %s:%s | %s"):format(number, protos[proto], at,
          traces[number])
      end
      samples[text] = (samples[text] or 0) + 1
      count = count + 1
      for _ in (line:match('"host":%[(.-)%]') or ""):gmatch('"') do
        hosts = hosts + 0.5
      end
    end
  end
  return samples, count, hosts
end

-- A frame of a stack of the report, as the rawdump has it; nil: of the host.
local function guest_frame(name, guests)
  local file, line = name:match("^function (.*):(%d+)$")
  if file then return ("@%s:%s"):format(file, line) end
  file = name:match("^main chunk (.*)$")
  if file then return ("@%s:0"):format(file) end
  local trace, start = name:match("^trace (%d+) (.*)$")
  if trace then return ("TRACE [%s] started at @%s"):format(trace, start) end
  return guests[luajit_names[name] or name]
end

local function compare_samples()
  local dumped, count, hosts = dumped_samples()
  local wanted, stacks, guests, states = {}, {}, {}, {}
  local total, per_sample
  for line in read(base .. ".rawdump.txt"):gmatch("[^\n]+") do
    local n, text = line:match("^(%d+)\t(.*)$")
    if n then
      wanted[text] = tonumber(n)
      local stack = text:match("lua=%[(.*)%]") or text:match("| (.*)$")
      stacks[stack] = (stacks[stack] or 0) + n
      states[text:match("^%u+")] = (states[text:match("^%u+")] or 0) + n
      for frame in stack:gmatch("[^;]+") do
        local other = frame:match("^FF:(.*)") or frame:match("^C:(.*)") or
          frame:match("^([^@].*):%-")
        if other then guests[other] = frame end
      end
    else
      total, per_sample =
        line:match("^samples\t(%d+)\thost frames/sample\t([%d.]+)")
    end
  end
  same("samples", tonumber(total), count)
  checks.check(math.abs(hosts / count - per_sample) < 1e-9, "host frames")
  for text, n in pairs(wanted) do same(text, n, dumped[text]) end
  for text in pairs(dumped) do checks.check(wanted[text], text) end

  -- The report has the same stacks, host frames in their own order among them.
  local theirs, ours, mine = {}, {}, {}
  for line in read(base .. ".txt"):gmatch("[^\n]+") do
    local stack, n = line:match("^(.*)\t(%d+)$")
    stack = stack:gsub(":0x%x+;", ";"):gsub(";$", "")
    theirs[stack] = (theirs[stack] or 0) + n
  end
  for _, row in ipairs(report("--native --by stack")) do
    local guest, host = {}, {}
    for name in row.stack:gmatch('"(.-)"') do
      local frame = guest_frame(name, guests)
      if frame then
        table.insert(guest, 1, frame)
      elseif name ~= "(no stack)" then
        table.insert(host, 1, name)
      end
    end
    guest, host = table.concat(guest, ";"), table.concat(host, ";")
    mine[guest] = (mine[guest] or 0) + row.self_samples
    ours[host] = (ours[host] or 0) + row.self_samples
  end
  for stack, n in pairs(stacks) do same("guest " .. stack, n, mine[stack]) end
  for stack in pairs(mine) do checks.check(stacks[stack], "guest " .. stack) end
  for stack, n in pairs(theirs) do same("host " .. stack, n, ours[stack]) end
  for stack in pairs(ours) do checks.check(theirs[stack], "host " .. stack) end
  local names = { LFUNC = "Lua", FFUNC = "builtin", INTERP = "interpreter",
    TRACE = "compiled" }
  for _, row in ipairs(report("--by state")) do
    for state, name in pairs(names) do
      if name == row.name then
        same("state " .. state, states[state], row.self_samples)
        states[state] = nil
      end
    end
  end
  same("states that are left", nil, next(states))
end

if arg[1] == "unpack" then
  unpack_file(arg[2], arg[3])
else
  ljprof, dump, base = arg[2], arg[3], arg[4]
  if dump:find("memprof") then compare_memory() else compare_samples() end
  print(checks.count .. " comparisons")
end
