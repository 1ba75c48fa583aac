// Makes the screenshots of doc/guide/flame-graph.md from the page of ./run demo:
//   shots.mjs PAGE.html DIR
// Look at them before you commit them.
import {join, resolve} from 'node:path';
import {open, settle, start} from './browser.mjs';

const path = resolve(process.argv[2]);
const to = process.argv[3] || '.';
const browser = await start();

async function shot(name, options, script) {
  const page = await open(browser, path, options);
  await page.evaluate(script);
  await settle(page);
  await page.mouse.move(0, 0);
  await page.screenshot({path: join(to, name)});
  if (page.faults.length) throw new Error(page.faults.join('; '));
  await page.context().close();
}

await shot('flame-light.png', {}, `{
  const app = globalThis.ljprof;
  app.pickFrame(app.profile.frames.name.indexOf('index'));
}`);
await shot('flame-dark.png', {dark: true, hash: '#q=match'}, `{
  const app = globalThis.ljprof;
  const n = app.profile.ticks;
  app.set({heat: true, time: [Math.floor(n * 0.2), Math.floor(n * 0.7)]});
}`);
await shot('flame-table.png', {hash: '#view=table',
  size: {width: 1280, height: 620}}, '0');
await browser.close();
