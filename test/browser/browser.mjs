// The browser for the tests: Debian's headless Chromium without network services.
// A page that requests anything or logs an error fails its test.
import {chromium} from 'playwright-core';

export async function start() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update',
      '--disable-sync'],
  });
}

// Opens a file. page.faults collects forbidden requests, errors and dialogs.
export async function open(browser, path, {hash = '', dark = false, size} = {}) {
  const context = await browser.newContext({
    viewport: size || {width: 1280, height: 800},
    colorScheme: dark ? 'dark' : 'light',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const page = await context.newPage();
  page.faults = [];
  page.on('pageerror', (e) => page.faults.push('error: ' + e.message));
  page.on('console', (m) => {
    if (m.type() === 'error' || m.type() === 'warning')
      page.faults.push('console: ' + m.text());
  });
  page.on('dialog', (d) => {
    page.faults.push('dialog: ' + d.message());
    d.dismiss();
  });
  page.on('request', (r) => {
    if (!r.url().startsWith('file://' + path) && !r.url().startsWith('data:'))
      page.faults.push('request: ' + r.url());
  });
  await page.goto('file://' + path + hash);
  await settle(page);
  return page;
}

// Waits until the page is drawn and the hash is written.
export async function settle(page) {
  await page.evaluate(() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() =>
      setTimeout(done, 150)))));
  // A timer writes the hash; on a busy machine it may be late.
  await page.waitForFunction(() => !globalThis.ljprof?.hashTimer);
}

// The boxes of the graph, root first.
export async function boxes(page) {
  return page.evaluate(() => {
    const {graph, tree, profile} = globalThis.ljprof;
    const at = graph.box.getBoundingClientRect();
    const out = [];
    graph.levels.forEach((level, depth) => level.nodes.forEach((node, i) => {
      if (node < 0) return;
      const y = at.top + graph.top(depth) - graph.box.scrollTop + 10;
      out.push({node, depth, name: profile.frames.name[tree.frame[node]],
        total: tree.total[node], x: at.left + level.x[i] + level.w[i] / 2, y,
        w: level.w[i], visible: y > at.top && y < at.bottom});
    }));
    return out;
  });
}
