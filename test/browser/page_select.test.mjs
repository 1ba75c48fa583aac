// What a user does with the graph: search, zoom, focus, hide, group, copy, and
// links that show the same view again.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {boxes, open, settle} from './browser.mjs';
import {
  browser, cpu, hash, page, path, pathTo, percent, press, raw, total, widest,
} from './fixture.mjs';
import {byFunction, byPath, sum} from './model.mjs';

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
  // A function by name and place. Capital letters make the search case-sensitive.
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
  assert.equal(await page.locator('#matched').textContent(), 'invalid regex');
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
  const ground = await page.locator('#graphbox').boundingBox();
  await page.mouse.dblclick(400, ground.y + 12);
  await settle(page);
  assert.ok(Math.abs(await share() - box.w / width) < 1e-6);
  assert.equal(await page.locator('#trail').isVisible(), false);
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
  await page.locator('#legend button', {hasText: 'Host'}).click();
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
    /^__libc_start_main, Host, 100 %/);
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

test('the legend says how much is below each kind, and in it', async () => {
  const stacks = cpu.stacks();
  const lua = (x) => raw.frames[x].kind === 1;
  const below = sum(stacks.filter(([s]) => s.some(lua)));
  const own = sum(stacks.filter(([s]) => lua(s[s.length - 1])));
  const share = (x) => x ? percent(x, sum(stacks)) : '0 %';
  assert.ok(below > own);
  const text = await page.locator('#legend button').first().textContent();
  assert.equal(text, `Lua${share(below)}, self ${share(own)}`);
});

test('0 leaves the table, too', async () => {
  await press('t');
  assert.equal(await page.locator('#graphbox').isVisible(), false);
  await press('0');
  assert.equal(await page.locator('#graphbox').isVisible(), true);
});

// In the table, too: there nothing else that is drawn hides it.
for (const view of ['g', 't'])
  for (const id of ['timeline', 'heat'])
    test(`a press in the ${id} takes the tooltip away, key ${view}`, async () => {
      await press('m', view);
      const line = await page.locator('#' + id).boundingBox();
      const at = (k) => [line.x + 92 + k * (line.width - 100), line.y + 20];
      const shown = () => page.locator('#tip.on').count();
      await page.mouse.move(...at(0.02));
      await settle(page);
      assert.equal(await shown(), 1);
      const tools = await page.locator('#tools').boundingBox();
      await page.mouse.move(tools.x + 300, tools.y + 2);
      assert.equal(await shown(), 0);
      await page.mouse.move(...at(0.02));
      assert.equal(await shown(), 1);
      await page.mouse.down();
      assert.equal(await shown(), 0);
      await page.mouse.move(...at(0.05), {steps: 3});
      assert.equal(await shown(), 0);
      await page.mouse.up();
      await page.mouse.move(...at(0.07), {steps: 3});
      await settle(page);
      assert.equal(await shown(), 1);
    });
