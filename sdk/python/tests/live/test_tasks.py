# SPDX-License-Identifier: Apache-2.0
"""What only tasks have: cancelling, and many at once on one loop."""
import asyncio
import gc
import time
import warnings

import pytest
from world import World
from maitento import AsyncMaitento
from twin import Clients


@pytest.fixture()
def made(live, tmp_path):
    clients = Clients("threads")
    world = World(live, clients, tmp_path)
    yield world, world.start()
    clients.stop()


@pytest.mark.parametrize("with_events", [False, True])
def test_a_cancelled_wait_leaves_the_command_alone(live, made, with_events):
    world, run = made

    async def main():
        async with AsyncMaitento(live.url, live.key) as mt:
            events = mt.events.open()
            if with_events:
                await events.start()
            waiting = asyncio.create_task(mt.capsule_runs.exec_and_wait(run.id, "sleep 1; echo done; exit 3"))
            deadline = time.monotonic() + 20
            while not await mt.capsule_runs.list_commands(run.id):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(mt.capsule_runs.wait(run.id), 0.2)
            last = (await mt.capsule_runs.list_commands(run.id))[-1]
            done = await mt.capsule_runs.wait_command(run.id, last)
            assert (done.exit_code, done.output_standard) == (3, "done\n")
            assert (await mt.whoami()).name
            await events.close()

    asyncio.run(main())


def test_a_thousand_tasks_on_one_stream(live, made):
    world, run = made
    fresh = world.start(name="fresh")

    async def main():
        async with AsyncMaitento(live.url, live.key, max_connections=16) as mt, mt.events.open():
            done = await asyncio.gather(
                *[mt.capsule_runs.exec_and_wait(fresh.id, f"exit {n % 5}") for n in range(1000)]
            )
            assert [d.exit_code for d in done] == [n % 5 for n in range(1000)]
            assert len({d.id for d in done}) == 1000

    asyncio.run(main())


def test_nothing_is_left_behind(live, made):
    """Neither tasks nor sockets, also where iterators are left in the middle."""
    world, run = made

    async def main():
        async with AsyncMaitento(live.url, live.key) as mt:
            async with mt.events.open(last=5) as events:
                sent = await mt.capsule_runs.exec(run.id, "for i in 1 2 3; do echo $i; sleep 0.2; done")
                chunks = mt.capsule_runs.follow_output(run.id, sent)
                async for _ in chunks:
                    break
                await chunks.aclose()
                async for _ in events:
                    break
            await mt.capsule_runs.wait_command(run.id, sent)
        deadline = time.monotonic() + 20
        while asyncio.all_tasks() != {asyncio.current_task()}:
            assert time.monotonic() < deadline, asyncio.all_tasks()
            await asyncio.sleep(0.02)

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        asyncio.run(main(), debug=True)
        gc.collect()
