# SPDX-License-Identifier: Apache-2.0
"""Runs of interactions go on when the server was killed or stopped: an answer that came is never asked for again. And many
of them at once cost little."""
import os
import select
import signal
import subprocess
import threading
import time
from pathlib import Path

import mtserver
import pytest

from asked import SCHEMA, Interactions
from conftest import told
from provider import HANG, say, stream

MANY = int(os.environ.get("MT_ASKED", "500"))
EACH_KIB = 40  # of the server's memory, for a run that waits for its model
GOOD = '{"answer": "North"}'


@pytest.fixture()
def own_model(own):
    provider = told(own)
    yield provider
    provider.__exit__()


@pytest.fixture()
def own_asked(own, own_model):
    return Interactions(own, own.namespace("asked"))


def kill(server):
    server.server.kill()
    server.server.wait()
    server.start_server()


def stop(server):
    server.server.send_signal(signal.SIGTERM)
    assert server.server.wait(30) == 0
    server.start_server()


def read_until(file, wanted, seconds=30):
    """What comes, up to there."""
    seen, deadline = b"", time.monotonic() + seconds
    while not seen.endswith(wanted):
        ready, _, _ = select.select([file], [], [], max(0, deadline - time.monotonic()))
        piece = os.read(file.fileno(), 100) if ready else b""
        assert piece, seen
        seen += piece
    return seen


@pytest.mark.parametrize("leave", [kill, stop])
def test_what_is_said_to_another_server_is_another_text(own, own_asked, own_model, leave):
    own_asked.deploy()
    own_model.add(say("The South,", HANG), say("The North, 546.80", HANG))
    run = own_asked.start()
    at = f"/v1/interaction-runs/{run['id']}/text"
    before = own_asked.call("GET", f"{at}?wait=20", expect=200)
    with subprocess.Popen([mtserver.program("mt"), "interaction-await", run["id"], "--stream"], stdout=subprocess.PIPE,
                          env={**os.environ, **own.server.environment(), "MAITENTO_URL": f"unix:{own.server.socket}"}) as watching:
        try:
            shown = read_until(watching.stdout, b"The South,")
            leave(own.server)
            own_model.wait_for(2)
            after = own_asked.call("GET", f"{at}?stream={before['stream']}&from={before['next']}&wait=20", expect=200)
            assert (after["from"], after["attempt"]) == (0, 1) and after["stream"] != before["stream"], (before, after)
            shown += read_until(watching.stdout, b"546.80")
            assert shown == b"The South,\nThe North, 546.80"
            own_asked.cancel(run)
            assert watching.wait(30) == 1
        finally:
            watching.kill()


@pytest.mark.parametrize("leave", [kill, stop])
def test_one_that_is_being_answered_is_asked_once_more(own_asked, own_model, leave):
    own_asked.deploy(schema=SCHEMA)
    own_model.add(stream(HANG), say(GOOD))
    run = own_asked.start()
    own_model.wait_for(1)
    leave(own_asked.api.server)
    ended = own_asked.end(run)
    assert (ended["status"], ended["output"], ended["attemptCount"]) == ("Finished", GOOD, 1), ended
    assert len(own_model.seen) == 2 and own_model.seen[0].texts == own_model.seen[1].texts


def test_what_was_answered_is_not_asked_again(own_asked, own_model):
    own_asked.deploy(schema=SCHEMA)
    own_model.add(say("North, I think."), stream(HANG), say(GOOD))
    run = own_asked.start()
    own_model.wait_for(2)
    kill(own_asked.api.server)
    ended = own_asked.end(run)
    assert (ended["status"], ended["output"], ended["attemptCount"]) == ("Finished", GOOD, 2), ended
    assert len(own_model.seen) == 3 and own_model.seen[1].texts == own_model.seen[2].texts
    assert own_model.seen[2].texts[2] == ("assistant", "North, I think.")
    assert [a["outcome"] for a in own_asked.attempts(run)] == ["wrongAnswer", "answered"]


def test_the_app_that_waits_for_it_goes_on(own_asked, own_model):
    own_asked.deploy(schema=SCHEMA, **{
        "apps/asks/asks.mtc": 'string main() {\n\tjsonObject inputs = JsonObjectSetString(JsonObjectCreate(), "question", "Which?");\n'
                              '\tjsonObject run = InteractionAwait(InteractionStart("next", inputs, "[]", "[]", ""));\n'
                              '\treturn(JsonObjectGet(run, "output"));\n}\n'})
    own_model.add(stream(HANG), stream(HANG), say(GOOD))
    run = own_asked.call("POST", f"/v1/namespaces/{own_asked.ns}/apps/asks/runs", {}, 201)
    for n in (1, 2):
        own_model.wait_for(n)
        kill(own_asked.api.server)
    ended = own_asked.call("GET", f"/v1/app-runs/{run['id']}?wait=30", expect=200)
    assert (ended["status"], ended["returnValue"]) == ("Finished", GOOD), ended
    (one,) = own_asked.list()
    assert one["parentAppRunId"] == run["id"] and len(own_model.seen) == 3


def test_a_deploy_meanwhile_changes_nothing(own_asked, own_model):
    own_asked.deploy(schema=SCHEMA)
    own_model.add(say("?"), stream(HANG), say(GOOD))
    run = own_asked.start()
    own_model.wait_for(2)
    own_asked.deploy(schema=SCHEMA, task="Something else: %%question%%\n")
    kill(own_asked.api.server)
    ended = own_asked.end(run)
    assert (ended["status"], ended["version"]) == ("Finished", 1)
    assert own_model.seen[2].texts[1] == own_model.seen[0].texts[1]


def status(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise KeyError(name)


def start_all(asked, count):
    """By some clients at once; the ids."""
    runs, clients = [], [Interactions(asked.api, asked.ns) for _ in range(10)]
    threads = [threading.Thread(target=lambda c=c: [runs.append(c.start()) for _ in range(count // len(clients))]) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return runs


def latency(asked):
    took = []
    for _ in range(50):
        began = time.monotonic()
        asked.call("GET", "/v1/whoami")
        took.append(time.monotonic() - began)
    return sorted(took)[25]


def test_many_at_once(own_asked, own_model):
    """Against a provider that takes its time: no thread for each, little memory, others are served."""
    api, pid = own_asked.api, own_asked.api.server.server.pid
    api.call("PUT", "/v1/providers/deepseek", {"concurrency": 512}, 200)
    own_asked.deploy(schema=SCHEMA)
    own_asked.run()  # all that a first one makes
    before = len(own_model.seen)
    own_model.add(say(GOOD[:4], HANG), times=None)
    threads, memory, usual = status(pid, "Threads"), status(pid, "VmRSS"), latency(own_asked)
    runs = start_all(own_asked, MANY)
    own_model.wait_for(before + len(runs), 60)
    grown, now = status(pid, "VmRSS") - memory, latency(own_asked)
    print(f"\n{len(runs)} at once: {grown / len(runs):.1f} KiB each, {threads} threads before and {status(pid, 'Threads')} now, "
          f"{usual * 1000:.2f} ms of another's request before and {now * 1000:.2f} ms now")
    assert grown < EACH_KIB * len(runs) and status(pid, "Threads") <= threads + 2
    assert {own_asked.get(run)["status"] for run in runs[:20]} == {"Running"}
    for run in runs:
        own_asked.call("POST", f"/v1/interaction-runs/{run['id']}/cancel", expect=200)
    for run in runs:
        assert own_asked.end(run)["endReason"] == "cancelled"
    own_model.wait_until(lambda: all(s.left_at for s in own_model.seen[before:]), 30)
