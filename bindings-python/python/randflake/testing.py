"""Generators for tests of your own: no store, a clock that you set, the same ids in each run.

    from randflake.testing import FakeRandflake

    flake = FakeRandflake()
    flake.fail_next("LEASE_UNAVAILABLE", retry_after=2)

They stand for what Randflake.leased, Snowflake.leased and Tickets.leased return. Never use them in
production: each of them makes the ids, or the numbers, that the others make. Making one logs a
warning.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, SupportsIndex, TypeVar

from randflake._async import Opening, sleep
from randflake._changes import call, logger
from randflake._randflake import Lease, Randflake, Snowflake, Tickets
from randflake._times import clock_of
from randflake.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    RandflakeError,
    RetryLaterError,
    StoreError,
)
from randflake.leases import LeaseStatus, Metrics
from randflake.tickets import TicketsMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

    from randflake._randflake import LeasedRandflake as _RandflakeMethods, _Clock, _Int64Buffer
    from randflake.errors import _Code
    from randflake.snowflake import Layout, LeasedSnowflake as _SnowflakeMethods

    _TicketsMethods = Tickets
else:
    # What is not defined here is looked up in the generator inside.
    _RandflakeMethods = _SnowflakeMethods = _TicketsMethods = object

__all__ = ["FakeRandflake", "FakeSnowflake", "FakeTickets"]

_Made = TypeVar("_Made")

_SECRET = "3b7ee0c9154f48d2a6907c1d5fb82e64"
"""Published, so that nobody takes it for a secret."""

_START = datetime(2025, 11, 20, 12, tzinfo=UTC)

_RETRY_LATER = ("LEASE_UNAVAILABLE", "SEQUENCE_EXHAUSTED", "CLOCK_MOVED_BACK", "LEASE_NOT_STARTED")
_LASTING = ("LIFETIME_OVER", "CLOCK_BEFORE_EPOCH", "FORKED", "CLOSED", "INTERNAL")
_OF_STORES = (
    *("STORE_UNAVAILABLE", "NODES_EXHAUSTED", "CLOCK_SKEW", "LEASE_LOST", "STORE_QUARANTINED"),
    *("STORE_REPLACED", "STORE_NOT_INITIALIZED", "SECRET_MISMATCH", "WEAK_STORE"),
    "DRIVER_MISSING",
)
_LASTING_OF_TICKETS = ("LIFETIME_OVER", "FORKED", "CLOSED", "INTERNAL")
_OF_STORES_WHILE_THEY_LAST = ("STORE_UNAVAILABLE", "CLOCK_SKEW")
_OF_STORES_OF_TICKETS = (
    *_OF_STORES_WHILE_THEY_LAST,
    *("STORE_QUARANTINED", "STORE_REPLACED", "STORE_NOT_INITIALIZED", "WEAK_STORE"),
    "DRIVER_MISSING",
)

_BROKEN = "the store of a test is broken"

_BLOCK = 10
"""What a fake counts as a block of numbers."""


class _SetClock:
    """A clock that stands still until it is set. A wait passes at once."""

    def __init__(self, start: datetime | float) -> None:
        self.micros = _micros_of(start)

    def now(self) -> float:
        # In the middle of a microsecond, since a float may be a little off.
        return (self.micros + 0.5) / 1e6

    def sleep(self, seconds: float) -> None:
        self.micros += math.ceil(seconds * 1e6)


class _Stand:
    """What stands for a real one, and has one inside."""

    _flake: Randflake | Snowflake | Tickets
    _failures: deque[RandflakeError]
    _retry_later: ClassVar[tuple[str, ...]] = _RETRY_LATER
    _lasting: ClassVar[tuple[str, ...]] = _LASTING

    def _call(self, generate: Callable[..., _Made], *arguments: object) -> _Made:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _log(self) -> None:
        logger.warning(
            "made a %s, which is for tests: others make the same ids", type(self).__qualname__
        )

    def _fail_next(self, code: _Code, retry_after: float, times: int) -> None:
        codes = self._retry_later + self._lasting
        if code not in codes:
            raise _invalid(f"generate raises one of {', '.join(codes)}, got {code!r}")
        for _ in range(times):
            self._failures.append(_failure(code, retry_after))

    def generate(self) -> int:
        """Generates an id, or hands out a number, as a real one does."""
        return self._call(self._flake.generate)

    def generate_many(self, n: SupportsIndex) -> list[int]:
        """As a real one does."""
        return self._call(self._flake.generate_many, n)

    def generate_array(self, n: SupportsIndex) -> NDArray[np.int64]:
        """As a real one does."""
        return self._call(self._flake.generate_array, n)

    def fill(self, buffer: _Int64Buffer) -> None:
        """As a real one does."""
        self._call(self._flake.fill, buffer)

    async def generate_many_async(self, n: SupportsIndex) -> list[int]:
        """As generate_many, on this thread."""
        return self.generate_many(n)

    async def generate_array_async(self, n: SupportsIndex) -> NDArray[np.int64]:
        """As generate_array, on this thread."""
        return self.generate_array(n)

    async def aclose(self) -> None:
        """As close."""
        self.close()

    def __enter__(self) -> Self:
        self._flake.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self._flake.__reduce_ex__(protocol)  # which refuses

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *dir(self._flake)})

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """Lets isinstance take it for what it stands for, as unittest.mock does."""
            return self._flake.__class__

        def __getattr__(self, name: str) -> object:
            if name == "_flake":  # it could not be made
                raise AttributeError(name)
            return getattr(self._flake, name)


class _Fake(_Stand):
    """What FakeRandflake and FakeSnowflake have in common."""

    _flake: Randflake | Snowflake
    _clock: _SetClock | None
    _now: Callable[[], float]

    def _open(
        self,
        start: datetime | float | None,
        tick: float,
        clock: object,
        ttl: int,
        namespace: str,
        on_lease_change: Callable[[LeaseStatus], object] | None,
        make: Callable[[Lease, object], Randflake | Snowflake],
    ) -> Self:
        """Takes a first lease, and makes the generator inside."""
        if clock is None:
            self._clock = _SetClock(_START if start is None else start)
            self._now = self._clock.now
        elif start is not None or tick:
            raise _invalid("start and tick are for the clock of its own; leave them out, or clock")
        else:
            self._clock = None
            self._now = clock_of(clock)[0]  # type: ignore[assignment]  # which it checks
        self._tick = tick
        self._ttl = ttl
        self._namespace = namespace
        self._on_lease_change = on_lease_change
        self._told: str | None = None
        self._failures: deque[RandflakeError] = deque()
        self._store_error: StoreError | None = None
        self._store_error_at: int | None = None
        self._store_errors: Counter[str] = Counter()
        self._renewals = 0
        self._leased_at = math.floor(self._now())
        self._flake = make(Lease(self._leased_at, self._leased_at + ttl), clock or self._clock)
        self._log()
        self._tell()
        return self

    @property
    def time(self) -> float:
        """The time that its clock shows, in unix seconds.

        Set it to unix seconds or to a datetime with a time zone. With a clock that was given it
        cannot be set.

        >>> from randflake.testing import FakeRandflake
        >>> flake = FakeRandflake()
        >>> flake.time
        1763640000.0
        >>> flake.time += 1.5
        >>> flake.inspect(flake.generate()).timestamp
        1763640001
        """
        return self._now() if self._clock is None else self._clock.micros / 1e6

    @time.setter
    def time(self, time: datetime | float) -> None:
        if self._clock is None:
            raise _invalid("the clock was given; set the time there")
        self._clock.micros = _micros_of(time)

    def advance(self, seconds: float) -> None:
        """Sets the clock forward.

        Raises InvalidArgumentError with INVALID_ARGUMENT if a clock was given.
        """
        self.time = self.time + seconds

    def fail_next(self, code: _Code, *, retry_after: float = 1.0, times: int = 1) -> None:
        """Lets the next call that would generate ids raise an error, as often as times says.

        code: LEASE_UNAVAILABLE (with the error of a store as its cause), SEQUENCE_EXHAUSTED,
        CLOCK_MOVED_BACK or LEASE_NOT_STARTED, which are a RetryLaterError with retry_after; or
        LIFETIME_OVER, CLOCK_BEFORE_EPOCH, FORKED, CLOSED or INTERNAL, which are a RandflakeError.

        Raises InvalidArgumentError with INVALID_ARGUMENT for a code that no call raises.

        >>> from randflake import RetryLaterError
        >>> from randflake.testing import FakeRandflake
        >>> flake = FakeRandflake()
        >>> flake.fail_next("LEASE_UNAVAILABLE", retry_after=2)
        >>> try:
        ...     flake.generate()
        ... except RetryLaterError as error:
        ...     error.code, error.retry_after, error.__cause__.code
        ('LEASE_UNAVAILABLE', 2, 'STORE_UNAVAILABLE')
        >>> flake.inspect(flake.generate()).node_id
        1
        """
        self._fail_next(code, retry_after, times)

    def break_store(self, code: _Code = "STORE_UNAVAILABLE") -> None:
        """Lets the store grant nothing from now on.

        The lease is "retrying" until its end, and then "expired": calls raise LEASE_UNAVAILABLE
        then. Set the time to get there.

        code: that of a StoreError.

        >>> from randflake import RetryLaterError
        >>> from randflake.testing import FakeRandflake
        >>> flake = FakeRandflake(ttl=60)
        >>> flake.break_store()
        >>> flake.lease.state, flake.lease.last_error.code
        ('retrying', 'STORE_UNAVAILABLE')
        >>> flake.advance(61)
        >>> flake.lease.state
        'expired'
        >>> flake.mend_store()
        >>> flake.lease.state
        'holding'
        """
        self._keep()
        self._store_error = _broken(code, _OF_STORES)
        self._store_error_at = math.floor(self._now())
        self._store_errors[code] += 1
        self._tell()

    def mend_store(self) -> None:
        """Lets the store grant leases again, at once."""
        self._store_error = self._store_error_at = None
        self._keep(at_once=True)

    @property
    def lease(self) -> LeaseStatus | None:
        """How the lease is doing; None once closed."""
        self._keep()
        return self._status()

    def _status(self) -> LeaseStatus | None:
        held = self._flake.lease
        if held is None:
            return None
        left = max(0.0, held.end_exclusive - self.time)
        state: Literal["holding", "retrying", "expired"] = "holding"
        if self._store_error is not None:
            state = "retrying" if left else "expired"
        return LeaseStatus(
            state=state,
            node_ids=self._flake.node_ids,
            start=held.start,
            end_exclusive=held.end_exclusive,
            seconds_left=left,
            renewals=self._renewals,
            losses=0,
            last_error=self._store_error,
            last_error_at=self._store_error_at,
            store="memory",
            namespace=self._namespace,
            replacements=0,
        )

    def metrics(self) -> Metrics:
        """Returns what the generator has done, and what its store would have been asked."""
        made = self._flake.metrics()
        return made._replace(
            waits={**made.waits, "LEASE_UNAVAILABLE": 0},
            store_requests=1 + self._renewals + self._store_errors.total(),
            store_request_seconds=0.0,
            store_errors=dict(self._store_errors),
            clock_skew_seconds=0,
        )

    def extend_lease(self, end_exclusive: SupportsIndex) -> None:
        """Raises INVALID_LEASE, as of any lease that comes from a store."""
        del end_exclusive
        raise InvalidArgumentError("a lease from a store is renewed by itself", "INVALID_LEASE")

    async def ready(self) -> None:
        """Returns as soon as an id is available; after the lease, once the store is mended."""
        while self.lease is not None and self.lease.state == "expired":
            await sleep(0.001)
        inside: Any = self._flake
        while seconds := inside._ready_in():
            if self._clock is None:
                await sleep(seconds)
            else:
                self._clock.sleep(seconds)

    def close(self) -> None:
        """Ends the generator for good, as a real one does."""
        self._keep()
        last = self._status()
        self._flake.close()
        if last is not None and self._on_lease_change is not None:
            call(self._on_lease_change, last._replace(state="stopped"))

    def __repr__(self) -> str:
        node_ids = list(self._flake.node_ids)
        return f"<randflake.testing.{type(self).__qualname__} node_ids={node_ids}>"

    def _call(self, generate: Callable[..., _Made], *arguments: object) -> _Made:
        """Calls the generator inside, and lets time pass."""
        if self._failures:
            raise self._failures.popleft()
        self._keep()
        try:
            made = generate(*arguments)
        except RandflakeError as error:
            if error.code != "LEASE_EXPIRED":
                raise
            expired = _failure("LEASE_UNAVAILABLE", 1.0, self._store_error)
        else:
            if self._clock is not None:
                self._clock.micros += round(self._tick * 1e6)
            return made
        raise expired

    def _keep(self, *, at_once: bool = False) -> None:
        """Does what a thread does for a real one: renews the lease at a third of its length."""
        now = math.floor(self._now())
        is_due = at_once or now >= self._leased_at + self._ttl / 3
        if is_due and self._store_error is None and self._flake.lease is not None:
            self._flake.extend_lease(now + self._ttl)
            self._leased_at = now
            self._renewals += 1
        self._tell()

    def _tell(self) -> None:
        """Calls on_lease_change if the state is another one than it was told last."""
        status = self._status()
        if status is None or status.state == self._told:
            return
        self._told = status.state
        if self._on_lease_change is not None:
            call(self._on_lease_change, status)


class FakeRandflake(_Fake, _RandflakeMethods):  # type: ignore[misc]  # of a final class
    """What stands for Randflake.leased in a test: no store, and the same ids in each run.

    It has the methods and the errors of a real one, inside which there is one, and isinstance takes
    it for a Randflake. All of them have one secret, node id and time unless you give others, and
    then make the same ids. In a forked child it raises FORKED.

    start: what its clock shows first, unix seconds or a datetime with a time zone; None for
    2025-11-20 12:00 in UTC. The clock stands still; where a call would wait, it goes on by as much
    at once.
    tick: by how many seconds the clock goes on after each call that has generated ids.
    clock: another clock instead, as in the constructor of Randflake, such as lambda: time.time()
    under freezegun.
    node_id: 0 to 131071, or a sequence of them.
    secret: 16 bytes, or a str of 32 hex digits; never one that is used elsewhere.
    ttl: the length of a lease in seconds.
    namespace: what the status of its lease says.
    max_wait, max_drift: as in Randflake.leased.
    on_lease_change: as in Randflake.leased, but called at once, on the same thread.

    Raises what the constructor of Randflake raises.

    >>> from randflake.testing import FakeRandflake
    >>> flake = FakeRandflake(tick=0.5)
    >>> flake.generate_string()
    'd1ladjl4a6ikc'
    >>> [flake.inspect(flake.generate()).timestamp for _ in range(3)]
    [1763640000, 1763640001, 1763640001]
    >>> flake.lease.state, flake.lease.node_ids
    ('holding', (1,))
    """

    _flake: Randflake

    def __new__(
        cls,
        *,
        start: datetime | float | None = None,
        tick: float = 0.0,
        clock: _Clock | Callable[[], float] | None = None,
        node_id: SupportsIndex | Sequence[SupportsIndex] = 1,
        secret: bytes | str = _SECRET,
        ttl: int = 300,
        namespace: str = "default",
        max_wait: float = 1.0,
        max_drift: int | None = None,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> Self:
        drift = min(10, ttl // 3) if max_drift is None else max_drift

        def make(lease: Lease, clock: Any) -> Randflake:
            return Randflake(
                node_id, secret, lease=lease, max_wait=max_wait, max_drift=drift, clock=clock
            )

        return object.__new__(cls)._open(start, tick, clock, ttl, namespace, on_lease_change, make)

    @staticmethod
    def leased(store: object = None, secret: Any = None, **options: Any) -> FakeRandflake:
        """Stands for Randflake.leased: makes a fake of this secret.

        The store is not looked at, nor are the environment and options that mean nothing here.
        """
        del store
        return FakeRandflake(secret=_SECRET if secret is None else secret, **_kept(options))

    @staticmethod
    def lazy(store: object = None, secret: Any = None, **options: Any) -> FakeRandflake:
        """Stands for Randflake.lazy; see leased."""
        return FakeRandflake.leased(store, secret, **options)

    @staticmethod
    def leased_async(  # type: ignore[override]  # each makes its own
        store: object = None, secret: Any = None, **options: Any
    ) -> Opening[FakeRandflake]:
        """Stands for Randflake.leased_async; see leased."""
        return _Opened(FakeRandflake.leased(store, secret, **options))

    def generate_string(self) -> str:
        """Generates an id as text."""
        return self._call(self._flake.generate_string)

    def generate_strings(self, n: SupportsIndex) -> list[str]:
        """Generates n ids as texts."""
        return self._call(self._flake.generate_strings, n)


class FakeSnowflake(_Fake, _SnowflakeMethods):  # type: ignore[misc]  # of a final class
    """What stands for Snowflake.leased in a test: no store, and the same ids in each run.

    As FakeRandflake; but a layout whose sequence begins at random has other ids in each run.

    layout: as in Snowflake.leased.

    >>> from randflake.testing import FakeSnowflake
    >>> flake = FakeSnowflake(tick=0.001)
    >>> flake.generate_many(2), flake.generate()
    ([1991476617016250368, 1991476617016250369], 1991476617020444672)
    """

    _flake: Snowflake

    def __new__(
        cls,
        *,
        layout: Layout | str = "twitter",
        start: datetime | float | None = None,
        tick: float = 0.0,
        clock: _Clock | Callable[[], float] | None = None,
        node_id: SupportsIndex | Sequence[SupportsIndex] = 1,
        ttl: int = 300,
        namespace: str = "default",
        max_wait: float = 1.0,
        max_drift: int = 0,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> Self:
        def make(lease: Lease, clock: Any) -> Snowflake:
            return Snowflake(
                node_id, layout, lease=lease, max_wait=max_wait, max_drift=max_drift, clock=clock
            )

        return object.__new__(cls)._open(start, tick, clock, ttl, namespace, on_lease_change, make)

    @staticmethod
    def leased(
        store: object = None, layout: Layout | str = "twitter", **options: Any
    ) -> FakeSnowflake:
        """Stands for Snowflake.leased; see FakeRandflake.leased."""
        del store
        return FakeSnowflake(layout=layout, **_kept(options))

    @staticmethod
    def lazy(
        store: object = None, layout: Layout | str = "twitter", **options: Any
    ) -> FakeSnowflake:
        """Stands for Snowflake.lazy; see FakeRandflake.leased."""
        return FakeSnowflake.leased(store, layout, **options)

    @staticmethod
    def leased_async(  # type: ignore[override]  # each makes its own
        store: object = None, layout: Layout | str = "twitter", **options: Any
    ) -> Opening[FakeSnowflake]:
        """Stands for Snowflake.leased_async; see FakeRandflake.leased."""
        return _Opened(FakeSnowflake.leased(store, layout, **options))


class FakeTickets(_Stand, _TicketsMethods):  # type: ignore[misc]  # of a final class
    """What stands for Tickets.leased in a test: no store, and the same numbers in each run.

    It has the methods and the errors of a real one, inside which there is one, and isinstance takes
    it for Tickets. Each begins at its start, whatever others of the same name have handed out. In a
    forked child it raises FORKED.

    name: what its name says, as of the counter of a real one.
    start: the first number, 1 to 2**53 - 1. With the last one, 2**53 - 1, the second call raises
    LIFETIME_OVER.
    step: by how much numbers rise.

    Raises what Tickets.leased raises for them.

    >>> from randflake.testing import FakeTickets
    >>> orders = FakeTickets("orders", start=7, step=2)
    >>> orders.generate(), orders.generate_many(2)
    (7, [9, 11])
    """

    _flake: Tickets
    _store_error: StoreError | None
    _store_errors: Counter[str]
    _retry_later = ("LEASE_UNAVAILABLE",)
    _lasting = _LASTING_OF_TICKETS

    def __new__(
        cls,
        name: str = "tickets",
        *,
        start: SupportsIndex | None = None,
        step: SupportsIndex | None = None,
    ) -> Self:
        self = object.__new__(cls)
        self._flake = Tickets._in_memory(name, start=start, step=step)
        self._failures = deque()
        self._store_error = None
        self._store_errors = Counter()
        self._left = 0
        self._log()
        return self

    @staticmethod
    def leased(store: object = None, name: str = "tickets", **options: Any) -> FakeTickets:
        """Stands for Tickets.leased: makes a fake of this name, with its start and its step.

        The store is not looked at, nor are options that mean nothing here.
        """
        del store
        return FakeTickets(name, start=options.get("start"), step=options.get("step"))

    @staticmethod
    def lazy(store: object = None, name: str = "tickets", **options: Any) -> FakeTickets:
        """Stands for Tickets.lazy; see leased."""
        return FakeTickets.leased(store, name, **options)

    @staticmethod
    def leased_async(  # type: ignore[override]  # each makes its own
        store: object = None, name: str = "tickets", **options: Any
    ) -> Opening[FakeTickets]:
        """Stands for Tickets.leased_async; see leased."""
        return _Opened(FakeTickets.leased(store, name, **options))

    def fail_next(self, code: _Code, *, retry_after: float = 1.0, times: int = 1) -> None:
        """Lets the next call that would hand out numbers raise an error, as often as times says.

        code: LEASE_UNAVAILABLE (with the error of a store as its cause), which is a RetryLaterError
        with retry_after; or LIFETIME_OVER, FORKED, CLOSED or INTERNAL, which are a RandflakeError.

        Raises InvalidArgumentError with INVALID_ARGUMENT for a code that no call raises.

        >>> from randflake import RandflakeError
        >>> from randflake.testing import FakeTickets
        >>> orders = FakeTickets("orders")
        >>> orders.fail_next("LIFETIME_OVER")
        >>> try:
        ...     orders.generate()
        ... except RandflakeError as error:
        ...     error.code
        'LIFETIME_OVER'
        >>> orders.generate()
        1
        """
        self._fail_next(code, retry_after, times)

    def break_store(self, code: _Code = "STORE_UNAVAILABLE", *, left: int = 0) -> None:
        """Lets the store give no block from now on.

        Once the numbers that were drawn before are used up, calls raise LEASE_UNAVAILABLE, with the
        error of the store as its cause; or that error itself where waiting does not help, as
        STORE_QUARANTINED of a counter that has to be fenced.

        code: that of a StoreError.
        left: how many numbers were drawn before.

        >>> from randflake import RetryLaterError
        >>> from randflake.testing import FakeTickets
        >>> orders = FakeTickets("orders")
        >>> orders.break_store(left=2)
        >>> orders.generate_many(2)
        [1, 2]
        >>> try:
        ...     orders.generate()
        ... except RetryLaterError as error:
        ...     error.code, error.__cause__.code
        ('LEASE_UNAVAILABLE', 'STORE_UNAVAILABLE')
        >>> orders.mend_store()
        >>> orders.generate()
        3
        """
        self._store_error = _broken(code, _OF_STORES_OF_TICKETS)
        self._store_errors[code] += 1
        self._left = left

    def mend_store(self) -> None:
        """Lets the store give blocks again, at once."""
        self._store_error = None

    def metrics(self) -> TicketsMetrics:
        """Returns what was done, as if each block had ten numbers."""
        made = self._flake.metrics().numbers_generated
        blocks = max(1, -(-made // _BLOCK))
        reserve = blocks * _BLOCK - made if self._store_error is None else self._left
        return TicketsMetrics(
            numbers_generated=made,
            reserve=0 if self._flake._is_closed else reserve,
            blocks_drawn=blocks,
            waits=0,
            store_requests=blocks + self._store_errors.total(),
            store_request_seconds=0.0,
            store_errors=dict(self._store_errors),
            last_error=self._store_error,
        )

    async def ready(self) -> None:
        """Returns as soon as a number is available; without one, once the store is mended."""
        while (error := self._failure(1)) is not None:
            if not isinstance(error, RetryLaterError):
                raise error
            await sleep(0.001)
        await self._flake.ready()

    def close(self) -> None:
        """Ends it for good, as a real one does."""
        self._flake.close()

    def __repr__(self) -> str:
        return f"<randflake.testing.{type(self).__qualname__} name={self.name!r}>"

    def _call(self, generate: Callable[..., _Made], *arguments: object) -> _Made:
        """Calls the one inside, unless the numbers of a broken store do not suffice."""
        if self._failures:
            raise self._failures.popleft()
        if self._store_error is None:
            return generate(*arguments)
        before = self._flake.metrics().numbers_generated
        count = _count(arguments)
        error = self._failure(count)
        if error is not None:
            raise error
        made = generate(*arguments)
        self._left -= self._flake.metrics().numbers_generated - before
        return made

    def _failure(self, count: int) -> RandflakeError | None:
        """Returns what a call for so many numbers raises where the store is broken."""
        error = self._store_error
        if error is None or self._left >= count or self._flake._is_closed:
            return None
        if error.code not in _OF_STORES_WHILE_THEY_LAST:
            return error
        return _failure("LEASE_UNAVAILABLE", 1.0, error)


class _Opened(Opening[_Made]):
    """What leased_async returns: there is no store to wait for."""

    def __init__(self, flake: _Made) -> None:
        super().__init__(lambda: flake, (), None)
        self._opened = flake

    async def _open(self) -> _Made:
        return self._opened


def _kept(options: dict[str, Any]) -> dict[str, Any]:
    """Returns those of the options of leased that mean something here."""
    names = ("ttl", "namespace", "max_wait", "max_drift", "on_lease_change")
    return {name: options[name] for name in names if options.get(name) is not None}


def _micros_of(time: datetime | float) -> int:
    """Returns a time in whole unix microseconds."""
    if not isinstance(time, datetime):
        try:
            return round(time * 1e6)
        except (TypeError, ValueError, OverflowError):
            raise InvalidTypeError(
                f"a time is unix seconds or a datetime, got {type(time).__name__}",
                "INVALID_ARGUMENT",
            ) from None
    if time.utcoffset() is None:
        raise _invalid("a datetime needs a time zone, such as datetime.UTC")
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _failure(code: _Code, retry_after: float, cause: StoreError | None = None) -> RandflakeError:
    if code not in _RETRY_LATER:
        return RandflakeError("a test lets this call fail", code)
    error = RetryLaterError("a test lets this call fail", code, retry_after)
    if code == "LEASE_UNAVAILABLE":
        error.__cause__ = cause or StoreError(_BROKEN, "STORE_UNAVAILABLE", retry_after)
    return error


def _broken(code: _Code, codes: tuple[str, ...]) -> StoreError:
    """Returns the error of a store, if it is one of these."""
    if code not in codes:
        raise _invalid(f"the error of a store is one of {', '.join(codes)}, got {code!r}")
    return StoreError(_BROKEN, code, 1.0)


def _count(arguments: tuple[object, ...]) -> int:
    """Returns how many numbers a call asks for; of what it refuses, none."""
    if not arguments:
        return 1
    try:
        asked: Any = arguments[0]
        return index(asked) if hasattr(asked, "__index__") else memoryview(asked).nbytes // 8
    except (TypeError, ValueError):
        return 0


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, "INVALID_ARGUMENT")
