"""Field cases O-02, O-04, O-07, O-16, O-26 to O-30 and O-33 once more, by mt: the life of a run, setup, durations, leaks."""
import hashlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

import mtserver
from conftest import Api, Ref, command_line, debian_is_there
from test_commands_field import relay  # noqa: F401

WORK = {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}


@pytest.fixture()
def work(mt, ns):
    mt("vfs-create", "work", namespace=ns, check=0)
    return ns


def start(mt, api, ns, startup=(), name="c", **properties):
    """A run of a capsule of its own that stays up, ready."""
    api.capsule(ns, list(startup), name=name, **{"maxDuration": "00:05:00", **properties})
    run = mt("capsule-start", name, namespace=ns, check=0).stdout.strip()
    api.get({"id": run}, until="ready")
    return run


def story(mt, run):
    return mt("capsule-run-get", run, "--story", check=0).stdout


# ---- of O-02, O-04, O-07, O-16 what the tests by their own names leave open ----

@pytest.mark.parametrize("line", ["(sleep 300; echo late) & wait", "setsid sh -c 'sleep 300; :' & wait",
                                  "(setsid sh -c '(sleep 300; :) &' &); sleep 300", "trap '' TERM; sleep 300; :"])
def test_o02_no_descendant_is_left(api, mt, ns, line):
    run = start(mt, api, ns)
    assert "out of time after 1 s" in mt("capsule-exec", run, "-w", "-t", "1s", line, check=124).stderr
    # What has ended may not be reaped yet.
    assert mt("capsule-exec", run, "-w", "pgrep -c -r D,R,S,T sleep").stdout == "0\n"
    mt("capsule-terminate", run, check=0)


def test_o04_bytes_written_to_the_mount_are_unchanged(server, mt, api, work):
    run = start(mt, api, work, **WORK)
    digest = mt("capsule-exec", run, "-w", "head -c 100000 /dev/urandom > /mnt/work/raw; sha256sum < /mnt/work/raw", check=0)
    got = subprocess.run([mtserver.program("mt"), "cat", f"/vfs/work@{work}/raw"], env={**os.environ, **server.environment()},
                         capture_output=True, timeout=60, check=True)
    assert hashlib.sha256(got.stdout).hexdigest() == digest.stdout.split()[0]
    mt("capsule-terminate", run, check=0)


def test_o05_o06_what_is_longer_than_a_record_by_mt(api, mt, ns):
    run = start(mt, api, ns)
    for character, count in (("€", 70000), ("😀", 65537), ("a", 65536)):
        line = f"import sys; sys.stdout.write('{character}' * {count})"
        sent = mt("capsule-exec", run, "python3", "--arg", "-c", "--arg", line, check=0).stdout.strip()
        assert mt("capsule-command-await", sent, check=0).stdout == character * 65536
        record = json.loads(mt("capsule-command-get", sent, "--json", check=0).stdout)
        assert record.get("outputStandardFullLength") == (None if count == 65536 else count)
    assert len(mt("capsule-exec", run, "-w", "head -c 1048576 /dev/zero | tr '\\0' x", check=0).stdout) == 1 << 20
    mt("capsule-terminate", run, check=0)


def test_o10_what_died_of_memory_is_not_tried_again(api, mt, work):
    run = start(mt, api, work, limits={"memory": "128MiB"}, **WORK)
    done = mt("capsule-exec", run, "-w", "echo tried >> /mnt/work/tries; exec python3 -c 'x = bytearray(10**9)'", check=137)
    assert "out of memory (limit 128 MiB)" in done.stderr
    assert mt("capsule-exec", run, "-w", "cat /mnt/work/tries", check=0).stdout == "tried\n"
    mt("capsule-terminate", run, check=0)


def test_o07_o27_stopping_what_has_ended_is_no_error(api, mt, ns):
    run = start(mt, api, ns)
    sent = mt("capsule-exec", run, "exit 3", check=0).stdout.strip()
    mt("capsule-command-await", sent, check=3)
    assert "Traceback" not in mt("capsule-command-cancel", sent, check=0).stderr
    record = json.loads(mt("capsule-command-get", sent, "--json", check=0).stdout)
    assert (record["endReason"], record["exitCode"]) == ("exited", 3)
    for _ in range(3):
        mt("capsule-terminate", run, check=0)
    api.get({"id": run})
    mt("capsule-terminate", run, check=0)
    assert api.get({"id": run})["endReason"] == "terminated"


def test_o16_startup_commands_have_the_environment_of_their_user(api, mt, work):
    look = "echo $HOME $USER $LOGNAME $SHELL; pwd; id -un"
    run = start(mt, api, work, [{"command": f"({look}) > /tmp/a; cd /"}, {"command": f"({look}) > /tmp/b", "runAsUser": "sandbox"},
                                {"command": "cat /tmp/a /tmp/b > /mnt/work/seen"}], users=[{"name": "sandbox"}], **WORK)
    assert mt("cat", f"/vfs/work@{work}/seen", check=0).stdout == "".join(
        f"/home/{u} {u} {u} /bin/bash\n/home/{u}\n{u}\n" for u in ("maitento", "sandbox"))
    mine, theirs = ({l.split("=")[0] for l in mt("capsule-exec", run, "-w", *user, "env", check=0).stdout.splitlines()}
                    for user in ([], ["--user", "sandbox"]))
    assert {"MAITENTO_NAMESPACE"} == mine - theirs and not theirs - mine, (mine, theirs)
    assert mt("capsule-exec", run, "-w", "command -v mt", check=0).stdout == "/usr/local/bin/mt\n"
    mt("capsule-terminate", run, check=0)


# ---- O-18 ----

def test_o18_the_way_is_cut_while_a_start_waits_for_its_end(server, relay, api, mt, work):  # noqa: F811
    api.capsule(work, [{"command": "echo ran >> /mnt/work/ran; sleep 4; exit $CODE"}], autoTerminate=True, **WORK)
    environment = {**os.environ, **server.environment(), "MAITENTO_URL": relay.url, "MAITENTO_NAMESPACE": work}
    for code, status in ((0, 0), (3, 1)):
        with subprocess.Popen([mtserver.program("mt"), "capsule-start", "c", "--env", f"CODE={code}"], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
            run = waiting.stdout.readline().strip()  # it is started
            relay.cut(5)
            out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == status and out == "", (waiting.returncode, out, err)
        assert api.get({"id": run})["status"] == ("Finished" if code == 0 else "Error")
    assert mt("cat", f"/vfs/work@{work}/ran", check=0).stdout == "ran\nran\n"


def test_o18_a_server_that_stays_away_is_no_success():
    """All that wait give up after a minute, and say that they do not know."""
    with mtserver.Server(image="slim") as own:
        api, mt = Api(own), command_line(own)
        mt("namespace-create", "o18", check=0)
        run = start(mt, api, "o18", name="stay")
        api.capsule("o18", [{"command": "sleep 300"}], name="auto", autoTerminate=True)
        environment = {**os.environ, **own.environment()}
        waiting = [subprocess.Popen([mtserver.program("mt"), *words], env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for words in (
            ["capsule-exec", run, "-w", "echo begun; sleep 300"], ["capsule-start", "auto"])]
        assert waiting[0].stdout.readline() == "begun\n" and waiting[1].stdout.readline()
        waiting.append(subprocess.Popen(
            ["/usr/bin/python3", "-c", "import maitento; runs = maitento.Maitento().capsule_runs; "
             f"print(runs.get('{run}').status, flush=True); runs.wait('{run}')"], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        assert waiting[2].stdout.readline() == "Running\n"
        own.server.kill()
        own.server.wait()
        for process, status in zip(waiting, (125, 6, 1)):
            out, err = process.communicate(timeout=120)
            assert process.returncode == status and out == "" and "outcome unknown" in err, (process.returncode, out, err)


# ---- O-26 ----

@pytest.mark.parametrize("way", ["kill", "stop"])
def test_o26_a_server_that_comes_back_tells_the_truth(way):
    """Runs of every kind, and what is asked of them after the server was away."""
    with mtserver.Server(image="slim") as own:
        api, mt = Api(own), command_line(own)
        mt("namespace-create", "o26", check=0)
        mt("vfs-create", "work", check=0)
        busy = start(mt, api, "o26", name="busy", **WORK)
        done = mt("capsule-exec", busy, "echo kept; exit 4", check=0).stdout.strip()
        mt("capsule-command-await", done, check=4)
        long = mt("capsule-exec", busy, "while [ ! -e /mnt/work/go ]; do sleep 0.1; done; echo long; exit 5", check=0).stdout.strip()
        queued = [mt("capsule-exec", busy, f"printf {i} >> /mnt/work/order; echo {i}; exit {i}", check=0).stdout.strip()
                  for i in (1, 2, 3)]
        idle = start(mt, api, "o26", name="idle")
        starting = api.capsule("o26", [{"command": "sleep 4; echo up > /tmp/up"}], name="starting", maxDuration="00:05:00") and \
            mt("capsule-start", "starting", check=0).stdout.strip()
        api.capsule("o26", [{"command": "sleep 4; echo report > /mnt/work/report"}], name="auto", autoTerminate=True, **WORK)
        auto = mt("capsule-start", "auto", "--no-wait", check=0).stdout.strip()
        short = start(mt, api, "o26", name="short", maxDuration="00:00:03")
        waiter = subprocess.Popen([mtserver.program("mt"), "capsule-command-await", busy, long], text=True,
                                  env={**os.environ, **own.environment(), "MAITENTO_URL": f"unix:{own.socket}"},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        own.server.send_signal(signal.SIGKILL if way == "kill" else signal.SIGTERM)
        assert own.server.wait(30) == (-signal.SIGKILL if way == "kill" else 0)
        time.sleep(4)  # the time of the short one goes on
        own.start_server()
        mt = command_line(own)  # on its new port
        listed = mt("capsule-run-list", check=0).stdout
        assert all(run in listed for run in (busy, idle, starting, auto, short)), listed
        assert api.get({"id": short})["endReason"] == "timeout" and api.get({"id": short})["runSeconds"] < 15
        assert mt("capsule-exec", idle, "-w", "echo ok", check=0).stdout == "ok\n"
        assert mt("capsule-exec", starting, "-w", "cat /tmp/up", check=0).stdout == "up\n"
        mt("capsule-run-await", auto, check=0)
        assert mt("cat", "/vfs/work/report", check=0).stdout == "report\n"
        assert mt("capsule-command-await", done, check=4).stdout == "kept\n"
        mt("cp", "-", "/vfs/work/go", stdin="", check=0)
        out, err = waiter.communicate(timeout=60)
        assert (waiter.returncode, out) == (5, "long\n"), err
        for i, command in zip((1, 2, 3), queued):
            assert mt("capsule-command-await", command, check=i).stdout == f"{i}\n"
        assert mt("cat", "/vfs/work/order", check=0).stdout == "123"
        for run in (busy, idle, starting):
            mt("capsule-terminate", run, check=0)
            assert api.get({"id": run}, seconds=15)["endReason"] == "terminated"


# ---- O-27 ----

@pytest.mark.parametrize("run, status", [("00000000-0000-7000-8000-000000000000", 3), ("no-such-id", 2), ("", 2), ("../x", 2)])
def test_o27_what_never_was(mt, run, status):
    for words, own in ((["capsule-terminate", run], status), (["capsule-run-await", run], status),
                       (["capsule-run-get", run], status), (["capsule-exec", run, "true"], status)):
        done = mt(*words)
        assert done.returncode in (own, 125) and done.stderr.startswith("mt: ") and done.stdout == "", (words, done)
    assert mt("capsule-command-await", run or "x", "00000000-0000-7000-8000-000000000000").returncode == 125


def test_o27_terminate_while_starting_aborts_what_is_queued(api, mt, ns):
    api.capsule(ns, [{"command": "sleep 60"}], maxDuration="00:05:00")
    run = mt("capsule-start", "c", namespace=ns, check=0).stdout.strip()
    sent = [mt("capsule-exec", run, f"echo {i}", check=0).stdout.strip() for i in range(3)]
    mt("capsule-terminate", run, check=0)
    for command in sent:
        done = mt("capsule-command-await", command, check=125)
        assert "stopped by admin" in done.stderr and done.stdout == "", done
    assert "stopped by admin" in mt("capsule-exec", run, "true", check=5).stderr
    assert api.get({"id": run})["endReason"] == "terminated"
    other = start(mt, api, ns, name="other")
    assert mt("capsule-command-get", other, sent[0]).returncode == 3  # an id counts under its own run alone
    mt("capsule-terminate", other, check=0)


# ---- O-28 ----

@pytest.mark.parametrize("text", ["00:60:00", "90", "1h30m", "-00:01:00", "", "00:00:00.5"])
def test_o28_mt_shows_the_place_and_a_right_one(mt, work, tmp_path, text):
    (tmp_path / "capsules").mkdir()
    (tmp_path / "capsules" / "c.mtr").write_text(f'// one\nmaxDuration = "{text}"\n')
    done = mt("deploy", tmp_path, namespace=work, check=1)
    assert "capsules/c.mtr:2:15:" in done.stderr and "00:10:00" in done.stderr and "^" in done.stderr, done.stderr
    (tmp_path / "capsules" / "c.mtr").unlink()
    for folder in ("apps/a",):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "apps" / "a" / "a.mtc").write_text("string main() {\n\treturn(\"\");\n}\n")
    (tmp_path / "apps" / "a" / "a.mtr").write_text(f'duration.max = "{text}"\n')
    done = mt("deploy", tmp_path, namespace=work, check=1)
    assert "apps/a/a.mtr:1:" in done.stderr and "00:10:00" in done.stderr, done.stderr


def test_o28_the_stored_value_shows_as_understood(mt, work, tmp_path):
    (tmp_path / "capsules").mkdir()
    (tmp_path / "capsules" / "c.mtr").write_text('maxDuration = "48:00:00"\n')
    mt("deploy", tmp_path, namespace=work, check=0)
    assert "2.00:00:00" in mt("capsule-get", "c", namespace=work, check=0).stdout


# ---- O-29 ----

def test_o29_setup_that_fails_is_told_and_runs_nothing_that_was_queued(api, mt, work):
    held = "until [ -e /mnt/work/go ]; do sleep 0.05; done; "
    for startup, said in (([{"command": held + "exit 3"}, {"command": "touch /mnt/work/two"}], "exit 3 - exit code 3"),
                          ([{"command": held + "no-such-cmd"}], "no-such-cmd: command not found"),
                          ([{"command": "echo begun; sleep 60", "maxDuration": "00:00:03"}], "out of time after 3 s"),
                          ([{"command": held + "yes e | head -c 1048576 >&2; exit 2"}], "e")):
        api.capsule(work, startup, maxDuration="00:05:00", **WORK)
        run = mt("capsule-start", "c", namespace=work, check=0).stdout.strip()
        command = mt("capsule-exec", run, "touch /mnt/work/ran", check=0).stdout.strip()
        mt("cp", "-", f"/vfs/work@{work}/go", stdin="", check=0)
        done = mt("capsule-command-await", command, check=125)
        assert "the run failed to start: Startup command failed: " in done.stderr and len(done.stderr) < 6000, done.stderr[:300]
        shown = mt("capsule-run-get", run, check=0).stdout
        assert "Startup command failed: " in shown and said in shown and "Error" in shown, shown[:500]
        assert "startFailed" in story(mt, run) and f"startup command 1 started: {startup[0]['command']}\n" in story(mt, run)
        assert mt("capsule-run-await", run).returncode == 1
        mt("rm", f"/vfs/work@{work}/go", check=0)
    assert mt("ls", f"/vfs/work@{work}/", check=0).stdout == ""


def test_o29_the_story_tells_each_command_by_its_words(api, mt, work):
    long = "é" * 150
    api.capsule(work, [{"command": "test", "arguments": ["-d", "/tmp"]}, {"command": "true\ntrue #" + long}],
                autoTerminate=True, **WORK)
    run = mt("capsule-start", "c", namespace=work, check=0).stdout.strip()
    told = [l.split("  ", 1)[1] for l in story(mt, run).splitlines() if "command" in l and " started" in l]
    assert told[0] == "startup command 1 started: test -d /tmp"
    assert re.fullmatch("startup command 2 started: true true #é{94}…", told[1]), told
    more = api.run(work, "c", {"startup": [{"command": "echo of this start"}]})
    assert "startup command 3 started: echo of this start\n" in story(mt, more["id"])


# ---- O-30 ----

@pytest.mark.parametrize("name", ["-oX=Y", "jq;id", "Jq", ""])
def test_o30_names_of_packages_are_checked_before_anything_runs(mt, work, tmp_path, name):
    (tmp_path / "capsules").mkdir()
    (tmp_path / "capsules" / "c.mtr").write_text(f'packages = ["jq", "{name}"]\n')
    done = mt("deploy", tmp_path, namespace=work, check=1)
    assert "capsules/c.mtr:1:19: " in done.stderr and "package" in done.stderr, done.stderr


@pytest.mark.skipif(not debian_is_there(), reason="needs Debian's archive")
def test_a30_o30_an_unknown_package_is_named_by_mt(api, mt, work):
    api.capsule(work, [{"command": "touch /mnt/work/ready"}], packages=["no-such-pkg-xyz"], maxDuration="00:05:00",
                autoTerminate=True, **WORK)
    done = mt("capsule-start", "c", namespace=work, check=1)
    assert "no-such-pkg-xyz" in done.stderr and "Unable to locate package" in done.stderr, done.stderr
    assert mt("ls", f"/vfs/work@{work}/", check=0).stdout == ""


# ---- O-33 ----

USERS = [[], ["--user", "sandbox"], ["--user", "root"]]


@pytest.mark.parametrize("user", USERS, ids=["maitento", "sandbox", "root"])
def test_o33_descriptors_working_folders_and_program_files(server, api, mt, ns, user):
    programs = {name: hashlib.sha256(open(mtserver.program(name), "rb").read()).hexdigest() for name in ("mt-runner", "mt-init", "mt")}
    run = start(mt, api, ns, users=[{"name": "sandbox"}], name="o33")
    listed = mt("capsule-exec", run, "-w", *user, "ls", "--args", "-l,/proc/self/fd", check=0).stdout
    numbers = [int(n) for n in re.findall(r" (\d+) -> ", listed)]
    assert numbers == [0, 1, 2, 3] and str(server.dir) not in listed, listed  # the last is the listing's own
    for n in [*range(3, 31), 100, 255]:
        done = mt("capsule-exec", run, "-w", *user, "--dir", f"/proc/self/fd/{n}", "pwd -P; ls", check=None)
        assert done.returncode and str(server.dir) not in done.stdout + done.stderr, (n, done)
    inside = mt("capsule-exec", run, "-w", *user, "for n in $(seq 3 30); do (cd /proc/self/fd/$n && pwd -P && ls); done; true").stdout
    assert inside == "", inside
    for path in ("/proc/1/root", "/proc/1/exe", "/proc/1/fd", "/proc/1/cwd"):
        done = mt("capsule-exec", run, "-w", *user, f"ls -l {path}/ ; readlink {path}")
        assert "mt-runner" not in done.stdout and str(server.dir) not in done.stdout, done
    wrote = mt("capsule-exec", run, "-w", *user, "for f in /proc/self/exe /proc/$PPID/exe /proc/1/exe /usr/local/bin/mt; do "
               "(echo x >> $f) 2>/dev/null && echo wrote $f; done; true", check=0)
    assert "wrote /proc/1" not in wrote.stdout and "wrote /usr/local/bin/mt" not in wrote.stdout, wrote.stdout
    for name, digest in programs.items():
        assert hashlib.sha256(open(mtserver.program(name), "rb").read()).hexdigest() == digest
    mt("capsule-terminate", run, check=0)


@pytest.mark.parametrize("place", ["/home/sandbox", "/tmp"])
def test_o33_a_link_in_place_of_a_folder_leads_nowhere_outside(server, api, mt, ns, place):
    run = start(mt, api, ns, [{"command": f"rm -rf {place}; ln -s /proc/1/root {place}", "runAsUser": "root"}],
                users=[{"name": "sandbox"}], name="o33")
    for user in USERS:
        done = mt("capsule-exec", run, "-w", *user, "--dir", place, "cat etc/hostname")
        assert done.returncode or done.stdout == "o33\n", done
        done = mt("capsule-exec", run, "-w", *user, "cat /etc/hostname; ls /")
        assert str(server.dir).split("/")[2] not in done.stdout
    mt("capsule-terminate", run, check=0)
