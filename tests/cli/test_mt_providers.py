# SPDX-License-Identifier: Apache-2.0
"""mt's commands for providers of models, against the server made of paper: where keys come from, and where they
never are."""
import json
import os
import pty
import subprocess
import termios
import time

import pytest
from fake import NOW, Problem
from paper import MT

KEY = "sk-CANARY-7f3a"
KNOWN = {"custom": None, "deepseek": "https://api.deepseek.com/v1", "ollama": "http://127.0.0.1:11434/v1"}


@pytest.fixture()
def kept(fake):
    """What was set: name -> member -> value; "asked" are the bodies as they came."""
    values = {"asked": []}

    def shown(name):
        mine = values.get(name, {})
        url, needs = mine.get("baseUrl") or KNOWN[name], name == "deepseek"
        return {"name": name, "wire": "chat", "baseUrl": url, "schemaMode": mine.get("schemaMode") or "json",
                "concurrency": mine.get("concurrency") or 8,
                "pricePerMillionTokensIn": mine.get("pricePerMillionTokensIn"),
                "pricePerMillionTokensOut": mine.get("pricePerMillionTokensOut"), "hasKey": bool(mine.get("key")),
                "needsKey": needs, "ready": bool(url and (mine.get("key") or not needs)), "isSet": bool(mine),
                "dateCreated": NOW if mine else None, "dateUpdated": NOW if mine else None}

    def known(m):
        if m[1] not in KNOWN:
            raise Problem(404, "notFound", f"no provider '{m[1]}'; known are {', '.join(KNOWN)}")
        return m[1]

    def change(r, m):
        values["asked"].append(r.json)
        values.setdefault(known(m), {}).update(r.json)
        return shown(m[1])

    def delete(_, m):
        values.pop(known(m), None)
        return 204, None

    fake.on("GET", "/v1/providers", lambda r, _: fake.page(r, [shown(n) for n in KNOWN]))
    fake.on("GET", "/v1/providers/([^/]+)", lambda _, m: shown(known(m)))
    fake.on("PUT", "/v1/providers/([^/]+)", change)
    fake.on("DELETE", "/v1/providers/([^/]+)", delete)
    return values


@pytest.mark.parametrize("options", [[], ["--key-stdin"]], ids=["alone", "asked-for"])
@pytest.mark.parametrize("text", [KEY, KEY + "\n", KEY + "\r\n", KEY + "\nwhat follows\n"])
def test_a_key_is_one_line_of_standard_input(mt, kept, options, text):
    done = mt("provider-set", "deepseek", *options, stdin=text.encode())
    assert kept["asked"] == [{"key": KEY}] and done.out == ""
    assert "provider deepseek is ready: https://api.deepseek.com/v1" in done.err and KEY not in done.err


def test_settings_go_as_they_are_given(mt, kept):
    mt("provider-set", "deepseek", "--base-url", "https://p.example/v1", "--schema-mode", "tool", "--concurrency", "3",
       "--price-in", "0.28", "--price-out", "0.420", stdin=b"not read")
    assert kept["asked"].pop() == {"baseUrl": "https://p.example/v1", "schemaMode": "tool", "concurrency": 3,
                                   "pricePerMillionTokensIn": "0.28", "pricePerMillionTokensOut": "0.420"}
    shown = mt("provider-get", "deepseek").out
    for word in ("not ready", "missing", "https://p.example/v1", "tool", "0.28 in, 0.420 out", "3"):
        assert word in shown
    mt("provider-set", "deepseek", "--base-url", "", "--schema-mode", "default", "--concurrency", "", "--price-in", "",
       "--price-out", "", "--clear-key")
    assert kept["asked"].pop() == {"baseUrl": None, "schemaMode": None, "concurrency": None, "key": None,
                                   "pricePerMillionTokensIn": None, "pricePerMillionTokensOut": None}
    mt("provider-set", "deepseek", "--price-in", "1", "--key-stdin", stdin=KEY.encode())
    assert kept["asked"].pop() == {"pricePerMillionTokensIn": "1", "key": KEY}


def test_what_is_missing_is_said(mt, kept):
    assert "it needs a key" in mt("provider-set", "deepseek", "--concurrency", "2").err
    assert "it needs --base-url" in mt("provider-set", "custom", "--concurrency", "2").err
    assert "is ready" in mt("provider-set", "custom", "--base-url", "http://10.0.0.7:8000/v1").err
    assert "plain text" in mt("provider-set", "custom", stdin=KEY.encode()).err
    assert "plain text" not in mt("provider-set", "ollama", stdin=KEY.encode()).err


def test_refused(mt, kept):
    for arguments in ((KEY,), (KEY, "--key-stdin")):  # no key by argument, and none in what is said of it
        said = mt("provider-set", "deepseek", *arguments, stdin=b"x", code=2).err
        assert "never an argument" in said and KEY not in said
    assert "standard input, which has none" in mt("provider-set", "deepseek", stdin=b"", code=2).err
    assert "--clear-key" in mt("provider-set", "deepseek", stdin=b"\n", code=2).err
    assert "one of them" in mt("provider-set", "deepseek", "--clear-key", "--key-stdin", stdin=b"x", code=2).err
    assert "not 'many'" in mt("provider-set", "deepseek", "--concurrency", "many", code=2).err
    assert "schema" in mt("provider-set", "deepseek", "--schema-mode", "strict", code=2).err
    assert "4096" in mt("provider-set", "deepseek", stdin=b"x" * 5000, code=2).err
    assert not kept["asked"]
    for command in ("provider-get", "provider-delete"):
        assert "known are custom, deepseek" in mt(command, "deepsek", code=3).err
    assert "known are" in mt("provider-set", "deepsek", "--concurrency", "2", code=3).err


def test_list_json_and_delete(mt, kept):
    mt("provider-set", "deepseek", "-q", stdin=KEY.encode())
    lines = [line.split() for line in mt("provider-list").out.splitlines()]
    assert [line[0] for line in lines] == list(KNOWN)
    assert lines[0][1:3] == ["not", "ready"] and lines[1][1:3] == ["ready", "set"]
    listed = json.loads(mt("provider-list", "--json").out)
    assert listed[1]["hasKey"] is True and KEY not in json.dumps(listed)
    assert json.loads(mt("provider-get", "ollama", "--json").out)["isSet"] is False
    assert json.loads(mt("provider-set", "ollama", "--concurrency", "1", "--json").out)["concurrency"] == 1
    assert "forgotten" in mt("provider-delete", "deepseek").err and "deepseek" not in kept


def test_names_are_completed(mt, kept):
    assert "deepseek" in mt("__complete", "--", "provider-set", "d").out


def test_a_terminal_is_asked_without_echo(kept, environment):
    master, slave = pty.openpty()
    with subprocess.Popen([MT, "provider-set", "deepseek"], env=environment, stdin=slave, stdout=slave, stderr=slave) as p:
        seen = b""
        deadline = time.monotonic() + 20
        while b"Key of provider deepseek: " not in seen:
            seen += os.read(master, 1000)
        while termios.tcgetattr(slave)[3] & termios.ECHO:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.write(master, KEY.encode() + b"\n")
        assert p.wait(20) == 0
    assert termios.tcgetattr(slave)[3] & termios.ECHO  # as it was
    os.close(slave)
    while True:
        try:
            piece = os.read(master, 1000)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    assert kept["asked"] == [{"key": KEY}] and KEY.encode() not in seen
