# SPDX-License-Identifier: Apache-2.0
"""Apps by mt on a server: inputs, console, values, failures, cancel, run again, lists."""
import json
import subprocess

import pytest

from programs import GATE, SLEEPER

import mtserver

GREET = 'string main(string question, string namespaceName) {\n\tPrintLine("asked: " + question);\n\treturn("in " + namespaceName);\n}\n'


@pytest.fixture()
def own(mt, apps):
    """mt in the namespace of the apps."""
    def run(*words, code=0, **more):
        return mt(*words, namespace=apps.ns, check=code, **more)
    return run


@pytest.fixture()
def going(server, apps):
    """A call of mt that goes on: a process with text outputs."""
    started = []

    def run(*words):
        environment = {**server.environment(), "MAITENTO_NAMESPACE": apps.ns}
        started.append(subprocess.Popen([mtserver.program("mt"), *words], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]
    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_073_a_run_by_inputs_in_small_letters(own, apps):
    apps.deploy(analyst=GREET)
    done = own("app-run", "analyst", "--input-question", "Which region, \"a,b=c\"?", "--input-namespacename", "tutorials")
    assert (done.stdout, done.stderr) == ('asked: Which region, "a,b=c"?\n\nin tutorials\n', "")
    done = own("app-run", "analyst", "--quiet", "--input-question=", "--input-NAMESPACENAME=-l")
    assert (done.stdout, done.stderr) == ("in -l\n", "")
    record = json.loads(own("app-run", "analyst", "--json", "--inputs",
                            '{"question": "q", "namespaceName": "n"}').stdout)
    assert record["status"] == "Finished" and record["returnValue"] == "in n"
    assert [line["text"] for line in record["consoleOutputs"]] == ["asked: q\n"]
    assert record["inputs"] == {"question": "q", "namespaceName": "n"}


def test_073_unknown_and_missing_inputs_list_the_right_ones(own, apps):
    apps.deploy(analyst=GREET)
    for words in (["--input-questoin", "x", "--input-namespacename", "t"], ["--input-question", "x"], []):
        done = own("app-run", "analyst", *words, code=2)
        assert done.stdout == "" and "question" in done.stderr and "namespaceName" in done.stderr, done.stderr
    assert "no app 'analist'" in own("app-run", "analist", code=3).stderr
    shown = own("app-get", "analyst").stdout
    assert "input      string      question\ninput      string      namespaceName\nreturns    string\n" in shown
    assert own("app-list").stdout.split()[:2] == ["analyst", "1"]


@pytest.mark.parametrize("type_, value, shown", [
    ("int", "StringToInt(text)", "42"), ("decimal", "StringToDecimal(text) / 5", "8.4"), ("bool", 'text == "42"', "true"),
    ("jsonArray", 'StringSplit(text, "")', '["4","2"]')])
def test_values_that_are_no_strings_are_json(own, apps, type_, value, shown):
    apps.deploy(give=f"{type_} main(string text) {{\n\treturn({value});\n}}\n")
    assert own("app-run", "give", "--input-text", "42").stdout == f"\n{shown}\n"
    assert own("app-run", "give", "--input-text", "42", "-q").stdout == f"{shown}\n"


def test_console_lines_come_while_the_run_goes_on(apps, going):
    apps.deploy(talk={"talk.mtc": 'void main() {\n\tPrintLine("one");\n\tgate();\n\tPrint("two");\n}\n', "gate.mtc": GATE})
    process = going("app-run", "talk")
    assert process.stdout.readline() == "one\n"
    assert process.poll() is None and apps.list()[0]["status"] == "Running"
    apps.open_gate()
    assert process.communicate(timeout=60) == ("two", "") and process.returncode == 0


def test_075_a_throw_is_exit_1_with_its_text(own, apps):
    apps.deploy(fail='void main() {\n\tPrintLine("x");\n\tthrow("The analyst failed: no answer");\n}\n')
    done = own("app-run", "fail", code=1)
    assert (done.stdout, done.stderr) == ("x\n", "The analyst failed: no answer\n  at main (fail.mtc:3:2)\n")
    done = own("app-run", "fail", "--quiet", code=1)
    assert (done.stdout, done.stderr) == ("", "The analyst failed: no answer\n")
    done = own("app-run", "fail", "--json", code=1)
    assert json.loads(done.stdout)["failureDetails"] == "The analyst failed: no answer"
    assert json.loads(own("app-runs", "--json", "--status", "Error", "--limit", "1").stdout)[0]["app"] == "fail"


def test_start_await_and_logs(own, apps, going):
    apps.deploy(talk={"talk.mtc": 'string main() {\n\tPrintLine("one");\n\tLogWarning("slow");\n\tgate();\n\tPrintLine("two");\n'
                                  '\treturn("v");\n}\n', "gate.mtc": GATE})
    run = own("app-start", "talk").stdout.strip()
    following = going("app-logs", "-f", run[-8:])
    assert following.stdout.readline() == "one\n"
    assert own("app-logs", "@last").stdout == "one\n"
    assert f"app run {run} is still Running" in own("app-await", run, "--timeout", "1s", code=124).stderr
    apps.open_gate()
    assert own("app-await", "@last").stdout == "one\ntwo\n\nv\n"
    assert following.communicate(timeout=60) == ("two\n", "") and following.returncode == 0
    assert "  warning  slow\n" in own("app-logs", "--log", "@last").stdout
    assert "returned    \"v\"\n" in own("app-run-get", run).stdout


def test_cancel_and_run_again(own, apps):
    apps.deploy(sleeper=SLEEPER, greet="string main(string name) {\n\treturn(name);\n}\n")
    run = own("app-start", "sleeper").stdout.strip()
    assert f"app run {run}: Error, cancelled" in own("app-cancel", "@last").stderr
    assert "cancelled" in own("app-await", run, code=1).stderr
    first = own("app-start", "greet", "--input-name", "Ada").stdout.strip()
    assert own("app-rerun", first, "--wait").stdout == "\nAda\n"
    again = own("app-rerun", "@last").stdout.strip()
    assert json.loads(own("app-run-get", again, "--json").stdout)["rerunOf"] not in (None, again)
    words = [line.split()[:2] for line in own("app-runs", "--mine").stdout.splitlines()]
    assert words[0] == [again, "greet"] and words[-1] == [run, "sleeper"] and len(words) == 4
    assert len(own("app-runs", "--app", "greet", "--limit", "2").stdout.splitlines()) == 2
