"""Executes the examples of the guide and of README.md, page by page, each on a server that starts empty: pages.py
says how."""
import os
from pathlib import Path

import pytest

from conftest import debian_is_there, needs_dotnet
import mtsdk
import mtserver
import pages

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
         if "```console" in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_examples_of_the_guide_work(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    if "<!-- needs: debian -->" in text and not debian_is_there():
        pytest.skip("needs Debian's archive")
    sdks = {}
    if "<!-- needs: dotnet -->" in text:
        needs_dotnet()
        for language in mtsdk.LANGUAGES:
            mtsdk.build(language)
        sdks = {"SDKS": str(mtsdk.out_dir()), **mtsdk.dotnet_environment(tmp_path / "home"), "PYTHONPATH": ""}
    with mtserver.Server(image="slim") as server:
        environment = {**os.environ, **server.environment(), "LC_ALL": "C.UTF-8", **sdks}
        if folder := sdks and mtsdk.node_folder():
            environment["PATH"] = f"{folder}:{environment['PATH']}"
        environment.pop("MAITENTO_NAMESPACE", None)
        with pages.model(pages.replies(text), server):
            pages.run(text, tmp_path, environment)
