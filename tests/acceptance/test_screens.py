"""mt by hand against a real server: exit codes of A.9, what is said, the shapes of --json; users, keys, members."""
import datetime
import json
import os
import re

import pytest

LATER = "2100-01-01T00:00:00Z"


@pytest.fixture()
def ada(mt):
    """An ordinary user: (name, how she is signed in)."""
    name = f"ada-{os.getpid()}-{os.urandom(3).hex()}"
    key = mt("user-create", name, check=0).stdout.strip()
    yield name, {"MAITENTO_API_KEY": key}
    mt("user-delete", name)


@pytest.fixture(scope="module")
def work(api):
    return api.namespace("screens")


def ends(mt, status, words, said, **how):
    """One wrong call: its exit status, its first line, nothing on stdout."""
    done = mt(*words, check=status, **how)
    first = done.stderr.splitlines()[0]
    assert first.startswith("mt: ") and said in first, done.stderr
    assert done.stdout == ""
    # Nothing is said twice, and nothing in words that mean requests.
    assert "field" not in done.stderr and "sentence" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("status, words, said", [
    (2, ["user-create", "a b"], "user name 'a b' is not allowed"),
    (2, ["user-create", "x", "--role", "king"], "--role is admin or user, not 'king'"),
    (2, ["user-create", "x", "--expires", "2020-01-01T00:00:00Z"], "cannot expire in the past"),
    (2, ["user-create", "x", "--expires", "never"], "--expires 'never' is neither a moment"),
    (5, ["user-create", "admin"], "user 'admin' exists already"),
    (3, ["user-delete", "nobody-there"], "no user 'nobody-there'"),
    (5, ["user-delete", "admin"], "stays"),
    (3, ["key-create", "k", "--user", "nobody-there"], "no user 'nobody-there'"),
    (3, ["key-delete", "no-such-key"], "no key has the id or name 'no-such-key'"),
    (3, ["namespace-get", "nowhere"], "no namespace 'nowhere'"),
    (5, ["namespace-create", "{ns}"], "exists already"),
    (2, ["namespace-create", "Team A"], "is not allowed"),
    (3, ["namespace-member-add", "nobody-there"], "no user 'nobody-there'"),
    (5, ["namespace-member-remove", "admin"], "owns namespace '{ns}'"),
    (3, ["vfs-get", "none"], "no file system 'none' in namespace '{ns}'"),
    (2, ["vfs-create", "Data"], "'Data' is not a name"),
    (3, ["capsule-start", "none"], "no capsule 'none'"),
    (3, ["capsule-run-get", "01931500-0000-7000-8000-000000000000"], "no capsule run"),
    (2, ["capsule-run-get", "nonsense"], "is no run id"),
    (3, ["capsule-command-get", "01931500-0000-7000-8000-000000000000"], "no command '01931500"),
    (125, ["capsule-command-await", "01931500-0000-7000-8000-000000000000"], "no command '01931500"),
    (2, ["help", "nothing"], "there is no command 'nothing'"),
    (2, ["capsule-run-list", "--statuss", "x"], "did you mean --status?"),
])
def test_a9_wrong_calls(mt, work, status, words, said):
    ends(mt, status, [w.format(ns=work) for w in words], said.format(ns=work), namespace=work)


def test_a9_without_access(mt, work, ada):
    """What one may not see is as if it were not there; what one may not do is 4."""
    name, signed_in = ada
    for words in (["user-list"], ["user-create", "x"], ["user-delete", "admin"], ["key-list", "--user", "admin"],
                  ["key-create", "k", "--user", "admin"]):
        ends(mt, 4, words, "administrator", env=signed_in)
    ends(mt, 3, ["namespace-get", work], "no namespace", env=signed_in)
    mt("namespace-member-add", name, namespace=work, check=0)
    ends(mt, 4, ["namespace-delete", work], work, env=signed_in)
    ends(mt, 4, ["whoami"], "is not valid", env={"MAITENTO_API_KEY": "mt_bad"})
    ends(mt, 6, ["whoami"], "cannot reach", env={"MAITENTO_URL": "unix:/nowhere"})


def test_users_and_keys(mt, ada):
    name, signed_in = ada
    assert mt("whoami", env=signed_in, check=0).stdout == f"{name} (user)\n"
    assert [name, "user"] in [line.split()[:2] for line in mt("user-list", check=0).stdout.splitlines()]
    mine = json.loads(mt("key-list", "--json", env=signed_in, check=0).stdout)
    assert [k["name"] for k in mine] == ["first"] and mine[0]["dateLastUsed"]

    made = mt("key-create", "laptop", "--expires", "2h", env=signed_in, check=0)
    assert made.stdout.startswith("mt_") and made.stdout.count("\n") == 1 and "shown this once only" in made.stderr
    other = {"MAITENTO_API_KEY": made.stdout.strip()}
    assert mt("whoami", env=other, check=0).stdout == f"{name} (user)\n"
    record = json.loads(mt("key-create", "x", "--expires", LATER, "--json", env=signed_in, check=0).stdout)
    assert record["expires"].startswith("2100-01-01") and record["key"].startswith("mt_")
    keys = {k["name"]: k for k in json.loads(mt("key-list", "--user", name, "--json", check=0).stdout)}
    left = datetime.datetime.fromisoformat(keys["laptop"]["expires"]) - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(hours=1) < left <= datetime.timedelta(hours=2)
    assert made.stdout.strip() not in mt("key-list", env=signed_in).stdout

    mt("key-create", "x", env=signed_in, check=0)
    ends(mt, 5, ["key-delete", "x"], "more than one key is called 'x'", env=signed_in)
    mt("key-delete", "laptop", env=signed_in, check=0)
    mt("whoami", env=other, check=4)
    mt("key-delete", record["id"], check=0)  # an administrator may
    ends(mt, 3, ["key-delete", record["id"]], "no key", env=signed_in)


def test_a_first_key_may_end(mt):
    name = f"guest-{os.getpid()}-{os.urandom(3).hex()}"
    made = json.loads(mt("user-create", name, "--expires", "1d", "--role", "admin", "--json", check=0).stdout)
    assert (made["name"], made["role"]) == (name, "admin")
    assert json.loads(mt("key-list", "--user", name, "--json", check=0).stdout)[0]["expires"]
    ends(mt, 2, ["user-create", f"{name}-2", "--expires", "2020-01-01T00:00:00Z"], "in the past")
    assert f"{name}-2" not in mt("user-list", check=0).stdout  # not made half
    mt("user-delete", name, check=0)


def test_members(mt, work, ada):
    name, signed_in = ada
    mt("namespace-member-add", name, namespace=work, check=0)
    mt("namespace-member-add", name, namespace=work, check=0)
    assert name in mt("namespace-member-list", work, check=0).stdout
    assert [m["name"] for m in json.loads(mt("namespace-member-list", "--json", namespace=work, check=0).stdout)].count(name) == 1
    assert work in mt("namespace-list", env=signed_in, check=0).stdout
    mt("namespace-member-remove", name, "-n", work, check=0)
    assert work not in mt("namespace-list", env=signed_in, check=0).stdout


def test_terminate_says_how_it_ended(mt, api, work):
    api.capsule(work, [], limits={"memory": "64MiB", "disk": "64MiB"})
    run = mt("capsule-start", "c", namespace=work, check=0).stdout.strip()
    assert mt("capsule-terminate", run, check=0).stderr == f"run {run}: Finished, terminated\n"
    assert json.loads(mt("capsule-terminate", run, "--json", check=0).stdout)["endReason"] == "terminated"


def test_doctor_looks_where_the_state_is(mt, server):
    checks = json.loads(mt("doctor", "--json").stdout)["checks"]
    names = [c["name"] for c in checks]
    assert len(names) == len(set(names)), names
    assert any(c["name"] == "idmapped mounts" and str(server.dir / "state") in c["detail"] for c in checks)


def test_an_image_that_is_not_there_is_warned_of(mt, work, tmp_path):
    (tmp_path / "capsules").mkdir()
    capsule = tmp_path / "capsules" / "odd.mtr"
    for image, warned in (("ubuntu", True), ("slim", False)):
        capsule.write_text(f'image = "{image}"\n')
        said = mt("deploy", tmp_path, namespace=work, check=0).stderr
        assert ("odd.mtr:1:9: warning: there is no image 'ubuntu' on this server yet" in said) == warned, said


def test_a_ceiling_is_said_as_it_would_be_written(mt, work, tmp_path):
    (tmp_path / "capsules").mkdir()
    capsule = tmp_path / "capsules" / "big.mtr"
    capsule.write_text('limits = { memory = "1000TiB" }\n')
    said = mt("deploy", tmp_path, namespace=work, check=1).stderr
    ceiling = re.search(r"over this server's ceiling of (\d+[MGT]iB)\n", said)
    assert ceiling and "nothing was deployed" in said and said.count("nothing was") == 1, said
    capsule.write_text(f'limits = {{ memory = "{ceiling.group(1)}" }}\n')
    mt("deploy", tmp_path, namespace=work, check=0)
