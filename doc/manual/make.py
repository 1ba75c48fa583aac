#!/usr/bin/env python3
"""Makes the manual: all documents as HTML pages that link each other.

Usage: make.py SOURCE_DIR OUTPUT_DIR

cmark-gfm turns Markdown into HTML. This script lists the pages (CONTENTS), puts
each into a frame, gives headings the anchors that GitHub gives them, turns links
between documents into links between pages, and writes the index of the search
as a script, since a page from file:// may not read other files. A link that
leads nowhere is an error; one that leads to a file of the repository that is no
page becomes plain text. Needs no network, and its result neither.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys

CONTENTS = [
    ("Start", ["README.md", "doc/guide/first-profile.md",
               "doc/guide/troubleshooting.md"]),
    ("Get it into a program", ["doc/guide/install.md", "doc/guide/programs.md",
                               "doc/guide/joining.md", "doc/guide/nginx.md",
                               "doc/guide/neovim.md", "doc/guide/games.md",
                               "doc/guide/containers.md",
                               "doc/guide/always-on.md", "doc/guide/musl.md"]),
    ("Find out", ["doc/guide/investigations.md", "doc/guide/cpu.md",
                  "doc/guide/memory.md",
                  "doc/guide/heap.md", "doc/guide/labels.md",
                  "doc/guide/reports.md", "doc/guide/advice.md",
                  "doc/guide/flame-graph.md", "doc/guide/watch.md",
                  "doc/guide/compare.md", "doc/guide/ci.md"]),
    ("Other tools", ["doc/guide/from-other-profilers.md",
                     "doc/guide/tarantool.md", "doc/guide/exports.md",
                     "doc/guide/push.md", "doc/guide/perf.md"]),
    ("Reference", ["doc/reference/"]),
    ("How it works", ["doc/how/", "ARCHITECTURE.md", "doc/rfc/"]),
    ("Evidence", ["doc/evidence/"]),
    ("The project", ["CONTRIBUTING.md", "SECURITY.md"]),
]
HERE = os.path.dirname(os.path.abspath(__file__))


def fail(text):
    sys.exit(f"make.py: {text}")


def contents(root):
    """The headings of CONTENTS with the files that exist. A guide that CONTENTS
    does not name comes to the guides, so that no page is forgotten."""
    named = {path for _, paths in CONTENTS for path in paths}
    listed = []
    for title, paths in CONTENTS:
        pages = []
        for path in paths:
            if path.endswith("/"):
                pages += sorted(path + name
                                for name in os.listdir(os.path.join(root, path))
                                if name.endswith(".md"))
            elif os.path.exists(os.path.join(root, path)):
                pages.append(path)
        if title == "Find out":
            pages += sorted(p for p in
                            ("doc/guide/" + name for name in
                             os.listdir(os.path.join(root, "doc/guide")))
                            if p.endswith(".md") and p not in named)
        listed.append((title, pages))
    return listed


def page_name(path):
    """README.md: index.html, doc/guide/cpu.md: guide/cpu.html."""
    if path == "README.md":
        return "index.html"
    return re.sub(r"^doc/", "", path).lower()[:-3] + ".html"


def anchor(text):
    """As GitHub makes it of a heading."""
    text = html.unescape(re.sub(r"<[^>]*>", "", text)).lower()
    return re.sub(r"[^\w -]", "", text).replace(" ", "-")


class Page:
    def __init__(self, root, path):
        self.path = path
        self.name = page_name(path)
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = re.sub(r"<!--.*?-->\n?", "", f.read(), flags=re.S)
        self.body = subprocess.run(
            ["cmark-gfm", "-e", "table", "-e", "autolink"], input=text,
            encoding="utf-8", stdout=subprocess.PIPE, check=True).stdout
        self.anchors = []
        self.body = re.sub(r"<h([1-6])>(.*?)</h\1>", self.heading, self.body,
                           flags=re.S)
        title = re.search(r"<h1[^>]*>(.*?)</h1>", self.body, re.S)
        if not title:
            fail(f"{path} has no title")
        self.title = html.unescape(re.sub(r"<[^>]*>", "", title.group(1)))

    def heading(self, m):
        level, inner = m.groups()
        name = base = anchor(inner)
        n = 0
        while name in self.anchors:
            n += 1
            name = f"{base}-{n}"
        self.anchors.append(name)
        link = "" if level == "1" else \
            f' <a class="here" href="#{name}" aria-label="link">#</a>'
        return f'<h{level} id="{name}">{inner}{link}</h{level}>'


class Manual:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.listed = contents(root)
        self.pages = {path: Page(root, path)
                      for _, paths in self.listed for path in paths}
        self.images = set()
        self.lost = []

    def relative(self, page, name):
        return os.path.relpath(name, os.path.dirname(page.name) or ".")

    def target(self, page, link):
        """The file of the repository to which a link of a page leads."""
        path = link.split("#")[0]
        if not path:
            return page.path
        return os.path.normpath(os.path.join(os.path.dirname(page.path), path))

    def link(self, page, m):
        href, inner = html.unescape(m.group(1)), m.group(2)
        if re.match(r"[a-z]+:", href):
            return m.group()
        path = self.target(page, href)
        name = href.split("#")[1] if "#" in href else ""
        if path in self.pages:
            there = self.pages[path]
            if name and name not in there.anchors:
                self.lost.append(f"{page.path}: {href}")
            href = "" if there is page else self.relative(page, there.name)
            return (f'<a href="{href}{"#" + name if name else ""}">'
                    f"{inner}</a>")
        if not os.path.exists(os.path.join(self.root, path)):
            self.lost.append(f"{page.path}: {href}")
        return inner

    def image(self, page, m):
        path = self.target(page, html.unescape(m.group(1)))
        if not os.path.exists(os.path.join(self.root, path)):
            self.lost.append(f"{page.path}: {path}")
            return ""
        self.images.add(path)
        name = re.sub(r"^doc/", "", path)
        return f'<img src="{self.relative(page, name)}"'

    def menu(self, page):
        parts = []
        for title, paths in self.listed:
            if not paths:
                continue
            parts.append(f"<h2>{html.escape(title)}</h2>\n<ul>")
            for path in paths:
                there = self.pages[path]
                here = ' aria-current="page"' if there is page else ""
                parts.append(f'<li><a href="{self.relative(page, there.name)}"'
                             f"{here}>{html.escape(there.title)}</a></li>")
            parts.append("</ul>")
        return "\n".join(parts)

    def write(self, name, text):
        path = os.path.join(self.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def index(self):
        """For the search: [page, title, anchor, heading, text] per section."""
        sections = []
        for page in self.pages.values():
            parts = re.split(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>', page.body,
                             flags=re.S)
            for i in range(1, len(parts), 3):
                name, heading, body = parts[i:i + 3]
                heading = re.sub(r' <a class="here".*', "", heading, flags=re.S)
                words = [html.unescape(re.sub(r"\s+", " ",
                                              re.sub(r"<[^>]*>", " ", part)))
                         .strip() for part in (heading, body)]
                sections.append([page.name, page.title, name] + words)
        return sections

    def make(self):
        with open(os.path.join(HERE, "page.html"), encoding="utf-8") as f:
            frame = f.read()
        index = self.index()
        done = {}
        for page in self.pages.values():
            body = re.sub(r'<a href="([^"]*)">(.*?)</a>',
                          lambda m, p=page: self.link(p, m), page.body,
                          flags=re.S)
            body = re.sub(r'<img src="([^"]*)"',
                          lambda m, p=page: self.image(p, m), body)
            body = body.replace("<table>", '<div class="wide"><table>') \
                .replace("</table>", "</table></div>")
            values = {"title": html.escape(page.title), "menu": self.menu(page),
                      "body": body, "top": self.relative(page, ".")}
            done[page.name] = re.sub(r"@(title|menu|body|top)@",
                                     lambda m, v=values: v[m.group(1)], frame)
        if self.lost:
            fail("links that lead nowhere:\n" + "\n".join(self.lost))
        for name, text in done.items():
            self.write(name, text)
        # A line for each section; "<" is written as \u003c, as in any page.
        self.write("index.js", "var manual = [\n" + ",\n".join(
            json.dumps(s, ensure_ascii=False).replace("<", "\\u003c")
            for s in index) + "];\n")
        for name in ("manual.css", "search.js"):
            shutil.copy(os.path.join(HERE, name), self.out)
        for path in self.images:
            to = os.path.join(self.out, re.sub(r"^doc/", "", path))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(self.root, path), to)
        print(f"{len(self.pages)} pages, {len(index)} sections:",
              os.path.join(self.out, "index.html"))


def main():
    if len(sys.argv) != 3:
        fail("usage: make.py SOURCE_DIR OUTPUT_DIR")
    if not shutil.which("cmark-gfm"):
        fail("the command 'cmark-gfm' is missing (Debian package cmark-gfm)")
    Manual(sys.argv[1], os.path.normpath(sys.argv[2])).make()


if __name__ == "__main__":
    main()
