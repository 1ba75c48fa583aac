// Pages made by `ljprof flame` and `ljprof diff` from streams agree with
// `ljprof report` and `ljprof diff --json` of the same files.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {open, settle, start} from './browser.mjs';

const build = process.env.BUILD_DIR || new URL('../../build', import.meta.url)
  .pathname;
const data = new URL('../data/', import.meta.url).pathname;
const dir = mkdtempSync(join(tmpdir(), 'ljprof-real.'));
const ljprof = (...args) => execFileSync(join(build, 'bin/ljprof'),
  [...args, '--no-symbols'], {encoding: 'utf8', maxBuffer: 1 << 28});
let browser;

before(async () => {
  browser = await start();
});
after(async () => {
  await browser.close();
  rmSync(dir, {recursive: true});
});

const opened = async (name, hash) => {
  const page = await open(browser, join(dir, name), {hash});
  return page;
};
const closed = async (page) => {
  await page.context().close();
  assert.deepEqual(page.faults, []);
};

for (const name of ['every-record.ljp', 'killed.ljp', 'rotated.ljp',
  'small-table.ljp'])
  test(`the page of ${name} has the totals of its report`, async () => {
    ljprof('flame', data + name, '-o', join(dir, name + '.html'));
    const report = JSON.parse(ljprof('report', '--cpu', '--json', data + name));
    const page = await opened(name + '.html');
    const [total, samples, sums, notices] = await page.evaluate(() => {
      const {tree, view, sums: s, profile} = globalThis.ljprof;
      return [tree.total[0], view.rows.count.reduce((a, b) => a + b, 0),
        s.self.reduce((a, b, f) => profile.functions[f] === f ? a + b : a, 0),
        profile.json.notices.map((n) => n.text)];
    });
    assert.ok(samples > 0);
    assert.equal(total, report.totals.cpu_ns);
    assert.equal(samples, report.totals.samples);
    assert.equal(sums, total);
    if (report.totals.lost) assert.ok(notices.some((t) => /lost/.test(t)));
    // Each tab opens and shows something.
    for (const tab of await page.getByRole('tab').all()) {
      await tab.click();
      await settle(page);
      assert.ok(await page.evaluate(() => globalThis.ljprof.tree.total[0]) > 0,
        await tab.textContent());
    }
    await closed(page);
  });

test('both views of the page have the functions of their reports', async () => {
  const file = data + 'every-record.ljp';
  ljprof('flame', file, '-o', join(dir, 'both.html'));
  const page = await opened('both.html', '#view=table');
  const shown = () => page.evaluate(() => {
    const {profile, sums, tree} = globalThis.ljprof;
    const own = {};
    for (let f = 1; f < profile.frames.n; f++)
      if (profile.functions[f] === f && sums.self[f] > 0)
        own[profile.label(f)] = (own[profile.label(f)] || 0) + sums.self[f];
    return [own, tree.total[0]];
  });
  const told = (...options) => {
    const report = JSON.parse(ljprof('report', '--json', '--top', '0', file,
      ...options));
    const own = {};
    for (const row of report.rows)
      if (row.self_ns) own[row.name] = (own[row.name] || 0) + row.self_ns;
    return [own, report.totals.cpu_ns];
  };
  assert.deepEqual(await shown(), told());
  await page.keyboard.press('n');
  await settle(page);
  assert.deepEqual(await shown(), told('--native'));
  assert.notDeepEqual(told(), told('--native'));
  await page.waitForFunction(() => location.hash.includes('native=1'));
  const again = await opened('both.html', '#view=table&native=1');
  assert.equal(await again.locator('[data-id=native]').getAttribute('aria-pressed'),
    'true');
  assert.equal(await again.locator('tbody').innerText(),
    await page.locator('tbody').innerText());
  await closed(again);
  await page.locator('[data-id=native]').click();
  await settle(page);
  assert.deepEqual(await shown(), told());
  // A page of one view has no switch.
  ljprof('flame', '--native', file, '-o', join(dir, 'one.html'));
  const one = await opened('one.html', '#view=table');
  assert.equal(await one.locator('[data-id=native]').count(), 0);
  await closed(one);
  await closed(page);
});

test('the tab of GC cost has the figures of its report', async () => {
  const file = join(dir, 'collects.ljp');
  const script = join(dir, 'collects.lua');
  writeFileSync(script, `
    local keep = {}
    local function hold(n) for i = 1, n do keep[i] = {i, i} end end
    local function churn(n) local t for i = 1, n do t = {i, i} end return t end
    hold(20000)
    local enough = os.clock() + 0.3
    repeat churn(20000) until os.clock() > enough`);
  execFileSync(join(build, 'bin/ljprof'), ['record', '--memory', '--sample', '4096',
    '-o', file, '--', join(build, 'bin/luajit'), '-joff', script], {stdio: 'pipe'});
  ljprof('flame', file, '-o', join(dir, 'gc.html'));
  const page = await opened('gc.html', '#tab=gc-cost&view=table');
  for (const options of [[], ['--native']]) {
    const report = JSON.parse(ljprof('report', '--gc-cost', '--json', '--top', '0',
      file, ...options));
    const own = {};
    for (const row of report.rows)
      if (row.self_ns) own[row.name] = (own[row.name] || 0) + row.self_ns;
    const [shown, total] = await page.evaluate(() => {
      const {profile, sums, tree} = globalThis.ljprof;
      const out = {};
      for (let f = 1; f < profile.frames.n; f++)
        if (profile.functions[f] === f && sums.self[f] > 0)
          out[profile.label(f)] = (out[profile.label(f)] || 0) + sums.self[f];
      return [out, tree.total[0]];
    });
    assert.deepEqual(shown, own);
    const t = report.totals;
    assert.ok(t.gc_samples > 0);
    assert.equal(total, t.gc_mark_ns + t.gc_sweep_ns + t.gc_unknown_ns);
    await page.keyboard.press('n');
    await settle(page);
  }
  // It has no numbers of samples to choose, whatever another tab shows.
  assert.deepEqual(await page.locator('[data-id=metric] option').allTextContents(),
    ['Time']);
  await page.keyboard.press('1');
  await settle(page);
  await page.locator('[data-id=metric]').selectOption('count');
  await page.getByRole('tab', {name: 'GC cost'}).click();
  await settle(page);
  assert.match(await page.locator('tbody tr').first().innerText(), /ms/);
  assert.match(await page.locator('#subtitle').getAttribute('title'),
    /Garbage collector: marking .*, sweeping .*, in \d+ samples/);
  await closed(page);
});

test('a function has one row in the table, however it ran', async () => {
  const file = join(dir, 'once.ljp');
  // Most of the objects are allocated by machine code, some before there is any.
  execFileSync(join(build, 'bin/luajit'), ['-', file], {input: `
    misc.memprof.start{path = arg[1], every = true}
    local kept = {}
    local function make(i) return {i} end
    for i = 1, 3000 do kept[i % 7] = make(i) end
    misc.memprof.stop()`});
  ljprof('flame', file, '-o', join(dir, 'once.html'));
  for (const native of ['', '&native=1']) {
    const page = await opened('once.html', '#tab=alloc&view=table' + native);
    const [labels, frames] = await page.evaluate(() => {
      const {ljprof: app} = globalThis;
      const {table, profile} = app;
      const label = (f) => profile.label(f) + ' ' + profile.frames.module[f];
      const {rows, node, trie} = app.source();
      const seen = new Set(); // The frames of all rows.
      for (let i = 0; i < rows.n; i++)
        for (let at = node[i]; at > 0; at = trie.parent[at])
          seen.add(trie.frame[at]);
      return [table.look.rows.map((r) => label(r.f)), [...seen].map(label)];
    });
    assert.ok(frames.filter((l) => /^make /.test(l)).length > 1, frames.join());
    assert.deepEqual(labels.sort(), [...new Set(frames)].sort());
    await closed(page);
  }
});

test('a trace calls nothing', async () => {
  ljprof('flame', '--native', data + 'every-record.ljp', '-o',
    join(dir, 'calls.html'));
  const page = await opened('calls.html');
  const [traces, texts] = await page.evaluate(() => {
    const app = globalThis.ljprof;
    const {name, n} = app.profile.frames;
    const is = (f) => /^trace \d/.test(name[f]);
    const out = [];
    let many = 0;
    for (let f = 1; f < n; f++) {
      many += is(f);
      if (is(f)) continue;
      app.pickFrame(f);
      app.refresh();
      out.push(...[...document.querySelectorAll('#details .calls span')]
        .map((x) => x.textContent));
    }
    return [many, out];
  });
  assert.ok(traces > 0 && texts.length > 3);
  assert.deepEqual(texts.filter((t) => /^trace \d/.test(t)), []);
  await closed(page);
});

test('the page of sampled memory has the estimates of its report', async () => {
  const file = join(dir, 'sampled.ljp');
  execFileSync(join(build, 'bin/luajit'), ['-', file], {input: `
    misc.memprof.start{path = arg[1], sample = 4096}
    local kept = {}
    for i = 1, 3000 do
      local s = ('x'):rep(i)
      kept[i % 7] = s:gsub('x', 'y')
      local t = {}
      for k = 1, 100 do t[k] = k end
    end
    misc.memprof.stop()`});
  ljprof('flame', file, '-o', file + '.html');
  const report = JSON.parse(ljprof('report', '--alloc', '--json', '--top', '0',
    file));
  const {alloc_events: objects, alloc_bytes: bytes} = report.totals;
  assert.ok(objects > 3000);
  assert.equal(objects, report.totals.free_events + report.totals.live_objects);
  const page = await opened('sampled.ljp.html', '#tab=alloc&by=count');
  const [sum, weight, rows] = await page.evaluate(() => {
    const {profile} = globalThis.ljprof;
    const view = profile.views.find((v) => v.id === 'alloc');
    const own = {};
    for (let i = 0; i < view.rows.n; i++) {
      const name = profile.frames.name[profile.trie.frame[view.rows.node[i]]];
      own[name] = (own[name] || 0) + view.rows.count[i];
    }
    const add = (a, b) => a + b;
    return [view.rows.count.reduce(add, 0), view.rows.weight.reduce(add, 0),
      own];
  });
  assert.equal(Math.round(sum), objects);
  assert.equal(weight, bytes);
  assert.ok(!await page.evaluate(() =>
    globalThis.ljprof.profile.contexts.some((c) => c.thread === 'unknown')));
  const gsub = report.rows.find((row) => row.name === 'string.gsub');
  assert.equal(Math.round(rows['string.gsub']), gsub.self_objects);
  await page.locator('[data-id=table]').click();
  await settle(page);
  assert.match(await page.locator('body').innerText(), /~\d/);
  await closed(page);
});

test('grouping by a label divides the page as a report by it', async () => {
  const file = join(dir, 'labelled.ljp');
  execFileSync(join(build, 'bin/labelled_stream'), [file]);
  ljprof('flame', file, '-o', file + '.html');
  const report = JSON.parse(ljprof('report', '--by', 'label:route', '--json', file));
  const page = await opened('labelled.ljp.html');
  const choices = await page.locator('#tools [data-id=group] option').allTextContents();
  assert.deepEqual(choices.slice(-2), ['route', 'tenant']);
  await page.locator('#tools [data-id=group]').selectOption('label:route');
  await settle(page);
  const values = await page.evaluate(() => {
    const {tree, profile} = globalThis.ljprof;
    return Object.fromEntries(Array.from(tree.parent, (up, i) => [up, i])
      .filter(([up]) => up === 0)
      .map(([, i]) => [profile.frames.name[tree.frame[i]], tree.total[i]]));
  });
  assert.deepEqual(values, Object.fromEntries(report.rows.map((row) =>
    ['route=' + row.name, row.self_ns])));
  // And one value narrows it, all tabs and links alike.
  const total = () => page.evaluate(() => globalThis.ljprof.tree.total[0]);
  await page.locator('#tools [data-id=label]').selectOption('tenant=x');
  await settle(page);
  const part = (what, ...of) => JSON.parse(ljprof('report', '--label', ...of,
    '--json', file)).totals[what];
  assert.equal(await total(), part('cpu_ns', 'tenant=x'));
  await page.locator('#tabs [data-tab=alloc]').click();
  await settle(page);
  assert.equal(await total(), part('alloc_bytes', 'tenant=x'));
  await page.locator('#tools [data-id=label]').selectOption('tenant=(none)');
  await settle(page);
  assert.equal(await total(), part('alloc_bytes', 'tenant='));
  const {hash} = new URL(page.url());
  await closed(page);
  const again = await opened('labelled.ljp.html', hash);
  assert.equal(await again.evaluate(() => globalThis.ljprof.tree.total[0]),
    part('alloc_bytes', 'tenant='));
  await closed(again);
});

// Files of Tarantool's profilers have no times: no tab may show any.
for (const [name, unit] of [['memprof-enrich.bin', 'bytes'],
  ['sysprof-C-joff-coro.bin', 'samples']])
  test(`the page of ${name} has the totals of its report and no times`,
    async () => {
      const file = join(dir, name);
      execFileSync(join(build, 'bin/luajit'),
        [new URL('../e2e/tarantool.lua', import.meta.url).pathname, 'unpack',
          `${data}tarantool/${name}.zst`, file]);
      ljprof('flame', file, '-o', file + '.html');
      const report = JSON.parse(ljprof('report', '--json', '--top', '0', file));
      const names = new Set(report.rows.map((row) => row.name));
      const page = await opened(name + '.html');
      const total = unit === 'bytes' ? report.totals.alloc_bytes
        : report.totals.samples;
      assert.equal(await page.evaluate(() => globalThis.ljprof.tree.total[0]),
        total);
      assert.match(await page.locator('header').innerText(),
        /recorded by Tarantool's (memprof|sysprof)/);
      const hasNoTimes = async (where) => {
        await settle(page);
        const text = await page.evaluate(() => document.body.innerText);
        assert.doesNotMatch(text, /\d\s?([nµm]?s|min)\b|[Tt]imeline|[Hh]eat map/,
          where);
        assert.equal(await page.locator('#time').isVisible(), false, where);
      };
      for (const tab of await page.getByRole('tab').all()) {
        await tab.click();
        const where = await tab.textContent();
        await hasNoTimes(where);
        const shown = await page.evaluate(() => {
          const {tree, profile} = globalThis.ljprof;
          return [tree.total[0], [...tree.frame].slice(1)
            .map((f) => profile.frames.name[f])];
        });
        assert.ok(shown[0] > 0, `${where} is empty`);
        if (where !== 'JIT states')
          assert.ok(shown[1].some((n) => names.has(n)), where);
        await page.keyboard.press('m'); // There is no heat map.
        for (const key of ['ArrowUp', 't', 'g']) {
          await page.keyboard.press(key);
          await hasNoTimes(`${where}, key ${key}`);
        }
      }
      await page.locator('#help').click();
      await hasNoTimes('the help');
      await closed(page);
    });

test('the page of a comparison says how much changed and how surely',
  async () => {
    const files = [data + 'every-record.ljp', data + 'killed.ljp'];
    ljprof('diff', ...files, '-o', join(dir, 'diff.html'));
    const report = JSON.parse(ljprof('diff', ...files, '--json'));
    const page = await opened('diff.html', '#view=table');
    const rows = await page.evaluate(() => {
      const {profile, change} = globalThis.ljprof;
      return [...change.selfByFrame].map((v, f) => [profile.frames.name[f],
        profile.frames.line[f], v]).slice(1);
    });
    const verdict = (v) => v === 0 ? 'same' : v > 0 ? 'more' : 'less';
    let compared = 0;
    for (const row of report.rows) {
      const shown = rows.filter(([name, line]) => name === row.name &&
        line === row.line);
      if (shown.length !== 1) continue; // Several kinds have this name.
      compared++;
      const wanted = {new: 'more', gone: 'less'}[row.self_verdict] ||
        row.self_verdict;
      assert.equal(verdict(shown[0][2]), wanted, row.name);
    }
    assert.ok(compared > 5, `${compared} compared`);
    assert.match(await page.locator('thead').textContent(), /Δ self.*Δ total.*±/);
    // No value is cut off, however long it is.
    await page.evaluate(() => {
      globalThis.ljprof.amount = () => '~1234.5 MiB/s';
      globalThis.ljprof.set({});
    });
    await settle(page);
    const cut = await page.evaluate(() => [...document.querySelectorAll('td.num')]
      .filter((td) => td.scrollWidth > td.clientWidth).map((td) => td.textContent));
    assert.deepEqual(cut, []);
    await page.keyboard.press('g');
    await settle(page);
    assert.match(await page.locator('#legend').textContent(),
      /within the sampling error/);
    assert.equal(await page.locator('#time').isVisible(), false);
    await page.locator('#tools [data-id=metric]').selectOption('other');
    await settle(page);
    const before = await page.evaluate(() => globalThis.ljprof.tree.total[0]);
    assert.ok(Math.abs(before - report.totals.before_value) <=
      report.stacks.length);
    await closed(page);
  });

test('both views of a comparison have the figures of their reports', async () => {
  const files = [data + 'every-record.ljp', data + 'killed.ljp', '--total'];
  ljprof('diff', ...files, '-o', join(dir, 'diffs.html'));
  const page = await opened('diffs.html', '#view=table');
  const told = (...options) => {
    const own = {};
    const report = JSON.parse(ljprof('diff', ...files, '--json', ...options));
    for (const row of report.rows) {
      const key = [row.name, row.file, row.line, row.module].join('|');
      const at = own[key] ||= [0, 0, 0, 0];
      at[0] += row.self_before;
      at[1] += row.self_after;
      at[2] += row.total_before;
      at[3] += row.total_after;
    }
    return own;
  };
  const shown = () => page.evaluate(() => {
    const {profile, change} = globalThis.ljprof;
    const {name, file, line, module} = profile.frames;
    const own = {};
    for (let f = 1; f < profile.frames.n; f++)
      if (profile.functions[f] === f && change.seen(f))
        own[[name[f], file[f], line[f], module[f]].join('|')] = change.sums(f);
    return own;
  });
  assert.deepEqual(await shown(), told());
  await page.keyboard.press('n');
  await settle(page);
  assert.deepEqual(await shown(), told('--native'));
  assert.notDeepEqual(told(), told('--native'));
  assert.match(await page.evaluate(() => location.hash), /native=1/);
  const again = await opened('diffs.html', '#view=table&native=1');
  assert.equal(await again.locator('[data-id=native]').getAttribute('aria-pressed'),
    'true');
  assert.equal(await again.locator('tbody').innerText(),
    await page.locator('tbody').innerText());
  await closed(again);
  await closed(page);
  ljprof('diff', '--native', ...files, '-o', join(dir, 'native.html'));
  const one = await opened('native.html', '#view=table');
  assert.equal(await one.locator('[data-id=native]').count(), 0);
  await closed(one);
});
