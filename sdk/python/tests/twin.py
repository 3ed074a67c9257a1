# SPDX-License-Identifier: Apache-2.0
"""Lets one test speak to both clients: AsyncMaitento behind the face of Maitento, on a loop of its own."""
import asyncio
import inspect
import threading

import maitento


class Loop:
    """An event loop in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, make):
        """What make() gives, awaited where it is to be."""

        async def go():
            made = make()
            return await made if inspect.isawaitable(made) else made

        return asyncio.run_coroutine_threadsafe(go(), self.loop).result(120)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Twin:
    """An object of the client for tasks, called as that of the client for threads."""

    def __init__(self, loop, target):
        self._loop, self._target = loop, target

    def _face(self, value):
        if inspect.isasyncgen(value):
            return self._items(value)
        return Twin(self._loop, value) if type(value).__module__.startswith("maitento._async") else value

    def _items(self, generator):
        end = object()

        async def following():
            try:
                return await generator.__anext__()
            except StopAsyncIteration:
                return end

        try:
            while (item := self._loop.run(following)) is not end:
                yield item
        finally:
            self._loop.run(generator.aclose)

    def __getattr__(self, name):
        value = getattr(self._target, name)
        if not inspect.isroutine(value):
            return self._face(value)

        def call(*arguments, **options):
            return self._face(self._loop.run(lambda: value(*arguments, **options)))

        return call

    def __enter__(self):
        self._loop.run(self._target.__aenter__)
        return self

    def __exit__(self, *why):
        self._loop.run(lambda: self._target.__aexit__(*why))

    def __iter__(self):
        return self

    def __next__(self):
        async def following():
            try:
                return True, await self._target.__anext__()
            except StopAsyncIteration:
                return False, None

        there, item = self._loop.run(following)
        if not there:
            raise StopIteration
        return item


class Clients:
    """Makes clients of one of the two, and closes them."""

    def __init__(self, kind):
        self.kind = kind
        self._loop = Loop() if kind == "tasks" else None
        self._made = []

    def __call__(self, *arguments, **options):
        if self._loop:
            client = Twin(self._loop, self._loop.run(lambda: maitento.AsyncMaitento(*arguments, **options)))
        else:
            client = maitento.Maitento(*arguments, **options)
        self._made.append(client)
        return client

    def stop(self):
        for client in self._made:
            client.close()
        if self._loop:
            self._loop.stop()
