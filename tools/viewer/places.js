// Places: the lines of Lua that count most, above the graph: those of this tab
// and, on the first tab, the first of each tab on memory. What a builtin, a C
// function or the collector does counts for the line that called it, what the
// profiler itself does for none. These are methods of App.

const PLACES = {
  shown: 3,
  least: 0.05,
};

// How many bits of a number are set.
function bitsOf(x) {
  let n = 0;
  for (; x; x &= x - 1) n++;
  return n;
}

Object.assign(App.prototype, {
  // Numbers the places: by node that of its innermost Lua frame + 1.
  numbered(trie) {
    const {profile} = this;
    const of = profile.functions;
    const at = new Int32Array(trie.n);
    const known = new Map();
    const list = [];
    for (let i = 1; i < trie.n; i++) {
      const f = trie.frame[i];
      at[i] = profile.frames.kind[f] === KIND.profiler ? 0 : at[trie.parent[i]];
      if (!trie.line[i] || !profile.isLua(f) || profile.isTrace(f)) continue;
      const key = of[f] + ':' + trie.line[i];
      if (!known.has(key)) known.set(key, list.push({f: of[f], line: trie.line[i]}));
      at[i] = known.get(key);
    }
    return {at, list};
  },

  // The lines with the largest self: [{f, line, value, all}]. only: their
  // numbers + 1, if not all are wanted.
  placesOf({at, list}, self, only) {
    const values = new Float64Array(list.length);
    let all = 0;
    for (let i = 0; i < self.length; i++) {
      if (at[i] && (!only || only.has(at[i]))) values[at[i] - 1] += self[i];
      all += self[i];
    }
    return list.map((p, i) => ({...p, value: values[i], all}))
      .filter((p) => p.value > 0 && p.value >= PLACES.least * all)
      .sort((a, b) => b.value - a.value || a.f - b.f || a.line - b.line)
      .slice(0, PLACES.shown);
  },

  // Of the tab that is shown, in its selection.
  placesHere(source, contexts) {
    const [from, to] = this.range();
    const self = selfByNode(source, from, to, contexts.mask, this.metric());
    const {map} = this.plain;
    for (let i = 0; i < self.length; i++) if (map[i] < 0) self[i] = 0;
    return this.placesOf(this.cached('numbered', source.key,
      () => this.numbered(source.trie)), self);
  },

  // The places that kept growing: what leaks there was allocated in enough slices
  // of the session. Reports have the same rule.
  growing(numbered, {rows, slices, grows}, node) {
    const low = new Uint32Array(numbered.list.length + 1);
    const high = new Uint32Array(numbered.list.length + 1);
    for (let i = 0; i < rows.n; i++) {
      low[numbered.at[node[i]]] |= slices[2 * i];
      high[numbered.at[node[i]]] |= slices[2 * i + 1];
    }
    return new Set([...low.keys()]
      .filter((place) => bitsOf(low[place]) + bitsOf(high[place]) >= grows));
  },

  // Of the other tabs on memory, in the whole session: [view, place]. What keeps
  // growing is not said again of what is live.
  placesElsewhere() {
    const {lua, trie, views} = this.profile;
    const numbered = this.numbered(trie);
    const nodes = (v) => lua ? v.rows.node.map((i) => lua[i]) : v.rows.node;
    const [alloc, live, leaks] = ['alloc', 'live', 'leaks'].map((id) =>
      views.slice(1).find((v) => v.id === id));
    const first = (v, only) => this.placesOf(numbered, selfByNode({rows: v.rows,
      trie, node: nodes(v)}, 0, Infinity, null, 'weight'), only)[0];
    const out = {alloc: alloc && first(alloc), live: live && first(live),
      leaks: leaks && first(leaks, this.growing(numbered, leaks, nodes(leaks)))};
    const same = out.leaks && out.live && out.leaks.f === out.live.f &&
      out.leaks.line === out.live.line;
    if (same) out.live = null;
    return [alloc, live, leaks].map((v) => [v, v && out[v.id]])
      .filter(([, place]) => place);
  },

  places(source, contexts) {
    const {view, state, profile} = this;
    const key = this.valuesKey + '|' + view.id;
    const box = byId('places');
    if (this.diff || this.placesKey === key) return;
    this.placesKey = key;
    const here = this.placesHere(source, contexts);
    const narrow = state.time || state.thread || state.label ||
      state.focus > 0 || state.hide.length || state.kinds.length;
    const more = view !== profile.views[0] || narrow ? []
      : this.cached('elsewhere', 1, () => this.placesElsewhere());
    const group = (name, of, list) => !list.length ? [] : [el('div', {},
      el('em', {}, name), ...list.map((p) => this.placeButton(of, p)))];
    box.hidden = !here.length && !more.length;
    box.replaceChildren(
      ...group(['cpu', 'wall', 'states'].includes(view.id) ? 'Most time'
        : view.name, view, here),
      ...more.flatMap(([v, p]) => group(v.id === 'leaks' ? 'Kept growing' : v.name,
        v, [p])));
  },

  placeButton(view, {f, line, value, all}) {
    const {name, file} = this.profile.frames;
    const amount = this.amount(value, view);
    const elsewhere = view !== this.view;
    return el('button', {title: `${name[f]} ${file[f]}:${line}: ${amount}, ${
      asPercent(value, all)} of ${view.name}`,
    onclick: () => {
      this.node = -1;
      this.set({sel: f, ...(elsewhere && {tab: view.id, zoom: []})}, 'push');
    }},
    el('span', {}, `${name[f]} ${file[f].replace(/^.*\//, '')}:${line}`),
    el('b', {}, elsewhere ? amount : asPercent(value, all)));
  },
});
