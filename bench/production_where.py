"""Shows in which parts of nginx's worker the recording costs time; production.sh calls
this.

production_where.py BUILD FOLDER PORT PAIRS HANDLER VARIABLE=VALUE

PAIRS pairs of servers as in production_nginx.py take turns every tenth of a second for
16 s, while perf looks at both workers 4,000 times a second. Printed are nanoseconds for a
request by part, without and with the recording, and their difference; then the
profiler's functions that take the most. Two servers that are not recorded also differ by
some percent in each part, so a difference in a part that runs without the recording, too,
says little. The parts that only a recorded worker has are exact to some nanoseconds.

For the functions' names the library must not be stripped.
"""
import collections
import os
import re
import signal
import subprocess
import sys
import time

from production_nginx import CPUS, SECONDS, WARM_SECONDS, Server

PROFILED_SECONDS = 16
FREQUENCY = 4000
FUNCTIONS = 12

# A stack in the kernel with one of these belongs to the part; the first that fits counts.
KERNEL = (
    ("arch_do_signal_or_restart", "kernel: signals"),
    ("sys_rt_sigreturn", "kernel: signals"),
    ("posix_cpu_timers", "kernel: CPU timers"),
    ("sys_timer_", "kernel: CPU timers"),
    ("sys_clock_gettime", "kernel: CPU timers"),
    ("exc_page_fault", "kernel: page faults"),
    ("apic_timer_interrupt", "kernel: ticks"),
)
ENTRY = re.compile("ljp_sampled_|lj_alloc_")
VM = re.compile("lj_|lua_|luaL_|luaopen_")
OWN = "profiler: samples, phases"


def samples(path):
    """Of perf's file: nanoseconds, the thread's name, and [function, file] from the top."""
    if not os.path.exists(path):
        raise SystemExit("production: error: perf may not look at nginx's worker")
    text = subprocess.run(
        ["perf", "script", "-i", path, "-F", "comm,period,ip,sym,dso"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
        universal_newlines=True).stdout
    for block in text.split("\n\n"):
        head, *frames = block.strip().split("\n")
        match = re.match(r"(.*\S)\s+(\d+)", head)
        frames = [re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", frame) for frame in frames]
        frames = [frame.groups() for frame in frames if frame]
        if match and frames:
            yield int(match[2]), match[1], frames


def part_of(thread, frames):
    """The part, and the function if it may be one of the profiler's."""
    function, file = frames[0]
    name = os.path.basename(file)
    if thread == "ljprof-writer":
        return "profiler: the writer's thread", None
    if "kernel" in file:
        functions = " ".join(function for function, _ in frames)
        for pattern, part in KERNEL:
            if pattern in functions:
                return part, None
        return "kernel: the rest", None
    if "libluajit" in name:
        if ENTRY.match(function):
            return "LuaJIT's allocator, and its entry", None
        return "LuaJIT", None if VM.match(function) else function
    if name.startswith("perf-"):
        return "LuaJIT", None
    if name.startswith(("libc.", "libm.", "[vdso]")):
        return "C library", None
    return "nginx, and other libraries", None


def profile(servers, folder, parts, functions, requests):
    before = {name: server.visits() for name, server in servers.items()}
    running = {
        name: subprocess.Popen(
            ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-g",
             "-o", f"{folder}/{name}.perf", "-p", str(server.worker)],
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, CPUS[-1:]))
        for name, server in servers.items()}
    time.sleep(0.5)
    end = time.monotonic() + PROFILED_SECONDS
    while time.monotonic() < end:
        for server in servers.values():
            server.run(True)
            time.sleep(SECONDS)
            server.run(False)
    for name, server in servers.items():
        requests[name] += server.visits() - before[name]
        running[name].send_signal(signal.SIGINT)
        running[name].wait()
    for name in servers:
        for ns, thread, frames in samples(f"{folder}/{name}.perf"):
            part, function = part_of(thread, frames)
            parts[name][part] += ns
            if function:
                functions[name][function] += ns


def main():
    build, folder, port, pairs, handler, setting = sys.argv[1:]
    variables = dict([setting.split("=", 1)])
    sides = {"off.d": {}, "on.d": variables}
    parts = {name: collections.Counter() for name in sides}
    functions = {name: collections.Counter() for name in sides}
    requests = collections.Counter()
    for number in range(int(pairs)):
        names = sorted(sides, reverse=number % 2 == 1)
        servers = {
            name: Server(build, f"{folder}/{name}", int(port) + 2 * number + i, handler,
                         sides[name])
            for i, name in enumerate(names)}
        time.sleep(WARM_SECONDS)
        for server in servers.values():
            server.run(False)
        profile(servers, folder, parts, functions, requests)
        for server in servers.values():
            server.end()
    # Functions that run only in a recorded worker are the profiler's.
    for function, ns in list(functions["on.d"].items()):
        if function in functions["off.d"] or function == "[unknown]":
            del functions["on.d"][function]
            continue
        parts["on.d"]["LuaJIT"] -= ns
        parts["on.d"][OWN] += ns
    whole = sum(parts["off.d"].values()) / requests["off.d"]
    print(f"  {requests['off.d']} and {requests['on.d']} requests")
    print(f"  {'ns for a request':36} {'without':>9} {'with':>9} {'more':>9} {'':>8}")
    rows = sorted(set(parts["off.d"]) | set(parts["on.d"]))
    sums = collections.Counter()
    for part in (*rows, "sum"):
        off, on = (parts[name][part] / requests[name] if part != "sum" else sums[name]
                   for name in ("off.d", "on.d"))
        sums["off.d"] += off
        sums["on.d"] += on
        print(f"  {part:36} {off:9.0f} {on:9.0f} {on - off:+9.0f}"
              f" {100 * (on - off) / whole:+6.2f} %")
    print("  of the profiler's:")
    for function, ns in functions["on.d"].most_common(FUNCTIONS):
        print(f"  {function:36} {'':9} {ns / requests['on.d']:9.0f}")


main()
