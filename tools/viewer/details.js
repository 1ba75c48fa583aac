// Details: one function and, if a box was clicked, that box: shares, lines,
// callers, callees, and the stack of the box.

// What is said of functions, and of objects of a heap.
const CALL_WORDS = {
  here: 'This stack', all: 'Function', total: 'including everything it calls',
  self: 'in this place itself', everywhere: 'in all stacks', before: 'Called by',
  behind: 'Calls', stack: 'Stack, innermost first', copy: 'Copy stack',
};
const HEAP_WORDS = {
  here: 'This box', all: 'All like it', total: 'with everything on it',
  self: 'the objects themselves', everywhere: 'in all boxes', before: 'Held by',
  behind: 'Holds', stack: 'Held by, from here to the root', copy: 'Copy the way',
};

class Details {
  // hooks: pick(frame), close(), zoom(), focus(), hide(), copy(), show(value)
  constructor(hooks) {
    this.box = byId('details');
    this.hooks = hooks;
  }

  // look: profile, frame, stack [frames], node {self, total} or null, all, sums
  // {self, total} of the function, lines, callers, callees, amount(x), sources
  show(look) {
    if (!look) {
      this.box.hidden = true;
      this.box.replaceChildren();
      return;
    }
    this.box.hidden = false;
    const {profile, frame: f} = look;
    const {frames} = profile;
    const kind = KINDS[frames.kind[f]];
    const place = profile.place(f);
    const top = this.box.scrollTop;
    this.box.replaceChildren(...[
      el('div', {class: 'head'},
        el('i', {class: 'dot', style: `background:${
          look.palette.fills[frames.kind[f]][0]}`}),
        el('h2', {}, frames.name[f]),
        el('button', {class: 'icon', 'aria-label': 'Close details',
          title: 'Close (Esc)', onclick: () => this.hooks.close()}, '✕')),
      el('p', {class: 'sub', title: kind[2]}, kind[1],
        frames.module[f] ? ' in ' + frames.module[f] : ''),
      place ? el('p', {class: 'place'},
        el('a', {href: '#lines', title: 'Show its lines', onclick: (e) => {
          e.preventDefault();
          const lines = this.box.querySelector('.lines');
          if (lines) lines.scrollIntoView({block: 'nearest'});
        }}, place),
        el('button', {class: 'text', onclick: () => copyText(place, 'Place')},
          'copy')) : null,
      this.sums(look),
      el('div', {class: 'buttons'},
        look.node ? this.button('Zoom', 'Enter', 'zoom') : null,
        this.button('Focus', 'F', 'focus'),
        this.button('Hide', 'H', 'hide'),
        look.stack.length ? this.button(look.words.copy, 'C', 'copy') : null),
      this.lines(look),
      this.neighbours(look, look.words.before, look.callers),
      this.neighbours(look, look.words.behind, look.callees),
      this.stack(look)].filter(Boolean));
    this.box.scrollTop = top;
  }

  button(name, key, hook) {
    return el('button', {title: `${name} (${key})`,
      onclick: () => this.hooks[hook]()}, name);
  }

  sums({node, sums, all, amount, diff, words}) {
    const line = (name, x, about) => el('tr', {title: about},
      el('th', {scope: 'row'}, name), el('td', {}, amount(x)),
      el('td', {}, asPercent(x, all)));
    const body = el('tbody');
    if (node) body.append(
      line(words.here + ', total', node.total, words.total),
      line(words.here + ', self', node.self, words.self));
    body.append(line(words.all + ', total', sums.total, words.everywhere),
      line(words.all + ', self', sums.self, words.everywhere));
    if (diff) for (const [name, text] of diff)
      body.append(el('tr', {}, el('th', {scope: 'row'}, name),
        el('td', {colspan: 2}, text)));
    return el('table', {class: 'sums'}, body);
  }

  lines({lines, all, amount, sources, profile, frame}) {
    if (!lines.length) return null;
    const most = Math.max(...lines.map((l) => l.total));
    const {file} = profile.frames;
    const text = sources && Object.hasOwn(sources, file[frame]) &&
      sources[file[frame]];
    const shown = lines.slice().sort((a, b) => b.total - a.total).slice(0, 40)
      .sort((a, b) => a.line - b.line);
    return el('section', {class: 'lines'}, el('h3', {}, 'Lines'),
      el('ol', {}, ...shown.map((l) => el('li', {
        title: `line ${l.line}: total ${amount(l.total)} (${
          asPercent(l.total, all)}), self ${amount(l.self)}` +
          (text && text[l.line] ? '\n' + text[l.line] : '')},
      el('i', {class: 'heat', style: `width:${100 * l.total / most}%`}),
      el('b', {}, l.line ? String(l.line) : '?'),
      el('code', {}, text && text[l.line] !== undefined ? text[l.line].trim() : ''),
      el('span', {}, asPercent(l.total, all))))),
      lines.length > shown.length ? el('p', {class: 'sub'},
        `and ${asCount(lines.length - shown.length)} more lines`) : null);
  }

  neighbours({profile, amount, all, palette}, title, list) {
    if (!list.length) return null;
    const most = list[0].total;
    return el('section', {}, el('h3', {}, title),
      el('ol', {class: 'calls'}, ...list.slice(0, 8).map((n) => el('li', {},
        el('button', {title: profile.label(n.f) + ': ' + amount(n.total),
          onclick: () => this.hooks.pick(n.f)},
        el('i', {class: 'dot',
          style: `background:${palette.fills[profile.frames.kind[n.f]][0]}`}),
        el('span', {}, profile.frames.name[n.f]),
        el('em', {}, asPercent(n.total, all)),
        el('i', {class: 'heat', style: `width:${100 * n.total / most}%`}))))),
      list.length > 8 ? el('p', {class: 'sub'},
        `and ${asCount(list.length - 8)} more`) : null);
  }

  stack({profile, stack, words}) {
    if (!stack.length) return null;
    const shown = stack.slice().reverse();
    return el('section', {}, el('h3', {}, words.stack),
      el('ol', {class: 'stack'}, ...shown.slice(0, 200).map((f) =>
        el('li', {}, el('button', {title: 'Select ' + profile.label(f),
          onclick: () => this.hooks.pick(f)},
        el('span', {}, profile.frames.name[f]),
        el('small', {}, profile.isLua(f) ? ' ' + profile.place(f) : ''))))),
      shown.length > 200 ? el('p', {class: 'sub'},
        `and ${asCount(shown.length - 200)} more frames`) : null);
  }
}
