"""Field cases O-01 to O-17 once more, as somebody meets them who has nothing but mt; and in startup lists."""
import json
import os
import re
import subprocess
import time

import pytest

import mtserver
from test_commands_field import ALTERNATE, bench, expected, other, py, shared  # noqa: F401

USERS = [[], ["--user", "sandbox"]]


@pytest.fixture()
def ex(mt, bench):  # noqa: F811
    """mt capsule-exec, then mt capsule-command-await of the id that it prints."""
    def call(*words, run=None, check=None, options=()):
        sent = mt("capsule-exec", (run or bench).id, *options, *words)
        assert sent.returncode == 0 and re.fullmatch(r"[0-9a-f-]{36}\n", sent.stdout), sent
        return mt("capsule-command-await", (run or bench).id, sent.stdout.strip(), check=check)
    return call


def raw(server, *words):
    """mt with bytes for its outputs."""
    return subprocess.run([mtserver.program("mt"), *words], env={**os.environ, **server.environment()},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("line", ["sleep 100 & echo hi", "exec sleep infinity & echo hi", "(sleep 3; echo late) & echo hi"])
def test_o01_a_background_child(ex, line, user):
    began = time.monotonic()
    for words in (["sh", "--args", "-c," + line], [line]):
        assert ex(*words, options=user, check=0).stdout == "hi\n"
    assert ex("echo", "--args", "second", options=user, check=0).stdout == "second\n"
    assert time.monotonic() - began < 10


def test_o01_the_child_lives_on(ex, py, other):  # noqa: F811
    child = ex("sleep 1000 & echo $!", run=other, check=0).stdout.strip()
    assert ex(f"kill -0 {child} && echo alive", run=other, check=0).stdout == "alive\n"
    py.capsule_runs.terminate(other)
    py.capsule_runs.wait(other, timeout=15)  # and holds no end of a run up


def test_o02_o09_out_of_time(mt, ex, bench):  # noqa: F811
    n = os.urandom(4).hex()
    for line in (f"(sleep 5; echo late > /tmp/mt{n}) & wait", f"setsid sh -c 'sleep 5; echo late > /tmp/mt{n}' & wait"):
        done = ex("sh", "--arg", "-c", "--arg", line, options=["--timeout", "1s"], check=124)
        assert "out of time after 1 s" in done.stderr and done.stdout == ""
    assert ex("echo next", check=0).stdout == "next\n"
    assert ex("exit 124", check=124).stderr.strip() in ("", "exit code 124")
    time.sleep(5)  # what would have been written by now
    assert f"mt{n}" not in ex("ls /tmp", check=0).stdout
    for bad in ("0", "-1", "0s", "00:00:00"):
        assert mt("capsule-exec", bench.id, "true", f"--timeout={bad}").returncode in (2, 125)


def test_o03_no_zombies(ex, other):  # noqa: F811
    ex("for i in $(seq 100); do (sleep 0.1 &); done", run=other, check=0)
    deadline = time.monotonic() + 30
    while ex("pgrep -c sleep; true", run=other, check=0).stdout != "0\n":  # it counts zombies, too
        assert time.monotonic() < deadline, ex("grep -h -B2 State: /proc/[0-9]*/status", run=other).stdout
    assert ex("grep -l State:.Z /proc/[0-9]*/status | wc -l", run=other, check=0).stdout == "0\n"


def test_o04_bytes_that_are_no_utf8(server, ex, bench, mt):  # noqa: F811
    assert ex("printf", "--arg", "\\377\\376abc\\n", check=0).stdout == "\ufffd\ufffdabc\n"
    assert raw(server, "capsule-exec", bench.id, "-w", "printf", "--arg", "\\377\\376abc\\n").stdout == b"\xff\xfeabc\n"
    record = json.loads(mt("capsule-command-get", bench.id, "@last", "--json", check=0).stdout)
    assert (record["exitCode"], record["outputStandard"]) == (0, "\ufffd\ufffdabc\n")
    done = raw(server, "capsule-exec", bench.id, "-w", "printf '\\377' >&2; exit 5")
    assert (done.returncode, done.stderr) == (5, b"\xff")


def test_o04_in_a_failing_startup_command(api, ns, mt):
    api.capsule(ns, [{"command": "printf 'a\\377b' >&2; exit 4"}], autoTerminate=True)
    failed = mt("capsule-start", "c", namespace=ns)
    assert failed.returncode == 1 and "a\ufffdb" in failed.stderr + failed.stdout, failed


def test_o06_o07_much_output(server, ex, bench):  # noqa: F811
    done = raw(server, "capsule-exec", bench.id, "-w", "python3", "--arg", "-c", "--arg", ALTERNATE)
    assert done.returncode == 0 and (len(done.stdout), len(done.stderr)) == (1 << 20, 1 << 20)
    assert done.stdout[-65536:].decode() == expected(97) and done.stderr[-65536:].decode() == expected(65)
    assert ex("python3", "--arg", "-c", "--arg", ALTERNATE, check=0).stdout == expected(97)
    endless = raw(server, "capsule-exec", bench.id, "-w", "-t", "1s", "yes")
    assert endless.returncode == 124 and b"out of time after 1 s" in endless.stderr and endless.stdout[:4] == b"y\ny\n"


def test_o07_a_startup_command_that_prints_for_ever(api, ns, mt):
    api.capsule(ns, [{"command": "yes >&2", "maxDuration": "00:00:02"}], autoTerminate=True)
    failed = mt("capsule-start", "c", namespace=ns)
    assert failed.returncode == 1 and "out of time after 2 s" in failed.stderr + failed.stdout, failed.stderr[-500:]
    run = api.call("GET", "/v1/capsule-runs?limit=1")["items"][0]
    assert run["status"] == "Error" and len(run["failureDetails"]) < 5000


@pytest.mark.parametrize("number, code", [(9, 137), (15, 143), (11, 139), (6, 134)])
def test_o08_signals(ex, number, code, mt, bench):  # noqa: F811
    assert ex("sh", "--args", f"-c,kill -{number} $$", check=code).stdout == ""
    direct = ex(f"kill -{number} $$", check=code)
    assert "erminated" not in direct.stderr and "egmentation" not in direct.stderr
    assert json.loads(mt("capsule-command-get", bench.id, "@last", "--json").stdout)["endReason"] == "signaled"
    assert ex("sh", "--args", f"-c,exit {code}", check=code)


def test_o09_longer_than_the_run_has_left(api, ns, mt):
    api.capsule(ns, [], maxDuration="00:05:00")
    run = api.get(api.start(ns, "c"), until="ready")
    api.shorten(run["id"], 2)
    done = mt("capsule-exec", run["id"], "-w", "-t", "60s", "sleep 60")
    assert done.returncode == 125 and "out of time" in done.stderr, done


def test_o10_out_of_memory(api, ns, mt):
    api.capsule(ns, [], maxDuration="00:02:00", limits={"memory": "128MiB"})
    run = api.get(api.start(ns, "c"), until="ready")
    done = mt("capsule-exec", run["id"], "-w", "python3", "--arg", "-c", "--arg", "x = bytearray(10**9)")
    assert done.returncode == 137 and "out of memory" in done.stderr and "128 MiB" in done.stderr, done
    assert mt("capsule-exec", run["id"], "-w", "echo", "--args", "ok", check=0).stdout == "ok\n"
    api.terminate(run)


def test_o11_a_fork_storm(mt, py, shared, other):  # noqa: F811
    mt("capsule-exec", other.id, "--user", "sandbox", "--async",
       "i=0; while [ $i -lt 20000 ]; do sleep 60 & i=$((i+1)); done", check=0)
    time.sleep(1)
    here = mt("capsule-exec", other.id, "-w", "-t", "10s", "echo ok")
    assert here.stdout == "ok\n" or re.search("pids|process|fork|out of time", here.stderr), here
    began = time.monotonic()
    mt("capsule-terminate", other.id, check=0)
    assert py.capsule_runs.wait(other, timeout=20).status == "Finished" and time.monotonic() - began < 10


@pytest.mark.parametrize("size", [131000, 131071])
def test_o14_long_words(ex, api, ns, size):
    script = "echo ok #"
    assert ex("sh", "--arg", "-c", "--arg", script + "x" * (100000 - len(script)), check=0).stdout == "ok\n"
    script += "x" * (size - len(script))
    api.capsule(ns, [{"command": "sh", "arguments": ["-c", script]}], autoTerminate=True)
    assert api.run(ns, "c")["status"] == "Finished"


def test_o14_a_startup_word_that_is_too_long(api, ns):
    refused = api.deploy(ns, {"capsules/c.mtr": 'startup = [ { command = "sh" arguments = ["-c", "' + "x" * 131072 + '"] } ]\n'}, 422)
    said = json.dumps(refused["diagnostics"])
    assert "argument" in said and ("131,071" in said or "131071" in said), said[-600:]


@pytest.mark.parametrize("user", USERS)
def test_o15_o16_input_and_environment(ex, user):
    who = user[1] if user else "maitento"
    assert ex("cat; echo after", options=user, check=0).stdout == "after\n"
    assert ex("wc", "--args", "-c", options=user, check=0).stdout == "0\n"
    assert ex("cd /", options=user, check=0).stdout == ""
    done = ex("sh", "--arg", "-c", "--arg", "echo $HOME $USER $LOGNAME $SHELL; pwd; id -un; id -gn; touch t && stat -c %U t",
              options=user, check=0)
    assert done.stdout == f"/home/{who} {who} {who} /bin/bash\n/home/{who}\n{who}\n{who}\n{who}\n"


def test_o17_what_cannot_be_run(ex, mt, bench):  # noqa: F811
    done = ex("sqlite3", check=127)
    assert "-bash: line 1: sqlite3: command not found\n" in done.stderr
    ex("printf x > /tmp/plain.mt; chmod 644 /tmp/plain.mt", check=0)
    assert "/tmp/plain.mt" in ex("/tmp/plain.mt", check=126).stderr
    assert "/tmp" in ex("/tmp", check=126).stderr
    assert "/no/such" in ex("cd /no/such && ls", check=1).stderr
    assert mt("capsule-exec", bench.id, "").returncode in (2, 125)
    refused = mt("capsule-exec", bench.id, "--user", "nobody-here", "ls")
    assert refused.returncode not in (0, 1) and "nobody-here" in refused.stderr, refused
    assert ex("echo next", check=0).stdout == "next\n"
