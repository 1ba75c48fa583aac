#!/usr/bin/env python3
"""Runs storms, the host zoo and random mixes of everything that sessions can do, one
after the other, until the time is up; checks each file, and each program's output.

  soak.py SECONDS SEED BUILD [ASAN_BUILD]

A round is one of:
  storm  one test of test/storm, for a random time, some with heap snapshots
  zoo    one test of the host zoo, of the release or the ASan build
  mix    mix.lua: a program that starts and ends sessions of all kinds, forks, loads and
         unloads code, and takes snapshots, while ljprof joins it, looks at it and is
         killed; its output must be that of a run without profilers
Programs that only compute make a random load meanwhile. The first fault ends the run:
it prints the round's seed and keeps its folder. The same seed makes the same choices;
moments depend on the machine.
"""
import ctypes
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
PR_SET_CHILD_SUBREAPER = 36
# What the ASan build has no module for, or no stack.
ASAN_STORMS = "sort gsub errors coroutines closures tables growth labels hook callbacks"


WALL = 0x40000000  # children without an exit signal, too


def children():
    """The processes that this one would have to wait for."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {int(pid) for pid in file.read().split()}


class Fault(Exception):
    pass


class Counts(dict):
    def add(self, what, number=1):
        self[what] = self.get(what, 0) + number


def run(command, limit=300, **more):
    """The exit code and the output of a command that ends in time."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=limit, check=False, **more)
    return done.returncode, done.stdout.decode(errors="replace")


def tests_of(build, labels):
    code, text = run(["ctest", "--test-dir", build, "-N", "-L", labels])
    names = re.findall(r"Test +#\d+: (\S+)", text)
    if code or not names:
        raise Fault(f"{build} has no tests with the label {labels}: {text}")
    return names


def one_test(build, name, environment):
    code, text = run(["ctest", "--test-dir", build, "--output-on-failure", "--timeout",
                      "900", "-R", f"^{re.escape(name)}$"], limit=1000,
                     env={**os.environ, **environment})
    if code:
        raise Fault(f"{name} of {build} failed:\n{text}")


# -- A mix --------------------------------------------------------------------

class Mix:
    """One run of mix.lua with its clients."""

    def __init__(self, chooser, build, asan, folder, counts):
        self.chooser, self.build, self.asan = chooser, build, asan
        self.folder, self.counts = folder, counts
        self.ljprof = f"{build}/bin/ljprof"
        self.load = children()
        self.clients = 0
        self.seed = chooser.randrange(1, 1 << 30)
        self.options = chooser.choice([["-joff"], [], ["-Ohotloop=2", "-Ohotexit=2"]])

    def environment(self):
        environment = {**os.environ, "LUA_CPATH": f"{self.build}/storm/?.so"}
        if self.asan:
            environment["LJP_SOAK_STORMS"] = ASAN_STORMS
            environment["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get(
                "ASAN_OPTIONS", "")
        return environment

    def command(self, *arguments):
        return [f"{self.build}/bin/luajit", *self.options, f"{SOURCE}/test/soak/mix.lua",
                SOURCE, str(self.seed), *arguments]

    def client_command(self, pid):
        """A command for the running program, and the file that it writes."""
        self.clients += 1
        choose = self.chooser
        target = str(pid)
        file = f"{self.folder}/client-{self.clients}.ljp"
        kind = choose.choice(["record", "record", "record", "stacks", "status", "heap",
                              "mark", "list"])
        if kind == "record":
            options = [["--memory", "--sample", "4k"], ["--memory", "--every", "--no-cpu"],
                       ["--threads", "all"], ["--event", "wall"], ["--interval", "0.2"], []]
            return ([self.ljprof, "record", "-p", target, "-o", file, "--duration",
                     f"{choose.uniform(0.05, 1.5):.2f}", *choose.choice(options)], file)
        if kind == "heap":
            return ([self.ljprof, "heap", "-p", target, "-o", file], file)
        commands = {"stacks": ["dump-stacks", "-p", target], "status": ["status", "-p", target],
                    "mark": ["mark", "-p", target, "soak"], "list": ["list"]}
        return ([self.ljprof, *commands[kind]], None)

    def one_client(self, pid):
        command, file = self.client_command(pid)
        ended_by = self.chooser.choice([None, None, None, signal.SIGKILL, signal.SIGINT])
        limit = self.chooser.uniform(0.0, 1.0) if ended_by else 120
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL)
        try:
            text = client.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            if not ended_by:
                raise Fault(f"a client did not end in {limit} s: {command}") from None
            client.send_signal(ended_by)
            text = client.communicate(timeout=120)[0]
        code, text = client.returncode, text.decode(errors="replace")
        if code in (-signal.SIGKILL, -signal.SIGINT) and ended_by:
            self.counts.add("clients killed")
        elif code == 0:
            self.counts.add("clients that did their work")
            if file and os.path.exists(file):
                self.check(file)
        elif code == 1 and "ljprof" in text:
            self.counts.add("clients refused")
        else:
            raise Fault(f"a client ended with {code}: {command}\n{text}")

    def check(self, file, closed=True):
        """What ljprof check says of a file, which must be whole, and of which the CPU time
        must add up: that of samples, the lost, and the unsampled is what was used."""
        text = run([self.ljprof, "check", "--json", file])[1]
        try:
            found = json.loads(text)
        except ValueError:
            raise Fault(f"ljprof check {file}: {text}") from None
        self.counts.add("files")
        if found["bad_records"] or found["unknown_records"] or found["gap_bytes"]:
            raise Fault(f"{file} is damaged:\n{text}")
        if not found["whole"]:
            if closed:
                raise Fault(f"{file} is not whole and closed:\n{text}")
            self.counts.add("files that the killed program left open")
        elif found["cpu_time_known"]:
            difference, used = abs(found["cpu_difference_ns"]), found["cpu_used_ns"]
            if difference > used * 0.01 + 20e6:
                raise Fault(f"{file}: of {used} ns of CPU time, {difference} are neither in "
                            f"samples nor accounted for:\n{text}")
            self.counts.add("CPU times that add up")
        return found

    def play(self):
        seconds = self.chooser.uniform(1.0, 8.0)
        output = f"{self.folder}/output"
        with open(output, "wb") as out, open(f"{self.folder}/errors", "wb") as errors:
            program = subprocess.Popen(
                self.command(f"{seconds:.1f}", self.folder), stdout=out, stderr=errors,
                stdin=subprocess.DEVNULL, env=self.environment())
            end = time.monotonic() + seconds
            while time.monotonic() < end and program.poll() is None:
                time.sleep(self.chooser.uniform(0.0, 0.6))
                self.one_client(program.pid)
            try:
                program.wait(timeout=300)
            except subprocess.TimeoutExpired:
                run([self.ljprof, "dump-stacks", "-p", str(program.pid)])
                program.kill()
                program.wait()
                raise Fault("the program did not end") from None
        self.judge(program.returncode)

    def judge(self, code):
        log = self.read("log")
        end = re.search(r" works (\d+) end (\w+)", log)
        if code != (-signal.SIGKILL if end and end[2] == "kill" else 0):
            raise Fault(f"the program ended with {code}:\n{log[-2000:]}"
                        + self.read("errors")[-4000:])
        if "error:" in log:
            raise Fault(re.search(r".*error:.*", log)[0])
        if not end:
            raise Fault(f"the program did not come to its end:\n{log[-2000:]}")
        self.judge_output(end[1])
        self.no_child_is_left()
        killed = end[2] == "kill"
        for file in sorted(glob.glob(f"{self.folder}/*.ljp*")):
            self.judge_file(file, killed)
        self.judge_time(log)

    def read(self, name):
        with open(f"{self.folder}/{name}", errors="replace") as file:
            return file.read()

    def judge_output(self, count):
        code, text = run(self.command(count), env=self.environment())
        if code:
            raise Fault(f"without profilers, the program ended with {code}: {text[-2000:]}")
        if text != self.read("output"):
            with open(f"{self.folder}/plain", "w") as file:
                file.write(text)
            raise Fault("the output is not that of a run without profilers")
        self.counts.add("works", int(count))

    def no_child_is_left(self):
        """This process inherits what the program leaves behind."""
        end = time.monotonic() + 30
        while left := children() - self.load:
            for pid in left:
                try:
                    os.waitpid(pid, os.WNOHANG | WALL)
                except ChildProcessError:
                    pass
            if time.monotonic() > end:
                raise Fault(f"child processes of the program stay: {left}")
            time.sleep(0.05)

    def judge_file(self, file, killed):
        # Only the files that were open when the program was killed are not closed.
        self.check(file, closed=not killed)
        code, text = run([self.ljprof, "dump", file])
        # In a session's file, the moment's record has the count of that moment.
        counted = {}
        for record in ("heap", "heap-moment"):
            counted.update(re.findall(
                rf"^  {record} .*?snapshot=(\d+).*? heap_bytes=(\d+)", text, re.M))
        for number, size in re.findall(r"^  heap-end .*?snapshot=(\d+).*? bytes=(\d+)", text,
                                       re.M):
            if counted.get(number) != size:
                raise Fault(f"{file}: snapshot {number} has {size} bytes, and the VM "
                            f"counted {counted.get(number)}")
            self.counts.add("snapshots with all bytes")
        name = os.path.basename(file)
        if name.startswith("every") and not killed and ".ljp." not in name and \
                not os.path.exists(f"{file}.s1"):
            code, text = run([f"{self.build}/bin/storm_heap", "--deep", file]) \
                if not self.asan else (0, "")
            if code:
                raise Fault(f"{file}: the events do not add up: {text}")
            self.counts.add("sums of events equal to the VM's count")

    def judge_time(self, log):
        """The file knows at least the CPU time that the program saw itself use."""
        for path, used in re.findall(r"cpu-session (\S+) ([\d.]+)", log):
            if os.path.exists(f"{path}.s1") or not os.path.exists(path):
                continue
            known = self.check(path)["cpu_used_ns"] / 1e9
            if known < float(used) * 0.99 - 0.01:
                raise Fault(f"{path}: the thread used {used} s of CPU time, and the file "
                            f"tells of {known:.4f} s")
            self.counts.add("CPU times equal to the thread's clock")


# -- The run ------------------------------------------------------------------

class Load:
    """Programs that compute while a round runs."""

    def __init__(self, luajit, count):
        self.programs = [subprocess.Popen([luajit, "-e", "while true do end"])
                         for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
            program.wait()


def one_round(chooser, build, asan, folder, tests, counts):
    kind = chooser.choices(["storm", "zoo", "mix"], [3, 2, 6])[0]
    use_asan = bool(asan) and kind != "storm" and chooser.random() < 0.3
    where = asan if use_asan else build
    load = chooser.choice([0, 0, 1, 2, 4])
    with Load(f"{build}/bin/luajit", load):
        if kind == "mix":
            Mix(chooser, where, use_asan, folder, counts).play()
            what = "mix"
        else:
            what = chooser.choice(tests[kind])
            environment = {"LJP_STORM_SECONDS": f"{chooser.choice([0.2, 0.5, 1]):.1f}"}
            if chooser.random() < 0.4:
                environment["LJP_STORM_SNAPSHOTS"] = "1"
            if chooser.random() < 0.3:
                environment["LJP_STORM_NATIVE"] = "1"
            one_test(where, what, environment)
    name = f"{kind}{' (ASan)' if use_asan else ''}"
    counts.add(name)
    return f"{what}{', ASan' if use_asan else ''}, load {load}"


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    seconds, seed, build = float(sys.argv[1]), int(sys.argv[2]), os.path.realpath(sys.argv[3])
    asan = os.path.realpath(sys.argv[4]) if len(sys.argv) == 5 else None
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tests = {"storm": tests_of(build, "^storm$"), "zoo": tests_of(build, "^zoo$")}
    counts, began, number = Counts(), time.monotonic(), 0
    print(f"soak: {seconds:.0f} s, seed {seed}", flush=True)
    while time.monotonic() - began < seconds:
        folder = tempfile.mkdtemp(prefix="ljprof-soak.")
        chooser = random.Random(f"{seed} {number}")
        number += 1
        start = time.monotonic()
        try:
            what = one_round(chooser, build, asan, folder, tests, counts)
        except (Fault, subprocess.TimeoutExpired, OSError) as error:
            print(f"soak: round {number} of seed {seed} failed; its files are in {folder}\n"
                  f"{error}", flush=True)
            sys.exit(1)
        shutil.rmtree(folder)
        print(f"{number:4} {time.monotonic() - start:6.1f} s  {what}", flush=True)
    for what in sorted(counts):
        print(f"{counts[what]:9} {what}")
    print(f"soak: {number} rounds in {time.monotonic() - began:.0f} s, seed {seed}: no fault")


if __name__ == "__main__":
    main()
