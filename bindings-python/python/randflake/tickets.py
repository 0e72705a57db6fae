"""Numbers in a row: 1, 2, 3 and so on from named counters of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from randflake import _randflake
from randflake._randflake import Tickets

if TYPE_CHECKING:
    from randflake.errors import RandflakeError
    from randflake.stores import _Store

__all__ = ["Tickets", "TicketsMetrics", "init_tickets"]


class TicketsMetrics(NamedTuple):
    """What a Tickets has done in this process.

    >>> import tempfile
    >>> from randflake import Tickets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Tickets.leased(folder + "/ids.db", "invoices", create=True) as invoices:
    ...         numbers = invoices.generate_many(1000)
    ...         metrics = invoices.metrics()
    >>> metrics.numbers_generated, metrics.store_errors, metrics.last_error
    (1000, {}, None)
    """

    numbers_generated: int
    """How many numbers were handed out.

    Also those few that threads dropped at the end of a block.
    """
    reserve: int
    """How many numbers were drawn and not handed out: what a kill would lose."""
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


def init_tickets(
    store: _Store,
    mode: Literal["new", "quarantine"],
    *,
    namespace: str = "tickets",
    allow_weak_store: bool = False,
) -> None:
    """Makes a namespace of tickets in a store, once, before its first number.

    Checks it if it is there, and changes nothing then. In PostgreSQL this makes the tables, too. A
    SQLite file is made if it is missing.

    Do not call it with each start or deploy: after a loss of the store "new" lets every counter
    begin again.

    store: the path of a SQLite file, or the URL or the client of a server, as in Randflake.leased.
    mode: "new" if this store has never had the namespace; "quarantine" if it may have had it and
    lost it: each counter has to be fenced then, before it gives a number. There is no default.
    namespace: 1 to 200 bytes. It is for tickets alone, with any number of counters.
    allow_weak_store: whether to accept a Redis or PostgreSQL that may lose what it has
    acknowledged.

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
