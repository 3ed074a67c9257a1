# SPDX-License-Identifier: Apache-2.0
"""Failures: told apart, tried again where that can help, and without the key in any word."""
import email.utils
import json
import os
import socket
import time

import pytest
from asker import KEY, Asker
from provider import BREAK, HANG, Reply, echo, fail, raw, say, sse, stream

WIRES = ["chat", "messages"]


def half(*more):
    return stream(sse({"choices": [{"delta": {"content": "half"}}]}), *more)


@pytest.mark.parametrize("name,variable", [("deepseek", "DEEPSEEK_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
def test_no_key(asker, provider, name, variable):
    a = asker.ask(provider.url, provider=name, key=None)
    assert (a["end"], a["tries"], a["status"]) == ("noKey", 0, 0)
    assert a["sentence"] == f"no key for provider '{name}': mt provider-set {name}, or {variable} at the server's start"
    assert not provider.seen


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status,kind,end", [
    (400, "invalid_request_error", "badRequest"), (401, "authentication_error", "badKey"),
    (402, "billing_error", "badRequest"), (403, "permission_error", "badKey"), (404, "not_found_error", "noModel"),
    (413, "request_too_large", "badRequest"), (422, "invalid_request_error", "badRequest")])
def test_o40_what_cannot_work_is_tried_once(asker, provider, wire, status, kind, end):
    provider.add(fail(status, "it said so", kind=kind))
    a = asker.ask(provider.url, wire=wire)
    assert (a["end"], a["status"], a["tries"], len(provider.seen)) == (end, status, 1, 1)
    assert f"({status}: it said so)" in a["sentence"] and "'custom'" in a["sentence"]


def test_sentences_name_the_way_out(asker, provider):
    provider.add(fail(401, "bad key"), fail(404, "gone"))
    assert asker.ask(provider.url, provider="openai")["sentence"] == (
        "provider 'openai' does not accept the key (401: bad key): give a key that may use it: mt provider-set openai")
    assert asker.ask(provider.url, model="m-7")["sentence"] == (
        "provider 'custom' has no model 'm-7' (404: gone): correct the model's name, or the base URL of the provider")


@pytest.mark.parametrize("wire", WIRES)
def test_o40_what_can_work_is_tried_again(asker, provider, wire):
    tags = {}
    for status in (429, 500, 502, 503, 504, 529):
        provider.add(fail(status), say("good"), when=f"case {status}")
        tags[status] = asker.start(provider.url, f"case {status}", wire=wire)
    for status, tag in tags.items():
        a = asker.answer(tag)
        assert (a["end"], a["text"], a["tries"], a["status"]) == ("answered", "good", 2, 200)
        first, second = [s.at for s in provider.seen if f"case {status}" in str(s.texts)]
        assert 0.25 <= second - first <= 1.5


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_o40_five_tries(asker, provider):
    provider.add(fail(429, "slow down"), when="limit", times=None)
    provider.add(half(BREAK), when="breaks", times=None)
    tags = [asker.start(provider.url, "limit"), asker.start(provider.url, "breaks"),
            asker.start(f"http://127.0.0.1:{free_port()}/v1")]
    limit, breaks, nobody = [asker.answer(tag) for tag in tags]
    assert (limit["end"], limit["status"], limit["tries"]) == ("rateLimit", 429, 5)
    assert "(429: slow down)" in limit["sentence"] and limit["sentence"].endswith("; tried 5 times")
    assert (breaks["end"], breaks["tries"]) == ("failed", 5) and "broke off" in breaks["sentence"]
    assert (nobody["end"], nobody["status"], nobody["tries"]) == ("unreachable", 0, 5)
    assert "cannot be reached at http://127.0.0.1:" in nobody["sentence"] and "onnect" in nobody["sentence"]
    seen = [s.at for s in provider.seen if "limit" in str(s.texts)]
    for at, then, most in zip(seen, seen[1:], (0.5, 1, 2, 4)):
        assert most / 2 <= then - at <= most + 1, seen


def test_o40_waits_for_retry_after(asker, provider):
    until = int(time.time()) + 3
    provider.add(fail(429, retry_after=3), say("good"), when="seconds")
    provider.add(fail(503, retry_after=email.utils.formatdate(until, usegmt=True)), say("good"), when="a date")
    tags = [asker.start(provider.url, "seconds"), asker.start(provider.url, "a date")]
    for tag in tags:
        a = asker.answer(tag)
        assert (a["end"], a["tries"]) == ("answered", 2)
    first, second = [s.at for s in provider.seen if "seconds" in str(s.texts)]
    assert 3 <= second - first <= 5
    assert until <= time.time() <= until + 2


def test_o40_a_wait_beyond_the_deadline_fails_at_once(asker, provider):
    provider.add(fail(429, "slow down", retry_after=3600))
    began = time.monotonic()
    a = asker.ask(provider.url, seconds=10)
    assert time.monotonic() - began < 2
    assert (a["end"], a["status"], a["tries"]) == ("outOfTime", 429, 1)
    assert "(429: slow down)" in a["sentence"]
    assert "it asks to wait 3600 s before another try, and 9 s are left" in a["sentence"]


def test_a_quota_that_is_used_up_is_not_tried_again(asker, provider):
    provider.add(fail(429, "pay", code="insufficient_quota"))
    a = asker.ask(provider.url)
    assert (a["end"], a["tries"]) == ("rateLimit", 1) and "quota" in a["sentence"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_breaks(asker, provider, wire):
    provider.add(say("half", BREAK), say("ha", "lf", chunked=False, finish=None), say("whole"))
    tag = asker.start(provider.url, wire=wire)
    a = asker.answer(tag)
    assert (a["end"], a["text"], a["tries"]) == ("answered", "whole", 3)
    assert [e["event"] for e in asker.events[tag]].count("again") == 2


@pytest.mark.parametrize("event,end,tries", [
    ({"error": {"code": 502, "message": "upstream"}}, "answered", 2),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "answered", 2),
    ({"error": {"code": 400, "message": "no"}}, "badRequest", 1),
    ({"type": "error", "error": {"type": "authentication_error", "message": "no"}}, "badKey", 1)])
def test_errors_within_a_stream(asker, provider, event, end, tries):
    provider.add(half(sse(event)))
    a = asker.ask(provider.url)
    assert (a["end"], a["tries"]) == (end, tries)


def test_a_provider_that_gives_up(asker, provider):
    provider.add(say("so", finish="insufficient_system_resource"), say("so", finish="whim"))
    a = asker.ask(provider.url)
    assert (a["end"], a["tries"]) == ("failed", 2) and "unknown reason (whim)" in a["sentence"]


def test_silence(asker, provider):
    """model-testd waits for 3 s where the server waits for 120. Comments are no silence."""
    provider.add(stream(HANG), say("good"), when="nothing")
    provider.add(half(HANG), say("good"), when="half")
    provider.add(stream(b": wait\n\n", 2, b": wait\n\n", 2, *half().steps,
                        sse({"choices": [{"delta": {}, "finish_reason": "stop"}]})), when="comments")
    tags = {text: asker.start(provider.url, text) for text in ("nothing", "half", "comments")}
    for text, tries in (("nothing", 2), ("half", 2), ("comments", 1)):
        a = asker.answer(tags[text])
        assert (a["end"], a["tries"]) == ("answered", tries)
    first, second = [s.at for s in provider.seen if "nothing" in str(s.texts)]
    assert 3 <= second - first <= 5


def test_the_deadline(asker, provider):
    provider.add(stream(HANG), when="nothing").add(half(HANG), when="half").add(say("a", *[0.3, "b"] * 40), when="slow")
    began = time.monotonic()
    for tag in [asker.start(provider.url, text, seconds=2) for text in ("nothing", "half", "slow")]:
        a = asker.answer(tag)
        assert a["end"] == "outOfTime" and 1.5 < time.monotonic() - began < 3.5
        assert "had not answered in full when the time was over" in a["sentence"]


def test_a_server_that_comes_up_late(asker, provider):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        tag = asker.start(f"http://127.0.0.1:{s.getsockname()[1]}/v1", seconds=2)
        s.accept()[0].close()
        a = asker.answer(tag)
    assert a["end"] in ("unreachable", "outOfTime") and a["tries"] >= 2


def test_no_redirect_is_followed(asker, provider):
    provider.add(raw(302, b"", {"Location": f"{provider.url}/elsewhere"}))
    a = asker.ask(provider.url)
    assert (a["end"], a["tries"], len(provider.seen)) == ("failed", 1, 1)
    assert "answered 302" in a["sentence"] and "base URL" in a["sentence"]


@pytest.mark.parametrize("url", ["", "ftp://127.0.0.1/v1", "file:///etc/passwd", "http://", "nonsense", "http://h/v1?a=b",
                                 f"http://u:{KEY}@h/v1", "http://h/\x01"])
def test_addresses_that_are_none(asker, url):
    asker.start(url, tag="x")
    event = asker.wait_event("x", ("refused",))
    assert KEY not in event["sentence"] and "asking provider 'custom'" in event["sentence"]


@pytest.mark.parametrize("key", ["a b", "a\nHost: x", "ключ", "a\x7f"])
def test_keys_that_would_end_their_header(asker, provider, key):
    asker.start(provider.url, tag="x", key=key)
    assert key not in asker.wait_event("x", ("refused",))["sentence"]


def test_a_schema_that_is_no_json(asker, provider):
    asker.start(provider.url, tag="x", mode="schema", schema="{")
    assert "the schema of the answer: " in asker.wait_event("x", ("refused",))["sentence"]


# ---- the key ----

@pytest.mark.parametrize("wire", WIRES)
def test_the_key_comes_back(asker, provider, wire):
    """asker.answer() looks for the key in all that came."""
    provider.add(echo, say("key: ", KEY, "!", reasoning=[KEY]), say(KEY[:9], KEY[9:], KEY[:5]),
                 say(KEY, whole=True, reasoning=[KEY]), say(refusal=KEY), raw(500, f"you sent {KEY}".encode()),
                 raw(200, f"{KEY} what".encode()))
    a = asker.ask(provider.url, wire=wire)
    assert a["end"] == "badRequest" and "***" in a["sentence"]
    a = asker.ask(provider.url, wire=wire)
    assert (a["text"], a["reasoning"]) == ("key: ***!", "***")
    assert asker.ask(provider.url, wire=wire)["text"] == "***" + KEY[:5]
    assert asker.ask(provider.url, wire=wire)["text"] == "***"
    assert asker.ask(provider.url, wire=wire)["text"] == "***"
    assert "***" in asker.ask(provider.url, wire=wire)["sentence"]


def test_the_key_is_in_no_argument_and_no_environment(asker, provider):
    provider.add(say("a", 1, "b"))
    tag = asker.start(provider.url)
    provider.wait_for(1)
    for name in ("cmdline", "environ"):
        with open(f"/proc/{asker.process.pid}/{name}", "rb") as f:
            assert KEY.encode() not in f.read()
    asker.answer(tag)


# ---- sentences ----

def test_messages_are_bounded_and_clean(asker, provider):
    provider.add(fail(400, "a\x1b[31m\x00b\nc\u202e" + "€" * 1000))
    a = asker.ask(provider.url)
    assert "(400: a[31mb c€" in a["sentence"] and a["sentence"].count("€") < 300
    provider.add(raw(400, b"\xff\xfe<html>" + b"x" * (1 << 20)))
    a = asker.ask(provider.url)
    assert "\ufffd\ufffd<html>xx" in a["sentence"] and len(a["sentence"]) < 500


@pytest.mark.parametrize("body,end,words", [
    (b'[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]', "badKey", "not valid"),
    (b'{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}', "noModel", "Model Not Exist"),
    (b'{"object":"error","message":{"detail":[{"loc":["body","x"],"msg":"Extra inputs"}]},"code":null}', "badRequest",
     "Extra inputs"),
    (b'{"detail":"Unauthorized"}', "badRequest", "Unauthorized"),
    (b'{"error":"model \'x\' not found"}', "noModel", "model 'x' not found"),
    (b'{"error":{"code":400,"message":"x is not a valid model ID"}}', "noModel", "not a valid model ID"),
    (b'{"error":{"code":"content_filter","message":"policy"}}', "refused", "policy"),
    (b"{}", "badRequest", "(400: {})"), (b"", "badRequest", "(400)"), (b'{"error":', "badRequest", '{"error":'),
    (b'{"error":[[[[]]]]}', "badRequest", "(400)"), (b"[" * 5000, "badRequest", "[[["), (b'{"a":"\0"}', "badRequest", "a")])
def test_bodies_of_errors(asker, provider, body, end, words):
    provider.add(raw(400, body, {"Content-Type": "application/json"}))
    a = asker.ask(provider.url)
    assert (a["end"], a["tries"]) == (end, 1) and words in a["sentence"], a


def test_headers_have_a_size(asker, provider):
    provider.add(Reply(headers={f"X-{i}": "y" * 8000 for i in range(50)}, steps=[b"{}"]), times=None)
    a = asker.ask(provider.url, seconds=3)
    assert a["end"] in ("unreachable", "outOfTime", "failed")


# ---- the way there ----

def test_a_proxy_of_the_environment(provider):
    provider.add(say("by proxy"))
    with Asker(env={"http_proxy": f"http://127.0.0.1:{provider.port}"}) as asker:
        assert asker.ask("http://models.invalid/v1")["text"] == "by proxy"
        assert provider.seen[0].path == "http://models.invalid/v1/chat/completions"
        assert asker.ask(provider.url)["text"] == "ok"  # what is on this machine is asked without it
        assert provider.seen[1].path == "/v1/chat/completions"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    files = [str(folder / "key.pem"), str(folder / "cert.pem")]
    assert os.spawnlp(os.P_WAIT, "openssl", "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                      "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                      "-keyout", files[0], "-out", files[1]) == 0
    return files


def test_a_ca_of_ones_own(certificate):
    from provider import Provider
    with Provider(tls=certificate) as provider:
        provider.add(say("by TLS"))
        with Asker(env={"SSL_CERT_FILE": certificate[1]}) as asker:
            assert asker.ask(provider.url)["text"] == "by TLS"
        with Asker() as asker:
            a = asker.ask(provider.url)
            assert (a["end"], a["tries"]) == ("unreachable", 1) and "certificate" in a["sentence"]
        assert len(provider.seen) == 1


def test_the_log_of_the_control_address(provider):
    """What other processes use of the scripted provider."""
    import urllib.request
    base = provider.url.removesuffix("/v1")

    def call(path, body=None):
        return json.load(urllib.request.urlopen(urllib.request.Request(base + path, body, {}), timeout=10))

    call("/control/replies", json.dumps([{"say": ["a", "b"], "when": "special"}]).encode())
    request = {"model": "m", "messages": [{"role": "user", "content": "special"}]}
    said = call("/v1/chat/completions", json.dumps(request).encode())
    assert said["choices"][0]["message"]["content"] == "ab"
    assert json.loads(call("/control/seen")[0]["body"]) == request
