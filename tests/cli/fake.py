# SPDX-License-Identifier: Apache-2.0
"""A server made of paper for the tests of mt: just enough of the API, in memory, on a Unix socket,
and able to lie: list hostile names, cut answers, be away for a while."""
import json
import os
import re
import socket
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, unquote, unquote_to_bytes, urlsplit

NOW = "2026-11-30T04:51:17.123456Z"


class Problem(Exception):
    def __init__(self, status, code, detail, headers=None, **more):
        super().__init__(detail)
        self.body = {"type": "about:blank", "title": code, "status": status, "code": code,
                     "detail": detail, **more}
        self.status = status
        self.headers = headers or {}


class Cut(Exception):
    """The connection ends here, without an answer."""


class Request:
    def __init__(self, handler, body):
        split = urlsplit(handler.path)
        self.method = handler.command
        self.path = split.path
        self.raw_query = split.query
        self.query = dict(parse_qsl(split.query, keep_blank_values=True, errors="surrogateescape"))
        self.headers = handler.headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "unix"

    def read_body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self):
        if self.headers.get("Expect") == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        request = Request(self, self.read_body())
        fake = self.server.fake
        fake.requests.append(request)
        try:
            status, body, headers = fake.handle(request)
        except Problem as problem:
            status, body = problem.status, json.dumps(problem.body).encode()
            headers = {"Content-Type": "application/problem+json", **problem.headers}
        except Cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204 and "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer


class Quiet:
    """Clients that leave in the middle are what some tests are about."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class UnixServer(Quiet, socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


class TcpServer(Quiet, socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Fake:
    def __init__(self, path):
        self.path = str(path)
        self.requests = []
        self.overrides = []  # (method, regex, function(request, match))
        self.namespaces = {"work": {}}  # name -> vfs name -> {bytes path: bytes | None | ("link", target)}
        self.default = "work"
        self.capsules = {"report": True, "bench": False}  # name -> autoTerminate
        self.runs = []
        self.commands = []
        self.told, self.story_part = {}, 1000
        self.deployed = None
        self.server = self.tcp = None
        self.life = threading.Lock()  # some tests stop it from another thread

    # ---- life ----

    def start(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.server = UnixServer(self.path, Handler)
        self.server.fake = self
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def start_tcp(self, tls=None):
        """The same on a port of the loopback, which it returns; with tls an ssl.SSLContext."""
        self.tcp = TcpServer(("127.0.0.1", 0), Handler)
        self.tcp.fake = self
        if tls:
            self.tcp.socket = tls.wrap_socket(self.tcp.socket, server_side=True)
        threading.Thread(target=self.tcp.serve_forever, args=(0.02,), daemon=True).start()
        return self.tcp.server_address[1]

    def stop(self):
        with self.life:
            if self.tcp:
                self.tcp.shutdown()
                self.tcp.server_close()
                self.tcp = None
            if self.server:
                self.server.shutdown()
                self.server.server_close()
                self.server = None
                os.unlink(self.path)

    def on(self, method, pattern, function):
        self.overrides.insert(0, (method, re.compile(pattern), function))

    def asked(self, method, pattern):
        return [r for r in self.requests if r.method == method and re.search(pattern, r.path)]

    def await_asked(self, method, pattern, seconds=30):
        """Waits until a client has asked so."""
        deadline = time.monotonic() + seconds
        while not self.asked(method, pattern):
            assert time.monotonic() < deadline, f"nobody asked {method} {pattern} in {seconds} s"
            time.sleep(0.02)

    # ---- routes ----

    def handle(self, r):
        for method, pattern, function in self.overrides:
            match = pattern.fullmatch(r.path)
            if match and method == r.method:
                result = function(r, match)
                if result is not None:
                    return self.pack(result)
        parts = [unquote(p) for p in r.path.split("/")[1:]]
        if parts[:2] == ["v1", "namespaces"] and len(parts) >= 5 and parts[3] == "vfs":
            return self.pack(self.vfs_route(r, parts))
        function = getattr(self, f"{r.method.lower()}_{'_'.join(p.replace('-', '_') for p in parts[1:2])}", None)
        if not function:
            raise Problem(404, "notFound", f"no route {r.path}")
        return self.pack(function(r, parts[2:]))

    @staticmethod
    def pack(result):
        if isinstance(result, tuple) and isinstance(result[1], bytes):
            return result if len(result) == 3 else (*result, {})
        status, body = result if isinstance(result, tuple) else (200, result)
        if body is None:
            return 204, b"", {}
        return status, json.dumps(body).encode(), {"Content-Type": "application/json"}

    @staticmethod
    def page(r, items):
        at, limit = int(r.query.get("after", 0)), min(int(r.query.get("limit", 100)), 1000)
        more = at + limit < len(items)
        return {"items": items[at:at + limit], "next": str(at + limit) if more else None}

    def get_health(self, r, _):
        return {"status": "ok", "version": "0.1.0"}

    def get_server(self, r, _):
        return 200, {"product": "maitento", "version": "0.1.0", "apiVersion": 1}

    def get_whoami(self, r, _):
        auth = r.headers.get("Authorization")
        if auth not in (None, "Bearer mt_good"):
            raise Problem(401, "unauthenticated", "this key is not known")
        return {"id": "u1", "name": "ada", "role": "user", "via": "key" if auth else "socket",
                "defaultNamespace": self.default}

    def get_doctor(self, r, _):
        return {"checks": [{"name": "store", "status": "ok", "detail": "fine", "remedy": None},
                           {"name": "runner", "status": "failed", "detail": "not there\x1b[31m",
                            "remedy": "start it"}]}

    def namespace(self, name):
        if name not in self.namespaces:
            raise Problem(404, "notFound", f"no namespace '{name}'")
        return self.namespaces[name]

    def post_namespaces(self, r, parts):
        if len(parts) == 2 and parts[1] == "vfs":
            systems = self.namespace(parts[0])
            systems[r.json["name"]] = {}
            return 201, {"id": "v1", "name": r.json["name"], "namespace": parts[0]}
        if len(parts) == 2 and parts[1] == "deploy":
            self.deployed = r.json
            return {"dryRun": r.json["dryRun"], "created": [{"kind": "capsule", "name": "x", "version": 1}],
                    "updated": [], "unchanged": [{"kind": "prompt", "name": "p", "version": 2}], "removed": [],
                    "warnings": []}
        if len(parts) == 4 and parts[3] == "runs":
            return self.start_run(r, parts)
        name = r.json["name"]
        if name in self.namespaces:
            raise Problem(409, "alreadyExists", f"there is a namespace '{name}' already")
        self.namespaces[name] = {}
        first, self.default = self.default is None, self.default or name
        body = {"id": "n1", "name": name, "owner": "ada", "dateCreated": NOW}
        return 201, {**body, "becameDefault": True} if first else {**body, "yourDefault": self.default}

    def get_namespaces(self, r, parts):
        if not parts:
            return self.page(r, [{"name": n, "owner": "ada", "dateCreated": NOW} for n in self.namespaces])
        self.namespace(parts[0])
        if len(parts) == 1:
            return {"name": parts[0], "owner": "ada", "dateCreated": NOW}
        if len(parts) == 2 and parts[1] == "vfs":
            return self.page(r, [{"name": n, "limitBytes": 10 << 30, "dateCreated": NOW}
                                 for n in self.namespaces[parts[0]]])
        if len(parts) == 2 and parts[1] == "capsules":
            return self.page(r, [{"name": n, "version": 1} for n in self.capsules])
        if len(parts) == 3 and parts[1] == "capsules":
            if parts[2] not in self.capsules:
                raise Problem(404, "notFound", f"no capsule '{parts[2]}' in namespace '{parts[0]}'")
            return {"name": parts[2], "version": 1, "definition": {"autoTerminate": self.capsules[parts[2]]}}
        raise Problem(404, "notFound", "nothing there")

    # ---- runs ----

    def start_run(self, r, parts):
        if parts[2] not in self.capsules:
            raise Problem(404, "notFound", f"no capsule '{parts[2]}' in namespace '{parts[0]}'")
        key = r.headers["Idempotency-Key"]
        known = [run for run in self.runs if run["key"] == key]
        if known:
            return 201, known[0]
        run = {"id": f"01931500-0000-7000-8000-{len(self.runs):012x}", "key": key, "namespace": parts[0],
               "capsule": parts[2], "version": 1, "status": "Starting", "endReason": None, "failureDetails": "",
               "startedBy": "ada", "dateCreated": NOW, "dateReady": None, "dateEnded": None,
               "maxDuration": "00:10:00", "image": "slim", "limitsReached": [], "labels": {},
               "phases": [{"name": "mounts", "us": 1234}], "body": r.body.decode()}
        self.runs.insert(0, run)
        return 201, run

    def finish(self, run, status="Finished", reason="exited", details=""):
        run.update(status=status, endReason=reason, failureDetails=details, dateReady=NOW,
                   dateEnded="2026-11-30T04:51:19.123456Z")

    def get_capsule_runs(self, r, parts):
        if not parts:
            return self.page(r, [run for run in self.runs
                                 if run["id"].endswith(r.query.get("idEnding", ""))
                                 and (r.query.get("mine") != "true" or run["startedBy"] == "ada")])
        if len(parts) > 1 and parts[1] == "commands":
            return self.commands_of(r, self.find_run(parts[0]), parts[2:])
        run = self.find_run(parts[0])
        deadline = time.monotonic() + int(r.query.get("wait", 0))
        while run["status"] == "Starting" and time.monotonic() < deadline:
            time.sleep(0.02)
        if r.query.get("story") == "true" and self.told.get(run["id"]):
            after = int(r.query.get("storyAfter", 0))
            return {**run, "story": self.told[run["id"]][after:after + self.story_part]}
        return run

    def tell(self, run, kind, what, command=None):
        """Adds to the story of a run."""
        story = self.told.setdefault(run["id"], [])
        story.append({"number": len(story) + 1, "time": NOW, "kind": kind, "what": what,
                      **({"commandId": command["id"]} if command else {})})

    def begin(self, command):
        self.tell(self.find_run(command["runId"]), "commandStarted", f"command {command['id']} started", command)

    def over(self, command, **how):
        self.end(command, **how)
        self.tell(self.find_run(command["runId"]), "commandEnded", f"command {command['id']} ended", command)

    def find_run(self, run_id):
        for run in self.runs:
            if run["id"] == run_id:
                return run
        raise Problem(404, "notFound", f"no run '{run_id}'")

    def post_capsule_runs(self, r, parts):
        run = self.find_run(parts[0])
        if parts[1:] == ["commands"]:
            return self.send_command(r, run)
        if parts[1:2] == ["commands"]:
            command = self.commands_of(r, run, parts[2:3])
            self.end(command, "Error", "terminated", 143, details="cancelled by ada")
            return self.shown(command)
        if parts[1:] == ["extend"]:
            run.update(maxDuration=r.json["maxDuration"], deadline=NOW)
            return run
        if not run["endReason"]:
            self.finish(run, reason="terminated", details="stopped by ada")
        return run

    # ---- commands ----

    def send_command(self, r, run):  # ids hold their time, that of NOW
        if run["endReason"]:
            raise Problem(409, "runEnded", "the run was stopped by ada")
        key = r.headers["Idempotency-Key"]
        known = [c for c in self.commands if c["key"] == key]
        if known:
            return 200, self.shown(known[0])
        body = r.json
        command = {"id": f"01a22acb-0203-7000-9000-{len(self.commands):012x}", "key": key, "runId": run["id"],
                   "command": body["command"], "arguments": body.get("arguments", []),
                   "runAsUser": body.get("runAsUser", "maitento"), "async": body.get("async", False),
                   "maxDuration": body.get("maxDuration"), "workingDirectory": body.get("workingDirectory"),
                   "environment": body.get("environment", {}), "status": "Queued", "endReason": None,
                   "exitCode": None, "outputStandard": "", "outputError": "", "failureDetails": "",
                   "limitsReached": [], "dateCreated": NOW, "dateStarted": None, "dateEnded": None,
                   "body": body, "spool": {"standard": b"", "error": b""}}
        self.commands.append(command)
        return 201, self.shown(command)

    @staticmethod
    def shown(command):
        return {k: v for k, v in command.items() if k not in ("spool", "body")}

    def end(self, command, status="Finished", reason="exited", code=0, out=b"", err=b"", details="", **more):
        command["spool"]["standard"] += out
        command["spool"]["error"] += err
        command.update(status=status, exitCode=code, failureDetails=details, dateStarted=NOW, dateEnded=NOW,
                       outputStandard=command["spool"]["standard"].decode(errors="replace"),
                       outputError=command["spool"]["error"].decode(errors="replace"), **more)
        command["endReason"] = reason

    def get_commands(self, r, parts):
        for command in self.commands:
            if command["id"] == parts[0]:
                return self.commands_of(r, self.find_run(command["runId"]), parts)
        raise Problem(404, "notFound", f"no command '{parts[0]}'")

    def commands_of(self, r, run, parts):
        mine = [c for c in self.commands if c["runId"] == run["id"]]
        if not parts:
            return self.page(r, [self.shown(c) for c in mine if r.query.get("status", c["status"]) == c["status"]])
        for command in mine:
            if command["id"] != parts[0]:
                continue
            if parts[1:] == ["output"]:
                return self.output(r, command)
            deadline = time.monotonic() + int(r.query.get("wait", 0))
            while not command["endReason"] and time.monotonic() < deadline:
                time.sleep(0.02)
            return command if r.method == "POST" else self.shown(command)
        raise Problem(404, "notFound", f"no command '{parts[0]}'")

    def output(self, r, command):
        """All that is there at the command's end, or what has come within a second: clients ask again."""
        deadline = time.monotonic() + 1
        while r.query.get("follow") == "true" and not command["endReason"] and time.monotonic() < deadline:
            time.sleep(0.02)
        at = max(int(r.query["from"]), command.get("dropped", 0))
        return 200, command["spool"][r.query["stream"]][at:], {"X-Maitento-Offset": str(at)}

    # ---- files ----

    def item(self, path, node):
        text, escaped = path, False
        try:
            text = path.decode()
        except UnicodeDecodeError:
            escaped = True
            text = "".join(chr(b) if 0x20 < b < 0x7f and b != 0x25 else f"%{b:02X}" for b in path)
        kind = "folder" if node is None else node[0] if isinstance(node, tuple) else "file"
        item = {"path": text, "name": text.rsplit("/", 1)[1], "type": kind, "mode": "0660",
                "size": len(node) if kind == "file" else 0, "dateModified": NOW, "nameEscaped": escaped}
        if kind == "link":
            item["target"] = node[1]
        return item

    def vfs_route(self, r, parts):
        systems = self.namespace(parts[2])
        if parts[4] not in systems:
            raise Problem(404, "notFound", f"no file system '{parts[4]}' in namespace '{parts[2]}'")
        tree = systems[parts[4]]
        if len(parts) == 5:
            return {"id": "v1", "name": parts[4], "usedBytes": 0, "limitBytes": 10 << 30}
        path = unquote_to_bytes(dict(p.split("=", 1) for p in r.raw_query.split("&") if p).get("path", ""))
        return getattr(self, f"{r.method.lower()}_vfs_{parts[5]}")(r, tree, path)

    @staticmethod
    def node(tree, path):
        if path == b"/":
            return None
        if path not in tree:
            raise Problem(404, "notFound", f"no file {path!r}")
        return tree[path]

    def parents(self, tree, path):
        while (path := path.rsplit(b"/", 1)[0]):
            tree.setdefault(path, None)

    def get_vfs_stat(self, r, tree, path):
        return self.item(path, self.node(tree, path))

    def get_vfs_list(self, r, tree, path):
        if self.node(tree, path) is not None:
            raise Problem(409, "notAFolder", "a file")
        prefix = path.rstrip(b"/") + b"/"
        deep = r.query.get("recursive") == "true"
        return self.page(r, [self.item(p, n) for p, n in sorted(tree.items())
                             if p.startswith(prefix) and (deep or b"/" not in p[len(prefix):])])

    def get_vfs_files(self, r, tree, path):
        node = self.node(tree, path)
        if node is None:
            raise Problem(409, "isAFolder", "a folder")
        if isinstance(node, tuple):
            raise Problem(409, "notRegularFile", "not regular")
        return 200, node

    def put_vfs_files(self, r, tree, path):
        if path == b"/" or tree.get(path, b"") is None:
            raise Problem(409, "isAFolder", "a folder")
        self.parents(tree, path)
        tree[path] = r.body
        return 201, self.item(path, r.body)

    def delete_vfs_files(self, r, tree, path):
        self.node(tree, path)
        for p in [p for p in tree if p == path or p.startswith(path + b"/")]:
            del tree[p]
        return 204, None

    def post_vfs_mkdir(self, r, tree, _):
        path = r.json["path"].encode()
        if path in tree and not r.json.get("parents"):
            raise Problem(409, "alreadyExists", "it is there")
        self.parents(tree, path)
        tree[path] = None
        return 201, self.item(path, None)

    def post_vfs_move(self, r, tree, _):
        old, new = r.json["from"].encode(), r.json["to"].encode()
        self.node(tree, old)
        if new in tree and not r.json.get("replace"):
            raise Problem(409, "alreadyExists", "it is there")
        tree[new] = tree.pop(old)
        return self.item(new, tree[new])

    def post_vfs_link(self, r, tree, _):
        path = r.json["path"].encode()
        self.parents(tree, path)
        tree[path] = ("link", r.json["target"])
        return 201, self.item(path, tree[path])
