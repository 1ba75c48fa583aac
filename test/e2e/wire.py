"""Reads protobuf's wire format without a schema."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """A message as {field: [values]}: numbers, or bytes."""
    found = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif kind == 2:
            length, at = varint(data, at)
            if at + length > len(data):
                raise ValueError("a field is longer than its message")
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f"wire type {kind}")
        found.setdefault(tag >> 3, []).append(value)
    return found


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def numbers(values):
    """A repeated number, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            out.append(signed(number))
    return out


def one(message, field, default=0):
    return message.get(field, [default])[-1]
