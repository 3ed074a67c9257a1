# SPDX-License-Identifier: Apache-2.0
"""Who may do what over HTTP: sign-in, users, keys, namespaces and members (field case O-32)."""
import datetime
import http.client
import itertools
import json
import os
import re
import sqlite3
import subprocess
import time
from urllib.parse import urlparse

import pytest

import mtserver

_names = itertools.count(1)


def unique(prefix):
    return f"{prefix}-{os.getpid()}-{next(_names)}"


class As:
    """The API as one user sees it, with his own key."""

    def __init__(self, api, name, key):
        self.api, self.name, self.headers = api, name, {"Authorization": f"Bearer {key}"}

    def call(self, method, path, body=None, expect=(200, 201, 204)):
        return self.api.call(method, path, body, expect, self.headers)

    def refused(self, method, path, body=None):
        status, code, detail = self.api.error(method, path, body, self.headers)
        return status, code, detail


@pytest.fixture()
def person(api):
    def make(prefix="p", role="user"):
        name = unique(prefix)
        made = api.call("POST", "/v1/users", {"name": name, "role": role}, 201)
        return As(api, name, made["key"])

    return make


def tcp(server, method, path, headers=None, body=None):
    """A request over TCP with exactly these headers: (status, code)."""
    address = urlparse(server.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data)["code"] if data and answer.status >= 400 else None
    finally:
        connection.close()


# What is open, and tells nothing of anybody.
OPEN = {("get", "/v1/health"), ("get", "/v1/server"), ("get", "/openapi.json")}


def routes(server):
    """Each route that the server describes, with something in the places of names: [(METHOD, path)]."""
    status, api = server.request("GET", "/openapi.json")
    assert status == 200
    found = []
    for path, methods in api["paths"].items():
        for method in methods:
            if method in ("get", "head", "put", "post", "delete") and (method, path) not in OPEN:
                found.append((method.upper(), re.sub(r"\{(\w+)\}", "00000000-0000-7000-8000-000000000000", path)))
    return found


BAD_SIGN_INS = {
    "none": {},
    "empty": {"Authorization": ""},
    "bearer alone": {"Authorization": "Bearer"},
    "bearer and a blank": {"Authorization": "Bearer "},
    "wrong key": {"Authorization": "Bearer mt_" + "0" * 64},
    "no key": {"Authorization": "Bearer x"},
    "basic": {"Authorization": "Basic YWRtaW46YWRtaW4="},
    "unsigned jwt": {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."},
    "forwarded for": {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"},
}


@pytest.mark.parametrize("how", BAD_SIGN_INS)
def test_o32_every_route_needs_a_sign_in(server, how):
    asked = routes(server)
    assert len(asked) >= 60 and any("/commands" in path for _, path in asked)
    for method, path in asked:
        for query in ("", "?path=/a") if path.endswith("/files") else ("",):
            status, code = tcp(server, method, path + query, BAD_SIGN_INS[how])
            assert (status, code) == (401, "unauthenticated" if method != "HEAD" else None), (method, path)


def test_o32_other_methods_tell_nothing(server):
    for method in ("OPTIONS", "TRACE", "PATCH", "HEAD"):
        for path in ("/v1/whoami", "/v1/namespaces", "/v1/capsule-runs"):
            status, code = tcp(server, method, path)
            assert status in (401, 405, 501), (method, path, status, code)


def test_o32_an_expired_key_is_none(api, server):
    """It works until its moment, and not after it."""
    made = api.call("POST", "/v1/keys", {"name": unique("short"), "expires": (
        datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=6)).strftime("%Y-%m-%dT%H:%M:%SZ")}, 201)
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert tcp(server, "GET", "/v1/whoami", headers)[0] == 200
    deadline = time.monotonic() + 30
    while tcp(server, "GET", "/v1/whoami", headers)[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert tcp(server, "GET", "/v1/whoami", headers) == (401, "unauthenticated")


def test_o32_a_command_counts_under_its_own_run_alone(api, person):
    anna, bert = person("anna"), person("bert")
    ns = unique("annas")
    anna.call("POST", "/v1/namespaces", {"name": ns}, 201)
    anna.call("POST", f"/v1/namespaces/{ns}/deploy", {"files": [{"path": "capsules/c.mtr", "content": 'maxDuration = "00:02:00"\n'}]})
    one, two = (anna.call("POST", f"/v1/namespaces/{ns}/capsules/c/runs", None, 201)["id"] for _ in range(2))
    command = anna.call("POST", f"/v1/capsule-runs/{one}/commands", {"command": "true"}, 201)["id"]
    assert anna.call("GET", f"/v1/capsule-runs/{one}/commands/{command}")["id"] == command
    for who, run in ((anna, two), (bert, one), (bert, two)):
        for method, path in (("GET", ""), ("GET", "/output"), ("POST", "/cancel")):
            assert who.refused(method, f"/v1/capsule-runs/{run}/commands/{command}{path}")[0] == 404, (who.name, path)
    for method, path in (("GET", ""), ("POST", "/terminate"), ("GET", "/commands"), ("POST", "/extend")):
        body = {"maxDuration": "00:03:00"} if path == "/extend" else None
        unseen = bert.refused(method, f"/v1/capsule-runs/{one}{path}", body)
        absent = bert.refused(method, f"/v1/capsule-runs/00000000-0000-7000-8000-000000000000{path}", body)
        assert unseen[:2] == absent[:2] == (404, "notFound"), (method, path, unseen)
    for run in (one, two):
        anna.call("POST", f"/v1/capsule-runs/{run}/terminate")


def test_o32_what_is_open_tells_nothing(server):
    for path in ("/v1/health", "/v1/server", "/openapi.json"):
        assert tcp(server, "GET", path)[0] == 200


@pytest.mark.parametrize("address, warned", [("0.0.0.0:0", True), ("127.0.0.1:0", False)])
def test_o32_an_address_for_others_is_warned_of(tmp_path, address, warned):
    """In a network namespace of its own: nobody reaches it."""
    os.chmod(tmp_path, 0o711)
    ready = tmp_path / "ready.json"
    (tmp_path / "state").mkdir()
    with open(tmp_path / "log", "wb") as log, subprocess.Popen(
            ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", mtserver.program("maitentod"),
             "--tcp", address, "--state", tmp_path / "state", "--socket", tmp_path / "api.sock", "--runner",
             tmp_path / "none.sock", "--ready-file", ready, "--instance", "o32", "--service-uid", str(mtserver.SERVICE_ID),
             "--service-gid", str(mtserver.SERVICE_ID)], stdin=subprocess.DEVNULL, stdout=log, stderr=log) as server:
        deadline = time.monotonic() + 60
        while not ready.exists() and server.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        server.terminate()
        assert server.wait(30) == 0, (tmp_path / "log").read_text()
    said = (tmp_path / "log").read_text()
    assert ready.exists() and ("plain text" in said) == warned, said


def test_o32_keys_in_the_address_are_no_sign_in(server, person):
    key = person().headers["Authorization"].split()[1]
    for parameter in ("key", "token", "access_token", "apiKey"):
        assert tcp(server, "GET", f"/v1/whoami?{parameter}={key}")[0] in (400, 401)
    assert tcp(server, "GET", "/v1/whoami", {"Authorization": f"Bearer {key}"})[0] == 200


def test_o32_foreign_hosts_and_origins_are_refused(server, person):
    good = person().headers
    assert tcp(server, "GET", "/v1/whoami", {**good, "Host": "evil.example"})[0] == 421
    assert tcp(server, "GET", "/v1/whoami", {**good, "Origin": "http://evil.example"})[0] == 403


def test_o32_what_is_anothers_is_not_there(api, person):
    anna, bert = person("anna"), person("bert")
    ns, free = unique("annas"), unique("free")
    anna.call("POST", "/v1/namespaces", {"name": ns}, 201)
    vfs = anna.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "data"}, 201)
    for method, rest, body in [
            ("GET", "", None), ("DELETE", "", None), ("GET", "/members", None),
            ("PUT", f"/members/{bert.name}", None), ("GET", "/vfs", None), ("GET", "/vfs/data", None),
            ("DELETE", "/vfs/data", None), ("GET", "/vfs/data/list?path=/", None),
            ("POST", "/vfs", {"name": "more"}), ("GET", "/capsules", None),
            ("POST", "/deploy", {"files": []}), ("POST", "/capsules/c/runs", None)]:
        unseen = bert.refused(method, f"/v1/namespaces/{ns}{rest}", body)
        absent = bert.refused(method, f"/v1/namespaces/{free}{rest}", body)
        assert unseen[:2] == absent[:2] == (404, "notFound"), (method, rest)
        assert unseen[2].replace(ns, "") == absent[2].replace(free, ""), (method, rest)
    assert bert.refused("GET", f"/v1/vfs/{vfs['id']}/list?path=/")[0] == 404
    assert bert.call("GET", "/v1/namespaces")["items"] == []
    assert bert.call("GET", "/v1/capsule-runs")["items"] == []
    assert bert.refused("PUT", "/v1/default-namespace", {"name": ns})[0] == 404


def test_members_see_and_work_but_do_not_own(api, person):
    anna, bert = person("anna"), person("bert")
    ns = unique("team")
    anna.call("POST", "/v1/namespaces", {"name": ns}, 201)
    anna.call("PUT", f"/v1/namespaces/{ns}/members/{bert.name}", expect=204)
    anna.call("PUT", f"/v1/namespaces/{ns}/members/{bert.name}", expect=204)
    assert [m["name"] for m in bert.call("GET", f"/v1/namespaces/{ns}/members")["items"]] == [bert.name]
    bert.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "data"}, 201)
    assert bert.refused("DELETE", f"/v1/namespaces/{ns}")[:2] == (403, "forbidden")
    assert bert.refused("DELETE", f"/v1/namespaces/{ns}/members/{anna.name}")[0] == 403
    bert.call("DELETE", f"/v1/namespaces/{ns}/members/{bert.name}", expect=204)
    assert bert.refused("GET", f"/v1/namespaces/{ns}")[0] == 404
    status, code, detail = anna.refused("DELETE", f"/v1/namespaces/{ns}")
    assert (status, code) == (409, "conflict") and "file systems data" in detail
    anna.call("DELETE", f"/v1/namespaces/{ns}/vfs/data", expect=204)
    anna.call("DELETE", f"/v1/namespaces/{ns}", expect=204)


def test_default_namespace_is_the_first_one_made(person):
    anna = person("anna")
    first, second = unique("first"), unique("second")
    assert anna.call("GET", "/v1/whoami")["defaultNamespace"] is None
    assert anna.call("POST", "/v1/namespaces", {"name": first})["becameDefault"] is True
    assert anna.call("POST", "/v1/namespaces", {"name": second})["yourDefault"] == first
    assert anna.call("PUT", "/v1/default-namespace", {"name": second})["defaultNamespace"] == second
    anna.call("DELETE", f"/v1/namespaces/{second}", expect=204)
    assert anna.call("GET", "/v1/whoami")["defaultNamespace"] is None


def test_lists_are_paged(person):
    anna = person("anna")
    names = sorted(unique("page") for _ in range(5))
    for name in names:
        anna.call("POST", "/v1/namespaces", {"name": name}, 201)
    seen, after = [], ""
    while True:
        page = anna.call("GET", f"/v1/namespaces?limit=2{after}")
        seen += [n["name"] for n in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == names
    for limit in ("0", "1001", "x", "-1"):
        assert anna.refused("GET", f"/v1/namespaces?limit={limit}")[:2] == (400, "badField")


def test_keys_end_with_their_deletion_and_are_their_users_own(api, person, server):
    anna, bert = person("anna"), person("bert")
    made = anna.call("POST", "/v1/keys", {"name": "laptop", "expires": "2099-01-01T00:00:00Z"}, 201)
    laptop = As(api, anna.name, made["key"])
    assert laptop.call("GET", "/v1/whoami")["name"] == anna.name
    listed = anna.call("GET", "/v1/keys")["items"]
    assert {k["name"] for k in listed} == {"first", "laptop"} and all("key" not in k for k in listed)
    assert bert.refused("DELETE", f"/v1/keys/{made['id']}")[0] == 404
    assert bert.refused("GET", f"/v1/keys?user={anna.name}")[0] == 403
    assert bert.refused("POST", "/v1/keys", {"name": "x", "user": anna.name})[0] == 403
    anna.call("DELETE", f"/v1/keys/{made['id']}", expect=204)
    assert laptop.refused("GET", "/v1/whoami")[:2] == (401, "unauthenticated")
    for expires in ("2001-01-01T00:00:00Z", "tomorrow"):
        assert anna.refused("POST", "/v1/keys", {"name": "old", "expires": expires})[:2] == (400, "badField")


def test_only_administrators_manage_users(api, person):
    anna, boss = person("anna"), person("boss", "admin")
    for method, path, body in [("GET", "/v1/users", None), ("POST", "/v1/users", {"name": unique("u")}),
                               ("DELETE", f"/v1/users/{boss.name}", None), ("GET", "/v1/doctor", None)]:
        assert anna.refused(method, path, body)[:2] == (403, "forbidden"), path
    assert anna.name in [u["name"] for u in boss.call("GET", "/v1/users?limit=1000")["items"]]
    assert boss.refused("POST", "/v1/users", {"name": "a b"})[:2] == (400, "badField")
    assert boss.refused("POST", "/v1/users", {"name": unique("u"), "role": "root"})[:2] == (400, "badField")
    assert boss.refused("POST", "/v1/users", {"name": anna.name})[:2] == (409, "alreadyExists")
    ns = unique("owned")
    anna.call("POST", "/v1/namespaces", {"name": ns}, 201)
    status, _, detail = boss.refused("DELETE", f"/v1/users/{anna.name}")
    assert status == 409 and ns in detail
    anna.call("DELETE", f"/v1/namespaces/{ns}", expect=204)
    boss.call("DELETE", f"/v1/users/{anna.name}", expect=204)
    assert anna.refused("GET", "/v1/whoami")[0] == 401
    assert boss.refused("DELETE", "/v1/users/admin")[0] == 409


def test_tokens_are_stored_as_hashes_only(server, person):
    key = person().headers["Authorization"].split()[1]
    store = server.dir / "state" / "store"
    for file in store.iterdir():
        assert key[3:].encode() not in file.read_bytes(), file
    with sqlite3.connect(f"file:{store / 'maitento.db'}?mode=ro", uri=True) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_bodies_are_strict(api):
    for body, code in [(None, "badRequest"), ([], "badRequest"), ({}, "badField"), ({"name": 1}, "badField"),
                       ({"name": "x\0y"}, "badField"), ({"name": "ok", "nme": 1}, "badField")]:
        assert api.error("POST", "/v1/namespaces", body)[:2] == (400, code), body
    for name in ("", "A", "a b", "../x", ".x", "a" * 64, "é", "x'; DROP TABLE users; --"):
        assert api.error("POST", "/v1/namespaces", {"name": name})[:2] == (400, "badField"), name
