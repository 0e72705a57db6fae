"""Runs statements of PostgreSQL with psycopg."""

from __future__ import annotations

import contextlib
import selectors
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from randflake import _urls
from randflake._adapter import Adapter, Refused, Rows, Unavailable
from randflake._urls import driver, without

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import psycopg

CANCELLING = 0.25
"""How much of the longest wait is left for a statement to be cancelled, in seconds."""


class Silent(Unavailable):
    """No answer came in time: the server may still be working on it."""


def opener(address: _urls.Address) -> Callable[[], Adapter]:
    driver("psycopg", "postgres")
    return lambda: OwnPostgres(address)


class Postgres:
    """psycopg. Uses libpq directly, since a connection may have its own kinds of rows and types."""

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
            raise Unavailable(without(self._hidden, error)) from None


@contextlib.contextmanager
def lent_by_engine(engine: Any) -> Iterator[psycopg.Connection[Any]]:
    """Lends a connection of an Engine of SQLAlchemy, whose pool may wait without limit."""
    begun = time.monotonic()
    lent = engine.raw_connection()
    if time.monotonic() - begun > _urls.TIMEOUT:
        lent.close()
        # Perhaps nobody is waiting for the statement any longer.
        raise Unavailable("the pool provided no connection in time")
    try:
        yield lent.driver_connection
    except Refused:
        raise
    except BaseException:
        lent.invalidate()
        raise
    finally:
        lent.close()


class OwnPostgres(Postgres):
    """A connection of a URL, opened when it is needed."""

    def __init__(self, address: _urls.Address) -> None:
        super().__init__(lambda: contextlib.nullcontext(self._connected()), address.hidden())
        self._address = address
        self._takes_options = True
        self._connection: psycopg.Connection[Any] | None = None

    def run(self, text: str, parameters: list[str]) -> Rows:
        idle_for_long = self._connection is not None
        try:
            return super().run(text, parameters)
        except Unavailable as error:
            self.discard()
            # Tried once more only if nothing is running any longer: any operation may be repeated.
            if not idle_for_long or isinstance(error, Silent):
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
                # Makes the server end statements that were given up, as while the tables are
                # locked. This is an option of the connection: SET through a pooler would stay with
                # a connection that the pooler later gives to other clients.
                limit = int(_urls.TIMEOUT * 1000 * 5 / 6)
                self._connection = self._connect(f"-c statement_timeout={limit}")
            except psycopg.OperationalError as error:
                # This is a pooler that refuses options for a connection: statements are cancelled
                # instead.
                if not any(it in str(error) for it in ("startup parameter", "command-line option")):
                    raise
                self._takes_options = False
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self, options: str = "") -> psycopg.Connection[Any]:
        import psycopg

        address = self._address
        ((host, port),) = address.hosts
        more: dict[str, Any] = dict(address.options)
        return psycopg.connect(
            host=host,
            port=port,
            user=address.user,
            password=address.password,
            dbname=address.database,
            # libpq takes whatever is left out from the environment, which would move the store.
            hostaddr="",
            options=options,
            target_session_attrs="any",
            autocommit=True,
            connect_timeout=int(_urls.TIMEOUT),
            **more,
        )


def _ask(connection: psycopg.Connection[Any], text: str, parameters: list[str]) -> Rows:
    """Runs a statement in a transaction of its own, no matter how the connection is set."""
    # Other threads wait for the connection, so none of them begins a transaction in between.
    if not connection.lock.acquire(timeout=_urls.TIMEOUT):
        raise Unavailable("the connection is in use by another thread")
    try:
        encoding = check_idle(connection)
        values = [value.encode(encoding) for value in parameters]
        try:
            connection.pgconn.send_query_params(text.encode(), values)
            result = _result(connection)
        except BaseException:
            # The answer may still arrive, as the answer to the next statement.
            connection.pgconn.finish()
            raise
        return rows_of(result, encoding)
    finally:
        connection.lock.release()


def _result(connection: psycopg.Connection[Any]) -> psycopg.pq.abc.PGresult:
    """Waits for the answer, and makes the server give up what takes too long."""
    import psycopg

    pgconn = connection.pgconn
    deadline = time.monotonic() + _urls.TIMEOUT
    cancel_at = deadline - CANCELLING
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
                if can_cancel():
                    with contextlib.suppress(psycopg.Error):
                        connection.cancel_safe(timeout=CANCELLING / 2)
            if not selector.select(max(0, deadline - time.monotonic())):
                raise Silent("it does not answer")

        steps = result_of(pgconn)
        try:
            while True:
                wait(read | write if next(steps) else read)
        except StopIteration as done:
            result: psycopg.pq.abc.PGresult = done.value
            return result


def check_idle(connection: Any) -> str:
    """Refuses a connection of psycopg in which a statement would not be a transaction of its own.

    Returns its encoding.
    """
    from psycopg.pq import PipelineStatus, TransactionStatus

    if connection.closed:
        raise Unavailable("the connection is closed")
    pgconn = connection.pgconn
    if (
        pgconn.transaction_status != TransactionStatus.IDLE
        or pgconn.pipeline_status != PipelineStatus.OFF
    ):
        raise in_transaction()
    encoding: str = connection.info.encoding
    return encoding


def in_transaction() -> Refused:
    return Refused("25P02", "the connection is inside a transaction")


def can_cancel() -> bool:
    """Returns whether a cancel has a time limit: with an older libpq it could wait forever."""
    import psycopg

    return psycopg.capabilities.has_cancel_safe()


def is_unconfirmed(file: str | None) -> bool:
    """Returns whether a warning says that a commit no longer waits for its standbys.

    No matter who cancels that wait, the statement still succeeds. The text is in the language of
    the server, but the name of PostgreSQL's source file is not.
    """
    return file is not None and file.endswith("syncrep.c")


UNCONFIRMED = "its wait for standbys was cancelled, and they may lack the write"
"""Also where this module has cancelled the statement because it took too long."""


def result_of(pgconn: Any) -> Generator[bool, None, psycopg.pq.abc.PGresult]:
    """Returns the result of the statement that was sent.

    Yields before each wait for the socket, with whether to wait until it is writable, too.
    """
    from psycopg.pq import DiagnosticField

    warned: list[str] = []
    handler = pgconn.notice_handler

    def notice(notice: psycopg.pq.abc.PGresult) -> None:
        warned.append((notice.error_field(DiagnosticField.SOURCE_FILE) or b"").decode())
        if handler is not None:
            handler(notice)

    pgconn.notice_handler = notice
    try:
        result = yield from _last_result(pgconn)
    finally:
        pgconn.notice_handler = handler
    if any(map(is_unconfirmed, warned)):
        raise Silent(UNCONFIRMED)
    return result


def _last_result(pgconn: Any) -> Generator[bool, None, psycopg.pq.abc.PGresult]:
    while pgconn.flush():
        yield True
        if pgconn.is_busy():
            pgconn.consume_input()
    results: list[psycopg.pq.abc.PGresult] = []
    while True:
        while pgconn.is_busy():
            yield False
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            return results[-1]
        results.append(result)


def rows_of(result: psycopg.pq.abc.PGresult, encoding: str) -> Rows:
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
