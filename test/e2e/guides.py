#!/usr/bin/env python3
"""Runs the commands that a guide prints.

Usage: guides.py [--check] PAGE...      --check: only looks at the pages

Every block of code of a page says what it is:

- "```LANGUAGE FILE" is written into FILE.
- "```console" has commands after "$ " (a line that ends with a backslash goes on),
  each with its output below. "```sh" has commands only.
- "```text" and other languages ("```lua", "```yaml" ...) have no commands.

All commands of a page run, one after the other, in one shell, in a folder with a
link to the examples and the tests of the source tree; each must succeed. A comment
directly above a block says what differs:

- "<!-- not run: REASON -->": nobody runs the commands of the block.
- "<!-- exits with: CODE -->": the last command of the block does.

Comments for the page:

- "<!-- hidden: COMMAND -->" is a command, too, which only a test needs.
- "<!-- needs: PROGRAM... -->", once: where a program or a file is not there, the
  page is not run. The exit code is then 77.

Of the printed output, lines without numbers must come again. In lines with numbers,
these and their units may be others, and so may one of five words, since samples differ
from run to run. For the same reason, one of five such lines may be missing if it names
a Lua file. "..." stands for what is left out.

Prints a line for each page; fails if a command fails or prints other things, or if
a page has commands that are neither run nor marked.
"""
import collections
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile

SECONDS = 300
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77

TOKEN = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^ *```$|"
    r"^<!-- (?P<mark>hidden|not run|exits with|needs)(?:: (?P<text>.*?))? -->$",
    re.M | re.S)
# What looks like a command where none should be.
COMMAND = re.compile(
    r"^\s*(?:\$ \S|(?:sudo |nice |exec |[A-Z_]+=\S+ )*"
    r"(?:ljprof|luajit|\./run|perf|docker|podman|git|cmake|curl|apt|cc|nginx|nvim|"
    r"tar|man|export|sudo|LJPROF_[A-Z]+=\S+|LD_[A-Z_]+=\S+) \S)", re.M)
UNITS = r"[num]?s|min|h|d|[kKMGT]i?B|[BkKMGT%]"
NUMBER = re.compile(rf"(\.lua:\d+)|0x[0-9a-f]+|(?<![\w./])[~+-]*\d[\d.,:/TZ-]*"
                    rf"(?:e[+-]?\d+)?(?: ?(?:{UNITS})(?![\w%]))?")

Command = collections.namedtuple("Command", "text wanted code")
Page = collections.namedtuple("Page", "commands faults needs not_run")


def shell_commands(body, prompt):
    """The commands of a block as [text, lines of output]."""
    found, more = [], False
    for line in body.split("\n"):
        if more:
            found[-1][0] += "\n" + line
        elif prompt and line.startswith("$ "):
            found.append([line[2:], []])
        elif not prompt and line.strip() and not line.lstrip().startswith("#"):
            found.append([line, []])
        elif prompt and found:
            found[-1][1].append(line)
        elif prompt and line.strip():
            return None
        more = line.endswith("\\") and (more or not prompt or line.startswith("$ "))
    return found


def block(page, info, body, marks):
    """A block of code, with the marks above it."""
    words, start = info.split(), (body.strip().split("\n") or [""])[0]
    reason, code = marks.pop("not run", None), marks.pop("exits with", 0)
    if reason is not None:
        page.not_run.append(reason)
        if not reason:
            page.faults.append(f"a block is not run without a reason: '{start}'")
        return
    if not words:
        page.faults.append(f"a block does not say what it is: '{start}'")
    elif len(words) == 2:
        page.commands.append(Command(("write", words[1], body), [], 0))
    elif words[0] in ("console", "sh"):
        commands = shell_commands(body, words[0] == "console")
        if not commands:
            page.faults.append(f"a block has no commands: '{start}'")
            return
        for text, wanted in commands:
            page.commands.append(Command(text, wanted, 0))
        page.commands[-1] = page.commands[-1]._replace(code=int(code))
    elif COMMAND.search(body):
        page.faults.append("commands are not in a block 'console' or 'sh': "
                           f"'{COMMAND.search(body).group().strip()}'")


def parse(text):
    page = Page([], [], [], [])
    marks, end, rest = {}, 0, []
    for m in TOKEN.finditer(text):
        between = text[end:m.start()]
        if marks and between.strip():
            page.faults.append(f"no block is below '{next(iter(marks))}'")
            marks = {}
        rest.append(between)
        end = m.end()
        mark, value = m.group("mark"), m.group("text") or ""
        if mark == "hidden":
            page.commands.append(Command(value, [], 0))
        elif mark == "needs":
            page.needs.extend(value.split())
        elif mark:
            marks[mark] = value.strip()
        else:
            block(page, m.group("info"), m.group("body"), marks)
    rest.append(text[end:])
    if marks:
        page.faults.append(f"no block is below '{next(iter(marks))}'")
    for line in re.findall(r"^(?:    |\t).*", "\n".join(rest), re.M):
        if COMMAND.match(line):
            page.faults.append(f"commands are not in a block: '{line.strip()}'")
    return page


def plain(line):
    """A line with its numbers as "#", without folders and repeated blanks."""
    line = re.sub(r"[^\s(]*/(?=[\w.-]+\.(?:lua|c|h)\b)|(?<!\S)/\S*/(?=[\w.-])", "", line)
    line = NUMBER.sub(lambda m: m.group(1) or "#", line)
    return re.sub(r"\s+", " ", line).strip()


def letters(line):
    return [w for w in line.split(" ") if re.search(r"[^\W\d_]", w)]


def found(line, lines, words):
    """Is a line with numbers in the output, given as lines and as their words?"""
    if line in lines:
        return True
    wanted = collections.Counter(letters(line.replace("...", " ")))
    count = sum(wanted.values())
    return count > 0 and any(5 * sum((wanted & have).values()) >= 4 * count
                             for have in words)


def differs(wanted, got):
    """Those of the printed lines that did not come again, if they are too many."""
    lines = {plain(line) for line in got.split("\n")}
    words = [collections.Counter(letters(line.replace("...", " "))) for line in lines]
    exact, lost, count = [], [], 0
    for line in wanted:
        if line.strip() in ("", "..."):
            continue
        if re.search(r"\d", line):
            count += 1
            if not found(plain(line), lines, words):
                (lost if ".lua" in line else exact).append(line.strip())
        elif "..." in line:
            pattern = ".*".join(re.escape(p) for p in plain(line).split("..."))
            if not any(re.fullmatch(pattern, have) for have in lines):
                exact.append(line.strip())
        elif plain(line) not in lines:
            exact.append(line.strip())
    if 5 * len(lost) > count:
        exact += lost
    return exact


def script_of(commands, top):
    """A shell script that runs all commands; the output of each is in a file."""
    script = ["trap 'kill $(jobs -p) 2> /dev/null' EXIT", "cd work"]
    for i, command in enumerate(commands):
        text = command.text
        if isinstance(text, tuple):
            _, name, body = text
            os.makedirs(os.path.dirname(os.path.join(top, "work", name)), exist_ok=True)
            with open(os.path.join(top, f"file{i}"), "w", encoding="utf-8") as f:
                f.write(body)
            text = f"cp '{top}/file{i}' {name}"
        script.append(f"{{ {text}\n}} > '{top}/out.{i}' 2>&1\n"
                      f"[ $? = {command.code} ] || {{ echo {i} > '{top}/failed'; exit 1; }}")
    script.append(f"echo > '{top}/whole'")
    return "\n".join(script)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def run(commands, top):
    """What is wrong, or None."""
    work = os.path.join(top, "work")
    os.mkdir(work)
    for folder in (top, work):
        os.chmod(folder, 0o755)  # for servers that drop root
    for name in ("examples", "test"):
        os.symlink(os.path.join(SOURCE, name), os.path.join(work, name))
    try:
        subprocess.run(["bash", "-c", script_of(commands, top)], cwd=top,
                       stdin=subprocess.DEVNULL, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} s"
    failed = os.path.join(top, "failed")
    failed = int(read(failed)) if os.path.exists(failed) else -1
    for i, command in enumerate(commands):
        path = os.path.join(top, f"out.{i}")
        if not os.path.exists(path):
            return f"'{command.text}' was not run"
        got = read(path)
        if failed == i:
            return f"'{command.text}' did not end with {command.code}: {got}"
        missing = differs(command.wanted, got)
        if missing:
            more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
            return (f"'{command.text}' does not print\n  " + "\n  ".join(missing[:5]) +
                    f"{more}\nbut:\n{got}")
    if not os.path.exists(os.path.join(top, "whole")):
        return f"'{commands[-1].text}' ends the shell"
    return None


def try_page(path, only_check):
    """Prints what became of a page: 0, 1 or SKIPPED."""
    name = os.path.basename(path)
    page = parse(read(path))
    if page.faults:
        print(f"{name}: FAILED: " + "\n  ".join(page.faults))
        return 1
    count = sum(not isinstance(c.text, tuple) for c in page.commands)
    said = f"{name}: {count} commands"
    if page.not_run:
        said += f", {len(page.not_run)} blocks not run ({'; '.join(sorted(set(page.not_run)))})"
    if only_check or not count:
        print(said)
        return 0
    lacks = [p for p in page.needs
             if not (os.path.exists(p) if "/" in p else shutil.which(p))]
    if lacks:
        print(f"{name}: not run: {', '.join(lacks)} not installed")
        return SKIPPED
    # Servers of a page have fixed ports: the page runs once at a time.
    lock = os.path.join(tempfile.gettempdir(), f"ljprof-{name}-{os.getuid()}.lock")
    with open(lock, "a", encoding="utf-8") as held, \
            tempfile.TemporaryDirectory(dir=os.getcwd()) as top:
        fcntl.flock(held, fcntl.LOCK_EX)
        wrong = run(page.commands, top)
    print(f"{name}: FAILED: {wrong}" if wrong else said)
    return 1 if wrong else 0


def main():
    pages = sys.argv[1:]
    only_check = pages[:1] == ["--check"]
    codes = [try_page(path, only_check) for path in pages[only_check:]]
    return 1 if 1 in codes else max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
