// Main: draws the page from the state. Each step (shape of the tree, values,
// drawing) is repeated only if its input has changed.

class App {
  constructor(profile) {
    this.profile = profile;
    this.state = stateFromHash(location.hash);
    this.memo = {};
    this.menu = new Menu();
    this.tip = new Tip();
    this.diff = profile.json.diff;
    // Without times there is neither a timeline nor a heat map.
    this.untimed = this.diff || profile.json.untimed;
    this.graph = new Graph({
      hover: (node, e) => this.hover(node, e),
      pick: (node) => this.pickNode(node),
      zoom: (node) => this.zoom(node),
      menu: (node, x, y) => this.openMenu(this.tree.frame[node], node, x, y),
    });
    this.timeline = new Timeline(profile, {
      select: (range, going) => this.set({time: range}, !going && 'push'),
      tip: (lines, e) => this.tip.show(lines && lines.join('\n'), e,
        () => lines.map((l, i) => el(i ? 'p' : 'b', {}, l))),
      announce: (text) => this.announce(text),
    });
    this.table = new Table({
      pick: (f) => this.pickFrame(f),
      focus: (f) => this.focus(f),
      sort: (key) => this.set({sort: key}),
      menu: (f, x, y) => this.openMenu(f, -1, x, y),
    });
    this.details = new Details({
      pick: (f) => this.pickFrame(f),
      close: () => this.pickFrame(-1),
      zoom: () => this.zoom(this.node),
      focus: () => this.focus(this.state.sel),
      hide: () => this.hide(this.state.sel),
      copy: () => this.copyStack(),
    });
    this.node = -1; // The selected box; -1: none, or only a function is selected.
    this.setTheme();
    this.listen();
    this.header();
    this.refresh();
  }

  // ---- state

  set(change, history) {
    Object.assign(this.state, change);
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => this.drawn());
    }
    clearTimeout(this.hashTimer);
    this.hashTimer = 0;
    const write = (how) => {
      this.hashTimer = 0;
      const hash = stateToHash(this.state);
      if (hash !== location.hash)
        window.history[how](null, '', hash || location.href.split('#')[0]);
    };
    if (history === 'push') write('pushState');
    else this.hashTimer = setTimeout(() => write('replaceState'), 120);
  }

  // Draws what is waiting to be drawn.
  drawn() {
    if (!this.waiting) return;
    this.waiting = false;
    this.refresh();
  }

  get view() {
    const {views} = this.profile;
    return views.find((v) => v.id === this.state.tab) || views[0];
  }

  // The value that make() returned for this key.
  cached(name, key, make) {
    const had = this.memo[name];
    if (had && had.key === key) return had.value;
    const value = make();
    this.memo[name] = {key, value};
    return value;
  }

  // Rows and trie of the tab, in the Lua view or the native one, grouped if
  // requested.
  source() {
    const {view, profile} = this;
    const {native} = this.state;
    const group = view.heap ? '' : view.group || this.state.group;
    const key = view.id + (profile.folds && !native ? '/lua' : '');
    const rows = this.cached('rows', key, () => profile.rowsOf(view, native));
    if (!group) return {rows, node: rows.node, trie: profile.trie, key};
    return this.cached('group', key + '/' + group, () => {
      const made = regroup(profile, {...view, rows}, group);
      return {rows, node: made.node, trie: made.trie, key: key + '/' + group};
    });
  }

  contexts() {
    const {thread, label} = this.state;
    if (!thread && !label || this.view.heap) return {mask: null, key: ''};
    const key = JSON.stringify([thread, label]);
    const of = 'label:' + label.split('=')[0];
    return this.cached('contexts', key, () => ({key,
      mask: Uint8Array.from(this.profile.contexts,
        (c) => (!thread || c.thread === thread) &&
          (!label || groupName(c, of) === label) ? 1 : 0)}));
  }

  // The selected ticks. Leaks are always of the whole session.
  range() {
    return this.view.untimed || !this.state.time ? [0, Infinity]
      : this.state.time;
  }

  metric() {
    const {rows} = this.view;
    const {metric} = this.state;
    return rows[metric] ? metric : 'weight';
  }

  // ---- drawing

  refresh() {
    const began = performance.now();
    const {state, profile, view} = this;
    const source = this.source();
    const contexts = this.contexts();
    const metric = this.metric();
    const f = profile.frames;
    const shape = [source.key, state.focus, state.hide.join(), state.kinds.join(),
      state.merge].join('|');
    const hidden = new Set(state.hide.map((i) => profile.functions[i]));
    const kinds = new Set(state.kinds.map((k) => KIND[k]));
    const self = (m, from, to) => selfByNode(source, from, to, contexts.mask, m);
    const build = (merge) => {
      const of = profile.functions;
      const made = new Tree(source.trie, of, {
        hidden: (i) => i > 0 && (hidden.has(of[i]) || kinds.has(f.kind[i])),
        focus: state.focus < f.n ? state.focus : -1, merge,
      });
      made.order(selfByNode(source, 0, Infinity, null, 'weight'));
      return made;
    };
    const tree = this.cached('tree', shape, () => build(state.merge));
    // Sums of functions come from the tree without merged boxes.
    const plain = this.plain = !state.merge ? tree
      : this.cached('plain', shape, () => build(false));
    const [from, to] = this.range();
    const valuesKey = [shape, from, to, contexts.key, metric].join('|');
    this.cached('values', valuesKey, () => {
      const values = self(metric, from, to);
      tree.weigh(values);
      tree.place();
      if (plain !== tree) plain.weigh(values);
      this.sums = plain.byFunction();
      this.change = this.diff ? changeOf(tree, plain, source,
        (x) => this.amount(x)) : null;
      return {};
    });
    this.tree = state.invert
      ? this.cached('inverted', valuesKey, () => new Inverted(tree)) : tree;
    this.valuesKey = valuesKey + state.invert;
    this.search(tree);
    this.show(contexts);
    this.places(source, contexts);
    this.took = performance.now() - began;
  }

  show(contexts) {
    const {state, view, palette, tree, profile} = this;
    const zoom = nodeAt(tree, state.zoom);
    if (this.nodeKey !== this.valuesKey) this.node = -1;
    const table = state.mode === 'table';
    byId('graphbox').hidden = table;
    byId('tablebox').hidden = !table;
    this.tabs();
    this.toolbar();
    this.trail(zoom);
    this.legend();
    byId('time').hidden = !!this.untimed;
    const timed = view.untimed ? this.profile.views[0] : view;
    if (!this.untimed) this.timeline.show({view: timed, contexts: contexts.mask,
      contextsKey: contexts.key, metric: this.metric(), palette,
      heatShown: state.heat, selection: state.time});
    this.showDetails();
    const empty = !(tree.total[0] > 0);
    byId('empty').hidden = !empty || table;
    byId('empty').textContent = !this.view.rows.n
      ? 'This file has no samples of this kind.'
      : 'Nothing was measured in this selection.';
    if (table) this.showTable();
    else this.graph.show({tree, zoom, flame: state.mode === 'flame', palette,
      selected: this.node >= 0 ? this.node : -1, flags: this.flags,
      labels: this.labels(), fill: this.filler()});
    const box = byId('graphbox');
    box.setAttribute('aria-label', `${this.view.name}: ${
      this.amount(tree.total[0])}. Arrow keys move, Enter zooms.`);
  }

  labels() {
    const {profile, view} = this;
    const {name} = profile.frames;
    return {
      name: (node, f) => node === 0
        ? `${view.name}, ${this.amount(this.tree.total[0])}` : name[f],
      place: (node, f) => profile.isLua(f) ? profile.place(f) : '',
    };
  }

  filler() {
    const {palette, profile, change, state} = this;
    const {kind, name} = profile.frames;
    if (change) {
      const of = state.invert ? change.byFrame : change.byNode;
      return (node, f) => palette.change(of[state.invert ? f : node] || 0);
    }
    const shades = this.cached('shades', profile.frames.n, () =>
      Uint8Array.from(name, (n) => nameHash(n) & 3));
    return (node, f) => palette.fills[kind[f]][shades[f]];
  }

  amount(x, view = this.view) {
    return (view.estimated ? '~' : '') + this.plainAmount(x, view);
  }

  plainAmount(x, view = this.view) {
    const {unit, counts} = view;
    const metric = view === this.view ? this.metric() : 'weight';
    if (metric === 'count') return asCount(x) + ' ' + counts;
    return unit === 'ns' ? asTime(x) : unit === 'bytes' ? asBytes(x)
      : unit === 'share' ? asTime(x) + '/s'
      : unit === 'bytes/s' ? asBytes(x) + '/s' : asCount(x) + ' ' + unit;
  }

  // ---- search

  search(tree) {
    const {q} = this.state;
    const input = byId('search');
    if (document.activeElement !== input && input.value !== q) input.value = q;
    const out = byId('matched');
    this.flags = null;
    this.matches = 0;
    input.removeAttribute('aria-invalid');
    out.textContent = '';
    out.className = '';
    if (!q) return;
    let regex;
    try {
      regex = new RegExp(q, /[A-Z]/.test(q) ? '' : 'i');
    } catch (e) {
      input.setAttribute('aria-invalid', 'true');
      out.textContent = 'invalid regex';
      out.className = 'bad';
      return;
    }
    const {profile} = this;
    this.flags = this.cached('flags', q + '|' + profile.frames.n, () => {
      const flags = new Uint8Array(profile.frames.n);
      for (let f = 1; f < flags.length; f++)
        flags[f] = regex.test(profile.label(f)) ? 1 : 0;
      return flags;
    });
    const part = this.cached('share', q + '|' + this.valuesKey,
      () => tree.share(this.flags));
    out.textContent = asPercent(part, tree.total[0]);
    out.title = `${this.amount(part)} of ${this.amount(tree.total[0])} is in ` +
      'stacks with a match';
  }

  // ---- pointing and selecting

  hover(node, event) {
    if (node < 0 || !event || !this.menu.box.hidden) {
      this.tip.show(null);
      return;
    }
    const {tree, profile, change, state} = this;
    const f = tree.frame[node];
    this.tip.show(this.valuesKey + node, event, () => {
      const total = tree.total[node];
      const all = tree.total[0];
      const rows = [el('p', {}, this.amount(total), ' ',
        el('em', {}, asPercent(total, all)),
        tree.self[node] > 0 && node ? ', self ' + this.amount(tree.self[node]) : '')];
      const zoom = nodeAt(tree, state.zoom);
      if (zoom > 0 && node !== zoom && tree.depth[node] > tree.depth[zoom])
        rows.push(el('p', {}, asPercent(total, tree.total[zoom]), ' of ',
          profile.frames.name[tree.frame[zoom]]));
      if (change && node) rows.push(...change.about(state.invert ? -1 : node, f)
        .map((t) => el('p', {}, t)));
      const where = node ? [profile.place(f), profile.frames.module[f]]
        .filter(Boolean).join(', ') : '';
      return [el('b', {}, node ? profile.frames.name[f] : this.view.name),
        where ? el('p', {class: 'where'}, where) : '',
        ...rows,
        node ? el('p', {class: 'kind'}, KINDS[profile.frames.kind[f]][1]) : ''];
    });
  }

  pickNode(node) {
    this.node = node;
    this.nodeKey = this.valuesKey;
    this.set({sel: node > 0 ? this.tree.frame[node] : -1});
    this.announce(this.spoken(node));
  }

  spoken(node) {
    const {tree, profile} = this;
    if (node <= 0) return 'All, ' + this.amount(tree.total[0]);
    const f = tree.frame[node];
    return `${profile.label(f)}, ${KINDS[profile.frames.kind[f]][1]}, ` +
      `${asPercent(tree.total[node], tree.total[0])}, ` +
      `${this.amount(tree.total[node])}, depth ${tree.depth[node]}`;
  }

  pickFrame(f) {
    this.node = -1;
    this.set({sel: f});
  }

  zoom(node) {
    if (node < 0) return;
    this.set({zoom: pathOf(this.tree, node)}, 'push');
  }

  focus(f) {
    if (f <= 0) return;
    this.set({focus: f, zoom: []}, 'push');
  }

  hide(f) {
    if (f <= 0) return;
    this.node = -1;
    this.set({hide: [...new Set([...this.state.hide, f])], sel: -1,
      zoom: this.state.zoom.filter((x) => x !== f)}, 'push');
  }

  // Frames from the root to a box.
  stackOf(node) {
    if (node <= 0) return [];
    const path = pathOf(this.tree, node);
    return this.state.invert ? path.reverse() : path;
  }

  copyStack() {
    const stack = this.stackOf(this.node);
    if (!stack.length && this.state.sel > 0)
      copyText(this.profile.label(this.state.sel), 'Name');
    else if (stack.length)
      copyText(stack.reverse().map((f) => this.profile.label(f)).join('\n') + '\n',
        'Stack');
  }

  openMenu(f, node, x, y) {
    if (node >= 0) this.pickNode(node);
    if (node === 0) return;
    this.tip.show(null);
    const items = [
      ['Focus on this function', 'F', () => this.focus(f)],
      ['Hide this function', 'H', () => this.hide(f)],
      ['Search for this name', '/', () => this.set({q: '^' +
        this.profile.frames.name[f].replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')})],
      ['Copy the name', '', () => copyText(this.profile.label(f), 'Name')],
    ];
    if (node >= 0) {
      items.unshift(['Zoom', 'Enter', () => this.zoom(node)]);
      items.push(['Copy the stack', 'C', () => this.copyStack()]);
    } else {
      this.pickFrame(f);
    }
    this.menu.open(items, x, y);
  }

  showDetails() {
    const {state, profile, plain, sums, tree, view} = this;
    const f = state.sel;
    if (!(f > 0 && f < profile.frames.n)) {
      this.details.show(null);
      return;
    }
    const node = this.node > 0 && tree.frame[this.node] === f ? this.node : -1;
    const about = this.cached('about', this.valuesKey + '|' + f, () =>
      ({lines: this.linesOf(f), ...around(plain, f, profile)}));
    const change = this.change && [
      ...this.change.about(-1, f).map((t, i) => [i ? '' : 'Change', t])];
    this.details.show({profile, frame: f, palette: this.palette,
      node: node > 0 ? {self: tree.self[node], total: tree.total[node]} : null,
      stack: this.stackOf(node), all: tree.total[0], diff: change,
      sums: {self: sums.self[f], total: sums.total[f]},
      amount: (x) => this.amount(x), sources: profile.json.sources,
      words: view.heap ? HEAP_WORDS : CALL_WORDS, ...about});
  }

  // Self and total of each line of a function.
  linesOf(f) {
    const source = this.source();
    const {trie} = source;
    const {map} = this.plain;
    const [from, to] = this.range();
    const self = selfByNode(source, from, to, this.contexts().mask, this.metric());
    for (let i = 0; i < trie.n; i++) if (map[i] < 0) self[i] = 0;
    const total = self.slice();
    for (let i = trie.n - 1; i > 0; i--) total[trie.parent[i]] += total[i];
    const lines = new Map();
    const of = this.profile.functions;
    for (let i = 1; i < trie.n; i++) {
      if (of[trie.frame[i]] !== of[f] || !trie.line[i] || !total[i]) continue;
      let up = trie.parent[i]; // In recursion a line counts once.
      while (up > 0 && (of[trie.frame[up]] !== of[f] || trie.line[up] !== trie.line[i]))
        up = trie.parent[up];
      const at = lines.get(trie.line[i]) ||
        {line: trie.line[i], self: 0, total: 0};
      at.self += self[i];
      if (up <= 0) at.total += total[i];
      lines.set(trie.line[i], at);
    }
    return [...lines.values()].filter((l) => l.total > 0)
      .sort((a, b) => a.line - b.line);
  }

  showTable() {
    const {profile, sums, flags, tree, state, change, palette} = this;
    const all = tree.total[0];
    const rows = [];
    const of = profile.functions;
    for (let f = 1; f < profile.frames.n; f++)
      if (of[f] === f && (sums.total[f] > 0 || change && change.seen(f)) &&
          (!flags || flags[f])) rows.push({f});
    const {name} = profile.frames;
    const columns = [
      {key: 'self', name: 'Self', numeric: true, about: 'In the function itself',
        value: (r) => sums.self[r.f], text: (r) => this.amount(sums.self[r.f])},
      {key: 'selfp', name: '', numeric: true, value: (r) => sums.self[r.f],
        text: (r) => asPercent(sums.self[r.f], all),
        bar: (r) => 100 * sums.self[r.f] / all},
      {key: 'total', name: 'Total', numeric: true,
        about: 'In the function and everything it calls',
        value: (r) => sums.total[r.f], text: (r) => this.amount(sums.total[r.f])},
      {key: 'totalp', name: '', numeric: true, value: (r) => sums.total[r.f],
        text: (r) => asPercent(sums.total[r.f], all),
        bar: (r) => 100 * sums.total[r.f] / all},
      ...(change ? change.columns() : []),
      {key: 'name', name: 'Function', value: (r) => name[r.f],
        text: (r) => name[r.f]},
      {key: 'place', name: 'Where', value: (r) => profile.place(r.f),
        text: (r) => profile.isLua(r.f) ? profile.place(r.f)
          : profile.frames.module[r.f] || profile.place(r.f)},
    ];
    const sort = change && state.sort === DEFAULTS.sort ? 'dself' : state.sort;
    this.table.show({rows, columns, sort, selected: of[state.sel],
      profile, palette});
  }

  announce(text) {
    byId('said').textContent = text;
  }
}

// Callers and callees of a function, with the weight of each call.
// A trace calls nothing: the functions that it was compiled from do.
function around(tree, f, profile) {
  const callers = new Map();
  const callees = new Map();
  const of = tree.functions;
  const add = (map, g, x) => map.set(of[g], (map.get(of[g]) || 0) + x);
  const skip = (node) => node > 0 && profile.isTrace(tree.frame[node]) &&
    of[tree.frame[node]] !== of[f];
  for (let i = 1; i < tree.n; i++) {
    if (!tree.total[i] || skip(i)) continue;
    let up = tree.parent[i];
    while (skip(up)) up = tree.parent[up];
    if (of[tree.frame[i]] === of[f] && up > 0 && tree.outer[i])
      add(callers, tree.frame[up], tree.total[i]);
    if (up > 0 && of[tree.frame[up]] === of[f] && tree.outer[i])
      add(callees, tree.frame[i], tree.total[i]);
  }
  const list = (map) => [...map].map(([g, total]) => ({f: g, total}))
    .sort((a, b) => b.total - a.total || a.f - b.f);
  return {callers: list(callers), callees: list(callees)};
}
