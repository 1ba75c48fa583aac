// Start: reads the data and runs the page.

const app = new App(new Profile(JSON.parse(byId('data').textContent)));
byId('data').remove();
globalThis.ljprof = app; // For the console, and for tests.
requestAnimationFrame(() => setTimeout(() => {
  app.ready = performance.now(); // The first picture stands on the screen.
}));
