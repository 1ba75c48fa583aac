// The first screen of the page names the place of the fault of each program in
// test/advise/faults, without a click.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
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

// Records the program as test/e2e/advise.sh does. Returns the page's path.
function recorded(name, want) {
  const file = join(dir, name + '.ljp');
  const words = (text) => text ? text.split(' ') : [];
  ljprof('record', '--timer', 'posix', '--interval', '0.5', '-o', file,
    ...words(want.record), '--', join(build, 'bin/luajit'), ...words(want.run),
    join(faults, name + '.lua'));
  ljprof('flame', file, '-o', file + '.html');
  return file + '.html';
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
    const page = await open(browser, recorded(name, want));
    const seen = await page.evaluate(() => {
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
    const memory = ['growing-memory', 'coroutines'].includes(want.kind);
    assert.ok(seen.some(([of, text]) => {
      const [, fn, file, line] = text.match(/^(.*) (\S+):(\d+)$/);
      return fn === want.function && file === source && Math.abs(line - at) <= 2 &&
        (!memory || of === 'Live' || of === 'Kept growing');
    }), JSON.stringify(seen));
    // The report has the same lines, with the same values.
    const told = JSON.parse(execFileSync(join(build, 'bin/ljprof'), ['report',
      '--json', '--top', '1', join(dir, name + '.ljp')], {encoding: 'utf8'}));
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
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}
