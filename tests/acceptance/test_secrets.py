"""Secrets through the API, the Python client and mt: acceptance 4, 64, 64a, and what becomes of them."""
import base64
import subprocess
import sys
import time

import pytest

import mtserver
from conftest import Ref, mtr

sys.path.insert(0, str(mtserver.ROOT / "sdk" / "python"))
import maitento  # noqa: E402


@pytest.fixture(scope="module")
def py(server):
    server.environment()
    with maitento.Maitento(server.url, server.key) as client:
        yield client


@pytest.fixture()
def space(api):
    return api.namespace("secret")


def capsule(**more):
    return mtr({"users": [{"name": "sandbox"}],
                "secrets": [{"secret": Ref("api-token"), "mountName": "token"}], **more})


def secrets_of(ns):
    return f"/v1/namespaces/{ns}/secrets"


# ---- deploy ----

def test_a04_a_secret_has_to_exist_before_the_deploy(api, py, space):
    answer = api.deploy(space, {"capsules/c.mtr": capsule()}, expect=422)
    found = answer["diagnostics"][0]
    assert found["message"] == f"no secret 'api-token' in namespace '{space}'"
    assert found["hint"] == "create it first: mt secret-create api-token"
    assert (found["file"], found["line"]) == ("capsules/c.mtr", 5)
    assert api.call("GET", f"/v1/namespaces/{space}/capsules")["items"] == []
    # One of another namespace is none.
    py.secrets.create("api-token", "elsewhere", api.namespace("other"))
    api.deploy(space, {"capsules/c.mtr": capsule()}, expect=422)
    py.secrets.create("api-token", "here", space)
    assert api.deploy(space, {"capsules/c.mtr": capsule()})["created"]


# ---- the file ----

def test_a64_the_file_of_a_secret_for_the_default_user(api, py, space):
    value = bytes(range(256)) * 8 + b"\n"
    py.secrets.create("api-token", value, space)
    api.deploy(space, {"capsules/c.mtr": capsule()})
    run = py.capsules.start("c", space)
    done = py.capsule_runs.exec_and_wait(run, "base64 -w0 /mnt/secrets/token; stat -c ' %a %U %G' /mnt/secrets/token")
    assert done.exit_code == 0, done.output_error
    encoded, *rest = done.output_standard.split()
    assert base64.b64decode(encoded) == value and rest == ["400", "maitento", "maitento"]
    # Inside the machine the capsule's root is root, and may.
    assert py.capsule_runs.exec_and_wait(run, "wc -c < /mnt/secrets/token", run_as_user="root").output_standard == "2049\n"
    py.capsule_runs.terminate(run)


def test_a64a_another_user_gets_permission_denied(api, py, space):
    py.secrets.create("api-token", "CANARY-7f3a", space)
    api.deploy(space, {"capsules/c.mtr": capsule()})
    run = py.capsules.start("c", space)
    done = py.capsule_runs.exec_and_wait(run, "cat", ["/mnt/secrets/token"], run_as_user="sandbox")
    assert done.exit_code == 1 and done.output_standard == ""
    assert done.output_error == "cat: /mnt/secrets/token: Permission denied\n"
    for line in ("ls /mnt/secrets", "cd /mnt/secrets", "cat /mnt/secrets/*", "test -r /mnt/secrets/token"):
        done = py.capsule_runs.exec_and_wait(run, line, run_as_user="sandbox")
        assert done.exit_code != 0 and "CANARY" not in done.output_standard + done.output_error
    # As the concept page says: what that user needs is copied first.
    copy = "install -m 644 /mnt/secrets/token /tmp/token"
    assert py.capsule_runs.exec_and_wait(run, copy).exit_code == 0
    assert py.capsule_runs.exec_and_wait(run, "cat /tmp/token", run_as_user="sandbox").output_standard == "CANARY-7f3a"
    py.capsule_runs.terminate(run)


def test_secrets_of_a_start_are_added(api, py, space):
    py.secrets.create("api-token", "one", space)
    py.secrets.create("extra", "two", space)
    api.deploy(space, {"capsules/c.mtr": capsule(autoTerminate=True, startup=[
        {"command": "test \"$(cat /mnt/secrets/token /mnt/secrets/more)\" = onetwo"}])})
    run = py.capsules.run("c", space, secrets=[{"secret": "extra", "mount_name": "more"}])
    assert run.status == "Finished", run.failure_details
    for added, code, word in (
            ([{"secret": "extra", "mountName": "token"}], "badField", "capsule's already"),
            ([{"secret": "none", "mountName": "x"}], "notFound", f"no secret 'none' in namespace '{space}'"),
            ([{"secret": "extra", "mountName": "../x"}], "badField", "mountName"),
            ([{"secret": "extra", "mountName": "x"}, {"secret": "extra", "mountName": "x"}], "badField", "x")):
        _, got, detail = api.error("POST", f"/v1/namespaces/{space}/capsules/c/runs", {"secrets": added})
        assert got == code and word in detail, (got, detail)


def test_too_much_for_one_run_is_said(api, py, space):
    for i in range(17):
        py.secrets.create(f"s{i}", "x" * 65536, space)
    api.deploy(space, {"capsules/big.mtr": mtr({"secrets": [{"secret": Ref(f"s{i}"), "mountName": f"s{i}"}
                                                            for i in range(17)]})})
    with pytest.raises(maitento.MaitentoError) as error:
        py.capsules.run("big", space)
    assert error.value.code == "tooLarge" and "1 MiB in all" in str(error.value) and "x" * 20 not in str(error.value)
    assert py.capsule_runs.list(space) == []


# ---- change and removal ----

def test_another_value_is_for_the_next_start(api, py, space):
    py.secrets.create("api-token", "old", space)
    api.deploy(space, {"capsules/c.mtr": capsule()})
    first = py.capsules.start("c", space)
    py.capsule_runs.wait(first, "ready")
    py.secrets.set("api-token", "new", space)
    second = py.capsules.start("c", space)
    for run, value in ((first, "old"), (second, "new")):
        assert py.capsule_runs.exec_and_wait(run, "cat /mnt/secrets/token").output_standard == value
    _, code, detail = api.error("DELETE", f"{secrets_of(space)}/api-token")
    assert code == "conflict" and first.id in detail and second.id in detail and "named by capsules c" in detail
    _, code, detail = api.error("DELETE", f"/v1/namespaces/{space}")
    assert code == "conflict" and "secrets api-token" in detail
    py.secrets.delete("api-token", space, force=True)
    # Live runs keep theirs; the next start says what is missing.
    assert py.capsule_runs.exec_and_wait(first, "cat /mnt/secrets/token").output_standard == "old"
    with pytest.raises(maitento.MaitentoError) as error:
        py.capsules.start("c", space)
    assert error.value.code == "notFound" and f"no secret 'api-token' in namespace '{space}'" in str(error.value)
    for run in (first, second):
        py.capsule_runs.terminate(run)


def test_members_use_them_and_strangers_see_nothing(server, api, space):
    api.call("POST", secrets_of(space), {"name": "api-token", "value": "CANARY-7f3a"}, 201)
    user = f"u{space}"
    key = api.call("POST", "/v1/users", {"name": user}, 201)["key"]
    with maitento.Maitento(server.url, key) as his:
        for call in (lambda: his.secrets.list(space), lambda: his.secrets.get("api-token", space),
                     lambda: his.secrets.set("api-token", "x", space), lambda: his.secrets.create("b", "x", space),
                     lambda: his.secrets.delete("api-token", space, force=True)):
            with pytest.raises(maitento.MaitentoError) as error:
                call()
            assert error.value.code == "notFound" and f"no namespace '{space}'" in str(error.value)
        api.call("PUT", f"/v1/namespaces/{space}/members/{user}", None, 204)
        assert [s.name for s in his.secrets.list(space)] == ["api-token"]
        assert "CANARY" not in str(his.secrets.get("api-token", space).raw)
        his.secrets.set("api-token", "x", space)
        his.secrets.delete("api-token", space)
    assert api.call("GET", secrets_of(space))["items"] == []


def test_by_mt_from_a_file_to_a_run(server, api, space, tmp_path):
    env = {**server.environment(), "MAITENTO_NAMESPACE": space, "HOME": str(tmp_path)}

    def mt(*words, **more):
        done = subprocess.run(["mt", *words], env=env, cwd=tmp_path, capture_output=True, timeout=120, check=False,
                              **more)
        return done.returncode, done.stdout.decode(), done.stderr.decode()
    (tmp_path / "token").write_bytes(b"two\nlines\n")
    assert mt("secret-create", "api-token", "--file", "token")[0] == 0
    (tmp_path / "p/capsules").mkdir(parents=True)
    (tmp_path / "p/capsules/c.mtr").write_text(capsule())
    assert mt("deploy", "p")[0] == 0
    code, run, _ = mt("capsule-start", "c")
    assert code == 0
    assert mt("capsule-exec", run.strip(), "--wait", "cat /mnt/secrets/token")[:2] == (0, "two\nlines\n")
    assert mt("capsule-exec", run.strip(), "--wait", "--user", "sandbox", "cat /mnt/secrets/token")[0] == 1
    code, _, said = mt("secret-delete", "api-token")
    assert code == 5 and run.strip() in said
    mt("capsule-terminate", run.strip())


# ---- a server that was away ----

def test_a_start_that_waits_reads_the_value_of_the_moment_and_says_when_it_is_gone():
    """A run that no runner has taken when the server stops is planned again at its next start."""
    with mtserver.Server(image="slim") as own:
        def call(method, path, body=None):
            status, answer = own.request(method, path, body)
            assert status < 300, (method, path, answer)
            return answer
        call("POST", "/v1/namespaces", {"name": "n"})
        for name in ("kept", "lost"):
            call("POST", "/v1/namespaces/n/secrets", {"name": name, "value": "before"})
            text = mtr({"autoTerminate": True, "secrets": [{"secret": Ref(name), "mountName": "token"}],
                        "startup": [{"command": "test $(cat /mnt/secrets/token) = after"}]})
            call("POST", "/v1/namespaces/n/deploy", {"files": [{"path": f"capsules/{name}.mtr", "content": text}]})
        own.runner.terminate()
        own.runner.wait(20)
        runs = {name: call("POST", f"/v1/namespaces/n/capsules/{name}/runs") for name in ("kept", "lost")}
        call("PUT", "/v1/namespaces/n/secrets/kept", {"value": "after"})
        call("DELETE", "/v1/namespaces/n/secrets/lost?force=true")
        own.server.kill()
        own.server.wait(20)
        own.start_server()
        own.start_runner()
        ended = {}
        deadline = time.monotonic() + 60
        while len(ended) < 2:
            assert time.monotonic() < deadline, runs
            for name, run in runs.items():
                run = call("GET", f"/v1/capsule-runs/{run['id']}?wait=10")
                if run["endReason"]:
                    ended[name] = run
        assert ended["kept"]["status"] == "Finished", ended["kept"]
        assert ended["lost"]["status"] == "Error" and ended["lost"]["endReason"] == "startFailed"
        assert "no secret 'lost' in namespace 'n'" in ended["lost"]["failureDetails"]
