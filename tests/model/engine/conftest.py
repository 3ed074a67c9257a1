# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

for folder in ("../../interactions", "."):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), folder))
from asked import Interactions  # noqa: E402
from engine import Absent, Engine  # noqa: E402


_absent = []  # why there is no engine here


@pytest.fixture(scope="session")
def engine():
    try:
        with Engine() as running:
            yield running
    except Absent as why:
        _absent.append(str(why))
        pytest.skip(str(why))


def pytest_terminal_summary(terminalreporter):
    for why in _absent:
        terminalreporter.write_line(f"# total: no model was asked through a real engine: {why}")


@pytest.fixture()
def asked(api, mt, ns, engine):
    mt("provider-set", "custom", "--base-url", engine.url, "--schema-mode", "schema", check=0)
    return Interactions(api, ns)
