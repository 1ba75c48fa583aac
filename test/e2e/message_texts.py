"""Finds the texts in sources that may be messages to a user.

Each function reads the code of one language and yields (line, context, text). A text
is a string constant with two words or more; neighbouring constants are one, and what
is put in when the program runs is "%s" or another format. The context is the function
or macro whose argument the text is; for an item of a list of ours
(#define LJP_..._LIST(_)), the list's name; else "".
"""
import re

C_TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'|'
    r"#[ \t]*define[ \t]+(\w+)(?=\(_\))|(\w+)|[(){}\[\]]|[^\w\"'/(){}\[\]#]+|.",
    re.S)
C_FORMAT = re.compile(r"PRI[a-zX]+\d*$")
C_MACRO = re.compile(r"[A-Z][A-Z0-9]*_[A-Z_0-9]+$")
LUA_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
JS_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`")
SHELL_CALL = re.compile(r"(?:^|[\s({;|&])(die|misuse|say|echo)[ \t]+(?=[\"'])", re.M)
SHELL_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|\\.|.', re.S)
AWK_STATEMENT = re.compile(r"\b(?:die\(|return )((?:.*\\\n)*.*)")
AWK_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|([^"\s\\]+)')
CMAKE_CALL = re.compile(r'(ljp_fail|message)\((?:[A-Z]+_ERROR |WARNING )?("(?:[^"\\]|\\.)*")', re.S)


def is_text(text):
    """Whether it has two words; what is put in does not count."""
    own = re.sub(r"%[-.*0-9l]*z?[a-zA-Z]", " ", text.replace("\\n", " "))
    return " " in text.strip() and len(re.findall(r"[A-Za-z][A-Za-z'-]*[A-Za-z]", own)) > 1


def line_of(code, at):
    return code.count("\n", 0, at) + 1


def of_c(code):
    code = code.replace("\\\n", " \n")
    calls, word, item_of = [], "", ""
    joined, line, first = None, 1, 1
    for m in C_TOKEN.finditer(code):
        token = m.group()
        line += token.count("\n")
        if m.group(1) is not None:
            if joined is None:
                joined, first = "", line
            joined += m.group(1)
        elif token.isspace() or token.startswith(("/*", "//")):
            pass
        elif joined is not None and C_FORMAT.match(token):
            joined += "d"  # the end of a format
        elif joined is not None and C_MACRO.match(token):
            joined += "%s"  # a macro that is a text
        else:
            if joined is not None and is_text(joined):
                call = calls[-1] if calls else ""
                yield first, item_of if call == "_" else call, joined
            joined = None
            if token in "({[":
                calls.append(word if token == "(" else "")
            elif token in ")}]" and calls:
                calls.pop()
            item_of = m.group(2) or item_of
            word = m.group(3) or ""


def of_lua(code):
    code = re.sub(r"--[ -].*|\[\[.*?\]\]", "", code)
    code = re.sub(r'"\s*\.\.\s*"', "", code)
    for m in LUA_STRING.finditer(code):
        if is_text(m.group(1)):
            yield line_of(code, m.start()), "", m.group(1)


def of_js(code):
    code = re.sub(r"^ *//.*$", "", code, flags=re.M)
    code = re.sub(r"' \+\s*'", "", code)
    for m in JS_STRING.finditer(code):
        text = re.sub(r"\$\{[^}]*\}", "%s", m.group(1) or m.group(2) or "")
        if is_text(text):
            yield line_of(code, m.start()), "", text


def of_html(code):
    """What browsers without JavaScript show."""
    for m in re.finditer(r"<noscript>([^<]*)", code):
        yield line_of(code, m.start()), "", m.group(1)


def of_shell(code):
    """What die, misuse and say are given, and what echo writes to stderr."""
    code = re.sub(r"^[ \t]*#.*$", "", code, flags=re.M)
    for m in SHELL_CALL.finditer(code):
        text, end = shell_words(code, m.end())
        if m.group(1) == "echo" and not code.startswith(">&2", end):
            continue
        if is_text(text):
            yield line_of(code, m.start(1)), m.group(1), text


def shell_words(code, at):
    """The words from here to the end of the command, as one text, and where they end."""
    text, quoted = "", False
    while at < len(code) and (quoted or code[at] not in "\n;|&><)}"):
        c = code[at]
        at += 1
        if c == "$":
            at = shell_value(code, at)
            text += "%s"
        elif c == '"':
            quoted = not quoted
        elif c == "'" and not quoted:
            end = code.index("'", at)
            text, at = text + code[at:end], end + 1
        elif c == "\\":
            text += code[at].replace("\n", "")
            at += 1
        else:
            text += c
    return re.sub(r"\s+", " ", text).strip(), at


def shell_value(code, at):
    """The end of what stands behind '$': name, {...}, (...)."""
    begin, end = code[at], {"(": ")", "{": "}"}.get(code[at])
    if not end:
        return re.compile(r"\w+|.").match(code, at).end()
    depth = 0
    while True:
        token = SHELL_TOKEN.match(code, at).group()
        depth += (token == begin) - (token == end)
        at += len(token)
        if not depth:
            return at


def of_awk(code):
    """What die() is given, and what functions return."""
    for m in AWK_STATEMENT.finditer(code):
        text = "".join("%s" if re.search(r"\w", value) else constant
                       for constant, value in AWK_PART.findall(m.group(1)))
        if is_text(text):
            yield line_of(code, m.start()), "die", text


def of_cmake(code):
    for m in CMAKE_CALL.finditer(code):
        text = re.sub(r"\$\{[^}]*\}", "%s", m.group(2)[1:-1].replace("\\\n", ""))
        if is_text(text):
            yield line_of(code, m.start()), m.group(1), text


KINDS = {"c": of_c, "h": of_c, "lua": of_lua, "js": of_js, "html": of_html,
         "awk": of_awk, "cmake": of_cmake, "txt": of_cmake}


def of(name, code):
    """The texts of a file, by its kind; a name without an ending is a script's."""
    return KINDS.get(name.rpartition(".")[2], of_shell)(code)
