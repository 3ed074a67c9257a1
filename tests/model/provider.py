# SPDX-License-Identifier: Apache-2.0
"""A scripted provider of models: it speaks OpenAI's chat completions and Anthropic's messages byte for
byte, says what a test tells it to, and keeps what it was asked, with times.

In a test:

    with Provider() as p:
        p.add(say("Hel", "lo"))                          # the next request
        p.add(fail(429, "slow down", retry_after=3), when="summary")   # the next one that holds the word
        ...
        assert p.seen[0].json["model"] == "m"

Each reply serves one request (times=None: all that match). What no reply matches is answered "ok". From
another process: `provider.py --port N`, then POST /control/replies (see from_spec) and GET /control/seen.
"""
import argparse
import asyncio
import json
import socket
import ssl
import struct
import sys
import threading
import time
from dataclasses import dataclass, field

BREAK = object()  # the connection is reset
HANG = object()  # nothing more is sent until the client leaves


@dataclass
class Seen:
    """A request as it came."""
    at: float  # time.monotonic()
    path: str
    headers: dict  # names in lower case
    body: bytes
    left_at: float = None  # when the client had gone before the answer's end
    done_at: float = None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def wire(self):
        return "messages" if self.path.endswith("/messages") else "chat"

    @property
    def texts(self):
        """(role, text) of each message; the system's is first with both protocols."""
        found = [(m["role"], m["content"]) for m in self.json["messages"]]
        return ([("system", self.json["system"])] if "system" in self.json else []) + found

    @property
    def tool(self):
        return bool(self.json.get("tools"))

    @property
    def stream(self):
        return self.json.get("stream", False)


@dataclass
class Reply:
    """steps: bytes (one write each), numbers (seconds to wait), BREAK, HANG."""
    status: int = 200
    headers: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    chunked: bool = True  # else the connection's end is the answer's


# ---- answers ----

def sse(data, event=None):
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return ((f"event: {event}\n" if event else "") + f"data: {text}\n\n").encode()


def is_text(piece):
    return isinstance(piece, str)


def chat_events(request, pieces, finish, usage, reasoning, refusal):
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": request.json["model"]}

    def chunk(delta, why=None):
        return sse({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": why}]})

    yield chunk({"role": "assistant", "content": None if request.tool else ""})
    for text in reasoning:
        yield chunk({"reasoning_content": text})
    for i, text in enumerate(pieces):
        if not is_text(text):
            yield text
        elif request.tool:
            call = {"index": 0, "function": {"arguments": text}}
            if i == 0:
                call |= {"id": "call_1", "type": "function"}
                call["function"]["name"] = request.json["tools"][0]["function"]["name"]
            yield chunk({"tool_calls": [call]})
        else:
            yield chunk({"content": text})
    if refusal:
        yield chunk({"refusal": refusal})
    yield chunk({}, {"stop": "tool_calls" if request.tool else "stop"}.get(finish, finish))
    if usage and request.json.get("stream_options", {}).get("include_usage"):
        yield sse({**base, "choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}})
    yield sse("[DONE]")


def chat_whole(request, text, finish, usage, reasoning, refusal):
    message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
    if request.tool:
        name = request.json["tools"][0]["function"]["name"]
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function",
                                                     "function": {"name": name, "arguments": text}}]}
    if reasoning:
        message["reasoning_content"] = "".join(reasoning)
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request.json["model"],
              "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    if usage:
        answer["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return answer


STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


def messages_events(request, pieces, finish, usage, reasoning, refusal):
    usage = usage or (0, 0)
    why = "refusal" if refusal else STOP_REASONS.get(finish, finish)
    if why == "stop":
        why = "tool_use" if request.tool else "end_turn"

    def event(kind, **members):
        return sse({"type": kind, **members}, kind)

    yield event("message_start", message={
        "id": "msg_1", "type": "message", "role": "assistant", "model": request.json["model"], "content": [],
        "stop_reason": None, "usage": {"input_tokens": usage[0], "output_tokens": 1}})
    yield event("ping")
    index = 0
    if reasoning:
        yield event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
        for text in reasoning:
            yield event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": text})
        yield event("content_block_stop", index=0)
        index = 1
    block = {"type": "text", "text": ""}
    if request.tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": request.json["tools"][0]["name"], "input": {}}
    yield event("content_block_start", index=index, content_block=block)
    for text in [*pieces, *([refusal] if refusal else [])]:
        if not is_text(text):
            yield text
        elif request.tool:
            yield event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": text})
        else:
            yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})
    yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": why, "stop_sequence": None},
                usage={"output_tokens": usage[1]})
    yield event("message_stop")


def messages_whole(request, text, finish, usage, reasoning, refusal):
    usage = usage or (0, 0)
    content = [{"type": "thinking", "thinking": "".join(reasoning)}] if reasoning else []
    if request.tool:
        content.append({"type": "tool_use", "id": "toolu_1", "name": request.json["tools"][0]["name"],
                        "input": json.loads(text)})
    else:
        content.append({"type": "text", "text": refusal or text})
    why = "refusal" if refusal else STOP_REASONS.get(finish, finish)
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": request.json["model"],
            "content": content, "stop_reason": "end_turn" if why == "stop" else why,
            "usage": {"input_tokens": usage[0], "output_tokens": usage[1]}}


def say(*pieces, finish="stop", usage=(7, 5), reasoning=(), refusal=None, whole=None, split=None, chunked=True):
    """An answer in the protocol, and the mode, of whoever asks. pieces: texts, and numbers to wait for.
    whole: no stream, though one was asked for. split: the stream's bytes in writes of so many."""
    def reply(request):
        if whole or not request.stream:
            text = "".join(p for p in pieces if is_text(p))
            make = messages_whole if request.wire == "messages" else chat_whole
            body = json.dumps(make(request, text, finish, usage, reasoning, refusal), ensure_ascii=False).encode()
            return Reply(headers={"Content-Type": "application/json"},
                         steps=[*(p for p in pieces if not is_text(p)), body])
        make = messages_events if request.wire == "messages" else chat_events
        steps = list(make(request, pieces, finish, usage, reasoning, refusal))
        return stream(*steps, split=split, chunked=chunked)
    return reply


def stream(*steps, split=None, chunked=True):
    """A stream of exactly these bytes."""
    if split:
        whole = b"".join(s for s in steps if isinstance(s, bytes))
        steps = [whole[i:i + split] for i in range(0, len(whole), split)]
    return Reply(headers={"Content-Type": "text/event-stream"}, steps=list(steps), chunked=chunked)


def fail(status, message="no", code=None, kind=None, retry_after=None, headers=None):
    """An error in the protocol of whoever asks."""
    def reply(request):
        error = {"message": message, "type": kind or code or "error"}
        body = {"error": {**error, "code": code, "param": None}}
        if request.wire == "messages":
            body = {"type": "error", "error": error}
        more = {"Retry-After": str(retry_after)} if retry_after is not None else {}
        return raw(status, json.dumps(body).encode(), {"Content-Type": "application/json", **more, **(headers or {})})
    return reply


def raw(status, body=b"", headers=None):
    return Reply(status, headers or {}, [body] if body else [])


def echo(request):
    """Says the whole request back, its headers too: a careless proxy."""
    lines = [f"{name}: {value}" for name, value in request.headers.items()]
    return raw(400, json.dumps({"error": {"message": "bad request: " + " ".join(lines)}}).encode(),
               {"Content-Type": "application/json"})


def from_spec(spec):
    """A reply from JSON: {"say": [TEXT or SECONDS, …], "finish", "usage", "reasoning", "refusal", "whole"},
    {"fail": STATUS, "message", "code", "retryAfter"}, or {"hang": true}."""
    if "fail" in spec:
        return fail(spec["fail"], spec.get("message", "no"), spec.get("code"), retry_after=spec.get("retryAfter"))
    if spec.get("hang"):
        return stream(HANG)
    return say(*spec["say"], finish=spec.get("finish", "stop"), usage=spec.get("usage", (7, 5)),
               reasoning=spec.get("reasoning", ()), refusal=spec.get("refusal"), whole=spec.get("whole"))


# ---- the server ----

class Provider:
    def __init__(self, port=0, tls=None):
        """tls: files of a key and a certificate."""
        self.port = port
        self.tls = None
        if tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(tls[1], tls[0])
        self.seen = []
        self.open_now = self.open_most = 0
        self._replies = []  # [when, times left or None, reply]
        self._lock = threading.Condition()
        self._ready = threading.Event()
        self._loop = self._server = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/v1"

    def add(self, *replies, when="", times=1):
        """when: words that the body must hold, or a function of the request."""
        with self._lock:
            for reply in replies:
                self._replies.append([when, times, reply])
        return self

    def wait_for(self, count, seconds=20):
        """Until so many requests came."""
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.seen) >= count, seconds), f"only {len(self.seen)} came"

    def wait_until(self, what, seconds=20):
        with self._lock:
            assert self._lock.wait_for(what, seconds), "it did not come to that"

    def _next(self, request):
        with self._lock:
            self.seen.append(request)
            self._lock.notify_all()
            for entry in self._replies:
                when = entry[0]
                if when(request) if callable(when) else when.encode() in request.body:
                    if entry[1] is not None:
                        entry[1] -= 1
                        if entry[1] == 0:
                            self._replies.remove(entry)
                    return entry[2]
        return say("ok")

    def _run(self):
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024, limit=64 << 20,
                                 ssl=self.tls))
        self.port = self._server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        self._server.close()
        self._loop.run_until_complete(self._end_all())
        self._loop.close()

    async def _end_all(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _read(self, reader):
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return first.split(" ")[0], Seen(time.monotonic(), first.split(" ")[1], headers, body)

    async def _one(self, reader, writer):
        method, request = await self._read(reader)
        if request.path.startswith("/control/"):
            return await self._control(method, request, writer)
        reply = self._next(request)
        while callable(reply):
            reply = reply(request)
        with self._lock:
            self.open_now += 1
            self.open_most = max(self.open_most, self.open_now)
        try:
            return await self._send(reply, request, reader, writer)
        finally:
            with self._lock:
                self.open_now -= 1
                request.done_at = time.monotonic()
                self._lock.notify_all()

    async def _send(self, reply, request, reader, writer):
        framing = {"Transfer-Encoding": "chunked"} if reply.chunked else {"Connection": "close"}
        head = f"HTTP/1.1 {reply.status} Said\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in {**reply.headers, **framing}.items()) + "\r\n"
        writer.write(head.encode())
        for step in reply.steps:
            await writer.drain()
            if step is BREAK:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
                return False
            if step is HANG:
                await reader.read(1)
                request.left_at = time.monotonic()
                return False
            if isinstance(step, bytes):
                writer.write(b"%x\r\n%b\r\n" % (len(step), step) if reply.chunked else step)
            else:
                await asyncio.sleep(step)
        if reply.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return reply.chunked

    async def _control(self, method, request, writer):
        answer = {}
        if method == "POST" and request.path == "/control/replies":
            for spec in request.json:
                self.add(from_spec(spec), when=spec.get("when", ""), times=spec.get("times", 1))
        elif request.path == "/control/seen":
            answer = [{"at": s.at, "path": s.path, "headers": s.headers, "body": s.body.decode("utf-8", "replace")}
                      for s in self.seen]
        body = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        return True


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--port", type=int, default=0)
    with Provider(options.parse_args().port) as provider:
        print(provider.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
