# SPDX-License-Identifier: Apache-2.0
"""The SDKs as their users have them: installed from the built packages, and scripts run as the tutorial says."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import mtsdk  # noqa: E402

LANGUAGES = ("typescript", "python", "csharp")
ENDINGS = {"typescript": "ts", "python": "py", "csharp": "cs"}
SECONDS = 180

# Ours comes from the folder of packages, and never from anywhere else. A script needs no others.
NUGET_CONFIG = """<?xml version="1.0" encoding="utf-8"?>
<configuration>
  <packageSources>
    <clear />
    <add key="maitento" value="{feed}" />
  </packageSources>
  <packageSourceMapping>
    <packageSource key="maitento">
      <package pattern="Maitento.*" />
    </packageSource>
  </packageSourceMapping>
</configuration>
"""

# File-based programs are compiled ahead of time unless told otherwise; that needs packages of .NET's own, from the network.
BUILD_PROPS = """<Project>
  <PropertyGroup>
    <PublishAot>false</PublishAot>
    <NuGetAudit>false</NuGetAudit>
  </PropertyGroup>
</Project>
"""


class Language:
    """One language's SDK, installed into a folder of its own; scripts run beside their project."""

    def __init__(self, name, work):
        self.name = name
        self.home = work / "home"
        (self.home / ".local" / "share").mkdir(parents=True)
        self.environment = {"HOME": str(self.home)}
        mtsdk.build(name)
        getattr(self, f"_install_{name}")(work)

    def _install_typescript(self, work):
        self.environment |= mtsdk.node_environment()
        self.modules = work / "installed"
        self.modules.mkdir()
        (self.modules / "package.json").write_text(json.dumps({"private": True, "type": "module"}), encoding="utf-8")
        self._tool("npm", "install", "--no-audit", "--no-fund", "--offline", str(mtsdk.packages("typescript")[0]), cwd=self.modules)
        self.command = ["node"]

    def _install_python(self, work):
        self._tool("/usr/bin/python3", "-m", "venv", str(work / "venv"))
        self._tool(str(work / "venv" / "bin" / "pip"), "install", "--no-index", "--disable-pip-version-check",
                   str(mtsdk.packages("python")[0]))
        self.command = [str(work / "venv" / "bin" / "python")]

    def _install_csharp(self, work):
        self.feed = work / "feed"
        self.feed.mkdir()
        shutil.copy(mtsdk.packages("csharp")[0], self.feed)
        self.environment |= {**mtsdk.dotnet_environment(self.home), "NUGET_PACKAGES": str(work / "nuget")}
        self.command = ["dotnet", "run"]

    def _tool(self, *command, cwd=None):
        done = subprocess.run(command, cwd=cwd, env={**os.environ, **self.environment, "PYTHONPATH": ""}, capture_output=True,
                              text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)

    def settle(self, project):
        """The folder of this language's scripts in a project, where its users would work."""
        folder = project / self.name
        folder.mkdir(exist_ok=True)
        if self.name == "typescript":
            shutil.copytree(self.modules, folder, dirs_exist_ok=True)
        if self.name == "csharp":
            (folder / "nuget.config").write_text(NUGET_CONFIG.format(feed=self.feed), encoding="utf-8")
            (folder / "Directory.Build.props").write_text(BUILD_PROPS, encoding="utf-8")
        return folder

    def run(self, folder, script, *arguments, env, check=0):
        """Runs SCRIPT.ts, .py or .cs in its folder; a CompletedProcess with texts."""
        environment = {**os.environ, **env, **self.environment}
        environment["PATH"] = os.pathsep.join(filter(None, [self.environment.get("PATH", "").split(os.pathsep)[0], env["PATH"]]))
        for name in ("PYTHONPATH", "NODE_OPTIONS", "NODE_PATH"):  # what is installed is what is found
            environment.pop(name, None)
        if "MAITENTO_NAMESPACE" not in env:
            environment.pop("MAITENTO_NAMESPACE", None)
        between = ["--"] if self.name == "csharp" and arguments else []
        done = subprocess.run([*self.command, f"{script}.{ENDINGS[self.name]}", *between, *arguments], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert check is None or done.returncode == check, (self.name, script, done.returncode, done.stdout, done.stderr)
        return done


DATE = r"[A-Z][a-z]{2} +\d+ \d\d:\d\d"


def pattern(text, sizes=()):
    """What a script printed, as a regular expression that holds on other days and file systems: dates, and where a listing
    has folders their sizes, their links and the total. sizes: {in the text: here}. A line … stands for any lines."""
    folders = re.search(r"^d[r-][w-]", text, re.M)
    parts = []
    for line in text.splitlines():
        here = re.escape(line).replace(r"\ ", " ")
        if line == "…":
            here = r"(?:[^\n]*\n)*?"
            parts.append(here)
            continue
        if re.match(r"[d-][r-][w-]", line):
            for there, now in dict(sizes).items():
                here = re.sub(rf" {there} (?=[A-Z])", f" {now} ", here)
            here = re.sub(r"[A-Z][a-z]{2} \+\d+ \+\d\d:\d\d", lambda _: DATE, re.sub(r" +", " +", here))
            if line.startswith("d"):
                here = re.sub(r"^(\w+) \+\d+ (.*?) \+\d+ \+(?=\[A)", r"\1 +\\d+ \2 +\\d+ +", here)
        elif folders and line.startswith("total "):
            here = r"total \d+"
        parts.append(here + r"\n")
    return "".join(parts)


def blocks(section, kind):
    """The fenced blocks of one kind in a piece of Markdown."""
    return re.findall(rf"^```{kind}(?: title=\"[^\"]*\")?\n(.*?)^```$", section, re.S | re.M)
