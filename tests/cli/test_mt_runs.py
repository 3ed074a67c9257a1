# SPDX-License-Identifier: Apache-2.0
"""Runs: start, wait, list, show, stop."""
import json
import signal
import subprocess
import time

from fake import Cut, Problem
from paper import MT, finish_next


def test_start_of_an_auto_terminate_capsule_waits(mt, fake):
    finish_next(fake)
    done = mt("capsule-start", "report")
    assert done.out == fake.runs[0]["id"] + "\n" and "Finished in 2.00 s" in done.err
    finish_next(fake, status="Error", reason="startFailed", details="Startup command failed: x - no\nsuch\x1b")
    done = mt("capsule-start", "report", code=1)
    assert "mt: Error (startFailed): Startup command failed: x - no\nsuch?\n" in done.err
    finish_next(fake, reason="terminated", details="stopped by ada")
    assert "Finished (terminated): stopped by ada" in mt("capsule-start", "bench", "--wait").err
    finish_next(fake)
    assert json.loads(mt("capsule-start", "report", "--json").out)["status"] == "Finished"


def test_start_of_one_that_stays_up_returns(mt, fake):
    assert mt("capsule-start", "bench").out == fake.runs[0]["id"] + "\n"
    assert json.loads(mt("capsule-start", "report", "--no-wait", "--json").out)["status"] == "Starting"
    mt("capsule-start", "bench", "--label", "a=b=c", "--max-duration", "90s", "--version", "3")
    assert json.loads(fake.runs[0]["body"]) == {"version": 3, "maxDuration": "00:01:30", "labels": {"a": "b=c"}}
    mt("capsule-start", "nope", code=3)
    assert len(fake.runs) == 3


def test_a_start_that_is_cut_off_is_never_done_twice(mt, fake):
    state = {"cuts": 3}

    def cut(r, m):
        if state["cuts"]:
            state["cuts"] -= 1
            fake.start_run(r, ["work", "", "bench"])  # it was done; the answer is lost
            raise Cut
    fake.on("POST", ".*/runs", cut)
    done = mt("capsule-start", "bench")
    assert len(fake.runs) == 1 and done.out == fake.runs[0]["id"] + "\n"
    keys = {r.headers["Idempotency-Key"] for r in fake.asked("POST", "/runs$")}
    assert len(keys) == 1 and len(fake.asked("POST", "/runs$")) == 4


def test_waiting_for_capacity(mt, fake):
    state = {"full": 2}

    def full(r, m):
        if state["full"]:
            state["full"] -= 1
            raise Problem(429, "capacityExceeded", "64 runs live already", {"Retry-After": "1"})
    fake.on("POST", ".*/runs", full)
    assert "64 runs" in mt("capsule-start", "bench", code=1).err
    begin = time.monotonic()
    mt("capsule-start", "bench", "--wait-for-capacity")
    assert time.monotonic() - begin >= 1


def test_a_wait_outlives_a_restart_of_the_server(fake, environment):
    with subprocess.Popen([MT, "capsule-start", "report"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        assert p.stdout.readline()
        fake.await_asked("GET", "/v1/capsule-runs/")
        fake.on("GET", "/v1/capsule-runs/.*", lambda r, m: (_ for _ in ()).throw(Cut()))
        time.sleep(0.3)
        fake.stop()
        time.sleep(1)
        fake.finish(fake.runs[0])
        fake.overrides.clear()
        fake.start()
        _, err = p.communicate(timeout=60)
    assert p.returncode == 0 and b"Finished" in err


def test_interrupting_a_wait_says_that_the_run_goes_on(fake, environment):
    with subprocess.Popen([MT, "capsule-start", "report"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        run = p.stdout.readline().strip()
        fake.await_asked("GET", "/v1/capsule-runs/")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
    assert p.returncode == 130 and f"mt capsule-terminate {run} stops it" in err
    fake.finish(fake.runs[0])


def test_ids_by_their_ending_and_last(mt, fake):
    for _ in range(3):
        mt("capsule-start", "bench")
    fake.runs[0]["startedBy"] = "somebody else"
    whole = fake.runs[1]["id"]
    assert json.loads(mt("capsule-run-get", "@last", "--json").out)["id"] == whole
    assert json.loads(mt("capsule-run-get", whole[-6:], "--json").out)["id"] == whole
    fake.runs[0]["id"] = "11" + whole[2:]
    assert "more than one run" in mt("capsule-run-get", whole[-6:], code=5).err
    assert "no run's id ends in" in mt("capsule-run-get", "ffffff", code=3).err
    assert "last 6 characters or more" in mt("capsule-run-get", "abc", code=2).err


def test_await_and_terminate(mt, fake):
    mt("capsule-start", "bench")
    begin = time.monotonic()
    assert "still Starting" in mt("capsule-run-await", "@last", "--timeout", "1s", code=124).err
    assert 0.9 < time.monotonic() - begin < 20
    fake.runs[0]["status"] = "Running"
    assert mt("capsule-run-await", "@last", "--until", "ready").out == "Running\n"
    assert "terminated" in mt("capsule-terminate", "@last").err
    assert "terminated" in mt("capsule-terminate", "@last").err
    assert mt("capsule-run-await", "@last").out == "Finished\n"
    fake.finish(fake.runs[0], status="Error", reason="timeout", details="out of time")
    assert "out of time" in mt("capsule-run-await", "@last", code=1).err


def test_run_list_get_and_story(mt, fake):
    for _ in range(3):
        mt("capsule-start", "bench")
    fake.finish(fake.runs[0], status="Error", reason="outOfMemory", details="killed: out of memory (limit 2 GiB)")
    assert len(mt("capsule-run-list", "--limit", "2").out.splitlines()) == 2
    assert fake.requests[-1].query["namespace"] == "work"
    mt("capsule-run-list", "--all", "--capsule", "a b", "--status", "Error")
    assert fake.requests[-1].query == {"capsule": "a b", "status": "Error", "limit": "50"}
    assert "outOfMemory" in mt("capsule-run-get", "@last").out
    story = mt("capsule-run-get", "@last", "--story").out
    assert "mounts" in story and "1.234 ms" in story and "ended: Error, outOfMemory" in story


def test_run_ids_are_asked_of_the_server_in_one_small_page(mt, fake):
    for _ in range(3):
        mt("capsule-start", "bench")
    whole = fake.runs[1]["id"]
    fake.requests.clear()
    mt("capsule-run-get", whole[-8:])
    mt("capsule-run-get", "@last")
    assert [r.query for r in fake.asked("GET", "^/v1/capsule-runs$")] == [
        {"idEnding": whole[-8:], "limit": "2"}, {"mine": "true", "limit": "1"}]
    assert "is no run id" in mt("capsule-run-get", "@lst", code=2).err


def test_a_small_peak_of_memory_is_not_shown_as_none(mt, fake):
    mt("capsule-start", "bench")
    fake.runs[0]["memoryPeakBytes"] = 300 << 10
    assert "300KiB at its peak" in mt("capsule-run-get", "@last").out
