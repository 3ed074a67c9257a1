# SPDX-License-Identifier: Apache-2.0
"""A server that does to a client what a test says: whole answers, or any bytes, cuts and silence.

    server.on("GET", "/v1/whoami", {"name": "ada"})                      # the body of a 200
    server.on("GET", "/v1/whoami", problem(503, "unavailable"), once=True)
    server.on("POST", "/v1/.*", function)                                # called with an Exchange
"""
import json
import re
import socket
import threading
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

SERVER = {"product": "maitento", "version": "0.1.0", "apiVersion": 1}


def problem(status, code, detail="no", headers=None, **more):
    body = {"type": "about:blank", "title": code, "status": status, "code": code, "detail": detail, "help": "", **more}
    return lambda x: x.answer(body, status, headers)


@dataclass
class Exchange:
    """A request, and the means to answer it."""

    method: str
    target: str
    headers: dict
    body: bytes
    socket: object
    server: object
    closed: bool = False
    path: str = field(init=False)
    query: dict = field(init=False)

    def __post_init__(self):
        split = urlsplit(self.target)
        self.path, self.query = split.path, dict(parse_qsl(split.query, keep_blank_values=True))

    @property
    def json(self):
        return json.loads(self.body)

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def answer(self, body=None, status=200, headers=None, length=None):
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        head = {"Content-Length": len(raw) if length is None else length, **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items() if value is not None)
        self.send(f"HTTP/1.1 {status} So\r\n{lines}\r\n".encode() + raw)

    def cut(self):
        """Ends the connection."""
        self.closed = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    # ---- events ----

    def stream(self, after=0):
        """Begins an event stream."""
        self.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.event("hello", {"after": after, "heartbeatSeconds": 15}, after)

    def event(self, name, data, number=None):
        text = (f"id: {number}\n" if number is not None else "") + f"event: {name}\ndata: {json.dumps(data)}\n\n"
        self.send(b"%x\r\n%b\r\n" % (len(text.encode()), text.encode()))

    def change(self, number, kind="command", change="ended", id="c1", **more):
        data = {
            "number": number,
            "date": "2026-11-30T04:51:17.123456Z",
            "kind": kind,
            "change": change,
            "id": id,
            "namespace": "work",
            "runId": "r1",
            "name": None,
            "status": "Finished",
            "endReason": "exited",
            "exitCode": 0,
            **more,
        }
        self.event("change", data, number)

    def beat(self):
        """A sign of life."""
        self.send(b"4\r\n: \n\n\r\n")

    def finish(self):
        self.send("0\r\n\r\n")


class Scripted:
    def __init__(self, tls=None):
        self.tls = tls  # an ssl.SSLContext
        self.seen = []
        self._rules = []
        self._came = threading.Condition()
        self._open = set()
        self.connections = self.most = 0
        self.port = None
        self.start()
        self.on("GET", "/v1/server", SERVER)

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def on(self, method, path, what, once=False):
        """What answers from now on; of several that fit the newest."""
        rule = [method, re.compile(path), what, once]
        with self._came:
            self._rules.insert(0, rule)

    def asked(self, path, method=None):
        with self._came:
            return [x for x in self.seen if re.fullmatch(path, x.path) and method in (None, x.method)]

    def wait_for(self, path, count=1, method=None, seconds=20):
        """The requests for a path, when there are so many."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.asked(path, method)) >= count, seconds), f"no {path}"
        return self.asked(path, method)

    # ---- sockets ----

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port or 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """Away, with all its connections."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()

    def cut(self):
        with self._came:
            gone = list(self._open)
        for connection in gone:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._came:
            self._open.add(connection)
            self.connections += 1
            self.most = max(self.most, len(self._open))
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as file:
                while self._one(connection, file):
                    pass
        except OSError:
            pass
        finally:
            with self._came:
                self._open.discard(connection)

    def _one(self, connection, file):
        first = file.readline().decode("latin-1").split()
        if len(first) != 3:
            return False
        headers = {}
        while (line := file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        exchange = Exchange(first[0], first[1], headers, None, connection, self)
        with self._came:
            rule = next((r for r in self._rules if r[0] == first[0] and r[1].fullmatch(exchange.path)), None)
            if rule and rule[3]:
                self._rules.remove(rule)
        what = rule[2] if rule else problem(404, "notFound", f"no route {exchange.path}")
        if not getattr(what, "reads_itself", False):
            exchange.body = self._body(file, headers)
        with self._came:
            self.seen.append(exchange)
            self._came.notify_all()
        if callable(what):
            what(exchange)
        else:
            exchange.answer(what)
        return not exchange.closed

    @staticmethod
    def _body(file, headers):
        if headers.get("transfer-encoding") != "chunked":
            return file.read(int(headers.get("content-length", 0)))
        data = b""
        while size := int(file.readline(), 16):
            data += file.read(size)
            file.readline()
        file.readline()
        return data
