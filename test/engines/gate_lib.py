"""What the gates between ljprof push and an engine share: they do what a file of their
folder says, and note there what has become of each request."""
import hashlib
import os
import threading

lock = threading.Lock()
counts = {"half": 0, "held": 0}
folder = ""


def put(name, text):
    with open(f"{folder}/.{name}", "w") as f:
        f.write(text)
    os.rename(f"{folder}/.{name}", f"{folder}/{name}")


def mode():
    with open(f"{folder}/mode") as f:
        return f.read().strip()


def count(name):
    with lock:
        counts[name] += 1
        put(name, str(counts[name]))


def note(body, outcome):
    with lock, open(f"{folder}/log", "a") as f:
        f.write(f"{hashlib.sha256(body).hexdigest()[:32]} {outcome}\n")


def begin(where):
    global folder
    folder = where
    for name in counts:
        put(name, "0")
    put("mode", "pass")
