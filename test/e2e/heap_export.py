#!/usr/bin/env python3
# heap_export.py EXPORT DUMP HEAP: a .heapsnapshot file is well-formed, and has the
# objects, bytes and references that `ljprof dump --json` (DUMP) shows of the
# snapshot, and the retained sizes and paths of `ljprof heap --json` (HEAP).
import json
import sys
from collections import Counter, deque

sys.dont_write_bytecode = True
from json_strict import once  # noqa: E402

PARTS = {'table': ['(array part)', '(hash part)'], 'thread': ['(stack)'],
         'userdata': ['(buffer)']}
STACK = ('frame', 'local', 'a temporary')


def check(condition, *what):
    if not condition:
        sys.exit('heap_export.py: ' + ' '.join(str(x) for x in what))


class Export:
    def __init__(self, path):
        with open(path, encoding='utf-8') as f:
            data = json.load(f, object_pairs_hook=once)
        head, meta = data['snapshot'], data['snapshot']['meta']
        self.strings = data['strings']
        nodes, edges = data['nodes'], data['edges']
        self.width = len(meta['node_fields'])
        check(self.width == 7 and len(meta['edge_fields']) == 3, 'fields')
        check(len(nodes) == 7 * head['node_count'], 'node_count')
        check(len(edges) == 3 * head['edge_count'], 'edge_count')
        for part in ('nodes', 'edges', 'samples', 'locations'):
            check(all(isinstance(x, int) and 0 <= x < 2 ** 32
                      for x in data[part]), part, 'are not of 32 bits')
        self.count = head['node_count']
        self.locations = data['locations']
        check(len(self.locations) % 4 == 0, 'locations')
        types = meta['node_types'][0]
        self.type = [types[x] for x in nodes[0::7]]
        check(max(nodes[1::7]) < len(self.strings), 'a name is missing')
        self.name = [self.strings[x] for x in nodes[1::7]]
        self.id = nodes[2::7]
        self.bytes = nodes[3::7]
        self.trace = nodes[5::7]
        self.take_traces(data)
        check(len(set(self.id)) == self.count, 'ids are not unique')
        check(sum(nodes[4::7]) == head['edge_count'], 'the sum of edge counts')
        self.take_edges(nodes[4::7], edges, meta['edge_types'][0])

    # The tree of stacks, and times.
    def take_traces(self, data):
        self.infos = data['trace_function_infos']
        check(len(self.infos) == 6 * data['snapshot']['trace_function_count'],
              'trace_function_count')
        seen = {0}
        todo = [data['trace_tree']]
        while todo:
            nodes = todo.pop()
            for i in range(0, len(nodes), 5):
                check(nodes[i] not in seen, 'a place in the tree is there twice')
                check(nodes[i + 1] * 6 < len(self.infos), 'a function')
                seen.add(nodes[i])
                todo.append(nodes[i + 4])
        check(set(self.trace) <= seen, 'a place is not in the tree')
        times, last = data['samples'][0::2], data['samples'][1::2]
        check(times == sorted(times) and last == sorted(last), 'samples')
        if self.infos:
            check(last[-1] >= max(self.id), 'ids after the last sample')

    def take_edges(self, counts, edges, types):
        self.edges = []
        at = 0
        for count in counts:
            mine = []
            for i in range(at, at + count):
                kind, name, to = edges[3 * i:3 * i + 3]
                check(to % 7 == 0 and to // 7 < self.count, 'to_node', to)
                kind = types[kind]
                if kind not in ('element', 'hidden'):
                    check(name < len(self.strings), 'the name of an edge')
                    name = self.strings[name]
                mine.append((kind, name, to // 7))
            self.edges.append(mine)
            at += count

    def strong(self, node):
        return [e for e in self.edges[node] if e[0] != 'weak']

    # Depth first, in postorder backwards; predecessors by node.
    def order(self):
        seen, out, before = {0}, [], {}
        stack = [(0, iter(self.strong(0)))]
        while stack:
            node, rest = stack[-1]
            for _, _, to in rest:
                before.setdefault(to, []).append(node)
                if to not in seen:
                    seen.add(to)
                    stack.append((to, iter(self.strong(to))))
                    break
            else:
                out.append(node)
                stack.pop()
        return out[::-1], before

    # By the plain iterative algorithm, so not by that of ljprof.
    def retained(self):
        order, before = self.order()
        check(len(order) == self.count, 'nodes that nothing holds')
        number = {node: i for i, node in enumerate(order)}
        dominator = {0: 0}
        changed = True
        while changed:
            changed = False
            for node in order[1:]:
                best = None
                for other in before[node]:
                    if other not in dominator:
                        continue
                    a, b = other, other if best is None else best
                    while a != b:
                        if number[a] > number[b]:
                            a = dominator[a]
                        else:
                            b = dominator[b]
                    best = a
                if dominator.get(node) != best:
                    dominator[node] = best
                    changed = True
        sums = list(self.bytes)
        for node in order[:0:-1]:
            sums[dominator[node]] += sums[node]
        return sums

    # Shortest paths; through stacks only where there is no other.
    def paths(self):
        holder = {0: None}
        queue = [0]
        for stacks in (False, True):
            wait = deque(queue)
            while wait:
                node = wait.popleft()
                for kind, name, to in self.strong(node):
                    stack = self.type[node] == 'object' and kind in (
                        'context', 'internal') and str(name).startswith(STACK)
                    if to in holder or (stack and not stacks):
                        continue
                    holder[to] = (node, kind, name)
                    queue.append(to)
                    wait.append(to)
        return holder


def read_dump(path):
    heap, objects, refs = None, [], {}
    with open(path, encoding='utf-8', errors='replace') as f:
        for line in f:
            d = json.loads(line, object_pairs_hook=once)
            if d['type'] == 'heap':
                heap, objects, refs = d, [], {}
            elif d['type'] == 'object' and d['object_type'] != '-':
                objects.append(d)
            elif d['type'] == 'ref':
                refs.setdefault(d['object'], []).append(d)
    return heap, objects, refs


def part_bytes(heap, o):
    slot = heap['slot_bytes']
    if o['object_type'] == 'table':
        return [0 if 'inside' in o else o['slots'] * slot,
                o['nodes'] * heap['node_bytes']]
    if o['object_type'] == 'thread':
        return [o['slots'] * slot]
    if o['object_type'] == 'userdata':
        return [o['buffer_bytes']]
    return []


def check_objects(x, heap, objects):
    ids = {}
    check(x.type[0] == 'synthetic' and x.id[0] == 1, 'the root')
    parts = len(objects) + 1 + ('(garbage)' in x.name)
    for i, o in enumerate(objects, 1):
        ids[o['address']] = i
        address = int(o['address'], 16)
        # With a session, the upper half of the ids is of its allocations.
        half = 2 ** 30 if x.infos else 2 ** 31
        check(x.id[i] == (address >> 3) % half * 2 + 1 if not x.trace[i] else
              x.id[i] > 2 ** 31, 'the id of', o)
        check(x.bytes[i] == o['bytes'], 'bytes of', o, x.bytes[i])
        wanted = [(name, n) for name, n in
                  zip(PARTS.get(o['object_type'], []), part_bytes(heap, o)) if n]
        got = [to for _, _, to in x.edges[i] if to > len(objects)]
        for (name, n), to in zip(wanted, got):
            check(to == parts and x.type[to] == 'array', 'order of parts')
            check(x.name[to] == name and x.bytes[to] == n, 'part of', o)
            check(not x.edges[to], 'a part refers to something')
            parts += 1
        check(len(wanted) == len(got), 'parts of', o)
        if o['object_type'] == 'string' and o.get('text'):
            check(x.name[i].startswith(o['text'][:30]) or '�' in x.name[i] or
                  not o['text'].isprintable(), 'contents of', o, x.name[i])
    check(parts == x.count, 'there are other nodes')
    check(sum(x.bytes) == sum(o['bytes'] + sum(part_bytes(heap, o))
                              for o in objects), 'the sum of bytes')
    return ids


def check_refs(x, objects, refs, ids):
    garbage = set()
    if '(garbage)' in x.name:
        holder = x.name.index('(garbage)')
        garbage = {to for _, _, to in x.edges[holder]}
        check([n for _, n, _ in x.edges[holder]] == list(range(len(garbage))),
              'numbers of garbage')
    for i, o in enumerate(objects, 1):
        wanted = Counter()
        for r in refs.get(o['address'], []):
            to = ids.get(r['target'])
            lost = i in garbage and to not in garbage
            if 'key' in r:
                key = ids[r['key']]
                wanted[key, 'weak_key' in r or
                       (i in garbage and key not in garbage)] += 1
            wanted[to, 'weak' in r or lost] += 1
        got = Counter((to, kind == 'weak') for kind, _, to in x.edges[i]
                      if to <= len(objects))
        check(wanted == got, 'references of', o, wanted - got, got - wanted)
    return garbage


def check_retained(x, heap, ids, garbage):
    retained, holder = x.retained(), x.paths()
    check(heap['objects'] == len(ids), 'the number of objects')
    check(heap['garbage_objects'] == len(garbage), 'the number of garbage')
    check(heap['bytes'] == sum(x.bytes) == retained[0], 'the sum of bytes')
    for r in heap['retainers']:
        node = ids[r['address']]
        check(retained[node] == r['retained'], 'retained', r, retained[node])
        chain = []
        while holder[node]:
            up, _, name = holder[node]
            # Paths do not tell of the part of the VM that has a root, and leave
            # out the way to the table of modules.
            if up and name not in ('value', 'registry', '_LOADED'):
                name = str(name).split(' of ')[0].strip('[]')[:40]
                chain.insert(0, 'constant' if 'constant ' in name else name)
            node = up
        missing = [name for name in chain if name not in r['path']]
        check(not missing, 'the path', r['path'], 'against', chain)


def main():
    x = Export(sys.argv[1])
    heap, objects, refs = read_dump(sys.argv[2])
    ids = check_objects(x, heap, objects)
    garbage = check_refs(x, objects, refs, ids)
    with open(sys.argv[3], encoding='utf-8') as f:
        check_retained(x, json.load(f, object_pairs_hook=once), ids, garbage)
    for i in range(0, len(x.locations), 4):
        node, script, line, column = x.locations[i:i + 4]
        check(x.type[node // 7] in ('closure', 'code') and column == 0 and
              x.type[script] == 'string', 'a location')
        where = x.name[script].lstrip('@=') + ':' + str(line + 1)
        check(x.name[node // 7].endswith(where) or '"' in x.name[node // 7] or
              len(where) > 50, 'a location', x.name[node // 7], where)
    print(f'{x.count} nodes, {sum(map(len, x.edges))} edges, '
          f'{sum(map(bool, x.trace))} with a stack, {len(garbage)} garbage, {len(x.locations) // 4} locations')


main()
