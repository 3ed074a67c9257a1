# SPDX-License-Identifier: Apache-2.0
"""The packages of the SDKs, and the two tools that make them and lead programs to them."""
import email
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile

import pytest

import mtsdk
from conftest import needs_dotnet
from languages import LANGUAGES

WITH_SDK = mtsdk.ROOT / "tools" / "with-sdk"
BUILD_SDKS = mtsdk.ROOT / "tools" / "build-sdks"


def tool(*command, cwd="/", check=0, **environment):
    done = subprocess.run(list(map(str, command)), cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == check, (command, done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture(params=LANGUAGES)
def language(request):
    if request.param == "csharp":
        needs_dotnet(8)
    mtsdk.build(request.param)
    return request.param


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# ---- what is in them ----

def test_the_npm_package():
    mtsdk.build("typescript")
    (package,) = mtsdk.packages("typescript")
    with tarfile.open(package) as tar:
        names = {n.removeprefix("package/") for n in tar.getnames()}
        about = json.load(tar.extractfile("package/package.json"))
    assert (about["name"], about["version"], about["type"]) == ("@maitento/sdk", "26.10.0", "module")
    assert not about.get("dependencies") and not {"install", "postinstall", "prepare"} & set(about.get("scripts", {}))
    assert {"README.md", "LICENSE", "dist/index.js", "dist/index.d.ts"} <= names
    assert not [n for n in names if n.startswith(("test", "build", "node_modules"))]


def test_the_wheel_and_its_source():
    mtsdk.build("python")
    wheel, source = mtsdk.packages("python")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = email.message_from_bytes(archive.read("maitento-26.10.0.dist-info/METADATA"))
    assert (about["Name"], about["Version"], about["Requires-Python"]) == ("maitento", "26.10.0", ">=3.9")
    assert about.get_all("Requires-Dist") is None and "maitento/py.typed" in names
    assert {n.split("/")[0] for n in names} == {"maitento", "maitento-26.10.0.dist-info"}
    assert any(n.endswith("LICENSE") for n in names)
    with tarfile.open(source) as tar:
        assert "maitento-26.10.0/pyproject.toml" in tar.getnames()


def test_the_nuget_package():
    needs_dotnet(8)
    mtsdk.build("csharp")
    (package,) = mtsdk.packages("csharp")
    with zipfile.ZipFile(package) as archive:
        names = set(archive.namelist())
        about = archive.read("Maitento.Sdk.nuspec").decode("utf-8")
    assert "<id>Maitento.Sdk</id>" in about and "<version>26.10.0</version>" in about
    assert re.search(r"<license [^>]*>Apache-2.0</license>", about) and "<readme>" in about
    assert "<dependency " not in about and mtsdk.__file__.rsplit("/", 2)[0] not in about
    assert {"lib/net8.0/Maitento.Sdk.dll", "lib/net8.0/Maitento.Sdk.xml"} <= names


# ---- building them ----

def test_nothing_is_done_where_nothing_changed(language):
    before = [p.stat().st_mtime_ns for p in mtsdk.packages(language)]
    done = tool(BUILD_SDKS, language)
    assert done.stdout.split() == [str(p) for p in mtsdk.packages(language)] and done.stderr == ""
    assert [p.stat().st_mtime_ns for p in mtsdk.packages(language)] == before


def test_the_same_sources_give_the_same_files(language, tmp_path):
    assert mtsdk.build(language, tmp_path)
    assert files(mtsdk.used(language, tmp_path)) == files(mtsdk.used(language))


@pytest.fixture()
def other_tree(tmp_path, monkeypatch):
    """sdk/python in a tree of the test's own."""
    shutil.copytree(mtsdk.ROOT / "sdk" / "python", tmp_path / "tree" / "sdk" / "python")
    monkeypatch.setattr(mtsdk, "ROOT", tmp_path / "tree")
    return tmp_path / "tree" / "sdk" / "python"


def test_what_changed_is_built_again(other_tree, tmp_path):
    assert mtsdk.build("python", tmp_path / "out")
    (other_tree / "tests").mkdir(exist_ok=True)
    (other_tree / "tests" / "test_more.py").write_text("", encoding="utf-8")  # no part of the package
    assert not mtsdk.build("python", tmp_path / "out")
    mtsdk.packages("python", tmp_path / "out")[0].unlink()
    assert mtsdk.build("python", tmp_path / "out")
    (other_tree / "maitento" / "more.py").write_text("MORE = 1\n", encoding="utf-8")
    assert mtsdk.build("python", tmp_path / "out")
    assert (mtsdk.used("python", tmp_path / "out") / "maitento" / "more.py").exists()


def test_another_version_is_refused(other_tree, tmp_path):
    about = other_tree / "pyproject.toml"
    about.write_text(about.read_text(encoding="utf-8").replace('"26.10.0"', '"26.10.1"'), encoding="utf-8")
    with pytest.raises(mtsdk.SdkError, match="26.10.0"):
        mtsdk.build("python", tmp_path / "out")
    assert not mtsdk.used("python", tmp_path / "out").exists()


def test_what_cannot_be_built_is_said(tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("env", "python3"):
        (bin_folder / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
    done = tool(BUILD_SDKS, "csharp", "--out", tmp_path / "out", check=1, PATH=str(bin_folder))
    assert done.stdout == "" and "no .NET SDK on PATH" in done.stderr
    assert "no .NET SDK on PATH" in tool(BUILD_SDKS, "--possible", "csharp", "--out", tmp_path / "out", PATH=str(bin_folder)).stderr
    assert "'ruby' is no language" in tool(BUILD_SDKS, "ruby", check=2).stderr


# ---- the way to them ----

def test_with_sdk_is_its_command(tmp_path):
    assert tool(WITH_SDK, "python", "sh", "-c", "exit 7", check=7).stdout == ""
    assert "cannot run nothing-like-it" in tool(WITH_SDK, "python", "nothing-like-it", check=127).stderr
    assert "usage: " in tool(WITH_SDK, "python", check=2).stderr and "usage: " in tool(WITH_SDK, "ruby", "true", check=2).stderr
    (tmp_path / "where.py").write_text("import maitento\nprint(maitento.__file__)\n", encoding="utf-8")
    done = tool(WITH_SDK, "python", "/usr/bin/python3", "where.py", cwd=tmp_path)
    assert done.stdout == f"{mtsdk.used('python')}/maitento/__init__.py\n"


def test_with_sdk_leaves_other_modules_of_node_alone(tmp_path):
    (tmp_path / "b.ts").write_text("export const two: number = 2;\n", encoding="utf-8")
    (tmp_path / "a.ts").write_text("""
import { createRequire } from "node:module";
import { Maitento } from "@maitento/sdk";
import { two } from "./b.ts";
const again = createRequire(import.meta.url)("@maitento/sdk");
const none: string = await import("@maitento/other").catch((error) => error.code);
console.log(two, typeof Maitento, again.Maitento === Maitento, none);
""", encoding="utf-8")
    done = tool(WITH_SDK, "typescript", "node", "a.ts", cwd=tmp_path)
    assert done.stdout == "2 function true ERR_MODULE_NOT_FOUND\n"
    found = tool(WITH_SDK, "typescript", "node", "--version").stdout
    assert tuple(map(int, re.match(r"v(\d+)\.(\d+)\.", found).groups())) >= (22, 18)


def test_a_single_file_of_csharp_without_network(tmp_path):
    needs_dotnet()
    (tmp_path / "a.cs").write_text("#:package Maitento.Sdk@26.10.0\n"
                                   "Console.WriteLine(typeof(Maitento.Sdk.MaitentoClient).Assembly.Location.Length > 0);\n", encoding="utf-8")
    done = tool(WITH_SDK, "csharp", "unshare", "--net", "dotnet", "run", "a.cs", cwd=tmp_path,
                **mtsdk.dotnet_environment(tmp_path / "home"))
    assert done.stdout == "True\n"
    assert not list((tmp_path / "home").rglob("*ILCompiler*"))
