"""Checks an OTLP profile against the rules of its schema, and prints the sum of
each value, of each value by a label if KEY is given, as lines "TYPE [VALUE] SUM".

  otlp.py FILE [KEY]
"""
import sys

from wire import fields, numbers, one, signed

MAPPING, LOCATION, FUNCTION, LINK, STRING, ATTRIBUTE, STACK = range(1, 8)


def want(condition, text):
    if not condition:
        sys.exit(f"otlp.py: {text}")


class Dictionary:
    def __init__(self, data):
        tables = fields(data)
        self.table = [tables.get(i, []) for i in range(8)]
        self.used = [{0} for _ in range(8)]
        for number in range(MAPPING, STACK + 1):
            table = self.table[number]
            want(table and table[0] == b"", f"table {number} begins wrong")
            want(len(set(table)) == len(table), f"table {number}: duplicates")
        self.strings = [s.decode() for s in self.table[STRING]]
        for entry in self.table[LOCATION][1:]:
            self.check_location(fields(entry))
        for entry in self.table[FUNCTION][1:]:
            function = fields(entry)
            for field in (1, 2, 3):
                self.use(STRING, one(function, field))
            want(signed(one(function, 4)) >= 0, "a negative line")
        for entry in self.table[MAPPING][1:]:
            mapping = fields(entry)
            want(one(mapping, 1) < one(mapping, 2), "an empty mapping")
            self.use(STRING, one(mapping, 4))
            self.attributes(numbers(mapping.get(5, [])))
        for entry in self.table[ATTRIBUTE][1:]:
            self.use(STRING, one(fields(entry), 1))
        for entry in self.table[STACK][1:]:
            for location in numbers(fields(entry).get(1, [])):
                self.use(LOCATION, location)

    def use(self, table, index):
        want(0 <= index < len(self.table[table]),
             f"index {index} is not in table {table}")
        self.used[table].add(index)

    def check_location(self, location):
        mapping = one(location, 1)
        self.use(MAPPING, mapping)
        self.attributes(numbers(location.get(4, [])))
        if mapping:
            area = fields(self.table[MAPPING][mapping])
            want(one(area, 1) <= one(location, 2) < one(area, 2),
                 "an address outside its mapping")
        for line in location.get(3, []):
            self.use(FUNCTION, one(fields(line), 1))
            want(signed(one(fields(line), 2)) >= 0, "a negative line")

    def attributes(self, indices):
        found = {}
        for index in indices:
            self.use(ATTRIBUTE, index)
            attribute = fields(self.table[ATTRIBUTE][index])
            key = self.strings[one(attribute, 1)]
            want(key not in found, f"the key {key} twice")
            value = fields(one(attribute, 2, b""))
            found[key] = (one(value, 1, b"").decode() if 1 in value
                          else one(value, 3))
        return found

    def value_type(self, data):
        value = fields(data)
        self.use(STRING, one(value, 1))
        self.use(STRING, one(value, 2))
        return self.strings[one(value, 1)], self.strings[one(value, 2)]

    def check_orphans(self):
        for number in range(MAPPING, STACK + 1):
            unused = set(range(len(self.table[number]))) - self.used[number]
            want(not unused, f"table {number}: nothing refers to {unused}")


def read_profile(dictionary, data, key, sums):
    profile = fields(data)
    kind, unit = dictionary.value_type(one(profile, 1, b""))
    want(kind and unit, "a profile without a type")
    period = dictionary.value_type(one(profile, 5, b""))
    want(all(period) and one(profile, 6) > 0, "a profile without a period")
    dictionary.attributes(numbers(profile.get(11, [])))
    for sample in map(fields, profile.get(2, [])):
        dictionary.use(STACK, one(sample, 1))
        values = numbers(sample.get(4, []))
        want(len(values) == 1 and 5 not in sample, "a sample's shape")
        labels = dictionary.attributes(numbers(sample.get(2, [])))
        name = (kind, labels.get(key, "-") if key else None)
        sums[name] = sums.get(name, 0) + values[0]


def read(data, key=None):
    """The sums by (type, value of the key), and the resource's attributes."""
    whole = fields(data)
    want(len(whole.get(2, [])) == 1, "no dictionary")
    dictionary = Dictionary(whole[2][0])
    sums, resource = {}, {}
    want(whole.get(1), "no resource")
    for owner in map(fields, whole[1]):
        for pair in map(fields, fields(one(owner, 1, b"")).get(1, [])):
            value = fields(one(pair, 2, b""))
            want(one(pair, 1).decode() not in resource, "a key stands twice")
            resource[one(pair, 1).decode()] = one(value, 1, b"").decode()
        want(owner.get(2), "no scope")
        for scope in map(fields, owner[2]):
            want(scope.get(2), "no profile")
            for profile in scope[2]:
                read_profile(dictionary, profile, key, sums)
    dictionary.check_orphans()
    return sums, resource


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as f:
        found, _ = read(f.read(), sys.argv[2] if len(sys.argv) > 2 else None)
    for (kind, value), total in sorted(found.items()):
        print(kind, total) if value is None else print(kind, value, total)
