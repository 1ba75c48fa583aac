#!/usr/bin/env python3
"""Changes random lines of the walk, the reader and the estimates, one at a time, and
counts how many of the changes the tests notice.

  mutate.py TREE BUILD COUNT SEED [AREA...]

TREE is a copy of the project that may be changed, BUILD its release build. A change that
does not compile, or after which the compiler makes the same code, does not count. Tests
that run too long have noticed something. A change that is not noticed is printed: either
a test is missing, or the line does not matter.
"""
import glob
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time

# Each area: its files, and the tests that should notice, the quick ones first.
AREAS = {
    "walk": (["src/luajit/frames/*.c", "src/luajit/spine/*.c", "profilers/unwind/step.c",
              "profilers/cpu/sample_stack.c"],
             ["^(unit/test_(unwind|frame|stack|memo|saferead|spine|walk)|e2e/(memprof_exact|"
              "sysprof$|oracle_(builtins|calls|coroutines|errors|ffi|callbacks|metamethods|"
              "waits)$))",
              "^(e2e/(oracle_|unwind_|locals|join_stacks|memprof_inlined|names|trace_events)|"
              "truth/perf/|unit/)"]),
    "reader": (["parsers/stream/*.c", "parsers/base/*.c"],
               ["^unit/", "^e2e/(report|merge|export|agreement|check|wrong_file|heap_damage|"
                          "heap_views|rotation|still_recording|json_keys|tarantool)"]),
    "estimates": (["parsers/profile/estimate.c", "parsers/profile/gc_cost.c",
                   "parsers/profile/samples.c", "parsers/profile/memory.c",
                   "parsers/profile/memory_batch.c", "parsers/profile/live_blocks.c",
                   "parsers/profile/peak.h", "parsers/base/whole.h"],
                  ["^unit/", "^(e2e/(report|agreement|export|memprof|gc_cost|labels|"
                             "ring|advise_sound)|mem/)"]),
}
SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "),
         (" == ", " != "), (" != ", " == "), (" && ", " || "), (" || ", " && "),
         (" + ", " - "), (" - ", " + "), (" * ", " + "), (" += ", " -= "), (" -= ", " += "),
         (" |= ", " = "), (" & ", " | "), ("++", "--"), ("if (!", "if ("),
         ("true", "false"), ("false", "true"), ("break;", ";"), ("continue;", ";")]


def run(command, limit, where):
    """The exit code and the output; None as code if it takes too long."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, cwd=where,
                          start_new_session=True) as process:
        try:
            text = process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return None, ""
    return process.returncode, text.decode(errors="replace")


def mutations(line):
    """All single changes of a line of C."""
    code = line.split("/*")[0].rstrip()
    stripped = code.strip()
    if not stripped or stripped.startswith(("#", "*", "//", "case ", "default:", "static_assert",
                                            "ljp_assert", "extern", "typedef")):
        return []
    found = []
    for old, new in SWAPS:
        for match in re.finditer(re.escape(old), code):
            found.append(line[:match.start()] + new + line[match.end():])
    for match in re.finditer(r"(?<![\w.\"'])(\d+)(?![\w.\"'])", code):
        found.append(line[:match.start()] + str(int(match[1]) + 1) + line[match.end():])
    returned = re.match(r"(\s*return )(.+);$", code)
    if returned and returned[2] not in ("0", "false", "NULL"):
        found.append(f"{returned[1]}0;\n")
    # A statement that is left out: a call or an assignment, on one line.
    if re.match(r"\s+[\w>.\[\]*()-]+( [+|&-]?= .*|\(.*\));$", code) and \
            not re.match(r"\s*(return|goto|if|while|for)\b", code):
        found.append(re.match(r"\s*", line)[0] + ";\n")
    return [new for new in found if new != line]


class Project:
    def __init__(self, tree, build):
        self.tree, self.build, self.took = tree, build, {}
        with open(f"{build}/compile_commands.json") as file:
            self.commands = {}
            for entry in json.load(file):
                self.commands.setdefault(os.path.realpath(entry["file"]), entry)

    def files(self, area):
        names = []
        for pattern in AREAS[area][0]:
            names += glob.glob(f"{self.tree}/{pattern}")
        return sorted(names)

    def assembly(self, path):
        """What the compiler makes of a file, without line numbers; None if nothing."""
        entry = self.commands.get(path)
        if not entry: # a header: the first file of the folder beside it that includes it
            return ""
        words = shlex.split(entry["command"])
        at = words.index("-o")
        words = words[:at] + words[at + 2:] + ["-g0", "-S", "-o", "-"]
        words = [word for word in words if word not in ("-c", "-fstack-usage")]
        code, text = run(words, 120, entry["directory"])
        return text if code == 0 else None

    def make(self):
        return run(["cmake", "--build", self.build], 900, self.tree)

    def end_what_stays(self):
        """A change can leave programs of this build that never end."""
        for process in glob.glob("/proc/[0-9]*"):
            try:
                program = os.readlink(f"{process}/exe")
                if program.startswith(f"{self.build}/"):
                    os.kill(int(process[6:]), 9)
            except OSError:
                pass

    def noticed_by(self, area):
        """The first test that fails, or None. The first run is without any change, and
        shows how long tests take."""
        for tests in AREAS[area][1]:
            began, took = time.monotonic(), self.took.get(tests)
            code, text = run(["ctest", "--test-dir", self.build, "-j2", "--stop-on-failure",
                              "--timeout", "120", "-R", tests, "-LE",
                              "^(hosts|oracle|browser|engines|storm)$"],
                             60 + 3 * took if took else 3600, self.tree)
            self.took.setdefault(tests, time.monotonic() - began)
            if code is None:
                return f"time: {tests} did not end in {time.monotonic() - began:.0f} s"
            if code:
                failed = re.findall(r"Test +#\d+: (\S+) \.*\**(?:Failed|Timeout|Exception|"
                                    r"Subprocess|\*\*\*)|\d+ - (\S+) \(", text)
                return next(("".join(pair) for pair in failed), "a test")
        return None


def one_change(project, chooser, area):
    """Changes a line. The file's former text, where it is, and both lines."""
    while True:
        path = chooser.choice(project.files(area))
        with open(path) as file:
            text = file.read()
        lines = text.splitlines(keepends=True)
        number = chooser.randrange(len(lines))
        choices = mutations(lines[number])
        if not choices:
            continue
        old, new = lines[number], chooser.choice(choices)
        before = project.assembly(os.path.realpath(path))
        lines[number] = new
        with open(path, "w") as file:
            file.write("".join(lines))
        after = project.assembly(os.path.realpath(path))
        if after is not None and (after == "" or after != before):
            return path, text, number + 1, old.strip(), new.strip()
        with open(path, "w") as file:
            file.write(text)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    tree, build = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    count, chooser = int(sys.argv[3]), random.Random(sys.argv[4])
    areas = sys.argv[5:] or list(AREAS)
    for area in areas:
        if area not in AREAS:
            sys.exit(f"mutate: error: there is no area '{area}': {', '.join(AREAS)}")
    project = Project(tree, build)
    code, text = project.make()
    if code:
        sys.exit(f"mutate: error: the tree does not build:\n{text[-2000:]}")
    for area in areas:
        failed = project.noticed_by(area)
        if failed:
            sys.exit(f"mutate: error: {failed} fails without any change")
    noticed, done = {area: 0 for area in areas}, {area: 0 for area in areas}
    print(f"mutate: {count} changes, seed {sys.argv[4]}", flush=True)
    number = 0
    while number < count:
        area = areas[number % len(areas)]
        path, text, line, old, new = one_change(project, chooser, area)
        try:
            code, _ = project.make()
            if code:
                continue # another file does not compile: it does not count
            by = project.noticed_by(area)
        finally:
            project.end_what_stays()
            with open(path, "w") as file:
                file.write(text)
        number += 1
        done[area] += 1
        noticed[area] += by is not None
        name = os.path.relpath(path, tree)
        print(f"{number:4} {area}: {'noticed by ' + by if by else 'NOT NOTICED'}\n"
              f"     {name}:{line}: {old}\n     {' ' * len(f'{name}:{line}')}  {new}",
              flush=True)
    project.make()
    for area in areas:
        if done[area]:
            print(f"{area}: {noticed[area]} of {done[area]} noticed "
                  f"({100 * noticed[area] / done[area]:.0f} %)")
    all_done = sum(done.values())
    print(f"all: {100 * sum(noticed.values()) / max(all_done, 1):.1f} % of {all_done} "
          f"(aim: 90 %), seed {sys.argv[4]}")


if __name__ == "__main__":
    main()
