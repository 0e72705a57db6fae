"""Sequential numbers in programs with an event loop."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Main, eventually, in_child, locked, outcome, pauses, until
from randflake import (
    InvalidArgumentError,
    RandflakeError,
    RetryLaterError,
    StoreError,
    Tickets,
    init_tickets,
    stores,
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The path of a store with a namespace of tickets."""
    path = tmp_path / "ids.db"
    init_tickets(path, "new")
    return path


def test_async_with_draws_and_gives_back(run: Callable[[Main], Any], store: Path) -> None:
    async def main() -> list[int]:
        async with Tickets.leased_async(store, "invoices", max_wait=60) as invoices:
            assert (invoices.name, repr(invoices)) == (
                "invoices",
                "<randflake.Tickets name='invoices'>",
            )
            await invoices.ready()
            numbers = [invoices.generate()]
            numbers += await invoices.generate_many_async(20_000)
            return numbers + (await invoices.generate_array_async(10)).tolist()

    assert run(main) == list(range(1, 20_012))
    with Tickets.leased(store, "invoices") as invoices:
        assert invoices.generate() == 20_012


def test_await_and_aclose(run: Callable[[Main], Any], store: Path) -> None:
    async def main() -> None:
        invoices = await Tickets.leased_async(store, "invoices")
        assert invoices.generate() == 1
        await invoices.aclose()
        assert outcome(invoices.generate) == "CLOSED"
        for call in (invoices.ready, lambda: invoices.generate_many_async(1)):
            with pytest.raises(RandflakeError, match="closed"):
                await call()
        await invoices.aclose()  # does nothing

    run(main)


def test_those_of_other_constructors_have_the_asynchronous_calls(
    run: Callable[[Main], Any], store: Path
) -> None:
    async def main() -> None:
        async with Tickets.lazy(store, "invoices") as invoices:
            await invoices.ready()
            assert invoices.metrics().reserve > 0
            assert await invoices.generate_many_async(3) == [1, 2, 3]
        with Tickets.leased(store, "invoices") as invoices:
            assert (await invoices.generate_array_async(2)).tolist() == [4, 5]

    run(main)


def test_errors(run: Callable[[Main], Any], store: Path) -> None:
    for wrong in (True, 1, b"a", ["a"], None):
        with pytest.raises(InvalidArgumentError, match="name"):
            Tickets.leased_async(store, wrong)  # type: ignore[arg-type]

    async def main() -> None:
        with pytest.raises(TypeError, match="keyword argument 'ttl'"):
            await Tickets.leased_async(store, "a", ttl=5)  # type: ignore[call-arg]
        for options in ({"start": 0}, {"max_wait": -1}, {"namespace": ""}, {"min_block": "1"}):
            with pytest.raises(InvalidArgumentError):
                await Tickets.leased_async(store, "a", **options)  # type: ignore[arg-type]
        with pytest.raises(StoreError) as raised:
            await Tickets.leased_async(store, "a", namespace="missing")
        assert raised.value.code == "STORE_NOT_INITIALIZED"
        opening = Tickets.leased_async(store, "a", max_block=1000, max_wait=60)
        async with opening as tickets:
            with pytest.raises(RuntimeError, match="one await"):
                await opening
            for n in (-1, "1", None, 1.5, 2**70):
                with pytest.raises(InvalidArgumentError):
                    await tickets.generate_many_async(n)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match=r"max_block.*one that waits"):
                tickets.generate_many(1001)
            assert tickets.generate() == 1
            assert len(await tickets.generate_many_async(1001)) == 1001

    run(main)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells how often a thread has waited"
)
def test_the_thread_of_the_loop_never_waits(store: Path) -> None:
    async def main() -> None:
        invoices = await Tickets.leased_async(store, "invoices", max_block=20, max_wait=60)
        several = [await Tickets.leased_async(store, "invoices") for _ in range(20)]
        calls = (invoices.generate, lambda: invoices.generate_many(5))
        with locked(store):
            await until(lambda: outcome(invoices.generate) == "LEASE_UNAVAILABLE")
            codes = []
            before = pauses()
            for _ in range(500):
                codes += [outcome(call) for call in calls]
            # Each call that waits does so at least once; now and then one meets a thread's lock.
            assert pauses() - before < 100
            assert set(codes) == {"LEASE_UNAVAILABLE"}
            await until(lambda: invoices.metrics().last_error)
            with pytest.raises(RetryLaterError) as raised:
                invoices.generate()
            assert isinstance(raised.value.__cause__, StoreError)
            ready = asyncio.ensure_future(invoices.ready())
            batch = asyncio.ensure_future(invoices.generate_many_async(100))
            await asyncio.sleep(0.2)
            assert not ready.done()
            assert not batch.done()
        await ready
        assert len(await batch) == 100
        await until(lambda: isinstance(outcome(invoices.generate), int))
        several.append(invoices)
        with locked(store):
            begun = time.monotonic()
            for each in several:
                each.close()
            assert {outcome(each.generate) for each in several} == {"CLOSED"}
            assert time.monotonic() - begun < 60, "a close that waits does so for five seconds"
        await invoices.aclose()

    asyncio.run(main())


def test_a_cancelled_opening_gives_its_block_back(store: Path) -> None:
    async def main() -> None:
        with locked(store):
            opening = asyncio.ensure_future(Tickets.leased_async(store, "a")._open())
            await asyncio.sleep(0.1)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening

    asyncio.run(main())

    def first() -> int:
        with Tickets.leased(store, "a") as tickets:
            return tickets.generate()

    eventually(lambda: first() <= 2)


def test_a_child_draws_for_itself(store: Path) -> None:
    async def main() -> Tickets:
        return await Tickets.leased_async(store, "invoices", max_wait=60)

    invoices = asyncio.run(main())
    before = invoices.generate()

    def work() -> list[int]:
        async def numbers() -> list[int]:
            await invoices.ready()
            return [invoices.generate(), *await invoices.generate_many_async(30)]

        return asyncio.run(numbers())

    made = in_child(work)
    assert len({before, invoices.generate(), *made}) == 33
    invoices.close()


class Recording:
    """A missing server. Records which threads asked for it."""

    server = "redis"

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def run(self, text: str, parameters: list[str]) -> stores.Rows:
        del text, parameters
        self.threads.add(threading.get_ident())
        raise stores.Unavailable("nobody is there")


def test_a_store_is_never_asked_on_the_thread_of_the_loop(run: Callable[[Main], Any]) -> None:
    adapter = Recording()

    async def main() -> None:
        with pytest.raises(RandflakeError) as raised:
            await Tickets.leased_async(adapter, "a", acquire_timeout=0.3)
        # On a busy machine the store has not answered by then.
        assert raised.value.code in ("STORE_UNAVAILABLE", "LEASE_UNAVAILABLE")
        lazy = Tickets.lazy(adapter, "a", acquire_timeout=0)
        await until(lambda: lazy.metrics().store_errors or outcome(lazy.generate) is None)
        await lazy.aclose()

    run(main)
    assert adapter.threads
    assert threading.get_ident() not in adapter.threads
