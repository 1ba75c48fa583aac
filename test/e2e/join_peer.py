# Clients that have been let in, and do what ljprof would not do. Usage:
# join_peer.py SOCKET WHAT...
import array
import os
import random
import select
import socket
import struct
import sys
import time

HELLO, START, STOP, STATUS, BYE, MARK, SEGMENT, PROC = 1, 2, 3, 4, 5, 6, 16, 17
WELCOME, ERROR, STARTED, STOPPED, STATE, ENDED, PING = 33, 34, 35, 36, 37, 38, 39
path = sys.argv[1]


def pack(kind, body=b"", serial=1):
    return struct.pack("<HHII", kind, 3, serial, len(body)) + body


def text(value):
    return struct.pack("<H", len(value)) + value


def numbers(*values):
    return struct.pack("<%dQ" % len(values), *values)


class Client:
    def __init__(self, pid=None):
        # Four clients that have gone may still be ending their sessions.
        for _ in range(100):
            kind, body = self.join(os.getpid() if pid is None else pid)
            if b"four clients have joined" not in body:
                break
            self.s.close()
            time.sleep(0.1)
        assert kind == WELCOME, (kind, body)

    def join(self, pid):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.connect(path)
        pidfd = os.pidfd_open(os.getpid())
        self.send(HELLO, numbers(pid), [pidfd])
        os.close(pidfd)
        return self.hear()

    def send(self, kind, body=b"", fds=()):
        self.raw(pack(kind, body), fds)

    def raw(self, data, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        self.s.sendmsg([data], control if fds else [])

    def hear(self, seconds=20):
        """The next message but PING; (None, b"") if the other side has closed."""
        until = time.monotonic() + seconds
        while True:
            self.s.settimeout(max(until - time.monotonic(), 0.01))
            try:
                data = self.s.recv(4096)
            except ConnectionResetError:
                return None, b""
            if not data:
                return None, b""
            kind, version, _, size = struct.unpack("<HHII", data[:12])
            assert version == 3 and size == len(data) - 12, data
            if kind != PING:
                return kind, data[12:]

    def expect(self, kind, part=b""):
        got, body = self.hear()
        assert got == kind and part in body, (kind, part, got, body)

    def start(self, options, fd):
        self.send(START, text(options + b";path=/nowhere"), [fd])

    def close(self):
        self.s.close()


def scratch():
    return os.open("peer.ljp", os.O_RDWR | os.O_CREAT | os.O_TRUNC)


def wrong_requests():
    """Each is refused in one message, and the client stays."""
    fd = scratch()
    c = Client()
    for options, why in (
            (b"cpu.interval=0", b"cannot be '0'"),
            (b"cpu.interval=nan", b"cannot be 'nan'"),
            (b"cpu.interval=1e999", b"cannot be"),
            (b"cpu.signal=9", b"cannot be '9'"),
            (b"cpu.event=x", b"cannot be 'x'"),
            (b"rotate_bytes=1", b"cannot be '1'"),
            (b"rotate_seconds=-1", b"cannot be '-1'"),
            (b"duration=0", b"cannot be '0'"),
            (b"room=1", b"cannot be '1'"),
            (b"nothing=1", b"does not know option 'nothing'"),
            (b"x" * 3000, b"has no value"),
            (b"a=" + b"b" * 3000, b"does not know"),
            (b";;;", b"has no value")):
        c.start(options, fd)
        c.expect(ERROR, why)
    c.send(START, text(b""), [fd])
    c.expect(ERROR, b"names no path")
    c.send(STOP, numbers(0))
    c.expect(ERROR, b"does not record")
    c.send(MARK, text(b"x"))
    c.expect(ERROR, b"no session runs")
    c.send(SEGMENT, numbers(1), [fd])  # nobody has asked for it: no answer
    for folder in "/", "/proc/self", "/proc/1/task", "/proc", "/proc":
        c.send(PROC, b"", [os.open(folder, os.O_RDONLY)])  # no answer, either
    c.send(STATUS)
    c.expect(STATE)
    c.close()


def wrong_outputs():
    """A session needs a descriptor that can be written."""
    read, write = os.pipe()
    os.close(read)
    for fd in (os.open("/dev/null", os.O_RDONLY), os.open(".", os.O_RDONLY),
               os.open(".", os.O_PATH), os.open("/dev/full", os.O_WRONLY), write,
               os.pidfd_open(os.getpid())):
        c = Client()
        c.start(b"flush=10", fd)
        kind, body = c.hear()
        assert kind in (ERROR, STARTED), (kind, body)
        if kind == STARTED:
            c.expect(ENDED)
        c.send(STATUS)
        c.expect(STATE)
        c.close()


def wrong_segments():
    """A segment that was not asked for, or is none, is not written to."""
    fd, other = scratch(), os.open("other.ljp", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    c = Client()
    c.start(b"flush=10;rotate_seconds=0.3", fd)
    c.expect(STARTED)
    for number in (0, 1, 2, 7, 2**32, 2**32 + 1, 2**64 - 1):
        c.send(SEGMENT, numbers(number), [other])
    kind, body = c.hear()
    assert kind == 48 and struct.unpack("<2Q", body) == (0, 1), (kind, body)
    time.sleep(0.5)
    assert os.fstat(other).st_size == 0
    c.send(SEGMENT, numbers(1), [os.open("/dev/null", os.O_RDONLY)])
    time.sleep(1)
    c.send(STOP, numbers(0))
    while True:
        kind, body = c.hear()
        if kind in (STOPPED, ENDED):
            break
        assert kind in (48, ERROR), (kind, body)
    c.close()


def two_starts():
    fd = scratch()
    c = Client()
    c.start(b"flush=10", fd)
    c.start(b"flush=10", fd)
    c.expect(STARTED)
    c.expect(ERROR, b"records already")
    d = Client()
    d.start(b"flush=10", fd)
    d.expect(ERROR, b"running already")
    d.send(STOP, numbers(0))
    d.expect(ERROR, b"does not record")
    d.close()
    c.send(STOP, numbers(0))
    c.expect(STOPPED)
    c.close()


def noise():
    """Messages whose bytes were changed: never more than an end of the talk."""
    seed = random.Random(7)
    fd = scratch()
    good = [pack(START, text(b"flush=10;path=/x")), pack(STOP, numbers(1)),
            pack(STATUS), pack(MARK, text(b"mark")), pack(SEGMENT, numbers(1)),
            pack(PROC),
            pack(BYE), pack(HELLO, numbers(1))]
    for _ in range(150):
        c = Client()
        data = bytearray(seed.choice(good))
        for _ in range(seed.randrange(4)):
            data[seed.randrange(len(data))] = seed.randrange(256)
        if seed.randrange(3) == 0:
            data = data[:seed.randrange(len(data) + 1)]
        if data:
            c.raw(bytes(data), [fd] * seed.randrange(3))
        if seed.randrange(2):
            try:
                c.hear(0.05)
            except TimeoutError:
                pass
        c.close()


def strangers():
    """Who says that it is another process is believed no more than that."""
    fd = scratch()
    for pid in (0, 2**31, 2**32, 2**32 + 1, 2**64 - 1):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(path)
        pidfd = os.pidfd_open(os.getpid())
        s.sendmsg([pack(HELLO, numbers(pid))], [(
            socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [pidfd]))])
        assert b"without a number" in s.recv(4096), pid
    for pid in (1, 2**31 - 1):
        c = Client(pid)
        c.start(b"flush=10", fd)
        c.expect(STARTED)
        c.send(STATUS)
        c.expect(STATE)
        c.close()
        time.sleep(0.5)


def five():
    clients = [Client() for _ in range(4)]
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    pidfd = os.pidfd_open(os.getpid())
    s.sendmsg([pack(HELLO, numbers(1))],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [pidfd]))])
    assert b"four clients" in s.recv(4096)
    for c in clients:
        c.send(BYE)
        assert c.hear() == (None, b"")


def count_waiting(c):
    """How many messages wait to be read; how many of them are ENDED."""
    c.s.setblocking(False)
    count = ended = 0
    while True:
        try:
            data = c.s.recv(4096)
        except BlockingIOError:
            return count, ended
        if not data:
            return count, ended
        count += 1
        ended += struct.unpack("<H", data[:2])[0] == ENDED


def ask_unread(c, count):
    for _ in range(count):
        c.send(STATUS)
        # The answers fill one direction only.
        while not select.select([], [c.s], [], 1)[1]:
            pass
    time.sleep(0.7)


def unread():
    """A client that was stopped for long finds that its session has ended."""
    fd = scratch()
    c = Client()
    ask_unread(c, 3000)
    room, _ = count_waiting(c)
    c.close()
    assert 20 < room < 3000, room
    c = Client()
    c.start(b"flush=10;duration=12", fd)
    c.expect(STARTED)
    # All but the room for some pings.
    ask_unread(c, room - 5)
    time.sleep(13)
    count, ended = count_waiting(c)
    print("room for %d answers; %d messages waited" % (room, count))
    assert ended == 1, (room, count, ended)
    c.close()


for what in sys.argv[2:]:
    globals()[what]()
