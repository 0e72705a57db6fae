"""What asynchronous programs call: threads do the work, and the loop's own thread never waits."""

# A generator of leased_async is two objects over one lease. The one that the program has never
# waits: the core is told to wait for nothing, and a lease that is over is explained, not waited
# for. The other waits as one of leased does, and only threads of this module call it. A result for
# which no task is left goes to whoever undoes it: a first lease is given back. The loop is woken by
# call_soon_threadsafe; under trio, its own to_thread does the work.

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from randflake._threads import Queue, start_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

_Flake = TypeVar("_Flake", bound=Any)
_T = TypeVar("_T")

_BATCHES = Queue(32)
"""Each batch has a thread, and may wait there."""

_LONGEST_SLEEP = 60.0
"""After this many seconds the clock is read again: it may have been set."""


class Opening(Generic[_Flake]):
    """What leased_async returns: a generator to be awaited, or entered with async with."""

    def __init__(
        self, leased: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any] | None
    ) -> None:
        self._call = (leased, arguments, options or {})
        self._begun = False
        self._flake: _Flake | None = None

    def __await__(self) -> Generator[Any, Any, _Flake]:
        return self._open().__await__()

    async def __aenter__(self) -> _Flake:
        self._flake = await self._open()
        return self._flake

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._flake is not None
        await close(self._flake)

    async def _open(self) -> _Flake:
        if self._begun:
            raise RuntimeError("each leased_async() is for one await, or one async with")
        self._begun = True
        leased, (store, *rest), options = self._call
        if not isinstance(store, str | bytes | os.PathLike | None):
            # Importing it would block the loop for milliseconds.
            clients = await _on_thread(lambda: import_module("randflake._async_clients"))
            store = clients.on_this_loop(store)

        def take() -> _Flake:
            flake: _Flake = leased(store, *rest, **options)._without_waits()
            return flake

        # Once closed, it gives its node ids back in the background.
        return await _on_thread(take, lost=lambda flake: flake.close())


async def entered(flake: _Flake) -> _Flake:
    """See Generator.__aenter__."""
    return flake


async def close(flake: Any) -> None:
    """See Generator.aclose."""
    waiting = flake._waiting
    if waiting is not flake:
        flake.close()  # at once; the thread below only waits
    await _on_thread(waiting.close)


async def ready(flake: Any) -> None:
    """See Generator.ready."""
    while True:
        seconds = flake._ready_in()
        if seconds == 0:
            return
        if seconds is None:
            # A process without a lease of its own takes one with any call; this one asks for no id.
            await _on_thread(lambda: flake._waiting.generate_many(0))
        else:
            await sleep(min(seconds, _LONGEST_SLEEP))


async def generate_many(flake: Any, n: int) -> list[int]:
    """See Generator.generate_many_async."""
    ids: list[int] = await _on_thread(lambda: flake._waiting.generate_many(n), is_batch=True)
    return ids


async def generate_array(flake: Any, n: int) -> NDArray[np.int64]:
    """See Generator.generate_array_async."""
    ids: NDArray[np.int64] = await _on_thread(
        lambda: flake._waiting.generate_array(n), is_batch=True
    )
    return ids


async def _on_thread(
    call: Callable[[], _T], lost: Callable[[_T], object] = lambda _: None, *, is_batch: bool = False
) -> _T:
    """Makes a call on a thread, and returns what it returns.

    If the task was cancelled, or the loop closed, before it returns, the result goes to lost.
    """
    returned: list[_T] = []
    is_cancelled = False

    def work() -> _T:
        result = call()
        # Marks before it looks, as the task does: so one of them finds what the other left.
        returned.append(result)
        if is_cancelled:
            lost(result)
        return result

    try:
        trio = _trio()
        if trio is None:
            return await _on_thread_of_asyncio(work, lost, is_batch)
        limiter = None if is_batch else trio.CapacityLimiter(1)  # None means trio's own limit, 40
        result: _T = await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
    except BaseException:
        is_cancelled = True
        for result in returned:
            lost(result)
        raise
    return result


async def _on_thread_of_asyncio(
    work: Callable[[], _T], lost: Callable[[_T], object], is_batch: bool
) -> _T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def deliver(result: _T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]  # without an error it is one
        else:
            future.set_exception(error)

    def run() -> None:
        if is_batch and future.cancelled():  # before its turn
            return
        result, raised = None, None
        try:
            result = work()
        except BaseException as error:
            raised = error
        try:
            loop.call_soon_threadsafe(deliver, result, raised)
        except RuntimeError:  # the loop is closed
            if raised is None:
                lost(result)  # type: ignore[arg-type]  # as above

    if is_batch:
        _BATCHES.add(run)
    else:
        start_thread(run, ())
    return await future


async def sleep(seconds: float) -> None:
    """Lets other tasks run meanwhile."""
    trio = _trio()
    await (asyncio if trio is None else trio).sleep(seconds)


def _trio() -> Any:
    """Returns the module trio if this is one of its tasks, and None in a task of asyncio."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        return trio
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("this needs a running event loop, of asyncio, uvloop or trio") from None
    return None
