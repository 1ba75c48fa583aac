-- Coroutines that nothing will resume.
-- holder: _G.Waiting
Waiting = {}
for i = 1, 5000 do
  local co = coroutine.create(function(id)
    local request = { id = id, body = ("b"):rep(50) .. id }
    coroutine.yield()
    return request
  end)
  coroutine.resume(co, i)
  Waiting[#Waiting + 1] = co
end
