# SPDX-License-Identifier: Apache-2.0
"""A server made of paper for each test, and mt signed in to it."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fake import Fake  # noqa: E402
from paper import MT  # noqa: E402


@pytest.fixture()
def fake(tmp_path):
    fake = Fake(tmp_path / "api.sock").start()
    yield fake
    fake.stop()


@pytest.fixture()
def home(tmp_path):
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture()
def environment(fake, home):
    return {"PATH": os.environ["PATH"], "HOME": str(home), "MAITENTO_URL": f"unix:{fake.path}",
            **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}


@pytest.fixture()
def mt(environment, tmp_path):
    def run(*words, code=0, stdin=b"", env=None, cwd=None, timeout=30):
        done = subprocess.run([MT, *[os.fspath(w) for w in words]], input=stdin, capture_output=True,
                              env={**environment, **(env or {})}, cwd=cwd or tmp_path, timeout=timeout, check=False)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        return done
    return run
