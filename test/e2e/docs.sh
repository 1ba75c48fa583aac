#!/bin/sh
# What the documents print holds: each link leads to a file and a heading that
# exist, and each `ljprof COMMAND --option` is in the help of that command.
# shellcheck disable=SC2016 # backquotes of Markdown
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof

# headings FILE: the anchors that GitHub makes of its headings.
headings() {
  awk '/^```/ { code = !code }
    !code && /^#+ / {
      sub(/^#+ */, "")
      text = tolower($0)
      gsub(/[^a-z0-9_ -]/, "", text)
      gsub(/ /, "-", text)
      print text
    }' "$1"
}
# lost FILE: its links that lead nowhere.
lost() {
  grep -oE '\]\([^)" ]+\)' "$1" | sed 's/^](//; s/)$//' | sort -u |
    while read -r link; do
      case $link in
      http*) continue ;;
      '#'*) target=$1 ;;
      *) target=$(dirname "$1")/${link%%#*} ;;
      esac
      [ -e "$target" ] || {
        echo "$link"
        continue
      }
      case $link in
      *.md'#'* | '#'*)
        headings "$target" | grep -qxF -e "${link#*#}" || echo "$link"
        ;;
      esac
    done
}
printf '# A `b` c\n[x](#a-b-c) [y](#gone) [z](no.md#a) [w](x.md#a-b-c)\n' > x.md
same "links that lead nowhere are found" "#gone no.md#a" \
  "$(lost x.md | tr '\n' ' ' | sed 's/ $//')"

# strange FILE: options that the command beside them does not have.
strange() {
  sed 's/ -- .*//; s/[`#|].*//' "$2" |
    awk -v command="$1" '{
      while (match($0, "ljprof " command "[ \t]")) {
        $0 = substr($0, RSTART + RLENGTH)
        n = split($0, words, " ")
        for (i = 1; i <= n; i++) {
          if (words[i] == "ljprof") break
          if (words[i] ~ /^--?[a-z][a-z-]*(=|$)/) {
            sub(/=.*/, "", words[i])
            print words[i]
          }
        }
      }
    }' | sort -u > options.txt
  "$ljprof" help "$1" | tr -c 'a-z-' '\n' | grep -vxFf - options.txt || :
}
spread() { # what stands between backquotes on lines of its own
  tr '`' '\n' < "$1"
}
printf 'see `ljprof report --livee x.ljp` and\nljprof report --live x.ljp\n' > y.md
spread y.md > y.txt
same "options that do not exist are found" "--livee" "$(strange report y.txt)"

commands=$("$ljprof" help | sed -n 's/^  \([a-z][a-z]*\)  *[^ ].*/\1/p' |
  grep -vx ljprof)
for file in "$SOURCE_DIR"/*.md "$SOURCE_DIR"/doc/*/*.md; do
  name=${file#"$SOURCE_DIR"/}
  same "links of $name" "" "$(lost "$file")"
  spread "$file" > text.txt
  for command in $commands; do
    grep -q "ljprof $command " text.txt || continue
    same "options of $command in $name" "" "$(strange "$command" text.txt)"
  done
done
