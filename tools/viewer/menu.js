// Menu: the context menu of a box or table row, the help, and the tooltip.

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

// The tooltip. While the pointer stays over the same thing, the tooltip only
// moves, so that it does not flicker.
class Tip {
  constructor() {
    this.box = byId('tip');
    this.key = null;
  }

  // key: identifies the thing; fill() makes the contents.
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

// `true`: only on pages with times; `false`: only on pages without times.
const KEYS = [
  ['Moving', [
    ['← → ↑ ↓', 'select a neighbouring box'],
    ['Enter', 'zoom to the selected box'],
    ['Backspace', 'zoom out by one box'],
    ['Esc', 'undo: selection, zoom, search, then time', true],
    ['Esc', 'undo: selection, zoom, then search', false],
    ['1 … 9', 'choose a tab'],
  ]],
  ['Functions', [
    ['/', 'search by regular expression'],
    ['F', 'focus: show only stacks through the function'],
    ['H', 'hide the function: its own time goes to its callers'],
    ['C', 'copy the stack'],
    ['R', 'merge recursion'],
    ['N', 'machine code: the VM, what C functions call, the kernel'],
  ]],
  ['Views', [
    ['G', 'flame graph'],
    ['I', 'icicle'],
    ['T', 'table'],
    ['B', 'bottom-up: start from the innermost functions'],
    ['M', 'heat map', true],
    ['D', 'switch between light and dark'],
    ['0', 'reset the view'],
    ['?', 'show this help'],
  ]],
  ['Mouse', [
    ['Click', 'show the details of a box'],
    ['Double click', 'zoom in; on the background: zoom out'],
    ['Right click', 'open the menu of a box'],
    ['Drag in the timeline', 'select a time range; drag its edges to change it',
      true],
  ]],
];

function fillHelp(dialog, untimed) {
  dialog.replaceChildren(
    el('div', {class: 'head'}, el('h2', {}, 'Keys and hints'),
      el('button', {class: 'icon', 'aria-label': 'Close',
        onclick: () => dialog.close()}, '✕')),
    el('div', {class: 'columns'}, ...KEYS.map(([title, keys]) =>
      el('section', {}, el('h3', {}, title), el('dl', {},
        ...keys.flatMap(([key, what, timed]) => timed === untimed ? [] : [
          el('dt', {}, ...key.split(' ').map((k, i, all) =>
            title === 'Mouse' ? (i ? ' ' : '') + k
              : k === '…' ? ' … ' : el('kbd', {}, k))),
          el('dd', {}, what)]))))),
    el('p', {class: 'sub'}, 'The address of this page contains the current ' +
      'view: copy it to share the view. Click a kind of frame in the legend to ' +
      'hide it.'));
  dialog.addEventListener('click', (e) => {
    if (e.target === dialog) dialog.close();
  });
}
