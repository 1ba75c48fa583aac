// Data: decodes the data that `ljprof flame` wrote into the page. The format is
// in doc/reference/page-data.md. Columns are LEB128 varints in base64: a sample
// takes a few bytes, and a million samples are decoded in about 50 ms.

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// Decodes n numbers into an array of this type. sum: each number is the
// difference to the previous one; signed: numbers are in zigzag code. A missing
// column is filled with 1.
function column(text, n, Type, sum, signed) {
  const out = new Type(n);
  if (text === undefined) return out.fill(1);
  const bytes = bytesOf(text);
  let last = 0;
  let at = 0;
  for (let i = 0; i < n; i++) {
    let byte = bytes[at++];
    let x = byte & 0x7f;
    for (let scale = 128; byte >= 128; scale *= 128) {
      byte = bytes[at++];
      x += (byte & 0x7f) * scale;
    }
    if (signed) x = x % 2 ? -(x + 1) / 2 : x / 2;
    if (sum) x = last += x;
    out[i] = x;
  }
  return out;
}

// Kinds of frames: [key, name, description]. The numbers in the data are indexes
// of this list; tools/page/page.h has the same list.
const KINDS = [
  ['root', 'All', 'everything that was measured'],
  ['lua', 'Lua', 'a Lua function in the interpreter'],
  ['jit', 'Compiled Lua', 'a Lua function in machine code of the JIT compiler'],
  ['inlined', 'Inlined Lua', 'a Lua function inlined into a compiled trace'],
  ['builtin', 'Builtin', 'a built-in function of the standard library'],
  ['c', 'C function', 'a C function called from Lua'],
  ['native', 'Host', 'machine code of the program or a library'],
  ['vm', 'VM', 'the interpreter itself and the JIT compiler'],
  ['gc', 'GC', 'the garbage collector'],
  ['kernel', 'Kernel', 'kernel code'],
  ['profiler', 'Profiler', 'the work of the profiler itself'],
  ['cut', 'Cut', 'the stack was cut here, or the frame is unknown'],
  ['table', 'Table', 'a table, or several of one kind'],
  ['string', 'String', 'strings'],
  ['function', 'Function', 'functions, their variables, prototypes and traces'],
  ['coroutine', 'Coroutine', 'coroutines, with their stacks'],
  ['data', 'Userdata', 'userdata and cdata'],
  ['group', 'Group', 'a state, a thread, a VM or a label that stacks are grouped by'],
];
const KIND = Object.fromEntries(KINDS.map((k, i) => [k[0], i]));

class Profile {
  constructor(json) {
    this.json = json;
    this.tickNs = json.tick_ns;
    this.ticks = Math.max(1, json.ticks);
    const s = json.strings;
    const f = json.frames;
    this.frames = {
      n: f.n,
      name: Array.from(column(f.name, f.n, Uint32Array), (i) => s[i]),
      file: Array.from(column(f.file, f.n, Uint32Array), (i) => s[i]),
      module: Array.from(column(f.module, f.n, Uint32Array), (i) => s[i]),
      line: column(f.line, f.n, Uint32Array),
      kind: column(f.kind, f.n, Uint8Array),
    };
    const n = json.nodes.n;
    const up = column(json.nodes.up, n, Uint32Array);
    const parent = new Int32Array(n);
    for (let i = 0; i < n; i++) parent[i] = i - up[i];
    parent[0] = -1;
    this.trie = {
      n,
      parent,
      frame: column(json.nodes.frame, n, Uint32Array, true, true),
      line: column(json.nodes.line, n, Uint32Array),
    };
    // Where the rows of each node count in the Lua view, if the page has both.
    this.lua = json.nodes.lua && column(json.nodes.lua, n, Uint32Array, true, true);
    this.contexts = json.contexts;
    this.series = (json.series || []).map((x) => ({
      ...x,
      time: column(x.time, x.n, Float64Array, true),
      value: column(x.value, x.n, Float64Array),
    }));
    const gc = json.gc || {n: 0};
    const milli = (x) => x / 1000;
    this.gc = {
      n: gc.n,
      // In thousandths of a tick: phases are shorter than ticks.
      start: gc.n ? column(gc.start, gc.n, Float64Array, true).map(milli) : [],
      length: gc.n ? column(gc.length, gc.n, Float64Array).map(milli) : [],
      phase: gc.n ? column(gc.phase, gc.n, Uint8Array) : [],
    };
    this.marks = json.marks || [];
    this.views = json.views.map((v) => this.view(v));
    // A comparison has values of its own for each view: their errors do not add
    // up like the values do.
    this.folds = !!this.lua || this.views.some((v) => v.lua);
    // One more tab shows the CPU samples by state of the VM.
    const timed = this.views.find((v) => v.id === 'cpu') ||
      this.views.find((v) => v.id === 'wall');
    if (timed && this.contexts.some((c) => c.state))
      this.views.push({...timed, id: 'states', name: 'JIT states',
        group: 'state'});
  }

  // The rows of a view as the Lua view or the native view has them.
  rowsOf(view, native) {
    if (native || !this.folds) return view.rows;
    return view.lua ||
      {...view.rows, node: view.rows.node.map((i) => this.lua[i])};
  }

  view(v) {
    const made = {
      id: v.id, name: v.name, unit: v.unit, counts: v.counts, weights: v.weights,
      group: '', untimed: !!v.untimed, estimated: !!v.estimated,
      heap: v.id === 'retained' || v.id === 'references',
      rows: this.rows(v),
      grows: v.grows,
      slices: v.slices && column(v.slices, 2 * v.rows, Uint32Array),
    };
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    // The mean time that a sample stands for.
    made.sampleNs = v.unit === 'ns' && made.rows.count
      ? sum(made.rows.weight) / sum(made.rows.count) : 0;
    return v.lua ? {...made, lua: this.rows({...v.lua, counts: v.counts})} : made;
  }

  rows(v) {
    const n = v.rows;
    return {
      n,
      tick: v.tick === undefined ? new Uint32Array(n)
        : column(v.tick, n, Uint32Array, true),
      node: column(v.node, n, Uint32Array, true, true),
      ctx: v.ctx === undefined ? new Uint16Array(n)
        : column(v.ctx, n, Uint16Array),
      count: !v.counts ? undefined : v.count_unit
        ? column(v.count, n, Float64Array).map((x) => x / v.count_unit)
        : column(v.count, n, Float64Array),
      weight: column(v.weight, n, Float64Array),
      ...(v.other ? {
        other: column(v.other, n, Float64Array),
        otherVariance: column(v.other_variance, n, Float64Array),
        weightVariance: column(v.weight_variance, n, Float64Array),
      } : {}),
    };
  }

  // The text of a frame: Lua functions with the place of their definition, others
  // by name only.
  label(f) {
    const at = this.isLua(f) ? this.place(f) : '';
    return at ? this.frames.name[f] + ' ' + at : this.frames.name[f];
  }

  // The function of each frame: the first frame that differs at most in kind. A
  // function is interpreted here, compiled there, and inlined elsewhere.
  get functions() {
    const {n, name, file, module, line, kind} = this.frames;
    if (this.functionsOf && this.functionsOf.length === n) return this.functionsOf;
    const first = new Map();
    return this.functionsOf = Uint32Array.from({length: n}, (_, f) => {
      if (kind[f] === KIND.root || kind[f] === KIND.group) return f;
      const key = [name[f], file[f], line[f], module[f]].join('\0');
      if (!first.has(key)) first.set(key, f);
      return first.get(key);
    });
  }

  isLua(f) {
    const kind = this.frames.kind[f];
    return kind === KIND.lua || kind === KIND.jit || kind === KIND.inlined;
  }

  isTrace(f) {
    return this.frames.kind[f] === KIND.jit &&
      /^(trace \d+|\(unknown trace \d+\))$/.test(this.frames.name[f]);
  }

  place(f) {
    const {file, line} = this.frames;
    return file[f] ? line[f] ? file[f] + ':' + line[f] : file[f] : '';
  }

  // Finds or adds the frame of a group. Returns its number.
  groupFrame(name, about) {
    const f = this.frames;
    for (let i = this.json.frames.n; i < f.n; i++)
      if (f.name[i] === name && f.module[i] === about) return i;
    const grow = (a) => {
      const b = new a.constructor(f.n + 1);
      b.set(a);
      return b;
    };
    f.name.push(name);
    f.file.push('');
    f.module.push(about);
    f.line = grow(f.line);
    f.kind = grow(f.kind);
    f.kind[f.n] = KIND.group;
    return f.n++;
  }
}

// Where rows are grouped that do not tell their thread, VM or state.
const NOWHERE = {thread: 'no thread recorded', vm: 'no VM', state: 'no state'};

// The keys of the labels that contexts have.
function labelKeys(contexts) {
  const keys = contexts.flatMap((c) => Object.keys(c.labels || {}));
  return [...new Set(keys)].filter(Boolean).sort();
}

// The name of a context's group. The value of the empty key stands for all
// values: they are not known.
function groupName(context, key) {
  if (!key.startsWith('label:')) return context[key] || NOWHERE[key];
  const label = key.slice('label:'.length);
  const labels = context.labels || {};
  const value = Object.hasOwn(labels, label) ? labels[label] : labels[''];
  return `${label}=${value || '(none)'}`;
}

// The labels that rows can be narrowed to: of each key without too many values.
function labelChoices(contexts, limit) {
  return labelKeys(contexts).flatMap((key) => {
    const names = new Set(contexts.map((c) => groupName(c, 'label:' + key)));
    return names.size <= limit ? [...names].sort() : [];
  });
}

// Groups the rows of a view: adds the group as the outermost frame of each
// stack. Returns a new trie and the new node of each row. key: thread, vm,
// state or label:KEY.
function regroup(profile, view, key) {
  const {trie, contexts} = profile;
  const {rows} = view;
  const names = contexts.map((c) => groupName(c, key));
  const groups = [...new Set(names)];
  const numbers = new Map(groups.map((name, i) => [name, i]));
  const groupOf = Uint32Array.from(names, (x) => numbers.get(x));
  const maps = groups.map(() => null);
  const parent = [-1];
  const frame = [0];
  const line = [0];
  const node = new Uint32Array(rows.n);
  const path = [];
  for (let i = 0; i < rows.n; i++) {
    const g = groupOf[rows.ctx[i]];
    let map = maps[g];
    if (!map) {
      map = maps[g] = new Int32Array(trie.n);
      map[0] = parent.length;
      parent.push(0);
      frame.push(profile.groupFrame(groups[g], key.split(':')[0]));
      line.push(0);
    }
    let at = rows.node[i];
    for (; at && !map[at]; at = trie.parent[at]) path.push(at);
    while (path.length) {
      const x = path.pop();
      map[x] = parent.length;
      parent.push(map[trie.parent[x]]);
      frame.push(trie.frame[x]);
      line.push(trie.line[x]);
    }
    node[i] = map[rows.node[i]];
  }
  return {
    trie: {
      n: parent.length,
      parent: Int32Array.from(parent),
      frame: Uint32Array.from(frame),
      line: Uint32Array.from(line),
    },
    node,
  };
}
