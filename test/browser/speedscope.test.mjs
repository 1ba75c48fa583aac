// speedscope (from npm) opens our exports and shows profiles with the totals of
// the streams.
import assert from 'node:assert';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {start} from './browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const ljprof = process.env.LJPROF || join(root, 'build/bin/ljprof');
const app = join(here, 'node_modules/speedscope/dist/release/index.html');
const dir = mkdtempSync(join(tmpdir(), 'ljprof-speedscope-'));
let browser;

before(async () => { browser = await start(); });
after(async () => {
  await browser.close();
  rmSync(dir, {recursive: true});
});

function dump(stream) {
  return execFileSync(ljprof, ['dump', '--json', stream],
    {encoding: 'utf8', maxBuffer: 1 << 28}).split('\n').filter(Boolean)
    .map((line) => JSON.parse(line));
}

// The text of the page after it has loaded a file.
async function load(stream, value) {
  const file = join(dir, 'profile.json');
  execFileSync(ljprof, ['export', '--to', 'speedscope', '--value', value,
    '--force', '-o', file, stream]);
  const json = readFileSync(file);
  const script = join(dir, 'profile.js');
  writeFileSync(script, 'speedscope.loadFileFromBase64("profile.json", "' +
    json.toString('base64') + '")');
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (e) => faults.push(e.message));
  page.on('console', (m) => {
    if (m.type() === 'error') faults.push(m.text());
  });
  await page.goto('file://' + app + '#localProfilePath=' + script);
  await page.waitForFunction((names) =>
    names.some((name) => document.body.innerText.includes(name)),
  JSON.parse(json).profiles.map((p) => p.name), {timeout: 20000});
  // The table of functions: its first columns are text.
  await page.getByText('Sandwich').click();
  await page.waitForTimeout(300);
  const text = await page.evaluate(() => document.body.innerText);
  await page.close();
  assert.deepStrictEqual(faults, []);
  return {text, json: JSON.parse(json)};
}

test('samples are taken, with their functions', async () => {
  const stream = join(root, 'test/data/every-record.ljp');
  const {text, json} = await load(stream, 'samples');
  const samples = dump(stream).filter((e) => e.type === 'sample').length;
  const total = json.profiles.reduce((sum, p) => sum + p.endValue, 0);
  assert.strictEqual(total, samples);
  assert.match(text, /lib\.fn17/);
  assert.match(text, /main chunk app\/file1\.lua/);
  // Each row: total (share), self (share), name. What functions have for
  // themselves is the total.
  const selves = [...text.matchAll(/^\s*([0-9,]+) \([^)]*\)\s+([0-9,]+) \(/gm)]
    .map((m) => Number(m[2].replaceAll(',', '')));
  assert.strictEqual(selves.reduce((sum, n) => sum + n, 0), samples);
});

test('memory has its unit', async () => {
  const {text} = await load(join(root, 'test/data/every-record.ljp'),
    'alloc_space');
  assert.match(text, /[0-9.]+ ?(B|KB|MB)/);
});

test('a file that is no profile is not taken', async () => {
  const script = join(dir, 'bad.js');
  writeFileSync(script, 'speedscope.loadFileFromBase64("bad.json", "' +
    Buffer.from('{"profiles":[]').toString('base64') + '")');
  const page = await browser.newPage();
  await page.goto('file://' + app + '#localProfilePath=' + script);
  await page.waitForTimeout(1500);
  const text = await page.evaluate(() => document.body.innerText);
  assert.doesNotMatch(text, /Sandwich/);
  await page.close();
});
