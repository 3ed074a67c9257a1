# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes: heads of requests and answers, and how bodies are framed. No input or output here."""
from __future__ import annotations

import re
from typing import Dict, Mapping, NamedTuple, Optional

HEAD_MAX = 64 << 10
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Broken(OSError):
    """The connection ended, or what came over it is no HTTP."""


class NotHttp(Broken):
    """What answers does not speak HTTP."""


class Head(NamedTuple):
    """The head of an answer; names of headers in lower case, of one that comes twice the last."""

    status: int
    headers: Dict[str, str]
    keep: bool  # the connection may be used again


def request_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """The head of a request; a line end in a value is refused."""
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or re.search(r"[^\t\x20-\x7e\x80-\xff]", value):
            raise ValueError(f"the header {name!r} holds what no header may hold")
        lines.append(f"{name}: {value}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def parse_head(data: bytes) -> Head:
    """The head of an answer, without the empty line at its end."""
    first, *rest = data.decode("latin-1").split("\r\n")
    match = re.fullmatch(r"HTTP/1\.([01]) ([0-9]{3})(?: .*)?", first)
    if not match:
        raise NotHttp("the answer is no HTTP")
    headers: Dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name):
            raise Broken("the answer has a header that is none")
        headers[name.lower()] = value.strip(" \t")
    told = headers.get("connection", "").lower()
    keep = "close" not in told if match.group(1) == "1" else "keep-alive" in told
    return Head(int(match.group(2)), headers, keep)


def body_length(method: str, head: Head) -> Optional[int]:
    """Bytes of the body; -1: chunked, None: to the end of the connection."""
    if method == "HEAD" or head.status in (204, 304):
        return 0
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        return -1
    length = head.headers.get("content-length")
    if length is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", length):
        raise Broken("the answer has a length that is none")
    return int(length)


def chunk_size(line: bytes) -> int:
    """The size that a line of a chunked body tells."""
    digits = line.split(b";")[0].strip()
    if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", digits):
        raise Broken("the answer has a chunk that is none")
    return int(digits, 16)
