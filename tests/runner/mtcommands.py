# SPDX-License-Identifier: Apache-2.0
"""Commands of runs over the wire (src/capsule/command.h): sends them to a supervisor and reads what
its journal says of them."""
import struct
import time
import uuid

from mtwire import REASONS, Reader, text, texts

EXEC, EXTEND, CANCEL = 35, 37, 38
STATUSES = ["Queued", "Running", "Finished", "Error", "Aborted"]


def command(line, *, command_id=None, arguments=(), user="maitento", run_async=False, max_duration_ms=0,
            working_directory="", environment=(), stdin=b""):
    """(id, encoded)"""
    command_id = command_id or str(uuid.uuid4())
    out = struct.pack("<H", 1) + text(command_id) + text(line) + texts(list(arguments)) + text(user)
    out += struct.pack("<?q", run_async, max_duration_ms) + text(working_directory)
    out += struct.pack("<I", len(environment))
    for key, value in environment:
        out += text(key) + text(value)
    return command_id, out + text(stdin)


def send(link, line, **members):
    command_id, payload = command(line, **members)
    link.send(EXEC, payload)
    return command_id


def cancel(link, command_id, by="tester"):
    link.send(CANCEL, text(command_id) + text(by))


def events(runner, run_id):
    """("started" or "ended", command id, members) in the order of the journal."""
    data = (runner.folder(run_id) / "journal").read_bytes()
    out, pos = [], 8
    while pos + 8 <= len(data):
        length = struct.unpack_from("<I", data, pos)[0]
        if pos + 8 + length > len(data):
            break
        r = Reader(data[pos + 8:pos + 8 + length])
        pos += 8 + length
        r.take("Q"), r.take("q")
        kind = r.take("H")
        if kind == 32:
            out.append(("started", r.text(), {}))
        elif kind == 33:
            command_id = r.text()
            out.append(("ended", command_id, {
                "status": STATUSES[r.take("B")], "reason": REASONS[r.take("B")], "exit": r.take("i"),
                "limit_ms": r.take("q"), "signal": r.take("I"), "limits": r.take("I"), "out": r.take("Q"),
                "err": r.take("Q"), "out_chars": r.take("Q"), "err_chars": r.take("Q"), "details": r.text()}))
    return out


def wait(runner, run_id, command_id, timeout=30):
    """The end of a command; exactly one."""
    deadline = time.monotonic() + timeout
    while True:
        ends = [e for kind, at, e in events(runner, run_id) if kind == "ended" and at == command_id]
        if ends:
            assert len(ends) == 1
            return ends[0]
        assert time.monotonic() < deadline, f"command {command_id} did not end in {timeout} s"
        time.sleep(0.01)


def output(runner, run_id, command_id, stream=1):
    path = runner.folder(run_id) / f"out/{command_id}.{stream}"
    return path.read_bytes() if path.exists() else b""
