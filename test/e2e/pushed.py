"""Reads a request of ljprof push. Prints a line for each series' label
("NAME label KEY VALUE"), and for each sum: "NAME TYPE SUM", and with a KEY of the
samples' labels "NAME TYPE KEY=VALUE SUM". For several files: sums over all.

  pushed.py pyroscope|ingest|parca|otlp|pprof KEY FILE...

For /ingest, the request's head is read beside each FILE (N.head, N.body).
"""
import sys
import urllib.parse
import zlib

import otlp
from wire import fields, numbers, one


def read_pprof(data, name, key, sums):
    profile = fields(zlib.decompress(data, 31))
    strings = [s.decode() for s in profile[6]]
    types = [strings[one(fields(t), 1)] for t in profile[1]]
    for table in 3, 4, 5:  # Parca refuses others.
        ids = [one(fields(entry), 1) for entry in profile.get(table, [])]
        if ids != list(range(1, len(ids) + 1)):
            sys.exit(f"pushed.py: the ids of field {table} are not 1, 2 ...")
    for sample in map(fields, profile.get(2, [])):
        label, mine = "-", set()
        if key == "duration":
            label = "none" if not one(profile, 10) else "some"
        for pair in map(fields, sample.get(3, [])):
            if strings[one(pair, 1)] in mine:
                sys.exit(f"pushed.py: {strings[one(pair, 1)]} stands twice")
            mine.add(strings[one(pair, 1)])
            keys.add(strings[one(pair, 1)])
            if strings[one(pair, 1)] == key:
                label = strings[one(pair, 2)]
        for kind, value in zip(types, numbers(sample[2])):
            for what in f"{name} {kind}", f"{name} {kind} {key}={label}":
                sums[what] = sums.get(what, 0) + value
    return one(profile, 9), one(profile, 12)


def read_ingest(name, body):
    """The labels of a request of /ingest, with the name that Pyroscope makes."""
    with open(name.removesuffix("body") + "head") as f:
        url = urllib.parse.urlsplit(f.readline().split()[1])
    query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
    if (query["format"] != "pprof" or len(query["from"]) != 10 or
            int(query["from"]) >= int(query["until"])):
        sys.exit(f"pushed.py: this is no query of /ingest: {query}")
    service, _, rest = query["name"].removesuffix("}").partition("{")
    pairs = dict(pair.split("=", 1) for pair in rest.split(","))
    pairs.setdefault("service_name", service)
    profile = fields(zlib.decompress(body, 31))
    types = [profile[6][one(fields(t), 1)].decode() for t in profile[1]]
    series = ("wall" if "wall" in types else
              "process_cpu" if "cpu" in types else "memory")
    return series, pairs


def read_series(engine, body):
    if engine == "pyroscope":
        for series in map(fields, fields(body).get(1, [])):
            yield map(fields, series.get(1, [])), series[2]
        return
    if body[0] != 0 or int.from_bytes(body[1:5], "big") != len(body) - 5:
        sys.exit("pushed.py: this is no gRPC message")
    for series in map(fields, fields(body[5:]).get(2, [])):
        yield map(fields, fields(one(series, 1)).get(1, [])), series[2]


keys = set()


def main():
    engine, key = sys.argv[1:3]
    sums, labels = {}, set()
    for name in sys.argv[3:]:
        with open(name, "rb") as f:
            body = f.read()
        if engine == "ingest":
            series, pairs = read_ingest(name, body)
            labels |= {f"{series} label {k} {v}" for k, v in pairs.items()}
            read_pprof(body, series, key, sums)
            continue
        if engine == "pprof":
            read_pprof(body, "-", key, sums)
            continue
        if engine == "otlp":
            found, resource = otlp.read(body, key)
            for (kind, value), total in found.items():
                for what in f"- {kind}", f"- {kind} {key}={value}":
                    sums[what] = sums.get(what, 0) + total
            labels |= {f"- label {k} {v}" for k, v in resource.items()}
            continue
        for pairs, samples in read_series(engine, body):
            pairs = {one(p, 1).decode(): one(p, 2).decode() for p in pairs}
            series = pairs.pop("__name__")
            labels |= {f"{series} label {k} {v}" for k, v in pairs.items()}
            for sample in map(fields, samples):
                read_pprof(one(sample, 1), series, key, sums)
    for what, total in sorted(sums.items()):
        print(what, total)
    print("\n".join(sorted(labels)))
    print("keys", *sorted(keys))


main()
