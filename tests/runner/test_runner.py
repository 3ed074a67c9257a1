# SPDX-License-Identifier: Apache-2.0
"""mt-runner by its own protocol, without a server: starts, refusals, crashes, sweeps."""
import os
import socket
import struct
import subprocess
import time
import uuid
from pathlib import Path

import pytest

import mtwire
from mtwire import START, SWEEP, Failed, Gone, Link, Reader, text

WAIT = {"command": "touch /tmp/on; sleep 100 & sleep 100"}


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def fds(pid):
    found = []
    for n in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{n}"))
        except FileNotFoundError:
            pass  # closed meanwhile
    return sorted(found)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def owned_processes(block, place=None):
    """Processes whose uid lies in the block; with a place not those of another run or spare, which may
    have the block by now."""
    low = 0x70000000 + block * 65536
    found = []
    for p in Path("/proc").iterdir():
        if p.name.isdigit():
            try:
                uid = int((p / "status").read_text().split("\nUid:\t")[1].split()[0])
                if place and place not in (p / "cgroup").read_text():
                    continue
            except (OSError, IndexError):
                continue
            if low <= uid < low + 65536 and alive(int(p.name)):
                found.append(int(p.name))
    return found


def block_of(runner, run):
    return next(int(r["name"]) for r in runner.journal(run) if r["type"] == "made" and r["kind"] == "block")


def janitor_of(runner):
    """Its pid; None while there is none, or one that has not named itself yet."""
    pid = runner.process.pid
    for kid in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            if Path(f"/proc/{kid}/comm").read_text().strip() == "mt-janitor":
                return int(kid)
        except OSError:
            continue
    return None


def running(runner, **members):
    run = runner.run([WAIT], **members)
    runner.wait(run, "startupStarted")
    return run


# ---- starts and ends ----

def test_info(runner):
    r = Reader(runner.link.ask(mtwire.HELLO))
    version, boot, cgroups, scratch = r.text(), r.text(), r.text(), r.text()
    assert version and cgroups in ("v1", "hybrid", "v2") and scratch == "btrfs"
    assert boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    size, free, memory, cap, cpus, live = (r.take(f) for f in "QQQQII")
    assert size == 512 * mtwire.MIB and 0 < free < size and 0 < cap < memory and cpus == os.cpu_count() and live == 0
    for _ in range(r.take("I")):
        assert r.text()
    images = {}
    for _ in range(r.take("I")):
        name, digest, json = r.text(), r.text(), r.text()
        r.take("Q")
        assert r.take("q") > 0 and json.startswith("{")
        images[name] = digest
    assert images["slim"] == mtwire.image_digest()


def test_a_run_from_start_to_closed(runner):
    vfs = runner.vfs()
    run = runner.run(["echo report > /mnt/data/report; echo $KEY >> /mnt/data/report"],
                     mounts=[(vfs, "data")], environment=[("KEY", "value")])
    ended = runner.wait(run)
    assert (ended["status"], ended["reason"]) == ("Finished", "exited"), ended
    runner.wait(run, "closed")
    report = runner.vfs_path(vfs) / "report"
    assert report.read_text() == "report\nvalue\n"
    assert (report.stat().st_uid, report.stat().st_gid) == (mtwire.SERVICE, mtwire.SERVICE)
    kinds = [r["type"] for r in runner.journal(run)]
    assert kinds[0] == "boot" and kinds[-1] == "closed" and kinds.count("ended") == 1
    made = {(r["kind"], r["name"]) for r in runner.journal(run) if r["type"] == "made" and r["kind"] != "supervisor"}
    assert made == {(r["kind"], r["name"]) for r in runner.journal(run) if r["type"] == "gone"}
    assert [r["seq"] for r in runner.journal(run)] == list(range(1, len(kinds) + 1))
    assert not runner.groups()
    assert not owned_processes(block_of(runner, run), runner.place(run))
    block, place = Path(f"/run/maitento-ids/{block_of(runner, run)}"), runner.place(run)
    until(lambda: place not in block.read_text(), "the block is free")
    assert not (runner.folder(run) / "sock").exists()


def test_permissions_of_the_run_folder(runner):
    run = running(runner)
    folder = runner.folder(run)
    st = folder.stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (0, mtwire.SERVICE, 0o2750)
    st = (folder / "journal").stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (0, mtwire.SERVICE, 0o640)
    st = (folder / "sock").stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (mtwire.SERVICE, mtwire.SERVICE, 0o600)
    st = (runner.dir / "state/runs").stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (0, mtwire.SERVICE, 0o750)
    runner.terminate(run)
    assert runner.wait(run)["by"] == "tester"
    runner.wait(run, "closed")


def test_a_server_that_attaches_late_reads_everything(runner):
    run = running(runner)
    link = runner.attach(run)
    seen = []
    while not seen or seen[-1]["type"] != "startupStarted":
        kind, _, payload = link.receive()
        assert kind == mtwire.RECORD
        seen.append(mtwire.record(payload))
    again = runner.attach(run, after=seen[-2]["seq"])
    assert mtwire.record(again.receive()[2]) == seen[-1]
    assert link.apis == again.apis == 1
    again.send(mtwire.TERMINATE, text("ada"))
    while seen[-1]["type"] != "ended":
        seen.append(mtwire.record(link.receive()[2]))
    assert (seen[-1]["reason"], seen[-1]["by"]) == ("terminated", "ada")
    link.close()
    again.close()
    runner.wait(run, "closed")


def test_many_at_once_have_blocks_of_their_own(runner):
    runs = [running(runner, memory=32 * mtwire.MIB, disk=8 * mtwire.MIB) for _ in range(12)]
    blocks = {block_of(runner, r) for r in runs}
    assert len(blocks) == 12
    for r in runs:
        runner.terminate(r).close()
    for r in runs:
        assert runner.wait(r)["reason"] == "terminated"
        runner.wait(r, "closed")
    assert not runner.groups()


def test_two_instances_share_the_blocks_of_the_host(runner):
    with mtwire.Runner() as other:
        a, b = running(runner), running(other)
        assert block_of(runner, a) != block_of(other, b)
        for who, run in ((runner, a), (other, b)):
            who.terminate(run).close()
            who.wait(run, "closed")


def test_disk_limit(runner):
    vfs = runner.vfs()
    run = runner.run(["dd if=/dev/zero of=/home/maitento/big bs=1M count=64 2> /mnt/data/said; ls -l /dev/null"],
                     mounts=[(vfs, "data")], disk=16 * mtwire.MIB)
    runner.wait(run, "closed")
    assert "quota" in (runner.vfs_path(vfs) / "said").read_text().lower()


@pytest.mark.parametrize("options", [{"tmpfs": True}, {"options": ["--cgroup", "v1"]},
                                     {"options": ["--cgroup", "v2"]}])
def test_other_forms_of_the_host(options):
    with mtwire.Runner(*options.get("options", ()), tmpfs=options.get("tmpfs", False)) as r:
        run = r.run(["echo x > /home/maitento/x && cat /home/maitento/x"])
        assert r.wait(run)["status"] == "Finished", r.journal(run)
        r.wait(run, "closed")
        run = running(r)
        r.terminate(run).close()
        r.wait(run, "closed")
        assert not r.groups()


# ---- refusals ----

@pytest.mark.parametrize("members, code, says", [
    ({"image": "ab" * 32}, "notFound", "mt-image build"),
    ({"mounts": [(str(uuid.uuid4()), "data")]}, "notFound", "'data'"),
    ({"memory": 1 << 45}, "capacityExceeded", "limits.memory"),
    ({"disk": 1 << 40}, "capacityExceeded", "limits.disk"),
    ({"pids": 60000}, "badField", "limits.pids"),
    ({"hostname": "a/b"}, "badField", "hostname"),
    ({"run_id": "x" * 36}, "badField", "run id"),
    ({"deadline_ns": 1}, "startFailed", "time was over"),
    ({"packages": ["-oX=Y"]}, "badField", "packages"),
    ({"packages": ["jq"] * 501}, "badRequest", "malformed"),
    ({"version": 9}, "badRequest", "malformed"),
])
def test_refused_plans_leave_nothing(runner, members, code, says):
    def folders():
        return sorted(n for n in os.listdir(runner.dir / "state/runs") if not n.startswith("spare-"))

    before = folders()
    with pytest.raises(Failed) as e:
        runner.link.ask(START, mtwire.plan(["true"], **members))
    assert e.value.code == code and says in e.value.sentence, e.value
    assert folders() == before
    assert not runner.groups()


def test_an_id_is_a_run_once(runner):
    run = running(runner)
    with pytest.raises(Failed) as e:
        runner.run(["true"], run_id=run)
    assert e.value.code == "alreadyExists"
    assert alive(runner.supervisor(run))
    runner.terminate(run).close()
    runner.wait(run, "closed")
    with pytest.raises(Failed) as e:
        runner.run(["true"], run_id=run)
    assert e.value.code == "alreadyExists"


@pytest.mark.parametrize("bytes_sent", [b"\xff\xff\xff\xff", b"\x05\0\0\0abcdefg", struct.pack("<IHI", 6, 77, 1),
                                        struct.pack("<IHI", 6 + 3, SWEEP, 1) + b"abc"])
def test_what_is_no_frame_ends_that_connection_only(runner, bytes_sent):
    link = Link(runner.dir / "runner.sock")
    link.sock.sendall(bytes_sent)
    with pytest.raises((Gone, ConnectionResetError)):
        link.receive()
    runner.link.ask(mtwire.HELLO)


def test_only_the_service_and_root_may_speak(runner):
    code = f"""
import os, socket
os.setgid(4711); os.setuid({{uid}})
s = socket.socket(socket.AF_UNIX); s.settimeout(30)
try:
    s.connect({str(runner.dir / 'runner.sock')!r})
    s.sendall(b'\\6\\0\\0\\0\\1\\0\\1\\0\\0\\0')
    print(len(s.recv(100)) > 0)
except OSError as e:
    print(type(e).__name__)
"""
    def as_uid(uid):
        return subprocess.run(["/usr/bin/python3", "-c", code.format(uid=uid)], capture_output=True,
                              text=True, timeout=60).stdout.strip()
    assert as_uid(mtwire.SERVICE) == "True"
    assert as_uid(4711) == "PermissionError"
    os.chmod(runner.dir / "runner.sock", 0o666)  # and behind the mode there is the peer's uid
    try:
        assert as_uid(4711) in ("False", "BrokenPipeError", "ConnectionResetError")
    finally:
        os.chmod(runner.dir / "runner.sock", 0o600)


def test_links_that_the_service_plants_are_not_followed(runner):
    vfs = str(uuid.uuid4())
    folder = runner.dir / "state/vfs" / vfs
    folder.mkdir()
    (folder / "files").symlink_to("/etc")
    with pytest.raises(Failed):
        runner.run(["true"], mounts=[(vfs, "data")])
    folder2 = runner.dir / "state/vfs" / str(uuid.uuid4())
    folder2.symlink_to("/usr")
    with pytest.raises(Failed):
        runner.run(["true"], mounts=[(folder2.name, "data")])


# ---- what a supervisor is left with ----

def test_a_supervisor_has_nothing_of_others(runner):
    first, second = running(runner), running(runner)
    pid = runner.supervisor(second)
    mine = fds(pid)
    assert not [f for f in mine if first in f], mine
    assert not [f for f in mine if f.startswith(str(runner.dir / "runner.sock")) or "scratch.img" in f], mine
    groups = [f for f in mine if "maitento-" in f and "/cgroup" in f]
    place = runner.place(second)
    assert all(place in g or g.endswith("/init") for g in groups), groups
    assert os.getsid(pid) == pid and Path(f"/proc/{pid}/comm").read_text() == "mt-supervisor\n"
    assert "helpers" in Path(f"/proc/{pid}/cgroup").read_text()
    for r in (first, second):
        runner.terminate(r).close()
        runner.wait(r, "closed")


def test_nothing_of_a_run_is_in_the_hosts_mount_table(runner):
    run = running(runner)
    mounts = Path("/proc/self/mountinfo").read_text()
    assert run not in mounts and str(runner.dir) not in mounts
    inside = Path(f"/proc/{runner.process.pid}/mountinfo").read_text().splitlines()
    assert sorted(line.split()[4] for line in inside) == [
        "/", "/dev", "/images", "/layers", "/proc", "/program", "/scratch", "/vfs"]
    runner.terminate(run).close()
    runner.wait(run, "closed")


def test_fds_do_not_grow(runner):
    def own_fds():
        # Two user namespaces are kept of each id block that was ever used, and which blocks are free is
        # decided by all instances of the host: those are not counted.
        return sum(not name.startswith("user:") for name in fds(runner.process.pid))
    def one():
        run = runner.run(["true"], memory=64 * mtwire.MIB, disk=8 * mtwire.MIB)
        runner.wait(run, "closed")
    for _ in range(10):
        one()
    until(lambda: len(runner.spare_groups()) == 4 and janitor_of(runner), "machines are made ahead again")
    before, janitor = 0, len(fds(janitor_of(runner)))
    for _ in range(20):  # the pools of other things are filled again in quiet moments
        time.sleep(0.1)
        before = max(before, own_fds())
    for _ in range(20):
        one()
    until(lambda: own_fds() <= before, f"no more than {before} fds")
    until(lambda: len(fds(janitor_of(runner))) <= janitor, f"no more than {janitor} fds in the janitor")


# ---- deaths ----

def test_death_of_a_supervisor(runner):
    run = running(runner)
    block = block_of(runner, run)
    assert owned_processes(block)
    os.kill(runner.supervisor(run), 9)
    ended = runner.wait(run)
    assert (ended["status"], ended["reason"]) == ("Error", "supervisorLost") and ended["details"], ended
    runner.wait(run, "closed")
    kind, payload = runner.link.unasked.pop() if runner.link.unasked else (lambda f: (f[0], f[2]))(runner.link.receive())
    assert kind == mtwire.GONE and Reader(payload).text() == run
    assert not owned_processes(block, runner.place(run)) and not runner.groups()


def test_death_of_the_runner_leaves_runs_alone(own):
    quick = own.run([{"command": "sleep 1"}])
    stays = running(own)
    pid = own.supervisor(stays)
    own.stop(9)
    assert own.wait(quick)["status"] == "Finished"  # nobody but its supervisor is there
    assert alive(pid)
    link = own.attach(stays)
    assert mtwire.record(link.receive()[2])["type"] == "boot"
    link.close()
    own.start()
    own.wait(quick, "closed")
    assert alive(pid)
    with pytest.raises(Failed) as e:
        own.sweep(stays)
    assert e.value.code == "conflict"
    new = own.run(["true"])
    assert own.wait(new)["status"] == "Finished"
    assert block_of(own, new) != block_of(own, stays)
    own.terminate(stays).close()
    own.wait(stays, "closed")
    assert not own.groups()


def test_sigterm_of_the_runner_leaves_runs_alone(own):
    run = running(own)
    own.stop()
    assert alive(own.supervisor(run))
    own.start()
    os.kill(own.supervisor(run), 9)
    assert own.wait(run)["reason"] == "supervisorLost"
    own.wait(run, "closed")


def test_both_die(own):
    runs = [running(own) for _ in range(3)]
    pids = [own.supervisor(r) for r in runs]
    blocks = [(block_of(own, r), own.place(r)) for r in runs]
    own.stop(9)
    for pid in pids:
        os.kill(pid, 9)
    # PID 1 of a capsule ends with its supervisor, though nobody sweeps.
    until(lambda: not any(owned_processes(*b) for b in blocks), "the capsules end by themselves")
    own.start()
    for r in runs:
        assert own.wait(r)["reason"] == "supervisorLost"
        own.wait(r, "closed")
    assert not own.groups()


def test_death_of_the_janitor(own):
    run = running(own)
    until(lambda: janitor_of(own), "there is a janitor")
    old = janitor_of(own)
    os.kill(old, 9)
    until(lambda: janitor_of(own) not in (None, old), "a new janitor")
    own.terminate(run).close()
    own.wait(run, "closed")
    new = own.run(["true"])
    assert own.wait(new)["status"] == "Finished"
    own.wait(new, "closed")


def write_journal(folder, boot, begun=True):
    """A journal as a crash leaves it; begun: its supervisor has written something of its own."""
    os.mkdir(folder, 0o750)
    def rec(seq, kind, payload):
        body = struct.pack("<QqH", seq, 1, kind) + payload
        return struct.pack("<II", len(body), mtwire.crc32c(body)) + body
    (folder / "journal").write_bytes(
        b"MTJRNL1\n" + rec(1, 1, text(boot)) + rec(2, 2, struct.pack("<H", 1) + text("7")) +
        rec(3, 2, struct.pack("<H", 4) + text("1 1")) +
        (rec(4, 4, text("machine") + struct.pack("<Q", 5)) if begun else b"") + b"\x50\0\0\0torn")


def test_after_a_restart_of_the_machine(own):
    run = str(uuid.uuid4())
    own.stop()
    write_journal(own.folder(run), "0192f3a1-0000-7000-8000-00000000b007")
    own.start()
    ended = own.wait(run)
    assert (ended["status"], ended["reason"]) == ("Error", "nodeLost"), ended
    own.wait(run, "closed")


def test_a_pid_that_is_someone_elses_is_not_a_supervisor(own):
    run = str(uuid.uuid4())
    own.stop()
    write_journal(own.folder(run), Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    own.start()
    assert own.wait(run)["reason"] == "supervisorLost"  # pid 1 is alive, with another start time


def test_a_run_that_had_not_begun_may_be_sent_again(own):
    run = str(uuid.uuid4())
    own.stop()
    write_journal(own.folder(run), Path("/proc/sys/kernel/random/boot_id").read_text().strip(), begun=False)
    own.start()
    until(lambda: not own.folder(run).exists(), "nothing is left of it")
    assert own.run(["true"], run_id=run) == run
    assert own.wait(run)["status"] == "Finished"


def test_a_folder_that_is_not_roots_is_nobodys(own):
    run = str(uuid.uuid4())
    own.stop()
    write_journal(own.folder(run), "x")
    os.chown(own.folder(run), mtwire.SERVICE, mtwire.SERVICE)
    before = (own.folder(run) / "journal").read_bytes()
    own.start()
    with pytest.raises(Failed) as e:
        own.sweep(run)
    assert e.value.code == "forbidden"
    assert (own.folder(run) / "journal").read_bytes() == before


# ---- sweeps and folders ----

def test_sweep(own):
    run = own.run(["true"])
    own.wait(run, "closed")
    own.sweep(run)
    assert own.folder(run).exists()
    own.sweep(run, forget=True)
    until(lambda: not own.folder(run).exists(), "the folder is gone")
    own.sweep(str(uuid.uuid4()), forget=True)  # nothing is fine
    live = running(own)
    with pytest.raises(Failed) as e:
        own.sweep(live, forget=True)
    assert e.value.code == "conflict" and "terminate" in e.value.sentence
    own.terminate(live).close()
    own.wait(live, "closed")


def test_one_runner_for_an_instance_and_a_state(own):
    def second(**kw):
        other = mtwire.Runner(state=own.dir, instance=kw.get("instance", own.instance))
        other.scratch = ["--scratch-tmpfs"]
        command = other.command()
        if "state" in kw:
            command[command.index("--state") + 1] = kw["state"]
        command[command.index("--socket") + 1] = str(own.dir / "second.sock")
        return subprocess.run(command, capture_output=True, text=True, timeout=30)
    done = second(state=str(own.dir / "state2"))
    assert done.returncode == 1 and "in use by another mt-runner" in done.stderr and own.instance in done.stderr
    done = second(instance=own.instance + "x")
    assert done.returncode == 1 and "state folder" in done.stderr
    own.link.ask(mtwire.HELLO)


def test_purge_leaves_nothing():
    r = mtwire.Runner()
    r.start()
    runs = [running(r) for _ in range(3)]
    blocks = [(block_of(r, x), r.place(x)) for x in runs]  # others may have them by and by
    r.stop(9)
    done = subprocess.run([*r.command(), "--purge"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not any(owned_processes(*b) for b in blocks)
    assert not r.of_groups(".")
    assert not (r.dir / "scratch.img").exists()
    assert all(r.journal(x)[-1]["type"] == "closed" for x in runs)
    until(lambda: str(r.dir) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout,
          "the loop device is gone")
    r.purge()


def test_options():
    program = str(mtwire.BUILD / "src/runner/mt-runner")
    def run(*options):
        return subprocess.run([program, *options], capture_output=True, text=True, timeout=20)
    assert run("--version").stdout.startswith("mt-runner ")
    assert "usage: mt-runner" in run("--help").stdout
    for bad in (["--nonsense"], ["--state", "/x"], ["--service-uid", "0"], ["--service-uid", "1879048192"],
                ["--instance", "A"], ["--cgroup", "v3"], ["--scratch-size", "2GB"], ["--spares", "65"],
                ["extra"]):
        done = run(*bad)
        assert done.returncode == 2 and "mt-runner: " in done.stderr, bad
