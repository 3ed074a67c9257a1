"""The tools that people start by hand: serve, with-server, install."""
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import mtserver  # noqa: E402


def start_serve(state):
    """tools/serve as a terminal starts it; returns when it is ready or has ended."""
    p = subprocess.Popen([ROOT / "tools/serve", "--state", state], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, start_new_session=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    said = ""
    for line in p.stdout:
        said += line
        if "Ctrl-C ends it" in line:
            break
    return p, said


def ctrl_c(p, times=1):
    for _ in range(times):
        os.killpg(p.pid, signal.SIGINT)
        time.sleep(0.05)
    said = p.communicate(timeout=60)[0]
    return p.returncode, said


def signed_in(state, *words):
    return subprocess.run(["sh", "-c", '. "$0"/env && mt "$@"', state, *words], capture_output=True, text=True,
                          timeout=60, check=False)


def test_serve_keeps_address_key_and_state_and_ends_on_ctrl_c(tmp_path):
    state = tmp_path / "state"
    p, said = start_serve(state)
    try:
        assert "mt doctor" in said, said
        env = (state / "env").read_text()
        assert signed_in(state, "namespace-create", "kept").returncode == 0
        second, said = start_serve(state)
        assert second.wait(30) == 1 and "another one runs on" in said and "Ctrl-C" in said, said
        assert signed_in(state, "whoami").returncode == 0
    finally:
        status, said = ctrl_c(p, times=4)
    assert status == 0 and "stopping" in said, said
    p, _ = start_serve(state)
    try:
        assert (state / "env").read_text() == env
        assert "kept" in signed_in(state, "namespace-list").stdout
        assert len(signed_in(state, "key-list").stdout.splitlines()) == 1
    finally:
        ctrl_c(p)
    left = subprocess.run(["pgrep", "-f", f"(maitentod|mt-runner).*{state}"], capture_output=True, check=False)
    assert left.returncode == 1, left.stdout


def test_serve_says_which_part_has_ended(tmp_path):
    p, _ = start_serve(tmp_path)
    pid = subprocess.run(["pgrep", "-f", f"maitentod.*{tmp_path}"], capture_output=True, text=True, check=True).stdout
    os.kill(int(pid.split()[0]), signal.SIGKILL)
    said = p.communicate(timeout=60)[0]
    assert p.returncode == 1 and "maitentod has ended" in said and "takes up the runs" in said, said


def with_server(*words):
    return subprocess.run([ROOT / "tools/with-server", *words], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("command, status", [("exit 7", 7), ("kill -9 $$", 137)])
def test_with_server_gives_the_commands_status(command, status):
    assert with_server("bash", "-c", command).returncode == status


def test_a_start_that_fails_says_why_in_one_sentence(tmp_path):
    with mtserver.Server(state=tmp_path / "one") as one:
        other = mtserver.Server(state=tmp_path / "two", server_options=["--socket", one.socket])
        with pytest.raises(mtserver.StartError, match="ended with 1: a server already listens on") as error:
            other.start()
        other.stop()
        assert "\n" not in str(error.value)


def test_install_puts_definitions_where_mt_image_looks(tmp_path):
    subprocess.run([ROOT / "tools/install"], env={**os.environ, "DESTDIR": str(tmp_path),
                                                  "MT_BUILD": str(mtserver.build_dir())}, check=True, capture_output=True)
    usage = subprocess.run([tmp_path / "usr/sbin/mt-image", "--help"], capture_output=True, text=True, check=True).stdout
    folder = next(line.split(" in ")[1] for line in usage.splitlines() if "NAME.mtr in" in line)
    for name in ("slim", "default"):
        assert (tmp_path / folder.lstrip("/") / f"{name}.mtr").read_bytes() == (ROOT / f"images/{name}.mtr").read_bytes()
    for program in ("usr/bin/mt", "usr/sbin/maitentod", "usr/sbin/mt-runner", "usr/lib/maitento/mt-init", "usr/lib/maitento/mt-session",
                    "usr/lib/maitento/mt-capsule"):
        assert os.access(tmp_path / program, os.X_OK)
    for shell, place in (("bash", "bash-completion/completions/mt"), ("zsh", "zsh/vendor-completions/_mt"),
                         ("fish", "fish/vendor_completions.d/mt.fish")):
        made = subprocess.run([tmp_path / "usr/bin/mt", "completion", shell], capture_output=True, check=True).stdout
        assert (tmp_path / "usr/share" / place).read_bytes() == made


def test_a_full_state_disk_is_told_and_survived(tmp_path):
    """In a mount namespace of its own: the state is on a disk of 40 MiB."""
    (tmp_path / "state").mkdir()
    script = textwrap.dedent("""
        import os, subprocess, sys
        sys.path.insert(0, sys.argv[1])
        import mtserver
        state = sys.argv[2] + "/state"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "none", state], check=True)
        server = mtserver.Server(state=sys.argv[2], instance=f"full-{os.getpid()}")
        with server:
            environment = {**os.environ, **server.environment()}
            def mt(*words, code=0, said=""):
                done = subprocess.run(["mt", *words], env=environment, input="", capture_output=True, text=True)
                assert done.returncode == code and said in done.stdout + done.stderr, (words, done)
            mt("namespace-create", "n"), mt("vfs-create", "v")
            with open(state + "/filler", "wb") as filler:
                try:
                    while True:
                        os.write(filler.fileno(), b"x" * 65536)
                except OSError:
                    pass
            mt("cp", sys.argv[1] + "/serve", "/vfs/v/f", code=1, said="No space left on device")
            mt("namespace-create", "m", code=1, said="the disk that holds the store is full")
            mt("namespace-list", said="n")
            mt("doctor", code=1, said="failed   disk")
            server.server.kill(), server.server.wait()
            server.start_server()
            os.unlink(state + "/filler")
            server.key = None
            environment.update(server.environment())
            mt("namespace-create", "m"), mt("cp", sys.argv[1] + "/serve", "/vfs/v/f")
    """)
    done = subprocess.run(["unshare", "-m", sys.executable, "-c", script, ROOT / "tools", tmp_path], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_names_of_failed_tests_end_the_log_of_a_test_run(tmp_path):
    """run-parts on parts that print what each kind of test prints."""
    said = {"tap": "ok 1 - a thing\nnot ok 2 - another thing\nnot ok 3 # SKIP a third",
            "pytest": "FAILED tests/x/test_x.py::test_y[a b] - assert 1 == 2\nERROR tests/x/test_z.py::test_w\n"
                      "1 failed, 1 error, 3 passed in 2.10s",
            "meson": " 1/2 unit / base    OK      0.02s\n 2/2 unit / http    TIMEOUT  30.02s   killed\n"
                     "Ok:                 1\nFail:               0\nTimeout:            1",
            "silent": "something odd", "fine": "ok 1 - a thing"}
    (tmp_path / "tools").mkdir()
    for name, text in said.items():
        (tmp_path / name).write_text(text + "\n")
    parts = [(name, "all", 5, 20, f"cat {name}" + ("" if name == "fine" else "; exit 3")) for name in said]
    parts.append(("endless", "all", 1, 3, "echo not ok 1 - stuck; exec sleep 30"))
    tool = (ROOT / "tools/run-parts").read_text()
    before, after = tool.split("\nPARTS = [", 1)[0], tool.split("\n]\n", 1)[1]
    (tmp_path / "tools/run-parts").write_text(f"{before}\nPARTS = {parts!r}\n{after}")
    (tmp_path / "build").mkdir()
    done = subprocess.run([sys.executable, tmp_path / "tools/run-parts", "all"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith(
        "\n\nfailed: tap: another thing\nfailed: pytest: tests/x/test_x.py::test_y[a b]\n"
        "failed: pytest: tests/x/test_z.py::test_w\nfailed: meson: unit / http\nfailed: silent: exit status 3\n"
        "failed: endless: stuck\nfailed: endless: killed at its limit of 3 s\n6 passed, 6 failed, 1 skipped\n"), done.stdout
