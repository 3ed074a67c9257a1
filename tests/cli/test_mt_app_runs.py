# SPDX-License-Identifier: Apache-2.0
"""Apps by mt: inputs, what is shown while a run lives and when it ends, connections that are cut, ids, lists."""
import json
import signal
import subprocess
import threading
import time

import pytest

from fake import Cut, Problem
from fake_apps import Apps
from paper import MT, on_terminal


@pytest.fixture()
def apps(fake):
    return Apps(fake)


def when_started(apps, *steps):
    """Does the steps, one after another, once there is a run that lives."""
    def watch():
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not (apps.runs and not apps.runs[0]["endReason"]):
            time.sleep(0.01)
        for step in steps:
            step()
    threading.Thread(target=watch, daemon=True).start()


# ---- inputs ----

def test_inputs_are_passed_as_they_are(mt, apps):
    values = {"a": "a,b=c", "empty": "", "dash": "-l", "dashes": "--json", "Quote": "say \"hi\" 'x' $HOME *", "lines": "1\n2"}
    words = [w for name, value in values.items() for w in (f"--input-{name}", value)]
    mt("app-start", "greet", *words)
    assert apps.fake.asked("POST", "/runs$")[-1].json == {"inputs": values}
    mt("app-start", *[f"--input-{name}={value}" for name, value in values.items()], "greet", "--version", "3")
    assert apps.fake.asked("POST", "/runs$")[-1].json == {"inputs": values, "version": 3}
    mt("app-start", "greet")
    assert apps.fake.asked("POST", "/runs$")[-1].json == {"inputs": {}}


def test_inputs_as_one_object(mt, apps):
    whole = {"n": 1.50, "list": ["x"], "Name": "ä"}
    mt("app-start", "greet", "--inputs", json.dumps(whole), "--input-more", "7")
    assert apps.fake.asked("POST", "/runs$")[-1].json == {"inputs": {**whole, "more": "7"}}
    mt("app-start", "greet", "--inputs", "-", stdin=b'{"text": "' + b"x" * 300000 + b'"}')
    assert len(apps.fake.asked("POST", "/runs$")[-1].json["inputs"]["text"]) == 300000
    for text, why in (("[1]", "not a list"), ("{", "--inputs"), ('{"a": 1, "a": 2}', "--inputs")):
        assert why in mt("app-start", "greet", "--inputs", text, code=2).err
    assert len(apps.runs) == 2


def test_inputs_that_cannot_be_meant(mt, apps):
    assert "'A' is given twice" in mt("app-run", "greet", "--input-a", "1", "--input-A", "2", code=2).err
    assert "'name' is given twice" in mt("app-run", "greet", "--inputs", '{"NAME": 1}', "--input-name", "2", code=2).err
    assert "--input-name needs a value" in mt("app-run", "greet", "--input-name", code=2).err
    assert "no option --input-" in mt("app-run", "greet", "--input-", "x", code=2).err
    assert "no option --input: did you mean --inputs?" in mt("app-run", "greet", "--input", "x", code=2).err
    assert "is not UTF-8" in mt("app-run", "greet", "--input-a", b"\xff", code=2).err
    assert not apps.runs

    def refuse(r, m):
        raise Problem(400, "badField", "no input 'nmae': the inputs are name (string) and times (int)", field="inputs.nmae")
    apps.fake.on("POST", ".*/apps/greet/runs", refuse)
    done = mt("app-run", "greet", "--input-nmae", "x", code=2)
    assert done.err == "mt: no input 'nmae': the inputs are name (string) and times (int)\n" and done.out == ""


# ---- running ----

def test_console_then_an_empty_line_then_the_value(mt, apps):
    when_started(apps, lambda: apps.print("one\n"), lambda: apps.print("two, "), lambda: apps.print("three\n"),
                 lambda: apps.finish("Hello,\nworld"))
    done = mt("app-run", "greet", "--input-name", "x")
    assert (done.out, done.err) == ("one\ntwo, three\n\nHello,\nworld\n", "")
    when_started(apps, lambda: apps.print("open"), lambda: apps.finish("v"))
    assert mt("app-run", "greet").out == "open\n\nv\n"


@pytest.mark.parametrize("value, shown", [("", "\n\n"), (7, "\n7\n"), (False, "\nfalse\n"), (1.50, "\n1.5\n"),
                                          ({"a": [1, "ü"]}, '\n{"a":[1,"ü"]}\n'), ([], "\n[]\n"), (None, "")])
def test_values_of_other_types(mt, apps, value, shown):
    when_started(apps, lambda: apps.finish(value))
    assert mt("app-run", "greet").out == shown
    when_started(apps, lambda: apps.print("not shown\n"), lambda: apps.finish(value))
    assert mt("app-run", "greet", "--quiet").out == shown[1:]


def test_lines_come_as_they_are_printed(environment, apps):
    with subprocess.Popen([MT, "app-run", "greet"], env=environment, stdout=subprocess.PIPE) as p:
        for text in (b"first\n", b"second\n"):
            when_started(apps, lambda text=text: apps.print(text.decode()))
            assert p.stdout.readline() == text
        apps.finish("done")
        assert p.communicate(timeout=30)[0] == b"\ndone\n" and p.returncode == 0


def test_more_lines_than_an_answer_holds_and_lines_that_are_gone(mt, apps):
    def flood():
        for i in range(1, 12):
            apps.print(f"{i}\n")
        apps.runs[0]["console"] = apps.runs[0]["console"][2:]
        apps.finish()
    when_started(apps, flood)
    mt("app-start", "greet")
    deadline = time.monotonic() + 20
    while not apps.runs[0]["endReason"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    done = mt("app-await", "@last")
    assert done.out == "".join(f"{i}\n" for i in range(3, 12))
    assert "2 lines that it printed are no longer kept" in done.err
    assert mt("app-logs", "@last").out == done.out


def test_a_failure(mt, apps):
    when_started(apps, lambda: apps.print("x\n"), lambda: apps.fail(
        "The capsule did not start: no\nroom\x1b", [("start", "a.mtc:7:9"), ("main", "a.mtc:12:3")], "a.mtc:7:9"))
    done = mt("app-run", "greet", code=1)
    assert done.out == "x\n"
    assert done.err == "The capsule did not start: no\nroom?\n  at start (a.mtc:7:9)\n  at main (a.mtc:12:3)\n"
    when_started(apps, lambda: apps.fail("out of time: duration.max 00:10:00", place="a.mtc:1:1", reason="timeout"))
    assert mt("app-run", "greet", code=1).err == "out of time: duration.max 00:10:00\n  at a.mtc:1:1\n"
    done = mt("app-await", "@last", "--quiet", code=1)
    assert (done.out, done.err) == ("", "out of time: duration.max 00:10:00\n")
    done = mt("app-await", "@last", "--json", code=1)
    assert json.loads(done.out)["endReason"] == "timeout" and done.err.startswith("out of time")


def test_json_is_the_record_alone(mt, apps):
    when_started(apps, lambda: apps.print("x\n"), lambda: apps.finish("v"))
    done = mt("app-run", "greet", "--json")
    record = json.loads(done.out)
    assert [line["text"] for line in record["consoleOutputs"]] == ["x\n"] and record["returnValue"] == "v"
    assert done.err == ""
    assert json.loads(mt("app-start", "greet", "--json").out)["status"] == "Running"


def test_on_a_terminal_a_status_is_not_mixed_with_what_is_printed(environment, apps):
    when_started(apps, lambda: apps.print("one"), lambda: apps.fake.await_asked("GET", "/console"),
                 lambda: apps.fail("no"))
    seen, code = on_terminal(environment, "app-run", "greet")
    assert code == 1 and b"one\r\n" in seen and b"no" in seen


# ---- connections, interruptions ----

def test_a_start_that_is_cut_off_is_never_done_twice(mt, apps):
    state = {"cuts": 3}

    def cut(r, m):
        if state["cuts"]:
            state["cuts"] -= 1
            apps.start(r, "greet")  # it was done; the answer is lost
            raise Cut
    apps.fake.on("POST", ".*/apps/greet/runs", cut)
    assert mt("app-start", "greet").out == apps.runs[0]["id"] + "\n" and len(apps.runs) == 1
    assert len({r.headers["Idempotency-Key"] for r in apps.fake.asked("POST", "/runs$")}) == 1
    state["cuts"] = 1

    def cut_rerun(r, m):
        if state["cuts"]:
            state["cuts"] -= 1
            apps.rerun(r, apps.runs[0])
            raise Cut
    apps.fake.on("POST", ".*/rerun", cut_rerun)
    again = mt("app-rerun", "@last").out.strip()
    assert [run["id"] for run in apps.runs[:-1]] == [again] and apps.runs[0]["rerunOf"] == apps.runs[1]["id"]


def test_o18_a_wait_goes_on_after_cuts_and_a_restart_and_repeats_no_line(environment, apps):
    fake = apps.fake
    with subprocess.Popen([MT, "app-run", "greet"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        when_started(apps, lambda: apps.print("before\n"))
        assert p.stdout.readline() == b"before\n"
        before = len(fake.asked("GET", "/console$"))
        fake.on("GET", ".*/console", lambda r, m: (_ for _ in ()).throw(Cut()))
        apps.print("between\n")
        deadline = time.monotonic() + 20
        while len(fake.asked("GET", "/console$")) < before + 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        fake.stop()
        fake.overrides.pop(0)
        apps.fail("no")
        fake.start()
        out, err = p.communicate(timeout=60)
    assert p.returncode == 1 and out == b"between\n" and err == b"no\n"


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_interrupting_says_that_the_run_goes_on(environment, apps, more):
    with subprocess.Popen([MT, "app-run", "greet", *more], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        apps.fake.await_asked("GET", "/v1/app-runs/")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
    run = apps.runs[0]["id"]
    assert p.returncode == 130 and f"app run {run} goes on; mt app-await {run} waits for it, mt app-cancel {run} stops it" in err
    apps.finish()


# ---- ids, lists, the rest ----

def test_await_cancel_and_rerun(mt, apps):
    run = mt("app-start", "greet", "--input-name", "x").out.strip()
    begin = time.monotonic()
    assert f"app run {run} is still Running after 1 s" in mt("app-await", run, "--timeout", "1s", code=124).err
    assert 0.9 < time.monotonic() - begin < 20
    assert f"app run {run}: Error, cancelled" in mt("app-cancel", "@last").err
    assert mt("app-await", run, code=1).err == "cancelled by ada\n"
    again = mt("app-rerun", run[-8:]).out.strip()
    assert again != run and apps.runs[0]["rerunOf"] == run and apps.runs[0]["inputs"] == {"name": "x"}
    when_started(apps, apps.finish)
    mt("app-await", again)
    when_started(apps, lambda: apps.finish("v"))
    assert mt("app-rerun", again, "--wait").out == "\nv\n"
    assert len(json.loads(mt("app-cancel", run, again, "--json").out)) == 2


def test_ids_by_their_ending_and_last(mt, apps):
    assert "you have started no app run yet" in mt("app-await", "@last", code=3).err
    for _ in range(3):
        mt("app-start", "greet")
    apps.runs[0]["startedBy"] = "somebody else"
    whole = apps.runs[1]["id"]
    for word in ("@last", whole[-6:], whole):
        assert json.loads(mt("app-run-get", word, "--json").out)["id"] == whole
    apps.runs[0]["id"] = "11" + whole[2:]
    assert "more than one app run ends in" in mt("app-run-get", whole[-6:], code=5).err
    assert "no app run's id ends in 'ffffff': mt app-runs shows them" in mt("app-logs", "ffffff", code=3).err
    assert "last 6 characters or more" in mt("app-await", "abc", code=2).err
    gone = whole.replace("01a22acb", "01a22acc")
    done = mt("app-await", gone, code=3)
    assert f"no app run '{gone}'" in done.err and "goes on" not in done.err


def test_lists(mt, apps):
    for _ in range(3):
        mt("app-start", "greet")
    apps.fail("no")
    lines = mt("app-runs", "--limit", "2").out.splitlines()
    assert len(lines) == 2 and lines[0].split()[1:4] == ["greet", "Error", "failed"]
    mt("app-runs", "--all", "--app", "a b", "--status", "Error", "--mine")
    assert apps.fake.requests[-1].query == {"app": "a b", "status": "Error", "mine": "true", "limit": "50"}
    assert "--status is Running, Finished or Error" in mt("app-runs", "--status", "Starting", code=2).err
    assert mt("app-list").out.split()[:2] == ["greet", "2"]


def test_an_app_says_what_it_takes(mt, apps):
    shown = mt("app-get", "greet").out
    assert "input      string      name\ninput      int         times\nreturns    string\n" in shown
    assert "version    2 of 2" in shown
    assert [i["name"] for i in json.loads(mt("app-get", "greet", "--json").out)["inputs"]] == ["name", "times"]
    assert "no app 'nope'" in mt("app-get", "nope", code=3).err


def test_a_run_is_shown(mt, apps):
    mt("app-start", "greet", "--input-name", "x")
    apps.runs[0].update(outputs={"answer": [1, "a\nb"]}, waitingFor="room for capsule 'workbench'")
    shown = mt("app-run-get", "@last").out
    assert "waits for   room for capsule 'workbench'\n" in shown and 'input       name = "x"\n' in shown
    assert 'output      answer = [1,"a\\nb"]\n' in shown and "returned" not in shown
    apps.finish({"a": 1})
    assert 'returned    {"a":1}\n' in mt("app-run-get", "@last").out


def test_logs(mt, environment, apps):
    mt("app-start", "greet")
    apps.log("info", "begun")
    apps.log("warning", "two\nlines\x1b")
    apps.print("said\n")
    assert mt("app-logs", "@last").out == "said\n"
    assert mt("app-logs", "--log", "@last").out == (
        "2026-11-30 04:51:17.123  info     begun\n2026-11-30 04:51:17.123  warning  two\nlines?\n")
    assert [json.loads(line)["level"] for line in mt("app-logs", "--log", "--json", "@last").out.splitlines()] == [
        "info", "warning"]
    with subprocess.Popen([MT, "app-logs", "-f", "@last"], env=environment, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"said\n"
        apps.print("more\n")
        assert p.stdout.readline() == b"more\n"
        apps.finish("v")
        assert p.communicate(timeout=30)[0] == b"" and p.returncode == 0


def test_following_ends_with_its_reader_or_by_ctrl_c(environment, mt, apps):
    mt("app-start", "greet")
    apps.print("x\n")
    with subprocess.Popen([MT, "app-logs", "-f", "@last"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"x\n"
        p.stdout.close()
        apps.print("y\n")
        assert p.wait(30) == -signal.SIGPIPE and p.stderr.read() == b""
    with subprocess.Popen([MT, "app-logs", "-f", "@last"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"x\n"
        p.send_signal(signal.SIGINT)
        assert p.communicate(timeout=30)[1] == b"" and p.returncode == 130
    apps.finish()


def test_completion(mt, apps):
    def offered(*words):
        return [line.split("\t")[0] for line in mt("__complete", "--", *words).out.splitlines()]
    mt("app-start", "greet")
    assert offered("app-run", "") == ["greet"] and offered("app-runs", "--app", "g") == ["greet"]
    assert offered("app-run", "greet", "--input") == ["--input-name", "--input-times", "--inputs"]
    assert offered("app-run", "--input") == ["--inputs"] and offered("app-run", "greet", "--input-name", "") == []
    assert offered("app-await", "") == ["@last", apps.runs[0]["id"]]
