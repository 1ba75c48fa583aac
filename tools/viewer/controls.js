// Controls: everything around the graph: header, notices, tabs, toolbar, chips,
// legend, theme and keys. These are methods of App.

// Tabs whose names do not say it all.
const ABOUT_TABS = {
  'gc-cost': 'CPU time of the garbage collector, by what allocated the memory ' +
    'that it marks and sweeps',
  retained: 'What keeps how much memory alive, in the heap snapshot: if a box ' +
    'went, all that stands on it would go, too',
  references: 'What holds the objects of the heap snapshot: the shortest way from ' +
    'a root to each, ways of the same kind merged',
};

Object.assign(App.prototype, {
  header() {
    const {json} = this.profile;
    byId('title').textContent = json.title;
    document.title = json.title + ' · ljprof';
    byId('subtitle').textContent = json.subtitle || '';
    byId('subtitle').title = (json.about || []).map((a) => a.join(': ')).join('\n');
    const notices = json.notices || [];
    const box = byId('notices');
    box.hidden = !notices.length;
    if (!notices.length) return;
    const grave = notices.some((n) => n.level === 'error');
    const short = el('span', {}, notices[0].text);
    const list = el('ul', {}, ...notices.map((n) => el('li', {class: n.level},
      n.text, n.about ? el('small', {}, ' ' + n.about) : null)));
    box.className = grave ? 'error' : 'warning';
    if (notices.length === 1) {
      box.append(el('span', {class: 'mark', 'aria-hidden': 'true'}, '!'), list);
      return;
    }
    box.append(el('details', {}, el('summary', {},
      el('span', {class: 'mark', 'aria-hidden': 'true'}, '!'), short,
      el('em', {}, ` and ${notices.length - 1} more`)), list));
  },

  tabs() {
    const {views} = this.profile;
    const box = byId('tabs');
    const now = this.view;
    if (!box.childElementCount)
      box.append(...views.map((v, i) => el('button', {role: 'tab', 'data-tab': v.id,
        title: `${ABOUT_TABS[v.id] || v.name} (${i + 1})`, onclick: () => this.openTab(v)}, v.name)));
    for (const b of box.children) {
      const on = b.dataset.tab === now.id;
      b.setAttribute('aria-selected', on ? 'true' : 'false');
      b.tabIndex = on ? 0 : -1;
    }
  },

  openTab(view) {
    this.node = -1;
    this.set({tab: view === this.profile.views[0] ? '' : view.id, zoom: []},
      'push');
  },

  toolbar() {
    const {state, view} = this;
    const {contexts} = this.profile;
    const names = (key) => [...new Set(contexts.map((c) => c[key] || ''))]
      .filter(Boolean);
    const threads = this.cached('threads', 1, () => names('thread'));
    const labels = this.cached('labels', 1, () => labelChoices(contexts, 300));
    const groups = this.cached('groups', 1, () =>
      [...[['thread', 'Thread'], ['vm', 'VM'], ['state', 'VM state']]
        .filter(([key]) => names(key).length > 1),
      ...labelKeys(contexts).map((key) => ['label:' + key, key])]);
    const key = [view.id, state.mode, state.invert, state.merge, state.native, state.heat,
      this.metric(), state.thread, state.label, state.group].join();
    if (this.toolsKey === key) return;
    this.toolsKey = key;
    const focused = document.activeElement && document.activeElement.dataset.id;
    const button = (id, name, on, change, hint) => el('button', {'data-id': id,
      'aria-pressed': on ? 'true' : 'false', title: hint,
      onclick: () => this.set(change, 'push')}, name);
    const choice = (id, label, value, options, change) => el('label', {}, label,
      el('select', {'data-id': id, onchange: (e) => this.set(change(e.target.value))},
        ...options.map(([v, text]) =>
          el('option', {value: v, selected: v === value}, text))));
    const what = {ns: 'Time', bytes: 'Bytes', share: 'Time', 'bytes/s': 'Bytes'};
    const metrics = this.diff ? [['weight', 'After'], ['other', 'Before']]
      : [['weight', what[view.unit] || view.unit],
        ...(view.counts ? [['count',
          view.counts[0].toUpperCase() + view.counts.slice(1)]] : [])]
        .slice(view.unit === view.counts ? 1 : 0);
    byId('tools').replaceChildren(...[
      el('div', {class: 'seg', role: 'group', 'aria-label': 'View'},
        button('flame', 'Flame graph', state.mode === 'flame', {mode: 'flame'},
          'Callers below (G)'),
        button('icicle', 'Icicle', state.mode === 'icicle', {mode: 'icicle'},
          'Callers above (I)'),
        button('table', 'Table', state.mode === 'table', {mode: 'table'},
          'Functions (T)')),
      button('invert', 'Bottom-up', state.invert, {invert: !state.invert,
        zoom: []}, 'Start from the innermost functions (B)'),
      button('merge', 'Merge recursion', state.merge, {merge: !state.merge,
        zoom: []}, 'Show a function that calls itself as one box (R)'),
      this.profile.folds && !view.heap ? button('native', 'Machine code', state.native,
        {native: !state.native, zoom: []}, 'Show the VM, what C functions ' +
        'call, the kernel and the host; otherwise they count for the function ' +
        'that made them run (N)') : null,
      this.untimed ? null : button('heat', 'Heat map', state.heat,
        {heat: !state.heat}, 'Activity within each second (M)'),
      el('div', {class: 'grow'}),
      choice('metric', 'Measure', this.metric(), metrics, (v) => ({metric: v})),
      threads.length > 1 && !view.heap ? choice('thread', 'Thread', state.thread,
        [['', 'All'], ...threads.map((t) => [t, t])], (v) => ({thread: v})) : null,
      labels.length && !view.heap ? choice('label', 'Label', state.label,
        [['', 'All'], ...labels.map((l) => [l, l])], (v) => ({label: v})) : null,
      groups.length && !view.group && !view.heap ? choice('group', 'Group by', state.group,
        [['', 'Nothing'], ...groups], (v) => ({group: v, zoom: []})) : null,
    ].filter(Boolean));
    if (focused) {
      const again = byId('tools').querySelector(`[data-id=${focused}]`);
      if (again) again.focus();
    }
  },

  // What narrows the view. Each chip has a button to undo it.
  trail(zoom) {
    const {state, profile, tree} = this;
    const box = byId('trail');
    const chips = [];
    const {tickNs} = profile;
    const name = (f) => profile.frames.name[f] || '?';
    const chip = (label, text, undo) => chips.push(el('span', {class: 'chip'},
      el('em', {}, label), el('span', {}, text),
      el('button', {'aria-label': `Undo: ${label} ${text}`, title: 'Undo',
        onclick: () => this.set(undo, 'push')}, '✕')));
    if (state.time) {
      const span = (state.time[1] - state.time[0]) * tickNs;
      chip('Time', `${asMoment(state.time[0] * tickNs, span)} – ${
        asMoment(state.time[1] * tickNs, span)} (${asTime(span)})` +
        (this.view.untimed ? ', does not apply to this tab' : ''),
      {time: null});
    }
    if (state.focus > 0) chip('Focus', name(state.focus), {focus: -1, zoom: []});
    for (const f of state.hide)
      chip('Hidden', name(f), {hide: state.hide.filter((x) => x !== f), zoom: []});
    for (const k of state.kinds)
      chip('Hidden', KINDS[KIND[k]][1],
        {kinds: state.kinds.filter((x) => x !== k), zoom: []});
    if (zoom > 0) chip('Zoom', `${name(tree.frame[zoom])} (${
      asPercent(tree.total[zoom], tree.total[0])})`, {zoom: []});
    box.hidden = !chips.length;
    box.replaceChildren(...chips);
    if (chips.length > 1) box.append(el('button', {class: 'text',
      onclick: () => this.reset()}, 'Undo all'));
  },

  reset(more) {
    this.node = -1;
    const {tab, mode, heat, metric, theme, native} = this.state;
    this.set({...DEFAULTS, zoom: [], hide: [], kinds: [], tab, mode, heat, metric,
      theme, native, ...more}, 'push');
  },

  legend() {
    const {profile, palette, state} = this;
    const key = [this.valuesKey, palette.dark].join();
    if (this.legendKey === key) return;
    this.legendKey = key;
    const box = byId('legend');
    if (this.diff) {
      box.replaceChildren(...[[-1, 'gone'], [-0.3, 'less'],
        [0, 'unchanged, or within the sampling error'], [0.3, 'more'], [1, 'new']]
        .map(([x, text]) => el('span', {class: 'key'},
          el('i', {class: 'dot', style: `background:${palette.change(x)}`}), text)));
      return;
    }
    const {plain} = this;
    const self = KINDS.map(() => 0);
    const there = new Set(state.kinds.map((k) => KIND[k]));
    for (let i = 1; i < plain.n; i++) {
      const kind = profile.frames.kind[plain.frame[i]];
      self[kind] += plain.self[i];
      if (plain.total[i] > 0) there.add(kind);
    }
    const all = plain.total[0];
    // The colour covers what the frames call, too: without this share, hardly
    // any Lua would stand beside a graph full of it.
    const total = KINDS.map((_, kind) => !there.has(kind) ? 0
      : plain.share(profile.frames.kind.map((k) => k === kind ? 1 : 0)));
    box.replaceChildren(...KINDS.map(([id, name, about], i) =>
      i === 0 || i === KIND.group || !there.has(i) ? null
        : el('button', {'aria-pressed': state.kinds.includes(id) ? 'false' : 'true',
          title: `${about}: in ${asPercent(total[i], all)} of all stacks, ` +
            `${asPercent(self[i], all)} in these frames themselves. ` +
            'Click to hide these frames or to show them again.',
          onclick: () => this.set({zoom: [], kinds: state.kinds.includes(id)
            ? state.kinds.filter((x) => x !== id) : [...state.kinds, id]}, 'push')},
        el('i', {class: 'dot', style: `background:${palette.fills[i][0]}`}), name,
        el('em', {}, state.kinds.includes(id) ? 'hidden'
          : `${asPercent(total[i], all)}, self ${asPercent(self[i], all)}`)))
      .filter(Boolean));
  },

  setTheme() {
    const root = document.documentElement;
    const wanted = this.state.theme;
    const dark = wanted ? wanted === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'dark' : 'light';
    if (this.palette && this.palette.dark === dark) return;
    this.palette = new Palette(dark);
  },

  flipTheme() {
    const theme = this.palette.dark ? 'light' : 'dark';
    this.state.theme = theme;
    this.setTheme();
    this.set({theme});
  },

  listen() {
    byId('theme').onclick = () => this.flipTheme();
    const keys = byId('keys');
    fillHelp(keys, !!this.untimed);
    byId('help').onclick = () => keys.showModal();
    const input = byId('search');
    input.addEventListener('input', () => this.set({q: input.value}));
    input.addEventListener('keydown', (e) => {
      if (e.key === 'Escape') {
        input.value = '';
        this.set({q: ''});
        input.blur();
      } else if (e.key === 'Enter') {
        byId(this.state.mode === 'table' ? 'tablebox' : 'graphbox').focus();
      }
      e.stopPropagation();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.setTheme();
      this.set({});
    });
    new ResizeObserver(() => this.set({})).observe(byId('main'));
    addEventListener('resize', () => this.set({}));
    const follow = () => {
      if (location.hash === stateToHash(this.state)) return;
      this.state = stateFromHash(location.hash);
      this.node = -1;
      this.setTheme();
      this.set({});
    };
    addEventListener('hashchange', follow);
    addEventListener('popstate', follow);
    // A key acts on what the keys before it have chosen, even if it comes before
    // the next frame.
    addEventListener('keydown', () => this.drawn(), true);
    addEventListener('keydown', (e) => this.key(e));
    byId('tabs').addEventListener('keydown', (e) => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[e.key];
      if (!by) return;
      e.preventDefault();
      e.stopPropagation();
      const {views} = this.profile;
      const to = (views.indexOf(this.view) + by + views.length) % views.length;
      this.openTab(views[to]);
      byId('tabs').children[to].focus();
    });
  },

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || byId('keys').open) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    const {state, profile, graph} = this;
    const f = state.sel;
    const table = state.mode === 'table';
    const act = {
      '/': () => {
        byId('search').focus();
        byId('search').select();
      },
      '?': () => byId('keys').showModal(),
      g: () => this.set({mode: 'flame'}, 'push'),
      i: () => this.set({mode: 'icicle'}, 'push'),
      t: () => this.set({mode: 'table'}, 'push'),
      b: () => this.set({invert: !state.invert, zoom: []}, 'push'),
      r: () => this.set({merge: !state.merge, zoom: []}, 'push'),
      n: !profile.folds ? null : () => this.set({native: !state.native, zoom: []},
        'push'),
      m: this.untimed ? null : () => this.set({heat: !state.heat}),
      d: () => this.flipTheme(),
      f: () => this.focus(f),
      h: () => this.hide(f),
      c: () => this.copyStack(),
      0: () => this.reset({mode: DEFAULTS.mode}),
      Escape: () => this.undo(),
      Backspace: () => this.set({zoom: state.zoom.slice(0, -1)}, 'push'),
      Enter: e.target.tagName === 'BUTTON' ? null : () => this.zoom(this.node),
    };
    const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1],
      ArrowDown: [0, -1]};
    const key = e.key.length === 1 ? e.key.toLowerCase() : e.key;
    if (arrows[key] && !table && this.menu.box.hidden) {
      const [dx, dy] = arrows[key];
      const zoom = nodeAt(this.tree, state.zoom);
      const to = this.node < 0 ? zoom
        : graph.neighbour(this.node, dx, state.mode === 'flame' ? dy : -dy);
      this.pickNode(to);
      if (!graph.find(to)) this.set({zoom: pathOf(this.tree, to)});
      requestAnimationFrame(() => graph.reveal(to));
    } else if (/^[1-9]$/.test(key) && profile.views[key - 1]) {
      this.openTab(profile.views[key - 1]);
    } else if (act[key] && Object.hasOwn(act, key)) {
      act[key]();
    } else {
      return;
    }
    e.preventDefault();
  },

  // Escape undoes one step: selection, zoom, search, then time.
  undo() {
    const {state} = this;
    if (state.sel > 0 || this.node >= 0) this.pickFrame(-1);
    else if (state.zoom.length) this.set({zoom: []}, 'push');
    else if (state.q) {
      byId('search').value = '';
      this.set({q: ''});
    } else if (state.time) this.set({time: null}, 'push');
  },
});
