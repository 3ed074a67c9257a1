"""O-26, the part of the stream: servers that end, cleanly or not, and clients that come back; many at once."""
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import mtserver
from eventstream import Stream, frames_of


@pytest.fixture(scope="module")
def killed(api, server):
    """The server of the others, started again after each test however it left it; its API."""
    yield api
    if server.server.poll() is not None:
        server.start_server()


class Follower:
    """A client that comes back with its last number whenever the stream is cut."""

    def __init__(self, server, query):
        self.server, self.query = server, query
        self.numbers, self.ends, self.stop = [], [], False
        self.after = self.newest = None
        self.began = threading.Event()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()
        assert self.began.wait(30)

    def _follow(self):
        while not self.stop:
            headers = {} if self.after is None else {"Last-Event-ID": str(self.after)}
            try:
                one = Stream(self.server, self.query, headers)
            except (OSError, AssertionError, mtserver.http.client.HTTPException):
                time.sleep(0.02)
                continue
            self.after = self.after if self.after is not None else one.hello.id
            assert one.hello.id == self.after
            self.began.set()
            while one.thread.is_alive() and not self.stop:
                self.newest = max([self.after, *one.numbers])
                one.thread.join(0.05)
            one.close()
            self.numbers += one.numbers
            self.after = max([self.after, *one.numbers])
            self.ends += [f.data["code"] for f in one.frames if f.name == "end"]

    def reach(self, number, seconds=20):
        deadline = time.monotonic() + seconds
        while (self.newest or 0) < number:
            assert time.monotonic() < deadline, (self.newest, number)
            time.sleep(0.02)

    def finish(self):
        self.stop = True
        self.thread.join(30)


def end_server(server, how):
    if how == "killed":
        server.server.kill()
        server.server.wait()
    else:
        server._end(server.server)
    server.start_server()


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_o26_nothing_is_lost_or_comes_twice(killed, server, how):
    api = killed
    ns = api.namespace()
    follower = Follower(server, f"?namespace={ns}")
    made = []
    for i in range(30):
        try:
            made.append(api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": f"v{i}"}, 201)["id"])
        except (OSError, mtserver.http.client.HTTPException):
            pass  # cut by the end of the server: it may have been made
        if i in (8, 17, 25):
            end_server(server, how)
    status, _, raw = api.raw("GET", f"/v1/events?follow=false&namespace={ns}&last=1000")
    assert status == 200
    all_of_them = [f for f in frames_of(raw) if f.name == "change"]
    assert {f.data["id"] for f in all_of_them if f.data["kind"] == "vfs"} >= set(made)
    expected = [f.data["number"] for f in all_of_them if f.data["kind"] == "vfs"]
    follower.reach(expected[-1])
    follower.finish()
    assert follower.numbers == expected, (follower.numbers, expected)
    assert set(follower.ends) == ({"stopping"} if how == "stopped" else set())


def runs_somewhere(word):
    """Whether a process of this machine has the word as an argument."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in line.read_bytes().split(b"\0"):
                return True
        except OSError:  # it has just ended
            continue
    return False


def test_o26_an_end_during_the_absence_is_told(killed, server, bench):
    """What ends while no server is there ends in the stream of the next one, once."""
    command = bench.send("sleep 1.0407; exit 7")
    events = Stream(server, f"?run={bench.id}&kind=command&last=1")
    after = events.change(id=command)["number"]
    server.server.kill()
    server.server.wait()
    deadline = time.monotonic() + 20
    while runs_somewhere("1.0407"):  # the command ends meanwhile
        assert time.monotonic() < deadline
        time.sleep(0.02)
    server.start_server()
    again = Stream(server, f"?run={bench.id}&kind=command", {"Last-Event-ID": str(after)})
    told = again.change(id=command, change="ended")
    assert (told["status"], told["exitCode"]) == ("Error", 7)
    bench.sh("true")
    again.change(change="ended")
    assert len([f for f in again.frames if f.name == "change" and f.data["id"] == command and f.data["change"] == "ended"]) == 1
    again.close()
    events.close()


def test_200_streams_at_once(api, server, bench):
    """All are told of each command, soon; then they are closed, and nothing of them is left."""
    def files():
        return len(os.listdir(f"/proc/{server.server.pid}/fd"))

    before = files()
    streams = [Stream(server, f"?run={bench.id}&kind=command") for _ in range(200)]
    began = time.monotonic()
    commands = [bench.send(f"exit {i}") for i in range(5)]
    for one in streams:
        assert [one.change(change="ended")["id"] for _ in commands] == commands
    assert time.monotonic() - began < 10
    assert api.call("GET", "/v1/health")["status"] == "ok"
    for one in streams:
        one.close()
    deadline = time.monotonic() + 10
    while files() > before + 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert files() <= before + 5


def test_one_user_has_his_share(api, server, person):
    _, headers = person()
    streams = []
    for _ in range(256):
        streams.append(Stream(server, "", headers))
    status, code, sentence = api.error("GET", "/v1/events", None, headers)
    assert (status, code) == (429, "rateLimited") and "256 event streams" in sentence
    assert api.raw("GET", "/v1/events?follow=false")[0] == 200  # others have theirs
    streams.pop().close()
    deadline = time.monotonic() + 10
    while api.raw("GET", "/v1/events?follow=false", None, headers)[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for one in streams:
        one.close()


# ---- mt ----

def started(server, *arguments):
    environment = {**os.environ, **server.environment(), "MAITENTO_URL": f"unix:{server.socket}"}
    return subprocess.Popen([mtserver.program("mt"), "events", *arguments], env=environment, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def lines_until(process, holds, seconds=30):
    """The lines of its stdout up to the one for which holds is true."""
    lines, timer = [], threading.Timer(seconds, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if holds(line):
                return lines
        raise AssertionError(f"it ended before: {lines[-20:]} {process.stderr.read()}")
    finally:
        timer.cancel()


def test_mt_follows_over_restarts(killed, server):
    api = killed
    ns = api.namespace()
    process = started(server, "-f", "-n", ns, "--json", "--last", "1")
    lines = lines_until(process, lambda line: True)  # it listens
    for i in range(9):
        api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": f"v{i}"}, 201)
        if i in (2, 5):
            end_server(server, "killed" if i == 2 else "stopped")
    lines += lines_until(process, lambda line: '"v8"' in line)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    notes = process.stderr.read()
    assert "trying again" in notes and "connected again, after event" in notes, notes
    names = [json.loads(line)["name"] for line in lines]
    assert names == [ns] + [f"v{i}" for i in range(9)]
