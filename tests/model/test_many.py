# SPDX-License-Identifier: Apache-2.0
"""Turns, cancels, and hundreds at once on one thread."""
import os
import time

import pytest
from asker import Asker
from provider import HANG, fail, say, stream


def test_turns_in_order(asker, provider):
    provider.add(say("a", 0.2, "b"), times=None)
    tags = [asker.start(provider.url, f"number {i}", concurrency=2) for i in range(7)]
    other = asker.start(provider.url, "other", provider="ollama")
    provider.wait_for(3)
    for tag in [*tags, other]:
        assert asker.answer(tag)["text"] == "ab"
    assert provider.open_most == 3  # two, and one of another provider
    order = [s.texts[-1][1] for s in provider.seen]
    assert "other" in order[:3]
    order.remove("other")
    for i, text in enumerate(order):  # two that are sent together may come in either order
        assert abs(int(text.split()[1]) - i) <= 1, order


def test_what_waits_to_be_tried_again_keeps_its_place(asker, provider):
    provider.add(fail(429, retry_after=1), when="first")
    first = asker.start(provider.url, "first", concurrency=1)
    provider.wait_for(1)
    second = asker.start(provider.url, "second", concurrency=1)
    assert asker.answer(first)["tries"] == 2 and asker.answer(second)["tries"] == 1
    assert [s.texts[-1][1] for s in provider.seen] == ["first", "first", "second"]


def test_the_deadline_counts_in_the_queue(asker, provider):
    provider.add(stream(HANG), when="first")
    first = asker.start(provider.url, "first", concurrency=1)
    provider.wait_for(1)
    a = asker.ask(provider.url, "second", concurrency=1, seconds=1)
    assert (a["end"], a["tries"]) == ("outOfTime", 0)
    assert "before the request had its turn: provider 'custom' gets 1 at once" in a["sentence"]
    asker.cancel(first)
    assert asker.answer(first)["end"] == "cancelled"
    assert asker.ask(provider.url, "third", concurrency=1)["end"] == "answered"


def test_a_deadline_that_is_over(asker, provider):
    a = asker.ask(provider.url, seconds=-5)
    assert (a["end"], a["tries"]) == ("outOfTime", 0) and not provider.seen


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_cancel_during_an_answer(asker, provider, wire):
    provider.add(say("a", HANG))
    tag = asker.start(provider.url, wire=wire)
    asker.wait_event(tag, ("text",))
    asker.cancel(tag)
    a = asker.answer(tag)
    assert (a["end"], a["text"], a["sentence"]) == ("cancelled", "a", "cancelled")
    provider.wait_until(lambda: provider.seen[0].left_at)  # the connection is closed: no more tokens are paid for
    asker.cancel(tag)  # again: nothing
    assert asker.ask(provider.url)["end"] == "answered"


def test_cancel_in_each_state(asker, provider):
    provider.add(stream(HANG), when="sent").add(fail(503, retry_after=15), when="rests")
    tags = [asker.start(provider.url, text, concurrency=2) for text in ("sent", "rests", "queued")]
    provider.wait_for(2)
    for tag in reversed(tags):
        asker.cancel(tag)
        assert asker.answer(tag)["end"] == "cancelled"
    assert len(provider.seen) == 2


def test_the_end_of_all(provider):
    provider.add(say("a", HANG), when="sent").add(fail(503, retry_after=15), when="rests")
    with Asker() as asker:
        tags = [asker.start(provider.url, text, concurrency=2) for text in ("sent", "rests", "queued")]
        asker.wait_event(tags[0], ("text",))
        provider.wait_for(2)
        asker.send(do="free")
        for tag in tags:
            assert asker.answer(tag)["end"] == "cancelled"


def test_connections_are_used_again(asker, provider):
    ports = set()
    for _ in range(5):
        asker.ask(provider.url)
    with open(f"/proc/{asker.process.pid}/net/tcp", encoding="ascii") as f:
        ports = {line.split()[1] for line in f if line.split()[2] == f"0100007F:{provider.port:04X}"
                 and line.split()[3] == "01"}
    assert len(ports) == 1, ports


def test_500_at_once(capsys):
    """A slow provider: a piece each half second to each of 500. The figures are printed."""
    from provider import Provider
    pieces = ["word " * 20, 0.5] * 5
    with Provider() as provider, Asker() as asker:
        provider.add(say(*pieces), times=None)
        asker.ask(provider.url)  # all that is made once
        before, began = asker.figure("VmRSS"), time.monotonic()
        tags = [asker.start(provider.url, f"n {i}", concurrency=512, seconds=60) for i in range(500)]
        provider.wait_until(lambda: provider.open_now == 500, 30)
        threads, first = asker.figure("Threads"), asker.figure("VmRSS")
        for tag in tags:
            assert asker.answer(tag, 60)["text"] == "word " * 100
        last, spent = asker.figure("VmRSS"), time.monotonic() - began
        again = [asker.start(provider.url, f"m {i}", concurrency=512, seconds=60) for i in range(500)]
        for tag in again:
            asker.answer(tag, 60)
        twice = asker.figure("VmRSS")
        cpu = sum(int(t) for t in open(f"/proc/{asker.process.pid}/stat", encoding="ascii").read().split()[13:15])
    with capsys.disabled():
        print(f"\n500 at once: {threads} threads, resident {before} KiB before, {first} under way, {last} after, "
              f"{twice} after 500 more; {spent:.1f} s; {cpu} ticks of CPU for 1,001 answers")
    assert provider.open_most == 500
    assert threads == 2  # the program's own, and that of models
    if "ASAN_OPTIONS" not in os.environ:  # which keeps what was freed
        assert first - before < 500 * 64 and twice - last < 8192, [before, first, last, twice]
