# SPDX-License-Identifier: Apache-2.0
"""Runs of apps go on when the server was killed, at whatever call: same result, each effect once."""
import http.client
import json
import mmap
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

import mtserver
from programs import GATE, SLEEPER

EVERY = int(os.environ.get("MT_APP_KILLS", "3"))  # of the writes of the store; each sync of it is one
CAPSULES = {"capsules/c.mtr": 'image = "slim"\nmaxDuration = "00:10:00"\n'
                              'limits = { memory = "64MiB", disk = "64MiB", pids = 64 }\n'}

# Everything that reaches outside, each in a way that shows when it is done twice.
WORK = """
jsonObject main(string path) {
	guid run = CapsuleStart("c", "", "[]", "[]", "[]");
	jsonObject ready = CapsuleWaitUntilStarted(run);
	PrintLine("capsule: " + JsonObjectGet(ready, "status"));
	guid first = CapsuleExec(run, "echo first >> log; cat log", "[]", "", 0, false);
	guid second = CapsuleExec(run, "echo second >> log; cat log", "[]", "", 0, false);
	guid ended = AwaitAny(JsonArrayAddGuid(JsonArrayAddGuid(JsonArrayCreate(), second), first));
	jsonObject done = CapsuleCommandAwait(run, second);
	VfsWriteText("work", path, JsonObjectGet(done, "outputStandard"));
	string text = VfsReadText("work", path);
	PrintLine(text);
	AppStateSetOutputInt("length", StringLength(text));
	LogInfo("written");
	jsonObject chance = JsonObjectSetInt(JsonObjectCreate(), "moment", TimeNow());
	chance = JsonObjectSetInt(chance, "number", RandomInt(1, 1000000000));
	chance = JsonObjectSetGuid(chance, "id", GuidCreate());
	PrintLine(JsonObjectToString(chance));
	AppStateSetOutputObject("chance", chance);
	CapsuleTerminate(run);
	chance = JsonObjectSetGuid(chance, "ended", ended);
	chance = JsonObjectSetGuid(chance, "first", first);
	return(JsonObjectSetGuid(chance, "run", run));
}
"""


def kill(server, name="server"):
    process = getattr(server, name)
    process.kill()
    process.wait()


def restart(server):
    kill(server)
    server.start_server()


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def check_work(apps, run, path):
    """That the run did all of WORK, and each part of it once."""
    assert (run["status"], run["endReason"]) == ("Finished", "returned"), run
    result = run["returnValue"]
    capsule = result["run"]
    chance = {name: result[name] for name in ("moment", "number", "id")}
    assert [line["text"] for line in run["consoleOutputs"]] == [
        "capsule: Running\n", "first\nsecond\n\n", json.dumps(chance, separators=(",", ":")) + "\n"]
    assert run["consoleOutputsFullCount"] == 3
    assert run["outputs"] == {"length": len("first\nsecond\n"), "chance": chance}
    assert result["ended"] == result["first"]
    assert [line["text"] for line in apps.lines(run, what="log")["items"]] == ["written"]
    assert apps.api.read(apps.ns, "work", path) == b"first\nsecond\n"
    started = [r for r in apps.call("GET", f"/v1/capsule-runs?namespace={apps.ns}&limit=1000")["items"]
               if r["parentAppRunId"] == run["id"]]
    assert [r["id"] for r in started] == [capsule]
    commands = apps.call("GET", f"/v1/capsule-runs/{capsule}/commands")["items"]
    assert [c["command"] for c in sorted(commands, key=lambda c: c["id"])] == [
        "echo first >> log; cat log", "echo second >> log; cat log"]
    assert apps.api.get({"id": capsule})["endReason"] == "terminated"


class Killer:
    """Kills the server at the n-th sync or write of its store, by whatever thread of it, once it is armed."""
    COUNTS = {"fdatasync": 0, "pwrite64": 4}

    def __init__(self, server, folder):
        library = folder / "kill_at.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, Path(__file__).with_name("kill_at.c")],
                       check=True)
        (folder / "counts").write_bytes(bytes(4096))
        with open(folder / "counts", "r+b") as file:
            self.counts = mmap.mmap(file.fileno(), 4096)
        server.server_environment = {**os.environ, "LD_PRELOAD": str(library), "MT_TEST_KILL": str(folder / "counts")}
        restart(server)

    def arm(self, call, n):
        struct.pack_into("i", self.counts, self.COUNTS[call], n)

    def disarm(self, call):
        """Whether it came to the kill."""
        left, = struct.unpack_from("i", self.counts, self.COUNTS[call])
        self.arm(call, 0)
        return left == 0


def start_patiently(apps, key):
    """Starts WORK, by the same key however often the server is killed meanwhile; the run and its path."""
    path = f"/{key}.txt"
    for _ in range(2):
        try:
            return apps.start("work", {"path": path}, {"Idempotency-Key": key}, expect=(200, 201)), path
        except (OSError, http.client.HTTPException):
            apps.api.server.server.wait()
            apps.api.server.start_server()
    raise AssertionError("the server was killed once only")


def run_with_kill(apps, killer, call, n):
    """Whether the server was killed on the way."""
    server = apps.api.server
    process = server.server
    killer.arm(call, n)
    run, path = start_patiently(apps, f"{call}-{n}")
    try:
        ended = apps.end(run)
    except (OSError, http.client.HTTPException):
        ended = None
    killed = killer.disarm(call)
    if killed and server.server is process:  # the kill may also come after the end was told
        process.wait()
        server.start_server()
    check_work(apps, ended or apps.end(run), path)
    return killed


@pytest.mark.parametrize("call, step", [("fdatasync", 1), ("pwrite64", EVERY)])
def test_it_is_killed_at_each_write_to_the_store(own_apps, tmp_path, call, step):
    """A sync comes when a call is written but told to nobody; a write of the log when it is not yet, or by half."""
    own_apps.api.deploy(own_apps.ns, CAPSULES)
    own_apps.deploy(work=WORK)
    killer = Killer(own_apps.api.server, tmp_path)
    n = kills = 0
    while run_with_kill(own_apps, killer, call, n + 1):
        n += step
        kills += 1
        assert kills < 400, "it never gets through"
    print(f"\n{kills} kills at {call}")
    assert kills * step >= 16, "at least as many as the program has calls"


def gated(program):
    """The program with a gate before each statement of main that begins a line of its own with //@."""
    lines, number = [], 0
    for line in program.splitlines():
        if line.strip().startswith("//@"):
            number += 1
            line = f'\twhile (!VfsExists("work", "/go-{number}")) {{ Sleep(20); }}'
        lines.append(line)
    return "\n".join(lines) + "\n", number


def test_it_is_killed_in_each_pause_of_one_run(own_apps):
    """Server or runner, in turn, while the same run goes on."""
    program = WORK
    for begin in ("\tguid first", "\tguid second", "\tguid ended", "\tVfsWriteText", "\tPrintLine(text)", "\tLogInfo",
                  "\tjsonObject chance", "\tCapsuleTerminate"):
        assert begin in program
        program = program.replace(begin, "\t//@\n" + begin)
    program, gates = gated(program)
    own_apps.api.deploy(own_apps.ns, CAPSULES)
    own_apps.deploy(work=program)
    run = own_apps.start("work", {"path": "/text"})
    server = own_apps.api.server
    for number in range(1, gates + 1):
        seen = own_apps.call("GET", f"/v1/app-runs/{run['id']}")["callCount"]
        wait_for(lambda: own_apps.call("GET", f"/v1/app-runs/{run['id']}")["callCount"] >= seen + 4, "it asks for the file")
        if number % 3 == 0:
            kill(server, "runner")
            server.start_runner()
        else:
            restart(server)
        own_apps.api.write(own_apps.ns, "work", f"/go-{number}", "")
    check_work(own_apps, own_apps.end(run), "/text")


def test_many_runs_at_once_go_on(own_apps):
    own_apps.deploy(wait=GATE + """
string main(int number) {
	PrintLine("before " + number);
	gate();
	PrintLine("after " + number);
	return("" + number * number);
}
""")
    runs = [own_apps.start("wait", {"number": n}) for n in range(60)]
    for _ in range(3):
        restart(own_apps.api.server)
    own_apps.open_gate()
    for n, run in enumerate(runs):
        ended = own_apps.end(run)
        assert (ended["status"], ended["returnValue"]) == ("Finished", str(n * n)), ended
        assert [line["text"] for line in ended["consoleOutputs"]] == [f"before {n}\n", f"after {n}\n"]


def test_a_sleep_does_not_become_longer(own_apps):
    own_apps.deploy(sleep="""
int main() {
	int begin = TimeNow();
	Sleep(6000);
	return(TimeNow() - begin);
}
""")
    run = own_apps.start("sleep")
    wait_for(lambda: own_apps.call("GET", f"/v1/app-runs/{run['id']}")["callCount"] >= 2, "it sleeps")
    began = time.monotonic()
    kill(own_apps.api.server)
    time.sleep(max(0, 4.5 - (time.monotonic() - began)))  # the absence itself is what is tested
    own_apps.api.server.start_server()
    ended = own_apps.end(run)
    assert 6000 <= ended["returnValue"] < 6000 + 4000, "begun anew it were 10500 at least"


def test_a_sleep_that_was_over_while_the_server_was_away(own_apps):
    own_apps.deploy(sleep="int main() {\n\tint begin = TimeNow();\n\tSleep(1000);\n\treturn(TimeNow() - begin);\n}\n")
    run = own_apps.start("sleep")
    wait_for(lambda: own_apps.call("GET", f"/v1/app-runs/{run['id']}")["callCount"] >= 2, "it sleeps")
    kill(own_apps.api.server)
    time.sleep(1.5)  # as above
    own_apps.api.server.start_server()
    assert own_apps.end(run)["returnValue"] >= 1000


def test_the_longest_duration_counts_the_absence(own_apps):
    own_apps.api.deploy(own_apps.ns, CAPSULES)
    own_apps.deploy(long={"long.mtc": 'void main() {\n\tguid run = CapsuleStart("c", "", "[]", "[]", "[]");\n'
                                      '\tSleep(600000);\n\tCapsuleTerminate(run);\n}\n',
                          "long.mtr": 'duration.max = "00:00:03"\n'})
    run = own_apps.start("long")
    wait_for(lambda: own_apps.call("GET", f"/v1/app-runs/{run['id']}")["callCount"] >= 2, "it sleeps")
    kill(own_apps.api.server)
    time.sleep(3.5)  # as above
    own_apps.api.server.start_server()
    ended = own_apps.end(run, seconds=20)
    assert (ended["status"], ended["endReason"], ended["limitMs"]) == ("Error", "timeout", 3000), ended
    (capsule,) = own_apps.call("GET", f"/v1/capsule-runs?namespace={own_apps.ns}")["items"]
    assert own_apps.api.get(capsule)["endReason"] == "parentEnded"


def test_what_ended_while_the_server_was_away(own_apps):
    """A command and a capsule run, each waited for."""
    own_apps.api.call("POST", f"/v1/namespaces/{own_apps.ns}/vfs", {"name": "signs"}, 201)
    own_apps.api.deploy(own_apps.ns, {"capsules/c.mtr": CAPSULES["capsules/c.mtr"] +
                                      'vfs = [{ vfs = @ref("signs"), mountName = "signs" }]\n'})
    own_apps.deploy(wait="""
string main() {
	guid run = CapsuleStart("c", "", "[]", "[]", "[]");
	guid command = CapsuleExec(run, "touch /mnt/signs/begun; sleep 1; echo done; touch /mnt/signs/done", "[]", "", 0, false);
	return(JsonObjectGet(CapsuleCommandAwait(run, command), "outputStandard"));
}
""")
    run = own_apps.start("wait")
    server = own_apps.api.server
    (vfs,) = [v["id"] for v in own_apps.call("GET", f"/v1/namespaces/{own_apps.ns}/vfs")["items"] if v["name"] == "signs"]
    folder = server.dir / "state" / "vfs" / vfs / "files"
    wait_for((folder / "begun").exists, "the command runs")
    kill(server)
    wait_for((folder / "done").exists, "the command is done")
    server.start_server()
    ended = own_apps.end(run)
    assert (ended["status"], ended["returnValue"]) == ("Finished", "done\n"), ended
    (capsule,) = own_apps.call("GET", f"/v1/capsule-runs?namespace={own_apps.ns}")["items"]
    assert capsule["status"] == "Running", "what a run leaves that returned lives on"
    own_apps.api.terminate(capsule)


def test_a_cancel_is_kept(own_apps):
    """One that was answered holds, though the server is killed at once; one that nobody hears is none."""
    own_apps.deploy(sleeper=SLEEPER)
    run, other = own_apps.start("sleeper"), own_apps.start("sleeper")
    own_apps.call("POST", f"/v1/app-runs/{run['id']}/cancel")
    kill(own_apps.api.server)
    with pytest.raises(OSError):
        own_apps.call("POST", f"/v1/app-runs/{other['id']}/cancel")
    own_apps.api.server.start_server()
    ended = own_apps.end(run)
    assert (ended["status"], ended["endReason"]) == ("Error", "cancelled") and ended["cancelledBy"]
    assert own_apps.call("GET", f"/v1/app-runs/{other['id']}")["status"] == "Running"
    assert own_apps.cancel(other)["endReason"] == "cancelled"


@pytest.mark.parametrize("program, status, reason", [
    ('throw("no more");', "Error", "parentEnded"),
    ('PrintLine("" + 1 / StringLength(""));', "Error", "parentEnded"),
    ('return;', "Finished", None)], ids=["throws", "fails", "returns"])
def test_what_a_run_leaves_behind(own_apps, program, status, reason):
    """Capsules of one that failed are stopped, also when the server is killed just then; of one that returned they live."""
    own_apps.api.deploy(own_apps.ns, CAPSULES)
    own_apps.deploy(leave=GATE + 'void main() {\n\tguid one = CapsuleStart("c", "", "[]", "[]", "[]");\n'
                    '\tguid two = CapsuleStart("c", "", "[]", "[]", "[]");\n\tCapsuleWaitUntilStarted(one);\n'
                    '\tCapsuleWaitUntilStarted(two);\n\tgate();\n\t' + program + "\n}\n")
    run = own_apps.start("leave")
    capsules = f"/v1/capsule-runs?namespace={own_apps.ns}"
    wait_for(lambda: [c["status"] for c in own_apps.call("GET", capsules)["items"]] == ["Running"] * 2, "two capsules run")
    own_apps.open_gate()
    ended = own_apps.end(run)
    restart(own_apps.api.server)
    assert ended["status"] == status, ended
    for capsule in own_apps.call("GET", capsules)["items"]:
        if reason:
            stopped = own_apps.api.get(capsule)
            assert stopped["endReason"] == reason and run["id"] in stopped["failureDetails"], stopped
        else:
            assert capsule["status"] == "Running"
            own_apps.api.terminate(capsule)


def test_an_app_that_an_app_started(own_apps):
    """Both are taken up, and what the inner one returns gets to the outer one."""
    own_apps.deploy(inner=GATE + 'int main(int n) {\n\tgate();\n\treturn(n + 1);\n}\n', outer="""
int main() {
	jsonObject inputs = JsonObjectSetInt(JsonObjectCreate(), "n", 41);
	jsonObject done = AppAwait(AppStart("inner", inputs, ""));
	return(JsonObjectGetInt(done, "returnValue"));
}
""")
    run = own_apps.start("outer")
    wait_for(lambda: len(own_apps.list()) == 2, "the inner one was started")
    restart(own_apps.api.server)
    own_apps.open_gate()
    assert own_apps.end(run)["returnValue"] == 42
    assert len(own_apps.list()) == 2


def test_a_server_that_ends_in_peace_leaves_its_runs(own_apps):
    own_apps.deploy(wait=GATE + "int main() {\n\tgate();\n\treturn(7);\n}\n")
    run = own_apps.start("wait")
    server = own_apps.api.server
    for _ in range(8):  # the run's next request may come in any moment of the way down
        server.server.terminate()
        assert server.server.wait(30) == 0
        server.start_server()
        assert own_apps.call("GET", f"/v1/app-runs/{run['id']}")["status"] == "Running"
    own_apps.open_gate()
    assert own_apps.end(run)["returnValue"] == 7


def test_who_waits_is_answered_by_a_server_that_stops(own_apps):
    """How it stands is told at once, so that a stop takes no longer for those who wait."""
    own_apps.deploy(sleeper=SLEEPER)
    run = own_apps.start("sleeper")
    assert own_apps.lines(run)["items"]
    server = own_apps.api.server
    waiter = mtserver.UnixConnection(server.socket, 60)
    waiter.request("GET", f"/v1/app-runs/{run['id']}?wait=50")
    for _ in range(3):  # it has come in when others after it are answered
        own_apps.call("GET", f"/v1/app-runs/{run['id']}")
    server.server.send_signal(signal.SIGTERM)
    answer = waiter.getresponse()
    assert (answer.status, json.loads(answer.read())["status"]) == (200, "Running")
    assert server.server.wait(30) == 0
    server.start_server()
    assert own_apps.cancel(run)["endReason"] == "cancelled"
