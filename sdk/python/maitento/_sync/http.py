# SPDX-License-Identifier: Apache-2.0
# Made from maitento/_async/http.py by tools/make-sync: change that.
"""Requests over connections that are kept: errors, first contact, repeating, pages."""
from __future__ import annotations

import json
import re
from typing import Any, Iterator, Callable, Dict, List, Optional

from .._errors import MaitentoError
from .._http1 import HEAD_MAX, Broken, Head, NotHttp, body_length, chunk_size, parse_head, request_head
from .._records import Page
from .._settings import Settings
from .._wire import (
    ANSWER,
    AWAY,
    CONNECT,
    VERSION,
    Patience,
    address_of,
    check_server,
    host_of,
    not_maitento,
    path_of,
    problem_of,
    words_of,
)
from . import net
from .source import Source


class Connection:
    """One exchange after another."""

    def __init__(self, stream: net.Stream) -> None:
        self.stream = stream
        self.used = False
        self.whole = True  # all that was to be sent was sent
        self._buffer = bytearray()

    def _more(self, timeout: float) -> None:
        data = self.stream.read(timeout)
        if not data:
            raise Broken("the connection ended before the answer did")
        self._buffer += data

    def until(self, mark: bytes, timeout: float) -> bytes:
        """What comes before a mark."""
        searched = 0
        while True:
            at = self._buffer.find(mark, searched)
            if at >= 0:
                found = bytes(self._buffer[:at])
                del self._buffer[: at + len(mark)]
                return found
            searched = max(0, len(self._buffer) - len(mark) + 1)
            if len(self._buffer) > HEAD_MAX:
                raise Broken("the answer has a head that does not end")
            self._more(timeout)

    def some(self, at_most: Optional[int], timeout: float) -> bytes:
        """Some bytes; none at the end of the connection."""
        if not self._buffer:
            data = self.stream.read(timeout)
            if at_most is None or len(data) <= at_most:
                return data
            self._buffer += data
        if at_most is None:
            at_most = len(self._buffer)
        found = bytes(self._buffer[:at_most])
        del self._buffer[:at_most]
        return found

    def exchange(self, head: bytes, body: Optional[Source], timeout: float) -> Head:
        """Sends a request and reads the head of its answer: also of one that comes while the body is sent."""
        if body is None:
            self.stream.write(head, timeout)
        else:
            try:
                self._send(head, body, timeout)
            except OSError:
                # An answer that refuses the body may be there, though no more of it is taken.
                self.whole = False
                try:
                    refusal = self._head(timeout)
                except OSError:
                    refusal = None
                if refusal is None or refusal.status < 400:
                    raise
                return refusal
        found = self._head(timeout)
        if not self.whole and found.status < 400:
            raise Broken("the answer came before all was sent")
        return found

    def _send(self, head: bytes, body: Source, timeout: float) -> None:
        if body.data is not None:
            self.stream.write(head + body.data, timeout)
            return
        self.stream.write(head, timeout)
        for piece in body.pieces():
            if self.stream.arrived():
                self.whole = False
                return
            framed = piece if body.length is not None else b"%x\r\n%b\r\n" % (len(piece), piece)
            self.stream.write(framed, timeout)
            body.tell(len(piece))
        if body.length is None:
            self.stream.write(b"0\r\n\r\n", timeout)

    def _head(self, timeout: float) -> Head:
        while True:
            head = parse_head(self.until(b"\r\n\r\n", timeout))
            if head.status >= 200:
                return head


class Answer:
    """An answer whose body is read as it comes. It holds its connection until its end, or until it is closed."""

    def __init__(self, http: Http, connection: Connection, head: Head, method: str, timeout: float, slot: bool) -> None:
        self.status = head.status
        self.headers = head.headers
        self._http = http
        self._connection: Optional[Connection] = connection
        self._keep = head.keep and connection.whole
        self._left = body_length(method, head)
        self._chunk = 0
        self._timeout = timeout
        self._slot = slot

    def read(self) -> bytes:
        """Some of the body; none at its end. Breaks are told as errors."""
        connection = self._connection
        if connection is None:
            return b""
        try:
            data = self._some(connection)
        except OSError as error:
            self.close()
            self._http.broke(error)
            raise self._http.unreachable(error) from error
        except BaseException:
            self.close()
            raise
        if not data:
            self._keep = self._keep and self._left is not None
            self._done(self._keep)
        return data

    def _some(self, connection: Connection) -> bytes:
        if self._left == -1:
            return self._some_of_chunks(connection)
        if self._left == 0:
            return b""
        data = connection.some(self._left, self._timeout)
        if self._left is not None:
            if not data:
                raise Broken("the connection ended before the answer did")
            self._left -= len(data)
        return data

    def _some_of_chunks(self, connection: Connection) -> bytes:
        if not self._chunk:
            self._chunk = chunk_size(connection.until(b"\r\n", self._timeout))
            if not self._chunk:
                while connection.until(b"\r\n", self._timeout):
                    pass
                self._left = 0
                return b""
        data = connection.some(self._chunk, self._timeout)
        if not data:
            raise Broken("the connection ended before the answer did")
        self._chunk -= len(data)
        if not self._chunk:
            connection.until(b"\r\n", self._timeout)
        return data

    def all(self) -> bytes:
        """The rest of the body."""
        pieces: List[bytes] = []
        while True:
            piece = self.read()
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)

    def _done(self, keep: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._http.release(connection, keep, self._slot)

    def close(self) -> None:
        """No more of it is wanted."""
        self._done(False)


class Http:
    """The server of a client: at most `max_connections` exchanges at once, more wait for their turn."""

    def __init__(self, settings: Settings, max_connections: int) -> None:
        self.url = settings.url
        self._source = settings.url_source
        self._address = address_of(settings.url)
        self._headers = {"Host": host_of(self._address), "User-Agent": f"maitento-python/{VERSION}"}
        self._sign_in: Dict[str, str] = {}
        if settings.api_key:
            if not re.fullmatch(r"[\x21-\x7e]+", settings.api_key):
                raise MaitentoError("the API key holds a blank or control character: it is no key", "badRequest")
            self._sign_in = {"Authorization": f"Bearer {settings.api_key}"}
        self._slots = net.Slots(max_connections)
        self._idle: List[Connection] = []
        self._idle_most = min(max_connections, 16)
        self._guard = net.Guard()
        self._meeting = net.Mutex()
        self._met = False
        self.reached = False
        self._closed = False

    # ---- connections ----

    def _connection(self, fresh: bool) -> Connection:
        while not fresh:
            with self._guard:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            if not connection.stream.arrived():  # else it has ended
                return connection
            connection.stream.close()
        return Connection(net.Stream.connect(self._address))

    def release(self, connection: Connection, keep: bool, slot: bool) -> None:
        """An exchange is over."""
        if slot:
            self._slots.give()
        if keep:
            connection.used = True
            with self._guard:
                keep = len(self._idle) < self._idle_most and not self._closed
                if keep:
                    self._idle.append(connection)
        if not keep:
            connection.stream.close()

    def broke(self, error: OSError) -> None:
        """A connection broke. Of one that fell silent the others, made the same way, may have done so, too."""
        if isinstance(error, TimeoutError):
            self._drop_idle()

    def _drop_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.stream.close()

    def close(self) -> None:
        """Ends the connections that nobody uses."""
        self._closed = True
        self._drop_idle()

    @property
    def busy(self) -> bool:
        """Whether others wait for their turn."""
        return self._slots.waiting > 0

    def unreachable(self, error: BaseException, code: str = "unreachable") -> MaitentoError:
        """The error of a connection that could not be made, or broke."""
        said = words_of(error)
        if self.reached:
            return MaitentoError(f"the server at {self.url}: {said}", code)
        return MaitentoError(
            f"cannot reach the server at {self.url} (from {self._source}): {said}: start it there, or say where"
            " it is: Maitento(url=…), MAITENTO_URL, or `mt login`",
            code,
        )

    # ---- one request ----

    def open(
        self,
        method: str,
        path: str,
        body: Optional[Source] = None,
        headers: Optional[Dict[str, str]] = None,
        *,
        timeout: float = ANSWER,
        repeatable: bool = True,
        slot: bool = True,
        halt: Optional[net.Halt] = None,
    ) -> Answer:
        """Sends a request and gives its answer, whatever its status. Without a slot it is not counted."""
        if slot:
            self._slots.take()
        try:
            return self._open(method, path, body, headers or {}, timeout, repeatable, slot, halt)
        except BaseException:
            if slot:
                self._slots.give()
            raise

    def _open(
        self,
        method: str,
        path: str,
        body: Optional[Source],
        headers: Dict[str, str],
        timeout: float,
        repeatable: bool,
        slot: bool,
        halt: Optional[net.Halt],
    ) -> Answer:
        signed = {} if path == "/v1/server" else self._sign_in
        framing = {} if body is None else body.framing()
        head = request_head(method, path, {**self._headers, **signed, **framing, **headers})
        # What may be done once only is not given to a connection that may be dead; nor is what must know of repeats.
        fresh = not repeatable or method == "DELETE"
        while True:
            try:
                connection = self._connection(fresh)
            except OSError as error:
                raise self.unreachable(error) from error
            self.reached = True
            if halt:
                halt.attach(connection.stream)
            try:
                found = connection.exchange(head, body, timeout)
                return Answer(self, connection, found, method, timeout, slot)
            except OSError as error:
                connection.stream.close()
                self.broke(error)
                if connection.used and not isinstance(error, TimeoutError) and (body is None or body.again()):
                    fresh = True  # the server closes idle connections
                    continue
                raise self.unreachable(error, "unreachable" if repeatable else "outcomeUnknown") from error
            except BaseException:
                connection.stream.close()
                raise

    def meet(self) -> None:
        """Before the first request: whether it is a Maitento server. It is asked without the key."""
        if self._met:
            return
        with self._meeting:
            if self._met:
                return
            patience = Patience()
            while True:
                try:
                    self._meet()
                    self._met = True
                    return
                except MaitentoError as error:
                    if not self.reached:
                        raise
                    pause = patience.pause(error)
                net.sleep(pause)

    def _meet(self) -> None:
        try:
            answer = self.open("GET", "/v1/server", timeout=CONNECT)
        except MaitentoError as error:
            if isinstance(error.__cause__, NotHttp):
                raise not_maitento(self.url, str(error.__cause__)) from error
            raise
        raw = answer.all()
        if answer.status in (429, *AWAY):
            raise problem_of(self.url, answer.status, answer.headers, raw)
        check_server(self.url, answer.status, raw)

    def stream(
        self,
        method: str,
        path: str,
        body: Optional[Source] = None,
        headers: Optional[Dict[str, str]] = None,
        *,
        timeout: float = ANSWER,
        repeatable: bool = True,
        slot: bool = True,
        halt: Optional[net.Halt] = None,
    ) -> Answer:
        """As open(), after first contact; error answers are raised."""
        self.meet()
        answer = self.open(method, path, body, headers, timeout=timeout, repeatable=repeatable, slot=slot, halt=halt)
        if answer.status < 300:
            return answer
        try:
            raw = answer.all()
        except MaitentoError:
            raw = b""
        raise problem_of(self.url, answer.status, answer.headers, raw)

    def once(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Optional[Dict[str, str]] = None,
        *,
        timeout: float = ANSWER,
        repeatable: bool = False,
    ) -> Any:
        """One request with JSON in and out."""
        source = None if body is None else Source.of_json(body)
        answer = self.stream(method, path, source, headers, timeout=timeout, repeatable=repeatable)
        raw = answer.all()
        try:
            return json.loads(raw) if raw else None
        except ValueError as error:
            raise not_maitento(self.url, "an answer is no JSON") from error

    # ---- repeating ----

    def patiently(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Optional[Dict[str, str]] = None,
        *,
        timeout: float = ANSWER,
    ) -> Any:
        """For what is harmless to repeat: outlives a restart of the server, up to PATIENCE seconds."""
        patience, lost = Patience(), False
        while True:
            try:
                return self.once(method, path, body, headers, timeout=timeout, repeatable=True)
            except MaitentoError as error:
                if method == "DELETE" and lost and error.code == "notFound":
                    return None  # an earlier try did it, and its answer was lost
                if not self.reached or not self._met:
                    raise
                pause = patience.pause(error)
                lost = True
            net.sleep(pause)

    def pages(self, path: str, limit: Optional[int] = None) -> Iterator[Dict[str, Any]]:
        """The items of a list, page by page."""
        after: Optional[str] = None
        join = "&" if "?" in path else "?"
        while limit is None or limit > 0:
            size = 1000 if limit is None else min(limit, 1000)
            more = path_of(after=after).partition("?")[2]
            page = Page(self.patiently("GET", f"{path}{join}limit={size}" + (f"&{more}" if more else "")))
            for item in page.items:
                yield item
            if limit is not None:
                limit -= len(page.items)
            after = page.next
            if not after:
                return

    def listing(self, path: str, make: Callable[[Dict[str, Any]], Any], limit: Optional[int] = None) -> List[Any]:
        """All items of a list."""
        return [make(item) for item in self.pages(path, limit)]
