// Makes up a profile in the format of the page:
//   node synthetic.mjs small|large OUT.json
import {writeFileSync} from 'node:fs';

let seed = 12345;
const random = () => {
  seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0;
  return ((seed ^ seed >>> 13) >>> 0) / 4294967296;
};
const below = (n) => Math.floor(random() * n);

function column(numbers, {sum, signed} = {}) {
  const bytes = [];
  let last = 0;
  for (const number of numbers) {
    let x = sum ? number - last : number;
    last = number;
    if (signed) x = x < 0 ? -2 * x - 1 : 2 * x;
    for (; x >= 128; x = Math.floor(x / 128)) bytes.push(x % 128 + 128);
    bytes.push(x);
  }
  return Buffer.from(bytes).toString('base64');
}

export const EVIL = '</script><script>document.title="owned"</script><img src=x>';

const HOST = ['_start', '__libc_start_main', 'main', 'lua_pcall', 'docall'];
const WORDS = ['parse', 'render', 'route', 'query', 'fetch', 'encode', 'decode',
  'match', 'walk', 'merge', 'split', 'score', 'index', 'flush', 'handle', 'emit'];
const FILES = ['app/server.lua', 'app/router.lua', 'app/template.lua',
  'lib/json.lua', 'lib/db.lua', 'lib/cache.lua'];
const LEAVES = [['string.gsub', 4], ['table.concat', 4], ['table.sort', 4], ['pairs', 4],
  ['cjson_encode', 5], ['lj_str_new', 6], ['lj_tab_newkey', 6], ['memcpy', 6],
  ['lj_BC_TGETS', 7], ['lj_gc_step', 8], ['gc_sweep', 8], ['entry_SYSCALL_64', 9],
  ['[cut: stack deeper than asked for]', 10]];
const STATES = ['interpreter', 'compiled code', 'C function', 'GC', 'recording', 'host'];

// Frames: all, the host's, count functions of Lua, and what is called last.
function makeFrames(large, count) {
  const frames = [{name: 'All', kind: 0, file: '', line: 0, module: ''}];
  for (const h of HOST) frames.push({name: h, kind: 6, file: '', line: 0, module: 'luajit'});
  for (let i = 0; i < count; i++)
    frames.push({name: WORDS[below(16)] + (i > 15 ? '_' + WORDS[below(16)] : '') +
      (large ? i : ''), kind: 1 + below(3), file: FILES[below(6)], line: 1 + below(400), module: ''});
  frames[HOST.length + 3].name = EVIL;
  for (const [name, kind] of LEAVES)
    frames.push({name, kind, file: '', line: 0, module: kind === 6 ? 'libluajit-5.1.so.2' : ''});
  return frames;
}

// A tree of nodes (columns up, frame and line) with this number of leaves.
function makeTree(large, frames, count, stacks) {
  const first = HOST.length + 1;
  const leaf0 = first + count;
  const up = [0], frame = [0], line = [0], depth = [0];
  const add = (parent, f) => {
    up.push(up.length - parent);
    frame.push(f);
    line.push(frames[f].line ? frames[f].line + below(9) : 0);
    depth.push(depth[parent] + 1);
    return up.length - 1;
  };
  let base = 0;
  for (let i = 0; i < HOST.length; i++) base = add(base, i + 1);
  const inner = [base];
  const leaves = [];
  while (leaves.length < stacks) {
    let at = inner[Math.floor(random() ** 2.2 * inner.length)];
    if (depth[at] > (large ? 60 : 26)) continue;
    const more = 1 + below(3);
    for (let i = 0; i < more; i++) {
      at = add(at, random() < 0.06 ? frame[at] : first + below(Math.min(count, 12 + at)));
      inner.push(at);
    }
    leaves.push(random() < 0.6 ? add(at, leaf0 + below(LEAVES.length)) : at);
  }
  return {up, frame, line, leaves};
}

// The rows of a view; their plain arrays are pushed to raw.
function makeRows(large, n, heavy, leaves, contexts, raw) {
  const tick = [], node = [], ctx = [], weight = [];
  let t = 0;
  for (let i = 0; i < n; i++) {
    if (i && random() < (large ? 0.34 : 0.999)) t++;
    if (!large && t === 3000) t += 1400;
    tick.push(t);
    const phase = Math.sin(t / (large ? 9000 : 900));
    node.push(leaves[Math.floor((random() ** (2 + phase)) * leaves.length)]);
    ctx.push(below(contexts.length));
    weight.push(heavy ? 16 * (1 + below(400)) : 900000 + below(200000));
  }
  raw.push({tick, node, ctx, weight});
  return {rows: n, tick: column(tick, {sum: true}), node: column(node, {sum: true, signed: true}),
    ctx: column(ctx), weight: column(weight), last: t};
}

// Leaks: rows without times. Each fourth node has as many slices of the session as
// what kept growing, the others have one less.
function makeLeaks(rows, raw) {
  const {node} = raw[raw.length - 1];
  const of = Array.from(node, (n) =>
    Array.from({length: n % 4 ? 7 : 8}, (_, i) => (n * 7 + i * 13) % 64));
  raw[raw.length - 1].slices = of;
  const half = (list, from) => list.filter((i) => i >= from && i < from + 32)
    .reduce((sum, i) => sum + 2 ** (i - from), 0);
  return {id: 'leaks', name: 'Leaks', unit: 'bytes', counts: 'objects',
    untimed: true, ...rows, grows: 8,
    slices: column(of.flatMap((list) => [half(list, 0), half(list, 32)]))};
}

// The size of a heap over time, and the collections that make it smaller.
function makeHeap(ticks) {
  const time = [], value = [], start = [], length = [], phase = [];
  let bytes = 3e6;
  for (let i = 0; i < 600; i++) {
    time.push(Math.floor(i / 600 * ticks));
    value.push(Math.floor(bytes));
    bytes += 60000 * random();
    if (bytes > 9e6 && random() < 0.2) {
      const t = Math.floor(i / 600 * ticks);
      start.push(...[t, t + Math.floor(ticks / 90), t + Math.floor(ticks / 80)]
        .map((x) => 1000 * x));
      length.push(...[ticks / 90, 1 + ticks / 2000, ticks / 120]
        .map((x) => Math.floor(1000 * x)));
      phase.push(1, 2, 4);
      bytes = 4e6 + 1e6 * random();
    }
  }
  return {
    series: [{name: 'VM 1', n: time.length, time: column(time, {sum: true}),
      value: column(value)}],
    gc: {n: start.length, start: column(start, {sum: true}),
      length: column(length), phase: column(phase)},
  };
}

// Returns {json: the data of a page, raw: the same as plain arrays}.
export function make(size) {
  seed = 12345;
  const large = size === 'large';
  const strings = [''];
  const intern = (s) => {
    const i = strings.indexOf(s);
    return i >= 0 ? i : strings.push(s) - 1;
  };
  const count = large ? 4000 : 60;
  const frames = makeFrames(large, count);
  const {up, frame, line, leaves} = makeTree(large, frames, count, large ? 100000 : 160);
  const contexts = [];
  for (const thread of large ? ['main', 'worker 1', 'worker 2'] : ['main', 'worker'])
    for (const state of STATES) contexts.push({thread, vm: 'VM ' + thread, state});
  const raw = [];
  const rows = (n, heavy) => makeRows(large, n, heavy, leaves, contexts, raw);
  const cpu = rows(large ? 1000000 : 9000, false);
  const ticks = cpu.last + 1;
  const alloc = rows(large ? 50000 : 4000, true);
  const heap = makeHeap(ticks);
  const json = {
    title: 'server.ljp', subtitle: 'luajit app/server.lua · 2026-11-21 04:43:07 UTC',
    about: [['Host', 'Linux 6.1'], ['LuaJIT', '2.1']],
    tick_ns: 1000000, ticks, strings,
    frames: {
      n: frames.length, name: column(frames.map((f) => intern(f.name))),
      kind: column(frames.map((f) => f.kind)), file: column(frames.map((f) => intern(f.file))),
      line: column(frames.map((f) => f.line)), module: column(frames.map((f) => intern(f.module))),
    },
    nodes: {n: up.length, up: column(up), frame: column(frame, {sum: true, signed: true}),
      line: column(line)},
    contexts,
    views: [
      {id: 'cpu', name: 'CPU', unit: 'ns', counts: 'samples', ...cpu},
      {id: 'alloc', name: 'Allocations', unit: 'bytes', counts: 'objects', ...alloc},
      makeLeaks(makeRows(large, 500, true, leaves.slice(0, 24), contexts, raw), raw),
    ],
    ...heap,
    marks: [[2000, 'deploy <script>alert(1)</script>']],
    notices: [{level: 'warning', text: '1 129 samples were lost', about: 'the ring was full'},
      {level: 'warning', text: '37 stacks are cut', about: 'deeper than 2 048 frames'}],
  };
  return {json, raw: {frames, frame, line, contexts, views: raw,
    parent: up.map((u, i) => i - u)}};
}

const [, , size, out] = process.argv;
if (out) writeFileSync(out, JSON.stringify(make(size).json));
