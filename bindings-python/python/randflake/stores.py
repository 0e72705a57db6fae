"""Stores with a server: how to run a statement with the client that you have.

Rust says what to run and reads the answer. Here is only how each driver runs it.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import os
import selectors
import ssl
import sys
import time
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from randflake.errors import InvalidArgumentError, InvalidTypeError, StoreError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import psycopg
    import redis

__all__ = ["Adapter", "Refused", "Rows", "Source", "Unavailable", "source_of"]

Rows = Sequence[Sequence[str | None]]
"""Rows of text."""

_Answer = TypeVar("_Answer")

_TIMEOUT = 3.0
"""Longest wait for a connection, and for an answer, in seconds."""

_CANCELLING = 0.25
"""How much of that is left for a statement to be cancelled, in seconds."""

_LONGEST = 1 << 20
"""Longest answer of etcd, in bytes: a thousand node ids, twice over."""


class Adapter(Protocol):
    """Runs statements with any other client. See the README for one.

    The thread that keeps a lease calls it, one call at a time. It may also have two methods:
    discard(), to give up a connection that may deliver the answer to another statement, and
    rest(), to close one of its own, since it is not needed for the next minute.

    For a Redis whose replicas must confirm a lease (min-replicas-to-write) it must have a method
    run_and_wait(text, parameters, replicas, milliseconds): it runs the statement as run does, sends
    WAIT with the other two behind it on the same connection and in one round trip, and returns a
    tuple of the rows and the number that WAIT said. Without it such a Redis is a WEAK_STORE.
    """

    server: str
    """Which kind of server it talks to: "postgresql", "redis" or "etcd"."""

    def run(self, text: str, parameters: list[str]) -> Rows:
        """Runs one statement, committed when this returns, and returns its rows.

        Waits no longer than a few seconds, and what it gives up ends on the server as well: of a
        statement that waits for a lock, each further one would wait beside it. In PostgreSQL text
        is one SQL statement with $1, $2…, and it runs outside of any transaction; parameters and
        columns are all of type text. In Redis text is a command and parameters are its arguments;
        a list of lists is returned as it is, a flat list or a map as one row, anything else as one
        row of one cell. In etcd text is the path of a request, the only parameter is the JSON to
        POST, and the answer is one row of two cells: its body, and its Date header, or None if it
        has none. Without that header leases are kept by this machine's clock, and a fence, a
        quarantine, a repair and a release for the dead are refused: they need two clocks that
        agree.

        Raises Refused for what the server itself reports, and anything else if it is out of
        reach; of that only the name of its class is shown, or the message of an Unavailable.
        """
        ...


if TYPE_CHECKING:
    # A psycopg connection is known by cursor and a redis.Redis by execute_command: they need not be
    # installed to check types.
    class _HasCursor(Protocol):
        def cursor(self) -> object: ...

    class _Lends(Protocol):
        def connection(self, timeout: float) -> AbstractContextManager[object]: ...

    class _Executes(Protocol):
        def execute_command(self, *args: str) -> object: ...

    _Client: TypeAlias = Adapter | _HasCursor | _Lends | _Executes
    _Store: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes] | _Client


class Refused(Exception):
    """The server answered with an error. It must have no password in it."""

    code: str
    """The SQLSTATE of PostgreSQL; the first word of Redis's message."""
    message: str

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class Unavailable(Exception):
    """The server cannot be reached. The message is shown, and must have no password in it."""


class _Silent(Unavailable):
    """No answer came in time: for all that is known the server is still at it."""


class Source(NamedTuple):
    """Where statements can be run."""

    server: str
    """As that of an Adapter."""
    open: Callable[[], Adapter]
    survives_fork: bool
    """Whether open makes a connection of its own."""


def source_of(store: object) -> Source | None:
    """Returns how to run statements on a store; None for what is no store with a server."""
    if isinstance(store, str):
        scheme = store.partition("://")[0]
        opener = _OPENERS.get(scheme) if "://" in store else None
        return Source(opener[0], opener[1](store), survives_fork=True) if opener else None
    if hasattr(store, "__aenter__") and not hasattr(store, "__enter__"):
        raise InvalidTypeError(
            f"store must be a client that blocks, got {type(store).__name__}, which is for "
            "asyncio; give the URL, and leases are kept in a thread of their own",
            "INVALID_ARGUMENT",
        )
    adapter: Adapter
    if callable(getattr(store, "run", None)) and hasattr(store, "server"):
        adapter = store  # type: ignore[assignment]  # a Protocol, checked below
        if adapter.server not in ("postgresql", "redis", "etcd"):
            raise InvalidArgumentError(
                "the server of an adapter must be 'postgresql', 'redis' or 'etcd'",
                "INVALID_ARGUMENT",
            )
    elif _is_of(store, "psycopg", "Connection"):
        adapter = _Postgres(lambda: contextlib.nullcontext(store))
    elif callable(lend := getattr(store, "connection", None)):
        adapter = _Postgres(lambda: lend(timeout=_TIMEOUT))
    elif _is_of(store, "redis", "Redis") and not _is_of(store, "redis.client", "Pipeline"):
        if is_gevents("socket"):
            raise InvalidArgumentError(
                "the sockets of this redis.Redis are gevent's, each of which is good for one "
                "thread, and leases are kept in threads of their own; give the URL",
                "INVALID_ARGUMENT",
            )
        adapter = _Redis(store, hidden=())
    else:
        return None
    return Source(adapter.server, lambda: adapter, survives_fork=False)


def is_gevents(module: str) -> bool:
    """Returns whether gevent has replaced the functions of a module."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched(module))


def _is_of(store: object, module: str, name: str) -> bool:
    """Returns whether it is of a class, without importing its module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(store, getattr(loaded, name))


class _Postgres:
    """psycopg. Speaks to libpq itself, since a connection may have rows and types of its own."""

    server = "postgresql"

    def __init__(
        self, lend: Callable[[], AbstractContextManager[Any]], hidden: tuple[str, ...] = ()
    ) -> None:
        self._lend = lend
        self._hidden = hidden

    def run(self, text: str, parameters: list[str]) -> Rows:
        import psycopg

        try:
            with self._lend() as connection:
                return _ask(connection, text, parameters)
        except psycopg.Error as error:
            raise Unavailable(_without(self._hidden, error)) from None


class _OwnPostgres(_Postgres):
    """A connection of a URL, opened when it is needed."""

    def __init__(self, url: str) -> None:
        super().__init__(lambda: contextlib.nullcontext(self._connected()), _passwords(url))
        self._url = url
        self._takes_options = True
        self._connection: psycopg.Connection[Any] | None = None

    def run(self, text: str, parameters: list[str]) -> Rows:
        idle_for_long = self._connection is not None
        try:
            return super().run(text, parameters)
        except Unavailable as error:
            self.discard()
            # Once more only if nothing runs any more: each operation may be repeated.
            if not idle_for_long or isinstance(error, _Silent):
                raise
        return super().run(text, parameters)

    def discard(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    rest = discard

    def _connected(self) -> psycopg.Connection[Any]:
        import psycopg

        if self._connection is None and self._takes_options:
            try:
                self._connection = self._connect(self._options())
            except psycopg.OperationalError as error:
                # A pooler that refuses options for a connection: statements are cancelled instead.
                if not any(it in str(error) for it in ("startup parameter", "command-line option")):
                    raise
                self._takes_options = False
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self, options: str | None = None) -> psycopg.Connection[Any]:
        import psycopg

        return psycopg.connect(
            self._url, autocommit=True, connect_timeout=int(_TIMEOUT), options=options
        )

    def _options(self) -> str:
        """Has the server end statements that were given up, as while the tables are locked.

        As an option of the connection: SET through a pooler would stay with a connection that the
        pooler gives to other clients later.
        """
        from psycopg.conninfo import conninfo_to_dict

        own = conninfo_to_dict(self._url).get("options") or os.environ.get("PGOPTIONS", "")
        return f"-c statement_timeout={int(_TIMEOUT * 1000 * 5 / 6)} {own}".strip()


def _ask(connection: psycopg.Connection[Any], text: str, parameters: list[str]) -> Rows:
    """Runs a statement in a transaction of its own, whatever the options of the connection."""
    from psycopg.pq import PipelineStatus, TransactionStatus

    # Other threads wait for the connection, so none begins a transaction in between.
    if not connection.lock.acquire(timeout=_TIMEOUT):
        raise Unavailable("the connection is in use by another thread")
    try:
        if connection.closed:
            raise Unavailable("the connection is closed")
        pgconn = connection.pgconn
        if (
            pgconn.transaction_status != TransactionStatus.IDLE
            or pgconn.pipeline_status != PipelineStatus.OFF
        ):
            raise Refused("25P02", "the connection is inside a transaction")
        encoding = connection.info.encoding
        values = [value.encode(encoding) for value in parameters]
        try:
            pgconn.send_query_params(text.encode(), values)
            result = _result(connection)
        except BaseException:
            # The answer may still come, as one to the next statement.
            pgconn.finish()
            raise
        return _rows(result, encoding)
    finally:
        connection.lock.release()


def _result(connection: psycopg.Connection[Any]) -> psycopg.pq.abc.PGresult:
    """Waits for the answer, and has the server give up what takes too long."""
    from psycopg.pq import ExecStatus

    pgconn = connection.pgconn
    deadline = time.monotonic() + _TIMEOUT
    cancel_at = deadline - _CANCELLING
    with selectors.DefaultSelector() as selector:
        read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
        selector.register(pgconn.socket, read)

        def wait(events: int) -> None:
            nonlocal cancel_at
            selector.modify(pgconn.socket, events)
            if selector.select(max(0, cancel_at - time.monotonic())):
                return
            if cancel_at < deadline:
                cancel_at = deadline
                _cancel(connection)
            if not selector.select(max(0, deadline - time.monotonic())):
                raise _Silent("it does not answer")

        while pgconn.flush():
            wait(read | write)
            if pgconn.is_busy():
                pgconn.consume_input()
        results: list[psycopg.pq.abc.PGresult] = []
        while True:
            while pgconn.is_busy():
                wait(read)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                # Cancelled while it waits for a standby, a commit is reported as one all the same.
                if cancel_at == deadline and results[-1].status == ExecStatus.TUPLES_OK:
                    raise _Silent("it was cancelled, and may not be on its standbys")
                return results[-1]
            results.append(result)


def _cancel(connection: psycopg.Connection[Any]) -> None:
    import psycopg

    # With an older libpq this would wait for the server without end.
    if psycopg.capabilities.has_cancel_safe():
        with contextlib.suppress(psycopg.Error):
            connection.cancel_safe(timeout=_CANCELLING / 2)


def _rows(result: psycopg.pq.abc.PGresult, encoding: str) -> Rows:
    from psycopg.pq import DiagnosticField, ExecStatus

    if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        message = result.get_error_message(encoding)
        # After any other the connection is closed.
        if result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) != b"ERROR":
            raise Unavailable(message)
        code = result.error_field(DiagnosticField.SQLSTATE) or b""
        raise Refused(code.decode(), message)

    def cell(row: int, column: int) -> str | None:
        value = result.get_value(row, column)
        return None if value is None else value.decode(encoding)

    columns = range(result.nfields)
    return [[cell(row, column) for column in columns] for row in range(result.ntuples)]


class _Redis:
    server = "redis"

    def __init__(self, client: Any, hidden: tuple[str, ...]) -> None:
        self._client = client
        self._hidden = hidden

    def run(self, text: str, parameters: list[str]) -> Rows:
        return self._ask(lambda: _redis_rows(self._client.execute_command(text, *parameters)))

    def run_and_wait(
        self, text: str, parameters: list[str], replicas: int, milliseconds: int
    ) -> tuple[Rows, int]:
        def ask() -> tuple[Rows, int]:
            with self._client.pipeline(transaction=False) as pipeline:
                pipeline.execute_command(text, *parameters)
                pipeline.execute_command("WAIT", replicas, milliseconds)
                # What it would raise by itself repeats the statement, and the token in it.
                answer, confirmed = pipeline.execute(raise_on_error=False)
            for reply in (answer, confirmed):
                if isinstance(reply, Exception):
                    raise reply
            return _redis_rows(answer), int(confirmed)

        return self._ask(ask)

    def _ask(self, ask: Callable[[], _Answer]) -> _Answer:
        from redis import RedisError, ResponseError

        try:
            return ask()
        except ResponseError as error:
            raise Refused(type(error).__name__, _without(self._hidden, error)) from None
        except RedisError as error:
            raise Unavailable(_without(self._hidden, error)) from None

    def discard(self) -> None:
        # Those in use are not ours: nothing is under way here.
        self._client.connection_pool.disconnect(inuse_connections=False)


class _OwnRedis(_Redis):
    """A client of a URL."""

    def run(self, text: str, parameters: list[str]) -> Rows:
        try:
            return super().run(text, parameters)
        finally:
            if is_gevents("socket"):  # a socket is good for the thread alone that has opened it
                self.discard()

    rest = _Redis.discard


def _redis_rows(answer: Any) -> Rows:
    if isinstance(answer, dict):
        answer = [part for pair in answer.items() for part in pair]
    if not isinstance(answer, list):
        answer = [answer]
    rows = answer if all(isinstance(row, list) for row in answer) else [answer]
    return [[_cell(value) for value in row] for row in rows]


def _cell(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode()
    return None if value is None else str(value)


class _Etcd:
    """The JSON gateway of an etcd, by a connection for each request."""

    server = "etcd"

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        login, at, hosts = rest.rpartition("@")
        name, colon, password = login.partition(":")
        self._context = ssl.create_default_context() if scheme == "etcds" else None
        self._login = {
            "name": urllib.parse.unquote(name),
            "password": urllib.parse.unquote(password),
        }
        self._has_login = bool(at)
        self._token: str | None = None
        self._members = [_host_and_port(member) for member in hosts.rstrip("/").split(",")]
        if at and not colon:
            raise ValueError

    def run(self, text: str, parameters: list[str]) -> Rows:
        (body,) = parameters
        if self._has_login and self._token is None:
            self._log_in()
        status, *cells = self._post(text, body)
        if self._has_login and status == 401:  # a token ends after a while
            self._log_in()
            status, *cells = self._post(text, body)
        return [cells]

    def _log_in(self) -> None:
        self._token = None
        _, answer, _ = self._post("/v3/auth/authenticate", json.dumps(self._login))
        with contextlib.suppress(ValueError, AttributeError):
            self._token = json.loads(answer).get("token")
        if self._token is None:
            raise Unavailable("it does not accept the user and the password")

    def _post(self, path: str, body: str) -> tuple[int, str, str | None]:
        """Returns status, body and Date of the first member that answers.

        Each operation may be repeated.
        """
        last = ""
        for turn, (host, port) in enumerate(self._members):
            connection = (
                http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=self._context)
                if self._context
                else http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
            )
            try:
                headers = {"Content-Type": "application/json"}
                if self._token is not None:
                    headers["Authorization"] = self._token
                connection.request("POST", path, body.encode(), headers)
                answer = connection.getresponse()
                content = answer.read(_LONGEST).decode()
            except (OSError, http.client.HTTPException, ValueError) as error:
                last = f"{type(error).__name__}: {error}"
            else:
                self._members = self._members[turn:] + self._members[:turn]
                return answer.status, content, answer.getheader("Date")
            finally:
                connection.close()
        raise Unavailable(last)


def _host_and_port(member: str) -> tuple[str, int]:
    parts = urllib.parse.urlsplit(f"//{member}")
    if not parts.hostname or parts.port is None or parts.path or parts.query:
        raise ValueError
    return parts.hostname, parts.port


def _open_postgres(url: str) -> Callable[[], Adapter]:
    _driver("psycopg", "postgres")
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(url)
    except Exception:
        raise _bad_url("PostgreSQL", "postgresql://user@host:5432/database") from None
    return lambda: _OwnPostgres(url)


def _open_redis(url: str) -> Callable[[], Adapter]:
    _driver("redis", "redis")
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    def connect() -> redis.Redis:
        return redis.Redis.from_url(
            url,
            socket_connect_timeout=_TIMEOUT,
            socket_timeout=_TIMEOUT,
            # Not what took too long: for all that is known the server is still at it.
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
        )

    try:
        connect()  # to nothing yet
    except Exception:
        raise _bad_url("Redis", "redis://user@host:6379/0, or rediss:// for TLS") from None
    return lambda: _OwnRedis(connect(), _passwords(url))


def _open_etcd(url: str) -> Callable[[], Adapter]:
    try:
        _Etcd(url)
    except ValueError:
        raise _bad_url("etcd", "etcd://host:2379,host:2379, or etcds:// for TLS") from None
    return lambda: _Etcd(url)


_OPENERS: dict[str, tuple[str, Callable[[str], Callable[[], Adapter]]]] = {
    "postgresql": ("postgresql", _open_postgres),
    "postgres": ("postgresql", _open_postgres),
    "redis": ("redis", _open_redis),
    "rediss": ("redis", _open_redis),
    "etcd": ("etcd", _open_etcd),
    "etcds": ("etcd", _open_etcd),
}


def _driver(module: str, extra: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        raise StoreError(
            f"there is no module {module}, which talks to that server; pip install "
            f"'randflake[{extra}]'",
            "DRIVER_MISSING",
        ) from None


def _bad_url(server: str, example: str) -> InvalidArgumentError:
    """Shows nothing of the URL, which may hold a password."""
    return InvalidArgumentError(
        f"this is no URL of {server}; one looks like {example}", "INVALID_ARGUMENT"
    )


def _passwords(url: str) -> tuple[str, ...]:
    """Returns what must not be shown of a URL, as it is written and as it is meant."""
    parts = urllib.parse.urlsplit(url)
    query = urllib.parse.parse_qsl(parts.query)
    found = [parts.netloc.rpartition("@")[0].partition(":")[2]]
    found += [value for name, value in query if "password" in name]
    found += [urllib.parse.unquote(secret) for secret in found]
    return tuple(secret for secret in found if secret)


def _without(hidden: tuple[str, ...], error: Exception) -> str:
    message = str(error)
    for secret in hidden:
        message = message.replace(secret, "***")
    return message.strip()
