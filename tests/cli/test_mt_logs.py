# SPDX-License-Identifier: Apache-2.0
"""mt capsule-logs: the story and the outputs, each byte once, whatever breaks."""
import base64
import json
import subprocess
import time

import pytest

from fake import Cut, Problem
from paper import MT, later, on_terminal


@pytest.fixture()
def run(fake, mt):
    mt("capsule-start", "bench")
    run = fake.runs[0]
    run["status"] = "Running"
    fake.tell(run, "phase", "root done in 0.1 ms")
    fake.tell(run, "ready", "ready: Running")
    return run


def send(fake, mt, line, *words):
    mt("capsule-exec", "@last", line, *words)
    return fake.commands[-1]


def stop(fake, run):
    fake.tell(run, "ending", "ending: terminated")
    fake.tell(run, "ended", "ended: Finished, terminated: stopped by ada")
    fake.finish(run, reason="terminated", details="stopped by ada")


def marks(done):
    return [line[28:] for line in done.err.splitlines() if line.startswith("-- ")]


def test_story_and_outputs_in_their_order(mt, fake, run):
    first, second = send(fake, mt, "cat", "--args", "x y"), send(fake, mt, "id", "--user", "sandbox")
    fake.begin(first)
    fake.over(first, out=b"\xff\x00out\n", err=b"bad\n")
    fake.begin(second)
    fake.over(second, out=b"no newline")
    stop(fake, run)
    done = mt("capsule-logs", "@last")
    assert done.stdout == b"\xff\x00out\nno newline"
    assert marks(done) == [
        "started by ada: capsule bench, version 1, image slim, for at most 00:10:00", "ready: Running",
        f"command {first['id']} started: cat x y", f"command {first['id']} ended",
        f"command {second['id']} started as sandbox: id", f"command {second['id']} ended",
        "ending: terminated", "ended: Finished, terminated: stopped by ada"]
    lines = done.err.splitlines()
    assert lines.index("bad") == lines.index(next(x for x in lines if f"{first['id']} ended" in x)) - 1
    quiet = mt("capsule-logs", "-q", "@last")
    assert (quiet.stdout, quiet.err) == (done.stdout, "bad\n")


def test_a_story_longer_than_one_answer(mt, fake, run):
    fake.story_part = 300
    for i in range(1000):
        fake.tell(run, "note", f"note {i}")
    stop(fake, run)
    notes = [m for m in marks(mt("capsule-logs", "@last")) if m.startswith("note")]
    assert notes == [f"note {i}" for i in range(1000)]
    story = mt("capsule-run-get", "@last", "--story").out
    assert story.count("note ") == 1000 and "ended: Finished" in story
    assert len(json.loads(mt("capsule-run-get", "@last", "--story", "--json").out)["story"]) == 1004


def test_following_loses_and_repeats_nothing_over_breaks(environment, fake, mt, run):
    """The server cuts answers, is away, comes back: every byte once, in order."""
    command = send(fake, mt, "steps")
    fake.begin(command)
    cuts = []

    def flaky(r, m):
        cuts.append(r.query["from"])
        if len(cuts) % 3 == 0:
            raise Cut
        if len(cuts) % 5 == 0:
            raise Problem(503, "unavailable", "not now")
    fake.on("GET", ".*/output", flaky)

    def play():
        fake.await_asked("GET", "/output$")
        for i in range(6):
            command["spool"]["standard"] += b"out %d\n" % i
            command["spool"]["error"] += b"err %d\n" % i
            time.sleep(0.15)
            if i == 3:
                fake.stop()
                time.sleep(0.5)
                fake.start()
        deadline = time.monotonic() + 30
        while len(cuts) <= 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        fake.over(command)
        command["spool"]["standard"] += b"late\n"  # of a process that the command left behind
        stop(fake, run)
    later(0, play)
    done = subprocess.run([MT, "capsule-logs", "-f", "@last"], env=environment, capture_output=True, timeout=60, check=True)
    assert done.stdout == b"".join(b"out %d\n" % i for i in range(6)) + b"late\n"
    errors = [line for line in done.stderr.splitlines() if line.startswith(b"err")]
    assert errors == [b"err %d" % i for i in range(6)]
    assert done.stderr.count(b"started: steps") == 1 and done.stderr.count(b"ready: Running") == 1
    assert len(cuts) > 5


def test_two_at_once_are_told_apart(mt, fake, run):
    first, second = send(fake, mt, "a", "--async"), send(fake, mt, "b", "--async")
    for command, text in ((first, b"1\n"), (second, b"2\n")):
        fake.begin(command)
        command["spool"]["standard"] += text
    done = mt("capsule-logs", "@last")
    assert done.stdout == b"1\n2\n"
    assert [line for line in done.err.splitlines() if "prints" in line] == [
        f"-- command {c['id'][-8:]} prints:" for c in (first, second)]


def test_one_command_alone_and_since(mt, fake, run):
    first, second = send(fake, mt, "a"), send(fake, mt, "b")
    for command, text in ((first, b"1\n"), (second, b"2\n")):
        fake.begin(command)
        fake.over(command, out=text)
    done = mt("capsule-logs", "-f", "@last", "--command", first["id"][-9:])
    assert done.stdout == b"1\n" and len(marks(done)) == 2
    assert mt("capsule-logs", "@last", "--command", "@last").stdout == b"2\n"
    done = mt("capsule-logs", "@last", "--since", "2026-11-30T05:00:00Z")
    assert done.stdout == b"" and done.err == ""
    for entry in fake.told[run["id"]][-2:]:
        entry["time"] = "2026-11-30T05:30:00Z"
    done = mt("capsule-logs", "@last", "--since", "2026-11-30T05:00:00Z")
    assert done.stdout == b"2\n" and len(marks(done)) == 2
    assert "--since 'x' is neither" in mt("capsule-logs", "@last", "--since", "x", code=2).err
    assert "no command of run" in mt("capsule-logs", "@last", "--command", "ffffff", code=3).err
    assert "is no command id" in mt("capsule-logs", "@last", "--command", "xyz", code=2).err
    assert "is no run id" in mt("capsule-logs", "nonsense", code=2).err


def test_outputs_that_are_no_longer_kept(mt, fake, run):
    gone, cut = send(fake, mt, "old"), send(fake, mt, "long")
    fake.begin(gone)
    fake.over(gone, out=b"the end of it\n", err=b"and of the other\n")
    fake.begin(cut)
    fake.over(cut, out=b"0123456789")
    cut["dropped"] = 4
    fake.on("GET", f".*/{gone['id']}/output", lambda r, m: (_ for _ in ()).throw(Problem(410, "gone", "removed")))
    stop(fake, run)
    done = mt("capsule-logs", "@last")
    assert done.stdout == b"the end of it\n456789" and "and of the other" in done.err
    assert done.err.count("its output is no longer kept; the end of it:") == 1
    assert f"4 bytes of the standard output of command {cut['id']} are no longer kept" in done.err


def test_json_is_a_line_for_each(mt, fake, run):
    command = send(fake, mt, "x")
    fake.begin(command)
    fake.over(command, out=b"a\xff\n", err=b"e")
    stop(fake, run)
    lines = [json.loads(line) for line in mt("capsule-logs", "@last", "--json").out.splitlines()]
    pieces = [x for x in lines if "stream" in x]
    assert [(p["commandId"], p["stream"], p["offset"], base64.b64decode(p["contentBase64"])) for p in pieces] == [
        (command["id"], "standard", 0, b"a\xff\n"), (command["id"], "error", 0, b"e")]
    assert [x["kind"] for x in lines if "kind" in x] == ["phase", "ready", "commandStarted", "commandEnded", "ending", "ended"]


def test_a_run_without_a_machine(mt, fake):
    mt("capsule-start", "bench")
    fake.finish(fake.runs[0], "Error", "startFailed", "no such image")
    assert marks(mt("capsule-logs", "-f", "@last"))[-1] == "ended: Error, startFailed: no such image"


def test_colour_on_a_terminal_only_and_markers_on_lines_of_their_own(environment, mt, fake, run):
    command = send(fake, mt, "x")
    fake.begin(command)
    fake.over(command, out=b"no newline")
    stop(fake, run)
    seen, status = on_terminal(environment, "capsule-logs", "@last", columns=200)
    assert status == 0 and b"no newline\r\n\x1b[2m-- " in seen and b"ended\x1b[0m\r\n" in seen
    seen, _ = on_terminal({**environment, "NO_COLOR": "1"}, "capsule-logs", "@last")
    assert b"\x1b[2m" not in seen
    assert b"\x1b" not in mt("capsule-logs", "@last").stderr


def test_ctrl_c_ends_following_without_a_word(environment, fake, mt, run):
    with subprocess.Popen([MT, "capsule-logs", "-f", "@last"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        while b"ready" not in p.stderr.readline():
            pass
        p.send_signal(2)
        out, err = p.communicate(timeout=20)
    assert p.returncode == 130 and out == err == b""
