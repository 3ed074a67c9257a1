# SPDX-License-Identifier: Apache-2.0
"""What people see on a terminal: doctor, progress, errors."""
import json
import os
import pty
import select
import signal
import subprocess
import time

from paper import MT, on_terminal, vfs


def test_doctor_says_what_to_do(mt, fake):
    done = mt("doctor", code=1)
    assert "not there?[31m" in done.out and "-> start it" in done.out and "kernel" in done.out
    checks = json.loads(mt("doctor", "--json", code=1).out)["checks"]
    assert {c["where"] for c in checks} == {"host", "server"}
    fake.stop()
    assert "systemctl start maitentod" in mt("doctor", code=1).out
    fake.start()


def test_a_progress_bar_on_a_terminal_only(fake, environment, tmp_path):
    vfs(fake)
    (tmp_path / "big").write_bytes(b"x" * 300_000_000)
    fake.on("PUT", ".*/files", lambda r, m: (201, {}))
    master, slave = pty.openpty()
    with subprocess.Popen([MT, "cp", "big", "/vfs/data/big"], env=environment, cwd=tmp_path, stderr=slave) as p:
        os.close(slave)
        seen = b""
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            try:
                piece = os.read(master, 65536) if ready else b""
            except OSError:
                break
            if not piece:
                break
            seen += piece
        assert p.wait(60) == 0
    os.close(master)
    assert b"%" in seen and b"[#" in seen
    done = subprocess.run([MT, "cp", "big", "/vfs/data/big"], env=environment, cwd=tmp_path, capture_output=True,
                          check=True, timeout=60)
    assert done.stderr == b"" and done.stdout == b""


def test_an_error_of_this_side_has_no_words_of_an_earlier_answer(mt, fake, tmp_path):
    vfs(fake)
    # The target's stat is answered with 404 first, which is no error.
    done = mt("cp", "no-such-file", "/vfs/data/new", code=3)
    assert done.err == "mt: cannot look at 'no-such-file': No such file or directory\n"
    assert json.loads(mt("cp", "--json", "no-such-file", "/vfs/data/new", code=3).err) == {
        "code": "notFound", "detail": "cannot look at 'no-such-file': No such file or directory"}
    assert mt("cat", "no-such-file", code=3).err.count("\n") == 1
    vfs(fake, **{"/f": b"x"})
    assert "namespace" not in mt("cp", "/vfs/data/f", tmp_path / "none" / "f", code=3).err


def test_hostile_names_do_not_reach_a_terminal(environment, fake):
    vfs(fake, **{"/e\x1b[31m\u202egnp": b"", "/l": ("link", "\x1b]0;title\x07")})
    for words in (["stat", "/vfs/data/e\x1b[31m\u202egnp"], ["stat", "/vfs/data/l"], ["ls", "-l", "/vfs/data"],
                  ["vfs-get", "x", "-n", "n\x1b[31m"]):
        seen, _ = on_terminal({**environment, "NO_COLOR": "1"}, *words)
        assert b"\x1b" not in seen and "\u202e".encode() not in seen, seen
    fake.namespaces["work"]["data"] = {b"/raw\x9b31m": b""}
    seen, _ = on_terminal({**environment, "NO_COLOR": "1"}, "ls", "/vfs/data")
    assert seen == b"raw?31m\r\n"


def test_a_progress_line_fits_its_terminal(environment, fake, tmp_path):
    vfs(fake)
    fake.on("PUT", ".*/files", lambda r, m: (201, {}))
    (tmp_path / "big").write_bytes(b"x" * 300_000_000)
    seen, status = on_terminal(environment, "cp", "big", "/vfs/data/big", cwd=tmp_path, columns=24)
    lines = [line for line in seen.split(b"\r\x1b[K") if line]
    assert status == 0 and lines and max(map(len, lines)) < 24
    seen, status = on_terminal(environment, "cp", "big", "/vfs/data/big", cwd=tmp_path, term="dumb")
    assert status == 0 and seen == b""


def test_after_ctrl_c_the_error_is_one_word(environment, fake, tmp_path):
    with subprocess.Popen([MT, "capsule-start", "report"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        p.stdout.readline()
        fake.await_asked("GET", "/v1/capsule-runs/")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
    assert p.returncode == 130 and err.splitlines()[1:] == ["mt: interrupted"], err
    fake.finish(fake.runs[0])
