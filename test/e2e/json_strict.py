#!/usr/bin/env python3
# json_strict.py FILE...: each file holds one JSON value on each line, or one in
# all, and no object in them has a key twice. Other scripts take `once` from here.
import json
import sys


def once(pairs):
    keys = dict(pairs)
    if len(keys) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError('keys that are there twice: ' + ', '.join(twice))
    return keys


def not_json(word):
    raise ValueError(word + ' is not JSON')


def load(text):
    json.loads(text, object_pairs_hook=once, parse_constant=not_json)


def main():
    for name in sys.argv[1:]:
        with open(name, encoding='utf-8') as f:
            text = f.read()
        try:
            for i, line in enumerate(text.rstrip('\n').split('\n')):
                load(line)
        except json.JSONDecodeError:
            load(text)
        except ValueError as error:
            sys.exit(f'{name}: line {i + 1}: {error}: {line[:300]}')


if __name__ == '__main__':
    main()
