# SPDX-License-Identifier: Apache-2.0
"""Event streams that break, fall silent or overflow, and waits that go by them."""
import threading
import time

import pytest
from maitento import CapsuleCommandAbortedError, MaitentoError
from maitento._async import events as tasks_events
from maitento._async import waiting as tasks_waiting
from maitento._sync import events as threads_events
from maitento._sync import waiting as threads_waiting
from scripted import problem


@pytest.fixture()
def quick(monkeypatch):
    """Silence is noticed after a second, what no event told after two."""
    for module in (tasks_events, threads_events):
        monkeypatch.setattr(module, "SILENCE", 1.0)
    for module in (tasks_waiting, threads_waiting):
        monkeypatch.setattr(module, "BELT", 2.0)


class Commands:
    """The routes of a run that does what it is told to."""

    def __init__(self, server):
        self.records, self.lock, self.server = {}, threading.Lock(), server
        server.on("POST", "/v1/capsule-runs/r1/commands", self.send)
        server.on("GET", "/v1/capsule-runs/r1/commands/.*", self.get)
        server.on("GET", "/v1/capsule-runs/r1", {"id": "r1", "status": "Finished", "failureDetails": "stopped by ada"})

    def send(self, x):
        with self.lock:
            key = x.headers["idempotency-key"]
            self.records.setdefault(
                key, {"id": f"c{len(self.records) + 1}", "runId": "r1", "status": "Queued", "exitCode": None}
            )
            record = dict(self.records[key])
        x.answer(record, 201)

    def get(self, x):
        with self.lock:
            record = dict(next(r for r in self.records.values() if r["id"] == x.path.rsplit("/", 1)[1]))
        x.answer(record)

    def end(self, id, **members):
        with self.lock:
            record = next(r for r in self.records.values() if r["id"] == id)
            record.update({"status": "Finished", "exitCode": 0, **members})


@pytest.fixture()
def commands(server):
    return Commands(server)


class Streams:
    """What each connection to the event stream does, in turn; the last goes on as it is."""

    def __init__(self, server):
        self.now, self.seen, self.came = [], [], threading.Condition()
        server.on("GET", "/v1/events", self.open)

    def open(self, x):
        if callable(what := self.now.pop(0) if self.now else None):
            what(x)
        else:
            x.stream(int(x.headers.get("last-event-id", 0)))
        with self.came:
            self.seen.append(x)
            self.came.notify_all()

    def at(self, count, seconds=20):
        """The connection of that number, when it is there."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.seen) >= count, seconds), f"no stream number {count}"
        return self.seen[count - 1]


@pytest.fixture()
def streams(server):
    return Streams(server)


def beside(call):
    """Calls it in a thread: wait() gives what came of it."""
    outcome = []

    def run():
        try:
            outcome.append((call(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait(seconds=30):
        thread.join(seconds)
        assert outcome, "it goes on and on"
        if outcome[0][1]:
            raise outcome[0][1]
        return outcome[0][0]

    return wait


# ---- what is told ----


def test_events_come_as_records_and_unknown_ones_are_left_out(mt, streams):
    def tell(x):
        x.stream(41)
        x.change(42, status="Error", exitCode=3)
        x.event("later-invention", {"a": 1}, 43)
        x.event("output", {"runId": "r1", "commandId": "c1", "stream": "error", "offset": 3, "bytes": 2, "text": "hé"})
        x.event("console", {"runId": "a1", "number": 7, "from": 0, "text": "line\n", "date": "d"})
        x.event("text", {"runId": "i1", "stream": 1, "from": 9, "text": "North"})
        x.beat()
        x.event("end", {"code": "runEnded", "after": 43, "sentence": "it has ended"})
        x.finish()

    streams.now = [tell]
    with mt.events.open(kind=["command", "appRun"], run="r1", output=True, last=5) as events:
        change, output, console, text = list(events)
        assert events.next(0.1) is None
    assert (change.event, change.kind, change.exit_code, change.number) == ("change", "command", 3, 42)
    assert (output.event, output.stream, output.offset, output.text) == ("output", "error", 3, "hé")
    assert (console.event, console.number, console.text) == ("console", 7, "line\n")
    assert (text.event, text.from_, text.text) == ("text", 9, "North")
    assert streams.seen[0].query == {"kind": "appRun,command", "run": "r1", "output": "true", "last": "5"}


def test_errors_of_the_opening_are_told_at_once(mt, server):
    server.on("GET", "/v1/events", problem(429, "rateLimited", "256 streams are open"))
    with pytest.raises(MaitentoError) as error:
        with mt.events.open():
            raise AssertionError("it is not open")
    assert error.value.code == "rateLimited"
    server.on("GET", "/v1/events", problem(410, "gone"))
    with pytest.raises(MaitentoError) as error:
        mt.events.open(after=1).next(5)
    assert error.value.code == "gone"


def test_a_stream_goes_on_where_it_was_cut(mt, streams):
    def cut(x):
        x.stream(41)
        x.change(42)
        x.change(44)
        x.cut()

    def slow(x):
        x.stream(44)
        x.change(45)
        x.event("end", {"code": "tooSlow", "after": 45, "sentence": "too slow"})
        x.finish()

    streams.now = [cut, slow]
    with mt.events.open(after=41) as events:
        assert [events.next(10).number for _ in range(3)] == [42, 44, 45]
        streams.at(3).change(50)
        assert events.next(10).number == 50 and events.number == 50
    assert [x.headers.get("last-event-id") for x in streams.seen] == [None, "44", "45"]
    assert [x.query for x in streams.seen] == [{"after": "41"}, {}, {}]


def test_silence_is_a_cut(mt, streams, quick):
    with mt.events.open() as events:
        streams.at(1).change(1)
        assert events.next(10).number == 1
        streams.at(2).change(2)
        assert events.next(10).number == 2
    assert streams.seen[1].headers["last-event-id"] == "1"


def test_what_is_gone_is_told_once_and_then_it_goes_on(mt, streams):
    streams.now = [
        lambda x: (x.stream(5), x.change(6), x.cut()),
        problem(410, "gone", "events before 900 are not kept"),
    ]
    with mt.events.open(after=5) as events:
        assert events.next(10).number == 6
        with pytest.raises(MaitentoError) as error:
            events.next(10)
        assert error.value.code == "gone"
        streams.at(3).change(901)
        assert events.next(10).number == 901
    assert "last-event-id" not in streams.seen[2].headers and "after" not in streams.seen[2].query


def test_lost_rights_end_it(mt, streams):
    def lost(x):
        x.stream(1)
        x.event("end", {"code": "accessLost", "after": 1, "sentence": "the key was revoked"})
        x.finish()

    streams.now = [lost]
    with mt.events.open() as events:
        with pytest.raises(MaitentoError) as error:
            events.next(10)
        assert (error.value.code, str(error.value)) == ("accessLost", "the key was revoked")
        assert events.next(1) is None


def test_events_that_find_no_room_come_once_more(mt, streams, monkeypatch):
    for module in (tasks_events, threads_events):
        monkeypatch.setattr(module, "ROOM", 10)

    def replay(x):
        after = int(x.headers.get("last-event-id", 0))
        x.stream(after)
        for number in range(after + 1, 31):
            x.change(number, id=f"c{number}")

    streams.now = [replay] * 9
    with mt.events.open() as events:
        assert [events.next(10).number for _ in range(30)] == list(range(1, 31))


def test_a_body_that_was_to_end_ends(mt, streams):
    streams.now = [lambda x: (x.stream(0), x.change(1), x.change(2), x.finish())]
    with mt.events.open(last=10, follow=False) as events:
        assert [e.number for e in events] == [1, 2]
    assert len(streams.seen) == 1


# ---- waits ----


def test_the_end_is_pushed(mt, streams, commands):
    with mt.events.open():
        stream = streams.at(1)
        done = beside(lambda: mt.capsule_runs.exec_and_wait("r1", "x"))
        commands.server.wait_for(".*/commands", 1, "POST")
        commands.end("c1", status="Error", exitCode=3)
        stream.change(1, id="c1")
        assert done().exit_code == 3
    assert len(commands.server.asked(".*/commands/c1")) == 1, "one GET, when the end was told"
    assert "wait" not in commands.server.asked(".*/commands")[0].query


def test_an_end_that_came_before_the_answer_is_not_missed(mt, streams, commands):
    def send(x):
        record = {"id": "c1", "runId": "r1", "status": "Queued", "exitCode": None}
        commands.records["k"] = dict(record)
        commands.end("c1", exitCode=7)
        streams.at(1).change(1, id="c1")
        streams.at(1).change(2, id="other")
        assert events.next(10).number == 1  # it has come
        x.answer(record, 201)

    commands.server.on("POST", "/v1/capsule-runs/r1/commands", send)
    with mt.events.open() as events:
        began = time.monotonic()
        assert mt.capsule_runs.exec_and_wait("r1", "x").exit_code == 7
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("how", ["cut", "gone", "silence", "closed"])
def test_an_end_that_was_missed_is_found(mt, streams, commands, quick, how):
    events = mt.events.open()
    events.start()
    done = beside(lambda: mt.capsule_runs.exec_and_wait("r1", "x"))
    commands.server.wait_for(".*/commands", 1, "POST")
    commands.end("c1", exitCode=3)
    if how == "closed":
        events.close()
    elif how != "silence":
        streams.now = [problem(410, "gone")] if how == "gone" else []
        streams.at(1).cut()
    assert done(10).exit_code == 3
    assert len(commands.server.asked(".*/commands", "POST")) == 1
    events.close()


def test_an_event_alone_is_no_end(mt, streams, commands, quick):
    with mt.events.open():
        stream = streams.at(1)
        done = beside(lambda: mt.capsule_runs.exec_and_wait("r1", "x"))
        commands.server.wait_for(".*/commands", 1, "POST")
        stream.change(1, id="c1")  # it lies
        commands.server.wait_for(".*/commands/c1")
        commands.end("c1", exitCode=4)
        assert done().exit_code == 4


@pytest.mark.parametrize("options", [{"run": "r2"}, {"namespace": "other"}, {"kind": "vfs"}, {"follow": False}])
def test_a_stream_that_tells_of_other_things_is_not_gone_by(mt, streams, commands, options):
    streams.now = [lambda x: (x.stream(0), x.finish()) if options == {"follow": False} else x.stream(0)]
    with mt.events.open(**options):
        done = beside(lambda: mt.capsule_runs.exec_and_wait("r1", "x"))
        assert "wait" in commands.server.wait_for(".*/commands", 1, "POST")[0].query
        commands.end("c1")
        assert done().exit_code == 0


def test_aborted_commands_are_errors_with_their_reason(mt, streams, commands):
    with mt.events.open():
        done = beside(lambda: mt.capsule_runs.exec_and_wait("r1", "x"))
        commands.server.wait_for(".*/commands", 1, "POST")
        commands.end("c1", status="Aborted", exitCode=None, failureDetails="the run was stopped by ada")
        streams.at(1).change(1, id="c1")
        with pytest.raises(CapsuleCommandAbortedError) as error:
            done()
    assert (error.value.reason, error.value.command.id) == ("the run was stopped by ada", "c1")
    assert error.value.run.failure_details == "stopped by ada" and isinstance(error.value, MaitentoError)


def test_runs_that_had_ended_take_no_command(mt, commands):
    commands.server.on("POST", ".*/commands", problem(409, "runEnded", "the run has ended: stopped by ada"))
    with pytest.raises(CapsuleCommandAbortedError) as error:
        mt.capsule_runs.exec_and_wait("r1", "x")
    assert error.value.command is None and error.value.run.id == "r1" and "stopped by ada" in error.value.reason


def test_many_waits_on_one_stream(mt, streams, commands):
    with mt.events.open():
        waits = [beside(lambda: mt.capsule_runs.exec_and_wait("r1", "x")) for _ in range(100)]
        commands.server.wait_for(".*/commands", 100, "POST")
        for n in range(100, 0, -1):
            commands.end(f"c{n}", exitCode=n)
            streams.at(1).change(101 - n, id=f"c{n}")
        assert sorted(wait().exit_code for wait in waits) == list(range(1, 101))
    assert len(streams.seen) == 1 and commands.server.most <= 66


def test_closing_the_client_closes_its_streams(clients, server, streams):
    mt = clients(server.url)
    events = mt.events.open()
    events.start()
    reader = beside(lambda: events.next())
    mt.close()
    assert reader(10) is None
