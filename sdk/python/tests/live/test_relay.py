# SPDX-License-Identifier: Apache-2.0
"""O-18: the way to the server is cut, falls silent, or the server is killed, while one waits. The right exit code
or a clear error; never success by default, never a second run of the command."""
import os
import signal
import threading
import time

import pytest
from maitento import MaitentoError, _wire
from maitento._async import commands as tasks_commands
from maitento._async import core as tasks_core
from maitento._async import events as tasks_events
from maitento._async import http as tasks_http
from maitento._async import waiting as tasks_waiting
from maitento._sync import commands as threads_commands
from maitento._sync import core as threads_core
from maitento._sync import events as threads_events
from maitento._sync import http as threads_http
from maitento._sync import waiting as threads_waiting

LINE = "echo ran >> /tmp/{n}; echo a; sleep 1.5; echo b; exit 3"


class Waiting:
    """A wait in a thread."""

    def __init__(self, call):
        self.found = self.error = None
        self._call = call
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            self.found = self._call()
        except MaitentoError as error:
            self.error = error

    def result(self, seconds=60):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "it waits for ever"
        if self.error:
            raise self.error
        return self.found


def begun(world, run):
    deadline = time.monotonic() + 20
    while not any(c.status == "Running" for c in world.mt.capsule_runs.list_commands(run)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture()
def hasty(monkeypatch):
    """Silence is noticed soon."""
    for module in (tasks_events, threads_events):
        monkeypatch.setattr(module, "SILENCE", 3.0)
    for module in (tasks_commands, threads_commands, tasks_core, threads_core):
        monkeypatch.setattr(module, "SLACK", 2.0)
    for module in (tasks_commands, threads_commands):
        monkeypatch.setattr(module, "ANSWER", 3.0)
    for module in (tasks_commands, threads_commands, tasks_waiting, threads_waiting):
        monkeypatch.setattr(module, "WAIT", 3)
    for stream in (tasks_http.Http.stream, threads_http.Http.stream):
        monkeypatch.setitem(stream.__kwdefaults__, "timeout", 3.0)


@pytest.fixture(params=["alone", "with events", "with output"])
def waiter(request, world, relay, clients):
    """A client behind the relay, and how it waits."""
    mt = clients(relay.url, world.live.key, world.namespace)
    if request.param == "with events":
        mt.events.open().start()

    def wait(run, line):
        heard = []
        options = {"on_output": lambda c: heard.append(c.text)} if request.param == "with output" else {}
        done = mt.capsule_runs.exec_and_wait(run, line, **options)
        assert not options or "".join(heard) == done.output_standard
        return done

    return wait


def check(world, run, done, n):
    assert (done.exit_code, done.status, done.output_standard) == (3, "Error", "a\nb\n")
    assert world.mt.capsule_runs.get_command(run, done).exit_code == 3
    assert world.mt.capsule_runs.exec_and_wait(run, f"cat /tmp/{n}").output_standard == "ran\n", "it ran once"


@pytest.mark.parametrize("away", [0, 2.5])
def test_o18_the_way_is_cut(world, run, relay, waiter, away):
    n = os.urandom(4).hex()
    waiting = Waiting(lambda: waiter(run, LINE.replace("{n}", n)))
    begun(world, run)
    relay.cut(away)
    check(world, run, waiting.result(), n)


def test_o18_the_way_falls_silent(hasty, world, run, relay, waiter):
    n = os.urandom(4).hex()
    waiting = Waiting(lambda: waiter(run, LINE.replace("{n}", n)))
    begun(world, run)
    relay.mute()
    check(world, run, waiting.result(), n)


def test_o18_the_cut_comes_as_it_is_sent(world, run, relay, clients):
    mt, n = clients(relay.url, world.live.key, world.namespace), os.urandom(4).hex()
    mt.whoami()
    relay.cut(2)
    check(world, run, mt.capsule_runs.exec_and_wait(run, LINE.replace("{n}", n)), n)


def test_o18_a_way_that_stays_cut_is_an_error(world, run, relay, clients, monkeypatch):
    monkeypatch.setattr(_wire, "PATIENCE", 2.0)
    mt = clients(relay.url, world.live.key, world.namespace)
    mt.events.open().start()
    waiting = Waiting(lambda: mt.capsule_runs.exec_and_wait(run, "sleep 2; exit 3"))
    begun(world, run)
    relay.cut(3600)
    with pytest.raises(MaitentoError) as error:
        waiting.result()
    assert error.value.code == "outcomeUnknown" and "no server for 2 s" in str(error.value)


@pytest.mark.parametrize("with_events", [False, True])
def test_o18_o26_the_server_is_killed_and_comes_back(clients, own, tmp_path, with_events):
    url = f"unix:{own.socket}"
    mt = clients(url, own.key, "o18")
    mt.namespaces.create("o18")
    (tmp_path / "p" / "capsules").mkdir(parents=True)
    (tmp_path / "p" / "capsules" / "stays.mtr").write_text('maxDuration = "00:05:00"\nnetwork = "none"\n')
    mt.deploy(tmp_path / "p")
    run = mt.capsules.start("stays")
    mt.capsule_runs.wait_until_ready(run)
    events = mt.events.open()
    if with_events:
        events.start()
    waiting = [Waiting(lambda: mt.capsule_runs.exec_and_wait(run, LINE.replace("{n}", "killed")))]
    waiting += [Waiting(lambda: mt.capsule_runs.exec_and_wait(run, "echo queued; exit 4"))]
    deadline = time.monotonic() + 20
    while len(mt.capsule_runs.list_commands(run)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    own.server.send_signal(signal.SIGKILL)
    own.server.wait()
    own.start_server()
    done = [w.result() for w in waiting]
    assert sorted((d.exit_code, d.output_standard) for d in done) == [(3, "a\nb\n"), (4, "queued\n")]
    assert mt.capsule_runs.exec_and_wait(run, "cat /tmp/killed").output_standard == "ran\n"
    events.close()


def test_o18_runs_and_events_through_a_cut(world, relay, clients):
    mt = clients(relay.url, world.live.key, world.namespace)
    world.capsule(
        'autoTerminate = true\nstartup = [{ command = "sh" arguments = ["-c", "sleep 3; exit 5"] }]\n', "ends"
    )
    with mt.events.open(kind="capsuleRun") as events:
        waiting = Waiting(lambda: mt.capsules.run("ends"))
        first = events.next(20)
        relay.cut(1)
        run = waiting.result()
        assert run.status == "Error" and "exit code 5" in run.failure_details
        changes = [first.change]
        while changes[-1] != "ended":
            event = events.next(20)
            if event.id == run.id:
                changes.append(event.change)
    assert changes.count("ended") == 1 and len(mt.capsule_runs.list(world.namespace, "ends")) == 1
