# At run time it is in _randflake.

from types import TracebackType
from typing import NoReturn, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from randflake._randflake import Lease, _Int64Buffer
from randflake.leases import LeaseStatus, Metrics

__all__ = ["Generator"]

@disjoint_base
class Generator:
    """What Randflake and Snowflake have in common. Use one of those.

    >>> from randflake import Randflake, Snowflake
    >>> Randflake.__base__ is Snowflake.__base__
    True
    """

    @property
    def lease(self) -> Lease | LeaseStatus | None:
        """The lease: a LeaseStatus of a leased generator, else the Lease that was given.

        None without a lease, after close, and in a forked child that has not leased yet.
        """

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The node ids, sorted; none after close, and in a forked child that has not leased yet."""

    @property
    def node_id(self) -> int:
        """The node id, of a generator that has one. Others raise AttributeError.

        >>> from randflake import Randflake, generate_secret
        >>> Randflake("10", generate_secret()).node_id
        10
        """

    def metrics(self) -> Metrics:
        """Returns what the generator has done in this process. Counting costs an id nothing.

        >>> from randflake import Randflake, generate_secret
        >>> Randflake(9, generate_secret()).metrics().ids_generated
        0
        """

    def generate_array(self, n: SupportsIndex) -> NDArray[np.int64]:
        """Generates n ids as a numpy array of int64, as a signed column holds them.

        Raises what generate_many raises, and ImportError where numpy is not installed.
        """

    async def ready(self) -> None:
        """Returns as soon as an id is available, without blocking the event loop.

        In a forked child, and of a lazy generator, it takes the first lease, on a thread. While the
        store does not renew the lease of a leased generator, it waits until the store does: use
        asyncio.timeout() to limit that.

        Raises what generate raises where waiting does not help, and LEASE_UNAVAILABLE if there is
        no first lease within acquire_timeout.
        """

    async def generate_many_async(self, n: SupportsIndex) -> list[int]:
        """Generates n ids as generate_many does, on a thread: only the task waits.

        It may wait as generate_many does, also where the generator is of leased_async. If its task
        is cancelled, the batch continues in its thread, and its ids are never returned.

        Raises what generate_many raises.

        >>> import asyncio
        >>> from randflake import Randflake, generate_secret
        >>> async def main():
        ...     async with Randflake(8, generate_secret()) as flake:
        ...         return await flake.generate_many_async(1000)
        >>> len(set(asyncio.run(main())))
        1000
        """

    async def generate_array_async(self, n: SupportsIndex) -> NDArray[np.int64]:
        """Generates n ids as generate_array does, on a thread, as generate_many_async does.

        Raises what generate_array raises.
        """

    def fill(self, buffer: _Int64Buffer) -> None:
        """Fills a writable buffer with ids, in the order in which they are claimed.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64, as a signed column holds ids. If the call fails, it is zeroed.

        Raises what generate_many raises, and INVALID_ARGUMENT for another kind of buffer.

        >>> from array import array
        >>> from randflake import Randflake, generate_secret
        >>> ids = array("q", bytes(8 * 1000))
        >>> Randflake(9, generate_secret()).fill(ids)
        >>> len(set(ids))
        1000
        """

    def extend_lease(self, end_exclusive: SupportsIndex) -> None:
        """Raises the end of the lease.

        end_exclusive: an absolute unix second. An earlier end than the current one changes nothing.

        Raises InvalidArgumentError with the code INVALID_LEASE if there is no lease, if it comes
        from a store, or if the end is out of range; RandflakeError with FORKED or CLOSED.
        """

    def close(self) -> None:
        """Ends the generator for good.

        Later calls that need it open raise CLOSED; ids can still be read. A second call does
        nothing. In a forked child the parent's generator is left alone.

        Leased node ids are given back. This waits up to 5 seconds for the store. If the store does
        not answer in time, the node ids stay reserved until the lease expires. A generator of
        leased_async does not wait: a thread gives them back.
        """

    async def aclose(self) -> None:
        """Ends the generator for good as close does, without blocking the event loop.

        Waits up to 5 seconds for the store. The end of an async with block does the same.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...
