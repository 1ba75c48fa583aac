// What a page must show, computed from plain arrays in the simplest way, without
// any code of the page.

export class Model {
  constructor(raw, view) {
    this.raw = raw;
    this.rows = raw.views[view];
  }

  stack(node) {
    const out = [];
    for (let i = node; i > 0; i = this.raw.parent[i]) out.push(this.raw.frame[i]);
    return out.reverse();
  }

  // Pairs of stack (frame numbers) and weight, of the rows that keep() accepts.
  stacks(keep = () => true) {
    const {tick, node, ctx, weight} = this.rows;
    const out = [];
    for (let i = 0; i < tick.length; i++)
      if (keep(tick[i], this.raw.contexts[ctx[i]]))
        out.push([this.stack(node[i]), weight[i]]);
    return out;
  }

  // The line of Lua for which a node counts, as text; '': none.
  place(node) {
    const {parent, frame, line, frames} = this.raw;
    for (let i = node; i > 0; i = parent[i]) {
      const {kind, name, file, line: defined} = frames[frame[i]];
      if (kind === 10) break;
      if (kind >= 1 && kind <= 3 && line[i])
        return `${name} ${file}:${line[i]} (${defined})`;
    }
    return '';
  }

  label(f) {
    const {name, file, line} = this.raw.frames[f];
    return file ? `${name} ${file}:${line}` : name;
  }
}

export const sum = (stacks) => stacks.reduce((s, [, w]) => s + w, 0);

export function byFunction(stacks) {
  const self = new Map();
  const total = new Map();
  for (const [stack, w] of stacks) {
    const leaf = stack[stack.length - 1];
    self.set(leaf, (self.get(leaf) || 0) + w);
    for (const f of new Set(stack)) total.set(f, (total.get(f) || 0) + w);
  }
  return {self, total};
}

// Total of each prefix of a stack, as text "1.2.3".
export function byPath(stacks) {
  const out = new Map();
  for (const [stack, w] of stacks)
    for (let n = 1; n <= stack.length; n++) {
      const path = stack.slice(0, n).join('.');
      out.set(path, (out.get(path) || 0) + w);
    }
  return out;
}
