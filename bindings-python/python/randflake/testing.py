"""Generators for tests of your own: no store, a clock that you set, the same ids in each run.

    from randflake.testing import FakeRandflake

    flake = FakeRandflake()
    flake.fail_next("LEASE_UNAVAILABLE", retry_after=2)

They stand in for what Randflake.leased, Snowflake.leased and Tickets.leased return. Never use them
in production: each of them makes the same ids, or numbers, as the others. Making one logs a
warning.
"""

# Inside is a real generator with an injected clock and a lease of its own, so there is no second
# implementation of an id. It renews that lease by its clock as a keeper would, and raises what a
# test has asked for.

from __future__ import annotations

import math
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, TypeVar

from randflake._async import Opening, sleep
from randflake._changes import call
from randflake._fake import Fake, Opened, broken, failure, invalid
from randflake._fake_tickets import FakeTickets
from randflake._randflake import Lease, Randflake, Snowflake
from randflake._times import clock_of
from randflake.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    RandflakeError,
    StoreError,
)
from randflake.leases import LeaseStatus, Metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from randflake._randflake import LeasedRandflake as _RandflakeMethods, _Clock
    from randflake.errors import _Code
    from randflake.snowflake import Layout, LeasedSnowflake as _SnowflakeMethods
else:
    # What is not defined here is looked up in the generator inside.
    _RandflakeMethods = _SnowflakeMethods = object

__all__ = ["FakeRandflake", "FakeSnowflake", "FakeTickets"]

_Made = TypeVar("_Made")

_SECRET = "3b7ee0c9154f48d2a6907c1d5fb82e64"
"""Published, so that nobody mistakes it for a secret."""

_START = datetime(2025, 11, 20, 12, tzinfo=UTC)

_OF_STORES = (
    *("STORE_UNAVAILABLE", "NODES_EXHAUSTED", "CLOCK_SKEW", "LEASE_LOST", "STORE_QUARANTINED"),
    *("STORE_REPLACED", "STORE_NOT_INITIALIZED", "SECRET_MISMATCH", "WEAK_STORE"),
    "DRIVER_MISSING",
)


class _SetClock:
    """A clock that stands still until it is set. A wait passes at once."""

    def __init__(self, start: datetime | float) -> None:
        self.micros = _micros_of(start)

    def now(self) -> float:
        # In the middle of a microsecond, since a float may be slightly off.
        return (self.micros + 0.5) / 1e6

    def sleep(self, seconds: float) -> None:
        self.micros += math.ceil(seconds * 1e6)


class _FakeGenerator(Fake):
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
            raise invalid("start and tick are for its own clock; leave them out, or clock")
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

        Set it to unix seconds or to a datetime with a time zone. It cannot be set if a clock was
        given.

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
            raise invalid("the clock was given; set the time there")
        self._clock.micros = _micros_of(time)

    def advance(self, seconds: float) -> None:
        """Sets the clock forward.

        Raises InvalidArgumentError with INVALID_ARGUMENT if a clock was given.
        """
        self.time = self.time + seconds

    def fail_next(self, code: _Code, *, retry_after: float = 1.0, times: int = 1) -> None:
        """Makes the next call that would generate ids raise an error, or the next times calls.

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
        """Makes the store grant nothing from now on.

        The lease is "retrying" until its end, and then "expired": calls raise LEASE_UNAVAILABLE
        then. Advance the clock to get there.

        code: the code of a StoreError.

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
        self._store_error = broken(code, _OF_STORES)
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
        """Raises INVALID_LEASE, as for any lease that comes from a store."""
        del end_exclusive
        raise InvalidArgumentError("a lease from a store is renewed automatically", "INVALID_LEASE")

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
            expired = failure("LEASE_UNAVAILABLE", 1.0, self._store_error)
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
        """Calls on_lease_change if the state has changed since the last call."""
        status = self._status()
        if status is None or status.state == self._told:
            return
        self._told = status.state
        if self._on_lease_change is not None:
            call(self._on_lease_change, status)


class FakeRandflake(_FakeGenerator, _RandflakeMethods):  # type: ignore[misc]  # of a final class
    """Replaces the result of Randflake.leased in a test: no store, and the same ids in each run.

    It has the methods and the errors of a real one, which it has inside, and isinstance takes it
    for a Randflake. Unless you give others, all of them share one secret, node id and time, and
    make the same ids. In a forked child it raises FORKED.

    start: what its clock shows first, unix seconds or a datetime with a time zone; None for
    2025-11-20 12:00 in UTC. The clock stands still; where a call would wait, it advances by that
    much at once.
    tick: by how many seconds the clock advances after each call that has generated ids.
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
        """Stands in for Randflake.leased: makes a fake with this secret.

        Ignores the store, the environment, and options that mean nothing here.
        """
        del store
        return FakeRandflake(secret=_SECRET if secret is None else secret, **_kept(options))

    @staticmethod
    def lazy(store: object = None, secret: Any = None, **options: Any) -> FakeRandflake:
        """Stands in for Randflake.lazy; see leased."""
        return FakeRandflake.leased(store, secret, **options)

    @staticmethod
    def leased_async(  # type: ignore[override]  # each makes its own
        store: object = None, secret: Any = None, **options: Any
    ) -> Opening[FakeRandflake]:
        """Stands in for Randflake.leased_async; see leased."""
        return Opened(FakeRandflake.leased(store, secret, **options))

    def generate_string(self) -> str:
        """Generates an id as text."""
        return self._call(self._flake.generate_string)

    def generate_strings(self, n: SupportsIndex) -> list[str]:
        """Generates n ids as texts."""
        return self._call(self._flake.generate_strings, n)


class FakeSnowflake(_FakeGenerator, _SnowflakeMethods):  # type: ignore[misc]  # of a final class
    """Replaces the result of Snowflake.leased in a test: no store, and the same ids in each run.

    Like FakeRandflake, but a layout whose sequence begins at random has other ids in each run.

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
        store: object = None, layout: Layout | str | None = None, **options: Any
    ) -> FakeSnowflake:
        """Stands in for Snowflake.leased; see FakeRandflake.leased."""
        del store
        layout = Snowflake.lazy(None, layout).layout  # that of the environment, where none is given
        return FakeSnowflake(layout=layout, **_kept(options))

    @staticmethod
    def lazy(
        store: object = None, layout: Layout | str | None = None, **options: Any
    ) -> FakeSnowflake:
        """Stands in for Snowflake.lazy; see FakeRandflake.leased."""
        return FakeSnowflake.leased(store, layout, **options)

    @staticmethod
    def leased_async(  # type: ignore[override]  # each makes its own
        store: object = None, layout: Layout | str | None = None, **options: Any
    ) -> Opening[FakeSnowflake]:
        """Stands in for Snowflake.leased_async; see FakeRandflake.leased."""
        return Opened(FakeSnowflake.leased(store, layout, **options))


def _kept(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of leased that mean something here."""
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
        raise invalid("a datetime needs a time zone, such as datetime.UTC")
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
