from collections.abc import Callable, Iterable, Sequence
from datetime import datetime as _datetime
from types import TracebackType
from typing import (
    Any,
    Final,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    final,
    type_check_only,
)

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, disjoint_base

from randflake.arrays import PartsArray
from randflake.leases import LeaseStatus, NodeStatus, StoreStatus
from randflake.snowflake import BoundaryFlake, Layout, RawParts, Snowflake
from randflake.stores import _Store

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
    "decode_strings",
    "encode_string",
    "encode_strings",
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

@type_check_only
class _Column(Protocol):
    # Of pandas, polars, pyarrow and others.
    def __array__(self) -> NDArray[Any]: ...

_Int64Array: TypeAlias = Buffer | _Column

@type_check_only
class _Clock(Protocol):
    # May also have sleep(seconds: float).
    def now(self) -> float: ...

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

    def fill(self, buffer: _Int64Buffer) -> None:
        """Fills a writable buffer with ids, in the order in which they are claimed.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64, as a signed column holds ids. If the call fails, it is zeroed.

        Raises what generate_many raises, and INVALID_ARGUMENT for another kind of buffer.

        >>> from array import array
        >>> from randflake import Randflake, generate_secret
        >>> ids = array("q", bytes(8 * 1000))
        >>> Randflake(9, generate_secret()).fill(ids)
        >>> len(set(ids))
        1000
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
    def generate_strings(self, n: SupportsIndex) -> list[str]:
        """Generates n ids as texts, in the order in which they are claimed.

        Raises what generate_many raises.

        >>> from randflake import Randflake, decode_strings, generate_secret
        >>> texts = Randflake(8, generate_secret()).generate_strings(1000)
        >>> len(set(decode_strings(texts)))
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
    def decrypt_many(self, ids: Iterable[SupportsIndex | str]) -> list[int]:
        """Returns the sortable forms of many ids, each as decrypt returns it.

        ids: a list of ints or texts, or anything else that holds them. An array or a column of
        64-bit integers is read at once.

        Raises what decrypt raises, and INVALID_ARGUMENT for what holds nothing.

        >>> from randflake import Randflake
        >>> flake = Randflake(8, "dffd6021bb2bd5b0af676290809ec3a5")
        >>> flake.decrypt_many([4594531474933654033, "3vgoe12ccb8gh"])
        [63673697622556673, 63673697622556673]
        """
    def decrypt_array(self, ids: _Int64Array) -> NDArray[np.uint64]:
        """Returns the sortable forms of many ids as a numpy array.

        ids: as inspect_array of Inspector takes them.

        Raises what inspect_array raises.

        >>> from randflake import Randflake
        >>> flake = Randflake(8, "dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> flake.decrypt_array(array("q", [4594531474933654033]))
        array([63673697622556673], dtype=uint64)
        """
    def decrypt_in_place(self, buffer: _Int64Buffer) -> None:
        """Turns the ids of a writable buffer into their sortable forms.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64. A sortable form from 2**63 on is negative there: number % 2**64 is it.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer.

        >>> from randflake import Randflake
        >>> flake = Randflake(8, "dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> column = array("q", [4594531474933654033])
        >>> flake.decrypt_in_place(column)
        >>> column
        array('q', [63673697622556673])
        >>> flake.encrypt_in_place(column)
        >>> column
        array('q', [4594531474933654033])
        """
    def encrypt(self, raw: SupportsIndex) -> int:
        """Returns the id of a sortable form; undoes decrypt.

        raw: an unsigned 64-bit integer that came from decrypt. Another one may not be unique.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def encrypt_many(self, raws: Iterable[SupportsIndex]) -> list[int]:
        """Returns the ids of many sortable forms; undoes decrypt_many.

        raws: a list of unsigned 64-bit integers that came from decrypt, or anything else that holds
        them. An array or a column of 64-bit integers is read at once.

        Raises what encrypt raises, and INVALID_ARGUMENT for what holds nothing.

        >>> from randflake import Randflake
        >>> flake = Randflake(8, "dffd6021bb2bd5b0af676290809ec3a5")
        >>> flake.encrypt_many([63673697622556673])
        [4594531474933654033]
        """
    def encrypt_array(self, raws: _Int64Array) -> NDArray[np.int64]:
        """Returns the ids of many sortable forms as a numpy array; undoes decrypt_array.

        raws: a row of native 64-bit integers, none of them negative, as for decrypt_array.

        Raises what inspect_array of Inspector raises.

        >>> from randflake import Randflake
        >>> flake = Randflake(8, "dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> flake.encrypt_array(array("Q", [63673697622556673]))
        array([4594531474933654033])
        """
    def encrypt_in_place(self, buffer: _Int64Buffer) -> None:
        """Turns the sortable forms of a writable buffer into their ids; undoes decrypt_in_place.

        buffer: as decrypt_in_place takes it.

        Raises what decrypt_in_place raises.
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
    def inspect_array(self, ids: _Int64Array) -> PartsArray:
        """Reads many ids back, into one numpy array for each part.

        ids: a row of native 64-bit integers, such as a numpy array of int64, or a column of pandas,
        polars or pyarrow without nulls.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for anything else, with
        INVALID_ID for an unsigned integer from 2**63 on, and ImportError where numpy is not
        installed.

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
    def decrypt_many(self, ids: Iterable[SupportsIndex | str]) -> list[int]:
        """Returns the sortable forms of many ids, each as decrypt returns it.

        ids: a list of ints or texts, or anything else that holds them. An array or a column of
        64-bit integers is read at once.

        Raises what decrypt raises, and INVALID_ARGUMENT for what holds nothing.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> inspector.decrypt_many([4594531474933654033, "3vgoe12ccb8gh"])
        [63673697622556673, 63673697622556673]
        """
    def decrypt_array(self, ids: _Int64Array) -> NDArray[np.uint64]:
        """Returns the sortable forms of many ids as a numpy array.

        ids: as inspect_array of Inspector takes them.

        Raises what inspect_array raises.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> inspector.decrypt_array(array("q", [4594531474933654033]))
        array([63673697622556673], dtype=uint64)
        """
    def decrypt_in_place(self, buffer: _Int64Buffer) -> None:
        """Turns the ids of a writable buffer into their sortable forms.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64. A sortable form from 2**63 on is negative there: number % 2**64 is it.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> column = array("q", [4594531474933654033])
        >>> inspector.decrypt_in_place(column)
        >>> column
        array('q', [63673697622556673])
        >>> inspector.encrypt_in_place(column)
        >>> column
        array('q', [4594531474933654033])
        """
    def encrypt(self, raw: SupportsIndex) -> int:
        """Returns the id of a sortable form; undoes decrypt.

        raw: an unsigned 64-bit integer that came from decrypt. Another one may not be unique.

        Raises InvalidArgumentError with the code INVALID_ID.

        >>> from randflake import Inspector
        >>> Inspector("dffd6021bb2bd5b0af676290809ec3a5").encrypt(63673697622556673)
        4594531474933654033
        """
    def encrypt_many(self, raws: Iterable[SupportsIndex]) -> list[int]:
        """Returns the ids of many sortable forms; undoes decrypt_many.

        raws: a list of unsigned 64-bit integers that came from decrypt, or anything else that holds
        them. An array or a column of 64-bit integers is read at once.

        Raises what encrypt raises, and INVALID_ARGUMENT for what holds nothing.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> inspector.encrypt_many([63673697622556673])
        [4594531474933654033]
        """
    def encrypt_array(self, raws: _Int64Array) -> NDArray[np.int64]:
        """Returns the ids of many sortable forms as a numpy array; undoes decrypt_array.

        raws: a row of native 64-bit integers, none of them negative, as for decrypt_array.

        Raises what inspect_array of Inspector raises.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> inspector.encrypt_array(array("Q", [63673697622556673]))
        array([4594531474933654033])
        """
    def encrypt_in_place(self, buffer: _Int64Buffer) -> None:
        """Turns the sortable forms of a writable buffer into their ids; undoes decrypt_in_place.

        buffer: as decrypt_in_place takes it.

        Raises what decrypt_in_place raises.
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

        numbers: a list of unsigned 64-bit integers, or anything else that holds them. An array or a
        column of 64-bit integers is read at once.

        Raises what hide raises, and INVALID_ARGUMENT for what holds nothing.

        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> cloak.reveal_many(cloak.hide_many([1, 2, 3]))
        [1, 2, 3]
        """
    def hide_array(self, numbers: _Int64Array) -> NDArray[np.int64]:
        """Hides many numbers, and returns a numpy array.

        numbers: a row of native 64-bit integers, none of them negative, such as a numpy array of
        int64 or uint64, or a column of pandas, polars or pyarrow without nulls.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for anything else, with
        INVALID_ID for a negative number, and ImportError where numpy is not installed.

        >>> from array import array
        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> hidden = cloak.hide_array(array("q", [1, 2, 3]))
        >>> cloak.reveal_array(hidden)
        array([1, 2, 3], dtype=uint64)
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

        ids: a list of what hide returned or its text, or anything else that holds them. An array or
        a column of 64-bit integers is read at once.

        Raises what reveal raises, and INVALID_ARGUMENT for what holds nothing.
        """
    def reveal_array(self, ids: _Int64Array) -> NDArray[np.uint64]:
        """Returns the numbers that were hidden as a numpy array; undoes hide_array.

        ids: as inspect_array of Inspector takes them.

        Raises what inspect_array raises.
        """
    def reveal_in_place(self, buffer: _Int64Buffer) -> None:
        """Reveals the ids of a writable buffer in place; undoes hide_in_place.

        buffer: as hide_in_place takes it.

        Raises what hide_in_place raises.
        """
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...

def encode_string(id: SupportsIndex) -> str:
    """Returns the text of an id: 1 to 13 of the characters 0-9 and a-v.

    Raises InvalidArgumentError with the code INVALID_ID if id is not a signed 64-bit integer.

    >>> from randflake import encode_string
    >>> encode_string(4594531474933654033)
    '3vgoe12ccb8gh'
    """

def encode_strings(ids: Iterable[SupportsIndex]) -> list[str]:
    """Returns the texts of many ids.

    ids: a list of ints, or anything else that holds them. An array or a column of 64-bit integers
    is read at once.

    Raises what encode_string raises, and INVALID_ARGUMENT for what holds nothing.

    >>> from array import array
    >>> from randflake import encode_strings
    >>> encode_strings([4594531474933654033, -1])
    ['3vgoe12ccb8gh', 'fvvvvvvvvvvvv']
    >>> encode_strings(array("q", [0, 1]))
    ['0', '1']
    """

def decode_string(text: str) -> int:
    """Returns the id of a text, which must be exactly as encode_string writes it.

    Raises InvalidArgumentError with the code INVALID_ID for any other text.

    >>> from randflake import decode_string
    >>> decode_string("3vgoe12ccb8gh")
    4594531474933654033
    """

def decode_strings(texts: Iterable[str]) -> list[int]:
    """Returns the ids of many texts; undoes encode_strings.

    texts: a list of str, or anything else that holds them.

    Raises what decode_string raises, and INVALID_ARGUMENT for what holds nothing.

    >>> from randflake import decode_strings
    >>> decode_strings(["3vgoe12ccb8gh", "fvvvvvvvvvvvv"])
    [4594531474933654033, -1]
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

# The functions of randflake.operators, whose arguments these check.
def init_store(
    store: _Store,
    secret: bytes | str | None,
    mode: str | None,
    layout: Layout | str | None,
    namespace: str,
    ttl: SupportsIndex,
    max_skew: SupportsIndex,
    allow_weak_store: bool,
) -> None: ...
def list_leases(store: _Store, namespace: str) -> StoreStatus: ...
def inspect_lease(store: _Store, node_id: SupportsIndex, namespace: str) -> NodeStatus | None: ...
def fence_store(store: _Store, namespace: str) -> int: ...
def repair_lease(
    store: _Store, node_id: SupportsIndex, end_exclusive: SupportsIndex | None, namespace: str
) -> int: ...
def repair_store(store: _Store, floor: SupportsIndex | None, namespace: str) -> int: ...
def release_lease(
    store: _Store,
    node_id: SupportsIndex,
    start: SupportsIndex,
    end_exclusive: SupportsIndex,
    namespace: str,
) -> int: ...
