# SPDX-License-Identifier: Apache-2.0
"""Which server mt asks, as whom, and what it makes of refusals; namespaces."""
import json
import time

import pytest
from fake import Problem
from paper import MT, vfs, write_settings


def test_where_settings_come_from(mt, fake, home):
    write_settings(home, api={"url": "http://127.0.0.1:1", "key": "mt_file"}, defaultNamespace="filed")
    rows = json.loads(mt("config-get", "--json").out)
    assert rows["url"]["source"] == "MAITENTO_URL"
    assert rows["key"] == {"value": None, "set": False, "source": None}  # it was stored for another server
    assert rows["namespace"] == {"value": "filed", "source": "~/.maitento/settings.json"}
    rows = json.loads(mt("config-get", "--json", env={"MAITENTO_URL": ""}).out)
    assert rows["url"]["value"] == "http://127.0.0.1:1" and rows["key"]["set"]
    rows = json.loads(mt("config-get", "--json", "-n", "x", env={"MAITENTO_NAMESPACE": "env"}).out)
    assert rows["namespace"] == {"value": "x", "source": "--namespace"}
    assert "mt_" not in mt("config-get", env={"MAITENTO_API_KEY": "mt_secret"}).out


def test_settings_that_others_may_read_and_broken_ones(mt, home):
    path = write_settings(home, defaultNamespace="work")
    path.chmod(0o644)
    assert "chmod 600" in mt("config-get").err
    path.write_text("{")
    assert "settings.json: line 1" in mt("config-get", code=2).err


def test_login_reads_the_key_tries_it_and_keeps_the_rest(mt, fake, home):
    path = write_settings(home, defaultNamespace="kept", other={"a": 1})
    mt("login", f"unix:{fake.path}", stdin=b"mt_bad\n", code=4)
    assert "api" not in json.loads(path.read_text())
    done = mt("login", f"unix:{fake.path}", stdin=b"mt_good\n")
    assert "signed in" in done.err and "mt_good" not in done.err + done.out
    assert json.loads(path.read_text()) == {"defaultNamespace": "kept", "other": {"a": 1},
                                            "api": {"url": f"unix:{fake.path}", "key": "mt_good"}}
    assert path.stat().st_mode & 0o777 == 0o600
    assert "ada" in mt("whoami", env={"MAITENTO_URL": ""}).out
    assert fake.requests[-1].headers["Authorization"] == "Bearer mt_good"


def test_login_local_needs_no_key(mt, fake, home):
    mt("login", "--local")
    settings = json.loads((home / ".maitento" / "settings.json").read_text())
    assert settings == {"api": {"url": f"unix:{fake.path}"}}
    assert "unix:/PATH" in mt("login", "--local", "http://localhost", code=2).err


def test_login_without_a_key_and_with_nonsense(mt, fake):
    assert "has none" in mt("login", f"unix:{fake.path}", code=2).err
    assert "empty" in mt("login", f"unix:{fake.path}", stdin=b"\n", code=2).err
    assert "too long" in mt("login", f"unix:{fake.path}", stdin=b"x" * 2000, code=2).err
    assert "no API key" in mt("whoami", env={"MAITENTO_API_KEY": "a\nb"}, code=2).err


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://u:secret@h", "http://h:0", "http://h:99999", "unix:rel",
                                 "http://h/path", "http://[::1", "http://h?x", "localhost:80", "unix:/" + "x" * 200])
def test_addresses_that_are_none(mt, url):
    done = mt("whoami", env={"MAITENTO_URL": url}, code=2)
    assert "MAITENTO_URL" in done.err and "secret" not in done.err


def test_unreachable_is_6_and_at_once(mt, fake):
    begin = time.monotonic()
    for url in ("http://127.0.0.1:1", "https://127.0.0.1:1", "unix:/nonexistent"):
        if "https" in url and "capsule" in MT:
            continue
        done = mt("capsule-start", "report", env={"MAITENTO_URL": url}, code=6)
        assert "mt doctor" in done.err
    assert time.monotonic() - begin < 20


def test_exit_codes_and_words_of_server_errors(mt, fake):
    for status, code, exit_code in ((400, "badField", 2), (401, "unauthenticated", 4), (403, "forbidden", 4),
                                    (404, "notFound", 3), (409, "conflict", 5), (410, "gone", 3),
                                    (429, "rateLimited", 1), (500, "internal", 1), (507, "diskFull", 1),
                                    (418, "unheardOf", 2), (599, "unheardOf", 1)):
        def fail(_r, _m, status=status, code=code):
            raise Problem(status, code, "said \x1b[31mso", help="do that", field="name")
        fake.on("GET", "/v1/images", fail)
        done = mt("image-list", code=exit_code)
        assert done.err == "mt: said ?[31mso\n    do that\n" and done.out == ""
        document = json.loads(mt("image-list", "--json", code=exit_code).err)
        assert document["code"] == code and document["status"] == status


def test_answers_that_are_no_json(mt, fake):
    fake.on("GET", "/v1/images", lambda r, m: (200, b"<html>", {"Content-Type": "text/html"}))
    assert "is it a maitento server?" in mt("image-list", code=2).err
    fake.on("GET", "/v1/images", lambda r, m: (502, b"<html>bad gateway", {}))
    assert "answered with status 502" in mt("image-list", code=6).err
    fake.on("GET", "/v1/images", lambda r, m: {"items": [{"name": 5, "components": "x"}], "next": 7})
    mt("image-list")
    fake.on("GET", "/v1/images", lambda r, m: {"items": [{}], "next": "same"})
    assert "has no end" in mt("image-list", code=1).err


def test_not_found_names_the_namespace_and_its_source(mt, fake):
    assert "namespace 'work' is from your default on the server" in mt("vfs-get", "x", code=3).err
    done = mt("vfs-get", "x", env={"MAITENTO_NAMESPACE": "other"}, code=3)
    assert "no namespace 'other'" in done.err and "is from MAITENTO_NAMESPACE" in done.err
    fake.default = None
    assert "mt namespace-create NAME" in mt("vfs-list", code=2).err


def test_namespace_create_says_what_became_default(mt, fake):
    fake.default = None
    fake.namespaces = {}
    assert "is your default now" in mt("namespace-create", "work").err
    assert "your default stays work; mt default-namespace-set tutorials changes it" in \
        mt("namespace-create", "tutorials").err
    done = mt("namespace-create", "tutorials", code=5)
    assert "already" in done.err
    assert mt("namespace-list").out.split()[:1] == ["work"]
    assert mt("namespace-create", "third", "--quiet").err == ""


def test_lists_follow_their_pages(mt, fake):
    fake.namespaces["work"] = {f"v{i:05d}": {} for i in range(2500)}
    assert len(json.loads(mt("vfs-list", "--json").out)) == 2500


def test_settings_of_wrong_types_and_a_home_that_is_not_there(mt, home, fake, tmp_path):
    for bad in ({"api": {"url": 5}}, {"api": {"url": f"unix:{fake.path}", "key": []}}, {"defaultNamespace": {}}):
        write_settings(home, **bad)
        assert "must be a text (correct or remove it)" in mt("config-get", code=2).err
    nowhere = tmp_path / "nowhere"
    assert "cannot make the folder" in mt("login", "--local", env={"HOME": str(nowhere)}, code=3).err
    assert not nowhere.exists()
