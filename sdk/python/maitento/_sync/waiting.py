# SPDX-License-Identifier: Apache-2.0
# Made from maitento/_async/waiting.py by tools/make-sync: change that.
"""Waiting for an end: by the event stream where one is open, else by asking again and again.

An event only wakes. What an end was is always read from the record itself, so that a stream that breaks, falls
silent or lies makes waiting slower, never wrong.
"""
from __future__ import annotations

import time
from typing import Any, Callable, Dict, Optional, Set, TypeVar

from .._ended import LatelyEnded
from .._records import ChangeEvent
from .._wire import WAIT, Clock
from . import net

R = TypeVar("R")
ENDS = ("ended", "ready", "deleted")
BELT = 30.0  # seconds after which one asks though no event came


class Watch:
    """One who waits for something of an id."""

    def __init__(self, hub: Hub, wanted: str) -> None:
        self._hub = hub
        self.id = wanted
        self.signal = net.Signal()

    def wait(self, seconds: float) -> None:
        """Until something happened since the last time, or so many seconds."""
        self.signal.wait(seconds)
        self.signal = net.Signal()  # what comes from here on wakes again

    def close(self) -> None:
        self._hub.leave(self)


class Hub:
    """Brings what the event streams of a client tell to those who wait."""

    def __init__(self) -> None:
        self._guard = net.Guard()
        self._streams: Dict[Any, Optional[Set[str]]] = {}  # those that tell of all runs -> of which kinds (None: all)
        self._turn = 0  # changes whenever events may have been missed
        self._ended = LatelyEnded()
        self._watches: Dict[str, Set[Watch]] = {}

    # ---- of streams ----

    def join(self, stream: Any, kinds: Optional[Set[str]]) -> None:
        """A stream is there and connected, or there again after a break."""
        with self._guard:
            self._streams[stream] = kinds
            self._turn += 1
        self._wake_all()

    def part(self, stream: Any) -> None:
        """A stream has ended: who waits asks by himself from now on."""
        with self._guard:
            if self._streams.pop(stream, self) is self:
                return
            self._turn += 1
        self._wake_all()

    def tell(self, event: ChangeEvent) -> None:
        """A stream told of a change."""
        if event.change not in ENDS:
            return
        with self._guard:
            if event.change == "ended":
                self._ended.add(event.id)
            woken = list(self._watches.get(event.id, ()))
        for watch in woken:
            watch.signal.give()

    def _wake_all(self) -> None:
        with self._guard:
            woken = [watch for watches in self._watches.values() for watch in watches]
        for watch in woken:
            watch.signal.give()

    # ---- of those who wait ----

    def turn(self, kind: str) -> Optional[int]:
        """Something to give to watch() later, so that nothing is missed in between; None: no stream tells of it."""
        with self._guard:
            told = any(kinds is None or kind in kinds for kinds in self._streams.values())
            return self._turn if told else None

    def watch(self, kind: str, wanted: str, since: Optional[int]) -> Optional[Watch]:
        """A watch that is woken at once where something was missed since then; None: no stream tells of it."""
        if self.turn(kind) is None:
            return None
        watch = Watch(self, wanted)
        with self._guard:
            self._watches.setdefault(wanted, set()).add(watch)
            missed = self._turn != since or wanted in self._ended
        if missed:
            watch.signal.give()
        return watch

    def leave(self, watch: Watch) -> None:
        """It does not wait any more."""
        with self._guard:
            watches = self._watches.get(watch.id)
            if watches is not None:
                watches.discard(watch)
                if not watches:
                    del self._watches[watch.id]


def until(
    hub: Hub,
    kind: str,
    wanted: str,
    ask: Callable[[int], R],
    done: Callable[[R], bool],
    timeout: Optional[float] = None,
    since: Optional[int] = None,
    crowded: Callable[[], bool] = bool,
) -> R:
    """The record when it is done, or as it is after timeout seconds.

    ask(seconds) asks for it and lets the server wait so long. since: a turn of the hub from before the thing was
    there; then it is asked for only when there is news of it.
    """
    clock = Clock(timeout)
    while True:
        watch = hub.watch(kind, wanted, since)
        since = None
        if watch is not None:
            try:
                while hub.turn(kind) is not None:
                    watch.wait(clock.left(BELT))
                    record = ask(0)
                    if done(record) or clock.over:
                        return record
            finally:
                watch.close()
            continue
        # Where many share the connections, nobody keeps one for long.
        seconds = clock.whole(1 if crowded() else WAIT)
        asked = time.monotonic()
        record = ask(seconds)
        if done(record) or clock.over:
            return record
        if seconds and time.monotonic() - asked < 0.05:  # an answer at once though nothing happened
            net.sleep(clock.left(1.0))
