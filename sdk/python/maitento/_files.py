# SPDX-License-Identifier: Apache-2.0
"""Files of a file system, and the files of a project."""
from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple, Union

from ._errors import MaitentoError
from ._http import Http, path_of
from ._records import VfsItem

# The same as mt's: folders that make a project, ends of file names, limits.
KINDS = ("agents", "apps", "capsules", "connectors", "interactions", "json", "prompts", "tools")
ENDS = (".mtr", ".mtc", ".json", ".md")
FILE_MAX = 8 << 20


class _Files:
    """What files of file systems and of runs have in common."""

    _http: Http

    def _path(self, what: str, **query: Any) -> str:
        raise NotImplementedError

    def _body(self, body: Dict[str, Any]) -> Dict[str, Any]:
        return body

    def read(self, path: str) -> bytes:
        return self._http.bytes("GET", self._path("files", path=path))

    def download(self, path: str, to: BinaryIO) -> int:
        """The content into a binary file, piece by piece: its length."""
        return self._http.copy(self._path("files", path=path), to)

    def write(self, path: str, data: Union[bytes, BinaryIO]) -> VfsItem:
        """Replaces the file as a whole, or not at all."""
        if isinstance(data, str):
            raise TypeError("write() takes bytes or a binary file: write_text() takes text")
        raw = self._http.bytes("PUT", self._path("files", path=path), data,
                               {"Content-Type": "application/octet-stream"})
        return VfsItem(json.loads(raw))

    def read_text(self, path: str) -> str:
        return self.read(path).decode("utf-8")

    def write_text(self, path: str, text: str) -> VfsItem:
        return self.write(path, text.encode("utf-8"))

    def stat(self, path: str) -> VfsItem:
        return VfsItem(self._http.patiently("GET", self._path("stat", path=path)))

    def mkdir(self, path: str, parents: bool = True) -> VfsItem:
        return VfsItem(self._http.json("POST", self._path("mkdir"), self._body({"path": path, "parents": parents})))

    def move(self, path: str, to: str, replace: bool = False) -> VfsItem:
        body = self._body({"from": path, "to": to, "replace": replace})
        return VfsItem(self._http.json("POST", self._path("move"), body))

    def delete(self, path: str, recursive: bool = False) -> None:
        self._http.json("DELETE", self._path("files", path=path, recursive=recursive))

    def _list(self, path: str, recursive: bool) -> List[VfsItem]:
        return [VfsItem(item) for item in self._http.pages(self._path("list", path=path, recursive=recursive))]


class VfsFiles(_Files):
    """The files of one file system. Paths begin with "/"; parents are made as needed."""

    def __init__(self, http: Http, namespace: str, name: str):
        self._http = http
        self._base = ("namespaces", namespace, "vfs", name)
        self.name = name
        self.namespace = namespace

    def _path(self, what: str, **query: Any) -> str:
        return path_of(*self._base, what, **query)

    def list(self, path: str = "/", recursive: bool = False) -> List[VfsItem]:
        return self._list(path, recursive)


class RunFiles(_Files):
    """The files of a run, as one of its users. Paths that do not begin with "/" begin at the user's
    home; parents are made as needed."""

    def __init__(self, http: Http, run: str, user: Optional[str] = None):
        self._http = http
        self.run = run
        self.user = user

    def _path(self, what: str, **query: Any) -> str:
        parts = () if what == "files" else (what,)
        if query:
            query["user"] = self.user
        return path_of("capsule-runs", self.run, "files", *parts, **query)

    def _body(self, body: Dict[str, Any]) -> Dict[str, Any]:
        return {**body, "user": self.user} if self.user else body

    def list(self, path: str = ".", recursive: bool = False) -> List[VfsItem]:
        return self._list(path, recursive)


def _walk(folder: Path, prefix: str) -> Iterator[Tuple[str, os.DirEntry]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name.startswith(".") or entry.name.endswith("~"):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), f"{prefix}/{entry.name}")
            elif entry.is_file(follow_symlinks=False) and entry.name.endswith(ENDS):
                yield f"{prefix}/{entry.name}", entry


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise MaitentoError(f"{path} is no regular file", "badRequest")
        data = file.read(FILE_MAX + 1)
    if len(data) > FILE_MAX:
        raise MaitentoError(f"{path} is larger than {FILE_MAX >> 20} MiB", "tooLarge")
    return data


def project_files(folder: Union[str, os.PathLike]) -> List[Dict[str, str]]:
    """The files of a project as a deploy sends them. Links and other files are left out."""
    top = Path(folder)
    if not top.is_dir():
        raise MaitentoError(f"'{folder}' is no folder: deploy takes the folder of a project", "notFound")
    found = [kind for kind in KINDS if (top / kind).is_dir() and not (top / kind).is_symlink()]
    if not found:
        inside = any((top / "maitento" / kind).is_dir() for kind in KINDS)
        raise MaitentoError(f"'{folder}' is no project folder: " + (
            f"did you mean '{top / 'maitento'}'?" if inside else
            "it has none of agents, apps, capsules, interactions, json, prompts"), "badRequest")
    files = []
    for kind in found:
        for path, entry in _walk(top / kind, kind):
            data = _content(entry.path)
            try:
                files.append({"path": path, "content": data.decode("utf-8")})
            except UnicodeDecodeError:
                files.append({"path": path, "contentBase64": base64.b64encode(data).decode()})
    return files
