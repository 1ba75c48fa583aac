#!/usr/bin/env python3
"""Changes random lines of the walk, the reader and the estimates, one at a time, and
counts how many of the changes the tests notice.

  mutate.py TREE BUILD COVERAGE COUNT SEED [AREA...]

TREE is a copy of the project that may be changed, BUILD its release build, COVERAGE a
build of it with -DLJPROF_COVERAGE=ON, which tells what tests run a line. That takes each
test once, and is kept in COVERAGE/reach.json as long as no source and no test changes. A
changed line is tried with the tests that
run it, the quick ones first. A change that does not compile, or after which the compiler
makes the same code, does not count. Tests that run too long have noticed something. A
change that is not noticed is printed: either a test is missing, or the line does not
matter.
"""
import concurrent.futures
import glob
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# The files of each area.
AREAS = {
    "walk": ["src/luajit/frames/*.c", "src/luajit/spine/*.c", "profilers/unwind/step.c",
             "profilers/cpu/sample_stack.c"],
    "reader": ["parsers/stream/*.c", "parsers/base/*.c"],
    "estimates": ["parsers/profile/estimate.c", "parsers/profile/gc_cost.c",
                  "parsers/profile/samples.c", "parsers/profile/memory.c",
                  "parsers/profile/memory_batch.c", "parsers/profile/live_blocks.c",
                  "parsers/profile/peak.h", "parsers/base/whole.h"],
}
# The tests that may notice. Of each, a coverage build tells what lines it runs, but for
# those that such a build does not have: they stand for every line of these areas.
TESTS = "^(unit|e2e)/"
NOT_LABELLED = "^(hosts|oracle|browser|engines|storm)$"
UNCOVERED = {"walk": "^e2e/(oracle_|unwind_)", "estimates": "^e2e/mem_"}
LONGEST = 120 # seconds: a test that takes longer is not tried
PATIENCE = 600 # seconds of tests for a change
SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "),
         (" == ", " != "), (" != ", " == "), (" && ", " || "), (" || ", " && "),
         (" + ", " - "), (" - ", " + "), (" * ", " + "), (" += ", " -= "), (" -= ", " += "),
         (" |= ", " = "), (" & ", " | "), ("++", "--"), ("if (!", "if ("),
         ("true", "false"), ("false", "true"), ("break;", ";"), ("continue;", ";")]


def run(command, limit, where, environment=None):
    """The exit code and the output; None as code if it takes too long."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, cwd=where, start_new_session=True,
                          env={**os.environ, **(environment or {})}) as process:
        try:
            text = process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return None, ""
        except BaseException:
            os.killpg(process.pid, 9)
            raise
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


def passed(build, names, limit, where, *more, environment=None):
    """Whether all these tests passed; a test that did not, or None; and the time."""
    began = time.monotonic()
    code, text = run(["ctest", "--test-dir", build, "--stop-on-failure", *more, "-R",
                      f"^({'|'.join(re.escape(name) for name in names)})$"], limit, where,
                     environment)
    took = time.monotonic() - began
    if code == 0:
        return True, None, took
    failed = re.findall(r"Test +#\d+: (\S+) \.*\**(?:Failed|Timeout|Exception|Subprocess|"
                        r"\*\*\*)|\d+ - (\S+) \(", text)
    name = next(("".join(pair) for pair in failed), names[0])
    return False, f"time: {name}" if code is None else name, took


class DoesNotCompile(Exception):
    """Another file than the changed one does not compile any more."""


class Reach:
    """What tests run a line. A line of several that make one statement counts as the first."""

    def __init__(self, tree, build, coverage, files):
        self.tree, self.build, self.coverage, self.files = tree, build, coverage, files
        self.lock, self.kept = threading.Lock(), f"{coverage}/reach.json"
        whole = hashlib.sha256()
        for folder in "src", "profilers", "parsers", "tools", "test":
            for name in sorted(glob.glob(f"{tree}/{folder}/**", recursive=True)):
                if os.path.isfile(name) and not re.search("mutate.py$|__pycache__", name):
                    with open(name, "rb") as file:
                        whole.update(name.encode() + file.read())
        self.sources, self.tests = whole.hexdigest(), {}
        try:
            with open(self.kept) as file:
                kept = json.load(file)
            if kept["sources"] == self.sources:
                self.tests = kept["tests"]
        except (OSError, ValueError, KeyError):
            pass

    def names(self, build):
        _, text = run(["ctest", "--test-dir", build, "-N", "-R", TESTS, "-LE", NOT_LABELLED],
                      120, self.tree)
        return re.findall(r"Test +#\d+: (\S+)", text)

    def notes(self):
        """The compiler's notes of each object whose lines are asked for."""
        folders = {os.path.dirname(name) for name in self.files}
        folders.add("test/unit") # for what is inline in a header
        found = []
        for note in glob.glob(f"{self.coverage}/**/*.gcno", recursive=True):
            # A target's folder stands inside the path of a source's.
            source = re.sub(r"CMakeFiles/[^/]*\.dir/", "", os.path.relpath(note, self.coverage))
            source = os.path.normpath(source.replace("__/", "../"))
            if os.path.dirname(source) in folders:
                found.append(note)
        return found

    def lines_of(self, test, notes):
        """The lines that a test runs: their numbers, for each file."""
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            passed(self.coverage, [test], 3 * LONGEST, self.tree,
                   environment={"GCOV_PREFIX": folder, "GCOV_ERROR_FILE": "/dev/null"})
            counted = []
            for note in notes:
                data = f"{folder}{note[:-5]}.gcda"
                if os.path.exists(data):
                    shutil.copy(note, f"{data[:-5]}.gcno")
                    counted.append(data)
            if not counted:
                return found
            _, text = run(["gcov", "--json-format", "--stdout", *counted], 600, folder)
        for one in text.splitlines():
            if not one.startswith("{"):
                continue
            report = json.loads(one)
            for file in report["files"]:
                name = os.path.join(report["current_working_directory"], file["file"])
                name = os.path.relpath(os.path.realpath(name), self.tree)
                if name in self.files:
                    found.setdefault(name, set()).update(
                        line["line_number"] for line in file["lines"] if line["count"])
        return {name: sorted(lines) for name, lines in found.items()}

    def look_at(self, test, covered, notes):
        lines = self.lines_of(test, notes) if covered else {}
        okay, took = True, 0
        if lines or not covered:
            okay, _, took = passed(self.build, [test], LONGEST, self.tree)
        with self.lock:
            self.tests[test] = {"passes": okay, "took": took, "covered": covered,
                                "lines": lines}
            with open(f"{self.kept}.new", "w") as file:
                json.dump({"sources": self.sources, "tests": self.tests}, file)
            os.replace(f"{self.kept}.new", self.kept)
            print(f"mutate: {len(self.tests)} {test}: {took:.1f} s, runs "
                  f"{sum(map(len, lines.values()))} lines"
                  f"{'' if okay else ' -- fails or takes too long, and is not used'}",
                  flush=True)

    def find(self):
        covered, notes = set(self.names(self.coverage)), self.notes()
        if not notes:
            sys.exit(f"mutate: error: {self.coverage} has no notes of coverage (*.gcno)")
        tests = self.names(self.build)
        self.tests = {name: of for name, of in self.tests.items() if name in tests}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                for done in [pool.submit(self.look_at, test, test in covered, notes)
                             for test in tests if test not in self.tests]:
                    done.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        self.starts = {name: sorted({line for of in self.tests.values()
                                     for line in of["lines"].get(name, [])})
                       for name in self.files}

    def tests_of(self, area, name, number):
        """The tests that run a line: unit tests first, and the quick ones first."""
        # The first line of the statement, if the compiler has no code for this one.
        first = max((line for line in self.starts[name] if line <= number), default=0)
        found = [(of["took"], test) for test, of in self.tests.items() if of["passes"] and
                 (first in of["lines"].get(name, []) or
                  not of["covered"] and re.search(UNCOVERED.get(area, "$^"), test))]
        return sorted(found, key=lambda one: (one[1].startswith("e2e"), one[0]))


class Project:
    def __init__(self, tree, build):
        self.tree, self.build = tree, build
        with open(f"{build}/compile_commands.json") as file:
            self.commands = {}
            for entry in json.load(file):
                self.commands.setdefault(os.path.realpath(entry["file"]), entry)

    def files(self, area):
        names = []
        for pattern in AREAS[area]:
            names += glob.glob(pattern, root_dir=self.tree)
        return sorted(names)

    def assembly(self, path):
        """What the compiler makes of a file, without line numbers; None if nothing."""
        entry = self.commands.get(path)
        if not entry: # a header
            return ""
        words = shlex.split(entry["command"])
        at = words.index("-o")
        words = words[:at] + words[at + 2:] + ["-g0", "-S", "-o", "-"]
        words = [word for word in words if word not in ("-c", "-fstack-usage")]
        code, text = run(words, 120, entry["directory"])
        return text if code == 0 else None

    def make(self, tests=None):
        """Builds all, or what these tests run if they are unit tests only."""
        targets = [re.sub("^corpus_", "replay_", test[5:]) for test in tests or []
                   if test.startswith("unit/")]
        if not tests or len(targets) < len(tests):
            targets = ["all"]
        return run(["cmake", "--build", self.build, "--target", *targets], 1800, self.tree)

    def end_what_stays(self):
        """A change can leave programs of this build that never end."""
        for process in glob.glob("/proc/[0-9]*"):
            try:
                program = os.readlink(f"{process}/exe")
                if program.startswith(f"{self.build}/"):
                    os.kill(int(process[6:]), 9)
            except OSError:
                pass

    def noticed_by(self, tests):
        """The first test that fails, or None; and how many tests were tried."""
        batches, sum_of_batch, whole, tried = [[]], 0, 0, 0
        for took, test in tests:
            # Unit tests first, and by themselves: they need little of the build.
            if batches[-1] and (sum_of_batch + took > 20 or
                                batches[-1][0][:4] != test[:4]):
                batches.append([])
                sum_of_batch = 0
            batches[-1].append(test)
            sum_of_batch += took
            whole += took
            if whole > PATIENCE:
                break
        took = dict((test, took) for took, test in tests)
        for batch in filter(None, batches):
            if self.make(batch)[0]:
                raise DoesNotCompile
            tried += len(batch)
            okay, failed, _ = passed(self.build, batch,
                                     60 + 3 * sum(took[test] for test in batch), self.tree,
                                     "-j2", "--timeout", "150")
            if not okay:
                return failed, tried
        return None, tried


def one_change(project, chooser, area):
    """Changes a line. The file, its former text, the line's number, and both lines."""
    while True:
        name = chooser.choice(project.files(area))
        path = f"{project.tree}/{name}"
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
            return name, text, number + 1, old.strip(), new.strip()
        with open(path, "w") as file:
            file.write(text)


def try_one(project, reach, chooser, area):
    """A change, and what became of it; None if it does not count."""
    name, text, line, old, new = one_change(project, chooser, area)
    tests = reach.tests_of(area, name, line)
    try:
        by, tried = project.noticed_by(tests)
    except DoesNotCompile:
        return None
    finally:
        project.end_what_stays()
        with open(f"{project.tree}/{name}", "w") as file:
            file.write(text)
    what = f"noticed by {by}" if by else f"NOT NOTICED by {tried} of {len(tests)} tests that run it"
    return by is not None, (f"{area}: {what}\n     {name}:{line}: {old}\n"
                            f"     {' ' * len(f'{name}:{line}')}  {new}")


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    for number in signal.SIGTERM, signal.SIGHUP: # A changed file is put back.
        signal.signal(number, lambda *_: sys.exit(1))
    tree, build, coverage = (os.path.realpath(path) for path in sys.argv[1:4])
    count, chooser = int(sys.argv[4]), random.Random(sys.argv[5])
    areas = sys.argv[6:] or list(AREAS)
    for area in areas:
        if area not in AREAS:
            sys.exit(f"mutate: error: there is no area '{area}': {', '.join(AREAS)}")
    project = Project(tree, build)
    reach = Reach(tree, build, coverage,
                  {name for area in AREAS for name in project.files(area)})
    code, text = project.make()
    if code:
        sys.exit(f"mutate: error: the tree does not build:\n{text[-2000:]}")
    reach.find()
    noticed, done = {area: 0 for area in areas}, {area: 0 for area in areas}
    print(f"mutate: {count} changes, seed {sys.argv[5]}", flush=True)
    number = 0
    while number < count:
        area = areas[number % len(areas)]
        result = try_one(project, reach, chooser, area)
        if not result:
            continue
        number += 1
        done[area] += 1
        noticed[area] += result[0]
        print(f"{number:4} {result[1]}", flush=True)
    project.make()
    for area in areas:
        if done[area]:
            print(f"{area}: {noticed[area]} of {done[area]} noticed "
                  f"({100 * noticed[area] / done[area]:.0f} %)")
    all_done = sum(done.values())
    print(f"all: {100 * sum(noticed.values()) / max(all_done, 1):.1f} % of {all_done} "
          f"(aim: 90 %), seed {sys.argv[5]}")


if __name__ == "__main__":
    main()
