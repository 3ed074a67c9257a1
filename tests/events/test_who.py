"""Who is told of what: O-31 (no secret comes), O-32 (nothing of others comes), sign-ins that end."""
import json
import os
import time

import pytest

LEAK = """startup = [{ command = "sh" arguments = ["-c", "test -s /mnt/secrets/token && exit 3"] }]
secrets = [{ secret = @ref("token") mountName = "token" }]
"""


def test_o32_nothing_of_others_comes(api, stream, told, person):
    name, hers = person()
    _, his = person()
    anna, bert = stream("", hers, tcp=True), stream("", his, tcp=True)
    ns = f"{name}-own"
    assert api.server.request("POST", "/v1/namespaces", {"name": ns}, hers)[0] == 201
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "files"}, 201)
    assert anna.change(kind="vfs", namespace=ns)["name"] == "files"
    assert api.server.request("POST", "/v1/keys", {"name": "bert's"}, his)[0] == 201
    assert bert.change(kind="key")["name"] == "bert's"
    # All there is, his view of it: himself and his keys.
    for headers, spaces in ((his, {None}), (hers, {None, ns})):
        seen = [f.data for f in told("&last=1000", headers)[1:]]
        assert {e["namespace"] for e in seen} == spaces
        assert {e["kind"] for e in seen if not e["namespace"]} <= {"user", "key"}
        assert len({e["id"] for e in seen if e["kind"] == "user"}) == 1
    assert len(told("&last=1000")) > 20


def test_o32_filters_find_nothing_of_others(api, person, bench):
    _, headers = person()
    for query in (f"namespace={bench.ns}", f"run={bench.id}", f"run={bench.id}&output=true"):
        other = query.replace(bench.ns, "not-there").replace(bench.id, "019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70")
        unseen, absent = api.error("GET", f"/v1/events?{query}", None, headers), api.error("GET", f"/v1/events?{other}", None, headers)
        assert unseen[:2] == absent[:2] == (404, "notFound"), (unseen, absent)


def test_o32_who_leaves_a_namespace_hears_no_more(api, ns, stream, person):
    name, headers = person()
    api.call("PUT", f"/v1/namespaces/{ns}/members/{name}")
    all_of_his = stream("", headers)
    of_it = stream(f"?namespace={ns}", headers)
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "one"}, 201)
    assert all_of_his.change(kind="vfs")["name"] == of_it.change(kind="vfs")["name"] == "one"
    api.call("DELETE", f"/v1/namespaces/{ns}/members/{name}")
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "two"}, 201)
    assert of_it.over()["code"] == "accessLost"
    assert api.server.request("POST", "/v1/keys", {"name": "later"}, headers)[0] == 201
    assert all_of_his.change(kind="key")["name"] == "later"
    for one in (all_of_his, of_it):
        assert "two" not in [f.data.get("name") for f in one.frames]


def test_o32_output_ends_with_the_membership(api, stream, person, bench):
    name, headers = person()
    api.call("PUT", f"/v1/namespaces/{bench.ns}/members/{name}")
    events = stream(f"?run={bench.id}&output=true", headers)
    command = bench.send("while :; do echo tick; sleep 0.02; done")
    events.wait(lambda f: f.name == "output")
    api.call("DELETE", f"/v1/namespaces/{bench.ns}/members/{name}")
    assert events.over()["code"] == "accessLost"
    api.call("POST", f"/v1/capsule-runs/{bench.id}/commands/{command}/cancel?wait=30")


@pytest.mark.parametrize("how", ["key", "user"])
def test_a_sign_in_that_ends_ends_its_streams(api, stream, person, how):
    name, headers = person()
    events = stream("", headers)
    if how == "key":
        key = api.call("GET", f"/v1/keys?user={name}")["items"][0]["id"]
        api.call("DELETE", f"/v1/keys/{key}")
    else:
        api.call("DELETE", f"/v1/users/{name}")
    end = events.over()
    assert (end["code"], end["after"]) == ("accessLost", max([events.hello.id, *events.numbers]))


def test_an_expired_key_ends_its_streams(api, stream):
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    key = api.call("POST", "/v1/keys", {"name": "short", "expires": until}, 201)["key"]
    events = stream("", {"Authorization": f"Bearer {key}"})
    assert events.over(10)["code"] == "accessLost"


def test_inside_a_capsule_the_run_is_signed_in(api, other):
    """mt in the capsule sees what its starter sees."""
    done = other.sh("mt events -n $MAITENTO_NAMESPACE --kind capsule --json")
    assert done["exitCode"] == 0, done
    assert [json.loads(line)["name"] for line in done["outputStandard"].splitlines()] == ["bench"]
    followed = other.send("timeout -s INT 1 mt events -f --last 1 --run " + other.id + " --kind command --json")
    done = other.end(followed)
    assert json.loads(done["outputStandard"].splitlines()[0])["id"] == followed, done
    assert done["exitCode"] == 124 or done["exitCode"] == 130, done
    other.terminate()


def test_a_run_s_sign_in_ends_with_it(api, other, stream):
    """Also that of a key that was made inside, used from outside."""
    key = json.loads(other.sh("mt key-create made-inside --json")["outputStandard"])["key"]
    headers = {"Authorization": f"Bearer {key}"}
    events = stream("", headers, tcp=True)
    plain = stream()
    other.sh("true")
    events.change(kind="command", change="ended")
    other.terminate()
    end = events.over()
    assert end["code"] == "runEnded" and end["after"] >= events.numbers[-1], end
    assert plain.change(kind="capsuleRun", change="ended")["id"] == other.id
    assert api.error("GET", "/v1/events", None, headers)[:2] == (401, "unauthenticated")


def test_o31_no_secret_is_told(api, ns, stream, told, server):
    mark = "CANARY-7f3a" + os.urandom(8).hex()
    everything = stream()
    api.call("POST", f"/v1/namespaces/{ns}/secrets", {"name": "token", "value": mark}, 201)
    api.call("PUT", "/v1/providers/deepseek", {"key": mark}, 200)
    api.deploy(ns, {"capsules/c.mtr": LEAK})
    run = api.run(ns, "c")
    assert run["status"] == "Error" and mark not in run["failureDetails"], run
    key = api.call("POST", "/v1/keys", {"name": "k"}, 201)["key"]
    api.call("DELETE", "/v1/providers/deepseek")
    assert everything.change(kind="provider", change="deleted")["id"] == "deepseek"
    text = json.dumps([f.data for f in everything.frames] + [f.data for f in told("&last=1000")])
    assert mark not in text and key not in text and "token" in text
