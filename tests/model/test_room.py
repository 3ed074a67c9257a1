# SPDX-License-Identifier: Apache-2.0
"""What all requests together may take of memory: model-testd has 16 MiB for answers and 8 MiB for bodies."""
from provider import HANG, say, stream

MIB = 1 << 20


def test_long_answers_at_once_all_come_and_take_no_more_than_their_room(asker, provider):
    before = asker.figure("VmRSS")
    provider.add(say(*["x" * (MIB // 4)] * 12, 0.3, "."), times=None)  # 3 MiB and an end that lets all of them meet
    tags = [asker.start(provider.url, f"number {i}", concurrency=64, seconds=60) for i in range(24)]
    answers = [asker.answer(tag, 60) for tag in tags]
    assert [(a["end"], len(a["text"])) for a in answers] == [("answered", 3 * MIB + 1)] * 24
    # All were sent at once: that is 72 MiB. What had no room was given up and asked again, more often than what fails is.
    assert len(provider.seen) > 24 and sum(a["tries"] for a in answers) == len(provider.seen)
    grown = asker.figure("VmRSS") - before
    print(f"# {len(provider.seen)} requests, {grown} KiB more")
    assert grown < 50 * 1024, f"{grown} KiB more"


def test_nothing_is_sent_before_there_is_room(asker, provider):
    asker.send(do="keep", bytes=8 * MIB)
    late = asker.ask(provider.url, "late", seconds=1)
    assert (late["end"], late["tries"]) == ("outOfTime", 0) and not provider.seen
    assert late["sentence"] == ("the time was over before there was room: answers under way take 8 MiB of the server's memory, "
                                "as much as they may")
    waits = asker.start(provider.url, "waits", seconds=30)
    asker.send(do="keep", bytes=-1)
    assert asker.answer(waits)["text"] == "ok" and [s.texts[-1][1] for s in provider.seen] == ["waits"]


def test_an_answer_that_grows_past_all_room_is_asked_for_again(asker, provider):
    provider.add(*[say(*["x", 0.05] * 400)] * 6)
    grows = asker.start(provider.url, "grows", seconds=60)
    for given_up in range(6):  # more often than what fails is tried
        provider.wait_for(given_up + 1)
        asker.wait_until(grows, lambda events: events and events[-1] == "text" and events.count("again") == given_up)
        asker.send(do="keep", bytes=16 * MIB)  # what others keep comes after it was sent
        asker.wait_until(grows, lambda events: events.count("again") == given_up + 1)
        asker.send(do="keep", bytes=-16 * MIB)
    answer = asker.answer(grows)
    assert (answer["end"], answer["text"], answer["tries"]) == ("answered", "ok", 7)


def test_requests_that_wait_have_a_bound(asker, provider):
    provider.add(stream(HANG), when="first")
    first = asker.start(provider.url, "first", concurrency=1)
    provider.wait_for(1)
    tags = [asker.start(provider.url, "x" * (3 * MIB), concurrency=1) for _ in range(3)]
    refused = asker.wait_event(tags[2], ("refused",))
    assert refused["sentence"] == "8 MiB of requests to models wait for their turn, as much as this server takes"
    asker.cancel(tags[0])
    assert asker.answer(tags[0])["end"] == "cancelled"
    again = asker.start(provider.url, "x" * (3 * MIB), concurrency=1)
    asker.cancel(first)
    assert asker.answer(tags[1])["text"] == "ok" and asker.answer(again)["text"] == "ok"
