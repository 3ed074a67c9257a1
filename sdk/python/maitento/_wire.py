# SPDX-License-Identifier: Apache-2.0
"""How calls are spelled on the wire: addresses, paths, bodies, errors, pauses. No input or output here."""
from __future__ import annotations

import json
import os
import random
import re
import ssl
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union, cast
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

from ._errors import MaitentoError
from ._records import Duration, Problem, VfsItem, camel, duration

VERSION = "26.10.0"
CONNECT = 10.0  # seconds until a connection is given up
ANSWER = 90.0  # seconds without a byte of an answer
WAIT = 20  # seconds for which one request waits
SLACK = 15.0  # seconds beyond them in which its answer must begin
PATIENCE = 60.0  # seconds for which a server may be away
AWAY = (502, 503, 504)

FilePath = Union[str, bytes, VfsItem]

F = TypeVar("F", bound=Callable[..., Any])

_CODES = {
    401: "unauthenticated",
    403: "forbidden",
    404: "notFound",
    409: "conflict",
    410: "gone",
    413: "tooLarge",
    429: "rateLimited",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
    507: "diskFull",
}


def does(*operations: str) -> Callable[[F], F]:
    """Says which operations of the API (their operationId) a method is."""

    def mark(function: F) -> F:
        setattr(function, "__operations__", operations)
        return function

    return mark


# ---- addresses ----


class Address(NamedTuple):
    """Where a server is: a socket's path, or a host and a port, with TLS or without."""

    url: str
    path: Optional[str]
    host: str
    port: int
    tls: Optional[ssl.SSLContext]


def address_of(url: str) -> Address:
    """What a URL says; a user and password in it are refused and not repeated."""
    if url.startswith("unix:/"):
        return Address(url, url[len("unix:") :], "localhost", 0, None)
    match = re.fullmatch(r"(https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?/?", url)
    if not match or int(match.group(3) or 1) > 65535:
        shown = "it" if "@" in url else f"'{url}'"
        raise MaitentoError(
            f"the address is wrong: {shown} should be http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH",
            "badRequest",
        )
    tls = match.group(1) == "https"
    context = ssl.create_default_context() if tls else None
    return Address(url, None, match.group(2).strip("[]"), int(match.group(3) or (443 if tls else 80)), context)


def path_of(*parts: str, **query: Any) -> str:
    """ "/v1/" and the parts, each encoded; members of the query that are None are left out, bytes go as they are."""
    given: List[str] = []
    for name, value in query.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        given.append(f"{name}={quote_from_bytes(raw, safe='/')}")
    return "/v1/" + "/".join(quote(p, safe="") for p in parts) + ("?" + "&".join(given) if given else "")


def host_of(address: Address) -> str:
    """The Host header."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    usual = 443 if address.tls else 80
    return host if address.path is not None or address.port == usual else f"{host}:{address.port}"


# ---- values ----


def id_of(thing: Any) -> str:
    """An id, or something that has one."""
    found = thing if isinstance(thing, str) else getattr(thing, "id", None)
    if not isinstance(found, str) or not found:
        raise TypeError(f"an id is wanted, not {type(thing).__name__}")
    return found


def given(**members: Any) -> Dict[str, Any]:
    """The members that are not None, in camelCase."""
    return {camel(name): value for name, value in members.items() if value is not None}


def parts_of_start(items: Optional[Sequence[Mapping[str, Any]]]) -> Optional[List[Dict[str, Any]]]:
    """Lists of a start: members in snake_case or camelCase, durations as the client takes them."""
    if items is None:
        return None
    return [{camel(k): duration(v) if camel(k) == "maxDuration" else v for k, v in item.items()} for item in items]


def command_body(
    command: str,
    arguments: Optional[Sequence[str]],
    run_as_user: Optional[str],
    max_duration: Optional[Duration],
    run_async: bool,
    working_directory: Optional[str],
    environment: Optional[Mapping[str, str]],
    stdin: Optional[str],
) -> Dict[str, Any]:
    """The request that sends a command."""
    if isinstance(arguments, (str, bytes)):
        raise TypeError('arguments are a list, one word each: ["-l", "/tmp"], not a text')
    body = given(
        command=command,
        arguments=list(arguments) if arguments else None,
        run_as_user=run_as_user,
        max_duration=duration(max_duration),
        working_directory=working_directory,
        environment=dict(environment) if environment else None,
        stdin=stdin,
    )
    if run_async:
        body["async"] = True
    return body


def raw_path(path: FilePath) -> bytes:
    """The bytes of a path: of a text its UTF-8, of an entry that was listed the name it has, odd bytes included."""
    if isinstance(path, VfsItem):
        return unquote_to_bytes(path.path) if path.name_escaped else path.path.encode("utf-8")
    return path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")


def json_paths(**paths: FilePath) -> Dict[str, Any]:
    """Paths as members of a body: as texts, or all in the escaped form where one of them is no UTF-8."""
    raw = {name.rstrip("_"): raw_path(path) for name, path in paths.items()}
    try:
        return {name: path.decode("utf-8") for name, path in raw.items()}
    except UnicodeDecodeError:
        return {**{name: _escaped(path) for name, path in raw.items()}, "nameEscaped": True}


def _escaped(path: bytes) -> str:
    text = path.replace(b"%", b"%25").decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda m: f"%{ord(m.group()) - 0xDC00:02X}", text)


# ---- errors ----


def json_object(raw: Union[str, bytes]) -> Optional[Dict[str, Any]]:
    """The members of a JSON object; None of what is none."""
    try:
        value: Any = json.loads(raw)
    except ValueError:
        return None
    return cast(Dict[str, Any], value) if isinstance(value, dict) else None


def problem_of(url: str, status: int, headers: Mapping[str, str], raw: bytes) -> MaitentoError:
    """The error that an answer tells of."""
    problem = json_object(raw) or {}
    usual = _CODES.get(status, "internal" if status >= 500 else "badRequest")
    code: str = problem.get("code") or usual
    message: str = problem.get("detail") or f"the server at {url} answered with status {status}"
    for found in Problem(problem).diagnostics or []:
        message += f"\n  {found.file}:{found.line}:{found.column}: {found.message}"
    after = headers.get("retry-after", "")
    return MaitentoError(message, code, status, problem, int(after) if after.isdigit() else None)


def words_of(error: BaseException) -> str:
    """What a failed connection is told as: the system's own words, however it came to us."""
    if isinstance(error, OSError) and error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def not_maitento(url: str, why: str) -> MaitentoError:
    """What answers is something else."""
    return MaitentoError(f"what answers at {url} is not a Maitento server: {why}", "notMaitento")


def check_server(url: str, status: int, raw: bytes) -> None:
    """Refuses what is no answer of a Maitento server to /v1/server."""
    if status != 200:
        raise not_maitento(url, f"it answers /v1/server with status {status}")
    answer = json_object(raw)
    if answer is None:
        raise not_maitento(url, "its answer to /v1/server is no JSON")
    if answer.get("product") != "maitento":
        raise not_maitento(url, "its answer to /v1/server names no product 'maitento'")
    version = answer.get("apiVersion")
    if version != 1:
        raise not_maitento(url, f"it speaks version {version} of the API, this client version 1")


def passes(error: MaitentoError) -> bool:
    """Whether it may be better when asked again: the server is away, or something before it is."""
    return error.code in ("unreachable", "outcomeUnknown") or error.status in AWAY


class Patience:
    """How a call bears a server that is away: pauses that grow, and an end."""

    def __init__(self) -> None:
        self._since: Optional[float] = None
        self._tries = 0

    def begin(self) -> None:
        """Something came: from here on it counts anew."""
        self._since, self._tries = None, 0

    def pause(self, error: MaitentoError) -> float:
        """Seconds to wait before the next try; raises where it is no use to try again."""
        if not passes(error):
            raise error
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if now - self._since > PATIENCE:
            raise MaitentoError(
                f"outcome unknown: no server for {PATIENCE:.0f} s: {error}", "outcomeUnknown", error.status
            ) from error
        seconds = min(0.2 * 2.0**self._tries, 5.0) * random.uniform(0.75, 1.0)
        self._tries += 1
        return min(max(seconds, error.retry_after or 0.0), PATIENCE)


class Clock:
    """How long one still has: of `timeout` seconds, or for ever."""

    def __init__(self, timeout: Optional[float]) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def left(self, at_most: float) -> float:
        if self._end is None:
            return at_most
        return max(0.0, min(at_most, self._end - time.monotonic()))

    def whole(self, at_most: int) -> int:
        """Whole seconds, rounded up."""
        return max(0, min(at_most, int(self.left(at_most) + 0.999)))


def content_range(value: str) -> Tuple[int, Optional[int]]:
    """ "bytes 5-9/10": where it begins, and the length of all of it."""
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", value)
    if not match:
        raise ValueError(f"no range: {value}")
    return int(match.group(1)), None if match.group(2) == "*" else int(match.group(2))
