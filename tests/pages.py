"""Runs the console blocks of Markdown pages.

A fenced block with title="PATH" writes that file. A `console` block runs its `$ ` lines one after
another; the lines below are what it prints: `…` stands for anything, on a line of its own for any
lines. Every line must exit 0.

A comment `<!-- model: REPLY -->` of its own, which readers do not see, is what a model says (from_spec() in
model/provider.py has its form): the provider deepseek is then a scripted one, and says these one after another.
"""
import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "model"))
from provider import Provider, from_spec  # noqa: E402

REPLY = re.compile(r"^<!-- model: (\{.*\}) -->$", re.M)
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.S | re.M)


def pattern(expected):
    """The expected lines as a regular expression."""
    parts = []
    for line in expected:
        if line == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(".*".join(re.escape(p) for p in line.split("…")) + r"[ ]*\n")
    return "".join(parts)


def commands(block):
    """[(command, [expected lines])] of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def replies(text):
    """What a page's model says."""
    return [json.loads(reply) for reply in REPLY.findall(text)]


@contextlib.contextmanager
def model(specs, server):
    """Who answers for the deepseek of a server meanwhile, as specs say, each once; with none it stays as it is.
    Whoever asks has still to set the key."""
    if not specs:
        yield
        return
    with Provider() as provider:
        for spec in specs:
            provider.add(from_spec(spec), when=spec.get("when", ""))
        status, answer = server.request("PUT", "/v1/providers/deepseek", {"baseUrl": provider.url})
        assert status == 200, answer
        try:
            yield
        finally:
            server.request("DELETE", "/v1/providers/deepseek")
        assert len(provider.seen) == len(specs), [request.texts for request in provider.seen]


def run(text, folder, environment):
    """Writes the files and runs the commands of a page in a folder."""
    for language, title, body in BLOCK.findall(text):
        if title:
            path = folder / title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        if language != "console":
            continue
        for command, expected in commands(body):
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
            assert done.returncode == 0, (command, done.returncode, done.stdout)
            assert re.fullmatch(pattern(expected), done.stdout), (
                f"$ {command}\n{done.stdout}\n-- expected --\n" + "\n".join(expected))
