# SPDX-License-Identifier: Apache-2.0
"""A small Debian repository of the tests' own, and the servers that offer it, well or badly."""
import ctypes
import functools
import gzip
import hashlib
import http.server
import re
import socket
import subprocess
import threading
from pathlib import Path

DAEMON = "#!/bin/sh\nexec sleep 1000\n"


class Repository:
    """A flat repository: `deb [trusted=yes] URL ./`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def add(self, name, version="1.0", files=None, scripts=None, depends="", modes=None):
        """files: path -> content; scripts: postinst and the like -> text; modes: path -> mode."""
        work = self.folder.parent / f"{self.folder.name}-{name}-{version}"
        control = work / "DEBIAN"
        control.mkdir(parents=True)
        (control / "control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: tests <tests@example.org>\n"
            + (f"Depends: {depends}\n" if depends else "") + "Description: of the tests\n")
        for path, content in (files or {}).items():
            target = work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
            target.chmod((modes or {}).get(path, 0o755))
        for script, text in (scripts or {}).items():
            (control / script).write_text("#!/bin/sh\nset -e\n" + text)
            (control / script).chmod(0o755)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Znone", work,
                        self.folder / f"{name}_{version}_all.deb"], check=True, stdout=subprocess.DEVNULL)
        return self.index()

    def index(self):
        stanzas = []
        for deb in sorted(self.folder.glob("*.deb")):
            data = deb.read_bytes()
            fields = subprocess.run(["dpkg-deb", "-f", deb], check=True, stdout=subprocess.PIPE,
                                    text=True).stdout.strip()
            stanzas.append(f"{fields}\nFilename: ./{deb.name}\nSize: {len(data)}\n"
                           f"SHA256: {hashlib.sha256(data).hexdigest()}\n")
        packages = "\n".join(stanzas).encode()
        lists = {"Packages": packages, "Packages.gz": gzip.compress(packages)}
        sums = "".join(f" {hashlib.sha256(d).hexdigest()} {len(d)} {n}\n" for n, d in lists.items())
        for name, data in lists.items():
            (self.folder / name).write_bytes(data)
        (self.folder / "Release").write_text(f"Origin: tests\nLabel: tests\nSuite: tests\nSHA256:\n{sums}")
        return self


def in_space(space, make):
    """What make() gives in the network namespace of a Space: a socket stays where it was born."""
    result = []

    def work():
        with open(f"/proc/{space.keeper.pid}/ns/net", encoding="ascii") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        result.append(make())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return result[0]


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        self.path = re.sub("^http://[^/]*", "", self.path)  # as a proxy is asked
        gate = self.server.gate  # which may be opened and removed at any moment
        if gate and self.server.held in self.path:
            gate.wait()
        super().do_GET()


class Mirror:
    """Serves a repository. `hold()` makes every answer, or those with that in their path, wait until `release()`."""

    def __init__(self, repository, space, address):
        handler = functools.partial(Handler, directory=str(repository.folder))
        self.http = in_space(space, lambda: http.server.ThreadingHTTPServer((address, 0), handler))
        self.http.daemon_threads = True
        self.http.asked = self.asked = []
        self.http.gate = None
        self.port = self.http.server_address[1]
        self.address = address
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def source(self):
        return f"deb [trusted=yes] http://{self.address}:{self.port} ./\n"

    def hold(self, part=""):
        self.http.held, self.http.gate = part, threading.Event()

    def release(self):
        if self.http.gate:
            self.http.gate.set()
        self.http.gate = None

    def close(self):
        self.release()
        self.http.shutdown()
        self.http.server_close()


class Silence:
    """Accepts connections and never says a word."""

    def __init__(self, space, address):
        self.socket = in_space(space, lambda: socket.create_server((address, 0)))
        self.address, self.port = self.socket.getsockname()[:2]
        self.kept = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                self.kept.append(self.socket.accept()[0])
        except OSError:
            pass

    def source(self):
        return f"deb [trusted=yes] http://{self.address}:{self.port} ./\n"

    def close(self):
        self.socket.close()
        for one in self.kept:
            one.close()
