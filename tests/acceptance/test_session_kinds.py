"""Sessions in runs on runners of each kind: with control groups of version 1 alone, without machines made ahead, with
scratch in memory."""
import socket
import sys
import time

import pytest

import mtserver
from conftest import Api

sys.path.insert(0, str(mtserver.ROOT / "sdk" / "python"))
import maitento  # noqa: E402

KINDS = {"v1": ["--cgroup", "v1"], "no-spares": ["--spares", "0"], "tmpfs": ["--scratch-tmpfs"]}


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def own(request):
    with mtserver.Server(image="slim", runner_options=KINDS[request.param]) as server:
        yield server


@pytest.fixture()
def py(own):
    with maitento.Maitento(f"unix:{own.socket}") as client:
        yield client


@pytest.fixture()
def run(own, py):
    api = Api(own)
    ns = api.namespace("kinds")
    api.capsule(ns, [], users=[{"name": "sandbox"}], maxDuration="00:05:00")
    run = py.capsules.start("c", ns)
    yield run
    ended = py.capsule_runs.wait(py.capsule_runs.terminate(run))
    assert ended.end_reason == "terminated" and ended.failure_details.startswith("stopped by")


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def read_from(own, at, shell):
    """A reader, without whom a shell is hung up; it is at its prompt."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(own.socket)
    s.sendall(f"GET {at}/{shell['id']}/output HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    got = b""
    while b"$ " not in got:
        piece = s.recv(65536)
        assert piece, got
        got += piece
    return s


def programs(py, run):
    # By an mt-session, so that nothing of a command's is among them.
    root = py.capsule_runs.files(run, user="root")
    found = []
    for entry in root.list("/proc"):
        if entry.name.isdigit():
            try:
                found.append(root.read_text(f"/proc/{entry.name}/cmdline").replace("\0", " ").strip())
            except maitento.MaitentoError as error:
                # Of a process that ends while it is read the answer is cut.
                assert error.code in ("notFound", "conflict", "unreachable"), error
    return found


def test_files_before_the_machine_stands_and_after(own, py, run):
    files = py.capsule_runs.files(run, user="sandbox")  # the run has just been asked for
    files.write_text("x", "early\n")
    assert files.read_text("/home/sandbox/x") == "early\n"
    done = py.capsule_runs.exec_and_wait(run, "cat", ["x"], run_as_user="sandbox")
    assert done.output_standard == "early\n"


def test_a_shell_and_what_does_not_want_to_end(own, py, run):
    api = Api(own)
    at = f"/v1/capsule-runs/{run.id}/shells"
    shell = api.call("POST", at, {"user": "sandbox"}, 201)
    reader = read_from(own, at, shell)
    line = b"trap '' HUP; setsid sleep 9991 & nohup sleep 9992 & (trap '' HUP TERM; sleep 9993)\r"
    assert api.raw("POST", f"{at}/{shell['id']}/input", line)[0] == 204
    until(lambda: {"sleep 9991", "sleep 9992", "sleep 9993"} <= set(programs(py, run)))
    api.call("DELETE", f"{at}/{shell['id']}", None, 204)
    reader.close()
    until(lambda: not [p for p in programs(py, run) if "999" in p or "bash" in p])
    # An mt-session that has listed the others is gone when they are looked at.
    until(lambda: [p for p in programs(py, run) if p != "mt-session"] == ["mt-init"])


def test_a_session_is_limited_as_the_run_is(own, py, run):
    """Its group is one of the run's: what the shell starts counts, and dies, with the rest."""
    api = Api(own)
    at = f"/v1/capsule-runs/{run.id}/shells"
    shell = api.call("POST", at, {}, 201)
    reader = read_from(own, at, shell)
    api.raw("POST", f"{at}/{shell['id']}/input", b"python3 -c \"x = bytearray(8 << 30)\"; echo over $? > /tmp/over\r")

    def over():
        try:
            return py.capsule_runs.files(run).read_text("/tmp/over")
        except maitento.MaitentoError as error:
            assert error.code in ("notFound", "conflict", "unavailable"), error  # there may be no memory for who looks
            return None
    until(over, 120)
    assert over() in ("over 137\n", "over 1\n")
    reader.close()
    api.call("DELETE", f"{at}/{shell['id']}", None, 204)
