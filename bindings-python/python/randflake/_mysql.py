"""Runs statements of MySQL and MariaDB with PyMySQL, mysqlclient and MySQL's connector."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from randflake import _urls
from randflake._adapter import Adapter, Refused, Rows, Unavailable
from randflake._threads import is_gevents
from randflake._urls import driver, without

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

CLOSING = {1053, 1079, 1927, 4031}
"""Errors after which the server closes the connection: it is shutting down, or somebody has ended
the connection."""

IN_TRANSACTION = 1568
"""The error of changing a running transaction."""


def opener(address: _urls.Address) -> Callable[[], Adapter]:
    driver("pymysql", "mysql")
    return lambda: OwnMysql(address)


class Mysql:
    """A connection of one of these drivers, for as long as a statement takes."""

    server = "mysql"

    def __init__(
        self, lend: Callable[[], AbstractContextManager[Any]], hidden: tuple[str, ...] = ()
    ) -> None:
        self._lend = lend
        self._hidden = hidden

    def run(self, text: str, parameters: list[str]) -> Rows:
        try:
            with self._lend() as connection:
                return self._ask(connection, text, parameters)
        except Exception as error:
            raise failure(error, self._hidden) from None

    def _ask(self, connection: Any, text: str, parameters: list[str]) -> Rows:
        return _ask(connection, text, parameters)


class OwnMysql(Mysql):
    """A connection of a URL, opened when it is needed."""

    def __init__(self, address: _urls.Address) -> None:
        super().__init__(lambda: contextlib.nullcontext(self._connected()), address.hidden())
        self._address = address
        self._connection: Any = None

    def run(self, text: str, parameters: list[str]) -> Rows:
        is_old = self._connection is not None
        try:
            return super().run(text, parameters)
        except Unavailable as error:
            self.discard()
            # Tried once more only if nothing is running any longer: any operation may be repeated.
            if not is_old or isinstance(error, Silent):
                raise
        finally:
            if is_gevents("socket"):  # a socket works only for the thread that has opened it
                self.discard()
        return super().run(text, parameters)

    def discard(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None

    rest = discard

    def _ask(self, connection: Any, text: str, parameters: list[str]) -> Rows:
        # Nobody else has it, and it has autocommit.
        return _execute(connection, *statement(text, parameters))

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Any:
        import pymysql  # type: ignore[import-untyped]

        address = self._address
        ((host, port),) = address.hosts
        place = {"unix_socket": host} if host.startswith("/") else {"host": host, "port": port}
        context = None
        if address.tls:
            # Checked against the machine's certificates, or the ones that the URL names.
            context = ssl.create_default_context(cafile=address.options.get("sslrootcert"))
            context.check_hostname = address.options["ssl-mode"] != "VERIFY_CA"
        # The server gives up what this client no longer waits for.
        limit = max(1, int(_urls.TIMEOUT * 5 / 6))
        return pymysql.connect(
            **place,
            user=address.user,
            password=address.password or "",
            database=address.database,
            # It would take whatever is left out from a file that a server may share.
            read_default_file=None,
            autocommit=True,
            charset="utf8mb4",
            connect_timeout=int(_urls.TIMEOUT),
            read_timeout=_urls.TIMEOUT,
            write_timeout=_urls.TIMEOUT,
            init_command=f"set session innodb_lock_wait_timeout = {limit}",
            ssl=context,
            ssl_disabled=context is None,
        )


class Silent(Unavailable):
    """No answer came in time: the server may still be working on it."""


def _ask(connection: Any, text: str, parameters: list[str]) -> Rows:
    """Runs a statement of its own, committed by itself."""
    steps = steps_of(text, parameters)
    step = next(steps)
    try:
        while True:
            try:
                answer = _execute(connection, *step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        rows: Rows = done.value
        return rows


def _execute(connection: Any, text: str, parameters: tuple[str, ...] | None = None) -> Rows:
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(text, parameters)
        found = cursor.fetchall() if cursor.description else None
        return rows_of(found, cursor.lastrowid)


Steps: TypeAlias = Generator[tuple[str, tuple[str, ...] | None], Rows, Rows]


def steps_of(text: str, parameters: list[str]) -> Steps:
    """Yields what to run, and is sent the answer to each, or thrown the error.

    Returns the answer to the statement, which is committed by itself no matter how the connection
    is set. Asks the server about its settings: not every driver knows what the server last said.
    """
    # Fails inside a transaction.
    yield "set transaction read write", None
    ((is_committed,),) = yield "select @@autocommit", None
    if is_committed == "0":
        yield "set autocommit = 1", None
    try:
        rows = yield statement(text, parameters)
    except Exception:
        if is_committed == "0":
            yield "set autocommit = 0", None
        raise
    if is_committed == "0":
        yield "set autocommit = 0", None
    return rows


def statement(text: str, parameters: list[str]) -> tuple[str, tuple[str, ...] | None]:
    """Returns a statement as these drivers take it."""
    # A statement has ? and % only for its parameters.
    return text.replace("?", "%s"), tuple(parameters) or None


def rows_of(found: Any, insert_id: int | None) -> Rows:
    """Returns rows as text; for a statement without rows, the insert id of its answer."""
    if found is None:
        return [[str(insert_id or 0)]]

    def cell(value: Any) -> str | None:
        if isinstance(value, bytes | bytearray):
            return value.decode()
        return None if value is None else str(value)

    # A connection may have its own kind of rows.
    cells = (row.values() if isinstance(row, dict) else row for row in found)
    return [[cell(value) for value in row] for row in cells]


def in_transaction() -> Refused:
    return Refused("25000", "the connection is inside a transaction")


def failure(error: Exception, hidden: tuple[str, ...] = ()) -> Exception:
    """Returns a driver's error as what the server reported, or why there is no answer."""
    error = getattr(error, "orig", None) or error  # of SQLAlchemy
    number = getattr(error, "errno", None) or (error.args[0] if error.args else None)
    message = without(hidden, error)
    if not isinstance(number, int):
        if isinstance(error, OSError):
            return Unavailable(message)
        return error
    if number == IN_TRANSACTION:
        return in_transaction()
    if "timed out" in message:
        return Silent(message)
    # Numbers from 2000 on are the client's own.
    if number < 1000 or 2000 <= number < 3000 or number in CLOSING:
        return Unavailable(message)
    return Refused(str(number), message)
