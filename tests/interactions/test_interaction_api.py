# SPDX-License-Identifier: Apache-2.0
"""Runs of interactions by the API: inputs, answers, attempts, ends, cancel, keys of starts, who sees what, lists."""
import pytest

from asked import SCHEMA
from conftest import KEY
from provider import HANG, fail, say, stream


def test_a_question_and_its_answer(asked, model):
    asked.deploy()
    model.add(say("Nörth, ", "546.80"))
    run = asked.start({"QUESTION": "Which %%hint%% {{region}}?", "Hint": "by revenue"})
    assert (run["status"], run["endReason"], run["output"], run["attemptCount"] <= 1) == ("Running", None, None, True)
    run = asked.end(run)
    assert (run["status"], run["endReason"], run["failureDetails"]) == ("Finished", "answered", "")
    assert run["output"] == "Nörth, 546.80" and run["model"] == "deepseek.deepseek-v4-flash"
    assert run["inputs"] == {"question": "Which %%hint%% {{region}}?", "hint": "by revenue"}
    assert (run["attemptCount"], run["tokensIn"], run["tokensOut"], run["cost"]) == (1, 7, 5, None)
    assert model.seen[0].texts == [("system", "You answer questions."),
                                   ("user", "Answer: Which %%hint%% {{region}}? (by revenue)\n")]
    (attempt,) = asked.attempts(run)
    assert [(m["role"], m["content"]) for m in attempt["messages"]] == model.seen[0].texts
    assert (attempt["number"], attempt["outcome"], attempt["faults"], attempt["answer"]) == (1, "answered", [], "Nörth, 546.80")
    assert attempt["httpStatus"] == 200 and attempt["requests"] == 1 and attempt["dateStarted"] < attempt["dateEnded"]


@pytest.mark.parametrize("inputs, field, words", [
    ({}, "inputs.question", "question"), ({"hint": "x"}, "inputs.question", "question"),
    ({"question": "x", "hnit": "y"}, "inputs.hnit", "hint"), ({"question": "x", "Question": "y"}, "inputs.Question", "twice")])
def test_073_inputs_that_do_not_fit_say_what_does(asked, model, inputs, field, words):
    asked.deploy()
    problem = asked.refused("POST", asked.runs_of(), {"inputs": inputs})
    assert (problem["code"], problem["field"]) == ("badField", field) and words in problem["detail"], problem
    assert asked.list() == [] and model.seen == []


def test_starts_that_do_not_fit_are_refused(asked):
    asked.deploy()
    for body, code in (({"inputs": [1]}, "badField"), ({"input": {}}, "badField"), ({"version": 0}, "badField"),
                       ({"version": 7, "inputs": {"question": "x"}}, "notFound"), ([], "badRequest")):
        assert asked.refused("POST", asked.runs_of(), body)["code"] == code, body
    problem = asked.refused("POST", asked.runs_of("nexr"), {})
    assert problem["code"] == "notFound" and f"no interaction 'nexr' in namespace '{asked.ns}'" in problem["detail"]
    assert "'x'" in asked.refused("GET", "/v1/interaction-runs/x")["detail"]
    assert asked.list() == []


def test_082_an_answer_that_does_not_fit_is_asked_for_again(asked, model):
    asked.deploy(schema=SCHEMA)
    model.add(say('{"answer": 7}'), say("no JSON at all"), say('Here:\n```json\n{"answer": "North"}\n```'))
    run = asked.run()
    assert (run["status"], run["output"], run["attemptCount"], run["tokensIn"]) == ("Finished", '{"answer": "North"}', 3, 21)
    attempts = asked.attempts(run)
    assert [a["outcome"] for a in attempts] == ["wrongAnswer", "wrongAnswer", "answered"]
    assert "answer" in attempts[0]["faults"][0] and attempts[2]["faults"] == []
    assert [a["answer"] for a in attempts[:2]] == ['{"answer": 7}', "no JSON at all"]
    for attempt, seen in zip(attempts, model.seen):
        assert [(m["role"], m["content"]) for m in attempt["messages"]] == seen.texts
    assert attempts[0]["faults"][0] in model.seen[1].texts[-1][1]


def test_wrong_answers_have_an_end(asked, model):
    asked.deploy(schema=SCHEMA, more="attempts = 2\n")
    model.add(say("{}"), say("[]"))
    run = asked.run()
    assert (run["status"], run["endReason"], run["output"], run["attemptCount"]) == ("Error", "wrongAnswer", None, 2)
    assert run["failureDetails"] and len(model.seen) == 2


def test_attempts_come_in_pages(asked, model):
    asked.deploy(schema=SCHEMA, more="attempts = 4\n")
    model.add(say("no"), say("nor this"), say("{}"), say('{"answer": "North"}'))
    run = asked.run()
    at = f"/v1/interaction-runs/{run['id']}/attempts"
    whole = asked.call("GET", at, expect=200)
    assert [a["number"] for a in whole["items"]] == [1, 2, 3, 4] and whole["next"] is None
    first = asked.call("GET", f"{at}?limit=3", expect=200)
    rest = asked.call("GET", f"{at}?limit=3&after={first['next']}", expect=200)
    # What was asked in the last one holds what was answered in those of the page before.
    assert first["items"] + rest["items"] == whole["items"] and rest["next"] is None
    assert asked.call("GET", f"{at}?after=4", expect=200) == {"items": [], "next": None}
    assert asked.refused("GET", f"{at}?after=x")["code"] == "badField"


def test_attempts_with_the_longest_answers_can_be_read(asked, model, mt):
    # As JSON more than an answer of the API may have: each of these bytes is written as six.
    asked.deploy(schema=SCHEMA, more='attempts = 4\nduration.max = "00:02:00"\n')
    answers = [chr(i) * 600000 for i in (1, 2, 3, 4)]
    model.add(*(say(*[answer] * 6) for answer in answers))
    run = asked.end(asked.start(), 120)
    assert (run["endReason"], run["attemptCount"]) == ("wrongAnswer", 4), run["failureDetails"][:300]
    assert [a["answer"] == answer * 6 for a, answer in zip(asked.attempts(run), answers)] == [True] * 4
    shown = mt("interaction-run-get", run["id"], "--show-attempts", namespace=asked.ns, check=0).stdout
    assert [f"\nattempt {i}: wrongAnswer" in shown for i in (1, 2, 3, 4)] == [True] * 4 and shown.count("?") > 4 * 3600000


@pytest.mark.parametrize("reply, reason, words", [
    (fail(401, f"bad key {KEY}"), "badKey", "deepseek"), (fail(400, "too long"), "badRequest", "too long"),
    (say("", refusal="I will not."), "refused", "I will not."), (say("cut", finish="length"), "cut", "cut short")])
def test_why_there_is_no_answer(asked, model, reply, reason, words):
    asked.deploy(more="attempts = 1\n")
    model.add(reply)
    run = asked.run()
    assert (run["status"], run["endReason"], run["output"]) == ("Error", reason, None)
    assert words in run["failureDetails"] and KEY not in f"{run} {asked.attempts(run)}"


def test_a_start_with_one_key_asks_once(asked, model):
    asked.deploy()
    key = {"Idempotency-Key": f"once-{asked.ns}"}
    run = asked.end(asked.start(headers=key))
    again = asked.start(headers=key, expect=200)
    assert again["id"] == run["id"] and again["output"] == "ok" and len(model.seen) == 1 and len(asked.list()) == 1
    problem = asked.refused("POST", asked.runs_of(), {"inputs": {"question": "another"}}, key)
    assert problem["code"] == "idempotencyKeyReused"


def test_waiting_for_the_end_in_one_request(asked, model):
    asked.deploy()
    model.add(say("slow", 0.3, "ly"))
    run = asked.call("POST", asked.runs_of() + "?wait=30", {"inputs": {"question": "x"}}, 201)
    assert (run["status"], run["output"]) == ("Finished", "slowly")
    model.add(stream(HANG))
    run = asked.call("POST", asked.runs_of() + "?wait=1", {"inputs": {"question": "x"}}, 201)
    assert run["status"] == "Running" and asked.get(run, 1)["status"] == "Running"


def test_cancel_ends_what_is_asked_and_repeats_change_nothing(asked, model):
    asked.deploy()
    model.add(stream(HANG))
    run = asked.start()
    model.wait_for(1)
    assert asked.attempts(run)[0]["outcome"] is None
    ended = asked.cancel(run)
    assert (ended["status"], ended["endReason"], ended["cancelledBy"], ended["output"]) == ("Error", "cancelled", "admin", None)
    assert ended["failureDetails"] == "cancelled by admin" and asked.cancel(run) == ended
    model.wait_until(lambda: model.seen[0].left_at)
    done = asked.run()
    assert asked.cancel(done) == done and len(model.seen) == 2


def test_members_see_and_cancel_and_others_are_told_that_it_is_not_there(asked, model, person):
    asked.deploy()
    model.add(stream(HANG))
    run, member, stranger = asked.start(), person(), person(member=False)
    at = f"/v1/interaction-runs/{run['id']}"
    gone = at.replace(run["id"], run["id"][:-6] + "ffffff")
    for method, end in (("GET", ""), ("GET", "/attempts"), ("POST", "/cancel")):
        hidden, missing = stranger.refused(method, at + end), stranger.refused(method, gone + end)
        assert hidden["code"] == missing["code"] == "notFound"
        assert hidden["detail"].replace(run["id"], "X") == missing["detail"].replace(run["id"][:-6] + "ffffff", "X")
    assert stranger.refused("POST", asked.runs_of(), {})["code"] == "notFound"
    assert stranger.call("GET", "/v1/interaction-runs")["items"] == []
    assert [r["id"] for r in member.list()] == [run["id"]] and member.list("&mine=true") == []
    assert len(member.attempts(run)) == 1
    assert member.cancel(run)["cancelledBy"] == member.name
    own = member.run()
    assert own["startedBy"] == member.name and [r["id"] for r in member.list("&mine=true")] == [own["id"]]


def test_lists_and_filters(asked, model):
    asked.deploy()
    asked.deploy("other")
    runs = [asked.run(name=name) for name in ("next", "other", "next")]
    model.add(fail(401))
    runs.append(asked.run())
    ids = [r["id"] for r in reversed(runs)]
    assert [r["id"] for r in asked.list()] == ids and not {"output", "inputs"} & set(asked.list()[0])
    assert [r["id"] for r in asked.list("&interaction=other")] == [ids[2]]
    assert [r["id"] for r in asked.list("&status=Error")] == [ids[0]] and asked.list("&status=Running") == []
    assert [r["id"] for r in asked.list(f"&idEnding={ids[1][-8:]}")] == [ids[1]]
    page = asked.call("GET", f"/v1/interaction-runs?namespace={asked.ns}&limit=3")
    rest = asked.call("GET", f"/v1/interaction-runs?namespace={asked.ns}&limit=3&after={page['next']}")
    assert [r["id"] for r in page["items"] + rest["items"]] == ids and rest["next"] is None
    assert asked.refused("GET", "/v1/interaction-runs?namespace=none")["code"] == "notFound"


def test_what_is_asked_is_what_was_deployed_at_the_start(asked, model):
    asked.deploy()
    first = asked.run()
    asked.deploy(task="Say: %%question%%\n", more="attempts = 1\n")
    second, old = asked.run(), asked.run(version=1)
    assert [r["version"] for r in (first, second, old)] == [1, 2, 1]
    assert [s.texts[1][1].split(":")[0] for s in model.seen[:2]] == ["Answer", "Say"]


# ---- what a model says, as it comes ----

def text_until(asked, run, holds, stream=0, start=0):
    """(stream, next, all that came since) once holds(text) is true or the run has ended."""
    text = ""
    for _ in range(100):
        part = asked.call("GET", f"/v1/interaction-runs/{run['id']}/text?stream={stream}&from={start}&wait=20", expect=200)
        if part["stream"] != stream:
            text = ""
        assert part["next"] == part["from"] + len(part["text"].encode())
        stream, start, text = part["stream"], part["next"], text + part["text"]
        if part["ended"] or holds(text):
            return stream, start, text
    raise AssertionError(f"it did not come: {text!r}")


def test_text_comes_while_it_is_said(asked, model):
    asked.deploy()
    model.add(say("The N", "orth, é", HANG))
    run = asked.start()
    stream, place, text = text_until(asked, run, lambda t: t == "The North, é")
    assert text == "The North, é" and place == len(text.encode())
    middle = asked.call("GET", f"/v1/interaction-runs/{run['id']}/text?stream={stream}&from={place - 1}", expect=200)
    assert (middle["from"], middle["text"], middle["attempt"]) == (place, "", 1)  # whole characters alone
    assert asked.call("GET", f"/v1/interaction-runs/{run['id']}/text?stream={stream}&from=4", expect=200)["text"] == "North, é"
    asked.cancel(run)
    assert asked.call("GET", f"/v1/interaction-runs/{run['id']}/text?stream={stream}&from={place}&wait=20", expect=200)["ended"]


def test_another_attempt_is_another_text(asked, model):
    asked.deploy(schema=SCHEMA)
    model.add(say("no JSON"), say('{"answer"', HANG))
    run = asked.start()
    model.wait_for(2)
    stream, _, text = text_until(asked, run, lambda t: t.startswith("{"))
    assert text == '{"answer"'
    assert asked.call("GET", f"/v1/interaction-runs/{run['id']}/text?stream={stream}", expect=200)["attempt"] == 2


def test_text_is_for_who_may_see_the_run(asked, model, person):
    asked.deploy()
    model.add(say("The N", HANG))
    run = asked.start()
    model.wait_for(1)
    assert person(member=False).refused("GET", f"/v1/interaction-runs/{run['id']}/text")["status"] == 404
