# SPDX-License-Identifier: Apache-2.0
"""A run that stays up in a server whose runner is in the lab, and python inside it."""
import json
from pathlib import Path

import pytest

from lab import Gateway, Lab, until

# tried(f): what it gave, or the name of its errno; and whether that was at once, in one of three
# tries, as the machine may be busy with something else.
PRELUDE = r'''
import errno, json, os, socket, struct, sys, time, urllib.request
out = {}

def tried(f, *arguments):
    for _ in range(3):
        began = time.monotonic()
        try:
            result = f(*arguments)
        except socket.gaierror as e:
            result = "gai %d" % e.errno
        except socket.timeout:
            result = "timeout"
        except OSError as e:
            result = errno.errorcode.get(e.errno, repr(e))
        if time.monotonic() - began < 0.9:
            return [result, True]
    return [result, False]

def get(address, port=80, seconds=10):
    with socket.create_connection((address, port), timeout=seconds) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with s.makefile("rb") as f:
            return json.loads(f.read().split(b"\r\n\r\n", 1)[1])

def udp(address, port=7007, seconds=10):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(seconds)
        s.connect((address, port))
        s.send(b"hello")
        return s.recv(100).decode()

def names(name, family=0):
    return sorted({a[4][0] for a in socket.getaddrinfo(name, 80, family, socket.SOCK_STREAM)})
'''


class Machine:
    """A run that stays up, and python in it."""

    def __init__(self, api, ns, name="c", **properties):
        self.api = api
        api.capsule(ns, [], name=name, **{"maxDuration": "00:30:00", **SMALL, **properties})
        self.run = api.start(ns, name)
        self.id = self.run["id"]
        answer = api.get(self.run, until="ready")
        assert answer["status"] == "Running", answer

    def command(self, line, arguments=(), user="maitento", seconds=60, wait=True):
        body = {"command": line, "arguments": list(arguments), "runAsUser": user}
        sent = self.api.call("POST", f"/v1/capsule-runs/{self.id}/commands", body, (200, 201))
        return self.await_command(sent["id"], seconds) if wait else sent["id"]

    def await_command(self, command, seconds=60):
        answer = self.api.call("GET", f"/v1/capsule-runs/{self.id}/commands/{command}?wait={seconds}")
        assert answer["status"] not in ("Queued", "Running"), answer
        return answer

    def background(self, words, until_says, user="maitento"):
        """Sends a command that goes on beside others; returns its id once it has said that."""
        body = {"command": words[0], "arguments": words[1:], "runAsUser": user, "async": True}
        path = f"/v1/capsule-runs/{self.id}/commands"
        command = self.api.call("POST", path, body, (200, 201))["id"]
        until(lambda: until_says in (self.output(command) or ""), f"the command says {until_says}")
        return command

    def output(self, command):
        status, _, text = self.api.raw("GET", f"/v1/capsule-runs/{self.id}/commands/{command}/output?stream=standard")
        assert status == 200, (status, text)
        return text.decode()

    def process(self):
        """A process of the run, as the host numbers it."""
        mark = f"{self.id}-mark"
        self.background(["sh", "-c", f"echo up; : {mark}; sleep 600; :"], until_says="up")
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                    return int(entry.name)
            except OSError:
                continue  # it has ended
        raise AssertionError("no process of the run")

    def python(self, code, user="maitento", seconds=60):
        """Runs code behind the prelude; what it has left in `out`."""
        answer = self.command("python3", ["-c", PRELUDE + code + "\nprint(json.dumps(out))"], user, seconds)
        assert answer["exitCode"] == 0, (answer["outputStandard"], answer["outputError"])
        return json.loads(answer["outputStandard"])

    def end(self):
        self.api.terminate(self.run)
        self.api.get(self.run)


SMALL = {"limits": {"memory": "256MiB", "disk": "64MiB", "pids": 64}}


# The fixtures of these tests: imported by each file, where they replace the session's own server.

@pytest.fixture(scope="session")
def lab():
    made = Lab()
    yield made
    made.end()


@pytest.fixture(scope="session")
def server(lab):
    with lab.server() as running:
        yield running


@pytest.fixture(scope="session")
def gateway(server):
    return Gateway(server)


@pytest.fixture(scope="module")
def machine(api):
    made = Machine(api, api.namespace("net"))
    yield made
    made.end()
