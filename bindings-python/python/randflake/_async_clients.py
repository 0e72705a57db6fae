"""Runs statements with clients that belong to an event loop of asyncio.

The thread of a statement waits for the loop, never the other way around.
"""

# The thread looks every 50 ms whether the loop has ended. What takes longer than 3 seconds is
# cancelled, on the server too, and its connection closed. asyncpg has no lock: its connection is
# asked before and after a statement whether it is inside a transaction.

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from randflake import _mysql, _redis, _urls
from randflake._postgres import (
    CANCELLING,
    UNCONFIRMED,
    Silent,
    can_cancel,
    check_idle,
    in_transaction,
    is_unconfirmed,
    result_of,
    rows_of,
)
from randflake.errors import InvalidArgumentError
from randflake.stores import Refused, Rows, Source, Unavailable, check_engine, is_of, key_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    _Lend = Callable[[], AbstractAsyncContextManager[Any]]

_T = TypeVar("_T")

_SLICE = 0.05
"""How often a thread checks whether the loop that it waits for has ended, in seconds."""


def on_this_loop(store: object) -> object:
    """Returns the store of a client of the running loop, and any other store as it is."""
    lend = _lend_of(store)
    is_pipeline = is_of(store, "redis.asyncio.client", "Pipeline")  # which runs nothing by itself
    if lend is None and (is_pipeline or not is_of(store, "redis.asyncio", "Redis")):
        return store
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise InvalidArgumentError(
            f"a {type(store).__name__} needs a running event loop of asyncio; give the URL",
            "INVALID_ARGUMENT",
        ) from None
    if lend is not None:
        database = _Database(loop, *lend)
        # All generators that are given the same connection of MySQL take turns.
        is_one = lend[0] == "mysql" and type(store).__name__ == "Connection"
        key = f"the connection {id(store)} of the loop {id(loop)}" if is_one else None
        return Source(lend[0], lambda: database, survives_fork=False, key=key)
    key = f"{key_of(store)} of the loop {id(loop)}"
    return Source("redis", lambda: _Redis(loop, store), survives_fork=False, key=key)


def _lend_of(store: Any) -> tuple[str, _Lend] | None:
    """Returns the kind of server, and what lends a connection, for an asyncio client."""
    lend = _lend_of_mysql(store)
    if lend is not None:
        return "mysql", lend
    if is_of(store, "sqlalchemy.ext.asyncio", "AsyncEngine"):
        return check_engine(store, _DRIVERS), lambda: _lent_by_engine(store)
    lend = _lend_of_postgres(store)
    return None if lend is None else ("postgresql", lend)


_DRIVERS: dict[str, tuple[str, ...]] = {
    "postgresql": ("asyncpg", "psycopg"),
    "mysql": ("aiomysql", "asyncmy"),
}


def _lend_of_mysql(store: Any) -> _Lend | None:
    for module in ("aiomysql", "asyncmy"):
        if is_of(store, f"{module}.pool", "Pool"):
            return lambda: _lent_by_pool(store)
        if is_of(store, f"{module}.connection", "Connection"):
            return lambda: contextlib.nullcontext(store)
    return None


@contextlib.asynccontextmanager
async def _lent_by_pool(pool: Any) -> AsyncIterator[Any]:
    """A connection of aiomysql or asyncmy, closed if an answer may still come."""
    async with pool.acquire() as connection:
        try:
            yield connection
        except Refused:
            raise
        except BaseException:
            connection.close()
            raise


def _lend_of_postgres(store: Any) -> _Lend | None:
    if is_of(store, "asyncpg", "Pool"):
        return lambda: store.acquire(timeout=_urls.TIMEOUT)
    if is_of(store, "psycopg_pool", "AsyncConnectionPool"):
        return lambda: store.connection(timeout=_urls.TIMEOUT)
    if is_of(store, "asyncpg", "Connection") or is_of(store, "psycopg", "AsyncConnection"):
        return lambda: contextlib.nullcontext(store)
    return None


@contextlib.asynccontextmanager
async def _lent_by_engine(engine: Any) -> AsyncIterator[Any]:
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        try:
            yield driver
        except Refused:
            raise
        except BaseException:
            await connection.invalidate()
            raise


class _OnLoop:
    """Makes a loop do what a thread waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def _wait_for(self, ask: Callable[[], Coroutine[Any, Any, _T]], seconds: float) -> _T:
        """Runs a coroutine on the loop and returns its result, unless that takes too long."""
        loop = self._loop
        done = threading.Event()
        tasks: list[asyncio.Task[_T]] = []
        given_up = False

        def begin() -> None:
            if not given_up:
                tasks.append(loop.create_task(ask()))
                tasks[0].add_done_callback(lambda _: done.set())

        deadline = time.monotonic() + seconds
        try:
            if loop.is_running():
                loop.call_soon_threadsafe(begin)
            while loop.is_running() and not done.wait(_SLICE) and time.monotonic() < deadline:
                pass
            if not done.is_set():
                given_up = True
                # The loop may run again.
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
        except RuntimeError:  # the loop is closed
            pass
        if not done.is_set():
            if loop.is_running():
                raise Silent("it does not answer, or its event loop is busy")
            raise Unavailable("the event loop of its client has ended")
        try:
            return tasks[0].result()
        except TimeoutError:
            raise Silent("it does not answer") from None
        except asyncio.CancelledError:
            raise Unavailable("its task was cancelled") from None


class _Database(_OnLoop):
    """PostgreSQL or MySQL."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: str, lend: _Lend) -> None:
        super().__init__(loop)
        self.server = server
        self._lend = lend

    def run(self, text: str, parameters: list[str]) -> Rows:
        # Both may wait: the lender and the server.
        seconds = 2 * _urls.TIMEOUT + CANCELLING
        try:
            return self._wait_for(lambda: self._ask(text, parameters), seconds)
        except Exception as error:
            drivers = (("psycopg", "Error"), ("asyncpg", "PostgresError"), ("builtins", "OSError"))
            if any(is_of(error, *driver) for driver in drivers):
                raise Unavailable(str(error)) from None
            if self.server == "mysql":
                raise _mysql.failure(error) from None
            raise

    async def _ask(self, text: str, parameters: list[str]) -> Rows:
        lent = self._lend()
        try:
            async with asyncio.timeout(_urls.TIMEOUT):
                connection = await lent.__aenter__()
        except TimeoutError:
            raise Unavailable("no connection is free, or none can be made") from None
        try:
            if self.server == "mysql":
                rows = await _ask_mysql(connection, text, parameters)
            elif is_of(connection, "psycopg", "AsyncConnection"):
                rows = await _ask_psycopg(connection, text, parameters)
            else:
                rows = await _ask_asyncpg(connection, text, parameters)
        except BaseException as error:
            # What could not be given back was closed.
            with contextlib.suppress(Exception):
                await lent.__aexit__(type(error), error, error.__traceback__)
            raise
        with contextlib.suppress(Exception):
            await lent.__aexit__(None, None, None)
        return rows


async def _ask_asyncpg(connection: Any, text: str, parameters: list[str]) -> Rows:
    import asyncpg  # type: ignore[import-untyped]

    if connection.is_closed():
        raise Unavailable("the connection is closed")
    if connection.is_in_transaction():
        raise in_transaction()
    warned: list[str | None] = []

    def notice(_: object, message: Any) -> None:
        warned.append(getattr(message, "server_source_filename", None))

    connection.add_log_listener(notice)
    try:
        rows = await connection.fetch(text, *parameters, timeout=_urls.TIMEOUT - CANCELLING)
    except asyncpg.InterfaceError as error:  # another task uses it
        raise Unavailable(str(error)) from None
    except asyncpg.PostgresError as error:
        # After any other the connection is closed.
        if getattr(error, "severity_en", "ERROR") != "ERROR" or error.sqlstate is None:
            raise Unavailable(str(error)) from None
        raise Refused(error.sqlstate, str(error)) from None
    except BaseException:
        # Its answer may still arrive, as the answer to the next statement. This waits for the
        # request to the server to cancel it.
        with contextlib.suppress(Exception):
            await connection.close(timeout=CANCELLING)
        raise
    finally:
        # Once closed, it no longer belongs to its pool, and has no listeners.
        with contextlib.suppress(asyncpg.InterfaceError):
            connection.remove_log_listener(notice)
    if any(map(is_unconfirmed, warned)):
        raise Unavailable(UNCONFIRMED)
    # Another task may have begun a transaction before the statement was sent: it is not committed.
    if connection.is_in_transaction():
        raise in_transaction()
    return [list(row.values()) for row in rows]


async def _ask_mysql(connection: Any, text: str, parameters: list[str]) -> Rows:
    """As in a blocking connection."""
    steps = _mysql.steps_of(text, parameters)
    step = next(steps)
    try:
        async with asyncio.timeout(_urls.TIMEOUT):
            while True:
                try:
                    answer = await _execute_mysql(connection, *step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
    except StopIteration as done:
        rows: Rows = done.value
        return rows
    except BaseException as error:
        # The answer may still arrive, as the answer to the next statement.
        is_said = isinstance(error, Exception) and isinstance(_mysql.failure(error), Refused)
        if not is_said:
            connection.close()
        raise


async def _execute_mysql(connection: Any, text: str, parameters: tuple[str, ...] | None) -> Rows:
    async with connection.cursor() as cursor:
        await cursor.execute(text, parameters)
        found = await cursor.fetchall() if cursor.description else None
        return _mysql.rows_of(found, cursor.lastrowid)


async def _ask_psycopg(connection: Any, text: str, parameters: list[str]) -> Rows:
    """As in a blocking connection."""
    # Other tasks wait for the connection, so none of them begins a transaction in between.
    try:
        async with asyncio.timeout(_urls.TIMEOUT):
            await connection.lock.acquire()
    except TimeoutError:
        raise Unavailable("the connection is in use by another task") from None
    try:
        encoding = check_idle(connection)
        values = [value.encode(encoding) for value in parameters]
        try:
            connection.pgconn.send_query_params(text.encode(), values)
            result = await _result(connection)
        except BaseException:
            # The answer may still arrive, as the answer to the next statement.
            connection.pgconn.finish()
            raise
        return rows_of(result, encoding)
    finally:
        connection.lock.release()


async def _result(connection: Any) -> Any:
    """Waits for the answer, and makes the server give up what takes too long."""
    import psycopg

    pgconn = connection.pgconn
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _urls.TIMEOUT
    cancel_at = deadline - CANCELLING
    ready = asyncio.Event()

    async def wait(*, write: bool) -> None:
        nonlocal cancel_at
        ready.clear()
        loop.add_reader(pgconn.socket, ready.set)
        if write:
            loop.add_writer(pgconn.socket, ready.set)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(cancel_at):
                    await ready.wait()
                return
            if cancel_at < deadline:
                cancel_at = deadline
                if can_cancel():
                    with contextlib.suppress(psycopg.Error):
                        await connection.cancel_safe(timeout=CANCELLING / 2)
            async with asyncio.timeout_at(deadline):
                await ready.wait()
        finally:
            loop.remove_reader(pgconn.socket)
            loop.remove_writer(pgconn.socket)

    steps = result_of(pgconn)
    try:
        while True:
            await wait(write=next(steps))
    except StopIteration as done:
        return done.value


class _Redis(_OnLoop):
    server = "redis"

    def __init__(self, loop: asyncio.AbstractEventLoop, client: Any) -> None:
        import redis.asyncio

        super().__init__(loop)
        self._client = _redis.of_its_own(client, redis.asyncio)
        self._host = client  # whose Sentinel says where the master is

    def run(self, text: str, parameters: list[str]) -> Rows:
        return _redis.rows_of(self._run(lambda: self._client.execute_command(text, *parameters)))

    def run_and_wait(
        self, text: str, parameters: list[str], replicas: int, milliseconds: int
    ) -> tuple[Rows, int]:
        async def ask() -> list[Any]:
            async with self._client.pipeline(transaction=False) as pipeline:
                pipeline.execute_command(text, *parameters)
                pipeline.execute_command("WAIT", replicas, milliseconds)
                # Its own exception would repeat the statement, with the token in it.
                replies: list[Any] = await pipeline.execute(raise_on_error=False)
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
            return replies

        answer, confirmed = self._run(ask)
        return _redis.rows_of(answer), int(confirmed)

    def discard(self) -> None:
        import redis.asyncio

        unwanted = self._client
        self._client = _redis.of_its_own(self._host, redis.asyncio)  # a password may have changed
        self._run(unwanted.connection_pool.disconnect)

    rest = discard

    def _run(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        from redis import RedisError, ResponseError

        async def bounded() -> Any:
            async with asyncio.timeout(_urls.TIMEOUT):
                return await ask()

        try:
            return self._wait_for(bounded, _urls.TIMEOUT + CANCELLING)
        except ResponseError as error:
            raise Refused(type(error).__name__, str(error)) from None
        except RedisError as error:
            raise Unavailable(str(error)) from None
