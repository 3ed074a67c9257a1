# SPDX-License-Identifier: Apache-2.0
"""A real engine for models on this machine: llama.cpp from npm, a model that make-model writes, serve.mjs before it.

The packages are installed once and kept in /var/cache/maitento/engine, by the digest of what asks for them. Absent
raises where this machine cannot have it, with the reason.
"""
import fcntl
import hashlib
import json
import os
import platform
import re
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("MT_ENGINE_CACHE", "/var/cache/maitento/engine"))
NODE_MAJOR = 20  # what the packages ask for
INSTALL_SECONDS, START_SECONDS = 180, 60
# What npm says where there is no network, or its registry does not have the packages.
OUT_OF_REACH = r"npm (?:error|ERR!) code (ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|E404|ETARGET|E403|E5\d\d)"


class Absent(Exception):
    """This machine cannot have the engine."""


def check_machine():
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise Absent(f"the engine is for Linux on x86_64, this is {platform.system()} on {platform.machine()}")
    if "avx2" not in Path("/proc/cpuinfo").read_text().split():
        raise Absent("the engine needs a processor with AVX2")
    for name in ("node", "npm"):
        if not shutil.which(name):
            raise Absent(f"{name} is not installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < NODE_MAJOR:
        raise Absent(f"the engine needs Node {NODE_MAJOR}, this is {version}")


def install(folder):
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    # The optional packages are builds for other machines; nothing of any package is run while it is installed.
    done = subprocess.run(["npm", "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund",
                           "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--loglevel=error", "--cache", str(folder / ".npm")], cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=INSTALL_SECONDS, check=False)
    if done.returncode:
        code = re.search(OUT_OF_REACH, done.stdout)
        if code:
            raise Absent(f"npm cannot have the engine's packages here: {code.group(1)}")
        raise RuntimeError(f"npm ci failed ({done.returncode}):\n{done.stdout[-2000:]}")
    shutil.rmtree(folder / ".npm", ignore_errors=True)


def packages(cache=CACHE):
    """The folder with the packages; others go when what asks for them has changed."""
    asked = (HERE / "package.json").read_bytes() + (HERE / "package-lock.json").read_bytes()
    folder = cache / hashlib.sha256(asked).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for old in cache.glob("[0-9a-f]*"):
                shutil.rmtree(old)
            with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as work:
                install(Path(work) / "engine")
                os.rename(Path(work) / "engine", folder)
    return folder


class Engine:
    """The server of one model, as long as it is entered: url is a provider's base URL, MODEL what it is called."""
    MODEL = "noise"

    def __enter__(self):
        check_machine()
        folder = packages()
        self._work = tempfile.TemporaryDirectory()
        model = Path(self._work.name) / f"{self.MODEL}.gguf"
        subprocess.run([HERE / "make-model", model], check=True)
        self.process = subprocess.Popen(["node", HERE / "serve.mjs", folder, model], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=None, text=True)
        try:
            ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
            line = self.process.stdout.readline() if ready else ""
            assert line, f"the engine did not start: exit status {self.process.poll()}"
            self.url = f"http://127.0.0.1:{json.loads(line)['port']}/v1"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self._work.cleanup()
