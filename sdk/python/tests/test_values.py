# SPDX-License-Identifier: Apache-2.0
"""What is sent and what is made of answers: paths, durations, bodies, records, pauses."""
import datetime
import json
import time

import pytest
from maitento import AppRun, CapsuleRun, Command, MaitentoError, VfsItem, _records, _wire
from maitento._ended import LatelyEnded
from maitento._records import duration, snake


@pytest.mark.parametrize(
    "value, text",
    [
        (datetime.timedelta(seconds=1), "00:00:01"),
        (datetime.timedelta(hours=1, minutes=2, seconds=3), "01:02:03"),
        (datetime.timedelta(hours=25), "1.01:00:00"),
        ("90", "90"),
        (None, None),
    ],
)
def test_durations(value, text):
    assert duration(value) == text


@pytest.mark.parametrize(
    "value", [datetime.timedelta(0), datetime.timedelta(seconds=-1), datetime.timedelta(seconds=1.5), 5, 2.5]
)
def test_durations_that_are_none(value):
    with pytest.raises((TypeError, ValueError)):
        duration(value)


@pytest.mark.parametrize(
    "path, raw",
    [
        ("/a b", "/a%20b"),
        ("/naïve-日本.txt", "/na%C3%AFve-%E6%97%A5%E6%9C%AC.txt"),
        ("/p%41", "/p%2541"),
        ("/q?x=1&y#z", "/q%3Fx%3D1%26y%23z"),
        ("/plus+", "/plus%2B"),
        ("/b\\b", "/b%5Cb"),
        ('/q"q\n', "/q%22q%0A"),
        (b"/\xff\xfe", "/%FF%FE"),
        ("/\udcff", "/%FF"),
        (VfsItem({"path": "/%FFa%25", "nameEscaped": True}), "/%FFa%25"),
        (VfsItem({"path": "/%41", "nameEscaped": False}), "/%2541"),
    ],
)
def test_paths_in_queries(path, raw):
    assert _wire.path_of("vfs", "x", "files", path=_wire.raw_path(path)) == f"/v1/vfs/x/files?path={raw}"


def test_names_in_paths_and_queries():
    assert _wire.path_of("namespaces", "a/b", "..", force=True, x=None) == "/v1/namespaces/a%2Fb/..?force=true"
    assert _wire.path_of("x", a=1, b=False) == "/v1/x?a=1&b=false"


def test_paths_in_bodies_are_escaped_only_where_they_must_be():
    assert _wire.json_paths(from_="/a%", to=b"/b") == {"from": "/a%", "to": "/b"}
    assert _wire.json_paths(from_="/a%é", to=b"/\xff") == {"from": "/a%25é", "to": "/%FF", "nameEscaped": True}


def test_commands_are_sent_as_they_are_given():
    body = _wire.command_body("x", ["a b", "", "$HOME"], None, datetime.timedelta(minutes=1), True, None, {}, "")
    assert body == {
        "command": "x",
        "arguments": ["a b", "", "$HOME"],
        "maxDuration": "00:01:00",
        "async": True,
        "stdin": "",
    }
    for wrong in ("-l", b"-l"):
        with pytest.raises(TypeError):
            _wire.command_body("ls", wrong, None, None, False, None, None, None)


def test_ids_are_texts_or_of_records():
    assert _wire.id_of("x") == "x" and _wire.id_of(CapsuleRun({"id": "y"})) == "y"
    for wrong in ("", None, 5, CapsuleRun({})):
        with pytest.raises(TypeError):
            _wire.id_of(wrong)


def test_records_have_known_members_absent_ones_and_those_of_newer_servers():
    command = Command({"id": "c", "exitCode": 3, "async": True, "newThing": {"a": 1}, "hasEnded": 5, "raw": 6})
    assert (command.exit_code, command.run_async, command.limit_ms, command.new_thing) == (3, True, None, {"a": 1})
    assert command["newThing"] == {"a": 1} and command.raw["hasEnded"] == 5 and command.has_ended is False
    assert command == Command(dict(command.raw)) and command != Command({}) and command != CapsuleRun(command.raw)
    run = CapsuleRun({"limits": {"cpus": 1.5, "gpus": 2}, "phases": [{"name": "mount", "us": 5}], "story": None})
    assert run.limits.cpus == 1.5 and run.limits.gpus == 2 and run.phases[0].us == 5 and run.story is None
    lines = AppRun({"consoleOutputs": [{"number": 1, "text": "a\n", "date": "d"}]}).console_outputs
    assert lines[0].text == "a\n" and AppRun({}).console_outputs == []


def test_every_record_can_be_read_with_nothing_in_it():
    for kind in _records.SCHEMAS.values():
        assert all(hasattr(kind({}), name) for name in kind.hints())


def test_keys_are_not_in_what_is_shown():
    from maitento import NewKey

    assert "mt_secret" not in repr(NewKey({"id": "1", "name": "laptop", "key": "mt_secret"}))


@pytest.mark.parametrize(
    "wire, name",
    [
        ("exitCode", "exit_code"),
        ("pricePerMillionTokensIn", "price_per_million_tokens_in"),
        ("async", "run_async"),
        ("from", "from_"),
        ("id", "id"),
    ],
)
def test_names_go_there_and_back(wire, name):
    assert snake(wire) == name and _records.camel(name) == wire


def test_what_ended_lately_is_remembered_up_to_a_bound():
    ended = LatelyEnded(3)
    for name in "abcad":
        ended.add(name)
    assert [n in ended for n in "abcd"] == [True, False, True, True]


def test_patience_grows_ends_and_begins_anew(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    away, patience, pauses = MaitentoError("away", "unreachable"), _wire.Patience(), []
    with pytest.raises(MaitentoError) as error:
        while True:
            pauses.append(patience.pause(away))
            now[0] += pauses[-1]
    assert error.value.code == "outcomeUnknown" and "away" in str(error.value)
    assert 0.1 < pauses[0] <= 0.2 and 3.7 < pauses[-1] <= 5 and 60 <= sum(pauses) < 70
    patience.begin()
    assert patience.pause(away) <= 0.2
    assert patience.pause(MaitentoError("busy", "unavailable", 503, None, 7)) == 7
    with pytest.raises(MaitentoError) as error:
        patience.pause(MaitentoError("no", "notFound", 404))
    assert error.value.code == "notFound"


def test_errors_say_what_the_server_said():
    problem = {"code": "deployFailed", "detail": "1 fault", "field": "files[0]", "help": "mend it"}
    raw = json.dumps({**problem, "diagnostics": [{"file": "a", "line": 3, "column": 7, "message": "no"}]}).encode()
    error = _wire.problem_of("http://x", 422, {"retry-after": "3"}, raw)
    assert (error.code, error.status, error.field, error.help, error.retry_after) == (
        "deployFailed",
        422,
        "files[0]",
        "mend it",
        3,
    )
    assert str(error) == "1 fault\n  a:3:7: no" and error.problem["code"] == "deployFailed"
    for raw in (b"<html>", b"[]", b"\xff"):
        error = _wire.problem_of("http://x", 502, {}, raw)
        assert (error.code, str(error)) == ("unavailable", "the server at http://x answered with status 502")
