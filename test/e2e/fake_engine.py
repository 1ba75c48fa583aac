"""A server that behaves as it is told: the engines' side of ljprof push.

  fake_engine.py DIR [CERT KEY]

It listens on a free port of 127.0.0.1, which it writes to DIR/port. Each request
is kept as DIR/N.head (its first line and headers; over HTTP/2: nothing) and
DIR/N.body. DIR/plan has a word for each request to come; after these, and without
that file, every request is taken:

  ok          taken               STATUS        this HTTP status; 429:2 with
  late        taken after 0.5 s                 Retry-After: 2
  grpc:N      gRPC status N       html          200 with a page
  hang        no answer           garbage       bytes that are no HTTP
  taken-close taken, but closed without an answer
  close       closed at once      huge          an endless 500
  302         points to itself    partial       OTLP: one profile is refused

A request that was taken is also in DIR/taken, a line with its number each.
"""
import os
import socket
import ssl
import struct
import sys
import threading
import time

TYPES = {"/push.v1.PusherService/Push": "application/proto",
         "/v1development/profiles": "application/x-protobuf",
         "/ingest": None}  # It answers without a type.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DIR = sys.argv[1]
lock = threading.Lock()
count = 0


def path(name):
    return os.path.join(DIR, name)


def arrive(head, body):
    """Keeps a request. Its number and what the plan says."""
    global count
    with lock:
        count += 1
        number = count
        for suffix, data in ("head", head), ("body", body):
            with open(path(f"{number}.{suffix}"), "wb") as f:
                f.write(data)
        plan = []
        if os.path.exists(path("plan")):
            with open(path("plan")) as f:
                plan = f.read().split()
        if plan:
            with open(path("plan"), "w") as f:
                f.write("\n".join(plan[1:]))
        return number, plan[0] if plan else "ok"


def take(number):
    with lock, open(path("taken"), "a") as f:
        f.write(f"{number}\n")


def answer(connection, status, headers, body=b""):
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}"] + headers
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def respond(connection, number, word, where):
    """HTTP/1.1. True: the connection stays."""
    status, _, wait = word.partition(":")
    where = where.partition("?")[0]
    kind = [f"Content-Type: {TYPES.get(where, 'text/plain')}"]
    if where == "/ingest":
        kind = []
    if word in ("ok", "late", "taken-close"):
        if where not in TYPES:
            answer(connection, 404, [], b"no such path")
            return True
        take(number)
        if word == "taken-close":
            return False
        if word == "late":
            time.sleep(0.5)
        answer(connection, 200, kind)
    elif status.isdigit():
        more = [f"Retry-After: {wait}"] if wait else []
        if status[0] == "3":
            more.append(f"Location: {where}/elsewhere")
        answer(connection, int(status), more + ["Content-Type: text/plain"],
               b"because\nof the plan \x1b[31m")
    elif word == "partial":
        refusal = b"\x08\x01\x12\x03bad"
        answer(connection, 200, kind,
               b"\x0a" + bytes([len(refusal)]) + refusal)
    elif word == "html":
        answer(connection, 200, ["Content-Type: text/html"], b"<html>log in")
    elif word == "garbage":
        connection.sendall(bytes(range(256)) * 9)
        return False
    elif word == "huge":
        connection.sendall(b"HTTP/1.1 500 x\r\n\r\n")
        for _ in range(10000):
            connection.sendall(b"x" * 1000)
        return False
    elif word == "hang":
        time.sleep(60)
        return False
    else:
        return False
    return True


def serve_http1(connection, data):
    while True:
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return
            data += more
        head, _, data = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(data) < length:
            more = connection.recv(65536)
            if not more:
                return
            data += more
        body, data = data[:length], data[length:]
        number, word = arrive(head, body)
        if not respond(connection, number, word, head.split()[1].decode()):
            return


def frame(kind, flags, stream, data=b""):
    return (struct.pack(">I", len(data))[1:] + bytes([kind, flags]) +
            struct.pack(">I", stream) + data)


def headers(pairs):
    """HPACK: literals, without a table or Huffman's code."""
    out = b""
    for name, value in pairs:
        out += b"\0"
        for text in name, value:
            out += bytes([len(text)]) + text.encode()
    return out


def respond2(connection, stream, word, number):
    """HTTP/2 with gRPC's trailers. True: the connection stays."""
    if word in ("ok", "late", "taken-close"):
        take(number)
    if word == "late":
        time.sleep(0.5)
    if word == "hang":
        time.sleep(60)
    if word in ("close", "taken-close", "hang"):
        return False
    if word == "garbage":
        connection.sendall(bytes(range(256)) * 9)
        return False
    if word.isdigit():
        connection.sendall(frame(1, 5, stream, headers([(":status", word)])))
        return True
    code = word.partition(":")[2] if word.startswith("grpc:") else "0"
    connection.sendall(
        frame(1, 4, stream, headers([(":status", "200"),
                                     ("content-type", "application/grpc")])) +
        (b"" if code != "0" else frame(0, 0, stream, bytes(5))) +
        frame(1, 5, stream, headers([("grpc-status", code),
                                     ("grpc-message", "because")])))
    return True


def serve_http2(connection, data):
    def need(size):
        nonlocal data
        while len(data) < size:
            more = connection.recv(65536)
            if not more:
                raise ConnectionError
            data += more
        part, data = data[:size], data[size:]
        return part

    need(len(PREFACE))
    connection.sendall(frame(4, 0, 0) +
                       frame(8, 0, 0, struct.pack(">I", 1 << 30)))
    bodies = {}
    while True:
        head = need(9)
        length = int.from_bytes(head[:3], "big")
        kind, flags = head[3], head[4]
        stream = int.from_bytes(head[5:], "big")
        payload = need(length)
        if kind == 4 and not flags & 1:
            connection.sendall(frame(4, 1, 0))
        elif kind == 6 and not flags & 1:
            connection.sendall(frame(6, 1, 0, payload))
        elif kind == 1:
            bodies[stream] = b""
            connection.sendall(
                frame(8, 0, stream, struct.pack(">I", 1 << 30)))
        elif kind == 0:
            bodies[stream] = bodies.get(stream, b"") + payload
        if kind in (0, 1) and flags & 1:
            number, word = arrive(b"", bodies.pop(stream))
            if not respond2(connection, stream, word, number):
                return


def serve(connection, context):
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        data = b""
        while len(data) < len(PREFACE) and PREFACE.startswith(data[:24]):
            more = connection.recv(65536)
            if not more:
                return
            data += more
        if data.startswith(PREFACE):
            serve_http2(connection, data)
        else:
            serve_http1(connection, data)
    except (OSError, ssl.SSLError):
        pass
    finally:
        connection.close()


def main():
    context = None
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
    listener = socket.create_server(("127.0.0.1", 0))
    with open(path("port.new"), "w") as f:
        f.write(str(listener.getsockname()[1]))
    os.rename(path("port.new"), path("port"))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, context),
                         daemon=True).start()


main()
