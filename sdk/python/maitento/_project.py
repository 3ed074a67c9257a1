# SPDX-License-Identifier: Apache-2.0
"""The files of a project, as a deploy sends them."""
from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Dict, Iterator, List, Tuple, Union

from ._errors import MaitentoError

# The same as mt's: folders that make a project, ends of file names, limits.
KINDS = ("agents", "apps", "capsules", "connectors", "interactions", "json", "prompts", "tools")
ENDS = (".mtr", ".mtc", ".json", ".md")
FILE_MAX = 8 << 20

Folder = Union[str, "os.PathLike[str]"]


def _walk(folder: Path, prefix: str) -> Iterator[Tuple[str, os.DirEntry[str]]]:
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


def project_files(folder: Folder) -> List[Dict[str, str]]:
    """The files of a project as a deploy sends them. Links and other files are left out."""
    top = Path(folder)
    if not top.is_dir():
        raise MaitentoError(f"'{folder}' is no folder: deploy takes the folder of a project", "notFound")
    found = [kind for kind in KINDS if (top / kind).is_dir() and not (top / kind).is_symlink()]
    if not found:
        inside = any((top / "maitento" / kind).is_dir() for kind in KINDS)
        raise MaitentoError(
            f"'{folder}' is no project folder: "
            + (
                f"did you mean '{top / 'maitento'}'?"
                if inside
                else "it has none of agents, apps, capsules, interactions, json, prompts"
            ),
            "badRequest",
        )
    files: List[Dict[str, str]] = []
    for kind in found:
        for path, entry in _walk(top / kind, kind):
            data = _content(entry.path)
            try:
                files.append({"path": path, "content": data.decode("utf-8")})
            except UnicodeDecodeError:
                files.append({"path": path, "contentBase64": base64.b64encode(data).decode()})
    return files
