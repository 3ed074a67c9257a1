# SPDX-License-Identifier: Apache-2.0
"""What the tests of mt against the server made of paper share, besides its fixtures (conftest.py)."""
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time

import mtserver

MT = os.environ.get("MT_PROGRAM") or mtserver.program("mt")


def vfs(fake, **files):
    fake.namespaces["work"]["data"] = tree = {}
    for path, node in files.items():
        tree[path.encode()] = node
    return tree


def write_settings(home, **settings):
    (home / ".maitento").mkdir(exist_ok=True)
    path = home / ".maitento" / "settings.json"
    path.write_text(json.dumps(settings))
    path.chmod(0o600)
    return path


def later(seconds, function, *args, **kwargs):
    timer = threading.Timer(seconds, function, args, kwargs)
    timer.daemon = True
    timer.start()


def finish_next(fake, **how):
    def watch():
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if fake.runs and fake.runs[0]["status"] == "Starting":
                fake.finish(fake.runs[0], **how)
                return
            time.sleep(0.05)
    later(0.05, watch)


def on_terminal(environment, *words, cwd=None, columns=80, term="xterm"):
    """All that the terminal gets, and the exit status."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([MT, *words], env={**environment, "TERM": term}, cwd=cwd, stdin=slave, stdout=slave,
                          stderr=slave) as p:
        os.close(slave)
        seen = b""
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            try:
                piece = os.read(master, 65536) if ready else b""
            except OSError:
                break
            if not piece:
                break
            seen += piece
        status = p.wait(60)
    os.close(master)
    return seen, status
