# SPDX-License-Identifier: Apache-2.0
"""A model is asked for a word, to see whether it can be: mt provider-test."""
import json

import pytest

from conftest import KEY
from provider import HANG, fail, say, stream

NAME = "deepseek.some-model"


def test_one_that_answers(mt, model):
    model.add(say("ready"), say("rea", finish="length"), say("ready"))
    done = mt("provider-test", NAME, check=0)
    assert done.stdout == "" and done.stderr.startswith(f"{NAME} answered in "), done
    (asked,) = model.seen
    assert asked.json["model"] == "some-model" and [role for role, _ in asked.texts] == ["user"] and asked.json["max_tokens"] == 64
    mt("provider-test", NAME, check=0)
    told = json.loads(mt("provider-test", NAME, "--json", check=0).stdout)
    assert (told["outcome"], told["answer"], told["httpStatus"], told["requests"], told["tokensIn"], told["tokensOut"]) == (
        "answered", "ready", 200, 1, 7, 5) and told["milliseconds"] < 15000


@pytest.mark.parametrize("reply, outcome, words", [
    (fail(401, f"Incorrect API key provided: {KEY}"), "badKey", "mt provider-set deepseek"),
    (fail(404, "The model does not exist", "model_not_found"), "noModel", "some-model"),
    (fail(400, "bad request"), "badRequest", "bad request")])
def test_one_that_does_not_says_why(mt, model, reply, outcome, words):
    model.add(reply, reply)
    done = mt("provider-test", NAME, check=1)
    assert done.stdout == "" and words in done.stderr and KEY not in done.stderr, done
    assert json.loads(mt("provider-test", NAME, "--json", check=1).stdout)["outcome"] == outcome


def test_what_cannot_be_asked_at_all(api, mt, model):
    assert "provider.model" in mt("provider-test", "deepseek", check=2).stderr
    assert "did you mean 'deepseek'?" in mt("provider-test", "depseek.x", check=3).stderr
    api.call("DELETE", "/v1/providers/custom", expect=204)
    assert "--base-url" in mt("provider-test", "custom.x", check=5).stderr
    assert model.seen == []


def test_others_may_not(asked, person, model):
    assert person().refused("POST", "/v1/providers/deepseek/test", {"model": "m"})["code"] == "forbidden" and model.seen == []


def test_a_server_that_stops_does_not_wait_for_it(own):
    from conftest import told
    provider = told(own)
    provider.add(stream(HANG))
    import mtserver
    waiting = mtserver.UnixConnection(own.server.socket, 60)
    waiting.request("POST", "/v1/providers/deepseek/test", json.dumps({"model": "m"}), {"Content-Type": "application/json"})
    provider.wait_for(1)
    own.server.server.terminate()
    assert own.server.server.wait(14) == 0
    own.server.start_server()
    provider.__exit__()
