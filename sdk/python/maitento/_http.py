# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 over a Unix socket, TCP or TLS: connections that are kept, errors, repeating."""
from __future__ import annotations

import http.client
import json
import random
import re
import socket
import ssl
import struct
import threading
import time
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple, Union
from urllib.parse import quote, urlencode

from ._errors import MaitentoError

CONNECT = 10  # seconds
PATIENCE = 60  # seconds for which a server may be away
_AWAY = (502, 503, 504)
_CODES = {401: "unauthenticated", 403: "forbidden", 404: "notFound", 409: "conflict", 410: "gone",
          413: "tooLarge", 429: "rateLimited", 502: "unavailable", 503: "unavailable", 504: "unavailable",
          507: "diskFull"}
Body = Union[None, bytes, BinaryIO]


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A socket with a time-out of Python's does not wait for a place in a full queue; this way it does.
        seconds = int(self.timeout)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", seconds, 0))
        self.sock.connect(self._path)
        self.sock.settimeout(self.timeout)


def path_of(*parts: str, **query: Any) -> str:
    """"/v1/" and the parts, each encoded; members of the query that are None are left out."""
    given = {k: ("true" if v is True else "false" if v is False else v) for k, v in query.items() if v is not None}
    tail = "?" + urlencode(given, quote_via=quote, safe="/") if given else ""
    return "/v1/" + "/".join(quote(p, safe="") for p in parts) + tail


class Http:
    """Any thread may call; each call has a connection to itself."""

    def __init__(self, url: str, api_key: Optional[str]):
        self.url = url
        self._headers = {"User-Agent": "maitento-python/0.1.0"}
        if api_key:
            if not re.fullmatch(r"[\x21-\x7e]+", api_key):
                raise MaitentoError("the API key holds a blank or control character: it is no key", "badRequest")
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._reached = False
        self._parse(url)

    def _parse(self, url: str) -> None:
        match = re.fullmatch(r"(https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?/?", url)
        if url.startswith("unix:/"):
            self._path: Optional[str] = url[len("unix:"):]
        elif match:
            self._path = None
            self._tls = match.group(1) == "https"
            self._host = match.group(2).strip("[]")
            self._port = int(match.group(3) or (443 if self._tls else 80))
        else:
            shown = "it" if "@" in url else f"'{url}'"
            raise MaitentoError(f"the address is wrong: {shown} should be http://HOST[:PORT], https://HOST[:PORT]"
                                " or unix:/PATH", "badRequest")

    # ---- connections ----

    def _new(self, timeout: float) -> http.client.HTTPConnection:
        if self._path is not None:
            return _UnixConnection(self._path, timeout)
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout,
                                               context=ssl.create_default_context())
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _take(self, timeout: float) -> Tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            return self._new(timeout), False
        connection.sock.settimeout(timeout)
        return connection, True

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and len(self._idle) < 8:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # ---- one request ----

    def _unreachable(self, error: Exception, sent: bool, method: str) -> MaitentoError:
        code = "outcomeUnknown" if sent and method == "POST" else "unreachable"
        return MaitentoError(f"the server at {self.url}: {error or type(error).__name__}", code)

    def open(self, method: str, path: str, body: Body, headers: Dict[str, str],
             timeout: float) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request and reads the answer's head. Error answers are raised."""
        while True:
            connection, used = self._take(timeout)
            sent = False
            try:
                if connection.sock is None:
                    connection.timeout = min(timeout, CONNECT)
                    connection.connect()
                    connection.sock.settimeout(timeout)
                self._reached = sent = True
                answer = self._exchange(connection, method, path, body, {**self._headers, **headers})
                break
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # The server closes idle connections: another one, where nothing can be done twice.
                if used and (method == "GET" or "Idempotency-Key" in headers) and not isinstance(error, TimeoutError):
                    continue
                raise self._unreachable(error, sent, method) from error
        if 200 <= answer.status <= 299:
            return connection, answer
        try:
            raise self._failure(answer)
        finally:
            connection.close()

    @staticmethod
    def _exchange(connection: http.client.HTTPConnection, method: str, path: str, body: Body,
                  headers: Dict[str, str]) -> http.client.HTTPResponse:
        """The answer; also one that refuses a body while it is sent, after which nothing more is taken."""
        try:
            connection.request(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError) as error:
            if body is None:
                raise
            try:
                answer = http.client.HTTPResponse(connection.sock, method=method)
                answer.begin()
            except (OSError, http.client.HTTPException):
                raise error from None
            if answer.status < 400:
                raise
            return answer
        return connection.getresponse()

    def _failure(self, answer: http.client.HTTPResponse) -> MaitentoError:
        try:
            problem = json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException):
            problem = {}
        if not isinstance(problem, dict):
            problem = {}
        code = problem.get("code") or _CODES.get(answer.status, "internal" if answer.status >= 500 else "badRequest")
        message = problem.get("detail") or f"the server at {self.url} answered with status {answer.status}"
        for found in problem.get("diagnostics") or []:
            message += f"\n  {found.get('file')}:{found.get('line')}:{found.get('column')}: {found.get('message')}"
        after = answer.headers.get("Retry-After", "")
        return MaitentoError(message, code, answer.status, problem, int(after) if after.isdigit() else None)

    def bytes(self, method: str, path: str, body: Body = None, headers: Optional[Dict[str, str]] = None,
              timeout: float = 90) -> bytes:
        connection, answer = self.open(method, path, body, headers or {}, timeout)
        try:
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._unreachable(error, True, method) from error
        self._keep(connection)
        return data

    def copy(self, path: str, to: BinaryIO, timeout: float = 90) -> int:
        """The body of a GET into a file, without holding it in memory."""
        connection, answer = self.open("GET", path, None, {}, timeout)
        length = 0
        try:
            while piece := answer.read(1 << 16):
                to.write(piece)
                length += len(piece)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._unreachable(error, True, "GET") from error
        self._keep(connection)
        return length

    def json(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None,
             timeout: float = 90) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {**(headers or {}), **({"Content-Type": "application/json"} if data is not None else {})}
        raw = self.bytes(method, path, data, headers, timeout)
        try:
            return json.loads(raw) if raw else None
        except ValueError as error:
            raise MaitentoError(f"the answer of {self.url} is no JSON: is it a maitento server?") from error

    # ---- repeating ----

    def patiently(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None,
                  timeout: float = 90) -> Any:
        """For what is harmless to repeat: outlives a restart of the server, up to PATIENCE seconds."""
        since, tries = time.monotonic(), 0
        while True:
            asked = time.monotonic()
            try:
                return self.json(method, path, body, headers, timeout)
            except MaitentoError as error:
                if not self.passes(error) or not self._reached:
                    raise
                if time.monotonic() - asked > 5:  # it was there until now
                    since, tries = time.monotonic(), 0
                if time.monotonic() - since > PATIENCE:
                    raise MaitentoError(f"outcome unknown: no server for {PATIENCE} s: {error}", "outcomeUnknown") from error
            self.back_off(tries)
            tries += 1

    @staticmethod
    def passes(error: MaitentoError) -> bool:
        return error.code in ("unreachable", "outcomeUnknown") or error.status in _AWAY

    @staticmethod
    def back_off(tries: int) -> None:
        time.sleep(min(0.1 * 2 ** tries, 1.6) * random.uniform(1, 1.5))

    # ---- lists and streams ----

    def pages(self, path: str, limit: Optional[int] = None) -> Iterator[Dict[str, Any]]:
        """The items of a list, page by page."""
        after: Optional[str] = None
        join = "&" if "?" in path else "?"
        while limit is None or limit > 0:
            size = 1000 if limit is None else min(limit, 1000)
            page = self.patiently("GET", f"{path}{join}limit={size}" + (f"&after={quote(after, safe='')}" if after else ""))
            yield from page["items"]
            if limit is not None:
                limit -= len(page["items"])
            after = page.get("next")
            if not after:
                return
