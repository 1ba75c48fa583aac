// Colours: one hue for each kind of frame, with four shades so that neighbours
// can be told apart. The function's name chooses the shade. Text has a contrast
// of at least 4.5 to 1 on every shade in both modes (test/browser checks it).

const HUES = { // Hue, saturation, lightness: light mode, dark mode.
  root: [[220, 12, 86], [220, 8, 30]],
  lua: [[36, 84, 71], [30, 54, 26.5]],
  jit: [[104, 42, 67], [112, 28, 28]],
  inlined: [[164, 40, 66], [166, 36, 26]],
  builtin: [[52, 76, 68], [48, 52, 23.5]],
  c: [[212, 72, 75], [212, 46, 35]],
  native: [[218, 26, 80], [219, 16, 33]],
  vm: [[264, 54, 81], [262, 27, 39]],
  gc: [[354, 66, 79], [354, 36, 36]],
  kernel: [[318, 42, 80], [318, 23, 36]],
  profiler: [[78, 20, 75], [78, 16, 27]],
  cut: [[0, 0, 84], [0, 0, 27]],
  table: [[36, 84, 71], [30, 54, 26.5]],
  string: [[104, 42, 67], [112, 28, 28]],
  function: [[212, 72, 75], [212, 46, 35]],
  coroutine: [[354, 66, 79], [354, 36, 36]],
  data: [[318, 42, 80], [318, 23, 36]],
  group: [[190, 28, 76], [190, 22, 28]],
};

function nameHash(text) {
  let h = 0;
  for (let i = 0; i < text.length; i++)
    h = Math.imul(h, 31) + text.charCodeAt(i) | 0;
  return (h ^ h >>> 16) >>> 0;
}

function hsl(h, s, l) {
  return `hsl(${h} ${s}% ${l}%)`;
}

class Palette {
  constructor(dark) {
    this.dark = dark;
    const style = getComputedStyle(document.documentElement);
    this.of = (name) => style.getPropertyValue('--' + name).trim();
    this.fills = KINDS.map(([key]) => {
      const [h, s, l] = HUES[key][dark ? 1 : 0];
      return [0, 1, 2, 3].map((i) =>
        hsl(h + (i - 1.5) * 4, s, l + [0, 2.4, -1.6, 4][i] * (dark ? 0.8 : 1)));
    });
    this.match = dark ? hsl(322, 62, 46) : hsl(322, 72, 42);
    this.tiny = dark ? hsl(220, 6, 26) : hsl(220, 10, 88);
  }

  // The colour of a change: -1 (gone) to 1 (new); 0: none, or within the error.
  change(x) {
    if (!x) return this.dark ? hsl(220, 6, 29) : hsl(220, 10, 88);
    const k = Math.min(1, Math.abs(x)) ** 0.6;
    const hue = x > 0 ? 6 : 214;
    return this.dark ? hsl(hue, 16 + 38 * k, 29 + 8 * k)
      : hsl(hue, 30 + 50 * k, 88 - 16 * k);
  }
}
