"""A server whose streams are quick to say that they live, and to let go of clients that take nothing."""
import itertools
import os
import sys
from pathlib import Path

import pytest

import mtserver
from eventstream import Stream, frames_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "interactions"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "model"))

OPTIONS = ["--event-heartbeat", "1", "--event-patience", "2", "--allow-host", "maitento.invalid"]
_names = itertools.count(1)


@pytest.fixture(scope="session")
def server():
    with mtserver.Server(image="slim", log_level="debug", server_options=OPTIONS) as running:
        running.environment()
        yield running


@pytest.fixture()
def stream(server):
    """Opens streams, which are closed with the test."""
    opened = []

    def open_one(query="", headers=None, of=server, **options):
        opened.append(Stream(of, query, headers, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture()
def told(api):
    """All events that there are, of a query without follow."""
    def ask(query="", headers=None):
        status, _, raw = api.raw("GET", f"/v1/events?follow=false{query}", None, headers)
        assert status == 200, raw
        return frames_of(raw)
    return ask


@pytest.fixture()
def person(api):
    """Makes a user: (name, headers with his key)."""
    def make():
        name = f"e-{os.getpid()}-{next(_names)}"
        made = api.call("POST", "/v1/users", {"name": name}, 201)
        return name, {"Authorization": f"Bearer {made['key']}"}
    return make


class Bench:
    """A run that stays up, and what it executes."""

    def __init__(self, api, ns):
        self.api, self.ns = api, ns
        api.capsule(ns, [], name="bench", maxDuration="00:10:00", users=[{"name": "sandbox"}])
        self.id = api.start(ns, "bench")["id"]
        api.get({"id": self.id}, "ready")

    def send(self, line, **more):
        return self.api.call("POST", f"/v1/capsule-runs/{self.id}/commands", {"command": line, **more}, 201)["id"]

    def end(self, command, seconds=30):
        answer = self.api.call("GET", f"/v1/commands/{command}?wait={seconds}")
        assert answer["endReason"], answer
        return answer

    def sh(self, line, **more):
        return self.end(self.send(line, **more))

    def terminate(self):
        self.api.call("POST", f"/v1/capsule-runs/{self.id}/terminate?wait=30")


@pytest.fixture(scope="module")
def bench(api):
    one = Bench(api, api.namespace("events"))
    yield one
    one.terminate()


@pytest.fixture()
def other(api, ns):
    """A run that a test may end."""
    return Bench(api, ns)
