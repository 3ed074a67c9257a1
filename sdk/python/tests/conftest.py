# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from scripted import Scripted  # noqa: E402
from twin import Clients  # noqa: E402


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """Nothing of the one who runs the tests."""
    for name in ("MAITENTO_URL", "MAITENTO_API_KEY", "MAITENTO_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(params=["threads", "tasks"])
def clients(request):
    """Makes clients: each test runs with Maitento and with AsyncMaitento."""
    made = Clients(request.param)
    yield made
    made.stop()


@pytest.fixture()
def server():
    """A server that does what the test says."""
    scripted = Scripted()
    yield scripted
    scripted.stop()


@pytest.fixture()
def mt(clients, server):
    return clients(server.url, "mt_key", "work")
