// Timeline: activity, heap size and GC phases on one time axis, and on request a
// heat map of the activity within each second. Dragging in either of them
// selects a time range, which both show.

const GUTTER = 92;

// The distance of labels on a time axis, in round numbers.
function niceStep(span, most) {
  const raw = span / most;
  if (raw > 10e9) {
    for (const s of [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400])
      if (s * 1e9 >= raw) return s * 1e9;
  }
  const power = 10 ** Math.floor(Math.log10(raw));
  for (const m of [1, 2, 5, 10]) if (m * power >= raw) return m * power;
  return 10 * power;
}

class Timeline {
  // hooks: select([from, to]) in ticks, null: all; tip(lines, event);
  // announce(text)
  constructor(profile, hooks) {
    this.profile = profile;
    this.hooks = hooks;
    this.canvas = byId('timeline');
    this.heat = byId('heat');
    this.selection = null;
    this.drag = null;
    this.binsKey = '';
    const {canvas, heat} = this;
    canvas.addEventListener('pointerdown', (e) => this.down(e));
    canvas.addEventListener('pointermove', (e) => this.move(e));
    canvas.addEventListener('pointerup', (e) => this.up(e));
    heat.addEventListener('pointerdown', (e) => this.heatDown(e));
    heat.addEventListener('pointermove', (e) => this.heatMove(e));
    heat.addEventListener('pointerup', (e) => this.heatUp(e));
    for (const box of [canvas, heat]) {
      box.addEventListener('pointerleave', () => this.point(null));
      box.addEventListener('dblclick', () => hooks.select(null));
      box.addEventListener('keydown', (e) => this.key(e));
    }
  }

  get span() {
    return this.profile.ticks;
  }

  // look: view, contexts, contextsKey, metric, palette, heatShown, selection
  show(look) {
    this.look = look;
    this.selection = look.selection;
    this.draw();
    this.heat.hidden = !look.heatShown;
    if (look.heatShown) this.drawHeat();
  }

  x(tick) {
    return GUTTER + tick / this.span * (this.width - GUTTER - 8);
  }

  tick(x) {
    const t = (x - GUTTER) / (this.width - GUTTER - 8) * this.span;
    return Math.min(this.span, Math.max(0, t));
  }

  lanes() {
    const lanes = [{what: 'activity', y: 6, h: 42}];
    let y = 54;
    if (this.profile.series.length) {
      lanes.push({what: 'heap', y, h: 30});
      y += 36;
    }
    if (this.profile.gc.n) {
      lanes.push({what: 'gc', y, h: 9});
      y += 15;
    }
    return {lanes, axis: y, height: y + 19};
  }

  // Sums up the rows in one bin for each bar. A bin is a whole number of ticks:
  // rounding would look like a change of activity. A sample counts for the time
  // before it. That is not exact: few samples would show more than there was.
  bins(most) {
    const {view, contexts, contextsKey, metric} = this.look;
    const spread = metric === 'weight' && view.unit === 'ns' && !view.untimed;
    const least = spread ? Math.min(8 * this.sampleTicks(), this.span / 20) : 1;
    const each = this.binTicks = Math.ceil(Math.max(this.span / most, least));
    const count = Math.ceil(this.span / each);
    const key = [view.id, contextsKey, metric, count].join();
    if (this.binsKey === key) return this.binned;
    const {rows} = view;
    const value = rows[metric];
    const out = new Float64Array(count);
    for (let i = 0; i < rows.n; i++)
      if (!contexts || contexts[rows.ctx[i]]) {
        const ticks = spread ? value[i] / rows.count[i] / this.profile.tickNs : 0;
        this.addBack(out, (rows.tick[i] + 1) / each, ticks / each, value[i]);
      }
    this.binsKey = key;
    return this.binned = out;
  }

  sampleTicks() {
    return this.look.view.sampleNs / this.profile.tickNs || 0;
  }

  // Adds x to the bins before the time `end`, for a time; both are in bins.
  addBack(bins, end, time, x) {
    end = Math.min(bins.length, end);
    const from = Math.max(0, end - time);
    let at = Math.ceil(end) - 1;
    let left = x;
    for (; at > from; at--) {
      const part = Math.min(left, x * (end - at) / (end - from));
      bins[at] += part;
      left -= part;
      x -= part;
      end = at;
    }
    bins[at] += left;
  }

  fitCanvas(canvas, height) {
    const ratio = window.devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + 'px';
    const c = canvas.getContext('2d');
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, height);
    c.font = FONT.replace('12px', '11px');
    return c;
  }

  draw() {
    const {palette} = this.look;
    const {lanes, axis, height} = this.lanes();
    const c = this.fitCanvas(this.canvas, height);
    for (const lane of lanes) this[lane.what](c, lane, palette);
    this.drawAxis(c, axis, palette);
    this.drawMarks(c, axis, palette);
    this.drawSelection(c, axis, palette);
    this.canvas.setAttribute('aria-label', this.describe());
  }

  describe() {
    const {tickNs} = this.profile;
    const all = 'Timeline of ' + asTime(this.span * tickNs) + '. ';
    const keys = ' Arrow keys select and move a range; with Shift they resize it; ' +
      'Escape clears it.';
    if (!this.selection) return all + 'The whole session is shown.' + keys;
    const [a, b] = this.selection;
    return all + 'Selected from ' + asTime(a * tickNs) + ' to ' +
      asTime(b * tickNs) + '.' + keys;
  }

  title(c, lane, palette, name, value) {
    c.fillStyle = palette.of('text-2');
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    const middle = lane.y + lane.h / 2;
    c.fillText(name, GUTTER - 10, value ? middle - 7 : middle);
    if (value) {
      c.fillStyle = palette.of('text-3');
      c.fillText(value, GUTTER - 10, middle + 7);
    }
  }

  activity(c, lane, palette) {
    const {view, metric} = this.look;
    const room = this.width - GUTTER - 8;
    const bins = this.bins(Math.max(1, Math.floor(room / 2)));
    const count = bins.length;
    const seconds = this.binTicks * this.profile.tickNs / 1e9;
    let most = 0;
    for (const b of bins) if (b > most) most = b;
    const {name, top, full} = this.scaleOf(view, metric, most / seconds);
    this.title(c, lane, palette, name, top);
    c.fillStyle = palette.of('lane');
    c.fillRect(GUTTER, lane.y, room, lane.h);
    c.fillStyle = palette.of('activity');
    c.beginPath();
    c.moveTo(GUTTER, lane.y + lane.h);
    for (let i = 0; i < count; i++) {
      const h = full ? bins[i] / seconds / full * (lane.h - 2) : 0;
      const y = lane.y + lane.h - (h > 0 ? Math.max(1, h) : 0);
      c.lineTo(this.x(i * this.binTicks), y);
      c.lineTo(this.x(Math.min(this.span, (i + 1) * this.binTicks)), y);
    }
    c.lineTo(GUTTER + room, lane.y + lane.h);
    c.fill();
  }

  // The scale of the activity lane.
  scaleOf(view, metric, rate) {
    if (metric === 'weight' && view.unit === 'ns') {
      const cores = rate / 1e9;
      const full = cores <= 1.15 ? 1 : cores;
      return {name: view.id === 'wall' ? 'Threads' : 'CPU use', full: full * 1e9,
        top: cores <= 1.15 ? 'of 100 %' : 'of ' + digits(cores * 100) + ' %'};
    }
    const text = metric === 'weight' && view.unit === 'bytes'
      ? asBytes(rate) + '/s' : digits(rate) + '/s';
    return {name: view.name, full: rate, top: '≤ ' + text};
  }

  heap(c, lane, palette) {
    const {series} = this.profile;
    const room = this.width - GUTTER - 8;
    let most = 0;
    for (const s of series) for (const v of s.value) if (v > most) most = v;
    this.title(c, lane, palette, 'Heap', '≤ ' + asBytes(most));
    c.fillStyle = palette.of('lane');
    c.fillRect(GUTTER, lane.y, room, lane.h);
    c.save();
    c.beginPath();
    c.rect(GUTTER, lane.y, room, lane.h);
    c.clip();
    c.strokeStyle = palette.of('heap');
    c.fillStyle = palette.of('heap-fill');
    c.lineWidth = 1.25;
    for (const s of series) {
      if (!s.n || !most) continue;
      c.beginPath();
      const y = (v) => lane.y + lane.h - 1 - v / most * (lane.h - 4);
      c.moveTo(this.x(s.time[0]), y(s.value[0]));
      for (let i = 1; i < s.n; i++) c.lineTo(this.x(s.time[i]), y(s.value[i]));
      c.stroke();
      c.lineTo(this.x(s.time[s.n - 1]), lane.y + lane.h);
      c.lineTo(this.x(s.time[0]), lane.y + lane.h);
      c.fill();
    }
    c.restore();
  }

  gc(c, lane, palette) {
    const {gc} = this.profile;
    const room = this.width - GUTTER - 8;
    this.title(c, lane, palette, 'GC phases');
    c.fillStyle = palette.of('lane');
    c.fillRect(GUTTER, lane.y, room, lane.h);
    const groups = [[], [], []]; // Mark, atomic, sweep and finalize.
    for (let i = 0; i < gc.n; i++)
      groups[gc.phase[i] <= 1 ? 0 : gc.phase[i] === 2 ? 1 : 2].push(i);
    ['gc-mark', 'gc-sweep', 'gc-atomic'].forEach((name, g) => {
      c.fillStyle = palette.of(name);
      for (const i of groups[[0, 2, 1][g]]) {
        const x = this.x(gc.start[i]);
        const w = Math.max(0.75, this.x(gc.start[i] + gc.length[i]) - x);
        c.fillRect(x, lane.y, w, lane.h);
      }
    });
  }

  drawAxis(c, y, palette) {
    const span = this.span * this.profile.tickNs;
    const room = this.width - GUTTER - 8;
    const step = niceStep(span, Math.max(2, room / 90));
    c.fillStyle = palette.of('text-3');
    c.strokeStyle = palette.of('line');
    c.lineWidth = 1;
    c.textBaseline = 'top';
    c.textAlign = 'left';
    c.beginPath();
    for (let t = 0; t <= span * 1.0001; t += step) {
      const x = Math.round(this.x(t / this.profile.tickNs)) + 0.5;
      c.moveTo(x, y);
      c.lineTo(x, y + 4);
      const text = asMoment(t, span);
      const w = c.measureText(text).width;
      if (x + 4 + w < this.width) c.fillText(text, x + 4, y + 3);
    }
    c.stroke();
  }

  drawMarks(c, y, palette) {
    c.fillStyle = palette.of('accent');
    for (const [tick] of this.profile.marks.slice(0, 2000)) {
      const x = Math.round(this.x(tick));
      c.fillRect(x, 4, 1, y - 4);
      c.beginPath();
      c.moveTo(x - 3, 0);
      c.lineTo(x + 4, 0);
      c.lineTo(x + 0.5, 5);
      c.fill();
    }
  }

  drawSelection(c, y, palette) {
    const s = this.drag && this.drag.range || this.selection;
    if (!s) return;
    const a = this.x(s[0]);
    const b = Math.max(a + 1, this.x(s[1]));
    c.fillStyle = palette.of('veil');
    c.fillRect(GUTTER, 0, a - GUTTER, y);
    c.fillRect(b, 0, this.width - 8 - b, y);
    c.fillStyle = palette.of('accent');
    c.fillRect(a - 1, 0, 2, y);
    c.fillRect(b - 1, 0, 2, y);
    c.fillRect(a - 3, y / 2 - 8, 5, 16);
    c.fillRect(b - 2, y / 2 - 8, 5, 16);
  }

  // Dragging makes a new selection, or moves one edge or all of it.
  down(e) {
    if (e.button !== 0) return;
    const x = e.offsetX;
    const s = this.selection;
    let how = 'new';
    if (s) {
      const a = this.x(s[0]);
      const b = this.x(s[1]);
      if (Math.abs(x - a) < 6) how = 'from';
      else if (Math.abs(x - b) < 6) how = 'to';
      else if (x > a && x < b && b - a < this.width - GUTTER - 30) how = 'all';
    }
    this.hooks.tip(null); // It would stay where the drag begins.
    this.drag = {how, x, at: this.tick(x), was: s && [...s], range: null};
    this.canvas.setPointerCapture(e.pointerId);
  }

  move(e) {
    const d = this.drag;
    if (!d) {
      this.point(e);
      return;
    }
    if (!d.range && Math.abs(e.offsetX - d.x) < 4) return;
    const t = this.tick(e.offsetX);
    if (d.how === 'new') d.range = [Math.min(d.at, t), Math.max(d.at, t)];
    else if (d.how === 'from') d.range = [Math.min(t, d.was[1]), d.was[1]];
    else if (d.how === 'to') d.range = [d.was[0], Math.max(t, d.was[0])];
    else {
      const by = Math.max(-d.was[0], Math.min(this.span - d.was[1], t - d.at));
      d.range = [d.was[0] + by, d.was[1] + by];
    }
    this.hooks.select(this.whole(d.range), true);
  }

  up() {
    const d = this.drag;
    this.drag = null;
    if (!d) return;
    if (d.range) this.hooks.select(this.whole(d.range));
    else if (d.how === 'new') this.hooks.select(null);
  }

  whole([a, b]) {
    const from = Math.floor(a);
    return [from, Math.max(from + 1, Math.ceil(b))];
  }

  point(e) {
    if (!e || e.offsetX < GUTTER) {
      this.hooks.tip(null);
      this.canvas.style.cursor = '';
      return;
    }
    const {tickNs, marks} = this.profile;
    const t = this.tick(e.offsetX);
    const s = this.selection;
    const edge = s && s.some((x) => Math.abs(this.x(x) - e.offsetX) < 6);
    this.canvas.style.cursor = edge ? 'ew-resize' : 'crosshair';
    const lines = [asMoment(t * tickNs, this.span * tickNs / 20)];
    for (const one of this.profile.series) {
      const i = lowerBound(one.time, t) - 1;
      if (i >= 0) lines.push('Heap of ' + one.name + ': ' + asBytes(one.value[i]));
    }
    for (const [tick, text] of marks)
      if (Math.abs(this.x(tick) - e.offsetX) < 5) lines.push('Mark: ' + text);
    this.hooks.tip(lines, e);
  }

  key(e) {
    const step = Math.max(1, Math.round(this.span / 50));
    const s = this.selection || [0, Math.max(1, step * 5)];
    const by = {ArrowLeft: -step, ArrowRight: step}[e.key];
    let range = null;
    if (by && e.shiftKey) {
      range = [s[0], Math.min(this.span, Math.max(s[0] + 1, s[1] + by))];
    } else if (by) {
      const move = !this.selection ? 0
        : Math.max(-s[0], Math.min(this.span - s[1], by));
      range = [s[0] + move, s[1] + move];
    } else if (e.key !== 'Escape') {
      return;
    }
    e.preventDefault();
    e.stopPropagation();
    this.selection = range;
    this.hooks.select(range);
    this.hooks.announce(this.describe());
  }

  // The heat map: a column is a second (less in short sessions, more in long
  // ones), a row is a fiftieth of a column.
  heatShape() {
    const room = this.width - GUTTER - 8;
    const second = 1e9 / this.profile.tickNs;
    const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120,
      300, 600, 1800, 3600, 7200, 36000, 86400];
    let col = steps[steps.length - 1] * second;
    for (const s of steps)
      if (this.span / (s * second) <= Math.min(60, room / 5) && s * second >= 1) {
        col = s * second;
        break;
      }
    col = Math.max(1, Math.round(col));
    // A cell of less than a sample or two would be empty or full by chance.
    let rows = Math.min(50, col, Math.ceil(col / 2 / this.sampleTicks()));
    while (col % rows) rows--; // Each cell is as many whole ticks as any other.
    const cols = Math.max(1, Math.ceil(this.span / col));
    const h = Math.min(12, 120 / rows);
    return {col, rows, cols, w: Math.min(room / cols, 40), h, y: 6};
  }

  drawHeat() {
    const {view, contexts, contextsKey, metric, palette} = this.look;
    const shape = this.heatShape();
    const {col, rows, cols, w, h, y} = shape;
    const height = rows * h + y + 8;
    const c = this.fitCanvas(this.heat, height);
    const key = [view.id, contextsKey, metric, cols, rows].join();
    if (this.heatKey !== key) {
      this.heatKey = key;
      const cells = this.cells = new Float64Array(cols * rows);
      const r = view.rows;
      const value = r[metric];
      for (let i = 0; i < r.n; i++)
        if (!contexts || contexts[r.ctx[i]]) {
          const t = r.tick[i];
          const x = Math.floor(t / col);
          const into = Math.floor((t - x * col) * rows / col);
          cells[Math.min(cols - 1, x) * rows + into] += value[i];
        }
    }
    let most = 0;
    for (const v of this.cells) if (v > most) most = v;
    const name = asTime(col * this.profile.tickNs);
    this.title(c, {y, h: rows * h}, palette, 'Heat map', name + ' wide');
    for (let x = 0; x < cols; x++)
      for (let r = 0; r < rows; r++) {
        const k = most ? this.cells[x * rows + r] / most : 0;
        const tick = x * col + r * col / rows;
        const s = this.drag && this.drag.range || this.selection;
        const out = s && (tick < s[0] || tick >= s[1]);
        c.globalAlpha = out ? 0.28 : 1;
        c.fillStyle = !k ? palette.of('lane')
          : palette.dark ? hsl(18 + 24 * k, 50 + 30 * k, 20 + 36 * k)
          : hsl(40 - 26 * k, 84, 90 - 42 * k);
        c.fillRect(GUTTER + x * w, y + r * h, Math.max(1, w - (w > 6 ? 1 : 0)), h);
      }
    c.globalAlpha = 1;
    this.heat.setAttribute('aria-label', 'Heat map: each column is ' + name +
      ', each row a part of it. ' + this.describe());
  }

  heatTick(e) {
    const {col, rows, cols, w, h, y} = this.heatShape();
    const x = Math.min(cols - 1, Math.max(0, Math.floor((e.offsetX - GUTTER) / w)));
    const r = Math.min(rows - 1, Math.max(0, Math.floor((e.offsetY - y) / h)));
    return {from: x * col + r * col / rows, to: x * col + (r + 1) * col / rows};
  }

  heatDown(e) {
    if (e.button !== 0 || e.offsetX < GUTTER) return;
    this.hooks.tip(null);
    this.heatStart = {...this.heatTick(e), x: e.offsetX, y: e.offsetY};
    this.heat.setPointerCapture(e.pointerId);
  }

  heatRange(e) {
    const a = this.heatStart;
    const b = this.heatTick(e);
    return this.whole([Math.min(a.from, b.from),
      Math.min(this.span, Math.max(a.to, b.to))]);
  }

  heatMove(e) {
    if (!this.heatStart) {
      const {from} = this.heatTick(e);
      const {tickNs} = this.profile;
      this.hooks.tip(e.offsetX < GUTTER ? null
        : [asMoment(from * tickNs, 1e8)], e);
      return;
    }
    if (Math.hypot(e.offsetX - this.heatStart.x, e.offsetY - this.heatStart.y) > 3)
      this.hooks.select(this.heatRange(e), true);
  }

  heatUp(e) {
    if (!this.heatStart) return;
    const moved =
      Math.hypot(e.offsetX - this.heatStart.x, e.offsetY - this.heatStart.y) > 3;
    const range = this.heatRange(e);
    this.heatStart = null;
    this.hooks.select(moved ? range : null);
  }
}
