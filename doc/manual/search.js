// The search of the manual: looks for all words in the sections of index.js.
// A word matches the beginning of a word, or any part of a name such as
// ljp_walk or --max-overhead. "?q=words" in the address searches at once.
(function () {
  "use strict";
  const field = document.getElementById("search");
  const list = document.getElementById("results");
  const top = document.body.dataset.top;
  const MOST = 30;
  let chosen = -1;

  function words(text) {
    return text.toLowerCase().split(/\s+/).filter(Boolean);
  }

  // Where a word begins in a text: at the beginning of a word, else anywhere.
  function find(text, word) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      if (at === 0 || /[^a-z0-9]/.test(text[at - 1])) return at;
    }
    return word.length > 3 ? text.indexOf(word) : -1;
  }

  function score(section, wanted) {
    const [, title, , heading, body] = section;
    const parts = [[heading.toLowerCase(), 20], [title.toLowerCase(), 8],
                   [body.toLowerCase(), 1]];
    let sum = 0;
    for (const word of wanted) {
      let best = 0;
      for (const [text, weight] of parts) {
        if (find(text, word) < 0) continue;
        const times = Math.min(4, text.split(word).length - 1);
        best += weight * (1 + times / 4);
      }
      if (!best) return 0;
      sum += best;
    }
    if (parts[2][0].includes(wanted.join(" "))) sum += 6;
    return sum;
  }

  function marked(text, wanted) {
    const low = text.toLowerCase();
    const at = Math.max(0, Math.min(...wanted.map((w) => {
      const i = find(low, w);
      return i < 0 ? Infinity : i;
    }).concat(low.length)) - 60);
    const piece = (at ? "... " : "") + text.slice(at, at + 220);
    const out = document.createDocumentFragment();
    const any = new RegExp("(" + wanted.map((w) =>
      w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "i");
    piece.split(any).forEach((part, i) => {
      const node = document.createElement(i % 2 ? "mark" : "span");
      node.textContent = part;
      out.append(node);
    });
    return out;
  }

  function show() {
    const wanted = words(field.value);
    list.replaceChildren();
    chosen = -1;
    list.hidden = !wanted.length;
    if (!wanted.length) return;
    const found = manual.map((s) => [score(s, wanted), s])
      .filter(([points]) => points).sort((a, b) => b[0] - a[0]);
    for (const [, [page, title, anchor, heading, body]] of found.slice(0, MOST)) {
      const link = document.createElement("a");
      link.href = top + "/" + page + (anchor ? "#" + anchor : "");
      link.append(heading === title ? title : title + ": " + heading);
      const small = document.createElement("small");
      small.append(marked(body, wanted));
      link.append(small);
      list.append(link);
    }
    const last = document.createElement("p");
    last.textContent = !found.length ? "Nothing was found."
      : found.length > MOST ? found.length - MOST + " more" : "";
    list.append(last);
  }

  function choose(step) {
    const links = list.querySelectorAll("a");
    if (!links.length) return;
    if (links[chosen]) links[chosen].className = "";
    chosen = (chosen + step + links.length) % links.length;
    links[chosen].className = "chosen";
    links[chosen].scrollIntoView({ block: "nearest" });
  }

  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(1);
    else if (event.key === "ArrowUp") choose(-1);
    else if (event.key === "Enter") {
      const link = list.querySelectorAll("a")[Math.max(0, chosen)];
      if (link) { list.hidden = true; location.href = link.href; }
    } else if (event.key === "Escape") { field.value = ""; show(); field.blur(); }
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === field) return;
    field.focus();
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (!list.contains(event.target) && event.target !== field ||
        event.target.closest("#results a")) list.hidden = true;
  });
  const menu = document.querySelector("nav");
  const here = menu.querySelector("[aria-current]");
  if (here) menu.scrollTop = here.offsetTop - menu.offsetTop - 200;
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) { field.value = asked; show(); }
})();
