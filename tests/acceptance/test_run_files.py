"""Files of a run (acceptance table F): by the HTTP API, mt and the Python client, and against capsules that interfere."""
import hashlib
import http.client
import io
import json
import re
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest

import mtserver
from conftest import Ref

sys.path.insert(0, str(mtserver.ROOT / "sdk" / "python"))
import maitento  # noqa: E402

BIG = 200 << 20
PIECE = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture(scope="module")
def py(server):
    server.environment()
    with maitento.Maitento(server.url, server.key) as client:
        yield client


@pytest.fixture(scope="module")
def run(api, py):
    """One run for those tests that leave it as they found it."""
    ns = api.namespace("runfiles")
    api.capsule(ns, [], name="bench", users=[{"name": "sandbox"}], maxDuration="00:10:00")
    run = py.capsule_runs.wait(py.capsules.start("bench", ns), until="ready")
    yield run
    py.capsule_runs.terminate(run)


@pytest.fixture()
def fresh(api, ns, py):
    """start(**properties): a run of its own."""
    started = []

    def start(startup=(), **properties):
        api.capsule(ns, list(startup), **{"users": [{"name": "sandbox"}], "maxDuration": "00:05:00", **properties})
        started.append(py.capsule_runs.wait(py.capsules.start("c", ns), until="ready"))
        return started[-1]
    yield start
    for run in started:
        py.capsule_runs.terminate(run)


def sh(py, run, line, **options):
    done = py.capsule_runs.exec_and_wait(run, "sh", ["-c", line], **options)
    assert done.exit_code == 0, done
    return done.output_standard


def url(run, path, what="", **query):
    raw = path if isinstance(path, bytes) else path.encode()
    extra = "".join(f"&{k}={quote(v)}" for k, v in query.items())
    return f"/v1/capsule-runs/{run.id}/files{what}?path={quote(raw, safe='/')}{extra}"


def fails(call, code, *words):
    with pytest.raises(maitento.MaitentoError) as caught:
        call()
    assert caught.value.code == code, caught.value
    assert all(word in str(caught.value) for word in words), caught.value


def rss_kib(process):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text()).group(1))


# ---- what is asked for ----

def test_f_read_write_list_delete_by_the_client(py, run):
    files = py.capsule_runs.files(run.id)
    made = files.write_text("notes/today.txt", "tea\n")
    assert made.path == "/home/maitento/notes/today.txt" and made.mode == "0644"
    assert files.read_text("notes/today.txt") == "tea\n" == sh(py, run, "cat notes/today.txt")
    assert files.read("/home/maitento/notes/today.txt") == b"tea\n"
    assert [f.name for f in files.list("notes")] == ["today.txt"]
    assert files.stat("notes").type == "folder"
    assert files.move("notes/today.txt", "notes/then.txt").path.endswith("/then.txt")
    assert files.mkdir("notes/a/b").type == "folder"
    assert [f.path.removeprefix("/home/maitento/") for f in files.list("notes", recursive=True)] == \
        ["notes/a", "notes/a/b", "notes/then.txt"]
    fails(lambda: files.delete("notes"), "notEmpty", "notes")
    files.delete("notes", recursive=True)
    fails(lambda: files.stat("notes"), "notFound", "notes")


def test_f_a_file_is_its_users(py, run):
    mine, theirs = py.capsule_runs.files(run), py.capsule_runs.files(run, user="sandbox")
    theirs.write_text("theirs.txt", "x")
    assert sh(py, run, "stat -c '%U:%G %a' /home/sandbox/theirs.txt", run_as_user="sandbox") == "sandbox:sandbox 644\n"
    fails(lambda: mine.read("/home/sandbox/theirs.txt"), "accessDenied", "maitento", "/home/sandbox/theirs.txt")
    fails(lambda: theirs.write_text("/home/maitento/x", "x"), "accessDenied", "sandbox", "/home/maitento/x")
    fails(lambda: theirs.list("/root"), "accessDenied", "sandbox", "/root")
    assert py.capsule_runs.files(run, user="root").read_text("/home/sandbox/theirs.txt") == "x"
    fails(lambda: py.capsule_runs.files(run, user="nobody").read("/etc/passwd"), "badField", "nobody")


def test_f_names_of_any_bytes(api, py, run):
    odd = b"/tmp/two\nlines \xc3\xa9 %41"
    worse = b"/tmp/no-utf8-\xff\xfe"
    for name in (odd, worse):
        status, _, body = api.raw("PUT", url(run, name), b"here")
        assert status == 201, body
        assert api.raw("GET", url(run, name))[2] == b"here"
    listed = {f.name: f.name_escaped for f in py.capsule_runs.files(run).list("/tmp")}
    assert listed["two\nlines é %41"] is False and listed["no-utf8-%FF%FE"] is True
    for name in (odd, worse):
        assert api.raw("DELETE", url(run, name))[0] == 204
        assert api.raw("GET", url(run, name))[0] == 404


def test_f_ranges_and_validators(api, py, run):
    py.capsule_runs.files(run).write("/tmp/ten", b"0123456789")
    status, headers, body = api.raw("GET", url(run, "/tmp/ten"), headers={"Range": "bytes=2-4"})
    assert (status, body, headers["Content-Range"]) == (206, b"234", "bytes 2-4/10")
    assert api.raw("GET", url(run, "/tmp/ten"), headers={"Range": "bytes=-3"})[2] == b"789"
    assert api.raw("GET", url(run, "/tmp/ten"), headers={"Range": "bytes=10-"})[0] == 416
    status, headers, body = api.raw("GET", url(run, "/tmp/ten"))
    assert (status, body) == (200, b"0123456789")
    assert api.raw("GET", url(run, "/tmp/ten"), headers={"If-None-Match": headers["ETag"]})[0] == 304
    status, headers, body = api.raw("HEAD", url(run, "/tmp/ten"))
    assert (status, headers["Content-Length"], body) == (200, "10", b"")
    assert b"MemTotal" in api.raw("GET", url(run, "/proc/meminfo"))[2], "files of the kernel have no size"
    py.capsule_runs.files(run).write("/tmp/none", b"")
    assert api.raw("GET", url(run, "/tmp/none"))[::2] == (200, b"")


def test_f_links_are_followed_as_the_user_would(py, run):
    sh(py, run, "mkdir -p /tmp/l/real; echo one > /tmp/l/real/f; ln -s real /tmp/l/dir; ln -s real/f /tmp/l/link;"
                " ln -s nowhere /tmp/l/dangling")
    files = py.capsule_runs.files(run)
    assert files.read_text("/tmp/l/dir/f") == "one\n" == files.read_text("/tmp/l/link")
    files.write_text("/tmp/l/link", "two\n")
    assert sh(py, run, "cat /tmp/l/real/f; readlink /tmp/l/link") == "two\nreal/f\n", "written through, not replaced"
    assert files.stat("/tmp/l/link").type == "file" and files.stat("/tmp/l/dangling").type == "link"
    assert {f.name: f.type for f in files.list("/tmp/l")} == \
        {"real": "folder", "dir": "link", "link": "link", "dangling": "link"}


def test_f_a_replaced_file_keeps_its_bits_and_is_never_half_there(py, run):
    files = py.capsule_runs.files(run)
    sh(py, run, "printf '#!/bin/sh\\n' > /tmp/tool; chmod 755 /tmp/tool")
    files.write_text("/tmp/tool", "#!/bin/sh\necho hi\n")
    assert sh(py, run, "/tmp/tool; ls -A /tmp | grep -c part || true") == "hi\n0\n"
    sh(py, run, "echo fixed > /tmp/fixed; chmod 444 /tmp/fixed")
    fails(lambda: files.write_text("/tmp/fixed", "x"), "accessDenied", "/tmp/fixed")
    fails(lambda: files.write_text("/tmp", "x"), "isAFolder", "/tmp")


# ---- mt ----

def test_f_mt_cp_and_its_like(mt, py, run, tmp_path):
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "tree/a.txt").write_text("a\n")
    (tmp_path / "tree/deep/b.txt").write_text("b\n")
    ending = run.id[-8:]
    mt("cp", "-r", tmp_path / "tree", f"run:{ending}:/tmp/", check=0)
    assert sh(py, run, "cat /tmp/tree/a.txt /tmp/tree/deep/b.txt") == "a\nb\n"
    mt("cp", "-r", f"run:{run.id}:/tmp/tree", tmp_path / "back", check=0)
    assert (tmp_path / "back/deep/b.txt").read_text() == "b\n"
    assert mt("ls", "-r", f"run:{ending}:/tmp/tree", check=0).stdout == "a.txt\ndeep/\ndeep/b.txt\n"
    assert mt("cat", f"run:{ending}:/tmp/tree/a.txt", check=0).stdout == "a\n"
    assert mt("cat", f"run:{ending}:../../tmp/tree/deep/../a.txt", check=0).stdout == "a\n"
    mt("mkdir", "-p", f"run:{ending}:made/here", check=0)
    mt("mv", f"run:{ending}:/tmp/tree/a.txt", f"run:{ending}:made/here/", check=0)
    assert "/home/maitento/made/here/a.txt" in mt("stat", f"run:{ending}:made/here/a.txt", check=0).stdout
    mt("rm", "-r", f"run:{ending}:made", f"run:{ending}:/tmp/tree", check=0)
    assert mt("cp", "-", f"run:{ending}:/tmp/piped", stdin="piped\n", check=0).stdout == ""
    assert mt("cp", f"run:{ending}:/tmp/piped", "-", check=0).stdout == "piped\n"
    denied = mt("cp", "--user", "sandbox", f"run:{ending}:/root/x", tmp_path / "x", check=4)
    assert "user 'sandbox' may not" in denied.stderr and "'/root/x'" in denied.stderr
    assert not (tmp_path / "x").exists()
    assert "no file or folder" in mt("cat", f"run:{ending}:/nothing", check=3).stderr
    for words, told in ((["ls", "--user", "sandbox", "/vfs/x"], "--user is for files of a run"),
                        (["ls", f"run:{ending}"], "run:RUN:/PATH"), (["ls", "run::/x"], "run:RUN:/PATH"),
                        (["mv", f"run:{ending}:/tmp/x", "/vfs/x/y"], "stays in one file system or run")):
        assert told in mt(*words, check=2, namespace="x").stderr
    assert mt("ls", "run:ffffffff:/", check=3).stderr


def test_f_from_a_file_system_into_a_run(mt, api, py, run, ns):
    py.vfs.create("store", ns)
    py.vfs.open("store", ns).write_text("/in/words", "w\n")
    mt("cp", "-r", f"/vfs/store@{ns}/in", f"run:{run.id}:/tmp/from-vfs", check=0)
    assert sh(py, run, "cat /tmp/from-vfs/words; rm -r /tmp/from-vfs") == "w\n"


def test_f_mounts_are_there_as_for_the_user(mt, api, py, ns):
    py.vfs.create("store", ns)
    api.capsule(ns, [], vfs=[{"vfs": Ref("store"), "mountName": "data"}], users=[{"name": "sandbox"}],
                maxDuration="00:05:00")
    run = py.capsules.start("c", ns)
    files = py.capsule_runs.files(run)
    assert files.write_text("/mnt/data/in/made", "from the run\n").path == "/mnt/data/in/made"
    assert py.vfs.open("store", ns).read_text("/in/made") == "from the run\n"
    py.vfs.open("store", ns).write_text("/in/given", "from outside\n")
    assert files.read_text("/mnt/data/in/given") == "from outside\n"
    files.write_text("/mnt/data/in/given", "replaced\n")
    assert py.vfs.open("store", ns).read_text("/in/given") == "replaced\n"
    fails(lambda: py.capsule_runs.files(run, user="sandbox").read("/mnt/data/in/made"), "accessDenied", "sandbox")
    fails(lambda: files.move("/mnt/data/in/made", "/tmp/made"), "conflict", "another file system")
    assert mt("ls", "-r", f"run:{run.id}:/mnt/data", check=0).stdout == "in/\nin/given\nin/made\n"
    files.delete("/mnt/data/in", recursive=True)
    assert py.vfs.open("store", ns).list("/") == []
    fails(lambda: files.delete("/mnt/data", recursive=True), "accessDenied")
    fails(lambda: py.capsule_runs.files(run, user="root").delete("/mnt/data", recursive=True), "conflict", "mounted")
    py.capsule_runs.terminate(run)


# ---- size ----

class Endless(io.RawIOBase):
    """So many pieces, without being in memory."""

    def __init__(self, pieces):
        self.left, self.at = pieces, b""
        self.hash = hashlib.sha256()

    def read(self, size=-1):
        if not self.at and self.left:
            self.left -= 1
            self.at = PIECE
        out, self.at = self.at[:size], self.at[size:]
        self.hash.update(out)
        return out


class Sink:
    def __init__(self):
        self.hash = hashlib.sha256()

    def write(self, data):
        self.hash.update(data)


def test_f_two_hundred_mebibytes_both_ways_in_bounded_memory(server, py, run):
    files = py.capsule_runs.files(run)
    files.write("/tmp/warm", PIECE)
    files.read("/tmp/warm")
    before, most, over = rss_kib(server.server), 0, threading.Event()

    def watch():
        nonlocal most
        while not over.wait(0.02):
            most = max(most, rss_kib(server.server))
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        source, sink = Endless(BIG >> 20), Sink()
        assert files.write("/tmp/big", source).size == BIG
        assert files.download("/tmp/big", sink) == BIG
    finally:
        over.set()
        watcher.join()
    assert sink.hash.digest() == source.hash.digest()
    assert most - before < 16 << 10, f"{most - before} KiB more"
    files.delete("/tmp/big")


def test_f_a_reader_that_stops_holds_up_nobody(server, py, run):
    files = py.capsule_runs.files(run)
    files.write("/tmp/large", PIECE * 32)
    before = rss_kib(server.server)
    slow = socket.socket(socket.AF_UNIX)
    slow.connect(server.socket)
    slow.sendall(f"GET {url(run, '/tmp/large')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert slow.recv(100).startswith(b"HTTP/1.1 200")
    for _ in range(5):
        assert files.read("/tmp/large")[:256] == PIECE[:256]
    assert rss_kib(server.server) - before < 16 << 10
    slow.close()
    files.delete("/tmp/large")


# ---- hostile capsules ----

@pytest.mark.parametrize("make, path, code", [
    ("mkfifo /tmp/fifo", "/tmp/fifo", "notRegularFile"),
    (":", "/dev/zero", "notRegularFile"),
    (":", "/dev/null", "notRegularFile"),
    (":", "/dev/tty", "notRegularFile"),
    (":", "/tmp", "isAFolder"),
    ("ln -s /tmp/loop /tmp/loop", "/tmp/loop", "badPath"),
    ("ln -s /dev/zero /tmp/to-zero", "/tmp/to-zero", "notRegularFile"),
    (":", "/etc/passwd/x", "notAFolder"),
    (":", "/" + "n" * 300, "badPath"),
    (":", "/proc/1/environ", "accessDenied"),
])
def test_f_what_is_no_file_is_refused_at_once(api, py, run, make, path, code):
    sh(py, run, make)
    status, _, body = api.raw("GET", url(run, path))
    assert json.loads(body)["code"] == code and status >= 400
    if code == "notRegularFile":
        assert json.loads(api.raw("PUT", url(run, path), b"x")[2])["code"] == code
    sh(py, run, "rm -f /tmp/fifo /tmp/loop /tmp/to-zero")


def test_f_a_folder_of_many_names_comes_in_pages(py, run):
    sh(py, run, "mkdir /tmp/many && cd /tmp/many && seq 12000 | xargs touch")
    listed = py.capsule_runs.files(run).list("/tmp/many")
    assert sorted(int(f.name) for f in listed) == list(range(1, 12001))
    py.capsule_runs.files(run).delete("/tmp/many", recursive=True)


def test_f_what_the_user_may_not_read_is_left_out_and_counted(api, py, run):
    sh(py, run, "mkdir -p /tmp/mixed/open /tmp/mixed/shut/in; echo x > /tmp/mixed/open/f; chmod 700 /tmp/mixed/shut")
    page = json.loads(api.raw("GET", url(run, "/tmp/mixed", "/list", user="sandbox", recursive="true"))[2])
    assert [e["path"] for e in page["items"]] == ["/tmp/mixed/open", "/tmp/mixed/open/f", "/tmp/mixed/shut"]
    assert page["leftOut"] == 1


def begin_put(server, run, path, length):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(server.socket)
    s.sendall(f"PUT {url(run, path)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
    s.sendall(b"x" * 100000)
    return s


def answer_to(s):
    """(status, body): the whole answer, however many pieces it comes in."""
    answer = http.client.HTTPResponse(s)
    answer.begin()
    return answer.status, answer.read()


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def sessions(py, run):
    return int(sh(py, run, "cat /proc/[0-9]*/comm 2>/dev/null | grep -c mt-session || true"))


def test_f_a_client_that_leaves_leaves_no_half_file(server, py, run):
    py.capsule_runs.files(run).write_text("/tmp/kept", "old")
    until(lambda: sessions(py, run) == 0)
    s = begin_put(server, run, "/tmp/kept", 1 << 20)
    until(lambda: sessions(py, run) == 1)
    s.close()
    until(lambda: sessions(py, run) == 0)
    assert sh(py, run, "cat /tmp/kept; ls -A /tmp | grep -c part || true") == "old0\n"


def test_f_a_helper_that_is_killed_leaves_no_half_file(server, py, run):
    s = begin_put(server, run, "/tmp/killed", 1 << 20)
    until(lambda: sessions(py, run) == 1)
    sh(py, run, "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = mt-session ] && kill -9 ${p#/proc/}; done; true")
    status, answer = answer_to(s)
    assert status == 503 and b"ended before it was done (signal 9)" in answer, (status, answer)
    assert sh(py, run, "ls -A /tmp | grep -c 'killed\\|part' || true") == "0\n"


def test_f_a_helper_that_is_held_is_ended_all_the_same(server, py, run):
    held = [begin_put(server, run, f"/tmp/stopped-{i}", 1 << 20) for i in range(4)]
    until(lambda: sessions(py, run) == 4)
    sh(py, run, "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = mt-session ] && kill -STOP ${p#/proc/}; done; true")
    for s in held:
        s.close()
    until(lambda: sessions(py, run) == 0)
    assert sh(py, run, "ls -A /tmp | grep -c 'stopped\\|part' || true") == "0\n"


def test_f_a_run_that_ends_meanwhile(server, py, fresh):
    run = fresh()
    s = begin_put(server, run, "/tmp/cut", 1 << 20)
    until(lambda: sessions(py, run) == 1)
    py.capsule_runs.terminate(run)
    status, answer = answer_to(s)
    assert status == 409 and b"runEnded" in answer and b"stopped by" in answer, (status, answer)
    ended = py.capsule_runs.wait(run)
    fails(lambda: py.capsule_runs.files(ended).read("/etc/passwd"), "runEnded", run.id, "has ended")
    fails(lambda: py.capsule_runs.files("01a22bb3-efe3-712e-8b46-3cc64e31782f").read("/x"), "notFound")


def test_f_a_read_is_cut_when_the_run_ends(server, py, fresh):
    run = fresh()
    py.capsule_runs.files(run).write("/tmp/large", PIECE * 32)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(server.socket)
    s.sendall(f"GET {url(run, '/tmp/large')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    got = s.recv(1000)
    py.capsule_runs.wait(py.capsule_runs.terminate(run))
    while piece := s.recv(1 << 20):
        got += piece
    announced = int(re.search(rb"Content-Length: (\d+)", got).group(1))
    assert announced == 32 << 20 > len(got), "an answer that broke off must not look whole"


def test_f_a_file_that_shrinks_while_it_is_read_is_not_passed_off_as_whole(server, py, run):
    py.capsule_runs.files(run).write("/tmp/shrinks", PIECE * 32)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(server.socket)
    s.sendall(f"GET {url(run, '/tmp/shrinks')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    got = s.recv(1000)
    sh(py, run, "truncate -s 1000 /tmp/shrinks")
    while piece := s.recv(1 << 20):
        got += piece
    assert 0 < len(got) < 32 << 20


def test_f_a_full_disk_is_told(py, fresh):
    run = fresh(limits={"disk": "64MiB"})
    fails(lambda: py.capsule_runs.files(run).write("/home/maitento/big", Endless(128)), "diskFull", "/home/maitento/big")
    assert py.capsule_runs.files(run).list("/home/maitento", recursive=True)
    fails(lambda: py.capsule_runs.files(run).stat("/home/maitento/big"), "notFound")


def test_f_as_many_as_there_may_be_and_no_more(server, api, py, fresh):
    run = fresh()
    held = [begin_put(server, run, f"/tmp/held-{i}", 1 << 20) for i in range(32)]
    until(lambda: sessions(py, run) == 32)
    fails(lambda: py.capsule_runs.files(run).read("/etc/passwd"), "capacityExceeded", "32")
    assert sh(py, run, "echo commands go on") == "commands go on\n"
    for s in held:
        s.close()
    until(lambda: sessions(py, run) == 0)
    until(lambda: api.raw("GET", url(run, "/etc/hostname"))[0] == 200)


def test_f_a_run_without_processes_left_still_has_files(py, fresh):
    run = fresh(limits={"pids": 8})
    py.capsule_runs.exec(run, "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; sleep 1000")
    root = py.capsule_runs.files(run, user="root")
    until(lambda: sum(1 for f in root.list("/proc") if f.name.isdigit()) >= 9)
    assert root.read_text("/etc/hostname") == "c\n"


# Makes an mt-session that waits for the content of a file say something else, as its own user may.
FAKE = r"""
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
ATTACH, DETACH, GETREGS, SETREGS, STEP, SETOPTIONS = 16, 17, 12, 13, 9, 0x4200
EXITKILL = 0x100000  # what is held does not outlive who holds it
R10, RAX, RSI, RDI, ORIG, RIP, RDX, RSP = 7, 10, 13, 14, 15, 16, 12, 19
said, times = eval(sys.argv[1]), int(sys.argv[2])

# Whether it goes on: it ends whenever it likes, or somebody ends it.
def stopped(pid):
    return os.WIFSTOPPED(os.waitpid(pid, 0)[1])

def say(pid):
    if libc.ptrace(ATTACH, pid, None, None) < 0:
        why = os.strerror(ctypes.get_errno())
        if open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0] in "ZX":
            return
        os.write(1, why.encode())
        sys.exit(3)
    if not stopped(pid):
        return
    libc.ptrace(SETOPTIONS, pid, None, EXITKILL)
    regs = (ctypes.c_ulonglong * 27)()
    libc.ptrace(GETREGS, pid, None, ctypes.byref(regs))
    if (regs[ORIG], regs[RDI]) != (0, 0):  # it has gone on meanwhile
        libc.ptrace(DETACH, pid, None, None)
        return
    call, at = regs[RIP] - 2, regs[RSP] - 8192 - len(said)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(at)
        memory.write(said)
    for _ in range(times):
        regs[RAX], regs[ORIG], regs[RDI], regs[RSI], regs[RDX], regs[RIP] = 1, 2**64 - 1, 0, at, len(said), call
        libc.ptrace(SETREGS, pid, None, ctypes.byref(regs))
        libc.ptrace(STEP, pid, None, None)
        if not stopped(pid):
            return
    time.sleep(1000)

while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            # it waits in read(0, …)
            if open(f"/proc/{pid}/comm").read() == "mt-session\n" and open(f"/proc/{pid}/syscall").read()[:5] == "0 0x0":
                say(int(pid))
        except (OSError, ValueError):  # it has gone meanwhile
            libc.ptrace(DETACH, int(pid), None, None)
    time.sleep(0.01)
"""


@pytest.mark.parametrize("said, times", [
    ('b"\\xff" * 65536', 1),                                    # no frame at all
    ('b"\\x00\\x00\\x01\\x00\\x04" + b"y" * 65536', 2000),       # content that nobody asked for
    ('b"\\x01\\x00\\x00\\x00\\x05\\x00"', 1),                    # the end, before the content came
    ('b"\\x00\\x00\\x00\\x00\\x07"', 1),                         # an entry without anything
    ('b"\\x00\\x00\\x00\\x00\\x02" * 1000', 100),                # go, go, go
], ids=["garbage", "content", "end", "entry", "go"])
def test_f_who_speaks_for_the_helper_harms_its_own_transfer_alone(server, api, py, run, said, times):
    before = rss_kib(server.server)
    fake = py.capsule_runs.exec(run, "python3", ["-c", FAKE, said, str(times)], run_async=True)
    s = begin_put(server, run, "/tmp/faked", 1 << 20)
    status, answer = answer_to(s)
    s.close()
    if status != 503 or not re.search(b"interferes|never says", answer):
        done = py.capsule_runs.wait_command(run, fake, timeout=1)
        assert done.exit_code == 3, (status, answer, done)
        pytest.skip(f"this kernel keeps processes of one user apart: {done.output_standard}")
    py.capsule_runs.cancel_command(run, fake)
    py.capsule_runs.wait_command(run, fake)
    assert py.capsule_runs.files(run).read("/etc/hostname")
    assert rss_kib(server.server) - before < 16 << 10


# The same for one that is at work: it is stopped wherever it is, and says it from there.
FAKE_BUSY = FAKE.replace("call, at = regs[RIP] - 2,", "call, at = instruction(pid),").replace(
    "if (regs[ORIG], regs[RDI]) != (0, 0):", "if False:").replace(
    'open(f"/proc/{pid}/syscall").read()[:5] == "0 0x0"', "True").replace("time.sleep(0.01)", "pass").replace("def say(pid):", """
def instruction(pid):
    line = next((l for l in open(f"/proc/{pid}/maps") if " r-xp " in l), None)
    if line is None:
        raise ProcessLookupError
    begin, end = (int(x, 16) for x in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(begin)
        return begin + memory.read(end - begin).index(b"\\x0f\\x05")

def say(pid):""")


def frame(kind, payload):
    return struct.pack("<IB", len(payload), kind) + payload


def text(s):
    return struct.pack("<I", len(s)) + s


def test_f_a_listing_does_not_go_on_behind_its_end(server, api, py, run):
    entry = frame(7, text(b"/x") + b"\0" + text(b"") + b"\0" + struct.pack("<IQQqq", 0o644, 1, 1, 1, 1))
    said = frame(8, text(b"") + struct.pack("<Q", 0)) + entry + frame(5, b"\0")
    fake = py.capsule_runs.exec(run, "python3", ["-c", FAKE_BUSY, repr(said), "1"], run_async=True)
    until(lambda: py.capsule_runs.get_command(run, fake).status == "Running")
    for _ in range(200):  # until one of them is met in the middle of its work
        status, _, answer = api.raw("GET", f"/v1/capsule-runs/{run.id}/files/list?path=/&recursive=true&limit=1000")
        assert json.loads(answer), answer
        if status != 200:
            break
    py.capsule_runs.cancel_command(run, fake)
    done = py.capsule_runs.wait_command(run, fake)
    if done.exit_code == 3:
        pytest.skip(f"this kernel keeps processes of one user apart: {done.output_standard}")
    assert status == 503 and "interferes" in json.loads(answer)["detail"], (status, answer[-300:], done)


# And it keeps all that it meets, but for those that are ended: only then are they counted no more.
FAKE_MANY = """
seen = set()

def let_go():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: continue
    except ChildProcessError:
        return
""" + FAKE_BUSY.replace("    time.sleep(1000)", "    seen.add(pid)").replace("    pass\n", "    let_go()\n").replace(
    "if open(f\"/proc/{pid}/comm", "if int(pid) not in seen and open(f\"/proc/{pid}/comm")


def test_f_lists_that_never_end_do_not_fill_the_server(server, api, py, run):
    """Each is as long as one may be, and the process that says it then says nothing more."""
    path = b"/" + b"\xff" * 4000
    entry = frame(7, text(path) + b"\0" + text(b"") + b"\0" + struct.pack("<IQQqq", 0o644, 1, 1, 1, 1))
    before = rss_kib(server.server)
    fake = py.capsule_runs.exec(run, "python3", ["-c", FAKE_MANY, f"{entry!r} * 100", "6"], run_async=True)
    answers = []

    def ask():
        status, _, answer = api.raw("GET", f"/v1/capsule-runs/{run.id}/files/list?path=/&recursive=true&limit=1000")
        answers.append((status, answer))

    def held():
        assert not (fake_now := py.capsule_runs.get_command(run, fake)).end_reason, fake_now
        asking = [t for t in asked if t.is_alive()]
        for _ in range(28 - len(asking)):
            asked.append(threading.Thread(target=ask, daemon=True))
            asked[-1].start()
        return sum(status == 503 and b"too many long lists" in answer for status, answer in answers) > 3
    asked = []
    until(held, 90)
    assert rss_kib(server.server) - before < 160 << 10
    py.capsule_runs.cancel_command(run, fake)
    until(lambda: sessions(py, run) == 0)
    assert py.capsule_runs.files(run).read("/etc/hostname")


def test_f_what_is_left_of_an_ended_process_is_no_fault_of_a_list(py, run):
    """The kernel refuses to list its network."""
    command = py.capsule_runs.exec(run, "sh -c 'sleep 0 & exec sleep 1000'", run_async=True)
    until(lambda: "Z" in sh(py, run, "cut -d')' -f2 /proc/[0-9]*/stat | cut -c2"))
    assert py.capsule_runs.files(run).list("/proc", recursive=True)
    py.capsule_runs.cancel_command(run, command)


def test_f_an_image_without_programs_still_has_files(py, fresh):
    """mt-session is none of the image's: what a capsule removes or replaces is not what runs."""
    run = fresh()
    root = py.capsule_runs.files(run, user="root")
    root.write_text("/tmp/before", "x")
    py.capsule_runs.exec_and_wait(run, "rm", ["-rf", "/usr/bin", "/usr/lib", "/etc/ld.so.cache"], run_as_user="root")
    assert root.read_text("/tmp/before") == "x"
    py.capsule_runs.files(run).write_text("still", "works")
    assert py.capsule_runs.files(run).read_text("still") == "works"
