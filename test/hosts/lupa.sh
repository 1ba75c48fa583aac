#!/bin/sh
# Python with lupa: Lua states inside another interpreter, calls in both
# directions, exceptions through both, and threads.
. "$(dirname "$0")/lib.sh"
need python3 python3-lupa

cat > "$tmp/script.py" << 'EOF'
import threading
import lupa

lua = lupa.LuaRuntime(unpack_returned_tuples=True)
print(lua.eval("_VERSION"), lua.eval("type(misc)"), lua.eval("jit.status()")[0])
fib = lua.eval("(function() local function f(n) if n < 2 then return n end "
               "return f(n - 1) + f(n - 2) end return f end)()")
print(fib(20))
apply = lua.eval("function(f, n) local s = 0 for i = 1, n do s = s + f(i) end "
                 "return s end")
print(apply(lambda x: x * 2, 100))
try:
    lua.execute("error('from Lua', 0)")
except lupa.LuaError as e:
    print("caught", str(e).splitlines()[0])
def bad(_):
    raise KeyError("from Python")
try:
    apply(bad, 1)
except KeyError as e:
    print("caught", e)
co = lua.eval("function(n) for i = 1, n do coroutine.yield(i) end end")
print(sum(co.coroutine(20)))
results = []
def work(k):
    own = lupa.LuaRuntime()
    results.append(own.eval("(function() local s = 0 for i = 1, 1e5 do "
                            "s = s + i % 7 end return s end)()"))
threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(results), len(set(results)))
paths = {l.split()[5] for l in open("/proc/self/maps") if "libluajit" in l}
print("mapped", *paths)
EOF
runs "$tmp/python.log" /usr/bin/python3 "$tmp/script.py"
same mapped "mapped $library" "$(grep '^mapped' "$tmp/python.log")"
same results "Lua 5.1 table True
6765
10100
caught from Lua
caught 'from Python'
210
5 1" "$(grep -v '^mapped' "$tmp/python.log")"
