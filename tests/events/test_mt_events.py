"""mt events: what people and scripts see of it."""
import http.server
import json
import re
import threading

import pytest

WHEN = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "


def test_lines_for_people(mt, bench):
    command = bench.sh("echo hi; exit 3")["id"]
    done = mt("events", "--run", bench.id, "--last", "3", check=0)
    end, run = command[-8:], bench.id[-8:]
    assert re.fullmatch(f"{WHEN}command        {end} of run {run} created\n{WHEN}command        {end} of run {run} started\n"
                        f"{WHEN}command        {end} of run {run} ended: Error, exit code 3\n", done.stdout), done.stdout
    assert done.stderr == ""
    killed = bench.sh("kill -9 $$")["id"][-8:]
    done = mt("events", "-n", bench.ns, "--last", "1", check=0)
    assert done.stdout.endswith(f"command        {killed} of run {run} ended: Error (signaled), exit code 137\n")
    other = mt("events", "--kind", "capsule", "--last", "1000", check=0).stdout
    assert re.search(f"{WHEN}capsule        {bench.ns}/bench created\n", other)
    assert re.search(f"{WHEN}capsule        bench created\n", mt("events", "--kind", "capsule", "-n", bench.ns, check=0).stdout)


def test_output_of_a_run(mt, bench):
    command = bench.sh(r"echo one; printf 'two \377'; echo over >&2")["id"]
    shown = mt("events", "--run", bench.id[-12:], "--output", "--last", "3", check=0).stdout
    end = command[-8:]
    assert f"  {end} | one\n  {end} | two \ufffd\n" in shown and f"  {end} error | over\n" in shown
    assert shown.index("| one") < shown.index("ended: Finished")


def test_json_is_what_came(mt, bench):
    command = bench.sh("echo hi")["id"]
    lines = [json.loads(line) for line in
             mt("events", "--run", bench.id, "--output", "--last", "3", "--json", check=0).stdout.splitlines()]
    assert [line["event"] for line in lines] == ["change", "change", "output", "change"]
    assert lines[2] == {"event": "output", "runId": bench.id, "commandId": command, "stream": "standard",
                        "offset": 0, "bytes": 3, "text": "hi\n"}
    assert lines[3]["exitCode"] == 0 and lines[3]["number"] > lines[0]["number"]
    after = str(lines[0]["number"])
    assert mt("events", "--after", after, "--run", bench.id, "--json", check=0).stdout.count("\n") == 2


def test_by_libcurl(mt, server, bench):
    """An address with a proxy in between is libcurl's, as https is; here the server is its own proxy."""
    bench.sh("true")
    done = mt("events", "--run", bench.id, "--last", "1", "--json", check=0, env={
        "MAITENTO_URL": "http://maitento.invalid", "http_proxy": server.url, "no_proxy": ""})
    assert json.loads(done.stdout)["change"] == "ended"


def test_what_is_refused(mt, bench):
    for words, status, sentence in (
            (["--output"], 2, "--output needs --run RUN"), (["--last", "x"], 2, "--last is a number up to 1000"),
            (["--after", "1", "--last", "1"], 2, "give one of --after and --last"),
            (["--kind", "nothing"], 2, "no kind of event 'nothing'"), (["--after", "99999999"], 3, "there was no event"),
            (["-n", "not-there"], 4, "not-there"), (["--run", "ffffffffff"], 4, "no run of a capsule, an app or an interaction")):
        done = mt("events", *words)
        assert sentence in done.stderr and done.stdout == "", (words, done.returncode, done.stderr)
        assert done.returncode != 0


class Liar(http.server.BaseHTTPRequestHandler):
    """Answers /v1/events with the bytes of its server, a few at a time; a second time it says no more."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        bodies, self.server.seen = self.server.bodies, [*self.server.seen, dict(self.headers)]
        body = bodies.pop(0) if bodies else b""
        self.send_response(200)
        self.send_header("Content-Type", self.server.media)
        self.send_header("Connection", "close")
        self.end_headers()
        for i in range(0, len(body), self.server.step):
            self.wfile.write(body[i:i + self.server.step])
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture()
def liar(mt):
    """Runs mt events against what answers with these bodies."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def ask(*bodies, step=1 << 20, media="text/event-stream", words=("--json",)):
        server.bodies, server.step, server.media, server.seen = list(bodies), step, media, []
        done = mt("events", *words, env={"MAITENTO_URL": f"http://127.0.0.1:{server.server_port}"}, timeout=30)
        return done, server.seen

    yield ask
    server.shutdown()
    server.server_close()


def event(name, data, number=None):
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


HELLO = event("hello", {"after": 3, "heartbeatSeconds": 15}, 3)


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_what_a_newer_server_may_add_is_passed_over(liar, step):
    """However the bytes come."""
    body = (HELLO + b": \n\nretry: 5\n\n" + event("weather", {"sun": True})
            + event("change", {"number": 4, "kind": "star", "change": "born", "id": "x", "more": [1]}, 4))
    done, _ = liar(body, step=step)
    assert done.returncode == 0 and json.loads(done.stdout)["more"] == [1], (done.stdout, done.stderr)
    done, _ = liar(body, step=step, words=())
    assert "star" in done.stdout and "born" in done.stdout


def test_a_stream_that_was_ended_is_gone_on_with(liar):
    done, seen = liar(HELLO + event("change", {"number": 4, "id": "a"}, 4) + event("end", {"code": "stopping", "after": 4, "sentence": "later"}),
                      event("hello", {"after": 4, "heartbeatSeconds": 15}, 4) + event("change", {"number": 9, "id": "b"}, 9))
    assert [json.loads(line)["number"] for line in done.stdout.splitlines()] == [4, 9]
    assert [headers.get("Last-Event-ID") for headers in seen] == [None, "4"]
    assert "later" in done.stderr and done.returncode == 0


@pytest.mark.parametrize("code", ["runEnded", "accessLost"])
def test_a_sign_in_that_is_gone_is_an_error(liar, code):
    done, seen = liar(HELLO + event("end", {"code": code, "after": 3, "sentence": "it is over"}))
    assert done.returncode == 4 and "it is over" in done.stderr and len(seen) == 1, (done.returncode, done.stderr)


@pytest.mark.parametrize("body, media, sentence", [
    (HELLO + b"event: change\ndata: {\n\n", "text/event-stream", "is no JSON"),
    (HELLO + b"event: change\ndata: " + b"x" * (6 << 20), "text/event-stream", "more than 5 MiB"),
    (b"<html></html>", "text/html", "is it a maitento server?"),
    (HELLO + b"event: output\ndata: [1,2]\n\nevent: end\ndata: 7\n\n", "text/event-stream", ""),
], ids=["no json", "no end", "no events", "other values"])
def test_what_is_no_stream_is_refused(liar, body, media, sentence):
    done, _ = liar(body, media=media)
    assert sentence in done.stderr and "Traceback" not in done.stderr and done.returncode >= 0
    assert not sentence or done.returncode != 0, done
