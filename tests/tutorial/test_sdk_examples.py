# SPDX-License-Identifier: Apache-2.0
"""The scripts of examples/ in the three languages, from their folders beside the project, with the SDKs as tools/with-sdk
gives them; they print what their READMEs say, the same in each language."""
import json
import os
import re
import shutil
import subprocess

import pytest

import mtserver
import mtsdk
from conftest import command_line, needs_dotnet
from languages import ENDINGS, LANGUAGES, SECONDS, blocks
from worlds import model, say  # noqa: F401

EXAMPLES = mtserver.ROOT / "examples"
COMMANDS = {"typescript": ["node"], "python": ["/usr/bin/python3"], "csharp": ["dotnet", "run"]}


class Scripts:
    def __init__(self, language, server, work):
        self.language = language
        self.mt = command_line(server)
        self.examples = work / "examples"
        shutil.copytree(EXAMPLES, self.examples)
        self.environment = {**os.environ, **server.environment(), **mtsdk.dotnet_environment(work / "home")}
        self.environment.pop("MAITENTO_NAMESPACE", None)

    def run(self, example, script, *arguments, check=0):
        between = ["--"] if self.language == "csharp" and arguments else []
        done = subprocess.run([mtserver.ROOT / "tools" / "with-sdk", self.language, *COMMANDS[self.language],
                               f"{script}.{ENDINGS[self.language]}", *between, *arguments],
                              cwd=self.examples / example / self.language, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
        return done


@pytest.fixture(scope="module", params=LANGUAGES)
def scripts(request, tmp_path_factory):
    if request.param == "csharp":
        needs_dotnet()
    with mtserver.Server(image="slim") as server:
        yield Scripts(request.param, server, tmp_path_factory.mktemp(request.param))


def texts(example):
    return blocks((EXAMPLES / example / "README.md").read_text(encoding="utf-8"), "text")


def test_each_example_has_its_scripts_in_each_language():
    for example, names in (("sales-report", {"report", "commands"}), ("analyst", {"ask"})):
        for language in LANGUAGES:
            found = {p.stem for p in (EXAMPLES / example / language).glob(f"*.{ENDINGS[language]}")}
            assert found == names, (example, language)


def test_008_009_010_015_016_090_091_092_the_report(scripts):
    report = texts("sales-report")[0]
    for _ in ("first", "again"):
        done = scripts.run("sales-report", "report")
        assert done.stdout == report + "\n" and done.stderr == ""


def test_039_044_046_047_048_057_090_091_commands(scripts):
    wanted = texts("sales-report")[1]
    done = scripts.run("sales-report", "commands")
    assert re.fullmatch(".*".join(map(re.escape, wanted.split("…"))), done.stdout), done.stdout
    assert done.stderr == ""


def test_025_the_report_fails_and_says_why(scripts):
    script = scripts.examples / "sales-report" / "data" / "report.py"
    text = script.read_text(encoding="utf-8")
    script.write_text('raise SystemExit("no stalls today")\n', encoding="utf-8")
    try:
        done = scripts.run("sales-report", "report", check=1)
    finally:
        script.write_text(text, encoding="utf-8")
    assert done.stdout == ""
    assert done.stderr == "the capsule ended Error: Startup command failed: python3 /mnt/data/report.py - no stalls today\n"


def step(**members):
    return say(json.dumps({"why": "To see.", **members}))


def test_073_083_084_087_090_092_the_analyst(scripts, model):
    scripts.mt("provider-set", "deepseek", "--base-url", model.url, "--key-stdin", stdin="sk-test-1234567890\n", check=0)
    model.add(step(command="wc -l < /tmp/logs/access.log"), step(command="jq . /tmp/logs/access.log"), step(answer="The map."))
    done = scripts.run("analyst", "ask", "What is it?")
    assert done.stdout == ("# To see.\n> wc -l < /tmp/logs/access.log\nexit code: 0\n16\n# To see.\n> jq . /tmp/logs/access.log\n"
                           "exit code: 127\n-bash: line 1: jq: command not found\n# To see.\n\nAnswer: The map.\n")
    assert "What is it?" in model.seen[0].texts[1][1]


def test_075_079_the_analyst_finds_no_answer(scripts, model):
    scripts.mt("provider-set", "deepseek", "--base-url", model.url, "--key-stdin", stdin="sk-test-1234567890\n", check=0)
    model.add(*[step(command="true")] * 8)
    assert scripts.run("analyst", "ask", check=1).stderr == "no answer: No answer after 8 rounds\n"
