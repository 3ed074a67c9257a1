# SPDX-License-Identifier: Apache-2.0
"""A server of the tree that these tests are in, for all of them; and things to break it with."""
import itertools
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "model"), str(Path(__file__).parent)]
import mtserver  # noqa: E402
from relay import Relay  # noqa: E402

_names = itertools.count(1)


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


class World:
    """A namespace of the test's own."""

    def __init__(self, live, clients, folder):
        self.live, self.clients, self.folder = live, clients, folder
        self.namespace = f"py-{os.getpid()}-{next(_names)}"
        self.mt = clients(live.url, live.key, self.namespace)
        self.mt.namespaces.create(self.namespace)

    def deploy(self, files, **options):
        project = self.folder / f"project{next(_names)}"
        for path, content in files.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(content, encoding="utf-8")
        return self.mt.deploy(project, **options)

    def capsule(self, text="", name="stays"):
        self.deploy({f"capsules/{name}.mtr": 'network = "none"\nmaxDuration = "00:10:00"\n' + text})
        return name

    def start(self, text="", name="stays"):
        run = self.mt.capsules.start(self.capsule(text, name))
        assert self.mt.capsule_runs.wait_until_ready(run, 60).status == "Running"
        return run


@pytest.fixture()
def world(live, clients, tmp_path):
    made = World(live, clients, tmp_path)
    yield made
    for run in made.mt.capsule_runs.list(made.namespace, limit=None):
        made.mt.capsule_runs.terminate(run)


@pytest.fixture()
def run(world):
    return world.start('users = [{ name = "sandbox" }]\n')
