#!/usr/bin/env python3
"""Has each message that a user can meet an entry in troubleshooting.md?

Usage: messages.py SOURCE_DIR GUIDE [FILE...]

Messages are the string constants of the files in COVERED (or of FILE...) with
three words or more, those that the files in CALLED pass to functions that tell
something, and the texts of the lists of reasons in LISTS. Entries are
what stands between backquotes in the first column of the guide's tables, with
"..." for what differs. Prints each message without an entry, and each entry
without a message, and then fails.
"""
import glob
import os
import re
import sys

COVERED = [
    "parsers/profile/notices.c", "parsers/profile/labels.c",
    "parsers/profile/context.c", "parsers/stream/balance_text.c",
    "parsers/stream/input.c", "parsers/stream/reader.c",
    "profilers/*/*.[ch]", "src/session/*.c", "src/writer/*.c", "src/push/*.c",
    "src/base/join_message.c", "src/base/settings*.[ch]", "src/base/signals.h", "src/base/status.c",
    "tools/push/*.c", "tools/record/*.c", "tools/join/*.c", "tools/stacks/*.c",
    "tools/shared/*.c",
]
# Of these only what is passed to a function that tells the user something, since
# most of their other texts are parts of reports.
CALLED = [
    "tools/*.c", "tools/advise/*.c", "tools/expect/*.c", "tools/export/*.c",
    "tools/exporter/*.c", "tools/gather/*.c", "tools/heap/*.c",
    "tools/inspect/*.c", "tools/page/*.c", "tools/push/*.c", "tools/report/*.c",
    "tools/rewrite/*.c", "tools/top/*.c", "parsers/heap/*.c",
    "parsers/symbols/*.c", "parsers/tarantool/*.c",
]
CALLS = re.compile(r"\b(?:ljp_command_error|ljp_command_note|ljp_page_notice|"
                   r"ljp_profile_notice|[a-z_]+_(?:refuse|refused|fail|failed|"
                   r"say|notice|tell|error|wrong|misused))\(")
# Lists of reasons, which count whatever their length.
LISTS = {
    "src/base/format.h": ["LJP_CUT_LIST", "LJP_LOSS_LIST",
                          "LJP_UNSAMPLED_LIST"],
    "src/base/status.h": ["LJP_STATUS_LIST"],
    "parsers/stream/item.h": ["LJP_GAP_LIST", "LJP_BAD_LIST"],
}
# What is no message: file, text, reason.
EXCEPTIONS = [
    ("", r"^Usage: |^usage: ", "the help of a command"),
    ("", r", $", "the middle of a message"),
    ("profilers/|src/base/", r"\\n.*\\n|\.cfi|mov[qlz]|\.long|subq|\.hidden|  call ",
     "assembly"),
    ("profilers/api/labels_", r"^local |^return function", "Lua code"),
    ("profilers/unwind/unwind.h", r"", "for tests and benchmarks; users see "
     "the reasons of LJP_CUT_LIST"),
    ("tools/join/status.c", r"^, started by|samples of", "what status prints"),
    ("tools/join/list.c", r"PID  STATE", "a head of a table"),
    ("tools/stacks/text.c", r"^waiting, cannot|^stopped by a|unknown state|"
     r"suspended coroutine", "states of threads, for reading"),
    ("tools/shared/gc_phases.c", r"", "a line of a report"),
    ("src/base/settings.h", r"^(lua all this|auto perf trap tick posix)$",
     "words that are taken"),
    ("src/base/status.c", r"^; give the snapshot", "part of a message above"),
    ("src/writer/ljm_symbols.c", r"^\(unknown Lua", "a name in a report"),
    ("profilers/join/entry.c", r"", "assembly"),
    ("src/base/(format|status).h|parsers/stream/item.h",
     r"^(success|whole|none)$", "no error"),
    ("tools/join/examine.c", r"^, from the package|^no build ID",
     "parts of a message"),
    ("tools/record/program.c", r"^' in its place$", "the end of a message"),
    ("tools/record/told.c", r"^ \(--children", "the end of a message"),
    ("tools/join/knock.c", r"^the program behind ", "the name of a program"),
]


def strings(text):
    """The string constants of C code; neighbours are one."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#\s*include.*$", "", text, flags=re.M)
    text = re.sub(r"_Static_assert\([^;]*;|\bljp_assert\([^;]*;", "", text)
    text = text.replace("\\\n", " ")
    token = re.compile(r'"((?:[^"\\]|\\.)*)"|\'(?:[^\'\\]|\\.)+\'|\s+|'
                       r"PRI[a-zX]+\d*|[A-Z]+_[A-Z_]+|.", re.S)
    joined = None
    for m in token.finditer(text):
        if m.group(1) is not None:
            joined = (joined or "") + m.group(1)
        elif m.group().isspace():
            pass
        elif joined is not None and m.group().startswith("PRI"):
            joined += "d"
        elif joined is not None and re.match(r"[A-Z]+_[A-Z_]+", m.group()):
            joined += "%s"  # a macro that is a text
        elif joined is not None:
            yield joined
            joined = None


def words(text):
    return re.findall(r"[A-Za-z][a-z'-]*[a-z]", re.sub(r"%[-.*0-9]*[a-z]+", "",
                                                     text))


def excepted(name, text):
    return any(re.search(f, name) and re.search(t, text)
               for f, t, _ in EXCEPTIONS)


def messages(root, files):
    for name in files:
        with open(os.path.join(root, name), encoding="utf-8") as f:
            for text in strings(f.read()):
                if len(words(text)) >= 3 and " " in text and \
                        not excepted(name, text):
                    yield name, text


def called(root, files):
    for name in files:
        with open(os.path.join(root, name), encoding="utf-8") as f:
            code = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
        for m in CALLS.finditer(code):
            # Up to the end of the statement; a string may have a semicolon.
            end = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^";{])*').match(
                code, m.end())
            for text in strings(end.group() + ";"):
                if len(words(text)) >= 3 and not excepted(name, text):
                    yield name, text


def listed(root):
    for name, lists in LISTS.items():
        with open(os.path.join(root, name), encoding="utf-8") as f:
            code = f.read()
        for which in lists:
            body = re.search(r"#define " + which + r"\(.*?\n\n", code, re.S)
            for text in strings(body.group()):
                if not excepted(name, text):
                    yield name, text


def entries(guide):
    with open(guide, encoding="utf-8") as f:
        for line in f:
            if line.startswith("| `"):
                yield from re.findall(r"`([^`]+)`", line.split(" | ")[0])


def main():
    root, guide, files = sys.argv[1], sys.argv[2], sys.argv[3:]

    def named(patterns):
        return sorted(os.path.relpath(p, root) for pattern in patterns
                      for p in glob.glob(os.path.join(root, pattern)))

    wanted = list(messages(root, files or named(COVERED)))
    if not files:
        wanted += list(called(root, named(CALLED))) + list(listed(root))
    found = {}
    bad = 0
    for entry in dict.fromkeys(entries(guide)):
        if len(re.sub(r"[^A-Za-z]", "", entry)) < 5:
            print(f"too little text: {entry}")
            bad += 1
        found[entry] = [re.compile(".*?".join(map(
            re.escape, entry.split("..."))), re.S), 0]
    for name, text in wanted:
        plain = re.sub(r"%%", "%", re.sub(r"%[-.*0-9l]*z?[cdfgsuxX]", "\0", text))
        plain = plain.replace('\\"', '"')
        hits = [f for f in found.values() if f[0].search(plain)]
        for f in hits:
            f[1] += 1
        if not hits:
            print(f"no entry: {name}: {text}")
            bad += 1
    for entry, (_, count) in found.items():
        if not count:
            print(f"no such message: {entry}")
            bad += 1
    print(f"{len(wanted)} messages, {len(found)} entries")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
