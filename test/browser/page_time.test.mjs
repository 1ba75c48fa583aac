// Selecting a time in the timeline and the heat map of the page.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {settle} from './browser.mjs';
import {cpu, hash, json, page, press, raw, total} from './fixture.mjs';
import {Model, sum} from './model.mjs';

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
  // Dragging an edge moves only that edge, and a click clears the selection.
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

test('keys that come faster than frames are not lost', async () => {
  const [said, waited] = await page.evaluate(() => {
    const line = document.getElementById('timeline');
    const {ljprof} = globalThis;
    const down = (key, shiftKey) => line.dispatchEvent(
      new KeyboardEvent('keydown', {key, shiftKey, bubbles: true}));
    down('ArrowRight');
    down('ArrowRight');
    down('ArrowRight', true);
    return [document.getElementById('said').textContent, ljprof.waiting];
  });
  assert.ok(waited, 'no frame was drawn in between');
  await settle(page);
  const [, a, b] = (await hash()).match(/t=(\d+)-(\d+)/).map(Number);
  const step = Math.round(json.ticks / 50);
  assert.deepEqual([a, b], [step, 7 * step]);
  assert.equal(said, await page.evaluate(() =>
    globalThis.ljprof.timeline.describe()));
  // The same for rows of the table.
  await press('Escape', 't');
  const order = await page.evaluate(() => {
    const {table} = globalThis.ljprof;
    for (let i = 0; i < 3; i++)
      table.box.dispatchEvent(new KeyboardEvent('keydown',
        {key: 'ArrowDown', bubbles: true}));
    return table.look.rows.map((r) => r.f);
  });
  await settle(page);
  assert.equal(await page.evaluate(() => globalThis.ljprof.state.sel), order[2]);
});

test('leaks are of the whole session, whatever time is selected', async () => {
  await page.locator('#timeline').focus();
  await press('ArrowRight');
  assert.ok(await total() < sum(cpu.stacks()));
  await press('3');
  assert.equal(await total(), sum(new Model(raw, 2).stacks()));
  assert.match(await page.locator('#trail').textContent(), /does not apply to this tab/);
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

test('each tick has its cell in the heat map', async () => {
  const cells = await page.evaluate(() => {
    const {timeline} = globalThis.ljprof;
    const n = 2500;
    const one = new Float64Array(n).fill(1);
    const heat = Object.assign(Object.create(timeline, {span: {value: n}}), {
      heatKey: '', profile: {tickNs: 1e6},
      look: {...timeline.look, metric: 'weight', contexts: null,
        view: {id: 'heat', unit: 'ns', rows: {n, ctx: new Uint16Array(n),
          tick: Uint32Array.from(one, (_, i) => i), count: one, weight: one}}},
    });
    heat.drawHeat();
    timeline.drawHeat();
    return {shape: heat.heatShape(), cells: [...heat.cells]};
  });
  assert.equal(cells.shape.rows, 50);
  assert.deepEqual(cells.cells, new Array(2500).fill(1));
});

test('one busy thread uses one processor, not 141 %', async () => {
  const [most, all, weight] = await page.evaluate(() => {
    const {timeline} = globalThis.ljprof;
    const tick = [];
    const weights = [];
    let at = 0;
    for (let i = 0; at < 0.45e9; i++) { // The distances of real samples differ.
      const w = 0.7e6 + i * 7919 % 600011;
      at += w;
      tick.push(Math.floor((at + i % 9 * 4e4) / 2e4)); // No time is exact.
      weights.push(w);
    }
    const n = tick.length;
    const line = Object.assign(Object.create(timeline, {span: {value: 22600}}), {
      binsKey: '', profile: {tickNs: 2e4},
      look: {metric: 'weight', contexts: null, contextsKey: '',
        view: {id: 'cpu', unit: 'ns', sampleNs: 1e6, rows: {n, tick, weight: weights,
          ctx: new Uint16Array(n), count: new Float64Array(n).fill(1)}}},
    });
    const bins = line.bins(550);
    return [Math.max(...bins) / line.binTicks / 2e4,
      bins.reduce((a, b) => a + b, 0), weights.reduce((a, b) => a + b, 0)];
  });
  assert.ok(most < 1.15, `${most * 100} %`);
  assert.ok(Math.abs(all - weight) < 1, `${all} of ${weight}`);
});
