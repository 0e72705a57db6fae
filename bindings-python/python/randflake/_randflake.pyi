from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import (
    Any,
    Final,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    final,
    type_check_only,
)

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from randflake._async import Opening
from randflake._generator import Generator
from randflake._tickets import DatedTickets, Tickets
from randflake.ids import (
    Cloak,
    Codes,
    Inspector,
    Parts,
    decode_string,
    decode_strings,
    encode_string,
    encode_strings,
)
from randflake.leases import LeaseStatus, NodeStatus, StoreStatus
from randflake.snowflake import BoundaryFlake, Layout, RawParts, Snowflake
from randflake.stores import _AsyncStore, _Store
from randflake.tickets import CounterStatus

__all__ = [
    "BoundaryFlake",
    "Cloak",
    "Codes",
    "DatedTickets",
    "Generator",
    "Inspector",
    "Layout",
    "Lease",
    "Parts",
    "Randflake",
    "RawParts",
    "Snowflake",
    "Tickets",
    "_ChangeableClock",
    "__version__",
    "address_of",
    "after_restore",
    "decode_string",
    "decode_strings",
    "encode_string",
    "encode_strings",
    "fence_store",
    "fence_tickets",
    "first_package",
    "fork_id",
    "generate_secret",
    "init_store",
    "init_tickets",
    "inspect_lease",
    "list_leases",
    "list_tickets",
    "main",
    "release_lease",
    "repair_lease",
    "repair_store",
    "set_node_ids",
    "show_tickets",
]

__version__: Final[str]

# Before Python 3.12, type checkers do not know that a numpy array is a buffer.
_Int64Buffer: TypeAlias = Buffer | NDArray[np.int64]

_Secret: TypeAlias = bytes | bytearray | memoryview | str

@type_check_only
class _Column(Protocol):
    # Of pandas, polars, pyarrow and others.
    def __array__(self) -> NDArray[Any]: ...

_Int64Array: TypeAlias = Buffer | _Column

@type_check_only
class _Clock(Protocol):
    # May also have sleep(seconds: float).
    def now(self) -> float: ...

@final
class _ChangeableClock:
    # The machine's clock until another one is set: of randflake.v2.
    def __new__(cls, now: Callable[[], float] | None) -> Self: ...
    def set(self, now: Callable[[], float] | None) -> None: ...

@final
class Randflake(Generator):
    """A generator of unique 64-bit ids that outsiders cannot predict, order or count.

    Randflake.leased(store, secret) makes one whose node id no other process has at the same time.
    This constructor is for manually assigned node ids.

    A manually assigned node id is safe for one live process at a time, on a machine whose clock has
    not stepped back over the last id: two live processes with one node id and one secret repeat
    each other's ids. In a forked child an inherited generator raises FORKED.

    node_id: 0 to 131071, also as decimal text, or a sequence of up to 16384 of them, each worth
    131072 ids a second.
    secret: 16 bytes, or a str of 32 hex digits; see generate_secret.
    lease: the seconds that may be stamped; without one, all of them.
    max_wait: how long a call may wait in all, 0 to 86400 seconds; 0 never waits. Unless it is 0, a
    batch also gets the seconds that its size needs.
    max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to 3600; needs a
    lease.
    restart_safe: whether to skip the rest of the second in which the generator is made, since an
    earlier holder of the node id may have ended in it. Nothing is skipped while another generator
    of this process with the same node ids, made earlier, is open. Has no effect with a lease.
    clock: for tests. An object with now(), unix seconds as int or float, and optionally
    sleep(seconds), or a callable that does what now() does. Its exceptions are raised as they are.

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
        node_id: SupportsIndex | str | Sequence[SupportsIndex],
        secret: _Secret,
        *,
        lease: Lease | None = None,
        max_wait: float = 1.0,
        max_drift: SupportsIndex = 0,
        restart_safe: bool = True,
        clock: _Clock | _ChangeableClock | Callable[[], float] | None = None,
    ) -> Self: ...
    @staticmethod
    def leased(
        store: _Store | None = None,
        secret: _Secret | None = None,
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str | None = None,
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex | None = None,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> LeasedRandflake:
        """Makes a generator whose node ids are leased: no other process has them meanwhile.

        Make one for each process, and keep it: each call takes a lease of its own.

        A background thread renews the lease at a third of its length. It replaces a lost lease with
        another one, with other node ids. While the store is unavailable, the generator works until
        its lease ends, then raises LEASE_UNAVAILABLE, and recovers by itself. A forked child takes
        a lease of its own with its first call. close, the end of a with block and the end of the
        process give the node ids back.

        store: the path of a SQLite file on a local disk, which is made if it is missing. Or a
        server: a URL, which is postgresql://, mysql://, mariadb://, redis://, rediss://,
        etcd://host:port,host:port or etcds://; a psycopg connection, or a pool of them; a
        connection of PyMySQL, mysqlclient or MySQL's connector; an Engine of SQLAlchemy; a
        redis.Redis or redis.RedisCluster; or an Adapter of randflake.stores. With a URL a forked
        child connects again; with a client it raises FORKED. None for RANDFLAKE_STORE, a path or a
        URL.
        secret: 16 bytes, or a str of 32 hex digits; see generate_secret. None for RANDFLAKE_SECRET,
        or for the contents of the file RANDFLAKE_SECRET_FILE.
        node_count: how many node ids, 1 to 16384; each adds 131072 ids a second. While the store
        has fewer free node ids, the generator works with fewer.
        ttl: the length of a lease in whole seconds, 1 to 86400 and at least six times max_skew;
        None for 300. The generator survives a store outage of up to two thirds of it. The node id
        of a process that was killed stays reserved for up to that long.
        namespace: 1 to 200 bytes; one for each secret. One generator serves all tables of a secret.
        None for "default"; where the store or the secret is None, for RANDFLAKE_NAMESPACE.
        acquire_timeout: how many seconds the first lease may take, 0 to 86400.
        max_wait: how long a call may wait in all, 0 to 86400 seconds, as in the constructor.
        max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to a third of
        the ttl, and at most 3600; None for 10, or that third. It absorbs clock steps backwards, and
        lets a burst borrow coming seconds.
        max_skew: by how many whole seconds clocks may differ; a namespace keeps what it was made
        with.
        create: whether to create the namespace if it is missing, as "new", instead of init_store;
        None does so in a file, which is also created, but not in a server. True is not for Redis.
        With False, a file that was lost is STORE_NOT_INITIALIZED, and not an empty store.
        allow_weak_store: whether to lease from a server that may lose what it has acknowledged. A
        file is refused with it.
        on_lease_change: called with a LeaseStatus after the first lease, after each change of its
        state or its node ids, and after close; in a forked child, too. It runs on a thread of its
        own, one change after the other. What it raises is logged.

        Each change is logged, too, by logging.getLogger("randflake").

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
    @staticmethod
    def lazy(
        store: _Store | None = None,
        secret: _Secret | None = None,
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str | None = None,
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex | None = None,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> LeasedRandflake:
        """Makes a generator that leases its node ids with its first id, for use in a module.

        This call reads and contacts nothing: a module with such a generator can be imported without
        any setting, and by a server that forks its workers. The first id takes the lease, as leased
        does, in each process. The secret is read with the first use, also of inspect, which leases
        nothing, and the rest of the environment with the first id. A relative path of a store is
        resolved here. Before the first id, node_ids is empty and lease is None.

        The arguments are as in leased. Their errors are raised here, errors of the secret and of
        the environment with the first use. If there is no first lease within acquire_timeout, the
        call raises LEASE_UNAVAILABLE, with the store's error as its cause, or that error itself.
        The next call tries again.

        >>> import os, tempfile
        >>> from randflake import Randflake, generate_secret
        >>> flake = Randflake.lazy()  # in a module
        >>> flake.node_ids
        ()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     os.environ["RANDFLAKE_STORE"] = folder + "/ids.db"
        ...     os.environ["RANDFLAKE_SECRET"] = generate_secret()
        ...     with flake:
        ...         id = flake.generate()
        ...         flake.node_ids == (flake.inspect(id).node_id,)
        True
        >>> del os.environ["RANDFLAKE_STORE"], os.environ["RANDFLAKE_SECRET"]
        """
    @staticmethod
    def leased_async(
        store: _AsyncStore | None = None,
        secret: _Secret | None = None,
        *,
        node_count: SupportsIndex = 1,
        ttl: SupportsIndex | None = None,
        namespace: str | None = None,
        acquire_timeout: float = 10,
        max_wait: float = 1.0,
        max_drift: SupportsIndex | None = None,
        max_skew: SupportsIndex = 5,
        create: bool | None = None,
        allow_weak_store: bool = False,
        on_lease_change: Callable[[LeaseStatus], object] | None = None,
    ) -> Opening[LeasedRandflake]:
        """Makes a generator as leased does, for programs with an event loop; it never waits.

        Await what it returns, or enter it with async with: the first lease is taken on a thread,
        and the end of the block gives the node ids back. For asyncio, uvloop and trio.

        No call on the generator waits, except the awaited ones: while there is no id, each raises a
        RetryLaterError at once. max_wait is for generate_many_async.

        store, secret and all options: as in leased.

        Raises what leased raises, where it is awaited.

        >>> import asyncio
        >>> import tempfile
        >>> from randflake import Randflake, generate_secret
        >>> async def main(store):
        ...     async with Randflake.leased_async(store, generate_secret()) as flake:
        ...         return flake.generate_many(1000) + await flake.generate_many_async(1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     len(set(asyncio.run(main(folder + "/ids.db"))))
        2000
        """
    def _generate_in_order(self) -> int: ...
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

        It takes a second for each 131072 ids of a node id. If that is too long, use more node ids:
        node_count.

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

        Every 64-bit number has these parts: they mean something only for ids made with this secret.
        Works in a forked child and after close, too.

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

        Raises what decrypt raises, and INVALID_ARGUMENT for something that is not a collection.

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
        array of int64. A sortable form from 2**63 on is negative there: number % 2**64 restores it.

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

        Raises what encrypt raises, and INVALID_ARGUMENT for something that is not a collection.

        >>> from randflake import Randflake
        >>> flake = Randflake(8, "dffd6021bb2bd5b0af676290809ec3a5")
        >>> flake.encrypt_many([63673697622556673])
        [4594531474933654033]
        """
    def encrypt_array(self, raws: _Int64Array) -> NDArray[np.int64]:
        """Returns the ids of many sortable forms as a numpy array; undoes decrypt_array.

        raws: an array of native 64-bit integers, none of them negative, as for decrypt_array.

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

@type_check_only
class LeasedRandflake(Randflake):  # type: ignore[misc]  # at run time it is a Randflake
    """A Randflake from leased or leased_async, for type checkers."""

    @property
    def lease(self) -> LeaseStatus | None: ...

@final
class Lease:
    """The seconds a generator may stamp: start up to, but not including, end_exclusive.

    Both are absolute unix seconds from 1730000000 to 2803741824. A lease is for the life of one
    process: never grant a node id a second that an earlier lease of it covered.

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

def after_restore() -> None:
    """Declares that this process may be one of several copies.

    Call it after the process was restored from a snapshot or a checkpoint, or its machine was
    cloned, and before it makes the next id.

    It does to the process what a fork does to a child. Leased generators, and Tickets, give up what
    they had and start over with their next call (from leased_async, with ready). They release
    nothing, since another copy may be using it. Generators with manually assigned node ids raise
    FORKED, and so does making a generator with one of them: give each copy node ids of its own. A
    store that was passed as a client raises FORKED, too: make generators with a new client.

    Call it in every copy, the original included, while no other thread makes ids.

    >>> from randflake import Randflake, RandflakeError, after_restore, generate_secret
    >>> flake = Randflake(6, generate_secret())
    >>> after_restore()
    >>> try:
    ...     flake.generate()
    ... except RandflakeError as error:
    ...     print(error.code)
    FORKED
    """

def generate_secret() -> str:
    """Returns a fresh secret, 32 hex digits, from the operating system's random source.

    It is for the life of an id column: keep it where secrets are kept.

    >>> from randflake import generate_secret
    >>> len(bytes.fromhex(generate_secret()))
    16
    """

def fork_id() -> int: ...
def first_package(package: ModuleType) -> ModuleType: ...
def main(arguments: Sequence[str]) -> int:
    """Does what the arguments of the command ask for, and returns its exit code."""

def address_of(
    store: str,
) -> (
    tuple[str, list[tuple[str, int]], str | None, str | None, str, bool, dict[str, str], str, str]
    | None
):
    """Returns the parts of a randflake._urls.Address, if it is the URL of a store."""

# The functions of randflake.operators, whose arguments these check.
def init_store(
    store: _Store,
    secret: _Secret | None,
    mode: str | None,
    layout: Layout | str | None,
    namespace: str,
    max_ttl: SupportsIndex,
    max_skew: SupportsIndex,
    node_ids: str | None,
    allow_weak_store: bool,
) -> None: ...
def list_leases(store: _Store, namespace: str) -> StoreStatus: ...
def inspect_lease(store: _Store, node_id: SupportsIndex, namespace: str) -> NodeStatus | None: ...
def fence_store(store: _Store, namespace: str) -> int: ...
def set_node_ids(store: _Store, node_ids: str, namespace: str) -> int: ...
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

# The functions of randflake.tickets.
def init_tickets(store: _Store, mode: str, namespace: str, allow_weak_store: bool) -> None: ...
def fence_tickets(
    store: _Store,
    name: str,
    above: SupportsIndex,
    start: SupportsIndex | None,
    step: SupportsIndex | None,
    namespace: str,
    allow_weak_store: bool,
) -> CounterStatus: ...
def list_tickets(store: _Store, namespace: str, allow_weak_store: bool) -> list[CounterStatus]: ...
def show_tickets(
    store: _Store, name: str, namespace: str, allow_weak_store: bool
) -> CounterStatus | None: ...
