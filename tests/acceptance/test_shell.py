"""mt capsule-shell, on terminals of the tests' own, and the requests behind it."""
import fcntl
import http.client
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

import pytest

import mtserver

sys.path.insert(0, str(mtserver.ROOT / "sdk" / "python"))
import maitento  # noqa: E402


@pytest.fixture(scope="module")
def py(server):
    server.environment()
    with maitento.Maitento(server.url, server.key) as client:
        yield client


@pytest.fixture(scope="module")
def run(api, py):
    ns = api.namespace("shells")
    api.capsule(ns, [], name="bench", users=[{"name": "sandbox"}], maxDuration="00:10:00")
    run = py.capsule_runs.wait(py.capsules.start("bench", ns), until="ready")
    yield run
    py.capsule_runs.terminate(run)


@pytest.fixture()
def fresh(api, ns, py):
    started = []

    def start(**properties):
        api.capsule(ns, [], **{"users": [{"name": "sandbox"}], "maxDuration": "00:05:00", **properties})
        started.append(py.capsule_runs.wait(py.capsules.start("c", ns), until="ready"))
        return started[-1]
    yield start
    for run in started:
        py.capsule_runs.terminate(run)


def sh(py, run, line, **options):
    return py.capsule_runs.exec_and_wait(run, "sh", ["-c", line], **options).output_standard


def processes(py, run):
    """The words of each process."""
    return sh(py, run, "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null").splitlines()


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


class Terminal:
    """mt on a terminal of its own."""

    def __init__(self, server, *arguments, size=(33, 101), term="xterm"):
        self.master, slave = pty.openpty()
        self.size(*size)
        self.slave, self.out = slave, b""
        self.before = termios.tcgetattr(slave)
        environment = {**os.environ, **server.environment(), "TERM": term}
        self.process = subprocess.Popen([mtserver.program("mt"), *arguments], stdin=slave, stdout=slave, stderr=slave,
                                        env=environment, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def see(self, pattern, seconds=30):
        """Waits for a text that fits, and drops what was shown up to its end."""
        end = time.monotonic() + seconds
        while not (match := re.search(pattern.encode(), self.out, re.S)):
            assert time.monotonic() < end, f"{pattern!r} did not come: {self.out[-2000:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.out += os.read(self.master, 65536)
        self.out = self.out[match.end():]
        return match

    def left(self, seconds=30):
        """The exit status; the terminal must be as it was."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"mt goes on: {self.out[-2000:]!r}"
            if select.select([self.master], [], [], 0.05)[0]:
                self.out += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0)[0]:
            self.out += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture()
def terminal(server):
    opened = []

    def open_one(run, *arguments, **options):
        opened.append(Terminal(server, "capsule-shell", run.id, *arguments, **options))
        return opened[-1]
    yield open_one
    for one in opened:
        one.close()


# ---- on a terminal ----

def test_f_shell_is_a_login_of_the_user_on_a_terminal_of_the_run(terminal, run):
    t = terminal(run, term="xterm-256color")
    t.see(r"\$ $")
    t.type("echo $0:$USER:$HOME:$PWD:$TERM:$LANG; shopt -q login_shell && echo log''in\r")
    t.see(r"-bash:maitento:/home/maitento:/home/maitento:xterm-256color:C.UTF-8\r\nlogin\r\n")
    t.type("test -t 0 && test -t 2 && stat -c '%U' $(tty); echo hi > /dev/tty\r")
    t.see("maitento\r\nhi\r\n")
    t.type("exit 7\r")
    assert t.left() == 7


def test_f_shell_as_another_user_and_its_signal(terminal, run):
    t = terminal(run, "--user", "sandbox")
    t.see(r"\$ $")
    t.type("who''ami; kill -9 $$\r")
    t.see("sandbox\r\n")
    assert t.left() == 137


def test_f_shell_knows_its_size_and_hears_of_another(terminal, run):
    t = terminal(run, size=(33, 101))
    t.see(r"\$ $")
    # Without a trap for it bash goes on where a Ctrl-C meets a sleep that is just over.
    t.type("stty size; bash -c 'trap \"stty size\" WINCH; trap \"exit 130\" INT; echo wai\"\"ting; while :; do sleep 0.1; done'\r")
    t.see("33 101\r\n.*waiting\r\n")
    t.size(44, 132)
    t.see("44 132\r\n")
    t.type("\x03")
    t.see(r"\$ $")
    t.type("exit\r")
    assert t.left() == 130, "of the last command, as bash has it"


def test_f_ctrl_c_reaches_the_foreground_alone(terminal, py, run):
    t = terminal(run)
    t.see(r"\$ $")
    t.type("sleep 7771 & echo st''arted\r")
    t.see("started")
    t.type("sleep 7772\r")
    until(lambda: "7772" in sh(py, run, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
    t.type("\x03")
    t.see(r"\^C.*\$ $")
    lines = sh(py, run, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "7771" in lines and "7772" not in lines
    t.type("cat\r")
    until(lambda: "cat:/dev/pts" in sh(py, run, "for p in /proc/[0-9]*; do echo $(cat $p/comm):$(readlink $p/fd/0); done"))
    t.type("through\r")
    t.see("through\r\nthrough\r\n")
    t.type("\x04")
    t.see(r"\$ $")
    t.type("kill %1; exit 0\r")
    assert t.left() == 0


def test_f_what_a_shell_leaves_in_the_background_lives_on(terminal, py, run):
    t = terminal(run)
    t.see(r"\$ $")
    t.type("setsid sleep 7773 > /dev/null 2>&1 < /dev/null &\r")
    until(lambda: "sleep 7773 " in processes(py, run))  # until then it is the shell's
    t.type("exit\r")
    assert t.left() == 0
    assert "sleep 7773 " in processes(py, run)
    sh(py, run, "kill $(grep -l 7773 /proc/[0-9]*/cmdline | grep -v self | cut -d/ -f3) 2>/dev/null; true")


def test_f_bytes_pass_unchanged_and_fast_output_whole(terminal, run):
    t = terminal(run)
    t.see(r"\$ $")
    t.type("stty -echo; echo co''oked; cat > /tmp/typed; stty echo; echo re''ady\r")
    t.see("cooked")
    t.type("snow ❄ and \x16\x01 control\r\x04")
    t.see("ready")
    t.type("od -An -c /tmp/typed | tr -d ' \\n'; echo; seq 200000 | sha256sum; seq 200000; echo al''l\r")
    t.see(r"snow\\?342\\?235\\?204and001control")
    shown = t.see(r"-\r\n(.*?)all\r\n", 180).group(1)
    assert shown == b"".join(b"%d\r\n" % i for i in range(1, 200001))
    t.type("exit\r")
    assert t.left() == 0


def test_f_a_run_that_ends_ends_the_shell_with_the_reason(terminal, py, fresh):
    run = fresh()
    t = terminal(run)
    t.see(r"\$ $")
    py.capsule_runs.terminate(run)
    assert t.left() == 125
    assert b"stopped by" in t.out


def test_f_a_run_out_of_time_says_so(api, terminal, fresh):
    run = fresh()
    t = terminal(run)
    t.see(r"\$ $")
    limit = api.shorten(run.id)
    assert t.left() == 125
    assert f"out of time: maxDuration {limit}".encode() in t.out


def test_f_shells_that_cannot_be(terminal, mt, py, fresh, run):
    t = terminal(run, "--user", "nobody")
    assert t.left() == 125 and b"no user 'nobody'" in t.out
    assert mt("capsule-shell", run.id, check=125).stderr.startswith("mt: capsule-shell needs a terminal")
    ended = fresh()
    py.capsule_runs.wait(py.capsule_runs.terminate(ended))
    t = terminal(ended)
    assert t.left() == 125 and b"has ended" in t.out


def test_f_mt_that_is_ended_leaves_the_terminal_in_order(terminal, api, py, run):
    t = terminal(run)
    t.see(r"\$ $")
    t.type("trap 'touch /tmp/hung-up' HUP; sleep 7774\r")
    until(lambda: "7774" in sh(py, run, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
    t.process.send_signal(signal.SIGTERM)
    assert t.left() == 143
    assert api.call("GET", shells(run))["items"][0]["endReason"] == "closed"
    until(lambda: "7774" not in sh(py, run, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))


# ---- the requests ----

def shells(run, *more):
    return "/".join([f"/v1/capsule-runs/{run.id}/shells", *more])


class Output:
    """What a shell shows."""

    def __init__(self, server, run, shell):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(server.socket)
        self.socket.sendall(f"GET {shells(run, shell, 'output')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.answer = None

    def until(self, what):
        """Waits for it to be shown (None: for the end of the answer); what was shown up to then."""
        if not self.answer:
            self.answer = http.client.HTTPResponse(self.socket)
            self.answer.begin()
            assert self.answer.status == 200
        shown = b""
        while what is None or what not in shown:
            piece = self.answer.read1(65536)
            if not piece:
                assert what is None, shown
                break
            shown += piece
        return shown

    def close(self):
        if self.answer:
            self.answer.close()
        self.socket.close()


def test_f_a_shell_by_requests(server, api, run):
    shell = api.call("POST", shells(run), {"columns": 90, "rows": 20}, 201)
    assert (shell["status"], shell["user"], shell["columns"]) == ("Running", "maitento", 90)
    out = Output(server, run, shell["id"])
    out.until(b"$ ")
    assert api.raw("POST", shells(run, shell["id"], "input"), b"stty size; echo a''b\r")[0] == 204
    assert b"20 90" in out.until(b"ab\r\n")
    api.call("PUT", shells(run, shell["id"], "size"), {"columns": 70, "rows": 10}, 204)
    api.raw("POST", shells(run, shell["id"], "input"), b"stty size; exit 3\r")
    assert b"10 70" in out.until(None), "the answer ends with the shell"
    over = api.call("GET", shells(run, shell["id"]))
    assert (over["status"], over["exitCode"], over["endReason"]) == ("Ended", 3, "exited")
    assert api.raw("GET", shells(run, shell["id"], "output"))[::2] == (200, b"")
    assert api.error("PUT", shells(run, shell["id"], "size"), {"columns": 1, "rows": 1})[1] == "conflict"
    assert json.loads(api.raw("POST", shells(run, shell["id"], "input"), b"x")[2])["code"] == "conflict"
    assert shell["id"] in [s["id"] for s in api.call("GET", shells(run))["items"]]


def test_f_a_shell_is_checked(api, run):
    for body, field in (({"term": "a b"}, "term"), ({"columns": 0}, "columns"), ({"rows": 5000}, "rows"),
                        ({"user": "nobody"}, "user"), ({"colour": 1}, "colour")):
        status, code, detail = api.error("POST", shells(run), body)
        assert (status, code) == (400, "badField") and field in detail
    assert api.error("GET", shells(run, "01a22bb3-efe3-712e-8b46-3cc64e31782f"))[1] == "notFound"


def test_f_another_reader_takes_over(server, api, run):
    shell = api.call("POST", shells(run), {}, 201)
    first = Output(server, run, shell["id"])
    first.until(b"$ ")
    second = Output(server, run, shell["id"])
    first.until(None)
    api.raw("POST", shells(run, shell["id"], "input"), b"echo on''ward\r")
    second.until(b"onward")
    api.call("DELETE", shells(run, shell["id"]), None, 204)
    second.until(None)
    assert api.call("GET", shells(run, shell["id"]))["endReason"] == "closed"


def test_f_a_shell_that_nobody_reads_is_hung_up(server, api, py, run):
    shell = api.call("POST", shells(run), {}, 201)
    out = Output(server, run, shell["id"])
    out.until(b"$ ")
    api.raw("POST", shells(run, shell["id"], "input"), b"trap 'echo bye > /tmp/hup' HUP; while :; do sleep 0.1; done\r")
    out.close()
    until(lambda: api.call("GET", shells(run, shell["id"]))["status"] == "Ended", 40)
    assert api.call("GET", shells(run, shell["id"]))["endReason"] == "abandoned"
    until(lambda: sh(py, run, "cat /tmp/hup") == "bye\n")


def rss_kib(process):
    with open(f"/proc/{process.pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def test_f_output_that_nobody_takes_waits_in_the_run(server, api, py, run):
    shell = api.call("POST", shells(run), {}, 201)
    out = Output(server, run, shell["id"])
    out.until(b"$ ")
    before = rss_kib(server.server)
    api.raw("POST", shells(run, shell["id"], "input"), b"yes | head -c 300000000; echo do''ne\r")
    time.sleep(3)
    assert rss_kib(server.server) - before < 8 << 10
    assert sh(py, run, "echo still here") == "still here\n"
    # Ctrl-C gets through although nothing else does.
    api.raw("POST", shells(run, shell["id"], "input"), b"\x03")
    until(lambda: "yes" not in sh(py, run, "cat /proc/[0-9]*/comm").split())
    api.call("DELETE", shells(run, shell["id"]), None, 204)
    out.close()


def test_f_shells_count_among_the_sessions_of_a_run(api, fresh):
    run = fresh()
    made = [api.call("POST", shells(run), {}, 201)["id"] for _ in range(32)]
    assert api.error("POST", shells(run), {})[1] == "capacityExceeded"
    for shell in made:
        api.call("DELETE", shells(run, shell), None, 204)
    until(lambda: api.raw("POST", shells(run), b"{}", {"Content-Type": "application/json"})[0] == 201)


def test_f_only_who_may_command_has_shells_and_files(server, api, run):
    name = f"stranger-{os.getpid()}"
    api.call("POST", "/v1/users", {"name": name})
    key = api.call("POST", "/v1/keys", {"name": "k", "user": name})["key"]
    sign_in = {"Authorization": f"Bearer {key}"}
    for method, path, body in (("POST", shells(run), {}), ("GET", shells(run), None),
                               ("GET", f"/v1/capsule-runs/{run.id}/files?path=/etc/passwd", None),
                               ("DELETE", f"/v1/capsule-runs/{run.id}/files?path=/etc/passwd", None)):
        assert api.error(method, path, body, sign_in)[1] == "notFound"
    # A member sees the run, and may end it; in it he acts as nobody.
    ns = api.call("GET", f"/v1/capsule-runs/{run.id}")["namespace"]
    api.call("PUT", f"/v1/namespaces/{ns}/members/{name}", None, 204)
    assert api.call("GET", f"/v1/capsule-runs/{run.id}", headers=sign_in)["id"] == run.id
    for method, path, body in (("POST", shells(run), {}), ("GET", shells(run), None),
                               ("GET", f"/v1/capsule-runs/{run.id}/files?path=/etc/passwd", None)):
        assert api.error(method, path, body, sign_in)[1] == "forbidden"
    status, _, answer = api.raw("PUT", f"/v1/capsule-runs/{run.id}/files?path=/tmp/x", b"x" * 100000, sign_in)
    assert status == 403 and json.loads(answer)["code"] == "forbidden"


def test_f_a_shell_is_given_its_terminal_and_nothing_else(server, api, py, run):
    shell = api.call("POST", shells(run), {}, 201)
    out = Output(server, run, shell["id"])
    out.until(b"$ ")
    api.raw("POST", shells(run, shell["id"], "input"), b"readlink /proc/$$/fd/* | sort | uniq -c; echo par''ent $PPID s''een\r")
    seen = out.until(b"seen\r\n").decode()
    kept = {line.split()[1] for line in seen.splitlines() if re.match(r" +\d+ ", line)}
    assert len(kept) == 1 and re.fullmatch(r"/dev/pts/\d+", *kept), seen
    pid = re.search(r"parent (\d+) seen", seen).group(1)
    assert py.capsule_runs.files(run).read_text(f"/proc/{pid}/comm") == "mt-session\n"
    held = {sh(py, run, f"readlink /proc/{pid}/fd/{fd.name}").split(":")[0].strip()
            for fd in py.capsule_runs.files(run).list(f"/proc/{pid}/fd")}
    assert held == {"socket", "/dev/null", "/dev/pts/ptmx", "anon_inode"}, held
    # The one copy that all runs execute is nobody's to change (CVE-2019-5736).
    for user in ("root", "maitento"):
        tried = py.capsule_runs.exec_and_wait(run, f"echo x > /proc/{pid}/exe", run_as_user=user)
        assert tried.exit_code == 1 and re.search("busy|denied|not permitted", tried.output_error), tried.output_error
    api.call("DELETE", shells(run, shell["id"]), None, 204)


def test_f_a_restart_of_the_server_ends_shells_and_tells(fresh_server_shell):
    server, api, terminal_of, run, py = fresh_server_shell
    t = terminal_of(run)
    t.see(r"\$ $")
    server.server.kill()
    server.server.wait()
    server.start_server()
    assert t.left(60) == 125
    assert b"no shell" in t.out and b"restart" in t.out
    until(lambda: "mt-session" not in sh(py, run, "cat /proc/[0-9]*/comm"))
    assert py.capsule_runs.files(run).read_text("/etc/hostname")


@pytest.fixture()
def fresh_server_shell():
    from conftest import Api
    with mtserver.Server(image="slim") as own:
        own.environment = lambda: {"MAITENTO_URL": f"unix:{own.socket}"}  # its port is another after a restart
        api = Api(own)
        opened = []
        with maitento.Maitento(f"unix:{own.socket}") as py:
            ns = api.namespace()
            api.capsule(ns, [], maxDuration="00:05:00")
            run = py.capsule_runs.wait(py.capsules.start("c", ns), until="ready")

            def terminal_of(run):
                opened.append(Terminal(own, "capsule-shell", run.id))
                return opened[-1]
            yield own, api, terminal_of, run, py
            for one in opened:
                one.close()
            py.capsule_runs.terminate(run)
