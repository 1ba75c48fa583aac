// What the page of `ljprof flame` shows: boxes, table, tabs, details, colours.
// The expected values come from model.mjs.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {assemble} from './assemble.mjs';
import {boxes, open, settle} from './browser.mjs';
import {
  browser, cpu, hash, json, page, path, pathTo, percent, press, raw, total,
  widest,
} from './fixture.mjs';
import {byFunction, byPath, Model, sum} from './model.mjs';
import {EVIL} from './synthetic.mjs';

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
  assert.doesNotMatch(await page.locator('#details').innerText(), /null|undefined/);
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

test('help opens with ?, lists the keys and closes', async () => {
  await press('?');
  assert.ok(await page.getByRole('dialog').isVisible());
  assert.ok(await page.getByRole('dialog').locator('kbd').count() >= 20);
  await press('Escape');
  assert.equal(await page.getByRole('dialog').isVisible(), false);
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

test('the place with most leaks of those that kept growing is shown', async () => {
  const leaks = new Model(raw, 2);
  const {node, weight, slices} = leaks.rows;
  const places = new Map();
  node.forEach((n, i) => {
    const name = leaks.place(n);
    const p = places.get(name) || {name, bytes: 0, parts: new Set()};
    p.bytes += weight[i];
    for (const x of slices[i]) p.parts.add(x);
    places.set(name, p);
  });
  const most = [...places.values()].filter(({name}) => name)
    .sort((a, b) => b.bytes - a.bytes);
  const grow = most.filter((p) => p.parts.size >= 8);
  assert.ok(grow.length && most[0].parts.size < 8, 'the largest does not grow');
  assert.ok(grow[0].bytes >= 0.05 * sum(leaks.stacks()));
  const shown = await page.evaluate(() => globalThis.ljprof.placesElsewhere()
    .map(([v, {f, line, value}]) => [v.id, f, line, value]));
  const [, f, line, value] = shown.find(([id]) => id === 'leaks');
  const {name, file, line: defined} = raw.frames[f];
  assert.equal(`${name} ${file}:${line} (${defined})`, grow[0].name);
  assert.equal(value, grow[0].bytes);
  assert.equal(await page.locator('#places div', {hasText: 'Kept growing'})
    .locator('span').textContent(), `${name} ${file.replace(/.*\//, '')}:${line}`);
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
