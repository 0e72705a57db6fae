from collections.abc import Callable, Iterable, Sequence
from datetime import datetime as _datetime
from typing import (
    Literal,
    Self,
    SupportsIndex,
    TypeAlias,
    final,
    overload,
    type_check_only,
)

from randflake._async import Opening
from randflake._generator import Generator
from randflake._randflake import Lease, _Clock
from randflake.leases import LeaseStatus
from randflake.stores import _AsyncStore, _Store

__all__ = ["BoundaryFlake", "Layout", "RawParts", "Snowflake"]

_Field: TypeAlias = Literal["time", "node", "sequence"]
_Sequence: TypeAlias = Literal["zero", "continuing"] | tuple[Literal["random"], SupportsIndex]

@final
class Snowflake(Generator):
    """A generator of unique 64-bit ids that sort by time, of any layout of the Snowflake family.

    Anyone who sees an id can read it and predict others; Cloak hides them.

    Snowflake.leased(store, layout) makes one whose node id no other process has at the same time.
    This constructor is for manually assigned node ids.

    A manually assigned node id is safe for one live process at a time, on a machine whose clock has
    not stepped back over the last id: two live processes with one node id and one layout repeat
    each other's ids. In a forked child an inherited generator raises FORKED.

    node_id: 0 to max_node_id of the layout, also as decimal text, or a sequence of up to max_nodes
    of them, each worth ids_per_node ids a tick; 0 where the layout has no node ids.
    layout: a Layout, or the name of a preset.
    lease: the seconds that may be stamped; without one, all of them.
    max_wait: how long a call may wait in all, 0 to 86400 seconds; 0 never waits. Unless it is 0, a
    batch also gets the ticks that its size needs.
    max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to 3600; needs a
    lease. Ids that run ahead are out of order with ids of other nodes.
    restart_safe: whether to skip the rest of the tick in which the generator is made, since an
    earlier holder of the node id may have ended in it. Nothing is skipped while another generator
    of this process with the same node ids, made earlier, is open. Has no effect with a lease.
    clock: for tests. An object with now(), unix seconds as int or float, and optionally
    sleep(seconds), or a callable that does what now() does. Its exceptions are raised as they are.
    A float is rounded down: for the tick of a millisecond return (unix_ms + 0.5) / 1000, since
    unix_ms / 1000 may be a bit before it.

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
        node_id: SupportsIndex | str | Sequence[SupportsIndex],
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
        store: _Store | None = None,
        layout: Layout | str | None = None,
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str | None = None,
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex = 0,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> LeasedSnowflake:
        """Makes a generator whose node ids are leased: no other process has them meanwhile.

        Renewals, losses, outages, forks and ends are as with Randflake.leased.

        store: as in Randflake.leased.
        layout: a Layout with node ids, or the text of one; None for the environment variable
        RANDFLAKE_LAYOUT, or else "twitter". A namespace has one; its node ids
        are leased, or the lowest 131072 of them.
        node_count: how many node ids, 1 to max_nodes of the layout, each worth ids_per_node ids a
        tick. While the store has fewer, the generator works with fewer.
        ttl: the length of a lease in whole seconds, 1 to 86400, at least six times max_skew and,
        where ticks are longer than a second, at least six of them; None for 300.
        namespace: 1 to 200 bytes; one for each layout. None for "default"; where the store is None,
        for RANDFLAKE_NAMESPACE.
        max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to a third of
        the ttl, and at most 3600. It absorbs clock steps backwards, and lets a burst borrow coming
        ticks; ids that run ahead are out of order with ids of other nodes.
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
    @staticmethod
    def lazy(
        store: _Store | None = None,
        layout: Layout | str | None = None,
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str | None = None,
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex = 0,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> LeasedSnowflake:
        """Makes a generator that leases its node ids with its first id, for use in a module.

        This call reads and contacts nothing; see Randflake.lazy. The arguments are as in leased.
        LIFETIME_OVER is raised here, LifetimeWarning with the first id.

        >>> import tempfile
        >>> from randflake import Snowflake
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Snowflake.lazy(folder + "/ids.db", "sonyflake2") as flake:
        ...         before = flake.node_ids
        ...         id = flake.generate()
        ...         before, flake.node_ids == (flake.inspect(id).node_id,)
        ((), True)
        """
    @staticmethod
    def leased_async(
        store: _AsyncStore | None = None,
        layout: Layout | str | None = None,
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str | None = None,
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex = 0,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> Opening[LeasedSnowflake]:
        """Makes a generator as leased does, for programs with an event loop; it never waits.

        See Randflake.leased_async. store, layout and all options: as in leased.

        >>> import asyncio
        >>> import tempfile
        >>> from randflake import Snowflake
        >>> async def main(store):
        ...     async with Snowflake.leased_async(store, "sonyflake2") as flake:
        ...         return await flake.generate_many_async(1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ids = asyncio.run(main(folder + "/ids.db"))
        >>> ids == sorted(set(ids))
        True
        """
    @property
    def layout(self) -> Layout:
        """The layout."""
    def generate(self) -> int:
        """Generates an id: an unsigned 64-bit integer.

        It is larger than every earlier one of this thread, where the layout has its time on top;
        with several node ids, where those are above the sequence.

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

    def inspect(self, raw: SupportsIndex) -> RawParts:
        """Reads an id back: its time, node id and sequence.

        raw: an unsigned 64-bit integer.

        Works in a forked child and after close, too.

        Raises InvalidArgumentError with the code INVALID_ID.
        """

@type_check_only
class LeasedSnowflake(Snowflake):  # type: ignore[misc]  # at run time it is a Snowflake
    """A Snowflake from leased or leased_async, for type checkers."""

    @property
    def lease(self) -> LeaseStatus | None: ...

@final
class Layout:
    """How time, node id and sequence share the bits of a sortable id, and how time is counted.

    name: a preset: randflake, twitter, discord, leaf, baidu, sonyflake, sonyflake2, instagram or
    simpleflake; or the text of a layout, which str() returns. That is the name of a preset, or
    fields with their widths, as time:41,node:10,sequence:12. Options follow, all separated by
    commas: epoch_ms=1577836800000; sequence=zero, =continuing or =random:100; and, of fields,
    tick_ms=10, unsigned=true and node_split=5:5. Or describe a layout of your own:
    fields: pairs of "time", "node" or "sequence" and a width in bits, from high to low; the node
    and the sequence have at most 32 bits each and may be missing.
    tick_ms: the length of a tick, 1 to 86400000 milliseconds; 1 unless given.
    epoch_ms: the unix millisecond, in UTC, at which tick 0 begins, also of a preset. Otherwise 0.
    unsigned: whether the fields may take all 64 bits. Otherwise the top bit stays zero.
    node_split: widths of the datacenter and of the worker, which fill the node.
    sequence: the initial sequence of each tick, also of a preset: "zero"; "continuing", with the
    one after the last; or ("random", n), with one drawn from 0 to n-1. The last two spread the ids
    of a quiet node evenly over shards that are chosen by their low bits.

    Ids are unsigned: one that a signed column shows as negative is id % 2**64 here. Layouts
    compare equal, hash and pickle.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT if there is no such preset, or the
    description is inconsistent.

    >>> from randflake import Layout
    >>> Layout("discord").inspect(175928847299117063)
    RawParts(unix_ms=1462015105796, node_id=32, sequence=7)
    >>> fields = [("time", 29), ("node", 21), ("sequence", 13)]
    >>> layout = Layout(fields=fields, tick_ms=1000, epoch_ms=1474300800000)
    >>> layout.inspect(180363646902239241)
    RawParts(unix_ms=1484799346000, node_id=4, sequence=9)
    >>> Layout("twitter", epoch_ms=1735689600000).inspect(0).unix_ms
    1735689600000
    >>> str(layout)
    'time:29,node:21,sequence:13,tick_ms=1000,epoch_ms=1474300800000'
    """

    @overload
    def __new__(
        cls,
        name: str,
        *,
        fields: None = None,
        epoch_ms: SupportsIndex | None = None,
        sequence: _Sequence | None = None,
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
        """The unix millisecond from which ids are negative in a signed column.

        None if they never are, or if a field other than the time decides it.
        """
    def inspect(self, raw: SupportsIndex) -> RawParts:
        """Reads an id: its time, node id and sequence.

        raw: an unsigned 64-bit integer.

        Every number without bits outside the fields has parts: reading does not show whether it is
        an id.

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
        """Returns the smallest id of the tick at a time.

        unix_ms: unix milliseconds or an aware datetime.

        Use it to find rows by the time at which their ids were made. Ids compare as unsigned
        numbers. In a signed column, ids from negative_from on come before all others.

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

        Raises InvalidArgumentError with the code INVALID_NODE if node ids do not have these parts,
        or one is too large.

        >>> from randflake import Layout
        >>> Layout("twitter").join_node(11, 26)
        378
        """
    def split_node(self, node_id: SupportsIndex) -> tuple[int, int] | None:
        """Returns the datacenter and the worker of a node id; None if it does not have these.

        Raises InvalidArgumentError with the code INVALID_NODE.

        >>> from randflake import Layout
        >>> Layout("twitter").split_node(378)
        (11, 26)
        """
    def remaining(self) -> float:
        """Returns how many seconds the layout has left on the machine's clock; 0 once it has ended.

        >>> from randflake import Layout
        >>> Layout("baidu").remaining()
        0.0
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[str]: ...

@final
class RawParts:
    """The parts of a sortable id: time, node id and sequence.

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
class BoundaryFlake:
    """An id of Boundary's flake, of 128 bits: time, network address of the worker, sequence.

    For reading and converting such ids; this package does not generate them.

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
