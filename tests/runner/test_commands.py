# SPDX-License-Identifier: Apache-2.0
"""Commands through mt-runner's own supervisors: what survives whom, and what floods cost."""
import os
import signal
import time
from pathlib import Path

import pytest

import mtcommands
import mtwire


def rss(pid):
    """By its pages: VmRSS of its status lacks what each processor has not added up yet."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.split("\nRss:")[1].split()[0]) * 1024


def stopped(runner, *runs):
    for run_id in runs:
        runner.terminate(run_id).close()
    for run_id in runs:
        runner.wait(run_id, "closed")


def test_files_are_the_services(runner):
    run_id = runner.run(auto_terminate=False)
    link = runner.attach(run_id)
    made = mtcommands.send(link, "echo out; echo err >&2; exit 3")
    end = mtcommands.wait(runner, run_id, made)
    assert (end["status"], end["reason"], end["exit"], end["out"], end["err"]) == ("Error", "exited", 3, 4, 4)
    folder = runner.folder(run_id) / "out"
    for path, mode in ((folder, 0o2750), (folder / f"{made}.1", 0o640), (folder / f"{made}.2", 0o640)):
        found = path.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (0, mtwire.SERVICE, mode)
    link.close()
    stopped(runner, run_id)
    assert mtcommands.output(runner, run_id, made) == b"out\n"  # kept
    runner.sweep(run_id, forget="outputs")
    deadline = time.monotonic() + 30
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert runner.wait(run_id, "closed")  # the journal stays
    runner.sweep(run_id, forget=True)
    deadline = time.monotonic() + 60
    while runner.folder(run_id).exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_survive_runner_and_server(own):
    """Killed with 200 commands on their way; sent again by the server that comes back."""
    runs = [own.run(auto_terminate=False, max_duration_ms=600000) for _ in range(10)]
    sent = {}
    for run_id in runs:
        link = own.attach(run_id)
        for i in range(20):
            members = {"run_async": i % 4 == 0}
            command_id = mtcommands.send(link, f"sleep 0.2; echo {i}; echo {i} >> /tmp/l; exit {i}", **members)
            sent.setdefault(run_id, []).append((command_id, i, members))
        link.close()  # without a word, as a server that is killed
    own.stop(signal.SIGKILL)
    own.start()
    for run_id in runs:
        link = own.attach(run_id)
        for command_id, i, members in sent[run_id]:
            mtcommands.send(link, f"sleep 0.2; echo {i}; echo {i} >> /tmp/l; exit {i}", command_id=command_id, **members)
        link.close()
    for run_id in runs:
        for command_id, i, _ in sent[run_id]:
            assert mtcommands.wait(own, run_id, command_id, 60)["exit"] == i
            assert mtcommands.output(own, run_id, command_id) == b"%d\n" % i
        seen = mtcommands.events(own, run_id)
        assert len(seen) == 40  # nothing twice
        order = [at for kind, at, _ in seen if kind == "started"]
        assert order == [command_id for command_id, _, _ in sent[run_id]]
        link = own.attach(run_id)
        listed = mtcommands.send(link, "wc -l < /tmp/l")
        mtcommands.wait(own, run_id, listed)
        assert mtcommands.output(own, run_id, listed) == b"20\n"
        link.close()
    stopped(own, *runs)
    assert not own.groups()


def test_lost_supervisor(own):
    """Its commands have no end; the run has."""
    run_id = own.run(auto_terminate=False)
    link = own.attach(run_id)
    made = mtcommands.send(link, "echo before; sleep 60")
    deadline = time.monotonic() + 60
    while mtcommands.output(own, run_id, made) != b"before\n" or not mtcommands.events(own, run_id):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(own.supervisor(run_id), signal.SIGKILL)
    assert own.wait(run_id)["reason"] == "supervisorLost"
    own.wait(run_id, "closed")
    assert [kind for kind, _, _ in mtcommands.events(own, run_id)] == ["started"]
    assert not own.groups()


def test_endless_output(own):
    """Field case O-07: floods cost little memory, keep 64 MiB each, and hold up nobody."""
    seconds = int(os.environ.get("MT_FLOOD_SECONDS", "4"))
    runs = [own.run(auto_terminate=False, disk=64 * mtwire.MIB) for _ in range(10)]
    other = own.run(auto_terminate=False)
    links = {run_id: own.attach(run_id) for run_id in [*runs, other]}
    for run_id in runs:  # each has run a command before it is measured
        mtcommands.wait(own, run_id, mtcommands.send(links[run_id], "echo"))
    before = {run_id: rss(own.supervisor(run_id)) for run_id in runs}
    floods = {run_id: mtcommands.send(links[run_id], "yes", max_duration_ms=seconds * 1000) for run_id in runs}
    until = time.monotonic() + seconds - 0.5
    slowest = peak = 0
    while time.monotonic() < until:
        began = time.monotonic()
        mtcommands.wait(own, other, mtcommands.send(links[other], "echo ok"))
        slowest = max(slowest, time.monotonic() - began)
        peak = max(peak, *(rss(own.supervisor(r)) - before[r] for r in runs))
        time.sleep(0.3)
    for run_id in runs:
        end = mtcommands.wait(own, run_id, floods[run_id], seconds + 20)
        assert (end["reason"], end["limit_ms"]) == ("timeout", seconds * 1000)
        found = (own.folder(run_id) / f"out/{floods[run_id]}.1").stat()
        assert found.st_size >= end["out"] == end["out_chars"] > 64 * mtwire.MIB
        assert found.st_blocks * 512 < 74 * mtwire.MIB
    print(f"slowest echo {slowest:.3f} s, most memory {peak / mtwire.MIB:.1f} MiB")
    assert peak < 8 * mtwire.MIB
    assert slowest < 1.5
    for link in links.values():
        link.close()
    stopped(own, *runs, other)


@pytest.fixture()
def frugal(monkeypatch):
    """A runner that keeps nothing of what was freed, where it is built with AddressSanitizer."""
    options = [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1:thread_local_quarantine_size_kb=16"]
    monkeypatch.setenv("ASAN_OPTIONS", ":".join(filter(None, options)))
    with mtwire.Runner() as r:
        yield r


def test_memory_does_not_grow(frugal):
    """Thousands of commands leave nothing in their supervisor."""
    own = frugal
    run_id = own.run(auto_terminate=False, max_duration_ms=600000)
    link = own.attach(run_id)
    last = None

    def some(n):
        nonlocal last
        for _ in range(n):
            last = mtcommands.send(link, "echo x")
        mtcommands.wait(own, run_id, last, 120)
        return rss(own.supervisor(run_id))

    before = [some(200) for _ in range(3)][-1]
    after = [some(200) for _ in range(3)][-1]
    assert after - before < 256 * 1024
    link.close()
    stopped(own, run_id)
