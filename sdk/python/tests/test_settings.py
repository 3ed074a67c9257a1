# SPDX-License-Identifier: Apache-2.0
"""How a client finds its server, member by member."""
import json

import pytest
from maitento import MaitentoError, _settings


@pytest.fixture()
def stored(tmp_path):
    def write(value):
        (tmp_path / ".maitento").mkdir(exist_ok=True)
        (tmp_path / ".maitento" / "settings.json").write_text(value if isinstance(value, str) else json.dumps(value))

    return write


FILE = {"api": {"url": "http://stored", "key": "mt_stored"}, "defaultNamespace": "filed"}


def test_nothing_is_set():
    found = _settings.read(None, None, None)
    assert (found.url, found.api_key, found.namespace) == ("unix:/run/maitento/api.sock", None, None)
    assert found.namespace_source == "your default on the server" and "socket" in found.url_source


def test_the_file(stored):
    stored(FILE)
    assert _settings.read(None, None, None) == (
        "http://stored",
        "~/.maitento/settings.json",
        "mt_stored",
        "filed",
        "~/.maitento/settings.json",
    )


def test_the_environment_wins_over_the_file_and_arguments_over_both(stored, monkeypatch):
    stored(FILE)
    monkeypatch.setenv("MAITENTO_URL", "http://named")
    monkeypatch.setenv("MAITENTO_NAMESPACE", "space")
    found = _settings.read(None, None, None)
    assert (found.url, found.url_source, found.namespace) == ("http://named", "MAITENTO_URL", "space")
    assert found.api_key is None, "the key of the file is for another server"
    monkeypatch.setenv("MAITENTO_API_KEY", "mt_named")
    assert _settings.read(None, None, None).api_key == "mt_named"
    assert _settings.read("http://given", "mt_given", "own") == (
        "http://given",
        "the client's own",
        "mt_given",
        "own",
        "the client's own",
    )


def test_a_key_of_the_file_goes_with_its_own_address_named_otherwise(stored, monkeypatch):
    stored(FILE)
    monkeypatch.setenv("MAITENTO_URL", "http://stored")
    assert _settings.read(None, None, None).api_key == "mt_stored"
    assert _settings.read("http://stored", None, None).api_key == "mt_stored"
    assert _settings.read("http://other", None, None).api_key is None


@pytest.mark.parametrize("value", ["[]", '{"api": []}', '{"api": {"url": 5}, "defaultNamespace": {}}'])
def test_a_file_with_other_things_in_it(stored, value):
    stored(value)
    assert _settings.read(None, None, None).url == "unix:/run/maitento/api.sock"


def test_a_broken_file_is_named(stored):
    stored("{")
    with pytest.raises(MaitentoError) as error:
        _settings.read(None, None, None)
    assert "~/.maitento/settings.json" in str(error.value) and error.value.code == "badRequest"


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a b", "unix:x", "http://h:99999", "http://h/path", "h"])
def test_addresses_that_are_none(clients, url):
    with pytest.raises(MaitentoError) as error:
        clients(url)
    assert error.value.code == "badRequest" and url in str(error.value)


def test_a_password_in_an_address_is_not_repeated(clients):
    with pytest.raises(MaitentoError) as error:
        clients("http://user:hunter2@h")
    assert "hunter2" not in str(error.value)


def test_a_key_that_is_none(clients):
    with pytest.raises(MaitentoError) as error:
        clients("http://h", "mt_a\nInjected: x")
    assert "Injected" not in str(error.value)
