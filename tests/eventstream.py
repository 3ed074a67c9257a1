"""Reads GET /v1/events as its clients do, and holds each event against its description."""
import collections
import json
import queue
import socket
import threading
import time
from pathlib import Path

import jsonschema
import mtserver
import yaml

API = yaml.safe_load((Path(__file__).resolve().parent.parent / "api/openapi.yaml").read_text(encoding="utf-8"))
SCHEMAS = {"hello": "EventHello", "change": "Event", "output": "EventOutput", "console": "EventConsole",
           "text": "EventText", "end": "EventEnd"}
VALIDATORS = {name: jsonschema.Draft202012Validator(API["components"]["schemas"][schema],
                                                    resolver=jsonschema.RefResolver("", API))
              for name, schema in SCHEMAS.items()}

Frame = collections.namedtuple("Frame", "name data id")


def frame_of(text):
    """One event, or None of a comment."""
    fields = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        assert colon, text
        if name:
            assert name not in fields, text
            fields[name] = value.removeprefix(" ")
    if not fields:
        return None
    name, data = fields.pop("event"), json.loads(fields.pop("data"))
    VALIDATORS[name].validate(data)
    told = fields.pop("id", None)
    assert told == {"hello": str(data.get("after")), "change": str(data.get("number"))}.get(name), text
    assert not fields, text
    return Frame(name, data, told and int(told))


def frames_of(raw):
    """The events of a whole body."""
    text = raw.decode()
    assert not text or text.endswith("\n\n"), text[-200:]
    return [frame for frame in map(frame_of, text.split("\n\n")[:-1]) if frame]


class Stream:
    """An open stream, read by a thread of its own. Ended where the body has ended, cut where it broke off."""

    def __init__(self, server, query="", headers=None, tcp=False):
        connection = mtserver.UnixConnection(server.socket, 70)
        if tcp:
            host, port = server.url.removeprefix("http://").split(":")
            connection.sock = socket.create_connection((host, int(port)), 70)
        connection.request("GET", f"/v1/events{query}", None, headers or {})
        self.connection, self.answer = connection, connection.getresponse()
        assert self.answer.status == 200, (self.answer.status, self.answer.read())
        assert self.answer.getheader("Content-Type") == "text/event-stream"
        self.frames, self.comments, self.cut = [], 0, False
        self.came = queue.Queue()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        self.hello = self.wait(lambda f: f.name == "hello")

    def _read(self):
        text = b""
        try:
            while line := self.answer.readline():
                text += line
                if line == b"\n":
                    frame = frame_of(text[:-2].decode())
                    text = b""
                    if frame:
                        self.frames.append(frame)
                    else:
                        self.comments += 1
                    self.came.put(frame)
            self.cut = bool(text)
        except (OSError, ValueError, AttributeError, mtserver.http.client.HTTPException):
            self.cut = True
        except BaseException as error:  # what does not fit its description
            self.came.put(error)
        self.came.put(False)

    def wait(self, fits, seconds=30):
        """The first event from here on for which fits is true."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                frame = self.came.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"it did not come in {seconds} s; what came: {self.frames[-20:]}") from None
            if isinstance(frame, BaseException):
                raise frame
            assert frame is not False, f"the stream is over; what came: {self.frames[-20:]}"
            if frame and fits(frame):
                return frame

    def change(self, seconds=30, **members):
        """The next change with these members."""
        return self.wait(lambda f: f.name == "change" and all(f.data[k] == v for k, v in members.items()), seconds).data

    def comment(self, seconds):
        """Waits for one."""
        deadline, before = time.monotonic() + seconds, self.comments
        while self.comments == before:
            frame = self.came.get(timeout=max(0.01, deadline - time.monotonic()))
            assert frame is not False, "the stream is over"

    def over(self, seconds=30):
        """Waits for its end; the data of `end`, None where none came."""
        self.thread.join(seconds)
        assert not self.thread.is_alive(), f"it goes on: {self.frames[-5:]}"
        return self.frames[-1].data if self.frames and self.frames[-1].name == "end" else None

    @property
    def numbers(self):
        return [f.data["number"] for f in self.frames if f.name == "change"]

    def text(self, command, stream="standard"):
        """What it told that a command printed; the pieces join without a gap."""
        pieces = [f.data for f in self.frames if f.name == "output" and f.data["commandId"] == command
                  and f.data["stream"] == stream]
        at = 0
        for piece in pieces:
            assert piece["offset"] == at, (piece["offset"], at)
            at += piece["bytes"]
        return "".join(p["text"] for p in pieces)

    def close(self):
        try:
            if self.connection.sock:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.connection.close()
        self.thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
