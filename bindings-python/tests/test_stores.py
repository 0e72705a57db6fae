"""Namespaces that are made, and leases from servers that the tests start."""

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool
import pytest
import redis as redis_client
import servers
from conftest import (
    OTHER_SECRET,
    SECRET,
    eventually,
    in_child,
    outcome,
    run_python,
    status,
)
from randflake import (
    InvalidArgumentError,
    InvalidTypeError,
    Layout,
    Randflake,
    Snowflake,
    StoreError,
    _urls,
    generate_secret,
    init_store,
    list_leases,
    stores,
)
from randflake.stores import Refused, Unavailable
from servers import Server, limits
from statements import pg8000

ENGINES = ["postgres", "mariadb", "redis", "etcd"]
# Renewed after six seconds. On a busy machine, a request may take longer than a second of skew.
SHORT: dict[str, Any] = {"ttl": 18, "max_skew": 3}


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest, start: Callable[[str], Server]) -> Server:
    return start(request.param)


@pytest.fixture
def postgres(start: Callable[[str], Server]) -> Server:
    return start("postgres")


@pytest.fixture
def redis(start: Callable[[str], Server]) -> Server:
    return start("redis")


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """The test's own namespace."""
    return str(request.node.name)


def raised(call: Callable[[], Any]) -> StoreError:
    with pytest.raises(StoreError) as caught:
        call()
    return caught.value


def test_a_lease_from_a_url(server: Server, namespace: str) -> None:
    url = server.url()
    missing = raised(lambda: Randflake.leased(url, SECRET, namespace=namespace))
    assert missing.code == "STORE_NOT_INITIALIZED"
    init_store(url, SECRET, "new", namespace=namespace)
    init_store(url, SECRET, "new", namespace=namespace)  # checks it
    options = {"namespace": namespace, "node_count": 3}
    with Randflake.leased(url, SECRET, **options) as flake:
        with Randflake.leased(url, SECRET, **options) as other:
            assert len({*flake.node_ids, *other.node_ids}) == 6
            ids = flake.generate_many(1000) + other.generate_many(1000)
        assert len(set(ids)) == 2000
        assert {flake.inspect(id).node_id for id in ids[:1000]} <= set(flake.node_ids)
        foreign = raised(lambda: Randflake.leased(url, OTHER_SECRET, **options))
        assert foreign.code == "SECRET_MISMATCH"


def test_close_gives_back(server: Server, namespace: str) -> None:
    init_store(server.url(), SECRET, "new", namespace=namespace)
    for close in (Randflake.close, lambda flake: flake.__exit__(None, None, None)):
        flake = Randflake.leased(server.url(), SECRET, namespace=namespace)
        (node_id,) = flake.node_ids
        second = flake.inspect(flake.generate()).timestamp
        assert server.leases(namespace)[node_id] == (status(flake).end_exclusive, True)
        close(flake)
        assert server.leases(namespace)[node_id] == (second + 1, False)


def test_leases_of_a_layout(server: Server, namespace: str) -> None:
    url = server.url()
    missing = raised(lambda: Snowflake.leased(url, namespace=namespace))
    assert missing.code == "STORE_NOT_INITIALIZED"
    init_store(url, layout="twitter", namespace=namespace, mode="new")
    with (
        Snowflake.leased(url, namespace=namespace, node_count=2) as flake,
        Snowflake.leased(url, "leaf", namespace=namespace) as other,
    ):
        assert len({*flake.node_ids, *other.node_ids}) == 3
        ids = flake.generate_many(1000) + other.generate_many(1000)
        assert len(set(ids)) == 2000
        assert {flake.inspect(id).node_id for id in ids[:1000]} <= set(flake.node_ids)
    for call in (
        lambda: Snowflake.leased(url, "discord", namespace=namespace),
        lambda: init_store(url, layout=Layout("sonyflake"), namespace=namespace, mode="new"),
        lambda: init_store(url, SECRET, "new", namespace=namespace),
        lambda: init_store(url, namespace=namespace, mode="new"),  # type: ignore[call-overload]
        lambda: init_store(url, SECRET, "new", layout="twitter"),  # type: ignore[call-overload]
    ):
        with pytest.raises(InvalidArgumentError) as refused:
            call()
        assert refused.value.code == "INVALID_ARGUMENT"


def test_renewals(server: Server, namespace: str) -> None:
    init_store(server.url(), SECRET, "new", namespace=namespace, **limits(SHORT))
    with Randflake.leased(server.url(), SECRET, namespace=namespace, **SHORT) as flake:
        eventually(lambda: status(flake).renewals > 0)
        held = status(flake)
        assert (held.state, held.losses, held.last_error) == ("holding", 0, None)
        assert flake.generate()


@pytest.mark.parametrize("engine", ["postgres", "redis"])
def test_a_wrong_password_is_not_shown(
    start: Callable[[str], Server], engine: str, namespace: str
) -> None:
    url = start(engine).url("not-the-pass%20word")
    error = raised(lambda: Randflake.leased(url, SECRET, namespace=namespace, acquire_timeout=0))
    assert error.code == "STORE_UNAVAILABLE"
    shown = repr(error) + str(error)
    assert "password" in shown.lower()  # of that it speaks
    assert "not-the-pass" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush-hush@[::1/app",
        "postgresql://me:hush-hush@host/app?no-such-option=1",
        "redis://me:hush-hush@host:many",
        "etcd://me:hush-hush@host",
        "etcd://me-hush-hush@host:2379",
        "etcds://me:hush-hush@host:2379,host:many",
        "mysql://me:hush-hush@host/app?no-such-option=1",
        "mongodb://me:hush-hush@host/app",
    ],
)
def test_what_is_no_url_is_not_shown(url: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Randflake.leased(url, SECRET)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "module", "install"),
    [
        ("postgresql://app@localhost/app", "psycopg", "pip install 'randflake[postgres]'"),
        ("mysql://app@localhost/app", "pymysql", "pip install 'randflake[mysql]'"),
        ("rediss://localhost", "redis", "pip install 'randflake[redis]'"),
    ],
)
def test_a_missing_driver(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, install: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    error = raised(lambda: Randflake.leased(url, SECRET))
    assert error.code == "DRIVER_MISSING"
    assert install in str(error)


def test_a_server_that_is_not_there() -> None:
    for url in ("postgresql://app@127.0.0.1:{}/app", "redis://127.0.0.1:{}", "etcd://127.0.0.1:{}"):
        store = url.format(servers.free_port())
        call = lambda store=store: Randflake.leased(store, SECRET, acquire_timeout=0)  # noqa: E731
        assert raised(call).code == "STORE_UNAVAILABLE"


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_connection(postgres: Server, namespace: str, autocommit: bool) -> None:
    with psycopg.connect(
        postgres.url(), autocommit=autocommit, row_factory=psycopg.rows.dict_row
    ) as connection:
        options: dict[str, Any] = {"namespace": namespace, "create": True}
        with Randflake.leased(connection, SECRET, **options) as flake:
            assert flake.generate()
            # The grant is committed, no matter what the connection does.
            idle = psycopg.pq.TransactionStatus.IDLE
            assert connection.info.transaction_status == idle
            connection.rollback()
            with Randflake.leased(postgres.url(), SECRET, **options) as other:
                assert other.node_ids != flake.node_ids

        connection.execute("begin" if autocommit else "select 1")
        with pytest.raises(InvalidArgumentError, match="transaction") as caught:
            Randflake.leased(connection, SECRET, **options)
        assert caught.value.code == "INVALID_ARGUMENT"
        connection.rollback()
        assert not connection.closed, "it is the user's"


def test_a_pool(postgres: Server, namespace: str) -> None:
    options: dict[str, Any] = {"namespace": namespace, "create": True, "acquire_timeout": 0}
    with psycopg_pool.ConnectionPool(postgres.url(), min_size=1, max_size=1) as pool:
        pool.wait()
        with Randflake.leased(pool, SECRET, **options) as flake:
            assert flake.generate()
        with pool.connection():
            error = raised(lambda: Randflake.leased(pool, SECRET, **options))
            assert error.code == "STORE_UNAVAILABLE", "it is exhausted"
        with pool.connection() as connection:
            terminate = "select pg_terminate_backend(%s)"
            with psycopg.connect(postgres.url(), autocommit=True) as other:
                other.execute(terminate, (connection.info.backend_pid,))
        options["acquire_timeout"] = 60
        with Randflake.leased(pool, SECRET, **options) as flake:
            assert flake.generate(), "the pool has made another connection"


def test_a_connection_that_the_server_has_closed(postgres: Server, namespace: str) -> None:
    init_store(postgres.url(), SECRET, "new", namespace=namespace, **limits(SHORT))
    with Randflake.leased(postgres.url(), SECRET, namespace=namespace, **SHORT) as flake:
        with psycopg.connect(postgres.url(), autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where pid <> pg_backend_pid() and usename = 'randflake'"
            )
        eventually(lambda: status(flake).renewals > 0)
        assert status(flake).last_error is None, "it has connected again at once"


def adapter_of(store: object) -> stores.Adapter:
    source = stores.source_of(store)
    assert source is not None
    return source.open()


def refusals(adapter: stores.Adapter, times: int) -> list[str]:
    """Returns the error codes that statements fail with."""
    codes = []
    for _ in range(times):
        try:
            adapter.run("select count(*)::text from randflake_leases.entry", [])
        except stores.Refused as error:
            codes.append(error.code)
        except stores.Unavailable:
            codes.append("")
    return codes


def is_answered(adapter: stores.Adapter) -> bool:
    return not refusals(adapter, 1)


CANCELLED = "57014"


def test_a_locked_table_takes_one_connection_of_each(
    postgres: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_urls, "TIMEOUT", 1.5)
    url = postgres.url()
    init_store(url, SECRET, "new", namespace=namespace)
    count = (
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
        " and usename = 'randflake'"
    )
    with (
        psycopg_pool.ConnectionPool(url, min_size=2, max_size=2) as pool,
        psycopg.connect(url) as mine,
        psycopg.connect(url) as owner,
        psycopg.connect(url, autocommit=True) as watcher,
        ThreadPoolExecutor(30) as threads,
    ):
        own: list[Any] = [adapter_of(url) for _ in range(20)] + [pg8000(url)]
        adapters = own[:-1] + [adapter_of(store) for store in (pool, pool, mine)]
        # Each connects first, which may take longer than that on a busy machine.
        for adapter in adapters:
            eventually(partial(is_answered, adapter))  # nothing is locked
        owner.execute("lock table randflake_leases.entry in access exclusive mode")
        refused = [threads.submit(refusals, adapter, 3) for adapter in adapters]
        refused.append(threads.submit(refusals, own[-1], 1))
        most = 0
        while not all(future.done() for future in refused):
            row = watcher.execute(count).fetchone()
            assert row is not None
            most = max(most, row[0])
        codes = [future.result() for future in refused]
        assert all(len(code) == 3 for code in codes[:-1])
        # Each may have a connection that is about to end.
        assert 1 <= most <= 2 * len(codes), f"{most} waited at once"
        assert codes[-1] == [CANCELLED]
        # A borrowed connection goes back, unchanged if the server was informed in time.
        for _ in range(10):
            with pool.connection(timeout=60) as connection:
                connection.execute("select 1")
        assert mine.closed or mine.execute("select 1").fetchone() == (1,)
        owner.rollback()
        for adapter in own:
            adapter.discard()


def test_many_generators_have_one_connection_of_mysql(
    start: Callable[[str], Server], namespace: str
) -> None:
    """A connection without autocommit, which has it only during a statement."""
    server = start("mariadb")
    init_store(server.url(), SECRET, "new", namespace=namespace)
    with contextlib.closing(server.connect()) as mine, ThreadPoolExecutor(8) as threads:
        lease = partial(Randflake.leased, mine, SECRET, namespace=namespace)
        flakes = list(threads.map(lambda _: lease(), range(16)))
        assert len({node_id for flake in flakes for node_id in flake.node_ids}) == 16
        for flake in flakes:
            flake.close()
        assert not mine.get_autocommit()
        mine.begin()
        refused = raised_argument(partial(lease, acquire_timeout=0))
        assert "inside a transaction" in refused
    assert not any(is_held for _, is_held in server.leases(namespace).values())


@pytest.mark.parametrize(
    ("module", "name"),
    [("mariadb.connections", "Connection"), ("mariadb.connectionpool", "ConnectionPool")],
)
def test_the_module_mariadb_is_refused_by_its_name(module: str, name: str) -> None:
    """It truncates insert ids, which carry answers: it returns 3 for 2^53 + 3."""
    theirs = type(name, (), {"__module__": module, "cursor": None})
    for store in (theirs(), type("Mine", (theirs,), {})()):
        for call in (init_store, Randflake.leased):
            mode = ("new",) if call is init_store else ()
            refused = raised_argument(partial(call, store, SECRET, *mode))
            assert "module mariadb" in refused
            assert "a connection of PyMySQL" in refused


def raised_argument(call: Callable[[], Any]) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    return str(caught.value)


def test_what_no_synchronous_standby_has_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server reports a commit even if it is cancelled while it waits for a standby."""
    with servers.postgres(tmp_path) as server:
        with psycopg.connect(server.url(), autocommit=True) as owner:
            owner.execute("create table written (number int)")
            owner.execute("alter system set synchronous_standby_names = 'cut_off'")
            owner.execute("select pg_reload_conf()")
        with psycopg.connect(server.url(), autocommit=True) as mine:
            show = "show synchronous_standby_names"
            eventually(lambda: mine.execute(show).fetchone() == ("cut_off",))
            insert = "insert into written values (1) returning 'returned'"
            # The adapter of the guide, whose statement somebody else cancels.
            cancel = (
                "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'"
            )
            with ThreadPoolExecutor(1) as threads:
                guest = pg8000(server.url())
                asked = threads.submit(guest.run, insert, [])
                eventually(lambda: mine.execute(cancel).fetchone() is not None)
                with pytest.raises(Unavailable, match="cancelled its wait"):
                    asked.result(60)
                guest.discard()
            monkeypatch.setattr(_urls, "TIMEOUT", 1.5)
            for store in (server.url(), mine):
                with pytest.raises(Unavailable):
                    adapter_of(store).run(insert, [])


def test_a_client_that_hangs_is_asked_once() -> None:
    asked, hangs = [], threading.Event()

    class Hangs:
        server = "postgresql"

        def run(self, text: str, _: list[str]) -> Any:
            asked.append(text)
            hangs.wait(60)

    error = raised(lambda: Randflake.leased(Hangs(), SECRET, acquire_timeout=12))
    hangs.set()
    assert error.code == "STORE_UNAVAILABLE"
    assert len(asked) == 1


def test_a_redis_that_answers_without_end_is_given_up() -> None:
    """Each byte comes in time, but the answer never ends."""
    over = threading.Event()

    def answer(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client, _ = listener.accept()
            threading.Thread(target=answer, args=[listener], daemon=True).start()
            with client:
                client.sendall(b"$1000000\r\n")
                while not over.wait(0.1):
                    client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(2) as pool:
        threading.Thread(target=answer, args=[listener], daemon=True).start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        client = redis_client.Redis.from_url(url, socket_timeout=3)
        try:
            leasing = [
                pool.submit(raised, partial(Randflake.leased, store, SECRET, acquire_timeout=0))
                for store in (url, client)
            ]
            for error in [asked.result(120) for asked in leasing]:
                assert error.code == "STORE_UNAVAILABLE"
                assert "it does not answer" in str(error)
        finally:
            over.set()


@pytest.mark.parametrize("engine", ["postgres", "redis"])
def test_a_connection_that_is_not_needed_for_a_minute_is_closed(
    start: Callable[[str], Server], engine: str, namespace: str
) -> None:
    server = start(engine)
    init_store(server.url(), SECRET, "new", namespace=namespace)

    def connections() -> int:
        sockets = Path("/proc/net/tcp").read_text().splitlines()[1:]
        own = {str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()}
        return sum(
            cells[2].endswith(f":{server.port:04X}") and f"socket:[{cells[9]}]" in own
            for cells in (line.split() for line in sockets)
        )

    gc.collect()  # with stores of other tests
    before = connections()
    # Renewed every 20 seconds.
    with Randflake.leased(server.url(), SECRET, namespace=namespace, ttl=60) as often:
        needed = connections()
        assert needed > before
        with Randflake.leased(server.url(), SECRET, namespace=namespace) as seldom:
            eventually(lambda: connections() == needed)
            (node_id,) = seldom.node_ids
            assert often.generate() != seldom.generate()
        assert not server.leases(namespace)[node_id][1], "it has connected again, and given back"


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_of_redis(redis: Server, namespace: str, decode: bool, protocol: int) -> None:
    client = redis_client.Redis.from_url(redis.url(), decode_responses=decode, protocol=protocol)
    with client:
        init_store(client, SECRET, "new", namespace=namespace)
        with Randflake.leased(client, SECRET, namespace=namespace) as flake:
            assert flake.generate()
        with pytest.raises(InvalidTypeError):
            Randflake.leased(client.pipeline(), SECRET)


def test_a_redis_that_forgets(tmp_path: Path) -> None:
    with servers.redis(tmp_path, "--appendonly", "no", "--save", "") as server:
        error = raised(lambda: init_store(server.url(), SECRET, "new"))
        assert error.code == "WEAK_STORE"
        init_store(server.url(), SECRET, "new", allow_weak_store=True)
        assert raised(lambda: Randflake.leased(server.url(), SECRET)).code == "WEAK_STORE"
        with Randflake.leased(server.url(), SECRET, allow_weak_store=True) as flake:
            assert flake.generate()


class PlainRedis:
    """An adapter that runs statements, and cannot ask replicas."""

    server = "redis"

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, text: str, parameters: list[str]) -> Any:
        return self.rows(self.client.execute_command(text, *parameters))

    def rows(self, answer: Any) -> Any:
        if isinstance(answer, dict):
            answer = [part for pair in answer.items() for part in pair]
        rows = answer if isinstance(answer, list) else [answer]
        rows = rows if all(isinstance(row, list) for row in rows) else [rows]
        return [[None if cell is None else str(cell) for cell in row] for row in rows]


class AskingRedis(PlainRedis):
    def __init__(self, client: Any, confirmed_as: Callable[[int], Any] = int) -> None:
        super().__init__(client)
        self.confirmed_as = confirmed_as

    def run_and_wait(
        self, text: str, parameters: list[str], replicas: int, milliseconds: int
    ) -> Any:
        with self.client.pipeline(transaction=False) as pipeline:
            pipeline.execute_command(text, *parameters)
            pipeline.execute_command("WAIT", replicas, milliseconds)
            answer, confirmed = pipeline.execute()
        return self.rows(answer), self.confirmed_as(confirmed)


def test_what_the_replica_of_a_redis_has_not_confirmed_does_not_count(tmp_path: Path) -> None:
    with servers.redis_with_replica(tmp_path) as (master, replica):
        init_store(master.url(), SECRET, "new")
        client = redis_client.Redis.from_url(master.url(), decode_responses=True)
        with client:
            for store in (master.url(), client, AskingRedis(client)):
                with Randflake.leased(store, SECRET, acquire_timeout=60) as flake:
                    assert flake.generate()
                replica.send(signal.SIGSTOP)
                error = raised(partial(Randflake.leased, store, SECRET, acquire_timeout=0))
                replica.send(signal.SIGCONT)
                assert error.code == "STORE_UNAVAILABLE"
                assert "0 of its replicas have confirmed" in str(error)
            for says in (True, "1", 1.0, -1, 2**40, None):
                lies = AskingRedis(client, lambda _, says=says: says)
                error = raised(partial(Randflake.leased, lies, SECRET, acquire_timeout=0))
                assert error.code == "STORE_UNAVAILABLE"
                assert "the int that WAIT returned" in str(error)
            error = raised(lambda: Randflake.leased(PlainRedis(client), SECRET))
            assert error.code == "WEAK_STORE"
            assert "WAIT" in str(error)
            with Randflake.leased(PlainRedis(client), SECRET, allow_weak_store=True) as flake:
                assert flake.generate()


class InTurn(redis_client.ConnectionPool):
    """Lends its connections in turn, as when other users share it."""

    def release(self, connection: Any) -> None:
        super().release(connection)
        self._available_connections.insert(0, self._available_connections.pop())


def test_the_replicas_of_a_redis_are_asked_on_the_connection_that_has_written(
    tmp_path: Path,
) -> None:
    """On another connection, `WAIT` may be about earlier writes."""
    with servers.redis_with_replica(tmp_path) as (master, _):
        init_store(master.url(), SECRET, "new")
        pool = InTurn.from_url(master.url())
        for connection in [pool.get_connection() for _ in range(3)]:  # one for the monitor
            pool.release(connection)
        with redis_client.Redis(connection_pool=pool) as client, client.monitor() as monitor:
            for store in (master.url(), client):
                Randflake.leased(store, SECRET).close()
                with redis_client.Redis.from_url(master.url()) as other:
                    other.echo("end")
                said = []
                while not said or said[-1][1][0] != "ECHO":
                    seen = monitor.next_command()
                    if seen["client_type"] != "lua":
                        said.append((seen["client_port"], seen["command"].split(" ", 1)))
                asked = [at for at, (_, command) in enumerate(said) if command[0] == "WAIT"]
                assert {said[at - 1][1][0] for at in asked} == {"TIME", "EVAL"}, said
                assert all(said[at][0] == said[at - 1][0] for at in asked), said
        pool.disconnect()


def test_redis_is_made_by_init_alone(redis: Server, namespace: str) -> None:
    with pytest.raises(InvalidArgumentError, match="init"):
        Randflake.leased(redis.url(), SECRET, namespace=namespace, create=True)


def test_a_quarantine(server: Server, namespace: str) -> None:
    init_store(server.url(), SECRET, "quarantine", namespace=namespace)
    error = raised(
        lambda: Randflake.leased(server.url(), SECRET, namespace=namespace, acquire_timeout=0)
    )
    assert error.code == "STORE_QUARANTINED"


@pytest.mark.parametrize("of", [Path, str, os.fsencode])
def test_a_file_is_made_with_its_quarantine_or_without(
    tmp_path: Path, of: Callable[[Path], Any]
) -> None:
    store = of(tmp_path / "ids.db")
    init_store(store, SECRET, "quarantine", namespace="orders", max_ttl=600, max_skew=7)
    init_store(store, SECRET, "new", namespace="orders")  # checks it
    status = list_leases(store, namespace="orders")
    assert (status.limits.max_ttl, status.limits.max_skew) == (600, 7)
    assert 500 < status.floor - status.now <= 607
    error = raised(lambda: Randflake.leased(store, SECRET, namespace="orders", acquire_timeout=0))
    assert error.code == "STORE_QUARANTINED"

    init_store(store, layout="twitter", namespace="posts", mode="new")
    with pytest.raises(InvalidArgumentError, match="layout"):
        init_store(store, layout="twitter", namespace="orders", mode="new")
    error = raised(lambda: init_store(store, generate_secret(), "new", namespace="orders"))
    assert error.code == "SECRET_MISMATCH"
    with Snowflake.leased(store, layout="twitter", namespace="posts") as flake:
        assert flake.inspect(flake.generate()).node_id in flake.node_ids


@pytest.mark.parametrize(
    "arguments",
    [(SECRET,), (SECRET, "New"), (SECRET, ""), (SECRET, None), (SECRET, True), ()],
)
def test_making_a_namespace_takes_a_word(tmp_path: Path, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        init_store(tmp_path / "ids.db", *arguments)
    assert caught.value.code == "INVALID_ARGUMENT"
    for says in ("`new` if this store has never had it", "`quarantine` if it may", "deploy"):
        assert says in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_lost_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "ids.db"
    error = raised(lambda: Randflake.leased(file, SECRET, create=False))
    assert error.code == "STORE_NOT_INITIALIZED"
    assert "init_store" in str(error)
    assert not list(tmp_path.iterdir())
    init_store(file, SECRET, "new")
    Randflake.leased(file, SECRET, create=False).close()
    error = raised(lambda: Snowflake.leased(file, namespace="posts", create=False))
    assert error.code == "STORE_NOT_INITIALIZED"
    Snowflake.leased(file, namespace="posts", create=True).close()


def test_what_is_no_store_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="is missing; create it first"):
        init_store(tmp_path / "missing" / "ids.db", SECRET, "new")
    for wrong in ("mongodb://app:hidden-word@localhost/app", "", "ids\0.db", ":memory:"):
        with pytest.raises(InvalidArgumentError) as caught:
            init_store(wrong, SECRET, "new")
        assert "hidden-word" not in str(caught.value)
    with pytest.raises(InvalidTypeError):
        init_store(7, SECRET, "new")  # type: ignore[call-overload]
    assert not list(tmp_path.iterdir())


def test_a_child_connects_again(server: Server, namespace: str) -> None:
    init_store(server.url(), SECRET, "new", namespace=namespace)
    with Randflake.leased(server.url(), SECRET, namespace=namespace) as flake:
        ids = flake.generate_many(100)

        def work() -> tuple[list[int], tuple[int, ...]]:
            made = flake.generate_many(100)
            node_ids = flake.node_ids
            flake.close()
            return made, node_ids

        made, node_ids = in_child(work)
        ids += made + flake.generate_many(100)
        assert len(set(ids)) == 300
        assert node_ids != flake.node_ids


def test_a_child_leaves_the_connection_of_its_parent_alone(
    postgres: Server, redis: Server, namespace: str
) -> None:
    with (
        psycopg.connect(postgres.url()) as connection,
        psycopg_pool.ConnectionPool(postgres.url(), min_size=1, max_size=1) as pool,
        redis_client.Redis.from_url(redis.url()) as client,
    ):
        for store in (connection, pool, pg8000(postgres.url()), client):
            init_store(store, SECRET, "new", namespace=namespace)
            with Randflake.leased(store, SECRET, namespace=namespace) as flake:
                assert in_child(lambda flake=flake: outcome(flake.generate)) == "FORKED"
                assert flake.generate()


def test_an_adapter_for_another_driver(postgres: Server, namespace: str) -> None:
    adapter = pg8000(postgres.url())
    init_store(adapter, SECRET, "new", namespace=namespace)
    with Randflake.leased(adapter, SECRET, namespace=namespace) as flake:
        assert flake.generate()
        with Randflake.leased(postgres.url(), SECRET, namespace=namespace) as other:
            assert other.node_ids != flake.node_ids
    adapter.login["password"] = "hush-hush"
    error = raised(
        lambda: Randflake.leased(adapter, SECRET, namespace=namespace, acquire_timeout=0)
    )
    assert error.code == "STORE_UNAVAILABLE"
    assert "hush" not in str(error)


class Scripted:
    """Returns the answers that it is given."""

    server = "postgresql"

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.discarded = 0

    def run(self, text: str, parameters: list[str]) -> Any:
        assert isinstance(text, str)
        assert all(isinstance(parameter, str) for parameter in parameters)
        return self.answer()

    def discard(self) -> None:
        self.discarded += 1


def raiser(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (list, "no rows"),
        (lambda: None, "rows of str and None"),
        (lambda: "rows", "rows of str and None"),
        (lambda: [[1]], "rows of str and None"),
        (raiser(RuntimeError("hush-hush")), "RuntimeError"),
        (raiser(KeyboardInterrupt("hush-hush")), "KeyboardInterrupt"),
        (raiser(Unavailable("asleep")), "asleep"),
        (raiser(Refused("53300", "too many clients")), "53300: too many clients"),
    ],
)
def test_what_an_adapter_may_do(answer: Callable[[], Any], shown: str) -> None:
    adapter = Scripted(answer)
    error = raised(lambda: Randflake.leased(adapter, SECRET, acquire_timeout=0))
    assert error.code == "STORE_UNAVAILABLE"
    assert shown in str(error)
    assert "hush" not in str(error)
    assert adapter.discarded


def test_the_gil_is_free_while_a_client_waits() -> None:
    waiting, go_on = threading.Event(), threading.Event()

    def answer() -> Any:
        waiting.set()
        assert go_on.wait(60)
        raise Unavailable("asleep")

    def lease() -> None:
        outcome(lambda: Randflake.leased(Scripted(answer), SECRET, acquire_timeout=0))

    thread = threading.Thread(target=lease)
    thread.start()
    assert waiting.wait(60)
    go_on.set()
    thread.join(60)
    assert not thread.is_alive()


def test_the_end_of_a_process_gives_back(server: Server, namespace: str) -> None:
    code = """
import sys
from randflake import Randflake
flake = Randflake.leased(sys.argv[1], sys.argv[2], namespace=sys.argv[3])
print(*flake.node_ids, flake.inspect(flake.generate()).timestamp)
"""
    init_store(server.url(), SECRET, "new", namespace=namespace)
    printed = run_python(code, server.url(), SECRET, namespace)
    node_id, second = map(int, printed.split())
    assert server.leases(namespace) == {node_id: (second + 1, False)}


def test_an_interpreter_ends_while_threads_of_daemons_lease() -> None:
    """Each process ends at a different moment: Python stops its threads where they are."""
    code = """
import sys, threading, time
from randflake import Randflake

class Adapter:
    server = "postgresql"

    def run(self, text, parameters):
        if threading.get_native_id() % 2:
            time.sleep(1000)
        raise RuntimeError

def lease(timeout):
    while True:
        try:
            Randflake.leased(Adapter(), sys.argv[1], acquire_timeout=timeout)
        except Exception:
            pass

for timeout in (0, 0, 10, 10):
    threading.Thread(target=lease, args=[timeout], daemon=True).start()
time.sleep(float(sys.argv[2]))
"""
    for pause in (0, 0, 0.001, 0.01, 0.1):
        run_python(code, SECRET, str(pause))


def test_stores_of_the_wrong_type() -> None:
    import redis.asyncio

    for store in (1, object(), redis.asyncio.Redis(), threading.Lock()):
        with pytest.raises(InvalidTypeError) as caught:
            Randflake.leased(store, SECRET)  # type: ignore[arg-type]
        assert caught.value.code == "INVALID_ARGUMENT"
