# SPDX-License-Identifier: Apache-2.0
"""Programs of apps that ask models: start, wait, look, cancel, what becomes of it when the app ends."""
import json

import pytest

from appruns import Apps
from asked import SCHEMA, Interactions
from conftest import told
from provider import HANG, fail, say, stream

ASK = """jsonObject main(string question, string space) {
	jsonObject inputs = JsonObjectSetString(JsonObjectCreate(), "QUESTION", question);
	return(InteractionAwait(InteractionStart("next", inputs, "[]", " [ ] ", space)));
}
"""
START = """guid start(string question) {
	return(InteractionStart("next", JsonObjectSetString(JsonObjectCreate(), "question", question), "[]", "[]", ""));
}
"""


@pytest.fixture()
def programs(api, asked):
    own = Apps(api, asked.ns)
    yield own
    for run in own.list("&status=Running"):
        own.cancel(run)


def test_076_an_answer_is_the_record_of_its_run(programs, asked, model):
    asked.deploy(schema=SCHEMA)
    programs.deploy(ask=ASK)
    model.add(say('{"answer": "North"}'))
    run = programs.run("ask", {"question": "Which region?", "space": ""})
    assert run["status"] == "Finished", run
    record = run["returnValue"]
    assert (record["status"], record["endReason"], record["failureDetails"]) == ("Finished", "answered", "")
    assert json.loads(record["output"]) == {"answer": "North"} and record["inputs"] == {"question": "Which region?"}
    assert (record["parentAppRunId"], record["startedBy"]) == (run["id"], f"admin (app run {run['id']})")
    assert record == asked.get(record) | {"runSeconds": record["runSeconds"]}
    assert [r["id"] for r in asked.list(f"&parent={run['id']}")] == [record["id"]]


def test_one_of_another_namespace_and_one_that_fails(programs, asked, api, model):
    programs.deploy(ask=ASK)
    elsewhere = Interactions(api, api.namespace("elsewhere"))
    elsewhere.deploy()
    model.add(fail(401))
    run = programs.run("ask", {"question": "x", "space": elsewhere.ns})
    record = run["returnValue"]
    assert (record["namespace"], record["status"], record["endReason"], record["output"]) == (elsewhere.ns, "Error", "badKey", None)
    assert "deepseek" in record["failureDetails"]
    missing = programs.run("ask", {"question": "x", "space": ""})
    assert missing["failureCode"] == "notFound" and "no interaction 'next'" in missing["failureDetails"]


def test_inputs_that_do_not_fit_can_be_caught(programs, asked, model):
    asked.deploy()
    programs.deploy(bad="""string main() {
	try { InteractionStart("next", JsonObjectCreate(), "[]", "[]", ""); }
	catch (error e) { return(ErrorCode(e) + ": " + ErrorMessage(e)); }
	return("");
}
""")
    said = programs.run("bad")["returnValue"]
    assert said.startswith("badField: ") and "question" in said and model.seen == []


def test_looking_cancelling_and_the_first_of_several(programs, asked, model):
    asked.deploy()
    programs.deploy(several={"start.mtc": START, "several.mtc": """jsonArray main() {
	guid slow = start("a slow one");
	string before = JsonObjectGet(InteractionGet(slow), "status");
	guid quick = start("a quick one");
	guid first = AwaitAny(JsonArrayAddString(JsonArrayAddString(JsonArrayCreate(), GuidToString(slow)), GuidToString(quick)));
	InteractionCancel(slow);
	string after = JsonObjectGet(InteractionAwait(slow), "endReason");
	jsonArray found = JsonArrayAddString(JsonArrayCreate(), before);
	found = JsonArrayAddString(found, JsonObjectGet(InteractionGet(first), "output"));
	return(JsonArrayAddString(found, after));
}
"""})
    model.add(stream(HANG), when="a slow one")
    run = programs.run("several")
    assert run["returnValue"] == ["Running", "ok", "cancelled"], run


def test_what_an_app_asked_ends_with_it(programs, asked, model):
    asked.deploy()
    programs.deploy(waits={"start.mtc": START, "waits.mtc": "void main() {\n\tInteractionAwait(start(\"x\"));\n}\n"},
                    leaves={"start.mtc": START, "leaves.mtc": "guid main() {\n\treturn(start(\"x\"));\n}\n"})
    model.add(stream(HANG), say("late", 0.2, "r"))
    run = programs.start("waits")
    model.wait_for(1)
    programs.cancel(run)
    (left,) = asked.list()
    left = asked.end(left)
    assert (left["status"], left["endReason"]) == ("Error", "parentEnded") and run["id"] in left["failureDetails"]
    # One that finishes leaves what it started as it is.
    finished = programs.run("leaves")
    assert asked.end({"id": finished["returnValue"]})["output"] == "later"


def test_an_answer_that_arrived_is_never_asked_for_again(own):
    provider = told(own)
    asked = Interactions(own, own.namespace("durable"))
    programs = Apps(own, asked.ns)
    own.call("POST", f"/v1/namespaces/{asked.ns}/vfs", {"name": "work"}, 201)
    asked.deploy()
    programs.deploy(two={"start.mtc": START, "two.mtc": """string main() {
	string first = JsonObjectGet(InteractionAwait(start("x")), "output");
	string second = JsonObjectGet(InteractionAwait(start("x")), "output");
	return(first + second);
}
"""})
    provider.add(say("one, "), stream(HANG), say("two"))
    run = programs.start("two")
    provider.wait_for(2)
    own.server.server.kill()
    own.server.server.wait()
    own.server.start_server()
    ended = programs.end(run)
    assert ended["returnValue"] == "one, two", ended
    assert len(provider.seen) == 3 and [r["attemptCount"] for r in asked.list()] == [1, 1]
    provider.__exit__()
