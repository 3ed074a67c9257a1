# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
from asker import PROGRAM, Asker  # noqa: E402
from provider import Provider  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/model/" in str(item.path) and not PROGRAM.exists():
            item.add_marker(pytest.mark.skip(reason=f"needs a build ({PROGRAM})"))


@pytest.fixture
def provider():
    with Provider() as p:
        yield p


@pytest.fixture
def asker():
    with Asker() as a:
        yield a
