# SPDX-License-Identifier: Apache-2.0
"""Interactions by mt on a server: the answer alone, attempts, failures, start and await, cancel, lists, inside a capsule."""
import json

import pytest

from asked import SCHEMA
from provider import HANG, fail, say, stream


@pytest.fixture()
def own(mt, asked):
    """mt in the namespace of the interactions."""
    def run(*words, code=0, **more):
        return mt(*words, namespace=asked.ns, check=code, **more)
    return run


def test_the_answer_alone(own, asked, model):
    asked.deploy(schema=SCHEMA)
    model.add(say("What?"), say('{"answer":"North"}'))
    done = own("interaction-run", "next", "--input-QUESTION", "Which region, \"a,b=c\"?")
    assert (done.stdout, done.stderr) == ('{"answer":"North"}\n', "")
    assert model.seen[0].texts[1][1].startswith('Answer: Which region, "a,b=c"?')
    shown = own("interaction-run-get", "@last", "--show-attempts").stdout
    assert 'output      {"answer":"North"}\n' in shown and "attempts    2\n" in shown
    assert "attempt 1: wrongAnswer" in shown and "  answer     What?\n" in shown and "attempt 2: answered" in shown
    record = json.loads(own("interaction-await", "@last", "--json", "--show-attempts").stdout)
    assert record["output"] == '{"answer":"North"}' and len(record["attempts"]) == 2


def test_what_is_said_is_shown_while_it_is_said(own, asked, model):
    asked.deploy()
    model.add(say("The ", 0.3, "Nörth", 0.3, ", 546.80\n"))
    done = own("interaction-run", "next", "--input-question", "x", "--stream")
    assert (done.stdout, done.stderr) == ("The Nörth, 546.80\n\n", "")
    asked.deploy(schema=SCHEMA)
    model.add(say("{", 0.2, "}"), say('{"answer":', 0.2, '"North"}'))
    done = own("interaction-run", "next", "--input-question", "x", "--stream")
    assert done.stdout == '{"answer":"North"}\n'
    first, second = done.stderr.split("attempt 2\n")
    assert first.startswith("attempt 1\n{}\n  fault      ") and second == done.stdout


def test_a_failure_is_exit_1_with_its_sentence(own, asked, model):
    asked.deploy()
    model.add(fail(401, "who are you"))
    done = own("interaction-run", "next", "--input-question", "x", "--show-attempts", code=1)
    assert done.stdout == "" and done.stderr.startswith("attempt 1: badKey") and "'deepseek'" in done.stderr
    run = json.loads(own("interaction-run-get", "@last", "--json").stdout)
    assert done.stderr.endswith(run["failureDetails"] + "\n")
    assert own("interaction-await", "@last", code=1).stderr == run["failureDetails"] + "\n"


def test_073_unknown_and_missing_inputs_list_the_right_ones(own, asked, model):
    asked.deploy()
    for words in (["--input-questoin", "x"], []):
        done = own("interaction-run", "next", *words, code=2)
        assert done.stdout == "" and "question" in done.stderr, done.stderr
    assert f"no interaction 'nexr' in namespace '{asked.ns}'" in own("interaction-run", "nexr", code=3).stderr
    shown = own("interaction-get", "next").stdout
    assert "input      required  question\ninput      optional  hint\n" in shown
    assert own("interaction-list").stdout.split()[:2] == ["next", "1"] and model.seen == []


def test_start_await_and_cancel(own, asked, model):
    asked.deploy()
    model.add(stream(HANG), say("done"))
    run = own("interaction-start", "next", "--input-question", "x").stdout.strip()
    assert f"interaction run {run} is still Running" in own("interaction-await", run[-8:], "--timeout", "1s", code=124).stderr
    assert f"interaction run {run}: Error, cancelled" in own("interaction-cancel", "@last").stderr
    assert own("interaction-await", run, code=1).stderr == "cancelled by admin\n"
    assert own("interaction-run", "next", "--inputs", '{"question": "y"}').stdout == "done\n"
    words = [line.split()[:4] for line in own("interaction-runs", "--mine").stdout.splitlines()]
    assert [w[1:] for w in words] == [["next", "Finished", "answered"], ["next", "Error", "cancelled"]] and words[1][0] == run


def test_069_inside_a_capsule_mt_asks_as_who_started_the_run(api, asked, model):
    asked.deploy()
    model.add(say("from inside"))
    api.call("POST", f"/v1/namespaces/{asked.ns}/vfs", {"name": "work"}, 201)
    run = api.shell(asked.ns, 'mt interaction-run next --input-question "who?" >/mnt/work/said', vfs="work")
    assert run["status"] == "Finished", run
    assert api.read(asked.ns, "work", "/said") == b"from inside\n"
    (inside,) = asked.list()
    assert (inside["parentRunId"], inside["startedBy"]) == (run["id"], f"admin (run {run['id']})")


def test_what_was_started_inside_a_capsule_outlives_it(api, asked, model):
    asked.deploy(**{"apps/asks/asks.mtc": 'string main() {\n\tjsonObject inputs = JsonObjectSetString(JsonObjectCreate(), "question", "of an app");\n'
                                          '\treturn(JsonObjectGet(InteractionAwait(InteractionStart("next", inputs, "[]", "[]", "")), "output"));\n}\n',
                    "capsules/other.mtr": 'startup = [{ command = "sleep 1000", wait = false }]\n'})
    model.add(say("by", 4, " hand"), when="by hand")
    model.add(say("by", 4, " app"), when="of an app")
    api.capsule(asked.ns, [{"command": "mt interaction-start next --input-question 'by hand' && mt app-start asks && mt capsule-start other"},
                           {"command": "sleep 1000", "wait": False}])
    run = api.get(api.start(asked.ns, "c"), until="ready")
    model.wait_for(2)
    (other,) = [r for r in api.call("GET", f"/v1/capsule-runs?namespace={asked.ns}")["items"] if r["capsule"] == "other"]
    api.terminate(run)
    assert api.get(run)["endReason"] == "terminated"
    runs = asked.list()
    assert sorted(r["parentRunId"] or "" for r in runs) == ["", run["id"]] and {r["status"] for r in runs} == {"Running"}
    other = api.get(other, until="ready")
    assert (other["status"], other["parentRunId"]) == ("Running", run["id"])
    assert sorted(asked.end(r)["output"] for r in runs) == ["by app", "by hand"]
    (app,) = api.call("GET", f"/v1/app-runs?namespace={asked.ns}")["items"]
    ended = api.call("GET", f"/v1/app-runs/{app['id']}?wait=30")
    assert (ended["status"], ended["returnValue"], ended["parentRunId"]) == ("Finished", "by app", run["id"])
    api.terminate(other)
