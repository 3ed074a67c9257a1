# SPDX-License-Identifier: Apache-2.0
"""How mt is called: words, options, help."""
import json
import os
import subprocess

import pytest
from paper import MT, vfs


@pytest.mark.parametrize("words, said", [
    (["capsul-start"], "did you mean 'capsule-start'?"),
    (["xyzzy"], "mt help lists them"),
    (["ls", "--recursiv"], "did you mean --recursive?"),
    (["ls", "-z"], "ls has no option -z"),
    (["ls", "-n"], "-n needs a value"),
    (["ls", "--namespace"], "--namespace needs a value"),
    (["ls", "--json=1"], "--json takes no value"),
    (["mv", "/vfs/a/b"], "mv needs FROM TO"),
    (["whoami", "me"], "takes no argument"),
    (["help", "capsule-strat"], "did you mean 'capsule-start'?"),
    (["exec", "@last", "ls"], "did you mean 'capsule-exec'?"),
    (["terminate", "@last"], "did you mean 'capsule-terminate'?"),
    (["create", "x"], "there is no command 'create': mt help lists them"),
    (["help", "logs"], "did you mean 'capsule-logs' or 'app-logs'?"),
    (["start", "report"], "did you mean 'capsule-start', 'app-start' or 'interaction-start'?"),
    (["capsule-exec", "@last", "ls", "-l"], "no option -l: what is for COMMAND goes after --"),
    (["capsule-exec", "@last", "ls", "--all"], "no option --all: what is for COMMAND goes after --"),
    (["cp", "a", "b"], "both local"),
    (["ls", "relative"], "/vfs/NAME[@NAMESPACE]/PATH"),
    (["ls", "/vfs/UPPER/x"], "names no file system"),
    (["cat", "/vfs/data/../x"], "leaves its file system"),
    (["capsule-start", "report", "--max-duration", "0"], "no duration above zero"),
    (["capsule-start", "report", "--env", "X"], "--env is NAME=VALUE"),
    (["capsule-start", "report", "--wait", "--no-wait"], "exclude each other"),
    (["capsule-run-list", "--status", "running"], "--status is Starting, Running, Finished or Error, not 'running': did you mean 'Running'?"),
    (["user-create", "ada", "--role", "root"], "--role is admin or user, not 'root'"),
    (["capsule-run-get", "a/b"], "is no run id"),
    (["deploy", "/nonexistent-folder/x"], "cannot look at the folder"),
])
def test_wrong_calls(mt, fake, words, said):
    done = mt(*words, code=3 if words[0] == "deploy" else 2)
    assert said in done.err
    assert done.out == ""


def commands(mt):
    return [line.split()[0] for line in mt("help").out.splitlines() if line.startswith("  ") and line[2] != " "]


def test_every_command_has_help_with_an_example(mt, fake):
    names = commands(mt)
    assert len(names) > 40
    for name in names:
        text = mt(name, "--help").out
        assert text.startswith(f"mt {name}") and "Example" in text and f"  mt {name}" in text or name == "completion"
        assert mt("help", name).out == text
    assert not fake.requests


def test_options_stand_anywhere_and_after_two_dashes_not(mt, fake):
    vfs(fake)
    for words in (["-n", "work", "vfs-list", "--json"], ["vfs-list", "-nwork", "--json"],
                  ["--json", "vfs-list", "--namespace=work"]):
        assert json.loads(mt(*words).out)[0]["name"] == "data"
    assert "relative" not in mt("rm", "--", "-x", code=2).out
    mt("capsule-start", "report", "--no-wait", "--env", "A=-l,b", "--env=B=", "-e", "C=1")
    assert json.loads(fake.runs[0]["body"]) == {"environment": {"A": "-l,b", "B": "", "C": "1"}}


def test_nothing_reads_stdin_unless_asked(fake, environment, tmp_path):
    read, write = os.pipe()  # never written, never closed: a reader would hang
    for words in (["whoami"], ["vfs-list"], ["capsule-start", "bench"], ["help"]):
        subprocess.run([MT, *words], stdin=read, env=environment, check=True, timeout=30, capture_output=True)
    os.close(read), os.close(write)


def test_output_that_nobody_reads_is_quiet(fake, environment):
    vfs(fake, **{"/big": b"x" * 5_000_000})
    done = subprocess.run(["bash", "-c", f"{MT} cat /vfs/data/big | head -c 10; echo ${{PIPESTATUS[0]}}"],
                          env=environment, capture_output=True, timeout=20, check=True)
    assert done.stdout == b"x" * 10 + b"141\n" and done.stderr == b""
    done = subprocess.run(["bash", "-c", f"{MT} help >/dev/full"], env=environment, capture_output=True, check=False)
    assert done.returncode == 1 and b"cannot be written: No space" in done.stderr


@pytest.mark.parametrize("words", [["capsule-start", ""], ["vfs-get", ""], ["namespace-delete", ""], ["key-delete", ""],
                                   ["user-delete", ""], ["namespace-member-add", ""], ["init", ""]])
def test_an_empty_name_is_a_wrong_call(mt, fake, words):
    assert "empty" in mt(*words, code=2).err
    assert not [r for r in fake.requests if r.method != "GET" or "//" in r.path or r.path.endswith("/")]


def test_values_that_are_not_utf8_are_refused_not_changed(environment, fake):
    for option in ("--env", "--label"):
        done = subprocess.run([MT, "capsule-start", "bench", option, b"A=x\xffy"], env=environment, capture_output=True,
                              check=False, timeout=20)
        assert done.returncode == 2 and b"is not UTF-8" in done.stderr
    assert fake.runs == []


def test_a_duration_that_is_too_long_is_told_so(mt, fake):
    assert "below 9999 hours" in mt("capsule-start", "report", "--max-duration", "99999h", code=2).err
