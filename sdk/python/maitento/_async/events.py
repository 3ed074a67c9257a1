# SPDX-License-Identifier: Apache-2.0
"""The event stream: one connection that is read beside, however often it has to be made anew."""
from __future__ import annotations

import json
from typing import Any, Dict, Optional, Sequence, Set, Union

from .._errors import MaitentoError
from .._records import EVENTS, ChangeEvent, Event, EventEnd, EventHello
from .._sse import Frame, Parser
from .._wire import Patience, does, id_of, path_of, passes
from . import net
from .core import Core
from .http import Answer

SILENCE = 45.0  # seconds without a sign of life after which a stream is cut; the server gives one every 15
ROOM = 10_000  # events that wait to be read


class EventStream:
    """Events as they come. For `async with` and `async for`.

    It outlives breaks, and goes on where it was. While it is open, exec_and_wait() and all other waits of the
    same client are woken by it, unless it was opened for one namespace or run. Events wait to be read, 10,000 of
    them; what comes while there is no room is asked of the server again later. Where the server does not keep
    that any more, iterating raises MaitentoError "gone" once, and goes on with what is new. It ends where the right to
    see what it tells is gone ("accessLost").
    """

    def __init__(self, core: Core, query: Dict[str, Any], kinds: Optional[Set[str]], tells_all: bool) -> None:
        self._core = core
        self._query = query
        self._kinds = kinds
        self._tells_all = tells_all
        self._last: Optional[int] = None  # number of the last event that was read from the server
        self._queued: Optional[int] = None  # and of the last one that found room
        self._missed = False  # some found none
        self._queue: net.Channel[Union[Event, MaitentoError]] = net.Channel(ROOM)
        self._halt = net.Halt()
        self._begun = net.Signal()
        self._failure: Optional[MaitentoError] = None
        self._worker: Optional[net.Worker] = None

    # ---- for its user ----

    async def __aenter__(self) -> EventStream:
        await self.start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def start(self) -> None:
        """Connects; `async with` does it. Errors of the opening are raised here."""
        if self._worker is None:
            await self._core.http.meet()
            self._core.streams.append(self._stop)
            self._worker = net.Worker(self._read, "maitento events")
            await self._begun.wait(None)
        if self._failure is not None:
            await self.close()
            raise self._failure

    async def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event; None after timeout seconds, or at the end of a stream that has one."""
        await self.start()
        if self._missed and self._queue.empty:
            self._halt.kick()  # what found no room comes once more
        try:
            event = await self._queue.get(timeout)
        except net.Closed:
            return None
        if isinstance(event, MaitentoError):
            raise event
        return event

    @property
    def number(self) -> Optional[int]:
        """Number of the newest event that came: `after` of another stream that is to go on from here."""
        return self._last

    async def close(self) -> None:
        """Ends it. Waits that it woke go on by asking."""
        self._stop()
        if self._worker is not None:
            await self._worker.join()

    def _stop(self) -> None:
        self._halt.halt()
        self._queue.close()

    # ---- beside ----

    async def _read(self) -> None:
        patience = Patience()
        error: Optional[MaitentoError] = None
        try:
            while not self._halt.halted:
                try:
                    if await self._once(patience):
                        break
                except MaitentoError as broken:
                    if self._halt.halted:
                        break
                    if broken.code == "gone" and self._begun.given:
                        self._last = None
                        self._queue.offer(broken)
                        continue
                    if not self._begun.given and not passes(broken):
                        raise
                    await self._halt.sleep(patience.pause(broken))
        except MaitentoError as last:
            error = last
        except Exception as wrong:  # whatever it was, nobody waits for ever
            error = MaitentoError(f"the event stream broke: {wrong!r}")
        finally:
            self._failure = error if not self._begun.given else None
            self._core.hub.part(self)
            if self._stop in self._core.streams:
                self._core.streams.remove(self._stop)
            self._queue.close(error)
            self._begun.give()

    async def _once(self, patience: Patience) -> bool:
        """One connection; whether the stream is over with it."""
        if self._missed:
            self._missed, self._last = False, self._queued
        headers = {"Accept": "text/event-stream"}
        if self._last is not None:
            headers["Last-Event-ID"] = str(self._last)
        answer = await self._core.http.stream(
            "GET", path_of("events", **self._query), None, headers, timeout=SILENCE, slot=False, halt=self._halt
        )
        try:
            return await self._frames(answer, patience)
        finally:
            self._halt.attach(None)
            answer.close()

    async def _frames(self, answer: Answer, patience: Patience) -> bool:
        parser = Parser()
        while True:
            data = await answer.read()
            if not data:
                # A body that was to end has done so; any other break is not an end.
                if self._query.get("follow") is False:
                    return True
                raise MaitentoError(f"the event stream of {self._core.http.url} ended", "unreachable")
            for frame in parser.feed(data):
                patience.begin()
                code = self._take(frame)
                if code == "runEnded":
                    return True
                if code is not None:
                    return False

    def _take(self, frame: Frame) -> Optional[str]:
        """One event; the code of the one that is the last of a connection."""
        data: Any = json.loads(frame.data)
        if frame.event == "hello":
            hello = EventHello(data)
            if self._last is None:
                self._last = self._queued = hello.after
            self._query.update(after=None, last=None)  # from here on it goes by what came
            if self._tells_all:
                self._core.hub.join(self, self._kinds)
            self._begun.give()
            return None
        if frame.event == "end":
            end = EventEnd(data)
            if end.code == "accessLost":
                raise MaitentoError(end.sentence, end.code)
            self._last = end.after
            return end.code
        kind = EVENTS.get(frame.event)
        if kind is None:  # of a newer server
            return None
        event = kind(data)
        if isinstance(event, ChangeEvent):
            self._last = event.number
            self._core.hub.tell(event)
        self._missed = self._missed or not self._queue.offer(event)
        if not self._missed:
            self._queued = self._last
        return None


class Events:
    """What happens on the server, as it happens."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @does("streamEvents")
    def open(
        self,
        *,
        after: Optional[int] = None,
        last: Optional[int] = None,
        namespace: Optional[str] = None,
        kind: Union[str, Sequence[str], None] = None,
        run: Any = None,
        output: bool = False,
        follow: bool = True,
    ) -> EventStream:
        """A stream of events, from now on: `async with mt.events.open() as events:`. Nothing is asked yet.

        after: the events with a higher number; last: so many (0 to 1,000) of before, too. namespace, kind (one or
        several of "capsuleRun", "command", "appRun", "interactionRun", "capsule", "app", "agent", "interaction",
        "json", "prompt", "namespace", "vfs", "secret", "user", "key", "provider"), run: only those. output: with
        what the run's commands print, its app prints or its model says; needs run. follow False: it ends when all
        that is there was sent. Errors: "gone" where `after` is older than what is kept, "rateLimited" where one
        has too many streams.
        """
        kinds = {kind} if isinstance(kind, str) else set(kind) if kind is not None else None
        query: Dict[str, Any] = {
            "after": after,
            "last": last,
            "namespace": namespace,
            "kind": ",".join(sorted(kinds)) if kinds else None,
            "run": None if run is None else id_of(run),
            "output": True if output else None,
            "follow": None if follow else False,
        }
        return EventStream(self._core, query, kinds, follow and namespace is None and run is None)
