# SPDX-License-Identifier: Apache-2.0
"""Field case O-18 once more: all that mt waits for at once, over a way that is cut or falls silent, and with a server
that is killed in the middle. Each wait ends with the right exit code or says that the outcome is unknown; nothing is
done twice."""
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mtserver
from conftest import Api, Ref
from relay import Relay

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "model"))
from provider import Provider, say  # noqa: E402

APP = """
string main(string tag, bool fails) {
	PrintLine("a");
	Sleep(4000);
	PrintLine("b");
	if (fails) { throw("no luck"); }
	return(tag);
}
"""
UNKNOWN = "outcome unknown"
_tags = itertools.count(1)


class Waits:
    """A server of its own, with a run, an app, an interaction and a capsule to wait for."""

    def __init__(self, server, provider):
        self.server, self.api, self.provider = server, Api(server), provider
        self.api.call("PUT", "/v1/providers/custom", {"baseUrl": provider.url, "key": "sk-1"})
        self.ns = self.api.namespace("waits")
        self.api.call("POST", f"/v1/namespaces/{self.ns}/vfs", {"name": "work"}, 201)
        self.api.deploy(self.ns, {
            "agents/one.mtr": 'model = @ref("custom.m-1")\nprompt = "You answer."\n',
            "prompts/ask.md": "%%tag%%\n",
            "interactions/one-shot/ask.mtr": 'agent.agent = @ref("one")\ntask = @prompt("ask")\ninputs.prompts = [{ name = "tag" }]\n',
            "apps/tell/tell.mtc": APP})
        self.api.capsule(self.ns, [], name="stay", maxDuration="00:20:00")
        self.api.capsule(self.ns, [{"command": "echo ran >> /mnt/work/$TAG; sleep 4; echo why >&2; exit $CODE"}], name="once",
                         autoTerminate=True, vfs=[{"vfs": Ref("work"), "mountName": "work"}])
        self.run = self.api.get(self.api.start(self.ns, "stay"), until="ready")

    def begin(self, url):
        """All waits, each in its own mt, once what they wait for has begun."""
        tag = f"tag{next(_tags)}of{os.getpid()}"
        self.provider.add(say("answer ", 4, tag), when=tag, times=None)
        sent = self.api.call("POST", f"/v1/capsule-runs/{self.run['id']}/commands", {
            "command": f"echo ran >> /tmp/{tag}; echo a; sleep 4; echo b; exit 3", "async": True}, 201)
        environment = {**os.environ, **self.server.environment(), "MAITENTO_URL": url, "MAITENTO_NAMESPACE": self.ns}
        words = {"command": ["capsule-command-await", self.run["id"], sent["id"]],
                 "app": ["app-run", "tell", "--input-tag", tag, "--input-fails", "false"],
                 "failing app": ["app-run", "tell", "--input-tag", tag, "--input-fails", "true"],
                 "start": ["capsule-start", "once", "--env", f"TAG={tag}", "--env", "CODE=0", "--label", f"tag={tag}"],
                 "failing start": ["capsule-start", "once", "--env", f"TAG={tag}", "--env", "CODE=5", "--label", f"tag={tag}"],
                 "interaction": ["interaction-run", "ask", "--input-tag", tag]}
        processes = {name: subprocess.Popen([mtserver.program("mt"), *line], env=environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for name, line in words.items()}
        deadline = time.monotonic() + 30
        while not self.began(tag):
            assert time.monotonic() < deadline, {n: p.poll() for n, p in processes.items()}
            time.sleep(0.05)
        return tag, processes

    def runs(self, kind, tag):
        """Runs that have the tag, by their inputs or labels."""
        items = self.api.call("GET", f"/v1/{kind}?namespace={self.ns}&limit=1000")["items"]
        found = [run if kind == "capsule-runs" else self.api.call("GET", f"/v1/{kind}/{run['id']}") for run in items]
        return [run for run in found if tag in json.dumps([run.get("inputs"), run.get("labels")])]

    def asked(self, tag):
        return [seen for seen in self.provider.seen if tag.encode() in seen.body]

    def began(self, tag):
        return len(self.runs("capsule-runs", tag)) == 2 and len(self.asked(tag)) == 1 and \
            [r["consoleOutputsFullCount"] for r in self.runs("app-runs", tag)] == [1, 1]

    def judge(self, tag, processes, asked=(1,), seconds=90):
        """Every wait is over, as if the way had been smooth, and nothing was done twice."""
        said = {name: (*process.communicate(timeout=seconds), process.returncode) for name, process in processes.items()}
        out = {name: (status, text) for name, (text, _, status) in said.items()}
        assert out["command"] == (3, "a\nb\n"), said
        assert out["app"] == (0, f"a\nb\n\n{tag}\n"), said
        assert out["failing app"][0] == 1 and out["failing app"][1] == "a\nb\n" and "no luck" in said["failing app"][1], said
        assert out["start"][0] == 0 and re.fullmatch(r"[0-9a-f-]{36}\n", out["start"][1]), said
        assert out["failing start"][0] == 1 and "why" in said["failing start"][1], said
        assert out["interaction"] == (0, f"answer {tag}\n"), said
        assert len(self.runs("capsule-runs", tag)) == 2 and len(self.runs("app-runs", tag)) == 2
        assert len(self.runs("interaction-runs", tag)) == 1 and len(self.asked(tag)) in asked
        assert self.api.read(self.ns, "work", f"/{tag}") == b"ran\nran\n"  # each of the two starts once
        done = self.api.call("POST", f"/v1/capsule-runs/{self.run['id']}/commands?wait=10", {"command": f"cat /tmp/{tag}"}, 201)
        assert done["outputStandard"] == "ran\n"


@pytest.fixture(scope="module")
def waits():
    with Provider() as provider, mtserver.Server(image="slim") as server:
        yield Waits(server, provider)


@pytest.fixture(scope="module")
def silent(waits):
    """Waits whose way has died without a word; it is noticed while the other tests run."""
    relay = Relay(int(waits.server.url.rsplit(":", 1)[1]))
    tag, processes = waits.begin(relay.url)
    relay.mute()
    yield tag, processes
    for process in processes.values():
        process.kill()
    relay.close()


@pytest.fixture(scope="module")
def left():
    """Waits whose server was killed and does not come back."""
    with Provider() as provider, mtserver.Server(image="slim") as server:
        own = Waits(server, provider)
        _, processes = own.begin(f"unix:{server.socket}")
        server.server.kill()
        server.server.wait()
        yield processes
        for process in processes.values():
            process.kill()


def test_o18_the_way_is_cut_while_mt_waits_for_anything(waits, silent, left):
    relay = Relay(int(waits.server.url.rsplit(":", 1)[1]))
    tag, processes = waits.begin(relay.url)
    relay.cut(5)
    waits.judge(tag, processes)
    relay.close()


def test_o18_a_way_that_falls_silent_is_given_up_and_asked_anew(waits, silent):
    waits.judge(*silent)


def test_o18_a_server_that_stays_away_makes_no_wait_a_success(left):
    for name, process in left.items():
        out, err = process.communicate(timeout=120)
        # What an app or a command printed before is no answer; a run's id says what was started.
        assert process.returncode == (125 if name == "command" else 6) and UNKNOWN in err, (name, process.returncode, out, err)
        assert "b\n" not in out and "answer" not in out, (name, out)


def test_o18_the_server_is_killed_while_mt_waits_for_anything(waits):
    """The last: the server has another port then, and the relays of the tests above lead nowhere."""
    tag, processes = waits.begin(f"unix:{waits.server.socket}")
    waits.server.server.send_signal(signal.SIGKILL)
    waits.server.server.wait()
    time.sleep(1)  # some of them find nobody there
    waits.server.start_server()
    waits.judge(tag, processes, asked=(1, 2))  # the model is asked again where its answer was lost
