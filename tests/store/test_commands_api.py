# SPDX-License-Identifier: Apache-2.0
"""Commands over HTTP: what is taken and refused, order, waiting, cancelling, output, restarts."""
import itertools
import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import mtserver

_names = itertools.count(1)
CHARS = 65536


@pytest.fixture(scope="module")
def run(api):
    """One run for all tests that leave it as it is."""
    ns = api.namespace("cmd")
    api.capsule(ns, [], users=[{"name": "sandbox"}], maxDuration="00:30:00")
    started = api.start(ns, "c")
    yield started
    api.terminate(started)


@pytest.fixture()
def fresh(api):
    """Makes runs that the test may end."""
    made = []

    def make(startup=(), **properties):
        ns = api.namespace("cmd")
        api.capsule(ns, list(startup), **properties)
        made.append(api.start(ns, "c"))
        return made[-1]

    yield make
    for one in made:
        api.terminate(one)


def at(run, command=None, more=""):
    return f"/v1/capsule-runs/{run['id']}/commands" + (f"/{command['id']}" if command else "") + more


def send(api, run, line, *arguments, headers=None, expect=(200, 201), wait=None, **members):
    body = {"command": line, **members}
    if arguments:
        body["arguments"] = list(arguments)
    more = f"?wait={wait}" if wait is not None else ""
    return api.call("POST", at(run, more=more), body, expect, headers)


def ended(api, run, command, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        got = api.call("GET", at(run, command, "?wait=20"))
        if got["dateEnded"]:
            return got
        assert time.monotonic() < deadline, f"the command has not ended in {seconds} s: {got}"


def result(api, run, line, *arguments, **members):
    return ended(api, run, send(api, run, line, *arguments, wait=30, **members))


def output(api, run, command, more=""):
    status, headers, data = api.raw("GET", at(run, command, f"/output{more}"))
    assert status == 200, (status, data)
    return int(headers["X-Maitento-Offset"]), data


def test_the_record(api, run):
    made = send(api, run, "sh", "-c", "echo out; echo err >&2; exit 3", runAsUser="sandbox",
                maxDuration="00:00:30", workingDirectory="/tmp", environment={"A": "b"}, stdin="x")
    assert (made["status"], made["exitCode"], made["endReason"]) == ("Queued", None, None) or made["dateStarted"]
    got = ended(api, run, made)
    assert (got["status"], got["endReason"], got["exitCode"]) == ("Error", "exited", 3)
    assert (got["outputStandard"], got["outputError"]) == ("out\n", "err\n")
    assert "outputStandardFullLength" not in got and "outputErrorFullLength" not in got
    assert (got["runId"], got["command"], got["runAsUser"]) == (run["id"], "sh", "sandbox")
    assert got["arguments"] == ["-c", "echo out; echo err >&2; exit 3"]
    assert (got["maxDuration"], got["workingDirectory"]) == ("00:00:30", "/tmp")
    assert (got["environment"], got["async"]) == ({"A": "b"}, False)
    assert got["failureDetails"] == "" and got["limitsReached"] == []
    assert got["dateCreated"] <= got["dateStarted"] <= got["dateEnded"]
    assert "stdin" not in got


def test_waiting_for_a_command(api, run):
    begun = time.monotonic()
    got = send(api, run, "sleep 0.3; echo done", wait=30)
    assert got["status"] == "Finished" and got["outputStandard"] == "done\n"
    assert 0.3 <= time.monotonic() - begun < 10
    got = send(api, run, "sleep 3", wait=1)
    assert got["status"] in ("Queued", "Running")
    assert api.call("GET", at(run, got))["dateEnded"] is None
    assert ended(api, run, got)["exitCode"] == 0


@pytest.mark.parametrize("body, field", [
    ({}, "command"), ({"command": ""}, None), ({"command": 1}, "command"),
    ({"command": "a\0b"}, "command"), ({"command": "ls", "arguments": "x"}, "arguments"),
    ({"command": "ls", "arguments": [1]}, "arguments"),
    ({"command": "ls", "arguments": ["a\0b"]}, "arguments"),
    ({"command": "ls;", "arguments": ["x"]}, None),
    ({"command": "ls\nls", "arguments": ["x"]}, None),
    ({"command": "ls #", "arguments": ["x"]}, None),
    ({"command": "ls", "arguments": ["x" * 131072]}, "arguments"),
    ({"command": "ls", "arguments": ["x"] * 10001}, "arguments"),
    ({"command": "ls", "runAsUser": "nobody-here"}, "runAsUser"),
    ({"command": "ls", "runAsUser": "Bad User"}, "runAsUser"),
    ({"command": "ls", "maxDuration": "00:00:00"}, "maxDuration"),
    ({"command": "ls", "maxDuration": 5}, "maxDuration"),
    ({"command": "ls", "workingDirectory": "tmp"}, "workingDirectory"),
    ({"command": "ls", "environment": {"A=B": "x"}}, "environment"),
    ({"command": "ls", "environment": {"A": 1}}, "environment"),
    ({"command": "ls", "async": "yes"}, "async"),
    ({"command": "ls", "user": "root"}, "user"),
    ({"command": "cat", "stdin": "x" * ((8 << 20) + 1)}, "stdin"),
])
def test_what_is_refused(api, run, body, field):
    before = len(api.call("GET", at(run, more="?limit=1000"))["items"])
    status, answer = api.server.request("POST", at(run), body)
    assert status in (400, 413), (status, answer)
    assert field is None or answer.get("field") == field, answer
    if body.get("runAsUser") == "nobody-here":
        assert "nobody-here" in answer["detail"] and "sandbox" in answer["detail"]
    assert len(api.call("GET", at(run, more="?limit=1000"))["items"]) == before


def test_who_may_send_and_see(api, run):
    made = send(api, run, "true", wait=30)
    name = f"cmd-{os.getpid()}-{next(_names)}"
    key = api.call("POST", "/v1/users", {"name": name, "role": "user"}, 201)["key"]
    headers = {"Authorization": f"Bearer {key}"}
    places = [("GET", at(run), None), ("POST", at(run), {"command": "ls"}), ("GET", at(run, made), None),
              ("POST", at(run, made, "/cancel"), None), ("GET", at(run, made, "/output"), None),
              ("GET", f"/v1/commands/{made['id']}", None),
              ("POST", f"/v1/capsule-runs/{run['id']}/extend", {"maxDuration": "00:20:00"})]
    for method, path, body in places:
        assert api.error(method, path, body, headers)[:2] == (404, "notFound"), path
    # A member of the namespace sees; only the starter sends.
    api.call("PUT", f"/v1/namespaces/{run['namespace']}/members/{name}")
    for method, path, body in places:
        if method == "GET":
            status = api.raw("GET", path, headers=headers)[0]
            assert status == 200, path
        else:
            assert api.error(method, path, body, headers)[:2] == (403, "forbidden"), path
    api.call("DELETE", f"/v1/namespaces/{run['namespace']}/members/{name}")


def test_a_command_of_another_run(api, run, fresh):
    made, other = send(api, run, "true"), fresh()
    for method, more in (("GET", ""), ("POST", "/cancel"), ("GET", "/output")):
        assert api.error(method, at(other, made, more))[:2] == (404, "notFound")
    assert api.error("GET", at(run, {"id": "nonsense"}))[:2] == (404, "notFound")


def test_a_command_by_its_id_alone(api, run):
    made = send(api, run, "sleep 0.3; echo hi; exit 7")
    got = api.call("GET", f"/v1/commands/{made['id']}?wait=30")
    assert got == api.call("GET", at(run, made)) and (got["exitCode"], got["outputStandard"]) == (7, "hi\n")
    unknown = "01931500-0000-7000-8000-000000000000"
    assert api.error("GET", f"/v1/commands/{unknown}") == (404, "notFound", f"no command '{unknown}'")
    assert api.error("GET", "/v1/commands/nonsense")[:2] == (404, "notFound")


def test_idempotency(api, run):
    headers = {"Idempotency-Key": f"cmd {os.getpid()} {next(_names)}"}
    first = send(api, run, "echo once", headers=headers, expect=201)
    again = send(api, run, "echo once", headers=headers, expect=200, wait=30)
    assert again["id"] == first["id"] and again["outputStandard"] == "once\n"
    assert api.error("POST", at(run), {"command": "echo twice"}, headers)[:2] == (422, "idempotencyKeyReused")


def test_order(api, run):
    name = f"/tmp/order-{next(_names)}"
    sent = [send(api, run, f"echo {i} >> {name}") for i in range(30)]
    assert result(api, run, f"cat {name}")["outputStandard"] == "".join(f"{i}\n" for i in range(30))
    listed = [c["id"] for c in api.call("GET", at(run, more="?limit=1000"))["items"]]
    assert [c for c in listed if c in {s["id"] for s in sent}] == [s["id"] for s in sent]


def test_many_senders_at_once_run_in_the_order_of_the_list(api, run):
    name = f"/tmp/many-{next(_names)}"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: send(api, run, f"echo {i} >> {name}"), range(80)))
    got = result(api, run, f"cat {name}")["outputStandard"].split()
    listed = [c["command"] for c in api.call("GET", at(run, more="?limit=1000"))["items"]]
    assert [f"echo {i} >> {name}" for i in got] == [c for c in listed if c.startswith("echo") and name in c]


def test_lists(api, fresh):
    run = fresh()
    sent = [send(api, run, f"echo {i}", wait=30)["id"] for i in range(5)]
    items, after = [], ""
    while after is not None:
        page = api.call("GET", at(run, more=f"?limit=2&after={after}"))
        assert len(page["items"]) <= 2
        items += page["items"]
        after = page["next"]
    assert [c["id"] for c in items] == sent
    assert not {"outputStandard", "outputError"} & set(items[0])
    assert len(api.call("GET", at(run, more="?status=Finished"))["items"]) == 5
    assert api.call("GET", at(run, more="?status=Queued"))["items"] == []
    assert [c["id"] for c in api.call("GET", at(run, more=f"?idEnding={sent[3][-12:]}"))["items"]] == [sent[3]]
    assert api.error("GET", at(run, more="?status=Done"))[:2] == (400, "badField")
    assert api.error("GET", at(run, more="?after=x"))[:2] == (400, "badField")


def test_cancel(api, fresh):
    run = fresh()
    busy, waiting, after = (send(api, run, line) for line in ("sleep 60", "echo never", "echo after"))
    got = api.call("POST", at(run, waiting, "/cancel?wait=20"))
    assert (got["status"], got["endReason"], got["exitCode"]) == ("Error", "terminated", None)
    begun = time.monotonic()
    got = api.call("POST", at(run, busy, "/cancel?wait=20"))
    assert (got["status"], got["endReason"]) == ("Error", "terminated") and got["exitCode"] != 0
    assert time.monotonic() - begun < 20
    assert ended(api, run, after)["outputStandard"] == "after\n"
    assert api.call("POST", at(run, busy, "/cancel")) == got


def test_commands_of_a_run_that_is_starting(api, fresh):
    run = fresh([{"command": "sleep 1"}])
    sent = [send(api, run, f"echo {i}") for i in range(3)]
    assert sent[0]["status"] == "Queued"
    got = [ended(api, run, c) for c in sent]
    assert [c["outputStandard"] for c in got] == ["0\n", "1\n", "2\n"]
    assert got[0]["dateStarted"] >= api.get(run, "ready")["dateReady"]


@pytest.mark.parametrize("how, why", [
    ("terminate", "the run was stopped by admin"),
    ("time", "the run ran out of time: maxDuration 00:00:03"),
    ("failed", "the run failed to start: Startup command failed: sh -c sleep 1; exit 4"),
    ("done", "the run finished"),
])
def test_a_run_that_ends_first(api, fresh, how, why):
    if how == "failed":
        run = fresh([{"command": "sh", "arguments": ["-c", "sleep 1; exit 4"]}])
    elif how == "done":
        run = fresh([{"command": "sleep", "arguments": ["1"]}], autoTerminate=True)
    else:
        run = fresh(maxDuration="00:00:03" if how == "time" else None)
    sent = [send(api, run, "sleep 60"), send(api, run, "echo never")]
    if how == "terminate":
        api.get(run, "ready")
        api.terminate(run)
    got = [ended(api, run, c) for c in sent]
    assert {(c["status"], c["endReason"]) for c in got} == {("Aborted", "runEnded")}
    for c in got:
        assert c["failureDetails"].startswith(why), c
    run = api.get(run)
    status, code, detail = api.error("POST", at(run), {"command": "ls"})
    assert (status, code) == (409, "runEnded") and run["failureDetails"] in detail
    assert run["endReason"] in detail
    # The commands stay readable.
    assert len(api.call("GET", at(run))["items"]) == 2


def test_output_by_offset(api, run):
    made = result(api, run, "printf 'a\\377b'; printf err >&2")
    assert made["outputStandard"] == "a\ufffdb"
    assert output(api, run, made) == (0, b"a\xffb")
    assert output(api, run, made, "?stream=error&from=1") == (1, b"rr")
    assert output(api, run, made, "?from=3") == (3, b"")
    assert output(api, run, made, "?follow=true") == (0, b"a\xffb")
    assert output(api, run, result(api, run, "true"), "?stream=error&follow=true") == (0, b"")
    assert api.error("GET", at(run, made, "/output?from=4"))[:2] == (416, "badRange")
    assert api.error("GET", at(run, made, "/output?stream=both"))[:2] == (400, "badField")
    status, headers, data = api.raw("HEAD", at(run, made, "/output?follow=true"))
    assert (status, data) == (200, b"") and headers["Content-Length"] == "3"


def test_output_is_followed_as_it_comes(api, run):
    blocker = send(api, run, "sleep 1")
    made = send(api, run, "for i in 1 2 3; do echo $i; until [ -e /tmp/seen$i ]; do sleep 0.05; done; done",
                **{"async": True})
    connection = mtserver.UnixConnection(api.server.socket, 60)
    connection.request("GET", at(run, made, "/output?follow=true"))
    answer = connection.getresponse()
    assert answer.status == 200 and answer.headers["X-Maitento-Offset"] == "0"
    assert ended(api, run, blocker)["exitCode"] == 0
    for i in (1, 2, 3):  # the next one is not written before this one was read
        assert answer.readline() == f"{i}\n".encode()
        send(api, run, f"touch /tmp/seen{i}")
    assert answer.read() == b""
    connection.close()
    assert api.call("GET", at(run, made))["status"] == "Finished"


def test_following_much_output(api, run):
    made = send(api, run, "seq 1 2000000")
    offset, data = output(api, run, made, "?follow=true")
    want = "".join(f"{i}\n" for i in range(1, 2000001)).encode()
    assert offset == 0 and data == want
    got = ended(api, run, made)
    assert got["outputStandardFullLength"] == len(want)
    assert got["outputStandard"] == want[-CHARS:].decode()


def test_old_output_is_dropped_and_said(api, run):
    made = result(api, run, "head -c 100M /dev/zero | tr '\\0' x; echo end")
    assert made["outputStandardFullLength"] == (100 << 20) + 4
    assert made["outputStandard"] == "x" * (CHARS - 4) + "end\n"
    offset, data = output(api, run, made)
    assert 0 < offset and offset + len(data) == (100 << 20) + 4 and len(data) >= 64 << 20
    assert data.endswith(b"xend\n") and data.count(b"x") == len(data) - 4


def test_extend(api, fresh):
    run = fresh(maxDuration="00:00:04")
    api.get(run, "ready")
    path = f"/v1/capsule-runs/{run['id']}/extend"
    for body in ({}, {"maxDuration": "00:00:00"}, {"maxDuration": "9999:00:00"}, {"maxDuration": 1},
                 {"maxDuration": "00:10:00", "x": 1}):
        assert api.error("POST", path, body)[0] == 400, body
    got = api.call("POST", path, {"maxDuration": "00:00:08"})
    assert got["maxDuration"] == "00:00:08" and got["deadline"] > run["deadline"]
    assert result(api, run, "sleep 4; echo lived")["outputStandard"] == "lived\n"
    assert api.error("POST", path, {"maxDuration": "00:00:01"})[:2] == (400, "badField")
    over = api.get(run)
    assert (over["endReason"], over["limitMs"]) == ("timeout", 8000), over
    assert 7.5 < over["runSeconds"] < 12
    assert api.error("POST", path, {"maxDuration": "01:00:00"})[:2] == (409, "runEnded")


def kill_server(server):
    os.kill(server.server.pid, signal.SIGKILL)
    server.server.wait()


def test_a_server_that_dies_loses_nothing():
    with mtserver.Server(image="slim") as own:
        from conftest import Api
        api = Api(own)
        ns = api.namespace("cmd")
        api.capsule(ns, [], maxDuration="00:30:00")
        run = api.start(ns, "c")
        sent = [send(api, run, f"sleep 0.02; echo {i} | tee -a /tmp/seen; head -c {i * 2000} /dev/zero; exit {i % 5}")
                for i in range(100)]
        api.call("POST", f"/v1/capsule-runs/{run['id']}/extend", {"maxDuration": "00:40:00"})
        for _ in range(3):
            time.sleep(0.4)
            kill_server(own)
            time.sleep(0.2)
            own.start_server()
        sent.append(send(api, run, "cat /tmp/seen"))
        got = [ended(api, run, c) for c in sent]
        assert got[-1]["outputStandard"] == "".join(f"{i}\n" for i in range(100))
        for i, c in enumerate(got[:-1]):
            want = f"{i}\n" + "\0" * (i * 2000)
            assert (c["exitCode"], c["outputStandard"]) == (i % 5, want[-CHARS:]), (i, c["exitCode"])
            assert c.get("outputStandardFullLength", len(c["outputStandard"])) == len(want)
        starts = [c["dateStarted"] for c in got]
        assert starts == sorted(starts)
        again = api.call("GET", f"/v1/capsule-runs/{run['id']}")
        assert again["maxDuration"] == "00:40:00"
