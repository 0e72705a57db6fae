"""Operations on a store for operators: making it, listing its leases and repairing them.

Ctrl-C ends the wait for the answer; the operation may still be carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Never, SupportsIndex, overload

from randflake import _randflake
from randflake.errors import InvalidTypeError

if TYPE_CHECKING:
    from randflake.leases import NodeStatus, StoreStatus
    from randflake.snowflake import Layout
    from randflake.stores import _Store

__all__ = [
    "fence_store",
    "init_store",
    "inspect_lease",
    "list_leases",
    "release_lease",
    "repair_lease",
    "repair_store",
    "set_node_ids",
]


@overload
def init_store(
    store: _Store,
    secret: bytes | str,
    mode: Literal["new", "quarantine"],
    *,
    namespace: str = "default",
    max_ttl: SupportsIndex = 300,
    max_skew: SupportsIndex = 5,
    node_ids: str | None = None,
    allow_weak_store: bool = False,
) -> None: ...


@overload
def init_store(
    store: _Store,
    secret: None = None,
    *,
    mode: Literal["new", "quarantine"],
    layout: Layout | str,
    namespace: str = "default",
    max_ttl: SupportsIndex = 300,
    max_skew: SupportsIndex = 5,
    node_ids: str | None = None,
    allow_weak_store: bool = False,
) -> None: ...


@overload  # never called like this: the defaults exist only so that an error can name the words
def init_store(
    store: Never,
    secret: None = None,
    mode: None = None,
    *,
    layout: None = None,
    namespace: str = "default",
    max_ttl: SupportsIndex = 300,
    max_skew: SupportsIndex = 5,
    node_ids: str | None = None,
    allow_weak_store: bool = False,
) -> None: ...


def init_store(
    store: _Store,
    secret: bytes | str | None = None,
    mode: str | None = None,
    *,
    layout: Layout | str | None = None,
    namespace: str = "default",
    max_ttl: SupportsIndex = 300,
    max_skew: SupportsIndex = 5,
    node_ids: str | None = None,
    allow_weak_store: bool = False,
) -> None:
    """Makes a namespace in a store, once, before its first lease.

    An existing one is checked, and stays as it is. In PostgreSQL and MySQL this creates the table,
    too. A SQLite file is created if it is missing; its first lease does that, too, as "new".

    Do not call it with each start or deploy: after a loss of the store, "new" repeats ids.

    store: the path of a SQLite file, or the URL or the client of a server, as in Randflake.leased.
    secret: 16 bytes, or a str of 32 hex digits: of all Randflake generators of this namespace.
    mode: "new" if this store has never had the namespace; "quarantine" if it may have had it and
    lost it, as after a restart without its data or where the file was removed, or if you do not
    know. It then grants nothing for max_ttl plus max_skew, until every earlier lease has ended.
    Required.
    layout: instead of a secret, for Snowflake: a Layout with node ids, or the name of a preset.
    namespace: 1 to 200 bytes; one for each secret or layout.
    max_ttl: the longest lease in whole seconds, 1 to 86400 and at least six times max_skew.
    max_skew: by how many whole seconds clocks may differ.
    node_ids: which node ids are leased, as "0-6,8-1023"; the others are free for generators to
    which you assign one. None for all. set_node_ids changes them.
    allow_weak_store: whether to accept a server that may lose what it has acknowledged. A file is
    refused with it.

    Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT; StoreError with
    STORE_UNAVAILABLE, SECRET_MISMATCH, WEAK_STORE or DRIVER_MISSING.

    >>> import tempfile
    >>> from randflake import StoreError, generate_secret, init_store, list_leases
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init_store(folder + "/ids.db", generate_secret(), "quarantine", max_ttl=60)
    ...     status = list_leases(folder + "/ids.db")
    >>> status.held, status.floor > status.now  # nothing is granted before the floor
    (0, True)
    >>> try:
    ...     init_store("etcd://localhost:1", generate_secret(), mode="new")
    ... except StoreError as error:
    ...     print(error.code)  # no server listens at that port
    STORE_UNAVAILABLE
    """
    _randflake.init_store(
        store, secret, mode, layout, namespace, max_ttl, max_skew, node_ids, allow_weak_store
    )


def list_leases(
    store: _Store,
    *,
    namespace: str = "default",
) -> StoreStatus:
    """Lists the node ids of a namespace, as the store has them. This needs no secret.

    store: the path of a SQLite file, or the URL or the client of a server, as in Randflake.leased.
    namespace: its name.

    Raises StoreError with the code STORE_NOT_INITIALIZED if there is no such namespace, with
    STORE_UNAVAILABLE or DRIVER_MISSING; InvalidArgumentError.

    >>> import tempfile
    >>> from randflake import Randflake, generate_secret, list_leases
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret(), node_count=2):
    ...         status = list_leases(folder + "/ids.db")
    >>> status.held, status.free, status.leases[0].state
    (2, 131070, 'held')
    """
    return _randflake.list_leases(store, namespace)


def inspect_lease(
    store: _Store,
    node_id: SupportsIndex,
    *,
    namespace: str = "default",
) -> NodeStatus | None:
    """Returns what a store knows of one node id; None if it was never leased.

    store, namespace: as in list_leases, and with its errors.
    node_id: 0 to the largest node id of the namespace.

    >>> import tempfile
    >>> from randflake import Randflake, generate_secret, inspect_lease
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret()) as flake:
    ...         inspect_lease(folder + "/ids.db", flake.node_ids[0]).state
    'held'
    """
    return _randflake.inspect_lease(store, node_id, namespace)


def fence_store(
    store: _Store,
    *,
    namespace: str = "default",
) -> int:
    """Stops a store from granting until earlier leases have ended; returns that unix second.

    Call it after a backup was restored, before anything starts: the store may have forgotten
    leases. Leases that are clearly running are renewed meanwhile.

    store, namespace: as in list_leases, and with its errors.

    >>> import tempfile, time
    >>> from randflake import Randflake, fence_store, generate_secret
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret()):
    ...         floor = fence_store(folder + "/ids.db")
    >>> 300 <= floor - time.time() <= 305  # the longest lease and the largest skew
    True
    """
    return _randflake.fence_store(store, namespace)


def set_node_ids(
    store: _Store,
    node_ids: str,
    *,
    namespace: str = "default",
) -> int:
    """Sets which node ids a namespace leases, as for moving over from another generator.

    Before you add a node id, stop the generator that had it and wait for twice max_skew plus a
    second: ids that it made later could repeat. That is 11 seconds, unless the namespace was made
    with another max_skew. A node id that is left out is no longer leased or renewed. A generator
    that has it uses it until its lease ends, and leases another one.

    store, namespace: as in list_leases, and with its errors.
    node_ids: all node ids that are leased from now on, as "0-6,8-1023": 1 to 16 ranges of node ids
    of the layout.

    Returns the unix second from which the node ids that were left out have no lease; do not use
    them for anything else before then.

    >>> import tempfile
    >>> from randflake import Randflake, generate_secret, list_leases, set_node_ids
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret()) as flake:
    ...         unused_from = set_node_ids(folder + "/ids.db", "0-6,8-1023")
    ...     status = list_leases(folder + "/ids.db")
    >>> status.limits.node_ids, status.free, unused_from >= status.now
    ('0-6,8-1023', 1023, True)
    """
    return _randflake.set_node_ids(store, node_ids, namespace)


def repair_lease(
    store: _Store,
    node_id: SupportsIndex,
    *,
    end_exclusive: SupportsIndex | None = None,
    namespace: str = "default",
) -> int:
    """Lowers the end of a node id that only a wrong clock can have set, and returns the new end.

    A correct clock sets no end later than the store's clock plus the longest lease and the largest
    skew. Until a later end has passed, the node id stays reserved.

    This function trusts you: if a process that was granted the wrong end still runs, or an id with
    this node id has a second at or after the new end, ids will repeat. Waiting is always safe.

    store, namespace: as in list_leases, and with its errors.
    node_id: a node id whose lease has is_implausible.
    end_exclusive: the new end, a unix second; None for the lowest, which is that bound.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT if there is nothing to repair, or if
    the new end is too low; StoreError with CLOCK_SKEW if one of the clocks is wrong now.
    """
    return _randflake.repair_lease(store, node_id, end_exclusive, namespace)


def repair_store(
    store: _Store,
    *,
    floor: SupportsIndex | None = None,
    namespace: str = "default",
) -> int:
    """Lowers the end of a quarantine that only a wrong clock can have set, and returns the new end.

    Like repair_lease, but for the floor of a whole namespace, as if it had been fenced now. This
    function trusts you: if any id has a second at or after the new floor, ids will repeat.

    store, namespace: as in list_leases, and with the errors of repair_lease.
    floor: the new floor, a unix second; None for the lowest.
    """
    return _randflake.repair_store(store, floor, namespace)


def release_lease(
    store: _Store,
    lease: NodeStatus,
    *,
    namespace: str = "default",
) -> int:
    """Gives a node id back for a process that has certainly ended, and returns its new end.

    This function trusts you: if the holder, or a copy of its memory, is still running, ids will
    repeat. Waiting for the lease to expire is always safe.

    The second of the holder's last id is not known. So the end is lowered to the first second that
    it cannot have used, which leaves 107 of the usual 300 seconds. It is never raised.

    store, namespace: as in list_leases, and with its errors.
    lease: what list_leases or inspect_lease returned for the node id. If another process has leased
    it since, that process keeps it.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT if it is not held, if it has another
    lease by now, or if its end comes from a wrong clock; StoreError with CLOCK_SKEW if one of the
    clocks is wrong now.

    >>> import tempfile
    >>> from randflake import Randflake, generate_secret, list_leases, release_lease
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret()):
    ...         (lease,) = list_leases(folder + "/ids.db").leases
    ...     try:
    ...         release_lease(folder + "/ids.db", lease)  # it was given back
    ...     except ValueError as error:
    ...         print(error.code)
    INVALID_ARGUMENT
    """
    try:
        listed = (lease.node_id, lease.start, lease.end_exclusive)
    except AttributeError:
        raise InvalidTypeError(
            "the lease must be what list_leases or inspect_lease returned, got an object of type "
            f"{type(lease).__name__}",
            "INVALID_ARGUMENT",
        ) from None
    return _randflake.release_lease(store, *listed, namespace)
