# SPDX-License-Identifier: Apache-2.0
"""Speaks to mt-runner and supervisors as maitentod does: plans, frames and journal records
(src/capsule/{plan,protocol,journal}.h). Starts a runner of its own on a temporary state. Tests and
tests/runner/try use it. Standard library only.
"""
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("MT_BUILD", ROOT / "build"))
IMAGES = Path(os.environ.get("MT_IMAGES", "/var/cache/maitento/images"))
SERVICE = 61234

HELLO, INFO, START, STARTED, FAILED, SWEEP, SWEPT, GONE = range(1, 9)
ATTACH, RECORD, TERMINATE = 32, 33, 34
API = 56
STATUSES = ["Starting", "Running", "Finished", "Error"]
REASONS = ["none", "exited", "signaled", "timeout", "outOfMemory", "terminated", "runEnded", "startFailed",
           "parentEnded", "diskFull", "supervisorLost", "nodeLost"]
MIB = 1 << 20


class Gone(Exception):
    """The other side closed the connection."""


class Failed(Exception):
    """The runner refused: code, sentence."""

    def __init__(self, code, sentence):
        super().__init__(f"{code}: {sentence}")
        self.code, self.sentence = code, sentence


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<I", len(b)) + b


def texts(items):
    return struct.pack("<I", len(items)) + b"".join(text(i) for i in items)


class Reader:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, form):
        v = struct.unpack_from("<" + form, self.data, self.pos)
        self.pos += struct.calcsize("<" + form)
        return v[0]

    def bytes(self):
        n = self.take("I")
        self.pos += n
        return self.data[self.pos - n:self.pos]

    def text(self):
        return self.bytes().decode(errors="replace")


def boottime_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def image_digest(name="slim"):
    return (IMAGES / "names" / name).read_text().strip()


def plan(startup=(), *, run_id=None, image=None, mounts=(), users=(), environment=(), auto_terminate=True,
         max_duration_ms=60000, memory=512 * MIB, cpu_milli=0, pids=128, disk=256 * MIB, hostname="test",
         namespace="ns", capsule="cap", deadline_ns=None, network=0, version=1, packages=(), starter="",
         secrets=()):
    """startup: strings, or dicts with command, arguments, user, wait, max_duration_ms."""
    out = struct.pack("<H", version)
    out += text(run_id or str(uuid.uuid4())) + text(namespace) + text(capsule) + text(starter)
    out += text(image or image_digest())
    out += texts(list(packages)) + struct.pack("<I", len(mounts))
    for vfs, name in mounts:
        out += text(vfs) + text(name)
    out += texts(list(users)) + struct.pack("<I", len(environment))
    for key, value in environment:
        out += text(key) + text(value)
    out += struct.pack("<I", len(startup))
    for c in startup:
        c = {"command": c} if isinstance(c, str) else c
        out += text(c["command"]) + texts(c.get("arguments", [])) + text(c.get("user", "maitento"))
        out += struct.pack("<?q", c.get("wait", True), c.get("max_duration_ms", 0))
    out += struct.pack("<?qq", auto_terminate, max_duration_ms,
                       deadline_ns or boottime_ns() + max_duration_ms * 1000000)
    out += struct.pack("<QIIQB", memory, cpu_milli, pids, disk, network) + text(hostname)
    out += struct.pack("<I", len(secrets))
    for name, value in secrets:
        out += text(name) + text(value)
    return out


def crc32c(data):
    crc = 0xffffffff
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def record(frame):
    """One record of a journal, as a dict."""
    length, crc = struct.unpack_from("<II", frame)
    body = frame[8:8 + length]
    if len(body) < length or crc32c(body) != crc:
        raise ValueError("damaged record")
    r = Reader(body)
    out = {"seq": r.take("Q"), "us": r.take("q")}
    kind = r.take("H")
    if kind == 1:
        out.update(type="boot", id=r.text())
    elif kind in (2, 3):
        out.update(type="made" if kind == 2 else "gone",
                   kind=["?", "block", "cgroup", "scratch", "supervisor", "layer"][r.take("H")], name=r.text())
    elif kind == 4:
        out.update(type="phase", name=r.text(), took_us=r.take("Q"))
    elif kind == 5:
        out.update(type="startupStarted", index=r.take("I"))
    elif kind == 6:
        out.update(type="startupEnded", index=r.take("I"), reason=REASONS[r.take("B")], exit=r.take("i"))
    elif kind == 7:
        out.update(type="ready")
    elif kind == 8:
        out.update(type="note", text=r.text())
    elif kind == 9:
        out.update(type="ending", reason=REASONS[r.take("B")])
    elif kind == 10:
        out.update(type="ended", status=STATUSES[r.take("B")], reason=REASONS[r.take("B")], limit_ms=r.take("q"),
                   signal=r.take("I"), by=r.text(), details=r.text(), limits=r.take("I"),
                   memory_peak=r.take("Q"), cpu_us=r.take("Q"))
    elif kind == 11:
        out.update(type="closed")
    else:
        out.update(type=kind)
    return out


def records(data):
    """All whole records of a journal file's bytes."""
    out, pos = [], 8
    while pos + 8 <= len(data):
        length = struct.unpack_from("<I", data, pos)[0]
        if pos + 8 + length > len(data):
            break
        out.append(record(data[pos:pos + 8 + length]))
        pos += 8 + length
    return out


class Link:
    """A stream of frames on a Unix socket."""

    def __init__(self, path, timeout=60):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(str(path))
        self.data = b""
        self.unasked = []
        self.apis = 0
        self.tag = 0

    def close(self):
        self.sock.close()

    def send(self, kind, payload=b"", tag=0):
        self.sock.sendall(struct.pack("<IHI", 6 + len(payload), kind, tag) + payload)

    def receive(self):
        """(type, tag, payload)"""
        while True:
            if len(self.data) >= 4:
                n = struct.unpack_from("<I", self.data)[0] + 4
                if len(self.data) >= n:
                    frame, self.data = self.data[:n], self.data[n:]
                    kind, tag = struct.unpack_from("<HI", frame, 4)
                    if kind == API:  # its descriptor is dropped: nobody here accepts on it
                        self.apis += 1
                        continue
                    return kind, tag, frame[10:]
            more = self.sock.recv(1 << 16)
            if not more:
                raise Gone()
            self.data += more

    def ask(self, kind, payload=b""):
        """Sends a request and returns the payload of its reply; Failed where the runner says so."""
        self.tag += 1
        self.send(kind, payload, self.tag)
        while True:
            got, tag, answer = self.receive()
            if tag != self.tag:
                self.unasked.append((got, answer))
                continue
            if got == FAILED:
                r = Reader(answer)
                raise Failed(r.text(), r.text())
            return answer


class Runner:
    """An mt-runner on a state folder of its own."""

    def __init__(self, *options, state=None, instance=None, scratch_size="512MiB", tmpfs=False):
        self.temporary = state is None
        self.dir = Path(state or tempfile.mkdtemp(prefix="mt-runner-"))
        os.chmod(self.dir, 0o711)
        self.instance = instance or f"t{os.getpid()}-{os.urandom(3).hex()}"
        self.options = list(options)
        self.scratch = ["--scratch-tmpfs"] if tmpfs else [
            "--scratch", str(self.dir / "scratch.img"), "--scratch-size", scratch_size]
        self.process = None

    def command(self):
        return [str(BUILD / "src/runner/mt-runner"), "--state", str(self.dir / "state"), "--images", str(IMAGES),
                "--instance", self.instance, "--service-uid", str(SERVICE), "--service-gid", str(SERVICE),
                "--socket", str(self.dir / "runner.sock"), "--init", str(BUILD / "src/init/mt-init"),
                *self.scratch, *self.options]

    def start(self):
        with open(self.dir / "runner.log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.link = Link(self.dir / "runner.sock")
                self.link.ask(HELLO)  # a supervisor that was just forked may hold the socket of a dead one
                return self
            except (OSError, Gone):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("mt-runner did not come up:\n" + self.log()) from None
                time.sleep(0.01)

    def log(self):
        return (self.dir / "runner.log").read_text(errors="replace")

    def folder(self, run_id):
        return self.dir / "state/runs" / run_id

    def vfs(self, vfs_id=None):
        """Makes an empty file system; its id. Its files are under vfs_path()."""
        vfs_id = vfs_id or str(uuid.uuid4())
        for name in (vfs_id, vfs_id + "/files", vfs_id + "/tmp"):
            path = self.dir / "state/vfs" / name
            path.mkdir(parents=True, exist_ok=True)
            os.chown(path, SERVICE, SERVICE)
            os.chmod(path, 0o770)
        return vfs_id

    def vfs_path(self, vfs_id):
        return self.dir / "state/vfs" / vfs_id / "files"

    def run(self, startup=(), **plan_members):
        """Starts a run; its id."""
        run_id = plan_members.pop("run_id", None) or str(uuid.uuid4())
        self.link.ask(START, plan(startup, run_id=run_id, **plan_members))
        return run_id

    def attach(self, run_id, after=0, timeout=60):
        fd = os.open(self.folder(run_id), os.O_PATH)
        try:
            link = Link(f"/proc/self/fd/{fd}/sock", timeout)
        finally:
            os.close(fd)
        link.send(ATTACH, struct.pack("<Q", after))
        return link

    def journal(self, run_id):
        return records((self.folder(run_id) / "journal").read_bytes())

    def wait(self, run_id, kind="ended", timeout=60):
        """Waits until the journal has a record of that type; the record."""
        deadline = time.monotonic() + timeout
        while True:
            for r in self.journal(run_id):
                if r["type"] == kind:
                    return r
            if time.monotonic() > deadline:
                raise TimeoutError(f"no '{kind}' in {timeout} s: {self.journal(run_id)}\n{self.log()}")
            time.sleep(0.005)

    def supervisor(self, run_id, timeout=60):
        """Its process id."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for r in self.journal(run_id):
                if r["type"] == "made" and r["kind"] == "supervisor":
                    return int(r["name"].split()[0])
            time.sleep(0.005)
        raise TimeoutError("no supervisor")

    def place(self, run_id):
        """What its control groups and scratch folder are called: a spare's are not its own id."""
        return next(r["name"] for r in self.journal(run_id) if r["type"] == "made" and r["kind"] == "cgroup")

    def terminate(self, run_id, by="tester"):
        link = self.attach(run_id)
        link.send(TERMINATE, text(by))
        return link

    def sweep(self, run_id, forget=False):
        """forget: True its folder, "outputs" what its commands printed."""
        self.link.ask(SWEEP, text(run_id) + struct.pack("<B", 2 if forget == "outputs" else forget))

    def of_groups(self, pattern):
        """What is there in the instance's control groups, of whatever hierarchy."""
        roots = [Path("/sys/fs/cgroup"), *(p for p in Path("/sys/fs/cgroup").iterdir() if p.is_dir())]
        parents = [r / f"maitento-{self.instance}" for r in roots]
        return [p for r in parents if r.is_dir() for p in ([r] if pattern == "." else r.glob(pattern))]

    def groups(self):
        """Control groups of runs that were not made ahead."""
        return self.of_groups("*-*-*-*-*")

    def spare_groups(self):
        """Names of those made ahead, whether a run has them by now or not."""
        return {p.name for p in self.of_groups("spare-*")}

    def stop(self, sig=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            self.process.wait(60)
        self.process = None

    def purge(self):
        self.stop()
        subprocess.run([*self.command(), "--purge"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=60, check=False)
        if self.temporary:
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.purge()
            raise

    def __exit__(self, *_):
        self.purge()
