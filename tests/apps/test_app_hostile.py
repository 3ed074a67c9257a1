# SPDX-License-Identifier: Apache-2.0
"""Programs that want everything: each ends alone, or waits for its turn, while others are served as ever."""
import contextlib
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from programs import SLEEPER

RATIO = 4  # by which requests of others may become slower than beside busy programs of the machine
SLEEPERS = int(os.environ.get("MT_SLEEPERS", "500"))
SPACING_MS = 10
WORKERS = 4
CLIENTS = 4
EACH_KIB = 40  # of the server's memory, for a run that sleeps

HERE = Path(__file__).parent
# Programs that end by themselves; the first line is "// endReason failureCode: what it does".
HOSTILE = {p.stem: p.read_text(encoding="utf-8") for p in sorted((HERE / "hostile").glob("*.mtc"))}
ENDLESS = {p.stem: p.read_text(encoding="utf-8") for p in sorted((HERE / "endless").glob("*.mtc"))}


class Neighbour:
    """Another user, who asks for small things."""

    def __init__(self, api):
        key = api.call("POST", "/v1/users", {"name": f"neighbour-{os.getpid()}"}, 201)["key"]
        self.api, self.headers = api, {"Authorization": f"Bearer {key}"}
        self.usual = self.median()
        with busy_processes():
            self.usual = max(self.usual, self.median())

    def median(self):
        took = []
        for _ in range(60):
            began = time.monotonic()
            self.api.call("GET", "/v1/namespaces", headers=self.headers)
            self.api.call("GET", "/v1/app-runs?limit=1", headers=self.headers)
            took.append(time.monotonic() - began)
        return statistics.median(took)


@contextlib.contextmanager
def busy_processes():
    """As many as there are processors: what is slower beside them is so for the machine's sake."""
    busy = [subprocess.Popen(["nice", "-n", "5", sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def neighbour(api):
    return Neighbour(api)


def stay_quick(neighbour):
    now = neighbour.median()
    assert now < RATIO * neighbour.usual, f"{now * 1000:.1f} ms, {neighbour.usual * 1000:.1f} beside other programs"


GOOD = """string main(int n) {
	string s = "";
	for (int i = 0; i < n; i++) {
		s += i;
	}
	return(s);
}
"""


def test_programs_that_end_by_their_own_fault(apps, neighbour):
    """All of them at once; each says what was too much, and a good one in the middle is not disturbed."""
    apps.deploy(good=GOOD, **HOSTILE)
    runs = {name: apps.start(name) for name in HOSTILE}
    stay_quick(neighbour)
    good = apps.run("good", {"n": 1000})
    assert good["returnValue"] == "".join(map(str, range(1000)))
    for name, run in runs.items():
        reason, *code = HOSTILE[name][3:].split(":", 1)[0].split()
        ended = apps.end(run, seconds=120)
        assert (ended["status"], ended["endReason"]) == ("Error", reason), (name, ended)
        assert ended["failureDetails"] and 0 < len(ended["failureStack"]) <= 50, (name, ended)
        assert not code or [ended["failureCode"]] == code, (name, ended)
    assert apps.run("good", {"n": 3})["returnValue"] == "012"
    stay_quick(neighbour)


def test_programs_that_never_end(apps, neighbour):
    """More of them than there are workers: others get their turns, their own time ends them, and so does a cancel."""
    limited = {name: {f"{name}.mtc": program, f"{name}.mtr": 'duration.max = "00:00:06"\n'}
               for name, program in ENDLESS.items()}
    apps.deploy(short="int main(int n) {\n\treturn(n + 1);\n}\n", forever=ENDLESS["loop"], **limited)
    assert len(ENDLESS) > WORKERS
    runs = [apps.start(name) for name in ENDLESS]
    forever = apps.start("forever")
    stay_quick(neighbour)
    for n in range(20):
        assert apps.run("short", {"n": n})["returnValue"] == n + 1
    assert apps.call("GET", f"/v1/app-runs/{forever['id']}")["status"] == "Running"
    cancelled = apps.cancel(forever)
    assert (cancelled["status"], cancelled["endReason"]) == ("Error", "cancelled")
    for run in runs:
        ended = apps.end(run)
        assert (ended["status"], ended["endReason"], ended["limitMs"]) == ("Error", "timeout", 6000), ended


def test_answers_that_fill_the_journal(apps):
    apps.deploy(reader='void main() {\n\tVfsWriteText("work", "/big", StringRepeat("x", 4000000));\n'
                       '\twhile (true) {\n\t\tVfsReadText("work", "/big");\n\t}\n}\n')
    ended = apps.end(apps.start("reader"), seconds=60)
    assert (ended["status"], ended["endReason"], ended["failurePlace"]) == ("Error", "callLimit", "reader.mtc:4:3"), ended
    assert 10 < ended["callCount"] < 20 and "64 MiB" in ended["failureDetails"], ended


def test_a_console_that_is_written_for_ever(apps, neighbour):
    """The newest lines are kept, and how many there were is told."""
    apps.deploy(print='void main(string text, int times) {\n\tfor (int i = 1; i <= times; i++) {\n'
                      '\t\tPrintLine(text + i);\n\t}\n}\n',
                forever={"forever.mtc": 'void main() {\n\twhile (true) {\n\t\tPrintLine("once more");\n\t}\n}\n',
                         "forever.mtr": 'duration.max = "00:00:05"\n'})
    forever, lines = apps.start("forever"), apps.start("print", {"text": "line ", "times": 25000})
    texts = apps.start("print", {"text": "x" * 1000, "times": 9000})
    stay_quick(neighbour)
    ended = apps.end(lines)
    assert ended["endReason"] == "returned" and ended["consoleOutputsFullCount"] == 25000
    assert [line["text"] for line in ended["consoleOutputs"]] == [f"line {i}\n" for i in range(15001, 25001)]
    assert [line["number"] for line in ended["consoleOutputs"]] == list(range(15001, 25001))
    ended = apps.end(texts)
    assert ended["endReason"] == "returned" and ended["consoleOutputsFullCount"] == 9000
    kept = [line["text"] for line in ended["consoleOutputs"]]
    assert 0 < sum(map(len, kept)) <= 4 << 20 and sum(map(len, kept)) > 3 << 20
    assert kept == ["x" * 1000 + f"{i}\n" for i in range(9001 - len(kept), 9001)]
    ended = apps.end(forever)
    assert ended["endReason"] in ("timeout", "callLimit"), ended
    assert ended["consoleOutputsFullCount"] > 10000 and len(ended["consoleOutputs"]) == 10000


def test_outputs_without_end(apps):
    apps.deploy(many='void main() {\n\tfor (int i = 0; ; i++) {\n\t\tAppStateSetOutputInt("o" + i, i);\n\t}\n}\n',
                same='void main() {\n\tfor (int i = 0; i < 20000; i++) {\n\t\tAppStateSetOutputInt("o", i);\n\t}\n}\n')
    many, same = apps.start("many"), apps.run("same")
    assert same["outputs"] == {"o": 19999}
    ended = apps.end(many)
    assert ended["status"] == "Error" and ended["failureDetails"] and len(ended["outputs"]) <= 1000


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def runs_of(apps, name):
    return apps.call("GET", f"/v1/app-runs?namespace={apps.ns}&app={name}&limit=100")["items"]


@pytest.mark.parametrize("program", [
    'guid main() {\n\treturn(AppStart("chain", JsonObjectCreate(), ""));\n}\n',
    'string main() {\n\tjsonObject run = AppAwait(AppStart("chain", JsonObjectCreate(), ""));\n'
    '\treturn(JsonObjectGet(run, "status"));\n}\n'], ids=["goes on", "waits"])
def test_a_chain_of_apps_that_start_themselves_ends(apps, neighbour, program):
    apps.deploy(chain=program)
    assert apps.end(apps.start("chain"))["status"] == "Finished"
    stay_quick(neighbour)
    wait_for(lambda: all(r["endReason"] for r in runs_of(apps, "chain")), "the chain ends")
    runs = runs_of(apps, "chain")
    assert len(runs) == 17 and [r["failureCode"] for r in runs if r["status"] == "Error"] == ["tooDeep"], runs


def test_an_app_that_starts_others_for_ever(apps, neighbour):
    """When too many of them live it is refused another; with it they are all stopped."""
    apps.deploy(sleeper=SLEEPER, fan='void main() {\n\twhile (true) {\n'
                                     '\t\tPrintLine("" + AppStart("sleeper", JsonObjectCreate(), ""));\n\t}\n}\n')
    fan = apps.start("fan")
    ended = apps.end(fan)
    assert (ended["failureCode"], len(ended["consoleOutputs"])) == ("capacityExceeded", 64), ended["failureDetails"]
    stay_quick(neighbour)
    wait_for(lambda: all(r["endReason"] for r in runs_of(apps, "sleeper")), "what it has started is stopped")
    assert {r["endReason"] for r in runs_of(apps, "sleeper")} == {"parentEnded"} and len(runs_of(apps, "sleeper")) == 64


def memory_kib(process):
    """What a process has of its own, and its share of what it has with others."""
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
    return int(text.split("\nPss:")[1].split()[0])


def start_all(apps, moments):
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(lambda moment: apps.start("sleeper", {"until": moment}), moments))


def test_many_sleepers_wake_in_order(apps, neighbour):
    """Each a little later than the one before it; waiting costs others nothing, and the server little memory."""
    apps.deploy(sleeper="""
int main(int until) {
	int now = TimeNow();
	if (now < until) {
		Sleep(until - now);
	}
	return(TimeNow());
}
""")
    server = apps.api.server.server
    began = time.monotonic()
    for run in start_all(apps, [0] * 200):
        apps.end(run)
    each = (time.monotonic() - began) / 200
    first = int((time.time() + 2 * each * SLEEPERS + 10) * 1000)
    moments = [first + n * SPACING_MS for n in range(SLEEPERS)]
    before, began = memory_kib(server), time.monotonic()
    runs = start_all(apps, moments)
    started = time.monotonic() - began
    stay_quick(neighbour)
    each_kib = (memory_kib(server) - before) / SLEEPERS
    assert time.time() * 1000 < first, "all were started before the first is to wake"
    woke = [apps.end(run, seconds=SLEEPERS * SPACING_MS / 1000 + 300)["returnValue"] for run in runs]
    print(f"\n{SLEEPERS} runs asleep: started in {started:.1f} s, {each_kib:.1f} KiB of the server each, "
          f"woken {max(w - m for w, m in zip(woke, moments))} ms late at most")
    assert each_kib < EACH_KIB
    assert all(w >= m for w, m in zip(woke, moments)), "none wakes before its time"
    for n in range(SLEEPERS - 2 * WORKERS):
        # Those of neighbouring moments may overtake each other by as many as are woken at once.
        assert woke[n] <= woke[n + 2 * WORKERS] + 2 * SPACING_MS, n
