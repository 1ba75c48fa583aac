"""What nginx's worker pays for being recorded; production.sh calls this.

production_nginx.py BUILD FOLDER PORT SERVERS HANDLER VARIABLE=VALUE

Two servers of one worker each, one of them with this variable in its environment. Each
has a load generator of its own, which is stopped (SIGSTOP) while the other server is
measured. The measure changes sides every tenth of a second, since the machine is no
quieter over a second than over a tenth. Two servers that are not recorded at all differ
by up to 3 percent for as long as they live (each compiles other traces, and has other
addresses), so SERVERS pairs of them are started, one after the other; which server of a
pair starts first changes from pair to pair. Workers run on one CPU and load generators on
another one. Otherwise a worker shares its CPU with its load generator now and then.

For each pair the median counts. The figure is the mean of these medians, without the
tenth of them at either end; beside it is its standard error. A virtual machine may be
half as fast for a second, and a pair that meets such seconds says nothing. With
LJP_BENCH_RAW set, a line for each pair is printed: number, medians, requests a second.
"""
import atexit
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

WARM_SECONDS = 4
SECONDS = 0.1
PAIRS = 8
CPUS = sorted(os.sched_getaffinity(0))

CONFIG = """load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 128; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/body;
  fastcgi_temp_path {folder}/body;
  uwsgi_temp_path {folder}/body;
  scgi_temp_path {folder}/body;
  init_by_lua_block {{ visits = 0 }}
  server {{
    listen 127.0.0.1:{port};
    location = /visits {{ content_by_lua_block {{ ngx.say(visits) }} }}
    location / {{ content_by_lua_block {{ {handler} }} }}
  }}
}}
"""

HANDLERS = {
    "rows": """
        local cjson = require "cjson"
        visits = visits + 1
        local rows = {}
        for i = 1, 40 do
          rows[i] = { id = i, name = ("row %d"):format(i), even = i % 2 == 0 }
        end
        table.sort(rows, function(a, b) return a.name < b.name end)
        ngx.say(cjson.encode(rows))
""",
    "hello": """
        visits = visits + 1
        ngx.say("hello")
""",
    "routes": """
        local route, tenant = ngx.var.uri, ngx.var.arg_t
        misc.profile.label { route = route, tenant = tenant }
        visits = visits + 1
        local units = { ["/a"] = 1, ["/b"] = 2, ["/c"] = 3 }
        local kept
        for i = 1, 40 * units[route] * (tenant == "x" and 2 or 1) do
          number = (number or 0) + 1
          kept = ("%099d"):format(number)
        end
        ngx.say(kept)
""",
}

# Asks for the routes and tenants in turn.
ROUTES = """local n = 0
function request()
  n = n + 1
  return wrk.format("GET", ({ "/a", "/b", "/c" })[n % 3 + 1] .. "?t=" ..
    (n % 2 == 0 and "x" or "y"))
end
"""


class Server:
    def __init__(self, build, folder, port, handler, variables):
        self.port = port
        os.makedirs(f"{folder}/body", exist_ok=True)
        os.chmod(folder, 0o777)
        os.chmod(f"{folder}/body", 0o777)
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(CONFIG.format(folder=folder, port=port,
                                     handler=HANDLERS[handler]))
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/lib", **variables)
        self.master = subprocess.Popen(
            ["nginx", "-c", f"{folder}/nginx.conf", "-p", folder], env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, CPUS[:1]))
        atexit.register(self.master.terminate)  # if a measure fails
        deadline = time.monotonic() + 10
        while True:
            try:
                self.visits()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise SystemExit(f"nginx does not answer: {folder}/error.log")
                time.sleep(0.05)
        pid = self.master.pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            self.worker = int(file.read())
        with open(f"{folder}/wrk.lua", "w") as file:
            file.write(ROUTES if handler == "routes" else "")
        self.load = subprocess.Popen(
            ["wrk", "-t1", "-c8", "-d3600s", "-s", f"{folder}/wrk.lua",
             f"http://127.0.0.1:{port}/"],
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, CPUS[-1:]))
        atexit.register(self.load.kill)

    def visits(self):
        url = f"http://127.0.0.1:{self.port}/visits"
        with urllib.request.urlopen(url) as answer:
            return int(answer.read())

    def cpu_ns(self):
        """Of the worker, whose threads are all its own and ours."""
        total = 0
        for thread in os.listdir(f"/proc/{self.worker}/task"):
            try:
                with open(f"/proc/{self.worker}/task/{thread}/schedstat") as file:
                    total += int(file.read().split()[0])
            except OSError:
                pass
        return total

    def run(self, on):
        self.load.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

    def measure(self, seconds):
        """Elapsed time and CPU time of a request, in ns."""
        self.run(True)
        time.sleep(0.02)
        visits, cpu, start = self.visits(), self.cpu_ns(), time.monotonic_ns()
        time.sleep(seconds)
        visits = self.visits() - visits
        cpu, elapsed = self.cpu_ns() - cpu, time.monotonic_ns() - start
        self.run(False)
        return elapsed / visits, cpu / visits

    def end(self):
        self.load.kill()
        self.load.wait()
        self.master.terminate()
        if self.master.wait():
            raise SystemExit(f"nginx: exit code {self.master.returncode}")


def trial(number, build, folder, port, handler, variables):
    """Medians of the ratios of elapsed and of CPU time; and requests a second."""
    port += 2 * (number % 500)
    sides = [("off.d", {}), ("on.d", variables)]
    if number % 2:
        sides.reverse()
    servers = {}
    for i, (name, environment) in enumerate(sides):
        servers[name] = Server(build, f"{folder}/{name}", port + i, handler, environment)
        servers[name].run(False)
    off, on = servers["off.d"], servers["on.d"]
    # Until traces are compiled and the recording has met the places that allocate.
    for server in servers.values():
        server.run(True)
    time.sleep(WARM_SECONDS)
    for server in servers.values():
        server.run(False)
    ratios = [], []
    rates = []
    for i in range(PAIRS):
        if i % 2:
            plain, recorded = off.measure(SECONDS), on.measure(SECONDS)
        else:
            recorded, plain = on.measure(SECONDS), off.measure(SECONDS)
        for kind in 0, 1:
            ratios[kind].append(recorded[kind] / plain[kind])
        rates.append(1e9 / plain[0])
    off.end()
    on.end()
    medians = [statistics.median(values) for values in (*ratios, rates)]
    if "LJP_BENCH_RAW" in os.environ:
        print("pair", number, *(f"{value:.4f}" for value in medians), flush=True)
    return medians


def trimmed(values):
    """Mean without the tenth at either end; its standard error; the spread of one value.

    The spread is that of the values with the two ends moved to their neighbours
    (winsorized), as is usual for such a mean.
    """
    values = sorted(values)
    count, cut = len(values), len(values) // 10
    kept = values[cut:count - cut]
    spread = statistics.stdev(cut * kept[:1] + kept + cut * kept[-1:])
    return (statistics.mean(kept), spread * count ** 0.5 / len(kept), spread)


def main():
    build, folder, port, servers, handler, setting = sys.argv[1:]
    variables = dict([setting.split("=", 1)])
    trials = [trial(i, build, folder, int(port), handler, variables)
              for i in range(int(servers))]
    rate = statistics.median(trial[2] for trial in trials)
    print(f"  {rate:.0f} requests a second without the recording")
    for kind, name in enumerate(("time for a request, by throughput",
                                 "CPU time of the worker for it")):
        costs = [(trial[kind] - 1) * 100 for trial in trials]
        print("  {:35} {:+.2f} % (+-{:.2f}; of one pair +-{:.2f})".format(
            name, *trimmed(costs)))


if __name__ == "__main__":
    main()
