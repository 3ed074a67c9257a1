# SPDX-License-Identifier: Apache-2.0
"""Server-sent events as they come: bytes in, frames out."""
from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from ._http1 import Broken

FRAME_MAX = 8 << 20


class Frame(NamedTuple):
    """One event: its name, its data, and its id where it has one."""

    event: str
    data: str
    id: Optional[str]


class Parser:
    """Any cuts between the pieces; lines end in LF, CR LF or CR; comments are only a sign of life."""

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False
        self._event = ""
        self._data: List[str] = []
        self._id: Optional[str] = None
        self._size = 0

    def feed(self, data: bytes) -> List[Frame]:
        """The frames that are whole now."""
        self._rest += data
        if not self._begun and len(self._rest) >= 3:
            self._begun = True
            self._rest = self._rest[3:] if self._rest.startswith(b"\xef\xbb\xbf") else self._rest
        frames: List[Frame] = []
        at = 0
        while True:
            end, after = self._line_end(at)
            if end < 0:
                break
            frame = self._line(self._rest[at:end])
            if frame:
                frames.append(frame)
            at = after
        self._rest = self._rest[at:]
        if len(self._rest) + self._size > FRAME_MAX:
            raise Broken("the stream has an event that does not end")
        return frames

    def _line_end(self, at: int) -> Tuple[int, int]:
        lf, cr = self._rest.find(b"\n", at), self._rest.find(b"\r", at)
        if cr < 0 or 0 <= lf < cr:
            return lf, lf + 1
        if cr + 1 == len(self._rest):  # an LF may follow
            return -1, 0
        return cr, cr + (2 if self._rest[cr + 1 : cr + 2] == b"\n" else 1)

    def _line(self, line: bytes) -> Optional[Frame]:
        if not line:
            frame = Frame(self._event or "message", "\n".join(self._data), self._id) if self._data else None
            self._event, self._data, self._id, self._size = "", [], None, 0
            return frame
        name, _, value = line.partition(b":")
        text = (value[1:] if value.startswith(b" ") else value).decode("utf-8", "replace")
        self._size += len(line)
        if name == b"event":
            self._event = text
        elif name == b"data":
            self._data.append(text)
        elif name == b"id" and "\0" not in text:
            self._id = text
        return None
