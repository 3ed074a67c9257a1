# SPDX-License-Identifier: Apache-2.0
"""Runs of interactions."""
from __future__ import annotations

from typing import AsyncIterator, Callable, List, Optional, Union

from .._records import AppRunItem, InteractionAttempt, InteractionRun, InteractionRunItem, InteractionText
from .._wire import ANSWER, SLACK, WAIT, does, given, id_of, path_of
from .core import Core

Run = Union[str, InteractionRunItem]
OnText = Callable[[InteractionText], object]


class InteractionRuns:
    """Models that are or were asked; runs are named by their id or by a record that has it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._http = core.http

    @does("listInteractionRuns")
    async def list(
        self,
        namespace: Optional[str] = None,
        interaction: Optional[str] = None,
        status: Optional[str] = None,
        limit: Optional[int] = 100,
        *,
        id_ending: Optional[str] = None,
        mine: bool = False,
        parent: Union[str, AppRunItem, None] = None,
    ) -> List[InteractionRunItem]:
        """The newest first, without inputs and output; limit None: all. parent: those that this run of an app
        started."""
        query = given(
            namespace=namespace,
            interaction=interaction,
            status=status,
            id_ending=id_ending,
            mine=mine or None,
            parent=None if parent is None else id_of(parent),
        )
        return await self._http.listing(path_of("interaction-runs", **query), InteractionRunItem, limit)

    @does("getInteractionRun")
    async def get(self, run: Run) -> InteractionRun:
        """A run as it is."""
        return InteractionRun(await self._http.patiently("GET", path_of("interaction-runs", id_of(run))))

    async def wait(self, run: Run, timeout: Optional[float] = None) -> InteractionRun:
        """The run when it has ended, or as it is after timeout seconds."""

        def done(found: InteractionRun) -> bool:
            return found.has_ended

        parts = ("interaction-runs", id_of(run))
        return await self._core.until("interactionRun", parts, InteractionRun, done, timeout)

    @does("listInteractionAttempts")
    async def attempts(self, run: Run) -> List[InteractionAttempt]:
        """What the model was asked, what it answered, and what was wrong with that; the first one first."""
        path = path_of("interaction-runs", id_of(run), "attempts")
        found: List[InteractionAttempt] = await self._http.listing(path, InteractionAttempt)
        return found

    @does("getInteractionText")
    async def text(self, run: Run, stream: int = 0, start: int = 0, wait: int = 0) -> InteractionText:
        """What the model said since byte `start` of the text `stream`, within `wait` (0 to 60) seconds.

        Ask again with `stream` and `next` of the answer. A model that is asked again begins another text.
        """
        path = path_of("interaction-runs", id_of(run), "text", stream=stream, wait=wait or None, **{"from": start})
        return InteractionText(await self._http.patiently("GET", path, timeout=wait + SLACK if wait else ANSWER))

    async def texts(self, run: Run) -> AsyncIterator[InteractionText]:
        """What the model says, as it comes, until the run has ended; where `stream` changes it began anew."""
        stream, start = 0, 0
        while True:
            found = await self.text(run, stream, start, WAIT)
            if found.text:
                yield found
            if found.ended:
                return
            stream, start = found.stream, found.next

    @does("cancelInteractionRun")
    async def cancel(self, run: Run) -> InteractionRun:
        """Ends a run: the model is not asked any more. Once it has ended this changes nothing."""
        return InteractionRun(await self._http.patiently("POST", path_of("interaction-runs", id_of(run), "cancel")))
