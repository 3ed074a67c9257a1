# SPDX-License-Identifier: Apache-2.0
"""What tasks stand on: transports, queues, waiting. The same names as maitento/_sync/net.py."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import errno
import functools
import os
import socket
import time
from typing import Any, Awaitable, Callable, Deque, Generic, List, Optional, Tuple, TypeVar

from .._wire import CONNECT, Address

T = TypeVar("T")

ROOM = 256 << 10  # bytes that may wait to be read


class Closed(Exception):
    """Nothing more goes through a channel."""


class _Alarm:
    """Wakes one who waits: when it rings, or after a time."""

    def __init__(self) -> None:
        self._waiter: Optional[asyncio.Future[bool]] = None

    def ring(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    @staticmethod
    def _late(waiter: asyncio.Future[bool]) -> None:
        if not waiter.done():
            waiter.set_result(False)

    async def wait(self, timeout: Optional[float]) -> bool:
        """Whether it rang; False after timeout seconds. For one waiter."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = None
        if timeout is not None:
            timer = loop.call_later(timeout, self._late, waiter)
        try:
            return await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


class _Protocol(asyncio.Protocol):
    """Keeps what comes until it is read: also what came before a connection broke."""

    def __init__(self) -> None:
        self.transport: Optional[asyncio.Transport] = None
        self.data = bytearray()
        self.ended = False
        self.error: Optional[BaseException] = None
        self.readable = _Alarm()
        self.writable = _Alarm()
        self.full = False
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > ROOM and self.transport and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self.readable.ring()

    def taken(self) -> None:
        if self._paused and self.transport:
            self._paused = False
            self.transport.resume_reading()

    def eof_received(self) -> bool:
        self.ended = True
        self.readable.ring()
        return False

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self.ended, self.error = True, exc
        self.readable.ring()
        self.writable.ring()

    def check(self) -> None:
        """Raises what the connection broke of."""
        if isinstance(self.error, OSError):
            raise self.error

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self.writable.ring()


async def _unix(path: str) -> socket.socket:
    """A connected socket; a full queue of the server's is waited for, which asyncio by itself does not."""
    until = time.monotonic() + CONNECT
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        while True:
            code = sock.connect_ex(path)
            if code == 0:
                return sock
            if code != errno.EAGAIN or time.monotonic() > until:
                raise OSError(code, os.strerror(code))
            await asyncio.sleep(0.01)
    except BaseException:
        sock.close()
        raise


class Stream:
    """Bytes to and from a server. One task uses it; any may interrupt it."""

    def __init__(self, transport: asyncio.Transport, protocol: _Protocol) -> None:
        self._transport = transport
        self._protocol = protocol

    @classmethod
    async def connect(cls, address: Address) -> Stream:
        """A connection, within CONNECT seconds."""
        loop = asyncio.get_running_loop()
        if address.path is not None:
            sock = await _unix(address.path)
            made: Tuple[Any, _Protocol] = await loop.create_unix_connection(_Protocol, sock=sock)
        else:
            named = address.host if address.tls else None
            opening = loop.create_connection(
                _Protocol, address.host, address.port, ssl=address.tls, server_hostname=named
            )
            try:
                made = await asyncio.wait_for(opening, CONNECT)
            except asyncio.TimeoutError:
                raise TimeoutError(f"no connection within {CONNECT:.0f} s") from None
        return cls(*made)

    async def read(self, timeout: float) -> bytes:
        """Some bytes; none at the end."""
        protocol = self._protocol
        if not protocol.data and not protocol.ended and not await protocol.readable.wait(timeout):
            raise TimeoutError(f"nothing came for {timeout:.0f} s")
        if protocol.data:
            data = bytes(protocol.data)
            protocol.data.clear()
            protocol.taken()
            return data
        protocol.check()
        return b""

    async def write(self, data: bytes, timeout: float) -> None:
        """All of the bytes, as far as the transport takes them."""
        protocol = self._protocol
        if protocol.error or self._transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        self._transport.write(data)
        while protocol.full and not protocol.ended:
            if not await protocol.writable.wait(timeout):
                raise TimeoutError(f"nothing could be sent for {timeout:.0f} s")
        protocol.check()

    def arrived(self) -> bool:
        """Whether something came, or the end."""
        return bool(self._protocol.data) or self._protocol.ended

    def interrupt(self) -> None:
        """Whoever reads sees the end."""
        self._transport.abort()

    def close(self) -> None:
        self._transport.abort()


class Guard:
    """Nothing: between two awaits no other task runs."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


class Slots:
    """So many at once; who comes later waits for his turn."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: Deque[asyncio.Future[None]] = collections.deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    async def take(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.give()  # it was given in the moment in which this one left
            else:
                self._queue.remove(turn)
            raise

    def give(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Mutex:
    """One at a time, also over what is waited for."""

    def __init__(self) -> None:
        self._slots = Slots(1)

    async def __aenter__(self) -> None:
        await self._slots.take()

    async def __aexit__(self, *_: Any) -> None:
        self._slots.give()


class Signal:
    """Something that happens once; one waits for it."""

    def __init__(self) -> None:
        self.given = False
        self._alarm = _Alarm()

    def give(self) -> None:
        self.given = True
        self._alarm.ring()

    async def wait(self, timeout: Optional[float]) -> bool:
        """Whether it has happened, within timeout seconds."""
        return self.given or await self._alarm.wait(timeout)


class Channel(Generic[T]):
    """A queue of so many items from others to one."""

    def __init__(self, room: int) -> None:
        self._items: Deque[T] = collections.deque()
        self._room = room
        self._closed = False
        self._error: Optional[BaseException] = None
        self._came = _Alarm()
        self._putting: List[_Alarm] = []

    def offer(self, item: T) -> bool:
        """Puts it where there is room for it."""
        if len(self._items) >= self._room:
            return False
        self._items.append(item)
        self._came.ring()
        return True

    async def put(self, item: T) -> None:
        """Puts it as soon as there is room."""
        while len(self._items) >= self._room and not self._closed:
            alarm = _Alarm()
            self._putting.append(alarm)
            try:
                await alarm.wait(None)
            finally:
                self._putting.remove(alarm)
        if self._closed:
            raise Closed
        self._items.append(item)
        self._came.ring()

    async def get(self, timeout: Optional[float] = None) -> Optional[T]:
        """The next; None after timeout seconds. At the end Closed, or the error that it was closed with."""
        if not self._items and not self._closed:
            await self._came.wait(timeout)
        if self._items:
            item = self._items.popleft()
            self._let_put()
            return item
        if self._closed:
            error, self._error = self._error, None
            raise error or Closed
        return None

    def _let_put(self) -> None:
        for alarm in self._putting:
            alarm.ring()

    @property
    def empty(self) -> bool:
        return not self._items

    def close(self, error: Optional[BaseException] = None) -> None:
        """The end: after what is in it, for who gets; at once for who puts."""
        self._error = error if not self._closed else self._error
        self._closed = True
        self._came.ring()
        self._let_put()


class Halt:
    """Tells a worker to stop, whatever it waits for."""

    def __init__(self) -> None:
        self._signal = Signal()
        self._stream: Optional[Stream] = None

    @property
    def halted(self) -> bool:
        return self._signal.given

    def attach(self, stream: Optional[Stream]) -> None:
        """What it reads from now on."""
        self._stream = stream
        if stream and self.halted:
            stream.interrupt()

    def kick(self) -> None:
        """Ends what it reads, and nothing else."""
        if self._stream:
            self._stream.interrupt()

    def halt(self) -> None:
        self._signal.give()
        self.kick()

    async def sleep(self, seconds: float) -> None:
        """Sleeps, or until it is to stop."""
        await self._signal.wait(seconds)


class Worker:
    """A task that does something beside."""

    def __init__(self, function: Callable[[], Awaitable[Any]], name: str) -> None:
        async def run() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await function()

        self._task = asyncio.get_running_loop().create_task(run(), name=name)

    async def join(self) -> None:
        """Waits until it is done; from itself not at all."""
        if self._task is not asyncio.current_task():
            await asyncio.shield(asyncio.wait([self._task]))


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def blocking(function: Callable[..., T], *arguments: Any) -> T:
    """What may keep the disk busy."""
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(function, *arguments))
