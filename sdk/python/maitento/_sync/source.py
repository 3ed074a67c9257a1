# SPDX-License-Identifier: Apache-2.0
# Made from maitento/_async/source.py by tools/make-sync: change that.
"""Bodies of requests: bytes, or what is read piece by piece."""
from __future__ import annotations

import json
import os
from typing import Any, Iterator, BinaryIO, Callable, Dict, Iterable, Optional, Union

from . import net

PIECE = 256 << 10
Progress = Callable[[int, Optional[int]], Any]
Content = Union[bytes, bytearray, memoryview, BinaryIO, Iterable[bytes]]


class Source:
    """The body of one request, which may be sent again where it can be read again."""

    def __init__(self, content: Content, kind: str, progress: Optional[Progress] = None) -> None:
        self.data: Optional[bytes] = None
        self.length: Optional[int] = None
        self._kind = kind
        self._progress = progress
        self._sent = 0
        self._content: Any = content
        self._start: Optional[int] = None
        self._begun = False
        self._bytes: Optional[memoryview] = None
        if isinstance(content, (bytes, bytearray, memoryview)):
            self.data = bytes(content) if len(content) <= PIECE and progress is None else None
            self._bytes = memoryview(content)
            self.length = len(self._bytes)
        elif hasattr(content, "read"):
            self._measure()

    @staticmethod
    def of_json(body: Any) -> Source:
        """The body of a call."""
        return Source(json.dumps(body).encode(), "application/json")

    def _measure(self) -> None:
        try:
            self._start = self._content.tell()
            end = self._content.seek(0, os.SEEK_END)
            self._content.seek(self._start)
            self.length = end - self._start
        except (OSError, AttributeError, ValueError):
            self._start = None  # a pipe or the like: of unknown length, and to be read once

    def framing(self) -> Dict[str, str]:
        """Its headers."""
        length = {"Transfer-Encoding": "chunked"} if self.length is None else {"Content-Length": str(self.length)}
        return {"Content-Type": self._kind, **length}

    def again(self) -> bool:
        """Makes ready to send it once more; False where that cannot be."""
        self._sent = 0
        if not self._begun or self.data is not None or self._bytes is not None:
            return True
        if self._start is None:
            return False
        net.blocking(self._content.seek, self._start)
        return True

    def pieces(self) -> Iterator[bytes]:
        """The content, exactly as long as was said."""
        self._begun = True
        if self._bytes is not None:
            for at in range(0, len(self._bytes), PIECE):
                yield bytes(self._bytes[at : at + PIECE])
        elif hasattr(self._content, "read"):
            left = self.length
            while left is None or left > 0:
                piece = net.blocking(self._content.read, PIECE if left is None else min(PIECE, left))
                if isinstance(piece, str):
                    raise TypeError("a file that is sent is opened in binary mode")
                if not piece:
                    if left is not None:
                        raise ValueError(f"the file ended {left} bytes before its length")
                    return
                if left is not None:
                    left -= len(piece)
                yield piece
        else:
            for piece in self._content:
                if piece:
                    yield bytes(piece)

    def tell(self, count: int) -> None:
        """So many bytes more are sent."""
        self._sent += count
        if self._progress:
            self._progress(self._sent, self.length)
