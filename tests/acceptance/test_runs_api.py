"""The runs API beyond the numbered checks: idempotency, dry runs, waits, lists, versions, additions."""
import socket
import threading
import time

import pytest

from conftest import Ref
import mtserver


@pytest.fixture()
def work(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return ns


WORK = {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}


def test_an_idempotency_key_starts_once(api, work):
    api.capsule(work, [{"command": "echo x >> /mnt/work/starts"}], autoTerminate=True, **WORK)
    key = {"Idempotency-Key": f"k-{work}"}
    path = f"/v1/namespaces/{work}/capsules/c/runs"
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(api.server.request("POST", path, {}, key)))
               for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert {status for status, _ in answers} <= {200, 201} and len({a["id"] for _, a in answers}) == 1
    assert sum(status == 201 for status, _ in answers) == 1
    api.get(answers[0][1])
    assert api.read(work, "work", "/starts") == b"x\n"
    assert api.error("POST", path, {"labels": {"a": "b"}}, key)[:2] == (422, "idempotencyKeyReused")


def test_a_dry_run_shows_the_plan_and_starts_nothing(api, work):
    api.capsule(work, [{"command": "true"}], **WORK)
    before = api.call("GET", f"/v1/capsule-runs?namespace={work}")["items"]
    plan = api.call("POST", f"/v1/namespaces/{work}/capsules/c/runs?dryRun=true",
                    {"maxDuration": "00:01:00"}, 200)
    assert plan["dryRun"] and plan["mounts"][0]["mountName"] == "work"
    assert plan["definition"]["maxDuration"] == "00:01:00" and len(plan["imageDigest"]) == 64
    assert api.call("GET", f"/v1/capsule-runs?namespace={work}")["items"] == before == []


def test_what_a_start_adds(api, work):
    api.capsule(work, [{"command": "echo $A $B > /mnt/work/out"}], autoTerminate=True,
                environment={"A": "capsule", "B": "capsule"}, **WORK)
    run = api.run(work, "c", {"environment": {"B": "start"}, "labels": {"job": "7"}, "maxDuration": "00:01:00",
                              "startup": [{"command": "echo more >> /mnt/work/out"}]})
    assert run["status"] == "Finished" and run["labels"] == {"job": "7"} and run["maxDuration"] == "00:01:00"
    assert api.read(work, "work", "/out") == b"capsule start\nmore\n"


@pytest.mark.parametrize("body", [
    {"nosuch": 1}, {"version": 0}, {"version": "1"}, {"environment": {"A": 1}}, {"environment": {"A=B": "x"}},
    {"maxDuration": "1h"}, {"maxDuration": 60}, {"startup": [{"command": ""}]}, {"startup": {}},
    {"startup": [{"command": "x", "runAsUser": "nobody-here"}]}, {"vfs": [{"vfs": "nope", "mountName": "x"}]},
    {"labels": {"a": 1}}, {"labels": {str(i): "" for i in range(33)}}, [], "x", 7])
def test_bad_starts_name_what_is_wrong(api, work, body):
    api.capsule(work, [])
    status, code, _ = api.error("POST", f"/v1/namespaces/{work}/capsules/c/runs", body)
    assert status in (400, 404) and code in ("badField", "badRequest", "notFound"), code


def test_an_older_version_can_be_started(api, work):
    for word in ("one", "two"):
        api.capsule(work, [{"command": f"echo {word} > /mnt/work/v"}], autoTerminate=True, **WORK)
    assert api.run(work, "c", {"version": 1})["version"] == 1
    assert api.read(work, "work", "/v") == b"one\n"
    assert api.error("POST", f"/v1/namespaces/{work}/capsules/c/runs", {"version": 9})[0] == 404


def test_a_wait_answers_when_it_happens_and_when_its_time_is_over(api, ns):
    api.capsule(ns, [{"command": "sleep 1"}], maxDuration="00:01:00")
    run = api.start(ns, "c")
    began = time.monotonic()
    ready = api.call("GET", f"/v1/capsule-runs/{run['id']}?wait=30&until=ready")
    assert ready["status"] == "Running" and time.monotonic() - began < 15
    began = time.monotonic()
    still = api.call("GET", f"/v1/capsule-runs/{run['id']}?wait=1&until=ended")
    assert still["status"] == "Running" and 0.9 < time.monotonic() - began < 10
    ended = api.call("POST", f"/v1/capsule-runs/{run['id']}/terminate?wait=30")
    assert ended["endReason"] == "terminated"
    for query in ("wait=61", "wait=-1", "wait=x", "until=soon", "wait=1&wait=2", "nosuch=1"):
        assert api.error("GET", f"/v1/capsule-runs/{run['id']}?{query}")[0] == 400


def test_a_start_can_wait_for_its_end_in_one_request(api, ns):
    api.capsule(ns, [{"command": "true"}], autoTerminate=True)
    path = f"/v1/namespaces/{ns}/capsules/c/runs"
    for round_ in range(20):
        key = {"Idempotency-Key": f"{ns}-{round_ // 2}"}
        status, run = api.server.request("POST", f"{path}?wait=30", {}, key)
        assert (status, run["status"]) == (201 if round_ % 2 == 0 else 200, "Finished"), run
    assert len(api.call("GET", f"/v1/capsule-runs?namespace={ns}")["items"]) == 10
    api.capsule(ns, [], maxDuration="00:01:00")
    ready = api.call("POST", f"{path}?wait=30&until=ready", {}, 201)
    assert ready["status"] == "Running"
    began = time.monotonic()
    assert api.call("POST", f"{path}?wait=1", {}, 201)["status"] in ("Starting", "Running")
    assert 0.9 < time.monotonic() - began < 10
    assert api.error("POST", f"{path}?wait=1&until=soon", {})[0] == 400


def test_a_client_that_leaves_its_wait_costs_nothing(api, ns, server):
    api.capsule(ns, [], maxDuration="00:01:00")
    run = api.get(api.start(ns, "c"), until="ready")
    for _ in range(200):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(server.socket)
            s.sendall(f"GET /v1/capsule-runs/{run['id']}?wait=60 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    api.terminate(run)
    assert api.get(run)["status"] == "Finished"
    assert api.call("GET", "/v1/health")["status"] == "ok"


def test_lists_are_paged_newest_first_and_filtered(api, ns):
    api.capsule(ns, [{"command": "true"}], autoTerminate=True)
    made = [api.run(ns, "c")["id"] for _ in range(5)]
    found, after = [], ""
    while after is not None:
        page = api.call("GET", f"/v1/capsule-runs?namespace={ns}&limit=2" + (f"&after={after}" if after else ""))
        assert len(page["items"]) <= 2
        found += [r["id"] for r in page["items"]]
        after = page["next"]
    assert found == made[::-1]
    assert api.call("GET", f"/v1/capsule-runs?namespace={ns}&status=Error")["items"] == []
    assert len(api.call("GET", f"/v1/capsule-runs?namespace={ns}&status=Finished&capsule=c")["items"]) == 5


def test_limits_above_what_the_machine_has_are_refused_with_the_ceiling(api, ns):
    api.capsule(ns, [], limits={"disk": "5GiB"})
    status, code, detail = api.error("POST", f"/v1/namespaces/{ns}/capsules/c/runs", {})
    assert (status, code) == (400, "badField") and "limits.disk" in detail and "above what this machine has" in detail


def test_a_run_has_its_phases_and_its_story(api, ns):
    run = api.shell(ns, "true")
    assert [p["name"] for p in run["phases"]] and all(p["us"] >= 0 for p in run["phases"])
    story = api.call("GET", f"/v1/capsule-runs/{run['id']}?story=true")["story"]
    assert any(s["what"].startswith("ended: Finished") for s in story)


def test_the_ceiling_of_live_runs_is_told_with_retry_after(tmp_path):
    with mtserver.Server(image="slim", server_options=["--max-live-runs", "2"]) as server:
        from conftest import Api
        api = Api(server)
        ns = api.namespace()
        api.capsule(ns, [], maxDuration="00:01:00")
        runs = [api.start(ns, "c", headers={"Idempotency-Key": f"n{i}"}) for i in range(2)]
        status, headers, body = api.raw("POST", f"/v1/namespaces/{ns}/capsules/c/runs")
        assert status == 429 and headers["Retry-After"] and b"2 runs are live" in body
        # A repeat of a start that was made is answered all the same.
        assert api.start(ns, "c", headers={"Idempotency-Key": "n0"})["id"] == runs[0]["id"]
        api.terminate(runs[0])
        api.get(runs[0])
        assert api.start(ns, "c")["status"] == "Starting"


def test_two_servers_on_one_host_do_not_touch_each_other(api, ns):
    from conftest import Api
    api.capsule(ns, [{"command": "sleep 3"}], autoTerminate=True)
    mine = [api.start(ns, "c") for _ in range(4)]
    with mtserver.Server(image="slim") as other:
        second = Api(other)
        theirs = second.namespace()
        assert second.shell(theirs, "true")["status"] == "Finished"
        assert second.call("GET", "/v1/capsule-runs")["items"][0]["namespace"] == theirs
    for run in mine:
        assert api.get(run)["status"] == "Finished"
