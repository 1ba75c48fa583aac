// Start: reads the data and starts the page.

const app = new App(new Profile(JSON.parse(byId('data').textContent)));
byId('data').remove();
globalThis.ljprof = app; // For the console and the tests.
requestAnimationFrame(() => setTimeout(() => {
  app.ready = performance.now(); // The page has been drawn.
}));
