"""The projects of examples/ that hold apps: their READMEs are run as they stand, and what goes wrong is told."""
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import pages

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
WITH_APPS = sorted(p.parent.name for p in EXAMPLES.glob("*/README.md")
                   if "```console" in p.read_text(encoding="utf-8"))


def test_every_example_with_an_app_is_run():
    assert WITH_APPS == sorted({p.parents[3].name for p in EXAMPLES.glob("*/maitento/apps/*/*.mtc")})
    listed = re.findall(r"^\| \[([\w-]+)\]", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == sorted(p.parent.name for p in EXAMPLES.glob("*/README.md"))


@pytest.mark.parametrize("name", WITH_APPS)
def test_the_lines_of_its_readme(server, tmp_path, name):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    namespace = re.search(r"\$ mt namespace-create ([\w-]+)\n", text).group(1)
    with pages.model(pages.replies(text), server):
        pages.run(text, tmp_path / "examples" / name,
                  {**os.environ, **server.environment(), "LC_ALL": "C.UTF-8", "MAITENTO_NAMESPACE": namespace})


@pytest.mark.parametrize("name", WITH_APPS)
def test_it_is_laid_out_and_checked(mt, name):
    project = EXAMPLES / name / "maitento"
    assert mt("fmt", "--check", project, check=0).stdout == ""
    said = mt("app-check", project, check=0)
    assert "warning" not in said.stdout + said.stderr


# ---- what goes wrong ----

def project(name):
    """The files of an example's project by their paths, as deploys take them."""
    root = EXAMPLES / name / "maitento"
    return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in root.rglob("*.*") if p.is_file()}


def run_app(api, ns, app, **inputs):
    """A run of an app that has ended, with what it printed."""
    run = api.call("POST", f"/v1/namespaces/{ns}/apps/{app}/runs", {"inputs": inputs}, 201)
    ended = api.call("GET", f"/v1/app-runs/{run['id']}?wait=60&console=true")
    assert ended["endReason"], ended
    return ended


def capsule_ends(api, ns):
    """Why the runs of capsules ended, each of them."""
    return [api.get(run)["endReason"] for run in api.call("GET", f"/v1/capsule-runs?namespace={ns}")["items"]]


def test_statistics_of_no_text_at_all(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "texts"}, 201)
    api.deploy(ns, project("text-statistics"))
    run = run_app(api, ns, "text-statistics", folder="/")
    assert (run["status"], run["returnValue"], run["outputs"]) == ("Finished", {}, {"lines": 0, "words": 0})
    run = run_app(api, ns, "text-statistics", folder="/nowhere")
    assert (run["status"], run["endReason"], run["failureCode"]) == ("Error", "failed", "notFound")
    assert capsule_ends(api, ns) == ["parentEnded", "terminated"]


def test_statistics_of_many_texts(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "texts"}, 201)
    for n in range(30):
        api.write(ns, "texts", f"/t{n:02}.txt", "one two\n" * n)
    api.deploy(ns, project("text-statistics"))
    run = run_app(api, ns, "text-statistics", folder="/")
    assert run["outputs"] == {"lines": sum(range(30)), "words": 2 * sum(range(30))}
    assert run["returnValue"] == {f"/t{n:02}.txt": {"lines": n, "words": 2 * n} for n in range(30)}
    assert [line["text"].split()[0] for line in run["consoleOutputs"]] == [f"/t{n:02}.txt" for n in range(30)] + ["all"]


def test_a_build_that_fails_leaves_no_capsule(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "repository"}, 201)
    api.write(ns, "repository", "/broken.py", "def broken(:\n")
    api.deploy(ns, project("build-and-test"))
    run = run_app(api, ns, "build-and-test")
    assert run["failureDetails"].startswith("build failed with exit code 1:\n") and "SyntaxError" in run["failureDetails"]
    assert [s["function"] for s in run["failureStack"]] == ["step", "main"]
    assert run["outputs"] == {"passed": False}
    assert b"SyntaxError" in api.read(ns, "repository", "/report.txt")
    assert capsule_ends(api, ns) == ["parentEnded"]


def test_a_producer_that_fails_stops_the_pipeline(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "handover"}, 201)
    api.deploy(ns, project("two-capsules"))
    run = run_app(api, ns, "pipeline", rows="5")
    assert run["failureDetails"].startswith("The producer failed: Startup command failed: python3 ")
    assert run["consoleOutputs"] == []


def answer(**members):
    """What a model says to the analyst."""
    return {"say": [json.dumps({"why": "To see.", **members})]}


@pytest.fixture()
def analyst(api, ns):
    """The example with a model: call it with what that says and how many rounds there may be, for the app's run."""
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "access-logs"}, 201)
    api.write(ns, "access-logs", "/access.log", (EXAMPLES / "analyst" / "logs" / "access.log").read_bytes())
    api.deploy(ns, project("analyst"))

    def run(replies, rounds):
        with pages.model(replies, api.server):
            api.call("PUT", "/v1/providers/deepseek", {"key": "sk-test-1234567890"})
            return run_app(api, ns, "analyst", question="Why?", rounds=str(rounds))
    return run


def interaction_ends(api, ns):
    return [run["endReason"] for run in api.call("GET", f"/v1/interaction-runs?namespace={ns}")["items"]]


def test_a_model_that_cannot_be_asked_ends_the_analyst_and_its_capsule(api, ns, analyst):
    run = analyst([answer(command="true"), {"fail": 401, "message": "no such key"}], 5)
    assert run["failureDetails"].startswith("No next step (badKey): ") and run["failureStack"][0]["function"] == "ask"
    assert interaction_ends(api, ns) == ["badKey", "answered"] and capsule_ends(api, ns) == ["parentEnded"]


def test_a_model_that_gives_both_or_neither_is_asked_again(api, ns, analyst):
    run = analyst([answer(command="true", answer="Yes."), answer(), answer(answer="Because.")], 1)
    assert (run["returnValue"], run["outputs"]) == ("Because.", {"rounds": 1})
    assert interaction_ends(api, ns) == ["answered"] and capsule_ends(api, ns) == ["terminated"]


def test_a_model_that_never_answers_is_not_asked_for_ever(api, ns, analyst):
    run = analyst([answer(command="id -un"), answer(command="id -un; false")], 2)
    assert run["failureDetails"] == "No answer after 2 rounds"
    assert "".join(line["text"] for line in run["consoleOutputs"]) == (
        "# To see.\n> id -un\nexit code: 0\nsandbox\n\n# To see.\n> id -un; false\nexit code: 1\nsandbox\n\n")
    assert capsule_ends(api, ns) == ["parentEnded"]


def test_an_analyst_without_an_answer_says_so(api, ns):
    files = project("fixed-analyst")
    files["apps/analyst/choose.mtc"] = files["apps/analyst/choose.mtc"].replace("best: %s", "worst: %s")
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "sales-data"}, 201)
    api.write(ns, "sales-data", "/market.csv", (EXAMPLES / "sales-report" / "data" / "market.csv").read_bytes())
    api.deploy(ns, files)
    run = run_app(api, ns, "analyst", question="Why?")
    assert run["failureDetails"] == "No answer to 'Why?' in what the commands printed"
    assert run["failurePlace"].startswith("choose.mtc:")
