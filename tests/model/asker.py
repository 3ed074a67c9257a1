# SPDX-License-Identifier: Apache-2.0
"""Drives src/model by the program model-testd: requests as JSON lines in, events as JSON lines out."""
import json
import os
import queue
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(os.environ.get("MT_BUILD", ROOT / "build")).resolve() / "src/model/model-testd"
KEY = "sk-test-0123456789abcdef"


class Asker:
    def __init__(self, env=None):
        clean = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**clean, **(env or {})})
        self.events = {}  # tag: [event]
        self.moments = {}  # tag: [time.monotonic() of it]
        self._changed = threading.Condition()
        self._lines = queue.Queue()
        self._count = 0
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        if kind:
            self.process.kill()
        assert self.process.wait(60) == 0 or kind, "model-testd failed"

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            with self._changed:
                self.events.setdefault(event["tag"], []).append(event)
                self.moments.setdefault(event["tag"], []).append(time.monotonic())
                self._changed.notify_all()

    def send(self, **line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def start(self, url, text="hello", **more):
        """Asks; returns the tag."""
        self._count += 1
        tag = more.pop("tag", f"t{self._count}")
        messages = more.pop("messages", [["system", "be brief"], ["task", text]])
        self.send(do="ask", tag=tag, baseUrl=url, messages=messages, key=more.pop("key", KEY), **more)
        return tag

    def cancel(self, tag):
        self.send(do="cancel", tag=tag)

    def wait_event(self, tag, what, seconds=30):
        with self._changed:
            def found():
                return next((e for e in self.events.get(tag, []) if e["event"] in what), None)
            assert self._changed.wait_for(found, seconds), f"no {what} of {tag}: {self.events.get(tag)}"
            return found()

    def wait_until(self, tag, holds, seconds=30):
        """Until that is true of the names of its events so far."""
        with self._changed:
            def names():
                return [e["event"] for e in self.events.get(tag, [])]
            assert self._changed.wait_for(lambda: holds(names()), seconds), f"it did not come to that: {names()[-5:]}"

    def answer(self, tag, seconds=30):
        answer = self.wait_event(tag, ("answer", "refused"), seconds)
        assert answer["event"] == "answer", answer
        self.check_pieces(tag, answer)
        assert KEY not in json.dumps(self.events[tag])
        return answer

    def ask(self, url, text="hello", **more):
        return self.answer(self.start(url, text, **more))

    def check_pieces(self, tag, answer):
        """Pieces are whole characters, and those since the last `again` are the answer's text."""
        since = ""
        for event in self.events[tag]:
            since = "" if event["event"] == "again" else since + event.get("text", "") * (event["event"] == "text")
            assert event.get("whole", True)
        if answer["end"] in ("answered", "cut"):
            assert since == answer["text"]
        assert [e["event"] for e in self.events[tag]].count("answer") == 1
        assert self.events[tag][-1]["event"] == "answer"

    def figure(self, name):
        """A number of /proc/PID/status: VmRSS (KiB), Threads."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
        raise KeyError(name)
