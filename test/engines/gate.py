"""Stands between ljprof push and an engine (HTTP/1.1), and notes what the engine has
taken.

  gate.py DIR URL     DIR/port tells its port when it listens

What it does with the next request, DIR/mode says:
  pass     sends it on, and the answer back
  wait     keeps it until the mode changes, and sends it on then
  hold     keeps it until the mode changes, and sends nothing on; DIR/held tells how
           many times
  half     sends half of it on, waits until the engine's connection breaks, and then
           breaks the other one, too; DIR/half tells how many times. The next requests
           pass

DIR/log has a line for each request: a hash of its body, and the engine's answer (a
number); "none" if the engine cannot be reached; "kept" if it had nothing or a part of
it; "doubt" if it had all and did not answer."""
import http.client
import http.server
import sys
import time
import urllib.parse

from gate_lib import begin, count, mode, note, put

address = urllib.parse.urlparse(sys.argv[2])


class Gate(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def break_off(self, body, outcome):
        note(body, outcome)
        self.close_connection = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if mode() == "hold":
            count("held")
            while mode() == "hold":
                time.sleep(0.02)
            self.break_off(body, "kept")
            return
        while mode() == "wait":
            time.sleep(0.02)
        engine = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
        try:
            engine.connect()
        except OSError:
            self.break_off(body, "none")
            return
        engine.putrequest("POST", self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            engine.putheader(name, value)
        engine.endheaders()
        if mode() == "half":
            put("mode", "pass")
            engine.send(body[:len(body) // 2])
            count("half")
            try:
                engine.sock.recv(1)
            except OSError:
                pass
            self.break_off(body, "kept")
            return
        try:
            engine.send(body)
            answer = engine.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            print("gate: no answer:", repr(error), file=sys.stderr)
            self.break_off(body, "doubt")
            return
        note(body, answer.status)
        try:
            self.answer(answer, content)
        except OSError:  # The pusher has gone meanwhile.
            self.close_connection = True

    def answer(self, answer, content):
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() in ("content-type", "retry-after", "grpc-status"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main():
    begin(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    server.daemon_threads = True
    put("port", str(server.server_port))
    server.serve_forever()


main()
