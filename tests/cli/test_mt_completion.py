# SPDX-License-Identifier: Apache-2.0
"""Completion: what mt offers at a cursor, and bash with the script, by its functions and by the key."""
import os
import pty
import select
import shutil
import subprocess
import time

import pytest

from paper import MT, vfs

ASK = r"""
. "$1"
calls=$2
compopt() { echo "compopt $*" >>"$calls"; }
COMP_LINE=$3 COMP_POINT=${#3}
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:@'
mapfile -t COMP_WORDS < <(python3 - "$3" <<'PY'
import re, sys
line = sys.argv[1]
words = re.findall(r'''(?:\\.|'[^']*'?|"[^"]*"?|[^\s=:@'"\\])+|[=:@]+''', line)
if line[-1:].isspace():
    words.append("")
print("\n".join(words))
PY
)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_mt
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture()
def bash(environment, mt, tmp_path):
    """What bash would offer at the end of a line, as words that it puts in."""
    script, calls = tmp_path / "mt.bash", tmp_path / "compopt"
    script.write_text(mt("completion", "bash").out)
    (tmp_path / "mt").symlink_to(MT)
    env = {**environment, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def ask(line, **more):
        calls.write_text("")
        done = subprocess.run(["bash", "-c", ASK, "bash", script, calls, line], env={**env, **more}, cwd=tmp_path,
                              capture_output=True, text=True, timeout=30, check=True)
        assert done.stderr == "", done.stderr
        ask.options = calls.read_text().split()
        return [x for x in done.stdout.splitlines() if x]
    ask.env = env
    return ask


def offered(mt, *words):
    """{candidate: what it is} of mt itself."""
    return dict(line.split("\t") if "\t" in line else (line, "") for line in mt("__complete", "--", *words).out.splitlines())


def test_commands_and_options_are_those_of_the_table(mt):
    names = [line.split()[0] for line in mt("help").out.splitlines() if line.startswith("  ") and line[2] != " "]
    assert list(offered(mt, "")) == names and "__complete" not in names
    assert offered(mt, "capsule-com") == {
        "capsule-command-await": "wait for a command; show its outputs",
        "capsule-command-get": "show a command", "capsule-command-list": "list the commands of a run, the oldest first",
        "capsule-command-cancel": "end a command, or take it from the queue"}
    assert list(offered(mt, "stat", "-"))[-4:] == ["--namespace", "--json", "--quiet", "--help"]
    assert list(offered(mt, "ls", "-"))[:2] == ["--long", "--recursive"]
    assert list(offered(mt, "-n", "work", "ls", "--r")) == ["--recursive"]
    assert list(offered(mt, "help", "vfs-d")) == ["vfs-delete"]
    assert list(offered(mt, "completion", "")) == ["bash", "zsh", "fish"]
    assert offered(mt, "whoami", "") == {} == offered(mt, "no-such-command", "") == offered(mt, "capsule-exec", "--", "-")


def test_values_of_options(mt, fake):
    assert list(offered(mt, "capsule-run-list", "--status", "")) == ["Starting", "Running", "Finished", "Error"]
    assert list(offered(mt, "capsule-run-list", "--status=F")) == ["--status=Finished"]
    assert list(offered(mt, "capsule-run-list", "--capsule", "re")) == ["report"]
    fake.namespaces["other"] = {"theirs": {}}
    assert list(offered(mt, "vfs-list", "-n", "")) == ["work", "other"]
    assert list(offered(mt, "vfs-list", "--namespace=o")) == ["--namespace=other"]
    assert list(offered(mt, "vfs-get", "-n", "other", "")) == ["theirs"]
    assert offered(mt, "capsule-start", "report", "--max-duration", "") == {}


def test_names_ids_and_paths(mt, fake):
    vfs(fake, **{"/sub": None, "/sub/a b.txt": b"", "/sub/deep": None, "/su\nx": b"", "/f": b""})
    assert list(offered(mt, "capsule-start", "")) == ["report", "bench"]
    assert list(offered(mt, "vfs-delete", "d")) == ["data"]
    assert offered(mt, "vfs-create", "") == offered(mt, "namespace-create", "") == {}
    mt("capsule-start", "bench")
    run = fake.runs[0]["id"]
    assert offered(mt, "capsule-terminate", "") == {"@last": "the newest that you started",
                                                    run: "bench, Starting, 2026-11-30 04:51:17"}
    assert list(offered(mt, "capsule-terminate", run, run[:6])) == [run]
    assert offered(mt, "capsule-run-get", run, "") == {}
    mt("capsule-exec", run, "echo hi")
    command = fake.commands[0]["id"]
    assert offered(mt, "capsule-command-get", run, "")[command] == "Queued: echo hi"
    assert set(offered(mt, "capsule-command-await", "")) == {"@last", run, command}
    assert list(offered(mt, "cat", "/v")) == ["/vfs/", ":files"]
    assert list(offered(mt, "ls", "/vfs/")) == ["/vfs/data/"]
    assert list(offered(mt, "ls", "/vfs/data@")) == ["/vfs/data@work/"]
    assert sorted(offered(mt, "ls", "/vfs/data/")) == ["/vfs/data/f", "/vfs/data/sub/"]
    assert sorted(offered(mt, "rm", "/vfs/data@work/sub/")) == ["/vfs/data@work/sub/a b.txt", "/vfs/data@work/sub/deep/"]
    assert list(offered(mt, "deploy", "")) == [":files"] and list(offered(mt, "cp", "x", "")) == ["/vfs/", "run:", ":files"]
    fake.runs[0]["status"] = "Running"
    assert list(offered(mt, "cp", "ru")) == ["run:", ":files"]
    assert list(offered(mt, "ls", "run:")) == ["run:@last:/", f"run:{run}:/"]
    assert list(offered(mt, "ls", f"run:{run[:9]}")) == [f"run:{run}:/"]


def test_nothing_is_said_when_the_server_is_away_or_slow(mt, fake):
    fake.on("GET", ".*/capsules", lambda r, m: time.sleep(20))
    began = time.monotonic()
    mt("__complete", "--", "capsule-start", "", code=-14)
    assert time.monotonic() - began < 15
    fake.stop()
    done = mt("__complete", "--", "capsule-start", "")
    assert done.out == done.err == ""


def test_bash(bash, fake, tmp_path):
    vfs(fake, **{"/a b.txt": b"", "/a$(touch x)": b"", "/sub": None})
    assert bash("mt capsule-st") == ["capsule-start"]
    assert bash("mt cp --rec") == ["--recursive"]
    assert bash("mt   -n work   vfs-get  ") == ["data"]
    assert bash("mt capsule-run-list --status=F") == ["Finished"]
    assert bash("mt capsule-run-list --status=") == ["Starting", "Running", "Finished", "Error"]
    assert bash("mt capsule-run-get @l") == ["@last"]
    assert bash("mt ls run:@l") == ["@last:/"]
    assert bash("mt ls /vfs/da") == ["/vfs/data/"] and "nospace" in bash.options
    assert bash("mt ls /vfs/data@wo") == ["@work/"]
    assert bash("mt cat /vfs/data@work/su") == ["@work/sub/"]
    assert sorted(bash("mt cat /vfs/data/a")) == ["/vfs/data/a\\ b.txt", "/vfs/data/a\\$\\(touch\\ x\\)"]
    assert bash("mt cat /vfs/data/a\\ ") == bash("mt cat '/vfs/data/a b") == ["/vfs/data/a\\ b.txt"]
    (tmp_path / "project").mkdir()
    assert bash("mt deploy pro") == ["project"] and "filenames" in bash.options
    assert bash("mt capsule-st", MAITENTO_URL="unix:/nowhere") == ["capsule-start"]
    assert bash("mt capsule-start re", MAITENTO_URL="unix:/nowhere") == []
    assert not (tmp_path / "x").exists()


def test_bash_by_the_key(bash, fake, tmp_path):
    """An interactive bash: the key completes a word that bash itself would cut at "@"."""
    vfs(fake, **{"/sub": None, "/sub/file.txt": b"here\n"})
    (tmp_path / "rc").write_text(f". {tmp_path}/mt.bash; PS1='> '\n")
    master, slave = pty.openpty()
    shell = subprocess.Popen(["bash", "--rcfile", tmp_path / "rc", "-i"], stdin=slave, stdout=slave, stderr=slave,
                             env={**bash.env, "TERM": "dumb"}, cwd=tmp_path, start_new_session=True)
    os.close(slave)
    seen = b""

    def until(what):
        nonlocal seen
        deadline = time.monotonic() + 30
        while what not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 65536)
    try:
        until(b"> ")
        os.write(master, b"mt cat /vfs/data@wo\t")
        until(b"work/")
        os.write(master, b"s\t")
        until(b"sub/")
        os.write(master, b"f\t\n")
        until(b"here")
    finally:
        shell.kill()
        shell.wait()
        os.close(master)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid(mt, tmp_path, shell):
    text = mt("completion", shell).out
    assert "__complete" in text
    assert "not for 'csh'" in mt("completion", "csh", code=2).err
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    (tmp_path / "script").write_text(text)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=20)
