"""Measures how long generators of leased_async hold up the event loop, beside a loop with no work.

    .venv/bin/python bench/loop.py

A task sleeps for a millisecond again and again. Two numbers tell what happens between two of its
turns, each as the median and the longest: how long the loop's thread computed, which is what the
calls of the loop cost it, and how much later than asked the task ran. The second has in it what
other threads and other processes do: where the first is small and the second is not, the loop
waited for a processor or for the interpreter, which Python's threads share in slices of 5 ms.
"""

import asyncio
import contextlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from randflake import Randflake, RetryLaterError, generate_secret, init_store

SECONDS = 4
STEP = 0.001

Work = Callable[[float], Awaitable[None]]
"""Goes on until a time of the monotonic clock."""


async def nothing(until: float) -> None:
    await asyncio.sleep(until - time.monotonic())


async def measure(name: str, work: Work, seconds: float = SECONDS) -> None:
    computed, late = [], []
    working = asyncio.ensure_future(work(time.monotonic() + seconds))
    turn, thread = time.monotonic(), time.thread_time()
    while not working.done():
        await asyncio.sleep(STEP)
        now, used = time.monotonic(), time.thread_time()
        computed.append((used - thread) * 1000)
        late.append((now - turn - STEP) * 1000)
        turn, thread = now, used
    working.result()
    row = [f(of) for of in (computed, late) for f in (statistics.median, max)]
    print(f"| {name} | " + " | ".join(f"{number:.2f}" for number in row) + " |", flush=True)


@contextlib.contextmanager
def outage(folder: Path) -> Iterator[None]:
    away = folder.with_name("away")
    folder.rename(away)
    yield
    away.rename(folder)


async def main(folder: Path) -> None:
    store, secret = folder / "ids.db", generate_secret()
    init_store(store, secret, "new", max_ttl=6, max_skew=1)
    options = {"ttl": 6, "max_skew": 1, "max_drift": 0}

    async def lease(until: float) -> None:
        while time.monotonic() < until:
            async with Randflake.leased_async(store, secret, **options) as flake:
                flake.generate()

    async def singles(until: float) -> None:
        while time.monotonic() < until:
            for _ in range(100):
                with contextlib.suppress(RetryLaterError):
                    flake.generate()
            await asyncio.sleep(0)

    async def handlers(until: float) -> None:
        """Ids as a request handler takes them, whether there are any or not."""
        while time.monotonic() < until:
            try:
                flake.generate()
                await asyncio.sleep(0)
            except RetryLaterError:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(asyncio.get_running_loop().time() + 0.2):
                        await flake.ready()

    def batches(n: int) -> Work:
        async def generate(until: float) -> None:
            while time.monotonic() < until:
                await flake.generate_many_async(n)

        return generate

    print("| what the loop does | computes, median | longest, ms | is late, median | longest, ms |")
    print("|---|---|---|---|---|")
    await measure("nothing", nothing)
    await measure("leases and gives back, all the time", lease)
    async with Randflake.leased_async(store, secret, **options) as flake:
        await measure("single ids, 100 between two turns", singles)
        await measure("batches of 1 000", batches(1000))
        await measure("batches of 100 000", batches(100_000))
        with outage(folder):
            await measure("ids through an outage of 12 seconds", handlers, 12)
        await measure("ids after it", handlers)
    await measure("nothing", nothing)


if __name__ == "__main__":
    made = Path(tempfile.mkdtemp())
    (made / "store").mkdir()
    try:
        asyncio.run(main(made / "store"))
    finally:
        shutil.rmtree(made)
