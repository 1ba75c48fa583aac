# A program that listens and does what our library would not do. Usage:
# join_liar.py SOCKET WHAT: serves clients until it is killed.
import array
import os
import socket
import struct
import sys
import time

HELLO, START, STOP, VMS, HEAP = 1, 2, 3, 10, 11
WELCOME, ERROR, STARTED, STOPPED, ENDED, PING, VM_LIST = 33, 34, 35, 36, 38, 39, 44
COPIED, HEAP_DONE, SEGMENTS = 45, 46, 48
path, what = sys.argv[1:]


def text(value):
    return struct.pack("<H", len(value)) + value


def numbers(*values):
    return struct.pack("<%dQ" % len(values), *values)


class Liar:
    def __init__(self, s):
        self.s = s
        self.number = os.getpid()

    def send(self, kind, body=b"", serial=0):
        self.s.send(struct.pack("<HHII", kind, 3, serial, len(body)) + body)

    def serve(self):
        """Answers each request by the method of its name, or as usual."""
        while True:
            data, control, _, _ = self.s.recvmsg(4096, 256)
            if not data:
                return
            self.fds = array.array("i")
            for _, _, part in control:
                self.fds.frombytes(part[:len(part) // 4 * 4])
            kind, _, self.serial, _ = struct.unpack("<HHII", data[:12])
            if kind == HELLO:
                self.hello()
            elif kind == START:
                self.send(STARTED, serial=self.serial)
                self.started()
            elif kind == STOP:
                self.stop()
            elif kind in (VMS, HEAP):
                getattr(self, "vms" if kind == VMS else "heap")(data[12:])
            for fd in self.fds:
                os.close(fd)

    def hello(self):
        self.send(WELCOME, numbers(3, self.number, 1, 0) + text(b"x"), self.serial)

    def started(self):
        pass

    def stop(self):
        self.send(STOPPED, numbers(0, 0, 0, 0), self.serial)


class StopError(Liar):
    def stop(self):
        self.send(ERROR, text(b"the disk is gone"), self.serial)


class StopEnded(Liar):
    def stop(self):
        self.send(ENDED, numbers(0, 0, 0) + text(b"the disk is gone"))


class Wrong(Liar):
    def started(self):
        self.s.send(b"nonsense")


class Number(Liar):
    def __init__(self, s):
        super().__init__(s)
        self.number = 2**40

    def started(self):
        self.send(ENDED, numbers(0, 0, 0) + text(b""))


class Vms(Liar):
    """Has so many VMs, and copies none of them."""
    count, list = 2, b"1 2"

    def vms(self, _):
        self.send(VM_LIST, numbers(self.count) + text(self.list), self.serial)

    def heap(self, body):
        self.send(ERROR, text(b"not VM %d" % struct.unpack("<Q", body[:8])),
                  self.serial)


class ManyVms(Vms):
    count = 700


class NoVms(Vms):
    count, list = 0, b""


class Segments(Liar):
    def started(self):
        self.send(SEGMENTS, numbers(0, 1))
        time.sleep(0.3)
        self.send(ENDED, numbers(0, 0, 0) + text(b""))


KINDS = {"stop_error": StopError, "stop_ended": StopEnded, "wrong": Wrong,
         "vms": Vms, "many_vms": ManyVms, "no_vms": NoVms, "number": Number, "segments": Segments}
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.bind(path + ".new")
door.listen(4)
os.rename(path + ".new", path)
while True:
    connection, _ = door.accept()
    try:
        KINDS[what](connection).serve()
    except (BrokenPipeError, ConnectionResetError):
        pass
    connection.close()
