"""Starts and stops a Maitento server of its own from the build tree: a runner, a server, a state
folder, a scratch disk. Shared by tools/with-server, tools/serve and the tests. Standard library only.
"""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVICE_ID = 61234  # a bare uid and gid, without an account
IMAGES = Path(os.environ.get("MT_IMAGES", "/var/cache/maitento/images"))
READY_SECONDS = 60


class StartError(Exception):
    """The server did not come up; the text says what its log said."""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout=70):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


@contextlib.contextmanager
def unhurried():
    """Ctrl-C and the like wait until what is inside is done: half removed is worse than late."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def without_keys(environment):
    """What programs are started with unless told otherwise: no keys of model providers that the caller has of his own."""
    return {k: v for k, v in environment.items() if not k.endswith("_API_KEY")}


def build_dir():
    return Path(os.environ.get("MT_BUILD", ROOT / "build"))


def program(name):
    places = {"mt": "src/cli/mt", "maitentod": "src/server/maitentod",
              "mt-runner": "src/runner/mt-runner", "mt-init": "src/init/mt-init",
              "mt-session": "src/session/mt-session",
              "mt-net": "src/net/mt-net", "mt-image": "src/image/mt-image"}
    path = build_dir() / places[name]
    if not path.exists():
        raise StartError(f"{path} is not built: run make")
    return str(path)


def ensure_image(name):
    """Makes a base image, or sees that the cache has the one that its definition asks for."""
    if not (IMAGES / "names" / name).exists():
        print(f"making the base image '{name}' (once; it is kept in {IMAGES})", file=sys.stderr)
    definition = ROOT / "images" / f"{name}.mtr"
    if definition.exists() and '"sdk:' in definition.read_text(encoding="utf-8"):
        subprocess.run([ROOT / "tools" / "build-sdks", "--possible"], stdout=subprocess.DEVNULL, check=True)
    command = [program("mt-image"), "build", name, "--images", str(IMAGES)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, errors="replace") as builder:
        for line in builder.stderr:
            if "is up to date" not in line:
                print(line, end="", file=sys.stderr, flush=True)
    if builder.returncode:
        raise StartError(f"the base image '{name}' could not be made: {' '.join(command)}")


class Server:
    """A runner and a server. state: kept there; None: a temporary folder that stop() removes."""

    def __init__(self, image="slim", state=None, instance=None, tcp="127.0.0.1:0",
                 scratch_size="2GiB", server_options=(), runner_options=(), log_level="info",
                 runner_prefix=(), runner_environment=None, server_environment=None):
        self.image = image
        self.temporary = state is None
        self.dir = Path(tempfile.mkdtemp(prefix="maitento-") if state is None else state)
        self.dir.mkdir(parents=True, exist_ok=True)
        os.chmod(self.dir, 0o711)
        self.instance = instance or f"t{os.getpid()}-{os.urandom(3).hex()}"
        self.tcp = tcp
        self.scratch_size = scratch_size
        self.server_options = list(server_options)
        self.runner_options = list(runner_options)
        self.log_level = log_level
        self.runner_prefix = list(runner_prefix)  # a program that executes the runner, with its arguments
        self.runner_environment = runner_environment
        self.server_environment = server_environment
        self.runner = self.server = None
        self.url = self.key = None
        self.socket = str(self.dir / "api.sock")
        self.log_from = {}  # name of a program -> where its log begins this time

    # ---- processes ----

    def _spawn(self, name, options, prefix=(), environment=None):
        log = open(self.dir / f"{name}.log", "ab")
        self.log_from[name] = log.tell()
        command = [*prefix, program(name), *options, "--instance", self.instance,
                   "--service-uid", str(SERVICE_ID), "--service-gid", str(SERVICE_ID),
                   "--state", str(self.dir / "state"), "--log-level", self.log_level]
        with log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env=without_keys(os.environ) if environment is None else environment,
                                    start_new_session=True)

    def said(self, name):
        """What a program logged since it was started; of one that could not go on, its last sentence."""
        with open(self.dir / f"{name}.log", "rb") as log:
            log.seek(self.log_from.get(name, 0))
            text = log.read()[-4000:].decode(errors="replace").rstrip()
        try:
            return json.loads(text.rsplit("\n", 1)[-1])["error"]
        except (ValueError, KeyError, TypeError):
            return text

    def start_runner(self):
        self.runner = self._spawn("mt-runner", [
            "--images", str(IMAGES), "--scratch", str(self.dir / "scratch.img"),
            "--scratch-size", self.scratch_size, "--socket", str(self.dir / "runner.sock"),
            "--init", program("mt-init"), *self.runner_options], self.runner_prefix, self.runner_environment)

    def start_server(self):
        ready = self.dir / "ready.json"
        ready.unlink(missing_ok=True)
        self.server = self._spawn("maitentod", [
            "--runner", str(self.dir / "runner.sock"), "--socket", self.socket,
            "--tcp", self.tcp, "--default-image", self.image, "--disk", "256MiB", "--ready-file", str(ready),
            *self.server_options], (), self.server_environment)
        self._wait(lambda: ready.exists() and self._healthy(), self.server, "maitentod")
        self.url = json.loads(ready.read_text())["url"] or f"unix:{self.socket}"

    def _healthy(self):
        try:
            return self.request("GET", "/v1/health")[0] == 200
        except OSError:
            return False

    def _wait(self, condition, process, name):
        deadline = time.monotonic() + READY_SECONDS
        while not condition():
            if process.poll() is not None:
                raise StartError(f"{name} ended with {process.returncode}: {self.said(name)}")
            if time.monotonic() > deadline:
                raise StartError(f"{name} is not ready after {READY_SECONDS} s: {self.said(name)}")
            time.sleep(0.02)

    def _runner_answers(self):
        status, answer = self.request("GET", "/v1/images")
        return status == 200

    def start(self):
        ensure_image(self.image)
        (self.dir / "state").mkdir(exist_ok=True)
        self.start_server()
        self.start_runner()
        self._wait(self._runner_answers, self.runner, "mt-runner")
        return self

    # ---- talking ----

    def request(self, method, path, body=None, headers=None, timeout=70):
        """One request as the host's root, over the Unix socket: (status, decoded JSON or None)."""
        connection = UnixConnection(self.socket, timeout)
        try:
            data = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, data, headers if data else (headers or {}))
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(raw) if raw else None

    def make_key(self):
        status, answer = self.request("POST", "/v1/keys", {"name": f"server-{os.getpid()}"})
        if status != 201:
            raise StartError(f"no key: {answer}")
        self.key = answer["key"]
        return self.key

    def environment(self):
        if not self.key:
            self.make_key()
        path = f"{Path(program('mt')).parent}:{os.environ.get('PATH', '')}"
        python = [str(ROOT / "sdk" / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PATH": path, "MAITENTO_URL": self.url, "MAITENTO_API_KEY": self.key,
                "PYTHONPATH": os.pathsep.join(python)}

    # ---- the end ----

    def end_runs(self, seconds=30):
        """Terminates every live run and waits for their ends; those of apps first, which start others."""
        deadline = time.monotonic() + seconds
        _, page = self.request("GET", "/v1/app-runs?status=Running&limit=1000")
        for run in (page or {}).get("items", []):
            self.request("POST", f"/v1/app-runs/{run['id']}/cancel")
        while time.monotonic() < deadline:
            live = []
            for status in ("Starting", "Running"):
                _, page = self.request("GET", f"/v1/capsule-runs?status={status}&limit=1000")
                live += [run["id"] for run in (page or {}).get("items", [])]
            if not live:
                return
            for run in live:
                self.request("POST", f"/v1/capsule-runs/{run}/terminate")
            self.request("GET", f"/v1/capsule-runs/{live[0]}?wait=5&until=ended")

    @staticmethod
    def _end(process, seconds=15):
        if not process or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self):
        with unhurried():
            try:
                if self.server and self.server.poll() is None:
                    self.end_runs()
            except (OSError, http.client.HTTPException, ValueError):
                pass
            self._end(self.server)
            self._end(self.runner)
            self.keep_logs()
            if self.temporary:
                self.purge()

    def keep_logs(self):
        """Into the folder of MT_LOGS, where there is one."""
        for log in self.dir.glob("*.log") if "MT_LOGS" in os.environ else []:
            shutil.copy(log, Path(os.environ["MT_LOGS"]) / f"{self.instance}-{log.name}")

    def purge(self):
        """Removes what is left of this instance: processes, groups, the scratch disk, the folder."""
        subprocess.run([program("mt-runner"), "--purge", "--instance", self.instance,
                        "--state", str(self.dir / "state"), "--images", str(IMAGES),
                        "--scratch", str(self.dir / "scratch.img"),
                        "--socket", str(self.dir / "runner.sock"),
                        "--service-uid", str(SERVICE_ID), "--service-gid", str(SERVICE_ID)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()
