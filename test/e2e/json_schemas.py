#!/usr/bin/env python3
# json_schemas.py rules SOURCE: the validator refuses what it should, and the lists
# of words in the schemas are those of the code.
# json_schemas.py outputs SOURCE SHOWN: each NUMBER.SCHEMA.json in SHOWN is as its
# schema says, no part of a schema accepts anything, and each property of a schema
# is in some output, or in the list RARE.
import collections
import copy
import fnmatch
import json
import pathlib
import re
import sys

import json_schema
import json_strict

# Lists of words in names.schema.json: the header and its list.
FORMAT, HEAP, ITEM = 'src/base/format.h', 'src/base/heap_format.h', 'parsers/stream/item.h'
WORDS = {
    'frame_kind': (FORMAT, 'LJP_FRAME_KIND_LIST'),
    'object_type': (FORMAT, 'LJP_MEM_TYPE_LIST'),
    'memory_operation': (FORMAT, 'LJP_MEM_OP_LIST'),
    'cut': (FORMAT, 'LJP_CUT_LIST'),
    'record': (FORMAT, 'LJP_RECORD_LIST'),
    'producer_kind': (FORMAT, 'LJP_PRODUCER_LIST'),
    'timer': (FORMAT, 'LJP_TIMER_LIST'),
    'gc_phase': (FORMAT, 'LJP_GC_PHASE_LIST'),
    'trace_action': (FORMAT, 'LJP_TRACE_WHAT_LIST'),
    'vm_state': (FORMAT, 'LJP_VMSTATE_LIST'),
    'interval_why': (FORMAT, 'LJP_INTERVAL_WHY_LIST'),
    'loss': (FORMAT, 'LJP_LOSS_LIST'),
    'severity': (FORMAT, 'LJP_NOTE_LIST'),
    'unsampled_why': (FORMAT, 'LJP_UNSAMPLED_LIST'),
    'epoch_why': (FORMAT, 'LJP_EPOCH_WHY_LIST'),
    'exact': (FORMAT, 'LJP_EXACT_LIST'),
    'status': ('src/base/status.h', 'LJP_STATUS_LIST'),
    'gap_reason': (ITEM, 'LJP_GAP_LIST'),
    'bad_reason': (ITEM, 'LJP_BAD_LIST'),
    'heap_taken': (HEAP, 'LJP_HEAP_TAKEN_LIST'),
    'ctype_kind': (HEAP, 'LJP_HEAP_CTYPE_LIST'),
    'root': (HEAP, 'LJP_HEAP_ROOT_LIST'),
}
# The same for lists elsewhere: the place, the header, its list, and which of the
# strings of an entry it is.
LISTS = [
    ('report-common', '$defs/measure/enum', 'tools/report/select.h', 'LJP_MEASURE_LIST', 0),
    ('diff', '$defs/frame_kind/enum', 'tools/page/page.h', 'LJP_PAGE_KIND_LIST', 1),
    ('advise', '$defs/finding/properties/kind/enum', 'tools/advise/advise.h',
     'LJP_ADVISE_LIST', 0),
]
# Properties that no output of the test need have: a pattern of their places, and why.
RARE = {
    '*_hex': 'only of strings that are not UTF-8, of which the test has some',
    'dump-stacks#*/cut': 'stacks that cannot be walked to their end',
}


def words(source, header, name, which=0):
    """The strings of an X-macro's entries."""
    text = (source / header).read_text('utf-8')
    body = re.search(rf'#define {name}\(_\)((?:.*\\\n)*.*\n)', text).group(1)
    body = re.sub(r'/\*.*?\*/', '', body)
    return [re.findall(r'"([^"]*)"', entry)[which]
            for entry in re.split(r'\b_\(', body)[1:]]


# -- Rules ----------------------------------------------------------------------

PLANTED = {
    'a': {'type': 'object',
          'properties': {'n': {'$ref': 'b.schema.json#/$defs/count'},
                         'word': {'enum': ['x', 'y']}, 'flag': {'const': True},
                         'list': {'type': 'array', 'items': {'type': 'string'}},
                         'kind': {'oneOf': [
                             {'type': 'object', 'properties': {'k': {'const': 1}},
                              'required': ['k'], 'additionalProperties': False},
                             {'type': 'object', 'properties': {
                                 'k': {'const': 2}, 'at': {'type': 'string', 'pattern': '^0x'}},
                              'required': ['k', 'at'], 'additionalProperties': False}]}},
          'required': ['n'], 'dependentRequired': {'word': ['flag']},
          'additionalProperties': False},
    'b': {'$ref': '#/$defs/part', 'unevaluatedProperties': False,
          'type': 'object', 'properties': {'own': {'type': 'number', 'maximum': 3}},
          'allOf': [{'required': ['n']}],
          '$defs': {'count': {'type': 'integer', 'minimum': 0},
                    'part': {'type': 'object', 'properties': {'n': {'type': 'integer'}}}}},
}
GOOD = [('a', '{"n": 1, "word": "x", "flag": true, "list": ["s"], "kind": {"k": 1}}'),
        ('a', '{"n": 0, "kind": {"k": 2, "at": "0x1"}}'), ('b', '{"n": -1, "own": 2.5}')]
BAD = [('a', '[]', 'is not of the type object'),
       ('a', '{"n": "1"}', 'n: "1" is not of the type integer'),
       ('a', '{"n": true}', 'n: true is not of the type integer'),
       ('a', '{"n": 1.5}', 'n: 1.5 is not of the type integer'),
       ('a', '{"n": -1}', 'n: -1 is less than 0'),
       ('a', '{}', 'n is missing'),
       ('a', '{"n": 1, "m": 1}', 'm is not in the schema'),
       ('a', '{"n": 1, "word": "z", "flag": true}', 'word: "z" is not one of'),
       ('a', '{"n": 1, "word": "x"}', 'flag is missing beside word'),
       ('a', '{"n": 1, "flag": 1}', 'flag: 1 is not true'),
       ('a', '{"n": 1, "list": ["s", 1]}', 'list/1: 1 is not of the type string'),
       ('a', '{"n": 1, "kind": {"k": 3}}', 'kind: is of no kind: {"k": 3}'),
       ('a', '{"n": 1, "kind": {"k": 2}}', 'kind: at is missing'),
       ('a', '{"n": 1, "kind": {"k": 2, "at": "1"}}', 'kind/at: "1" is not like ^0x'),
       ('b', '{"n": 1, "own": 3.5}', 'own: 3.5 is more than 3'),
       ('b', '{"own": 1}', 'n is missing'),
       ('b', '{"n": 1, "m": 1}', 'm is not in the schema')]
REFUSED = [{'type': 'string', 'format': 'uri'}, {'type': 'null'}, {'$ref': '#/$defs/no'},
           {'items': {'maxLength': 1}}, {'additionalProperties': {'type': 'string'}}]


def told(found):
    return [f'{path[1:]}: {text}' if path else text for path, text in found.errors]


def try_validator():
    planted = json_schema.Schemas(PLANTED)
    for name, text in GOOD:
        errors = told(planted.check(name, json.loads(text)))
        assert not errors, (text, errors)
    for name, text, wanted in BAD:
        errors = told(planted.check(name, json.loads(text)))
        assert any(error.startswith(wanted) or error.endswith(wanted)
                   for error in errors), (text, errors)
    for schema in REFUSED:
        try:
            json_schema.Schemas({'x': schema})
        except json_schema.BadSchema:
            continue
        raise AssertionError(f'{schema} is accepted')


def rules(source):
    try_validator()
    folder = source / 'doc/reference/schemas'
    schemas = json_schema.load(folder)
    names = schemas.schemas['names']['$defs']
    assert sorted(names) == sorted(WORDS), sorted(names)
    for name, (header, macro) in WORDS.items():
        wanted = words(source, header, macro)
        assert names[name]['enum'] == wanted, (name, wanted)
    for name, place, header, macro, which in LISTS:
        part = schemas.schemas[name]
        for word in place.split('/'):
            part = part[word]
        wanted = words(source, header, macro, which)
        assert part == wanted, (name, place, wanted)
    page = (folder.parent / 'json.md').read_text('utf-8')
    for name, schema in schemas.schemas.items():
        assert schema['$schema'].endswith('/draft/2020-12/schema'), name
        assert schema['title'] and schema['description'], name
        assert f'(schemas/{name}.schema.json)' in page, f'json.md does not link {name}'
    print(f'{len(schemas.schemas)} schemas have the words of the code, and the '
          f'validator refuses {len(BAD)} faults')


# -- Outputs --------------------------------------------------------------------

def short(value):
    """The value with at most two items in each list."""
    if isinstance(value, list):
        return [short(item) for item in value[:2]]
    if isinstance(value, dict):
        return {key: short(item) for key, item in value.items()}
    return value


def faults(value, path=()):
    """Copies of a value with one fault each, and what the fault is."""
    inside = value
    for key in path:
        inside = inside[key]
    wrong = 'x' if isinstance(inside, (int, float)) and inside is not True else 7.5
    for other in (None, wrong):
        yield path, other
    if isinstance(inside, dict):
        yield (*path, 'xyzzy'), 1
    keys = inside if isinstance(inside, dict) else range(
        len(inside)) if isinstance(inside, list) else ()
    for key in keys:
        yield from faults(value, (*path, key))


def with_fault(value, path, other):
    if not path:
        return other
    value = copy.deepcopy(value)
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = other
    return value


def too_loose(schemas, name, value):
    """Faults of a value that its schema accepts."""
    return ['/'.join(map(str, path)) + f' may be {json.dumps(other)}'
            for path, other in faults(value)
            if not schemas.check(name, with_fault(value, path, other)).errors]


class Judge:
    def __init__(self, source):
        self.schemas = json_schema.load(source / 'doc/reference/schemas')
        self.seen, self.wrong, self.alike = set(), [], collections.Counter()
        self.values = self.tried = 0

    def value(self, name, text, command):
        value = json.loads(text, object_pairs_hook=json_strict.once,
                           parse_constant=json_strict.not_json)
        found = self.schemas.check(name, value)
        self.values += 1
        if found.errors:
            self.wrong += [f'{name}: {command}: {error}' for error in told(found)[:5]]
        elif found.used - self.seen:  # Faults are tried where a property is new.
            self.seen |= found.used
            self.tried += 1
            self.wrong += [f'{name}: {command}: {fault}'
                           for fault in too_loose(self.schemas, name, short(value))]

    def is_wanted(self, name, line):
        """Of lines of a dump that have the same keys: the first, and some more."""
        keys = name, tuple(re.findall(r'"(?:type|how|object_type)":"[^"]*"|"\w+":', line))
        self.alike[keys] += 1
        return self.alike[keys] <= 20 or self.alike[keys] % 50 == 0

    def output(self, file):
        name = file.name.split('.')[1]
        command = file.with_suffix('.txt').read_text('utf-8').strip()
        text = file.read_text('utf-8')
        if not command.startswith('dump --json'):
            self.value(name, text, command)
            return name
        for line in text.splitlines():
            if self.is_wanted(name, line):
                self.value(name, line, command)
        return name

    def gaps(self):
        """Properties that were not seen, and rules of RARE that mean nothing."""
        unseen = self.schemas.properties - self.seen
        for pattern in RARE:
            some = fnmatch.filter(self.schemas.properties, pattern)
            self.wrong += [] if some else [f'RARE: there is no {pattern}']
            unseen -= set(some)
        self.wrong += [f'no output has {place}' for place in sorted(unseen)]


def outputs(source, shown):
    judge = Judge(source)
    names = {judge.output(file) for file in sorted(shown.glob('*.json'))}
    judge.gaps()
    if judge.wrong:
        sys.exit('\n'.join(judge.wrong))
    print(f'{judge.values} values of {len(names)} kinds are as their schemas say')
    print(f'{len(judge.seen)} properties are in some output, {len(RARE)} rules for others')
    print(f'no schema accepts a fault in {judge.tried} of the values')


if __name__ == '__main__':
    if sys.argv[1] == 'rules':
        rules(pathlib.Path(sys.argv[2]))
    else:
        outputs(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
