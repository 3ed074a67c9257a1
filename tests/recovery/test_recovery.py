"""What a crash of any part leaves: runs that tell the truth, and nothing else."""
import fcntl
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from conftest import mtr
import mtserver

SPARES = 4  # machines that mt-runner makes ahead (--spares)
KILLS = int(os.environ.get("MT_KILLS", "10"))
STARTS = int(os.environ.get("MT_STARTS", "50"))
SMALL = {"limits": {"memory": "64MiB", "disk": "64MiB", "pids": 64}}


def wait_for(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def supervisors(api):
    """pid of the supervisor of each live run, from its journal's folder name in its arguments."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            comm = (entry / "comm").read_text()
        except OSError:
            continue
        if "supervis" in comm + command:
            found[int(entry.name)] = command
    return found


def leftovers(server):
    """What of an instance can be seen on the host."""
    groups = [str(p) for root in Path("/sys/fs/cgroup").glob("*") if root.is_dir()
              for p in root.glob(f"maitento-{server.instance}/*-*-*-*-*")]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
              if str(server.dir) in line or server.instance in line]
    return {"cgroups": groups, "mounts": mounts}


def held_blocks(server):
    """How many id blocks this instance has locked: each lock file says whose it is while it is held."""
    held = 0
    for file in Path("/run/maitento-ids").glob("[0-9]*"):
        with open(file, encoding="utf-8") as lock:
            if not lock.read().startswith(server.instance + " "):
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held += 1
    return held


def start_twenty(api):
    """They go on once there is a file "go"."""
    ns = api.namespace()
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    api.deploy(ns, {"capsules/slow.mtr": 'autoTerminate = true\n'
                    'vfs = [ { vfs = @ref("work") mountName = "work" } ]\n'
                    'limits = { memory = "64MiB" disk = "64MiB" pids = 64 }\n'
                    'startup = [ { command = "touch /mnt/work/$N; until [ -e /mnt/work/go ]; do sleep 0.1; done; '
                    'touch /mnt/work/$N.done" } ]\n'})
    runs = [api.start(ns, "slow", {"environment": {"N": str(i)}}) for i in range(20)]
    def names():
        return {i["name"] for i in api.call("GET", api.files(ns, "work", "/", "list"))["items"]}
    wait_for(lambda: len(names()) >= 20, "20 capsules in their startup")
    return ns, runs, names


def test_kill_of_the_server_loses_no_run(own):
    ns, runs, names = start_twenty(own)
    own.server.server.kill()
    own.server.server.wait()
    own.server.start_server()
    own.write(ns, "work", "/go", "")
    for run in runs:
        ended = own.get(run)
        assert (ended["status"], ended["endReason"]) == ("Finished", "exited"), ended
    assert len([n for n in names() if n.endswith(".done")]) == 20


def test_kill_of_the_runner_loses_no_run(own):
    ns, runs, names = start_twenty(own)
    own.server.runner.kill()
    own.server.runner.wait()
    own.server.start_runner()
    own.write(ns, "work", "/go", "")
    for run in runs:
        ended = own.get(run)
        assert (ended["status"], ended["endReason"]) == ("Finished", "exited"), ended
    again = own.run(ns, "slow", {"environment": {"N": "x"}})
    assert again["status"] == "Finished"
    wait_for(lambda: not leftovers(own.server)["cgroups"], "the groups of 21 runs are gone")


def test_kill_of_a_supervisor_ends_its_run_with_the_reason(own):
    ns, runs, _ = start_twenty(own)
    journals = own.server.dir / "state" / "runs"
    victim = runs[7]
    text = (journals / victim["id"] / "journal").read_bytes()
    pids = [int(pid) for pid in re.findall(rb"(\d+) \d{4,}", text) if Path(f"/proc/{int(pid)}").exists()]
    assert pids, text
    os.kill(pids[0], signal.SIGKILL)
    ended = own.get(victim, seconds=20)
    assert (ended["status"], ended["endReason"]) == ("Error", "supervisorLost"), ended
    assert ended["failureDetails"]
    own.write(ns, "work", "/go", "")
    for run in runs[:7] + runs[8:]:
        assert own.get(run)["status"] == "Finished"
    wait_for(lambda: not leftovers(own.server)["cgroups"], "the groups are gone")


def test_terminate_and_deadline_hold_while_the_server_is_away(own):
    ns = own.namespace()
    own.deploy(ns, {"capsules/c.mtr": 'maxDuration = "00:00:02"\n'})
    run = own.get(own.start(ns, "c"), until="ready")
    own.server.server.kill()
    own.server.server.wait()
    time.sleep(2.5)  # the deadline itself is what is tested
    own.server.start_server()
    ended = own.get(run)
    assert (ended["status"], ended["endReason"]) == ("Finished", "timeout")
    assert ended["runSeconds"] < 5


def test_runs_that_no_runner_has_taken_end_all_the_same(own):
    ns = own.namespace()
    own.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    own.deploy(ns, {"capsules/c.mtr": 'autoTerminate = true\nvfs = [ { vfs = @ref("work") mountName = "work" } ]\n'
                                      'startup = [ { command = "touch /mnt/work/$N" } ]\n'})
    assert own.run(ns, "c", {"environment": {"N": "first"}})["status"] == "Finished"
    own.server.runner.kill()
    own.server.runner.wait()
    late = own.start(ns, "c", {"environment": {"N": "late"}, "maxDuration": "00:00:02"})
    stopped = own.start(ns, "c", {"environment": {"N": "stopped"}})
    waiting = own.start(ns, "c", {"environment": {"N": "waiting"}})
    own.terminate(stopped)
    ended = own.get(stopped, seconds=10)
    assert (ended["status"], ended["endReason"]) == ("Finished", "terminated"), ended
    ended = own.get(late, seconds=10)
    assert (ended["status"], ended["endReason"]) == ("Error", "timeout") and "runner" in ended["failureDetails"]
    own.server.start_runner()
    assert own.get(waiting)["status"] == "Finished"
    names = {i["name"] for i in own.call("GET", own.files(ns, "work", "/", "list"))["items"]}
    assert names == {"first", "waiting"}


def test_what_a_runner_had_not_read_when_it_was_killed(own):
    """A start that is stopped ends, and another is carried out by the next runner, once."""
    ns = counted(own)
    assert own.run(ns, "c", {"environment": {"N": "first"}})["status"] == "Finished"
    os.kill(own.server.runner.pid, signal.SIGSTOP)
    stopped, waiting = (own.start(ns, "c", {"environment": {"N": name}}) for name in ("stopped", "waiting"))
    own.terminate(stopped)
    own.server.runner.kill()
    own.server.runner.wait()
    ended = own.get(stopped)
    assert (ended["status"], ended["endReason"]) == ("Finished", "terminated"), ended
    own.server.start_runner()
    assert own.get(waiting)["status"] == "Finished"
    names = {i["name"]: i["size"] for i in own.call("GET", own.files(ns, "work", "/", "list"))["items"]}
    assert names == {"first": 1, "waiting": 1}


def counted(api):
    """A capsule whose runs leave one letter each in a file of their own."""
    ns = api.namespace()
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    api.deploy(ns, {"capsules/c.mtr": 'autoTerminate = true\nvfs = [ { vfs = @ref("work") mountName = "work" } ]\n'
                                      'limits = { memory = "64MiB" disk = "64MiB" pids = 64 }\n'
                                      'startup = [ { command = "printf x >> /mnt/work/$N" } ]\n'})
    return ns


def test_a_run_that_had_not_begun_when_the_runner_died_is_started_anew(own):
    ns = counted(own)
    first = own.run(ns, "c", {"environment": {"N": "first"}})
    runs = own.server.dir / "state" / "runs"
    journal = (runs / first["id"] / "journal").read_bytes()
    own.server.runner.kill()
    own.server.runner.wait()
    # As it is left by a kill between the making of a run's folder and the start of its supervisor.
    run = own.start(ns, "c", {"environment": {"N": "second"}})
    at = 8
    while at < len(journal) and int.from_bytes(journal[at + 24:at + 26], "little") in (1, 2):  # boot, resources
        at += 8 + int.from_bytes(journal[at:at + 4], "little")
    (runs / run["id"]).mkdir(0o750)
    (runs / run["id"] / "journal").write_bytes(journal[:at])
    own.server.start_runner()
    ended = own.get(run)
    assert (ended["status"], ended["endReason"]) == ("Finished", "exited"), ended
    assert own.read(ns, "work", "/second") == b"x"


def test_the_runner_is_killed_at_any_moment_of_a_start(own):
    ns = counted(own)
    runs = []

    def all_ended(left):
        while len(runs) > left:
            ended = own.get(runs.pop(0))
            assert (ended["status"], ended["endReason"]) == ("Finished", "exited"), ended

    for n in range(KILLS):
        batch = [own.start(ns, "c", {"environment": {"N": f"{n}-{i}"}}) for i in range(3)]
        time.sleep(n % 10 / 1000)  # the moment
        own.server.runner.kill()
        own.server.runner.wait()
        runs += batch
        own.server.start_runner()
        all_ended(9)
    all_ended(0)
    for n in range(KILLS):
        for i in range(3):
            assert own.read(ns, "work", f"/{n}-{i}") == b"x", "run once"
    wait_for(lambda: not leftovers(own.server)["cgroups"], "the groups are gone")


def test_a_second_server_on_one_state_is_refused(own):
    second = subprocess.run([mtserver.program("maitentod"), "--state", str(own.server.dir / "state"),
                             "--socket", str(own.server.dir / "second.sock"), "--tcp", "",
                             "--service-uid", str(mtserver.SERVICE_ID),
                             "--service-gid", str(mtserver.SERVICE_ID)],
                            capture_output=True, text=True, timeout=20, check=False)
    assert second.returncode == 1 and "another" in second.stderr, second.stderr


def test_many_starts_leave_no_leftovers(own):
    ns = own.namespace()
    own.capsule(ns, [{"command": "true"}], autoTerminate=True, **SMALL)
    def fds(process):
        # Of each id block that was ever used the runner keeps two user namespaces, and a pool of up to 16 network
        # namespaces that is filled in quiet moments: those do not count.
        count = 0
        for fd in os.listdir(f"/proc/{process.pid}/fd"):
            try:
                count += not os.readlink(f"/proc/{process.pid}/fd/{fd}").startswith(("user:", "net:"))
            except FileNotFoundError:
                pass  # closed meanwhile
        return count

    for run in [own.start(ns, "c") for _ in range(8)]:  # what is kept for later runs is made
        own.get(run)
    wait_for(lambda: not leftovers(own.server)["cgroups"], "the first runs are gone")
    wait_for(lambda: held_blocks(own.server) == SPARES, "the machines made ahead are there")
    before = [0, 0]
    for _ in range(10):  # what they have besides is made in quiet moments
        time.sleep(0.1)
        before = [max(before[0], fds(own.server.server)), max(before[1], fds(own.server.runner))]
    done = 0
    while done < STARTS:
        batch = [own.start(ns, "c") for _ in range(min(8, STARTS - done))]
        for run in batch:
            ended = own.get(run)
            assert ended["status"] == "Finished", ended
        done += len(batch)
    wait_for(lambda: leftovers(own.server) == {"cgroups": [], "mounts": []}, "all groups are gone")
    wait_for(lambda: fds(own.server.runner) <= before[1] + 2, f"the runner has its {before[1]} fds again")
    wait_for(lambda: fds(own.server.server) <= before[0] + 4, f"the server has its {before[0]} fds again")
    wait_for(lambda: held_blocks(own.server) <= SPARES, "no block is locked but those of machines made ahead")
