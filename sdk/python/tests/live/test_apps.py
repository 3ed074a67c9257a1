# SPDX-License-Identifier: Apache-2.0
"""Apps, interactions and providers, with a scripted model."""
import threading
import time

import pytest
from maitento import MaitentoError
from provider import HANG, Provider, fail, say

APP = """string main(string name, int count) {
    for (int i = 1; i <= count; i++) {
        PrintLine("hello " + name);
    }
    LogWarning("counted");
    AppStateSetOutputString("greeted", name);
    return("done");
}
"""
ASK = {
    "agents/asker.mtr": 'model = @ref("deepseek.m")\nprompt = "You answer."\nsummary = "answers"\n',
    "prompts/ask.md": "Question: %%question%%\n",
    "interactions/one-shot/ask.mtr": 'agent = { name = "Asker" agent = @ref("asker") }\ntask = @prompt("ask")\n'
    'inputs.prompts = [ { name = "question" required = true } ]\n',
}


@pytest.fixture()
def model(world):
    with Provider() as provider:
        world.mt.providers.set("deepseek", base_url=provider.url, key="sk-1234567890")
        yield provider
        world.mt.providers.delete("deepseek")


@pytest.mark.parametrize("with_events", [False, True])
def test_073_083_084_an_app_runs(world, with_events):
    world.deploy({"apps/greet/greet.mtc": APP, "apps/greet/greet.mtr": 'duration.max = "00:01:00"\n'})
    events, heard = world.mt.events.open(), []
    if with_events:
        events.start()
    run = world.mt.apps.run(
        "greet", inputs={"NAME": "Ada", "count": 2}, on_console=lambda line: heard.append(line.text)
    )
    events.close()
    assert (run.status, run.end_reason, run.return_value) == ("Finished", "returned", "done")
    assert [line.text for line in run.console_outputs] == ["hello Ada\n"] * 2 == heard
    assert run.inputs == {"name": "Ada", "count": 2} and run.outputs == {"greeted": "Ada"}
    runs = world.mt.app_runs
    assert runs.get(run).console_outputs == [] and runs.list(world.namespace)[0].id == run.id
    assert [(line.level, line.text) for line in runs.log(run)] == [("warning", "counted")]
    assert [line.number for line in runs.console(run, after=1)] == [2]
    assert runs.wait(runs.rerun(run)).rerun_of == run.id
    app = world.mt.apps.get("greet")
    assert [(i.name, i.type) for i in app.inputs] == [("name", "string"), ("count", "int")] and app.returns == "string"


def test_075_a_failing_app_is_a_result(world):
    world.deploy({"apps/bad/bad.mtc": 'void main() { throw("no luck"); }\n', "apps/bad/bad.mtr": ""})
    run = world.mt.apps.run("bad")
    assert (run.status, run.failure_details, run.failure_place) == ("Error", "no luck", "bad.mtc:1:15")
    with pytest.raises(MaitentoError) as error:
        world.mt.apps.run("bad", inputs={"other": "x"})
    assert error.value.code == "badField" and error.value.field == "inputs.other"


def test_an_app_is_cancelled(world):
    world.deploy({"apps/slow/slow.mtc": "void main() { Sleep(60000); }\n", "apps/slow/slow.mtr": ""})
    run = world.mt.apps.start("slow")
    assert world.mt.app_runs.wait(run, timeout=1).status == "Running"
    world.mt.app_runs.cancel(run)
    assert world.mt.app_runs.wait(run).end_reason == "cancelled"


def test_an_interaction_answers_and_fails(world, model):
    world.deploy(ASK)
    model.add(say("The ", 0.5, "North"))
    heard = []
    run = world.mt.interactions.run("ask", inputs={"question": "Which?"}, on_text=lambda t: heard.append(t.text))
    assert (run.status, run.end_reason, run.output) == ("Finished", "answered", "The North")
    assert "".join(heard).startswith("The")
    runs = world.mt.interaction_runs
    attempt = runs.attempts(run)[0]
    assert attempt.outcome == "answered" and attempt.messages[-1].content == "Question: Which?\n"
    assert runs.get(run) == run and runs.list(world.namespace)[0].id == run.id
    model.add(fail(401, "no such key"))
    failed = world.mt.interactions.run("ask", inputs={"question": "Which?"})
    assert (failed.status, failed.end_reason) == ("Error", "badKey") and failed.failure_details


def test_what_a_model_says_comes_while_it_speaks(world, model):
    world.deploy(ASK)
    model.add(say("The ", HANG))
    run = world.mt.interactions.start("ask", inputs={"question": "Which?"})
    texts = world.mt.interaction_runs.texts(run)
    assert next(texts).text.startswith("The")
    threading.Timer(0.2, world.mt.interaction_runs.cancel, (run,)).start()
    assert "".join(t.text for t in texts).strip() == ""
    assert world.mt.interaction_runs.wait(run).end_reason == "cancelled"


def test_providers(world, model):
    providers = world.mt.providers
    assert providers.set("deepseek", concurrency=3, price_per_million_tokens_in="0.28").concurrency == 3
    found = providers.get("deepseek")
    assert (found.has_key, found.base_url, found.price_per_million_tokens_in) == (True, model.url, "0.28")
    assert providers.set("deepseek", price_per_million_tokens_in=None).price_per_million_tokens_in is None
    assert providers.get("deepseek").concurrency == 3 and "sk-" not in str(providers.get("deepseek").raw)
    model.add(say("ready"))
    assert providers.test("deepseek", "m").outcome == "answered"
    assert "deepseek" in [p.name for p in providers.list()]


def test_resources(world):
    world.deploy({**ASK, "json/answer.json": '{"type": "object"}'})
    mt = world.mt
    for group, name in (
        (mt.agents, "asker"),
        (mt.prompts, "ask"),
        (mt.interactions, "ask"),
        (mt.json_schemas, "answer"),
    ):
        assert [(r.name, r.version) for r in group.list()] == [(name, 1)]
        assert group.get(name).definition and group.get(name, version=1).versions[0].version == 1
        with pytest.raises(MaitentoError) as error:
            group.get("nothing")
        assert f"namespace '{world.namespace}' is from the client's own" in str(error.value)
    world.deploy({"json/answer.json": '{"type": "string"}'})
    assert mt.json_schemas.get("answer").version == 2
    assert time.strptime(mt.agents.get("asker").date_created[:19], "%Y-%m-%dT%H:%M:%S")
