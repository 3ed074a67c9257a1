"""Field cases O-19 to O-25 once more, by mt: what capsules plant in a file system, as somebody meets it at a terminal."""
import os
import re
import subprocess
import threading
import time

import pytest

import mtserver
from conftest import Api, Ref, command_line

WORK = {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}


@pytest.fixture()
def work(mt, ns):
    mt("vfs-create", "work", namespace=ns, check=0)
    return ns


@pytest.fixture()
def bench(api, mt, work):
    """A run that mounts the file system, and sh(LINE) in it."""
    api.capsule(work, [], name="bench", users=[{"name": "sandbox"}], maxDuration="00:10:00", **WORK)
    run = mt("capsule-start", "bench", namespace=work, check=0).stdout.strip()
    yield run
    mt("capsule-terminate", run, check=0)


@pytest.fixture()
def sh(mt, bench):
    def call(line, *options, check=0):
        return mt("capsule-exec", bench, "--wait", *options, "sh", "--arg", "-c", "--arg", line, check=check)
    return call


def raw(server, *words):
    """mt with bytes for its outputs."""
    return subprocess.run([mtserver.program("mt"), *words], env={**os.environ, **server.environment()},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


def by_socket(server):
    """mt by the server's socket, whose name is the same after a restart."""
    mt = command_line(server)
    return lambda *words, **how: mt(*words, **{**how, "env": {"MAITENTO_URL": f"unix:{server.socket}"}})


def vfs(path, ns):
    return f"/vfs/work@{ns}{path}"


def test_o19_links_to_the_host_are_shown_and_never_followed(mt, work, sh, tmp_path):
    sh("cd /mnt/work; mkdir tree; cd tree; ln -s /etc/shadow leak; ln -s / root; ln -s ../../../../.. up; "
       "echo a > a.txt; ln -s a.txt fine")
    for path in ("/tree/leak", "/tree/root/etc/hostname", "/tree/up/etc/hostname"):
        for words in (["cat", vfs(path, work)], ["cp", vfs(path, work), tmp_path / "got"]):
            done = mt(*words)
            assert done.returncode in (1, 3, 5) and done.stdout == "" and "link" in done.stderr, (words, done)
    assert not (tmp_path / "got").exists()
    listed = mt("ls", "-l", vfs("/tree", work), check=0).stdout
    assert "leak -> /etc/shadow" in listed and "fine -> a.txt" in listed, listed
    copied = mt("cp", "-r", vfs("/tree", work), tmp_path / "copy", check=None)
    assert os.readlink(tmp_path / "copy" / "fine") == "a.txt" and (tmp_path / "copy" / "fine").read_text() == "a\n"
    assert sorted(os.listdir(tmp_path / "copy")) == ["a.txt", "fine"]
    for name in ("leak", "root", "up"):  # left out, and said so
        assert re.search(rf"{name} is a link that leads out of what is copied: skipped", copied.stderr), copied.stderr


def test_o20_paths_names_and_projects_that_would_leave(mt, work, tmp_path):
    (tmp_path / "f").write_text("x")
    mt("vfs-create", "work2", namespace=work, check=0)
    for path in ("/../x", "/a/../../x", "/../work2/x"):
        done = mt("cp", tmp_path / "f", vfs(path, work))
        assert done.returncode == 2 and done.stdout == "" and ".." in done.stderr, (path, done)
    mt("cp", tmp_path / "f", vfs("/a/../b", work), check=0)  # stays inside: it is /b, everywhere
    mt("cp", tmp_path / "f", vfs("//c", work), check=0)
    mt("cp", tmp_path / "f", vfs("/d\\..\\..\\x", work), check=0)
    assert mt("ls", vfs("/", work), check=0).stdout.split() == ["b", "c", "d\\..\\..\\x"]
    assert mt("ls", f"/vfs/work2@{work}/", check=0).stdout == ""
    for name in ("..", ".", "a/b", ""):
        for words in (["namespace-create", name], ["vfs-create", name], ["capsule-start", name]):
            assert mt(*words, namespace=work).returncode in (2, 3), (words, name)
        assert mt("secret-create", name, stdin="x", namespace=work).returncode == 2, name
    project = tmp_path / "project"
    for folder in ("capsules", "prompts", "agents", "interactions/one-shot"):
        (project / folder).mkdir(parents=True)
    good = project / "capsules" / "good.mtr"
    good.write_text("autoTerminate = true\n")
    (project / "agents" / "a.mtr").write_text('model = @ref("deepseek.x")\nprompt = "p"\nsummary = "s"\n')
    talk = project / "interactions" / "one-shot" / "talk.mtr"
    for reference in ('task = @prompt("../../x")', 'task = @prompt("a")\nschema.solution = @json("/etc/passwd")'):
        talk.write_text('agent = {\n  name = "A"\n  agent = @ref("a")\n}\n' + reference + "\n")
        done = mt("deploy", project, namespace=work)
        assert done.returncode == 1 and "interactions/one-shot/talk.mtr:" in done.stderr, done
    talk.unlink()
    (project / "capsules" / "planted.mtr").symlink_to("/etc/hostname")
    done = mt("deploy", project, namespace=work)
    assert "planted" in done.stderr and open("/etc/hostname").read().strip() not in done.stderr, done
    if done.returncode:  # nothing of it is there
        assert mt("capsule-list", namespace=work, check=0).stdout == ""


NAMES = ["a b", "naïve-日本.txt", "-rf", 'q"q', "b\\b", "h#h", "p%41", "q?x=1", "plus+", "at@ns", "x" * 255,
         "\u00e9", "e\u0301", "n\nl"]


def test_o21_names_made_inside_are_read_copied_and_deleted_outside(server, api, mt, work, sh, bench, tmp_path):
    for i, name in enumerate(NAMES):
        mt("capsule-exec", bench, "--wait", "sh", "--", "-c", 'printf %s "$2" > "/mnt/work/$1"', "sh", name, i, check=0)
    sh("printf x > \"/mnt/work/$(printf 'bad\\377')\"")
    listed = [i["name"] for i in api.call("GET", api.files(work, "work", "/", "list"))["items"]]
    assert sorted(listed) == sorted([*NAMES, "bad%FF"])
    for i, name in enumerate(NAMES):
        assert mt("cat", vfs("/" + name, work), check=0).stdout == str(i)
        mt("cp", vfs("/" + name, work), tmp_path / "one", check=0)
        assert (tmp_path / "one").read_text() == str(i)
        mt("cp", tmp_path / "one", f"run:{bench}:/tmp/{name}", check=0)
    assert sh("ls -A /tmp | wc -l").stdout == f"{len(NAMES) + 1}\n"  # one has two lines
    mt("cp", "-r", vfs("/.", work), tmp_path / "all")
    for i, name in enumerate(NAMES):
        assert (tmp_path / "all" / name).read_text() == str(i)
        mt("rm", vfs("/" + name, work), check=0)
    assert sh("ls -A /mnt/work | wc -l").stdout == "1\n"  # only the one that is no UTF-8
    assert raw(server, "ls", vfs("/", work)).stdout == b"bad\xff\n"
    assert raw(server, "cat", vfs("/", work).encode() + b"bad\xff").stdout == b"x"
    assert raw(server, "rm", vfs("/", work).encode() + b"bad\xff").returncode == 0
    assert mt("ls", vfs("/", work), check=0).stdout == ""


def test_o22_what_a_command_wrote_is_read_as_soon_as_it_has_ended(mt, work, sh):
    for i in range(20):
        sh(f"echo {i} > /mnt/work/f")
        assert mt("cat", vfs("/f", work), check=0).stdout == f"{i}\n"


def test_o22_readers_inside_see_whole_files_and_an_open_one_stays(api, mt, work, sh):
    size = 1 << 20
    api.write(work, "work", "/f", b"A" * size)
    stop = threading.Event()
    failures = []

    def writer():
        letters = [b"B", b"A"]
        try:
            while not stop.is_set():
                api.write(work, "work", "/f", letters[0] * size)
                letters.reverse()
        except AssertionError as error:
            failures.append(error)

    thread = threading.Thread(target=writer)
    thread.start()
    try:
        seen = sh("exec 9< /mnt/work/f; for i in $(seq 40); do tr -d '\\n' < /mnt/work/f | fold -w 65536 | sort -u | "
                  "wc -l; wc -c < /mnt/work/f; done | sort | uniq | tr '\\n' ' '; head -c 65536 <&9 | fold -w 1 | sort -u | wc -l")
    finally:
        stop.set()
        thread.join()
    assert not failures and seen.stdout == f"1 {size} 1\n", seen


def test_o22_two_runs_share_a_mount_as_processes_of_one_machine(api, mt, work):
    api.capsule(work, [], name="bench", maxDuration="00:05:00", **WORK)
    one, two = (mt("capsule-start", "bench", namespace=work, check=0).stdout.strip() for _ in range(2))
    held = mt("capsule-exec", one, "exec 9> /mnt/work/lock; flock 9; touch /mnt/work/held; "
              "while [ ! -e /mnt/work/go ]; do sleep 0.05; done; echo whole > /mnt/work/f", check=0).stdout.strip()
    mt("capsule-exec", two, "-w", "while [ ! -e /mnt/work/held ]; do sleep 0.05; done", check=0)
    assert mt("capsule-exec", two, "-w", "flock -n /mnt/work/lock true").returncode == 1
    waits = mt("capsule-exec", two, "flock /mnt/work/lock cat /mnt/work/f", check=0).stdout.strip()
    mt("cp", "-", vfs("/go", work), stdin="", check=0)
    mt("capsule-command-await", held, check=0)
    assert mt("capsule-command-await", waits, check=0).stdout == "whole\n"
    for run in (one, two):
        mt("capsule-terminate", run, check=0)


def test_o22_a_server_killed_in_mid_write_leaves_the_old_file():
    with mtserver.Server(image="slim") as own:
        api, mt = Api(own), by_socket(own)
        mt("namespace-create", "o22", check=0)
        mt("vfs-create", "work", check=0)
        mt("cp", "-", "/vfs/work/f", stdin="old", check=0)
        environment = {**os.environ, **own.environment(), "MAITENTO_URL": f"unix:{own.socket}"}
        with subprocess.Popen([mtserver.program("mt"), "cp", "-", "/vfs/work/f"], env=environment,
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as copy:
            copy.stdin.write("new" * 1000000)
            copy.stdin.flush()
            temporary = next((own.dir / "state" / "vfs").iterdir())
            deadline = time.monotonic() + 30
            while not any(names for _, _, names in os.walk(temporary / "tmp")) and time.monotonic() < deadline:
                time.sleep(0.02)
            own.server.kill()
            own.server.wait()
            try:
                copy.stdin.close()
            except BrokenPipeError:
                pass
            said = copy.stderr.read()
        assert copy.returncode not in (0, None) and said.startswith("mt: "), said
        own.start_server()
        assert mt("cat", "/vfs/work/f", check=0).stdout == "old"
        assert mt("ls", "/vfs/work/", check=0).stdout == "f\n"
        assert [i["name"] for i in api.call("GET", api.files("o22", "work", "/", "list"))["items"]] == ["f"]


def test_o23_the_default_user_works_in_the_mount_and_sandbox_is_refused(api, mt, work, sh, tmp_path):
    (tmp_path / "s.py").write_text("open('/mnt/work/made', 'w').write('by python\\n')\n")
    mt("cp", tmp_path / "s.py", vfs("/s.py", work), check=0)
    sh("cd /mnt/work && python3 s.py && git init -q . && git status -s && echo two >> made && mkdir -p d/e && touch d/e/f")
    assert mt("cat", vfs("/made", work), check=0).stdout == "by python\ntwo\n"
    sh("touch /mnt/work/by-root; mkdir /mnt/work/roots; touch /mnt/work/roots/f", "--user", "root")
    denied = mt("capsule-exec", "@last", "--wait", "--user", "sandbox", "cat", "--args", "/mnt/work/made", check=1)
    assert denied.stderr == "cat: /mnt/work/made: Permission denied\n" and denied.stdout == ""
    for line in ("ls /mnt/work", "touch /mnt/work/x"):
        assert "Permission denied" in sh(line, "--user", "sandbox", check=None).stderr
    assert sh("stat -c '%U %G %a' /mnt/work; stat -c %U /mnt/work/by-root").stdout == "maitento maitento 770\nroot\n"
    # Another run finds the same, and the API replaces and deletes what anybody made.
    mt("vfs-create", "other", namespace=work, check=0)
    api.capsule(work, [{"command": "cd /mnt/a && cat made && echo three >> made && rm by-root && test ! -e /mnt/a-b/made"}],
                name="second", autoTerminate=True, vfs=[{"vfs": Ref("work"), "mountName": "a"},
                                                        {"vfs": Ref("other"), "mountName": "a-b"}])
    mt("capsule-start", "second", namespace=work, check=0)
    assert mt("cat", vfs("/made", work), check=0).stdout == "by python\ntwo\nthree\n"
    mt("cp", tmp_path / "s.py", vfs("/roots/f", work), check=0)
    for path in ("/roots", "/d", "/.git"):
        mt("rm", "-r", vfs(path, work), check=0)
    assert sorted(mt("ls", vfs("/", work), check=0).stdout.split()) == ["made", "s.py"]


def test_o24_what_is_no_file_is_refused_at_once_and_left_out_of_copies(mt, work, sh, tmp_path):
    sh("cd /mnt/work; mkdir odd; cd odd; mkfifo p; ln -s /dev/zero z; echo a > a; truncate -s 1T sparse; "
       "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"; mkdir deep; cd deep; "
       "i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i+1)); done")
    sh("(while :; do echo line; sleep 0.01; done >> /mnt/work/growing) & sleep 0.2")
    began = time.monotonic()
    for _ in range(10):
        for name in ("p", "z", "s"):
            done = mt("cat", vfs(f"/odd/{name}", work))
            assert done.returncode == 5 and "not a regular file" in done.stderr.lower() + done.stdout.lower(), done
    assert time.monotonic() - began < 60  # 2 s each
    grown = mt("cat", vfs("/growing", work), check=0).stdout
    assert set(grown.splitlines()) <= {"line", ""} and grown
    mt("rm", vfs("/odd/sparse", work), check=0)
    copied = mt("cp", "-r", vfs("/odd", work), tmp_path / "copy", timeout=60)
    assert (tmp_path / "copy" / "a").read_text() == "a\n" and not (tmp_path / "copy" / "p").exists()
    for name in ("p", "s", "z"):
        assert re.search(rf"warning: {name} is .*: skipped", copied.stderr), copied.stderr
    mt("rm", "-r", vfs("/odd", work), check=0)
    assert mt("ls", vfs("/", work), check=0).stdout == "growing\n"


def test_o25_a_server_killed_while_a_run_ends_touches_no_mounted_file():
    with mtserver.Server(image="slim") as own:
        api, mt = Api(own), by_socket(own)
        mt("namespace-create", "o25", check=0)
        mt("vfs-create", "work", check=0)
        api.capsule("o25", [{"command": "cd /mnt/work; for i in $(seq 1000); do echo $i > f$i; done; touch /tmp/mine ~/mine"},
                            {"command": "cd /mnt/work; exec 9< f1; sleep 300", "wait": False}], **WORK)
        run = mt("capsule-start", "c", check=0).stdout.strip()
        api.get({"id": run}, until="ready")
        mounts = open(f"/proc/{own.runner.pid}/mountinfo", encoding="utf-8").read()
        own.server.kill()
        own.server.wait()
        own.start_server()
        mt("capsule-terminate", run, check=0)
        assert api.get({"id": run})["endReason"] == "terminated"
        # A second run has all files, nothing of the first one's own, and there is no mount more.
        api.shell("o25", "test $(ls /mnt/work | wc -l) = 1000 && test ! -e /tmp/mine && test ! -e ~/mine", vfs="work", name="next")
        assert api.call("GET", "/v1/capsule-runs?limit=1")["items"][0]["status"] == "Finished"
        deadline = time.monotonic() + 30
        while len(open(f"/proc/{own.runner.pid}/mountinfo", encoding="utf-8").read().splitlines()) > \
                len(mounts.splitlines()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(open(f"/proc/{own.runner.pid}/mountinfo", encoding="utf-8").read().splitlines()) <= len(mounts.splitlines())
        assert len(mt("ls", "/vfs/work/", check=0).stdout.split()) == 1000
