# SPDX-License-Identifier: Apache-2.0
"""What is sent, and what is made of answers that come."""
import json

import pytest
from asker import KEY
from provider import Reply, raw, say, sse, stream

SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
                     "additionalProperties": False})
LOOSE = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})


def tail(finish="stop"):
    return [sse({"choices": [{"delta": {}, "finish_reason": finish}]}), sse("[DONE]")]


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_a_stream(asker, provider, wire):
    provider.add(say("Hé", "l", "lo €😀", reasoning=["think", "ing"]))
    a = asker.ask(provider.url, wire=wire, model="m-1")
    assert (a["end"], a["text"], a["reasoning"], a["sentence"]) == ("answered", "Héllo €😀", "thinking", "")
    assert (a["tokensIn"], a["tokensOut"], a["tries"], a["status"], a["model"]) == (7, 5, 1, 200, "m-1")


def test_what_chat_sends(asker, provider):
    asker.ask(provider.url, messages=[["system", "s"], ["task", "t"], ["model", "m"], ["task", "u\0\u00e9"]],
              temperature=0.5, maxTokens=9, model="x")
    seen = provider.seen[0]
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["content-type"] == "application/json" and "expect" not in seen.headers
    assert seen.json == {
        "model": "x", "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5, "max_tokens": 9,
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "t"},
                     {"role": "assistant", "content": "m"}, {"role": "user", "content": "u\0é"}]}


def test_what_messages_sends(asker, provider):
    asker.ask(provider.url, wire="messages", messages=[["system", "s"], ["task", "t"], ["model", "m"], ["task", "u"]])
    seen = provider.seen[0]
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == KEY and "authorization" not in seen.headers
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert seen.json == {
        "model": "m", "max_tokens": 8192, "stream": True, "system": "s",
        "messages": [{"role": "user", "content": "t"}, {"role": "assistant", "content": "m"},
                     {"role": "user", "content": "u"}]}


def test_habits_of_providers(asker, provider):
    provider.add(*[say('{"a":1}')] * 3)
    for name in ("openai", "mistral", "groq"):
        a = asker.ask(provider.url, provider=name, mode="json", schema=SCHEMA, maxTokens=5)
        assert (a["end"], a["text"], a["tokensIn"]) == ("answered", '{"a":1}', -1 if name == "mistral" else 7)
    openai, mistral, groq = [s.json for s in provider.seen]
    assert openai["max_completion_tokens"] == 5 and "max_tokens" not in openai
    assert mistral["max_tokens"] == 5 and "stream_options" not in mistral
    assert groq["stream"] is False and groq["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("schema,strict", [(SCHEMA, True), (LOOSE, False)])
def test_schema_mode(asker, provider, schema, strict):
    asker.ask(provider.url, mode="schema", schema=schema, schemaName="my schema")
    assert provider.seen[0].json["response_format"] == {"type": "json_schema", "json_schema": {
        "name": "my_schema", "strict": strict, "schema": json.loads(schema)}}
    asker.ask(provider.url, wire="messages", mode="schema", schema=schema)
    assert provider.seen[1].json["output_config"] == {"format": {"type": "json_schema", "schema": json.loads(schema)}}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_tool_mode(asker, provider, wire, whole):
    provider.add(say('{"a":', "1}", whole=whole))
    a = asker.ask(provider.url, wire=wire, mode="tool", schema=SCHEMA)
    assert a["end"] == "answered" and json.loads(a["text"]) == {"a": 1}
    sent = provider.seen[0].json
    if wire == "chat":
        assert sent["tools"][0]["function"]["parameters"] == json.loads(SCHEMA)
        assert sent["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    else:
        assert sent["tools"][0]["input_schema"] == json.loads(SCHEMA)
        assert sent["tool_choice"] == {"type": "tool", "name": "answer"}


def test_a_model_that_talks_instead_of_calling(asker, provider):
    provider.add(stream(sse({"choices": [{"delta": {"content": "I can"}}]}),
                        sse({"choices": [{"delta": {"content": "not"}}]}), *tail()))
    a = asker.ask(provider.url, mode="tool", schema=SCHEMA)
    assert (a["end"], a["text"]) == ("answered", "I cannot")


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_no_stream_though_asked(asker, provider, wire):
    provider.add(say("Hello", whole=True, reasoning=["r"]))
    a = asker.ask(provider.url, wire=wire)
    assert (a["end"], a["text"], a["reasoning"], a["tokensIn"]) == ("answered", "Hello", "r", 7)


@pytest.mark.parametrize("split", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_writes_of_any_size(asker, provider, wire, split):
    provider.add(say("Hé€😀", "x", split=split))
    assert asker.ask(provider.url, wire=wire)["text"] == "Hé€😀x"


def test_characters_cut_between_events(asker, provider):
    def part(data):
        return b'data: {"choices":[{"delta":{"content":"' + data + b'"}}]}\n\n'

    provider.add(stream(part(b"a\xe2"), part(b"\x82"), part(b"\xac"), part(b"\\ud83d"), part(b"\\ude00"), *tail()))
    assert asker.ask(provider.url)["text"] == "a€😀"
    provider.add(stream(part(b"\xff\xfe ok"), part(b"\xe2\x82"), part(b"x\\ud83d"), *tail()))
    assert asker.ask(provider.url)["text"] == "\ufffd\ufffd ok\ufffdx\ufffd"


def test_forms_of_a_stream(asker, provider):
    text = b'\xef\xbb\xbf: hello\r\n\r\nevent: x\r\ndata: {"choices":[{"delta":\rdata: {"content":"a"}}]}\r\n\r\n'
    provider.add(stream(text, b": keep-alive\n\n", *tail()))
    assert asker.ask(provider.url)["text"] == "a"
    provider.add(Reply(headers={"Content-Type": "application/json"}, chunked=False,
                       steps=[sse({"choices": [{"delta": {"content": "b"}}]}), *tail()]))
    assert asker.ask(provider.url)["text"] == "b"


def test_blanks_before_a_document(asker, provider):
    whole = json.dumps({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}).encode()
    provider.add(Reply(steps=[b"\n", b"\r\n \n", whole]))
    assert asker.ask(provider.url)["text"] == "a"


def test_parts_and_calls_without_index(asker, provider):
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}
    provider.add(stream(sse({"choices": [{"delta": {"content": [thinking, {"type": "text", "text": "a"}]}}]}), *tail()))
    a = asker.ask(provider.url)
    assert (a["text"], a["reasoning"]) == ("a", "t")
    provider.add(stream(sse({"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "{}"}}]}}]}), *tail()))
    assert asker.ask(provider.url, mode="tool", schema=SCHEMA)["text"] == "{}"


def test_a_connection_that_stays_open_behind_the_end(asker, provider):
    provider.add(stream(sse({"choices": [{"delta": {"content": "a"}}]}), *tail(), 10))
    a = asker.ask(provider.url)
    assert (a["end"], a["text"], a["tries"]) == ("answered", "a", 1)


@pytest.mark.parametrize("wire", ["chat", "messages"])
@pytest.mark.parametrize("text", ['{"a":1,"items":[1,2', '{"a":1}'])
def test_o37_cut_is_said(asker, provider, wire, text):
    provider.add(say(text, finish="length"))
    a = asker.ask(provider.url, wire=wire)
    assert (a["end"], a["text"], a["tries"]) == ("cut", text, 1)
    assert "cut short" in a["sentence"]
    provider.add(say('{"a":1}'))
    assert asker.ask(provider.url, wire=wire)["end"] == "answered"


@pytest.mark.parametrize("wire", ["chat", "messages"])
@pytest.mark.parametrize("whole", [False, True])
def test_o39_refusal(asker, provider, wire, whole):
    provider.add(say(refusal="I will not", whole=whole))
    a = asker.ask(provider.url, wire=wire)
    assert (a["end"], a["text"], a["tries"]) == ("refused", "I will not", 1)
    assert a["sentence"] == "the model refused: I will not"


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_o39_content_filter(asker, provider, wire):
    provider.add(say("So", finish="content_filter"))
    a = asker.ask(provider.url, wire=wire)
    assert (a["end"], a["tries"]) == ("refused", 1)


def test_o39_a_sentence_that_declines_is_an_answer(asker, provider):
    provider.add(say("I would rather not."))
    assert asker.ask(provider.url)["end"] == "answered"


@pytest.mark.parametrize("body", [
    b'{"choices":[]}', b'{"choices":[{"message":null,"finish_reason":null}]}', b'{"a":1}', b"[]", b"{}",
    b"<html>hello</html>", b"hello", b'{"choices":[{"message":{"content":"x"}}]}', b'{"choices":', b"{\0}",
    b'data: {"a":1}\n\n', b"data: hello\n\n", b"data: [1]\n\n", b'data: {"choices":{"0":1}}\n\n'])
@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_wrong_shapes(asker, provider, wire, body):
    provider.add(raw(200, body))
    a = asker.ask(provider.url, wire=wire)
    assert (a["end"], a["tries"]) == ("failed", 1), a
    assert "something else than its protocol (200: " in a["sentence"]


def test_answers_have_a_size(asker, provider):
    piece = sse({"choices": [{"delta": {"content": "x" * (1 << 20)}}]})
    provider.add(stream(*[piece] * 4, *tail()), stream(*[piece] * 5, *tail()), stream(b"data: ", b"y" * (6 << 20)))
    assert len(asker.ask(provider.url)["text"]) == 4 << 20
    for _ in range(2):
        a = asker.ask(provider.url)
        assert (a["end"], a["tries"]) == ("failed", 1) and "larger than 4 MiB" in a["sentence"]


def test_reasoning_beyond_its_size_is_dropped(asker, provider):
    piece = sse({"choices": [{"delta": {"reasoning": "x" * (1 << 20)}}]})
    provider.add(stream(*[piece] * 6, sse({"choices": [{"delta": {"content": "a"}}]}), *tail()))
    a = asker.ask(provider.url)
    assert a["text"] == "a" and 3 << 20 <= len(a["reasoning"]) <= 4 << 20


def test_local_needs_no_key(asker, provider):
    a = asker.ask(provider.url, provider="ollama", key=None)
    assert a["end"] == "answered" and "authorization" not in provider.seen[0].headers
