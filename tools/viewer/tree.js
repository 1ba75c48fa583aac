// Tree: the tree that is drawn. It is built from the trie of the data in three
// steps, each repeated only when its input changes:
//   Tree        the shape (hidden and focused functions, recursion, lines)
//   weigh()     the values for the selected time and thread
//   Inverted    the tree from the leaves, opened only as far as it is shown
// A parent has a smaller number than its children.

// Self of each node of the trie, in one pass over the rows within [from, to).
function selfByNode(source, from, to, contexts, metric) {
  const {rows, node, trie} = source;
  const self = new Float64Array(trie.n);
  const value = rows[metric];
  const {ctx} = rows;
  const first = lowerBound(rows.tick, from);
  const last = to === Infinity ? rows.n : lowerBound(rows.tick, to);
  if (contexts) {
    for (let i = first; i < last; i++)
      if (contexts[ctx[i]]) self[node[i]] += value[i];
  } else {
    for (let i = first; i < last; i++) self[node[i]] += value[i];
  }
  return self;
}

// Position of the first element of a sorted array that is >= x.
function lowerBound(sorted, x) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (sorted[mid] < x) low = mid + 1;
    else high = mid;
  }
  return low;
}

class Tree {
  // functions: by frame; options: hidden(frame) -> bool, focus: frame or -1,
  // merge: bool
  constructor(trie, functions, options) {
    const frameCount = functions.length;
    this.trie = trie;
    this.functions = functions;
    this.frameCount = frameCount;
    this.kids = null;
    const size = 1 << Math.ceil(Math.log2(trie.n * 2 + 2));
    const slots = new Int32Array(size);
    const map = this.map = new Int32Array(trie.n); // -1: not shown.
    const parent = new Int32Array(trie.n + 1);
    const frame = new Uint32Array(trie.n + 1);
    const hidden = new Uint8Array(frameCount);
    for (let f = 0; f < frameCount; f++) hidden[f] = options.hidden(f) ? 1 : 0;
    parent[0] = -1;
    let n = 1;
    if (options.focus >= 0) map[0] = -1;
    for (let i = 1; i < trie.n; i++) {
      let up = map[trie.parent[i]];
      const f = trie.frame[i];
      if (up < 0) {
        if (functions[f] !== functions[options.focus]) {
          map[i] = -1;
          continue;
        }
        up = 0;
      }
      if (hidden[f]) {
        map[i] = up;
        continue;
      }
      if (options.merge) {
        let same = up;
        while (same > 0 && frame[same] !== f) same = parent[same];
        if (same > 0) {
          map[i] = same;
          continue;
        }
      }
      let slot = Math.imul(Math.imul(up, 0x9e3779b1) ^ f, 0x85ebca6b);
      slot = (slot ^ slot >>> 15) & (size - 1);
      let found = slots[slot];
      while (found && (parent[found] !== up || frame[found] !== f)) {
        slot = (slot + 1) & (size - 1);
        found = slots[slot];
      }
      if (!found) {
        found = slots[slot] = n++;
        parent[found] = up;
        frame[found] = f;
      }
      map[i] = found;
    }
    this.n = n;
    this.parent = parent.subarray(0, n);
    this.frame = frame.subarray(0, n);
    this.count = new Uint32Array(n);
    this.first = new Uint32Array(n);
    this.depth = new Uint16Array(n);
    for (let i = 1; i < n; i++) {
      this.count[parent[i]]++;
      this.depth[i] = this.depth[parent[i]] + 1;
    }
  }

  open() {}

  // Sorts children by their weight in the whole session, so that the order stays
  // the same when a time is selected.
  order(self) {
    this.weigh(self);
    const {n, parent, count, first, total, frame} = this;
    const kids = this.kids = new Uint32Array(n);
    let at = 0;
    for (let i = 0; i < n; i++) {
      first[i] = at;
      at += count[i];
    }
    const next = first.slice();
    for (let i = 1; i < n; i++) kids[next[parent[i]]++] = i;
    for (let i = 0; i < n; i++)
      if (count[i] > 1)
        kids.subarray(first[i], first[i] + count[i])
          .sort((a, b) => total[b] - total[a] || frame[a] - frame[b]);
    this.markOuter();
  }

  // Marks the nodes without an ancestor of the same function. The sum of their
  // totals is the function's total, which counts recursion only once.
  markOuter() {
    const {n, frame, first, count, kids, functions} = this;
    const outer = this.outer = new Uint8Array(n);
    const on = new Uint32Array(this.frameCount);
    const stack = [0];
    while (stack.length) {
      const i = stack.pop();
      if (i < 0) {
        on[functions[frame[~i]]]--;
        continue;
      }
      if (i > 0) {
        outer[i] = on[functions[frame[i]]]++ ? 0 : 1;
        stack.push(~i);
      }
      for (let k = first[i]; k < first[i] + count[i]; k++) stack.push(kids[k]);
    }
  }

  weigh(selfOfTrie) {
    const {n, parent, map, trie} = this;
    const self = this.self = new Float64Array(n);
    for (let i = 0; i < trie.n; i++)
      if (map[i] >= 0) self[map[i]] += selfOfTrie[i];
    const total = this.total = self.slice();
    for (let i = n - 1; i > 0; i--) total[parent[i]] += total[i];
  }

  // The position of each node on the axis from 0 to the root's total.
  place() {
    const {n, first, count, kids, total} = this;
    const start = this.start = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let at = start[i];
      for (let k = first[i]; k < first[i] + count[i]; k++) {
        start[kids[k]] = at;
        at += total[kids[k]];
      }
    }
  }

  // Self and total by function, for each of its frames.
  byFunction() {
    const {n, frame, self, total, outer, functions} = this;
    const selfOf = new Float64Array(this.frameCount);
    const totalOf = new Float64Array(this.frameCount);
    for (let i = 1; i < n; i++) {
      const f = functions[frame[i]];
      selfOf[f] += self[i];
      if (outer[i]) totalOf[f] += total[i];
    }
    functions.forEach((first, f) => {
      selfOf[f] = selfOf[first];
      totalOf[f] = totalOf[first];
    });
    return {self: selfOf, total: totalOf};
  }

  // Self and total by node and by function, of other values than those shown.
  sums(selfOfTrie) {
    const shown = [this.self, this.total];
    this.weigh(selfOfTrie);
    const {self, total} = this;
    const functions = this.byFunction();
    [this.self, this.total] = shown;
    return {self, total, selfOf: functions.self, totalOf: functions.total};
  }

  // Weight of the stacks that contain a function with a flag.
  share(flags) {
    const {n, parent, frame, self} = this;
    const hit = new Uint8Array(n);
    let sum = 0;
    for (let i = 1; i < n; i++)
      if (hit[parent[i]] || flags[frame[i]]) {
        hit[i] = 1;
        sum += self[i];
      }
    return sum;
  }
}

// The tree from the leaves: the root's children are the functions with their self,
// the children of a function are its callers. The members of a node are the nodes
// of the tree that it represents, each with the weight that it contributes.
class Inverted {
  constructor(tree) {
    this.tree = tree;
    this.kids = null;
    this.n = 1;
    this.parent = [-1];
    this.frame = [0];
    this.total = [tree.total[0]];
    this.self = [0];
    this.start = [0];
    this.depth = [0];
    this.first = [0];
    this.count = [0];
    this.opened = [0];
    // The members of all nodes. Node i has memberCount[i] members, beginning at
    // memberStart[i]. Opening a node hands its members to its children in place.
    let n = 0;
    for (let i = 1; i < tree.n; i++) if (tree.self[i] > 0) n++;
    this.memberStart = [0];
    this.memberCount = [n];
    this.places = new Uint32Array(n);
    this.weights = new Float64Array(n);
    n = 0;
    for (let i = 1; i < tree.n; i++)
      if (tree.self[i] > 0) {
        this.places[n] = i;
        this.weights[n++] = tree.self[i];
      }
    this.groupOf = new Int32Array(tree.frameCount); // + 1; 0: none yet.
    this.spare = {places: new Uint32Array(n), weights: new Float64Array(n)};
  }

  open(i) {
    if (this.opened[i]) return;
    this.opened[i] = 1;
    const {tree, groupOf, places, weights, spare} = this;
    const {parent, frame} = tree;
    const begin = this.memberStart[i];
    const end = begin + this.memberCount[i];
    const step = i > 0;
    const frames = [];
    const totals = [];
    const counts = [];
    let n = 0;
    for (let m = begin; m < end; m++) {
      const at = step ? parent[places[m]] : places[m];
      if (at <= 0) continue;
      const f = frame[at];
      let g = groupOf[f];
      if (!g) {
        g = groupOf[f] = frames.push(f);
        totals.push(0);
        counts.push(0);
      }
      totals[g - 1] += weights[m];
      counts[g - 1]++;
      spare.places[n] = at;
      spare.weights[n++] = weights[m];
    }
    const order = frames.map((f, g) => g);
    if (order.length > 1)
      order.sort((a, b) => totals[b] - totals[a] || frames[a] - frames[b]);
    this.first[i] = this.n;
    this.count[i] = order.length;
    let x = this.start[i];
    let slot = begin;
    for (const g of order) {
      this.parent.push(i);
      this.frame.push(frames[g]);
      this.total.push(totals[g]);
      this.self.push(step ? 0 : totals[g]);
      this.start.push(x);
      this.depth.push(this.depth[i] + 1);
      this.first.push(0);
      this.count.push(0);
      this.opened.push(0);
      this.memberStart.push(slot);
      this.memberCount.push(counts[g]);
      x += totals[g];
      this.n++;
      // From here on counts[g] is the position of the group's next member.
      const room = counts[g];
      counts[g] = slot;
      slot += room;
    }
    for (let m = 0; m < n; m++) {
      const at = spare.places[m];
      const to = counts[groupOf[frame[at]] - 1]++;
      places[to] = at;
      weights[to] = spare.weights[m];
    }
    for (const f of frames) groupOf[f] = 0;
  }
}

// Frames from the root to a node, and the node at the end of such a path, or of
// the longest part of it that exists.
function pathOf(tree, node) {
  const path = [];
  for (let i = node; i > 0; i = tree.parent[i]) path.push(tree.frame[i]);
  return path.reverse();
}

function nodeAt(tree, path) {
  let at = 0;
  for (const f of path) {
    tree.open(at);
    let next = -1;
    for (let k = tree.first[at]; k < tree.first[at] + tree.count[at]; k++) {
      const kid = tree.kids ? tree.kids[k] : k;
      if (tree.frame[kid] === f) next = kid;
    }
    if (next < 0) return at;
    at = next;
  }
  return at;
}
