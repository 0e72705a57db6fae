"""A stand-in for a counter of tickets in a test."""

from __future__ import annotations

from collections import Counter, deque
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar

from randflake._async import Opening, sleep
from randflake._fake import Fake, Opened, broken, failure
from randflake._randflake import Tickets
from randflake.errors import RandflakeError, RetryLaterError, StoreError
from randflake.tickets import TicketsMetrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from randflake.errors import _Code

    _TicketsMethods = Tickets
else:
    # What is not defined here is looked up in the counter inside.
    _TicketsMethods = object

_Made = TypeVar("_Made")

LASTING_OF_TICKETS = ("LIFETIME_OVER", "FORKED", "CLOSED", "INTERNAL")
_OF_STORES_WHILE_THEY_LAST = ("STORE_UNAVAILABLE", "CLOCK_SKEW")
_OF_STORES_OF_TICKETS = (
    *_OF_STORES_WHILE_THEY_LAST,
    *("STORE_QUARANTINED", "STORE_REPLACED", "STORE_NOT_INITIALIZED", "WEAK_STORE"),
    "DRIVER_MISSING",
)

_BLOCK = 10
"""What a fake counts as a block of numbers."""


class FakeTickets(Fake, _TicketsMethods):  # type: ignore[misc]  # of a final class
    """Replaces the result of Tickets.leased in a test: no store, and the same numbers in each run.

    It has the methods and the errors of a real one, which it has inside, and isinstance takes it
    for Tickets. Each begins at its start, even if others of the same name have handed out numbers.
    In a forked child it raises FORKED.

    name: its name, as that of the counter of a real one.
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
    _lasting = LASTING_OF_TICKETS

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
        """Stands in for Tickets.leased: makes a fake with this name, start and step.

        Ignores the store, and options that mean nothing here.
        """
        del store
        return FakeTickets(name, start=options.get("start"), step=options.get("step"))

    @staticmethod
    def lazy(store: object = None, name: str = "tickets", **options: Any) -> FakeTickets:
        """Stands in for Tickets.lazy; see leased."""
        return FakeTickets.leased(store, name, **options)

    @staticmethod
    def leased_async(  # type: ignore[override]  # each makes its own
        store: object = None, name: str = "tickets", **options: Any
    ) -> Opening[FakeTickets]:
        """Stands in for Tickets.leased_async; see leased."""
        return Opened(FakeTickets.leased(store, name, **options))

    def fail_next(self, code: _Code, *, retry_after: float = 1.0, times: int = 1) -> None:
        """Makes the next call that would hand out numbers raise an error, or the next times calls.

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
        """Makes the store give no block from now on.

        Once the numbers that were drawn before are used up, calls raise LEASE_UNAVAILABLE, with the
        error of the store as its cause; or that error itself where waiting does not help, such as
        STORE_QUARANTINED for a counter that must be fenced.

        code: the code of a StoreError.
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
        self._store_error = broken(code, _OF_STORES_OF_TICKETS)
        self._store_errors[code] += 1
        self._left = left

    def mend_store(self) -> None:
        """Lets the store give blocks again, at once."""
        self._store_error = None

    def metrics(self) -> TicketsMetrics:
        """Returns what it has done, as if each block had ten numbers."""
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
        """Calls the one inside, unless the store is broken and too few numbers are left."""
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
        """Returns what a call for this many numbers raises while the store is broken."""
        error = self._store_error
        if error is None or self._left >= count or self._flake._is_closed:
            return None
        if error.code not in _OF_STORES_WHILE_THEY_LAST:
            return error
        return failure("LEASE_UNAVAILABLE", 1.0, error)


def _count(arguments: tuple[object, ...]) -> int:
    """Returns how many numbers a call asks for; 0 if the call will be refused."""
    if not arguments:
        return 1
    try:
        asked: Any = arguments[0]
        return index(asked) if hasattr(asked, "__index__") else memoryview(asked).nbytes // 8
    except (TypeError, ValueError):
        return 0
