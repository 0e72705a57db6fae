"""What asynchronous programs call: leased_async, async with, aclose, ready, generate_many_async."""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from conftest import (
    LEASED_SECRET as SECRET,
    Main,
    eventually,
    in_child,
    locked,
    outcome,
    pauses,
    run_python,
    status,
    until,
)
from randflake import (
    InvalidArgumentError,
    Layout,
    Randflake,
    RandflakeError,
    RetryLaterError,
    Snowflake,
    StoreError,
    init_store,
    list_leases,
    stores,
)

SHORT: dict[str, Any] = {"ttl": 6, "max_skew": 0, "max_drift": 0}
"""A lease like this ends soon after its store becomes unreachable."""


def states(store: Path) -> list[str]:
    return [node.state for node in list_leases(store).leases]


def test_async_with_leases_and_gives_back(run: Callable[[Main], Any], store: Path) -> None:
    async def main() -> list[int]:
        async with Randflake.leased_async(store, SECRET, node_count=2) as flake:
            assert status(flake).state == "holding"
            await flake.ready()
            assert states(store) == ["held", "held"]
            ids = [flake.generate(), *flake.generate_many(1000)]
            ids += await flake.generate_many_async(1000)
            return ids + (await flake.generate_array_async(1000)).tolist()

    assert len(set(run(main))) == 3001
    assert states(store) == ["free", "free"]


def test_await_and_aclose(run: Callable[[Main], Any], store: Path) -> None:
    # No test assigns its node ids.
    fields = [("time", 41), ("node", 16), ("sequence", 6)]
    layout = Layout(fields=fields, epoch_ms=1_700_000_000_000)  # type: ignore[arg-type]

    async def main() -> None:
        flake = await Snowflake.leased_async(store, layout)
        assert flake.generate() < (await flake.generate_many_async(1))[0]
        assert flake.layout == layout
        await flake.aclose()
        assert states(store) == ["free"]
        assert outcome(flake.generate) == "CLOSED"
        for call in (flake.ready, lambda: flake.generate_many_async(1)):
            with pytest.raises(RandflakeError, match="closed"):
                await call()
        await flake.aclose()  # does nothing

    run(main)


def test_every_generator_has_the_asynchronous_calls(
    run: Callable[[Main], Any], store: Path
) -> None:
    async def main() -> None:
        async with Randflake.leased(store, SECRET) as leased:
            await leased.ready()
            assert len(await leased.generate_many_async(10)) == 10
        assert states(store) == ["free"]
        async with Snowflake(5, max_wait=0) as flake:
            await flake.ready()  # the tick in which it was made is over
            flake.generate()
            assert len(await flake.generate_array_async(10)) == 10
        assert outcome(flake.generate) == "CLOSED"

    run(main)


def test_errors(run: Callable[[Main], Any], store: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="secret"):
        Randflake.leased_async(store, "no secret")
    with pytest.raises(InvalidArgumentError, match="layout"):
        Snowflake.leased_async(store, "no layout")

    async def main() -> None:
        with pytest.raises(TypeError, match="keyword argument 'tll'"):
            await Randflake.leased_async(store, SECRET, tll=5)  # type: ignore[call-arg]
        with pytest.raises(InvalidArgumentError, match="skew of 5"):
            await Randflake.leased_async(store, SECRET, ttl=1)
        opening = Randflake.leased_async(store, SECRET)
        async with opening as flake:
            with pytest.raises(RuntimeError, match="one await"):
                await opening
            for n in (-1, "1", 2**70):
                with pytest.raises(InvalidArgumentError):
                    await flake.generate_many_async(n)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="may take at most 3600"):
                await flake.generate_many_async(2**50)

    run(main)


def test_elsewhere_there_is_no_loop(store: Path) -> None:
    calls: list[Awaitable[Any]] = [Snowflake(5).aclose(), Randflake.leased_async(store, SECRET)]
    for call in calls:
        with pytest.raises(RuntimeError, match="asyncio, uvloop or trio"):
            next(call.__await__())


def never_waits(calls: list[Callable[[], Any]], code: str, times: int = 500) -> None:
    """Makes calls, some of which fail with the code; asserts that this thread never sleeps."""
    codes = []
    before = pauses()
    for _ in range(times):
        codes += [outcome(call) for call in calls]
    # Each call that waits does so at least once; now and then one meets the lock of a thread.
    assert pauses() - before < times / 5
    assert code in codes
    # No ids are lost by this.
    assert {type(it) for it in codes} <= {str, int, list}


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells how often a thread has waited"
)
def test_the_thread_of_the_loop_never_waits(store: Path) -> None:
    def generate(flake: Snowflake) -> list[Callable[[], Any]]:
        return [flake.generate, lambda: flake.generate_many(256), lambda: flake.generate_many(1)]

    async def main() -> None:
        flake = await Snowflake.leased_async(store, "sonyflake2", max_wait=60, **SHORT)
        never_waits(generate(flake), "SEQUENCE_EXHAUSTED")
        # A task may still wait.
        assert len(await flake.generate_many_async(1000)) == 1000
        with locked(store):
            await until(lambda: outcome(flake.generate) == "LEASE_UNAVAILABLE")
            never_waits(generate(flake), "LEASE_UNAVAILABLE")
            await until(lambda: status(flake).last_error)
            with pytest.raises(RetryLaterError) as raised:
                flake.generate_many(256)
            assert isinstance(raised.value.__cause__, StoreError)
            ready = asyncio.ensure_future(flake.ready())
            await asyncio.sleep(0.2)
            assert not ready.done()
        await ready
        assert flake.generate()
        flakes = [flake]
        flakes += [await Snowflake.leased_async(store, "sonyflake2", **SHORT) for _ in range(20)]
        with locked(store):
            begun = time.monotonic()
            for each in flakes:
                each.close()
            assert {outcome(each.generate) for each in flakes} == {"CLOSED"}
            assert time.monotonic() - begun < 60, "a close that waits does so for five seconds"
        await flake.aclose()
        # A replaced lease has ended, and nobody gives it back; the same after a long lock.
        await until(lambda: set(states(store)) <= {"free", "expired"})

    asyncio.run(main())


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
        with pytest.raises(StoreError, match="nobody is there") as raised:
            await Randflake.leased_async(adapter, SECRET, acquire_timeout=0.3)
        assert raised.value.code == "STORE_UNAVAILABLE"

    run(main)
    assert adapter.threads
    assert threading.get_ident() not in adapter.threads


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how many threads there are")
def test_many_batches_share_threads(run: Callable[[Main], Any], store: Path) -> None:
    async def main() -> None:
        async with Randflake.leased_async(store, SECRET, max_wait=60, **SHORT) as flake:
            before, most, ids = threads(), 0, list[int]()

            async def batch() -> None:
                nonlocal most
                ids.extend(await flake.generate_many_async(1000))
                most = max(most, threads() - before)

            await together([batch] * 300)
            assert len(set(ids)) == 300_000
            assert 0 < most <= 40

    run(main)


async def together(calls: list[Callable[[], Awaitable[None]]]) -> None:
    if trio.lowlevel.in_trio_task():
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(call)
    else:
        await asyncio.gather(*(call() for call in calls))


def test_what_takes_long_to_import_is_imported_on_a_thread(store: Path) -> None:
    code = """
import asyncio, contextlib, sys, threading
from randflake import Randflake, StoreError

class Nobody:
    server = "redis"

class Finder:
    def find_spec(self, name, path, target=None):
        if threading.current_thread() is threading.main_thread() and name.startswith("randflake."):
            print(name)

sys.meta_path.insert(0, Finder())

async def main():
    async with Randflake.leased_async(sys.argv[1], sys.argv[2]) as flake:
        flake.generate()
        await flake.ready()
        await flake.generate_many_async(10)
    client = Nobody()
    client.run = lambda text, parameters: []
    with contextlib.suppress(StoreError):
        await Randflake.leased_async(client, sys.argv[2], acquire_timeout=0)

asyncio.run(main())
"""
    assert run_python(code, str(store), SECRET) == "randflake._async\nrandflake._threads\n"


async def cancelled_while(is_so: Callable[[], object], call: Callable[[], Awaitable[Any]]) -> None:
    """Cancels a task that makes a call, once a condition holds."""
    if trio.lowlevel.in_trio_task():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: call())
            await until(is_so)
            nursery.cancel_scope.cancel()
        return
    task = asyncio.ensure_future(call())
    await until(is_so)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def tasks() -> set[Path]:
    return set(Path("/proc/self/task").iterdir())


def threads() -> int:
    return len(tasks())


def test_a_lease_for_a_cancelled_task_is_given_back(
    run: Callable[[Main], Any], store: Path
) -> None:
    init_store(store, SECRET, "new")
    opening: list[Any] = []

    async def take() -> None:
        opening.append(Randflake.leased_async(store, SECRET, acquire_timeout=60))
        opening.append(await opening[0])

    async def main() -> None:
        with locked(store):
            before = tasks()  # of which some of other tests may be about to end
            await cancelled_while(lambda: tasks() - before, take)
        # The thread now has its lease, but nobody wants it.
        await until(lambda: states(store) == ["free"])

    run(main)
    assert len(opening) == 1


def test_a_lease_for_a_closed_loop_is_given_back(store: Path) -> None:
    init_store(store, SECRET, "new")
    loop = asyncio.new_event_loop()
    with locked(store):
        opening = Randflake.leased_async(store, SECRET, acquire_timeout=60)
        before = tasks()

        async def take() -> Randflake:
            return await opening

        task = loop.create_task(take())
        loop.run_until_complete(asyncio.wait([task], timeout=0.01))
        assert tasks() - before
        assert not task.done()
        loop.set_exception_handler(lambda *_: None)  # of the task that never finishes
        loop.close()
    eventually(lambda: states(store) == ["free"])


def test_a_cancelled_batch_ends_and_repeats_nothing(
    run: Callable[[Main], Any], store: Path
) -> None:
    async def main() -> None:
        async with Snowflake.leased_async(store, "sonyflake2") as flake:
            before = flake.generate()
            await cancelled_while(
                lambda: outcome(flake.generate) == "SEQUENCE_EXHAUSTED",
                lambda: flake.generate_many_async(1_000_000),
            )
            await flake.ready()
            assert (await flake.generate_many_async(1))[0] > before
        assert outcome(flake.generate) == "CLOSED", "it does not wait for that batch"

    run(main)


def test_a_forked_child_takes_its_lease_where_it_is_awaited(store: Path) -> None:
    async def main() -> None:
        async with Randflake.leased_async(store, SECRET) as flake:

            async def of_child() -> tuple[Any, Any, set[int]]:
                refused = outcome(flake.generate), outcome(lambda: flake.generate_many(1))
                await flake.ready()
                return *refused, {*flake.generate_many(100), *await flake.generate_many_async(100)}

            # A loop of its own: this one is the parent's.
            def child() -> Any:
                asyncio._set_running_loop(None)
                return asyncio.run(of_child())

            *refused, ids = in_child(child)
            assert refused == ["FORKED", "FORKED"]
            assert len(ids) == 200
            assert not ids & set(flake.generate_many(100))

    asyncio.run(main())


def test_the_end_of_the_process_gives_back(store: Path) -> None:
    code = """
import asyncio, sys
from randflake import Randflake

async def main():
    flake = await Randflake.leased_async(*sys.argv[1:])
    print(flake.node_ids[0])
    return flake

flake = asyncio.run(main())
"""
    node_id = int(run_python(code, str(store), SECRET))
    (node,) = list_leases(store).leases
    assert (node.node_id, node.state) == (node_id, "free")


def test_the_process_ends_while_a_thread_opens_or_fills(store: Path) -> None:
    code = """
import asyncio, sys
from randflake import Randflake, Snowflake

async def main():
    tasks = [asyncio.ensure_future(Snowflake(3, "sonyflake2").generate_many_async(10_000_000))]
    async def take():
        return await Randflake.leased_async(*sys.argv[1:], acquire_timeout=60)
    tasks += [asyncio.ensure_future(take()) for _ in range(10)]
    await asyncio.wait(tasks, timeout=0.3)
    print(sum(task.done() for task in tasks))

asyncio.run(main())
"""
    init_store(store, SECRET, "new")
    with locked(store):
        assert run_python(code, str(store), SECRET) == "0\n"


def test_the_process_ends_while_a_thread_imports_what_is_asynchronous(store: Path) -> None:
    """Python stops daemon threads where they are, also inside an import."""
    code = """
import asyncio, sys, threading
from randflake import Randflake

async def main():
    while True:
        async with Randflake.leased_async(sys.argv[1], sys.argv[2]) as flake:
            flake.generate()

threading.excepthook = lambda _: None  # the end is seen as an exception, or not at all
for _ in range(3):
    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
"""
    for _ in range(3):
        run_python(code, str(store), SECRET)
