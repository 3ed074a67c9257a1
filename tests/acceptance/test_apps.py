"""The acceptance checks of apps, by their numbers: the tutorial's analyst and the promises around it.

What the interaction would answer is scripted: a list of answers, one a step, in place of the two calls.
"""
import json
import re
import shlex
from pathlib import Path

import pytest

from test_signin import ada, home, person  # noqa: F401

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fixed-analyst" / "maitento"
SALES = "date,region,units\n2026-09-01,North,12\n2026-09-02,South,3\n"
NO_KEY = "The analyst failed: no key for provider 'deepseek'"
# The machine of programs that need no more than one.
SMALL = {"limits": {"memory": "64MiB", "disk": "64MiB", "pids": 64}, "maxDuration": "00:05:00"}


def literal(value):
    """JSON as a string of the app language."""
    return json.dumps(json.dumps(value))


def command(line):
    return {"done": False, "command": line, "answer": ""}


def answer(text):
    return {"done": True, "command": "", "answer": text}


def capsule_runs(apps):
    """The runs of capsules in the namespace, each with its end."""
    return [apps.api.get(run) for run in apps.call("GET", f"/v1/capsule-runs?namespace={apps.ns}")["items"]]


# ---- the analyst ----

def project_files(folder):
    return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*.*") if p.is_file()}


# Keeps what the interaction would be given, and gives what it would answer.
SCRIPTED = """jsonObject scripted(jsonObject inputs, int step) {
	VfsWriteText("sales-data", "/inputs-" + step, JsonObjectToString(inputs));
	return(JsonArrayGetObject(StringToJsonArray(%s), step - 1));
}
"""
SCRIPTED_CHOICE = """jsonObject choose(string question, string transcript, int step) {
	jsonObject inputs = JsonObjectSetString(JsonObjectCreate(), "question", question);
	inputs = JsonObjectSetString(inputs, "transcript", transcript);
	return(StringToJsonObject(JsonObjectGet(scripted(inputs, step), "output")));
}
"""
TWO_CALLS = 'InteractionAwait(InteractionStart("next-command", inputs, "[]", "[]", ""))'


class Analyst:
    """The tutorial's project, or the example that is shaped after it, with answers that are known beforehand."""

    def __init__(self, apps, folder):
        self.apps, self.files = apps, project_files(folder)
        apps.api.call("POST", f"/v1/namespaces/{apps.ns}/vfs", {"name": "sales-data"}, 201)
        apps.api.write(apps.ns, "sales-data", "/sales.csv", SALES)

    def run(self, runs):
        """runs: what InteractionAwait gives, step by step."""
        files, inputs = dict(self.files), {"question": "Which region?"}
        if "apps/analyst/choose.mtc" in files:
            files["apps/analyst/choose.mtc"] = SCRIPTED_CHOICE
        else:
            assert files["apps/analyst/analyst.mtc"].count(TWO_CALLS) == 1
            files["apps/analyst/analyst.mtc"] = files["apps/analyst/analyst.mtc"].replace(TWO_CALLS, "scripted(inputs, step)")
            inputs["namespaceName"] = self.apps.ns
        files["apps/analyst/scripted.mtc"] = SCRIPTED % literal(runs)
        self.apps.api.deploy(self.apps.ns, files)
        return self.apps.run("analyst", inputs)

    def say(self, *outputs):
        return self.run([{"status": "Finished", "output": json.dumps(o), "failureDetails": ""} for o in outputs])

    def inputs(self, step):
        """What the interaction of that step was given."""
        return json.loads(self.apps.api.read(self.apps.ns, "sales-data", f"/inputs-{step}"))


@pytest.fixture()
def seed(apps, request):
    return Analyst(apps, request.getfixturevalue("tutorial") / "maitento")


@pytest.fixture(params=["tutorial", "example"])
def analyst(apps, request):
    if request.param == "tutorial":
        return request.getfixturevalue("seed")
    return Analyst(apps, EXAMPLE)


def test_072_073_the_tutorials_lines_run_the_program_unchanged_until_it_asks(fresh_mt, tutorial):
    """With no key for its model: it ends with a sentence that says so, and its capsule with it."""
    lines = [shlex.split(line) for line in (tutorial / "cli" / "analyst.sh").read_text().splitlines()]
    assert lines[0] == ["mt", "deploy", "./maitento"] and lines[1][:3] == ["mt", "app-run", "analyst"]
    assert lines[1][-2:] == ["--input-namespacename", "tutorials"]
    fresh_mt("namespace-create", "tutorials", check=0)
    fresh_mt("vfs-create", "sales-data", check=0)
    fresh_mt("cp", tutorial / "data" / "sales.csv", "/vfs/sales-data@tutorials/sales.csv", check=0)
    assert "app          analyst" in fresh_mt(*lines[0][1:], cwd=tutorial, check=0).stdout
    done = fresh_mt(*lines[1][1:], check=1)
    assert done.stdout == "" and done.stderr.startswith(NO_KEY), done.stderr
    run = json.loads(fresh_mt("app-run-get", "@last", "--json", check=0).stdout)
    assert (run["status"], run["failureCode"]) == ("Error", "Thrown") and run["failureDetails"].startswith(NO_KEY), run
    (asked,) = json.loads(fresh_mt("interaction-runs", "--json", check=0).stdout)
    assert (asked["endReason"], asked["parentAppRunId"]) == ("noKey", run["id"])
    assert run["inputs"] == {"question": lines[1][4], "namespaceName": "tutorials"}
    (capsule,) = json.loads(fresh_mt("capsule-run-list", "--json", check=0).stdout)
    fresh_mt("capsule-run-await", capsule["id"])
    capsule = json.loads(fresh_mt("capsule-run-get", capsule["id"], "--json", check=0).stdout)
    assert (capsule["capsule"], capsule["endReason"]) == ("workbench", "terminated")


def test_072_077_083_084_086_the_loop_to_its_answer(analyst):
    run = analyst.say(command("head -n 1 /tmp/data/sales.csv"), command("grep -c , /tmp/data/sales.csv; id -un"),
                      answer("North, 12"))
    assert (run["status"], run["endReason"], run["failureDetails"]) == ("Finished", "returned", "")
    assert run["returnValue"] == "North, 12" and run["outputs"] == {"answer": "North, 12"}
    texts = [line["text"] for line in run["consoleOutputs"]]
    assert [text.rstrip() for text in texts] == [
        "$ head -n 1 /tmp/data/sales.csv\nexit code: 0\ndate,region,units",
        "$ grep -c , /tmp/data/sales.csv; id -un\nexit code: 0\n3\nsandbox"]
    assert analyst.inputs(1) == {"question": "Which region?", "transcript": ""}
    assert analyst.inputs(3)["transcript"] == "".join(texts)
    assert [c["endReason"] for c in capsule_runs(analyst.apps)] == ["terminated"]


def test_078_a_failed_command_is_in_the_transcript_and_fails_nothing(analyst):
    run = analyst.say(command("no-such-program -csv"), command("cat /mnt/data/sales.csv"), command("echo out; echo err >&2; exit 7"),
                      answer("done"))
    assert (run["status"], run["returnValue"]) == ("Finished", "done"), run
    assert analyst.inputs(4)["transcript"] == (
        "$ no-such-program -csv\nexit code: 127\n-bash: line 1: no-such-program: command not found\n\n"
        "$ cat /mnt/data/sales.csv\nexit code: 1\ncat: /mnt/data/sales.csv: Permission denied\n\n"
        "$ echo out; echo err >&2; exit 7\nexit code: 7\nout\nerr\n\n")


def test_079_six_steps_at_most_and_an_empty_result(analyst):
    run = analyst.say(*[command(f"echo step {n}") for n in range(1, 8)])
    assert (run["status"], run["returnValue"], run["outputs"]) == ("Finished", "", {"answer": ""})
    assert [line["text"].split("\n")[2] for line in run["consoleOutputs"]] == [f"step {n}" for n in range(1, 7)]
    assert [c["endReason"] for c in capsule_runs(analyst.apps)] == ["terminated"]


def test_075_086_the_analyst_fails(seed):
    first = {"status": "Finished", "output": json.dumps(command("true")), "failureDetails": ""}
    run = seed.run([first, {"status": "Error", "output": None, "failureDetails": "no answer \"fits\": é"}])
    assert (run["status"], run["failureDetails"]) == ("Error", 'The analyst failed: no answer "fits": é')
    assert run["failurePlace"].startswith("analyst.mtc:") and run["failureStack"][0]["function"] == "main"
    assert (run["returnValue"], run["outputs"]) == (None, {})
    assert [c["endReason"] for c in capsule_runs(seed.apps)] == ["terminated"]  # by the app, before it throws


def test_074_075_the_capsule_does_not_start(analyst):
    text = analyst.files["capsules/workbench.mtr"]
    assert text.count("cp -r /mnt/data") == 1
    analyst.files["capsules/workbench.mtr"] = text.replace("cp -r /mnt/data", "echo no room >&2; exit 3; cp")
    run = analyst.say(answer("none"))
    (capsule,) = capsule_runs(analyst.apps)
    assert capsule["endReason"] == "startFailed" and re.fullmatch("Startup command failed: .* - no room", capsule["failureDetails"])
    assert (run["status"], run["failureDetails"], run["failureCode"]) == (
        "Error", f"The capsule did not start: {capsule['failureDetails']}", "Thrown")


# ---- capsules and commands ----

def test_074_a_run_that_is_waited_for_says_whether_it_is_ready(apps):
    apps.api.capsule(apps.ns, [], name="up", **SMALL)
    apps.api.capsule(apps.ns, [{"command": "echo broken >&2; exit 2"}], name="down", **SMALL)
    apps.deploy(wait='jsonObject main(string capsule) {\n\tguid run = CapsuleStart(capsule, "", "[]", "[]", "[]");\n'
                     "\tjsonObject ready = CapsuleWaitUntilStarted(run);\n\tCapsuleTerminate(run);\n\treturn(ready);\n}\n")
    up, down = apps.start("wait", {"capsule": "up"}), apps.start("wait", {"capsule": "down"})
    up, down = apps.end(up)["returnValue"], apps.end(down)["returnValue"]
    assert (up["status"], up["failureDetails"]) == ("Running", "") and up["dateReady"]
    assert (down["status"], down["failureDetails"]) == (
        "Error", "Startup command failed: echo broken >&2; exit 2 - broken")


UNKNOWN = """
jsonArray main(string mine, string other) {
	return(JsonArrayAddString(JsonArrayAddString(JsonArrayCreate(), attempt("")), attempt(other)));
}

string attempt(string space) {
	try {
		CapsuleStart("no-such-capsule", space, "[]", "[]", "[]");
	} catch (error e) {
		return(ErrorCode(e) + ": " + ErrorMessage(e));
	}
	return("started");
}
"""


def test_072a_an_unknown_capsule_is_named_with_its_namespace_and_can_be_caught(api, apps):
    other = api.namespace("other")
    apps.deploy(unknown=UNKNOWN, uncaught='void main() {\n\tCapsuleStart("no-such-capsule", "", "[]", "[]", "[]");\n}\n',
                nowhere='void main() {\n\tCapsuleStart("no-such-capsule", "no-such-space", "[]", "[]", "[]");\n}\n')
    run = apps.run("unknown", {"mine": apps.ns, "other": other})
    assert run["status"] == "Finished", run
    for said, ns in zip(run["returnValue"], (apps.ns, other)):
        assert said.startswith("notFound: ") and "'no-such-capsule'" in said and f"'{ns}'" in said, said
    run = apps.run("uncaught")
    assert (run["status"], run["failureCode"]) == ("Error", "notFound")
    assert "'no-such-capsule'" in run["failureDetails"] and f"'{apps.ns}'" in run["failureDetails"]
    assert "'no-such-space'" in apps.run("nowhere")["failureDetails"]


ASK = """string main(string interaction, string vfs, string tools, string space) {
	try {
		InteractionStart(interaction, JsonObjectCreate(), vfs, tools, space);
	} catch (error e) {
		return(ErrorCode(e) + ": " + ErrorMessage(e));
	}
	return("started");
}
"""


def test_072a_an_unknown_interaction_is_an_error_that_can_be_caught(apps):
    apps.deploy(ask=ASK)
    other = apps.api.namespace("other")
    for space in ("", other):
        said = apps.run("ask", {"interaction": "none", "vfs": "[]", "tools": "[]", "space": space})["returnValue"]
        assert said == f"notFound: no interaction 'none' in namespace '{space or apps.ns}'", said


@pytest.mark.parametrize("lists, words", [
    ({"tools": '["x"]'}, "`tools` must be \"[]\""), ({"vfs": '[{"vfs": "work"}]'}, "`vfs` must be \"[]\""),
    ({"tools": ""}, "`tools` is no JSON"), ({"vfs": "{}"}, "`vfs` must be a JSON list")])
def test_089_a_model_gets_no_tools_and_no_file_systems(apps, lists, words):
    apps.deploy(ask=ASK)
    said = apps.run("ask", {"interaction": "none", "vfs": "[]", "tools": "[]", "space": "", **lists})["returnValue"]
    assert said.startswith("BadArgument: InteractionStart: ") and words in said, said


def test_080_a_command_over_its_milliseconds_ends_and_the_app_goes_on(apps):
    apps.api.capsule(apps.ns, [], **SMALL)
    apps.deploy(limit="""
jsonArray main() {
	guid run = CapsuleStart("c", "", "[]", "[]", "[]");
	jsonArray done = JsonArrayAddObject(JsonArrayCreate(), exec(run, "sleep 300; echo late", 700));
	done = JsonArrayAddObject(done, exec(run, "trap '' TERM; while :; do sleep 1; done", 700));
	done = JsonArrayAddObject(done, exec(run, "echo next", 60000));
	done = JsonArrayAddObject(done, exec(run, "echo none", 0));
	CapsuleTerminate(run);
	return(done);
}

jsonObject exec(guid run, string line, int most) {
	return(CapsuleCommandAwait(run, CapsuleExec(run, line, "[]", "", most, false)));
}
""")
    run = apps.run("limit")
    assert run["status"] == "Finished", run
    assert [(c["status"], c["endReason"], c["exitCode"], c.get("limitMs"), c["outputStandard"]) for c in run["returnValue"]] == [
        ("Error", "timeout", 143, 700, ""), ("Error", "timeout", 137, 700, ""),
        ("Finished", "exited", 0, None, "next\n"), ("Finished", "exited", 0, None, "none\n")]


# ---- the app's own time ----

TOO_LONG = {
    "computes": "void main() {\n\twhile (true) { }\n}\n",
    "computes in a call": "void main() {\n\tfor (;;) { f(1); }\n}\n\nint f(int n) {\n\treturn(n + 1);\n}\n",
    "catches": 'void main() {\n\twhile (true) {\n\t\ttry { throw("x"); } catch (error e) { }\n\t}\n}\n',
    "sleeps": "void main() {\n\tSleep(3600000);\n}\n",
    "waits for a command": 'void main() {\n\tguid run = CapsuleStart("c", "", "[]", "[]", "[]");\n'
                           '\tCapsuleCommandAwait(run, CapsuleExec(run, "sleep 300", "[]", "", 0, false));\n}\n',
    "waits for a start": 'void main() {\n\tCapsuleWaitUntilStarted(CapsuleStart("slow", "", "[]", "[]", "[]"));\n}\n',
    "waits for an end": 'void main() {\n\tCapsuleWaitUntilEnded(CapsuleStart("c", "", "[]", "[]", "[]"));\n}\n',
    "waits for any": 'void main() {\n\tguid run = CapsuleStart("c", "", "[]", "[]", "[]");\n'
                     "\tAwaitAny(JsonArrayAddGuid(JsonArrayCreate(), run));\n}\n",
    "waits for an app": 'void main() {\n\tAppAwait(AppStart("long", JsonObjectCreate(), ""));\n}\n',
    "starts": 'void main() {\n\twhile (true) {\n\t\tCapsuleTerminate(CapsuleStart("slow", "", "[]", "[]", "[]"));\n\t}\n}\n',
}


def test_085_duration_max_stops_it_whatever_it_does(apps):
    """All of them at once; what they had started is stopped too."""
    apps.api.capsule(apps.ns, [], **SMALL)
    apps.api.capsule(apps.ns, [{"command": "sleep 300"}], name="slow", **SMALL)
    apps.deploy(long="void main() {\n\tSleep(3600000);\n}\n",
                **{what.replace(" ", "-"): {f"{what.replace(' ', '-')}.mtc": program,
                                            f"{what.replace(' ', '-')}.mtr": 'duration.max = "00:00:02"\n'}
                   for what, program in TOO_LONG.items()})
    runs = {what: apps.start(what.replace(" ", "-")) for what in TOO_LONG}
    for what, run in runs.items():
        ended = apps.end(run)
        assert (ended["status"], ended["endReason"], ended["limitMs"], ended["failureDetails"]) == (
            "Error", "timeout", 2000, "out of time: duration.max 00:00:02"), (what, ended)
        assert 2 <= ended["runSeconds"] < 20, (what, ended)
    (long,) = apps.list("&app=long")
    assert apps.end(long)["endReason"] == "parentEnded"
    ends = [run["endReason"] for run in capsule_runs(apps)]
    assert ends.count("parentEnded") >= 4 and set(ends) <= {"parentEnded", "terminated"}, ends


def test_085_one_that_names_no_duration_has_an_hour(apps):
    apps.deploy(plain="void main() { }\n", named={"named.mtc": "void main() { }\n", "named.mtr": 'duration.max = "00:10:00"\n'})
    for name, shown in (("plain", "01:00:00"), ("named", "00:10:00")):
        assert apps.run(name)["maxDuration"] == shown


def test_086_a_capsule_that_a_failing_app_leaves_is_stopped(apps):
    apps.api.capsule(apps.ns, [], **SMALL)
    for name, last in (("thrown", 'throw("enough");'), ("broken", 'StringToInt("x");'), ("kept", "return;")):
        apps.deploy(**{name: 'void main() {\n\tguid run = CapsuleStart("c", "", "[]", "[]", "[]");\n'
                             '\tCapsuleWaitUntilStarted(run);\n\tPrintLine("" + run);\n\t' + last + "\n}\n"})
        run = apps.run(name)
        capsule = {"id": run["consoleOutputs"][0]["text"].strip()}
        if name != "kept":
            ended = apps.api.get(capsule)
            assert run["status"] == "Error" and ended["endReason"] == "parentEnded" and run["id"] in ended["failureDetails"]
        else:
            assert apps.call("GET", f"/v1/capsule-runs/{capsule['id']}")["status"] == "Running"
            apps.api.terminate(capsule)


# ---- who is signed in inside ----

INSIDE = """
string main(string space, string line) {
	guid run = CapsuleStart("c", space, "[]", "[]", "[]");
	jsonObject done = CapsuleCommandAwait(run, CapsuleExec(run, line, "[]", "", 0, false));
	CapsuleTerminate(run);
	if (JsonObjectGetInt(done, "exitCode") != 0) {
		return(JsonObjectGet(done, "exitCode") + ": " + JsonObjectGet(done, "outputError"));
	}
	return(JsonObjectGet(done, "outputStandard"));
}
"""
OUTER = """
string main(string space, string line) {
	jsonObject inputs = JsonObjectSetString(JsonObjectSetString(JsonObjectCreate(), "space", space), "line", line);
	return(JsonObjectGet(AppAwait(AppStart("inside", inputs, "")), "returnValue"));
}
"""


def test_a71a_a_capsule_of_an_app_is_signed_in_as_who_started_the_app_run(api, ada, home):  # noqa: F811
    """Not as who deployed it; also where an app started the app, and in each of that user's namespaces."""
    bea = person(api)
    private, hers = ada.namespace("private"), bea.namespace("hers")
    for who, ns in ((ada, private), (bea, hers)):
        who.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "files"}, 201)
        who.write(ns, "files", "/x", f"of {who.name}\n")
    ada.call("PUT", f"/v1/namespaces/{home}/members/{bea.name}")
    capsule = 'maxDuration = "00:05:00"\nlimits = { memory = "64MiB", pids = 64, disk = "16MiB" }\n'
    ada.deploy(home, {"capsules/c.mtr": capsule, "apps/inside/inside.mtc": INSIDE, "apps/outer/outer.mtc": OUTER})
    bea.deploy(hers, {"capsules/c.mtr": capsule})

    def run(who, app, line, space=""):
        started = who.call("POST", f"/v1/namespaces/{home}/apps/{app}/runs?wait=60",
                           {"inputs": {"space": space, "line": line}}, 201)
        assert started["status"] == "Finished", started
        return started["returnValue"]

    for app in ("inside", "outer"):
        for who in (ada, bea):
            seen = json.loads(run(who, app, "mt whoami --json"))
            assert seen["name"] == who.name, (app, seen)
        assert run(bea, app, f"mt cat /vfs/files@{hers}/x") == f"of {bea.name}\n"
        assert run(bea, app, f"mt cat /vfs/files@{private}/x").startswith("3: ")
        assert run(bea, app, "echo $MAITENTO_NAMESPACE") == f"{home}\n"
        assert run(bea, app, "echo $MAITENTO_NAMESPACE; mt cat /vfs/files/x", hers) == f"{hers}\nof {bea.name}\n"
