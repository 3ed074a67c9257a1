# SPDX-License-Identifier: Apache-2.0
"""The Python client against the server made of paper: settings, records, errors, breaks."""
import datetime
import json
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "sdk" / "python"))
import maitento  # noqa: E402
from fake import Cut, Fake, Problem  # noqa: E402
from maitento import _records  # noqa: E402


@pytest.fixture()
def fake(tmp_path):
    fake = Fake(tmp_path / "api.sock").start()
    yield fake
    fake.stop()


@pytest.fixture()
def py(fake, tmp_path, monkeypatch):
    for name in ("MAITENTO_URL", "MAITENTO_API_KEY", "MAITENTO_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with maitento.Maitento(f"unix:{fake.path}") as client:
        yield client


def test_where_settings_come_from(fake, tmp_path, monkeypatch, py):
    assert py.default_namespace is None and py._core.namespace(None) == "work"
    (tmp_path / ".maitento").mkdir()
    (tmp_path / ".maitento" / "settings.json").write_text(json.dumps(
        {"api": {"url": f"unix:{fake.path}", "key": "mt_good"}, "defaultNamespace": "filed"}))
    client = maitento.Maitento()
    assert client.default_namespace == "filed" and client.namespaces.list()[0].name == "work"
    assert fake.requests[-1].headers["Authorization"] == "Bearer mt_good"
    monkeypatch.setenv("MAITENTO_URL", f"unix:{fake.path}x")  # the key was stored for another server
    monkeypatch.setenv("MAITENTO_NAMESPACE", "named")
    client = maitento.Maitento()
    assert client._core.http._sign_in == {} and client.default_namespace == "named"
    assert maitento.Maitento(namespace="given").default_namespace == "given"


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "http://a b", "http://u:p@h", "unix:x", "http://h:99999x"])
def test_addresses_that_are_none(url, monkeypatch):
    monkeypatch.setenv("MAITENTO_URL", url or "x")
    with pytest.raises(maitento.MaitentoError) as error:
        maitento.Maitento()
    assert error.value.code == "badRequest" and "u:p" not in str(error.value)


def test_unreachable_at_once():
    began = time.monotonic()
    with pytest.raises(maitento.MaitentoError) as error:
        maitento.Maitento("unix:/nonexistent/api.sock").namespaces.find("x")
    assert error.value.code == "unreachable" and error.value.status is None and time.monotonic() - began < 20


def test_create_if_missing_and_files(fake, py):
    assert py.namespaces.find("tutorials") is None
    py.namespaces.create("tutorials")
    assert py.namespaces.find("tutorials")
    assert py.vfs.find_by_name("data") is None
    py.vfs.create("data")
    assert py.vfs.find_by_name("data").name == "data"
    files = py.vfs.open("data")
    files.write_text("/a/ü b.txt", "é\r\n")
    assert files.read_text("/a/ü b.txt") == "é\r\n" and files.read("/a/ü b.txt") == "é\r\n".encode()
    assert [(i.path, i.type, i.name_escaped) for i in files.list(recursive=True)] == [
        ("/a", "folder", False), ("/a/ü b.txt", "file", False)]
    with pytest.raises(TypeError):
        files.write("/x", "text")
    with pytest.raises(maitento.MaitentoError) as error:
        files.read("/none")
    assert (error.value.code, error.value.status) == ("notFound", 404)


def test_errors_name_the_namespace_and_its_source(fake, py):
    with pytest.raises(maitento.MaitentoError) as error:
        py.capsules.start("nope")
    assert "namespace 'work' is from your default on the server" in str(error.value)


def test_deploy_collects_a_project(fake, py, tmp_path):
    project = tmp_path / "p"
    (project / "capsules" / "deep").mkdir(parents=True)
    (project / "capsules" / "a.mtr").write_text("autoTerminate = true\n")
    (project / "capsules" / "deep" / "b.mtr").write_bytes(b"\xff")
    (project / "capsules" / ".hidden.mtr").write_text("x")
    (project / "capsules" / "note.txt").write_text("x")
    (project / "capsules" / "link.mtr").symlink_to("/etc/passwd")
    (project / "other").mkdir()
    result = py.deploy(project, dry_run=True)
    assert result.dry_run and fake.deployed["files"] == [
        {"path": "capsules/a.mtr", "content": "autoTerminate = true\n"},
        {"path": "capsules/deep/b.mtr", "contentBase64": "/w=="}]
    (tmp_path / "top").mkdir()
    project.rename(tmp_path / "top" / "maitento")
    for folder, said in ((tmp_path / "top", "did you mean"), (tmp_path / "none", "no folder")):
        with pytest.raises(maitento.MaitentoError) as error:
            py.deploy(folder)
        assert said in str(error.value)
    fake.on("POST", ".*/deploy", lambda r, m: (_ for _ in ()).throw(Problem(
        422, "deployFailed", "1 error", diagnostics=[{"file": "a.mtr", "line": 3, "column": 7, "message": "no"}])))
    with pytest.raises(maitento.MaitentoError) as error:
        py.deploy(tmp_path / "top" / "maitento")
    assert "a.mtr:3:7: no" in str(error.value) and error.value.diagnostics[0]["line"] == 3


def test_start_sends_what_is_given(fake, py):
    run = py.capsules.start("bench", version=3, environment={"A": "b"}, max_duration=datetime.timedelta(seconds=90),
                            startup=[{"command": "x", "run_as_user": "u", "maxDuration": datetime.timedelta(minutes=1)}],
                            vfs=[{"vfs": "data", "mount_name": "d"}], labels={"l_x": "1"})
    assert run.status == "Starting" and json.loads(fake.runs[0]["body"]) == {
        "version": 3, "environment": {"A": "b"}, "maxDuration": "00:01:30",
        "startup": [{"command": "x", "runAsUser": "u", "maxDuration": "00:01:00"}],
        "vfs": [{"vfs": "data", "mountName": "d"}], "labels": {"l_x": "1"}}
    threading.Timer(0.3, fake.finish, (fake.runs[0],), {"status": "Error"}).start()
    assert py.capsule_runs.wait(run).status == "Error"


def test_capacity(fake, py):
    state = {"full": 2}

    def full(r, m):
        if state["full"]:
            state["full"] -= 1
            raise Problem(429, "capacityExceeded", "64 runs live already", {"Retry-After": "1"})
    fake.on("POST", ".*/runs", full)
    with pytest.raises(maitento.MaitentoError) as error:
        py.capsules.start("bench")
    assert error.value.retry_after == 1
    assert py.capsules.start("bench", wait_for_capacity=True).id


def test_exec_and_wait(fake, py):
    run = py.capsules.start("bench")

    def end(**how):
        count = len(fake.commands)

        def watch():
            while len(fake.commands) == count:
                time.sleep(0.02)
            fake.end(fake.commands[count], **how)
        threading.Thread(target=watch, daemon=True).start()

    end(status="Error", code=3, out=b"out", err=b"err")
    done = py.capsule_runs.exec_and_wait(run.id, "x", ["a b", ""], run_as_user="sandbox", run_async=True,
                                         max_duration="00:00:05", working_directory="/tmp", stdin="in")
    assert (done.exit_code, done.output_standard, done.output_error, done.run_async) == (3, "out", "err", True)
    assert done.output_standard_full_length is None and done.limit_ms is None
    assert fake.commands[0]["body"] == {"command": "x", "arguments": ["a b", ""], "runAsUser": "sandbox", "async": True,
                                        "maxDuration": "00:00:05", "workingDirectory": "/tmp", "stdin": "in"}
    end(status="Aborted", code=None, reason="runEnded", details="the run was stopped by ada")
    with pytest.raises(maitento.CapsuleCommandAbortedError) as error:
        py.capsule_runs.exec_and_wait(run, "x")
    assert error.value.reason == "the run was stopped by ada" and error.value.command.status == "Aborted"
    assert error.value.run.id == run.id and isinstance(error.value, maitento.MaitentoError)
    fake.finish(fake.runs[0], reason="terminated", details="stopped by ada")
    with pytest.raises(maitento.CapsuleCommandAbortedError) as error:
        py.capsule_runs.exec_and_wait(run, "x")
    assert error.value.command is None and error.value.run.failure_details == "stopped by ada"
    for wrong in ("-l", b"-l"):
        with pytest.raises(TypeError):
            py.capsule_runs.exec(run, "ls", wrong)


def test_a_send_that_is_cut_off_is_never_done_twice(fake, py):
    run = py.capsules.start("bench")
    state = {"cuts": 3}

    def cut(r, m):
        if state["cuts"]:
            state["cuts"] -= 1
            fake.send_command(r, fake.runs[0])
            raise Cut
    fake.on("POST", ".*/commands", cut)
    py.capsule_runs.exec(run, "x")
    assert len(fake.commands) == 1 and len(fake.asked("POST", "/commands$")) == 4


def test_a_wait_outlives_a_restart(fake, py):
    run = py.capsules.start("bench")
    sent = py.capsule_runs.exec(run, "x")
    fake.on("GET", ".*/commands/.*", lambda r, m: (_ for _ in ()).throw(Cut()))

    def restart():
        fake.stop()
        time.sleep(1)
        fake.end(fake.commands[0], status="Error", code=3)
        fake.overrides.clear()
        fake.start()
    threading.Timer(0.5, restart).start()
    assert py.capsule_runs.wait_command(run, sent).exit_code == 3


def test_output_follows_through_breaks(fake, py):
    run = py.capsules.start("bench")
    sent = py.capsule_runs.exec(run, "x")
    state = {"n": 0}

    def broken(r, m):
        state["n"] += 1
        if state["n"] < 4:
            piece = fake.commands[0]["spool"]["standard"][int(r.query["from"]):][:3]
            return 200, piece, {"Content-Length": str(len(piece) + 5), "Connection": "close"}
    fake.on("GET", ".*/output", broken)
    fake.commands[0]["spool"]["standard"] = b"0123456789"
    threading.Timer(2, fake.end, (fake.commands[0],), {"out": b"end"}).start()
    assert b"".join(py.capsule_runs.output(run, sent, follow=True)) == b"0123456789end"


def test_a_command_by_its_id_alone_and_the_story_of_a_run(fake, py):
    run = py.capsules.start("bench")
    command = py.capsule_runs.exec(run.id, "ls")
    assert py.capsule_runs.find_command(command.id).run_id == run.id
    assert py.capsule_runs.find_command("0" * 8 + "-0000-7000-8000-" + "0" * 12) is None
    assert py.capsule_runs.story(run) == []
    fake.story_part = 2
    fake.begin(fake.commands[0])
    fake.tell(fake.runs[0], "note", "a note")
    fake.over(fake.commands[0])
    story = py.capsule_runs.story(run.id)
    assert [(e.number, e.kind, e.command_id) for e in story] == [
        (1, "commandStarted", command.id), (2, "note", None), (3, "commandEnded", command.id)]
    assert [e.number for e in py.capsule_runs.story(run, after=2)] == [3]


def test_waits_have_time_outs(fake, py):
    run = py.capsules.start("bench")
    sent = py.capsule_runs.exec(run, "x")
    began = time.monotonic()
    assert py.capsule_runs.wait_command(run, sent, timeout=1).status == "Queued"
    assert py.capsule_runs.wait(run, timeout=1).status == "Starting"
    assert 1.9 < time.monotonic() - began < 30


@pytest.mark.parametrize("value, text", [
    (datetime.timedelta(seconds=1), "00:00:01"), (datetime.timedelta(hours=25), "1.01:00:00"), ("90", "90"), (None, None)])
def test_durations(value, text):
    assert _records.duration(value) == text


@pytest.mark.parametrize("value", [datetime.timedelta(0), datetime.timedelta(seconds=-1), datetime.timedelta(seconds=1.5), 5])
def test_durations_that_are_none(value):
    with pytest.raises((TypeError, ValueError)):
        _records.duration(value)


def test_many_threads(fake, py):
    run = py.capsules.start("bench")
    threads = [threading.Thread(target=lambda: [py.capsule_runs.exec(run, "x") for _ in range(10)]) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len({c["id"] for c in fake.commands}) == 80
