"""Field case O-31: a secret is where it was mounted, and nowhere else."""
import hashlib
import os
import re
import sys
from pathlib import Path

import pytest

import mtserver
from conftest import Api, Ref, mtr

sys.path.insert(0, str(mtserver.ROOT / "sdk" / "python"))
import maitento  # noqa: E402

# Halves of them stand here, so that looking for one does not find the one who looks.
CANARY = "CANARY-7f3a" + os.urandom(8).hex()


class Place:
    """A server of its own that logs everything, with a run that mounts the canary."""

    def __init__(self, server):
        self.server = server
        self.api = Api(server)
        self.key = server.make_key()
        self.py = maitento.Maitento(server.url, self.key)
        self.api.call("POST", "/v1/namespaces", {"name": "o31"}, 201)
        self.py.vfs.create("work", "o31")
        self.py.secrets.create("canary", CANARY, "o31")
        self.py.secrets.create("bytes", CANARY.encode() + b"\xff", "o31")
        self.files = {"capsules/c.mtr": mtr({
            "users": [{"name": "sandbox"}], "vfs": [{"vfs": Ref("work"), "mountName": "work"}],
            "secrets": [{"secret": Ref("canary"), "mountName": "token"}]})}
        self.api.deploy("o31", self.files)
        self.run = self.py.capsules.start("c", "o31", secrets=[{"secret": "bytes", "mountName": "more"}])
        self.py.capsule_runs.wait(self.run, "ready")

    def sh(self, line, user=None, **options):
        return self.py.capsule_runs.exec_and_wait(self.run, "sh", ["-c", line], run_as_user=user, **options)


@pytest.fixture(scope="module", params=[(), ("--spares", "0")], ids=["", "no-spares"])
def place(request):
    with mtserver.Server(image="slim", log_level="debug", runner_options=request.param) as server:
        yield Place(server)


# In two parts: the shell that looks must not find its own words.
LOOK = """cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'
find / -xdev -type f -newer /etc/hostname 2>/dev/null | head -n 2000 | xargs -r cat 2>/dev/null
find /home /run /tmp /mnt /dev/shm /var -type f 2>/dev/null | head -n 2000 | xargs -r cat 2>/dev/null
for p in /proc/[0-9]*; do cat $p/maps $p/mountinfo; for f in $p/fd/* $p/root/mnt/secrets/*; do timeout 1 head -c 1000000 $f </dev/null; done; done 2>/dev/null
true"""


def test_o31_another_user_finds_nothing(place):
    done = place.sh(LOOK, "sandbox", max_duration="00:05:00")
    assert done.exit_code == 0, done.output_error
    assert CANARY not in done.output_standard + done.output_error
    assert len(done.output_standard) > 1000  # it did look
    denied = place.sh("cat /mnt/secrets/* /mnt/secrets/token /mnt/secrets/more", "sandbox")
    assert denied.exit_code == 1 and denied.output_error.count("Permission denied") >= 2, denied.output_error


def test_o31_the_default_user_sees_its_secret_and_no_key_of_the_server(place):
    # Its digest, as what a command prints is kept in its record.
    assert place.sh("sha256sum < /mnt/secrets/token").output_standard.split()[0] == \
        hashlib.sha256(CANARY.encode()).hexdigest()
    where = place.sh("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; "
                     "find /home /run /tmp /dev/shm /etc -type f 2>/dev/null | xargs -r cat 2>/dev/null; true")
    assert where.exit_code == 0 and CANARY not in where.output_standard
    for word in (place.key, str(place.server.dir)):
        assert word not in where.output_standard
    assert "MAITENTO_API_KEY" not in place.sh("env").output_standard
    # Process 1 has no environment, no arguments of anybody, and lets nobody look into it.
    one = place.sh("tr '\\0' ' ' < /proc/1/cmdline; cat /proc/1/environ; cat /proc/1/mem; ls /proc/1/fd", "root")
    assert CANARY not in one.output_standard and "ermission denied" in one.output_error


def test_o31_the_sign_in_is_the_default_users(place):
    # It is signed in and sees names, as its starter does; no command of mt brings a value.
    listed = place.py.capsule_runs.exec_and_wait(place.run, "mt secret-list --json && mt capsule-run-list --json")
    assert listed.exit_code == 0 and '"canary"' in listed.output_standard, listed.output_error
    assert CANARY not in listed.output_standard
    for line in ("mt secret-list", "mt --help > /dev/null; MAITENTO_URL=unix:/run/maitento/api.sock mt whoami",
                 "curl -sS --unix-socket /run/maitento/api.sock http://x/v1/whoami", "cat /home/maitento/.maitento/*"):
        done = place.py.capsule_runs.exec_and_wait(place.run, line, run_as_user="sandbox")
        assert done.exit_code != 0 and "canary" not in done.output_standard, (line, done.output_standard)


def test_o31_records_name_it_and_tell_nothing(place):
    run = place.run.id
    texts = [str(place.api.call("GET", path)) for path in (
        f"/v1/capsule-runs/{run}?story=true", f"/v1/capsule-runs/{run}/commands", "/v1/capsule-runs",
        "/v1/namespaces/o31/secrets", "/v1/namespaces/o31/secrets/canary", "/v1/namespaces/o31/capsules/c",
        "/v1/namespaces/o31/vfs", "/v1/images", "/v1/doctor", "/openapi.json")]
    texts.append(str(place.api.call("POST", "/v1/namespaces/o31/capsules/c/runs?dryRun=true",
                                    {"secrets": [{"secret": "bytes", "mountName": "more"}]})))
    assert "'secret': 'canary'" in texts[-1] and "'mountName': 'token'" in texts[-1]
    assert "'secret': 'bytes'" in texts[-1]
    for status, body in ((409, {"name": "canary", "value": CANARY}), (400, {"name": "x", "value": [CANARY]}),
                         (400, {"name": "X", "value": CANARY}), (400, {"name": "x", "value": CANARY, "more": 1}),
                         (400, {"name": "x", "valueBase64": CANARY + "!"}), (413, {"name": "x", "value": CANARY * 3000})):
        got, answer = place.server.request("POST", "/v1/namespaces/o31/secrets", body)
        assert got == status, (got, answer)
        texts.append(str(answer))
    # A start-up command that fails: what it prints is its own, not what it was given.
    failed = place.py.capsules.run("c", "o31", startup=[{"command": "cat /mnt/secrets/token > /dev/null; exit 3"}])
    assert failed.status == "Error" and "exit code 3" in failed.failure_details
    texts.append(str(failed.raw))
    assert not [t for t in texts if CANARY in t]


def outside(place):
    """Every file that the server and the runner have, but the disks of the runs, and what is in it."""
    for folder, _, names in os.walk(place.server.dir):
        for path in (Path(folder) / name for name in names if name != "scratch.img"):
            try:
                if path.is_file() and not path.is_symlink():
                    yield path, path.read_bytes()
            except FileNotFoundError:  # removed meanwhile
                pass


def test_o31_logs_files_and_processes_outside_have_no_copy(place):
    place.py.secrets.set("bytes", CANARY.encode() + b"\xfe", "o31")
    second = place.py.capsules.start("c", "o31", secrets=[{"secret": "bytes", "mountName": "more"}])
    place.py.capsule_runs.wait(second, "ready")
    place.py.capsule_runs.terminate(second)
    seen = []
    for path, content in outside(place):
        seen.append(path.name)
        assert CANARY.encode() not in content, path
    assert {"maitento.db", "maitentod.log", "mt-runner.log", "journal"} <= set(seen), seen
    assert '"level":"debug"' in (place.server.dir / "mt-runner.log").read_text().replace(" ", "")
    ours = {place.server.server.pid, place.server.runner.pid}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                assert CANARY.encode() not in text, text
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) in ours:
                    ours.add(int(entry.name))
            except OSError:
                pass
    assert len(ours) >= 3
    for pid in sorted(ours):
        assert CANARY.encode() not in memory(pid), pid
    assert CANARY.encode() in memory(os.getpid())  # the search finds what is there


def memory(pid):
    """What a process may write to, in one piece."""
    found = []
    try:
        with open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                span, rights = line.split()[:2]
                first, last = (int(n, 16) for n in span.split("-"))
                if rights.startswith("rw") and last - first < 256 << 20:
                    try:
                        mem.seek(first)
                        found.append(mem.read(last - first))
                    except OSError:
                        pass
    except (FileNotFoundError, ProcessLookupError):
        pass
    return b"".join(found)


def test_o31_the_hosts_mounts_do_not_show_it(place):
    assert "secrets" not in Path("/proc/self/mountinfo").read_text()
    assert "secrets" not in Path(f"/proc/{place.server.runner.pid}/mountinfo").read_text()
    inside = place.sh("cat /proc/self/mountinfo").output_standard
    assert re.search(r" / /mnt/secrets ro,nosuid,nodev,noexec", inside), inside


def test_o31_nothing_is_left_when_the_run_has_ended(place):
    place.py.capsule_runs.terminate(place.run)
    ended = place.api.get({"id": place.run.id})
    assert ended["endReason"] == "terminated" and CANARY not in str(ended)
    for path, content in outside(place):
        assert CANARY.encode() not in content, path
