# Clients of a door that mean no good. Usage: listen_clients.py SOCKET WHAT...
import array
import os
import socket
import struct
import sys
import time

path = sys.argv[1]


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.settimeout(20)
    return s


def head(kind, size, version=3):
    return struct.pack("<HHII", kind, version, 1, size)


def pass_fds(s, data, count):
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                        array.array("i", fds))])
    for fd in fds:
        os.close(fd)


def answer(s):
    """The text of an error; "" if the connection was closed without one."""
    try:
        data = s.recv(4096)
    except ConnectionResetError:
        data = s.recv(4096)
    if not data:
        return ""
    kind, _, _, size = struct.unpack("<HHII", data[:12])
    assert kind == 34 and size == len(data) - 12, data
    return data[14:].decode()


def garbage():
    hello = head(1, 8) + struct.pack("<Q", os.getpid())
    for data, fds, wanted in (
            (b"x", 0, "impossible size"),
            (b"\0" * 4096, 0, "another version"),
            (b"\xff" * 5000, 0, "too long"),
            (head(99, 0), 0, "unknown type"),
            (head(1, 8, 7) + b"\0" * 8, 1, "another version"),
            (hello, 0, "number of descriptors"),
            (hello, 2, "number of descriptors"),
            (hello, 5, "too many descriptors"),
            (hello, 253, "too many descriptors"),
            (hello[:-1], 1, "length is wrong"),
            (head(4, 0), 0, "before the first one")):
        s = connect()
        if fds:
            pass_fds(s, data, fds)
        else:
            s.send(data)
        text = answer(s)
        assert wanted in text, (data[:20], fds, text)
        s.close()
    for _ in range(50):
        connect().close()
        s = connect()
        s.send(hello)
        s.close()


def silent():
    begin = time.monotonic()
    assert answer(connect()) == ""
    assert 1.5 < time.monotonic() - begin < 10, time.monotonic() - begin


def many():
    # Four of them stay, the others go.
    open_still = [connect() for _ in range(100)]
    end = time.monotonic() + 60
    while len(open_still) > 4:
        assert time.monotonic() < end, len(open_still)
        time.sleep(0.1)
        for s in list(open_still):
            s.setblocking(False)
            try:
                assert s.recv(1) == b""
                open_still.remove(s)
            except BlockingIOError:
                pass


def flood():
    # 100 at any time; who is sent away comes again.
    crowd = [connect() for _ in range(100)]
    print("here", flush=True)
    while True:
        for i, s in enumerate(crowd):
            s.setblocking(False)
            try:
                if s.recv(1) == b"":
                    s.close()
                    crowd[i] = connect()
            except BlockingIOError:
                pass


def stream():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.bind(path)
    s.listen()
    time.sleep(60)


for what in sys.argv[2:]:
    globals()[what]()
