"""Numbers, where a stream begins, what it lets through, how it says that it lives."""
import time

JOB = 'startup = [{ command = "true" }]\nautoTerminate = true\nvfs = [{ vfs = @ref("files") mountName = "f" }]\n'


def vfs(api, ns, name):
    return api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": name}, 201)


def test_server_says_what_it_is(api):
    assert api.raw("GET", "/v1/server")[2] == b'{"product":"maitento","version":"0.1.0","apiVersion":1}'


def test_a_command_from_its_start_to_its_end(api, stream, bench):
    events = stream()
    assert events.hello.data == {"after": events.hello.id, "heartbeatSeconds": 1}
    command = bench.send("exit 3")
    came = [events.change(id=command) for _ in range(3)]
    assert [e["change"] for e in came] == ["created", "started", "ended"]
    assert [e["number"] for e in came] == sorted({e["number"] for e in came})
    assert {k: came[-1][k] for k in ("kind", "namespace", "runId", "name", "status", "endReason", "exitCode")} == {
        "kind": "command", "namespace": bench.ns, "runId": bench.id, "name": None,
        "status": "Error", "endReason": "exited", "exitCode": 3}
    assert came[-1] == stream(f"?after={came[1]['number']}").change(id=command)


def test_the_end_that_is_told_is_in_the_record(api, stream, bench):
    """What a stream says has happened is there for whoever asks then."""
    events = stream(f"?run={bench.id}")
    for code in range(20):
        command = bench.send(f"exit {code}")
        told = events.change(id=command, change="ended")
        record = api.call("GET", f"/v1/commands/{command}")
        assert (record["status"], record["exitCode"]) == (told["status"], told["exitCode"]) == (
            "Error" if code else "Finished", code)


def test_every_kind_has_its_events(api, ns, stream):
    events = stream(f"?namespace={ns}")
    made = vfs(api, ns, "files")
    assert events.change(kind="vfs", change="created")["name"] == "files"
    api.call("PATCH", f"/v1/namespaces/{ns}/vfs/files", {"limit": "1GiB"}, 200)
    assert events.change(kind="vfs", change="updated")["id"] == made["id"]
    api.call("POST", f"/v1/namespaces/{ns}/secrets", {"name": "token", "value": "x"}, 201)
    api.call("PUT", f"/v1/namespaces/{ns}/secrets/token", {"value": "y"}, 200)
    assert [events.change(kind="secret", name="token")["change"] for _ in range(2)] == ["created", "updated"]
    api.deploy(ns, {"capsules/job.mtr": JOB})
    assert events.change(kind="capsule", change="created")["name"] == "job"
    run = api.run(ns, "job")
    for change, status in (("created", None), ("ended", "Finished")):
        told = events.change(kind="capsuleRun", change=change)
        assert (told["id"], told["runId"], told["name"]) == (run["id"], run["id"], "job")
        assert status in (None, told["status"])
    api.deploy(ns, {"json/shape.json": "{}"}, prune=True)
    assert events.change(kind="json")["name"] == "shape"
    assert events.change(kind="capsule", change="deleted")["name"] == "job"
    api.call("DELETE", f"/v1/namespaces/{ns}/secrets/token?force=true")
    api.call("DELETE", f"/v1/namespaces/{ns}/vfs/files?force=true")
    assert events.change(kind="secret", change="deleted")["name"] == "token"
    assert events.change(kind="vfs", change="deleted")["name"] == "files"
    assert {f.data["namespace"] for f in events.frames if f.name == "change"} == {ns}


def test_what_is_gone_keeps_its_name(api, told):
    ns = api.namespace()
    vfs(api, ns, "gone")
    api.call("DELETE", f"/v1/namespaces/{ns}/vfs/gone")
    api.call("DELETE", f"/v1/namespaces/{ns}")
    last = [f.data for f in told("&last=4")[1:]]
    assert [(e["kind"], e["change"], e["name"], e["namespace"]) for e in last] == [
        ("namespace", "created", ns, None), ("vfs", "created", "gone", None), ("vfs", "deleted", "gone", None),
        ("namespace", "deleted", ns, None)]


def test_a_client_comes_back_with_its_number(api, ns, stream, told):
    first = stream(f"?namespace={ns}")
    for i in range(10):
        vfs(api, ns, f"v{i}")
    numbers = [first.change(kind="vfs")["number"] for _ in range(10)]
    first.close()
    for i in range(10, 20):
        vfs(api, ns, f"v{i}")
    again = stream(f"?namespace={ns}&last=1", {"Last-Event-ID": str(numbers[4])})
    assert again.hello.data["after"] == numbers[4]
    names = [again.change(kind="vfs")["name"] for _ in range(15)]
    assert names == [f"v{i}" for i in range(5, 20)]
    assert [f.data["name"] for f in told(f"&namespace={ns}&kind=vfs&after={numbers[-1]}")[1:]] == names[5:]
    assert [f.data["name"] for f in told(f"&namespace={ns}&kind=vfs&last=3")[1:]] == names[-3:]
    assert told(f"&namespace={ns}")[0].data["after"] >= again.numbers[-1] and len(told(f"&namespace={ns}")) == 1


def test_filters_go_together(api, ns, told, bench):
    vfs(api, ns, "a")
    command = bench.sh("true")["id"]
    of = lambda query: [(f.data["kind"], f.data["change"]) for f in told(f"&last=1000{query}")[1:]]  # noqa: E731
    assert of(f"&namespace={ns}") == [("namespace", "created"), ("vfs", "created")]
    assert of(f"&namespace={ns}&kind=vfs,secret") == [("vfs", "created")]
    assert of(f"&run={bench.id}&namespace={ns}") == []
    assert [f.data["id"] for f in told(f"&last=3&run={bench.id}&kind=command")[1:]] == [command] * 3
    assert of(f"&run={bench.id}&kind=capsuleRun")[:2] == [("capsuleRun", "created"), ("capsuleRun", "ready")]


def test_silence_is_filled(stream):
    events = stream()
    began = time.monotonic()
    events.comment(5)
    events.comment(5)
    assert 1 <= time.monotonic() - began < 5
    assert [f.name for f in events.frames] == ["hello"]


def test_what_never_was_is_gone(api, told):
    newest = told()[0].data["after"]
    status, code, sentence = api.error("GET", f"/v1/events?after={newest + 1000}")
    assert (status, code) == (410, "gone") and str(newest) in sentence
    status, code, sentence = api.error("GET", "/v1/events", None, {"Last-Event-ID": "-1"})
    assert (status, code) == (400, "badRequest")


def test_it_is_quick(api, stream, bench):
    """From an end to the stream: far below what a poll would take."""
    events, took = stream(f"?run={bench.id}&kind=command"), []
    for _ in range(30):
        command = bench.send("true")
        began = time.monotonic()
        events.change(id=command, change="ended")
        took.append(time.monotonic() - began)
    assert sorted(took)[15] < 0.1, sorted(took)
