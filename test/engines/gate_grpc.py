"""Stands between ljprof push and Parca (gRPC), and notes what Parca has taken. Each
connection has one request.

  gate_grpc.py DIR URL     DIR/port tells its port when it listens

DIR/mode says what it does with the next request: the words of gate.py. DIR/log has a
line for each request: a hash of its body, and "taken" or "refused" as Parca answered;
"none", "kept" or "doubt" as in gate.py."""
import socket
import sys
import threading
import time
import urllib.parse

from gate_lib import begin, count, mode, note, put

address = urllib.parse.urlparse(sys.argv[2])
PREFACE, HEAD = 24, 9  # Bytes that begin a connection, and a frame.
DATA, HEADERS, END_STREAM = 0, 1, 1


def take(peer, n):
    """n bytes, or fewer at the end of the connection."""
    got = b""
    while len(got) < n:
        try:
            more = peer.recv(n - len(got))
        except OSError:
            more = b""
        if not more:
            break
        got += more
    return got


def frames(peer):
    """(type, flags, head, payload) of each whole frame of HTTP/2."""
    while len(head := take(peer, HEAD)) == HEAD:
        size = int.from_bytes(head[:3], "big")
        payload = take(peer, size)
        if len(payload) < size:
            break
        yield head[3], head[4], head, payload


class Request:
    def __init__(self, client):
        self.client = client
        self.engine = None
        self.body = b""
        self.whole = False  # Sent on to its end.
        self.answer = None  # "taken" or "refused", when it is complete.

    def end(self):
        for peer in (self.client, self.engine):
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except (OSError, AttributeError):
                pass

    def back(self):
        """Sends on what the engine says. An error has no data."""
        data = False
        for kind, flags, head, payload in frames(self.engine):
            data = data or kind == DATA
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.answer = "taken" if data else "refused"
            try:
                self.client.sendall(head + payload)
            except OSError:
                break
        self.end()

    def forth(self):
        """Sends on what the client says, or half of it."""
        half = mode() == "half"
        self.engine.sendall(take(self.client, PREFACE))
        for kind, flags, head, payload in frames(self.client):
            if kind == DATA:
                self.body += payload
            if half and kind == DATA:
                put("mode", "pass")
                self.engine.sendall(head + payload[:len(payload) // 2])
                count("half")
                return  # back() waits until the engine breaks.
            self.whole = self.whole or (kind == DATA and flags & END_STREAM)
            self.engine.sendall(head + payload)
        self.end()

    def serve(self):
        if mode() == "hold":
            count("held")
            while mode() == "hold":
                time.sleep(0.02)
            note(b"", "kept")
            self.end()
            return
        while mode() == "wait":
            time.sleep(0.02)
        try:
            self.engine = socket.create_connection((address.hostname, address.port))
        except OSError:
            note(b"", "none")
            self.end()
            return
        other = threading.Thread(target=self.back)
        other.start()
        try:
            self.forth()
        except OSError:
            pass
        other.join()
        note(self.body, self.answer or ("doubt" if self.whole else "kept"))


def main():
    begin(sys.argv[1])
    server = socket.create_server(("127.0.0.1", 0))
    put("port", str(server.getsockname()[1]))
    while True:
        client = server.accept()[0]
        threading.Thread(target=lambda c=client: Request(c).serve(), daemon=True).start()


main()
