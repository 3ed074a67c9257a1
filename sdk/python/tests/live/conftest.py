# SPDX-License-Identifier: Apache-2.0
"""A server of the tree that these tests are in, for all of them; and things to break it with."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parents[3] / folder) for folder in ("tools", "tests", "tests/model"))]
import mtserver  # noqa: E402
from relay import Relay  # noqa: E402
from world import World  # noqa: E402


@pytest.fixture(scope="session")
def live():
    with mtserver.Server(image="slim") as running:
        running.make_key()
        yield running


@pytest.fixture()
def own():
    """A server of the test's own, to be killed."""
    with mtserver.Server(image="slim") as running:
        running.make_key()
        yield running


@pytest.fixture()
def relay(live):
    """A way to the server that can be cut and made silent."""
    made = Relay(int(live.url.rsplit(":", 1)[1]))
    yield made
    made.close()


@pytest.fixture()
def world(live, clients, tmp_path):
    made = World(live, clients, tmp_path)
    yield made
    for run in made.mt.capsule_runs.list(made.namespace, limit=None):
        made.mt.capsule_runs.terminate(run)


@pytest.fixture()
def run(world):
    return world.start('users = [{ name = "sandbox" }]\n')
