// Graph: draws a Tree or an Inverted tree from the zoomed node on, and finds the
// box under the pointer. Only boxes wider than half a pixel are visited, so that
// the work depends on the size of the screen, not of the profile.

const ROW = 21;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, ' +
  '"Helvetica Neue", "Liberation Sans", Arial, sans-serif';

class Graph {
  // hooks: hover(node, event), pick(node), zoom(node), menu(node, event)
  constructor(hooks) {
    this.box = byId('graphbox');
    this.canvas = byId('graph');
    this.tall = byId('tall');
    this.outline = byId('hover');
    this.context = this.canvas.getContext('2d', {alpha: false});
    this.measure = new Measure(this.context, FONT);
    this.hooks = hooks;
    this.levels = [];
    this.hovered = -1;
    this.drawn = 0;
    this.box.addEventListener('scroll', () => this.scrolled());
    this.box.addEventListener('pointermove', (e) => this.pointer(e));
    this.box.addEventListener('pointerleave', () => this.leave());
    // A double click applies to the box of its first click. At the second click
    // another box may be under the pointer, because the details have opened.
    this.box.addEventListener('click', (e) => {
      if (e.detail > 1) return;
      this.clicked = this.hit(e);
      if (this.clicked >= 0) hooks.pick(this.clicked);
    });
    this.box.addEventListener('dblclick', () =>
      hooks.zoom(Math.max(0, this.clicked)));
    this.box.addEventListener('contextmenu', (e) => {
      const at = this.hit(e);
      if (at < 0) return;
      e.preventDefault();
      hooks.menu(at, e.clientX, e.clientY);
    });
  }

  // look: tree, zoom, flame, selected, flags (search) or null, labels, fill
  show(look) {
    const turned = !this.look || this.look.flame !== look.flame ||
      this.look.tree !== look.tree || this.look.zoom !== look.zoom;
    // If the root of a flame graph was in sight, it stays in sight.
    const rooted = look.flame && this.tallness !== undefined &&
      this.box.scrollTop + this.height >= this.tallness - 2;
    this.look = look;
    this.layout();
    if (look.flame && (turned || rooted)) this.box.scrollTop = this.tallness;
    else if (turned) this.box.scrollTop = 0;
    this.draw();
    this.leave();
  }

  // The boxes of each level, from left to right.
  layout() {
    const {tree, zoom} = this.look;
    const width = this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    const above = [];
    for (let i = tree.parent[zoom]; i >= 0; i = tree.parent[i]) above.push(i);
    const levels = this.levels = above.reverse().map((i) =>
      ({nodes: [i], x: [0], w: [width], above: true}));
    const scale = width / tree.total[zoom];
    let level = {nodes: [zoom], x: [0], w: [width], above: false};
    if (!(tree.total[zoom] > 0)) level = {nodes: [], x: [], w: []};
    while (level.nodes.length) {
      levels.push(level);
      level = this.below(tree, level, scale);
    }
    const content = levels.length * ROW + 6;
    this.tallness = Math.max(content, this.height);
    // Canvas and spacer together are as tall as the content.
    this.tall.style.height = Math.max(0, content - this.height) + 'px';
    this.canvas.style.width = width + 'px';
    this.canvas.style.height = this.height + 'px';
  }

  // Neighbours too narrow to be seen are drawn as one box, node -1.
  below(tree, level, scale) {
    const next = {nodes: [], x: [], w: [], above: false};
    const {kids} = tree;
    for (let i = 0; i < level.nodes.length; i++) {
      const node = level.nodes[i];
      if (node < 0) continue;
      tree.open(node);
      const end = tree.first[node] + tree.count[node];
      let x = level.x[i];
      let tiny = 0;
      for (let k = tree.first[node]; k < end; k++) {
        const kid = kids ? kids[k] : k;
        const w = tree.total[kid] * scale;
        if (w < 0.6) {
          tiny += w;
          continue;
        }
        if (tiny >= 0.6) {
          next.nodes.push(-1);
          next.x.push(x);
          next.w.push(tiny);
        }
        x += tiny;
        tiny = 0;
        next.nodes.push(kid);
        next.x.push(x);
        next.w.push(w);
        x += w;
      }
      if (tiny >= 0.6) {
        next.nodes.push(-1);
        next.x.push(x);
        next.w.push(tiny);
      }
    }
    return next;
  }

  top(depth) {
    return this.look.flame ? this.tallness - (depth + 1) * ROW - 3
      : depth * ROW + 3;
  }

  draw() {
    const began = performance.now();
    const {context: c, width, height, canvas} = this;
    const {palette} = this.look;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) ||
        canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = palette.of('ground');
    c.fillRect(0, 0, width, height);
    c.textBaseline = 'alphabetic';
    c.font = FONT;
    const scroll = this.box.scrollTop;
    for (let d = 0; d < this.levels.length; d++) {
      const y = this.top(d) - scroll;
      if (y > -ROW && y < height) this.drawLevel(d, y);
    }
    this.drawn = performance.now() - began;
  }

  drawLevel(d, y) {
    const {context: c, look, measure} = this;
    const {tree, flags, palette, labels, selected} = look;
    const {nodes, x, w, above} = this.levels[d];
    const chosen = selected >= 0 ? tree.frame[selected] : 0;
    const h = ROW - 1;
    const ink = palette.of('ink');
    const faint = palette.of('ink-faint');
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      // Edges are at whole pixels, with a gap of one after wide boxes.
      const left = Math.round(x[i]);
      const right = Math.max(left + 1, Math.round(x[i] + w[i]));
      const wide = right - left > 3 ? right - left - 1 : right - left;
      if (node < 0) {
        c.fillStyle = palette.tiny;
        c.fillRect(left, y, wide, h);
        continue;
      }
      const f = tree.frame[node];
      const match = flags && node > 0 && flags[f];
      c.globalAlpha = above ? 0.6 : flags && !match ? 0.42 : 1;
      c.fillStyle = match ? palette.match : look.fill(node, f);
      c.fillRect(left, y, wide, h);
      c.globalAlpha = 1;
      if (f && f === chosen && node !== selected) {
        c.fillStyle = palette.of('accent');
        c.fillRect(left, y + h - 2, wide, 2);
      }
      if (wide > 26) {
        const room = wide - 10;
        const name = measure.fit(labels.name(node, f), room);
        if (name) {
          c.globalAlpha = flags && !match ? 0.62 : 1;
          c.fillStyle = match ? '#fff' : ink;
          c.fillText(name, left + 5, y + 14);
          const used = measure.text(name) + 7;
          const place = room - used > 24 ? labels.place(node, f) : '';
          if (place && !name.endsWith('…')) {
            const shown = measure.fit(place, room - used);
            if (!match) c.fillStyle = faint;
            if (shown) c.fillText(shown, left + 5 + used, y + 14);
          }
          c.globalAlpha = 1;
        }
      }
      if (node === selected) {
        c.strokeStyle = palette.of('ink');
        c.lineWidth = 2;
        c.strokeRect(left + 1, y + 1, Math.max(1, wide - 2), h - 2);
      }
    }
  }

  // The box under the pointer; -1: none.
  hit(event) {
    const box = this.box.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top + this.box.scrollTop;
    if (x < 0 || x >= this.width) return -1;
    const d = this.look.flame ? Math.floor((this.tallness - 3 - y) / ROW)
      : Math.floor((y - 3) / ROW);
    const level = this.levels[d];
    if (!level) return -1;
    let i = lowerBound(level.x, x + 1e-9) - 1;
    while (i > 0 && Math.round(level.x[i]) > x) i--;
    return i >= 0 && x < Math.max(level.x[i] + level.w[i], level.x[i] + 1)
      ? level.nodes[i] : -1;
  }

  find(node) {
    for (let d = 0; d < this.levels.length; d++) {
      const i = this.levels[d].nodes.indexOf(node);
      if (i >= 0) return {d, i, ...this.levels[d]};
    }
    return null;
  }

  pointer(event) {
    this.last = event;
    const node = this.hit(event);
    if (node !== this.hovered) {
      this.hovered = node;
      const at = node >= 0 ? this.find(node) : null;
      this.outline.hidden = !at;
      if (at) {
        const s = this.outline.style;
        s.transform = `translate(${Math.round(at.x[at.i])}px, ` +
          `${this.top(at.d)}px)`;
        s.width = Math.max(2, Math.round(at.w[at.i]) - 1) + 'px';
        s.height = ROW - 1 + 'px';
      }
    }
    this.hooks.hover(node, event);
  }

  leave() {
    this.hovered = -1;
    this.outline.hidden = true;
    this.hooks.hover(-1, null);
  }

  scrolled() {
    if (!this.look) return;
    this.leave();
    this.draw();
  }

  // The neighbour of a node for the arrow keys: dx along the level, dy away
  // from the root.
  neighbour(node, dx, dy) {
    const {tree, zoom} = this.look;
    const at = this.find(node);
    if (!at) return zoom;
    if (dy < 0) return Math.max(0, tree.parent[node]);
    if (dy > 0) {
      let best = node;
      let widest = 0;
      for (let k = tree.first[node]; k < tree.first[node] + tree.count[node];
        k++) {
        const kid = tree.kids ? tree.kids[k] : k;
        if (tree.total[kid] > widest) {
          widest = tree.total[kid];
          best = kid;
        }
      }
      return best;
    }
    for (let i = at.i + dx; i >= 0 && i < at.nodes.length; i += dx)
      if (at.nodes[i] >= 0) return at.nodes[i];
    return node;
  }

  reveal(node) {
    const at = this.find(node);
    if (!at) return;
    const y = this.top(at.d);
    const {scrollTop} = this.box;
    if (y < scrollTop) this.box.scrollTop = y - ROW;
    else if (y + ROW > scrollTop + this.height)
      this.box.scrollTop = y + 2 * ROW - this.height;
  }
}
