"""The file routes of a server that has no runner: shapes, conditions, ranges, hostile content, ends.
What capsules plant is planted here by plain calls on the folder that they would have mounted."""
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))
import mtserver  # noqa: E402

SERVICE = 61234
_numbers = itertools.count(1)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Lone:
    """A maitentod alone, on a state folder of its own."""

    def __init__(self, folder):
        self.folder = Path(folder)
        os.chmod(folder, 0o711)
        self.socket = str(self.folder / "api.sock")
        self.process = None
        self.start()

    def start(self):
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [mtserver.program("maitentod"), "--state", str(self.folder / "state"), "--tcp", "",
             "--runner", str(self.folder / "runner.sock"), "--socket", self.socket,
             "--service-uid", str(SERVICE), "--service-gid", str(SERVICE),
             "--instance", f"v{os.getpid()}", "--ready-file", str(ready)],
            stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(30)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def request(self, method, path, body=None, headers=None):
        """(status, headers, bytes)"""
        connection = mtserver.UnixConnection(self.socket, 60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, expect=200):
        data = None if body is None else json.dumps(body)
        status, _, answer = self.request(method, path, data,
                                         {"Content-Type": "application/json"} if data else None)
        assert status == expect, (method, path, status, answer)
        return json.loads(answer) if answer else None

    def error(self, method, path, body=None):
        data = json.dumps(body) if isinstance(body, dict) else body
        status, headers, answer = self.request(
            method, path, data, {"Content-Type": "application/json"} if isinstance(body, dict) else None)
        assert status >= 400 and headers["Content-Type"] == "application/problem+json", (status, answer)
        answer = json.loads(answer)
        assert answer["status"] == status
        return answer["code"]


class Vfs:
    """One file system: its address and its folder."""

    def __init__(self, server, ns, name):
        self.server, self.base = server, f"/v1/namespaces/{ns}/vfs/{name}"
        self.record = server.json("POST", f"/v1/namespaces/{ns}/vfs", {"name": name}, 201)
        self.folder = server.folder / "state" / "vfs" / self.record["id"]
        self.inside = self.folder / "files"

    def at(self, what, path, more=""):
        raw = path if isinstance(path, bytes) else path.encode()
        return f"{self.base}/{what}?path={quote(raw, safe='/')}{more}"

    def put(self, path, data, expect=201):
        status, _, answer = self.server.request("PUT", self.at("files", path), data)
        assert status == expect, (status, answer)
        return json.loads(answer)

    def get(self, path):
        status, _, data = self.server.request("GET", self.at("files", path))
        assert status == 200, data
        return data

    def names(self, path="/", recursive=False, limit=100):
        """All names (recursive: paths) of a folder, over all pages."""
        names, after = [], ""
        while True:
            page = self.server.json("GET", self.at("list", path, f"&limit={limit}&recursive="
                                                   f"{str(recursive).lower()}{after}"))
            names += [item["path" if recursive else "name"] for item in page["items"]]
            if page["next"] is None:
                return names
            after = "&after=" + quote(page["next"], safe="")


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory(prefix="mt-vfs-api-", dir="/var/tmp") as folder:
        lone = Lone(folder)
        lone.json("POST", "/v1/namespaces", {"name": "ns"}, 201)
        yield lone
        lone.stop()
        assert '"level":"error"' not in lone.log(), lone.log()


@pytest.fixture()
def vfs(server, request):
    return Vfs(server, "ns", f"{request.function.__name__[:40]}.{next(_numbers)}")


# ---- file systems ----

def test_objects(server):
    made = server.json("POST", "/v1/namespaces/ns/vfs", {"name": "objects"}, 201)
    assert set(made) == {"id", "name", "namespace", "dateCreated", "limitBytes"}
    assert made["namespace"] == "ns" and made["limitBytes"] == 10 << 30
    got = server.json("GET", "/v1/namespaces/ns/vfs/objects")
    assert got["usedBytes"] < 1 << 20 and {**made, "usedBytes": got["usedBytes"]} == got
    assert made in server.json("GET", "/v1/namespaces/ns/vfs")["items"]
    assert server.error("POST", "/v1/namespaces/ns/vfs", {"name": "objects"}) == "alreadyExists"
    assert server.error("POST", "/v1/namespaces/none/vfs", {"name": "x"}) == "notFound"
    assert server.error("GET", "/v1/namespaces/ns/vfs/none") == "notFound"
    assert server.error("GET", "/v1/vfs/none/list") == "notFound"
    assert server.error("POST", "/v1/namespaces/ns/vfs", {"name": "x", "nmae": "y"}) == "badField"
    for name in ("..", ".", "a/b", "", "A", "x" * 64):
        assert server.error("POST", "/v1/namespaces/ns/vfs", {"name": name}) == "badField"
    folders = {p.name for p in (server.folder / "state" / "vfs").iterdir()}
    server.json("DELETE", "/v1/namespaces/ns/vfs/objects", expect=204)
    assert server.error("GET", "/v1/namespaces/ns/vfs/objects") == "notFound"
    after = {p.name for p in (server.folder / "state" / "vfs").iterdir()}
    assert folders - after == {made["id"]} and after <= folders


def test_by_id(server, vfs):
    vfs.put("/a", b"by name")
    base = f"/v1/vfs/{vfs.record['id']}"
    assert server.request("GET", base + "/files?path=/a")[2] == b"by name"
    assert server.json("GET", base + "/list")["items"][0]["name"] == "a"
    assert server.request("PUT", base + "/files?path=/b", b"by id")[0] == 201
    assert vfs.get("/b") == b"by id"


# ---- files ----

def test_put_get_stat(server, vfs):
    made = vfs.put("/x/y/data.bin", b"\x00\r\n\xff" * 1000)
    assert made["path"] == "/x/y/data.bin" and made["name"] == "data.bin" and made["size"] == 4000
    assert made["type"] == "file" and made["mode"] == "0660" and made["nameEscaped"] is False
    assert vfs.get("/x/y/data.bin") == b"\x00\r\n\xff" * 1000
    assert vfs.put("/x/y/data.bin", b"", 200)["size"] == 0
    assert vfs.get("/x/y/data.bin") == b""
    folder = server.json("GET", vfs.at("stat", "/x/y"))
    assert folder["type"] == "folder" and folder["mode"] == "0770" and folder["size"] == 0
    info = (vfs.inside / "x" / "y" / "data.bin").stat()
    assert (info.st_uid, info.st_gid) == (SERVICE, SERVICE)
    assert server.json("GET", vfs.at("stat", "/"))["path"] == "/"
    assert os.listdir(vfs.folder / "tmp") == []


def test_errors(server, vfs):
    vfs.put("/file", b"x")
    vfs.put("/folder/x", b"x")
    cases = [("GET", "files", "/none", "notFound"), ("GET", "files", "/folder", "isAFolder"),
             ("GET", "files", "/file/x", "notAFolder"), ("GET", "stat", "/none", "notFound"),
             ("GET", "list", "/file", "notAFolder"), ("PUT", "files", "/folder", "isAFolder"),
             ("PUT", "files", "/new/", "isAFolder"), ("PUT", "files", "/file/x", "notAFolder"),
             ("DELETE", "files", "/folder", "notEmpty"), ("DELETE", "files", "/", "badPath"),
             ("DELETE", "files", "/none", "notFound")]
    for method, what, path, code in cases:
        assert server.error(method, vfs.at(what, path)) == code, (method, path)
    assert server.error("GET", vfs.base + "/files") == "badField"
    assert server.error("GET", vfs.at("files", "/file", "&x=1")) == "badField"
    assert server.error("POST", vfs.base + "/files?path=/file") == "methodNotAllowed"
    assert vfs.names(recursive=True) == ["/file", "/folder", "/folder/x"]


@pytest.mark.parametrize("raw", ["/../x", "/a/../../x", "..%2fx", "%2e%2e/x", "%252e%252e/x", "x", "",
                                 "/a%00b", "/" + "n" * 256, "/d" * 2048],
                         ids=itertools.count())
def test_paths_that_are_refused(server, vfs, raw):
    before = sorted(p.name for p in vfs.folder.rglob("*"))
    for method, what in (("GET", "files"), ("PUT", "files"), ("DELETE", "files"), ("GET", "stat"),
                         ("GET", "list")):
        body = b"evil" if method == "PUT" else None
        status, _, answer = server.request(method, f"{vfs.base}/{what}?path={raw}", body)
        assert status in (400, 414), (method, what, status, answer)
        if status == 400 and b"NUL" not in answer:
            assert json.loads(answer)["code"] in ("badPath", "badField", "badRequest")
    for body in ({"path": "/../x"}, {"path": "x"}, {"path": "/a\0b"}):
        assert server.error("POST", vfs.base + "/mkdir", body) in ("badPath", "badField")
    assert sorted(p.name for p in vfs.folder.rglob("*")) == before


def test_paths_that_are_names(server, vfs):
    vfs.put("/a/../b", b"1")
    vfs.put("/%2e%2e", b"2")
    vfs.put("//c///./d", b"3")
    vfs.put("/a\\..\\..\\x", b"4")
    assert vfs.names(recursive=True) == ["/%2e%2e", "/a\\..\\..\\x", "/b", "/c", "/c/d"]


def test_conditions_and_ranges(server, vfs):
    vfs.put("/f", bytes(range(100)))
    old = time.time() - 1000
    os.utime(vfs.inside / "f", (old, old))
    status, headers, data = server.request("GET", vfs.at("files", "/f"))
    etag = headers["ETag"]
    assert status == 200 and headers["Content-Length"] == "100" and len(data) == 100
    assert headers["Content-Type"] == "application/octet-stream" and "Last-Modified" in headers
    assert headers["Last-Modified"] == time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(int(old)))
    status, headers, data = server.request("HEAD", vfs.at("files", "/f"))
    assert (status, headers["Content-Length"], data) == (200, "100", b"")
    for value in (etag, f'"x", {etag}', "*", etag.removeprefix("W/")):
        status, headers, data = server.request("GET", vfs.at("files", "/f"), None, {"If-None-Match": value})
        assert (status, data) == (304, b"") and headers["ETag"], value
    for value in ('"x"', etag[:-2] + '"', ""):
        assert server.request("GET", vfs.at("files", "/f"), None, {"If-None-Match": value})[0] == 200
    ranges = {"bytes=0-0": (0, 1), "bytes=10-19": (10, 20), "bytes=90-": (90, 100), "bytes=-5": (95, 100),
              "bytes=50-1000": (50, 100), "bytes=-1000": (0, 100)}
    for text, (a, b) in ranges.items():
        status, headers, data = server.request("GET", vfs.at("files", "/f"), None, {"Range": text})
        assert (status, data) == (206, bytes(range(100))[a:b]), text
        assert headers["Content-Range"] == f"bytes {a}-{b - 1}/100"
    for text in ("bytes=100-", "bytes=-0", "bytes=200-300"):
        assert server.request("GET", vfs.at("files", "/f"), None, {"Range": text})[0] == 416, text
    for text in ("bytes=5-1", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4", "bytes=-", "bytes=0--1"):
        status, _, data = server.request("GET", vfs.at("files", "/f"), None, {"Range": text})
        assert (status, len(data)) == (200, 100), text
    vfs.put("/empty", b"")
    assert server.request("GET", vfs.at("files", "/empty"), None, {"Range": "bytes=-1"})[0] == 416


def test_folders_moves_links(server, vfs):
    post = lambda what, body, expect: server.json("POST", f"{vfs.base}/{what}", body, expect)
    assert post("mkdir", {"path": "/d"}, 201)["type"] == "folder"
    assert server.error("POST", vfs.base + "/mkdir", {"path": "/d"}) == "alreadyExists"
    assert server.error("POST", vfs.base + "/mkdir", {"path": "/e/f"}) == "notFound"
    assert post("mkdir", {"path": "/e/f", "parents": True}, 201)["path"] == "/e/f"
    post("mkdir", {"path": "/e/f", "parents": True}, 200)
    link = post("link", {"path": "/e/up", "target": "../../../../etc/shadow"}, 201)
    assert link["type"] == "link" and link["target"] == "../../../../etc/shadow"
    assert server.error("GET", vfs.at("files", "/e/up")) == "notRegularFile"
    vfs.put("/a", b"A")
    vfs.put("/b", b"B")
    assert server.error("POST", vfs.base + "/move", {"from": "/a", "to": "/b"}) == "alreadyExists"
    assert post("move", {"from": "/a", "to": "/b", "replace": True}, 200)["path"] == "/b"
    assert vfs.get("/b") == b"A"
    assert server.error("POST", vfs.base + "/move", {"from": "/e", "to": "/e/f/g"}) == "badPath"
    assert server.error("POST", vfs.base + "/move", {"from": "/e", "to": "/x", "y": 1}) == "badField"
    assert server.error("POST", vfs.base + "/move", b"[]") in ("badRequest", "unsupportedMediaType")
    server.json("DELETE", vfs.at("files", "/e", "&recursive=true"), expect=204)
    assert vfs.names(recursive=True) == ["/b", "/d"]


def test_names_round_trip(server, vfs):
    names = ["a b", "naïve-日本.txt", "-rf", 'q"q', "b\\b", "h#h", "p%41", "q?x=1", "plus+", "at@ns",
             "two\nlines", "é", "e\u0301", "x" * 255, " ", "\x7f\x01"]
    for name in names:
        vfs.put("/" + name, name.encode())
        assert (vfs.inside / name).read_bytes() == name.encode()
    assert sorted(vfs.names(limit=3)) == sorted(names)
    for name in vfs.names():
        assert vfs.get("/" + name) == name.encode()
        server.json("DELETE", vfs.at("files", "/" + name), expect=204)
        assert not (vfs.inside / name).exists()
    assert vfs.names() == []


def test_names_that_are_no_utf8(server, vfs):
    raw = os.fsencode(vfs.inside) + b"/caf\xe9 50%"
    with open(raw, "wb") as f:
        f.write(b"latin")
    (vfs.inside / "50%").write_bytes(b"plain")
    items = {i["name"]: i for i in server.json("GET", vfs.base + "/list")["items"]}
    assert set(items) == {"50%", "caf%E9 50%25"}
    assert items["caf%E9 50%25"]["nameEscaped"] and not items["50%"]["nameEscaped"]
    assert vfs.get(b"/caf\xe9 50%") == b"latin"
    assert vfs.names(limit=1) == ["50%", "caf%E9 50%25"]  # cursors survive, too
    server.json("POST", vfs.base + "/move",
                {"from": "/caf%E9 50%25", "to": "/cafe", "nameEscaped": True})
    assert vfs.get("/cafe") == b"latin"
    assert server.error("POST", vfs.base + "/move",
                        {"from": "/caf%E", "to": "/x", "nameEscaped": True}) == "badField"


# ---- hostile content ----

def test_links_and_no_files(server, vfs):
    for name, target in (("leak", "/etc/shadow"), ("root", "/"), ("up", "../../../../.."), ("zero", "/dev/zero"),
                         ("fine", "a.txt")):
        os.symlink(target, vfs.inside / name)
    os.mkfifo(vfs.inside / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(vfs.inside)
    listener.bind("socket")
    os.chdir("/")
    start = time.monotonic()
    for _ in range(20):
        for path in ("/leak", "/zero", "/pipe", "/socket", "/fine"):
            assert server.error("GET", vfs.at("files", path)) == "notRegularFile"
        for path in ("/root/etc/hostname", "/up/etc/hostname"):
            assert server.error("GET", vfs.at("files", path)) == "notAFolder"
            assert server.error("PUT", vfs.at("files", path), b"evil") == "notAFolder"
    assert time.monotonic() - start < 20
    kinds = {i["name"]: i["type"] for i in server.json("GET", vfs.at("list", "/", "&recursive=true"))["items"]}
    assert kinds == {"leak": "link", "root": "link", "up": "link", "zero": "link", "fine": "link",
                     "pipe": "fifo", "socket": "socket"}
    vfs.put("/leak", b"mine now", 200)
    assert vfs.get("/leak") == b"mine now" and Path("/etc/shadow").read_bytes() != b"mine now"


def test_growing_shrinking_and_sparse_files(server, vfs):
    path = vfs.inside / "f"
    path.write_bytes(b"x" * 1000)
    stop = threading.Event()

    def grow():
        with open(path, "ab") as f:
            while not stop.is_set() and f.tell() < 1 << 25:
                f.write(b"y" * 65536)
    thread = threading.Thread(target=grow)
    thread.start()
    for _ in range(20):
        status, headers, data = server.request("GET", vfs.at("files", "/f"))
        assert status == 200 and len(data) == int(headers["Content-Length"])
    stop.set()
    thread.join()
    with open(path, "wb") as f:
        f.truncate(1 << 40)
    status, headers, _ = server.request("HEAD", vfs.at("files", "/f"))
    assert (status, headers["Content-Length"]) == (200, str(1 << 40))
    _, _, data = server.request("GET", vfs.at("files", "/f"), None, {"Range": "bytes=-10"})
    assert data == bytes(10)
    connection = mtserver.UnixConnection(server.socket, 30)  # a reader who leaves early
    connection.request("GET", vfs.at("files", "/f"))
    assert connection.getresponse().read(1 << 20) == bytes(1 << 20)
    # cut while it is read: the answer ends early, and is seen to
    answer = None
    with open(path, "r+b") as f:
        other = mtserver.UnixConnection(server.socket, 30)
        other.request("GET", vfs.at("files", "/f"))
        answer = other.getresponse()
        answer.read(1 << 16)
        f.truncate(0)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        while answer.read(1 << 20):
            pass
        raise http.client.IncompleteRead(b"")
    connection.close()
    other.close()
    assert server.json("GET", "/v1/health")["status"] == "ok"


def test_deep_and_wide(server, vfs):
    here = os.open(vfs.inside, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert len(vfs.names(recursive=True, limit=1000)) == 2000
    server.json("DELETE", vfs.at("files", "/d", "&recursive=true"), expect=204)
    (vfs.inside / "w").mkdir()
    for i in range(3000):
        (vfs.inside / "w" / f"{i:05}").touch()
    assert vfs.names("/w", limit=1000) == [f"{i:05}" for i in range(3000)]
    server.json("DELETE", vfs.base, expect=204)
    assert not vfs.folder.exists()


def test_files_of_other_owners(server, vfs):
    """What the root and other users of a capsule made is read, replaced and removed."""
    for name, owner, mode in (("root", 0x6fff0000, 0o000), ("sandbox", 0x6fff0000 + 1001, 0o400)):
        folder = vfs.inside / name
        folder.mkdir()
        (folder / "f").write_bytes(b"theirs")
        for path in (folder / "f", folder):
            os.chown(path, owner, owner)
            os.chmod(path, mode)
        assert vfs.get(f"/{name}/f") == b"theirs"
        vfs.put(f"/{name}/f", b"ours", 200)
        assert vfs.get(f"/{name}/f") == b"ours"
        server.json("DELETE", vfs.at("files", f"/{name}", "&recursive=true"), expect=204)
    assert vfs.names() == []


# ---- writers, limits, ends ----

def test_two_writers_and_a_reader(server, vfs):
    size, wrong, stop = 4 << 20, [], threading.Event()
    vfs.put("/f", b"A" * size)

    def write(letter):
        while not stop.is_set():
            vfs.put("/f", letter * size, 200)
    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"A", b"B")]
    for thread in threads:
        thread.start()
    for _ in range(40):
        data = vfs.get("/f")
        inside = (vfs.inside / "f").read_bytes()
        wrong += [len(d) for d in (data, inside) if d not in (b"A" * size, b"B" * size)]
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == [] and os.listdir(vfs.folder / "tmp") == []


def test_chunked_and_broken_uploads(server, vfs):
    status, _, _ = server.request("PUT", vfs.at("files", "/c"), iter([b"one ", b"two"]))
    assert status == 201 and vfs.get("/c") == b"one two"
    # a client that leaves in the middle: the old file stands, nothing stays behind
    s = socket.socket(socket.AF_UNIX)
    s.connect(server.socket)
    s.sendall(f"PUT {vfs.at('files', '/c')} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode()
              + b"x" * 1000)
    deadline = time.monotonic() + 20
    while not os.listdir(vfs.folder / "tmp"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    s.close()
    while os.listdir(vfs.folder / "tmp"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert vfs.get("/c") == b"one two"


def test_over_the_limit(server, vfs):
    s = socket.socket(socket.AF_UNIX)
    s.connect(server.socket)
    s.sendall(f"PUT {vfs.at('files', '/big')} HTTP/1.1\r\nHost: x\r\nContent-Length: {11 << 30}\r\n"
              f"Connection: close\r\n\r\n".encode())
    answer = b""
    while part := s.recv(65536):
        answer += part
    s.close()
    assert b" 507 " in answer.split(b"\r\n")[0] and b"diskFull" in answer and b"10GiB" in answer
    assert vfs.names() == []


def test_kill_in_mid_upload(vfs, server):
    vfs.put("/f", b"old")
    s = socket.socket(socket.AF_UNIX)
    s.connect(server.socket)
    s.sendall(f"PUT {vfs.at('files', '/f')} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode()
              + b"n" * 500000)
    deadline = time.monotonic() + 20
    while not os.listdir(vfs.folder / "tmp"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    server.stop(signal.SIGKILL)
    s.close()
    assert (vfs.inside / "f").read_bytes() == b"old"
    server.start()
    assert vfs.get("/f") == b"old" and vfs.names(recursive=True) == ["/f"]
    assert os.listdir(vfs.folder / "tmp") == []


def test_an_upload_of_some_size_is_not_held_in_memory(server, vfs):
    def peak():
        text = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0])
    before = peak()
    block = b"z" * (1 << 20)
    status, _, _ = server.request("PUT", vfs.at("files", "/big"), (block for _ in range(200)))
    assert status == 201
    assert (vfs.inside / "big").stat().st_size == 200 << 20
    connection = mtserver.UnixConnection(server.socket, 60)
    connection.request("GET", vfs.at("files", "/big"))
    answer, total = connection.getresponse(), 0
    while data := answer.read(1 << 20):
        total += len(data)
    connection.close()
    assert total == 200 << 20
    if "libasan" not in Path(f"/proc/{server.process.pid}/maps").read_text():  # it keeps what was freed
        assert peak() - before < 32 * 1024
