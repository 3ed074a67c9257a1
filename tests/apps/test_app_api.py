# SPDX-License-Identifier: Apache-2.0
"""Runs of apps by the API: inputs, ends, what is printed, cancel, run again, who sees them, lists, repeats."""
import json
import time

import pytest

from programs import GATE, SLEEPER

ECHO = """jsonObject main(bool flag, int count, decimal price, string text, guid id, jsonObject object, jsonArray list) {
	jsonObject r = JsonObjectSetBool(JsonObjectCreate(), "flag", flag);
	r = JsonObjectSetInt(r, "count", count);
	r = JsonObjectSetDecimal(r, "price", price);
	r = JsonObjectSetString(r, "text", text);
	r = JsonObjectSetGuid(r, "id", id);
	r = JsonObjectSetObject(r, "object", object);
	return(JsonObjectSetArray(r, "list", list));
}
"""
VALUES = {"flag": True, "count": -9223372036854775808, "price": 1.25, "text": "a,b=c \"é\"\n𝄞 $HOME",
          "id": "019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70", "object": {"b": [1, None], "a": "x"}, "list": [{"n": 1.5}, "y"]}
TEXTS = {name: value if isinstance(value, str) else json.dumps(value) for name, value in VALUES.items()}


# ---- inputs ----

@pytest.mark.parametrize("inputs", [TEXTS, VALUES, {k.upper(): v for k, v in TEXTS.items()}], ids=["texts", "json", "capitals"])
def test_073_inputs_by_name_in_every_type(apps, inputs):
    apps.deploy(echo=ECHO)
    run = apps.run("echo", inputs)
    assert run["status"] == "Finished" and run["endReason"] == "returned", run
    assert run["returnValue"] == VALUES and list(run["inputs"]) == list(VALUES)
    shown = apps.call("GET", f"/v1/namespaces/{apps.ns}/apps/echo")
    assert [(i["name"], i["type"]) for i in shown["inputs"]] == [
        ("flag", "bool"), ("count", "int"), ("price", "decimal"), ("text", "string"), ("id", "guid"),
        ("object", "jsonObject"), ("list", "jsonArray")]
    assert shown["returns"] == "jsonObject"


@pytest.mark.parametrize("inputs, field, words", [
    ({"name": "x", "times": "1", "nmae": "y"}, "inputs.nmae", ["nmae", "name", "times"]),
    ({"times": "1"}, "inputs.name", ["name"]),
    ({}, "inputs.name", ["name"]),
    ({"name": "x", "times": "1", "TIMES": "2"}, "inputs.TIMES", ["twice"]),
    ({"name": "x", "times": "one"}, "inputs.times", ["times", "int"]),
    ({"name": "x", "times": 1.5}, "inputs.times", ["times", "int"]),
    ({"name": "x", "times": "9223372036854775808"}, "inputs.times", ["times"]),
    ({"name": "x", "times": None}, "inputs.times", ["times"]),
    ({"name": {"a": 1}, "times": "1"}, "inputs.name", ["name", "string"])],
    ids=["unknown", "missing", "none", "twice", "word", "fraction", "range", "null", "object"])
def test_073_inputs_that_do_not_fit_say_what_does(apps, inputs, field, words):
    apps.deploy(greet="string main(string name, int times) {\n\treturn(StringRepeat(name, times));\n}\n")
    status, problem = apps.refused("POST", apps.runs_of("greet"), {"inputs": inputs})
    assert (status, problem["code"], problem["field"].lower()) == (400, "badField", field.lower()), problem
    assert all(word in problem["detail"] for word in words), problem
    assert apps.list() == []


def test_bodies_that_do_not_fit_are_refused(apps):
    apps.deploy(greet="void main() { }\n")
    for body in ({"input": {}}, {"inputs": []}, {"inputs": "x"}, {"version": 0}, {"version": "1"}, {"rerunOf": "x"}, []):
        assert apps.refused("POST", apps.runs_of("greet"), body)[0] == 400, body
    assert apps.refused("POST", apps.runs_of("greet"), {"version": 2})[0] == 404
    status, problem = apps.refused("POST", apps.runs_of("none"), {})
    assert status == 404 and "'none'" in problem["detail"] and apps.ns in problem["detail"]
    run = apps.run("greet")
    for path in ("?console=yes", "/console?after=-1", "/console?limit=0", "/console?limit=10001", "/log?after=x", "?lines=1"):
        assert apps.refused("GET", f"/v1/app-runs/{run['id']}{path}")[0] == 400, path
    for path in ("cancel", "rerun"):
        assert apps.refused("POST", f"/v1/app-runs/{run['id']}/{path}", {"x": 1})[0] == 400, path
    assert apps.call("POST", f"/v1/namespaces/{apps.ns}/apps/greet/runs", None, 201)["inputs"] == {}


def test_o13_o14_an_input_of_some_megabytes_is_one_text(apps):
    apps.deploy(length="int main(string text) {\n\treturn(StringLength(text));\n}\n")
    text = "x,y=\"$(id)\" é\n" * 200000
    assert apps.run("length", {"text": text})["returnValue"] == len(text)


# ---- ends ----

@pytest.mark.parametrize("type_, value, expect", [
    ("string", '"Grüße"', "Grüße"), ("string", '""', ""), ("int", "-7", -7), ("decimal", "0.5", 0.5), ("bool", "false", False),
    ("jsonArray", 'StringSplit("a b", " ")', ["a", "b"]), ("jsonObject", "JsonObjectCreate()", {})])
def test_084_what_main_returns_is_the_return_value(apps, type_, value, expect):
    apps.deploy(give=f"{type_} main() {{\n\treturn({value});\n}}\n")
    run = apps.run("give")
    assert (run["returnValue"], run["status"], run["failureDetails"]) == (expect, "Finished", "")


def test_void_returns_nothing_and_outputs_keep_their_order(apps):
    apps.deploy(outputs='void main() {\n\tAppStateSetOutputString("z", "1");\n\tAppStateSetOutputInt("a", 2);\n'
                        '\tAppStateSetOutputString("z", "3");\n}\n')
    run = apps.run("outputs")
    assert run["returnValue"] is None and list(run["outputs"].items()) == [("z", "3"), ("a", 2)]
    assert "outputs" not in apps.list()[0] and "consoleOutputs" not in apps.list()[0]


def test_075_a_throw_is_the_whole_of_failure_details(apps):
    apps.deploy(fail='void deeper() {\n\tthrow("The capsule did not start: no room");\n}\n\nvoid main() {\n\tdeeper();\n}\n')
    run = apps.run("fail")
    assert (run["status"], run["endReason"], run["failureDetails"], run["failureCode"]) == (
        "Error", "failed", "The capsule did not start: no room", "Thrown")
    assert run["failurePlace"] == "fail.mtc:2:2" and run["returnValue"] is None
    assert [(s["function"], s["place"]) for s in run["failureStack"]] == [("deeper", "fail.mtc:2:2"), ("main", "fail.mtc:6:2")]


def test_an_error_that_nothing_caught_has_its_code(apps):
    apps.deploy(fail="int main(int x) {\n\treturn(1 / x);\n}\n")
    run = apps.run("fail", {"x": "0"})
    assert (run["status"], run["failureCode"]) == ("Error", "DivisionByZero") and run["failureDetails"]


# ---- what is printed ----

def test_083_lines_are_there_as_they_are_printed(apps):
    apps.deploy(talk={"talk.mtc": 'void main() {\n\tPrintLine("$ ls");\n\tgate();\n\tPrintLine("two");\n}\n', "gate.mtc": GATE})
    run = apps.start("talk")
    first = apps.lines(run)
    assert [line["text"] for line in first["items"]] == ["$ ls\n"] and not first["ended"]
    assert apps.call("GET", f"/v1/app-runs/{run['id']}")["status"] == "Running"
    apps.open_gate()
    began = time.monotonic()
    second = apps.lines(run, first["next"])
    assert time.monotonic() - began < 25  # not when the time to wait was over
    assert [line["text"] for line in second["items"]] == ["two\n"] and second["fullCount"] == 2
    assert second["items"][0]["date"] >= first["items"][0]["date"]
    last = apps.lines(run, second["next"])
    assert last == {"items": [], "ended": True, "next": second["next"], "fullCount": 2}
    assert [line["text"] for line in apps.end(run)["consoleOutputs"]] == ["$ ls\n", "two\n"]


def test_lines_in_pieces_and_beyond_what_is_kept(apps):
    apps.deploy(flood='void main() {\n\tfor (int i = 1; i <= 10020; i++) { PrintLine("line " + i); }\n}\n')
    run = apps.run("flood")
    assert run["consoleOutputsFullCount"] == 10020
    kept = [line["text"] for line in run["consoleOutputs"]]
    assert kept == [f"line {i}\n" for i in range(21, 10021)]
    seen, answer = [], {"next": 0, "ended": False}
    while not answer["ended"]:
        answer = apps.lines(run, answer["next"], more="&limit=999")
        assert len(answer["items"]) <= 999 and answer["fullCount"] == 10020
        seen += [line["text"] for line in answer["items"]]
    assert seen == kept


def test_the_log_is_apart_from_the_console(apps):
    apps.deploy(logs='void main() {\n\tLogInfo("begun");\n\tPrintLine("said");\n\tLogWarning("slow");\n\tLogError("bad");\n}\n')
    run = apps.run("logs")
    assert [line["text"] for line in run["consoleOutputs"]] == ["said\n"] and run["consoleOutputsFullCount"] == 1
    log = apps.lines(run, what="log")
    assert [(line["level"], line["text"]) for line in log["items"]] == [("info", "begun"), ("warning", "slow"), ("error", "bad")]
    assert log["ended"] and "fullCount" not in log
    assert apps.lines(run, log["items"][0]["number"], "log")["items"] == log["items"][1:]


# ---- cancel, run again ----

def test_cancel_ends_what_waits_and_repeats_change_nothing(apps):
    apps.deploy(sleeper=SLEEPER)
    run = apps.start("sleeper")
    assert apps.lines(run)["items"]
    ended = apps.cancel(run)
    assert (ended["status"], ended["endReason"]) == ("Error", "cancelled")
    me = apps.call("GET", "/v1/whoami")["name"]
    assert ended["cancelledBy"] == me and me in ended["failureDetails"]
    assert apps.cancel(run)["dateEnded"] == ended["dateEnded"]
    # And where it was.
    assert ended["failurePlace"].startswith("sleeper.mtc:"), ended
    assert ended["failureStack"] == [{"function": "main", "place": ended["failurePlace"]}]


def test_cancel_ends_one_that_only_computes(apps):
    apps.deploy(busy='void main() {\n\tPrintLine("on");\n\tfor (;;) { }\n}\n')
    run = apps.start("busy")
    assert apps.lines(run)["items"]
    ended = apps.cancel(run)
    assert (ended["endReason"], ended["failurePlace"]) == ("cancelled", "busy.mtc:3:2"), ended


def test_run_again_has_the_version_and_inputs_that_it_had(apps):
    apps.deploy(greet='string main(string name) {\n\treturn("Hello, " + name);\n}\n')
    first = apps.run("greet", {"NAME": "Ada"})
    apps.deploy(greet='string main(string who) {\n\treturn("Hi, " + who);\n}\n')
    second = apps.end(apps.call("POST", f"/v1/app-runs/{first['id']}/rerun", {}, 201))
    assert (second["rerunOf"], second["version"], second["returnValue"]) == (first["id"], 1, "Hello, Ada")
    assert second["inputs"] == first["inputs"] and first["rerunOf"] is None
    key = {"Idempotency-Key": f"again-{first['id']}"}
    path = f"/v1/app-runs/{first['id']}/rerun"
    one = apps.call("POST", path, None, 201, key)
    assert apps.call("POST", path, None, 200, key)["id"] == one["id"]
    assert apps.run("greet", {"who": "Bea"})["returnValue"] == "Hi, Bea"
    assert apps.run("greet", {"name": "Bea"}, version=1)["returnValue"] == "Hello, Bea"


def test_a_start_with_one_key_starts_once(apps):
    apps.deploy(greet="string main(string name) {\n\treturn(name);\n}\n")
    key = {"Idempotency-Key": f"start-{apps.ns}"}
    run = apps.start("greet", {"name": "a"}, key)
    again = apps.call("POST", f"{apps.runs_of('greet')}?wait=30", {"inputs": {"name": "a"}}, 200, key)
    assert again["id"] == run["id"] and again["returnValue"] == "a"
    status, problem = apps.api.server.request("POST", apps.runs_of("greet"), {"inputs": {"name": "b"}}, key)
    assert (status, problem["code"]) == (422, "idempotencyKeyReused")
    assert len(apps.list()) == 1


def test_waiting_for_the_end_in_one_request(apps):
    apps.deploy(greet="string main() {\n\treturn(\"x\");\n}\n")
    ended = apps.call("POST", f"{apps.runs_of('greet')}?wait=30", {}, 201)
    assert ended["status"] == "Finished" and ended["returnValue"] == "x"
    again = apps.call("POST", f"/v1/app-runs/{ended['id']}/rerun?wait=30", None, 201)
    assert again["status"] == "Finished" and again["runSeconds"] >= 0


# ---- who sees them ----

def test_members_see_and_cancel_and_others_are_told_that_it_is_not_there(apps, person):
    apps.deploy(sleeper=SLEEPER)
    member, stranger = person(), person(member=False)
    run = apps.start("sleeper")
    assert member.call("GET", f"/v1/app-runs/{run['id']}")["startedBy"] == run["startedBy"]
    nobody = "019ad2c6-1b3c-7e5d-9f70-2b3c4d5e6f70"
    for method, path in (("GET", ""), ("GET", "/console"), ("GET", "/log"), ("POST", "/cancel"), ("POST", "/rerun")):
        status, problem = stranger.refused(method, f"/v1/app-runs/{run['id']}{path}")
        assert (status, problem["detail"]) == (404, f"no app run '{run['id']}'"), (path, problem)
        status, problem = apps.refused(method, f"/v1/app-runs/{nobody}{path}")
        assert (status, problem["detail"]) == (404, f"no app run '{nobody}'"), (path, problem)
        assert apps.refused(method, f"/v1/app-runs/not-an-id{path}")[0] == 400
    assert stranger.call("GET", "/v1/app-runs")["items"] == []
    assert stranger.refused("GET", f"/v1/app-runs?namespace={apps.ns}")[0] == 404
    status, problem = stranger.refused("POST", apps.runs_of("sleeper"), {})
    assert (status, problem["detail"]) == (404, f"no namespace '{apps.ns}'")
    assert member.cancel(run)["cancelledBy"] == member.name
    theirs = member.start("sleeper")
    assert theirs["startedBy"] == member.name and member.list("&mine=true")[0]["id"] == theirs["id"]
    apps.api.call("DELETE", f"/v1/namespaces/{apps.ns}/members/{member.name}")
    assert member.refused("GET", f"/v1/app-runs/{theirs['id']}")[0] == 404  # his own, no longer


# ---- lists ----

def test_lists_and_filters(apps):
    apps.deploy(one="void main() { }\n", two='void main() {\n\tthrow("x");\n}\n', sleeper=SLEEPER)
    runs = [apps.end(apps.start(name)) for name in ("one", "two", "one")] + [apps.start("sleeper")]
    ids = [run["id"] for run in reversed(runs)]
    assert [run["id"] for run in apps.list()] == ids
    assert [run["id"] for run in apps.list("&app=one")] == [ids[1], ids[3]]
    assert [run["id"] for run in apps.list("&status=Error")] == [ids[2]]
    assert [run["id"] for run in apps.list("&status=Running")] == [ids[0]]
    assert [run["id"] for run in apps.list(f"&idEnding={ids[1][-8:]}")] == [ids[1]]
    assert [run["id"] for run in apps.list("&mine=true&app=two")] == [ids[2]]
    page = apps.call("GET", f"/v1/app-runs?namespace={apps.ns}&limit=3")
    assert [run["id"] for run in page["items"]] == ids[:3]
    rest = apps.call("GET", f"/v1/app-runs?namespace={apps.ns}&limit=3&after={page['next']}")
    assert [run["id"] for run in rest["items"]] == ids[3:] and rest["next"] is None


def test_apps_that_apps_start_say_so(apps):
    apps.deploy(inner='string main(string x) {\n\treturn("inner " + x);\n}\n',
                outer='string main() {\n\tguid run = AppStart("inner", StringToJsonObject("{\\"x\\":\\"1\\"}"), "");\n'
                      '\treturn(JsonObjectGet(AppAwait(run), "returnValue") + " of " + GuidToString(AppRunId()));\n}\n')
    outer = apps.run("outer")
    assert outer["returnValue"] == f"inner 1 of {outer['id']}"
    [inner] = apps.list(f"&parent={outer['id']}")
    assert inner["parentAppRunId"] == outer["id"] and inner["parentRunId"] is None
    assert inner["startedBy"] == f"{outer['startedBy']} (app run {outer['id']})"


def test_capsules_that_apps_start_say_so(apps):
    apps.api.capsule(apps.ns, [{"command": "true"}], autoTerminate=True)
    apps.deploy(outer='guid main() {\n\tguid run = CapsuleStart("c", "", "[]", "[]", "[]");\n\tCapsuleWaitUntilEnded(run);\n'
                      "\treturn(run);\n}\n")
    outer = apps.run("outer")
    capsule = apps.call("GET", f"/v1/capsule-runs/{outer['returnValue']}")
    assert capsule["status"] == "Finished" and capsule["parentAppRunId"] == outer["id"]
    assert capsule["startedBy"] == f"{outer['startedBy']} (app run {outer['id']})"


def test_an_app_that_is_run_inside_a_capsule_says_so(apps):
    apps.deploy(greet='string main(string name) {\n\treturn("Hello, " + name);\n}\n')
    apps.api.capsule(apps.ns, [])
    capsule = apps.api.start(apps.ns, "c")
    command = apps.call("POST", f"/v1/capsule-runs/{capsule['id']}/commands?wait=60",
                        {"command": "mt app-run greet --input-name Ada"}, 201)
    assert (command["outputStandard"], command["exitCode"]) == ("\nHello, Ada\n", 0), command
    [run] = apps.list()
    assert (run["parentRunId"], run["parentAppRunId"]) == (capsule["id"], None)
    assert run["startedBy"] == f"{capsule['startedBy']} (run {capsule['id']})"
    apps.api.terminate(capsule)


# ---- what is at a limit, and who asks ----

def test_a_file_that_does_not_fit_as_json_is_told_at_once(apps):
    """12 MiB of a control character are 72 in JSON: an error for the program, not a call that is made for ever."""
    apps.call("POST", f"/v1/namespaces/{apps.ns}/vfs", {"name": "large"}, 201)
    apps.api.write(apps.ns, "large", "/bytes", b"\x01" * (12 << 20))
    apps.deploy(reads='string main() {\n\ttry {\n\t\treturn(VfsReadText("large", "/bytes"));\n\t} catch (error e) {\n'
                      '\t\treturn(ErrorCode(e));\n\t}\n}\n')
    assert apps.run("reads")["returnValue"] == "TooLarge"


def test_the_header_of_programs_means_nothing_from_outside(apps, person):
    """Who sends it at another door is who he is, and sees what he may."""
    apps.deploy(sleeper=SLEEPER)
    run = apps.start("sleeper")
    stranger = person(member=False)
    own = {"X-Maitento-App-Run": run["id"]}
    assert stranger.call("GET", "/v1/whoami", headers=own)["name"] == stranger.name
    with pytest.raises(AssertionError):
        stranger.call("GET", f"/v1/app-runs/{run['id']}", headers=own)
    apps.cancel(run)


def test_keys_of_programs_are_theirs_alone(apps):
    apps.deploy(greet="void main() { }\n")
    run = apps.run("greet")
    with pytest.raises(AssertionError, match="app-run"):
        apps.start("greet", headers={"Idempotency-Key": f"app-run {run['id']} 1"})
