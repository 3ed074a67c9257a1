"""The acceptance checks of commands, by their numbers, by the HTTP API, mt and the Python client."""
import json
import os
import re
import subprocess
import sys
import time

import pytest

import mtserver
from conftest import Ref

sys.path.insert(0, str(mtserver.ROOT / "sdk" / "python"))
import maitento  # noqa: E402

SANDBOX = {"users": [{"name": "sandbox"}], "maxDuration": "00:05:00"}
# A start that is held up until the test calls its gate.
HELD = "until [ -e /mnt/gate/open ]; do sleep 0.05; done"
GATE = {"vfs": [{"vfs": Ref("gate"), "mountName": "gate"}]}
COPY = {"command": "bash", "arguments": [
    "-c", "rm -rf /tmp/data && cp -r /mnt/data /tmp/data && chmod -R a+rwX /tmp/data"]}


@pytest.fixture(scope="module")
def py(server):
    server.environment()
    with maitento.Maitento(server.url, server.key) as client:
        yield client


@pytest.fixture(scope="module")
def bench(api, py):
    """A run that stays up, shared: tests leave it as they found it."""
    ns = api.namespace("commands")
    api.capsule(ns, [], name="bench", **{**SANDBOX, "maxDuration": "00:30:00"})
    run = py.capsules.start("bench", ns)
    yield run
    py.capsule_runs.terminate(run)


@pytest.fixture()
def fresh(api, ns, py):
    """start(startup, **properties): a run of a capsule of its own."""
    started = []

    def start(startup=(), **properties):
        api.capsule(ns, list(startup), **{**SANDBOX, **properties})
        started.append(py.capsules.start("c", ns))
        return started[-1]
    yield start
    for run in started:
        py.capsule_runs.terminate(run)


@pytest.fixture()
def data_run(api, ns, py):
    """The tutorial's workbench with its three files (with LF ends)."""
    py.vfs.create("sales-data", ns)
    files = py.vfs.open("sales-data", ns)
    for name, size in (("report.md", 171), ("sales.csv", 387), ("summarise.py", 895)):
        files.write(f"/{name}", b"x" * size)
    api.capsule(ns, [COPY], vfs=[{"vfs": Ref("sales-data"), "mountName": "data"}], **SANDBOX)
    run = py.capsules.start("c", ns)
    yield run
    py.capsule_runs.terminate(run)


def sh(py, run, line, **options):
    return py.capsule_runs.exec_and_wait(run, "sh", ["-c", line], **options)


@pytest.fixture()
def gate(ns, py):
    py.vfs.create("gate", ns)
    return lambda: py.vfs.open("gate", ns).write("/open", b"")


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


# ---- checks of the foundation, through the client and by commands ----

def test_010_text_through_the_client(ns, py):
    py.vfs.create("texts", ns)
    files = py.vfs.open("texts", ns)
    for path, text in (("/a.txt", "eins\nzwei\r\n"), ("/deep/er/é.txt", "größer 😀\n"), ("/empty", "")):
        files.write_text(path, text)
        assert files.read_text(path) == text


def test_028_commands_run_as_the_user_who_is_named(py, bench):
    assert [sh(py, bench, "id -un; id -gn; echo $HOME", run_as_user=user).output_standard
            for user in (None, "sandbox", "root")] == [
        "maitento\nmaitento\n/home/maitento\n", "sandbox\nsandbox\n/home/sandbox\n", "root\nroot\n/root\n"]


def test_032_users_have_a_bash_login_shell(py, bench):
    done = py.capsule_runs.exec_and_wait(bench, "getent passwd sandbox; shopt -q login_shell; echo $? $0", run_as_user="sandbox")
    assert done.output_standard.endswith(":/home/sandbox:/bin/bash\n0 -bash\n"), done.raw


def test_037_a_command_that_runs_at_that_moment_is_stopped(api, ns, py):
    py.vfs.create("late", ns)
    api.capsule(ns, [], maxDuration="00:05:00", vfs=[{"vfs": Ref("late"), "mountName": "work"}])
    run = py.capsules.start("c", ns)
    sent = [py.capsule_runs.exec(run, "touch /mnt/work/began; (setsid sleep 6; touch /mnt/work/late) & sleep 6; touch /mnt/work/late"),
            py.capsule_runs.exec(run, "touch /mnt/work/queued")]
    until(lambda: [f.name for f in py.vfs.open("late", ns).list()] == ["began"])
    api.shorten(run.id)
    ended = py.capsule_runs.wait(run)
    assert (ended.status, ended.end_reason) == ("Finished", "timeout")
    for command in sent:
        found = py.capsule_runs.get_command(run, command)
        assert (found.status, found.end_reason) == ("Aborted", "runEnded") and "out of time" in found.failure_details
    api.capsule(ns, [{"command": "sleep 6; ls /mnt/work > /mnt/work/found"}], name="look", autoTerminate=True,
                vfs=[{"vfs": Ref("late"), "mountName": "work"}])
    assert py.capsules.run("look", ns).status == "Finished"
    assert py.vfs.open("late", ns).read_text("/found").split() == ["began", "found"]


def test_067_sqlite3_is_a_module_and_no_program(py, bench):
    assert sh(py, bench, "command -v sqlite3").exit_code in (1, 127)
    done = py.capsule_runs.exec_and_wait(bench, "python3", ["-c", "import sqlite3; print(sqlite3.connect(':memory:').execute('select 6 * 7').fetchone())"])
    assert done.output_standard == "(42,)\n"


# ---- order ----

def test_039_a_start_returns_before_ready_and_takes_commands_at_once(py, fresh, gate):
    run = fresh([{"command": HELD}], **GATE)
    assert run.status == "Starting"
    command = py.capsule_runs.exec(run, "echo now")
    assert command.status == "Queued"
    gate()
    assert py.capsule_runs.wait_command(run, command).output_standard == "now\n"


def test_040_commands_sent_while_starting_run_in_order_once_ready(py, fresh, gate):
    run = fresh([{"command": HELD + "; echo start > /tmp/log; chmod 666 /tmp/log"}], **GATE)
    sent = [py.capsule_runs.exec(run, f"echo {i} >> /tmp/log") for i in range(5)]
    gate()
    py.capsule_runs.wait_command(run, sent[-1])
    assert sh(py, run, "cat /tmp/log").output_standard == "start\n0\n1\n2\n3\n4\n"


def test_041_one_at_a_time_in_order(py, bench):
    runs = py.capsule_runs
    sent = [runs.exec(bench, "mkdir /tmp/busy && echo -n '' && sleep 0.05 && rmdir /tmp/busy") for _ in range(10)]
    ended = [runs.wait_command(bench, c) for c in sent]
    assert [c.exit_code for c in ended] == [0] * 10, [c.output_error for c in ended]
    for before, after in zip(ended, ended[1:]):
        assert before.date_ended <= after.date_started
    listed = [c.id for c in runs.list_commands(bench)]
    assert [i for i in listed if i in {c.id for c in sent}] == [c.id for c in sent]


def test_042_async_lets_the_capsule_go_on(py, bench):
    runs = py.capsule_runs
    slow = runs.exec(bench, "while [ ! -e /tmp/go ]; do sleep 0.1; done; echo slow", run_async=True)
    assert runs.exec_and_wait(bench, "echo quick; rm -f /tmp/go").output_standard == "quick\n"
    until(lambda: runs.get_command(bench, slow).status == "Running")
    runs.exec(bench, "touch /tmp/go")
    assert runs.wait_command(bench, slow).output_standard == "slow\n"


def test_043_exec_only_sends(py, bench):
    command = py.capsule_runs.exec(bench, "sleep 1; echo done")
    assert command.status in ("Queued", "Running")
    deadline = time.monotonic() + 60
    while not (found := py.capsule_runs.get_command(bench, command.id)).has_ended and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (found.status, found.output_standard, found.exit_code) == ("Finished", "done\n", 0)


def test_044_exec_and_wait_gives_code_and_outputs(py, bench):
    done = sh(py, bench, "echo out; echo err >&2; exit 3")
    assert (done.exit_code, done.output_standard, done.output_error) == (3, "out\n", "err\n")
    assert (done.status, done.end_reason, done.failure_details) == ("Error", "exited", "")


# ---- the tutorial's two commands ----

LISTING = re.compile(
    r"total 12\n"
    r"-rw-rw-rw- 1 maitento maitento 171 \w{3} [ \d]\d \d\d:\d\d report\.md\n"
    r"-rw-rw-rw- 1 maitento maitento 387 \w{3} [ \d]\d \d\d:\d\d sales\.csv\n"
    r"-rw-rw-rw- 1 maitento maitento 895 \w{3} [ \d]\d \d\d:\d\d summarise\.py\n")


def test_045_the_copied_files_are_listed_for_the_sandbox_user(py, data_run):
    listing = py.capsule_runs.exec_and_wait(data_run.id, "ls", ["-l", "/tmp/data"], run_as_user="sandbox")
    assert listing.exit_code == 0, listing.raw
    assert LISTING.fullmatch(listing.output_standard), listing.output_standard


def test_046_the_mounted_files_are_not_for_the_sandbox_user(py, data_run):
    denied = py.capsule_runs.exec_and_wait(data_run.id, "cat", ["/mnt/data/sales.csv"], run_as_user="sandbox")
    assert (denied.exit_code, denied.output_standard) == (1, "")
    assert denied.output_error == "cat: /mnt/data/sales.csv: Permission denied\n"


def test_047_a_command_that_fails_is_a_result(py, data_run):
    denied = py.capsule_runs.exec_and_wait(data_run.id, "cat", ["/mnt/data/sales.csv"], run_as_user="sandbox")
    assert denied.status == "Error"
    assert py.capsule_runs.get(data_run).status == "Running"
    assert py.capsule_runs.exec_and_wait(data_run, "true").status == "Finished"


# ---- the command line ----

WORDS = ["hello   world", "$HOME", "`id`", "a'b\"c", "", "*", "-n", "\\", "é€😀", "l1\nl2"]


@pytest.mark.parametrize("user", [None, "sandbox"])
def test_048_one_entry_is_one_word_byte_for_byte(py, bench, user):
    done = py.capsule_runs.exec_and_wait(bench, "printf '[%s]\\n'", WORDS, run_as_user=user)
    assert done.output_standard == "".join(f"[{w}]\n" for w in WORDS)


def test_049_the_command_is_shell_text(py, bench):
    runs = py.capsule_runs
    assert runs.exec_and_wait(bench, 'echo "a  b" | tr a-z A-Z; echo x >&2 && false').raw.items() >= {
        "exitCode": 1, "outputStandard": "A  B\n", "outputError": "x\n"}.items()
    assert runs.exec_and_wait(bench, "cd /tmp && echo hi > 049 && cat < 049").output_standard == "hi\n"


def test_050_sh_with_a_line_works_too(py, bench):
    assert sh(py, bench, "echo $((6*7)); pwd").output_standard == "42\n/home/maitento\n"
    assert sh(py, bench, "pwd; id -un", run_as_user="sandbox").output_standard == "/home/sandbox\nsandbox\n"


@pytest.mark.parametrize("user", [None, "sandbox"])
def test_051_an_unknown_program(py, bench, user):
    done = py.capsule_runs.exec_and_wait(bench, "sqlite3", ["-version"], run_as_user=user)
    assert (done.exit_code, done.output_error) == (127, "-bash: line 1: sqlite3: command not found\n")
    done = py.capsule_runs.exec_and_wait(bench, "sqlite3 x.db .tables", run_as_user=user)
    assert (done.exit_code, done.output_error) == (127, "-bash: line 1: sqlite3: command not found\n")


# ---- outputs ----

def test_052_streams_are_apart_and_the_last_newline_stays(py, bench):
    done = sh(py, bench, "printf 'a\\n\\n'; printf b >&2")
    assert (done.output_standard, done.output_error) == ("a\n\n", "b")


def test_053_the_last_65536_characters_are_kept(py, bench):
    done = py.capsule_runs.exec_and_wait(bench, "python3", ["-c", "print(''.join(chr(97 + i % 26) for i in range(100000)), end='')"])
    assert done.output_standard == "".join(chr(97 + i % 26) for i in range(100000))[-65536:]
    done = py.capsule_runs.exec_and_wait(bench, "python3 -c 'print(\"€\" * 70000, end=\"\")' >&2")
    assert done.output_error == "€" * 65536


def test_054_full_lengths_only_where_there_was_more(py, bench):
    exact = sh(py, bench, "head -c 65536 /dev/zero | tr '\\0' x")
    assert "outputStandardFullLength" not in exact.raw and len(exact.output_standard) == 65536
    more = sh(py, bench, "head -c 65537 /dev/zero | tr '\\0' x; echo e >&2")
    assert more.output_standard_full_length == 65537 and "outputErrorFullLength" not in more.raw
    many = py.capsule_runs.exec_and_wait(bench, "python3 -c 'print(\"😀\" * 70000, end=\"\")' >&2")
    assert many.output_error_full_length == 70000 and many.output_error == "😀" * 65536


def test_055_056_a_result_is_back_moments_after_the_end(py, bench):
    sh(py, bench, "true")
    times = []
    for _ in range(10):
        began = time.monotonic()
        sh(py, bench, "sleep 0.3")
        times.append(time.monotonic() - began - 0.3)
    assert sorted(times)[5] < 0.5, times


# ---- runs that end first ----

def aborted(py, run, action, line="sleep 60"):
    """What exec_and_wait raises when the run ends, and the queued one after it."""
    runs = py.capsule_runs
    first = runs.exec(run, line)
    queued = runs.exec(run, "echo never")
    action()
    found = []
    for command in (first, queued):
        with pytest.raises(maitento.CapsuleCommandAbortedError) as error:
            runs.wait_command(run, command)
        assert error.value.command.status == "Aborted" and error.value.command.end_reason == "runEnded"
        assert error.value.run.has_ended and error.value.reason in str(error.value)
        found.append(error.value)
    assert found[1].command.date_started is None
    return found


def test_057_aborted_when_the_run_is_stopped(py, fresh):
    run = fresh()
    py.capsule_runs.wait(run, "ready")
    for error in aborted(py, run, lambda: py.capsule_runs.terminate(run)):
        assert error.reason == "the run was stopped by admin" and error.run.failure_details == "stopped by admin"
    with pytest.raises(maitento.CapsuleCommandAbortedError) as late:
        py.capsule_runs.exec_and_wait(run, "true")
    assert "stopped by admin" in late.value.reason and late.value.command is None


def test_057_aborted_when_the_run_is_out_of_time(api, py, fresh):
    run = fresh()
    py.capsule_runs.wait(run, "ready")
    limits = []
    for error in aborted(py, run, lambda: limits.append(api.shorten(run.id))):
        assert error.reason == f"the run ran out of time: maxDuration {limits[0]}"
        assert error.run.failure_details == f"out of time: maxDuration {limits[0]}"


def test_057_aborted_when_the_start_fails(py, fresh, gate):
    run = fresh([{"command": HELD + "; echo oh >&2; exit 3"}], **GATE)
    for error in aborted(py, run, gate):
        assert error.reason.startswith("the run failed to start: Startup command failed: ")
        assert "oh" in error.run.failure_details


def test_020a_commands_queued_on_an_auto_terminate_capsule(py, fresh, gate):
    run = fresh([{"command": HELD}], autoTerminate=True, **GATE)
    for error in aborted(py, run, gate):
        assert error.reason == "the run finished" and error.run.status == "Finished"


def test_058_terminate_stops_and_later_commands_are_refused(py, api, fresh):
    run = fresh()
    sh(py, run, "true")
    py.capsule_runs.terminate(run)
    py.capsule_runs.wait(run)
    with pytest.raises(maitento.MaitentoError) as error:
        py.capsule_runs.exec(run, "true")
    assert (error.value.status, error.value.code) == (409, "runEnded") and "stopped by admin" in str(error.value)
    assert api.error("POST", f"/v1/capsule-runs/{run.id}/commands", {"command": "true"})[:2] == (409, "runEnded")


def test_058a_everything_stays_readable(py, fresh):
    run = fresh()
    done = sh(py, run, "echo kept; echo too >&2; exit 2")
    py.capsule_runs.terminate(run)
    py.capsule_runs.wait(run)
    assert py.capsule_runs.get_command(run, done) == done
    assert [c.id for c in py.capsule_runs.list_commands(run)] == [done.id]
    assert b"".join(py.capsule_runs.output(run, done)) == b"kept\n"
    assert b"".join(py.capsule_runs.output(run, done, stream="error", start=1)) == b"oo\n"


# ---- the command line ----

def test_059_the_tutorials_lines(mt, data_run):
    run = data_run.id
    command = mt("capsule-exec", run, "ls", "--args", "-l,/tmp/data", "--user", "sandbox", check=0).stdout.strip()
    done = mt("capsule-command-await", run, command, check=0)
    assert LISTING.fullmatch(done.stdout) and done.stderr == "exit code 0\n"
    command = mt("capsule-exec", run, "cat", "--args", "/mnt/data/sales.csv", "--user", "sandbox").stdout.strip()
    done = mt("capsule-command-await", run, command, check=1)
    assert done.stdout == "" and done.stderr == (
        "cat: /mnt/data/sales.csv: Permission denied\nexit code 1\n")


def test_059_wait_is_as_if_it_had_run_here(mt, bench):
    done = mt("capsule-exec", bench.id, "--wait", "echo out; echo err >&2; exit 3", check=3)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert mt("capsule-exec", bench.id, "-w", "-u", "sandbox", "--", "printf", "%s.", "a b", "-x", "").stdout == "a b.-x.."
    assert mt("capsule-exec", bench.id, "-w", "cat; echo $X; pwd", "--stdin", "-e", "X=1", "--dir", "/tmp",
              stdin="zwei\n").stdout == "zwei\n1\n/tmp\n"
    assert "exit code 0" in mt("capsule-command-await", bench.id, "@last", check=0).stderr
    record = json.loads(mt("capsule-command-get", bench.id, "@last", "--json", check=0).stdout)
    assert (record["workingDirectory"], record["environment"]) == ("/tmp", {"X": "1"})
    assert record["id"] in mt("capsule-command-list", bench.id, check=0).stdout


def test_059_output_comes_while_it_runs(server, bench, py):
    with subprocess.Popen([mtserver.program("mt"), "capsule-exec", bench.id, "-w",
                           "echo first; echo oh >&2; until [ -e /tmp/last ]; do sleep 0.05; done; echo last"],
                          env={**os.environ, **server.environment()}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        try:
            assert p.stdout.readline() == b"first\n" and p.stderr.readline() == b"oh\n"
            until(lambda: py.capsule_runs.list_commands(bench)[-1].status == "Running")
        finally:
            py.capsule_runs.files(bench).write_text("/tmp/last", "")
        out, err = p.communicate(timeout=30)
    assert (p.returncode, out, err) == (0, b"last\n", b"")


def test_059_time_outs_cancel_and_ends(mt, fresh, py):
    run = fresh()
    done = mt("capsule-exec", run.id, "-w", "--timeout", "1s", "sleep 30", check=124)
    assert done.stderr == "mt: out of time after 1 s\n"
    command = mt("capsule-exec", run.id, "sleep 60", check=0).stdout.strip()
    mt("capsule-command-cancel", command, check=0)
    done = mt("capsule-command-await", command)
    assert done.returncode in (137, 143), done
    assert json.loads(mt("capsule-command-get", command, "--json").stdout)["endReason"] == "terminated"
    command = mt("capsule-exec", run.id, "sleep 60", check=0).stdout.strip()
    mt("capsule-terminate", run.id, check=0)
    done = mt("capsule-command-await", run.id, command, check=125)
    assert "aborted: the run was stopped by admin" in done.stderr
    assert "stopped by admin" in mt("capsule-exec", run.id, "true", check=5).stderr


def test_extend_gives_a_longer_life(mt, py, fresh):
    run = fresh(maxDuration="00:00:04")
    assert "00:05:00" in mt("capsule-extend", run.id, "5m", check=0).stderr
    assert sh(py, run, "sleep 5; echo alive").output_standard == "alive\n"
    assert py.capsule_runs.get(run).max_duration == "00:05:00"
    py.capsule_runs.terminate(run)
    py.capsule_runs.wait(run)
    with pytest.raises(maitento.MaitentoError) as error:
        py.capsule_runs.extend(run, "00:10:00")
    assert error.value.code == "runEnded"


# ---- the tutorial's scripts ----

def script(server, tutorial, name, ns):
    environment = {**os.environ, **server.environment(), "MAITENTO_NAMESPACE": ns,
                   "PYTHONPATH": str(mtserver.ROOT / "sdk" / "python")}
    done = subprocess.run([sys.executable, name], cwd=tutorial / "python", env=environment, capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tutorials_python_scripts_run_unchanged(server, tutorial):
    ns = f"tutorials-{os.getpid()}"
    for _ in range(2):  # create-if-missing works twice
        text = script(server, tutorial, "sandbox.py", ns)
        assert text.startswith("Capsule finished: Finished\n\n# Sales report\n")
        assert "| Desk lamp | 10 | 599.00 |\n| Tea sampler | 43 | 516.00 |\n| Blue mug | 44 | 374.00 |" in text
    text = script(server, tutorial, "commands.py", ns)
    assert re.fullmatch(r"exit code 0\n" + LISTING.pattern + r"\nexit code 1\ncat: /mnt/data/sales\.csv: "
                        r"Permission denied\n\n", text), text
