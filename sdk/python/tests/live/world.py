# SPDX-License-Identifier: Apache-2.0
"""Where these tests are, and a namespace of a test's own."""
import itertools
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
_names = itertools.count(1)


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
