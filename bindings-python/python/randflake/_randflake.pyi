import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime as _datetime
from types import TracebackType
from typing import (
    Any,
    Final,
    Literal,
    Never,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    final,
    overload,
    type_check_only,
)

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, disjoint_base

from randflake.arrays import PartsArray
from randflake.leases import LeaseStatus, NodeStatus, StoreStatus
from randflake.stores import Adapter

__all__ = [
    "BoundaryFlake",
    "Cloak",
    "Generator",
    "Inspector",
    "Layout",
    "Lease",
    "Parts",
    "Randflake",
    "RawParts",
    "Snowflake",
    "__version__",
    "decode_string",
    "encode_string",
    "fence_store",
    "generate_secret",
    "init_store",
    "inspect_lease",
    "list_leases",
    "main",
    "release_lease",
    "repair_lease",
    "repair_store",
]

__version__: Final[str]

# Before Python 3.12, type checkers do not know that a numpy array is a buffer.
_Int64Buffer: TypeAlias = Buffer | NDArray[np.int64]

_Field: TypeAlias = Literal["time", "node", "sequence"]
_Sequence: TypeAlias = Literal["zero", "continuing"] | tuple[Literal["random"], SupportsIndex]

@type_check_only
class _Clock(Protocol):
    # May also have sleep(seconds: float).
    def now(self) -> float: ...

# A psycopg connection is known by cursor and a redis.Redis by execute_command: they need not be
# installed to check types.
@type_check_only
class _Connection(Protocol):
    def cursor(self) -> object: ...

@type_check_only
class _Pool(Protocol):
    def connection(self, timeout: float) -> AbstractContextManager[object]: ...

@type_check_only
class _Redis(Protocol):
    def execute_command(self, *args: str) -> object: ...

_Client: TypeAlias = Adapter | _Connection | _Pool | _Redis
_Store: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes] | _Client

@disjoint_base
class Generator:
    """What Randflake and Snowflake have in common. Make one of those.

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

    def generate_array(self, n: SupportsIndex) -> NDArray[np.int64]:
        """Generates n ids as a numpy array of int64, as a signed column holds them.

        Raises what generate_many raises, and ImportError where numpy is not installed.
        """

    def extend_lease(self, end_exclusive: SupportsIndex) -> None:
        """Raises the end of the lease.

        end_exclusive: an absolute unix second. One before the present end changes nothing.

        Raises InvalidArgumentError with the code INVALID_LEASE if there is no lease, if it comes
        from a store, or if the end is out of range; RandflakeError with FORKED or CLOSED.
        """

    def close(self) -> None:
        """Ends the generator for good.

        Later calls that need it open raise CLOSED; ids can still be read. A second call does
        nothing. In a forked child the parent's generator is left alone.

        Leased node ids are given back. This waits up to 5 seconds for the store. If the store does
        not answer in time, the node ids stay reserved until the lease expires.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...

@final
class Randflake(Generator):
    """A generator of unique 64-bit ids that outsiders cannot predict, order or count.

    Randflake.leased(store, secret) makes one whose node id no other process has at the same time.
    This constructor is for manually assigned node ids.

    A manually assigned node id is safe for one live process at a time, on a machine whose clock has
    not stepped back over the last id: two live processes with one node id and one secret repeat
    each other's ids. In a forked child an inherited generator raises FORKED.

    node_id: 0 to 131071, or a sequence of up to 16384 of them, each worth 131072 ids a second.
    secret: 16 bytes, or a str of 32 hex digits; see generate_secret.
    lease: the seconds that may be stamped; without one, all of them.
    max_wait: how long a call may wait in all, 0 to 86400 seconds; 0 never waits. A batch gets the
    seconds it needs for its size besides, unless it is 0.
    max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to 3600; needs a
    lease.
    restart_safe: whether to skip the rest of the second in which the generator is made, in which
    an earlier holder of the node id may have ended. Nothing is skipped while another generator of
    this process with the same node ids, made earlier, is open. Has no effect with a lease.
    clock: for tests. An object with now(), unix seconds as int or float, and optionally
    sleep(seconds), or a callable that is now. Its exceptions are raised as they are.

    Raises InvalidArgumentError with the code INVALID_NODE, INVALID_SECRET, INVALID_LEASE or
    INVALID_ARGUMENT; RandflakeError with NODE_IN_USE if this process has the node id in a list
    with others or leases it, FORKED if a process this one was forked from has it, or LIFETIME_OVER
    in the last second.

    >>> from randflake import Randflake, generate_secret
    >>> with Randflake(7, generate_secret()) as flake:
    ...     id = flake.generate()
    >>> flake.inspect(id).node_id
    7
    """

    def __new__(
        cls,
        node_id: SupportsIndex | Sequence[SupportsIndex],
        secret: bytes | str,
        *,
        lease: Lease | None = None,
        max_wait: float = 1.0,
        max_drift: SupportsIndex = 0,
        restart_safe: bool = True,
        clock: _Clock | Callable[[], float] | None = None,
    ) -> Self: ...
    @staticmethod
    def leased(
        store: _Store,
        secret: bytes | str,
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str = "default",
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex | None = None,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
    ) -> Randflake:
        """Makes a generator whose node ids are leased: no other process has them meanwhile.

        Make one for each process, and keep it: each call takes a lease of its own.

        A background thread renews the lease at a third of its length. If a lease is lost, it is
        replaced by another one, with other node ids. While the store is unavailable, the generator
        works until its lease ends, then raises LEASE_UNAVAILABLE, and recovers by itself. A forked
        child takes a lease of its own with its first call. close, the end of a with block and the
        end of the process give the node ids back.

        store: the path of a SQLite file on a local disk, which is made if it is missing. Or a
        server: a URL, which is postgresql://, redis://, rediss://, etcd://host:port,host:port or
        etcds://; a psycopg connection, or a pool of them; a redis.Redis; or an Adapter of
        randflake.stores. With a URL a forked child connects again; with a client it raises FORKED.
        secret: 16 bytes, or a str of 32 hex digits; see generate_secret.
        node_count: how many node ids, 1 to 16384; each adds 131072 ids a second. While the store
        has fewer free node ids, the generator works with fewer.
        ttl: the length of a lease in whole seconds, 1 to 86400 and at least six times max_skew;
        None for 300. The generator survives a store outage of up to two thirds of it. The node id
        of a process that was killed stays reserved for up to that long.
        namespace: 1 to 200 bytes; one for each secret. One generator serves all tables of a secret.
        acquire_timeout: how many seconds the first lease may take, 0 to 86400.
        max_wait: how long a call may wait in all, 0 to 86400 seconds, as in the constructor.
        max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to a third of
        the ttl; None for 10, or that third. It absorbs clocks that step back, and lets a burst
        borrow coming seconds.
        max_skew: by how many whole seconds clocks may differ; a namespace keeps what it was made
        with.
        create: whether to make the namespace if it is not there, as "new", instead of init_store;
        None does so in a file, which is made, too, and not in PostgreSQL or etcd. With False a file
        that was lost is STORE_NOT_INITIALIZED, and not an empty store.
        allow_weak_store: whether to lease from a Redis or PostgreSQL that may lose what it has
        acknowledged.

        Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT; StoreError
        with NODES_EXHAUSTED, STORE_UNAVAILABLE, CLOCK_SKEW or STORE_QUARANTINED if there is no
        lease within acquire_timeout, with SECRET_MISMATCH, STORE_REPLACED, STORE_NOT_INITIALIZED,
        WEAK_STORE or DRIVER_MISSING at once. Ctrl-C ends the wait.

        >>> import tempfile
        >>> from randflake import Randflake, generate_secret
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Randflake.leased(folder + "/ids.db", generate_secret()) as flake:
        ...         id = flake.generate()
        ...         flake.node_ids == (flake.inspect(id).node_id,)
        True
        """
    def generate(self) -> int:
        """Generates an id: a signed 64-bit integer. Half of all ids are negative.

        Raises RetryLaterError if none is available within max_wait (SEQUENCE_EXHAUSTED,
        CLOCK_MOVED_BACK, LEASE_NOT_STARTED; of a leased generator LEASE_UNAVAILABLE, with the
        error of the store as its cause); RandflakeError where waiting does not help
        (LEASE_EXPIRED, LIFETIME_OVER, CLOCK_BEFORE_EPOCH, FORKED, CLOSED). In a forked child the
        first call of a leased generator waits up to acquire_timeout.
        """
    def generate_string(self) -> str:
        """Generates an id as text: 1 to 13 of the characters 0-9 and a-v, for URLs and JSON.

        Raises what generate raises.
        """
    def generate_many(self, n: SupportsIndex) -> list[int]:
        """Generates n ids, in the order in which they are claimed.

        Raises what generate raises, and INVALID_ARGUMENT for an n that is negative, that takes more
        than an hour, that does not fit in memory, or that no second can hold if max_wait is 0. A
        batch that would need longer than the seconds for its size and max_wait is refused before
        any id is claimed. A batch may take longer than a lease from a store, which is renewed
        meanwhile.

        >>> from randflake import Randflake, generate_secret
        >>> len(set(Randflake(8, generate_secret()).generate_many(1000)))
        1000
        """

    def fill(self, buffer: _Int64Buffer) -> None:
        """Fills a writable buffer with ids, in the order in which they are claimed.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64. If the call fails, it is zeroed.

        Raises what generate_many raises, and INVALID_ARGUMENT for another kind of buffer.

        >>> from array import array
        >>> from randflake import Randflake, generate_secret
        >>> ids = array("q", bytes(8 * 1000))
        >>> Randflake(9, generate_secret()).fill(ids)
        >>> len(set(ids))
        1000
        """

    def inspect(self, id: SupportsIndex | str) -> Parts:
        """Reads an id back: its time, node id and sequence.

        id: an int, or its text.

        Every 64-bit number has such parts: they mean something only for ids made with this
        secret. Works in a forked child and after close, too.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def decrypt(self, id: SupportsIndex | str) -> int:
        """Returns the sortable form of an id: time, node id and sequence, unencrypted.

        It is an unsigned 64-bit integer. Do not show it to anyone who must not know its parts.

        id: an int, or its text.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def encrypt(self, raw: SupportsIndex) -> int:
        """Returns the id of a sortable form; undoes decrypt.

        raw: an unsigned 64-bit integer that came from decrypt. Another one may not be unique.

        Raises InvalidArgumentError with the code INVALID_ID.
        """

@final
class Inspector:
    """Reads ids back; needs the secret, and no node id.

    Reading does not authenticate: every 64-bit number has parts, under every secret.

    secret: 16 bytes, or a str of 32 hex digits.

    Raises InvalidArgumentError with the code INVALID_SECRET.

    >>> from randflake import Inspector
    >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
    >>> inspector.inspect("3vgoe12ccb8gh").node_id
    42
    """

    def __new__(cls, secret: bytes | str) -> Self: ...
    def inspect(self, id: SupportsIndex | str) -> Parts:
        """Reads an id back: its time, node id and sequence.

        id: an int, or its text.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def inspect_array(self, ids: _Int64Buffer) -> PartsArray:
        """Reads many ids back, into one numpy array for each part.

        ids: a row of native signed 64-bit integers, such as a numpy array of int64.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer, and
        ImportError where numpy is not installed.

        >>> from array import array
        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> columns = inspector.inspect_array(array("q", [4594531474933654033]))
        >>> columns.timestamp, columns.node_id, columns.sequence
        (array([1733706297]), array([42], dtype=uint32), array([1], dtype=uint32))
        """
    def decrypt(self, id: SupportsIndex | str) -> int:
        """Returns the sortable form of an id: time, node id and sequence, unencrypted.

        It is an unsigned 64-bit integer. Do not show it to anyone who must not know its parts.

        id: an int, or its text.

        Raises InvalidArgumentError with the code INVALID_ID.

        >>> from randflake import Inspector
        >>> Inspector("dffd6021bb2bd5b0af676290809ec3a5").decrypt(4594531474933654033)
        63673697622556673
        """
    def encrypt(self, raw: SupportsIndex) -> int:
        """Returns the id of a sortable form; undoes decrypt.

        raw: an unsigned 64-bit integer that came from decrypt. Another one may not be unique.

        Raises InvalidArgumentError with the code INVALID_ID.

        >>> from randflake import Inspector
        >>> Inspector("dffd6021bb2bd5b0af676290809ec3a5").encrypt(63673697622556673)
        4594531474933654033
        """
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...

@final
class Lease:
    """The seconds a generator may stamp: start up to, but not including, end_exclusive.

    Both are absolute unix seconds from 1730000000 to 2803741824. One lease serves one process
    life: never grant a node id a second that an earlier lease of it covered.

    Raises InvalidArgumentError with the code INVALID_LEASE if start is not before end_exclusive
    or either is out of range.

    >>> from randflake import Lease
    >>> lease = Lease(1763640000, 1763640300)
    >>> lease.end_exclusive - lease.start
    300
    """

    def __new__(cls, start: SupportsIndex, end_exclusive: SupportsIndex) -> Self: ...
    @property
    def start(self) -> int:
        """The first unix second of the lease."""
    @property
    def end_exclusive(self) -> int:
        """The first unix second after the lease."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Lease], tuple[int, int]]: ...

@final
class Parts:
    """What an id says to a holder of the secret: when, where and as which one it was made.

    The timestamp may lie up to the generator's max_drift ahead of the clock that made it. Parts
    compare equal, hash and pickle.

    >>> from randflake import Inspector
    >>> parts = Inspector("dffd6021bb2bd5b0af676290809ec3a5").inspect(4594531474933654033)
    >>> parts
    Parts(timestamp=1733706297, node_id=42, sequence=1)
    """

    def __new__(
        cls, timestamp: SupportsIndex, node_id: SupportsIndex, sequence: SupportsIndex
    ) -> Self: ...
    @property
    def timestamp(self) -> int:
        """Unix seconds, 1730000000 to 2803741823."""
    @property
    def node_id(self) -> int:
        """0 to 131071."""
    @property
    def sequence(self) -> int:
        """The zero-based index of the id within its node and second, 0 to 131071."""
    @property
    def datetime(self) -> _datetime:
        """The timestamp as an aware datetime in UTC.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> inspector.inspect(4594531474933654033).datetime.isoformat()
        '2024-12-09T01:04:57+00:00'
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Parts], tuple[int, int, int]]: ...

@final
class Layout:
    """How time, node id and sequence share the bits of a sortable id, and how time is counted.

    name: a preset: randflake, twitter, discord, leaf, baidu, sonyflake, sonyflake2, instagram or
    simpleflake. Or describe a layout of your own:
    fields: pairs of "time", "node" or "sequence" and a width in bits, from high to low; the node
    and the sequence have at most 32 bits each and may be missing.
    tick_ms: the length of a tick, 1 to 86400000 milliseconds; 1 unless given.
    epoch_ms: the unix millisecond, in UTC, at which tick 0 begins; 0 unless given.
    unsigned: whether the fields may take all 64 bits. Otherwise the top bit stays zero.
    node_split: widths of the datacenter and of the worker, which fill the node.
    sequence: the initial sequence of each tick, also of a preset: "zero"; "continuing", with the
    one after the last; or ("random", n), with one drawn from 0 to n-1. The last two spread the ids
    of a quiet node evenly over shards that are chosen by their low bits.

    Ids are unsigned: one that a signed column shows as negative is id % 2**64 here. Layouts
    compare equal, hash and pickle.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT if there is no such preset, or the
    description does not hold together.

    >>> from randflake import Layout
    >>> Layout("discord").inspect(175928847299117063)
    RawParts(unix_ms=1462015105796, node_id=32, sequence=7)
    >>> fields = [("time", 29), ("node", 21), ("sequence", 13)]
    >>> layout = Layout(fields=fields, tick_ms=1000, epoch_ms=1474300800000)
    >>> layout.inspect(180363646902239241)
    RawParts(unix_ms=1484799346000, node_id=4, sequence=9)
    """

    @overload
    def __new__(
        cls, name: str, *, fields: None = None, sequence: _Sequence | None = None
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        name: None = None,
        *,
        fields: Iterable[tuple[_Field, SupportsIndex]],
        tick_ms: SupportsIndex | None = None,
        epoch_ms: SupportsIndex | None = None,
        sequence: _Sequence | None = None,
        unsigned: bool = False,
        node_split: tuple[SupportsIndex, SupportsIndex] | None = None,
    ) -> Self: ...
    @property
    def name(self) -> str:
        """The name of the preset, or "custom"."""
    @property
    def fields(self) -> tuple[tuple[_Field, int], ...]:
        """The fields, from high to low, with their widths in bits.

        >>> from randflake import Layout
        >>> Layout("sonyflake").fields
        (('time', 39), ('sequence', 8), ('node', 16))
        """
    @property
    def tick_ms(self) -> int:
        """The length of a tick, in milliseconds."""
    @property
    def epoch_ms(self) -> int:
        """The unix millisecond at which tick 0 begins."""
    @property
    def sequence(
        self,
    ) -> Literal["zero", "continuing"] | tuple[Literal["random"], int]:
        """The initial sequence of each tick: "zero", "continuing" or ("random", n).

        >>> from randflake import Layout
        >>> Layout("leaf").sequence
        ('random', 100)
        """
    @property
    def unsigned(self) -> bool:
        """Whether ids use all 64 bits. Otherwise they are positive in every 64-bit column."""
    @property
    def node_split(self) -> tuple[int, int] | None:
        """The widths of the datacenter and of the worker, in bits; None where there are none."""
    @property
    def max_node_id(self) -> int:
        """The largest node id; 0 where there are none."""
    @property
    def max_sequence(self) -> int:
        """The largest sequence."""
    @property
    def ids_per_node(self) -> int:
        """How many ids a node has in a tick."""
    @property
    def max_nodes(self) -> int:
        """How many node ids one generator may have."""
    @property
    def ends_at(self) -> int:
        """The first unix millisecond that no id can carry. There a generator raises LIFETIME_OVER.

        >>> from randflake import Layout
        >>> Layout("baidu").ends_at  # 2024-11-20T13:24:16Z
        1732109056000
        """
    @property
    def negative_from(self) -> int | None:
        """The unix millisecond from which on ids are negative in a signed column.

        None if they never are, or if another field than the time decides it.
        """
    def inspect(self, raw: SupportsIndex) -> RawParts:
        """Reads an id: its time, node id and sequence.

        raw: an unsigned 64-bit integer.

        Whatever has no bits outside the fields has parts; whether it is an id, they do not say.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def pack(
        self,
        unix_ms: SupportsIndex | _datetime,
        node_id: SupportsIndex,
        sequence: SupportsIndex,
    ) -> int:
        """Packs an id, for tests and conversions. It may not be unique.

        unix_ms: unix milliseconds or an aware datetime, rounded down to the tick.
        node_id: 0 to max_node_id.
        sequence: 0 to max_sequence.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT or INVALID_NODE.

        >>> from randflake import Layout
        >>> Layout("discord").pack(1462015105796, 32, 7)
        175928847299117063
        """
    def first_id_at(self, unix_ms: SupportsIndex | _datetime) -> int:
        """Returns the smallest id of the tick at a time, to find rows by their time of making.

        unix_ms: unix milliseconds or an aware datetime.

        Ids compare as unsigned numbers. In a signed column those of the time from negative_from on
        come before all others.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT if the time is not the top
        field, so that ids are not in its order, or if it is outside the lifetime.

        >>> from datetime import UTC, datetime
        >>> from randflake import Layout
        >>> twitter = Layout("twitter")
        >>> first = twitter.first_id_at(datetime(2025, 11, 20, tzinfo=UTC))
        >>> before = twitter.first_id_at(datetime(2025, 11, 21, tzinfo=UTC))
        >>> first <= twitter.pack(1763640000000, 5, 0) < before  # the rows of that day
        True
        """
    def last_id_at(self, unix_ms: SupportsIndex | _datetime) -> int:
        """Returns the largest id of the tick at a time; see first_id_at.

        unix_ms: unix milliseconds or an aware datetime.

        Raises what first_id_at raises.
        """
    def join_node(self, datacenter: SupportsIndex, worker: SupportsIndex) -> int:
        """Returns the node id of a datacenter and a worker (a worker and a process, for Discord).

        Raises InvalidArgumentError with the code INVALID_NODE if node ids have no such parts, or
        one is too large.

        >>> from randflake import Layout
        >>> Layout("twitter").join_node(11, 26)
        378
        """
    def split_node(self, node_id: SupportsIndex) -> tuple[int, int] | None:
        """Returns the datacenter and the worker of a node id; None where it has no such parts.

        Raises InvalidArgumentError with the code INVALID_NODE.

        >>> from randflake import Layout
        >>> Layout("twitter").split_node(378)
        (11, 26)
        """
    def remaining(self) -> float:
        """Returns how many seconds the layout has left on the machine's clock; 0 once it is over.

        >>> from randflake import Layout
        >>> Layout("baidu").remaining()
        0.0
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str, ...], dict[str, Any]]: ...

@final
class RawParts:
    """What a sortable id says: when, where and as which one it was made.

    RawParts compare equal, hash and pickle.

    >>> from randflake import Layout
    >>> Layout("twitter").inspect(1541815603606036480)
    RawParts(unix_ms=1656432460105, node_id=378, sequence=0)
    """

    def __new__(
        cls, unix_ms: SupportsIndex, node_id: SupportsIndex, sequence: SupportsIndex
    ) -> Self: ...
    @property
    def unix_ms(self) -> int:
        """The unix millisecond at which the id's tick begins."""
    @property
    def node_id(self) -> int:
        """0 to max_node_id of the layout; 0 where it has no node ids."""
    @property
    def sequence(self) -> int:
        """0 to max_sequence of the layout."""
    @property
    def datetime(self) -> _datetime:
        """The time as an aware datetime in UTC.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT beyond the year 9999, where
        datetimes end.

        >>> from randflake import Layout
        >>> Layout("twitter").inspect(1541815603606036480).datetime.isoformat()
        '2022-06-28T16:07:40.105000+00:00'
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[RawParts], tuple[int, int, int]]: ...

@final
class Snowflake(Generator):
    """A generator of unique 64-bit ids that sort by time, of any layout of the Snowflake family.

    Anyone who sees an id can read it and predict others; Cloak hides them.

    Snowflake.leased(store, layout) makes one whose node id no other process has at the same time.
    This constructor is for manually assigned node ids.

    A manually assigned node id is safe for one live process at a time, on a machine whose clock has
    not stepped back over the last id: two live processes with one node id and one layout repeat
    each other's ids. In a forked child an inherited generator raises FORKED.

    node_id: 0 to max_node_id of the layout, or a sequence of up to max_nodes of them, each worth
    ids_per_node ids a tick; 0 where the layout has no node ids.
    layout: a Layout, or the name of a preset.
    lease: the seconds that may be stamped; without one, all of them.
    max_wait: how long a call may wait in all, 0 to 86400 seconds; 0 never waits. A batch gets the
    ticks it needs for its size besides, unless it is 0.
    max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to 3600; needs a
    lease. Ids that run ahead are out of order with those of other nodes.
    restart_safe: whether to skip the rest of the tick in which the generator is made, in which
    an earlier holder of the node id may have ended. Nothing is skipped while another generator of
    this process with the same node ids, made earlier, is open. Has no effect with a lease.
    clock: for tests. An object with now(), unix seconds as int or float, and optionally
    sleep(seconds), or a callable that is now. Its exceptions are raised as they are. A float is
    rounded down: for the tick of a millisecond return (unix_ms + 0.5) / 1000, since unix_ms / 1000
    may be a bit before it.

    Raises InvalidArgumentError with the code INVALID_NODE, INVALID_LEASE or INVALID_ARGUMENT;
    RandflakeError with LIFETIME_OVER if the layout has ended or is in its last tick, NODE_IN_USE if
    this process has the node id in a list with others or with another initial sequence or leases
    it, or FORKED if a process this one was forked from has it. Warns with LifetimeWarning if the
    layout ends within two years.

    >>> from randflake import Snowflake
    >>> with Snowflake(378, "twitter") as flake:
    ...     one, other = flake.generate(), flake.generate()
    >>> one < other
    True
    >>> flake.inspect(one).node_id
    378
    """

    def __new__(
        cls,
        node_id: SupportsIndex | Sequence[SupportsIndex],
        layout: Layout | str = "twitter",
        *,
        lease: Lease | None = None,
        max_wait: float = 1.0,
        max_drift: SupportsIndex = 0,
        restart_safe: bool = True,
        clock: _Clock | Callable[[], float] | None = None,
    ) -> Self: ...
    @staticmethod
    def leased(
        store: str | bytes | os.PathLike[str] | os.PathLike[bytes] | _Client,
        layout: Layout | str = "twitter",
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str = "default",
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex = 0,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
    ) -> Snowflake:
        """Makes a generator whose node ids are leased: no other process has them meanwhile.

        Renewals, losses, outages, forks and ends are as with Randflake.leased.

        store: as in Randflake.leased.
        layout: a Layout with node ids, or the name of a preset. A namespace has one; its node ids
        are leased, or the lowest 131072 of them.
        node_count: how many node ids, 1 to max_nodes of the layout, each worth ids_per_node ids a
        tick. While the store has fewer, the generator does with fewer.
        ttl: for how many whole seconds a lease is asked, 1 to 86400, at least six times max_skew
        and, where ticks are longer than a second, at least six of them; None for 300.
        namespace: 1 to 200 bytes; one for each layout.
        max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to a third of
        the ttl. It absorbs clocks that step back, and lets a burst borrow coming ticks; ids that
        run ahead are out of order with those of other nodes.
        acquire_timeout, max_wait, max_skew, create, allow_weak_store: as in Randflake.leased.

        Raises what Randflake.leased raises; INVALID_ARGUMENT also if the namespace has another
        layout or the layout has no node ids; RandflakeError with LIFETIME_OVER if the layout has
        ended. Warns with LifetimeWarning if it ends within two years.

        >>> import tempfile
        >>> from randflake import Snowflake
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Snowflake.leased(folder + "/ids.db", "sonyflake2") as flake:
        ...         one, other = flake.generate(), flake.generate()
        ...         flake.node_ids == (flake.inspect(one).node_id,)
        True
        >>> one < other
        True
        """
    @property
    def layout(self) -> Layout:
        """The layout."""
    def generate(self) -> int:
        """Generates an id: an unsigned 64-bit integer.

        It is larger than every one that this thread was given before, where the layout has its
        time on top; with several node ids, where those lie above the sequence.

        Raises RetryLaterError if none is available within max_wait (SEQUENCE_EXHAUSTED,
        CLOCK_MOVED_BACK, LEASE_NOT_STARTED; of a leased generator LEASE_UNAVAILABLE, with the
        error of the store as its cause); RandflakeError where waiting does not help
        (LEASE_EXPIRED, LIFETIME_OVER, CLOCK_BEFORE_EPOCH, FORKED, CLOSED). In a forked child the
        first call of a leased generator waits up to acquire_timeout.
        """
    def generate_many(self, n: SupportsIndex) -> list[int]:
        """Generates n ids, in the order in which they are claimed.

        Raises what generate raises, and INVALID_ARGUMENT for an n that is negative, that takes more
        than an hour, that does not fit in memory, or that no tick can hold if max_wait is 0. A
        batch that would need longer than the ticks for its size and max_wait is refused before any
        id is claimed. A batch may take longer than a lease from a store, which is renewed
        meanwhile.

        >>> from randflake import Snowflake
        >>> ids = Snowflake(8).generate_many(1000)
        >>> ids == sorted(set(ids))
        True
        """

    def fill(self, buffer: _Int64Buffer) -> None:
        """Fills a writable buffer with ids, in the order in which they are claimed.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64. If the call fails, it is zeroed.

        Raises what generate_many raises, and INVALID_ARGUMENT for another kind of buffer.

        >>> from array import array
        >>> from randflake import Snowflake
        >>> ids = array("q", bytes(8 * 1000))
        >>> Snowflake(9).fill(ids)
        >>> len(set(ids))
        1000
        """

    def inspect(self, raw: SupportsIndex) -> RawParts:
        """Reads an id back: its time, node id and sequence.

        raw: an unsigned 64-bit integer.

        Works in a forked child and after close, too.

        Raises InvalidArgumentError with the code INVALID_ID.
        """

@final
class Cloak:
    """Hides any 64-bit ids: sortable ones and auto-increment keys inside, opaque ids outside.

    Each number has one hidden form and each hidden form one number, so nothing collides, and the
    database keeps the number and its index. Hiding does not authenticate: every 64-bit number
    reveals to something. Look the number up, and check whether the caller may see it.

    Numbers are unsigned: one that a signed column shows as negative is number % 2**64 here. Hidden
    forms are signed, as ids of Randflake are, and half of them are negative.

    secret: 16 bytes, or a str of 32 hex digits; see generate_secret. It may serve a Randflake, too.
    label: the purpose, such as "orders.id". Another label is another key, so that hidden forms of
    two kinds reveal nothing about each other.

    Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT.

    >>> from randflake import Cloak
    >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
    >>> cloak.hide(1)
    4987143739177344976
    >>> cloak.reveal(4987143739177344976)
    1
    """

    def __new__(cls, secret: bytes | str, label: str) -> Self: ...
    def hide(self, number: SupportsIndex) -> int:
        """Hides a number.

        number: an unsigned 64-bit integer.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def hide_string(self, number: SupportsIndex) -> str:
        """Hides a number as text: 1 to 13 of the characters 0-9 and a-v, for URLs and JSON.

        Raises what hide raises.

        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> cloak.hide_string(1)
        '4adf4pr4nl7ug'
        >>> cloak.reveal("4adf4pr4nl7ug")
        1
        """
    def hide_many(self, numbers: Iterable[SupportsIndex]) -> list[int]:
        """Hides many numbers.

        numbers: a list of unsigned 64-bit integers, or anything else that holds them.

        Raises what hide raises, and INVALID_ARGUMENT for what holds nothing.

        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> cloak.reveal_many(cloak.hide_many([1, 2, 3]))
        [1, 2, 3]
        """
    def hide_in_place(self, buffer: _Int64Buffer) -> None:
        """Hides the numbers of a writable buffer in place, as fast as the machine allows.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer.

        >>> from array import array
        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> column = array("q", [1, 2, 3])
        >>> cloak.hide_in_place(column)
        >>> column[0] == cloak.hide(1)
        True
        >>> cloak.reveal_in_place(column)
        >>> column
        array('q', [1, 2, 3])
        """
    def reveal(self, id: SupportsIndex | str) -> int:
        """Returns the number that was hidden.

        id: what hide returned, or its text.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def reveal_many(self, ids: Iterable[SupportsIndex | str]) -> list[int]:
        """Returns the numbers that were hidden.

        ids: a list of what hide returned or its text, or anything else that holds them.

        Raises what reveal raises, and INVALID_ARGUMENT for what holds nothing.
        """
    def reveal_in_place(self, buffer: _Int64Buffer) -> None:
        """Reveals the ids of a writable buffer in place; undoes hide_in_place.

        buffer: as hide_in_place takes it.

        Raises what hide_in_place raises.
        """
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...

@final
class BoundaryFlake:
    """An id of Boundary's flake, of 128 bits: time, network address of the worker, sequence.

    To read such ids and to convert them; they are not made here.

    flake: its text in base 62, or its 16 bytes.

    str() and bytes() give the two forms. Ids compare equal and by time, hash and pickle.

    Raises InvalidArgumentError with the code INVALID_ID for any other text and other lengths.

    >>> from randflake import BoundaryFlake
    >>> flake = BoundaryFlake("8HFaR8qWtRlGDHnO57")
    >>> flake.unix_ms, flake.worker.hex(":"), flake.sequence
    (1326409013776, '10:9a:dd:5e:0e:8f', 5)
    >>> BoundaryFlake(bytes(flake)) == flake
    True
    >>> str(flake)
    '8HFaR8qWtRlGDHnO57'
    """

    def __new__(cls, flake: str | bytes | bytearray) -> Self: ...
    @property
    def unix_ms(self) -> int:
        """When it was made, in unix milliseconds: 64 bits."""
    @property
    def worker(self) -> bytes:
        """The network address (MAC) of the worker that made it: 6 bytes."""
    @property
    def sequence(self) -> int:
        """The index of the id within its worker and millisecond, 0 to 65535."""
    @property
    def datetime(self) -> _datetime:
        """When it was made, as an aware datetime in UTC.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT beyond the year 9999, where
        datetimes end.

        >>> from randflake import BoundaryFlake
        >>> BoundaryFlake("8HFaR8qWtRlGDHnO57").datetime.isoformat()
        '2012-01-12T22:56:53.776000+00:00'
        """
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __lt__(self, other: BoundaryFlake, /) -> bool: ...
    def __le__(self, other: BoundaryFlake, /) -> bool: ...
    def __gt__(self, other: BoundaryFlake, /) -> bool: ...
    def __ge__(self, other: BoundaryFlake, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[BoundaryFlake], tuple[str]]: ...

def encode_string(id: SupportsIndex) -> str:
    """Returns the text of an id: 1 to 13 of the characters 0-9 and a-v.

    Raises InvalidArgumentError with the code INVALID_ID if id is not a signed 64-bit integer.

    >>> from randflake import encode_string
    >>> encode_string(4594531474933654033)
    '3vgoe12ccb8gh'
    """

def decode_string(text: str) -> int:
    """Returns the id of a text, which must be exactly as encode_string writes it.

    Raises InvalidArgumentError with the code INVALID_ID for any other text.

    >>> from randflake import decode_string
    >>> decode_string("3vgoe12ccb8gh")
    4594531474933654033
    """

def generate_secret() -> str:
    """Returns a fresh secret, 32 hex digits, from the operating system's random source.

    It is for the life of an id column: keep it where secrets are kept.

    >>> from randflake import generate_secret
    >>> len(bytes.fromhex(generate_secret()))
    16
    """

def main(arguments: Sequence[str]) -> int:
    """Does what the arguments of the command ask for, and returns its exit code."""

@overload
def init_store(
    store: _Store,
    secret: bytes | str,
    mode: Literal["new", "quarantine"],
    *,
    namespace: str = "default",
    ttl: SupportsIndex = 300,
    max_skew: SupportsIndex = 5,
    allow_weak_store: bool = False,
) -> None:
    """Makes a namespace in a store, once, before its first lease.

    Checks it if it is there, and changes nothing then. In PostgreSQL this makes the tables, too. A
    SQLite file is made if it is missing; its first lease does that as well, as "new".

    Do not call it with each start or deploy: after a loss of the store "new" repeats ids.

    store: the path of a SQLite file, or the URL or the client of a server, as in Randflake.leased.
    secret: 16 bytes, or a str of 32 hex digits: of all Randflake generators of this namespace.
    mode: "new" if this store has never had the namespace; "quarantine" if it may have had it and
    lost it, as after a restart without its data, where the file was removed, or if you cannot tell:
    it grants nothing then for ttl and max_skew, until every earlier lease is over. There is no
    default.
    layout: instead of a secret, for Snowflake: a Layout with node ids, or the name of a preset.
    namespace: 1 to 200 bytes; one for each secret or layout.
    ttl: how many whole seconds the longest lease has, 1 to 86400 and at least six times max_skew.
    max_skew: by how many whole seconds clocks may differ.
    allow_weak_store: whether to accept a Redis or PostgreSQL that may lose what it has
    acknowledged.

    Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT; StoreError with
    STORE_UNAVAILABLE, SECRET_MISMATCH, WEAK_STORE or DRIVER_MISSING.

    >>> import tempfile
    >>> from randflake import StoreError, generate_secret, init_store, list_leases
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     init_store(folder + "/ids.db", generate_secret(), "quarantine", ttl=60)
    ...     status = list_leases(folder + "/ids.db")
    >>> status.held, status.floor > status.now  # nothing is granted before the floor
    (0, True)
    >>> try:
    ...     init_store("etcd://localhost:1", generate_secret(), mode="new")
    ... except StoreError as error:
    ...     print(error.code)  # no server listens at that port
    STORE_UNAVAILABLE
    """

@overload
def init_store(
    store: _Store,
    secret: None = None,
    *,
    mode: Literal["new", "quarantine"],
    layout: Layout | str,
    namespace: str = "default",
    ttl: SupportsIndex = 300,
    max_skew: SupportsIndex = 5,
    allow_weak_store: bool = False,
) -> None: ...
@overload  # no call is this one: there are defaults only so that an error can name the words
def init_store(
    store: Never,
    secret: None = None,
    mode: None = None,
    *,
    layout: None = None,
    namespace: str = "default",
    ttl: SupportsIndex = 300,
    max_skew: SupportsIndex = 5,
    allow_weak_store: bool = False,
) -> None: ...
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

def inspect_lease(
    store: _Store,
    node_id: SupportsIndex,
    *,
    namespace: str = "default",
) -> NodeStatus | None:
    """Returns what a store has of one node id; None if it was never leased.

    store, namespace: as in list_leases, and with its errors.
    node_id: 0 to the largest node id of the namespace.

    >>> import tempfile
    >>> from randflake import Randflake, generate_secret, inspect_lease
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret()) as flake:
    ...         inspect_lease(folder + "/ids.db", flake.node_ids[0]).state
    'held'
    """

def fence_store(
    store: _Store,
    *,
    namespace: str = "default",
) -> int:
    """Stops a store from granting until earlier leases are over; returns that unix second.

    Call it after a backup was restored, before anything starts: the store may have forgotten
    leases. Leases that clearly run are renewed meanwhile.

    store, namespace: as in list_leases, and with its errors.

    >>> import tempfile, time
    >>> from randflake import Randflake, fence_store, generate_secret
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret()):
    ...         floor = fence_store(folder + "/ids.db")
    >>> 300 <= floor - time.time() <= 305  # the longest lease and the largest skew
    True
    """

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
    node_id: one whose lease has is_far.
    end_exclusive: the new end, a unix second; None for the lowest, which is that bound.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT if there is nothing to repair, or if
    the new end is too low; StoreError with CLOCK_SKEW if one of the clocks is wrong now.
    """

def repair_store(
    store: _Store,
    *,
    floor: SupportsIndex | None = None,
    namespace: str = "default",
) -> int:
    """Lowers the end of a quarantine that only a wrong clock can have set, and returns the new end.

    As repair_lease, for the floor of a whole namespace, as if it had been fenced now. This function
    trusts you: if any id has a second at or after the new floor, ids will repeat.

    store, namespace: as in list_leases, and with the errors of repair_lease.
    floor: the new one, a unix second; None for the lowest.
    """

def release_lease(
    store: _Store,
    lease: NodeStatus,
    *,
    namespace: str = "default",
) -> int:
    """Gives a node id back for a process that has ended for sure, and returns its end.

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
