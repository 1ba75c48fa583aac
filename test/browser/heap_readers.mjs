// The readers of .heapsnapshot files for the tests. Chrome DevTools comes as
// TypeScript: esbuild makes a module of what its heap worker consists of, without
// its tables of languages.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {MessageChannel} from 'node:worker_threads';
import {build} from 'esbuild';

const require = createRequire(import.meta.url);

// In newer versions of Node.js.
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) =>
    Object.assign(made, {resolve, reject}));
  return made;
};

const withoutLanguages = {
  name: 'without languages',
  setup(b) {
    b.onResolve({filter: /\/locales\.js$/}, () =>
      ({path: 'locales', namespace: 'none'}));
    b.onLoad({filter: /^locales$/, namespace: 'none'}, () => ({contents: `
      export const LOCALES = ['en-US'], BUNDLED_LOCALES = ['en-US'];
      export const DEFAULT_LOCALE = 'en-US';
      export const REMOTE_FETCH_PATTERN = '', LOCAL_FETCH_PATTERN = '';`}));
  },
};

// A function that loads a file. dir: for the module.
export async function devtools(dir) {
  const front = join(require.resolve('chrome-devtools-frontend/package.json'),
    '../front_end/entrypoints/heap_snapshot_worker');
  const outfile = join(dir, 'devtools.mjs');
  await build({
    entryPoints: [join(front, 'heap_snapshot_worker.ts')], bundle: true,
    format: 'esm', platform: 'node', outfile, logLevel: 'error',
    plugins: [withoutLanguages],
  });
  const {HeapSnapshot, HeapSnapshotLoader} = await import(outfile);
  return async (path) => {
    const problems = [];
    const loader = new HeapSnapshotLoader.HeapSnapshotLoader(
      {sendEvent: (name, text) => /Broken/.test(name) && problems.push(text)});
    const {port1, port2} = new MessageChannel();
    new HeapSnapshot.SecondaryInitManager(port2);
    // In pieces, as DevTools has it from a file.
    const text = readFileSync(path, 'utf8');
    for (let at = 0; at < text.length; at += 1000003)
      loader.write(text.slice(at, at + 1000003));
    loader.close();
    const snapshot = await loader.buildSnapshot(port1);
    port1.close();
    if (problems.length) throw new Error(problems.join('; '));
    return snapshot;
  };
}

export async function memlab() {
  const {analysis, config, utils} = (await import('@memlab/core')).default;
  config.muteConsole = true;
  return async (path) => {
    const snapshot = await utils.getSnapshotFromFile(path,
      {buildNodeIdIndex: true, verbose: false});
    analysis.preparePathFinder(snapshot);
    return snapshot;
  };
}
