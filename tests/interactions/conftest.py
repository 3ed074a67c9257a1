# SPDX-License-Identifier: Apache-2.0
"""Interactions of a test's own, and a provider that says what the test tells it to.

Of tests/model/provider.py the tests here use no more than this:

    with Provider() as p       p.url is where it is asked
    p.add(REPLY, …)            answers of the next requests, in their order; without one it says "ok".
                               when=WORDS: of those that hold them
    p.seen[i].texts            (role, text) of the messages of a request; p.seen[i].headers
    p.wait_for(n)              until n requests came
    p.wait_until(function)     until that is true; p.seen[i].left_at is set when the client left
    say(TEXT), fail(STATUS, SENTENCE), stream(HANG)    what it may reply; the last never ends
"""
import itertools
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "model"))
from asked import Interactions  # noqa: E402
from provider import Provider  # noqa: E402

KEY = "sk-interactions-1234567890"
_names = itertools.count(1)


def told(api):
    """A provider that the server asks for models of deepseek."""
    provider = Provider()
    provider.__enter__()
    api.call("PUT", "/v1/providers/deepseek", {"baseUrl": provider.url, "key": KEY}, 200)
    return provider


@pytest.fixture()
def model(api):
    provider = told(api)
    yield provider
    provider.__exit__()


@pytest.fixture()
def asked(api, ns, model):
    own = Interactions(api, ns)
    yield own
    for run in own.list("&status=Running"):
        own.cancel(run)


@pytest.fixture()
def person(api, asked):
    """Makes a user, of the namespace or not, who sees its interactions."""
    def make(member=True):
        name = f"asked-{os.getpid()}-{next(_names)}"
        key = api.call("POST", "/v1/users", {"name": name}, 201)["key"]
        if member:
            api.call("PUT", f"/v1/namespaces/{asked.ns}/members/{name}")
        one = Interactions(api, asked.ns, {"Authorization": f"Bearer {key}"})
        one.name = name
        return one
    return make
