"""What is printed, with output=true: O-04, O-05, O-07, O-08, O-09; lines of apps, words of models; slow readers."""
import re
import socket
import time

import pytest

from asked import Interactions
from eventstream import frames_of
from provider import HANG, Provider, say

BAD = {"bad bytes": r"printf '\377\376abc\n'", "cut off": r"printf 'a\342\202'", "both": r"printf 'x\200y'; printf '\303' >&2"}


@pytest.mark.parametrize("name", BAD)
def test_o04_bytes_that_are_no_utf8(stream, bench, name):
    events = stream(f"?run={bench.id}&output=true")
    command = bench.send(BAD[name])
    assert events.change(id=command, change="ended")["exitCode"] == 0
    record = bench.end(command)
    assert events.text(command) == record["outputStandard"] and "\ufffd" in record["outputStandard"]
    assert events.text(command, "error") == record["outputError"]


def test_o04_anything_at_all(stream, bench):
    events = stream(f"?run={bench.id}&output=true")
    command = bench.send("head -c 300000 /dev/urandom")
    events.change(id=command, change="ended")
    assert events.text(command)[-65536:] == bench.end(command)["outputStandard"]


@pytest.mark.parametrize("before", range(4))
def test_o05_characters_are_whole(stream, bench, before):
    events = stream(f"?run={bench.id}&output=true")
    command = bench.send(f"python3 -c 'import sys; sys.stdout.write(\"a\" * {before} + \"€\" * 20000)'")
    events.change(id=command, change="ended")
    assert events.text(command) == "a" * before + "€" * 20000


def test_o05_half_a_character_is_waited_for(stream, bench):
    events = stream(f"?run={bench.id}&output=true")
    command = bench.send(r"printf 'x\342\202'; sleep 0.5; printf '\254y'")
    events.change(id=command, change="ended")
    assert events.text(command) == "x€y"


def test_all_output_comes_before_the_end(stream, told, bench):
    events = stream(f"?run={bench.id}&output=true")
    command = bench.send("seq 1 50000; echo over >&2")
    events.change(id=command, change="ended")
    names = [f.name for f in events.frames]
    assert names[-1] == "change" and "output" in names
    expected = "".join(f"{i}\n" for i in range(1, 50001))
    assert (events.text(command), events.text(command, "error")) == (expected, "over\n")
    # The same for who comes later, and for one who wants no other events.
    again = stream(f"?run={bench.id}&output=true&kind=vfs", {"Last-Event-ID": str(events.numbers[0] - 1)})
    again.wait(lambda f: again.text(command) == expected and again.text(command, "error") == "over\n")
    assert not again.numbers
    late = told(f"&run={bench.id}&output=true&after={events.numbers[0] - 1}")
    assert "".join(f.data["text"] for f in late if f.name == "output" and f.data["stream"] == "standard") == expected


def test_several_at_once_do_not_wait_for_each_other(stream, bench, api):
    events = stream(f"?run={bench.id}&output=true")
    endless = bench.send("yes endless", **{"async": True})
    quiet = [bench.send(f"echo quiet-{i}", **{"async": True}) for i in range(3)]
    for i, command in enumerate(quiet):
        events.wait(lambda f: f.name == "output" and f.data["commandId"] in quiet, 20)
    events.close()
    api.call("POST", f"/v1/capsule-runs/{bench.id}/commands/{endless}/cancel?wait=30")


@pytest.mark.parametrize("line, code, reason", [
    ("kill -9 $$", 137, "signaled"), ("kill -15 $$", 143, "signaled"), ("kill -11 $$", 139, "signaled"),
    ("exit 137", 137, "exited"), ("exit 124", 124, "exited"), ("true", 0, "exited")])
def test_o08_a_signal_is_told_from_an_exit(stream, bench, line, code, reason):
    events = stream(f"?run={bench.id}")
    told = events.change(id=bench.send("sh", arguments=["-c", line]), change="ended")
    assert (told["exitCode"], told["endReason"], told["status"]) == (code, reason, "Error" if code else "Finished")


def test_o09_out_of_time_is_told_from_an_exit(stream, bench):
    events = stream(f"?run={bench.id}")
    told = events.change(id=bench.send("sleep 30", maxDuration="00:00:01"), change="ended")
    assert (told["status"], told["endReason"]) == ("Error", "timeout")


def test_an_aborted_command_says_so(stream, other):
    events = stream(f"?run={other.id}")
    running, queued = other.send("sleep 60"), other.send("echo never")
    events.change(id=running, change="started")
    other.terminate()
    ends = {events.change(kind="command", change="ended")["id"] for _ in range(2)}
    assert ends == {running, queued}
    ended = {f.data["id"]: f.data for f in events.frames if f.name == "change" and f.data["change"] == "ended"}
    for command in ends:
        assert (ended[command]["status"], ended[command]["endReason"], ended[command]["exitCode"]) == ("Aborted", "runEnded", None)


def resident(server):
    with open(f"/proc/{server.server.pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) << 10


def test_o07_endless_output_and_readers_who_take_nothing(api, server, bench, stream):
    """The server holds a bounded part of it, lets go of those who take nothing, and tells others as before."""
    before = resident(server)
    endless = [bench.send("yes " + "x" * 200, **{"async": True}) for _ in range(2)]
    sockets = []
    for _ in range(20):
        one = socket.socket(socket.AF_UNIX)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(server.socket)
        one.sendall(f"GET /v1/events?run={bench.id}&output=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        sockets.append(one)
    quick = stream(f"?namespace={bench.ns}&kind=command")
    began = time.monotonic()
    while time.monotonic() - began < 3:
        done = bench.sh("echo ok", **{"async": True})
        assert done["outputStandard"] == "ok\n"
        quick.change(id=done["id"], change="ended")
        assert resident(server) - before < 64 << 20, (before, resident(server))
    deadline = time.monotonic() + 20
    for one in sockets:
        one.settimeout(max(1, deadline - time.monotonic()))
        raw = b""
        while piece := one.recv(1 << 20):
            raw += piece
        assert raw.endswith(b"0\r\n\r\n"), raw[-200:]
        body = b"".join(re.split(rb"\r\n[0-9a-f]+\r\n", b"\r\n" + raw.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n0\r\n\r\n")))
        frames = frames_of(body)
        assert frames[-1].name == "end" and frames[-1].data["code"] == "tooSlow", frames[-1]
        assert frames[-1].data["after"] >= frames[0].id
        one.close()
    for command in endless:
        api.call("POST", f"/v1/capsule-runs/{bench.id}/commands/{command}/cancel?wait=30")


def test_a_reader_who_is_slow_but_reads_stays(api, server, bench):
    one = socket.socket(socket.AF_UNIX)
    one.connect(server.socket)
    one.sendall(f"GET /v1/events?run={bench.id}&output=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    command = bench.send("yes | head -c 30000000")
    began = time.monotonic()
    while time.monotonic() - began < 5:  # longer than the patience with one who takes nothing
        one.settimeout(5)
        assert b"event: end" not in one.recv(50000)
        time.sleep(0.2)
    one.close()
    bench.end(command)


# ---- apps ----

def test_lines_of_an_app(apps, stream):
    apps.deploy(talk='string main() {\n\tPrintLine("one");\n\tPrint("two");\n\tLogWarning("log");\n\tPrintLine(" €");\n\treturn("x");\n}\n')
    run = apps.run("talk")
    events = stream(f"?run={run['id']}&output=true&last=10")
    events.change(kind="appRun", change="ended")
    lines = [f.data for f in events.frames if f.name == "console"]
    assert "".join(line["text"] for line in lines) == "".join(line["text"] for line in run["consoleOutputs"])
    assert [line["number"] for line in lines] == sorted({line["number"] for line in lines})
    assert events.frames[-1].name == "change" and events.frames[-1].data["status"] == "Finished"


def test_lines_of_an_app_while_it_runs(apps, stream):
    apps.deploy(slow='void main() {\n\tfor (int i = 0; i < 1000; i++) { PrintLine("tick " + i); Sleep(50); }\n}\n')
    run = apps.start("slow")
    events = stream(f"?run={run['id']}&output=true")
    for i in range(5):
        assert f"tick {i}" in events.wait(lambda f: f.name == "console").data["text"]
    apps.cancel(run)
    assert events.change(kind="appRun", change="ended")["status"] == "Error"


def test_a_long_line_comes_in_pieces(apps, stream):
    apps.deploy(long='string main() {\n\tstring s = "€uro";\n\twhile (StringLength(s) < 100000) { s = s + s; }\n\tPrintLine(s);\n\treturn("x");\n}\n')
    run = apps.run("long")
    assert run["status"] == "Finished", run
    events = stream(f"?run={run['id']}&output=true&last=10")
    events.change(kind="appRun", change="ended")
    pieces, at = [f.data for f in events.frames if f.name == "console"], 0
    assert len(pieces) > 10 and len({p["number"] for p in pieces}) == 1
    for piece in pieces:
        assert piece["from"] == at
        at += len(piece["text"].encode())
    assert "".join(p["text"] for p in pieces) == run["consoleOutputs"][0]["text"]


# ---- interactions ----

@pytest.fixture()
def model(api):
    with Provider() as provider:
        api.call("PUT", "/v1/providers/deepseek", {"baseUrl": provider.url, "key": "sk-events-1234567890"}, 200)
        yield provider
    api.call("DELETE", "/v1/providers/deepseek")


def said(events):
    texts = {}
    for frame in events.frames:
        if frame.name == "text":
            text = texts.setdefault(frame.data["stream"], "")
            assert frame.data["from"] == len(text.encode()), frame
            texts[frame.data["stream"]] += frame.data["text"]
    return texts


def test_words_of_a_model_as_it_says_them(api, ns, model, stream):
    asked = Interactions(api, ns)
    asked.deploy()
    model.add(say("The N", "orth, é", HANG))
    run = asked.start()
    events = stream(f"?run={run['id']}&output=true")
    deadline = time.monotonic() + 20
    while list(said(events).values()) != ["The North, é"]:
        assert time.monotonic() < deadline, events.frames
        time.sleep(0.02)
    asked.cancel(run)
    assert events.change(kind="interactionRun", change="ended")["endReason"] == "cancelled"


def test_all_words_come_before_the_end(api, ns, model, stream):
    asked = Interactions(api, ns)
    asked.deploy()
    answer = "".join(f"{i} €\n" for i in range(5000))
    model.add(say("North, ", answer))
    run = asked.start()
    events = stream(f"?run={run['id']}&output=true&last=100")
    end = events.change(kind="interactionRun", change="ended")
    assert (end["status"], end["runId"], end["name"]) == ("Finished", run["id"], "next")
    assert list(said(events).values())[-1] == "North, " + answer == asked.get(run)["output"]
    assert events.frames[-1].data == end
