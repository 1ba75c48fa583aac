-- session(FILE, INTERVAL, TIMER, EVENT): starts the session to judge. Exit code
-- 77: the timer is not available.
return function(file, interval, timer, event)
  local ok, message = misc.sysprof.start({ mode = "C", path = file,
    interval = tonumber(interval), timer = timer, event = event,
    threads = event == "wall" and "all" or nil, max_overhead = 0 })
  if not ok then
    print(message)
    os.exit(77)
  end
end
