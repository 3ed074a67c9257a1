"""A state folder on a small disk, in a mount namespace of the test's own: at the low-disk floor nobody
starts and who fills the disk ends; when it is full the ends of runs are still written, and answers of models wait for room."""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

for folder in ("../model", "../interactions", "."):
    sys.path.insert(0, str((Path(__file__).parent / folder).resolve()))
import mtserver
from asked import SCHEMA, Interactions
from conftest import Api, Ref
from helpers import MIB, execute, stay, status
from provider import HANG, Provider, say

INSIDE = os.environ.get("MT_SMALL_DISK") == "1"
DISK = 640  # MiB: no run starts below 32, one ends below 16

if not INSIDE:
    def test_in_a_mount_namespace_of_its_own():
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "pytest", "-q", "-x",
                               "-p", "no:cacheprovider", __file__], env={**os.environ, "MT_SMALL_DISK": "1"},
                              capture_output=True, text=True, timeout=300, check=False)
        print(done.stdout[-8000:], done.stderr[-2000:])
        assert done.returncode == 0 and " passed" in done.stdout
else:
    @pytest.fixture()
    def small():
        """A server whose state, and nothing else, is on the small disk."""
        folder = Path(tempfile.mkdtemp(prefix="maitento-small-"))
        disk, other = folder / "disk", folder / "other"
        for path in (disk, other):
            path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m,mode=0711", "small", str(disk)], check=True)
        server = mtserver.Server(image="slim", state=str(disk),
                                 runner_options=["--scratch", str(other / "scratch.img")])
        try:
            with server:
                yield Api(server)
        finally:
            if (disk / "filler").exists():
                (disk / "filler").unlink()
            subprocess.run([mtserver.program("mt-runner"), "--purge", "--instance", server.instance,
                            "--state", str(disk / "state"), "--images", str(mtserver.IMAGES),
                            "--scratch", str(other / "scratch.img"), "--socket", str(disk / "runner.sock"),
                            "--service-uid", str(mtserver.SERVICE_ID), "--service-gid", str(mtserver.SERVICE_ID)],
                           capture_output=True, check=False)
            subprocess.run(["umount", "-l", str(disk)], check=True)
            subprocess.run(["rm", "-rf", str(folder)], check=True)

    def free(api):
        st = os.statvfs(api.server.dir)
        return st.f_bavail * st.f_frsize

    def story(api, run):
        return api.call("GET", f"/v1/capsule-runs/{run['id']}?story=true").get("story") or []

    def fill(api, left):
        """Takes all of the disk but so much, from outside."""
        with open(api.server.dir / "filler", "ab") as file:
            while free(api) > left:
                try:
                    file.write(bytes(min(MIB, max(4096, free(api) - left))))
                    file.flush()
                except OSError:
                    break

    def test_the_one_that_fills_the_disk_ends_before_it_is_full(small):
        owner, other = small.namespace(), small.namespace()
        for ns in (owner, other):
            small.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
        mount = {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}
        quiet = stay(small, other, "quiet", **mount)
        execute(small, quiet, "head -c 20M /dev/zero > /mnt/work/mine")  # before the disk is low: no matter
        small.capsule(owner, [{"command": "sh", "wait": False, "arguments": [
            "-c", "while :; do head -c 1M /dev/zero >> /mnt/work/big; sleep 0.01; done"]}], "filler", **mount)
        filler = small.start(owner, "filler")
        ended = small.get(filler, seconds=120)
        assert (ended["status"], ended["endReason"], ended["limitsReached"]) == ("Error", "diskFull", ["disk"]), ended
        assert "on the server's disk, file system 'work' grew most" in ended["failureDetails"], ended
        assert free(small) > 0
        # nobody starts, who lives goes on, and the store writes
        code, _, sentence = small.error("POST", f"/v1/namespaces/{owner}/capsules/filler/runs")
        assert code == 507 and "where the state folder is" in sentence, sentence
        assert execute(small, quiet, "echo ok | tee /mnt/work/ok")["outputStandard"] == "ok\n"
        time.sleep(2.5)  # the disk stays low, and nobody grows: nobody ends
        assert status(small, quiet)["status"] == "Running"
        small.raw("DELETE", small.files(owner, "work", "/big"))
        small.terminate(small.start(owner, "filler"))
        small.terminate(quiet)

    def test_the_end_of_a_run_is_written_when_the_disk_is_full(small):
        ns = small.namespace()
        runs = [stay(small, ns, f"c{i}") for i in range(3)]
        short = small.capsule(ns, [{"command": "sh", "arguments": [
            "-c", "sleep 4; head -c 4000 /dev/zero | tr '\\0' x >&2; exit 3"]}], "short")
        runs.append(small.start(ns, short))
        deadline = time.monotonic() + 30
        while "startupStarted" not in [line["kind"] for line in story(small, runs[3])]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        fill(small, 0)
        assert free(small) == 0
        small.get(runs[3])  # the first: nothing has been given up for it yet
        for run in runs[:3]:
            small.terminate(run)
        ends = [small.get(run) for run in runs]
        assert [e["endReason"] for e in ends] == ["terminated"] * 3 + ["startFailed"], ends
        assert ends[3]["failureDetails"].endswith("x" * 4000), ends  # more than the journal had room for
        (small.server.dir / "filler").unlink()
        deadline = time.monotonic() + 30
        while True:  # the reserve is kept again, and runs start again
            code, answer = small.server.request("POST", f"/v1/namespaces/{ns}/capsules/c0/runs")
            if code == 201:
                break
            assert code == 507 and time.monotonic() < deadline, answer
            time.sleep(0.2)
        small.get(answer, until="ready")
        small.terminate(answer)

    def test_what_a_model_answers_while_the_disk_is_full_is_written_when_there_is_room(small):
        with Provider() as model:
            small.call("PUT", "/v1/providers/deepseek", {"baseUrl": model.url, "key": "sk-small-disk-1"}, 200)
            asked = Interactions(small, small.namespace())
            asked.deploy(schema=SCHEMA, more='attempts = 2\nduration.max = "00:05:00"\n')
            long = '{"answer": "' + "n" * (3 * MIB) + '"}'
            model.add(say("{", 3, "}"), say(long), when="both")
            model.add(say("{", HANG), when="stopped")
            runs = {name: asked.start({"question": name}) for name in ("both", "stopped")}
            model.wait_for(2)
            fill(small, 0)
            # What it says can be heard, what it said is not lost, and nobody starts.
            text = {"stream": 0, "text": ""}
            while not text["text"]:
                text = asked.call("GET", f"/v1/interaction-runs/{runs['both']['id']}/text?stream={text['stream']}&wait=20", expect=200)
                assert not text["ended"]
            assert text["text"] == "{"
            problem = asked.refused("POST", asked.runs_of(), {"inputs": {"question": "late"}})
            assert problem["code"] == "diskFull" and "where the state folder is" in problem["detail"], problem
            # The end of a run can be asked for, and written.
            assert asked.cancel(runs["stopped"])["endReason"] == "cancelled"
            log = small.server.dir / "maitentod.log"
            deadline = time.monotonic() + 30
            while "cannot write what a model answered" not in log.read_text():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            run = asked.get(runs["both"])
            assert (run["status"], run["attemptCount"], len(model.seen)) == ("Running", 1, 2), run
            (small.server.dir / "filler").unlink()
            # It is tried again after 30 s at the latest; no answer is asked for twice.
            run = asked.end(runs["both"], 90)
            assert (run["status"], run["attemptCount"], len(model.seen)) == ("Finished", 2, 3), run["failureDetails"]
            assert run["output"] == long and [a["outcome"] for a in asked.attempts(run)] == ["wrongAnswer", "answered"]
            assert asked.run({"question": "again"})["endReason"] == "wrongAnswer"  # "ok" is no object

    def test_an_answer_that_the_disk_has_no_room_for_is_kept(small):
        with Provider() as model:
            small.call("PUT", "/v1/providers/deepseek", {"baseUrl": model.url, "key": "sk-small-disk-1"}, 200)
            asked = Interactions(small, small.namespace())
            asked.deploy()
            model.add(say("n" * (3 * MIB), 3, "."))
            run = asked.start()
            model.wait_for(1)
            fill(small, MIB)  # room for small things
            deadline = time.monotonic() + 30
            while "cannot write what a model answered" not in (small.server.dir / "maitentod.log").read_text():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            (small.server.dir / "filler").unlink()
            run = asked.end(run, 90)
            assert (run["endReason"], len(run["output"]), len(model.seen)) == ("answered", 3 * MIB + 1, 1), run["failureDetails"]
