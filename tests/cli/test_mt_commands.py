# SPDX-License-Identifier: Apache-2.0
"""mt's commands for commands against the server made of paper: bodies, outputs, exit codes, breaks."""
import json
import os
import signal
import subprocess
import threading
import time

import pytest
from fake import Cut, Problem
from paper import MT, later


@pytest.fixture()
def run(fake, mt):
    return mt("capsule-start", "bench").out.strip()


def end_next(fake, after=0.0, **how):
    """Ends the next command that comes."""
    count = len(fake.commands)

    def watch():
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if len(fake.commands) > count:
                time.sleep(after)
                fake.end(fake.commands[count], **how)
                return
            time.sleep(0.02)
    threading.Thread(target=watch, daemon=True).start()


@pytest.mark.parametrize("words, arguments", [
    ([], None),
    (["--args", "-l,/tmp/data"], ["-l", "/tmp/data"]),
    (["--args="], [""]),
    (["--args", ""], [""]),
    (["--args", "a,,b"], ["a", "", "b"]),
    (["--args", ","], ["", ""]),
    (["--args", 'say "hi"'], ['say "hi"']),
    (["--arg", "print(1,2)", "--arg", "-x"], ["print(1,2)", "-x"]),
    (["--args", "-c", "--arg", "print(1,2)"], ["-c", "print(1,2)"]),
    (["--arg", "a", "--", "--json", "-n", "x,y", "--", ""], ["a", "--json", "-n", "x,y", "--", ""]),
])
def test_arguments(mt, fake, run, words, arguments):
    done = mt("capsule-exec", run, "prog", *words)
    assert done.out == fake.commands[0]["id"] + "\n" and done.err == ""
    assert fake.commands[0]["body"] == {"command": "prog", **({"arguments": arguments} if arguments else {})}


def test_a_command_that_comes_after_the_dashes(mt, fake, run):
    mt("capsule-exec", run, "--", "ls", "-l")
    mt("capsule-exec", "--user", "sandbox", "--", run, "ls", "-l")
    assert [c["body"]["arguments"] for c in fake.commands] == [["-l"], ["-l"]]


def test_all_options(mt, fake, run):
    mt("capsule-exec", run, "sort", "-u", "sandbox", "--timeout", "90s", "--async", "--dir", "/tmp", "-e", "A=b=c",
       "--stdin", stdin="zwei\x00\neins é\n".encode())
    assert fake.commands[0]["body"] == {
        "command": "sort", "runAsUser": "sandbox", "maxDuration": "00:01:30", "async": True,
        "workingDirectory": "/tmp", "environment": {"A": "b=c"}, "stdin": "zwei\x00\neins é\n"}


@pytest.mark.parametrize("words, said", [
    (["ls", "-l"], "capsule-exec has no option -l"),
    (["ls", "x"], "go after --"),
    ([], "capsule-exec needs RUN COMMAND"),
    (["ls", "--timeout", "0"], "no duration above zero"),
    (["ls", "--env", "A"], "--env is NAME=VALUE"),
    (["ls", "--arg", b"\xff"], "argument 1 is not UTF-8"),
    (["--", b"\xff"], "the command is not UTF-8"),
])
def test_wrong_calls(mt, fake, run, words, said):
    assert said in mt("capsule-exec", run, *words, code=2).err
    assert said in mt("capsule-exec", "--wait", run, *words, code=125).err
    assert not fake.commands


def test_stdin_is_read_only_when_asked_and_must_be_text(fake, environment, mt, run):
    read, write = os.pipe()
    subprocess.run([MT, "capsule-exec", run, "cat"], stdin=read, env=environment, check=True, timeout=30,
                   capture_output=True)
    os.close(read), os.close(write)
    assert "not UTF-8" in mt("capsule-exec", run, "cat", "--stdin", stdin=b"\xff", code=2).err
    assert "longer than 8 MiB" in mt("capsule-exec", run, "cat", "--stdin", stdin=b"x" * (8 << 20) + b"y", code=2).err


def test_a_loop_keeps_its_input(fake, environment, run):
    script = f"printf 'a\\nb\\nc\\n' | while read x; do {MT} capsule-exec {run} \"echo $x\" >/dev/null; done"
    subprocess.run(["bash", "-c", script], env=environment, check=True, timeout=20)
    assert [c["command"] for c in fake.commands] == ["echo a", "echo b", "echo c"]


# ---- --wait ----

def test_wait_shows_both_outputs_apart_and_passes_the_code(mt, fake, run):
    end_next(fake, out=b"out \xff\x00\n", err=b"error\n", code=3, status="Error")
    done = mt("capsule-exec", run, "--wait", "x", code=3)
    assert done.stdout == b"out \xff\x00\n" and done.stderr == b"error\n"
    end_next(fake)
    assert mt("capsule-exec", run, "x", "-w").stderr == b""
    end_next(fake, code=7, status="Error")
    assert json.loads(mt("capsule-exec", run, "x", "-w", "--json").out)["exitCode"] == 7


def test_wait_shows_output_as_it_comes(fake, environment, run):
    with subprocess.Popen([MT, "capsule-exec", run, "--wait", "x"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        fake.await_asked("GET", "/output$")
        fake.commands[0]["spool"]["standard"] += b"first\n"
        assert p.stdout.readline() == b"first\n"  # while it runs
        fake.commands[0]["spool"]["error"] += b"oh\n"
        assert p.stderr.readline() == b"oh\n"
        fake.end(fake.commands[0], out=b"last", code=4, status="Error")
        out, err = p.communicate(timeout=20)
    assert (p.returncode, out, err) == (4, b"last", b"")


@pytest.mark.parametrize("how, code, said", [
    (dict(status="Error", reason="timeout", code=143, limitMs=60000), 124, "mt: out of time after 60 s"),
    (dict(status="Error", reason="timeout", code=137, limitMs=1500), 124, "mt: out of time after 1.5 s"),
    (dict(status="Aborted", reason="runEnded", code=None, details="the run was stopped by ada"), 125,
     "mt: the command was aborted: the run was stopped by ada"),
    (dict(status="Error", reason="startFailed", code=None, details="there is no folder '/x'"), 125,
     "mt: there is no folder '/x'"),
    (dict(status="Error", reason="outOfMemory", code=137, details="out of memory (limit 2 GiB)"), 137,
     "mt: out of memory (limit 2 GiB)"),
    (dict(status="Error", reason="signaled", code=139, signal=11), 139, None),
    (dict(status="Error", code=124), 124, None),
    (dict(status="Error", code=125), 125, None),
])
def test_ends(mt, fake, run, how, code, said):
    end_next(fake, **how)
    done = mt("capsule-exec", run, "--wait", "x", code=code)
    assert done.err == (said + "\n" if said else "")
    done = mt("capsule-command-await", run, "@last", code=code)
    assert (said or "exit code") in done.err
    assert mt("capsule-command-await", run, "@last", "--json").err == ""


def test_a_run_that_has_ended(mt, fake, run):
    mt("capsule-terminate", run)
    assert "stopped by ada" in mt("capsule-exec", run, "x", code=5).err
    assert "stopped by ada" in mt("capsule-exec", run, "-w", "x", code=125).err


def test_a_send_that_is_cut_off_is_never_done_twice(mt, fake, run):
    state = {"cuts": 3}

    def cut(r, m):
        if state["cuts"]:
            state["cuts"] -= 1
            fake.send_command(r, fake.runs[0])
            raise Cut
    fake.on("POST", ".*/commands", cut)
    mt("capsule-exec", run, "x")
    assert len(fake.commands) == 1 and len(fake.asked("POST", "/commands$")) == 4


def test_a_stream_that_breaks_goes_on_where_it_was(mt, fake, run):
    text = bytes(range(256)) * 40
    state = {"n": 0}

    def cut(r, m):
        command = fake.commands[0]
        state["n"] += 1
        if state["n"] > 12:
            return None
        at = int(r.query["from"])
        piece = command["spool"][r.query["stream"]][at:at + 1000]
        if state["n"] % 3 == 0:
            raise Cut
        if state["n"] % 3 == 1:  # less than was promised
            return 200, piece, {"Content-Length": str(len(piece) + 5), "Connection": "close"}
        return None if command["endReason"] else (200, piece, {"X-Maitento-Offset": str(at)})
    fake.on("GET", ".*/output", cut)
    end_next(fake, after=1, out=text, err=text[::-1], code=9, status="Error")
    done = mt("capsule-exec", run, "-w", "x", code=9)
    assert done.stdout == text and done.stderr == text[::-1]


def test_the_end_of_a_stream_is_not_the_end_of_the_command(mt, fake, run):
    fake.on("GET", ".*/output", lambda r, m: (200, b"", {}) if not fake.commands[0]["endReason"] else None)
    end_next(fake, after=2, out=b"late\n", code=3, status="Error")
    done = mt("capsule-exec", run, "-w", "x", code=3)
    assert done.stdout == b"late\n"
    assert len(fake.asked("GET", "/output$")) < 20


def test_bytes_that_were_dropped_are_told(mt, fake, run):
    end_next(fake, out=b"0123456789", dropped=4)
    done = mt("capsule-exec", run, "-w", "x")
    assert done.stdout == b"456789" and "4 bytes of its standard output were dropped" in done.err


def test_a_server_that_goes_away_for_good_is_unknown(fake, environment, run):
    with subprocess.Popen([MT, "capsule-exec", run, "-w", "x"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        fake.await_asked("GET", "/output$")
        fake.on("GET", ".*", lambda r, m: (_ for _ in ()).throw(Problem(500, "internal", "broken")))
        _, err = p.communicate(timeout=30)
    assert p.returncode == 125 and "broken" in err and "goes on" in err


def test_interrupting_says_that_the_command_goes_on(fake, environment, run):
    with subprocess.Popen([MT, "capsule-exec", run, "-w", "x"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        fake.await_asked("GET", "/output$")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
    command = fake.commands[0]["id"]
    assert p.returncode == 130 and f"mt capsule-command-cancel {command} stops it" in err
    fake.end(fake.commands[0])


def test_a_reader_that_left(fake, environment, run):
    end_next(fake, out=b"y\n" * 500_000)
    done = subprocess.run(["bash", "-c", f"{MT} capsule-exec {run} -w x | head -1; echo ${{PIPESTATUS[0]}}"],
                          env=environment, capture_output=True, timeout=20, check=True)
    assert done.stdout == b"y\n141\n" and done.stderr == b""


# ---- await, get, list, cancel, extend ----

def test_await_prints_outputs_and_the_code(mt, fake, run):
    command = mt("capsule-exec", run, "ls").out.strip()
    fake.end(fake.commands[0], code=2, status="Error", out=b"out\n\x00x", err=b"bad\n",
             outputStandardFullLength=70000)
    for words in ((run, command), (command,), (run, command[-6:]), ("@last", "@last"), ("@last",), (command[-8:],)):
        done = mt("capsule-command-await", *words, code=2)
        assert done.stdout == b"out\n\x00x"
        assert done.err == "bad\n(of its standard output the last 65536 characters of 70000)\nexit code 2\n"
    assert mt("capsule-command-await", command, "-q", code=2).err == "bad\n"
    assert json.loads(mt("capsule-command-await", command, "--json").out)["exitCode"] == 2


def test_await_waits(mt, fake, run):
    command = mt("capsule-exec", run, "ls").out.strip()
    begin = time.monotonic()
    assert "still Queued after 00:00:01" in mt("capsule-command-await", command, "--timeout", "1s", code=124).err
    assert 0.9 < time.monotonic() - begin < 20
    later(0.5, fake.end, fake.commands[0], code=0)
    assert mt("capsule-command-await", command).err == "exit code 0\n"


def test_await_outlives_a_restart_and_cuts(fake, environment, mt, run):
    command = mt("capsule-exec", run, "ls").out.strip()
    with subprocess.Popen([MT, "capsule-command-await", run, command], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        fake.await_asked("GET", "/commands/")
        fake.on("GET", "/v1/capsule-runs/.*", lambda r, m: (_ for _ in ()).throw(Cut()))
        time.sleep(0.3)
        fake.stop()
        time.sleep(1)
        fake.end(fake.commands[0], code=3, status="Error", out=b"a\n")
        fake.overrides.clear()
        fake.start()
        out, err = p.communicate(timeout=60)
    assert (p.returncode, out) == (3, b"a\n") and b"exit code 3" in err


def test_ids_that_are_not_there(mt, fake, run):
    assert "has no command yet" in mt("capsule-command-get", "@last", code=3).err
    mt("capsule-exec", run, "ls")
    mt("capsule-exec", run, "ls")
    fake.commands[0]["id"] = fake.commands[1]["id"][:10] + "1" + fake.commands[1]["id"][11:]
    ending = fake.commands[1]["id"][-8:]
    assert "more than one command ends in" in mt("capsule-command-get", run, ending, code=5).err
    assert "no command of run" in mt("capsule-command-get", run, "ffffff", code=3).err
    assert "no command in your newest runs" in mt("capsule-command-get", "ffffff", code=3).err
    fake.requests.clear()
    whole = "0" * 8 + "-0000-7000-8000-" + "0" * 12
    assert f"no command '{whole}'" in mt("capsule-command-get", whole, code=3).err
    assert [r.path for r in fake.requests] == [f"/v1/commands/{whole}"]
    assert "is no command id" in mt("capsule-command-get", run, "xyz", code=2).err
    assert "is no command id" in mt("capsule-command-await", run, "xyz", code=125).err


def test_get_list_cancel_extend(mt, fake, run):
    mt("capsule-exec", run, "ls", "--args", "-l,/tmp", "--user", "sandbox")
    mt("capsule-exec", run, "echo 'a\nb'")
    fake.end(fake.commands[0], code=1, status="Error", err=b"no\x1b[31m\n", limitsReached=["pids"])
    text = mt("capsule-command-get", fake.commands[0]["id"]).out
    assert "command     ls -l /tmp\n" in text and "exit code   1\n" in text and "no?[31m" in text
    assert "limit met   processes (limits.pids)\n" in text
    lines = mt("capsule-command-list", run).out.splitlines()
    assert len(lines) == 2 and "ls -l /tmp" in lines[0] and "echo 'a?b'" in lines[1]
    assert len(mt("capsule-command-list", run, "--status", "Queued").out.splitlines()) == 1
    assert "--status is Queued" in mt("capsule-command-list", run, "--status", "Done", code=2).err
    assert "Error, terminated" in mt("capsule-command-cancel", run, "@last").err
    assert "at most 00:20:00" in mt("capsule-extend", run, "20m").err
    assert "'x' is no duration" in mt("capsule-extend", run, "x", code=2).err
