"""mt events: what people and scripts see of it."""
import json
import re

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
