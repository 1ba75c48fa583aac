// The first screen of the page names the place of the fault of each program in
// test/advise/faults, without a click.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {
  existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync,
} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {open, start} from './browser.mjs';

const build = process.env.BUILD_DIR || new URL('../../build', import.meta.url)
  .pathname;
const faults = new URL('../advise/faults/', import.meta.url).pathname;
const dir = mkdtempSync(join(tmpdir(), 'ljprof-first.'));
const ljprof = (...args) => execFileSync(join(build, 'bin/ljprof'), args,
  {stdio: ['ignore', 'ignore', 'pipe'],
    env: {...process.env, LUA_CPATH: join(build, 'advise/?.so')}});
let browser;

before(async () => {
  browser = await start();
});
after(async () => {
  await browser.close();
  rmSync(dir, {recursive: true});
});

// Records the program as test/e2e/advise.sh does. Returns the path of the file,
// beside which is the page.
function recorded(name, script, want) {
  const file = join(dir, name + '.ljp');
  const words = (text) => text ? text.split(' ') : [];
  ljprof('record', '--timer', 'posix', '--interval', '0.5', '-o', file,
    ...words(want.record), '--', join(build, 'bin/luajit'), ...words(want.run),
    script);
  ljprof('flame', file, '-o', file + '.html');
  return file;
}

// The texts of the first screen that nothing hides: [[group, text]].
const visible = (page) => page.evaluate(() => {
  let of = '';
  const parts = [...document.querySelectorAll('#places em, #places button')];
  return parts.flatMap((x) => {
    const {left, top, right, bottom} = x.getBoundingClientRect();
    if (x.tagName === 'EM') of = x.textContent;
    const span = x.querySelector('span');
    return span && left >= 0 && top >= 0 && right <= innerWidth &&
      bottom <= innerHeight && span.scrollWidth <= span.clientWidth
      ? [[of, span.textContent]] : [];
  });
});

// The report of the file has the same lines as its page, with the same values.
// Returns what the page has, by tab: [[place, value]].
async function agree(page, file) {
  const told = JSON.parse(execFileSync(join(build, 'bin/ljprof'), ['report',
    '--json', '--top', '1', file], {encoding: 'utf8'}));
  const shown = await page.evaluate(() => {
    const app = globalThis.ljprof;
    const {name: names, file} = app.profile.frames;
    const place = (p) => [`${names[p.f]} ${file[p.f]}:${p.line}`, p.value];
    const of = {[app.view.id]: app.placesHere(app.source(), app.contexts())
      .map(place)};
    for (const [v, p] of app.placesElsewhere()) of[v.id] = [place(p)];
    return of;
  });
  assert.equal(!!shown.leaks, told.places.some((p) => p.measure === 'leaks'));
  for (const id of ['cpu', 'wall', 'alloc', 'leaks']) {
    const here = shown[id] || []; // Of other tabs the page has the first line.
    const places = told.places.filter((p) => p.measure === id)
      .map((p) => [p.name, p.line_ns ?? p.line_bytes]);
    assert.deepEqual(here, places.slice(0, here.length), id);
    assert.equal(here.length > 0, places.length > 0, id);
  }
  return shown;
}

for (const source of readdirSync(faults)) {
  const name = source.replace('.lua', '');
  // Where the kernel does not tell where threads wait, no wait is known.
  if (name === 'lock' && !existsSync('/proc/self/syscall')) continue;
  test(`the first screen names the fault of ${source}`, async () => {
    const lines = readFileSync(join(faults, source), 'utf8').split('\n');
    const want = Object.fromEntries(lines.map((l) => l.match(/^-- (\w+): (.*)/))
      .filter(Boolean).map((m) => [m[1], m[2]]));
    const at = 1 + lines.findIndex((l) => l.endsWith('-- FAULT'));
    const file = recorded(name, join(faults, source), want);
    const page = await open(browser, file + '.html');
    const seen = await visible(page);
    const memory = ['growing-memory', 'coroutines'].includes(want.kind);
    assert.ok(seen.some(([of, text]) => {
      const [, fn, file, line] = text.match(/^(.*) (\S+):(\d+)$/);
      return fn === want.function && file === source && Math.abs(line - at) <= 2 &&
        (!memory || of === 'Live' || of === 'Kept growing');
    }), JSON.stringify(seen));
    await agree(page, file);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}

// A program that allocates throughout its session. Only its first objects have
// seen collections, unless it collects at its end.
for (const old of [false, true])
  test(`what is live throughout kept growing if it is old: ${old}`, async () => {
    const name = old ? 'old' : 'young';
    const script = join(dir, name + '.lua');
    writeFileSync(script, `
      local kept = {}
      local function keep(n)
        for i = 1, n do kept[#kept + 1] = {i} end
      end
      local function work(n) for i = 1, n do math.sin(i) end end
      local function collect() for i = 1, 3 do collectgarbage() end end
      keep(5000)
      collect()
      collectgarbage('stop')
      local enough = os.clock() + 0.5
      repeat keep(20) work(20000) until os.clock() > enough
      if ${old} then collect() end`);
    const file = recorded(name, script, {record: '--memory --every'});
    const page = await open(browser, file + '.html');
    const shown = await agree(page, file);
    const line = `keep ${name}.lua:4`;
    const groups = (await visible(page))
      .filter(([of, text]) => text === line && of !== 'Most time')
      .map(([of]) => of);
    // What grows is not said again of what is live.
    assert.deepEqual(groups, ['Allocations', old ? 'Kept growing' : 'Live']);
    assert.equal(!!shown.leaks, old);
    // In both cases some of it is old, and some was allocated in most parts of the
    // session.
    const [leaks, parts] = await page.evaluate(() => {
      const {views, ticks} = globalThis.ljprof.profile;
      const [leak, live] = ['leaks', 'live'].map((id) =>
        views.find((v) => v.id === id).rows);
      return [leak.weight.reduce((a, b) => a + b, 0),
        new Set(live.tick.map((t) => Math.floor(64 * t / ticks))).size];
    });
    assert.ok(leaks > 5000 * 16, `${leaks} bytes leak`);
    assert.ok(parts > 32, `${parts} parts`);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
