# SPDX-License-Identifier: Apache-2.0
"""Interactions by mt: inputs, the answer alone, attempts, what is shown meanwhile, connections that are cut, ids, lists."""
import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time

import pytest

from fake import Cut
from fake_interactions import Interactions
from paper import MT, on_terminal

ANSWER = '{"done":true,"answer":"Nörth"}'


@pytest.fixture()
def asked(fake):
    return Interactions(fake)


def when_started(asked, *steps):
    """Does the steps, one after another, once there is a run that lives."""
    def watch():
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not (asked.runs and not asked.runs[0]["endReason"]):
            time.sleep(0.01)
        for step in steps:
            step()
    threading.Thread(target=watch, daemon=True).start()


def looked_twice(asked):
    """Waits until mt has seen how things are, and has asked again."""
    deadline, looks = time.monotonic() + 20, len(asked.fake.asked("GET", "/interaction-runs/[^/]+$"))
    while len(asked.fake.asked("GET", "/interaction-runs/[^/]+$")) < looks + 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_answer_is_all_of_stdout(mt, asked):
    when_started(asked, lambda: asked.wrong("{}", "'done' is missing"), lambda: asked.answer(ANSWER))
    done = mt("interaction-run", "next", "--input-question", "a,b=\"c\"", "--input-Transcript=-l")
    assert (done.out, done.err) == (ANSWER + "\n", "")
    assert asked.fake.asked("POST", "/runs$")[-1].json == {"inputs": {"question": "a,b=\"c\"", "Transcript": "-l"}}
    when_started(asked, lambda: asked.answer("two\nlines"))
    assert mt("interaction-run", "next", "--quiet", "--inputs", '{"n": 1}', "--version", "1").out == "two\nlines\n"
    assert asked.fake.asked("POST", "/runs$")[-1].json == {"inputs": {"n": 1}, "version": 1}
    when_started(asked, lambda: asked.answer(ANSWER))
    record = json.loads(mt("interaction-run", "next", "--json").out)
    assert record["output"] == ANSWER and "attempts" not in record
    assert "'A' is given twice" in mt("interaction-run", "next", "--input-a", "1", "--input-A", "2", code=2).err
    assert "no interaction 'nope'" in mt("interaction-run", "nope", code=3).err


def test_no_answer_is_a_sentence_and_exit_1(mt, asked):
    why = "no key for provider 'deepseek': mt provider-set deepseek"
    for words in ([], ["--quiet"]):
        when_started(asked, lambda: asked.fail("noKey", why + "\x1b"))
        done = mt("interaction-run", "next", *words, code=1)
        assert (done.out, done.err) == ("", why + "?\n")
    done = mt("interaction-await", "@last", "--json", code=1)
    assert json.loads(done.out)["endReason"] == "noKey" and done.err == why + "?\n"


def test_attempts_are_shown_apart_from_the_answer(mt, asked):
    when_started(asked, lambda: asked.wrong("{\n}\x1b", "'done' is missing"), lambda: asked.answer(ANSWER))
    done = mt("interaction-run", "next", "--show-attempts")
    assert done.out == ANSWER + "\n"
    assert done.err == ("""attempt 1: wrongAnswer, 2.00 s, flash, 2 requests, tokens 20 in, 5 out
  system     You answer.
  user       Which
             region?
  reasoning  It must be North.
  answer     {
             }?
  fault      'done' is missing
attempt 2: answered, 2.00 s, flash, tokens 20 in, 5 out
  user       Wrong: 'done' is missing
""" + f"  answer     {ANSWER}\n")
    assert mt("interaction-run-get", "@last", "--show-attempts").out.endswith(done.err)
    record = json.loads(mt("interaction-run-get", "@last", "--json", "--show-attempts").out)
    assert [a["outcome"] for a in record["attempts"]] == ["wrongAnswer", "answered"] and len(record["attempts"][1]["messages"]) == 4
    mt("interaction-start", "next")
    assert "attempt 1: under way\n" in mt("interaction-run-get", "@last", "--show-attempts").out


def test_on_a_terminal_one_sees_which_attempt_it_is(environment, asked):
    when_started(asked, lambda: asked.fake.await_asked("GET", "/interactions/next$"), lambda: asked.wrong("x", "no JSON"),
                 lambda: looked_twice(asked), lambda: asked.answer(ANSWER))
    seen, code = on_terminal(environment, "interaction-run", "next", columns=120)
    assert code == 0 and seen.rstrip().endswith(ANSWER.encode())
    for attempt in (1, 2):
        assert f"asking deepseek.deepseek-v4-flash, attempt {attempt} of 3, ".encode() in seen, seen
    assert len(asked.fake.asked("GET", "/interactions/next$")) == 1


def test_on_a_terminal_one_sees_how_much_was_said(environment, asked):
    when_started(asked, lambda: asked.say("Nö"), lambda: looked_twice(asked), lambda: asked.say("rth"), lambda: looked_twice(asked),
                 lambda: asked.answer("Nörth"))
    seen, code = on_terminal(environment, "interaction-run", "next", columns=120)
    assert code == 0 and b"attempt 1 of 3, 2 characters, " in seen and b"attempt 1 of 3, 5 characters, " in seen, seen


# ---- what is said while it is said ----

@contextlib.contextmanager
def streaming(environment, *words, command=("interaction-run", "next")):
    with subprocess.Popen([MT, *command, "--stream", *words], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        try:
            yield p
        finally:
            p.kill()


def read_until(file, wanted, seconds=20):
    """What comes, up to there."""
    seen, deadline = b"", time.monotonic() + seconds
    while not seen.endswith(wanted):
        ready, _, _ = select.select([file], [], [], max(0, deadline - time.monotonic()))
        piece = os.read(file.fileno(), 1000) if ready else b""
        assert piece, seen
        seen += piece
    return seen


def test_an_answer_of_any_text_is_shown_on_stdout_while_it_is_said(environment, asked, mt):
    asked.schema = {}
    when_started(asked, lambda: asked.say("Dear "))
    with streaming(environment) as p:
        assert read_until(p.stdout, b"Dear ") == b"Dear "
        asked.say("Äda,\x1b\n")
        assert read_until(p.stdout, b"\n").decode() == "Äda,\x1b\n"
        asked.answer("Dear Äda,\x1b\nhello\n")  # the last piece is only in the record
        out, err = p.communicate(timeout=30)
    assert (p.returncode, out, err) == (0, b"hello\n\n", b"")
    # The same bytes as without it, also where nothing was seen under way.
    assert mt("interaction-await", "@last", "--stream").out == mt("interaction-await", "@last").out == "Dear Äda,\x1b\nhello\n\n"
    when_started(asked, lambda: asked.answer(""))
    assert mt("interaction-run", "next", "--stream").out == "\n"
    when_started(asked, lambda: asked.say("Dear "), lambda: asked.fail("cut", "cut short", "Dear A"))
    done = mt("interaction-run", "next", "--stream", code=1)
    assert (done.out, done.err) == ("Dear A\n", "cut short\n")


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_what_has_to_fit_is_shown_on_stderr_attempt_by_attempt(environment, asked, words):
    when_started(asked, lambda: asked.say('{"a'))
    with streaming(environment, *words) as p:
        assert read_until(p.stderr, b'{"a') == b'attempt 1\n{"a'
        asked.wrong('{"a": 1}', "'done' is missing")  # its end, and all of the second, are only in records
        asked.wrong("[\x1b]", "it is a list")
        asked.say('{"done"')
        assert read_until(p.stderr, b'{"done"').decode() == (
            "\": 1}\n  fault      'done' is missing\nattempt 2\n[?]\n  fault      it is a list\nattempt 3\n{\"done\"")
        asked.answer('{"done":1}')
        out, err = p.communicate(timeout=30)
    assert (p.returncode, err) == (0, b":1}\n")
    assert json.loads(out)["output"] == '{"done":1}' if words else out == b'{"done":1}\n'


def test_a_beginning_that_does_not_count_is_told(environment, asked):
    asked.schema = {}
    when_started(asked, lambda: asked.say("Dear"))
    with streaming(environment) as p:
        read_until(p.stdout, b"Dear")
        asked.say_anew(asked.runs[0])
        asked.say("Hello")
        assert read_until(p.stdout, b"Hello") == b"\nHello"
        asked.answer("Hello")
        out, err = p.communicate(timeout=30)
    # Who reads it from a file cannot tell: no success.
    assert (p.returncode, out) == (1, b"\n") and err.startswith(b"mt: warning: the answer broke off: the model is asked again\n")
    assert f"mt interaction-await {asked.runs[0]['id']} prints the answer alone".encode() in err


def test_o18_what_is_said_is_shown_on_after_a_restart(environment, asked):
    asked.schema = {}
    when_started(asked, lambda: asked.say("Dear "))
    with streaming(environment) as p:
        read_until(p.stdout, b"Dear ")
        asked.fake.stop()
        asked.say("Ada")
        asked.fake.start()
        assert read_until(p.stdout, b"Ada") == b"Ada"
        asked.answer("Dear Ada")
        out, err = p.communicate(timeout=30)
    assert (p.returncode, out, err) == (0, b"\n", b"")


def test_time_and_interruptions_end_the_showing_alone(environment, asked, mt):
    mt("interaction-start", "next")
    asked.say("abc")
    done = mt("interaction-await", "@last", "--stream", "--timeout", "1s", code=124)
    assert done.out == "" and done.err.startswith("attempt 1\nabc\n") and "is still Running after 1 s" in done.err
    with streaming(environment, command=("interaction-await", "@last")) as p:
        read_until(p.stderr, b"abc")
        p.send_signal(signal.SIGINT)
        err = p.stderr.read()
        p.wait(20)
    assert p.returncode == 130 and b"goes on; mt interaction-await " in err
    asked.cancel(asked.runs[0])
    assert mt("interaction-await", "@last", "--stream", code=1).err.endswith("cancelled by ada\n")


# ---- connections, interruptions ----

def test_a_start_that_is_cut_off_is_never_done_twice(mt, asked):
    state = {"cuts": 3}

    def cut(r, m):
        if state["cuts"]:
            state["cuts"] -= 1
            asked.start(r, "next")  # it was done; the answer is lost
            raise Cut
    asked.fake.on("POST", ".*/interactions/next/runs", cut)
    assert mt("interaction-start", "next").out == asked.runs[0]["id"] + "\n" and len(asked.runs) == 1
    assert len({r.headers["Idempotency-Key"] for r in asked.fake.asked("POST", "/runs$")}) == 1


def test_o18_a_wait_goes_on_after_a_restart(environment, asked):
    fake = asked.fake
    with subprocess.Popen([MT, "interaction-run", "next"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        fake.await_asked("GET", "/v1/interaction-runs/")
        fake.stop()
        asked.answer(ANSWER)
        fake.start()
        out, err = p.communicate(timeout=60)
    assert (p.returncode, out.decode(), err) == (0, ANSWER + "\n", b"")


def test_interrupting_says_that_the_run_goes_on(environment, asked):
    with subprocess.Popen([MT, "interaction-run", "next"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        asked.fake.await_asked("GET", "/v1/interaction-runs/")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
    run = asked.runs[0]["id"]
    assert p.returncode == 130 and (f"interaction run {run} goes on; mt interaction-await {run} waits for it, "
                                    f"mt interaction-cancel {run} stops it") in err
    asked.answer("")


# ---- ids, lists, the rest ----

def test_await_and_cancel(mt, asked):
    run = mt("interaction-start", "next", "--input-question", "x").out.strip()
    assert f"interaction run {run} is still Running after 1 s" in mt("interaction-await", run, "--timeout", "1s", code=124).err
    assert f"interaction run {run}: Error, cancelled" in mt("interaction-cancel", "@last").err
    assert mt("interaction-await", run[-8:], code=1).err == "cancelled by ada\n"
    again = mt("interaction-start", "next").out.strip()
    assert [r["id"] for r in json.loads(mt("interaction-cancel", run, again, "--json").out)] == [run, again]


def test_ids_lists_and_what_is_shown(mt, asked):
    assert "you have started no interaction run yet" in mt("interaction-await", "@last", code=3).err
    assert "no interaction run's id ends in 'ffffff': mt interaction-runs shows them" in mt(
        "interaction-run-get", "ffffff", code=3).err
    for _ in range(3):
        mt("interaction-start", "next", "--input-question", "x")
    asked.answer("a\nb")
    shown = mt("interaction-run-get", asked.runs[0]["id"][-6:]).out
    for line in ("asked       next, version 2", "model       deepseek.deepseek-v4-flash", 'input       question = "x"',
                 "output      a\nb", "attempts    1", "tokens      20 in, 5 out", "cost        0.0001"):
        assert line + "\n" in shown, shown
    lines = mt("interaction-runs", "--limit", "2").out.splitlines()
    assert len(lines) == 2 and lines[0].split()[1:4] == ["next", "Finished", "answered"]
    mt("interaction-runs", "--all", "--interaction", "a b", "--status", "Error", "--mine")
    assert asked.fake.requests[-1].query == {"interaction": "a b", "status": "Error", "mine": "true", "limit": "50"}
    assert mt("interaction-list").out.split()[:2] == ["next", "2"]
    assert "input      required  question\ninput      optional  transcript  What was run so far\n" in mt(
        "interaction-get", "next").out
    assert json.loads(mt("interaction-get", "next", "--json").out)["definition"]["attempts"] == 3


def test_completion(mt, asked):
    def offered(*words):
        return [line.split("\t")[0] for line in mt("__complete", "--", *words).out.splitlines()]
    mt("interaction-start", "next")
    assert offered("interaction-run", "") == ["next"] == offered("interaction-runs", "--interaction", "n")
    assert offered("interaction-start", "next", "--input") == ["--input-question", "--input-transcript", "--inputs"]
    assert offered("interaction-cancel", "") == ["@last", asked.runs[0]["id"]]
