#!/bin/sh
# The manual as HTML: each link leads to a page and a heading that exist, nothing
# is fetched, each page can be reached, and the search finds what is there.
# shellcheck disable=SC2016 # backquotes of Markdown
. "$(dirname "$0")/lib.sh"

command -v cmark-gfm > /dev/null || {
  echo "not run: cmark-gfm is not installed"
  exit 0
}
make=$SOURCE_DIR/doc/manual/make.py

# faults FOLDER: links and resources of its pages that lead nowhere, pages that
# the first one does not lead to, and what would come from a network.
faults() {
  python3 - "$1" << 'END'
import html, os, re, sys
root = os.path.abspath(sys.argv[1])
pages = {}
for folder, _, names in os.walk(root):
    for name in names:
        if name.endswith(".html"):
            path = os.path.join(folder, name)
            pages[path] = open(path, encoding="utf-8").read()
reached, todo = set(), [os.path.join(root, "index.html")]
while todo:
    page = todo.pop()
    if page in reached:
        continue
    reached.add(page)
    for kind, link in re.findall(r'\b(href|src)="([^"]*)"', pages[page]):
        link = html.unescape(link)
        if re.match(r"[a-z]+:", link):
            if kind == "src":
                print("fetched:", link)
            continue
        path, _, name = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) \
            if path else page
        if not os.path.exists(path):
            print("lost:", os.path.relpath(page, root), link)
        elif name and f'id="{name}"' not in pages[path]:
            print("lost:", os.path.relpath(page, root), link)
        elif path in pages:
            todo.append(path)
for page in sorted(set(pages) - reached):
    print("not reached:", os.path.relpath(page, root))
END
}

# A small tree with faults proves the checks.
mkdir -p tree/doc/guide tree/doc/reference tree/doc/how tree/doc/rfc \
  tree/doc/evidence
printf '# A `b` & c\n\n[x](doc/guide/x.md#two-words) [code](run)\n' \
  > tree/README.md
printf '# X\n\n## Two words\n\n| a | b |\n|---|---|\n| `<i>` | c |\n\n<!-- gone -->\n[back](../../README.md#a-b--c)\n' \
  > tree/doc/guide/x.md
: > tree/run
"$make" tree small > out.txt || fail "$(cat out.txt)"
same "a small manual" "2 pages, 3 sections: small/index.html" "$(cat out.txt)"
same "a small manual has no fault" "" "$(faults small)"
grep -q '<td><code>&lt;i&gt;</code></td>' small/guide/x.html ||
  fail "a table: $(cat small/guide/x.html)"
! grep -q gone small/guide/x.html || fail "a comment is shown"
! grep -q 'href="[^"]*run"' small/index.html || fail "a link leads to code"
ok "tables are tables, comments are not shown, code is not linked"
printf '[y](y.md) [z](x.md#three)\n' >> tree/doc/guide/x.md
if "$make" tree small > out.txt 2>&1; then fail "lost links were accepted"; fi
same "lost links are named" "doc/guide/x.md: y.md doc/guide/x.md: x.md#three" \
  "$(sed 1d out.txt | tr '\n' ' ' | sed 's/ $//')"
echo '<p>alone</p><img src="https://example.org/a.png">' > small/alone.html
sed 's#</body>#<a href="alone.html">x</a><a href="no.html">y</a>&#' \
  small/index.html > out.html
mv out.html small/index.html
same "faults of pages are found" \
  "lost: index.html no.html;fetched: https://example.org/a.png" \
  "$(faults small | paste -sd ';' -)"

"$make" "$SOURCE_DIR" whole > out.txt 2>&1 || fail "$(cat out.txt)"
same "the manual has no fault" "" "$(faults whole)"
for document in "$SOURCE_DIR"/*.md "$SOURCE_DIR"/doc/*/*.md; do
  name=$(echo "${document#"$SOURCE_DIR"/}" | sed 's#^doc/##; s#\.md$##' |
    tr '[:upper:]' '[:lower:]')
  [ "$name" != readme ] || name=index
  [ -f "whole/$name.html" ] || fail "$document is not in the manual"
done
ok "each document is in the manual: $(cat out.txt)"

command -v chromium > /dev/null || {
  echo "the search was not tried: there is no chromium"
  exit 0
}
# found WORDS: the page that the search puts first.
found() {
  timeout 120 chromium --headless --no-sandbox --disable-gpu \
    --user-data-dir="$SCRATCH/browser" --virtual-time-budget=5000 --dump-dom \
    "file://$SCRATCH/whole/rfc/0001-stream.html?q=$1" 2> browser.txt |
    grep -o '<div id="results"><a href="[^"]*"' | sed 's/.*href="//; s/"$//'
}
first=$(found 'tail+call+shift') || :
[ -n "$first" ] || {
  echo "the search was not tried: chromium does not run here"
  exit 0
}
same "the search finds words in any order" "../rfc/0004-traces.html#markers" \
  "$first"
same "the search prefers headings" "../guide/cpu.html#timers" "$(found timers)"
same "the search finds messages" \
  "../guide/troubleshooting.html#doors" \
  "$(found 'lets+nobody+in+too+many+clients')"
