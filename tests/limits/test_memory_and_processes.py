"""Programs that take all memory or all processes of their run: they are told why, nobody else is."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mtserver
from helpers import MIB, Neighbour, execute, result, send, stay, status

HOG = "x = bytearray(64 * 10**9)"


def python(api, run, code, **more):
    return api.call("POST", f"/v1/capsule-runs/{run['id']}/commands",
                    {"command": "python3", "arguments": ["-c", code], **more}, 201)


def mt(server, *arguments):
    environment = {**os.environ, **server.environment()}
    return subprocess.run([mtserver.program("mt"), *arguments], env=environment, capture_output=True, text=True,
                          timeout=60, check=False)


# ---- memory ----

GROW = "import time\nx = []\nwhile True: x.append(b'x' * (1 << 20)); time.sleep(0.002)"


def test_o10_a_memory_hog_ends_with_its_reason(api, ns, server):
    with Neighbour(api):
        run = stay(api, ns, limits={"memory": "96MiB"})
        for code in (GROW, HOG):
            ended = result(api, run, python(api, run, code))
            if code is HOG and ended["exitCode"] == 1:  # the kernel may refuse so much at once: the program says it
                assert "MemoryError" in ended["outputError"], ended
                continue
            assert (ended["exitCode"], ended["endReason"], ended["limitsReached"]) == (137, "outOfMemory", ["memory"]), ended
            assert "out of memory (limit 96 MiB)" in ended["failureDetails"], ended
            shown = mt(server, "capsule-command-get", run["id"], ended["id"]).stdout
            assert "limit met   memory (limits.memory)" in shown and "out of memory (limit 96 MiB)" in shown, shown
            told = mt(server, "capsule-command-await", run["id"], ended["id"])
            assert told.returncode == 137 and "out of memory (limit 96 MiB)" in told.stderr, told
        assert execute(api, run, "echo ok")["outputStandard"] == "ok\n"
        assert status(api, run)["status"] == "Running"
        api.terminate(run)
        ended = api.get(run)
    assert ended["endReason"] == "terminated" and ended["limitsReached"] == ["memory"], ended
    assert 90 * MIB < ended["memoryPeakBytes"] <= 97 * MIB, ended
    shown = mt(server, "capsule-run-get", run["id"]).stdout
    assert "limit met   memory (limits.memory)" in shown, shown


def test_o10_a_child_that_dies_of_memory_while_its_shell_goes_on(api, ns):
    run = stay(api, ns, limits={"memory": "96MiB"})
    ended = execute(api, run, f'python3 -c "{GROW}"; echo went on; exit 0')
    assert (ended["status"], ended["exitCode"], ended["outputStandard"]) == ("Finished", 0, "went on\n"), ended
    assert ended["limitsReached"] == ["memory"], ended
    # a time limit is never called out of memory
    timed = execute(api, run, "sleep 30", maxDuration="00:00:01")
    assert (timed["endReason"], timed["limitsReached"]) == ("timeout", []), timed
    api.terminate(run)


def test_o10_a_start_up_command_that_dies_of_memory(api, ns):
    api.capsule(ns, [{"command": "python3", "arguments": ["-c", GROW]}], limits={"memory": "64MiB"})
    run = api.run(ns, "c")
    assert (run["status"], run["endReason"], run["limitsReached"]) == ("Error", "startFailed", ["memory"]), run
    assert "out of memory (limit 64 MiB)" in run["failureDetails"], run


def test_o10_a_hog_in_the_background_leaves_the_run_alive(api, ns):
    with Neighbour(api):
        api.capsule(ns, [{"command": "python3", "arguments": ["-c", GROW], "wait": False},
                         {"command": "sh", "arguments": ["-c", "sleep 1000"], "wait": False}], limits={"memory": "64MiB"})
        run = api.get(api.start(ns, "c"), until="ready")
        hog = python(api, run, GROW, **{"async": True})
        assert result(api, run, hog)["endReason"] == "outOfMemory"
        api.terminate(run)
        ended = api.get(run)
    assert (ended["endReason"], ended["limitsReached"]) == ("terminated", ["memory"]), ended


# ---- processes ----

STORM = "i=0; while [ $i -lt 20000 ]; do sleep 60 & i=$((i+1)); done"


def test_o11_a_fork_storm_stays_in_its_run(api, ns, server):
    with Neighbour(api):
        run = stay(api, ns, users=[{"name": "sandbox"}], limits={"pids": 100})
        storm = send(api, run, STORM, runAsUser="sandbox", **{"async": True})
        for _ in range(20):
            answer = execute(api, run, "echo ok")
            if answer["outputStandard"] != "ok\n":  # its processes could not be made: then it says which limit
                assert answer["status"] == "Error" and answer["limitsReached"] == ["pids"], answer
                assert "100" in answer["failureDetails"], answer
        assert status(api, run)["status"] == "Running"
        begun = time.monotonic()
        api.terminate(run)
        ended = api.get(run, seconds=30)
        assert (ended["endReason"], ended["limitsReached"]) == ("terminated", ["pids"]), ended
        assert time.monotonic() - begun < 10
        assert result(api, run, storm)["status"] in ("Aborted", "Error")
    shown = mt(server, "capsule-run-get", run["id"]).stdout
    assert "limit met   processes (limits.pids)" in shown, shown


def test_o11_a_fork_storm_that_ends_says_what_it_met(api, ns):
    run = stay(api, ns, limits={"pids": 50})
    ended = execute(api, run, "for i in $(seq 100); do sleep 1000 & done; true")
    assert ended["limitsReached"] == ["pids"], ended
    failed = execute(api, run, "for i in $(seq 100); do sleep 1000 & done; exit 3")
    assert "limit of processes (50)" in failed["failureDetails"] or "cannot make a process" in failed["failureDetails"], failed
    api.terminate(run)


def test_startup_fork_storm(api, ns):
    run = api.shell(ns, "for i in $(seq 100); do sleep 1000 & done; exit 7", limits={"pids": 50})
    assert (run["endReason"], run["limitsReached"]) == ("startFailed", ["pids"]), run
