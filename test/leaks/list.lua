-- A list that nothing empties.
-- holder: _G.Queue.first
Queue = {}
for i = 1, 20000 do Queue.first = { job = "job " .. i, next = Queue.first } end
