# SPDX-License-Identifier: Apache-2.0
"""Programs that want everything: each ends alone, or waits for its turn, while others are served as ever."""
import statistics
import time
from pathlib import Path

import pytest

from programs import SLEEPER

RATIO = 20  # by which requests of others may become slower
SLEEPERS = 500
SPACING_MS = 20
WORKERS = 3

HERE = Path(__file__).parent
# Programs that end by themselves; the first line is "// endReason failureCode: what it does".
HOSTILE = {p.stem: p.read_text(encoding="utf-8") for p in sorted((HERE / "hostile").glob("*.mtc"))}
ENDLESS = {p.stem: p.read_text(encoding="utf-8") for p in sorted((HERE / "endless").glob("*.mtc"))}


class Neighbour:
    """Another user, who does small things; how long each of them takes is kept."""

    def __init__(self, apps, person):
        self.apps, self.person, self.took = apps, person(), []

    def once(self):
        began = time.monotonic()
        self.person.call("GET", f"/v1/namespaces/{self.apps.ns}")
        self.person.call("GET", f"/v1/app-runs?namespace={self.apps.ns}&limit=1")
        self.took.append(time.monotonic() - began)

    def median_of(self, times):
        self.took = []
        for _ in range(times):
            self.once()
        return statistics.median(self.took)


@pytest.fixture()
def neighbour(apps, person):
    """Says at the end whether what the test did was felt by another user."""
    one = Neighbour(apps, person)
    one.median_of(20)
    one.before = one.median_of(100)
    return one


def stay_quick(neighbour):
    now = neighbour.median_of(100)
    assert now < RATIO * neighbour.before, f"{now * 1000:.1f} ms, {neighbour.before * 1000:.1f} before"


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
    assert ended["status"] == "Error" and ended["failureDetails"] and len(ended["outputs"]) <= 1000, ended["failureDetails"]


def test_apps_that_start_themselves(apps, neighbour):
    """A chain ends where it is too deep, a fan where it is too wide; what a failed one has started is stopped."""
    apps.deploy(chain='guid main() {\n\treturn(AppStart("chain", JsonObjectCreate(), ""));\n}\n',
                waits='string main() {\n\tjsonObject run = AppAwait(AppStart("waits", JsonObjectCreate(), ""));\n'
                      '\treturn(JsonObjectGet(run, "status"));\n}\n',
                sleeper=SLEEPER,
                fan='void main() {\n\twhile (true) {\n\t\tPrintLine("" + AppStart("sleeper", JsonObjectCreate(), ""));\n\t}\n}\n')
    chain, waits, fan = apps.start("chain"), apps.start("waits"), apps.start("fan")
    stay_quick(neighbour)
    assert apps.end(chain)["status"] == "Finished"
    assert apps.end(waits)["returnValue"] == "Finished"
    ended = apps.end(fan)
    assert (ended["failureCode"], len(ended["consoleOutputs"])) == ("capacityExceeded", 64), ended["failureDetails"]
    deadline = time.monotonic() + 60
    while apps.list("&status=Running"):
        assert time.monotonic() < deadline, "what they started is stopped"
        time.sleep(0.05)
    for name in ("chain", "waits"):
        runs = apps.call("GET", f"/v1/app-runs?namespace={apps.ns}&app={name}&limit=100")["items"]
        assert len(runs) == 16 and {r["failureCode"] for r in runs} == {None, "tooDeep"}, runs
    sleepers = apps.call("GET", f"/v1/app-runs?namespace={apps.ns}&app=sleeper&limit=100")["items"]
    assert {r["endReason"] for r in sleepers} == {"parentEnded"} and len(sleepers) == 64


def test_many_sleepers_wake_in_order(apps, neighbour):
    """Each a little later than the one before it; waiting costs others nothing."""
    apps.deploy(sleeper="""
int main(int until) {
	int now = TimeNow();
	if (now < until) {
		Sleep(until - now);
	}
	return(TimeNow());
}
""")
    began = time.monotonic()
    for _ in range(20):
        apps.end(apps.start("sleeper", {"until": 0}))
    each = (time.monotonic() - began) / 20
    first = int((time.time() + 2 * each * SLEEPERS + 2) * 1000)
    moments = [first + n * SPACING_MS for n in range(SLEEPERS)]
    runs = [apps.start("sleeper", {"until": moment}) for moment in moments]
    assert time.time() * 1000 < first, "all were started before the first is to wake"
    stay_quick(neighbour)
    woke = [apps.end(run, seconds=120)["returnValue"] for run in runs]
    assert all(w >= m for w, m in zip(woke, moments)), "none wakes before its time"
    for n in range(SLEEPERS - 2 * WORKERS):
        # Those of neighbouring moments may overtake each other by as many as are woken at once.
        assert woke[n] <= woke[n + 2 * WORKERS] + 2 * SPACING_MS, n
