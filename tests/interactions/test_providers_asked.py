# SPDX-License-Identifier: Apache-2.0
"""Each provider that the server knows, as it is asked without more being set than where it is and its key: path, headers,
how it is told of a schema, and what its error bodies come to. docs/reference/providers.md says the same."""
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from asked import SCHEMA, Interactions
from provider import Provider, raw, say

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "providers.md").read_text(encoding="utf-8")
KEY = "sk-each-1234567890"
# What each says of a key that it does not take, in its own shape.
ERRORS = {
    "anthropic": {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
    "google": [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}],
    "mistral": {"message": "Unauthorized", "type": "invalid_request_error", "code": None},
    "ollama": {"error": "unauthorized"},
    "custom": {"object": "error", "message": "Unauthorized", "type": "Unauthorized", "code": 401},
}
USUAL = {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "invalid_api_key"}}


def rows():
    """name -> (protocol, base URL or None, schema mode) of the page's table."""
    found = {}
    for line in PAGE.split("## How a schema")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            found[cells[0].strip("`")] = (cells[1], cells[2].strip("`") if "http" in cells[2] else None, cells[4].strip("`"))
    return found


ROWS = rows()


def mode_of(request):
    if "tools" in request:
        return "tool"
    kind = request.get("response_format", {}).get("type") or ("json_schema" if "output_config" in request else None)
    return {"json_schema": "schema", "json_object": "json", None: "none"}[kind]


@pytest.fixture()
def provider():
    with Provider() as p:
        yield p


def test_the_page_tells_of_all(api):
    known = api.call("GET", "/v1/providers")["items"]
    assert {p["name"] for p in known} == set(ROWS) and len(ROWS) == 9
    for p in known:
        assert ROWS[p["name"]][0].startswith(p["wire"]) and p["schemaMode"] == ROWS[p["name"]][2] or p["isSet"], p


@pytest.mark.parametrize("name", ROWS)
def test_each_is_asked_in_its_own_way(api, ns, provider, name):
    protocol, base, mode = ROWS[name]
    path = urlsplit(base or "http://x/v1").path
    root = provider.url.removesuffix("/v1")
    keyless = name in ("ollama", "custom")
    api.call("PUT", f"/v1/providers/{name}", {"baseUrl": root + path, "schemaMode": None, "key": None if keyless else KEY}, 200)
    asked = Interactions(api, ns)
    asked.deploy(schema=SCHEMA, **{"agents/analyst.mtr": f'model = @ref("{name}.some-model:1")\nprompt = "Be brief."\nmaxTokens = 50\n'})
    status = 400 if name == "google" else 401
    provider.add(say('{"answer": "North"}'), raw(status, json.dumps(ERRORS.get(name, USUAL)).encode(), {"Content-Type": "application/json"}))
    good, bad = asked.run(), asked.run()
    assert (good["status"], good["output"], good["model"]) == ("Finished", '{"answer": "North"}', f"{name}.some-model:1"), good
    seen = provider.seen[0]
    assert seen.path == path + ("/messages" if protocol == "messages" else "/chat/completions")
    assert seen.json["model"] == "some-model:1" and mode_of(seen.json) == mode and 50 in seen.json.values()
    sent = {h: seen.headers.get(h) for h in ("authorization", "x-api-key", "anthropic-version")}
    if keyless:
        assert set(sent.values()) == {None}
    elif protocol == "messages":
        assert (sent["authorization"], sent["x-api-key"], sent["anthropic-version"]) == (None, KEY, "2023-06-01")
    else:
        assert sent == {"authorization": f"Bearer {KEY}", "x-api-key": None, "anthropic-version": None}
    assert (bad["status"], bad["endReason"]) == ("Error", "badKey"), bad
    assert f"{status}" in bad["failureDetails"] and name in bad["failureDetails"] and len(provider.seen) == 2
    api.call("DELETE", f"/v1/providers/{name}", expect=204)
