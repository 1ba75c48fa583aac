// Assembles a page from tools/viewer, as the build does, around made-up data. For
// the tests, and for work on the page without a build:
//   node assemble.mjs small|large PAGE.html
import {readFileSync, writeFileSync} from 'node:fs';
import {make} from './synthetic.mjs';

const dir = new URL('../../tools/viewer/', import.meta.url);
const part = (name) => readFileSync(new URL(name, dir), 'utf8');

export function assemble(json) {
  const order = part('order.txt').trim().split('\n');
  const js = '(() => {\n\'use strict\';\n' + order.map(part).join('\n') + '})();';
  const data = JSON.stringify(json).replaceAll('<', '\\u003c');
  return part('page.html').replace('@CSS@', () => part('page.css'))
    .replace('@DATA@', () => data).replace('@JS@', () => js);
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  writeFileSync(process.argv[3], assemble(make(process.argv[2]).json));
