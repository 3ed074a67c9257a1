# SPDX-License-Identifier: Apache-2.0
"""What threads stand on: sockets, queues, waiting. The same names as maitento/_async/net.py."""
from __future__ import annotations

import collections
import select
import socket
import ssl
import struct
import threading
import time
from typing import Any, Callable, Deque, Generic, Optional, TypeVar

from .._wire import CONNECT, Address

T = TypeVar("T")

Mutex = threading.Lock  # held while others are waited for
Guard = threading.Lock  # held for a moment


class Closed(Exception):
    """Nothing more goes through a channel."""


class Stream:
    """Bytes to and from a server. One thread uses it; any may interrupt it."""

    def __init__(self, sock: socket.socket, tls: bool) -> None:
        self._socket = sock
        self._tls = tls

    @classmethod
    def connect(cls, address: Address) -> Stream:
        """A connection, within CONNECT seconds."""
        if address.path is not None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                # A socket with a time-out of Python's does not wait for a place in a full queue; this way it does.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(CONNECT), 0))
                sock.connect(address.path)
            except BaseException:
                sock.close()
                raise
            return cls(sock, False)
        sock = socket.create_connection((address.host, address.port), CONNECT)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.tls:
                sock = address.tls.wrap_socket(sock, server_hostname=address.host)
        except BaseException:
            sock.close()
            raise
        return cls(sock, address.tls is not None)

    def read(self, timeout: float) -> bytes:
        """Some bytes; none at the end."""
        try:
            self._socket.settimeout(timeout)
            return self._socket.recv(1 << 16)
        except socket.timeout:
            raise TimeoutError(f"nothing came for {timeout:.0f} s") from None

    def write(self, data: bytes, timeout: float) -> None:
        """All of the bytes."""
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(data)
        except socket.timeout:
            raise TimeoutError(f"nothing could be sent for {timeout:.0f} s") from None

    def arrived(self) -> bool:
        """Whether something came, or the end. Over TLS that cannot be told from what TLS says to itself."""
        if self._tls and isinstance(self._socket, ssl.SSLSocket):
            return self._socket.pending() > 0
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def interrupt(self) -> None:
        """Whoever reads sees the end; for any thread."""
        try:
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self._socket.close()


class Slots:
    """So many at once; who comes later waits for his turn."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._changed = threading.Condition()
        self.waiting = 0

    def take(self) -> None:
        with self._changed:
            self.waiting += 1
            try:
                while not self._free:
                    self._changed.wait()
            finally:
                self.waiting -= 1
            self._free -= 1

    def give(self) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify()


class Signal:
    """Something that happens once; one waits for it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def given(self) -> bool:
        return self._event.is_set()

    def give(self) -> None:
        self._event.set()

    def wait(self, timeout: Optional[float]) -> bool:
        """Whether it has happened, within timeout seconds."""
        return self._event.wait(timeout)


class Channel(Generic[T]):
    """A queue of so many items from others to one."""

    def __init__(self, room: int) -> None:
        self._items: Deque[T] = collections.deque()
        self._room = room
        self._changed = threading.Condition()
        self._closed = False
        self._error: Optional[BaseException] = None

    def offer(self, item: T) -> bool:
        """Puts it where there is room for it."""
        with self._changed:
            if len(self._items) >= self._room:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def put(self, item: T) -> None:
        """Puts it as soon as there is room."""
        with self._changed:
            while len(self._items) >= self._room and not self._closed:
                self._changed.wait()
            if self._closed:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def get(self, timeout: Optional[float] = None) -> Optional[T]:
        """The next; None after timeout seconds. At the end Closed, or the error that it was closed with."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._items) or self._closed, timeout)
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._closed:
                error, self._error = self._error, None
                raise error or Closed
            return None

    @property
    def empty(self) -> bool:
        return not self._items

    def close(self, error: Optional[BaseException] = None) -> None:
        """The end: after what is in it, for who gets; at once for who puts."""
        with self._changed:
            self._error = error if not self._closed else self._error
            self._closed = True
            self._changed.notify_all()


class Halt:
    """Tells a worker to stop, whatever it waits for."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._stream: Optional[Stream] = None

    @property
    def halted(self) -> bool:
        return self._event.is_set()

    def attach(self, stream: Optional[Stream]) -> None:
        """What it reads from now on."""
        with self._lock:
            self._stream = stream
            if stream and self.halted:
                stream.interrupt()

    def kick(self) -> None:
        """Ends what it reads, and nothing else."""
        with self._lock:
            if self._stream:
                self._stream.interrupt()

    def halt(self) -> None:
        self._event.set()
        self.kick()

    def sleep(self, seconds: float) -> None:
        """Sleeps, or until it is to stop."""
        self._event.wait(seconds)


class Worker:
    """A thread that does something beside."""

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        self._thread = threading.Thread(target=function, name=name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Waits until it is done; from itself not at all."""
        if self._thread is not threading.current_thread():
            self._thread.join()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def blocking(function: Callable[..., T], *arguments: Any) -> T:
    """What may keep the disk busy."""
    return function(*arguments)
