// The page of `ljprof flame` in a real browser: everything that a reader does,
// compared with a second, simple opinion of what must be shown (model.mjs).
import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, afterEach, before, beforeEach, test} from 'node:test';
import {assemble} from './assemble.mjs';
import {boxes, open, settle, start} from './browser.mjs';
import {byFunction, byPath, Model, sum} from './model.mjs';
import {EVIL, make} from './synthetic.mjs';

const dir = mkdtempSync(join(tmpdir(), 'ljprof-page.'));
const path = join(dir, 'page.html');
const {json, raw} = make('small');
const cpu = new Model(raw, 0);
let browser;
let page;

before(async () => {
  writeFileSync(path, assemble(json));
  browser = await start();
});
after(async () => {
  await browser.close();
  rmSync(dir, {recursive: true});
});
beforeEach(async () => {
  page = await open(browser, path);
});
afterEach(async () => {
  const {faults} = page;
  await page.context().close();
  assert.deepEqual(faults, []);
});

const total = (p = page) => p.evaluate(() => globalThis.ljprof.tree.total[0]);
const hash = () => page.evaluate(() => location.hash);
const press = async (...keys) => {
  for (const key of keys) await page.keyboard.press(key);
  await settle(page);
};
const percent = (part, all) => {
  const p = 100 * part / all;
  return (p < 1 ? p.toFixed(2) : p.toFixed(1)) + ' %';
};

// The widest box in sight that has this depth.
async function widest(depth) {
  const all = (await boxes(page)).filter((b) => b.depth === depth && b.visible);
  return all.reduce((a, b) => b.w > a.w ? b : a);
}

// Frames of the path that leads to a node of the shown tree.
const pathTo = (node) => page.evaluate((n) => {
  const {tree} = globalThis.ljprof;
  const out = [];
  for (let i = n; i > 0; i = tree.parent[i]) out.push(tree.frame[i]);
  return out.reverse();
}, node);

test('the whole is the sum of all samples', async () => {
  assert.equal(await total(), sum(cpu.stacks()));
  const root = (await boxes(page))[0];
  assert.equal(root.total, sum(cpu.stacks()));
});

test('a flame graph begins at its root, whatever room it has', async () => {
  const low = await open(browser, path, {size: {width: 900, height: 420}});
  assert.ok((await boxes(low))[0].visible);
  const {scrollTop, most} = await low.evaluate(() => {
    const {box} = globalThis.ljprof.graph;
    return {scrollTop: box.scrollTop, most: box.scrollHeight - box.clientHeight};
  });
  assert.ok(most > 50 && scrollTop >= most - 1, `${scrollTop} of ${most}`);
  await low.keyboard.press('m');
  await settle(low);
  assert.ok((await boxes(low))[0].visible);
  await low.context().close();
});

test('every box has the weight of its stacks', async () => {
  const paths = byPath(cpu.stacks());
  const shown = await page.evaluate(() => {
    const {tree} = globalThis.ljprof;
    const out = [];
    for (let n = 1; n < tree.n; n++) {
      const p = [];
      for (let i = n; i > 0; i = tree.parent[i]) p.push(tree.frame[i]);
      out.push([p.reverse().join('.'), tree.total[n]]);
    }
    return out.filter(([, w]) => w > 0);
  });
  assert.equal(shown.length, paths.size);
  for (const [p, w] of shown) assert.equal(w, paths.get(p), p);
});

test('names from a file stay text', async () => {
  assert.equal(await page.title(), 'server.ljp · ljprof');
  assert.equal(await page.locator('img').count(), 0);
  assert.equal(await page.locator('script').count(), 1);
  await press('t');
  const cell = page.locator('#tablebox td.name', {hasText: EVIL});
  assert.equal(await cell.count(), 1);
  await cell.click();
  assert.equal(await page.locator('#details h2').textContent(), EVIL);
  assert.equal(await page.locator('img').count(), 0);
});

test('losses stand at the top and open up', async () => {
  const box = page.locator('#notices');
  assert.match(await box.textContent(), /1 129 samples were lost/);
  await box.locator('summary').click();
  assert.equal(await box.locator('li:visible').count(), 2);
  assert.match(await box.locator('li').nth(1).textContent(),
    /37 stacks are cut deeper than 2 048 frames/);
});

test('the table has self and total of every function', async () => {
  await press('t');
  const {self, total: all} = byFunction(cpu.stacks());
  const rows = await page.evaluate(() =>
    globalThis.ljprof.table.look.rows.map((r) => [r.f,
      globalThis.ljprof.sums.self[r.f], globalThis.ljprof.sums.total[r.f]]));
  assert.equal(rows.length, all.size);
  for (const [f, s, t] of rows) {
    assert.equal(s, self.get(f) || 0, cpu.label(f));
    assert.equal(t, all.get(f), cpu.label(f));
  }
  const order = rows.map((r) => r[1]);
  assert.deepEqual(order, order.slice().sort((a, b) => b - a));
  const first = page.locator('#tablebox tr[data-f]').first();
  assert.equal(await first.getAttribute('data-f'), String(rows[0][0]));
  assert.equal(await first.locator('td').nth(1).textContent(),
    percent(rows[0][1], sum(cpu.stacks())));
});

test('the table sorts by a click and turns around by another', async () => {
  await press('t');
  const first = () => page.locator('#tablebox tr[data-f]').first()
    .getAttribute('data-f');
  const {total: all} = byFunction(cpu.stacks());
  const most = Math.max(...all.values());
  await page.getByRole('button', {name: 'Total'}).click();
  await settle(page);
  assert.equal(all.get(Number(await first())), most);
  await page.getByRole('button', {name: /^Function/}).click();
  await settle(page);
  const names = [...all.keys()].map((f) => raw.frames[f].name).sort();
  assert.equal(raw.frames[Number(await first())].name, names[0]);
  await page.getByRole('button', {name: /^Function/}).click();
  await settle(page);
  assert.equal(raw.frames[Number(await first())].name, names[names.length - 1]);
  assert.match(await hash(), /sort=-name/);
});

test('search shows the share of the stacks that match', async () => {
  await press('/');
  await page.keyboard.type('json|^main');
  await settle(page);
  const hit = (f) => /json|^main/i.test(cpu.label(f));
  const stacks = cpu.stacks();
  const part = sum(stacks.filter(([s]) => s.some(hit)));
  assert.ok(part > 0);
  assert.equal(await page.locator('#matched').textContent(),
    part === sum(stacks) ? '100 %' : percent(part, sum(stacks)));
  // One function by name and place; capital letters must match then.
  const f = [...byFunction(stacks).total].find(([g, w]) => w < sum(stacks) / 2 &&
    raw.frames[g].file)[0];
  const {name, file} = raw.frames[f];
  await page.locator('#search').fill('^' + name + ' ' + file.toUpperCase());
  await settle(page);
  assert.equal(await page.locator('#matched').textContent(), '0 %');
  await page.locator('#search').fill('^' + name + ' ' + file);
  await settle(page);
  const narrow = sum(stacks.filter(([s]) =>
    s.some((g) => cpu.label(g).startsWith(name + ' ' + file))));
  assert.ok(narrow > 0 && narrow < sum(stacks));
  assert.equal(await page.locator('#matched').textContent(),
    percent(narrow, sum(stacks)));
  await press('Enter', 't');
  const names = await page.locator('#tablebox td.name').allTextContents();
  assert.ok(names.length && names.every((n) => n === name));
});

test('a regex that does not compile is said, and matches nothing', async () => {
  await page.locator('#search').fill('a(');
  await settle(page);
  assert.equal(await page.locator('#matched').textContent(), 'no valid regex');
  assert.equal(await page.locator('#search').getAttribute('aria-invalid'), 'true');
  assert.equal(await total(), sum(cpu.stacks()));
});

test('a double click zooms, empty ground and Escape zoom out', async () => {
  const box = await widest(7);
  const {width} = page.viewportSize();
  assert.ok(box.w < width / 2 + 200);
  await page.mouse.dblclick(box.x, box.y);
  await settle(page);
  const share = async () => (await boxes(page)).find((b) => b.node === box.node)
    .w / await page.evaluate(() => globalThis.ljprof.graph.width);
  assert.equal(await share(), 1);
  assert.match(await page.locator('#trail').textContent(), /^Zoom/);
  await page.mouse.dblclick(400, 330);
  await settle(page);
  assert.ok(Math.abs(await share() - box.w / width) < 1e-6);
  assert.equal(await page.locator('#trail').isVisible(), false);
});

test('tabs show their own data', async () => {
  await page.getByRole('tab', {name: 'Allocations'}).click();
  await settle(page);
  assert.equal(await total(), sum(new Model(raw, 1).stacks()));
  assert.match(await hash(), /tab=alloc/);
  await press('3');
  assert.equal(await total(), sum(new Model(raw, 2).stacks()));
  await press('1');
  assert.equal(await total(), sum(cpu.stacks()));
  await page.getByRole('tab', {name: 'CPU'}).focus();
  await press('ArrowRight');
  assert.match(await hash(), /tab=alloc/);
  assert.equal(await page.getByRole('tab', {selected: true}).textContent(),
    'Allocations');
});

test('JIT states are the CPU samples by state of the VM', async () => {
  await page.getByRole('tab', {name: 'JIT states'}).click();
  await settle(page);
  const states = (await boxes(page)).filter((b) => b.depth === 1);
  for (const {name, total: w} of states)
    assert.equal(w, sum(cpu.stacks((t, c) => c.state === name)), name);
  assert.equal(states.length, 6);
  const paths = byPath(cpu.stacks((t, c) => c.state === states[0].name));
  const below = (await boxes(page)).filter((b) => b.depth === 5 && b.w > 5);
  assert.ok(below.length);
  for (const b of below.filter((x) => x.x < states[0].x)) {
    const [, ...rest] = await pathTo(b.node);
    assert.equal(b.total, paths.get(rest.join('.')));
  }
});

test('dragging in the timeline filters the graph to the sample', async () => {
  const line = await page.locator('#timeline').boundingBox();
  const x = (k) => line.x + 92 + k * (line.width - 100);
  await page.mouse.move(x(0.2), line.y + 20);
  await page.mouse.down();
  await page.mouse.move(x(0.3), line.y + 20, {steps: 4});
  await page.mouse.move(x(0.45), line.y + 20, {steps: 4});
  await page.mouse.up();
  await settle(page);
  const [, a, b] = (await hash()).match(/t=(\d+)-(\d+)/).map(Number);
  assert.ok(Math.abs(a / json.ticks - 0.2) < 0.01, `from ${a}`);
  assert.ok(Math.abs(b / json.ticks - 0.45) < 0.01, `to ${b}`);
  const inside = cpu.stacks((t) => t >= a && t < b);
  assert.ok(inside.length > 100 && inside.length < cpu.rows.tick.length);
  assert.equal(await total(), sum(inside));
  assert.match(await page.locator('#trail').textContent(), /^Time/);
  // An edge moves on its own, then all of it, and a click clears.
  await page.mouse.move(x(b / json.ticks), line.y + 20);
  await page.mouse.down();
  await page.mouse.move(x(0.6), line.y + 20, {steps: 4});
  await page.mouse.up();
  await settle(page);
  const [, a2, b2] = (await hash()).match(/t=(\d+)-(\d+)/).map(Number);
  assert.ok(Math.abs(a2 - a) <= 1 && b2 > b, `${a2} to ${b2}`);
  assert.equal(await total(), sum(cpu.stacks((t) => t >= a2 && t < b2)));
  await page.mouse.click(x(0.9), line.y + 20);
  await settle(page);
  assert.equal(await total(), sum(cpu.stacks()));
});

test('the timeline obeys the keyboard and says what is selected', async () => {
  await page.locator('#timeline').focus();
  await press('ArrowRight', 'ArrowRight', 'Shift+ArrowRight');
  const [, a, b] = (await hash()).match(/t=(\d+)-(\d+)/).map(Number);
  assert.ok(a > 0 && b > a);
  assert.equal(await total(), sum(cpu.stacks((t) => t >= a && t < b)));
  assert.match(await page.locator('#said').textContent(), /Selected from/);
  await press('Escape');
  assert.equal(await total(), sum(cpu.stacks()));
});

test('leaks are of the whole session, whatever time is selected', async () => {
  await page.locator('#timeline').focus();
  await press('ArrowRight');
  assert.ok(await total() < sum(cpu.stacks()));
  await press('3');
  assert.equal(await total(), sum(new Model(raw, 2).stacks()));
  assert.match(await page.locator('#trail').textContent(), /not for this tab/);
});

test('the heat map selects time too', async () => {
  await press('m');
  const heat = await page.locator('#heat').boundingBox();
  const shape = await page.evaluate(() => globalThis.ljprof.timeline.heatShape());
  const at = (col, row) => [heat.x + 92 + (col + 0.5) * shape.w,
    heat.y + shape.y + (row + 0.5) * shape.h];
  await page.mouse.move(...at(10, 20));
  await page.mouse.down();
  await page.mouse.move(...at(12, 10), {steps: 5});
  await page.mouse.up();
  await settle(page);
  const [, a, b] = (await hash()).match(/t=(\d+)-(\d+)/).map(Number);
  const each = shape.col / shape.rows;
  assert.equal(a, 10 * shape.col + 20 * each);
  assert.equal(b, 12 * shape.col + 11 * each);
  assert.equal(await total(), sum(cpu.stacks((t) => t >= a && t < b)));
  const cells = await page.evaluate(() =>
    globalThis.ljprof.timeline.cells.reduce((s, x) => s + x, 0));
  assert.equal(cells, sum(cpu.stacks()));
});

test('bottom-up begins with the functions by their own weight', async () => {
  await press('b');
  const {self} = byFunction(cpu.stacks());
  const first = (await boxes(page)).filter((b) => b.depth === 1);
  const frames = await page.evaluate((nodes) => nodes.map((n) =>
    globalThis.ljprof.tree.frame[n]), first.map((b) => b.node));
  frames.forEach((f, i) => assert.equal(first[i].total, self.get(f)));
  const back = byPath(cpu.stacks().map(([s, w]) => [s.slice().reverse(), w]));
  for (const b of (await boxes(page)).filter((x) => x.depth > 0))
    assert.equal(b.total, back.get((await pathTo(b.node)).join('.')));
});

test('merged recursion keeps the whole and no function calls itself', async () => {
  const repeats = () => page.evaluate(() => {
    const {tree} = globalThis.ljprof;
    let n = 0;
    for (let i = 1; i < tree.n; i++)
      for (let up = tree.parent[i]; up > 0; up = tree.parent[up])
        if (tree.frame[up] === tree.frame[i]) {
          n++;
          break;
        }
    return n;
  });
  assert.ok(await repeats() > 0);
  const {self, total: all} = byFunction(cpu.stacks());
  await press('r');
  assert.equal(await repeats(), 0);
  assert.equal(await total(), sum(cpu.stacks()));
  const sums = await page.evaluate(() => [[...globalThis.ljprof.sums.self],
    [...globalThis.ljprof.sums.total]]);
  assert.equal(sums[0].reduce((a, b) => a + b), [...self.values()]
    .reduce((a, b) => a + b));
  for (const [f, w] of all) assert.equal(sums[1][f], w, cpu.label(f));
});

test('focus shows a function with all that it calls, wherever it is', async () => {
  const box = await widest(8);
  await page.mouse.click(box.x, box.y);
  await settle(page);
  await press('f');
  const f = (await pathTo((await boxes(page))[1].node))[0];
  assert.equal(raw.frames[f].name, box.name);
  const through = cpu.stacks().filter(([s]) => s.includes(f));
  assert.equal(await total(), sum(through));
  const paths = byPath(through.map(([s, w]) => [s.slice(s.indexOf(f)), w]));
  for (const b of (await boxes(page)).filter((x) => x.depth > 0))
    assert.equal(b.total, paths.get((await pathTo(b.node)).join('.')));
  await page.locator('#trail button').first().click();
  await settle(page);
  assert.equal(await total(), sum(cpu.stacks()));
});

test('hiding a function leaves its time to its callers', async () => {
  const box = await widest(7);
  await page.mouse.click(box.x, box.y, {button: 'right'});
  await page.getByRole('menuitem', {name: /^Hide/}).click();
  await settle(page);
  const [, gone] = (await hash()).match(/hide=([0-9a-z]+)/);
  const f = parseInt(gone, 36);
  assert.equal(raw.frames[f].name, box.name);
  assert.equal(await total(), sum(cpu.stacks()));
  const paths = byPath(cpu.stacks().map(([s, w]) => [s.filter((x) => x !== f), w]));
  const shown = (await boxes(page)).filter((b) => b.depth > 0);
  for (const b of shown)
    assert.equal(b.total, paths.get((await pathTo(b.node)).join('.')));
});

test('the legend takes a kind of frame out of the stacks', async () => {
  await page.locator('#legend button', {hasText: 'Native'}).click();
  await settle(page);
  const paths = byPath(cpu.stacks().map(([s, w]) =>
    [s.filter((x) => raw.frames[x].kind !== 6), w]));
  for (const b of (await boxes(page)).filter((x) => x.depth > 0))
    assert.equal(b.total, paths.get((await pathTo(b.node)).join('.')));
  assert.match(await hash(), /kinds=native/);
});

test('a thread can be looked at alone', async () => {
  await page.locator('#tools [data-id=thread]').selectOption('worker');
  await settle(page);
  assert.equal(await total(), sum(cpu.stacks((t, c) => c.thread === 'worker')));
});

test('grouping by thread puts the threads first', async () => {
  await page.locator('#tools [data-id=group]').selectOption('thread');
  await settle(page);
  const first = (await boxes(page)).filter((b) => b.depth === 1);
  assert.deepEqual(first.map((b) => b.name).sort(), ['main', 'worker']);
  for (const b of first)
    assert.equal(b.total, sum(cpu.stacks((t, c) => c.thread === b.name)));
});

test('samples can be counted instead of weighed', async () => {
  await page.locator('#tools [data-id=metric]').selectOption('count');
  await settle(page);
  assert.equal(await total(), cpu.rows.tick.length);
});

test('keys move through the boxes, and what is reached is said', async () => {
  await page.locator('#graphbox').focus();
  await press('ArrowUp', 'ArrowUp', 'ArrowUp');
  assert.match(await page.locator('#said').textContent(),
    /^__libc_start_main, Native, 100 %/);
  await press('ArrowDown');
  assert.match(await page.locator('#said').textContent(), /^_start/);
  for (let i = 0; i < 5; i++) await press('ArrowUp');
  const before = await page.locator('#said').textContent();
  await press('ArrowUp', 'ArrowRight');
  const here = await page.locator('#said').textContent();
  assert.notEqual(here, before);
  await press('Enter');
  assert.match(await hash(), /z=/);
  await press('Escape', 'Escape');
  assert.doesNotMatch(await hash(), /z=/);
  await press('i');
  assert.match(await hash(), /view=icicle/);
  await page.locator('#graphbox').focus();
  await press('ArrowDown', 'ArrowDown');
  assert.match(await page.locator('#said').textContent(), /^_start/);
});

test('help opens with ?, lists the keys and closes', async () => {
  await press('?');
  assert.ok(await page.getByRole('dialog').isVisible());
  assert.ok(await page.getByRole('dialog').locator('kbd').count() >= 20);
  await press('Escape');
  assert.equal(await page.getByRole('dialog').isVisible(), false);
});

test('a link shows the same view again', async () => {
  const box = await widest(7);
  await page.mouse.dblclick(box.x, box.y);
  await press('r', 'i', 'd', 'm');
  await page.locator('#search').fill('json');
  await page.locator('#tools [data-id=thread]').selectOption('main');
  await page.locator('#timeline').focus();
  await press('ArrowRight', 'Shift+ArrowRight');
  const link = await hash();
  const shown = await boxes(page);
  const again = await open(browser, path, {hash: link});
  const same = await boxes(again);
  assert.deepEqual(same.map((b) => [b.node, b.depth, b.total]),
    shown.map((b) => [b.node, b.depth, b.total]));
  assert.equal(await again.locator('#matched').textContent(),
    await page.locator('#matched').textContent());
  assert.equal(await again.evaluate(() => document.documentElement.dataset.theme),
    'dark');
  assert.ok(await again.locator('#heat').isVisible());
  assert.deepEqual(again.faults, []);
  await again.context().close();
});

test('Back undoes a zoom, a mangled link does no harm', async () => {
  const box = await widest(7);
  await page.mouse.dblclick(box.x, box.y);
  await settle(page);
  assert.match(await hash(), /z=/);
  await page.goBack();
  await settle(page);
  assert.equal((await boxes(page))[1].depth, 1);
  assert.equal(await page.locator('#trail').isVisible(), false);
  const link = '#z=zzz.1.%FF&t=9-3&view=pie&hide=x.y&__proto__=1&tab=no&focus=zzzz';
  const odd = await open(browser, path, {hash: link});
  assert.equal(await total(odd), sum(cpu.stacks()));
  assert.deepEqual(odd.faults, []);
  await odd.context().close();
});

test('dark mode follows the system and the button', async () => {
  const mode = (p) => p.evaluate(() => [document.documentElement.dataset.theme,
    getComputedStyle(document.body).backgroundColor]);
  assert.deepEqual(await mode(page), ['light', 'rgb(255, 255, 255)']);
  const dark = await open(browser, path, {dark: true});
  assert.deepEqual(await mode(dark), ['dark', 'rgb(22, 24, 28)']);
  await dark.getByRole('button', {name: 'Switch between light and dark'}).click();
  assert.equal((await mode(dark))[0], 'light');
  await dark.context().close();
  await page.emulateMedia({colorScheme: 'dark'});
  await settle(page);
  assert.equal((await mode(page))[0], 'dark');
});

test('text on every colour has a contrast of 4.5 to 1 or more', async () => {
  for (const dark of [false, true]) {
    const p = await open(browser, path, {dark});
    const low = await p.evaluate(() => {
      const {palette} = globalThis.ljprof;
      const c = document.createElement('canvas').getContext('2d');
      const light = (colour) => {
        c.fillStyle = colour;
        c.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map((v) => {
          const x = v / 255;
          return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ratio = (a, b) => {
        const [x, y] = [light(a), light(b)].sort((p1, p2) => p2 - p1);
        return (x + 0.05) / (y + 0.05);
      };
      const pairs = [...palette.fills.flat().flatMap((f) =>
        [[f, palette.of('ink')], [f, palette.of('ink-faint')]]),
      [palette.match, '#fff'],
      ...[-1, -0.5, -0.1, 0, 0.1, 0.5, 1].flatMap((x) =>
        [[palette.change(x), palette.of('ink')]]),
      ...['text', 'text-2', 'text-3', 'accent', 'more', 'less'].flatMap((t) =>
        ['ground', 'panel'].map((g) => [palette.of(g), palette.of(t)])),
      [palette.of('warn'), palette.of('warn-ink')],
      [palette.of('bad'), palette.of('bad-ink')],
      [palette.of('accent-soft'), palette.of('accent')]];
      return pairs.map(([a, b]) => [a, b, ratio(a, b)])
        .filter(([, , r]) => r < 4.5);
    });
    assert.deepEqual(low, [], dark ? 'dark' : 'light');
    await p.context().close();
  }
});

test('a stack can be copied, innermost first', async () => {
  const box = await widest(8);
  await page.mouse.click(box.x, box.y);
  await settle(page);
  await press('c');
  const frames = await pathTo(box.node);
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(text, frames.reverse().map((f) => cpu.label(f)).join('\n') + '\n');
  assert.match(await page.locator('#toast').textContent(), /Stack copied/);
});

test('details show lines, callers and callees of a function', async () => {
  const box = await widest(7);
  await page.mouse.click(box.x, box.y);
  await settle(page);
  const f = (await pathTo(box.node)).pop();
  const lines = new Map();
  const callers = new Map();
  const {node, weight} = cpu.rows;
  for (let i = 0; i < node.length; i++) {
    const seen = new Set();
    let outer = -1;
    for (let n = node[i]; n > 0; n = raw.parent[n])
      if (raw.frame[n] === f) {
        seen.add(raw.line[n]);
        outer = n;
      }
    for (const l of seen) lines.set(l, (lines.get(l) || 0) + weight[i]);
    const up = raw.frame[raw.parent[outer]];
    if (outer > 0 && raw.parent[outer] > 0)
      callers.set(up, (callers.get(up) || 0) + weight[i]);
  }
  const shown = await page.locator('.lines li').evaluateAll((items) =>
    items.map((i) => [i.querySelector('b').textContent,
      i.querySelector('span').textContent]));
  const all = sum(cpu.stacks());
  assert.deepEqual(shown, [...lines].sort((a, b) => a[0] - b[0])
    .map(([l, w]) => [String(l), percent(w, all)]));
  const called = await page.evaluate(() => globalThis.ljprof.memo.about.value
    .callers.map((c) => [c.f, c.total]));
  assert.deepEqual(new Map(called), callers);
  await page.getByRole('button', {name: 'Close details'}).click();
  await settle(page);
  assert.equal(await page.locator('#details').isVisible(), false);
});

test('the tooltip names what is under the pointer and stays on the screen',
  async () => {
    const box = await widest(7);
    await page.mouse.move(box.x, box.y);
    await page.mouse.move(box.x + 2, box.y + 2);
    const tip = page.locator('#tip');
    assert.match(await tip.textContent(), new RegExp('^' + box.name));
    assert.ok((await tip.textContent()).includes(percent(box.total,
      sum(cpu.stacks()))));
    const far = (await boxes(page)).filter((b) => b.visible)
      .reduce((a, b) => b.x > a.x ? b : a);
    await page.mouse.move(far.x, far.y);
    const at = await tip.boundingBox();
    assert.ok(at.x + at.width <= 1280 && at.y + at.height <= 800);
  });

test('every control has a name', async () => {
  await press('m');
  const box = await widest(7);
  await page.mouse.click(box.x, box.y);
  await settle(page);
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll('button, input, select, [tabindex], [role]')]
      .filter((e) => e.checkVisibility() && !(e.getAttribute('aria-label') ||
        e.textContent.trim() || e.labels && e.labels.length))
      .map((e) => e.outerHTML.slice(0, 120)));
  assert.deepEqual(nameless.filter((h) => !/role="(status|tooltip)"/.test(h)), []);
});

test('a small profile is a small page', () => {
  assert.ok(assemble(json).length < 300000);
});
