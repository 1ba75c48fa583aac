#!/usr/bin/env python3
# heap_flame.py PAGE HEAP: the tabs of a page on a heap snapshot add up to what
# `ljprof heap --json --top 1000` (HEAP) says, and each large retainer has a box
# that is as wide.
import base64
import json
import re
import sys

sys.dont_write_bytecode = True
from json_strict import once  # noqa: E402


def check(condition, *what):
    if not condition:
        sys.exit('heap_flame.py: ' + ' '.join(str(x) for x in what))


def column(text, n, sums=False, signed=False):
    data, out, at, last = base64.b64decode(text), [], 0, 0
    for _ in range(n):
        x = shift = 0
        while True:
            byte = data[at]
            at += 1
            x |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if signed:
            x = x >> 1 ^ -(x & 1)
        if sums:
            x = last = last + x
        out.append(x)
    return out


def tree(page, view):
    count, nodes = page['nodes']['n'], page['nodes']
    up = column(nodes['up'], count)
    frame = column(nodes['frame'], count, True, True)
    names = column(page['frames']['name'], page['frames']['n'])
    rows = view['rows']
    own, total = [0] * count, [0] * count
    node = column(view['node'], rows, True, True)
    weight = column(view['weight'], rows)
    objects = sum(column(view['count'], rows)) if 'count' in view else rows
    for i, w in zip(node, weight):
        own[i] += w
        total[i] += w
    for i in range(count - 1, 0, -1):
        total[i - up[i]] += total[i]
    if 'lua' in nodes:
        lua = column(nodes['lua'], count, True, True)
        check(all(lua[i] == i for i in node), 'boxes move in the Lua view')
    boxes = [(page['strings'][names[frame[i]]], total[i])
             for i in range(count) if total[i]]
    return boxes, total[0], objects


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        text = re.search(r'<script type="application/json" id="data">(.*?)'
                         r'</script>', f.read(), re.S).group(1)
    page = json.loads(text, object_pairs_hook=once)
    with open(sys.argv[2], encoding='utf-8') as f:
        heap = json.load(f, object_pairs_hook=once)
    views = {v['id']: v for v in page['views']}
    said = []
    for name in 'retained', 'references':
        view = views[name]
        check(view['untimed'] and view['unit'] == 'bytes', name)
        boxes, total, objects = tree(page, view)
        check(total == heap['bytes'] - heap['garbage_bytes'], name, total)
        check(objects == heap['objects'] - heap['garbage_objects'], name,
              objects)
        check(len(boxes) < 50000, name, len(boxes), 'boxes')
        said.append(f'{name}: {len(boxes)} boxes')
        if name == 'retained':
            sizes = {size for _, size in boxes}
            # Smaller ones may share a box.
            for r in heap['retainers']:
                check(r['retained'] < total / 8 or r['retained'] in sizes,
                      'no box for', r)
    print(', '.join(said))


main()
