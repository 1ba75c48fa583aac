// The fixture of the tests of the page: a made-up profile, its page in a browser,
// opened anew for each test, and helpers. A test fails if the page does anything
// in page.faults.
import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, afterEach, before, beforeEach} from 'node:test';
import {assemble} from './assemble.mjs';
import {boxes, open, settle, start} from './browser.mjs';
import {Model} from './model.mjs';
import {make} from './synthetic.mjs';

const dir = mkdtempSync(join(tmpdir(), 'ljprof-page.'));
export const path = join(dir, 'page.html');
export const {json, raw} = make('small');
export const cpu = new Model(raw, 0);
export let browser;
export let page;

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

export const total = (p = page) =>
  p.evaluate(() => globalThis.ljprof.tree.total[0]);
export const hash = () => page.evaluate(() => location.hash);
export const press = async (...keys) => {
  for (const key of keys) await page.keyboard.press(key);
  await settle(page);
};
export const percent = (part, all) => {
  const p = 100 * part / all;
  return (p < 1 ? p.toFixed(2) : p.toFixed(1)) + ' %';
};

// The widest visible box at this depth.
export async function widest(depth) {
  const all = (await boxes(page)).filter((b) => b.depth === depth && b.visible);
  return all.reduce((a, b) => b.w > a.w ? b : a);
}

// Frames on the path from the root to a node of the shown tree.
export const pathTo = (node) => page.evaluate((n) => {
  const {tree} = globalThis.ljprof;
  const out = [];
  for (let i = n; i > 0; i = tree.parent[i]) out.push(tree.frame[i]);
  return out.reverse();
}, node);
