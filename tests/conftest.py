"""One throwaway server for the whole test session, and small helpers to talk to it."""
import base64
import datetime
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path
import urllib.request
from urllib.parse import quote

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import mtserver  # noqa: E402
import mtsdk  # noqa: E402
import totals  # noqa: E402
from appruns import Apps  # noqa: E402

# Whatever the server answers to a test has to be what api/openapi.yaml says.
CHECK_API = os.environ.get("MT_CHECK_API", "1") != "0"
if CHECK_API:
    import described  # noqa: E402
    mtserver.Server.request = described.checked(mtserver.Server.request)

_names = itertools.count(1)


def debian_is_there():
    """Whether this machine's apt has Debian's archive and reaches it."""
    said = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)dists/$(RELEASE)/InRelease",
                           "Created-By: Packages", "Origin: Debian"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout.split()
    try:
        return bool(said) and urllib.request.urlopen(said[0], timeout=10).status == 200
    except OSError:
        return False


def shared():
    """Where the documents are that some tests read, when they are beside the project."""
    return Path(os.environ.get("MT_SHARED", ROOT.parent / "shared"))


def needs_dotnet(major=10):
    """Skips where there is no .NET SDK of that version on PATH (`dotnet run FILE.cs` came with 10); fails where
    MT_REQUIRE names dotnet, as .ci/run does."""
    if mtsdk.dotnet_version() >= major:
        return
    if "dotnet" in os.environ.get("MT_REQUIRE", "").split():
        pytest.fail(f"dotnet {major} or newer has to be on PATH here (MT_REQUIRE)", pytrace=False)
    pytest.skip(f"C# is not tested: no dotnet {major} or newer on PATH")


def pytest_terminal_summary(terminalreporter):
    """run-parts shows the lines."""
    for line in totals.LINES:
        terminalreporter.write_line(f"# total: {line}")
    count = sum("C# is not tested" in str(r.longrepr) for r in terminalreporter.stats.get("skipped", []))
    if count:
        terminalreporter.write_line(f"# total: {count} C# tests skipped: no dotnet 10 or newer on PATH")


class Api:
    """The HTTP API as its tests want it: JSON in, JSON out, the status checked."""

    def __init__(self, server):
        self.server = server

    def call(self, method, path, body=None, expect=(200, 201, 204), headers=None):
        status, answer = self.server.request(method, path, body, headers)
        if expect is not None:
            assert status in (expect if isinstance(expect, tuple) else (expect,)), (
                f"{method} {path}: {status} {answer}")
        return answer

    def error(self, method, path, body=None, headers=None):
        """An expected failure: (status, code, detail)."""
        status, answer = self.server.request(method, path, body, headers)
        assert status >= 400, f"{method} {path} should fail, gave {status} {answer}"
        assert answer["status"] == status and answer["code"] and answer["detail"], answer
        return status, answer["code"], answer["detail"]

    # ---- files ----

    def raw(self, method, path, data=None, headers=None):
        """(status, headers, bytes) of one request with bytes for a body."""
        connection = mtserver.UnixConnection(self.server.socket, 120)
        try:
            connection.request(method, path, data, headers or {})
            answer = connection.getresponse()
            status, got, raw = answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()
        wrong = CHECK_API and described.check_raw(method, path, status, got, raw)
        assert not wrong, f"{method} {path}: {wrong}"
        return status, got, raw

    def files(self, ns, vfs, path, what="files"):
        raw = path if isinstance(path, bytes) else path.encode()
        return f"/v1/namespaces/{ns}/vfs/{vfs}/{what}?path={quote(raw, safe='/')}"

    def write(self, ns, vfs, path, data):
        data = data.encode() if isinstance(data, str) else data
        status, _, answer = self.raw("PUT", self.files(ns, vfs, path), data)
        assert status in (200, 201), (status, answer)

    def read(self, ns, vfs, path):
        status, _, data = self.raw("GET", self.files(ns, vfs, path))
        assert status == 200, (status, data)
        return data

    # ---- namespaces, deploys, runs ----

    def namespace(self, prefix="t"):
        name = f"{prefix}-{os.getpid()}-{next(_names)}"
        self.call("POST", "/v1/namespaces", {"name": name}, 201)
        return name

    def deploy(self, ns, files, expect=200, **options):
        listing = [{"path": p, "content": c} if isinstance(c, str)
                   else {"path": p, "contentBase64": base64.b64encode(c).decode()}
                   for p, c in files.items()]
        return self.call("POST", f"/v1/namespaces/{ns}/deploy", {"files": listing, **options}, expect)

    def start(self, ns, capsule, body=None, headers=None):
        return self.call("POST", f"/v1/namespaces/{ns}/capsules/{capsule}/runs", body, (200, 201),
                         headers)

    def get(self, run, until="ended", seconds=60):
        """Waits until the run has ended (or is ready), at most so long."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(0, min(30, int(deadline - time.monotonic())))
            answer = self.call("GET", f"/v1/capsule-runs/{run['id']}?wait={left}&until={until}")
            if answer["endReason"] or (until == "ready" and answer["dateReady"]):
                return answer
            assert time.monotonic() < deadline, f"the run is not {until} in {seconds} s: {answer}"

    def run(self, ns, capsule, body=None, seconds=60):
        return self.get(self.start(ns, capsule, body), seconds=seconds)

    def shorten(self, run_id, seconds=1):
        """Ends a run by its maxDuration, so many seconds from now or up to one more; that maxDuration."""
        began = datetime.datetime.fromisoformat(self.call("GET", f"/v1/capsule-runs/{run_id}")["dateCreated"])
        whole = int((datetime.datetime.now(datetime.timezone.utc) - began).total_seconds()) + 1 + seconds
        text = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
        self.call("POST", f"/v1/capsule-runs/{run_id}/extend", {"maxDuration": text}, 200)
        return text

    def terminate(self, run):
        return self.call("POST", f"/v1/capsule-runs/{run['id']}/terminate")

    def capsule(self, ns, startup, name="c", **properties):
        """Deploys a capsule with these startup commands (dicts) and properties; returns its name."""
        self.deploy(ns, {f"capsules/{name}.mtr": mtr({"startup": startup, **properties})})
        return name

    def shell(self, ns, line, vfs=None, name="c", seconds=60, **properties):
        """Runs one shell line in a capsule to its end."""
        properties = {"autoTerminate": True, **properties}
        if vfs:
            properties["vfs"] = [{"vfs": Ref(vfs), "mountName": "work"}]
        self.capsule(ns, [{"command": "sh", "arguments": ["-c", line]}], name, **properties)
        return self.run(ns, name, seconds=seconds)


class Ref(str):
    """A value written as @ref("…")."""


def mtr(value, top=True):
    """Python values as resource language."""
    if isinstance(value, Ref):
        return f'@ref("{value}")'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(mtr(v, False) for v in value) + "]"
    members = "\n".join(f"{k} = {mtr(v, False)}" for k, v in value.items() if v is not None)
    return members + "\n" if top else "{\n" + members + "\n}"


@pytest.fixture(scope="session")
def server():
    with mtserver.Server(image="slim") as running:
        yield running


@pytest.fixture(scope="session")
def api(server):
    return Api(server)


@pytest.fixture()
def own():
    """A server of the test's own, to be killed."""
    with mtserver.Server(image="slim") as running:
        yield Api(running)


@pytest.fixture()
def ns(api):
    return api.namespace()


@pytest.fixture()
def apps(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    own = Apps(api, ns)
    yield own
    for run in own.list("&status=Running"):
        own.cancel(run)


def command_line(server):
    """mt, signed in to server: call it with arguments, get a CompletedProcess with text outputs."""
    environment = {**os.environ, **server.environment()}
    environment.pop("MAITENTO_NAMESPACE", None)

    def run(*arguments, namespace=None, stdin=None, check=None, cwd=None, env=None, timeout=120):
        extra = {"MAITENTO_NAMESPACE": namespace} if namespace else {}
        done = subprocess.run([mtserver.program("mt"), *map(str, arguments)],
                              env={**environment, **extra, **(env or {})}, cwd=cwd,
                              input=stdin if stdin is not None else "",
                              capture_output=True, text=True, timeout=timeout, check=False)
        if check is not None:
            assert done.returncode == check, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    return run


@pytest.fixture(scope="session")
def mt(server):
    return command_line(server)


@pytest.fixture()
def fresh_mt():
    """mt on a server that nobody has used before."""
    with mtserver.Server(image="slim") as own:
        yield command_line(own)


@pytest.fixture(scope="session")
def tutorial(tmp_path_factory):
    """The tutorial's own files, where the documents that they come from are beside the project."""
    tool = shared() / "tools" / "extract-tutorial"
    if not tool.exists():
        pytest.skip("the tutorial's document is not beside the project")
    folder = tmp_path_factory.mktemp("tutorial")
    subprocess.run([sys.executable, str(tool), str(folder)], check=True, capture_output=True)
    for capsule in (folder / "maitento" / "capsules").glob("*.mtr"):
        assert capsule.stat().st_size
    return folder
