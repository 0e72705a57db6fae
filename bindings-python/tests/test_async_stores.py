"""Leases through the clients of asynchronous applications, which belong to an event loop."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import psycopg
import psycopg_pool
import pytest
import redis.asyncio
import servers
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm
import trio
from conftest import SECRET, outcome, run_python, status, until
from randflake import (
    InvalidArgumentError,
    InvalidTypeError,
    Randflake,
    Snowflake,
    StoreError,
    _async_clients,
    _postgres,
    _urls,
    init_store,
    stores,
)
from randflake._async_clients import on_this_loop
from servers import Server


@pytest.fixture
def postgres(start: Callable[[str], Server]) -> Server:
    return start("postgres")


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


@contextlib.asynccontextmanager
async def engine(url: str, driver: str) -> AsyncIterator[Any]:
    made = sqlalchemy.ext.asyncio.create_async_engine(
        url.replace("postgresql:", f"postgresql+{driver}:"), pool_size=2, max_overflow=0
    )
    try:
        yield made
    finally:
        await made.dispose()


@contextlib.asynccontextmanager
async def closing(opening: Awaitable[Any], close: str = "close") -> AsyncIterator[Any]:
    made = await opening
    try:
        yield made
    finally:
        await getattr(made, close)()


def pool(url: str) -> Any:
    return psycopg_pool.AsyncConnectionPool(url, min_size=2, max_size=2, open=False)


POSTGRES: dict[str, Callable[[str], Any]] = {
    "asyncpg.Pool": lambda url: asyncpg.create_pool(url, min_size=2, max_size=2),
    "asyncpg.Connection": lambda url: closing(asyncpg.connect(url)),
    "AsyncConnection": lambda url: closing(psycopg.AsyncConnection.connect(url)),
    "AsyncConnectionPool": pool,
    "AsyncEngine, asyncpg": lambda url: engine(url, "asyncpg"),
    "AsyncEngine, psycopg": lambda url: engine(url, "psycopg"),
}
"""Each makes a client, in an async with."""

REDIS: dict[str, Callable[[str], Any]] = {
    "redis.asyncio.Redis": redis.asyncio.Redis.from_url,
    "redis.asyncio.Redis, BlockingConnectionPool": lambda url: redis.asyncio.Redis.from_pool(
        redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=2)
    ),
}

CLIENTS = {
    **{name: ("postgres", make) for name, make in POSTGRES.items()},
    **{name: ("redis", make) for name, make in REDIS.items()},
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_lease_from_a_client_of_the_loop(
    start: Callable[[str], Server], client: str, namespace: str
) -> None:
    kind, make = CLIENTS[client]
    server = start(kind)
    init_store(server.url(), SECRET, "new", namespace=namespace, max_ttl=18, max_skew=3)

    async def main() -> None:
        async with make(server.url()) as store:
            options: dict[str, Any] = {"namespace": namespace, "ttl": 18, "max_skew": 3}
            async with Randflake.leased_async(store, SECRET, node_count=2, **options) as flake:
                ids = [flake.generate(), *await flake.generate_many_async(1000)]
                assert len(set(ids)) == 1001

                def held() -> dict[int, tuple[int, bool]]:
                    end_exclusive = status(flake).end_exclusive
                    return dict.fromkeys(flake.node_ids, (end_exclusive, True))

                # Unless it is renewed just then.
                await until(lambda: server.leases(namespace) == held())
                async with asyncio.timeout(60):
                    while not status(flake).renewals:
                        await asyncio.sleep(0.05)
                assert status(flake).last_error is None
            assert not any(is_held for _, is_held in server.leases(namespace).values())
            for call in (
                lambda: Randflake.leased(store, SECRET, **options),
                lambda: Snowflake.leased(store),
                lambda: init_store(store, SECRET, "new"),
            ):
                with pytest.raises(InvalidTypeError, match="leased_async"):
                    await asyncio.to_thread(call)

    asyncio.run(main())


def test_an_engine_that_blocks(postgres: Server, namespace: str) -> None:
    url = postgres.url().replace("postgresql:", "postgresql+psycopg:")
    engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0)
    options: dict[str, Any] = {"namespace": namespace, "create": True}
    with Randflake.leased(engine, SECRET, **options) as flake:
        assert flake.generate()
        with engine.connect() as connection:
            assert connection.execute(sqlalchemy.text("select 1")).scalar() == 1
    assert not any(is_held for _, is_held in postgres.leases(namespace).values())

    async def main() -> None:
        async with Randflake.leased_async(engine, SECRET, **options) as flake:
            assert flake.generate()

    asyncio.run(main())
    engine.dispose()
    other = sqlalchemy.create_engine("sqlite://")
    with pytest.raises(InvalidArgumentError, match=r"mysqlconnector://, got sqlite\+pysqlite"):
        Randflake.leased(other, SECRET)


def test_an_engine_that_lends_too_late(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller may have given up, and nobody would hold the grant."""
    url = postgres.url().replace("postgresql:", "postgresql+psycopg:")
    engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0)
    source = stores.source_of(engine)
    assert source is not None
    adapter = source.open()
    with monkeypatch.context() as patched:
        patched.setattr(_urls, "TIMEOUT", 0)
        with pytest.raises(stores.Unavailable, match="in time"):
            adapter.run("create table randflake_late ()", [])
    with engine.connect() as connection:
        assert not sqlalchemy.inspect(connection).has_table("randflake_late")
    assert adapter.run("select '1'", []) == [["1"]], "it was given back"
    engine.dispose()


def test_what_shares_a_transaction_with_the_application_is_no_store(
    postgres: Server, namespace: str
) -> None:
    url = postgres.url().replace("postgresql:", "postgresql+psycopg:")
    options: dict[str, Any] = {"poolclass": sqlalchemy.pool.StaticPool}
    engine = sqlalchemy.create_engine(url, **options)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("create table randflake_mine ()"))
        with pytest.raises(InvalidArgumentError, match="StaticPool"):
            Randflake.leased(engine, SECRET, namespace=namespace, create=True)
        connection.commit()
        assert sqlalchemy.inspect(connection).has_table("randflake_mine")
    begun = time.monotonic()
    scoped: Any = sqlalchemy.orm.scoped_session(sqlalchemy.orm.sessionmaker(engine))
    with sqlalchemy.orm.Session(engine) as session:
        for store in (session, scoped):
            with pytest.raises(InvalidTypeError, match=r"ession, whose transactions.*get_bind"):
                Randflake.leased(store, SECRET, acquire_timeout=600)
    assert time.monotonic() - begun < 120, "it waits for no lease"
    engine.dispose()

    async def main() -> None:
        engine = sqlalchemy.ext.asyncio.create_async_engine(url, **options)
        with pytest.raises(InvalidArgumentError, match="StaticPool"):
            await Randflake.leased_async(engine, SECRET)
        async with sqlalchemy.ext.asyncio.AsyncSession(engine) as session:
            with pytest.raises(InvalidTypeError, match="AsyncSession, whose transactions"):
                await Randflake.leased_async(session, SECRET)  # type: ignore[arg-type]
        await engine.dispose()
        async with redis.asyncio.Redis() as client:
            with pytest.raises(InvalidTypeError, match="Pipeline"):
                await Randflake.leased_async(client.pipeline(), SECRET)

    asyncio.run(main())


def test_a_transaction_is_refused(postgres: Server, namespace: str) -> None:
    options: dict[str, Any] = {"namespace": namespace, "create": True}

    async def main() -> None:
        async with POSTGRES["asyncpg.Connection"](postgres.url()) as store, store.transaction():
            with pytest.raises(InvalidArgumentError, match="inside a transaction"):
                await Randflake.leased_async(store, SECRET, **options)
        async with POSTGRES["AsyncConnection"](postgres.url()) as store:
            await store.execute("select 1")
            with pytest.raises(InvalidArgumentError, match="inside a transaction"):
                await Randflake.leased_async(store, SECRET, **options)
            await store.rollback()
            async with Randflake.leased_async(store, SECRET, **options):
                await store.rollback()
                (held,) = postgres.leases(namespace).values()
                assert held[1], "the grant was committed"

    asyncio.run(main())


def adapter_of(store: object) -> Any:
    """Returns what runs statements with a client of the running loop."""
    source = stores.source_of(on_this_loop(store))
    assert source is not None
    return source.open()


@pytest.mark.parametrize("client", POSTGRES)
def test_what_is_answered_is_committed_beside_transactions(postgres: Server, client: str) -> None:
    """The application rolls back what it does on the same client, all the time."""
    with psycopg.connect(postgres.url(), autocommit=True) as other:
        other.execute("drop table if exists kept")
        other.execute("create table kept (value text)")
    done = threading.Event()
    answered: list[str] = []

    def keeper(adapter: stores.Adapter) -> None:
        # A connection in use refuses; on a busy machine that may last.
        for number in range(30_000):
            if number >= 300 and answered:
                break
            with contextlib.suppress(stores.Refused, stores.Unavailable):
                statement = "insert into kept values ($1::text) returning value"
                answered.extend(str(row[0]) for row in adapter.run(statement, [str(number)]))
        done.set()

    async def transaction(store: Any) -> None:
        if isinstance(store, psycopg_pool.AsyncConnectionPool):
            async with store.connection() as lent:
                await lent.execute("insert into kept values ('mine')")
                await lent.rollback()
        elif isinstance(store, psycopg.AsyncConnection):
            await store.execute("insert into kept values ('mine')")
            await store.rollback()
        elif isinstance(store, sqlalchemy.ext.asyncio.AsyncEngine):
            async with store.connect() as lent:
                await lent.execute(sqlalchemy.text("insert into kept values ('mine')"))
                await lent.rollback()
        else:
            lent = store if isinstance(store, asyncpg.Connection) else await store.acquire()
            # A connection that is in use refuses a second user.
            for statement in ("begin", "insert into kept values ('mine')", "rollback"):
                while True:
                    with contextlib.suppress(asyncpg.InterfaceError):
                        await lent.execute(statement)
                        break
                    await asyncio.sleep(0)
            if lent is not store:
                await store.release(lent)

    async def main() -> None:
        async with POSTGRES[client](postgres.url()) as store:
            threading.Thread(target=keeper, args=[adapter_of(store)]).start()
            while not done.is_set():
                await transaction(store)
                await asyncio.sleep(0)

    asyncio.run(main())
    assert answered
    with psycopg.connect(postgres.url()) as other:
        kept = {value for (value,) in other.execute("select value from kept")}
    assert set(answered) <= kept
    assert "mine" not in kept


@contextlib.asynccontextmanager
async def resting(adapter: Any) -> AsyncIterator[Any]:
    """Makes an adapter close its own connection at the end."""
    try:
        yield adapter
    finally:
        await asyncio.to_thread(getattr(adapter, "rest", lambda: None))


async def refusal(adapter: stores.Adapter, statement: str) -> Exception:
    def ask() -> Exception:
        try:
            adapter.run(statement, [])
        except (stores.Refused, stores.Unavailable) as error:
            return error
        raise AssertionError("it answers")

    return await asyncio.to_thread(ask)


@pytest.mark.parametrize("client", POSTGRES)
def test_a_statement_that_is_given_up_ends_on_the_server(
    postgres: Server, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After a second, with much time for the cancel, which needs a connection.
    for module in (_postgres, _async_clients):
        monkeypatch.setattr(module, "CANCELLING", 20)
    monkeypatch.setattr(_urls, "TIMEOUT", 21.0)
    waiting = (
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
        " and query like '%randflake_locked%' and pid <> pg_backend_pid()"
    )

    async def main() -> None:
        async with POSTGRES[client](postgres.url()) as store:
            adapter = adapter_of(store)
            with psycopg.connect(postgres.url(), autocommit=True) as other:
                other.execute("drop table if exists randflake_locked")
                other.execute("create table randflake_locked (value text)")
                with other.transaction():
                    other.execute("lock table randflake_locked in access exclusive mode")
                    refused = await refusal(adapter, "select value from randflake_locked")
                    assert isinstance(refused, stores.Unavailable) or refused.code == "57014"  # type: ignore[attr-defined]
                    async with asyncio.timeout(60):
                        while other.execute(waiting).fetchone() != (0,):
                            await asyncio.sleep(0.05)
            if "Connection" not in client or "Pool" in client:
                rows = await asyncio.to_thread(adapter.run, "select '1'", [])
                assert [list(row) for row in rows] == [["1"]], "it lends another connection"

    asyncio.run(main())


@pytest.mark.parametrize("client", REDIS)
def test_what_fails_leaves_the_connections_of_the_application_alone(
    start: Callable[[str], Server], client: str
) -> None:
    """Its tasks use the same pool all the time, while statements fail and are discarded."""
    server = start("redis")
    done = threading.Event()
    failed = 0

    def keeper(adapter: Any) -> None:
        nonlocal failed
        try:
            for _ in range(300):
                with contextlib.suppress(stores.Refused):
                    adapter.run("RANDFLAKE", [])
                    failed -= 1
                failed += 1
                adapter.discard()
                assert adapter.run("ECHO", ["mine"]) == [["mine"]]
        finally:
            done.set()

    async def use(store: Any, number: int) -> int:
        times = 0
        while not done.is_set():
            assert await store.echo(f"{number}") == str(number).encode()
            times += 1
            if times % 3 == 0:
                await asyncio.sleep(0)  # now and then a connection is idle
        return times

    async def main() -> None:
        async with (
            REDIS[client](server.url()) as store,
            resting(adapter_of(store)) as adapter,
        ):
            thread = threading.Thread(target=keeper, args=[adapter])
            thread.start()
            async with asyncio.TaskGroup() as tasks:  # the first that fails fails the test
                users = [tasks.create_task(use(store, number)) for number in range(8)]
            assert all(user.result() for user in users)
            thread.join()
            assert failed == 300

    asyncio.run(main())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_paused_server_is_given_up(
    start: Callable[[str], Server], client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, make = CLIENTS[client]
    server = start(kind)
    statement = "PING" if kind == "redis" else "select '1'"

    async def main() -> None:
        async with make(server.url()) as store, resting(adapter_of(store)) as adapter:
            await asyncio.to_thread(adapter.run, statement, [])
            monkeypatch.setattr(_urls, "TIMEOUT", 1.0)
            with paused(server):
                refused = await refusal(adapter, statement)
                assert isinstance(refused, stores.Unavailable)
                again = await refusal(adapter, statement)
                assert isinstance(again, stores.Unavailable)
            monkeypatch.setattr(_urls, "TIMEOUT", 10.0)
            if "Connection" not in client or "Pool" in client:
                async with asyncio.timeout(60):
                    while not await answers(adapter, statement):
                        await asyncio.sleep(0.05)

    asyncio.run(main())


async def answers(adapter: stores.Adapter, statement: str) -> bool:
    try:
        await asyncio.to_thread(adapter.run, statement, [])
    except stores.Unavailable:
        return False
    return True


@contextlib.contextmanager
def paused(server: Server) -> Iterator[None]:
    """Stops a server with all of its processes; PostgreSQL has one for each connection."""
    import os
    import signal
    from pathlib import Path

    assert server.process is not None
    parent = server.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    everyone = [parent, *map(int, children)]
    for process in everyone:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in everyone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def test_a_client_whose_loop_has_ended_is_unavailable(
    postgres: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> tuple[Any, stores.Adapter, Randflake]:
        store = await asyncpg.create_pool(postgres.url(), min_size=1, max_size=1)
        flake = await Randflake.leased_async(store, SECRET, namespace=namespace, create=True)
        return store, adapter_of(store), flake

    async def terminate(store: Any) -> None:
        store.terminate()

    with asyncio.Runner() as runner:
        store, adapter, flake = runner.run(main())
        monkeypatch.setattr(_urls, "TIMEOUT", 300.0)
        begun = time.monotonic()
        with pytest.raises(stores.Unavailable, match="loop of its client has ended"):
            adapter.run("select '1'", [])  # it is not closed, but it is not running
        runner.run(terminate(store))
    with pytest.raises(stores.Unavailable, match="loop of its client has ended"):
        adapter.run("select '1'", [])
    assert time.monotonic() - begun < 120, "it waits for nothing"
    assert flake.generate(), "to the end of its lease"
    flake.close()
    assert outcome(flake.generate) == "CLOSED"


def test_the_process_ends_after_its_loop(postgres: Server, namespace: str) -> None:
    code = """
import asyncio, sys, time
import asyncpg
from randflake import Randflake

async def main():
    store = await asyncpg.create_pool(sys.argv[1], min_size=1, max_size=1)
    return await Randflake.leased_async(store, sys.argv[2], namespace=sys.argv[3], create=True)

flake = asyncio.run(main())
print(flake.inspect(flake.generate()).node_id == flake.node_ids[0])
"""
    assert run_python(code, postgres.url(), SECRET, namespace) == "True\n"


def test_the_loop_of_a_client_must_be_of_asyncio(postgres: Server) -> None:
    made = pool(postgres.url())

    async def main() -> None:
        with pytest.raises(InvalidArgumentError, match="loop of asyncio"):
            await Randflake.leased_async(made, SECRET)

    trio.run(main)


def test_a_dead_server(namespace: str) -> None:
    url = f"redis://127.0.0.1:{servers.free_port()}"

    async def main() -> None:
        async with redis.asyncio.Redis.from_url(url) as store:
            with pytest.raises(StoreError, match="127") as raised:
                await Randflake.leased_async(
                    store, SECRET, namespace=namespace, acquire_timeout=0.1
                )
            assert raised.value.code == "STORE_UNAVAILABLE"

    asyncio.run(main())
