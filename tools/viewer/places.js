// Places: the lines of Lua that count most, above the graph: those of this tab
// and, on the first tab, the first of each tab on memory. What a builtin, a C
// function or the collector does counts for the line that called it. These are
// methods of App.

const PLACES = {shown: 3, least: 0.05};

Object.assign(App.prototype, {
  // The lines with the largest self: [{f, line, value, all}].
  placesOf(trie, self) {
    const {profile} = this;
    const of = profile.functions;
    const at = new Int32Array(trie.n); // By node: its place + 1.
    const known = new Map();
    const list = [];
    let all = 0;
    for (let i = 0; i < trie.n; i++) {
      const f = trie.frame[i];
      if (trie.line[i] && profile.isLua(f) && !profile.isTrace(f)) {
        const key = of[f] + ':' + trie.line[i];
        if (!known.has(key))
          known.set(key, list.push({f: of[f], line: trie.line[i], value: 0}));
        at[i] = known.get(key);
      } else if (i) {
        at[i] = at[trie.parent[i]];
      }
      if (at[i]) list[at[i] - 1].value += self[i];
      all += self[i];
    }
    return list.filter((p) => p.value > 0 && p.value >= PLACES.least * all)
      .sort((a, b) => b.value - a.value || a.f - b.f || a.line - b.line)
      .slice(0, PLACES.shown).map((p) => ({...p, all}));
  },

  // Of the tab that is shown, in its selection.
  placesHere(source, contexts) {
    const [from, to] = this.range();
    const self = selfByNode(source, from, to, contexts.mask, this.metric());
    const {map} = this.plain;
    for (let i = 0; i < self.length; i++) if (map[i] < 0) self[i] = 0;
    return this.placesOf(source.trie, self);
  },

  // Of the other tabs on memory, in the whole session: [view, place].
  placesElsewhere() {
    const {profile} = this;
    const {trie, views} = profile;
    return views.slice(1).filter((v) => ['alloc', 'live', 'leaks'].includes(v.id))
      .map((v) => [v, this.placesOf(trie, selfByNode({rows: v.rows, trie,
        node: profile.rowsOf(v, false).node}, 0, Infinity, null, 'weight'))[0]]).filter(([, place]) => place);
  },

  places(source, contexts) {
    const key = this.valuesKey + '|' + this.view.id;
    const box = byId('places');
    if (this.diff || this.placesKey === key) return;
    this.placesKey = key;
    const here = this.placesHere(source, contexts);
    const more = this.view !== this.profile.views[0] ? []
      : this.cached('elsewhere', 1, () => this.placesElsewhere());
    box.hidden = !here.length && !more.length;
    box.replaceChildren(...[
      here.length ? el('em', {}, 'Most ' + (this.view.id === 'wall' ||
        this.view.unit === 'ns' ? 'time' : this.view.name.toLowerCase())) : null,
      ...here.map((p) => this.placeButton(this.view, p)),
      ...more.flatMap(([view, p]) => [el('em', {}, view.name),
        this.placeButton(view, p)]),
    ].filter(Boolean));
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
