# At run time it is in _randflake.

from types import TracebackType
from typing import Literal, NoReturn, Self, SupportsIndex, final

import numpy as np
from numpy.typing import NDArray

from randflake._async import Opening
from randflake._randflake import _Int64Buffer
from randflake.stores import _AsyncStore, _Store
from randflake.tickets import TicketsMetrics

__all__ = ["DatedTickets", "Tickets"]

@final
class Tickets:
    """Hands out 1, 2, 3 and so on, from a named counter of a store, each number once.

    Make one with Tickets.leased(store, name), or with lazy or leased_async. There is no
    constructor, since numbers come only from a store.

    It draws a block of numbers from the counter, hands them out without the store, and draws the
    next block on a thread before they are used up. Numbers of one process rise. Several processes
    draw blocks of their own, so their numbers interleave, and a process that is killed leaves a gap
    of at most max_block numbers. A clean end gives back what is left. Only if a process is copied
    while it runs do both copies have the same numbers, for a minute.

    Sequential numbers tell outsiders how many there are, and they can be guessed; Cloak hides them.

    A forked child forgets what its parent has, and draws blocks of its own with its first number.

    >>> import tempfile
    >>> from randflake import Tickets, init_tickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init_tickets(folder + "/ids.db", "new")
    ...     with Tickets.leased(folder + "/ids.db", "invoices") as invoices:
    ...         invoices.generate(), invoices.generate_many(3)
    ...     with Tickets.leased(folder + "/ids.db", "invoices") as invoices:
    ...         invoices.generate()  # the first one has given the rest of its block back
    (1, [2, 3, 4])
    5
    """

    @staticmethod
    def leased(
        store: _Store | None,
        name: str,
        *,
        namespace: str = "tickets",
        start: SupportsIndex | None = None,
        step: SupportsIndex | None = None,
        reserve_seconds: float = 2.0,
        min_block: SupportsIndex = 10,
        max_block: SupportsIndex = 1_000_000,
        create: bool = False,
        acquire_timeout: float = 10.0,
        max_wait: float = 1.0,
        allow_weak_store: bool = False,
    ) -> Tickets:
        """Draws the first block of a counter, and returns the object that hands out its numbers.

        init_tickets makes a namespace of tickets once; a counter is made with its first number.

        store: the path of a SQLite file, or the URL or the client of a server, as in
        Randflake.leased; None for RANDFLAKE_STORE.
        name: the name of the counter, 1 to 200 bytes without spaces and control characters.
        namespace: of the store. It belongs to tickets: leases need another one.
        start: the first number of a new counter, 1 to 2**53 - 1; 1 unless given. An existing
        counter must have this one.
        step: by how much numbers rise, 1 to 2**53 - 1; 1 unless given. An existing counter must
        have this one.
        reserve_seconds: for how many seconds, at the current rate, the numbers that a process holds
        should last, 0 to 86400. An outage of the store of less than half of that goes unnoticed,
        but of half a minute at most: the store has to confirm each minute that they are still this
        process's.
        min_block: the smallest number of numbers in a block, 1 to max_block.
        max_block: the most numbers that a process has drawn and not handed out, 1 to 2**53 - 1, and
        so the most that are lost when it is killed.
        create: whether to make the namespace if it is missing, for tests. In a new namespace each
        counter begins at its start: if a store was lost, every number would come a second time.
        acquire_timeout: how many seconds the first block may take, 0 to 86400.
        max_wait: how long a call may wait for a block, 0 to 86400 seconds; 0 never waits.
        allow_weak_store: whether to accept a server that may lose what it has acknowledged. A file
        is refused with it.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT; StoreError with
        STORE_NOT_INITIALIZED if there is no such namespace, STORE_QUARANTINED if the store may have
        lost blocks of the counter (see fence_tickets), STORE_UNAVAILABLE, STORE_REPLACED,
        WEAK_STORE or DRIVER_MISSING; RandflakeError with LIFETIME_OVER if no number is left.

        >>> import tempfile
        >>> from randflake import Tickets
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = folder + "/ids.db"
        ...     with Tickets.leased(store, "odd", start=7, step=2, create=True) as odd:
        ...         odd.generate_many(3)
        [7, 9, 11]
        """
    @staticmethod
    def lazy(
        store: _Store | None,
        name: str,
        *,
        namespace: str = "tickets",
        start: SupportsIndex | None = None,
        step: SupportsIndex | None = None,
        reserve_seconds: float = 2.0,
        min_block: SupportsIndex = 10,
        max_block: SupportsIndex = 1_000_000,
        create: bool = False,
        acquire_timeout: float = 10.0,
        max_wait: float = 1.0,
        allow_weak_store: bool = False,
    ) -> Tickets:
        """Makes an object that draws its first block with its first number, for use in a module.

        This call reads and contacts nothing: a module with such an object can be imported without
        any setting, and by a server that forks its workers. A relative path of a store is resolved
        here.

        The arguments are as in leased. Their errors are raised here, errors of the environment with
        the first number. If there is no first block within acquire_timeout, the call raises
        LEASE_UNAVAILABLE, with the store's error as its cause, or that error itself. The next call
        tries again.

        >>> import tempfile
        >>> from randflake import Tickets
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Tickets.lazy(folder + "/ids.db", "invoices", create=True) as invoices:
        ...         invoices.generate()
        1
        """
    @staticmethod
    def leased_async(
        store: _AsyncStore | None,
        name: str,
        *,
        namespace: str = "tickets",
        start: SupportsIndex | None = None,
        step: SupportsIndex | None = None,
        reserve_seconds: float = 2.0,
        min_block: SupportsIndex = 10,
        max_block: SupportsIndex = 1_000_000,
        create: bool = False,
        acquire_timeout: float = 10.0,
        max_wait: float = 1.0,
        allow_weak_store: bool = False,
    ) -> Opening[Tickets]:
        """Draws as leased does, for programs with an event loop; it never waits.

        Await what it returns, or enter it with async with: the first block is drawn on a thread,
        and the end of the block gives the rest back. For asyncio, uvloop and trio.

        No call on the object waits, except the awaited ones: while there is no number, each raises
        LEASE_UNAVAILABLE at once. max_wait is for generate_many_async.

        store, name and all options: as in leased.

        Raises what leased raises, where it is awaited.

        >>> import asyncio
        >>> import tempfile
        >>> from randflake import Tickets
        >>> async def main(store):
        ...     async with Tickets.leased_async(store, "invoices", create=True) as invoices:
        ...         return [invoices.generate(), *await invoices.generate_many_async(3)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     asyncio.run(main(folder + "/ids.db"))
        [1, 2, 3, 4]
        """
    @property
    def name(self) -> str:
        """The name of the counter."""
    @property
    def _is_closed(self) -> bool: ...
    @staticmethod
    def _in_memory(
        name: str, *, start: SupportsIndex | None = None, step: SupportsIndex | None = None
    ) -> Tickets: ...
    def generate(self) -> int:
        """Hands out a number: start, start + step and so on, up to 2**53 - 1.

        Raises RetryLaterError with the code LEASE_UNAVAILABLE if there is none within max_wait,
        with the error of the store as its cause; RandflakeError where waiting does not help
        (LIFETIME_OVER, FORKED, CLOSED). In a forked child the first call waits up to
        acquire_timeout.
        """
    def generate_many(self, n: SupportsIndex) -> list[int]:
        """Hands out n numbers, which rise. There may be gaps between them.

        n: 0 or more; more than max_block come from several blocks. An object of leased_async, which
        does not wait for them, refuses this many with INVALID_ARGUMENT: await generate_many_async.

        If the call fails, the numbers that it has taken are lost.

        Raises what generate raises, and INVALID_ARGUMENT for an n that is negative or does not fit
        in memory.
        """
    def generate_array(self, n: SupportsIndex) -> NDArray[np.int64]:
        """Hands out n numbers as a numpy array of int64.

        Raises what generate_many raises, and ImportError where numpy is not installed.

        >>> import tempfile
        >>> from randflake import Tickets
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Tickets.leased(folder + "/ids.db", "invoices", create=True) as invoices:
        ...         invoices.generate_array(3)
        array([1, 2, 3])
        """
    def fill(self, buffer: _Int64Buffer) -> None:
        """Fills a writable buffer with numbers, which rise.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64. If the call fails, it is zeroed.

        Raises what generate_many raises, and INVALID_ARGUMENT for another kind of buffer.

        >>> import tempfile
        >>> from array import array
        >>> from randflake import Tickets
        >>> numbers = array("q", bytes(8 * 3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Tickets.leased(folder + "/ids.db", "invoices", create=True) as invoices:
        ...         invoices.fill(numbers)
        >>> numbers
        array('q', [1, 2, 3])
        """
    def metrics(self) -> TicketsMetrics:
        """Returns what was done in this process. Counting costs a number nothing."""
    async def ready(self) -> None:
        """Returns as soon as a number is available, without blocking the event loop.

        In a process that has no block yet, it draws the first one, on a thread. While the store is
        unreachable, it waits until the store answers: use asyncio.timeout() to limit that.

        Raises what generate raises where waiting does not help, and LEASE_UNAVAILABLE if there is
        no first block within acquire_timeout.
        """
    async def generate_many_async(self, n: SupportsIndex) -> list[int]:
        """Hands out n numbers as generate_many does, on a thread: only the task waits.

        It may wait as generate_many does, also where the object is of leased_async. Where the task
        is cancelled, the numbers are lost.

        Raises what generate_many raises.
        """
    async def generate_array_async(self, n: SupportsIndex) -> NDArray[np.int64]:
        """Hands out n numbers as generate_array does, on a thread, as generate_many_async does.

        Raises what generate_array raises.
        """
    def close(self) -> None:
        """Ends the object for good, and gives back the numbers that it has left.

        Later calls raise CLOSED; a second close does nothing. This waits up to 5 seconds for the
        store. If the store does not answer in time, these numbers are lost. In a forked child the
        parent's numbers are left alone. An object of leased_async does not wait: a thread gives
        them back.
        """
    async def aclose(self) -> None:
        """Ends the object for good as close does, without blocking the event loop.

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

@final
class DatedTickets:
    """Hands out sequential numbers that begin anew with each day, month or year, as texts.

    A text is the prefix, the date, "-" and the number: INV-20261125-000042. Each date has a counter
    of its own in the store, such as invoices/20261125, so no text repeats, whatever clocks show at
    the border. A process that has used a later date stays with it, even if its clock steps back.

    It draws its first block with its first number, and at the border one of the next date. The
    unused numbers of a date are given back when the next one begins. For the rest, including forks
    and ends, numbers are drawn as by Tickets. Its calls may wait, also in a program with an event
    loop: await generate_many_async there.

    store: as in Tickets.leased; None for RANDFLAKE_STORE.
    name: what the names of all counters begin with, 1 to 191 bytes without spaces and control
    characters.
    period: "day", "month" or "year".
    time_zone: whose midnight is the border: a name of the IANA database, as "Europe/Berlin".
    prefix: what texts begin with, at most 100 bytes without control characters.
    digits: to how many digits numbers are padded with zeros, 1 to 16. Larger numbers have more, and
    then texts are no longer in the order of their numbers.
    The other options are as in Tickets.leased.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT.

    >>> import tempfile
    >>> from randflake import DatedTickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with DatedTickets(
    ...         folder + "/ids.db", "invoices", period="month", prefix="INV-", create=True
    ...     ) as invoices:
    ...         first, second = invoices.generate(), invoices.generate()
    >>> first[:6], first[10:], second[10:]
    ('INV-20', '-000001', '-000002')
    """

    def __new__(
        cls,
        store: _Store | None,
        name: str,
        *,
        period: Literal["day", "month", "year"],
        time_zone: str = "UTC",
        prefix: str = "",
        digits: SupportsIndex = 6,
        namespace: str = "tickets",
        start: SupportsIndex | None = None,
        step: SupportsIndex | None = None,
        reserve_seconds: float = 2.0,
        min_block: SupportsIndex = 10,
        max_block: SupportsIndex = 1_000_000,
        create: bool = False,
        acquire_timeout: float = 10.0,
        max_wait: float = 1.0,
        allow_weak_store: bool = False,
    ) -> Self: ...
    @property
    def name(self) -> str:
        """What the names of all counters begin with."""
    def generate(self) -> str:
        """Hands out a number with the date that the clock shows.

        Raises what Tickets.generate raises.
        """
    def generate_many(self, n: SupportsIndex) -> list[str]:
        """Hands out n numbers of one date, which rise.

        Raises what Tickets.generate_many raises.
        """
    async def generate_many_async(self, n: SupportsIndex) -> list[str]:
        """Hands out n numbers of one date; a thread waits for them, and not the event loop.

        Raises what generate_many raises.
        """
    def close(self) -> None:
        """Closes this for good, and gives the unused numbers back, as Tickets.close does."""
    async def aclose(self) -> None:
        """Closes this without blocking the event loop."""
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
