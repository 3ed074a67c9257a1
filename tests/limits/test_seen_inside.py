"""What programs inside count and measure fits the run's limits."""
import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mtserver
from helpers import MIB, execute, stay

CPUS = len(os.sched_getaffinity(0))


def ask(api, run, line, **more):
    answer = execute(api, run, line, **more)
    assert answer["exitCode"] == 0, answer
    return answer["outputStandard"].strip()


@pytest.mark.skipif(CPUS < 2, reason="needs two processors")
def test_o11_nproc_fits_the_limit(api, ns):
    """One processor, whoever asks and however; and an affinity cannot be widened again."""
    for spare in range(2):  # made for the run, or ahead of it
        run = stay(api, ns, limits={"cpus": 1}, users=[{"name": "sandbox"}])
        for user in ("maitento", "sandbox", "root"):
            assert ask(api, run, "nproc", runAsUser=user) == "1"
        assert ask(api, run, "python3 -c 'import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))'") == "1 1"
        assert ask(api, run, f"taskset -c 0-{CPUS - 1} nproc") == "1"
        assert ask(api, run, "getconf _NPROCESSORS_ONLN") == "1"
        api.terminate(run)
        api.get(run)
    startup = api.shell(ns, "test $(nproc) = 1", limits={"cpus": 0.5})
    assert startup["status"] == "Finished", startup


@pytest.mark.skipif(CPUS < 2, reason="needs two processors")
def test_runs_are_bound_to_the_least_promised_processors(api, ns):
    runs = [stay(api, ns, f"c{i}", limits={"cpus": 1}) for i in range(2)]
    lists = [ask(api, run, "grep Cpus_allowed_list /proc/self/status | cut -f2") for run in runs]
    assert lists[0] != lists[1], lists
    for run in runs:
        api.terminate(run)
        api.get(run)


def test_all_processors_where_the_limit_is_no_limit(api, ns):
    run = stay(api, ns)
    assert ask(api, run, "nproc") == str(CPUS)
    api.terminate(run)


def meminfo(api, run):
    lines = ask(api, run, "cat /proc/meminfo").splitlines()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def test_free_shows_the_memory_of_the_run(api, ns):
    for spare in range(2):
        run = stay(api, ns, limits={"memory": "300MiB"})
        before = meminfo(api, run)
        assert before["MemTotal"] == 300 * MIB and 0 < before["MemFree"] <= 300 * MIB, before
        assert before["MemFree"] <= before["MemAvailable"] <= 300 * MIB and before["SwapTotal"] == 0, before
        assert ask(api, run, "free -m | awk '/^Mem:/ { print $2 }'") == "300"
        command = api.call("POST", f"/v1/capsule-runs/{run['id']}/commands", {
            "command": "python3", "arguments": ["-c", "import time; x = b'x' * (150 << 20); time.sleep(1000)"],
            "async": True}, 201)
        after, deadline = before, time.monotonic() + 90
        while any(after[name] >= before[name] - 140 * MIB for name in ("MemFree", "MemAvailable")):
            assert time.monotonic() < deadline, (before, after)
            after = meminfo(api, run)
        assert after["MemTotal"] == 300 * MIB
        api.terminate(run)


@pytest.mark.skipif(not (mtserver.IMAGES / "names/default").exists(), reason="needs the image 'default'")
def test_language_runtimes_see_the_limits(api, ns):
    run = stay(api, ns, image="default", limits={"memory": "512MiB", "cpus": 1})
    heap = ask(api, run, "java -XX:+PrintFlagsFinal -version 2>/dev/null | awk '$2 == \"MaxHeapSize\" { print $4 }'")
    assert int(heap) == 128 * MIB  # a quarter, as it does everywhere
    assert ask(api, run, "node -p 'os.availableParallelism() + \" \" + os.totalmem()'") == f"1 {512 * MIB}"
    api.terminate(run)


def test_a_run_tells_its_limits(api, ns):
    run = stay(api, ns, limits={"memory": "300MiB", "cpus": 0.5, "pids": 99})
    assert run["limits"] == {"memory": "300MiB", "cpus": 0.5, "pids": 99, "disk": "256MiB"}, run
    api.terminate(run)
    run = stay(api, ns)
    assert run["limits"] == {"memory": "2GiB", "cpus": None, "pids": 512, "disk": "256MiB"}, run
    api.terminate(run)


def test_nobody_inside_changes_what_is_shown(api, ns):
    run = stay(api, ns)
    for path in ("/proc/meminfo", "/sys/devices/system/cpu/online"):
        for user in ("maitento", "root"):
            answer = execute(api, run, f"echo x > {path}; rm -f {path}; umount {path}; chmod 666 {path}; mv {path} /tmp/x",
                             runAsUser=user)
            assert answer["exitCode"] != 0, answer
            assert execute(api, run, f"test -s {path}", runAsUser=user)["exitCode"] == 0
    api.terminate(run)
