"""What runs write outside their file systems: each within its limit, and all together within the disk."""
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mtserver
from conftest import Api
from helpers import Neighbour, execute, send, stay, status


@pytest.fixture(scope="module")
def small():
    """A server with a scratch disk that two runs can fill."""
    with mtserver.Server(image="slim", scratch_size="1GiB") as server:
        yield Api(server)


def test_a_run_that_fills_its_disk_is_told_so(api, ns):
    with Neighbour(api):
        run = stay(api, ns, limits={"disk": "48MiB"})
        full = execute(api, run, "head -c 256M /dev/zero > /tmp/big")
        assert full["exitCode"] == 1 and full["limitsReached"] == ["disk"], full
        assert "Disk quota exceeded" in full["outputError"] or "No space left" in full["outputError"], full
        assert execute(api, run, "rm /tmp/big; echo ok > /tmp/small; cat /tmp/small")["outputStandard"] == "ok\n"
        api.terminate(run)
        api.get(run)


def test_a_start_that_fills_its_disk_is_told_so(api, ns):
    run = api.shell(ns, "head -c 256M /dev/zero > /tmp/big", limits={"disk": "48MiB"})
    assert (run["status"], run["endReason"], run["limitsReached"]) == ("Error", "startFailed", ["disk"]), run


def test_the_run_that_uses_most_of_a_full_scratch_disk_ends(small):
    """Two runs within their limits fill the disk together: the larger ends before it is full."""
    ns = small.namespace()
    limits = {"disk": "500MiB", "memory": "256MiB"}
    with Neighbour(small) as beside:
        first = stay(small, ns, "first", limits=limits)
        assert execute(small, first, "head -c 400M /dev/zero > /tmp/big")["exitCode"] == 0
        second = stay(small, ns, "second", limits={**limits, "disk": "512MiB"})
        send(small, second, "i=0; while [ $i -lt 470 ]; do i=$((i+1)); head -c 1M /dev/zero >> /tmp/big; "
                            "sleep 0.01; done; sleep 1000")
        ended = None
        while not ended:
            ended = next((r for r in (status(small, first), status(small, second)) if r["endReason"]), None)
            assert len(beside.answers) < 3000
        assert (ended["status"], ended["endReason"], ended["limitsReached"]) == ("Error", "diskFull", ["disk"]), ended
        assert "of the server's scratch disk" in ended["failureDetails"], ended
        assert "this run uses most of it" in ended["failureDetails"], ended
        # room comes back, and runs start again
        deadline = time.monotonic() + 60
        while True:
            code, answer = small.server.request("POST", f"/v1/namespaces/{ns}/capsules/first/runs")
            if code == 201:
                break
            assert (code, answer["code"]) == (429, "capacityExceeded") and "scratch disk" in answer["detail"], answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
        third = small.get(answer, until="ready")
        other = second if ended["id"] == first["id"] else first
        assert status(small, other)["status"] == "Running"
        for run in (other, third):
            small.terminate(run)
