"""mt capsule-logs -f while the server is killed: every byte of both outputs once, in order."""
import subprocess
import time

from conftest import Api
import mtserver

LINES = 60


def test_following_outlives_a_kill_of_the_server():
    with mtserver.Server(image="slim") as server:
        api = Api(server)
        ns = api.namespace()
        api.capsule(ns, [], maxDuration="00:05:00", limits={"memory": "64MiB", "disk": "64MiB"})
        run = api.start(ns, "c")
        # Over the socket: a TCP port would be another one after the restart.
        environment = {**server.environment(), "MAITENTO_URL": f"unix:{server.socket}"}
        with subprocess.Popen([mtserver.program("mt"), "capsule-logs", "-f", run["id"]], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as logs:
            line = f"for i in $(seq {LINES}); do echo out $i; echo err $i >&2; sleep 0.1; done"
            api.call("POST", f"/v1/capsule-runs/{run['id']}/commands", {"command": line}, 201)
            for _ in range(2):
                time.sleep(1.5)
                server.server.kill()
                server.server.wait()
                server.start_server()
            deadline = time.monotonic() + 60
            while not api.call("GET", f"/v1/capsule-runs/{run['id']}/commands?status=Finished")["items"]:
                assert time.monotonic() < deadline
                time.sleep(0.2)
            api.call("POST", f"/v1/capsule-runs/{run['id']}/terminate?wait=30")
            out, err = logs.communicate(timeout=60)
        assert logs.returncode == 0
        assert out.splitlines() == [b"out %d" % i for i in range(1, LINES + 1)]
        lines = err.splitlines()
        assert [x for x in lines if x.startswith(b"err")] == [b"err %d" % i for i in range(1, LINES + 1)]
        for once in (b"ready: Running", b"started: for i in", b"ended: Finished, terminated"):
            assert sum(once in x for x in lines) == 1, (once, lines)
