// Measures how long the page takes to load and to respond, from the click until
// the frame is drawn: bench.mjs PAGE.html [TIMES]
import {resolve} from 'node:path';
import {open, start} from './browser.mjs';

const path = resolve(process.argv[2]);
const times = Number(process.argv[3] || 5);
const browser = await start();
const took = new Map();
const note = (what, ms) => took.set(what, [...(took.get(what) || []), ms]);
let facts;

for (let i = 0; i < times; i++) {
  const page = await open(browser, path, {size: {width: 1440, height: 900}});
  note('load', await page.evaluate(() => globalThis.ljprof.ready));
  facts = await page.evaluate(() => {
    const {profile, tree} = globalThis.ljprof;
    return {samples: globalThis.ljprof.view.rows.n, nodes: profile.trie.n,
      stacks: new Set(globalThis.ljprof.view.rows.node).size, boxes: tree.n};
  });
  // Changes the view and waits until the browser has painted it.
  const change = async (what, script, arg) => note(what, await page.evaluate(
    async ([code, a]) => {
      const {ljprof} = globalThis;
      const began = performance.now();
      new Function('app', 'a', code)(ljprof, a);
      await new Promise((done) => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = done;
        channel.port2.postMessage(0);
      }));
      return performance.now() - began;
    }, [script, arg]));
  for (let k = 0; k < 12; k++) {
    await change('zoom in', `
      const boxes = app.graph.levels.flatMap((l, d) => l.above ? [] : l.nodes
        .filter((n, i) => n > 0 && l.w[i] > 3 && l.w[i] < app.graph.width));
      app.zoom(boxes[Math.floor(boxes.length * a)]);`, (k * 5 % 12) / 12);
    if (k % 3 === 2) await change('zoom out', 'app.zoom(0)');
  }
  await change('zoom out', 'app.zoom(0)');
  for (let k = 0; k < 5; k++)
    await change('select a time', `const n = app.profile.ticks;
      app.set({time: [Math.floor(n * a / 8), Math.floor(n * (a + 2) / 8)]})`, k);
  await change('all of the time', 'app.set({time: null})');
  await change('search', `app.set({q: 'e.*1'})`);
  await change('search nothing', `app.set({q: ''})`);
  await change('bottom-up', 'app.set({invert: true})');
  await change('zoom in, bottom-up', 'app.zoom(app.graph.levels[1].nodes[3])');
  await change('zoom out', 'app.zoom(0)');
  await change('select a time, bottom-up', `const n = app.profile.ticks;
    app.set({time: [Math.floor(n / 4), Math.floor(n / 2)]})`);
  await change('all of the time, bottom-up', 'app.set({time: null})');
  await change('top-down', 'app.set({invert: false})');
  await change('table', `app.set({mode: 'table'})`);
  await change('flame graph', `app.set({mode: 'flame'})`);
  await change('details', 'app.pickFrame(20)');
  await change('merge recursion', 'app.set({merge: true})');
  await change('all boxes', 'app.set({merge: false})');
  await change('focus', 'app.focus(20)');
  await change('no focus', 'app.set({focus: -1})');
  await change('hide', 'app.hide(20)');
  await change('heat map', 'app.set({hide: [], heat: true})');
  const tabs = await page.evaluate(() => globalThis.ljprof.profile.views.length);
  if (tabs > 1) await change('last tab', 'app.openTab(app.profile.views.at(-1))');
  if (page.faults.length) throw new Error(page.faults.join('; '));
  await page.context().close();
}
await browser.close();

console.log(`${facts.samples} rows of samples, ${facts.stacks} distinct stacks, ` +
  `${facts.nodes} nodes, ${facts.boxes} boxes; ms, ${times} loads`);
console.log('median     most');
for (const [what, list] of took) {
  list.sort((a, b) => a - b);
  console.log(`${list[list.length >> 1].toFixed(1).padStart(6)}  ` +
    `${list[list.length - 1].toFixed(1).padStart(7)}  ${what}`);
}
