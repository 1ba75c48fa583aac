// The tabs of a page on a heap snapshot: what they show is what `ljprof heap` says
// of the same file.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {boxes, open, settle, start} from './browser.mjs';

const root = new URL('../..', import.meta.url).pathname;
const build = process.env.BUILD_DIR || join(root, 'build');
const dir = mkdtempSync(join(tmpdir(), 'ljprof-heap-page.'));
const file = join(dir, 'heap.ljp');
const html = join(dir, 'heap.html');
const ljprof = (...args) => execFileSync(join(build, 'bin/ljprof'), args,
  {encoding: 'utf8', maxBuffer: 1 << 28});
let browser;
let heap;

before(async () => {
  execFileSync(join(build, 'bin/luajit'), ['-e', `
    dofile("${root}/test/leaks/cache.lua")
    accounts = {}
    local mt = {__name = "Account"}
    for i = 1, 2003 do
      accounts[i] = setmetatable({id = i, name = "n" .. i}, mt)
    end
    assert(misc.memprof.snapshot{path = "${file}", gc = true, wait = true})`]);
  heap = JSON.parse(ljprof('heap', '--json', file));
  ljprof('flame', file, '-o', html);
  browser = await start();
});
after(async () => {
  await browser.close();
  rmSync(dir, {recursive: true});
});

const closed = async (page) => {
  await page.context().close();
  assert.deepEqual(page.faults, []);
};

for (const [tab, name] of [['', 'Retained'], ['#tab=references', 'References']])
  test(`the tab ${name} adds up, and its boxes can be read`, async () => {
    const page = await open(browser, html, {hash: tab});
    const all = await boxes(page);
    assert.equal(all[0].total, heap.bytes);
    const wide = all.filter((b) => /upvalue cache of function|\[\*\]  table/
      .test(b.name) && b.total > heap.bytes / 4);
    assert.ok(wide.length >= 2, JSON.stringify(all.slice(0, 9)));
    assert.ok(all.some((b) => b.name === '[*]  table Account' &&
      b.visible && b.w > 3));
    // Threads and machine code are nothing that a heap has.
    const tools = await page.locator('#tools').innerText();
    assert.doesNotMatch(tools, /Machine code|Thread|Group by/);
    assert.equal(await page.locator('#time').isVisible(), false);
    await page.selectOption('select[data-id=metric]', 'count');
    await settle(page);
    assert.equal(await page.evaluate(() => globalThis.ljprof.tree.total[0]),
      heap.objects);
    await closed(page);
  });

test('details say who holds a box, and what it holds', async () => {
  const page = await open(browser, html, {hash: '#tab=references'});
  const box = (await boxes(page)).find((b) => b.name === '[*]  table Account');
  await page.mouse.click(box.x, box.y);
  await settle(page);
  const text = await page.locator('#details').innerText();
  assert.match(text, /\[\*\] table Account/);
  assert.match(text, /Held by/);
  assert.match(text, /Holds/);
  assert.match(text, /\.accounts\s+table \{2003 items\}/);
  assert.match(text, /_G\s+table/);
  await closed(page);
});
