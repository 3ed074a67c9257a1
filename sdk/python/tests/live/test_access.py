# SPDX-License-Identifier: Apache-2.0
"""The server, users, keys, namespaces, secrets, deploys, runs, shells and events, as they are."""
import threading

import pytest
from maitento import MaitentoError


def code_of(call, *arguments, **options):
    with pytest.raises(MaitentoError) as error:
        call(*arguments, **options)
    return error.value.code


def test_the_server(world):
    mt = world.mt
    info = mt.server.info()
    assert info.product == "maitento" and info.api_version == 1 and mt.server.health().version == info.version
    assert mt.server.description()["openapi"].startswith("3.1")
    doctor = mt.server.doctor()
    assert {check.status for check in doctor.checks} <= {"ok", "warning", "failed"} and doctor.state_folder
    assert "slim" in [image.name for image in mt.images.list()] and mt.images.prune().layers_removed >= 0
    assert mt.whoami().role == "admin"


def test_o32_users_keys_and_members(world, clients):
    mt, name = world.mt, world.namespace.replace("-", "")
    ada = mt.users.create(name)
    assert ada.key.startswith("mt_") and ada.role == "user" and name in [u.name for u in mt.users.list()]
    his = clients(world.live.url, ada.key)
    assert his.whoami().name == name and his.namespaces.find(world.namespace) is None
    assert code_of(his.namespaces.get, world.namespace) == "notFound" and code_of(his.users.list) == "forbidden"
    mt.namespaces.add_member(world.namespace, name)
    assert his.namespaces.find(world.namespace).owner != name
    assert [m.name for m in mt.namespaces.list_members(world.namespace)] == [name]
    mt.namespaces.remove_member(world.namespace, name)
    made = his.keys.create("laptop", expires="2099-01-01T00:00:00Z")
    other = clients(world.live.url, made.key)
    assert other.whoami().name == name
    assert {k.name for k in his.keys.list()} >= {"laptop"} == {k.name for k in mt.keys.list(user=name)} & {"laptop"}
    his.keys.delete(made.id)
    assert code_of(other.whoami) == "unauthenticated"
    mt.users.delete(name)
    assert code_of(his.whoami) == "unauthenticated"


def test_008_009_013_what_is_not_there_is_nothing(world, clients):
    mt, name = world.mt, world.namespace.replace("-", "")
    assert mt.namespaces.find("nothing-of-it") is None and mt.vfs.find_by_name("nothing") is None
    assert mt.secrets.find("nothing") is None
    ada = clients(world.live.url, mt.users.create(name).key)
    assert ada.default_namespace is None and code_of(ada.vfs.list) == "badRequest"
    assert ada.namespaces.create(f"{name}-1").became_default and ada.namespaces.create(f"{name}-2").your_default
    ada.vfs.create("data")
    assert ada.vfs.find_by_name("data").namespace == f"{name}-1"
    assert ada.namespaces.set_default(f"{name}-2").default_namespace == f"{name}-2"
    with pytest.raises(MaitentoError) as error:
        ada.vfs.get("data")
    assert f"(namespace '{name}-2' is from your default on the server)" in str(error.value)
    assert code_of(ada.namespaces.delete, f"{name}-1") == "conflict"
    ada.vfs.delete("data", f"{name}-1")
    for n in (1, 2):
        ada.namespaces.delete(f"{name}-{n}")
    assert ada.namespaces.list() == []


def test_secrets_go_in_and_never_come_back(world):
    mt = world.mt
    assert mt.secrets.create("token", "CANARY-é").name == "token"
    assert code_of(mt.secrets.create, "token", "x") in ("conflict", "alreadyExists")
    run = world.start('secrets = [{ secret = @ref("token") mountName = "t" }]\n')
    assert mt.capsule_runs.exec_and_wait(run, "cat /mnt/secrets/t").output_standard == "CANARY-é"
    mt.secrets.set("token", b"\x00\xff")
    assert [s.name for s in mt.secrets.list()] == ["token"] and "CANARY" not in str(mt.secrets.get("token").raw)
    assert code_of(mt.secrets.delete, "token") == "conflict"
    mt.secrets.delete("token", force=True)


def test_deploys_say_what_they_did_and_what_is_wrong(world):
    done = world.deploy({"capsules/a.mtr": "autoTerminate = true\n"}, dry_run=True)
    assert done.dry_run and [(d.kind, d.name, d.version) for d in done.created] == [("capsule", "a", 1)]
    assert world.deploy({"capsules/a.mtr": "autoTerminate = true\n"}).created[0].version == 1
    assert world.deploy({"capsules/a.mtr": "autoTerminate = true\n"}).unchanged[0].name == "a"
    with pytest.raises(MaitentoError) as error:
        world.deploy({"capsules/a.mtr": 'vfs = [{ vfs = @ref("none") mountName = "m" }]\n'})
    assert error.value.code == "deployFailed" and error.value.diagnostics[0].line == 1
    assert "capsules/a.mtr:1:" in str(error.value) and "'none'" in str(error.value)
    removed = world.deploy({"capsules/b.mtr": "autoTerminate = true\n"}, prune=True).removed
    assert [d.name for d in removed] == ["a"]


def test_015_runs_with_what_a_start_adds(world):
    mt = world.mt
    mt.vfs.create("out")
    world.capsule("autoTerminate = true\n", "job")
    options = {
        "environment": {"WORD": "a  b"},
        "max_duration": "00:05:00",
        "labels": {"ticket": "4711"},
        "startup": [{"command": "sh", "arguments": ["-c", 'echo "$WORD" > /mnt/out/x'], "max_duration": "00:01:00"}],
        "vfs": [{"vfs": "out", "mount_name": "out"}],
    }
    plan = mt.capsules.plan("job", **options)
    assert plan.dry_run and plan.mounts[0].mount_name == "out" and plan.definition.startup[0].command == "sh"
    run = mt.capsules.run("job", **options)
    assert (run.status, run.end_reason, run.labels, run.has_ended) == ("Finished", "exited", {"ticket": "4711"}, True)
    assert mt.vfs.open("out").read_text("/x") == "a  b\n"
    assert [e.kind for e in mt.capsule_runs.story(run)][-1] in ("ended", "closed")
    assert [r.id for r in mt.capsule_runs.list(world.namespace, "job", "Finished")] == [run.id]
    assert mt.capsules.get("job").definition.auto_terminate is True and mt.capsules.list()[0].name == "job"
    failed = mt.capsules.run("job", startup=[{"command": "exit 4"}])
    assert failed.status == "Error" and "exit code 4" in failed.failure_details
    key = {"idempotency_key": f"{world.namespace} once"}
    assert mt.capsules.start("job", **key).id == mt.capsules.start("job", **key).id


def test_runs_are_extended_and_stopped(world, run):
    runs = world.mt.capsule_runs
    assert runs.extend(run, "00:20:00").max_duration == "00:20:00"
    runs.terminate(run)
    ended = runs.wait(run)
    assert (ended.status, ended.end_reason) == ("Finished", "terminated") and "stopped by" in ended.failure_details
    assert runs.terminate(run) == ended == runs.wait_until_ready(run)


def test_shells(world, run):
    shells = world.mt.shells
    shell = shells.start(run, columns=100, rows=30)
    shown, ready = bytearray(), threading.Event()

    def read():
        for piece in shells.output(run, shell):
            shown.extend(piece)
            ready.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert ready.wait(20)
    shells.resize(run, shell, 120, 40)
    shells.type(run, shell, "stty size; echo é$((6*7)); exit 5\n")
    reader.join(30)
    assert b"40 120" in shown and "é42".encode() in shown
    assert (shells.get(run, shell).exit_code, shells.list(run)[0].status) == (5, "Ended")
    other = shells.start(run)
    shells.close(run, other)


def test_events_of_one_run_with_what_it_prints(world, run):
    with world.mt.events.open(run=run, output=True) as events:
        done = world.mt.capsule_runs.exec_and_wait(run, "echo é; echo e >&2; exit 3")
        told = []
        while not told or (told[-1].event, getattr(told[-1], "change", "")) != ("change", "ended"):
            told.append(events.next(20))
    assert "".join(e.text for e in told if e.event == "output" and e.stream == "standard") == "é\n"
    assert (told[-1].id, told[-1].status, told[-1].exit_code) == (done.id, "Error", 3)
    with world.mt.events.open(last=1000, namespace=world.namespace, follow=False) as before:
        assert told[-1].number in [e.number for e in before]
