#!/usr/bin/env python3
"""Writes doc/evidence/benchmarks.md from the outputs of benchmarks.

  evidence.py LOGS NAME...   LOGS has NAME.txt and NAME.commit for each of the benchmarks
                             that was run, and plots/*.svg
  evidence.py --commit       only prints the commit, for NAME.commit

The text before an output is what the benchmark's own file says of itself."""
import glob
import os
import re
import shutil
import subprocess
import sys

TARGET = "doc/evidence/benchmarks.md"
PLOTS = "doc/evidence/plots"


def first_words(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True,
                          check=False).stdout.strip()


def machine():
    model = first_words("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1")
    virtual = first_words("systemd-detect-virt 2> /dev/null")
    virtual = ", virtual" if virtual not in ("", "none") else ""
    memory = int(first_words("sed -n 's/MemTotal: *//p' /proc/meminfo").split()[0]) >> 20
    return [
        f"{os.cpu_count()} CPUs{virtual}: {model or 'model unknown'}, {memory} GiB",
        first_words(". /etc/os-release; echo \"$PRETTY_NAME\"") + ", Linux "
        + os.uname().release.split("-")[0] + ", " + first_words("cc --version | head -n 1"),
    ]


def commit():
    text = first_words("git rev-parse --short=12 HEAD")
    if first_words("git status --porcelain --untracked-files=no"):
        text += ", with changes that are not committed"
    return text or "no repository"


def what_it_is(name):
    """The comment at the head of the benchmark's file, without its usage."""
    for path in (f"bench/{name}.sh", f"bench/{name}.c"):
        if os.path.exists(path):
            with open(path) as file:
                text = file.read()
            break
    else:
        return path, ""
    if path.endswith(".c"):
        comment = text.split("*/")[0].removeprefix("/*\n")
        lines = [line.removeprefix("**").strip() for line in comment.splitlines()]
    else:
        lines = []
        for line in text.splitlines()[1:]:
            if not line.startswith("#"):
                break
            lines.append(line[1:].strip())
    paragraph = []
    for line in lines:
        if not line or line.startswith(("Usage", "shellcheck")):
            if paragraph:
                break
            continue
        paragraph.append(line)
    return path, " ".join(paragraph)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--commit":
        print(commit())
        return
    logs = sys.argv[1]
    names = sorted(os.path.basename(path)[:-4] for path in glob.glob(f"{logs}/*.txt"))
    if not names:
        sys.exit(f"evidence: error: there are no outputs in {logs}")
    missing = sorted(set(sys.argv[2:]) - set(names))
    commits = {}
    for name in names:
        with open(f"{logs}/{name}.commit") as file:
            commits[name] = file.read().strip()
    most = max(sorted(set(commits.values())), key=list(commits.values()).count)
    out = ["# Benchmarks", "",
           "`./run bench all` writes this page. `./run bench NAME` repeats one part of it.", "",
           f"- Commit {most}, if a part names no other", *(f"- {line}" for line in machine()), "",
           "Compare ratios and instruction counts, not times: another machine has other times."]
    if missing:
        out += ["", f"Not measured: {', '.join(missing)}."]
    plots = sorted(glob.glob(f"{logs}/plots/*.svg"))
    if plots:
        os.makedirs(PLOTS, exist_ok=True)
    for name in names:
        path, text = what_it_is(name)
        out += ["", f"## {name}", "", f"`{path}`: {text}" if text else f"`{path}`", ""]
        if commits[name] != most:
            out += [f"Commit {commits[name]}.", ""]
        if name == "growth":
            for plot in plots:
                shutil.copy(plot, PLOTS)
                with open(plot) as file:
                    title = re.search("<title>(.*?)</title>", file.read())[1]
                out.append(f"![{title}](plots/{os.path.basename(plot)})")
            out.append("")
        with open(f"{logs}/{name}.txt") as file:
            out += ["```", file.read().strip("\n"), "```"]
    with open(TARGET, "w") as file:
        file.write("\n".join(out) + "\n")
    print(f"{TARGET}: {len(names)} benchmarks, {len(plots)} pictures")


if __name__ == "__main__":
    main()
