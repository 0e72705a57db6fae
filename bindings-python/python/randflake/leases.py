"""The state of leases: a generator's own, and all that a store has granted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from randflake._first import keep_first

if TYPE_CHECKING:
    from randflake.errors import RandflakeError

__all__ = ["LeaseStatus", "Metrics", "NodeStatus", "StoreLimits", "StoreStatus"]


class LeaseStatus(NamedTuple):
    """How the lease of a generator was doing when it was asked.

    >>> import tempfile
    >>> from randflake import Randflake, generate_secret
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret(), ttl=60) as flake:
    ...         status = flake.lease
    >>> status.state, status.renewals, status.last_error
    ('holding', 0, None)
    >>> 50 < status.seconds_left <= 60
    True
    >>> status.store == folder + "/ids.db", status.namespace, status.replacements
    (True, 'default', 0)
    """

    state: Literal["holding", "waiting", "retrying", "expired", "stopped"]
    """"holding" while all is well.

    "waiting" if the lease is held but no id is available within a second, as while the clock is
    behind the last id of a Snowflake: last_error says why, and its retry_after says when one is.
    "retrying" if the store did not grant the last request, or a lease was lost: the generator works
    until the end of its lease, and asks the store again. "expired" if the lease has ended: there
    are no ids, and the generator asks the store again. "stopped" if it will not ask again.
    """
    node_ids: tuple[int, ...]
    """The node ids, sorted."""
    start: int
    """The first unix second of the lease."""
    end_exclusive: int
    """The first unix second after the lease."""
    seconds_left: float
    """The time to that end by the machine's clock; 0 if it has passed."""
    renewals: int
    """How many renewals the store has granted."""
    losses: int
    """How many node ids another process leased before they were given back."""
    last_error: RandflakeError | None
    """Why no id comes while "waiting"; otherwise why the store did not grant the last request.

    None while all is well.
    """
    last_error_at: int | None
    """The unix second of last_error, on the machine's clock; while "waiting", of this status."""
    store: str
    """Which store: the absolute path of a file; the URL of a server without its password, as
    postgresql://app@db.example.com:5432/app; of a client, "postgresql", "mysql", "redis"
    or "etcd".
    """
    namespace: str
    """The namespace of the store."""
    replacements: int
    """How often lost node ids were replaced by others."""


class Metrics(NamedTuple):
    """What a generator has done in this process; all numbers but the skew only rise.

    >>> from randflake import Randflake, generate_secret
    >>> flake = Randflake(5, generate_secret())
    >>> ids = flake.generate_many(1000)
    >>> flake.metrics().ids_generated, flake.metrics().waits["SEQUENCE_EXHAUSTED"]
    (1000, 0)
    """

    ids_generated: int
    """How many ids were claimed.

    A thread claims up to 127 ids ahead for its next calls of generate, so this is slightly more
    than were returned.
    """
    waits: dict[str, int]
    """How many calls waited, by the code of what they waited for.

    SEQUENCE_EXHAUSTED, CLOCK_MOVED_BACK and LEASE_NOT_STARTED; for a leased generator also
    LEASE_UNAVAILABLE.
    """
    store_requests: int | None
    """How many requests to the store were answered or failed; None with manually assigned ids."""
    store_request_seconds: float | None
    """How many seconds they took in all."""
    store_errors: dict[str, int] | None
    """How many of them the store did not grant, by the code of the error."""
    clock_skew_seconds: int | None
    """The store's clock minus this machine's at the last answer; None before the first."""


class NodeStatus(NamedTuple):
    """What a store knows of one node id."""

    node_id: int
    """The node id."""
    state: Literal["held", "expired", "free"]
    """"held" while a process holds it.

    "expired" if its lease has ended and was not given back: the holder is gone, or has no
    connection. "free" if it was given back. An expired one can be leased at once, a free one from
    its end on.
    """
    start: int
    """The first unix second of the last lease."""
    end_exclusive: int
    """The first unix second after it: the next lease starts there or later."""
    seconds_left: int
    """Whole seconds to that end by the store's clock; 0 if it has passed."""
    is_implausible: bool
    """Whether only a wrong clock can have set that end: see repair_lease."""
    note: str
    """What the last holder reported: its host name and process id. Do not trust it."""


class StoreLimits(NamedTuple):
    """The bounds of a namespace."""

    max_ttl: int
    """Seconds of the longest lease."""
    max_skew: int
    """Seconds by which clocks may differ."""
    node_ids: str
    """The node ids that are leased, as in init_store."""
    layout: str
    """The epoch in unix seconds, and the bits of time, node id and sequence."""
    format: int
    """The version of what the store keeps."""


class StoreStatus(NamedTuple):
    """What a store knew of a namespace when it was asked."""

    now: int
    """The unix second on the store's clock."""
    leases: tuple[NodeStatus, ...]
    """Every node id that was ever leased, sorted."""
    held: int
    """How many node ids are held."""
    waiting: int
    """How many were given back, with an end in the future."""
    free: int
    """How many could be leased now without a quarantine: the headroom."""
    implausible: int
    """How many have an end that only a wrong clock can have set."""
    floor: int
    """No lease starts before this unix second: until then the store is in quarantine."""
    floor_is_implausible: bool
    """Whether only a wrong clock can have set it: see repair_store."""
    incarnation_changed: bool
    """Whether the server is no longer the one that granted these leases.

    If so, the next request of a generator fences the namespace.
    """
    limits: StoreLimits
    """What the namespace was made with."""


keep_first(globals())
