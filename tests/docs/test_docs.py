"""Executes the examples of the guide and of README.md, page by page, each on a server that starts empty.

A fenced block with title="PATH" writes that file. A `console` block runs its `$ ` lines one after
another; the lines below are what it prints: `…` stands for anything, on a line of its own for any
lines. Every line must exit 0.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import debian_is_there
import mtserver

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
         if "```console" in p.read_text(encoding="utf-8")]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.S | re.M)


def pattern(expected):
    """The expected lines as a regular expression."""
    parts = []
    for line in expected:
        if line == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(".*".join(re.escape(p) for p in line.split("…")) + r"[ ]*\n")
    return "".join(parts)


def commands(block):
    """[(command, [expected lines])] of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_examples_of_the_guide_work(page, tmp_path):
    if "<!-- needs: debian -->" in page.read_text(encoding="utf-8") and not debian_is_there():
        pytest.skip("needs Debian's archive")
    with mtserver.Server(image="slim") as server:
        environment = {**os.environ, **server.environment(), "LC_ALL": "C.UTF-8"}
        environment.pop("MAITENTO_NAMESPACE", None)
        for language, title, body in BLOCK.findall(page.read_text(encoding="utf-8")):
            if title:
                path = tmp_path / title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(body, encoding="utf-8")
            if language != "console":
                continue
            for command, expected in commands(body):
                done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
                assert done.returncode == 0, (command, done.returncode, done.stdout)
                assert re.fullmatch(pattern(expected), done.stdout), (
                    f"$ {command}\n{done.stdout}\n-- expected --\n" + "\n".join(expected))
