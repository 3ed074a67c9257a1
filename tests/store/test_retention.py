# SPDX-License-Identifier: Apache-2.0
"""What is kept of ended runs and for how long (--keep-…): outputs, records, folders; live runs are left alone."""
import time
from contextlib import contextmanager

import pytest

import mtserver
from conftest import Api

SMALL = {"limits": {"memory": "64MiB", "disk": "64MiB"}, "maxDuration": "01:00:00"}


@contextmanager
def keeping(*options):
    with mtserver.Server(image="slim", server_options=options) as server:
        api = Api(server)
        api.ns = api.namespace()
        api.capsule(api.ns, [], **SMALL)
        yield api


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def printed(api, line, ends=True):
    """A run with one command that has ended: (run, command)."""
    run = api.start(api.ns, "c")
    at = f"/v1/capsule-runs/{run['id']}/commands"
    command = api.call("POST", f"{at}?wait=60", {"command": line}, 201)
    assert command["exitCode"] == 0, command
    if ends:
        api.call("POST", f"/v1/capsule-runs/{run['id']}/terminate?wait=60")
    return run, command


def output(api, run, command, stream="standard"):
    status, _, body = api.raw("GET", f"/v1/capsule-runs/{run['id']}/commands/{command['id']}/output?stream={stream}")
    return status, body


def folder(api, run):
    return api.server.dir / "state" / "runs" / run["id"]


def test_outputs_go_after_their_time_and_the_record_stays():
    with keeping("--keep-outputs", "00:00:01") as api:
        alive, its = printed(api, "echo alive", ends=False)
        run, command = printed(api, "echo some; echo trouble >&2")
        quiet, silent = printed(api, "true")
        until(lambda: output(api, run, command)[0] == 410, "the output is gone")
        when = None

        def told():
            nonlocal when
            when = api.call("GET", f"/v1/capsule-runs/{run['id']}")["dateOutputsRemoved"]
            return when
        until(told, "when it went is told")
        status, code, detail = api.error("GET", f"/v1/capsule-runs/{run['id']}/commands/{command['id']}/output")
        assert (status, code) == (410, "gone") and f"removed at {when}" in detail and "record" in detail
        assert output(api, run, command, "error")[0] == 410
        assert output(api, quiet, silent) == (200, b"")  # nothing was printed, nothing is gone
        record = api.call("GET", f"/v1/capsule-runs/{run['id']}/commands/{command['id']}")
        assert (record["outputStandard"], record["outputError"]) == ("some\n", "trouble\n")
        story = api.call("GET", f"/v1/capsule-runs/{run['id']}?story=true")["story"]
        assert any(e["kind"] == "commandEnded" for e in story)
        assert not (folder(api, run) / "out").exists() and (folder(api, run) / "journal").exists()
        assert output(api, alive, its) == (200, b"alive\n")
        assert api.call("GET", f"/v1/capsule-runs/{alive['id']}")["dateOutputsRemoved"] is None


def test_outputs_over_their_size_go_the_longest_ended_first():
    with keeping("--keep-outputs-size", "1MiB") as api:
        alive, its = printed(api, "head -c 2000000 /dev/zero", ends=False)
        made = [printed(api, "head -c 700000 /dev/zero") for _ in range(3)]
        for run, command in made[:2]:
            until(lambda r=run, c=command: output(api, r, c)[0] == 410, "the older two are gone")
        first, second = (api.call("GET", f"/v1/capsule-runs/{run['id']}")["dateOutputsRemoved"] for run, _ in made[:2])
        assert not (first and second) or first <= second
        assert len(output(api, *made[2])[1]) == 700000
        assert len(output(api, alive, its)[1]) == 2000000


def test_records_go_after_their_time_with_all_that_is_theirs():
    with keeping("--keep-runs", "00:00:02") as api:
        alive, its = printed(api, "echo alive", ends=False)
        run, command = printed(api, "echo some")
        until(lambda: api.raw("GET", f"/v1/capsule-runs/{run['id']}")[0] == 404, "the record is gone")
        assert api.raw("GET", f"/v1/commands/{command['id']}")[0] == 404
        assert not folder(api, run).exists()
        assert [r["id"] for r in api.call("GET", "/v1/capsule-runs")["items"]] == [alive["id"]]
        assert api.call("GET", f"/v1/capsule-runs/{alive['id']}")["status"] == "Running"
        assert output(api, alive, its) == (200, b"alive\n")


def test_without_a_runner_nothing_is_forgotten_half():
    """The record stays until the folder is gone: then the folder goes, and the record after it."""
    with keeping("--keep-runs", "00:00:05") as api:
        run, _ = printed(api, "echo some")
        api.server.runner.kill()
        api.server.runner.wait()
        time.sleep(7)  # its time is over
        assert folder(api, run).exists() and api.call("GET", f"/v1/capsule-runs/{run['id']}")["status"] == "Finished"
        api.server.start_runner()
        until(lambda: not folder(api, run).exists(), "the folder is gone")
        until(lambda: api.raw("GET", f"/v1/capsule-runs/{run['id']}")[0] == 404, "the record is gone")


def test_folders_of_runs_that_nobody_knows_go_at_a_start():
    with keeping() as api:
        run, _ = printed(api, "echo some")
        alive, its = printed(api, "echo alive", ends=False)
        other = api.namespace()
        api.capsule(other, [], **SMALL)
        gone = api.start(other, "c")
        api.call("POST", f"/v1/capsule-runs/{gone['id']}/terminate?wait=60")
        api.deploy(other, {"prompts/p.md": "x"}, prune=True)
        api.deploy(other, {}, prune=True)
        api.call("DELETE", f"/v1/namespaces/{other}", expect=204)
        assert folder(api, gone).exists()
        api.server.server.kill()
        api.server.server.wait()
        api.server.start_server()
        until(lambda: not folder(api, gone).exists(), "the folder of a run without a record is gone")
        assert folder(api, run).exists() and output(api, alive, its) == (200, b"alive\n")


@pytest.mark.parametrize("options, said", [
    (["--keep-outputs", "0"], "--keep-outputs must be"),
    (["--keep-outputs-size", "1"], "--keep-outputs-size must be"),
    (["--keep-runs", "soon"], "--keep-runs must be"),
    (["--keep-events-count", "0"], "--keep-events-count must be a whole number from 1"),
    (["--keep-event", "1"], "keep-events"),
])
def test_options_that_are_wrong(options, said):
    with pytest.raises(mtserver.StartError) as error:
        with mtserver.Server(image="slim", server_options=options):
            pass
    assert said in str(error.value)
