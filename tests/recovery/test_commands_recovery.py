"""Kills of server and runner while commands run and wait: nothing is lost, nothing runs twice."""
import os
import re
import subprocess
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

from conftest import mtr, Ref
from test_recovery import leftovers, supervisors, wait_for

COMMANDS = int(os.environ.get("MT_COMMANDS", "40"))  # that run at the same time
EACH = 10  # of them in one run
QUEUED = 5  # that wait in each run
SMALL = {"memory": "64MiB", "disk": "16MiB", "pids": 128}

RUNNING = """printf x >> /mnt/work/once-$0; echo out-$0; echo err-$0 >&2
while [ ! -e /mnt/work/go ]; do sleep 0.2; done
head -c 70000 /dev/zero | tr '\\0' a; echo; echo end-$0 >&2; exit $1"""
WAITING = "printf $0 >> /mnt/work/order-$1; echo queued-$0; exit $0"


class Field:
    """Runs, each with commands that run and commands that wait behind one that runs."""

    def __init__(self, api):
        self.api, self.ns = api, api.namespace("kills")
        api.call("POST", f"/v1/namespaces/{self.ns}/vfs", {"name": "work"}, 201)
        api.deploy(self.ns, {"capsules/c.mtr": mtr({"maxDuration": "00:30:00", "limits": SMALL,
                                                    "vfs": [{"vfs": Ref("work"), "mountName": "work"}]})})
        self.runs = [api.start(self.ns, "c")["id"] for _ in range(COMMANDS // EACH)]
        self.running, self.waiting = {}, {}
        for n, run in enumerate(self.runs):
            for i in range(EACH):
                number = n * EACH + i
                # The last one is not async: what is sent after it waits for it.
                self.running[number] = (run, self.send(run, RUNNING, [str(number), str(number % 200 + 1)], i < EACH - 1))
            self.waiting[n] = [(run, self.send(run, WAITING, [str(i), str(n)], False)) for i in range(QUEUED)]

    def send(self, run, line, arguments, is_async):
        body = {"command": "bash", "arguments": ["-c", line, *arguments], "async": is_async}
        return self.api.call("POST", f"/v1/capsule-runs/{run}/commands", body, 201)["id"]

    def get(self, run, command, wait=0):
        return self.api.call("GET", f"/v1/capsule-runs/{run}/commands/{command}?wait={wait}")

    def names(self, prefix):
        listing = self.api.call("GET", self.api.files(self.ns, "work", "/", "list") + "&limit=1000")
        return [i["name"] for i in listing["items"] if i["name"].startswith(prefix)]

    def go(self):
        self.api.write(self.ns, "work", "/go", "")

    def ended(self, run, command):
        answer = self.get(run, command)
        deadline = 0
        while answer["dateEnded"] is None:
            deadline += 1
            assert deadline < 20, answer
            answer = self.get(run, command, 30)
        return answer

    def check(self):
        for number, (run, command) in self.running.items():
            done = self.ended(run, command)
            assert (done["exitCode"], done["endReason"]) == (number % 200 + 1, "exited"), done
            assert done["outputStandard"] == "a" * 65535 + "\n", (number, done["outputStandard"][:80])
            assert done["outputStandardFullLength"] == len(f"out-{number}\n") + 70001
            assert done["outputError"] == f"err-{number}\nend-{number}\n"
            assert self.api.read(self.ns, "work", f"/once-{number}") == b"x", "it ran once"
        for n, commands in self.waiting.items():
            found = [self.ended(*c) for c in commands]
            assert [d["exitCode"] for d in found] == list(range(QUEUED))
            assert [d["outputStandard"] for d in found] == [f"queued-{i}\n" for i in range(QUEUED)]
            assert self.api.read(self.ns, "work", f"/order-{n}") == "".join(map(str, range(QUEUED))).encode()


def kill(server, name):
    process = getattr(server, name)
    process.kill()
    process.wait()


def test_kills_in_turn_lose_no_command(own):
    server = own.server
    field = Field(own)
    kill(server, "server")  # some runs may still be starting
    server.start_server()
    wait_for(lambda: len(field.names("once-")) == COMMANDS, f"{COMMANDS} commands run", 120)
    kill(server, "runner")
    server.start_runner()
    kill(server, "server")
    server.start_server()
    kill(server, "server")
    kill(server, "runner")
    server.start_server()
    server.start_runner()
    wait_for(lambda: all(field.get(*c)["status"] == "Running" for c in field.running.values()), "all are known to run")
    assert field.names("order-") == []
    field.go()
    kill(server, "server")  # while they end
    kill(server, "runner")
    server.start_runner()
    server.start_server()
    field.check()
    for run in field.runs:
        own.terminate({"id": run})
    for run in field.runs:
        assert own.get({"id": run})["endReason"] == "terminated"
    wait_for(lambda: leftovers(server) == {"cgroups": [], "mounts": []}, "nothing is left", 120)


SYNC_S = 1.5  # that a sync takes below


def has_open(pid, path):
    try:
        files = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False  # it has ended
    return any(leads_to(f, path) for f in files)


def leads_to(link, path):
    try:
        return os.readlink(link) == str(path)
    except OSError:
        return False  # closed meanwhile


def test_an_end_is_told_of_when_it_is_on_the_disk(own):
    """The server has it stored by then: neither who waits nor who asks hears of it before the sync."""
    ns = own.namespace("syncs")
    own.deploy(ns, {"capsules/c.mtr": mtr({"maxDuration": "00:05:00", "limits": SMALL})})
    run = own.get(own.start(ns, "c"), until="ready")["id"]
    supervisor = next(pid for pid in supervisors(own) if has_open(pid, own.server.dir / "state/runs" / run / "journal"))
    # Each sync of this one process begins late.
    tracer = subprocess.Popen(["strace", "-q", "-p", str(supervisor), "-e", "trace=fdatasync",
                               "-e", f"inject=fdatasync:delay_enter={int(SYNC_S * 1e6)}"], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: re.search(r"TracerPid:\t[1-9]", Path(f"/proc/{supervisor}/status").read_text()), "it is traced")
        polled = []

        def poll(path):
            while not polled or polled[-1][1]["status"] != "Finished":
                polled.append((time.time(), own.call("GET", path)))
                time.sleep(0.01)

        command = own.call("POST", f"/v1/capsule-runs/{run}/commands", {"command": "sleep 0.2"}, 201)
        thread = threading.Thread(target=poll, args=(f"/v1/capsule-runs/{run}/commands/{command['id']}",))
        thread.start()
        ended = own.call("GET", f"/v1/capsule-runs/{run}/commands/{command['id']}?wait=30")
        told = time.time()
        thread.join()
        assert ended["status"] == "Finished", ended
        end = datetime.fromisoformat(ended["dateEnded"][:-1]).replace(tzinfo=timezone.utc).timestamp()
        assert told - end > SYNC_S * 0.9 and polled[-1][0] - end < SYNC_S, (told - end, polled[-1][0] - end)
        assert {p[1]["status"] for p in polled[:-1]} <= {"Queued", "Running"}, polled
        began = time.time()
        stopped = own.call("POST", f"/v1/capsule-runs/{run}/terminate?wait=30")
        assert stopped["endReason"] == "terminated" and time.time() - began > SYNC_S * 0.9, stopped
    finally:
        tracer.kill()
        tracer.communicate()
