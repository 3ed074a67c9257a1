# SPDX-License-Identifier: Apache-2.0
# Made from maitento/_async/files.py by tools/make-sync: change that.
"""Files of file systems and of runs, in constant memory."""
from __future__ import annotations

import contextlib
import json
import os
import secrets
from typing import Any, Iterator, BinaryIO, Dict, List, Optional, Tuple, Union

from .._errors import MaitentoError
from .._records import VfsItem
from .._wire import FilePath, Patience, content_range, does, json_paths, passes, path_of, raw_path
from . import net
from .core import Core
from .source import Content, Progress, Source

LocalPath = Union[str, "os.PathLike[str]"]


def _reading(path: LocalPath) -> BinaryIO:
    return open(path, "rb")


def _making(path: str) -> BinaryIO:
    return open(path, "xb")


class Files:
    """What files of file systems and of runs have in common.

    A path is a text, bytes where its name is no UTF-8, or an item of a list. Writing makes the folders on the way.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._http = core.http

    def _path(self, what: str, **query: Any) -> str:
        raise NotImplementedError

    def _body(self, body: Dict[str, Any]) -> Dict[str, Any]:
        return body

    # ---- reading ----

    @does("getFile", "getFileById", "getRunFile")
    def read(self, path: FilePath) -> bytes:
        """The content. Errors: "notFound", "isAFolder", "notRegularFile", "accessDenied"."""
        return b"".join([piece for _, piece, _ in self._pieces(path, 0, None, True)])

    def read_text(self, path: FilePath) -> str:
        """The content as UTF-8, its line ends as they are. Raises UnicodeDecodeError where it is none."""
        return (self.read(path)).decode("utf-8")

    def chunks(self, path: FilePath, start: int = 0, length: Optional[int] = None) -> Iterator[bytes]:
        """The content piece by piece, or a range of it: so many bytes from byte start on.

        A break is made good, as long as the file is the same; else MaitentoError "conflict".
        """
        for _, piece, _ in self._pieces(path, start, length, False):
            yield piece

    def download(self, path: FilePath, to: Union[LocalPath, BinaryIO], on_progress: Optional[Progress] = None) -> int:
        """The content into a local file: its length.

        to: a path (the file is replaced when all of it is there, else left as it was) or a binary file. on_progress
        is called with (bytes so far, bytes in all or None).
        """
        if not isinstance(to, (str, os.PathLike)):
            return self._copy(path, to, on_progress)
        target = os.fspath(to)
        beside = f"{target}.{secrets.token_hex(4)}.part"
        file = net.blocking(_making, beside)
        try:
            with file:
                length = self._copy(path, file, on_progress)
            net.blocking(os.replace, beside, target)
            return length
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise

    def _copy(self, path: FilePath, to: BinaryIO, on_progress: Optional[Progress]) -> int:
        done = 0
        for at, piece, total in self._pieces(path, 0, None, True):
            net.blocking(to.write, piece)
            done = at + len(piece)
            if on_progress:
                on_progress(done, total)
        return done

    def _pieces(
        self, path: FilePath, start: int, length: Optional[int], slot: bool
    ) -> Iterator[Tuple[int, bytes, Optional[int]]]:
        """(offset, bytes, length of all where it is known)."""
        target = self._path("files", path=raw_path(path))
        at, end = start, None if length is None else start + length
        tag: Optional[str] = None
        patience = Patience()
        while end is None or at < end:
            headers: Dict[str, str] = {}
            if at or end is not None:
                headers["Range"] = f"bytes={at}-{'' if end is None else end - 1}"
            try:
                answer = self._http.stream("GET", target, None, headers, slot=slot)
                try:
                    if tag is not None and answer.headers.get("etag") != tag:
                        raise MaitentoError("the file was changed while it was read: read it again", "conflict")
                    tag = answer.headers.get("etag")
                    total = self._total(answer.status, answer.headers, at)
                    while True:
                        piece = answer.read()
                        if not piece:
                            return
                        patience.begin()
                        yield at, piece, total
                        at += len(piece)
                finally:
                    answer.close()
            except MaitentoError as error:
                if error.code == "badRange" and tag is not None:
                    return  # all of it had come
                if tag is None and not self._http.reached:
                    raise
                pause = patience.pause(error)
            net.sleep(pause)

    @staticmethod
    def _total(status: int, headers: Dict[str, str], at: int) -> Optional[int]:
        if status == 206:
            begins, total = content_range(headers.get("content-range", ""))
            if begins == at:
                return total
        elif not at:
            length = headers.get("content-length")
            return int(length) if length else None
        raise MaitentoError("the server sent another part of the file than was asked for", "internal")

    # ---- writing ----

    @does("putFile", "putFileById", "putRunFile")
    def write(self, path: FilePath, data: Content) -> VfsItem:
        """Replaces the file as a whole, or not at all. data: bytes, a binary file, or pieces of bytes."""
        given: Any = data  # callers without a type checker give anything
        if isinstance(given, str):
            raise TypeError("write() takes bytes or a binary file: write_text() takes text")
        return self._put(path, Source(data, "application/octet-stream"))

    def write_text(self, path: FilePath, text: str) -> VfsItem:
        """As write(), in UTF-8, line ends as they are."""
        return self.write(path, text.encode("utf-8"))

    def upload(
        self, path: FilePath, source: Union[LocalPath, Content], on_progress: Optional[Progress] = None
    ) -> VfsItem:
        """As write(), of a local file by its path, or of what write() takes, piece by piece.

        on_progress is called with (bytes so far, bytes in all or None). What can be read again is sent again where
        the server was away for a moment.
        """
        if isinstance(source, (str, os.PathLike)):
            with net.blocking(_reading, source) as file:
                return self._put(path, Source(file, "application/octet-stream", on_progress))
        return self._put(path, Source(source, "application/octet-stream", on_progress))

    def _put(self, path: FilePath, source: Source) -> VfsItem:
        target = self._path("files", path=raw_path(path))
        patience = Patience()
        while True:
            try:
                answer = self._http.stream("PUT", target, source)
                return VfsItem(json.loads(answer.all()))
            except MaitentoError as error:
                if not self._http.reached or not passes(error):
                    raise
                if not source.again():
                    raise MaitentoError(
                        f"outcome unknown: {error}; what was sent cannot be read again to repeat it", "outcomeUnknown"
                    ) from error
                pause = patience.pause(error)
            net.sleep(pause)

    # ---- the rest ----

    @does("getStat", "getStatById", "getRunStat")
    def stat(self, path: FilePath) -> VfsItem:
        """What stands at a path: of file systems a link itself, in runs what it leads to."""
        return VfsItem(self._http.patiently("GET", self._path("stat", path=raw_path(path))))

    @does("makeFolder", "makeFolderById", "makeRunFolder")
    def mkdir(self, path: FilePath, parents: bool = True) -> VfsItem:
        """Makes a folder; with parents also those on the way, and it is no error where it is there."""
        body = self._body({**json_paths(path=path), "parents": parents})
        return VfsItem(self._http.once("POST", self._path("mkdir"), body))

    @does("moveFile", "moveFileById", "moveRunFile")
    def move(self, path: FilePath, to: FilePath, replace: bool = False) -> VfsItem:
        """Moves or renames; with replace what stands at `to` gives way."""
        body = self._body({**json_paths(from_=path, to=to), "replace": replace})
        return VfsItem(self._http.once("POST", self._path("move"), body))

    @does("makeLink", "makeLinkById", "makeRunLink")
    def link(self, path: FilePath, target: FilePath) -> VfsItem:
        """Makes a symbolic link at path that leads to target."""
        body = self._body(json_paths(path=path, target=target))
        return VfsItem(self._http.once("POST", self._path("link"), body))

    @does("deleteFile", "deleteFileById", "deleteRunFile")
    def delete(self, path: FilePath, recursive: bool = False) -> None:
        """Removes a file, a link or an empty folder; with recursive a folder with all that is in it."""
        target = self._path("files", path=raw_path(path), recursive=recursive)
        self._http.patiently("DELETE", target)

    def _list(self, path: FilePath, recursive: bool) -> List[VfsItem]:
        target = self._path("list", path=raw_path(path), recursive=recursive)
        return self._http.listing(target, VfsItem)


class VfsFiles(Files):
    """The files of one file system. Paths begin with "/"."""

    def __init__(self, core: Core, name: Optional[str], namespace: Optional[str], vfs_id: Optional[str] = None) -> None:
        super().__init__(core)
        self.name = name
        self.namespace = namespace
        self.id = vfs_id

    def _path(self, what: str, **query: Any) -> str:
        if self.id is not None:
            return path_of("vfs", self.id, what, **query)
        return path_of("namespaces", self._core.namespace(self.namespace), "vfs", self.name or "", what, **query)

    @does("listFiles", "listFilesById")
    def list(self, path: FilePath = "/", recursive: bool = False) -> List[VfsItem]:
        """What is in a folder, in the order of the names' bytes; links are not followed."""
        return self._list(path, recursive)


class RunFiles(Files):
    """The files of a run, as one of its users. Paths that do not begin with "/" begin at the user's home."""

    def __init__(self, core: Core, run: str, user: Optional[str]) -> None:
        super().__init__(core)
        self.run = run
        self.user = user

    def _path(self, what: str, **query: Any) -> str:
        parts = () if what == "files" else (what,)
        if query:
            query["user"] = self.user
        return path_of("capsule-runs", self.run, "files", *parts, **query)

    def _body(self, body: Dict[str, Any]) -> Dict[str, Any]:
        return {**body, "user": self.user} if self.user else body

    @does("listRunFiles")
    def list(self, path: FilePath = ".", recursive: bool = False) -> List[VfsItem]:
        """What is in a folder, in the order of the names' bytes; other mounts and links are not followed."""
        return self._list(path, recursive)
