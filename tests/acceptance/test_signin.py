"""The acceptance checks of the sign-in inside capsules, by their numbers, and the parts of the field
cases O-31 and O-32 that are about it. Everything is done by mt inside, or by hostile code there.
"""
import http.client
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import mtserver
from conftest import Api, Ref, mtr

SANDBOX = {"users": [{"name": "sandbox"}], "maxDuration": "00:05:00",
           "limits": {"memory": "64MiB", "pids": 64, "disk": "16MiB"}}
WAIT = 60


class As(Api):
    """The API as somebody else than the host's root."""

    def __init__(self, server, key):
        super().__init__(server)
        self.key = key

    def call(self, method, path, body=None, expect=(200, 201, 204), headers=None):
        return super().call(method, path, body, expect, self.signed(headers))

    def error(self, method, path, body=None, headers=None):
        return super().error(method, path, body, self.signed(headers))

    def raw(self, method, path, data=None, headers=None):
        return super().raw(method, path, data, self.signed(headers))

    def signed(self, headers):
        return {"Authorization": f"Bearer {self.key}", **(headers or {})}


_people = iter(range(1, 1000))


def person(api, role="user"):
    made = api.call("POST", "/v1/users", {"name": f"person{os.getpid()}-{next(_people)}", "role": role}, 201)
    who = As(api.server, made["key"])
    who.name = made["name"]
    return who


@pytest.fixture()
def ada(api):
    return person(api)


@pytest.fixture()
def home(ada):
    """A namespace of ada's with a file system."""
    ns = ada.namespace("home")
    ada.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return ns


@pytest.fixture()
def runs(api):
    """start(who, ns, …): a run that stays up, ready; all of them are ended afterwards."""
    started = []

    def start(who, ns, name="c", startup=(), **properties):
        properties = {**SANDBOX, "vfs": [{"vfs": Ref("work"), "mountName": "work"}], **properties}
        who.deploy(ns, {f"capsules/{name}.mtr": mtr({"startup": list(startup), **properties})})
        started.append(who.get(who.start(ns, name), until="ready"))
        return started[-1]
    yield start
    for run in started:
        api.terminate(run)


def send(who, run, line, user="maitento", **properties):
    return who.call("POST", f"/v1/capsule-runs/{run['id']}/commands",
                    {"command": line, "runAsUser": user, **properties}, 201)


def await_command(who, run, command, seconds=WAIT):
    deadline = time.monotonic() + seconds
    while True:
        got = who.call("GET", f"/v1/capsule-runs/{run['id']}/commands/{command['id']}?wait=20")
        if got["dateEnded"]:
            return got
        assert time.monotonic() < deadline, got


def inside(who, run, line, user="maitento", code=0):
    """Runs a line inside; its output, and the error output where it was to fail."""
    done = await_command(who, run, send(who, run, line, user))
    assert done["exitCode"] == code, (line, done)
    return done["outputStandard"] if code == 0 else done["outputError"]


def whoami(server, key):
    return server.request("GET", "/v1/whoami", headers={"Authorization": f"Bearer {key}"})


# ---- 68 ----

def test_a68_mt_is_there_and_signed_in(api, ada, home, runs):
    run = runs(ada, home, startup=[{"command": "mt whoami --json > /tmp/at-start"}])
    assert inside(ada, run, "command -v mt") == "/usr/local/bin/mt\n"
    for text in (inside(ada, run, "mt whoami --json"), inside(ada, run, "cat /tmp/at-start")):
        me = json.loads(text)
        assert (me["name"], me["role"], me["via"], me["defaultNamespace"]) == (ada.name, "user", "run", home)
    assert inside(ada, run, "env | grep ^MAITENTO") == f"MAITENTO_NAMESPACE={home}\n"
    assert inside(ada, run, "ls -A ~ | grep -c maitento", code=1) == ""
    settings = json.loads(inside(ada, run, "mt config-get --json"))
    assert settings["url"]["value"] == "unix:/run/maitento/api.sock" and settings["key"]["set"] is False
    # Nothing names a namespace: it is the run's.
    assert inside(ada, run, "mt vfs-list --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[0][\"name\"])'"
                  ) == "work\n"
    # The capsule's author may say otherwise.
    other = ada.namespace("other")
    api_named = runs(ada, home, name="named", environment={"MAITENTO_NAMESPACE": other})
    assert inside(ada, api_named, "echo $MAITENTO_NAMESPACE") == f"{other}\n"


# ---- 69 ----

def test_a69_reads_and_writes_a_file_system_and_starts_a_capsule(ada, home, runs):
    ada.call("POST", f"/v1/namespaces/{home}/vfs", {"name": "other"}, 201)
    ada.write(home, "other", "/in.txt", "from outside\n")
    ada.deploy(home, {"capsules/job.mtr": mtr({
        "startup": [{"command": "sh", "arguments": ["-c", "echo done by $(hostname) > /mnt/other/out.txt"]}],
        "autoTerminate": True, "vfs": [{"vfs": Ref("other"), "mountName": "other"}], "limits": SANDBOX["limits"]})})
    run = runs(ada, home)
    assert inside(ada, run, "mt cat /vfs/other/in.txt") == "from outside\n"
    inside(ada, run, "echo from inside > /tmp/x && mt cp /tmp/x /vfs/other/x.txt")
    assert ada.read(home, "other", "/x.txt") == b"from inside\n"
    child = inside(ada, run, "mt capsule-start job --wait -q").split()[0]
    assert ada.read(home, "other", "/out.txt") == b"done by job\n"
    record = ada.call("GET", f"/v1/capsule-runs/{child}")
    assert record["status"] == "Finished" and record["parentRunId"] == run["id"]
    assert record["startedBy"] == f"{ada.name} (run {run['id']})"
    # A command in another run, its output and its end.
    runs(ada, home, name="beside")
    assert inside(ada, run, "R=$(mt capsule-start beside -q) && mt capsule-exec $R 'echo hello' --wait -q "
                            "&& mt capsule-terminate $R -q").splitlines()[0] == "hello"
    stopped = ada.get(ada.call("GET", f"/v1/capsule-runs?namespace={home}&capsule=beside")["items"][0])
    assert stopped["terminatedBy"] == f"{ada.name} (run {run['id']})", stopped


def test_a69_the_python_client_needs_no_configuration_either(ada, home, runs):
    package = mtserver.ROOT / "sdk/python/maitento"
    for file in sorted(package.rglob("*.py")):
        ada.write(home, "work", f"/{file.relative_to(package)}", file.read_bytes())
    ada.write(home, "work", "/data.txt", "read inside\n")
    ada.deploy(home, {"capsules/job.mtr": mtr({"startup": [{"command": "true"}], "autoTerminate": True,
                                              "limits": SANDBOX["limits"]})})
    run = runs(ada, home)
    code = '''
import maitento
with maitento.Maitento() as m:
    print(m.vfs.open("work").read_text("/data.txt"), end="")
    print(m.capsules.run("job").status)
'''
    out = inside(ada, run, f"mkdir /tmp/py && cp -r /mnt/work /tmp/py/maitento && PYTHONPATH=/tmp/py python3 -c '{code}'")
    assert out == "read inside\nFinished\n"


# ---- 70, and O-31: whichever way the run ends ----

def stop_by_terminate(server, who, run):
    who.terminate(run)


def stop_by_time(server, who, run):
    who.shorten(run["id"])


def stop_by_death_of_supervisor(server, who, run):
    journal = (server.dir / f"state/runs/{run['id']}/journal").read_bytes()
    for pid in Path("/proc").iterdir():
        try:
            if (pid / "comm").read_text() == "mt-supervisor\n" and re.search(rb"(?<!\d)%b " % pid.name.encode(), journal):
                os.kill(int(pid.name), signal.SIGKILL)
                return
        except (OSError, ValueError):
            continue
    raise AssertionError("no supervisor found")


@pytest.mark.parametrize("stop,reason", [(stop_by_terminate, "terminated"), (stop_by_time, "timeout"),
                                         (stop_by_death_of_supervisor, "supervisorLost")],
                         ids=["terminated", "timeout", "supervisorLost"])
def test_a70_o31_keys_made_inside_end_with_the_run(server, api, ada, home, runs, stop, reason):
    run = runs(ada, home)
    key = inside(ada, run, "mt key-create spare -q").strip()
    assert whoami(server, key)[1]["name"] == ada.name
    listed = {k["name"]: k["runId"] for k in ada.call("GET", "/v1/keys")["items"]}
    assert listed == {"first": None, "spare": run["id"]}
    assert f"with run {run['id']}" in inside(ada, run, "mt key-list")
    # A key that was made with that key is the run's just as well.
    status, second = server.request("POST", "/v1/keys", {"name": "second"}, {"Authorization": f"Bearer {key}"})
    assert status == 201 and second["runId"] == run["id"]
    stop(server, ada, run)
    ended = ada.get(run)
    assert ended["endReason"] == reason, ended
    for dead in (key, second["key"]):
        status, answer = whoami(server, dead)
        assert (status, answer["code"]) == (401, "unauthenticated")
    assert [k["name"] for k in ada.call("GET", "/v1/keys")["items"]] == ["first"]
    log = (server.dir / "maitentod.log").read_text() + (server.dir / "mt-runner.log").read_text()
    assert key not in log and second["key"] not in log


def test_a70_users_made_inside_end_with_the_run(server, api, mt, runs):
    admin = person(api, "admin")
    ns = admin.namespace("admins")
    admin.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    run = runs(admin, ns)
    names = [f"guest{os.getpid()}", f"owner{os.getpid()}"]
    keys = [json.loads(inside(admin, run, f"mt user-create {name} --json"))["key"] for name in names]
    status, _ = server.request("POST", "/v1/namespaces", {"name": f"of-{names[1]}"}, {"Authorization": f"Bearer {keys[1]}"})
    assert status == 201
    admin.terminate(run)
    admin.get(run)
    assert [whoami(server, key)[0] for key in keys] == [401, 401]
    left = {u["name"]: u for u in api.call("GET", "/v1/users?limit=1000")["items"]}
    assert names[0] not in left and left[names[1]]["stopped"] is True
    assert [names[1], "user"] in [line.split()[:2] for line in mt("user-list").stdout.splitlines() if line.endswith("stopped")]
    api.call("DELETE", f"/v1/namespaces/of-{names[1]}")
    api.call("DELETE", f"/v1/users/{names[1]}")


TAKER = r'''
import os, socket, time
s = socket.socket(socket.AF_UNIX); s.bind("/mnt/work/s"); os.chmod("/mnt/work/s", 0o666); s.listen(1)
open("/mnt/work/listening", "w").close()
c, _ = s.accept()
_, fds, _, _ = socket.recv_fds(c, 1, 2)
taken = socket.socket(fileno=fds[0]); taken.settimeout(60)
folder = fds[1]
def ask():
    try:
        taken.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n\r\n")
        return taken.recv(4096).split(b"\r\n")[0].decode() or "cut"
    except OSError as e:
        return "cut"
def connect():
    try:
        socket.socket(socket.AF_UNIX).connect("/proc/self/fd/%d/api.sock" % folder)
        return "connected"
    except OSError as e:
        return type(e).__name__
def say(name, *lines):
    with open("/mnt/work/." + name, "w") as f: f.write("\n".join(lines))
    os.rename("/mnt/work/." + name, "/mnt/work/" + name)
say("first", ask(), connect())
while not os.path.exists("/mnt/work/over"): time.sleep(0.02)
say("second", ask(), connect())
'''

GIVER = r'''
import os, socket
api = socket.socket(socket.AF_UNIX); api.connect("/run/maitento/api.sock")
c = socket.socket(socket.AF_UNIX); c.connect("/mnt/work/s")
socket.send_fds(c, [b"x"], [api.fileno(), os.open("/run/maitento", os.O_PATH)])
'''


def wait_for_file(who, ns, name, seconds=WAIT):
    deadline = time.monotonic() + seconds
    while who.raw("GET", who.files(ns, "work", name))[0] != 200:
        assert time.monotonic() < deadline, f"{name} does not come"
        time.sleep(0.05)
    return who.read(ns, "work", name).decode().splitlines()


@pytest.mark.parametrize("user", ["maitento", "root"])
def test_a70_a_connection_that_was_carried_out_is_cut(ada, home, runs, user):
    """Another capsule gets a connection, and the very folder, of one that then ends."""
    taker = runs(ada, home, name="taker")
    giver = runs(ada, home, name="giver")
    send(ada, taker, "python3 -c '%s'" % TAKER.replace("'", '"'), user)
    wait_for_file(ada, home, "/listening")
    inside(ada, giver, "python3 -c '%s'" % GIVER.replace("'", '"'))
    assert wait_for_file(ada, home, "/first") == ["HTTP/1.1 200 OK", "PermissionError"]
    ada.terminate(giver)
    ada.get(giver)
    ada.write(home, "work", "/over", "")
    assert wait_for_file(ada, home, "/second")[0] == "cut"


def test_a70_what_follows_an_output_with_a_key_of_the_run_is_cut(server, ada, home, runs):
    """Let in while the run lived; it would go on for as long as the other run does."""
    run, beside = runs(ada, home), runs(ada, home, name="beside")
    key = inside(ada, run, "mt key-create k -q").strip()
    endless = send(ada, beside, "echo here; sleep 300", **{"async": True})
    connections = []
    for path in (f"commands/{endless['id']}/output?follow=true", f"commands/{endless['id']}?wait=60"):
        connection = mtserver.UnixConnection(server.socket, WAIT)
        connection.request("GET", f"/v1/capsule-runs/{beside['id']}/{path}", headers={"Authorization": f"Bearer {key}"})
        connections.append(connection)
    answer = connections[0].getresponse()
    assert answer.status == 200 and answer.read1(100) == b"here\n"
    ada.terminate(run)
    ada.get(run)
    with pytest.raises((http.client.HTTPException, OSError)):
        assert answer.read() == b"cut"
    with pytest.raises((http.client.HTTPException, OSError)):
        connections[1].getresponse()
    for connection in connections:
        connection.close()


# ---- 71, and O-31: others inside ----

def test_a71_o31_sandbox_is_not_signed_in_and_reads_nothing_of_it(ada, home, runs):
    run = runs(ada, home)
    said = inside(ada, run, "mt whoami", "sandbox", code=4)
    assert "not signed in" in said and "default user" in said
    assert inside(ada, run, "env | grep -c MAITENTO", "sandbox", code=1) == ""
    # With the default user's environment it is no better off.
    inside(ada, run, f"MAITENTO_NAMESPACE={home} HOME=/home/maitento mt vfs-list", "sandbox", code=4)
    send(ada, run, "mt capsule-run-await @last", **{"async": True})
    probe = r'''
import os, socket, glob
def tried(f, *a):
    try: f(*a); return "did it"
    except OSError as e: return type(e).__name__
print(tried(socket.socket(socket.AF_UNIX).connect, "/run/maitento/api.sock"),
      tried(open, "/run/maitento/api.sock"), tried(os.chmod, "/run/maitento/api.sock", 0o666),
      tried(os.unlink, "/run/maitento/api.sock"), tried(os.mkdir, "/run/maitento/x"), tried(os.rename, "/run/maitento", "/tmp/x"))
seen = set()
for p in glob.glob("/proc/[0-9]*"):
    try:
        if os.stat(p).st_uid == os.getuid(): continue
        got = {tried(open, p + "/" + n) for n in ("environ", "mem", "maps")} | {tried(os.listdir, p + "/fd")}
        # One that has ended, as its size is 0 then, has nothing to hide.
        if int(open(p + "/stat").read().rpartition(") ")[2].split()[20]): seen |= got
    except OSError: pass
print(sorted(seen))
'''
    lines = inside(ada, run, "python3 -c '%s'" % probe.replace("'", '"'), "sandbox").splitlines()
    assert lines[0].startswith("PermissionError") and "did it" not in lines[0] + lines[1], lines
    assert lines[1] == "['PermissionError']", lines


def test_a71_root_of_the_capsule_cannot_put_another_socket_there(ada, home, runs):
    run = runs(ada, home)
    assert inside(ada, run, "mt whoami -q", "root") == f"{ada.name} (user)\n"
    for line in ("rm /run/maitento/api.sock", "chmod 666 /run/maitento/api.sock", "touch /run/maitento/x",
                 "chown sandbox /run/maitento/api.sock", "mv /run/maitento/api.sock /run/x"):
        assert "Read-only file system" in inside(ada, run, line, "root", code=1), line
    inside(ada, run, "mt whoami", "sandbox", code=4)


def test_a71_only_the_capsules_own_ids_may_enter(server, ada, home, runs):
    """Whoever reaches the socket from outside, the host's root, is not the run's user."""
    run = runs(ada, home, name="door")
    send(ada, run, "sleep 300", **{"async": True})
    wanted = f"/proc/{find_process('sleep', run)}/root/run/maitento/api.sock"
    connection = mtserver.UnixConnection(wanted, 30)
    try:
        connection.request("GET", "/v1/whoami")
        answer = connection.getresponse()
        body = json.loads(answer.read())
        assert (answer.status, body["code"]) == (401, "unauthenticated") and "default user" in body["detail"]
        # Nor does a key help: these doors are the capsule's.
        connection.request("GET", "/v1/whoami", headers={"Authorization": f"Bearer {ada.key}"})
        assert connection.getresponse().status == 401
    finally:
        connection.close()


def find_process(name, run, seconds=WAIT):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for pid in Path("/proc").iterdir():
            try:
                if pid.name.isdigit() and (pid / "comm").read_text() == name + "\n" and \
                        (pid / "root/run/maitento/api.sock").is_socket() and \
                        (pid / "root/etc/hostname").read_text() == run["capsule"] + "\n":
                    return pid.name
            except OSError:
                continue
        time.sleep(0.05)
    raise AssertionError(f"no process {name}")


# ---- 71a, and O-32 ----

def test_a71a_o32_all_of_the_starters_rights_and_no_more(api, ada, home, runs):
    second = ada.namespace("second")
    ada.call("POST", f"/v1/namespaces/{second}/vfs", {"name": "mine"}, 201)
    ada.write(second, "mine", "/x", "in the other namespace\n")
    bea = person(api)
    shared, private = bea.namespace("shared"), bea.namespace("private")
    bea.call("PUT", f"/v1/namespaces/{shared}/members/{ada.name}")
    for ns in (shared, private):
        bea.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "files"}, 201)
    bea.write(shared, "files", "/x", "of bea\n")
    theirs = runs(bea, private, vfs=[])
    run = runs(ada, home)
    assert inside(ada, run, f"mt cat /vfs/mine@{second}/x") == "in the other namespace\n"
    assert inside(ada, run, f"mt cat /vfs/files@{shared}/x") == "of bea\n"
    seen = inside(ada, run, "mt namespace-list --json")
    assert {n["name"] for n in json.loads(seen)} == {home, second, shared}
    # What the user may not see is not there: the very words of what does not exist.
    for path in (f"/v1/namespaces/{private}", f"/v1/namespaces/{private}/vfs/files",
                 f"/v1/capsule-runs/{theirs['id']}"):
        said = inside(ada, run, CURL + path)
        nothing = inside(ada, run, CURL + path.replace(private, "no-such").replace(theirs["id"], "0" * 8 + theirs["id"][8:]))
        assert json.loads(said)["status"] == json.loads(nothing)["status"] == 404
    assert "needs an administrator" in inside(ada, run, "mt user-list", code=4)
    # As its rights are the user's, not the run's, they follow the user.
    bea.call("DELETE", f"/v1/namespaces/{shared}/members/{ada.name}")
    inside(ada, run, f"mt cat /vfs/files@{shared}/x", code=3)


CURL = "curl -sS --unix-socket /run/maitento/api.sock http://x"


def test_o32_headers_raise_nothing(ada, home, runs):
    run = runs(ada, home)
    for header in ("X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "X-Maitento-User: admin"):
        assert json.loads(inside(ada, run, f"{CURL}/v1/whoami -H '{header}'"))["name"] == ada.name
    for header in ("Authorization: Bearer", "Authorization: Bearer mt_" + "0" * 64, "Authorization: Basic eDp5"):
        assert json.loads(inside(ada, run, f"{CURL}/v1/whoami -H '{header}'"))["status"] == 401


# ---- limits ----

def test_a71a_capsules_start_capsules_four_deep(ada, home, runs):
    run = runs(ada, home)
    chain = [run]
    try:
        for _ in range(4):
            child = inside(ada, chain[-1], "mt capsule-start c -q").strip()
            chain.append(ada.get({"id": child}, until="ready"))
        said = inside(ada, chain[-1], "mt capsule-start c", code=5)
        assert "4 deep" in said and chain[-1]["id"] in said
        # A key that was made there is no way around it.
        key = inside(ada, chain[-1], "mt key-create k -q").strip()
        status, answer = ada.server.request("POST", f"/v1/namespaces/{home}/capsules/c/runs", None,
                                            {"Authorization": f"Bearer {key}"})
        assert (status, answer["code"]) == (409, "tooDeep"), answer
    finally:
        for one in chain[1:]:
            ada.terminate(one)


def test_a71a_one_run_has_at_most_64_live_ones_below_it(ada, home, runs):
    run = runs(ada, home, startup=[], vfs=None, limits={"memory": "16MiB", "pids": 16, "disk": "16MiB"})
    line = ("for i in $(seq 64); do mt capsule-start c -q >> /tmp/ids || exit 7; done; mt capsule-start c; code=$?; "
            "cat /tmp/ids; exit $code")
    done = await_command(ada, run, send(ada, run, line), seconds=180)
    started = done["outputStandard"].split()
    try:
        assert done["exitCode"] == 1 and len(started) == 64, done
        assert "64 runs" in done["outputError"], done
        assert ada.call("GET", f"/v1/capsule-runs/{started[0]}")["parentRunId"] == run["id"]
        # One ends: there is room for one.
        ada.terminate({"id": started[0]})
        ada.get({"id": started[0]})
        started.append(inside(ada, run, "mt capsule-start c -q").strip())
    finally:
        for one in started:
            ada.terminate({"id": one})


def test_connections_of_one_run_are_bounded_and_disturb_nobody(api, ada, home, runs):
    run = runs(ada, home)
    flood = r'''
import os, select, socket, sys, time
def ask(target):
    s = socket.socket(socket.AF_UNIX); s.connect("/run/maitento/api.sock")
    s.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    return s
held = [ask(b"/v1/capsule-runs/%s?wait=60") for _ in range(32)]
waits = [ask(b"/v1/whoami") for _ in range(60)]
print(len(select.select(waits, [], [], 1)[0]))
open("/mnt/work/held", "w").close()
while not os.path.exists("/mnt/work/go"): time.sleep(0.02)
held[0].close()
for s in waits:
    s.settimeout(30)
    print(s.recv(4096).split(b"\r\n")[0].decode())
    s.close()
''' % run["id"]
    command = send(ada, run, "python3 -c '%s'" % flood.replace("'", '"'))
    wait_for_file(ada, home, "/held")
    # Meanwhile the host's doors and those of another run are open.
    assert api.call("GET", "/v1/whoami")["via"] == "socket"
    other = runs(ada, home, name="other")
    assert inside(ada, other, "mt whoami -q") == f"{ada.name} (user)\n"
    ada.write(home, "work", "/go", "")
    done = await_command(ada, run, command)
    lines = done["outputStandard"].splitlines()
    assert lines == ["0"] + ["HTTP/1.1 200 OK"] * 60, done


def test_hostile_bytes_are_answered_or_cut_and_no_more(ada, home, runs):
    run = runs(ada, home)
    code = r'''
import socket
def say(raw):
    s = socket.socket(socket.AF_UNIX); s.connect("/run/maitento/api.sock"); s.settimeout(30)
    try:
        s.sendall(raw)
        got = b""
        while b"\r\n\r\n" not in got:
            more = s.recv(4096)
            if not more: break
            got += more
        return got.split(b"\r\n")[0].decode() or "cut"
    except OSError:
        return "cut"
head = b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n"
post = b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
for raw in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\0" * 4096, head + b"X: " + b"a" * 200000 + b"\r\n\r\n",
            head + b"A: b\r\n" * 3000 + b"\r\n", head + b"Host: y\r\n\r\n", b"GET /" + b"a" * 100000,
            post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
            post + b"Content-Length: 99999999999\r\n\r\n", post + b"Content-Length: 200000\r\n\r\n" + b"[" * 200000,
            b"GET /v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /v1/namespaces/%2e%2e/vfs HTTP/1.1\r\nHost: x\r\n\r\n"):
    print(say(raw))
print(say(head + b"\r\n"))
'''
    lines = inside(ada, run, "python3 -c '%s'" % code.replace("'", '"')).splitlines()
    assert lines[-1] == "HTTP/1.1 200 OK" and len(lines) == 13
    for line in lines[:-1]:
        assert line == "cut" or line.split()[1][0] == "4", lines
    assert whoami(ada.server, ada.key)[0] == 200


def test_a_storm_of_connections_leaves_others_their_turn(api, ada, home, runs):
    """Three runs connect and leave as fast as they can; another one, and the host, go on."""
    storm = r'''
import socket, time
open("/mnt/work/s%d", "w").close()
end = time.time() + 20
while time.time() < end:
    for _ in range(50):
        s = socket.socket(socket.AF_UNIX); s.connect("/run/maitento/api.sock"); s.close()
'''
    stormy = [runs(ada, home, name=f"storm{i}") for i in range(3)]
    for i, run in enumerate(stormy):
        send(ada, run, "python3 -c '%s'" % (storm % i).replace("'", '"'), **{"async": True})
    for i in range(3):
        wait_for_file(ada, home, f"/s{i}")
    calm = runs(ada, home, name="calm")
    for _ in range(20):
        assert inside(ada, calm, "mt whoami -q") == f"{ada.name} (user)\n"
        assert api.call("GET", "/v1/whoami")["via"] == "socket"


# ---- the server goes and comes back ----

def test_mt_inside_waits_while_the_server_is_away():
    with mtserver.Server(image="slim") as own:
        api = Api(own)
        ns = api.namespace()
        vfs = api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
        api.capsule(ns, [], vfs=[{"vfs": Ref("work"), "mountName": "work"}], **SANDBOX)
        run = api.get(api.start(ns, "c"), until="ready")
        key = inside(api, run, "mt key-create k -q").strip()
        command = send(api, run, "until [ -e /mnt/work/go ]; do sleep 0.02; done; touch /mnt/work/begun; mt whoami -q")
        deadline = time.monotonic() + WAIT
        while api.call("GET", f"/v1/capsule-runs/{run['id']}/commands/{command['id']}")["status"] != "Running":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        files = own.dir / "state/vfs" / vfs["id"] / "files"
        own.server.kill()
        own.server.wait()
        (files / "go").touch()
        deadline = time.monotonic() + WAIT
        while not (files / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        own.start_server()
        done = await_command(api, run, command)
        assert (done["exitCode"], done["outputStandard"]) == (0, "admin (admin)\n"), done
        assert whoami(own, key)[0] == 200
        # The run ends while the server is away: what was made inside is refused from the first moment.
        own.server.kill()
        own.server.wait()
        stop_by_death_of_supervisor(own, api, run)
        own.start_server()
        assert api.get(run)["endReason"] == "supervisorLost"
        assert whoami(own, key)[0] == 401


def test_a70_a_run_that_ended_while_the_server_was_away_is_signed_in_no_more():
    with mtserver.Server(image="slim") as own:
        api = Api(own)
        ns = api.namespace()
        vfs = api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
        api.capsule(ns, [{"command": "mt key-create k -q > /mnt/work/.key; mv /mnt/work/.key /mnt/work/key"},
                         {"command": "until [ -e /mnt/work/go ]; do sleep 0.02; done"}],
                    autoTerminate=True, vfs=[{"vfs": Ref("work"), "mountName": "work"}], limits=SANDBOX["limits"])
        run = api.start(ns, "c")
        key = wait_for_file(api, ns, "/key")[0]
        assert whoami(own, key)[0] == 200
        own.server.kill()
        own.server.wait()
        (own.dir / "state/vfs" / vfs["id"] / "files/go").touch()
        journal = own.dir / "state/runs" / run["id"]
        deadline = time.monotonic() + WAIT
        while (journal / "sock").exists():  # the runner removes it once the run has ended
            assert time.monotonic() < deadline
            time.sleep(0.02)
        own.start_server()
        assert whoami(own, key)[0] == 401
        assert api.get(run)["status"] == "Finished"


# ---- the program ----

def test_a68_mt_inside_is_the_hosts_own_and_nobody_writes_it(ada, home, runs):
    program = mtserver.build_dir() / "src/cli/mt-capsule"
    digest = subprocess.run(["sha256sum", program], check=True, capture_output=True, text=True).stdout.split()[0]
    run = runs(ada, home)
    for user in ("maitento", "root", "sandbox"):
        assert inside(ada, run, "sha256sum < /usr/local/bin/mt", user).split()[0] == digest
        said = inside(ada, run, "echo x >> /usr/local/bin/mt", user, code=1)
        assert "Read-only file system" in said or "Permission denied" in said
        inside(ada, run, "! rm -f /usr/local/bin/mt && ! mv /usr/local/bin/mt /tmp/", user)
    again = runs(ada, home, name="again")
    assert inside(ada, again, "sha256sum < /usr/local/bin/mt").split()[0] == digest


# ---- descriptors that clients send along ----

# A connection whose closing takes as long as its peer likes: with data that nobody takes, and SO_LINGER.
LINGERER = r'''
import socket, struct, time
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(1)
s = socket.socket(); s.connect(listener.getsockname())
peer, _ = listener.accept()
s.setblocking(False)
try:
    while True: s.send(b"x" * 65536)
except BlockingIOError:
    pass
try:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    s.setblocking(True)
    api = socket.socket(socket.AF_UNIX); api.connect("/run/maitento/api.sock")
    # Answered later, so what follows is read later: when this end is closed already.
    api.sendall(b"GET /v1/capsule-runs/%s?wait=3 HTTP/1.1\r\nHost: x\r\n\r\n")
    socket.send_fds(api, [b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n\r\n"], [s.fileno()])
    s.close()
    print("sent", flush=True)
    time.sleep(20) # as long as its peer is there
except PermissionError:
    print("refused")
'''


@pytest.mark.parametrize("user", ["maitento", "root"])
def test_a71_a_descriptor_sent_along_holds_up_nobody(server, ada, home, runs, user):
    """What a client passes with its bytes is closed by who reads them: that must not take long."""
    run = runs(ada, home)
    command = send(ada, run, "exec python3 -c '%s'" % (LINGERER % run["id"]).replace("'", '"'), user)
    longest = 0
    while True:
        began = time.monotonic()
        done = ada.call("GET", f"/v1/capsule-runs/{run['id']}/commands/{command['id']}")
        longest = max(longest, time.monotonic() - began)
        if done["dateEnded"]:
            break
        time.sleep(0.05)
    assert done["outputStandard"] in ("sent\n", "refused\n"), done
    assert longest < 10, "a descriptor that is closed by the server holds it up"
