# SPDX-License-Identifier: Apache-2.0
"""Machines made ahead: what a run sees is the same, and none is left behind, whoever dies when."""
import fcntl
import os
import random
import signal
import threading
import time
import uuid
from pathlib import Path

import pytest

import mtwire
from mtwire import START, Failed, Gone
from test_runner import alive, block_of, until


def is_spare(runner, run):
    return runner.place(run).startswith("spare-")


def supervisors(runner):
    """Of spares and of runs."""
    found = set()
    for p in runner.of_groups("helpers/cgroup.procs"):
        found |= {int(n) for n in p.read_text().split() if name_of(n) == "mt-supervisor"}
    return found


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def scratch_folders(runner):
    return {p.name for p in Path(f"/proc/{runner.process.pid}/root/scratch/runs").iterdir()}


def all_folders(runner):
    return {p.name for p in (runner.dir / "state/runs").iterdir() if p.is_dir()}


def spare_folders(runner):
    return {name for name in all_folders(runner) if name.startswith("spare-")}


def run_folders(runner):
    return all_folders(runner) - spare_folders(runner)


def inits(pids):
    """The first processes of the machines that these supervisors have made; each has one, a little after it is there."""
    found = {}

    def look():
        for pid in pids:
            kids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if kids:
                found[pid] = int(kids[0])
        return len(found) == len(pids)

    until(look, "each has its machine")
    return found


def with_spares(runner, count=4):
    """Starts a run, waits until spares are there; returns their names."""
    run = runner.run(["true"])
    runner.wait(run, "closed")
    until(lambda: len(runner.spare_groups() - {runner.place(run)}) == count, "spares are made")
    time.sleep(0.1)  # they stand, most likely; a start may come before that, too
    return runner.spare_groups()


def leave_nothing(runner):
    """Stops the runner in order; then nothing of the instance is on the host."""
    until(lambda: not runner.groups(), "runs that were not made ahead are removed")
    until(lambda: all(runner.journal(name)[-1]["type"] == "closed" for name in run_folders(runner)), "all runs are closed")
    runner.stop()
    until(lambda: not runner.of_groups("."), "the groups are gone")
    assert not spare_folders(runner)
    for p in Path("/run/maitento-ids").iterdir():
        if p.name.isdigit() and runner.instance in p.read_text():  # a crash came before it was used
            with open(p, "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


# ---- the same machine ----

LOOK = """exec > /mnt/data/out 2>&1
id; hostname; cat /etc/hostname /etc/hosts; echo resolv:; cat /etc/resolv.conf
grep -v ' / ' /proc/self/mountinfo | sed 's/^[0-9]* [0-9]* [0-9]*:[0-9]* //' | sort
grep -E 'Cap|Seccomp|NoNewPrivs|Groups|SigBlk|SigIgn' /proc/self/status
cat /proc/1/comm; cat /proc/self/uid_map /proc/self/cgroup; stat -c '%A %U %G %N' /* /dev/* /mnt/* /sys/* /sys/fs/cgroup/*
ls -l /proc/self/ns | sed 's/[0-9]//g'; ls -l /proc/self/fd | wc -l; ulimit -a; env | sort
df -B1 /dev/shm | tail -1; ip addr 2>/dev/null; nice; cat /proc/self/oom_score_adj; cut -d' ' -f4-8 /proc/self/stat
cat /etc/passwd /etc/group; stat -c '%A %U %G %N' /home/* /tmp/* /run/*; stat -c '%a %u %g' /etc/hostname /etc/hosts /etc/resolv.conf /tmp
"""


def seen(runner, **members):
    vfs = runner.vfs()
    run = runner.run([LOOK], mounts=[(vfs, "data")], users=["other"], hostname="one-name", memory=96 * mtwire.MIB,
                     environment=[("A", "b")], **members)
    assert runner.wait(run)["status"] == "Finished", runner.journal(run)
    text = (runner.vfs_path(vfs) / "out").read_text()
    base = 0x70000000 + block_of(runner, run) * 65536
    for name, word in ((runner.place(run), "PLACE"), (run, "RUN"), (vfs, "VFS"), (str(base), "BASE"),
                       (str(runner.dir), "DIR"), (runner.instance, "INSTANCE")):
        text = text.replace(name, word)
    return run, [" ".join(line.split()) for line in text.replace("/PLACE", "/RUN").split("\n") if "total" not in line]


def test_a_run_sees_the_same_machine():
    with mtwire.Runner("--spares", "0") as cold, mtwire.Runner() as warm:
        with_spares(warm)
        run, first = seen(cold)
        assert cold.place(run) == run
        run, second = seen(warm)
        assert is_spare(warm, run)
        assert first == second


@pytest.mark.parametrize("network,links", [(0, ["lo"]), (1, ["lo", "eth0"])])
def test_a_spare_has_the_network_that_is_asked_for(own, network, links):
    """Spares of one network are never given to runs of the other."""
    look = "grep -o '[a-z0-9]*:' /proc/net/dev | tr -d ':\\n' > /mnt/data/out; cat /etc/resolv.conf >> /mnt/data/out"
    other = own.run(["true"], network=1 - network)
    own.wait(other, "closed")
    until(lambda: own.spare_groups() - {own.place(other)}, "there are spares of the other network")
    for first in (True, False):
        vfs = own.vfs()
        run = own.run([look], mounts=[(vfs, "data")], network=network)
        assert own.wait(run)["status"] == "Finished", own.journal(run)
        text = (own.vfs_path(vfs) / "out").read_text()
        assert text.startswith("".join(links)) and text.startswith("lo#") == (network == 0), text
        assert ("nameserver 127.0.0.53" in text) == (network == 1), text
        if first:
            assert not is_spare(own, run)
            until(lambda: len(own.spare_groups()) >= 8, "there are spares of both")
            time.sleep(0.1)
    assert is_spare(own, run)


def test_limits_are_the_runs(own):
    with_spares(own)
    run = own.run(["head -c 300m /dev/zero | tail -c 250m | wc -c"], memory=64 * mtwire.MIB)
    assert is_spare(own, run)
    ended = own.wait(run)
    assert ended["limits"] & 1 or ended["status"] == "Error", ended
    with_spares(own)
    run = own.run(["head -c 40000000 /dev/zero > big"], disk=16 * mtwire.MIB)
    assert is_spare(own, run) and "quota" in own.wait(run)["details"].lower()
    with_spares(own)
    run = own.run(["head -c 40000000 /dev/zero > /dev/shm/x"], memory=64 * mtwire.MIB)
    assert is_spare(own, run) and "No space left" in own.wait(run)["details"]


def test_a_failing_start_with_a_spare(own):
    with_spares(own)
    run = own.run(["true"], users=["daemon"])
    assert is_spare(own, run)
    ended = own.wait(run)
    assert (ended["status"], ended["reason"]) == ("Error", "startFailed")
    assert "the image has a user of that name already" in ended["details"], ended
    own.wait(run, "closed")
    with pytest.raises(Failed) as e:
        own.run(["true"], run_id=run)
    assert e.value.code == "alreadyExists"


def test_a_plan_too_large_to_hand_over(own):
    with_spares(own)
    run = own.run(["true " + "x" * 80000])
    assert not is_spare(own, run) and own.wait(run)["status"] == "Finished"


def test_a_spare_is_used_before_it_is_ready(own):
    for _ in range(30):
        run = own.run(["test $(hostname) = quick"], hostname="quick")
        assert own.wait(run)["status"] == "Finished", own.journal(run)
        time.sleep(random.uniform(0.008, 0.014))
    leave_nothing(own)


def test_twenty_at_once(own):
    with_spares(own)
    runs = [own.run(["true"]) for _ in range(20)]
    for r in runs:
        assert own.wait(r)["status"] == "Finished"
    assert len({own.place(r) for r in runs}) == 20 and sum(is_spare(own, r) for r in runs) >= 4
    for r in runs:
        own.wait(r, "closed")
    with_spares(own)
    until(lambda: scratch_folders(own) == own.spare_groups(), "only spares have folders")
    leave_nothing(own)


# ---- deaths ----

def spare_supervisors(own):
    with_spares(own)
    until(lambda: len(supervisors(own)) == 4, "only spares are there")
    return supervisors(own)


@pytest.mark.parametrize("whom", ["supervisor", "init"])
def test_death_of_a_spare(own, whom):
    for pid, kid in inits(spare_supervisors(own)).items():
        os.kill(pid if whom == "supervisor" else kid, 9)
    until(lambda: not own.spare_groups(), "what was made for them is gone")
    until(lambda: not scratch_folders(own), "their folders, too")
    run = own.run(["true"])
    assert not is_spare(own, run) and own.wait(run)["status"] == "Finished"
    leave_nothing(own)


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_spares_end_with_their_runner(own, sig):
    pids = spare_supervisors(own)
    kids = set(inits(pids).values())
    old = own.spare_groups()
    own.stop(sig)
    until(lambda: not any(alive(p) for p in pids | kids), "spares and their machines end by themselves")
    if sig == signal.SIGTERM:
        leave_nothing(own)
    own.start()
    until(lambda: not old & own.spare_groups(), "their groups are removed")
    until(lambda: not old & scratch_folders(own), "and their folders")
    leave_nothing(own)


def keep_starting(runner, stop, started):
    """Starts runs for as long as the runner answers."""
    try:
        link = mtwire.Link(runner.dir / "runner.sock")
        while not stop.is_set():
            run = str(uuid.uuid4())
            link.ask(START, mtwire.plan(["sleep 0.02"], run_id=run))
            started.append(run)
            time.sleep(random.uniform(0, 0.012))
    except (Gone, OSError):
        pass


def test_kill_of_the_runner_at_any_moment(own):
    started, rounds, deadline = [], 0, time.monotonic() + 120
    while rounds < 25 or len(run_folders(own)) <= 40:  # where starts are slow it takes more of them
        assert time.monotonic() < deadline, f"{rounds} rounds, {len(started)} starts"
        rounds += 1
        stop = threading.Event()
        threads = [threading.Thread(target=keep_starting, args=(own, stop, started)) for _ in range(2)]
        for t in threads:
            t.start()
        time.sleep(random.uniform(0.005, 0.15))
        own.stop(9)
        stop.set()
        for t in threads:
            t.join()
        if random.random() < 0.5:  # whoever the supervisors are: of runs and of spares
            there = sorted(supervisors(own))
            for pid in random.sample(there, len(there) // 2):
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
        own.start()

    def story_of(run):
        """All of its journal once that is closed; nothing of a run that had not begun when both died: it is
        as if it had never been sent."""
        found = []

        def look():
            try:
                found[:] = own.journal(run)
            except FileNotFoundError:
                found.clear()
                return True
            return found and found[-1]["type"] == "closed"
        until(look, f"{run} is closed: {own.log()}")
        return found

    folders = run_folders(own)
    assert len(folders) > 25 and len(set(started) - set(folders)) < len(started) / 2
    for run in folders:
        story = story_of(run)
        ends = [r for r in story if r["type"] == "ended"]
        assert not story or (len(ends) == 1 and (ends[0]["status"], ends[0]["reason"]) in (
            ("Finished", "exited"), ("Error", "supervisorLost"))), story
    for run in sorted(set(started) - set(folders))[:3]:
        assert own.wait(own.run(["true"], run_id=run))["status"] == "Finished"
        own.wait(run, "closed")
    with_spares(own)
    until(lambda: len(supervisors(own)) == 4, "no supervisor but those of spares")
    until(lambda: scratch_folders(own) == own.spare_groups(), "only spares have folders")
    assert not own.groups()
    leave_nothing(own)
