# SPDX-License-Identifier: Apache-2.0
"""The tree of this SDK: what is made is fresh, both clients are the same, tools find nothing."""
import asyncio
import inspect
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import maitento
import pytest

HERE = Path(__file__).resolve().parent.parent


def tool(*words, **options):
    if not shutil.which(words[0], path=options.pop("path", None)):
        pytest.skip(f"{words[0]} is not there: tools/setup test installs it")
    return subprocess.run(words, cwd=HERE, capture_output=True, text=True, timeout=300, check=False, **options)


def test_the_client_for_threads_is_made_from_that_for_tasks():
    if not shutil.which("black"):
        pytest.skip("black is not there: tools/setup test installs it")
    done = tool(str(HERE / "tools" / "make-sync"), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [("black", "--check", "-q", "."), ("flake8",), ("mypy",)],
    ids=lambda words: words[0],
)
def test_linters_find_nothing(words):
    done = tool(*words)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_nothing():
    done = tool("pyright")
    assert done.returncode == 0, done.stdout


def surface(kind):
    """Every public method of a client and of its parts: its arguments as they are written."""

    async def make():
        return kind("unix:/nowhere")

    client, found = asyncio.run(make()), {}
    parts = {"": client, **{name: part for name, part in vars(client).items() if name[0] != "_"}}
    parts.update(files=client.vfs.open("x"), run_files=client.capsule_runs.files("x"), stream=client.events.open())
    for name, part in parts.items():
        for method, function in inspect.getmembers(type(part), inspect.isfunction):
            if method[0] != "_":
                assert function.__doc__, f"{name}.{method} says nothing of itself"
                found[f"{name}.{method}"] = [
                    (
                        p.name,
                        str(p.kind),
                        p.default if p.default is None or isinstance(p.default, (str, int)) else "…",
                        str(p.annotation),
                    )
                    for p in inspect.signature(function).parameters.values()
                ]
    return found


def test_both_clients_have_the_same_calls():
    assert surface(maitento.Maitento) == surface(maitento.AsyncMaitento) and len(surface(maitento.Maitento)) > 110


def test_what_is_public_can_be_imported():
    assert all(hasattr(maitento, name) for name in maitento.__all__)
    assert maitento.__version__ == "26.10.0"


def test_packages_are_built_without_a_network(tmp_path):
    """A wheel and a source distribution with licence, readme and types; the wheel works where nothing else is."""
    shutil.copytree(HERE, tmp_path / "python", ignore=shutil.ignore_patterns("build", "dist", "*.egg-info", "*cache*"))
    command = ["/usr/bin/python3", "-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=tmp_path / "python", capture_output=True, text=True, timeout=300, check=False)
    if "No module named build" in done.stderr:
        pytest.skip("python3-build is not there: tools/setup test installs it")
    assert done.returncode == 0, done.stderr
    wheel = tmp_path / "dist" / "maitento-26.10.0-py3-none-any.whl"
    assert (tmp_path / "dist" / "maitento-26.10.0.tar.gz").exists()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert "maitento/py.typed" in names and "maitento/_sync/client.py" in names
        assert any(name.endswith("LICENSE") for name in names) and not any("test" in name for name in names)
        metadata = archive.read("maitento-26.10.0.dist-info/METADATA").decode()
        archive.extractall(tmp_path / "site")
    assert "Requires-Python: >=3.9" in metadata and "Requires-Dist" not in metadata and "mt.capsule_runs" in metadata
    code = "import maitento; print(maitento.__version__, maitento.__file__)"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(tmp_path / 'site')!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == f"26.10.0 {tmp_path / 'site' / 'maitento' / '__init__.py'}\n"


def test_the_readme_names_every_call():
    text = (HERE / "README.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    missing = {name for name in surface(maitento.Maitento) if name.split(".")[1] not in words}
    assert not missing
