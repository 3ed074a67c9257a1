# SPDX-License-Identifier: Apache-2.0
"""The programs of the three SDKs that the tests here run: each language's driver of the scenarios, and its surface.

Python's and C#'s are run by tools/with-sdk, so that the SDK is the package as users have it; TypeScript's are compiled with
it. sdk/conformance/README.md says what the programs take and print.
"""
import atexit
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import mtsdk  # noqa: E402

LANGUAGES = ("typescript", "python", "csharp")
SCENARIOS = ROOT / "sdk" / "conformance"
APART = {"operations.json", "schema.json", "provider.json"}  # beside the scenarios, and none


@functools.lru_cache(maxsize=None)
def lacking(language):
    """What this machine lacks for a language, or None."""
    if language == "csharp" and mtsdk.dotnet_version() < 10:
        return "C# is not tested: no dotnet 10 or newer on PATH"  # the words that tests/conftest.py counts
    if language == "typescript" and not (shutil.which("node") and shutil.which("npm")):
        return "TypeScript is not tested: no node and npm on PATH"
    return None


def need(language):
    """Skips the test where the machine lacks what the language needs; fails where MT_REQUIRE names that, as .ci/run does."""
    tool = {"csharp": "dotnet", "typescript": "node"}.get(language)
    if what := lacking(language):
        if tool in os.environ.get("MT_REQUIRE", "").split():
            pytest.fail(f"{what} (MT_REQUIRE)", pytrace=False)
        pytest.skip(what)


PROGRAMS = {  # language -> (driver, surface), below sdk/LANGUAGE
    "typescript": ("tools/conformance.ts", "tools/surface.ts"),
    "python": ("conformance/driver.py", "conformance/surface.py"),
    "csharp": ("conformance/driver.cs", "conformance/surface.cs"),
}


@functools.lru_cache(maxsize=None)
def typescript_work():
    """sdk/typescript as its own tests have it: compiled in a folder of its own, beside what its tools need."""
    folder = Path(tempfile.mkdtemp(prefix="maitento-typescript-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    mtsdk.copy_sources(ROOT / "sdk" / "typescript", folder)
    os.symlink(mtsdk.node_modules(folder), folder / "node_modules")
    for script in ("build", "build:dev"):
        mtsdk.run(f"npm run {script}", ["npm", "run", "--silent", script], folder)
    return folder


def program(language, what):
    """The words that run a language's program: "driver" or "surface"."""
    path = Path(PROGRAMS[language][what == "surface"])
    assert (ROOT / "sdk" / language / path).exists(), f"sdk/{language}/{path}, its {what}, is not there"
    if language == "typescript":
        return ["node", str(typescript_work() / "build" / path.with_suffix(".js"))]
    runner = {"python": ["/usr/bin/python3"], "csharp": ["dotnet", "run"]}[language]
    return [str(ROOT / "tools" / "with-sdk"), language, *runner, str(ROOT / "sdk" / language / path)]


def themes():
    """The files of scenarios, by their names."""
    return sorted(path for path in SCENARIOS.glob("*.json") if path.name not in APART)


def names_of(paths):
    """`THEME: NAME` of every scenario, in the order in which drivers run them."""
    found = []
    for path in paths:
        theme = json.loads(path.read_text(encoding="utf-8"))
        found += [f"{theme['theme']}: {scenario['name']}" for scenario in theme["scenarios"]]
    return found


def parsed(tap):
    """What TAP says: [(name, "ok", "failed" or "skipped", words on it)], and the plan's number."""
    results, plan = [], None
    for line in tap.splitlines():
        if found := re.match(r"(not )?ok (\d+) - (.*?)(?: # SKIP (.*))?$", line):
            outcome = "failed" if found[1] else "skipped" if found[4] is not None else "ok"
            results.append([found[3], outcome, found[4] or ""])
        elif line.startswith("# ") and results:
            results[-1][2] += line[2:] + "\n"
        elif found := re.match(r"1\.\.(\d+)$", line):
            plan = int(found[1])
    return [tuple(r) for r in results], plan


def begin(language, paths, environment):
    """A driver that runs files of scenarios, with a server's environment."""
    return subprocess.Popen([*program(language, "driver"), *map(str, paths)], env={**os.environ, **environment}, cwd=ROOT,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
