// Menu: the context menu of a box or a table row, the help with all keys, and
// the tooltip.

class Menu {
  constructor() {
    this.box = byId('menu');
    addEventListener('pointerdown', (e) => {
      if (!this.box.hidden && !this.box.contains(e.target)) this.close();
    });
    addEventListener('blur', () => this.close());
    this.box.addEventListener('keydown', (e) => this.key(e));
  }

  // items: [name, key, action]
  open(items, x, y) {
    this.before = document.activeElement;
    this.box.replaceChildren(...items.map(([name, key, action]) =>
      el('button', {role: 'menuitem', onclick: () => {
        this.close();
        action();
      }}, name, el('kbd', {'aria-hidden': 'true'}, key))));
    this.box.hidden = false;
    const {width, height} = this.box.getBoundingClientRect();
    this.box.style.left = Math.min(x, innerWidth - width - 8) + 'px';
    this.box.style.top = Math.min(y, innerHeight - height - 8) + 'px';
    this.box.firstChild.focus();
  }

  close() {
    if (this.box.hidden) return;
    this.box.hidden = true;
    if (this.before) this.before.focus({preventScroll: true});
  }

  key(e) {
    const items = [...this.box.children];
    const at = items.indexOf(document.activeElement);
    if (e.key === 'Escape' || e.key === 'Tab') this.close();
    else if (e.key === 'ArrowDown') items[(at + 1) % items.length].focus();
    else if (e.key === 'ArrowUp')
      items[(at + items.length - 1) % items.length].focus();
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
}

// The tooltip keeps its text while the pointer stays over the same thing, and
// only moves: nothing flickers.
class Tip {
  constructor() {
    this.box = byId('tip');
    this.key = null;
  }

  // key: what it is about; fill() makes its contents.
  show(key, event, fill) {
    if (key === null) {
      this.box.classList.remove('on');
      this.key = null;
      return;
    }
    if (key !== this.key) {
      this.key = key;
      this.box.replaceChildren(...fill());
      this.size = this.box.getBoundingClientRect();
    }
    const {width, height} = this.size;
    let x = event.clientX + 14;
    let y = event.clientY + 18;
    if (x + width > innerWidth - 8) x = Math.max(8, event.clientX - width - 12);
    if (y + height > innerHeight - 8) y = event.clientY - height - 12;
    this.box.style.transform = `translate(${Math.round(x)}px,${Math.round(y)}px)`;
    this.box.classList.add('on');
  }
}

const KEYS = [
  ['Moving', [
    ['← → ↑ ↓', 'select a neighbouring box'],
    ['Enter', 'zoom to the selected box'],
    ['Backspace', 'zoom out by one box'],
    ['Esc', 'undo: selection, zoom, search, then time'],
    ['1 … 9', 'choose a tab'],
  ]],
  ['Functions', [
    ['/', 'search by regular expression'],
    ['F', 'focus: only stacks through it, from it on'],
    ['H', 'hide: its own time goes to its callers'],
    ['C', 'copy the stack'],
    ['R', 'merge recursion'],
  ]],
  ['Views', [
    ['G', 'flame graph'],
    ['I', 'icicle'],
    ['T', 'table'],
    ['B', 'bottom-up: from the leaves'],
    ['M', 'heat map'],
    ['D', 'light or dark'],
    ['0', 'everything as at first'],
    ['?', 'this help'],
  ]],
  ['Mouse', [
    ['Click', 'details of a box'],
    ['Double click', 'zoom; on empty ground: zoom out'],
    ['Right click', 'all that can be done'],
    ['Drag in the timeline', 'select a time; drag its edges to change it'],
  ]],
];

function fillHelp(dialog) {
  dialog.replaceChildren(
    el('div', {class: 'head'}, el('h2', {}, 'Keys and hints'),
      el('button', {class: 'icon', 'aria-label': 'Close',
        onclick: () => dialog.close()}, '✕')),
    el('div', {class: 'columns'}, ...KEYS.map(([title, keys]) =>
      el('section', {}, el('h3', {}, title), el('dl', {},
        ...keys.flatMap(([key, what]) => [
          el('dt', {}, ...key.split(' ').map((k, i, all) =>
            title === 'Mouse' ? (i ? ' ' : '') + k
              : k === '…' ? ' … ' : el('kbd', {}, k))),
          el('dd', {}, what)]))))),
    el('p', {class: 'sub'}, 'The address of this page holds what you see: copy ' +
      'it to share a view. Colours in the legend can be clicked to take that ' +
      'kind of frame out of the stacks.'));
  dialog.addEventListener('click', (e) => {
    if (e.target === dialog) dialog.close();
  });
}
