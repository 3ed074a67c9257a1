# SPDX-License-Identifier: Apache-2.0
"""Secrets of a run: files in memory for the default user alone, and no copy of a value anywhere else: not
in the memory of runner, janitor, supervisors, waiting machines or PID 1, nor on any disk."""
import hashlib
import os
import re
from pathlib import Path

import pytest

import mtwire
from mtwire import START, Failed
from test_spares import is_spare, supervisors, with_spares

CANARY = b"CANARY-7f3a-" + os.urandom(12).hex().encode()
BYTES = bytes(range(256)) + b"\n\n"


@pytest.fixture(scope="module", params=[("--spares", "0"), (), ("--cgroup", "v1"), ("--spares", "0", "--cgroup", "v1")],
                ids=["cold", "spares", "v1-spares", "v1-cold"])
def machine(request):
    with mtwire.Runner(*request.param) as r:
        if "0" not in request.param:
            with_spares(r)
        r.cold = "0" in request.param
        yield r


def started(runner, startup=(), **members):
    if not runner.cold:
        with_spares(runner)
    run = runner.run(startup, **members)
    assert is_spare(runner, run) != runner.cold
    return run


LOOK = """exec > /mnt/data/out 2>&1
cat /mnt/secrets/token; echo; stat -c '%a %U %G %s %n' /mnt/secrets /mnt/secrets/*; sha256sum < /mnt/secrets/bytes
stat -f -c %T /mnt/secrets; grep ' /mnt/secrets ' /proc/self/mountinfo | cut -d' ' -f4-6
echo x > /mnt/secrets/new; echo x > /mnt/secrets/token; rm -f /mnt/secrets/token; chmod 644 /mnt/secrets/token; ls /mnt
"""
AS_OTHER = "(cat /mnt/secrets/token; ls /mnt/secrets; cd /mnt/secrets; stat /mnt/secrets/token) > /tmp/other 2>&1; true"


def test_files_for_the_default_user_alone(machine):
    vfs = machine.vfs()
    run = started(machine, [LOOK, {"command": AS_OTHER, "user": "other"}, "cp /tmp/other /mnt/data/other",
                            {"command": "(id -u; cat /mnt/secrets/token; touch /mnt/secrets/x; "
                                        "mount -o remount,rw /mnt/secrets; umount /mnt/secrets) > /mnt/data/root 2>&1; "
                                        "true", "user": "root"}],
                  mounts=[(vfs, "data")], users=["other"], secrets=[("token", CANARY), ("bytes", BYTES), ("none", b"")])
    assert machine.wait(run)["status"] == "Finished", machine.journal(run)
    out = (machine.vfs_path(vfs) / "out").read_text().split("\n")
    assert out[0] == CANARY.decode()
    assert out[1].startswith("500 maitento maitento ")
    assert out[2:5] == ["400 maitento maitento 258 /mnt/secrets/bytes", "400 maitento maitento 0 /mnt/secrets/none",
                        f"400 maitento maitento {len(CANARY)} /mnt/secrets/token"]
    assert out[5].split()[0] == hashlib.sha256(BYTES).hexdigest()
    assert out[6] in ("tmpfs", "ramfs")
    assert re.match(r"/ /mnt/secrets ro,nosuid,nodev,noexec", out[7]), out[7]
    assert "\n".join(out).count("Read-only file system") == 4, out
    assert "secrets" in out
    other = (machine.vfs_path(vfs) / "other").read_text()
    assert other.count("Permission denied") == 4 and CANARY.decode() not in other, other
    root = (machine.vfs_path(vfs) / "root").read_text()
    assert root.startswith(f"0\n{CANARY.decode()}") and root.count("ermission denied") + root.count("Read-only") >= 2, root


def test_without_secrets_there_is_no_folder(machine):
    run = started(machine, ["test ! -e /mnt/secrets"])
    assert machine.wait(run)["status"] == "Finished", machine.journal(run)


# ---- no copy ----

def memory_has(pid, what):
    """Whether it is in what the process may write to."""
    found = []
    try:
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        with open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                span, rights, *rest = line.split()
                first, last = (int(n, 16) for n in span.split("-"))
                if "w" not in rights or rest[-1:] == ["[vvar]"]:
                    continue
                try:
                    mem.seek(first)
                    if what in mem.read(last - first):
                        found.append(line)
                except OSError:
                    pass
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def words(pid):
    """Arguments and environment; nothing of one that has gone, as a waiting machine may at any time."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def children(pid):
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def test_no_process_keeps_a_copy(machine):
    values = [("token", CANARY), ("big", CANARY * 1500), ("more", CANARY * 1500)]
    run = started(machine, ["true"], auto_terminate=False, secrets=values[:1])
    large = machine.run(["true"], auto_terminate=False, secrets=values)  # no waiting machine takes so large a plan
    after = machine.run(["true"], auto_terminate=False)
    for r in (run, large, after):
        machine.wait(r, "ready")
    everyone = {machine.process.pid, *children(machine.process.pid), *supervisors(machine)}
    everyone |= {machine.supervisor(r) for r in (run, large, after)}
    assert len(everyone) >= 5
    for pid in everyone:
        assert CANARY not in words(pid)
        assert not memory_has(pid, CANARY), (pid, words(pid))
    # The search does find what is there.
    assert memory_has(os.getpid(), CANARY)
    for r in (run, large, after):
        machine.terminate(r).close()
        machine.wait(r)


def test_nothing_on_a_disk_or_in_the_hosts_mounts(machine):
    mark = b"another-" + os.urandom(12).hex().encode()
    vfs = machine.vfs()
    run = started(machine, ["true"], mounts=[(vfs, "data")], auto_terminate=False, secrets=[("token", mark)])
    machine.wait(run, "ready")
    for pid in (os.getpid(), machine.process.pid, machine.supervisor(run)):
        assert "secrets" not in Path(f"/proc/{pid}/mountinfo").read_text()
    own = f"/proc/{machine.process.pid}/root/scratch/runs/{machine.place(run)}"
    folders = [machine.dir, own]
    assert os.path.isdir(f"{own}/upper/mnt/secrets") and os.listdir(f"{own}/upper/mnt/secrets") == []
    for folder, _, names in (step for top in folders for step in os.walk(top)):
        for path in (Path(folder) / name for name in names if name != "scratch.img"):
            try:
                assert not path.is_file() or path.is_symlink() or mark not in path.read_bytes(), path
            except FileNotFoundError:
                pass  # what is made ahead comes and goes
    assert mark.decode() not in machine.log()
    machine.terminate(run).close()
    machine.wait(run)


# ---- what is refused ----

@pytest.mark.parametrize("secrets, word", [
    ([("../x", b"x")], "name"), ([("a/b", b"x")], "name"), ([("", b"x")], "name"), ([("a", b"x"), ("a", b"y")], "twice"),
    ([(f"s{i}", b"x") for i in range(65)], "malformed"), ([("a", b"x" * 65537)], "malformed"),
    ([(f"s{i}", b"x" * 65536) for i in range(17)], "1 MiB"),
])
def test_refused(machine, secrets, word):
    if not machine.cold:
        return
    with pytest.raises(Failed) as failed:
        machine.link.ask(START, mtwire.plan(["true"], secrets=secrets))
    assert word in failed.value.sentence, failed.value.sentence


def test_the_most_of_them(machine):
    secrets = [(f"s{i:02}", bytes([i]) * 65536) for i in range(15)] + [(f"t{i}", b"x" * 1300) for i in range(49)]
    run = machine.run(["cat /mnt/secrets/* | wc -c > /tmp/n; test $(cat /tmp/n) = 1046740; ls /mnt/secrets | wc -l | "
                       "grep -qx 64"], secrets=secrets)
    assert machine.wait(run)["status"] == "Finished", machine.journal(run)


def test_no_file_system_takes_the_place(machine):
    with pytest.raises(Failed) as failed:
        machine.run(["true"], mounts=[(machine.vfs(), "secrets")], secrets=[("a", b"x")])
    assert "kept for secrets" in failed.value.sentence
