#!/usr/bin/env python3
"""Runs what a guide prints.

Usage: guides.py GUIDE...

A guide that begins with a comment "<!-- run -->" or "<!-- run: PROGRAM... -->"
is run, if its programs and files are there. In it

- a block "```LANGUAGE FILE" is written into FILE;
- a block "```console" has commands after "$ " (a line that ends with a backslash
  goes on), each with its output below. All commands of a guide run one after
  the other in one shell, and each must succeed. Of the printed output, lines
  without digits must come again, and so must half of the places in Lua files
  (app.lua:12), for samples differ from run to run, as figures do. "..." stands
  for what is left out.
- A comment "<!-- hidden: COMMAND -->" is a command, too, which only a test needs.

Prints one line for each guide; fails if a command fails or prints other things.
"""
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile

SECONDS = 300
LOCK = os.path.join(tempfile.gettempdir(), f"ljprof-guides-{os.getuid()}.lock")


def parse(text):
    """Files, and commands as [command, lines of output]."""
    files, commands = [], []
    token = re.compile(r"^ *```(\S+)(?: (\S+))?\n(.*?)^ *```$|"
                       r"^<!-- hidden: (.*?) -->$", re.M | re.S)
    for m in token.finditer(text):
        language, name, body, hidden = m.groups()
        if hidden:
            commands.append([hidden, []])
        elif name:
            commands.append([("write", name, body), []])
        elif language == "console":
            more = False
            for line in body.split("\n"):
                if more:
                    commands[-1][0] += "\n" + line
                elif line.startswith("$ "):
                    commands.append([line[2:], []])
                else:
                    commands[-1][1].append(line)
                more = line.endswith("\\") and (more or line.startswith("$ "))
    return commands


def plain(line):
    return re.sub(r"\s+", " ", line).strip()


def differs(wanted, got):
    """What of the printed output did not come again."""
    lines = {plain(line) for line in got.split("\n")}
    places = set(re.findall(r"[\w-]+\.lua:\d+", "\n".join(wanted)))
    lost = {place for place in places if place not in got}
    if 2 * len(lost) > len(places):
        return ", ".join(sorted(lost))
    for line in wanted:
        line = plain(line)
        if line and "..." not in line and not re.search(r"\d|: note: ", line) and \
                line not in lines:
            return line
    return None


def run(guide, folder):
    with open(guide, encoding="utf-8") as f:
        commands = parse(f.read())
    if not commands:
        return "no command in it"
    script = ["trap 'kill $(jobs -p) 2> /dev/null' EXIT"]
    for i, (command, _) in enumerate(commands):
        if isinstance(command, tuple):
            _, name, body = command
            os.makedirs(os.path.join(folder, os.path.dirname(name)),
                        exist_ok=True)
            with open(os.path.join(folder, f"file{i}"), "w",
                      encoding="utf-8") as f:
                f.write(body)
            command = f"cp file{i} {name}"
        script.append("{ %s\n} > out.%d 2>&1 || { echo %d > failed; exit 1; }" %
                      (command, i, i))
    try:
        subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder,
                       stdin=subprocess.DEVNULL, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} s"
    for i, (command, wanted) in enumerate(commands):
        path = os.path.join(folder, f"out.{i}")
        if not os.path.exists(path):
            return f"'{command}' was not run"
        with open(path, encoding="utf-8", errors="replace") as f:
            got = f.read()
        if os.path.exists(os.path.join(folder, "failed")) and \
                open(os.path.join(folder, "failed")).read().strip() == str(i):
            return f"'{command}' failed: {got}"
        missing = differs(wanted, got)
        if missing:
            return f"'{command}' does not print '{missing}', but: {got}"
    count = sum(not isinstance(c, tuple) for c, _ in commands)
    return count


def main():
    bad = 0
    # Servers of guides have fixed ports: one run at a time.
    lock = open(LOCK, "a", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    for guide in sys.argv[1:]:
        name = os.path.basename(guide)
        with open(guide, encoding="utf-8") as f:
            mark = re.match(r"<!-- run(?:: ([^>]*?))? -->", f.read())
        if not mark:
            continue
        lacks = [p for p in (mark.group(1) or "").split()
                 if not (os.path.exists(p) if "/" in p else shutil.which(p))]
        if lacks:
            print(f"{name}: not run: {', '.join(lacks)} not installed")
            continue
        with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
            os.chmod(folder, 0o755)  # for servers that drop root
            result = run(guide, folder)
        if isinstance(result, int):
            print(f"{name}: {result} commands")
        else:
            print(f"{name}: FAILED: {result}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
