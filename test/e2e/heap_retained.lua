-- heap_retained.lua FIRST LAST: for each seed builds random graphs of tables (plain,
-- with weak keys, with weak values), closures and strings, and takes a snapshot. Then,
-- in each graph, cuts all references to one object, and asks the collector what went.
-- One collection frees what the object retains; further ones also what it held as a
-- weak key. `ljprof heap` must have said so. LJPROF: the command.
jit.off()
local first, last = tonumber(arg[1]), tonumber(arg[2])
local ljprof = assert(os.getenv("LJPROF"))
local GRAPHS, NODES, EDGES = 20, 24, 48
local new_table = require("table.new")

local random = 1
local function rnd(n)
  random = (random * 16807) % 2147483647
  return random % n + 1
end

local function closure(a, b)
  return function() return a, b end
end

-- How node i may refer to node j: returns what undoes that, which holds neither.
local function item(nodes, i, j)
  local k = #nodes[i] + 1
  nodes[i][k] = nodes[j]
  return function(from) from[k] = false end
end

local kinds = {
  plain = function(nodes, i, j)
    if rnd(4) > 1 then return item(nodes, i, j) end
    nodes[i][nodes[j]] = true
    return function(from) from[nodes[j]] = nil end
  end,
  weak_keys = function(nodes, i, j)
    local key = rnd(NODES)
    if rnd(3) == 1 or nodes[i][nodes[key]] ~= nil then return item(nodes, i, j) end
    nodes[i][nodes[key]] = nodes[j]
    return function(from)
      if nodes[key] then from[nodes[key]] = false end
    end
  end,
  weak_values = item,
  closure = function(nodes, i, j)
    local k = rnd(2)
    if select(2, debug.getupvalue(nodes[i], k)) then return end
    debug.setupvalue(nodes[i], k, nodes[j])
    return function(from) debug.setupvalue(from, k, false) end
  end,
}

local names = { "plain", "plain", "plain", "weak_keys", "weak_keys", "weak_values", "closure" }

-- A graph: its root, its nodes (held weakly), for each node what cuts it off.
local function build(id)
  local nodes, kind, cuts = setmetatable(new_table(NODES, 0), { __mode = "v" }), {}, {}
  local root, alive = { "root " .. id }, {}
  for i = 1, NODES do
    kind[i] = names[rnd(#names)]
    local mode = kind[i]:match("^weak_(.)")
    nodes[i] = kind[i] == "closure" and closure(false, false)
      or mode and setmetatable({}, { __mode = mode })
      or { ("own %d of %d "):format(i, id):rep(rnd(9)) }
    alive[i] = nodes[i]
    cuts[i] = {}
  end
  for j = 1, NODES do
    if rnd(4) == 1 or j == 1 then
      local k = #root + 1
      root[k] = nodes[j]
      cuts[j][#cuts[j] + 1] = function() root[k] = false end
    end
  end
  for _ = 1, EDGES do
    local i, j = rnd(NODES), rnd(NODES)
    local cut = kinds[kind[i]](nodes, i, j)
    if cut then
      cuts[j][#cuts[j] + 1] = function()
        if nodes[i] then cut(nodes[i]) end
      end
    end
  end
  return { root = root, nodes = nodes, cuts = cuts, alive = alive }
end

local function bytes()
  return collectgarbage("count") * 1024
end

local function ask(option, address, path, key)
  local pipe = assert(io.popen(("'%s' heap --json %s %s %s"):format(ljprof, option, address,
    path)))
  local text = pipe:read("*a")
  pipe:close()
  return tonumber(text:match(key)) or error(text)
end

local asked, most, later = 0, 0, 0
for seed = first, last do
  random = seed
  for _ = 1, 5 do rnd(2) end
  local graphs = {}
  for g = 1, GRAPHS do graphs[g] = build(seed * 1000 + g) end
  for g = 1, GRAPHS do graphs[g].alive = nil end
  for _ = 1, 12 do collectgarbage() end -- The VM's own buffers shrink.
  local path = ("retained-%d.ljp"):format(seed)
  local chosen, once, at_last = new_table(GRAPHS, 0), new_table(GRAPHS, 0), new_table(GRAPHS, 0)
  for g = 1, GRAPHS do
    local n = rnd(NODES)
    while not graphs[g].nodes[n] do n = n % NODES + 1 end
    chosen[g] = ("%p"):format(graphs[g].nodes[n])
    graphs[g].chosen = n
    once[g], at_last[g] = 0, 0
  end
  assert(misc.memprof.snapshot { path = path, wait = true, gc = true })
  collectgarbage("stop")
  for g = 1, GRAPHS do
    local mine = graphs[g]
    collectgarbage()
    local before = bytes()
    local cuts = mine.cuts[mine.chosen]
    for i = 1, #cuts do cuts[i]() end
    collectgarbage()
    once[g] = before - bytes()
    for _ = 1, NODES do collectgarbage() end
    at_last[g] = before - bytes()
    assert(not mine.nodes[mine.chosen], "it is still held")
  end
  collectgarbage("restart")
  for g = 1, GRAPHS do
    local retained = ask("--path", chosen[g], path, '"paths":%[{"address":"0x%x+","retained":(%d+)')
    local go = ask("--retained-by", chosen[g], path, '"retained":(%d+),"retained_objects"')
    if retained ~= once[g] or go ~= at_last[g] then
      error(("seed %d, graph %d, %s: the collector freed %d, then %d bytes; retained %d, "
        .. "--retained-by %d"):format(seed, g, chosen[g], once[g], at_last[g], retained, go))
    end
    asked, most = asked + 1, math.max(most, go)
    later = later + (go > retained and 1 or 0)
  end
  os.remove(path)
end
print(("%d objects, of %d bytes at most; %d held more as weak keys"):format(asked, most, later))
