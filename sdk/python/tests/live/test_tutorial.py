# SPDX-License-Identifier: Apache-2.0
"""The tutorial's scripts, extracted byte for byte, run unchanged."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from world import ROOT
from provider import Provider, say

import mtserver

REPORT = """Capsule finished: Finished

# Sales report

| Product | Units | Revenue |
|---|---:|---:|
| Desk lamp | 10 | 599.00 |
| Tea sampler | 43 | 516.00 |
| Blue mug | 44 | 374.00 |

Total revenue: 1489.00

"""
LISTING = """exit code 0
total 12
-rw-rw-rw- 1 maitento maitento 171 DATE report.md
-rw-rw-rw- 1 maitento maitento 387 DATE sales.csv
-rw-rw-rw- 1 maitento maitento 895 DATE summarise.py

exit code 1
cat: /mnt/data/sales.csv: Permission denied

"""


def test_092_the_scripts_of_the_tutorial_run_unchanged(tmp_path):
    shared = Path(os.environ.get("MT_SHARED", ROOT.parent / "shared"))
    if not (shared / "tools" / "extract-tutorial").exists():
        pytest.skip("the tutorial's document is not beside the project")
    subprocess.run(
        [sys.executable, str(shared / "tools" / "extract-tutorial"), str(tmp_path)], check=True, capture_output=True
    )
    steps = [
        {"done": False, "command": "ls /tmp/data", "answer": ""},
        {"done": True, "command": "", "answer": "North, 546.80"},
    ]
    with mtserver.Server(image="slim") as own, Provider() as provider:
        own.request("PUT", "/v1/providers/deepseek", {"baseUrl": provider.url, "key": "sk-1"})
        provider.add(*[say(json.dumps(step)) for step in steps])
        environment = {**os.environ, **own.environment()}

        def script(name, *words):
            done = subprocess.run(
                [sys.executable, f"{name}.py", *words],
                cwd=tmp_path / "python",
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, "")
            return re.sub(r"[A-Z][a-z]{2} +\d+ [\d:]+", "DATE", done.stdout)

        assert script("sandbox") == REPORT and script("sandbox") == REPORT, "twice, too"
        assert script("commands") == LISTING
        assert script("analyst", "Which region?") == (
            "$ ls /tmp/data\nexit code: 0\nreport.md\nsales.csv\nsummarise.py\n\nAnswer: North, 546.80\n"
        )
        assert any("Which region?" in text for _, text in provider.seen[0].texts)
