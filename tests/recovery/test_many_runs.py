"""Many idle runs at a time: they start, each answers a command, and they end without a leftover."""
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import Api, mtr
import mtserver
from test_recovery import SPARES, held_blocks, leftovers, wait_for

IDLE = int(os.environ.get("MT_IDLE", "50"))
CLIENTS = 8
EACH_KIB = 150  # of processes; some 25 of it depend on which pages the runner changes between two forks


def all_of(work, items):
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(work, items))


def memory_of_each(server):
    """KiB of an idle run in the median: its supervisor and its first process, pages shared by n counted as 1/n."""
    found = {"mt-supervisor": [], "mt-init": []}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            name = (entry / "comm").read_text().strip()
            if name in found and f"maitento-{server.instance}/" in (entry / "cgroup").read_text():
                text = (entry / "smaps_rollup").read_text()
                found[name].append(int(text.split("\nPss:")[1].split()[0]))
        except (OSError, IndexError):
            pass  # it has just ended
    return sum(statistics.median(values) for values in found.values())


def test_idle_runs_start_answer_and_leave_nothing():
    options = {"scratch_size": "9GiB" if IDLE > 400 else "2GiB"}
    with mtserver.Server(image="slim", server_options=["--max-live-runs", str(IDLE + 10)], **options) as server:
        api = Api(server)
        ns = api.namespace("idle")
        api.deploy(ns, {"capsules/c.mtr": mtr({"maxDuration": "02:00:00", "limits": {
            "memory": "32MiB", "disk": "16MiB", "pids": 32}})})
        began = time.monotonic()
        runs = all_of(lambda _: api.start(ns, "c"), range(IDLE))
        all_of(lambda run: api.get(run, until="ready", seconds=600), runs)
        started = time.monotonic()
        assert len({run["id"] for run in runs}) == IDLE

        def answers(run):
            sent = api.call("POST", f"/v1/capsule-runs/{run['id']}/commands", {"command": "echo $HOSTNAME; id -u"}, 201)
            done = api.call("GET", f"/v1/capsule-runs/{run['id']}/commands/{sent['id']}?wait=60")
            assert (done["exitCode"], done["outputStandard"].split()[-1]) == (0, "1000"), done
        all_of(answers, runs)
        answered = time.monotonic()
        wait_for(lambda: memory_of_each(server) <= EACH_KIB, f"an idle run takes at most {EACH_KIB} KiB")
        each = memory_of_each(server)
        settled = time.monotonic()
        all_of(api.terminate, runs)
        for run in all_of(lambda run: api.get(run, seconds=600), runs):
            assert (run["status"], run["endReason"]) == ("Finished", "terminated"), run
        ended = time.monotonic()
        wait_for(lambda: leftovers(server) == {"cgroups": [], "mounts": []}, "all groups are gone", 600)
        wait_for(lambda: held_blocks(server) <= SPARES, "no block is locked but those of machines made ahead")
        print(f"\n{IDLE} idle runs: ready after {started - began:.1f} s, a command each {answered - started:.1f} s, "
              f"ended {ended - settled:.1f} s, cleaned {time.monotonic() - ended:.1f} s; {each:.0f} KiB of processes each")
