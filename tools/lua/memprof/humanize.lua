-- Prints a memory profile. config.human_readable: KiB, MiB and GiB instead of
-- bytes.
local M = {}

local UNITS = {"B", "KiB", "MiB", "GiB"}

local function bytes_text(bytes, config)
  local unit = 1
  while config.human_readable and bytes >= 1024 and unit < #UNITS do
    bytes = bytes / 1024
    unit = unit + 1
  end
  local whole = bytes == math.floor(bytes)
  return (whole and "%d%s" or "%.2f%s"):format(bytes, UNITS[unit])
end

-- The values of a table, largest first; equal ones by name.
local function sorted(list, size, name)
  local values = {}
  for _, value in pairs(list) do
    values[#values + 1] = value
  end
  table.sort(values, function(a, b)
    if a[size] ~= b[size] then
      return a[size] > b[size]
    end
    return a[name] < b[name]
  end)
  return values
end

function M.render(events, config)
  for _, event in ipairs(sorted(events, "num", "loc")) do
    print(("%s: %d events\t+%s\t-%s"):format(event.loc, event.num,
      bytes_text(event.alloc, config), bytes_text(event.free, config)))
    local overrides = {}
    for _, from in pairs(event.primary) do
      overrides[#overrides + 1] = "\t\t" .. from.loc
    end
    if overrides[1] then
      table.sort(overrides)
      print("\tOverrides:\n" .. table.concat(overrides, "\n") .. "\n")
    end
  end
end

function M.profile_info(events, config)
  for _, part in ipairs{{"ALLOCATIONS", "alloc"}, {"REALLOCATIONS", "realloc"},
    {"DEALLOCATIONS", "free"}} do
    print(part[1])
    M.render(events[part[2]], config)
    print("")
  end
end

-- deltas: see memprof.process.
function M.leak_info(deltas, config)
  local leaks = {}
  for site, delta in pairs(deltas) do
    if delta.dbytes > 0 then
      leaks[#leaks + 1] = {site = site, dbytes = delta.dbytes}
    end
  end
  print("HEAP SUMMARY:")
  for _, leak in ipairs(sorted(leaks, "dbytes", "site")) do
    local delta = deltas[leak.site]
    print(("%s holds %s: %d allocs, %d frees"):format(leak.site,
      bytes_text(leak.dbytes, config), delta.nalloc, delta.nfree))
  end
  print("")
end

-- The chunks of several lines, with numbered lines.
function M.aliases(symbols)
  local alias = symbols.alias
  if #alias == 0 then
    return
  end
  print("ALIASES:")
  for _, source in ipairs(alias) do
    local number = 0
    print(alias[source] .. ":")
    for line in source:gmatch("[^\n]+") do
      number = number + 1
      print(("%d\t| %s"):format(number, line))
    end
    print("\n")
  end
end

return M
