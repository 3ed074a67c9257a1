# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import mtwire  # noqa: E402


def pytest_collection_modifyitems(items):
    why = None
    if os.geteuid() != 0:
        why = "needs root"
    elif not (mtwire.BUILD / "src/runner/mt-runner").exists():
        why = f"needs a build in {mtwire.BUILD} (MT_BUILD)"
    elif not (mtwire.IMAGES / "names/slim").exists():
        why = f"needs the image 'slim' in {mtwire.IMAGES} (mt-image build slim)"
    for item in items:
        if why:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="module")
def runner():
    with mtwire.Runner() as r:
        yield r


@pytest.fixture()
def own():
    """A runner that the test may kill."""
    with mtwire.Runner() as r:
        yield r
