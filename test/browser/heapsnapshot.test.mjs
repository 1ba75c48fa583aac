// Chrome DevTools (its own loader, from npm) and memlab (from npm) load our exports
// of heap snapshots: nodes, edges, sizes, retained sizes and paths from a root
// are those of `ljprof heap`. There is no browser in it.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {devtools, memlab} from './heap_readers.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const ljprof = process.env.LJPROF || join(root, 'build/bin/ljprof');
const luajit = process.env.LUAJIT || join(root, 'build/bin/luajit');
const dir = mkdtempSync(join(tmpdir(), 'ljprof-heap-'));
const readers = {};

before(async () => {
  readers.devtools = await devtools(dir);
  readers.memlab = await memlab();
});
after(() => rmSync(dir, {recursive: true}));

const run = (...command) => execFileSync(command[0], command.slice(1),
  {encoding: 'utf8', maxBuffer: 1 << 28});

// The export of the heap of a program, and what ljprof says of it.
function take(name, program, options = 'gc = true') {
  const file = join(dir, name + '.ljp');
  const to = join(dir, name + '.heapsnapshot');
  const script = join(dir, name + '.lua');
  writeFileSync(script, `${program}
    assert(misc.memprof.snapshot{path = "${file}", wait = true, ${options}})`);
  run(luajit, script);
  run(ljprof, 'export', '--to', 'heapsnapshot', '-o', to, file);
  const dump = run(ljprof, 'dump', '--json', file).split('\n');
  const refs = dump.filter((line) => line.startsWith('{"type":"ref"'));
  return {
    to,
    heap: JSON.parse(run(ljprof, 'heap', '--json', '--top', '200', file)),
    refs: refs.length + refs.filter((line) => line.includes('"key":')).length,
  };
}

// The id of an object in the file.
const idOf = (address) =>
  Number((BigInt(address) >> 3n) % (1n << 31n)) * 2 + 1;

// Is there a shortest path from the root with names that are all in this text?
function follows(snapshot, index, text) {
  const node = snapshot.createNode(index);
  if (node.distance() <= 1) return true;
  for (const it = node.retainers(); it.hasNext(); it.next()) {
    const edge = it.item();
    const from = snapshot.createNode(edge.nodeIndex());
    const name = edge.name().split(' of ')[0].replace(/^\[|\]$/g, '');
    if (edge.isWeak() || from.distance() !== node.distance() - 1) continue;
    const told = name === 'value' || name === 'registry' ||
      name === '_LOADED' || text.includes(name.slice(0, 40));
    if (told && follows(snapshot, from.nodeIndex, text)) return true;
  }
  return false;
}

function checkDevtools(snapshot, {heap, refs}) {
  const {nodes, nodeFieldCount: width} = snapshot;
  const index = new Map();
  let parts = 0;
  let garbage = 0;
  let held = 0;
  for (let i = 0; i < nodes.length; i += width) {
    const node = snapshot.createNode(i);
    index.set(node.id(), i);
    if (node.isArray()) {
      parts++;
      // Its owner has its size.
      assert.equal(node.selfSize(), 0, node.name());
    }
    if (node.isSynthetic() && i) {
      assert.equal(node.name(), '(garbage)');
      garbage = node.edgesCount();
    }
  }
  held = snapshot.createNode(0).edgesCount();
  assert.equal(snapshot.nodeCount, heap.objects + parts + 1 + (garbage ? 1 : 0));
  assert.equal(garbage, heap.garbage_objects);
  assert.equal(snapshot.containmentEdges.length / 3,
    refs + parts + held + garbage);
  assert.equal(snapshot.totalSize, heap.bytes);
  assert.ok(heap.retainers.length > 0);
  for (const r of heap.retainers) {
    const node = snapshot.createNode(index.get(idOf(r.address)));
    assert.equal(node.selfSize(), r.own, r.path);
    assert.equal(node.retainedSize(), r.retained, r.path);
    // Ours prefers ways that do not run through a stack.
    if (!/ local | a temporary|<frame>/.test(r.path))
      assert.ok(follows(snapshot, node.nodeIndex, r.path), r.path);
  }
}

function checkMemlab(lab, snapshot, {heap}) {
  assert.equal(lab.nodes.length, snapshot.nodeCount);
  assert.equal(lab.edges.length * 3, snapshot.containmentEdges.length);
  let sum = 0;
  let paths = 0;
  lab.nodes.forEach((node) => {
    const other = snapshot.createNode(node.nodeIndex * snapshot.nodeFieldCount);
    sum += node.self_size;
    assert.equal(node.id, other.id());
    assert.equal(node.name, other.rawName());
    if (!other.isArray())
      assert.equal(node.retainedSize, other.retainedSize(), node.name);
  });
  assert.equal(sum, heap.bytes);
  // memlab finds no path through some names, which it knows from browsers.
  heap.retainers.forEach((r, i) => {
    const node = lab.getNodeById(idOf(r.address));
    let steps = 0;
    for (let n = node; n.pathEdge; n = n.pathEdge.fromNode) steps++;
    assert.ok(steps || i, 'the largest has a path');
    if (steps)
      assert.equal(steps, snapshot.createNode(
        node.nodeIndex * snapshot.nodeFieldCount).distance(), r.path);
    paths += steps > 0;
  });
  assert.ok(paths >= heap.retainers.length * 0.9, paths);
}

async function agree(name, program, options) {
  const taken = take(name, program, options);
  const snapshot = await readers.devtools(taken.to);
  checkDevtools(snapshot, taken);
  checkMemlab(await readers.memlab(taken.to), snapshot, taken);
  return snapshot;
}

const classes = (snapshot) => new Map(
  Object.values(snapshot.aggregatesWithFilter({})).map((a) => [a.name, a]));

for (const leak of ['cache', 'closures', 'coroutines', 'keys', 'loaded',
  'metatable', 'module', 'timers', 'userdata'])
  test(`the leak ${leak}`, async () => {
    await agree(leak, `dofile("${root}/test/leaks/${leak}.lua")`);
  });

test('kinds of objects are classes', async () => {
  const snapshot = await agree('kinds', `
    accounts, points = {}, {}
    local mt = {__name = "Account"}
    for i = 1, 1009 do accounts[i] = setmetatable({id = i}, mt) end
    for i = 1, 503 do points[i] = {x = i, y = {}} end
    local function work() coroutine.yield() end
    threads = {}
    for i = 1, 101 do
      threads[i] = coroutine.create(work)
      coroutine.resume(threads[i])
    end`);
  const all = classes(snapshot);
  assert.equal(all.get('table Account').count, 1009);
  assert.equal(all.get('table {x, y}')?.count ?? all.get('table {y, x}').count,
    503);
  const threads = [...all.keys()].find((n) => /^coroutine of function/.test(n));
  assert.equal(all.get(threads).count, 101);
});

test('weak references and garbage keep nothing alive', async () => {
  const snapshot = await agree('weak', `
    collectgarbage("stop")
    strong = {}
    for i = 1, 211 do strong[i] = {("x"):rep(1000) .. i} end
    weak = setmetatable({}, {__mode = "v"})
    for i = 1, 211 do weak[i] = strong[i] end
    for i = 1, 307 do local _ = {strong, {strong}} end`, 'gc = false');
  const node = [...Array(snapshot.nodeCount).keys()].map((i) =>
    snapshot.createNode(i * snapshot.nodeFieldCount)).find((n) => {
    for (const it = n.retainers(); it.hasNext(); it.next())
      if (it.item().name() === 'strong') return true;
    return false;
  });
  assert.ok(node.retainedSize() > 211000);
});

test('the difference of two snapshots has what is new', async () => {
  const script = join(dir, 'two.lua');
  writeFileSync(script, `
    keep = {}
    for i = 1, 401 do keep[i] = {old = i} end
    more = {}
    local function take(n)
      assert(misc.memprof.snapshot{path = "${dir}/two" .. n .. ".ljp",
        gc = true, wait = true})
    end
    take(1)
    for i = 1, 307 do more[i] = {new = i} end
    for i = 1, 101 do keep[i] = nil end
    take(2)`);
  run(luajit, script);
  const [one, two] = await Promise.all([1, 2].map((n) => {
    const to = join(dir, `two${n}.heapsnapshot`);
    run(ljprof, 'export', '--to', 'heapsnapshot', '-o', to,
      join(dir, `two${n}.ljp`));
    return readers.devtools(to);
  }));
  const diff = two.calculateSnapshotDiff(1,
    one.aggregatesForDiff(two.interfaceDefinitions()));
  const of = (name) => Object.values(diff).find((d) => d.name === name);
  assert.equal(of('table {new}').addedCount, 307);
  assert.equal(of('table {new}').removedCount, 0);
  assert.equal(of('table {old}').addedCount, 0);
  assert.equal(of('table {old}').removedCount, 101);
});
