"""agreement.py LJPROF FILE: whether all views and exports of a file agree.

Each value (nanoseconds, samples, bytes, objects) of each function must be the
same in reports, exports and the page's data, in the Lua view and in the native
one. Estimated objects are parts of a block's weight, which each view rounds on
its own: only their sums are compared. Prints what differs; exit code 1."""
import base64, gzip, json, re, subprocess, sys
from collections import Counter

LJPROF, FILE = sys.argv[1:3]
VALUES = {'cpu': ('samples', 'cpu'), 'wall': ('wall_samples', 'wall'),
          'alloc': ('alloc_objects', 'alloc_space'),
          'live': ('inuse_objects', 'inuse_space'),
          'leaks': None, 'peak': None, 'churn': None}
VIEWS = (('lua', [], ['--lua']), ('native', ['--native'], []))
compared = wrong = 0


def ljprof(*args):
    p = subprocess.run([LJPROF, *args, '--no-symbols', FILE], capture_output=True)
    return p.stdout if p.returncode == 0 else None


def same(what, wanted, got):
    global compared, wrong
    compared += 1
    if isinstance(wanted, dict):
        keys = {k for k in {*wanted, *got} if wanted.get(k, 0) != got.get(k, 0)}
        wanted, got = ({k: d.get(k, 0) for k in keys} for d in (wanted, got))
    if wanted != got:
        wrong += 1
        print(f'{what}: wanted {wanted}, got {got}'[:600])


def plain(name):
    return re.sub(r'_\[[jik]\]$', '', name)


class Sums:
    """Self and total by function, from stacks."""

    def __init__(self):
        self.own, self.total = Counter(), Counter()

    def add(self, stack, value):  # Leaf last.
        stack = stack or ['(no stack)']
        self.own[stack[-1]] += value
        for name in set(stack):
            self.total[name] += value


def varint(b, at):
    x = shift = 0
    while True:
        x |= (b[at] & 127) << shift
        shift += 7
        at += 1
        if b[at - 1] < 128:
            return x, at


def varints(b):
    at, out = 0, []
    while at < len(b):
        x, at = varint(b, at)
        out.append(x)
    return out


def fields(b):
    """The fields of a protobuf message: [(number, value)]."""
    at, out = 0, []
    while at < len(b):
        tag, at = varint(b, at)
        x, at = varint(b, at)
        assert tag & 7 in (0, 2), tag
        if tag & 7 == 2:
            x, at = b[at:at + x], at + x
        out.append((tag >> 3, x))
    return out


def pprof(view):
    m = fields(gzip.decompress(ljprof('export', '--to', 'pprof', '-o', '-', *view)))
    of = lambda number: [v for f, v in m if f == number]
    strings = [s.decode() for s in of(6)]
    types = [strings[dict(fields(t))[1]] for t in of(1)]
    functions = [dict(fields(f)) for f in of(5)]
    functions = {f[1]: strings[f[2]] for f in functions}
    locations = {}
    for place in map(fields, of(4)):
        locations[dict(place)[1]] = [functions[dict(fields(line))[1]]
                                     for f, line in place if f == 4]
    sums = {t: Sums() for t in types}
    for sample in map(fields, of(2)):
        numbers = lambda f: [x for g, v in sample if g == f
                             for x in (varints(v) if isinstance(v, bytes) else [v])]
        stack = [name for i in numbers(1) for name in locations[i]][::-1]
        for t, x in zip(types, numbers(2)):
            sums[t].add(stack, x)
    return sums


def pprof_labels(view, value, key):
    """Sums of a value by the value of a label."""
    m = fields(gzip.decompress(ljprof('export', '--to', 'pprof', '-o', '-', *view)))
    of = lambda number: [v for f, v in m if f == number]
    strings = [s.decode() for s in of(6)]
    at = [strings[dict(fields(t))[1]] for t in of(1)].index(value)
    sums = Counter()
    for sample in map(fields, of(2)):
        numbers = [x for g, v in sample if g == 2
                   for x in (varints(v) if isinstance(v, bytes) else [v])]
        for label in (dict(fields(v)) for g, v in sample if g == 3):
            if strings[label[1]] == key:
                sums[strings[label[2]]] += numbers[at]
    return sums


def collapsed(view, value):
    sums = Sums()
    text = ljprof('export', '--to', 'collapsed', '--value', value, '-o', '-', *view)
    for line in text.decode().splitlines():
        stack, n = line.rsplit(' ', 1)
        sums.add([plain(name) for name in stack.split(';')], int(n))
    return sums


def speedscope(view, value):
    sums = Sums()
    d = json.loads(ljprof('export', '--to', 'speedscope', '--value', value, '-o',
                          '-', *view))
    names = [plain(f['name']) for f in d['shared']['frames']]
    for p in d['profiles']:
        for stack, x in zip(p['samples'], p['weights']):
            sums.add([names[i] for i in stack], x)
    return sums


def callgrind(view):
    own, names, function, skip, events = {}, {}, None, False, []
    text = ljprof('export', '--to', 'callgrind', '-o', '-', *view).decode()
    for line in text.splitlines():
        if line.startswith('events: '):
            events = line.split()[1:]
            own = {e: Counter() for e in events}
        m = re.match(r'(c?fn)=(\(\d+\))(?: (.*))?$', line)
        if m:
            names.setdefault(m[2], m[3])
            function = plain(names[m[2]]) if m[1] == 'fn' else function
        elif line.startswith('calls='):
            skip = True
        elif events and re.match(r'[\d+*-]', line):
            for e, x in zip(events, line.split()[1:]):
                own[e][function] += 0 if skip else int(x)
            skip = False
    return own


def perf_script(view):
    text = ljprof('export', '--to', 'perf-script', '-o', '-', *view).decode()
    heads = [line.split(':')[1].split()[0] for line in text.splitlines()
             if line[:1] not in ('', '#', '\t')]
    return len(heads), sum(map(int, heads))


class Page:
    """The data of the page."""

    def __init__(self):
        text = ljprof('flame', '-o', '-').decode()
        d = json.loads(re.search(r'id="data">([^<]*)</script>', text)[1])
        self.views = {v['id']: v for v in d['views']}
        f, n, strings = d['frames'], d['nodes'], d['strings']
        name, file, line, kind = (self.column(f[k], f['n'])
                                  for k in ('name', 'file', 'line', 'kind'))
        self.names = []
        for i in range(f['n']):
            place = f' {strings[file[i]]}' if 1 <= kind[i] <= 3 and file[i] else ''
            self.names.append(strings[name[i]] + place +
                              (f':{line[i]}' if place and line[i] else ''))
        self.frame = self.column(n['frame'], n['n'], True, True)
        self.up = self.column(n['up'], n['n'])
        self.lua = self.column(n['lua'], n['n'], True, True) if 'lua' in n else None

    @staticmethod
    def column(text, n, differences=False, signed=False):
        if text is None:
            return [1] * n
        out, last = varints(base64.b64decode(text)), 0
        assert len(out) == n
        if signed:
            out = [-(x + 1) // 2 if x % 2 else x // 2 for x in out]
        for i in range(n if differences else 0):
            last = out[i] = out[i] + last
        return out

    def stack(self, node):
        out = []
        while node:
            out.append(self.names[self.frame[node]])
            node -= self.up[node] or node
        return out[::-1]

    def sums(self, view, name):
        v, counts, weights = self.views[view], Sums(), Sums()
        rows = zip(self.column(v['node'], v['rows'], True, True),
                   self.column(v.get('count'), v['rows']),
                   self.column(v['weight'], v['rows']))
        for node, count, weight in rows:
            stack = self.stack(self.lua[node] if name == 'lua' and self.lua else node)
            counts.add(stack, count / v.get('count_unit', 1))
            weights.add(stack, weight)
        return counts, weights


def labels(measure, name, view, options, of, values):
    """By the value of a label: the report, the filter, and frames of exports."""
    d = json.loads(ljprof('report', '--json', '--' + measure, *view))
    unit = of[1]
    for key in (k['key'] for k in d.get('labels', [])):
        by = 'label:' + key
        rows = json.loads(ljprof('report', '--json', '--' + measure, *view, '--by',
                                 by))['rows']
        wanted = {r['name']: r['self_' + unit] for r in rows}
        what = f'{measure} {name} by {by}'
        same(what, sum(r['self_' + unit] for r in d['rows']), sum(wanted.values()))
        filtered = {}
        for value in wanted:
            label = f'{key}={"" if value == "(none)" else value}'
            part = ljprof('report', '--json', '--' + measure, *view, '--label', label)
            filtered[value] = sum(r['self_' + unit] for r in json.loads(part)['rows'])
        if measure != 'peak':  # A part has its own peak.
            same(f'{what}: --label', wanted, filtered)
        if not values:
            continue
        text = ljprof('export', '--to', 'collapsed', '--value', values[1], '--by', by,
                      '-o', '-', *options)
        frames = Counter()
        for line in text.decode().splitlines():
            stack, n = line.rsplit(' ', 1)
            frames[stack.split(';')[0][len(key) + 1:]] += int(n)
        same(f'{what}: frames', wanted, frames)
        if key not in ('thread', 'vm', 'state', 'type'):
            same(f'{what}: pprof', {k: v for k, v in wanted.items() if k != '(none)'},
                 pprof_labels(options, values[1], key))


def reports(measure, view, of, estimated):
    """Checks that the groupings agree; returns the one by function."""
    count, weight = of
    wanted = functions = None
    for by in ('function', 'line', 'module', 'file', 'kind', 'stack', 'thread',
               'vm', 'state', 'type', 'trace', 'tree', 'bottom-up'):
        if by == 'type' and weight == 'ns':
            continue
        options = ['--' + by, '--min', '0'] if by in ('tree', 'bottom-up') else [
            '--by', by]
        if by == 'trace' and view != ['--native']:
            continue
        d = json.loads(ljprof('report', '--json', '--' + measure, *view, *options))
        rows = d['rows']
        sums = [sum(r['self_' + k] for r in rows) for k in (weight, count)]
        wanted = wanted or sums
        functions = functions or d
        what = f'{measure} {view} by {by}'
        same(f'{what}: {weight}', wanted[0], sums[0])
        if not estimated:
            same(f'{what}: {count}', wanted[1], sums[1])
        parts = [x for x in rows if x.get('parent') == 0]
        if parts:
            same(f'{what}: outermost', wanted[0],
                 sum(x['total_' + weight] for x in parts))
    return functions, wanted


def text(measure, view, wanted, of, estimated):
    t = ljprof('report', '--top', '0', '--by', 'function', '--' + measure,
               *view).decode()
    head, table = t.split('\n\n', 1)
    rows = table.splitlines()[1:]
    n = sum(int(re.search(r'%\s+~?(\d+) ', r)[1]) for r in rows)
    told = int(re.search(r' in ~?(\d+) (?:sample|object)', head)[1])
    if not estimated:
        same(f'{measure} {view} text: {of[0]}', wanted[1], n)
        same(f'{measure} {view} text: {of[0]} above it', wanted[1], told)
    same(f'{measure} {view} text: each figure has its ~', estimated,
         bool(re.match(r'\s*~', rows[0])))


def exports(measure, name, options, own, totals, sampled):
    every = pprof(options)
    callgrinds = callgrind(options)
    for value, wanted in zip(VALUES[measure], own):
        many = (('collapsed', collapsed(options, value)),
                ('speedscope', speedscope(options, value)), ('pprof', every[value]))
        for export, sums in many:
            what = f'{measure} {name} {export} {value}'
            if sampled and value.endswith('objects'):
                same(what, totals[0], sum(sums.own.values()))
                continue
            same(what, wanted, sums.own)
            # Speedscope merges by name what pprof and reports tell apart.
            if value == VALUES[measure][1]:
                same(what + ' total', totals[1], sums.total)
        if value in callgrinds and not (sampled and value.endswith('objects')):
            same(f'{measure} {name} callgrind {value}', wanted, callgrinds[value])
    if measure == 'cpu':
        same(f'cpu {name} perf-script', (sum(own[0].values()), sum(own[1].values())),
             perf_script(options))


def main():
    whole = json.loads(ljprof('report', '--json'))
    page, totals = Page(), whole['totals']
    for measure, values in VALUES.items():
        of = ('samples', 'ns') if measure in ('cpu', 'wall') else ('objects', 'bytes')
        if ljprof('report', '--' + measure) is None:
            continue
        estimated = whole['sampled_memory'] and of[0] == 'objects'
        both = []
        for name, view, options in VIEWS:
            d, wanted = reports(measure, view, of, estimated)
            both.append(wanted[0])
            text(measure, view, wanted, of, estimated)
            labels(measure, name, view, options, of, values)
            own, total = (Counter(), Counter()), Counter()
            for r in d['rows']:
                own[0][r['name']] += r['self_' + of[0]]
                own[1][r['name']] += r['self_' + of[1]]
                total[r['name']] += r['total_' + of[1]]
            if measure in page.views:
                counts, weights = page.sums(measure, name)
                same(f'{measure} {name} page', own[1], weights.own)
                same(f'{measure} {name} page total', total, weights.total)
                same(f'{measure} {name} page {of[0]}', own[0],
                     {k: int(v + 0.5) for k, v in counts.own.items()})
            if values:
                n = {'alloc': 'alloc_events', 'live': 'live_objects'}.get(measure)
                exports(measure, name, options, own,
                        (totals[n] if n else wanted[1], total), estimated)
        same(f'{measure}: both views', both[0], both[1])
    print(f'{compared} figures and tables compared')
    sys.exit(wrong != 0)


main()
