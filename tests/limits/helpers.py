"""Shared by the tests of limits: runs that stay up, commands in them, a quiet run beside."""
import threading
import time

MIB = 1 << 20


def stay(api, ns, name="c", line="sleep 1000", **properties):
    """A run that is ready and stays up; line is what it does meanwhile."""
    api.capsule(ns, [{"command": "sh", "arguments": ["-c", line], "wait": False}], name, **properties)
    return api.get(api.start(ns, name), until="ready")


def send(api, run, line, **more):
    return api.call("POST", f"/v1/capsule-runs/{run['id']}/commands",
                    {"command": "sh", "arguments": ["-c", line], **more}, 201)


def result(api, run, command, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        answer = api.call("GET", f"/v1/capsule-runs/{run['id']}/commands/{command['id']}?wait=30")
        if answer["status"] not in ("Queued", "Running"):
            return answer
        assert time.monotonic() < deadline, answer


def execute(api, run, line, **more):
    return result(api, run, send(api, run, line, **more))


def status(api, run):
    return api.call("GET", f"/v1/capsule-runs/{run['id']}")


class Neighbour:
    """A quiet run that does `echo ok` with a write into its file system, again and again, while the
    block runs; then nothing may have gone wrong with it."""

    def __init__(self, api):
        from conftest import Ref
        self.api = api
        self.ns = api.namespace("beside")
        api.call("POST", f"/v1/namespaces/{self.ns}/vfs", {"name": "work"}, 201)
        self.run = stay(api, self.ns, vfs=[{"vfs": Ref("work"), "mountName": "work"}],
                        limits={"memory": "128MiB", "disk": "32MiB"})
        self.answers, self.error, self.over = [], None, threading.Event()

    def _go_on(self):
        try:
            while not self.over.is_set():
                self.answers.append(execute(self.api, self.run, "echo ok | tee /mnt/work/ok"))
        except BaseException as error:  # told at the end
            self.error = error

    def __enter__(self):
        self.thread = threading.Thread(target=self._go_on)
        self.thread.start()
        return self

    def __exit__(self, *failed):
        before = len(self.answers)
        deadline = time.monotonic() + 60
        # what it asked for while the other one was at its worst has come back, too
        while self.thread.is_alive() and len(self.answers) <= before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.over.set()
        self.thread.join(90)
        if failed[0]:
            return
        assert not self.error, self.error
        assert self.answers and not self.thread.is_alive()
        for a in self.answers:
            assert (a["status"], a["exitCode"], a["outputStandard"], a["limitsReached"]) == (
                "Finished", 0, "ok\n", []), a
        now = status(self.api, self.run)
        assert now["status"] == "Running", now
        self.api.terminate(self.run)
        ended = self.api.get(self.run)
        assert (ended["status"], ended["endReason"], ended["limitsReached"]) == ("Finished", "terminated", []), ended
