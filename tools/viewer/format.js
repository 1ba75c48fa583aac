// Format: numbers and times for people, and small DOM helpers. Text from the
// profile enters the document only as text nodes.

function el(tag, props, ...kids) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  for (const kid of kids) if (kid != null) node.append(kid);
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

// Three significant digits, without exponent.
function digits(x) {
  const a = Math.abs(x);
  return a >= 100 ? Math.round(x).toString()
    : a >= 10 ? x.toFixed(1) : a >= 1 ? x.toFixed(2)
    : a === 0 ? '0' : x.toPrecision(2);
}

function scaled(x, units, step) {
  let i = 0;
  let a = Math.abs(x);
  while (i + 1 < units.length && a >= step * 0.9995) {
    a /= step;
    x /= step;
    i++;
  }
  return (i === 0 ? Math.round(x * 100) / 100 : digits(x)) + ' ' + units[i];
}

function asTime(ns) {
  const a = Math.abs(ns);
  if (a >= 3600e9) return digits(ns / 3600e9) + ' h';
  if (a >= 600e9) return digits(ns / 60e9) + ' min';
  return scaled(ns, ['ns', 'µs', 'ms', 's'], 1000);
}

function asBytes(bytes) {
  return scaled(bytes, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
}

function asCount(n) {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ' ');
}

function asPercent(part, whole) {
  if (!(whole > 0)) return '0 %';
  const p = 100 * part / whole;
  return (p === 0 || p === 100 ? p.toString()
    : p >= 99.95 ? '>99.9' : p < 0.01 ? '<0.01'
    : p < 1 ? p.toFixed(2) : p.toFixed(1)) + ' %';
}

// A time of the session, as precise as the span of the axis requires.
function asMoment(ns, span) {
  const s = ns / 1e9;
  const places = span >= 20e9 ? 0 : span >= 2e9 ? 1 : span >= 0.2e9 ? 2 : 3;
  if (span < 120e9) return s.toFixed(places) + ' s';
  const whole = Math.round(s);
  const m = Math.floor(whole / 60) % 60;
  const h = Math.floor(whole / 3600);
  const two = (x) => String(x).padStart(2, '0');
  return (h ? h + ':' + two(m) : m) + ':' + two(whole % 60);
}

// Measures text on a canvas. The width of each character is measured once.
class Measure {
  constructor(context, font) {
    this.context = context;
    this.font = font;
    this.known = new Map();
  }

  char(c) {
    let w = this.known.get(c);
    if (w === undefined) {
      this.context.font = this.font;
      w = this.context.measureText(c).width;
      this.known.set(c, w);
    }
    return w;
  }

  text(s) {
    let w = 0;
    for (const c of s) w += this.char(c);
    return w;
  }

  // Cuts s to the room, with an ellipsis if it is cut. Empty if fewer than two
  // characters would be left.
  fit(s, room) {
    const dots = this.char('…');
    let w = 0;
    let at = 0; // Where to cut if the rest does not fit.
    let seen = 0;
    let kept = 0;
    for (const c of s) {
      w += this.char(c);
      seen += c.length;
      if (w + dots <= room) {
        at = seen;
        kept++;
      }
      if (w > room) return kept < 2 ? '' : s.slice(0, at) + '…';
    }
    return s;
  }
}

async function copyText(text, what) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch (e) {
    // Without permission or a secure context (file://) use the old method.
    const area = el('textarea', {class: 'offscreen', readonly: true});
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand('copy');
    area.remove();
  }
  toast(done ? what + ' copied' : 'The browser does not allow this page to copy');
}

let toastTimer = 0;
function toast(text) {
  const box = byId('toast');
  box.textContent = text;
  box.classList.add('on');
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.classList.remove('on'), 1800);
}
