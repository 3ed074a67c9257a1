# SPDX-License-Identifier: Apache-2.0
"""Commands: what becomes of them, and how that is told."""
import datetime
import threading
import time

import pytest
from maitento import CapsuleCommandAbortedError, MaitentoError

WORDS = ["a b", "$HOME", "$(id)", "x'y", '"', "", "l1\nl2", "*", "\\", ";", "~", "!x", "é", "a,b", "-n"]


def test_044_046_047_a_command_that_fails_is_a_result(world, run):
    runs = world.mt.capsule_runs
    done = runs.exec_and_wait(run.id, "sh", ["-c", "echo out; echo err >&2; exit 3"], run_as_user="sandbox")
    assert (done.exit_code, done.output_standard, done.output_error) == (3, "out\n", "err\n")
    assert (done.status, done.end_reason, done.run_as_user) == ("Error", "exited", "sandbox")
    assert runs.get_command(run, done) == done and runs.find_command(done.id).run_id == run.id
    assert runs.find_command("0" * 8 + "-0000-7000-8000-" + "0" * 12) is None
    assert runs.get(run).status == "Running"


@pytest.mark.parametrize("user", [None, "sandbox"])
def test_o12_arguments_arrive_byte_for_byte(world, run, user):
    done = world.mt.capsule_runs.exec_and_wait(run, "printf", ["[%s]\\n", *WORDS], run_as_user=user)
    assert done.output_standard == "".join(f"[{word}]\n" for word in WORDS) and done.exit_code == 0
    line = world.mt.capsule_runs.exec_and_wait(run, 'echo "a  b" | tr a-z A-Z; false', run_as_user=user)
    assert (line.output_standard, line.exit_code) == ("A  B\n", 1)


@pytest.mark.parametrize("signal, code", [(9, 137), (15, 143), (11, 139), (6, 134)])
def test_o08_signals_are_told_from_exits(world, run, signal, code):
    runs = world.mt.capsule_runs
    for command, arguments in (("sh", ["-c", f"kill -{signal} $$"]), (f"kill -{signal} $$", None)):
        done = runs.exec_and_wait(run, command, arguments)
        assert (done.exit_code, done.status, done.end_reason, done.signal) == (code, "Error", "signaled", signal)
        assert done.output_error == ""
    plain = runs.exec_and_wait(run, "sh", ["-c", f"exit {code}"])
    assert (plain.exit_code, plain.end_reason, plain.signal) == (code, "exited", None)


def test_o09_out_of_time_is_told_from_every_exit_code(world, run):
    runs = world.mt.capsule_runs
    late = runs.exec_and_wait(run, "sleep", ["30"], max_duration=datetime.timedelta(seconds=1))
    assert (late.status, late.end_reason, late.limit_ms, late.exit_code) == ("Error", "timeout", 1000, 143)
    plain = runs.exec_and_wait(run, "exit 124")
    assert (plain.exit_code, plain.end_reason, plain.limit_ms) == (124, "exited", None)
    with pytest.raises(MaitentoError) as error:
        runs.exec(run, "true", max_duration="00:00:00")
    assert error.value.field == "maxDuration"
    for wrong in (datetime.timedelta(0), datetime.timedelta(seconds=-1)):
        with pytest.raises(ValueError):
            runs.exec(run, "true", max_duration=wrong)


def test_051_an_unknown_program(world, run):
    done = world.mt.capsule_runs.exec_and_wait(run, "sqlite4", run_as_user="sandbox")
    assert (done.exit_code, done.output_error) == (127, "-bash: line 1: sqlite4: command not found\n")


@pytest.mark.parametrize("lead", range(4))
def test_o05_no_character_is_split(world, run, lead):
    code = f"import sys; sys.stdout.write('a' * {lead} + '€' * 20000)"
    wanted, runs, heard = "a" * lead + "€" * 20_000, world.mt.capsule_runs, []
    done = runs.exec_and_wait(run, "python3", ["-c", code], on_output=heard.append)
    assert done.output_standard == wanted and done.output_standard_full_length is None
    assert "".join(chunk.text for chunk in heard) == wanted and {chunk.stream for chunk in heard} == {"standard"}
    assert b"".join(chunk.data for chunk in heard) == wanted.encode()
    assert [chunk.offset for chunk in heard] == [sum(len(c.data) for c in heard[:n]) for n in range(len(heard))]
    assert "".join(runs.output_text(run, done)) == wanted


def test_o05_more_than_is_kept_says_so(world, run):
    runs = world.mt.capsule_runs
    for count, full in ((65536, None), (65537, 65537)):
        done = runs.exec_and_wait(run, "python3", ["-c", f"print('😀' * {count}, end='')"])
        assert done.output_standard == "😀" * 65536 and done.output_standard_full_length == full


def test_o04_output_that_is_no_text(world, run):
    done = world.mt.capsule_runs.exec_and_wait(run, "printf", ["\\377\\376abc\\n"])
    assert (done.exit_code, done.output_standard) == (0, "\ufffd\ufffdabc\n")
    assert b"".join(world.mt.capsule_runs.output(run, done)) == b"\xff\xfeabc\n"


def test_output_comes_while_it_is_printed(world, run):
    runs, heard, began = world.mt.capsule_runs, [], time.monotonic()
    line = "for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.3; done"
    done = runs.exec_and_wait(run, line, on_output=lambda c: heard.append((time.monotonic(), c.stream, c.text)))
    assert done.exit_code == 0 and heard[0][0] - began < time.monotonic() - began - 0.5
    assert "".join(t for _, s, t in heard if s == "error") == "e1\ne2\ne3\n"
    again = list(runs.follow_output(run, done))
    assert "".join(c.text for c in again if c.stream == "standard") == "1\n2\n3\n"
    assert b"".join(runs.output(run, done, start=2)) == b"2\n3\n"


def test_what_a_callback_raises_ends_the_wait_and_not_the_command(world, run):
    class Enough(Exception):
        pass

    def stop(_):
        raise Enough

    with pytest.raises(Enough):
        world.mt.capsule_runs.exec_and_wait(run, "echo x; sleep 1; echo done", on_output=stop)
    last = world.mt.capsule_runs.list_commands(run)[-1]
    assert world.mt.capsule_runs.wait_command(run, last).output_standard == "x\ndone\n"


def test_040_041_042_commands_run_in_order_and_beside(world):
    runs = world.mt.capsule_runs
    run = world.mt.capsules.start(world.capsule())  # not ready yet
    first = runs.exec(run, "sleep 0.3; echo one >> /tmp/order")
    beside = runs.exec(run, "sleep 5", run_async=True)
    second = runs.exec(run, "cat /tmp/order")
    assert runs.wait_command(run, second).output_standard == "one\n"
    assert runs.get_command(run, first).exit_code == 0
    assert runs.cancel_command(run, beside).id == beside.id
    assert runs.wait_command(run, beside).end_reason == "terminated"
    assert [c.id for c in runs.list_commands(run)] == [first.id, beside.id, second.id]


def test_what_a_command_is_given(world, run):
    done = world.mt.capsule_runs.exec_and_wait(
        run, "pwd; echo $WORD; cat", working_directory="/tmp", environment={"WORD": "a  b"}, stdin="in\n"
    )
    assert done.output_standard == "/tmp\na b\nin\n"


def test_a_key_sends_a_command_once(world, run):
    runs = world.mt.capsule_runs
    sent = [runs.exec(run, "echo x >> /tmp/once", idempotency_key=f"one {run.id}") for _ in range(3)]
    assert len({c.id for c in sent}) == 1
    assert runs.exec_and_wait(run, "cat /tmp/once").output_standard == "x\n"
    with pytest.raises(MaitentoError) as error:
        runs.exec(run, "other", idempotency_key=f"one {run.id}")
    assert error.value.code == "idempotencyKeyReused"


@pytest.mark.parametrize("with_events", [False, True])
def test_057_a_run_that_ends_first_aborts(world, with_events):
    runs, run, found = world.mt.capsule_runs, world.start(), []

    def wait():
        try:
            runs.exec_and_wait(run, "sleep", ["60"])
        except CapsuleCommandAbortedError as error:
            found.append(error)

    events = world.mt.events.open()
    if with_events:
        events.start()
    thread = threading.Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + 20
    while not any(c.status == "Running" for c in runs.list_commands(run)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    queued = runs.exec(run, "true")
    runs.terminate(run)
    thread.join(30)
    events.close()
    error = found[0]
    assert "stopped by" in error.reason and error.reason in str(error) and error.code == "runEnded"
    assert error.command.status == "Aborted" and error.command.arguments == ["60"]
    assert error.run.status == "Finished" and error.run.end_reason == "terminated"
    with pytest.raises(CapsuleCommandAbortedError):
        runs.wait_command(run, queued)
    assert runs.wait_command(run, queued, raise_if_aborted=False).status == "Aborted"
    with pytest.raises(CapsuleCommandAbortedError) as late:
        runs.exec_and_wait(run, "true")
    assert late.value.command is None and late.value.run.id == run.id
    with pytest.raises(MaitentoError) as sent:
        runs.exec(run, "true")
    assert sent.value.code == "runEnded" and not isinstance(sent.value, CapsuleCommandAbortedError)


def test_057_a_start_that_fails_aborts_with_its_reason(world):
    name = world.capsule(
        'startup = [{ command = "sh" arguments = ["-c", "sleep 0.5; echo why >&2; exit 4"] }]\n', "bad"
    )
    run = world.mt.capsules.start(name)
    with pytest.raises(CapsuleCommandAbortedError) as error:
        world.mt.capsule_runs.exec_and_wait(run, "true")
    assert error.value.run.status == "Error" and error.value.run.failure_details.endswith("why")


def test_a_wait_has_a_time_out(world, run):
    sent, began = world.mt.capsule_runs.exec(run, "sleep", ["20"]), time.monotonic()
    assert world.mt.capsule_runs.wait_command(run, sent, timeout=1).status == "Running"
    assert world.mt.capsule_runs.wait(run, timeout=1).status == "Running"
    assert 1.9 < time.monotonic() - began < 10


def test_many_waits_on_one_stream(world, run):
    """Of one client, over a bounded number of connections."""
    runs, codes = world.mt.capsule_runs, []
    with world.mt.events.open():
        threads = [
            threading.Thread(target=lambda n=n: codes.append(runs.exec_and_wait(run, f"exit {n % 7}").exit_code))
            for n in range(200)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert sorted(codes) == sorted(n % 7 for n in range(200))
