# SPDX-License-Identifier: Apache-2.0
"""Deploy and what is deployed, over HTTP (field cases O-20, O-28, O-34 as far as projects go)."""
import base64
import itertools
import os
import time

import pytest

_names = itertools.count(1)

CAPSULE = 'autoTerminate = true\nstartup = [{ command = "true" }]\n'
INTERACTION = ('agent.agent = @ref("clerk")\ntask = @prompt("letter")\n'
               'inputs.prompts = [{ name = "letter" }, { name = "notes", required = false }]\n')
AGENT = 'model = @ref("ollama.llama3:8b")\nprompt = "Be brief."\n'
PROJECT = {
    "agents/clerk.mtr": AGENT,
    "interactions/one-shot/sort.mtr": INTERACTION,
    "prompts/letter.md": "%%letter%%\n{{#if notes}}\n%%notes%%\n{{/if}}\n",
    "capsules/c.mtr": CAPSULE,
}


def places(answer):
    return [(d["file"], d["line"], d["column"]) for d in answer["diagnostics"]]


def entries(answer):
    return {word: [(e["kind"], e["name"], e["version"]) for e in answer[word]]
            for word in ("created", "updated", "unchanged", "removed") if answer[word]}


# ---- faults ----

def test_faults_of_all_files_come_at_once_with_their_places(api, ns):
    answer = api.deploy(ns, {
        "capsules/a.mtr": 'autoterminate = true\nmaxDuration = "00:60:00"\n',
        "capsules/b.mtr": 'vfs = [\n  { vfs = @ref("harvest"), mountName = "d" },\n]\n',
        "json/j.json": '{\n  "type": }',
        "prompts/p.md": "é {{#each x}}\n",
    }, expect=422)
    assert answer["status"] == 422 and answer["code"] == "deployFailed" and answer["title"]
    assert answer["detail"] == "5 errors in the project, nothing was deployed"
    assert places(answer) == [("capsules/a.mtr", 1, 1), ("capsules/a.mtr", 2, 15),
                              ("json/j.json", 2, 11), ("prompts/p.md", 1, 3),
                              ("capsules/b.mtr", 2, 11)]
    first, second, *_, last = answer["diagnostics"]
    assert first["message"] == "unknown property 'autoterminate'"
    assert first["hint"] == "did you mean 'autoTerminate'?"
    assert first["sourceLine"] == "autoterminate = true"
    assert '"hh:mm:ss"' in second["message"] and '"00:10:00"' in second["message"]
    assert last["message"] == f"no file system 'harvest' in namespace '{ns}'"
    assert last["hint"] == "create it first: mt vfs-create harvest"


def test_nothing_is_left_of_a_failed_deploy(api, ns):
    api.deploy(ns, {"capsules/good.mtr": CAPSULE, "capsules/bad.mtr": "x = 1"}, expect=422)
    assert api.call("GET", f"/v1/namespaces/{ns}/capsules")["items"] == []


@pytest.mark.parametrize("path", [
    "../x.mtr", "capsules/../../x.mtr", "/etc/passwd", "capsules\\x.mtr", "capsules//x.mtr", "",
    "capsules/x\u0000.mtr", "capsules/..mtr", "capsules/.mtr/x", "capsules/a/b.mtr",
    "capsules/A.mtr", "capsules/%2e%2e.mtr", "tools/x.mtr", "connectors/x.mtr", "somewhere/x.mtr",
    "x.mtr", "a" * 600, "capsules/" + "n" * 64 + ".mtr", "interactions/round-robin/x.mtr"])
def test_odd_paths_are_refused(api, ns, path):
    status, answer = api.server.request(
        "POST", f"/v1/namespaces/{ns}/deploy", {"files": [{"path": path, "content": ""}]})
    if status == 200:  # hidden files are left out, and said so
        assert answer["warnings"] and not answer["created"]
    else:
        assert status == 422 and answer["diagnostics"][0]["message"], answer
    assert api.call("GET", f"/v1/namespaces/{ns}/capsules")["items"] == []


def test_tools_are_refused_with_a_sentence(api, ns):
    answer = api.deploy(ns, {"tools/weather.mtr": 'auth = "Maitento"\n'}, expect=422)
    assert "outside of this product for now" in answer["diagnostics"][0]["message"]


@pytest.mark.parametrize("reference", [
    '@prompt("../../x")', '@prompt("/etc/passwd")', '@prompt("")', '@prompt("a/b")'])
def test_references_are_names(api, ns, reference):
    answer = api.deploy(ns, {**PROJECT, "interactions/one-shot/sort.mtr":
                             INTERACTION.replace('@prompt("letter")', reference)}, expect=422)
    assert "is no name" in answer["diagnostics"][0]["message"]


@pytest.mark.parametrize("mount", ["../etc", "/", "", "a/b", "..", ".", "secrets"])
def test_mount_names_are_names(api, ns, mount):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    answer = api.deploy(ns, {"capsules/c.mtr":
                             f'vfs = [{{ vfs = @ref("work") mountName = "{mount}" }}]'}, expect=422)
    assert "mountName" in answer["diagnostics"][0]["message"]


@pytest.mark.parametrize("text", [
    "a = " + "[" * 100000, "a = " + "{ b = " * 100000, "{:" * 100000, "a = \"" + "x" * 1000000,
    "a = \"x\u0000\"", "a = <<EOT\n" + "x\n" * 100000, "a.b" * 100000, "/*" * 100000])
def test_hostile_files_are_refused_at_once(api, ns, text):
    start = time.monotonic()
    answer = api.deploy(ns, {"capsules/x.mtr": text}, expect=422)
    assert time.monotonic() - start < 20
    assert answer["diagnostics"][0]["file"] == "capsules/x.mtr"
    assert answer["diagnostics"][0]["line"] >= 1


def test_a_deeply_nested_prompt_is_refused(api, ns):
    answer = api.deploy(ns, {"prompts/p.md": "{{#if x}}" * 10000}, expect=422)
    assert answer["diagnostics"][0]["message"] == "{{#if}} nested deeper than 64 levels"


def test_bom_and_crlf_files_work_as_usual(api, ns):
    api.deploy(ns, {"capsules/c.mtr": b"\xef\xbb\xbf// c\r\nautoTerminate = true\r\n"
                                      b"startup = [\r\n  { command = <<EOT\r\ntrue\r\nEOT\r\n  }\r\n]\r\n",
                    "json/j.json": b"\xef\xbb\xbf{\r\n}\r\n"})
    found = api.call("GET", f"/v1/namespaces/{ns}/capsules/c")["definition"]
    assert found["startup"][0]["command"] == "true\n"


# ---- what a deploy does ----

def test_versions_grow_only_by_changes(api, ns):
    assert entries(api.deploy(ns, PROJECT)) == {"created": [
        ("agent", "clerk", 1), ("capsule", "c", 1), ("interaction", "sort", 1),
        ("prompt", "letter", 1)]}
    assert list(entries(api.deploy(ns, PROJECT))) == ["unchanged"]
    changed = {**PROJECT, "capsules/c.mtr": CAPSULE + 'maxDuration = "24:00:00"\n'}
    assert entries(api.deploy(ns, changed))["updated"] == [("capsule", "c", 2)]
    found = api.call("GET", f"/v1/namespaces/{ns}/capsules/c")
    assert [v["version"] for v in found["versions"]] == [2, 1] and found["version"] == 2
    assert found["definition"]["maxDuration"] == "1.00:00:00"
    first = api.call("GET", f"/v1/namespaces/{ns}/capsules/c?version=1")
    assert first["version"] == 1 and first["definition"]["maxDuration"] == "00:10:00"
    assert api.error("GET", f"/v1/namespaces/{ns}/capsules/c?version=3")[:2] == (404, "notFound")


def test_dry_run_and_prune(api, ns):
    assert api.deploy(ns, PROJECT, dryRun=True)["dryRun"] is True
    assert api.call("GET", f"/v1/namespaces/{ns}/agents")["items"] == []
    api.deploy(ns, PROJECT)
    alone = {"capsules/c.mtr": CAPSULE}
    assert entries(api.deploy(ns, alone)) == {"unchanged": [("capsule", "c", 1)]}
    answer = api.deploy(ns, alone, prune=True, dryRun=True)
    assert sorted(e["name"] for e in answer["removed"]) == ["clerk", "letter", "sort"]
    assert api.call("GET", f"/v1/namespaces/{ns}/agents/clerk")["name"] == "clerk"
    api.deploy(ns, alone, prune=True)
    assert api.error("GET", f"/v1/namespaces/{ns}/agents/clerk")[:2] == (404, "notFound")


def test_a_prompt_is_checked_against_the_deployed_interactions(api, ns):
    api.deploy(ns, PROJECT)
    answer = api.deploy(ns, {"prompts/letter.md": "%%leter%%"}, expect=422)
    assert answer["diagnostics"][0]["message"] == "'leter' is no input of interaction 'sort'"
    assert answer["diagnostics"][0]["hint"] == "did you mean 'letter'?"


def test_a_model_without_a_key_is_a_warning(api, ns):
    answer = api.deploy(ns, {"agents/a.mtr": 'model = @ref("deepseek.v4")\nprompt = "x"\n'})
    assert answer["warnings"][0]["file"] == "agents/a.mtr"
    assert "no key for 'deepseek'" in answer["warnings"][0]["message"]
    assert answer["warnings"][0]["hint"] == "mt provider-set deepseek, or DEEPSEEK_API_KEY at the server's start"
    api.call("PUT", "/v1/providers/deepseek", {"key": "k"})
    try:
        assert not api.deploy(ns, {"agents/a.mtr": 'model = @ref("deepseek.v4")\nprompt = "x"\n'})["warnings"]
    finally:
        api.call("DELETE", "/v1/providers/deepseek")
    assert api.deploy(ns, {"agents/a.mtr": 'model = @ref("deepseek.v4")\nprompt = "x"\n'}, dryRun=True)["warnings"]


def test_models_that_need_no_key_need_a_place(api, ns):
    assert not api.deploy(ns, {"agents/a.mtr": 'model = @ref("ollama.llama3:8b")\nprompt = "x"\n'})["warnings"]
    project = {"agents/a.mtr": 'model = @ref("custom.x")\nprompt = "x"\n'}
    warning = api.deploy(ns, project, dryRun=True)["warnings"][0]
    assert "no base URL for 'custom'" in warning["message"] and "--base-url" in warning["hint"]
    api.call("PUT", "/v1/providers/custom", {"baseUrl": "http://127.0.0.1:8000/v1"})
    try:
        assert not api.deploy(ns, project, dryRun=True)["warnings"]
    finally:
        api.call("DELETE", "/v1/providers/custom")


def test_limits_over_the_ceiling_are_refused_with_it(api, ns):
    answer = api.deploy(ns, {"capsules/c.mtr": 'limits = { memory = "900TiB", pids = 4000000 }\n'},
                        expect=422)
    messages = [d["message"] for d in answer["diagnostics"]]
    assert messages[0].startswith("memory is over this server's ceiling of ")
    assert messages[1].startswith("pids is over this server's ceiling of ")


def test_a_definition_is_shown_with_its_defaults(api, ns):
    api.deploy(ns, {"capsules/c.mtr": CAPSULE})
    found = api.call("GET", f"/v1/namespaces/{ns}/capsules/c")
    definition = found["definition"]
    assert found["name"] == "c" and found["namespace"] == ns and found["dateCreated"]
    assert definition["image"] and definition["limits"]["memory"] and definition["limits"]["pids"]
    assert definition["startup"] == [{"command": "true", "arguments": [], "runAsUser": "maitento",
                                      "maxDuration": None, "wait": True}]


def test_every_kind_can_be_listed_and_read(api, ns):
    api.deploy(ns, {**PROJECT, "json/s.json": '{"type": "object"}',
                    "apps/x/x.mtc": "void main() {}\n", "apps/x/x.mtr": 'duration.max = "00:00:09"'})
    for kind, name in (("agents", "clerk"), ("apps", "x"), ("capsules", "c"),
                       ("interactions", "sort"), ("json", "s"), ("prompts", "letter")):
        items = api.call("GET", f"/v1/namespaces/{ns}/{kind}")["items"]
        assert [i["name"] for i in items] == [name], kind
        assert api.call("GET", f"/v1/namespaces/{ns}/{kind}/{name}")["definition"], kind
        status, code, detail = api.error("GET", f"/v1/namespaces/{ns}/{kind}/nothing")
        assert (status, code) == (404, "notFound") and "'nothing'" in detail and ns in detail
    assert api.call("GET", f"/v1/namespaces/{ns}/json/s")["definition"] == {"schema": {"type": "object"}}


def test_lists_are_paged(api, ns):
    api.deploy(ns, {f"capsules/c{i:02}.mtr": CAPSULE for i in range(25)})
    names, after = [], ""
    while after is not None:
        page = api.call("GET", f"/v1/namespaces/{ns}/capsules?limit=10&after={after}" if after else
                        f"/v1/namespaces/{ns}/capsules?limit=10")
        assert len(page["items"]) <= 10
        names += [i["name"] for i in page["items"]]
        after = page["next"]
    assert names == [f"c{i:02}" for i in range(25)]


# ---- requests ----

@pytest.mark.parametrize("body, field", [
    ({}, "files"), ({"files": {}}, "files"), ({"files": [1]}, "files[0]"),
    ({"files": [{"content": ""}]}, "files[0].path"),
    ({"files": [{"path": "capsules/c.mtr"}]}, "files[0]"),
    ({"files": [{"path": "capsules/c.mtr", "content": "", "contentBase64": ""}]}, "files[0]"),
    ({"files": [{"path": "capsules/c.mtr", "contentBase64": "a"}]}, "files[0].contentBase64"),
    ({"files": [{"path": "capsules/c.mtr", "contentBase64": "YQ=a"}]}, "files[0].contentBase64"),
    ({"files": [{"path": "capsules/c.mtr", "contentBase64": "YR=="}]}, "files[0].contentBase64"),
    ({"files": [{"path": "capsules/c.mtr", "content": 5}]}, "files[0].content"),
    ({"files": [], "dryrun": True}, "dryrun"), ({"files": [], "prune": "yes"}, "prune")])
def test_malformed_requests_name_the_member(api, ns, body, field):
    status, answer = api.server.request("POST", f"/v1/namespaces/{ns}/deploy", body)
    assert (status, answer["code"]) == (400, "badField"), answer
    assert answer["field"] == field, answer


def test_too_many_files_are_refused(api, ns):
    files = [{"path": f"capsules/c{i}.mtr", "content": ""} for i in range(5001)]
    assert api.error("POST", f"/v1/namespaces/{ns}/deploy", {"files": files})[:2] == (413, "tooLarge")


def test_content_may_be_base64(api, ns):
    text = base64.b64encode(CAPSULE.encode()).decode()
    api.call("POST", f"/v1/namespaces/{ns}/deploy",
             {"files": [{"path": "capsules/c.mtr", "contentBase64": text}]})
    answer = api.deploy(ns, {"capsules/d.mtr": b'a = "caf\xe9"\n'}, expect=422)
    assert answer["diagnostics"][0]["message"] == "byte 0xe9 is not UTF-8: save the file as UTF-8"


def test_a_stranger_sees_no_namespace_and_a_member_deploys(api, ns):
    name = f"d-{os.getpid()}-{next(_names)}"
    key = api.call("POST", "/v1/users", {"name": name, "role": "user"}, 201)["key"]
    headers = {"Authorization": f"Bearer {key}"}
    body = {"files": [{"path": "capsules/c.mtr", "content": CAPSULE}]}
    for method, path, sent in (("POST", "deploy", body), ("GET", "capsules", None),
                               ("GET", "capsules/c", None)):
        status, code, _ = api.error(method, f"/v1/namespaces/{ns}/{path}", sent, headers)
        assert (status, code) == (404, "notFound")
    api.call("PUT", f"/v1/namespaces/{ns}/members/{name}")
    assert api.call("POST", f"/v1/namespaces/{ns}/deploy", body, 200, headers)["created"]


def test_a_thousand_capsules_deploy_in_time(api, ns):
    files = {f"capsules/c{i}.mtr": CAPSULE for i in range(1000)}
    start = time.monotonic()
    assert len(api.deploy(ns, files)["created"]) == 1000
    assert len(api.deploy(ns, files)["unchanged"]) == 1000
    assert time.monotonic() - start < 20
