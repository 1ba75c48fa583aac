#!/usr/bin/env python3
"""Has each message that a user can meet an entry in troubleshooting.md?

Usage: messages.py [--exceptions] SOURCE_DIR GUIDE

Messages are the texts that message_texts.py finds in FILES, except for those that
message_exceptions.py names. Entries are what stands between backquotes in the first
column of the guide's tables, with "..." for what differs. An entry is that of a message
if its words stand in the message, in this order, and are more than half of what the
message says. So a few words that happen to stand in a long message are no entry for it.

Prints each message without an entry, each entry without a message and, if asked to,
each exception without a text. If there is one, it fails.
"""
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
import message_exceptions as exceptions  # noqa: E402
import message_texts  # noqa: E402

# The Lua scripts in src/luajit/asm speak to those who change LuaJIT's assembly.
FILES = [
    "src/**/*.[ch]", "profilers/**/*.[ch]", "parsers/**/*.[ch]", "tools/**/*.[ch]",
    "tools/lua/**/*.lua", "tools/viewer/*.js", "tools/viewer/*.html", "run", "cmake/*",
    "CMakeLists.txt", "[a-z]*/CMakeLists.txt", "packaging/*", "test/run-lib.sh",
    "test/engines/make-engines",
]


class Exceptions:
    """Which texts need no entry; notes which exceptions have a text."""

    def __init__(self):
        self.contexts = exceptions.NOT_SHOWN | exceptions.LISTS
        self.unused = set(self.contexts) | exceptions.PARTS | set(exceptions.EXCEPTIONS)

    def have(self, name, context, text):
        text = re.sub(r"^(\\n|\s)+|(\\n|\s)+$", "", text)
        if context in self.contexts or context in exceptions.PARTS:
            self.unused.discard(context)
        if context in self.contexts:
            return True
        if context in exceptions.PARTS or re.search(exceptions.PARTS_FILES, name):
            if not re.search(exceptions.WRONG, text):
                return True
        for one in exceptions.EXCEPTIONS:
            if re.search(one[0], name) and re.search(one[1], text):
                self.unused.discard(one)
                return True
        return False


def files(root):
    found = {path for pattern in FILES
             for path in glob.glob(os.path.join(root, pattern), recursive=True)
             if os.path.isfile(path)}
    return sorted(os.path.relpath(path, root) for path in found)


def messages(root, excepted):
    """(place, text) of each message."""
    for name in files(root):
        with open(os.path.join(root, name), encoding="utf-8") as f:
            for line, context, text in message_texts.of(name, f.read()):
                if not excepted.have(name, context, text):
                    yield f"{name}:{line}", text


def entries(guide):
    with open(guide, encoding="utf-8") as f:
        for line in f:
            if line.startswith("| `"):
                for one in re.finditer(r"``(.+?)``|`([^`]+)`", line.split(" | ")[0]):
                    yield one.group(1) or one.group(2)


def size(text):
    """How much a text says itself: its letters and digits."""
    return len(re.sub(r"[^A-Za-z0-9]", "", text))


class Entry:
    """An entry, and whether there is a message for it."""

    def __init__(self, text):
        parts = [part.strip() for part in text.split("...")]
        self.size = sum(map(size, parts))
        self.longest = max(parts, key=len)
        self.used = False
        # No part begins or ends inside of a word.
        self.pattern = re.compile(".*?".join(
            (r"(?<![A-Za-z0-9])" if re.match(r"\w", p) else "") + re.escape(p) +
            (r"(?![A-Za-z0-9])" if re.search(r"\w$", p) else "") for p in parts))

    def is_of(self, message, message_size):
        return 2 * self.size > message_size and self.longest in message and \
            self.pattern.search(message)


def plain(text):
    """A text as the guide writes it, with a NUL for what is put in."""
    text = re.sub(r"%[-+.*0-9l]*z?[cdfgsuxX]", "\0", text).replace("%%", "%")
    return re.sub(r"\s+", " ", text.replace("\\n", " ").replace('\\"', '"')).strip()


def compare(root, guide, excepted):
    """What is missing on either side, and a line that counts both."""
    found = {text: Entry(text) for text in entries(guide)}
    wrong = [f"too little text: {text}" for text, entry in found.items() if entry.size < 5]
    count = 0
    for place, text in messages(root, excepted):
        message = plain(text)
        message_size = size(message)
        hits = [entry for entry in found.values() if entry.is_of(message, message_size)]
        for entry in hits:
            entry.used = True
        if not hits:
            wrong.append(f"no entry: {place}: {text}")
        count += 1
    wrong += [f"no such message: {text}" for text, entry in found.items()
              if not entry.used]
    return wrong, f"{count} messages, {len(found)} entries"


def main():
    *options, root, guide = sys.argv[1:]
    excepted = Exceptions()
    wrong, end = compare(root, guide, excepted)
    if options == ["--exceptions"]:
        wrong += [f"no such text: {one}" for one in sorted(map(str, excepted.unused))]
    print("\n".join(wrong + [end]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
