"""What capsules write into mounted file systems is watched: who fills one ends, the others go on."""
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from conftest import Ref
from helpers import MIB, Neighbour, execute, status

# 2 MiB each 20 ms, so that the overshoot is small on a busy machine, too.
FILL = "while :; do head -c 2M /dev/zero >> /mnt/work/{0}; sleep 0.02; done"


@pytest.fixture()
def work(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return ns


def vfs(api, ns):
    return api.call("GET", f"/v1/namespaces/{ns}/vfs/work")


def set_limit(api, ns, size):
    assert api.call("PATCH", f"/v1/namespaces/{ns}/vfs/work", {"limit": f"{size >> 10}KiB"})["limitBytes"] == size


def start(api, ns, name, line, **properties):
    api.capsule(ns, [{"command": "sh", "arguments": ["-c", line], "wait": False}], name,
                vfs=[{"vfs": Ref("work"), "mountName": "work"}], **properties)
    return api.start(ns, name)


def test_a_capsule_that_fills_a_file_system_ends(api, work, server):
    set_limit(api, work, 32 * MIB)
    ended = api.get(start(api, work, "filler", FILL.format("big")))
    assert (ended["status"], ended["endReason"], ended["limitsReached"]) == ("Error", "diskFull", ["disk"]), ended
    assert ended["failureDetails"].startswith("disk full: file system 'work' holds "), ended
    assert "its limit is 32MiB" in ended["failureDetails"], ended
    assert 32 * MIB < vfs(api, work)["usedBytes"] < 160 * MIB


def test_the_one_that_wrote_most_ends_and_the_others_go_on(api, work, server):
    set_limit(api, work, 48 * MIB)
    quiet = api.get(start(api, work, "quiet", "while :; do date > /mnt/work/now; sleep 0.05; done"), until="ready")
    with Neighbour(api):
        filler = start(api, work, "filler", FILL.format("big"), limits={"memory": "256MiB"})
        ended = api.get(filler)
    assert (ended["endReason"], ended["limitsReached"]) == ("diskFull", ["disk"]), ended
    # the other run of the same file system was held for a moment at most
    assert execute(api, quiet, "echo still > /mnt/work/quiet; cat /mnt/work/quiet")["outputStandard"] == "still\n"
    time.sleep(1)  # and it is not the next one: what it writes is nothing
    assert status(api, quiet)["status"] == "Running"
    api.terminate(quiet)


def test_a_full_file_system_takes_no_new_runs(api, work, server):
    """A run that is over before anybody looks fills it once, not again and again."""
    set_limit(api, work, 4 * MIB)
    line = "head -c 16M /dev/zero > /mnt/work/big"
    api.shell(work, line, vfs="work", name="quick")
    deadline = time.monotonic() + 30
    while True:
        code, answer = server.request("POST", f"/v1/namespaces/{work}/capsules/quick/runs")
        if code != 201:
            break
        api.get(answer)
        assert time.monotonic() < deadline
    assert code == 507 and answer["code"] == "diskFull", answer
    assert "file system 'work' holds" in answer["detail"] and "deleted" in answer["detail"], answer
    api.raw("DELETE", api.files(work, "work", "/big"))
    assert api.run(work, "quick")["status"] in ("Finished", "Error")


def test_a_limit_that_is_lowered_ends_nobody_that_does_not_write(api, work, server):
    run = api.get(start(api, work, "holder", "head -c 8M /dev/zero > /mnt/work/big; sleep 1000"), until="ready")
    deadline = time.monotonic() + 30
    while vfs(api, work)["usedBytes"] < 8 * MIB:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(3)  # it has been looked at
    set_limit(api, work, 1 * MIB)
    for _ in range(3):  # the disk is never quite still: several looks
        other = api.namespace()
        api.call("POST", f"/v1/namespaces/{other}/vfs", {"name": "x"}, 201)
        api.write(other, "x", "/a", b"x" * MIB)
        time.sleep(1.2)
    assert status(api, run)["status"] == "Running"
    api.terminate(run)


def test_the_limit_is_the_administrators(api, work, server):
    assert vfs(api, work)["limitBytes"] == 10 << 30
    set_limit(api, work, 20 << 30)
    for limit in ("5GB", 5, "0KiB", None):
        code, name, sentence = api.error("PATCH", f"/v1/namespaces/{work}/vfs/work", {"limit": limit})
        assert (code, name) == (400, "badField") and "limit must be a whole number followed by KiB" in sentence
    user = api.namespace("u")
    api.call("POST", "/v1/users", {"name": user}, 201)
    key = api.call("POST", "/v1/keys", {"name": "k", "user": user}, 201)["key"]
    api.call("PUT", f"/v1/namespaces/{work}/members/{user}")
    code, name, _ = api.error("PATCH", f"/v1/namespaces/{work}/vfs/work", {"limit": "1TiB"},
                              {"Authorization": f"Bearer {key}"})
    assert (code, name) == (403, "forbidden")
    assert vfs(api, work)["limitBytes"] == 20 << 30
