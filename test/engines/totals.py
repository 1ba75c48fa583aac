"""Totals of a value, and by the innermost function, of a profile: what an engine
has, or what files have. Prints "total N", then "N FUNCTION" in order.

  totals.py pyroscope URL TYPE SELECTOR
  totals.py parca URL TYPE SELECTOR
  totals.py files VALUE KEY=LABEL|- FILE...     (pprof; of the samples with the label)
"""
import json
import os
import sys
import time
import urllib.parse
import urllib.request
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
from wire import fields, numbers, one  # noqa: E402

HOUR_MS = 3600 * 1000


def show(sums):
    print("total", sum(sums.values()))
    for name, value in sorted(sums.items()):
        if value:
            print(value, name)


def add_pprof(data, value, wanted, sums):
    """value: the name of a type; None: the only one."""
    profile = fields(data)
    strings = [s.decode() for s in profile[6]]
    types = [strings[one(fields(t), 1)] for t in profile.get(1, [])]
    functions = {one(fields(f), 1): strings[one(fields(f), 2)]
                 for f in profile.get(5, [])}
    leaf = {}
    for place in map(fields, profile.get(4, [])):
        line = place.get(4)
        leaf[one(place, 1)] = functions[one(fields(line[0]), 1)] if line else "?"
    if value and value not in types:
        return
    at = types.index(value) if value else 0
    for sample in map(fields, profile.get(2, [])):
        labels = {strings[one(p, 1)] + "=" + strings[one(p, 2)]
                  for p in map(fields, sample.get(3, []))}
        if wanted != "-" and wanted not in labels:
            continue
        name = leaf[numbers(sample[1])[0]] if 1 in sample else "?"
        sums[name] = sums.get(name, 0) + numbers(sample[2])[at]


def pyroscope(url, kind, selector):
    now = int(time.time() * 1000)
    request = urllib.request.Request(
        url + "/querier.v1.QuerierService/SelectMergeProfile",
        json.dumps({"profileTypeID": kind, "labelSelector": selector,
                    "start": now - HOUR_MS, "end": now + HOUR_MS}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        profile = json.load(response)
    strings = profile.get("stringTable", [""])
    functions = {f["id"]: strings[int(f["name"])]
                 for f in profile.get("function", [])}
    leaf = {p["id"]: functions[p["line"][0]["functionId"]]
            for p in profile.get("location", [])}
    sums = {}
    for sample in profile.get("sample", []):
        name = leaf[sample["locationId"][0]] if "locationId" in sample else "?"
        sums[name] = sums.get(name, 0) + int(sample["value"][0])
    return sums


def parca(url, kind, selector):
    """Its HTTP gateway: a merged profile as pprof."""
    now = int(time.time())
    stamp = "%Y-%m-%dT%H:%M:%SZ"
    request = urllib.request.Request(
        url + "/api/profiles/query?" + urllib.parse.urlencode({
            "mode": "MODE_MERGE", "report_type": "REPORT_TYPE_PPROF",
            "merge.query": kind + selector,
            "merge.start": time.strftime(stamp, time.gmtime(now - 3600)),
            "merge.end": time.strftime(stamp, time.gmtime(now + 3600))}))
    with urllib.request.urlopen(request, timeout=60) as response:
        import base64
        data = base64.b64decode(json.load(response)["pprof"])
    sums = {}
    if data[:2] == b"\x1f\x8b":
        data = zlib.decompress(data, 31)
    add_pprof(data, None, "-", sums)
    return sums


def main():
    if sys.argv[1] == "files":
        sums = {}
        for name in sys.argv[4:]:
            with open(name, "rb") as f:
                add_pprof(zlib.decompress(f.read(), 31), sys.argv[2],
                          sys.argv[3], sums)
        show(sums)
    else:
        show({"pyroscope": pyroscope, "parca": parca}[sys.argv[1]](
            *sys.argv[2:5]))


main()
