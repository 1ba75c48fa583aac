-- What a profile's events have done to the heap.
local M = {}

-- A table by site: {dbytes = growth in bytes, nalloc, nfree = numbers of
-- blocks}. A site without events reads as zeros. events: see memprof.parse.
function M.form_heap_delta(events)
  local deltas = setmetatable({}, {__index = function(t, site)
    local delta = {dbytes = 0, nalloc = 0, nfree = 0}
    rawset(t, site, delta)
    return delta
  end})

  for _, event in pairs(events.alloc) do
    if event.loc and event.alloc > 0 then
      local delta = deltas[event.loc]
      delta.dbytes = delta.dbytes + event.alloc
      delta.nalloc = delta.nalloc + event.num
    end
  end

  -- A block that was moved stays the memory of the site that allocated it.
  for _, list in ipairs{events.realloc, events.free} do
    for _, event in pairs(list) do
      for _, from in pairs(event.primary) do
        local delta = deltas[from.loc]
        delta.dbytes = delta.dbytes + from.allocated - from.freed
        if from.allocated > 0 then
          delta.nalloc = delta.nalloc + from.count
        end
        if from.freed > 0 then
          delta.nfree = delta.nfree + from.count
        end
      end
    end
  end
  return deltas
end

return M
