# SPDX-License-Identifier: Apache-2.0
"""One server for the drivers of all SDKs, with a scripted provider and a web server that is none of ours."""
import http.server
import json
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "model"))
from languages import SCENARIOS  # noqa: E402
from provider import Provider, from_spec  # noqa: E402


class Stranger(http.server.BaseHTTPRequestHandler):
    """Answers everything, as a web site would."""

    def do_GET(self):
        body = b"<!doctype html><title>Welcome</title>\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def stranger():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_address[1]}"
        web.shutdown()


@pytest.fixture(scope="session")
def provider():
    with Provider() as scripted:
        for spec in json.loads((SCENARIOS / "provider.json").read_text(encoding="utf-8")):
            scripted.add(from_spec(spec), when=spec["when"], times=spec["times"])
        yield scripted


@pytest.fixture(scope="session")
def surroundings(server, provider, stranger):
    """The environment of drivers."""
    status, _ = server.request("PUT", "/v1/providers/deepseek", {"baseUrl": provider.url, "key": "sk-conformance"})
    assert status == 200
    return {**server.environment(), "MAITENTO_NAMESPACE": "", "HOME": str(server.dir), "MT_PROVIDER": provider.url,
            "MT_STRANGER": stranger}


def pytest_collection_modifyitems(items):
    """Silence takes a minute to notice: it begins with the first test, and is looked at last."""
    items.sort(key=lambda item: ("way_is_cut" not in item.name) + ("falls_silent" in item.name))
