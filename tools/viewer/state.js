// State: what the user has chosen. It is kept in the URL's hash, so that a link
// shows the same view again. Unknown keys and bad values are ignored.

const DEFAULTS = {
  tab: '', mode: 'flame', invert: false, merge: false, native: false, metric: 'weight',
  thread: '', label: '', group: '', q: '', time: null, zoom: [], focus: -1, hide: [],
  kinds: [], heat: false, sel: -1, sort: 'self', theme: '',
};

const listOf = (text) => text.split('.').map((x) => parseInt(x, 36))
  .filter((x) => x >= 0);
const listTo = (list) => list.map((x) => x.toString(36)).join('.');
const FIELDS = { // Key in the hash: [field, to text, from text].
  tab: ['tab', String, String],
  view: ['mode', String,
    (t) => ['flame', 'icicle', 'table'].includes(t) ? t : 'flame'],
  inv: ['invert', (x) => x ? '1' : '', (t) => t === '1'],
  rec: ['merge', (x) => x ? '1' : '', (t) => t === '1'],
  native: ['native', (x) => x ? '1' : '', (t) => t === '1'],
  by: ['metric', String,
    (t) => ['weight', 'count', 'other'].includes(t) ? t : 'weight'],
  thread: ['thread', String, String],
  label: ['label', String, String],
  group: ['group', String,
    (t) => ['thread', 'vm', 'state'].includes(t) || t.startsWith('label:') ? t : ''],
  q: ['q', String, String],
  t: ['time', (x) => x ? x.join('-') : '', (t) => {
    const [a, b] = t.split('-').map(Number);
    return a >= 0 && b > a ? [Math.floor(a), Math.ceil(b)] : null;
  }],
  z: ['zoom', listTo, listOf],
  focus: ['focus', (x) => x >= 0 ? x.toString(36) : '',
    (t) => listOf(t)[0] ?? -1],
  hide: ['hide', listTo, listOf],
  kinds: ['kinds', (x) => x.join('.'),
    (t) => t.split('.').filter((k) => k in KIND)],
  heat: ['heat', (x) => x ? '1' : '', (t) => t === '1'],
  fn: ['sel', (x) => x >= 0 ? x.toString(36) : '', (t) => listOf(t)[0] ?? -1],
  sort: ['sort', String, String],
  theme: ['theme', String,
    (t) => ['light', 'dark'].includes(t) ? t : ''],
};

function stateToHash(state) {
  const parts = [];
  for (const [key, [field, write]] of Object.entries(FIELDS)) {
    const text = write(state[field]);
    if (text !== '' && text !== write(DEFAULTS[field]))
      parts.push(key + '=' + encodeURIComponent(text));
  }
  return parts.length ? '#' + parts.join('&') : '';
}

function stateFromHash(hash) {
  const state = {...DEFAULTS, zoom: [], hide: [], kinds: []};
  for (const part of hash.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    const field = FIELDS[part.slice(0, at)];
    if (at < 0 || !field || !Object.hasOwn(FIELDS, part.slice(0, at))) continue;
    try {
      state[field[0]] = field[2](decodeURIComponent(part.slice(at + 1)));
    } catch (e) {
      // The link is damaged. Its other fields still count.
    }
  }
  return state;
}
