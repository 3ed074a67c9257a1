"""Field cases O-26 to O-29 and O-33: the life of a run, durations, startup lists, leaks to the host."""
import random
import re
import threading
import time

import pytest

from conftest import Ref

WORK = {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}


@pytest.fixture()
def work(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return ns


def test_o27_terminate_while_starting_at_any_moment(api, ns):
    api.capsule(ns, [{"command": "sleep 30"}], maxDuration="00:01:00")
    for i in range(20):
        run = api.start(ns, "c")
        deadline = time.monotonic() + random.Random(i).random() * 0.2
        while time.monotonic() < deadline:
            api.call("GET", f"/v1/capsule-runs/{run['id']}")
        api.terminate(run)
        ended = api.get(run, seconds=15)
        assert (ended["status"], ended["endReason"]) == ("Finished", "terminated"), ended
        assert ended["failureDetails"] == "stopped by admin"


def test_o27_terminate_twice_and_ten_times_at_once(api, ns):
    api.capsule(ns, [], maxDuration="00:01:00")
    run = api.get(api.start(ns, "c"), until="ready")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        api.server.request("POST", f"/v1/capsule-runs/{run['id']}/terminate")[0])) for _ in range(10)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert answers == [200] * 10
    ended = api.get(run)
    assert api.terminate(run)["endReason"] == "terminated"
    assert api.get(run) == {**ended, "runSeconds": api.get(run)["runSeconds"]}


def test_o27_terminate_of_ended_runs_changes_nothing(api, ns):
    done = api.shell(ns, "true")
    assert api.terminate(done)["endReason"] == "exited"
    failed = api.shell(ns, "exit 3", name="f")
    assert api.terminate(failed)["endReason"] == "startFailed"


@pytest.mark.parametrize("run_id", ["00000000-0000-7000-8000-000000000000", "no-such-id", "..%2fx"])
def test_o27_unknown_runs_are_404_or_400(api, run_id):
    for method, path in (("GET", ""), ("POST", "/terminate")):
        assert api.error(method, f"/v1/capsule-runs/{run_id}{path}")[0] in (400, 404)


DURATIONS = {"24:00:00": "1.00:00:00", "48:00:00": "2.00:00:00", "1.00:00:00": "1.00:00:00",
             "1.23:59:59": "1.23:59:59", "00:10:00": "00:10:00"}


@pytest.mark.parametrize("text", DURATIONS)
def test_o28_durations_have_one_meaning(api, ns, text):
    api.deploy(ns, {"capsules/c.mtr": f'maxDuration = "{text}"\n'})
    assert api.call("GET", f"/v1/namespaces/{ns}/capsules/c")["definition"]["maxDuration"] == DURATIONS[text]


@pytest.mark.parametrize("text", ['"00:60:00"', '"00:90:00"', '"0"', '"00:00:00"', '"-00:01:00"', '"90"',
                                  '"1h30m"', '"01:00"', '" 01:00:00 "', '"00:00:00.5"',
                                  '"99999999.00:00:00"', '""', "600"])
@pytest.mark.parametrize("where", ["maxDuration = {}", 'startup = [ {{ command = "x" maxDuration = {} }} ]'])
def test_o28_others_are_refused_with_the_place_and_an_example(api, ns, text, where):
    found = api.deploy(ns, {"capsules/c.mtr": where.format(text) + "\n"}, expect=422)["diagnostics"]
    assert found[0]["line"] == 1 and found[0]["column"] > 1
    assert "00:10:00" in found[0]["message"] + str(found[0].get("hint"))


def failed(api, ns, startup, **properties):
    api.capsule(ns, startup, **{"autoTerminate": True, **properties, **WORK})
    run = api.run(ns, "c")
    assert (run["status"], run["endReason"]) == ("Error", "startFailed"), run
    return run["failureDetails"]


def test_o29_each_kind_of_failure_has_its_words(api, work):
    assert failed(api, work, [{"command": "exit 3"}]) == "Startup command failed: exit 3 - exit code 3"
    assert failed(api, work, [{"command": "no-such-cmd"}]) == (
        "Startup command failed: no-such-cmd - -bash: line 1: no-such-cmd: command not found")
    assert failed(api, work, [{"command": "kill -9 $$"}]) == (
        "Startup command failed: kill -9 $$ - killed by signal 9")
    details = failed(api, work, [{"command": "python3", "arguments": ["/mnt/work/x.py"]}])
    assert details.startswith("Startup command failed: python3 /mnt/work/x.py - ") and "x.py" in details


def test_o29_later_commands_do_not_run(api, work):
    failed(api, work, [{"command": "false"}, {"command": "touch /mnt/work/two"}])
    assert api.call("GET", api.files(work, "work", "/", "list"))["items"] == []


def test_o29_long_error_output_is_cut_to_its_end(api, work):
    details = failed(api, work, [{"command": "yes é | head -c 1048576 >&2; echo last >&2; exit 1"}])
    assert details.endswith("last") and 4096 <= len(details) <= 4096 + 120


def test_o29_what_is_no_utf8_is_replaced(api, work):
    assert failed(api, work, [{"command": "printf '\\377\\376abc\\n' >&2; exit 1"}]).endswith("\ufffd\ufffdabc")


def test_o29_wait_false_failing_does_not_fail_the_start(api, work):
    api.capsule(work, [{"command": "exit 7", "wait": False}, {"command": "sleep 0.3; touch /mnt/work/ok"}],
                autoTerminate=True, **WORK)
    run = api.run(work, "c")
    assert run["status"] == "Finished", run
    story = api.call("GET", f"/v1/capsule-runs/{run['id']}?story=true")["story"]
    assert any("exit 7" in s["what"] or "exit code 7" in s["what"] for s in story), story


def test_o29_auto_terminate_waits_for_wait_false_too(api, work):
    api.capsule(work, [{"command": "sleep 1; touch /mnt/work/late", "wait": False}], autoTerminate=True, **WORK)
    assert api.run(work, "c")["status"] == "Finished"
    assert api.read(work, "work", "/late") == b""


def test_o29_each_command_starts_at_home(api, work):
    api.capsule(work, [{"command": "cd /tmp"}, {"command": "pwd > /mnt/work/w"}], autoTerminate=True, **WORK)
    assert api.run(work, "c")["status"] == "Finished"
    assert api.read(work, "work", "/w") == b"/home/maitento\n"


def test_o29_a_daemon_of_a_startup_command_is_alive_later(api, work):
    api.capsule(work, [{"command": "sleep 300 & echo $! > /tmp/pid"},
                       {"command": "sleep 0.2; kill -0 $(cat /tmp/pid)"}], autoTerminate=True, **WORK)
    run = api.run(work, "c", seconds=20)
    assert run["status"] == "Finished" and run["runSeconds"] < 15, run


def test_o29_a_user_that_is_not_there_is_refused_at_deploy(api, work):
    found = api.deploy(work, {"capsules/c.mtr": 'startup = [ { command = "id" runAsUser = "nobody-here" } ]\n'},
                       expect=422)["diagnostics"]
    assert "nobody-here" in found[0]["message"]


def test_o15_standard_input_is_at_its_end(api, work):
    run = api.shell(work, "cat; wc -c > /mnt/work/n; read x; echo $? >> /mnt/work/n", vfs="work")
    assert run["status"] == "Finished" and run["runSeconds"] < 10
    assert api.read(work, "work", "/n") == b"0\n1\n"


def test_o10_out_of_memory_in_startup_is_said(api, work):
    details = failed(api, work, [{"command": "python3", "arguments": ["-c", "x = bytearray(10**9)"]}],
                     limits={"memory": "128MiB"})
    assert details.startswith("Startup command failed: python3 -c x = bytearray(10**9) - out of memory (limit 128MiB)") \
        or details.startswith("Startup command failed: python3 -c x = bytearray(10**9) - out of memory (limit 128 MiB)")


def test_o12_arguments_arrive_byte_for_byte(api, work):
    words = ["a b", "$HOME", "$(id)", "x'y", '"', "", "l1\nl2", "*", "\\", ";", "~", "!x", "é"]
    api.capsule(work, [{"command": "printf '[%s]\\n' >/mnt/work/out", "arguments": words}],
                autoTerminate=True, **WORK)
    run = api.run(work, "c")
    assert run["status"] == "Finished", run
    assert api.read(work, "work", "/out").decode() == "".join(f"[{w}]\n" for w in words)


def test_o33_only_its_own_descriptors_and_no_way_to_the_host(api, work):
    script = r"""
import os, sys
out = open("/mnt/work/seen", "w")
fds = [f for f in os.listdir("/proc/self/fd")]
targets = {f: os.readlink("/proc/self/fd/" + f) for f in fds if os.path.lexists("/proc/self/fd/" + f)}
print("fds", sorted(int(f) for f in fds), targets, file=out)
for name in ("root", "exe", "fd", "cwd"):
    try:
        print("pid1", name, os.listdir("/proc/1/fd") if name == "fd" else os.readlink("/proc/1/" + name), file=out)
    except OSError as e:
        print("pid1", name, e.strerror, file=out)
for n in range(3, 31):
    try:
        os.chdir(f"/proc/self/fd/{n}")
        print("chdir", n, os.getcwd(), os.path.exists("./etc/hostname"), file=out)
    except OSError:
        pass
status = open("/proc/self/status").read()
for line in status.splitlines():
    if line.split(":")[0] in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp"):
        print(line, file=out)
print(open("/proc/self/mountinfo").read(), file=out)
"""
    api.write(work, "work", "/probe.py", script)
    run = api.shell(work, "python3 /mnt/work/probe.py", vfs="work")
    assert run["status"] == "Finished", run
    seen = api.read(work, "work", "/seen").decode()
    first = seen.splitlines()[0]
    numbers = first[first.index("[") + 1:first.index("]")]
    assert {int(n) for n in numbers.split(",")} <= {0, 1, 2, 3, 4, 5}, first  # the script's own files
    assert "Seccomp:\t2" in seen and "NoNewPrivs:\t1" in seen and "CapEff:\t0000000000000000" in seen
    # The kernel itself tells, of each bind mount, its folder within the host's file system.
    seen = "\n".join(re.sub(r"^(\d+ \d+ \S+) \S+ /mnt/work ", r"\1 - /mnt/work ", line)
                     for line in seen.splitlines())
    assert "/var/cache" not in seen and "/maitento-" not in seen, seen
    assert "chdir" not in seen or "True" not in seen
