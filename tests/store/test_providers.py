# SPDX-License-Identifier: Apache-2.0
"""Providers of models over HTTP: what holds, who may set it, and where keys never are (field case O-31)."""
import json
import os
import sqlite3

import pytest

import mtserver

CANARY = "sk-CANARY-7f3a"
EVERY = ["anthropic", "custom", "deepseek", "google", "groq", "mistral", "ollama", "openai", "openrouter"]


@pytest.fixture()
def providers(api):
    yield api
    for name in EVERY:
        api.call("DELETE", f"/v1/providers/{name}")


@pytest.fixture()
def user(api):
    """The headers of one who is no administrator."""
    name = api.namespace("person")
    made = api.call("POST", "/v1/users", {"name": name}, 201)
    return {"Authorization": f"Bearer {made['key']}"}


def events(server, after=0):
    with sqlite3.connect(f"file:{server.dir}/state/store/maitento.db?mode=ro", uri=True) as store:
        return store.execute("SELECT number, kind, object_id, change FROM events WHERE number > ? ORDER BY number",
                             (after,)).fetchall()


def test_what_the_server_knows_by_itself(providers):
    listed = providers.call("GET", "/v1/providers")
    assert [p["name"] for p in listed["items"]] == EVERY and listed["next"] is None
    assert not any(p["isSet"] or p["hasKey"] or p["dateCreated"] for p in listed["items"])
    of = {p["name"]: p for p in listed["items"]}
    assert [n for n in EVERY if of[n]["ready"]] == ["ollama"] and not of["ollama"]["needsKey"]
    assert of["custom"]["baseUrl"] is None and of["anthropic"]["wire"] == "messages"
    assert of["deepseek"] == providers.call("GET", "/v1/providers/deepseek")


def test_pages(providers):
    seen, after = [], ""
    while after is not None:
        page = providers.call("GET", f"/v1/providers?limit=4{'&after=' + after if after else ''}")
        seen += [p["name"] for p in page["items"]]
        after = page["next"]
    assert seen == EVERY


def test_what_is_not_given_stays_and_null_takes_away(providers):
    at = "/v1/providers/deepseek"
    first = providers.call("PUT", at, {"key": CANARY})
    assert first["hasKey"] and first["ready"] and first["isSet"] and first["dateCreated"]
    providers.call("PUT", at, {"baseUrl": "https://proxy.example/v1/", "concurrency": 3})
    got = providers.call("PUT", at, {"pricePerMillionTokensIn": "0.28", "pricePerMillionTokensOut": "0.420"})
    assert got == providers.call("GET", at)
    assert (got["baseUrl"], got["concurrency"], got["hasKey"]) == ("https://proxy.example/v1", 3, True)
    assert (got["pricePerMillionTokensIn"], got["pricePerMillionTokensOut"]) == ("0.28", "0.420")
    got = providers.call("PUT", at, {"baseUrl": None, "concurrency": None, "key": None})
    assert got["baseUrl"].startswith("https://api.deepseek.com") and got["concurrency"] == 8 and not got["hasKey"]
    assert got["pricePerMillionTokensIn"] == "0.28" and got["isSet"]
    got = providers.call("PUT", at, {"pricePerMillionTokensIn": None, "pricePerMillionTokensOut": None})
    assert not got["isSet"] and got["dateCreated"] is None  # as if it had never been
    providers.call("PUT", at, {"key": CANARY})
    providers.call("DELETE", at, expect=204)
    providers.call("DELETE", at, expect=204)
    assert not providers.call("GET", at)["isSet"]


def test_refused_with_what_to_do(providers):
    status, code, detail = providers.error("PUT", "/v1/providers/deepsek", {"key": CANARY})
    assert (status, code) == (404, "notFound") and "'deepseek'" in detail and "openrouter" in detail
    assert CANARY not in detail
    for body in ({"key": CANARY + " x"}, {"key": CANARY, "baseurl": "https://a"}, {"key": [CANARY]},
                 {"baseUrl": f"https://{CANARY}@a.example/v1"}, {"baseUrl": f"https://me:{CANARY}@a.example"},
                 {"baseUrl": f"https://a.example/?key={CANARY}"}, {"key": CANARY + "\n"}):
        status, code, detail = providers.error("PUT", "/v1/providers/custom", body)
        assert (status, code) == (400, "badField") and CANARY not in detail, detail
    assert "a key is given apart" in providers.error("PUT", "/v1/providers/custom", {"baseUrl": "https://u@a"})[2]
    assert not providers.call("GET", "/v1/providers/custom")["isSet"]


def test_o32_only_an_administrator_sets(providers, user):
    at = "/v1/providers/groq"
    providers.call("PUT", at, {"key": CANARY})
    for method, body in (("PUT", {"key": "theirs"}), ("PUT", {"baseUrl": "https://evil.example"}), ("DELETE", None)):
        assert providers.error(method, at, body, user)[:2] == (403, "forbidden")
    assert providers.error("PUT", "/v1/providers/none", {"key": "x"}, user)[0] == 403
    # What holds may be seen by who signs in.
    assert providers.call("GET", at, headers=user)["hasKey"]
    assert len(providers.call("GET", "/v1/providers", headers=user)["items"]) == len(EVERY)


def test_each_change_has_its_event(providers, server):
    before = events(server)[-1][0]
    at = "/v1/providers/mistral"
    providers.call("PUT", at, {"key": CANARY})
    providers.call("PUT", at, {"concurrency": 2})
    providers.call("GET", at)
    providers.call("DELETE", at)
    providers.call("DELETE", at)
    assert [e[1:] for e in events(server, before)] == [
        ("provider", "mistral", "created"), ("provider", "mistral", "updated"), ("provider", "mistral", "deleted")]


def test_o31_a_key_is_nowhere_in_clear():
    with mtserver.Server(image="slim", log_level="debug") as server:
        said = []
        for method, path, body in (("PUT", "/v1/providers/openai", {"key": CANARY}), ("GET", "/v1/providers/openai", None),
                                   ("GET", "/v1/providers", None), ("GET", "/v1/doctor", None),
                                   ("PUT", "/v1/providers/openai", {"key": CANARY + "\u0000"}),
                                   ("PUT", "/v1/providers/openai", {"key": CANARY, "x": CANARY}),
                                   ("PUT", "/v1/providers/openai", CANARY)):
            said.append(json.dumps(server.request(method, path, body)[1]))
        assert CANARY not in "".join(said)
        assert server.request("GET", "/v1/providers/openai")[1]["hasKey"]
        for command_line in ("cmdline", "environ"):
            with open(f"/proc/{server.server.pid}/{command_line}", "rb") as file:
                assert CANARY.encode() not in file.read()
        files = [f for f in server.dir.rglob("*") if f.is_file() and f.name not in ("reserve", "scratch.img")]
        assert any(f.name == "maitento.db" for f in files) and any(f.name == "maitentod.log" for f in files)
        assert not [f for f in files if CANARY.encode() in f.read_bytes()]


# ---- keys that the server is started with ----

NAMES = {"anthropic": "ANTHROPIC_API_KEY", "deepseek": "DEEPSEEK_API_KEY", "google": "GEMINI_API_KEY",
         "groq": "GROQ_API_KEY", "mistral": "MISTRAL_API_KEY", "openai": "OPENAI_API_KEY", "openrouter": "OPENROUTER_API_KEY"}


def keyed(server):
    return {p["name"] for p in server.request("GET", "/v1/providers")[1]["items"] if p["hasKey"]}


def log_of(server):
    with open(server.dir / "maitentod.log", encoding="utf-8") as log:
        return log.read()


def of_process(pid, what):
    with open(f"/proc/{pid}/{what}", "rb") as file:
        return file.read()


def test_o31_keys_of_the_environment_are_taken_once_and_wiped():
    marks = {variable: f"sk-CANARY-{name}" for name, variable in NAMES.items()}
    server = mtserver.Server(image="slim", log_level="debug")
    server.server_environment = {**mtserver.without_keys(os.environ), **marks, "MT_TEST_STAYS": "stays"}
    with server:
        assert keyed(server) == set(NAMES)
        environment = of_process(server.server.pid, "environ")
        assert b"CANARY" not in environment and b"MT_TEST_STAYS=stays" in environment
        assert b"CANARY" not in of_process(server.server.pid, "cmdline")
        log = log_of(server)
        assert log.count("has the key that was given at the start from now on") == len(NAMES) and "CANARY" not in log
        assert all(variable in log for variable in marks)
        # What was set stays, whatever the next start is given; what was taken away is taken up again.
        for name in ("openai", "groq"):
            server.request("DELETE", f"/v1/providers/{name}")
        server.request("PUT", "/v1/providers/openai", {"key": "another"})
        before = server.request("GET", "/v1/providers/openai")[1]
        server._end(server.server)
        server.start_server()
        assert keyed(server) == set(NAMES)
        assert server.request("GET", "/v1/providers/openai")[1] == before
        log = log_of(server)[len(log):]
        assert log.count("is not used") == len(NAMES) - 1 and "CANARY" not in log
        files = [f for f in server.dir.rglob("*") if f.is_file() and f.name not in ("reserve", "scratch.img")]
        assert not [f for f in files if b"CANARY" in f.read_bytes()]


def test_keys_of_systemds_credentials(tmp_path):
    """Files of the variables' names, read before the server gives up root; they win over variables."""
    folder = tmp_path / "credentials"
    folder.mkdir(mode=0o700)
    for name, text in (("DEEPSEEK_API_KEY", CANARY + "\n"), ("GROQ_API_KEY", CANARY + " and more\n"),
                       ("OPENAI_API_KEY", "\n"), ("MISTRAL_API_KEY", "x" * 5000)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o400)
    with mtserver.Server(image="slim", server_environment={
            **mtserver.without_keys(os.environ), "CREDENTIALS_DIRECTORY": str(folder),
            "DEEPSEEK_API_KEY": "sk-other bad one", "GEMINI_API_KEY": CANARY, "ANTHROPIC_API_KEY": ""}) as server:
        assert keyed(server) == {"deepseek", "google"}
        log = log_of(server)
        assert "the key that was given at the start cannot be kept" in log and "GROQ_API_KEY" in log
        assert "MISTRAL_API_KEY" in log and "cannot be read" in log and CANARY not in log
        assert b"sk-other" not in of_process(server.server.pid, "environ")
