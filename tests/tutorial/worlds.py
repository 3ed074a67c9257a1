# SPDX-License-Identifier: Apache-2.0
"""A language at a time: its SDK installed, a server that nobody has used before, a project beside its scripts. Fixtures, to
be imported by the tests that ask for them."""
import sys
from pathlib import Path

import pytest

import mtserver
from conftest import command_line, needs_dotnet, shared

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "model"))
from languages import LANGUAGES, Language, blocks  # noqa: E402
from provider import Provider, say  # noqa: E402, F401


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Languages by their names, each installed when it is first asked for."""
    there = {}

    def get(name):
        if name == "csharp":
            needs_dotnet()
        if name not in there:
            there[name] = Language(name, tmp_path_factory.mktemp(name))
        return there[name]
    return get


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request, installed):
    return installed(request.param)


@pytest.fixture(scope="module")
def server_of_its_own(language):
    with mtserver.Server(image="slim") as server:
        yield server


@pytest.fixture(scope="module")
def model():
    with Provider() as provider:
        yield provider


@pytest.fixture(scope="session")
def said():
    """What the tutorial prints: its text blocks by section number."""
    path = shared() / "seeds" / "tutorial-21-sandboxes.md"
    if not path.exists():
        pytest.skip("the tutorial's document is not beside the project")
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    sections = {"2": "## 2. ", "3": "## 3. ", "5": "## 5. ", "6": "## 6. ", "review": "## Review"}
    return {name: blocks(text.split(f"\n{begin}", 1)[1].split("\n## ", 1)[0], "text") for name, begin in sections.items()}


class World:
    """A server, and the folder of a project's scripts in one language."""

    def __init__(self, language, server, project):
        self.language = language
        self.project = project
        self.folder = language.settle(project)
        self.mt = command_line(server)
        self.environment = server.environment()

    def run(self, script, *arguments, check=0, **env):
        return self.language.run(self.folder, script, *arguments, env={**self.environment, **env}, check=check)
