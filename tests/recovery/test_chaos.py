"""Server and runner are killed at random while runs start, take commands and end: each result is told, each once."""
import os
import random
import threading
import time

from conftest import Api, Ref, mtr
import mtserver
from test_recovery import SPARES, held_blocks, leftovers, wait_for

ROUNDS = int(os.environ.get("MT_CHAOS", "6"))
SEED = int(os.environ.get("MT_SEED", str(os.getpid())))
CLIENTS = 4
SMALL = {"memory": "64MiB", "disk": "16MiB", "pids": 64}


class Client(threading.Thread):
    """Starts runs, sends commands, waits for ends; asks again whenever the server is away."""

    def __init__(self, api, ns, number, stop):
        super().__init__()
        self.api, self.ns, self.number, self.stop = api, ns, number, stop
        self.done, self.failure = 0, None

    def ask(self, method, path, body=None, key=None):
        deadline = time.monotonic() + 60
        while True:
            try:
                status, answer = self.api.server.request(method, path, body, {"Idempotency-Key": key} if key else None)
                if status not in (429, 503):
                    assert status in (200, 201), (method, path, status, answer)
                    return answer
            except (OSError, mtserver.http.client.HTTPException):
                pass
            assert time.monotonic() < deadline, f"no answer to {method} {path}"
            time.sleep(0.02)

    def ended(self, path):
        for _ in range(20):
            answer = self.ask("GET", f"{path}?wait=30")
            if answer["endReason"]:
                return answer
        raise AssertionError(f"no end: {answer}")

    def once(self):
        name = f"{self.number}-{self.done}"
        run = self.ask("POST", f"/v1/namespaces/{self.ns}/capsules/c/runs", {"environment": {"N": name}}, f"r{name}")["id"]
        sent = [self.ask("POST", f"/v1/capsule-runs/{run}/commands",
                         {"command": f"printf {i} >> /mnt/work/o-{name}; echo {name}-{i}; exit {i}"}, f"c{name}-{i}")["id"]
                for i in range(4)]
        for i, command in enumerate(sent):
            found = self.ended(f"/v1/capsule-runs/{run}/commands/{command}")
            assert (found["exitCode"], found["outputStandard"]) == (i, f"{name}-{i}\n"), found
        self.ask("POST", f"/v1/capsule-runs/{run}/terminate")
        assert self.ended(f"/v1/capsule-runs/{run}")["endReason"] == "terminated"
        self.done += 1

    def run(self):
        try:
            while not self.stop.is_set():
                self.once()
        except BaseException as failure:  # told by the test
            self.failure = failure


def test_chaos():
    chance = random.Random(SEED)
    with mtserver.Server(image="slim") as server:
        api = Api(server)
        ns = api.namespace("chaos")
        api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
        api.deploy(ns, {"capsules/c.mtr": mtr({
            "maxDuration": "00:10:00", "limits": SMALL, "vfs": [{"vfs": Ref("work"), "mountName": "work"}],
            "startup": [{"command": "printf x >> /mnt/work/s-$N"}]})})
        stop = threading.Event()
        clients = [Client(api, ns, n, stop) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        for _ in range(ROUNDS):
            time.sleep(chance.uniform(0, 0.5))
            killed = chance.choice((["server"], ["runner"], ["server", "runner"], ["runner", "server"]))
            for name in killed:
                process = getattr(server, name)
                process.kill()
                process.wait()
                time.sleep(chance.choice((0, 0, 0.05)))
            for name in chance.sample(killed, len(killed)):
                getattr(server, f"start_{name}")()
        stop.set()
        for client in clients:
            client.join()
        print(f"\nseed {SEED}: {sum(c.done for c in clients)} runs through {ROUNDS} kills")
        for client in clients:
            assert client.failure is None, (SEED, client.failure)
            for n in range(client.done):
                assert api.read(ns, "work", f"/s-{client.number}-{n}") == b"x"
                assert api.read(ns, "work", f"/o-{client.number}-{n}") == b"0123"
        wait_for(lambda: leftovers(server) == {"cgroups": [], "mounts": []}, "nothing is left", 60)
        wait_for(lambda: held_blocks(server) <= SPARES, "no block is locked but those of machines made ahead")
