// Table: functions with self and total, sortable. Only the visible rows are in
// the document, so that long tables are fast.

const TABLE_ROW = 27;

class Table {
  // hooks: pick(frame), focus(frame), sort(key), menu(frame, x, y)
  constructor(hooks) {
    this.box = byId('tablebox');
    this.hooks = hooks;
    this.body = el('tbody');
    this.head = el('tr');
    this.table = el('table', {role: 'grid', 'aria-label': 'Functions'},
      el('thead', {}, this.head), this.body);
    this.box.append(this.table);
    this.box.addEventListener('scroll', () => this.fill());
    this.box.addEventListener('keydown', (e) => this.key(e));
    this.box.tabIndex = 0;
  }

  // look: rows [{f, ...}], columns [{key, name, numeric, value, text, bar}],
  // sort "key" or "-key", selected frame, profile, palette
  show(look) {
    this.look = look;
    const down = !look.sort.startsWith('-');
    const key = look.sort.replace('-', '');
    const by = look.columns.find((c) => c.key === key) || look.columns[0];
    const order = by.numeric
      ? (a, b) => by.value(b) - by.value(a) : (a, b) => by.value(a) < by.value(b)
        ? -1 : by.value(a) > by.value(b) ? 1 : 0;
    look.rows.sort((a, b) => (down ? order(a, b) : order(b, a)) || a.f - b.f);
    for (const c of look.columns) c.width = c.numeric ? this.widthOf(c) : 0;
    this.head.replaceChildren(...look.columns.map((c) => {
      const active = c === by;
      return el('th', {scope: 'col', class: c.numeric ? 'num' : c.key,
        style: c.width ? `width:${c.width}px` : null,
        'aria-sort': active ? (down === !!c.numeric ? 'descending' : 'ascending')
          : 'none'},
      el('button', {onclick: () => this.hooks.sort(active && down
        ? '-' + c.key : c.key), title: c.about || 'Sort by ' + c.name},
      c.name, el('span', {class: 'arrow', 'aria-hidden': 'true'},
        active ? (down === !!c.numeric ? ' ▾' : ' ▴') : '')));
    }));
    this.table.setAttribute('aria-rowcount', look.rows.length + 1);
    this.fill();
  }

  // As wide as its longest value, for values must not be cut off. Of very many
  // rows it looks at some.
  widthOf(column) {
    const {rows} = this.look;
    const step = Math.ceil(rows.length / 5000) || 1;
    this.measure ||= new Measure(document.createElement('canvas')
      .getContext('2d'), '600 13px system-ui, sans-serif');
    let most = 64;
    for (let i = 0; i < rows.length; i += step)
      most = Math.max(most, this.measure.text(column.text(rows[i])));
    return Math.ceil(most + (step > 1 ? 16 : 0)) + 32;
  }

  fill() {
    const {look} = this;
    if (!look || this.box.hidden) return;
    const first = Math.max(0, Math.floor(this.box.scrollTop / TABLE_ROW) - 8);
    const last = Math.min(look.rows.length,
      first + Math.ceil(this.box.clientHeight / TABLE_ROW) + 18);
    const pad = (n) => el('tr', {class: 'pad', 'aria-hidden': 'true'},
      el('td', {colspan: look.columns.length, style: `height:${n * TABLE_ROW}px`}));
    const rows = [];
    if (first) rows.push(pad(first));
    for (let i = first; i < last; i++) rows.push(this.row(look.rows[i], i));
    if (last < look.rows.length) rows.push(pad(look.rows.length - last));
    if (!look.rows.length)
      rows.push(el('tr', {}, el('td', {class: 'none',
        colspan: look.columns.length}, 'No function matches.')));
    this.body.replaceChildren(...rows);
  }

  row(r, index) {
    const {look} = this;
    const {profile} = look;
    const cells = look.columns.map((c) => {
      if (c.key === 'name')
        return el('td', {class: 'name'},
          el('i', {class: 'dot', style: `background:${look.palette.fills[
            profile.frames.kind[r.f]][0]}`}),
          el('span', {title: profile.label(r.f)}, profile.frames.name[r.f]));
      const td = el('td', {class: (c.numeric ? 'num' : c.key) +
        (c.tone ? ' ' + c.tone(r) : '')}, el('span', {}, c.text(r)));
      if (c.bar) td.append(el('i', {class: 'bar',
        style: `width:${Math.max(0, Math.min(100, c.bar(r)))}%`}));
      return td;
    });
    return el('tr', {'aria-rowindex': index + 2, 'data-f': r.f,
      class: r.f === look.selected ? 'on' : '',
      'aria-selected': r.f === look.selected ? 'true' : 'false',
      onclick: () => this.hooks.pick(r.f),
      ondblclick: () => this.hooks.focus(r.f),
      oncontextmenu: (e) => {
        e.preventDefault();
        this.hooks.menu(r.f, e.clientX, e.clientY);
      }}, ...cells);
  }

  key(e) {
    const {look} = this;
    const at = look.rows.findIndex((r) => r.f === look.selected);
    const to = {ArrowDown: at + 1, ArrowUp: Math.max(0, at - 1),
      Home: 0, End: look.rows.length - 1,
      PageDown: at + 20, PageUp: Math.max(0, at - 20)}[e.key];
    if (to === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    const row = Math.min(look.rows.length - 1, to);
    if (row < 0) return;
    const y = row * TABLE_ROW;
    const room = this.box.clientHeight - 2 * TABLE_ROW;
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    else if (y > this.box.scrollTop + room) this.box.scrollTop = y - room;
    this.hooks.pick(look.rows[row].f);
  }
}
