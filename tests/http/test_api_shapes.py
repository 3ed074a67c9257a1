"""Walks the API of a live server and holds every answer against api/openapi.yaml."""
import json


import described
from described import API
from eventstream import frames_of


class Walk:
    def __init__(self, api):
        self.api = api
        self.seen = set()

    def __call__(self, method, path, body=None, expect=None, headers=None, data=None):
        headers = dict(headers or {})
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        status, got, raw = self.api.raw(method, path, data, headers)
        assert expect is None or status == expect, (method, path, status, raw)
        operation = described.operation_of(method, path)
        assert operation, f"{method} {path} is not described"
        wrong = described.check_raw(method, path, status, got, raw)
        assert not wrong, f"{method} {path}: {wrong}"
        self.seen.add(operation["operationId"])
        return json.loads(raw) if raw and (got.get("Content-Type") or "").split(";")[0].endswith("json") else raw


def walk_access(do, name):
    do("GET", "/v1/health", expect=200)
    do("GET", "/v1/server", expect=200)
    do("GET", "/openapi.json", expect=200)
    do("GET", "/v1/images", expect=200)
    do("POST", "/v1/images/prune", expect=200)
    do("GET", "/v1/doctor", expect=200)
    do("GET", "/v1/whoami", expect=200)
    do("POST", "/v1/namespaces", {"name": name}, 201)
    do("POST", "/v1/namespaces", {"name": name}, 409)
    do("POST", "/v1/namespaces", {"nam": name}, 400)
    do("PUT", "/v1/default-namespace", {"name": name}, 200)
    do("GET", "/v1/namespaces?limit=1", expect=200)
    do("GET", "/v1/namespaces?limit=0", expect=400)
    do("GET", f"/v1/namespaces/{name}", expect=200)
    user = name.replace(".", "-")[:32]
    do("POST", "/v1/users", {"name": user}, 201)
    do("GET", "/v1/users", expect=200)
    do("PUT", f"/v1/namespaces/{name}/members/{user}", expect=204)
    assert do("GET", f"/v1/namespaces/{name}/members", expect=200)["items"]
    do("DELETE", f"/v1/namespaces/{name}/members/{user}", expect=204)
    key = do("POST", "/v1/keys", {"name": "k", "user": user, "expires": "2100-01-01T00:00:00Z"}, 201)
    assert do("GET", f"/v1/keys?user={user}", expect=200)["items"]
    do("DELETE", f"/v1/keys/{key['id']}", expect=204)
    do("DELETE", f"/v1/users/{user}", expect=204)


def walk_files(do, at):
    do("GET", f"{at}/stat?path=/a/b", expect=404)
    do("PUT", f"{at}/files?path=/a/b", data=b"hello", expect=201)
    do("PUT", f"{at}/files?path=/a/b", data=b"hello!", expect=200)
    do("PUT", f"{at}/files?path=/a/empty", data=b"", expect=201)
    do("PUT", f"{at}/files?path=/a/%FFodd%25", data=b"x", expect=201)
    assert do("GET", f"{at}/files?path=/a/b", expect=200) == b"hello!"
    assert do("GET", f"{at}/files?path=/a/b", expect=206, headers={"Range": "bytes=1-2"}) == b"el"
    do("GET", f"{at}/files?path=/a/b", expect=416, headers={"Range": "bytes=9-"})
    do("GET", f"{at}/files?path=/a/b", expect=304, headers={"If-None-Match": "*"})
    do("HEAD", f"{at}/files?path=/a/b", expect=200)
    do("POST", f"{at}/mkdir", {"path": "/c/d", "parents": True}, 201)
    do("POST", f"{at}/mkdir", {"path": "/c/d", "parents": True}, 200)
    do("POST", f"{at}/link", {"path": "/l", "target": "a/b"}, 201)
    do("POST", f"{at}/move", {"from": "/a/b", "to": "/c/b"}, 200)
    entries = do("GET", f"{at}/list?recursive=true", expect=200)["items"]
    assert {e["type"] for e in entries} == {"file", "folder", "link"}, entries
    assert any(e["nameEscaped"] for e in entries), entries
    do("GET", f"{at}/list?path=/&limit=1", expect=200)
    do("GET", f"{at}/files?path=/c", expect=409)
    do("GET", f"{at}/stat?path=../x", expect=400)
    do("DELETE", f"{at}/files?path=/c", expect=409)
    for path in ("/a", "/c", "/l"):
        do("DELETE", f"{at}/files?path={path}&recursive=true", expect=204)


def walk_secrets(do, ns):
    at = f"/v1/namespaces/{ns}/secrets"
    do("POST", at, {"name": "token", "value": "CANARY-7f3a\u0000\n"}, 201)
    do("POST", at, {"name": "token", "value": "x"}, 409)
    do("POST", at, {"name": "bytes", "valueBase64": "AP8K"}, 201)
    for body in ({"name": "b"}, {"name": "b", "value": ""}, {"name": "b", "value": "x", "valueBase64": "eA=="},
                 {"name": "b", "valueBase64": "x"}, {"name": "B", "value": "x"}, {"name": "b", "value": 7}, []):
        do("POST", at, body, 400)
    do("POST", at, {"name": "b", "value": "x" * 65537}, 413)
    do("PUT", f"{at}/token", {"value": "y" * 65536}, 200)
    do("PUT", f"{at}/none", {"value": "y"}, 404)
    do("PUT", f"{at}/token", {"value": None}, 400)
    do("GET", f"{at}/token", expect=200)
    do("GET", f"{at}/none", expect=404)
    assert [s["name"] for s in do("GET", f"{at}?limit=1", expect=200)["items"]] == ["bytes"]
    do("DELETE", f"{at}/bytes", expect=204)


def walk_providers(do):
    at = "/v1/providers"
    assert [p["name"] for p in do("GET", f"{at}?limit=2&after=custom", expect=200)["items"]] == ["deepseek", "google"]
    do("GET", f"{at}/custom", expect=200)
    do("GET", f"{at}/none", expect=404)
    do("PUT", f"{at}/none", {"key": "x"}, 404)
    set_all = {"key": "x", "baseUrl": "https://llm.example/v1", "schemaMode": "tool", "concurrency": 2,
               "pricePerMillionTokensIn": "0.5", "pricePerMillionTokensOut": "1"}
    assert do("PUT", f"{at}/custom", set_all, 200)["ready"]
    for body in ({"keey": "x"}, {"key": ""}, {"key": 7}, {"key": "a b"}, {"baseUrl": "llm"}, {"baseUrl": ""},
                 {"schemaMode": "strict"}, {"concurrency": 0}, {"concurrency": 513}, {"concurrency": "2"},
                 {"pricePerMillionTokensIn": 0.5}, {"pricePerMillionTokensOut": "1e3"}, []):
        do("PUT", f"{at}/custom", body, 400)
    do("PUT", f"{at}/custom", {"key": "x" * 4097}, 413)
    do("PUT", f"{at}/custom", {"key": None}, 200)
    do("DELETE", f"{at}/custom", expect=204)
    do("DELETE", f"{at}/custom", expect=204)
    do("DELETE", f"{at}/none", expect=404)
    # Nothing is sent: there is no key.
    told = do("POST", f"{at}/deepseek/test", {"model": "deepseek-v4-flash"}, 200)
    assert (told["outcome"], told["httpStatus"], told["requests"]) == ("noKey", None, 0), told
    for body in ({}, {"model": ""}, {"model": "x" * 181}, {"model": 7}, {"model": "x", "key": "y"}):
        do("POST", f"{at}/deepseek/test", body, 400)
    do("POST", f"{at}/none/test", {"model": "x"}, 404)
    do("POST", f"{at}/custom/test", {"model": "x"}, 409)


APP = """string main(string name, jsonArray list) {
\tPrintLine("x");
\tLogWarning("y");
\tAppStateSetOutputInt("count", JsonArrayCount(list));
\tif (name == "sleep") { Sleep(600000); }
\tif (name == "") { throw("no name"); }
\treturn(name);
}
"""


INTERACTION = """agent = {
  name = "Shape"
  agent = @ref("shape")
}
task = @prompt("shape")
inputs.prompts = [{ name = "name" }]
schema.solution = @json("shape")
"""


def walk_resources(do, ns):
    deploy = f"/v1/namespaces/{ns}/deploy"
    capsule = ('startup = [{ command = "true" }]\nautoTerminate = true\n'
               'vfs = [{ vfs = @ref("work") mountName = "work" }]\nenvironment = { A = "b" }\n'
               'secrets = [{ secret = @ref("token") mountName = "token" }]\n')
    files = [{"path": "capsules/shape.mtr", "content": capsule},
             {"path": "apps/shape/shape.mtc", "content": APP},
             {"path": "agents/shape.mtr", "content": 'model = @ref("deepseek.shape")\nprompt = "You answer."\n'},
             {"path": "interactions/one-shot/shape.mtr", "content": INTERACTION},
             {"path": "json/shape.json", "content": '{"type":"object"}'},
             {"path": "prompts/shape.md", "content": "Hello, %%name%%.\n"}]
    do("POST", deploy, {"files": files, "dryRun": True}, 200)
    do("POST", deploy, {"files": files}, 200)
    do("POST", deploy, {"files": files, "prune": True}, 200)
    do("POST", deploy, {"files": [{"path": "capsules/bad.mtr", "content": 'startup = 1\nnope = "x"\n'}]}, 422)
    do("POST", deploy, {"files": [{"path": 1}]}, 400)
    for kind in ("capsules", "agents", "apps", "interactions", "json", "prompts"):
        for item in do("GET", f"/v1/namespaces/{ns}/{kind}", expect=200)["items"]:
            do("GET", f"/v1/namespaces/{ns}/{kind}/{item['name']}?version=1", expect=200)
        do("GET", f"/v1/namespaces/{ns}/{kind}/not-there", expect=404)


def walk_runs(do, ns):
    start = f"/v1/namespaces/{ns}/capsules/shape/runs"
    do("POST", f"{start}?dryRun=true", {}, 200)
    key = {"Idempotency-Key": f"shape-{ns}"}
    run = do("POST", start, {"labels": {"a": "b"}}, 201, key)
    assert do("POST", start, {"labels": {"a": "b"}}, 200, key)["id"] == run["id"]
    do("POST", start, {"labels": {"a": "c"}}, 422, key)
    ended = do("GET", f"/v1/capsule-runs/{run['id']}?wait=60&story=true", expect=200)
    assert ended["status"] == "Finished" and ended["story"], ended
    assert do("GET", f"/v1/capsule-runs?namespace={ns}&mine=true", expect=200)["items"]
    do("POST", f"/v1/capsule-runs/{run['id']}/terminate", expect=200)
    slow = do("POST", start, {"startup": [{"command": "sleep", "arguments": ["60"]}]}, 201)
    do("GET", f"/v1/capsule-runs/{slow['id']}?wait=1&until=ready", expect=200)
    walk_commands(do, f"/v1/capsule-runs/{slow['id']}")
    walk_run_files(do, f"/v1/capsule-runs/{slow['id']}/files")
    walk_shells(do, f"/v1/capsule-runs/{slow['id']}/shells")
    do("POST", f"/v1/capsule-runs/{slow['id']}/terminate?wait=30", expect=200)
    do("POST", f"/v1/capsule-runs/{slow['id']}/commands", {"command": "ls"}, 409)
    do("GET", f"/v1/capsule-runs/{slow['id']}/files?path=/etc/passwd", expect=409)
    do("POST", f"/v1/capsule-runs/{slow['id']}/shells", {}, 409)
    do("GET", "/v1/capsule-runs/019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70", expect=404)


def walk_app_runs(do, ns):
    start = f"/v1/namespaces/{ns}/apps/shape/runs"
    body, key = {"inputs": {"NAME": "a", "list": [1]}, "version": None}, {"Idempotency-Key": f"shape-app-{ns}"}
    run = do("POST", start, body, 201, key)
    assert do("POST", start, body, 200, key)["id"] == run["id"]
    do("POST", start, {"inputs": {"name": "b", "list": []}}, 422, key)
    do("POST", start, {"inputs": {"name": "b"}}, 400)
    at = f"/v1/app-runs/{run['id']}"
    ended = do("GET", f"{at}?wait=60&console=true", expect=200)
    assert ended["status"] == "Finished" and ended["consoleOutputs"] and ended["outputs"] == {"count": 1}, ended
    assert do("GET", f"{at}/console?wait=1", expect=200)["ended"]
    assert do("GET", f"{at}/log?after=0&limit=1", expect=200)["items"]
    failed = do("POST", f"{start}?wait=60", {"inputs": {"name": "", "list": "[]"}}, 201)
    assert failed["status"] == "Error" and failed["failureStack"], failed
    again = do("POST", f"{at}/rerun?wait=60", {}, 201, {"Idempotency-Key": f"shape-rerun-{ns}"})
    do("POST", f"{at}/rerun", {}, 200, {"Idempotency-Key": f"shape-rerun-{ns}"})
    assert again["rerunOf"] == run["id"]
    slow = do("POST", start, {"inputs": {"name": "sleep", "list": "[]"}}, 201)
    do("GET", f"/v1/app-runs/{slow['id']}/console?after=1&wait=1", expect=200)
    do("POST", f"/v1/app-runs/{slow['id']}/cancel?wait=60", expect=200)
    assert len(do("GET", f"/v1/app-runs?namespace={ns}&mine=true&limit=2", expect=200)["items"]) == 2
    do("GET", "/v1/app-runs/019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70", expect=404)


def walk_interaction_runs(do, ns):
    """Nothing is asked: there is no key for its provider."""
    start = f"/v1/namespaces/{ns}/interactions/shape/runs"
    body, key = {"inputs": {"NAME": "a"}, "version": None}, {"Idempotency-Key": f"shape-interaction-{ns}"}
    run = do("POST", start, body, 201, key)
    assert do("POST", start, body, 200, key)["id"] == run["id"]
    do("POST", start, {"inputs": {"name": "b"}}, 422, key)
    do("POST", start, {"inputs": {}}, 400)
    do("POST", f"/v1/namespaces/{ns}/interactions/none/runs", {}, 404)
    at = f"/v1/interaction-runs/{run['id']}"
    ended = do("GET", f"{at}?wait=60", expect=200)
    assert (ended["status"], ended["endReason"], ended["output"], ended["inputs"]) == ("Error", "noKey", None, {"name": "a"}), ended
    attempts = do("GET", f"{at}/attempts", expect=200)["items"]
    assert [(a["number"], a["outcome"], a["messages"][-1]["role"]) for a in attempts] == [(1, "noKey", "user")], attempts
    do("POST", f"{at}/cancel?wait=60", {}, 200)
    do("POST", f"{at}/cancel", {"why": 1}, 400)
    assert do("GET", f"{at}/text?stream=0&from=0&wait=20", expect=200)["ended"]
    do("GET", f"{at}/text?from=-1", expect=400)
    assert len(do("GET", f"/v1/interaction-runs?namespace={ns}&mine=true&interaction=shape", expect=200)["items"]) == 1
    for more in ("", "/attempts", "/text"):
        do("GET", f"/v1/interaction-runs/019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70{more}", expect=404)


def walk_commands(do, run):
    key = {"Idempotency-Key": f"shape-{run}"}
    sent = do("POST", f"{run}/commands", {"command": "echo", "arguments": ["x"]}, 201, key)
    assert do("POST", f"{run}/commands", {"command": "echo", "arguments": ["x"]}, 200, key)["id"] == sent["id"]
    do("POST", f"{run}/commands", {"command": "ls", "runAsUser": "nobody"}, 400)
    at = f"{run}/commands/{sent['id']}"
    do("GET", at, expect=200)
    do("GET", f"/v1/commands/{sent['id']}?wait=1", expect=200)
    do("GET", f"/v1/commands/{sent['runId']}", expect=404)
    assert do("GET", f"{run}/commands?limit=1", expect=200)["items"]
    do("GET", f"{at}/output", expect=200)
    do("GET", f"{at}/output?from=99", expect=416)
    do("POST", f"{at}/cancel?wait=30", expect=200)
    do("GET", f"{run}/commands/{sent['runId']}", expect=404)
    do("POST", f"{run}/extend", {"maxDuration": "00:12:00"}, 200)


def walk_run_files(do, at):
    do("GET", f"{at}/stat?path=a/b", expect=404)
    do("PUT", f"{at}?path=a/b", data=b"hello", expect=201)
    do("PUT", f"{at}?path=a/b", data=b"hello!", expect=200)
    do("PUT", f"{at}?path=a/empty&user=maitento", data=b"", expect=201)
    do("PUT", f"{at}?path=a/%FFodd%25", data=b"x", expect=201)
    assert do("GET", f"{at}?path=a/b", expect=200) == b"hello!"
    assert do("GET", f"{at}?path=a/b", expect=206, headers={"Range": "bytes=1-2"}) == b"el"
    do("GET", f"{at}?path=a/b", expect=416, headers={"Range": "bytes=9-"})
    do("GET", f"{at}?path=a/b", expect=304, headers={"If-None-Match": "*"})
    do("HEAD", f"{at}?path=a/b", expect=200)
    do("GET", f"{at}?path=/root/x", expect=403)
    do("GET", f"{at}?path=/dev/null", expect=409)
    do("GET", f"{at}?path=a/b&user=nobody", expect=400)
    do("GET", f"{at}", expect=400)
    do("POST", f"{at}/mkdir", {"path": "c/d", "parents": True}, 201)
    do("POST", f"{at}/mkdir", {"path": "c/d", "parents": True, "user": None}, 200)
    do("POST", f"{at}/link", {"path": "l", "target": "a/b"}, 201)
    do("POST", f"{at}/link", {"path": "l", "target": "a/b"}, 409)
    do("POST", f"{at}/move", {"from": "a/b", "to": "c/b"}, 200)
    do("POST", f"{at}/move", {"from": "a/b", "to": "c/b"}, 404)
    do("GET", f"{at}/stat?path=l", expect=200)
    entries = do("GET", f"{at}/list?recursive=true", expect=200)["items"]
    assert {e["type"] for e in entries} == {"file", "folder", "link"}, entries
    assert any(e["nameEscaped"] for e in entries), entries
    assert do("GET", f"{at}/list?path=/&limit=1", expect=200)["next"]
    do("GET", f"{at}/list?path=/&after=../x", expect=400)
    do("DELETE", f"{at}?path=c", expect=409)
    for path in ("a", "c", "l"):
        do("DELETE", f"{at}?path={path}&recursive=true", expect=204)


def walk_shells(do, at):
    shell = do("POST", at, {"term": "vt100", "columns": 70}, 201)
    do("POST", at, {"term": "no term"}, 400)
    assert do("GET", at, expect=200)["items"]
    do("POST", f"{at}/{shell['id']}/input", data=b"echo hi\r", expect=204)
    do("PUT", f"{at}/{shell['id']}/size", {"columns": 80, "rows": 25}, 204)
    do("PUT", f"{at}/{shell['id']}/size", {"columns": 0, "rows": 25}, 400)
    do("DELETE", f"{at}/{shell['id']}", expect=204)
    assert do("GET", f"{at}/{shell['id']}", expect=200)["endReason"] == "closed"
    do("GET", f"{at}/{shell['id']}/output", expect=200)
    do("POST", f"{at}/{shell['id']}/input", data=b"x", expect=409)
    do("GET", f"{at}/019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70", expect=404)


def walk_events(do, ns):
    at = f"/v1/events?follow=false&namespace={ns}"
    told = frames_of(do("GET", f"{at}&last=1000", expect=200))
    changes = [frame.data for frame in told[1:]]
    assert told[0].name == "hello" and {data["kind"] for data in changes} >= {
        "namespace", "vfs", "secret", "capsule", "app", "agent", "interaction", "json", "prompt", "capsuleRun",
        "command", "appRun", "interactionRun"}, told
    assert [frame.name for frame in frames_of(do("GET", at, expect=200))] == ["hello"]
    last = told[-1].id
    assert [(frame.name, frame.id) for frame in frames_of(do("GET", f"{at}&after={last}", expect=200))] == [("hello", last)]
    assert frames_of(do("GET", f"{at}&last=9", expect=200, headers={"Last-Event-ID": str(last - 1)}))[1] == told[-1]
    runs = {data["kind"]: data["runId"] for data in changes if data["kind"].endswith("Run")}
    app_runs = {data["runId"] for data in changes if data["kind"] == "appRun"}
    printed = {frame.name for run in app_runs
               for frame in frames_of(do("GET", f"{at}&last=100&run={run}&output=true", expect=200))}
    assert printed == {"hello", "change", "console"}, printed
    do("GET", f"{at}&run={runs['interactionRun']}&output=true&kind=interactionRun,command", expect=200)
    do("HEAD", at, expect=200)
    for bad in ("last=1001", "after=-1", "after=1&last=1", "kind=", "kind=run", "output=true", "follow=1", "x=1"):
        do("GET", f"/v1/events?{bad}", expect=400)
    do("GET", at, expect=400, headers={"Last-Event-ID": "x"})
    do("GET", "/v1/events?namespace=not-there", expect=404)
    do("GET", "/v1/events?run=019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70", expect=404)
    do("GET", f"/v1/events?after={last + 100000}", expect=410)


def test_answers_are_as_described(api):
    do = Walk(api)
    name = api.namespace("shape") + "-x"
    walk_access(do, name)
    vfs = do("POST", f"/v1/namespaces/{name}/vfs", {"name": "work"}, 201)
    do("GET", f"/v1/namespaces/{name}/vfs", expect=200)
    assert "usedBytes" in do("GET", f"/v1/namespaces/{name}/vfs/work", expect=200)
    do("PATCH", f"/v1/namespaces/{name}/vfs/work", {"limit": "20GiB"}, 200)
    do("PATCH", f"/v1/namespaces/{name}/vfs/work", {"limit": "20GB"}, 400)
    walk_files(do, f"/v1/namespaces/{name}/vfs/work")
    walk_files(do, f"/v1/vfs/{vfs['id']}")
    walk_secrets(do, name)
    walk_providers(do)
    walk_resources(do, name)
    walk_runs(do, name)
    walk_app_runs(do, name)
    walk_interaction_runs(do, name)
    walk_events(do, name)
    do("DELETE", f"/v1/namespaces/{name}", expect=409)
    do("DELETE", f"/v1/namespaces/{name}/secrets/token", expect=409)
    do("DELETE", f"/v1/namespaces/{name}/secrets/token?force=true", expect=204)
    do("DELETE", f"/v1/namespaces/{name}/vfs/work?force=true", expect=204)
    left = {op["operationId"] for item in API["paths"].values() for key, op in item.items()
            if key != "parameters"} - do.seen
    assert not left, left
