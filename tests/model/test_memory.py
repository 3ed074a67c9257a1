# SPDX-License-Identifier: Apache-2.0
"""Each allocation of ours for a request fails once: it is answered in full, or ends saying why, and the next one is answered."""
import json

import pytest
from provider import fail, say

SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False})
ANSWER = '{"a": "Nörth"}'


@pytest.mark.parametrize("wire, mode, reply", [
    ("chat", "schema", say('{"a": ', '"Nörth"}', reasoning=("hm",))), ("messages", "tool", say('{"a": "N', 'örth"}')),
    ("chat", "schema", say(ANSWER, whole=True)), ("chat", "none", fail(400, "too long"))])
def test_whatever_allocation_fails(asker, provider, wire, mode, reply):
    provider.add(reply, when="which", times=None)
    outcomes, n, left = [], 0, 0
    while not left:
        n += 1
        tag = asker.start(provider.url, "which?", wire=wire, mode=mode, schema=SCHEMA, failing=n)
        end = asker.wait_event(tag, ("answer", "refused"))
        asker.send(do="failing", tag=f"left {n}")
        left = asker.wait_event(f"left {n}", ("failing",))["left"]
        outcomes.append(outcome_of(end, mode))
        assert outcomes[-1], (n, end)
    # The last one had no failure, and those before it in turn: making the request, sending it, reading the answer.
    assert outcomes[-1] == "whole" and {"refused", "no memory"} <= set(outcomes) and 20 < n < 500, outcomes
    assert asker.ask(provider.url, "another")["text"] == "ok"


def outcome_of(end, mode):
    if end["event"] == "refused":
        return "refused" if "out of memory" in end["sentence"] else None
    if end["end"] in ("failed", "badRequest") and "out of memory" in end["sentence"]:
        return "no memory"
    if mode == "none":
        return "whole" if end["end"] == "badRequest" and "provider 'custom' did not take the request" in end["sentence"] else None
    return "whole" if end["end"] == "answered" and json.loads(end["text"]) == json.loads(ANSWER) else None
