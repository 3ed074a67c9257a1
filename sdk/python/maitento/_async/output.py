# SPDX-License-Identifier: Apache-2.0
"""What a command prints, while it prints it: taken up again after a break where it was."""
from __future__ import annotations

import codecs
import time
from typing import AsyncIterator, Callable, Optional, Tuple

from .._errors import MaitentoError
from .._records import Command, OutputChunk
from .._wire import Patience, path_of, passes
from . import net
from .core import Core

STREAMS = ("standard", "error")


class Output:
    """The outputs of one command."""

    def __init__(self, core: Core, run: str, command: str) -> None:
        self._core = core
        self._parts = ("capsule-runs", run, "commands", command)

    async def _ended(self) -> bool:
        return Command(await self._core.http.patiently("GET", path_of(*self._parts))).has_ended

    async def pieces(
        self, stream: str, start: int, follow: bool, halt: Optional[net.Halt] = None
    ) -> AsyncIterator[Tuple[int, bytes]]:
        """(offset, bytes) of one output, from byte start on or from the oldest that is kept."""
        at, ended, patience = start, not follow, Patience()
        halt = halt or net.Halt()
        while not halt.halted:
            asked = time.monotonic()
            try:
                async for offset, piece in self._once(stream, at, follow, halt):
                    patience.begin()
                    at = offset + len(piece)
                    yield offset, piece
            except MaitentoError as error:
                if halt.halted:
                    return
                if passes(error) and time.monotonic() - asked > 5 and not isinstance(error.__cause__, TimeoutError):
                    patience.begin()  # it was there until now
                await halt.sleep(patience.pause(error))
                continue
            if ended:
                return
            # The end of a stream proves nothing: the command's record does.
            ended = await self._ended()
            if not ended and time.monotonic() - asked < 0.2:
                await halt.sleep(0.5)

    async def _once(self, stream: str, at: int, follow: bool, halt: net.Halt) -> AsyncIterator[Tuple[int, bytes]]:
        path = path_of(*self._parts, "output", stream=stream, follow=follow or None, **{"from": at})
        answer = await self._core.http.stream("GET", path, slot=False, halt=halt)
        try:
            at = int(answer.headers.get("x-maitento-offset", at))
            while True:
                piece = await answer.read()
                if not piece:
                    return
                yield at, piece
                at += len(piece)
        finally:
            halt.attach(None)
            answer.close()

    async def both(self) -> AsyncIterator[OutputChunk]:
        """Both outputs as they come, until the command has ended."""
        chunks: net.Channel[Optional[OutputChunk]] = net.Channel(64)  # None: one of the two has ended
        workers = [_Follower(self, stream, chunks) for stream in STREAMS]
        left = len(workers)
        try:
            for worker in workers:
                worker.start()
            while left:
                chunk = await chunks.get()
                if chunk is None:
                    left -= 1
                else:
                    yield chunk
        finally:
            chunks.close()
            for worker in workers:
                worker.stop()


class _Follower:
    """Reads one output beside."""

    def __init__(self, output: Output, stream: str, chunks: net.Channel[Optional[OutputChunk]]) -> None:
        self._output = output
        self._stream = stream
        self._chunks = chunks
        self._halt = net.Halt()

    def start(self) -> None:
        net.Worker(self._read, f"maitento {self._stream} output")

    def stop(self) -> None:
        self._halt.halt()

    async def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        at = 0
        try:
            async for at, data in self._output.pieces(self._stream, 0, True, self._halt):
                await self._chunks.put(OutputChunk(self._stream, at, data, decoder.decode(data)))
                at += len(data)
            rest = decoder.decode(b"", True)
            if rest:
                await self._chunks.put(OutputChunk(self._stream, at, b"", rest))
            await self._chunks.put(None)
        except net.Closed:
            pass
        except BaseException as error:
            self._chunks.close(error)


OnOutput = Callable[[OutputChunk], object]
