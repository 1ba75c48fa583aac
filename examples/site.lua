-- Builds a web site of made-up pages in memory: parses markup, renders
-- templates, checks links in a coroutine, indexes words and answers searches.
-- A program with several parts to profile: luajit site.lua [ROUNDS]
local rounds = tonumber(arg and arg[1]) or 2

local seed = 42
local function random(n)
  seed = (seed * 16807) % 2147483647
  return seed % n + 1
end

local vocabulary = {}
for i = 1, 400 do
  local word = {}
  for k = 1, 2 + random(6) do word[k] = string.char(96 + random(26)) end
  vocabulary[i] = table.concat(word)
end

-- The markup of a page: a title and sections of words, some bold, some links.
local function compose(number)
  local out = { "# Page " .. number }
  for section = 1, 6 do
    out[#out + 1] = "## " .. vocabulary[random(400)]
    local words = {}
    for w = 1, 60 do
      local word = vocabulary[math.min(random(400), random(400))]
      local kind = random(12)
      words[w] = kind == 1 and "*" .. word .. "*"
        or kind == 2 and "[" .. word .. "](" .. random(60) .. ")" or word
    end
    out[#out + 1] = table.concat(words, " ")
  end
  return table.concat(out, "\n")
end

local function inline(text)
  return (text:gsub("%*(%a+)%*", "<b>%1</b>")
    :gsub("%[(%a+)%]%((%d+)%)", '<a href="%2.html">%1</a>'))
end

local function parse(markup)
  local page = { title = "", blocks = {} }
  for line in markup:gmatch("[^\n]+") do
    local marks, rest = line:match("^(#+) (.*)$")
    if marks == "#" then
      page.title = rest
    else
      page.blocks[#page.blocks + 1] =
        { tag = marks and "h2" or "p", text = inline(rest or line) }
    end
  end
  return page
end

-- Templates are trees of text, fields, loops and parts.
local template = {
  "<html><head><title>", { field = "title" }, "</title></head><body>",
  { each = "blocks", part = { "<", { field = "tag" }, ">", { field = "text" },
    "</", { field = "tag" }, ">\n" } },
  "</body></html>",
}

local function render(node, data, out)
  if type(node) == "string" then
    out[#out + 1] = node
  elseif node.field then
    out[#out + 1] = data[node.field]
  elseif node.each then
    for _, item in ipairs(data[node.each]) do render(node.part, item, out) end
  else
    for _, child in ipairs(node) do render(child, data, out) end
  end
  return out
end

local function links(html)
  return coroutine.wrap(function()
    for target in html:gmatch('href="(%d+)%.html"') do
      coroutine.yield(tonumber(target))
    end
  end)
end

local function check(pages)
  local broken, seen = 0, 0
  for _, html in ipairs(pages) do
    for target in links(html) do
      seen = seen + 1
      if not pages[target] then broken = broken + 1 end
    end
  end
  return seen, broken
end

local function index(pages)
  local places = {}
  for number, html in ipairs(pages) do
    for word in html:gmatch(">?(%a+)") do
      local list = places[word]
      if not list then
        list = {}
        places[word] = list
      end
      list[#list + 1] = number
    end
  end
  return places
end

local function score(list, of)
  local points = {}
  for i = 1, #list do
    local page = list[i]
    points[page] = (points[page] or 0) + 1 / math.sqrt(of)
  end
  return points
end

local function search(places, words)
  local sum = {}
  for _, word in ipairs(words) do
    local list = places[word] or {}
    for page, points in pairs(score(list, #list)) do
      sum[page] = (sum[page] or 0) + points
    end
  end
  local found = {}
  for page, points in pairs(sum) do found[#found + 1] = { page, points } end
  table.sort(found, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  return found
end

-- A number that changes if any page does.
local function checksum(text)
  local h = 5381
  for i = 1, #text do h = (h * 33 + text:byte(i)) % 4294967296 end
  return h
end

local seen, broken, sum, hits
for round = 1, rounds do
  seed = 42 + round
  local pages = {}
  for number = 1, 56 do
    pages[number] = table.concat(render(template, parse(compose(number)), {}))
  end
  seen, broken = check(pages)
  local places = index(pages)
  hits = 0
  for query = 1, 200 do
    local found = search(places, { vocabulary[query], vocabulary[401 - query] })
    hits = hits + #found
  end
  sum = 0
  for _, html in ipairs(pages) do sum = (sum + checksum(html)) % 4294967296 end
end
print(("%d links, %d broken, %d hits, checksum %d"):format(seen, broken, hits, sum))
