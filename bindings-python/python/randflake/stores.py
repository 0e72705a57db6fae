"""Stores with a server: how to run a statement with the client that you have.

Rust says what to run and reads the answer. This module has only how each driver runs it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from randflake import _urls
from randflake._adapter import Adapter, Refused, Rows, Unavailable
from randflake._threads import is_gevents
from randflake.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from typing import Protocol

__all__ = ["Adapter", "Refused", "Rows", "Source", "Unavailable", "source_of"]

if TYPE_CHECKING:
    # A psycopg connection is recognized by cursor and a redis.Redis by execute_command, so they
    # need not be installed to check types.
    class _HasCursor(Protocol):
        def cursor(self) -> object: ...

    class _Lends(Protocol):
        def connection(self, timeout: float) -> AbstractContextManager[object]: ...

    class _Executes(Protocol):
        def execute_command(self, *args: str) -> object: ...

    class _HasDialect(Protocol):  # an engine of SQLAlchemy
        @property
        def dialect(self) -> object: ...

    class _LendsToLoop(Protocol):
        def connection(self, timeout: float) -> AbstractAsyncContextManager[object]: ...

    class _Acquires(Protocol):  # a pool of asyncpg
        def acquire(self) -> object: ...

    _Client: TypeAlias = Adapter | _HasCursor | _Lends | _Executes | _HasDialect
    _Store: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes] | _Client
    _AsyncStore: TypeAlias = _Store | _LendsToLoop | _Acquires


class Source(NamedTuple):
    """Where statements can be run."""

    server: str
    """As in an Adapter."""
    open: Callable[[], Adapter]
    survives_fork: bool
    """Whether open makes its own connection."""
    key: str | None = None
    """The key under which it is opened once in a process, for all generators."""
    place: str | None = None
    """Where it is, for people; without it they see the kind of server."""


def source_of(store: object) -> Source | None:
    """Returns how to run statements on a store; None if it is not a store with a server."""
    if isinstance(store, Source):
        return store
    if isinstance(store, str):
        return _source_of_url(store)
    _refuse_session(store)
    if _is_asynchronous(store):
        raise InvalidTypeError(
            f"store must be a client that blocks, got {type(store).__name__}, which belongs to an "
            "event loop: pass it to leased_async, if it is of asyncpg, psycopg, redis.asyncio or "
            "SQLAlchemy, or give the URL",
            "INVALID_ARGUMENT",
        )
    adapter: Adapter
    if callable(getattr(store, "run", None)) and hasattr(store, "server"):
        adapter = store  # type: ignore[assignment]  # a Protocol, checked below
        if adapter.server not in ("postgresql", "mysql", "redis", "etcd"):
            raise InvalidArgumentError(
                "the server of an adapter must be 'postgresql', 'mysql', 'redis' or 'etcd'",
                "INVALID_ARGUMENT",
            )
    elif is_of(store, "psycopg", "Connection"):
        from randflake._postgres import Postgres

        adapter = Postgres(lambda: contextlib.nullcontext(store))
    elif is_of(store, "sqlalchemy", "Engine"):
        from randflake._mysql import Mysql
        from randflake._postgres import Postgres, lent_by_engine

        server = check_engine(store, BLOCKING)
        kind = Postgres if server == "postgresql" else Mysql
        adapter = kind(lambda: lent_by_engine(store))
    elif is_mysql(store):
        if is_gevents("socket"):
            raise InvalidArgumentError(
                "the sockets of this connection are gevent's, each of which is good for one "
                "thread, and leases are kept in their own threads; give the URL",
                "INVALID_ARGUMENT",
            )
        from randflake._mysql import Mysql

        # Shared by all generators that are given it: only one may ask at a time.
        guest = Mysql(lambda: contextlib.nullcontext(store))
        key = f"the connection {id(store)}"
        return Source("mysql", lambda: guest, survives_fork=False, key=key)
    elif callable(lend := getattr(store, "connection", None)):
        from randflake._postgres import Postgres

        adapter = Postgres(lambda: lend(timeout=_urls.TIMEOUT))
    elif is_of(store, "redis", "Redis") and not is_of(store, "redis.client", "Pipeline"):
        if is_gevents("socket"):
            raise InvalidArgumentError(
                "the sockets of this redis.Redis are gevent's, each of which is good for one "
                "thread, and leases are kept in their own threads; give the URL",
                "INVALID_ARGUMENT",
            )
        from randflake._redis import Guest

        return Source("redis", lambda: Guest(store), survives_fork=False, key=key_of(store))
    elif is_of(store, "redis.cluster", "RedisCluster"):
        from randflake._redis import Cluster

        # One for each generator: it asks the node that has the key of its namespace.
        return Source("redis", lambda: Cluster(store), survives_fork=False)
    elif type(store).__module__.partition(".")[0] in ("valkey", "glide", "glide_sync"):
        raise InvalidArgumentError(
            "a client of valkey or valkey-glide is not a valid store; pass a redis.Redis, which "
            "talks to Valkey as well, or a URL with redis:// or rediss://",
            "INVALID_ARGUMENT",
        )
    else:
        return None
    return Source(adapter.server, lambda: adapter, survives_fork=False)


def _source_of_url(text: str) -> Source | None:
    """Returns how to run statements on the server of a URL; None if it is not such a URL."""
    from randflake._randflake import address_of

    parts = address_of(text)
    if parts is None:
        return None
    # The first connection imports these, on a thread: a child that is forked meanwhile would wait
    # forever if it imported them, too.
    import email.parser  # noqa: F401
    import encodings.idna  # noqa: F401

    address = _urls.Address(*parts)
    open_: Callable[[], Adapter]
    # Each imports what only it needs.
    if address.server == "postgresql":
        from randflake import _postgres

        open_ = _postgres.opener(address)
    elif address.server == "mysql":
        from randflake import _mysql

        open_ = _mysql.opener(address)
    elif address.server == "redis":
        from randflake import _redis

        open_ = _redis.opener(address)
    else:
        from randflake import _etcd

        open_ = lambda: _etcd.Etcd(address)  # noqa: E731
    return Source(address.server, open_, True, address.key, address.place)


def key_of(client: Any) -> str:
    """Returns what distinguishes a client of Redis from others; all clients of a pool are one."""
    return f"the pool {id(client.connection_pool)}"


def is_of(store: object, module: str, name: str) -> bool:
    """Returns whether it is of a class, without importing its module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(store, getattr(loaded, name))


def is_mysql(store: object) -> bool:
    """Returns whether it is a connection of a driver of MySQL that blocks."""
    if any(it.__module__.partition(".")[0] == "mariadb" for it in type(store).__mro__):
        raise InvalidTypeError(
            "store must be a client whose insert ids have 64 bits, but those of the module mariadb "
            "have 32; give the URL, or a connection of PyMySQL",
            "INVALID_ARGUMENT",
        )
    drivers = (
        ("pymysql.connections", "Connection"),
        ("MySQLdb.connections", "Connection"),
        ("mysql.connector.abstracts", "MySQLConnectionAbstract"),
    )
    return any(is_of(store, *driver) for driver in drivers)


def _is_asynchronous(store: object) -> bool:
    has_both = hasattr(store, "__aenter__") and hasattr(store, "__enter__")
    return not has_both and (
        hasattr(store, "__aenter__")
        or is_of(store, "asyncpg", "Connection")
        or is_of(store, "sqlalchemy.ext.asyncio", "AsyncEngine")
    )


def _refuse_session(store: object) -> None:
    """Refuses a session of SQLAlchemy: its transactions are the application's."""
    for module, names in (
        ("sqlalchemy.orm", ("Session", "scoped_session")),
        ("sqlalchemy.ext.asyncio", ("AsyncSession", "async_scoped_session")),
    ):
        for name in names:
            if is_of(store, module, name):
                raise InvalidTypeError(
                    f"store must be an engine of SQLAlchemy, got {type(store).__name__}, whose "
                    "transactions are yours; pass what its get_bind() returns, or give the URL",
                    "INVALID_ARGUMENT",
                )


BLOCKING = {"postgresql": ("psycopg",), "mysql": ("pymysql", "mysqldb", "mysqlconnector")}
"""The drivers of SQLAlchemy that run statements here, by server."""


def check_engine(engine: Any, drivers: dict[str, tuple[str, ...]]) -> str:
    """Refuses a SQLAlchemy engine whose driver cannot run statements here; returns the server."""
    dialect = engine.dialect
    # For MariaDB there is a dialect of another name.
    server = "mysql" if dialect.name == "mariadb" else str(dialect.name)
    if dialect.driver not in drivers.get(server, ()):
        known = [f"{server}+{driver}://" for server in drivers for driver in drivers[server]]
        raise InvalidArgumentError(
            f"an engine of SQLAlchemy is a store if it is one of {', '.join(known)}, got "
            f"{dialect.name}+{dialect.driver}; give the URL of the store",
            "INVALID_ARGUMENT",
        )
    if is_of(engine.pool, "sqlalchemy.pool", "StaticPool"):
        raise InvalidArgumentError(
            "this engine of SQLAlchemy has a StaticPool, whose one connection is rolled back by "
            "whoever gives it back, also inside a transaction of yours; give the URL of the store",
            "INVALID_ARGUMENT",
        )
    return server
