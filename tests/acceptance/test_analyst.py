"""The tutorial's analyst with a model, §5 and §6, by the tutorial's own files and lines. The model is played by a provider that
says what the tutorial's did."""
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from conftest import debian_is_there

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "model"))
from provider import Provider, fail, say  # noqa: E402

REPORT = "cat /tmp/data/sales.csv; echo '---'; cat /tmp/data/report.md"
REVENUE = """awk -F, 'NR>1{r[$2]+=$4*$5} END{for(k in r) printf "%s %.2f\\n", k, r[k]}' /tmp/data/sales.csv"""
NORTH = "The North region brought in the most revenue, at 546.80 (West: 527.00, South: 415.20)."
SQLITE = ('cd /tmp/data && sqlite3 :memory: ".mode csv" ".import sales.csv sales" "SELECT product, SUM(units) AS total FROM sales '
          'GROUP BY product ORDER BY total DESC LIMIT 3;"')
MODULE = ("cd /tmp/data && python3 -c \"import sqlite3,csv;c=sqlite3.connect(':memory:');c.execute('CREATE TABLE "
          "sales(date,region,product,units,unit_price)');r=csv.reader(open('sales.csv'));next(r);c.executemany('INSERT INTO sales "
          "VALUES(?,?,?,?,?)',r);print(c.execute('SELECT product,SUM(units) t FROM sales GROUP BY product ORDER BY t DESC').fetchall())\"")
MUG = "The product that sold the most units is the Blue mug, with 44 units."
QUESTION = "Which region brought in the most revenue, and how much?"


def command(line):
    return say(json.dumps({"done": False, "command": line, "answer": ""}))


def answer(text):
    return say(json.dumps({"done": True, "command": "", "answer": text}))


@pytest.fixture()
def model():
    with Provider() as p:
        yield p


@pytest.fixture()
def data(fresh_mt, tutorial, model):
    """A server as the tutorial has left it after §3, with a key of deepseek."""
    mt = fresh_mt
    mt("namespace-create", "tutorials", check=0)
    mt("vfs-create", "sales-data", check=0)
    for name in ("sales.csv", "summarise.py"):
        mt("cp", tutorial / "data" / name, f"/vfs/sales-data@tutorials/{name}", check=0)
    mt("provider-set", "deepseek", "--base-url", model.url, "--key-stdin", stdin="sk-test-1234567890\n", check=0)
    mt("deploy", "./maitento", cwd=tutorial, check=0)
    mt("capsule-start", "sales-report", check=0)
    return mt


def ask(mt, *words):
    return mt("app-run", "analyst", *words, "--input-namespacename", "tutorials")


def test_072_076_081_082_087_the_analyst_answers(data, tutorial, model):
    model.add(command("ls -la /tmp/data"), command(REPORT), command(REVENUE), answer(NORTH))
    lines = [shlex.split(line) for line in (tutorial / "cli" / "analyst.sh").read_text().splitlines()]
    assert lines[1] == ["mt", "app-run", "analyst", "--input-question", QUESTION, "--input-namespacename", "tutorials"]
    done = data(*lines[1][1:], check=0)
    transcript, _, returned = done.stdout.rstrip("\n").rpartition("\n\n")
    assert returned == NORTH and done.stderr == ""
    first, rest = transcript.split("$ cat ", 1)
    assert re.fullmatch(
        r"\$ ls -la /tmp/data\nexit code: 0\ntotal \d+\n"
        r"drwxrwxrwx +\d+ maitento maitento +\d+ \S+ +\S+ +\S+ \.\n"
        r"drwxrwxrwt +\d+ root     root +\d+ \S+ +\S+ +\S+ \.\.\n"
        r"-rw-rw-rw- 1 maitento maitento +\d+ \S+ +\S+ +\S+ report\.md\n"
        r"-rw-rw-rw- 1 maitento maitento +\d+ \S+ +\S+ +\S+ sales\.csv\n"
        r"-rw-rw-rw- 1 maitento maitento +\d+ \S+ +\S+ +\S+ summarise\.py\n\n?", first), first
    sales = (tutorial / "data" / "sales.csv").read_text(encoding="utf-8")
    assert rest.startswith(f"/tmp/data/sales.csv; echo '---'; cat /tmp/data/report.md\nexit code: 0\n{sales}---\n# Sales report\n")
    assert f"$ {REVENUE}\nexit code: 0\nWest 527.00\nSouth 415.20\nNorth 546.80" in rest.replace("\r", "")
    # What the model was told: the agent's prompt, the question, and the transcript where there is one.
    system, task = model.seen[0].texts
    assert system[0] == "system" and system[1].startswith("You answer questions about data by running bash commands")
    assert task == ("user", task[1]) and task[1].startswith(f"Answer this question about the files in /tmp/data: {QUESTION}\n\n\nGive the next")
    later = model.seen[2].texts[1][1]
    assert f"/tmp/data: {QUESTION}\n\nThe commands you have run so far, each with its exit code and output:\n\n$ ls -la /tmp/data\nexit code: 0\n" in later
    assert "%%" not in later and "{{" not in later and model.seen[0].headers["authorization"] == "Bearer sk-test-1234567890"
    runs = json.loads(data("interaction-runs", "--json", check=0).stdout)
    assert [(r["status"], r["endReason"], r["attemptCount"]) for r in runs] == [("Finished", "answered", 1)] * 4
    (capsule,) = [r for r in json.loads(data("capsule-run-list", "--json", check=0).stdout) if r["capsule"] == "workbench"]
    data("capsule-run-await", capsule["id"])
    assert json.loads(data("capsule-run-get", capsule["id"], "--json", check=0).stdout)["endReason"] == "terminated"


def test_078_088_a_command_that_fails_and_another_way(data, model, tutorial, tmp_path):
    model.add(command(SQLITE), command(MODULE), answer(MUG))
    done = ask(data, "--input-question", "Use the sqlite3 command-line tool to find which product sold the most units.")
    assert done.returncode == 0 and done.stdout == (
        f"$ {SQLITE}\nexit code: 127\n-bash: line 1: sqlite3: command not found\n\n"
        f"$ {MODULE}\nexit code: 0\n[('Blue mug', 44), ('Tea sampler', 43), ('Desk lamp', 10)]\n\n\n{MUG}\n"), done.stdout
    assert "-bash: line 1: sqlite3: command not found" in model.seen[1].texts[1][1]
    # Then with the package, which comes from Debian's archive.
    shutil.copytree(tutorial / "maitento", tmp_path / "maitento")
    workbench = tmp_path / "maitento" / "capsules" / "workbench.mtr"
    text = workbench.read_text(encoding="utf-8")
    assert text.count('maxDuration = "00:10:00"\n') == 1
    workbench.write_text(text.replace('maxDuration = "00:10:00"\n', 'maxDuration = "00:10:00"\npackages = ["sqlite3"]\n'), encoding="utf-8")
    assert "updated    capsule      workbench" in data("deploy", "./maitento", cwd=tmp_path, check=0).stdout
    if not debian_is_there():
        pytest.skip("needs Debian's archive")
    model.add(command(SQLITE), answer(MUG))
    done = ask(data, "--input-question", "The same again.")
    assert done.returncode == 0 and done.stdout == (
        f'$ {SQLITE}\nexit code: 0\n"Blue mug",44\n"Tea sampler",43\n"Desk lamp",10\n\n\n{MUG}\n'), done.stdout


def test_075_086_the_model_fails_and_the_capsule_goes(data, model):
    model.add(command("true"), fail(401, "Incorrect API key provided: sk-test-1234567890"))
    done = ask(data, "--input-question", "Which region?")
    assert done.returncode == 1 and "The analyst failed: " in done.stderr and "deepseek" in done.stderr
    assert "sk-test" not in done.stdout + done.stderr
    run = json.loads(data("app-run-get", "@last", "--json", check=0).stdout)
    assert run["failureDetails"].startswith("The analyst failed: ") and run["failureCode"] == "Thrown"
    last, first = json.loads(data("interaction-runs", "--json", check=0).stdout)
    assert (first["status"], last["status"], last["endReason"]) == ("Finished", "Error", "badKey")
    assert run["failureDetails"] == "The analyst failed: " + last["failureDetails"] and last["parentAppRunId"] == run["id"]


def test_an_answer_that_does_not_fit_is_asked_for_again(data, model):
    model.add(say('{"done": true, "answer": "North"}'), say("I think it is North."), answer("North"))
    assert ask(data, "--input-question", "Which region?").stdout == "\nNorth\n"
    second, third = model.seen[1].texts, model.seen[2].texts
    assert [role for role, _ in second] == ["system", "user", "assistant", "user"]
    assert second[2][1] == '{"done": true, "answer": "North"}' and "command" in second[3][1]
    assert [role for role, _ in third] == ["system", "user"] + ["assistant", "user"] * 2 and "holds no JSON value" in third[5][1]


@pytest.mark.parametrize("path", ["tools/files.mtr", "connectors/files.mtr"])
def test_089_tools_are_refused_with_a_sentence(data, tmp_path, path):
    (tmp_path / "p" / path).parent.mkdir(parents=True)
    (tmp_path / "p" / path).write_text('auth = "Maitento"\n', encoding="utf-8")
    done = data("deploy", "p", cwd=tmp_path)
    assert done.returncode == 1 and path.split("/")[0] in done.stderr and "error" in done.stderr, done.stderr


def test_089_no_tools_for_an_interaction(data, tmp_path, tutorial, model):
    shutil.copytree(tutorial / "maitento", tmp_path / "maitento")
    program = tmp_path / "maitento" / "apps" / "analyst" / "analyst.mtc"
    text = program.read_text(encoding="utf-8")
    assert text.count('inputs, "[]", "[]", ""') == 1
    program.write_text(text.replace('inputs, "[]", "[]", ""', 'inputs, "[]", "[\\"files\\"]", ""'), encoding="utf-8")
    data("deploy", "./maitento", cwd=tmp_path, check=0)
    done = ask(data, "--input-question", "Which region?")
    assert done.returncode == 1 and "tools" in done.stderr and model.seen == []
