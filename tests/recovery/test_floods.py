"""Commands that print for ever, and many that watch them: memory and disk stay bounded, others go on."""
import json
import os
import re
import resource
import select
import socket
import threading
import time
from pathlib import Path

import pytest

from conftest import Api, mtr
import mtserver
from test_recovery import wait_for

FLOODS = int(os.environ.get("MT_FLOODS", "4"))
FLOOD_SECONDS = int(os.environ.get("MT_FLOOD_SECONDS", "4"))
FOLLOWERS = int(os.environ.get("MT_FOLLOWERS", "60"))
MIB = 1 << 20
SMALL = {"memory": "64MiB", "disk": "16MiB", "pids": 64}


@pytest.fixture(scope="module")
def own():
    with mtserver.Server(image="slim") as server:
        api = Api(server)
        api.ns = api.namespace("floods")
        api.deploy(api.ns, {"capsules/c.mtr": mtr({"maxDuration": "00:30:00", "limits": SMALL})})
        yield api


def start(api):
    return api.get(api.start(api.ns, "c"), until="ready")["id"]


def send(api, run, command, **options):
    return api.call("POST", f"/v1/capsule-runs/{run}/commands", {"command": command, **options}, 201)["id"]


def result(api, run, command):
    for _ in range(10):
        found = api.call("GET", f"/v1/capsule-runs/{run}/commands/{command}?wait=60")
        if found["dateEnded"]:
            return found
    raise AssertionError(f"no end: {found}")


def memory(process):
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text()).group(1)) * 1024


def spools(api, run):
    """Bytes on the disk of each output that there is."""
    folder = api.server.dir / "state" / "runs" / run / "out"
    return {f.name: f.stat().st_blocks * 512 for f in folder.iterdir()} if folder.exists() else {}


def duration(seconds):
    return f"00:{seconds // 60:02}:{seconds % 60:02}"


def test_floods_take_no_memory_and_hold_up_no_one(own):
    other = start(own)
    floods = [start(own) for _ in range(FLOODS)]
    assert result(own, other, send(own, other, "echo ok"))["outputStandard"] == "ok\n"
    before = memory(own.server.server)
    sent = [(run, send(own, run, "yes", maxDuration=duration(FLOOD_SECONDS))) for run in floods]
    most, slowest, until = 0, 0.0, time.monotonic() + FLOOD_SECONDS
    while time.monotonic() < until:
        began = time.monotonic()
        assert result(own, other, send(own, other, "echo ok"))["outputStandard"] == "ok\n"
        slowest = max(slowest, time.monotonic() - began)
        most = max(most, memory(own.server.server))
        for run in floods:
            assert sum(spools(own, run).values()) <= 80 * MIB
        time.sleep(max(0, min(1.0, until - time.monotonic())))
    for run, command in sent:
        done = result(own, run, command)
        assert (done["status"], done["endReason"], done["limitMs"]) == ("Error", "timeout", FLOOD_SECONDS * 1000), done
        assert done["outputStandard"] in ("y\n" * 32768, "\ny" * 32768)
        assert done["outputStandardFullLength"] > 65536
    most = max(most, memory(own.server.server))
    print(f"\n{FLOODS} floods of {FLOOD_SECONDS} s: {(most - before) / MIB / FLOODS:.2f} MiB of the server's memory each, "
          f"slowest echo {slowest * 1000:.0f} ms")
    assert most - before < FLOODS * 8 * MIB
    for run in floods + [other]:
        own.terminate({"id": run})


class Follower:
    """A viewer of a command's output, on a socket of its own."""

    def __init__(self, api, run, command, half_closed=False):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        wait_for(lambda: self.socket.connect_ex(api.server.socket) == 0, "the backlog has room", 60)
        self.socket.sendall(f"GET /v1/capsule-runs/{run}/commands/{command}/output?follow=true HTTP/1.1\r\n"
                            "Host: localhost\r\n\r\n".encode())
        if half_closed:
            self.socket.shutdown(socket.SHUT_WR)

    def body(self):
        """Everything up to the last chunk."""
        reader = self.socket.makefile("rb")
        assert b" 200 " in reader.readline()
        while reader.readline().strip():
            pass
        out = b""
        while size := int(reader.readline(), 16):
            out += reader.read(size)
            reader.readline()
        return out


def test_slow_and_half_closed_viewers(own):
    server = own.server.server

    def sockets():
        found = 0
        for fd in os.listdir(f"/proc/{server.pid}/fd"):
            try:
                found += os.readlink(f"/proc/{server.pid}/fd/{fd}").startswith("socket:")
            except OSError:
                pass  # closed meanwhile
        return found

    run, other = start(own), start(own)
    result(own, run, send(own, run, "true"))
    before, open_before = memory(server), sockets()
    slow_flood = send(own, run, "yes", **{"async": True})
    finite = send(own, run, "i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i+1)); sleep 0.1; done", **{"async": True})
    never_read = [Follower(own, run, slow_flood) for _ in range(FOLLOWERS)]
    gone = [Follower(own, run, finite, half_closed=True) for _ in range(FOLLOWERS)]
    readers = [Follower(own, run, finite) for _ in range(FOLLOWERS)]
    bodies = []
    threads = [threading.Thread(target=lambda f=f: bodies.append(f.body())) for f in readers]
    for thread in threads:
        thread.start()
    most = 0
    while any(t.is_alive() for t in threads):
        assert result(own, other, send(own, other, "echo ok"))["outputStandard"] == "ok\n"
        most = max(most, memory(server))
        time.sleep(0.2)
    expected = "".join(f"line {i}\n" for i in range(30)).encode()
    assert bodies == [expected] * FOLLOWERS
    for follower in gone:  # who closes its sending side has left, and is not kept
        while follower.socket.recv(65536):
            pass
    print(f"\n{2 * FOLLOWERS} viewers: {(most - before) / MIB / 2 / FOLLOWERS:.2f} MiB of the server's memory each")
    assert most - before < 2 * FOLLOWERS * MIB // 2
    # Those who never read are cut when the flood has gone past what is kept, or takes too long to send.
    own.call("POST", f"/v1/capsule-runs/{run}/commands/{slow_flood}/cancel")
    for follower in never_read[::2]:
        follower.socket.close()
    for follower in readers + gone:
        follower.socket.close()
    wait_for(lambda: sockets() <= open_before, f"the server has its {open_before} sockets again", 90)
    for r in (run, other):
        own.terminate({"id": r})


def ask(api, path, key):
    """A request that goes on; its connection."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    wait_for(lambda: s.connect_ex(api.server.socket) == 0, "the backlog has room", 60)
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    return s


def answer(s):
    reader = s.makefile("rb")
    status = int(reader.readline().split()[1])
    headers = {}
    while line := reader.readline().strip():
        name, value = line.decode().split(": ", 1)
        headers[name.lower()] = value
    return status, headers, json.loads(reader.read(int(headers["content-length"])))


def readable(sockets):
    poll = select.poll()
    by_number = {s.fileno(): s for s in sockets}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(1000)]


def test_a_user_who_waits_for_much_holds_up_no_one(own):
    """Each user has a share of the requests under way, whatever addresses and keys they come with."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    keys = {}
    for name in ("greedy", "modest"):
        own.call("POST", "/v1/users", {"name": name})
        own.call("PUT", f"/v1/namespaces/{own.ns}/members/{name}", None, 204)
        keys[name] = [own.call("POST", "/v1/keys", {"name": k, "user": name})["key"] for k in ("one", "two")]
    run = start(own)
    path, waiting, refused = f"/v1/capsule-runs/{run}?wait=60", [], []
    for i in range(1650):
        waiting.append(ask(own, path, keys["greedy"][i % 2]))
    until = time.monotonic() + 60
    while len(refused) < 1650 - 1536:
        assert time.monotonic() < until, len(refused)
        for s in readable(waiting):
            waiting.remove(s)
            refused.append(answer(s))
            s.close()
    assert len(waiting) == 1536
    for status, headers, problem in refused:
        assert (status, problem["code"], headers["retry-after"]) == (429, "rateLimited", "1"), problem
        assert problem["detail"].startswith("user 'greedy' has 1536 requests under way"), problem
    with ask(own, f"/v1/capsule-runs/{run}", keys["modest"][0]) as s:
        assert answer(s)[0] == 200
    late = ask(own, path, keys["modest"][0])
    waiting.pop().close()
    wait_for(lambda: look(own, run, keys["greedy"][0]) == 200, "one who leaves makes room", 30)
    own.terminate({"id": run})
    for s in [late, *waiting]:
        status, _, ended = answer(s)
        assert (status, ended["status"]) == (200, "Finished")
        s.close()


def look(api, run, key):
    with ask(api, f"/v1/capsule-runs/{run}", key) as s:
        return answer(s)[0]
