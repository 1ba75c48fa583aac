"""Validates JSON against schemas: the keywords of JSON Schema 2020-12 that the files
in doc/reference/schemas/ use, and no others. A schema with another keyword is
refused, so nothing that a schema says is ignored.
"""
import json
import pathlib
import re

NOTES = {'$schema', 'title', 'description'}
# Keywords by what they hold: schemas under it, a list of schemas, or something else.
ONE = {'items', 'additionalProperties', 'unevaluatedProperties'}
LISTS = {'allOf', 'anyOf', 'oneOf'}
NAMED = {'properties', '$defs'}
PLAIN = {'$ref', 'type', 'enum', 'const', 'minimum', 'maximum', 'pattern', 'required',
         'dependentRequired'}
TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool}


class BadSchema(Exception):
    """A schema is not one that this validator understands."""


class Found:
    """What comes of one value and one schema."""

    def __init__(self):
        self.errors = []  # pairs of a path and a text
        self.keys = set()  # of the value, that the schema knows
        self.used = set()  # places of the properties that the value has
        self.foreign = False  # the value is of another kind

    def wrong(self, path, text):
        self.errors.append((path, text))

    def take(self, other):
        self.errors += other.errors
        self.keys |= other.keys
        self.used |= other.used


def is_of_type(value, name):
    if name in ('integer', 'number'):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return name == 'number' or value == int(value)
    return isinstance(value, TYPES[name])


def short(value):
    return json.dumps(value)[:60]


def is_same(a, b):
    """Equal as JSON: true is not 1."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


class Schemas:
    """Schemas by name, which refer to each other as NAME.schema.json."""

    def __init__(self, schemas):
        self.schemas = schemas
        self.place = {}  # by id of a part of a schema: where it stands
        self.properties = set()  # places of all properties
        self.refs = []
        for name, schema in schemas.items():
            self.learn(name, schema, name + '#')
        for name, ref, place in self.refs:
            self.target(name, ref, place)

    def learn(self, name, schema, place):
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise BadSchema(f'{place}: not a schema')
        self.place[id(schema)] = place
        strange = set(schema) - NOTES - ONE - LISTS - NAMED - PLAIN
        if strange:
            raise BadSchema(f'{place}: unknown keyword {sorted(strange)}')
        if schema.get('type', 'object') not in (*TYPES, 'integer', 'number'):
            raise BadSchema(f'{place}: unknown type {schema["type"]}')
        for key in ('additionalProperties', 'unevaluatedProperties'):
            if schema.get(key, False) is not False:
                raise BadSchema(f'{place}: {key} is not false')
        if '$ref' in schema:
            self.refs.append((name, schema['$ref'], place))
        for key in ONE & set(schema):
            self.learn(name, schema[key], f'{place}/{key}')
        for key in LISTS & set(schema):
            for i, part in enumerate(schema[key]):
                self.learn(name, part, f'{place}/{key}/{i}')
        for key in NAMED & set(schema):
            for word, part in schema[key].items():
                self.learn(name, part, f'{place}/{key}/{word}')
                if key == 'properties' and part is not False:
                    self.properties.add(f'{place}/{key}/{word}')

    def target(self, name, ref, place):
        """The schema to which a reference leads, and the name of its file."""
        file, _, pointer = ref.partition('#')
        file = file.removesuffix('.schema.json') or name
        try:
            schema = self.schemas[file]
            for word in pointer.split('/')[1:]:
                schema = schema[word]
        except KeyError:
            raise BadSchema(f'{place}: {ref} leads nowhere') from None
        return file, schema

    # -- A value ------------------------------------------------------------

    def check(self, name, value):
        return self.visit(name, self.schemas[name], value, '')

    def visit(self, name, schema, value, path):
        found = Found()
        if schema is False:
            found.wrong(path, 'must not be there')
            return found
        if '$ref' in schema:
            file, part = self.target(name, schema['$ref'], '')
            found.take(self.visit(file, part, value, path))
        for part in schema.get('allOf', []):
            found.take(self.visit(name, part, value, path))
        for key in ('anyOf', 'oneOf'):
            if key in schema:
                self.visit_kinds(name, schema[key], value, path, key == 'oneOf', found)
        self.visit_plain(schema, value, path, found)
        if isinstance(value, dict):
            self.visit_object(name, schema, value, path, found)
        if isinstance(value, list) and 'items' in schema:
            for i, item in enumerate(value):
                part = self.visit(name, schema['items'], item, f'{path}/{i}')
                part.keys = set()
                found.take(part)
        return found

    @staticmethod
    def visit_plain(schema, value, path, found):
        if 'type' in schema and not is_of_type(value, schema['type']):
            found.wrong(path, f'{short(value)} is not of the type {schema["type"]}')
            return
        if 'const' in schema and not is_same(value, schema['const']):
            found.wrong(path, f'{short(value)} is not {json.dumps(schema["const"])}')
        if 'enum' in schema and not any(is_same(value, x) for x in schema['enum']):
            found.wrong(path, f'{short(value)} is not one of {schema["enum"]}')
        if is_of_type(value, 'number'):
            if value < schema.get('minimum', value):
                found.wrong(path, f'{short(value)} is less than {schema["minimum"]}')
            if value > schema.get('maximum', value):
                found.wrong(path, f'{short(value)} is more than {schema["maximum"]}')
        if isinstance(value, str) and not re.search(schema.get('pattern', ''), value):
            found.wrong(path, f'{short(value)} is not like {schema["pattern"]}')

    def visit_object(self, name, schema, value, path, found):
        for key in schema.get('required', []):
            if key not in value:
                found.wrong(path, f'{key} is missing')
        for key, others in schema.get('dependentRequired', {}).items():
            for other in others:
                if key in value and other not in value:
                    found.wrong(path, f'{other} is missing beside {key}')
        own = schema.get('properties', {})
        for key, part in own.items():
            if key in value:
                inner = self.visit(name, part, value[key], f'{path}/{key}')
                inner.keys = set()
                found.take(inner)
                found.keys.add(key)
                found.used.add(f'{self.place[id(schema)]}/properties/{key}')
        for rule, known in (('additionalProperties', own),
                            ('unevaluatedProperties', found.keys)):
            if rule in schema:
                for key in value:
                    if key not in known:
                        found.wrong(path, f'{key} is not in the schema')

    def differs(self, name, schema, value):
        """Whether a value is of another kind, by a key that has one value."""
        if schema is False:
            return True
        if '$ref' in schema and self.differs(
                *self.target(name, schema['$ref'], ''), value):
            return True
        return isinstance(value, dict) and any(
            key in value and part and 'const' in part and
            not is_same(value[key], part['const'])
            for key, part in schema.get('properties', {}).items())

    def visit_kinds(self, name, kinds, value, path, only_one, found):
        tried = [self.visit(name, kind, value, path) for kind in kinds
                 if not self.differs(name, kind, value)]
        good = [one for one in tried if not one.errors]
        for one in good:
            found.take(one)
        if only_one and len(good) > 1:
            found.wrong(path, f'is of {len(good)} kinds at the same time')
        if good:
            return
        near = [one for one in tried if not one.foreign]
        if near:
            found.take(min(near, key=lambda one: len(one.errors)))
        else:
            found.foreign = True
            found.wrong(path, f'is of no kind: {short(value)}')


def load(folder):
    """The schemas of a folder."""
    ending = '.schema.json'
    return Schemas({file.name.removesuffix(ending): json.loads(file.read_text('utf-8'))
                    for file in sorted(pathlib.Path(folder).glob('*' + ending))})
