"""Field cases O-01 to O-18: running a command, by the API's Python client and by mt."""
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import mtserver
from conftest import Ref, command_line
from relay import Relay

sys.path.insert(0, str(mtserver.ROOT / "sdk" / "python"))
import maitento  # noqa: E402

USERS = [None, "sandbox"]


@pytest.fixture(scope="module")
def py(server):
    server.environment()
    with maitento.Maitento(server.url, server.key) as client:
        yield client


@pytest.fixture(scope="module")
def shared(api, py):
    ns = api.namespace("field")
    py.vfs.create("work", ns)
    api.capsule(ns, [], name="bench", users=[{"name": "sandbox"}], maxDuration="00:20:00",
                vfs=[{"vfs": Ref("work"), "mountName": "work"}], limits={"pids": 300})
    return ns


@pytest.fixture(scope="module")
def bench(py, shared):
    run = py.capsules.start("bench", shared)
    py.capsule_runs.wait(run, "ready")
    yield run
    py.capsule_runs.terminate(run)


@pytest.fixture()
def other(py, shared):
    """A run that a test may ruin."""
    run = py.capsule_runs.wait(py.capsules.start("bench", shared), "ready")
    yield run
    py.capsule_runs.terminate(run)
    py.capsule_runs.wait(run, timeout=15)


@pytest.fixture(scope="module")
def run(py, bench):
    def call(command, arguments=None, in_run=None, **options):
        began = time.monotonic()
        done = py.capsule_runs.exec_and_wait(in_run or bench, command, arguments, **options)
        done.took = time.monotonic() - began
        return done
    return call


@pytest.fixture(scope="module")
def sh(run):
    return lambda line, **options: run("sh", ["-c", line], **options)


def ran(done):
    """Seconds from its start to its end."""
    began, ended = (datetime.datetime.fromisoformat(done.raw[k].rstrip("Z")) for k in ("dateStarted", "dateEnded"))
    return (ended - began).total_seconds()


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def memory_kib(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1))


# ---- O-01 ----

@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("line", ["sleep 100 & echo hi", "sleep infinity & echo hi",
                                  "setsid sleep 100 & echo hi", "(sleep 100; echo late) & echo hi"])
def test_o01_a_background_child_holds_nothing_up(run, sh, line, user):
    for done in (sh(line, run_as_user=user), run(line, run_as_user=user)):
        assert (done.exit_code, done.output_standard) == (0, "hi\n") and ran(done) < 1 and done.took < 1.5, (done.raw, done.took)


def test_o01_the_queue_moves_on_and_late_bytes_are_in_the_spool_only(py, bench, sh, run):
    go = f"/tmp/go{os.urandom(4).hex()}"
    first = sh(f"(until [ -e {go} ]; do sleep 0.05; done; echo late) & echo hi")
    second = run("echo", ["second"])
    assert second.output_standard == "second\n" and second.took < 1.5
    assert run("touch", [go]).exit_code == 0
    deadline = time.monotonic() + 60
    while b"late" not in b"".join(py.capsule_runs.output(bench, first)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert b"".join(py.capsule_runs.output(bench, first)) == b"hi\nlate\n"
    assert py.capsule_runs.get_command(bench, first).output_standard == "hi\n"


def test_o01_two_hundred_rounds_leave_nothing_open(server, py, sh, other):
    def fds():
        return len(os.listdir(f"/proc/{server.server.pid}/fd")), len(os.listdir(f"/proc/{server.server.pid}/task"))

    sh("true", in_run=other)
    before = fds()
    for _ in range(200):
        assert sh("sleep 0.05 & echo hi", in_run=other).output_standard == "hi\n"
    deadline = time.monotonic() + 30
    while (after := fds())[0] > before[0] + 8 or after[1] > before[1] + 2:  # some may just be closing
        assert time.monotonic() < deadline, (before, after)
        time.sleep(0.1)


# ---- O-02 ----

@pytest.mark.parametrize("line", [
    "(sleep 5; echo late > /tmp/late{n}) & wait",
    "setsid sh -c 'sleep 5; echo late > /tmp/late{n}' & wait",
    "(setsid sh -c '(sleep 5; echo late > /tmp/late{n}) &' &) ; sleep 30",
    "trap '' TERM; sleep 5; echo late > /tmp/late{n}",
])
def test_o02_a_time_out_ends_all_that_it_started(sh, run, py, bench, line):
    n = os.urandom(4).hex()
    untouched = py.capsule_runs.exec(bench, "sleep 4; echo mine", run_async=True)
    done = sh(line.replace("{n}", n), max_duration="00:00:01")
    assert 0.9 < done.took < 4 and (done.status, done.end_reason, done.limit_ms) == ("Error", "timeout", 1000), done.raw
    assert done.exit_code == (137 if "trap" in line else 143), done.raw
    following = run("echo next")
    assert following.output_standard == "next\n" and following.took < 1
    assert py.capsule_runs.wait_command(bench, untouched).output_standard == "mine\n"
    time.sleep(2)
    assert "late" + n not in run("ls /tmp").output_standard


def test_o02_as_a_startup_command(api, ns, py):
    py.vfs.create("work", ns)
    api.capsule(ns, [{"command": "setsid sh -c 'sleep 4; echo late > /mnt/work/late' & wait",
                      "maxDuration": "00:00:01"}], vfs=[{"vfs": Ref("work"), "mountName": "work"}])
    ended = py.capsules.run("c", ns)
    assert ended.status == "Error" and "out of time after 1 s" in ended.failure_details
    time.sleep(4)
    assert py.vfs.open("work", ns).list() == []


# ---- O-03 ----

def test_o03_no_zombies_gather_and_no_status_is_swallowed(py, other, sh, run):
    codes = [py.capsule_runs.exec(other, "exit 7", run_async=True) for _ in range(100)]
    for _ in range(60):
        sh("for i in 1 2 3 4 5; do (sleep 0.1 &); done", in_run=other)
    assert {py.capsule_runs.wait_command(other, c).exit_code for c in codes} == {7}
    deadline = time.monotonic() + 30  # the last ones may still be sleeping
    while sh("grep -l State:.Z /proc/[0-9]*/status | wc -l", in_run=other).output_standard != "0\n":
        assert time.monotonic() < deadline, sh("grep -h -B1 State:.Z /proc/[0-9]*/status", in_run=other).output_standard


# ---- O-04, O-05 ----

def test_o04_output_that_is_not_utf8(run, sh, py, bench):
    done = run("printf", ["\\377\\376abc\\n"])
    assert (done.exit_code, done.output_standard) == (0, "\ufffd\ufffdabc\n")
    done = sh("printf '\\377\\376abc\\n' >&2; exit 5")
    assert (done.exit_code, done.output_error) == (5, "\ufffd\ufffdabc\n")
    done = run("head", ["-c", "4096", "/dev/urandom"])
    assert done.exit_code == 0 and py.capsule_runs.get_command(bench, done) == done
    assert b"".join(py.capsule_runs.output(bench, run("printf", ["\\377\\376abc\\n"]))) == b"\xff\xfeabc\n"


@pytest.mark.parametrize("lead", range(4))
def test_o05_characters_split_between_pieces(run, lead, mt, bench):
    text = "x" * lead + "€" * 20000
    line = f"import sys; sys.stdout.write('x' * {lead} + '€' * 20000)"
    assert run("python3", ["-c", line]).output_standard == text
    assert mt("capsule-exec", bench.id, "-w", "python3", "--arg", "-c", "--arg", line).stdout == text
    assert mt("capsule-command-await", bench.id, "@last").stdout == text


@pytest.mark.parametrize("character", ["€", "😀", "a", "é"])
@pytest.mark.parametrize("count", [65536, 65537, 70000])
def test_o05_the_tail_is_whole_characters(run, character, count):
    done = run("python3", ["-c", f"import sys; sys.stdout.write('{character}' * {count})"])
    assert done.output_standard == character * 65536
    assert done.output_standard_full_length == (None if count == 65536 else count)


# ---- O-06, O-07 ----

ALTERNATE = ("import os\nfor i in range(256):\n    os.write(1, bytes([97 + i % 26]) * 4096)\n"
             "    os.write(2, bytes([65 + i % 26]) * 4096)\n")


def expected(first):
    return "".join(chr(first + i % 26) * 4096 for i in range(256))[-65536:]


def test_o06_more_than_a_pipe_on_both(run, py, bench):
    done = run("python3", ["-c", ALTERNATE])
    assert done.took < 5 and done.exit_code == 0
    assert (done.output_standard, done.output_error) == (expected(97), expected(65))
    assert done.output_standard_full_length == done.output_error_full_length == 1 << 20
    done = run("head -c 1048576 /dev/zero >&2")
    assert done.took < 5 and done.output_error_full_length == 1 << 20 and done.output_standard == ""
    began = time.monotonic()
    sent = [py.capsule_runs.exec(bench, "python3", ["-c", ALTERNATE], run_async=True) for _ in range(5)]
    for command in sent:
        done = py.capsule_runs.wait_command(bench, command)
        assert (done.exit_code, done.output_standard, done.output_error) == (0, expected(97), expected(65))
    assert time.monotonic() - began < 10


def test_o07_endless_output_is_bounded(server, py, shared, sh, run, other):
    before = memory_kib(server.server)
    sent = [py.capsule_runs.exec(other, "yes", max_duration="00:00:05", run_async=True) for _ in range(4)]
    worst = 0.0
    for _ in range(8):
        began = time.monotonic()
        assert run("echo", ["ok"]).output_standard == "ok\n"
        worst = max(worst, time.monotonic() - began)
        time.sleep(0.5)
    assert worst < 1.5, worst
    for command in sent:
        done = py.capsule_runs.wait_command(other, command)
        assert (done.status, done.end_reason, done.limit_ms) == ("Error", "timeout", 5000), done.raw
        assert done.output_standard_full_length > 1 << 20 and done.output_standard.count("y") >= 32767
    assert memory_kib(server.server) - before < 4 * 8192


def test_o07_lengths_beyond_two_to_the_31(run, other):
    done = run("head", ["-c", "2200M", "/dev/zero"], in_run=other, max_duration="00:05:00")
    assert done.exit_code == 0 and done.output_standard_full_length == 2200 << 20
    assert done.output_standard == "\0" * 65536


# ---- O-08, O-09 ----

@pytest.mark.parametrize("number, code", [(9, 137), (15, 143), (11, 139), (6, 134)])
def test_o08_signals_are_told_and_never_success(run, sh, mt, bench, number, code):
    for done in (sh(f"kill -{number} $$"), run(f"kill -{number} $$"), run(f"exec sh -c 'kill -{number} $$'")):
        assert (done.status, done.exit_code) == ("Error", code), done.raw
        assert "terminated" not in done.output_error.lower()
    direct = run(f"kill -{number} $$")
    assert (direct.end_reason, direct.signal, direct.output_error) == ("signaled", number, ""), direct.raw
    assert mt("capsule-exec", bench.id, "-w", f"kill -{number} $$").returncode == code


def test_o08_a_plain_exit_of_137(sh):
    done = sh("exit 137")
    assert (done.exit_code, done.end_reason, done.signal) == (137, "exited", None)


def test_o09_a_time_out_is_told_apart(run, sh, mt, bench, py):
    done = run("sleep", ["30"], max_duration="00:00:01")
    assert (done.end_reason, done.limit_ms, done.exit_code, done.status) == ("timeout", 1000, 143, "Error")
    plain = sh("exit 124")
    assert (plain.exit_code, plain.end_reason) == (124, "exited")
    cut = mt("capsule-exec", bench.id, "-w", "-t", "1s", "sleep 30", check=124)
    assert "out of time after 1 s" in cut.stderr
    assert mt("capsule-exec", bench.id, "-w", "exit 124", check=124).stderr == ""
    for bad in ("00:00:00", "-00:00:01", "0", "1", "00:00:60"):
        with pytest.raises(maitento.MaitentoError) as error:
            run("true", max_duration=bad)
        assert error.value.status == 400 and error.value.field == "maxDuration"


def test_o09_one_that_is_longer_than_the_run(api, ns, py):
    api.capsule(ns, [], maxDuration="00:05:00")
    started = py.capsule_runs.wait(py.capsules.start("c", ns), "ready")
    api.shorten(started.id, 2)
    with pytest.raises(maitento.CapsuleCommandAbortedError) as error:
        py.capsule_runs.exec_and_wait(started, "sleep 60", max_duration="00:01:00")
    assert "out of time" in error.value.reason and error.value.run.status == "Finished"


def test_o09_the_time_counts_from_its_own_start(py, bench):
    first = py.capsule_runs.exec(bench, "sleep 3")
    second = py.capsule_runs.exec(bench, "sleep 0.1; echo in time", max_duration="00:00:02")
    assert py.capsule_runs.wait_command(bench, second).output_standard == "in time\n"
    assert py.capsule_runs.get_command(bench, first).exit_code == 0


# ---- O-10, O-11 ----

def test_o10_out_of_memory_is_said(api, ns, py):
    api.capsule(ns, [], maxDuration="00:02:00", limits={"memory": "128MiB"})
    started = py.capsules.start("c", ns)
    runs = py.capsule_runs
    done = runs.exec_and_wait(started, "python3", ["-c", "x = bytearray(10**9)"])
    assert (done.exit_code, done.end_reason, done.status) == (137, "outOfMemory", "Error"), done.raw
    assert "128" in done.failure_details and "memory" in done.failure_details and "memory" in done.limits_reached
    child = runs.exec_and_wait(started, "python3 -c 'x = bytearray(10**9)'; echo went on; exit 4")
    assert (child.exit_code, child.output_standard) == (4, "went on\n") and "memory" in child.limits_reached
    assert runs.exec_and_wait(started, "echo", ["ok"]).output_standard == "ok\n"
    late = runs.exec_and_wait(started, "sleep 30", max_duration="00:00:01")
    assert late.end_reason == "timeout" and late.limits_reached == []
    runs.terminate(started)


def test_o11_a_fork_storm_stays_inside(py, bench, run, other):
    storm = py.capsule_runs.exec(other, "i=0; while [ $i -lt 20000 ]; do sleep 60 & i=$((i+1)); done",
                                 run_as_user="sandbox", run_async=True)
    time.sleep(2)
    here = py.capsule_runs.exec(other, "echo", ["ok"], max_duration="00:00:10")
    assert run("echo", ["ok"]).output_standard == "ok\n"
    assert py.capsule_runs.get(other).status == "Running"
    found = py.capsule_runs.wait_command(other, here, timeout=20)
    assert found.output_standard == "ok\n" or "pids" in found.limits_reached or "pids" in found.failure_details \
        or "fork" in found.output_error, found.raw
    began = time.monotonic()
    py.capsule_runs.terminate(other)
    ended = py.capsule_runs.wait(other, timeout=20)
    assert time.monotonic() - began < 10 and ended.status == "Finished"
    assert py.capsule_runs.get_command(other, storm).status in ("Aborted", "Error")


# ---- O-12, O-13, O-14 ----

WORDS = ["a b", "$HOME", "$(id)", "x'y", '"', "", "l1\nl2", "*", "\\", ";", "~", "!x", "é"]


@pytest.mark.parametrize("user", USERS)
def test_o12_arguments_arrive_as_sent(run, mt, bench, user):
    expect = "".join(f"[{w}]\n" for w in WORDS)
    assert run("printf", ["[%s]\\n", *WORDS], run_as_user=user).output_standard == expect
    more = ["--user", user] if user else []
    done = mt("capsule-exec", bench.id, "-w", *more, "printf", "--", "[%s]\\n", *WORDS, check=0)
    assert done.stdout == expect
    repeated = [part for word in ["[%s]\\n", *WORDS] for part in ("--arg", word)]
    assert mt("capsule-exec", bench.id, "-w", *more, "printf", *repeated, check=0).stdout == expect
    done = run('echo "a  b" | tr a-z A-Z; false', run_as_user=user)
    assert (done.exit_code, done.output_standard) == (1, "A  B\n")


@pytest.mark.parametrize("command, why", [("echo a\necho", "newline"), ("echo &", "&"), ("echo |", "|"),
                                          ("echo ;", ";"), ("echo \\", "\\"), ("echo #", "#")])
def test_o12_commands_that_cannot_take_arguments_are_refused(run, command, why):
    with pytest.raises(maitento.MaitentoError) as error:
        run(command, ["x"])
    assert error.value.status == 400 and "command" in str(error.value), why


def test_o13_commas(mt, bench):
    assert mt("capsule-exec", bench.id, "-w", "python3", "--arg", "-c", "--arg", "print(1,2)", check=0).stdout == "1 2\n"
    assert mt("capsule-exec", bench.id, "-w", "python3", "--", "-c", "print(1,2)", check=0).stdout == "1 2\n"
    assert mt("capsule-exec", bench.id, "-w", "echo", "--args", 'say "hi"', check=0).stdout == 'say "hi"\n'
    shown = ["--arg", "<%s>", "--args"]
    assert mt("capsule-exec", bench.id, "-w", "printf", *shown, "a,,b").stdout == "<a><><b>"
    assert mt("capsule-exec", bench.id, "-w", "printf", *shown, ",").stdout == "<><>"
    assert mt("capsule-exec", bench.id, "-w", "python3 -c 'import sys; print(len(sys.argv))'", "--args", "").stdout == "2\n"
    assert mt("capsule-exec", bench.id, "-w", "python3 -c 'import sys; print(len(sys.argv))'").stdout == "1\n"
    assert "capsule-exec" in mt("help", "capsule-exec").stdout and "--arg WORD" in mt("help", "capsule-exec").stdout


@pytest.mark.parametrize("size", [131000, 131071, 131072, 300000, 3000000])
def test_o14_long_arguments_and_commands(run, size):
    script = "echo ok #"
    script += "x" * (size - len(script))
    done = run(script)
    assert (done.exit_code, done.output_standard, done.output_error) == (0, "ok\n", ""), done.output_error[:200]
    if size <= 131071:
        assert run("sh", ["-c", script]).output_standard == "ok\n"
        return
    with pytest.raises(maitento.MaitentoError) as error:
        run("sh", ["-c", script])
    assert error.value.status in (400, 413)
    assert re.search(r"argument 2 .*131,071 bytes.* file", str(error.value)), error.value


def test_o14_many_short_arguments_and_none_stuck(run):
    done = run("sh", ["-c", "echo $#", "sh", *map(str, range(5000))])
    assert done.output_standard == "5000\n"
    with pytest.raises(maitento.MaitentoError) as error:
        run("echo", ["x"] * 10001)
    assert error.value.status in (400, 413) and "10,000" in str(error.value)
    assert run("echo next").output_standard == "next\n"


# ---- O-15, O-16, O-17 ----

@pytest.mark.parametrize("user", USERS)
def test_o15_standard_input_is_at_its_end(run, sh, user):
    done = run("cat", run_as_user=user)
    assert (done.exit_code, done.output_standard) == (0, "") and done.took < 1
    assert run("wc", ["-c"], run_as_user=user).output_standard == "0\n"
    assert sh("read x; echo $?; test -t 0; echo $?", run_as_user=user).output_standard == "1\n1\n"
    assert run("python3", ["-"], run_as_user=user).exit_code == 0
    assert run("cat; echo after", run_as_user=user).output_standard == "after\n"
    given = run("cat; echo after", run_as_user=user, stdin="zwei\né\0x")
    assert given.output_standard == "zwei\né\0xafter\n"
    big = "0123456789abcdef" * 65536
    assert run("wc -c", stdin=big, run_as_user=user).output_standard == "1048576\n"
    assert run("true", stdin=big, run_as_user=user).exit_code == 0  # nobody reads it


def test_o15_mt_leaves_the_loops_input_alone(server, bench):
    script = f"printf 'a\\nb\\nc\\n' | while read x; do mt capsule-exec -w {bench.id} \"echo $x\"; done"
    done = subprocess.run(["bash", "-c", script], env={**os.environ, **server.environment()}, capture_output=True,
                          text=True, timeout=60, check=True)
    assert done.stdout == "a\nb\nc\n"


@pytest.mark.parametrize("user", USERS)
def test_o16_home_user_and_path(run, sh, user):
    name = user or "maitento"
    run("cd /", run_as_user=user)
    for call in (sh, run):
        done = call("echo $HOME $USER $LOGNAME $SHELL; pwd; id -un; touch t && stat -c %U t; command -v python3",
                    run_as_user=user)
        lines = done.output_standard.splitlines()
        assert lines[:4] == [f"/home/{name} {name} {name} /bin/bash", f"/home/{name}", name, name], done.raw
        assert lines[4].endswith("/python3")
    environment = dict(line.split("=", 1) for line in run("env", run_as_user=user).output_standard.splitlines()
                       if "=" in line)
    assert not [k for k in environment if k.startswith("MT_") or "API_KEY" in k]
    assert "MAITENTO_NAMESPACE" not in environment or user is None


def test_o16_environment_and_folder_of_a_command(run):
    done = run("echo $A; pwd", environment={"A": "b c=d"}, working_directory="/tmp")
    assert done.output_standard == "b c=d\n/tmp\n"
    assert run("echo $A.; pwd").output_standard == ".\n/home/maitento\n"


def test_o17_what_cannot_be_run_has_its_code(run, sh):
    run("printf x > /tmp/plain; chmod 644 /tmp/plain; printf '#!/no/such\\n' > /tmp/absent;"
        " printf '#!/bin/sh\\r\\necho\\n' > /tmp/crlf; chmod 755 /tmp/absent /tmp/crlf")
    done = run("sqlite3")
    assert (done.exit_code, done.output_error) == (127, "-bash: line 1: sqlite3: command not found\n")
    for command in ("/tmp/plain", "/tmp"):
        done = run(command)
        assert done.exit_code == 126 and command in done.output_error, done.raw
    for command in ("/tmp/absent", "/tmp/crlf"):  # the words are bash's, and newer ones name the script alone
        done = run(command)
        assert done.exit_code in (126, 127), done.raw
        assert re.fullmatch(rf"-bash: line 1: {command}: .*(required file not found|bad interpreter).*\n",
                            done.output_error), done.raw
    done = run("cd /no/such && ls")
    assert done.exit_code == 1 and "/no/such" in done.output_error
    for options in ({"command": ""}, {"command": "ls", "run_as_user": "nobody-here"}):
        with pytest.raises(maitento.MaitentoError) as error:
            run(**options)
        assert error.value.status == 400
    assert "nobody-here" in str(error.value)
    folder = run("ls", working_directory="/no/such")
    assert folder.status == "Error" and "/no/such" in folder.failure_details + folder.output_error, folder.raw
    assert run("echo next").output_standard == "next\n"


# ---- O-18 ----

@pytest.fixture()
def relay(server):
    relay = Relay(int(server.url.rsplit(":", 1)[1]))
    yield relay
    relay.close()


LINE = "echo ran >> /tmp/o18.{n}; echo a; sleep 4; echo b; exit 3"


def test_o18_the_way_is_cut_while_mt_waits(server, relay, py, bench, run):
    n = os.urandom(4).hex()
    environment = {**os.environ, **server.environment(), "MAITENTO_URL": relay.url}
    mt = mtserver.program("mt")
    for words in (["-w"], []):
        line = LINE.replace("{n}", n)
        if words:
            command = [mt, "capsule-exec", bench.id, "-w", line]
        else:
            sent = subprocess.run([mt, "capsule-exec", bench.id, line], env=environment, capture_output=True, text=True,
                                  check=True, timeout=20).stdout.strip()
            command = [mt, "capsule-command-await", bench.id, sent]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            time.sleep(1)
            until(lambda: (last := py.capsule_runs.list_commands(bench)[-1]).command == line and last.date_started)
            relay.cut(5)
            out, err = p.communicate(timeout=60)
        assert (p.returncode, out) == (3, "a\nb\n"), (p.returncode, out, err)
    assert run(f"cat /tmp/o18.{n}").output_standard == "ran\nran\n"


def test_o18_the_way_is_cut_while_the_client_waits(server, relay, bench, run):
    n = os.urandom(4).hex()
    with maitento.Maitento(relay.url, server.key) as client:
        threading.Timer(1, relay.cut, (4,)).start()
        done = client.capsule_runs.exec_and_wait(bench, LINE.replace("{n}", n))
        assert (done.exit_code, done.output_standard) == (3, "a\nb\n")
        sent = client.capsule_runs.exec(bench, LINE.replace("{n}", n))
        threading.Timer(1, relay.cut, (4,)).start()
        assert b"".join(client.capsule_runs.output(bench, sent, follow=True)) == b"a\nb\n"
        assert client.capsule_runs.get_command(bench, sent).exit_code == 3
    assert run(f"cat /tmp/o18.{n}").output_standard == "ran\nran\n"


def test_o18_the_way_is_cut_while_mt_waits_for_a_start(server, relay, api, ns):
    environment = {**os.environ, **server.environment(), "MAITENTO_URL": relay.url, "MAITENTO_NAMESPACE": ns}
    for name, code in (("good", 0), ("bad", 1)):
        api.capsule(ns, [{"command": f"sleep 4; echo why >&2; exit {code}"}], name=name, autoTerminate=True)
        with subprocess.Popen([mtserver.program("mt"), "capsule-start", name], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as p:
            time.sleep(1)
            until(lambda: any(r["capsule"] == name for r in api.call("GET", f"/v1/capsule-runs?namespace={ns}")["items"]))
            relay.cut(4)
            out, err = p.communicate(timeout=60)
        assert p.returncode == code and re.fullmatch(r"[0-9a-f-]{36}\n", out), (p.returncode, out, err)
        runs = api.call("GET", f"/v1/capsule-runs?namespace={ns}")["items"]
        assert [r["id"] for r in runs if r["capsule"] == name] == [out.strip()], "started once"
        assert code == 0 or "why" in err


def test_o18_the_server_is_killed_while_both_wait():
    with mtserver.Server(image="slim") as own:
        environment = {**os.environ, **own.environment(), "MAITENTO_URL": f"unix:{own.socket}"}
        mt = command_line(own)
        with maitento.Maitento(f"unix:{own.socket}", own.key) as client:
            client.namespaces.create("o18")
            folder = own.dir / "project" / "capsules"
            folder.mkdir(parents=True)
            (folder / "stay.mtr").write_text('maxDuration = "00:05:00"\n')
            client.deploy(folder.parent, "o18")
            started = client.capsules.start("stay", "o18")
            lines = [client.capsule_runs.exec(started, f"sleep 0.2; echo {i}; exit {i}") for i in range(1, 20)]
            waiting = subprocess.Popen([mtserver.program("mt"), "capsule-exec", started.id, "-w", "echo end; exit 9"],
                                       env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            found = []
            thread = threading.Thread(target=lambda: found.append(
                client.capsule_runs.exec_and_wait(started, "echo last; exit 8")))
            thread.start()
            until(lambda: len(client.capsule_runs.list_commands(started)) == len(lines) + 2)
            own.server.send_signal(signal.SIGKILL)
            own.server.wait()
            time.sleep(1)
            own.start_server()
            out, err = waiting.communicate(timeout=60)
            thread.join(60)
            assert (waiting.returncode, out) == (9, "end\n"), err
            assert (found[0].exit_code, found[0].output_standard) == (8, "last\n")
            ended = [client.capsule_runs.get_command(started, c) for c in lines]
            assert [(c.exit_code, c.output_standard) for c in ended] == [(i, f"{i}\n") for i in range(1, 20)]
            assert [c.date_started for c in ended] == sorted(c.date_started for c in ended)
        assert mt("capsule-command-list", started.id, "--status", "Queued", check=0,
                  env={"MAITENTO_URL": f"unix:{own.socket}"}).stdout == ""  # its port is another one by now


def test_o18_stdout_holds_only_what_was_asked_for(mt, bench):
    done = mt("capsule-command-get", bench.id, "@last", "--json")
    assert json.loads(done.stdout)["id"] and done.stderr == ""
    assert re.fullmatch(r"[0-9a-f-]{36}\n", mt("capsule-exec", bench.id, "true").stdout)
