# SPDX-License-Identifier: Apache-2.0
"""Field case O-18 in the SDKs: all that they wait for, over a way that is cut or falls silent, and with a server that is
killed in the middle; with an event stream open and without. Nothing is a success that is none, and nothing is done twice."""
import json
import time

import pytest

import mtserver
from languages import LANGUAGES, SCENARIOS, begin, lacking, need, parsed
from provider import Provider, from_spec
from relay import Relay

FILES = ["waits", "waits-with-events"]
SECONDS = 240


class Trial:
    """One driver with one file, over a relay of its own or the server's socket."""

    def __init__(self, server, provider, language, name, socket=False):
        self.server = server
        self.relay = None if socket else Relay(int(server.url.rsplit(":", 1)[1]))
        environment = {**server.environment(), "MAITENTO_NAMESPACE": "", "HOME": str(server.dir), "MT_PROVIDER": provider.url,
                       "MAITENTO_URL": f"unix:{server.socket}" if socket else self.relay.url}
        self.before = self.begun_now()
        self.driver = begin(language, [SCENARIOS / "relay" / f"{name}.json"], environment)

    def begun_now(self):
        """The namespaces that have the secret that says that everything is under way."""
        _, page = self.server.request("GET", "/v1/namespaces?limit=1000")
        names = [item["name"] for item in page["items"] if item["name"].startswith("cf-")]
        return {name for name in names if self.server.request("GET", f"/v1/namespaces/{name}/secrets/begun")[0] == 200}

    def begun(self):
        return self.driver.poll() is not None or self.begun_now() - self.before

    def end(self):
        if self.driver.poll() is None:
            self.driver.kill()
        if self.relay:
            self.relay.close()

    def judge(self):
        try:
            out, err = self.driver.communicate(timeout=SECONDS)
        finally:
            self.end()
        results, _ = parsed(out)
        assert [(outcome, words) for _, outcome, words in results] == [("ok", "")] and self.driver.returncode == 0, (results, err[-3000:])


def until(condition, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def under_way(*words, **options):
    """Drivers with each of the files, at the moment when everything is waited for."""
    trials = []
    for name in FILES:  # one after the other: each is known by the namespace that it makes
        trials.append(Trial(*words, name, **options))
        until(trials[-1].begun)
    return trials


@pytest.mark.parametrize("language", LANGUAGES)
def test_o18_the_way_is_cut(server, provider, surroundings, silent, language):
    need(language)  # those of `silent` wait meanwhile
    trials = under_way(server, provider, language)
    for seconds in (3, 1):  # and once more when all of them are back
        came = [trial.relay.came for trial in trials]
        for trial in trials:
            trial.relay.cut(seconds)
        for trial, before in zip(trials, came):
            until(lambda: trial.relay.came > before or trial.driver.poll() is not None)
    for trial in trials:
        trial.judge()


@pytest.fixture(scope="session")
def silent(server, provider, surroundings):
    """The trials of all languages, whose ways die without a word at about the same time. It takes a minute to notice, in
    which the other tests run."""
    trials = {}
    for language in LANGUAGES:
        if not lacking(language):
            try:
                trials[language] = under_way(server, provider, language)
            except AssertionError as error:  # its own test tells it
                trials[language] = error
                continue
            for trial in trials[language]:
                trial.relay.mute()
    yield trials
    for found in trials.values():
        for trial in found if isinstance(found, list) else []:
            trial.end()


@pytest.mark.parametrize("language", LANGUAGES)
def test_o18_the_way_falls_silent(silent, language):
    need(language)
    if isinstance(silent[language], AssertionError):
        raise silent[language]
    for trial in silent[language]:
        trial.judge()


@pytest.mark.parametrize("language", LANGUAGES)
def test_o18_the_server_is_killed(mortal, language):
    need(language)
    own, provider = mortal
    trials = under_way(own, provider, language, socket=True)
    own.server.kill()
    own.server.wait()
    time.sleep(1)  # some of them find nobody there
    own.start_server()
    for trial in trials:
        trial.judge()


@pytest.fixture(scope="module")
def mortal():
    """A server that may be killed; its socket stays where it is."""
    with Provider() as scripted, mtserver.Server(image="slim") as own:
        for spec in json.loads((SCENARIOS / "provider.json").read_text(encoding="utf-8")):
            scripted.add(from_spec(spec), when=spec["when"], times=spec["times"])
        assert own.request("PUT", "/v1/providers/deepseek", {"baseUrl": scripted.url, "key": "sk-1"})[0] == 200
        yield own, scripted
