"""Sequential numbers: 1, 2, 3 and so on from named counters of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, SupportsIndex

from randflake import _randflake
from randflake._first import keep_first
from randflake._randflake import DatedTickets, Tickets

if TYPE_CHECKING:
    from randflake.errors import RandflakeError
    from randflake.stores import _Store

__all__ = [
    "CounterStatus",
    "DatedTickets",
    "Tickets",
    "TicketsMetrics",
    "fence_tickets",
    "init_tickets",
    "list_tickets",
    "show_tickets",
]


class TicketsMetrics(NamedTuple):
    """What a Tickets has done in this process.

    >>> import tempfile
    >>> from randflake import Tickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = folder + "/ids.db"
    ...     with Tickets.leased(store, "invoices", create=True, min_block=1000) as invoices:
    ...         numbers = invoices.generate_many(1000)
    ...         metrics = invoices.metrics()
    >>> metrics.numbers_generated, metrics.store_errors, metrics.last_error
    (1000, {}, None)
    """

    numbers_generated: int
    """How many numbers were handed out.

    Includes the few that calls on several threads dropped at the end of a block.
    """
    reserve: int
    """How many numbers are drawn and not handed out: the numbers that a kill would lose."""
    blocks_drawn: int
    """How many blocks were drawn."""
    waits: int
    """How many calls waited for a block."""
    store_requests: int
    """How many requests to the store were answered or failed."""
    store_request_seconds: float
    """How many seconds they took in all."""
    store_errors: dict[str, int]
    """How many of them the store did not grant, by the code of the error."""
    last_error: RandflakeError | None
    """The last of these errors."""


class CounterStatus(NamedTuple):
    """What a store knew of a counter when it was asked."""

    name: str
    """The name."""
    start: int
    """The first number."""
    step: int
    """The difference between two numbers."""
    next: int | None
    """The first number that was never drawn; None if all up to 2**53 - 1 were."""
    given_back: int
    """How many smaller numbers were given back, and will be drawn again."""
    blocks: int
    """How many blocks may still be given back."""
    must_be_fenced: bool
    """Whether nothing can be drawn before fence_tickets: the store may have lost blocks."""


def init_tickets(
    store: _Store,
    mode: Literal["new", "quarantine"],
    *,
    namespace: str = "tickets",
    allow_weak_store: bool = False,
) -> None:
    """Makes a namespace of tickets in a store, once, before its first number.

    An existing one is checked, and stays as it is. In PostgreSQL and MySQL this creates the table,
    too. A SQLite file is created if it is missing.

    Do not call it with each start or deploy: after a loss of the store, "new" makes every counter
    start over.

    store: the path of a SQLite file, or the URL or the client of a server, as in Randflake.leased.
    mode: "new" if this store has never had the namespace; "quarantine" if it may have had it and
    lost it: each counter must then be fenced before a number is drawn. Required.
    namespace: 1 to 200 bytes. It is only for tickets, with any number of counters.
    allow_weak_store: whether to accept a server that may lose what it has acknowledged. A file is
    refused with it.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT; StoreError with STORE_UNAVAILABLE,
    WEAK_STORE or DRIVER_MISSING.

    >>> import tempfile
    >>> from randflake import Tickets, init_tickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init_tickets(folder + "/ids.db", "new")
    ...     with Tickets.leased(folder + "/ids.db", "invoices") as invoices:
    ...         invoices.generate()
    1
    """
    _randflake.init_tickets(store, mode, namespace, allow_weak_store)


def fence_tickets(
    store: _Store,
    name: str,
    above: SupportsIndex,
    *,
    start: SupportsIndex | None = None,
    step: SupportsIndex | None = None,
    namespace: str = "tickets",
    allow_weak_store: bool = False,
) -> CounterStatus:
    """Raises a counter, or makes it, so that every number from now on is larger than above.

    Call it where the store may have lost blocks, as by a restart without its data or a failover:
    Randflake notices that by itself, and draws raise STORE_QUARANTINED until the fence. A restored
    backup, as of a file, can look as if nothing had happened: before anything starts, fence the
    namespace (fence_store with namespace="tickets", or randflake lease fence --namespace tickets),
    then each counter.

    First stop everything that draws from the counter; start it again after the fence. A process
    that still runs continues to hand out the numbers that it has. Fence above the largest number in
    your tables.

    store, namespace, allow_weak_store: as in init_tickets.
    name: the name of the counter.
    above: 0 to 2**53 - 1. A counter never falls.
    start, step: as in Tickets.leased, for a counter that is missing.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT; StoreError with
    STORE_NOT_INITIALIZED, STORE_UNAVAILABLE, WEAK_STORE or DRIVER_MISSING, or STORE_QUARANTINED
    with the time to wait, while numbers may still be drawn from a former Redis master.

    >>> import tempfile
    >>> from randflake import Tickets, fence_tickets, init_tickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init_tickets(folder + "/ids.db", "quarantine")
    ...     fence_tickets(folder + "/ids.db", "invoices", 20_417).next
    ...     with Tickets.leased(folder + "/ids.db", "invoices") as invoices:
    ...         invoices.generate()
    20418
    20418
    """
    return _randflake.fence_tickets(store, name, above, start, step, namespace, allow_weak_store)


def list_tickets(
    store: _Store,
    *,
    namespace: str = "tickets",
    allow_weak_store: bool = False,
) -> list[CounterStatus]:
    """Returns what a store knows of each counter, sorted by name.

    store, namespace, allow_weak_store: as in init_tickets, and with its errors. Fetches a hundred
    counters at a time from a server.

    >>> import tempfile
    >>> from randflake import Tickets, init_tickets, list_tickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init_tickets(folder + "/ids.db", "new")
    ...     for name in ("orders", "invoices"):
    ...         with Tickets.leased(folder + "/ids.db", name) as tickets:
    ...             numbers = tickets.generate_many(41)
    ...     [(counter.name, counter.next) for counter in list_tickets(folder + "/ids.db")]
    [('invoices', 42), ('orders', 42)]
    """
    return _randflake.list_tickets(store, namespace, allow_weak_store)


def show_tickets(
    store: _Store,
    name: str,
    *,
    namespace: str = "tickets",
    allow_weak_store: bool = False,
) -> CounterStatus | None:
    """Returns what a store knows of a counter; None if it is missing.

    store, namespace, allow_weak_store: as in init_tickets, and with its errors.
    name: the name of the counter.

    >>> import tempfile
    >>> from randflake import Tickets, init_tickets, show_tickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init_tickets(folder + "/ids.db", "new")
    ...     show_tickets(folder + "/ids.db", "invoices")
    ...     with Tickets.leased(folder + "/ids.db", "invoices") as invoices:
    ...         numbers = invoices.generate_many(41)
    ...     show_tickets(folder + "/ids.db", "invoices").next
    42
    """
    return _randflake.show_tickets(store, name, namespace, allow_weak_store)


keep_first(globals())
