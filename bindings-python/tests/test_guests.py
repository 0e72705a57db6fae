"""As a guest on other people's servers: its connections, poolers, Sentinel, Cluster and Valkey."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool
import pytest
import redis as redis_client
import servers
from conftest import SECRET, eventually, in_child, outcome, status
from randflake import (
    InvalidArgumentError,
    Randflake,
    StoreError,
    init_store,
    list_leases,
    stores,
)
from redis.asyncio import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.retry import Retry
from servers import Server, limits

# Renewed every 20 seconds, so that the connection stays open.
OFTEN: dict[str, Any] = {"ttl": 60}
# Renewed after six seconds. On a busy machine, a request may take longer than a second of skew.
SHORT: dict[str, Any] = {"ttl": 18, "max_skew": 3}
GENERATORS = 20


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.STARTERS["redis"](tmp_path_factory.mktemp("redis")) as server:
        yield server


@contextlib.contextmanager
def counted(server: Server) -> Iterator[Callable[[], int]]:
    """Counts the connections of a server, except the counter's own."""
    if server.scheme == "redis":
        with redis_client.Redis.from_url(server.url()) as client:
            yield lambda: len(client.client_list()) - 1
        return
    count = (
        "select count(*) from pg_stat_activity"
        " where usename = 'randflake' and pid <> pg_backend_pid()"
        " and backend_type = 'client backend'"
    )
    with psycopg.connect(server.url(), autocommit=True) as watcher:

        def connections() -> int:
            (number,) = watcher.execute(count).fetchone() or (0,)
            return int(number)

        yield connections


def lease_all(store: object, namespace: str, **options: Any) -> list[Randflake]:
    """Leases many generators at once."""
    with ThreadPoolExecutor(GENERATORS) as threads:
        leasing = [
            threads.submit(Randflake.leased, store, SECRET, namespace=namespace, **options)
            for _ in range(GENERATORS)
        ]
    return [future.result() for future in leasing]


def close_all(flakes: list[Randflake]) -> None:
    with ThreadPoolExecutor(GENERATORS) as threads:
        list(threads.map(Randflake.close, flakes))


@pytest.mark.parametrize("engine", ["postgres", "redis"])
def test_all_generators_of_a_url_have_one_connection(
    request: pytest.FixtureRequest, engine: str
) -> None:
    server: Server = request.getfixturevalue(engine)
    init_store(server.url(), SECRET, "new")
    with counted(server) as connections:
        eventually(lambda: connections() == 0)
        flakes = lease_all(server.url(), "default", **OFTEN)
        assert connections() == 1
        assert len({node_id for flake in flakes for node_id in flake.node_ids}) == GENERATORS
        ids = [id for flake in flakes for id in flake.generate_many(100)]
        assert len(set(ids)) == len(ids)

        def child() -> tuple[object, object, int]:
            """Two generators lease again in the child."""
            with counted(server) as connections:
                first, second = (outcome(flake.generate) for flake in flakes[:2])
                return first, second, connections()

        first, second, in_use = in_child(child)
        assert in_use == 3, "the parent's, that of its watcher, and one of the child's"
        assert isinstance(first, int)
        assert isinstance(second, int)
        assert len({first, second, *ids}) == len(ids) + 2
        assert all(flake.generate() for flake in flakes), "the parent's is as it was"
        eventually(lambda: connections() == 1)

        close_all(flakes[1:])
        assert connections() == 1, "one generator needs it"
        flakes[0].close()
        eventually(lambda: connections() == 0)


@pytest.mark.parametrize("pool", [redis_client.ConnectionPool, redis_client.BlockingConnectionPool])
def test_all_generators_of_a_redis_client_have_one_connection_beside_it(
    redis: Server, pool: Any
) -> None:
    init_store(redis.url(), SECRET, "new", namespace="client")
    with (
        redis_client.Redis.from_pool(pool.from_url(redis.url())) as client,
        counted(redis) as connections,
    ):
        eventually(lambda: connections() == 0)
        flakes = lease_all(client, "client", **OFTEN)
        assert connections() == 1
        assert client.ping(), "the application's own"
        assert connections() == 2
        close_all(flakes)
        eventually(lambda: connections() == 1)  # the server notices slightly later


def test_a_redis_client_whose_password_changes(redis: Server) -> None:
    init_store(redis.url(), SECRET, "new", namespace="password")
    with redis_client.Redis.from_url(redis.url()) as client:
        settings = client.connection_pool.connection_kwargs
        right, settings["password"] = settings["password"], "wrong"
        options: dict[str, Any] = {"namespace": "password", "acquire_timeout": 0}
        with pytest.raises(StoreError, match="password"):
            Randflake.leased(client, SECRET, **options)
        settings["password"] = right
        with Randflake.leased(client, SECRET, **options) as flake:
            settings["password"] = "wrong"
            source = stores.source_of(client)
            assert source is not None
            adapter: Any = source.open()
            with pytest.raises(stores.Unavailable):
                adapter.run("PING", [])
            settings["password"] = right
            adapter.discard()
            assert adapter.run("PING", [])
            adapter.rest()
            assert flake.generate()


def test_locked_tables_hold_up_one_connection(postgres: Server) -> None:
    """Twenty generators that cannot renew: one statement at a time waits on the server."""
    # Renewed after ten seconds: all of them fail before their leases end.
    options: dict[str, Any] = {"ttl": 30, "max_skew": 5}
    init_store(postgres.url(), SECRET, "new", namespace="locked", **limits(options))
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    flakes = lease_all(postgres.url(), "locked", **options)
    with (
        counted(postgres) as connections,
        contextlib.closing(psycopg.connect(postgres.url())) as owner,
    ):
        owner.execute("lock table randflake_leases.entry in access exclusive mode")
        most = 0
        with psycopg.connect(postgres.url(), autocommit=True) as watcher:

            def all_have_failed() -> bool:
                nonlocal most
                (number,) = watcher.execute(waiting).fetchone() or (0,)
                # The connections of the owner and of this watcher.
                most = max(most, number, connections() - 2)
                assert all(flake.generate() for flake in flakes), "there is a lease"
                return all(status(flake).last_error is not None for flake in flakes)

            eventually(all_have_failed)

        def child() -> object:
            """Ends the lock without waiting: the parent's thread is in a statement here."""
            with psycopg.connect(postgres.url(), autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s)", (owner.info.backend_pid,))
            return outcome(flakes[0].generate)

        assert isinstance(in_child(child), int)
        # A connection that the server is about to end may still be there.
        assert 1 <= most <= 2
        renewals = [status(flake).renewals for flake in flakes]
        eventually(
            lambda: all(
                status(flake).renewals > before
                for flake, before in zip(flakes, renewals, strict=True)
            )
        )
    held = [node_id for flake in flakes for node_id in flake.node_ids]
    assert len(set(held)) == GENERATORS
    close_all(flakes)


POOLERS = {
    "transaction": ["pool_mode = transaction", "default_pool_size = 2"],
    "session": ["pool_mode = session"],
    "options are ignored": ["pool_mode = transaction", "ignore_startup_parameters = options"],
}


@pytest.mark.parametrize("mode", POOLERS)
def test_pgbouncer(postgres: Server, tmp_path: Path, mode: str) -> None:
    namespace = f"behind pgbouncer: {mode}"
    init_store(postgres.url(), SECRET, "new", namespace=namespace, **limits(SHORT))
    options: dict[str, Any] = {"namespace": namespace, **SHORT}
    with (
        servers.pgbouncer(tmp_path / "pgbouncer", postgres, *POOLERS[mode]) as bouncer,
        psycopg.connect(bouncer.url()) as connection,
        psycopg_pool.ConnectionPool(bouncer.url(), min_size=1) as pool,
        contextlib.ExitStack() as stack,
    ):
        flakes = [
            stack.enter_context(Randflake.leased(store, SECRET, **options))
            for store in [connection, pool, pool] + [bouncer.url()] * 5
        ]
        assert len({flake.node_ids[0] for flake in flakes}) == len(flakes)

        def are_renewed() -> bool:
            # If an answer takes more than 3 s, the connection is closed, and nobody opens this one.
            renewed = flakes[1:] if connection.closed else flakes
            statuses = [status(flake) for flake in renewed]
            return all(it.renewals > 0 and it.last_error is None for it in statuses)

        eventually(are_renewed)
        with psycopg.connect(postgres.url()) as owner:
            (limit,) = owner.execute("show statement_timeout").fetchone() or ("",)
            assert limit == "0"
        # Other clients of the pooler do not see what was set for our connection.
        with psycopg.connect(bouncer.url()) as other:
            (limit,) = other.execute("show statement_timeout").fetchone() or ("",)
            assert limit == "0"


def test_sentinel_promotes_a_replica(tmp_path: Path) -> None:
    """A client that asks Sentinel for the master, which is killed."""
    # The fence is as long as the longest lease, the skew and the lag: 33 seconds.
    init: dict[str, Any] = {"ttl": 18, "max_skew": 3}
    with (
        servers.redis_with_replica(tmp_path) as (master, replica),
        servers.redis_sentinel(tmp_path / "sentinel", master) as sentinel,
    ):
        asked = redis_client.Sentinel(
            [("127.0.0.1", sentinel.port)], socket_timeout=20, socket_connect_timeout=20
        )
        eventually(lambda: outcome_of(lambda: asked.discover_slaves("leases")) != [])
        no_retry = Retry(NoBackoff(), 0)
        login = {"password": servers.PASSWORD, "socket_timeout": 20, "retry": no_retry}
        client = asked.master_for("leases", **login)
        init_store(client, SECRET, "new", **limits(init))
        asyncio.run(lease_from_sentinel(sentinel, **init))
        with (
            Randflake.leased(client, SECRET, **init) as first,
            Randflake.leased(client, SECRET, **init) as second,
        ):
            before = {*first.node_ids, *second.node_ids}
            assert len(before) == 2
            master.stop(signal.SIGKILL)
            promoted = ("127.0.0.1", replica.port)
            eventually(lambda: outcome_of(lambda: asked.discover_master("leases")) == promoted)
            late = leased_once_it_can(client, **init)
            with late:
                # A holder renews its lease if that was clearly running; otherwise it gets another.
                eventually(lambda: all(status(it).state == "holding" for it in (first, second)))
                ids = [id for it in (first, second, late) for id in it.generate_many(1000)]
                assert len(set(ids)) == 3000
                held = {node_id for node_id, (_, held) in replica.leases("default").items() if held}
                assert {*first.node_ids, *second.node_ids, *late.node_ids} <= held


async def lease_from_sentinel(sentinel: Server, **options: Any) -> None:
    """A client of a loop that asks Sentinel."""
    asked = AsyncSentinel([("127.0.0.1", sentinel.port)])
    async with asked.master_for("leases", password=servers.PASSWORD) as client:
        async with Randflake.leased_async(client, SECRET, **options) as flake:
            assert flake.generate()
        assert await client.ping()
    for each in asked.sentinels:
        await each.aclose()


def outcome_of(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except redis_client.RedisError:
        return []


def leased_once_it_can(store: object, **options: Any) -> Randflake:
    """Leases once the quarantine is over; there must have been one."""
    codes = set()
    begun = time.monotonic()
    while True:
        assert time.monotonic() - begun < 600, f"never: {codes}"
        try:
            flake = Randflake.leased(store, SECRET, acquire_timeout=0, **options)
        except StoreError as error:
            # A request may wait longer than clocks may differ.
            if error.code not in ("STORE_QUARANTINED", "STORE_UNAVAILABLE", "CLOCK_SKEW"):
                raise
            codes.add(error.code)
        else:
            assert "STORE_QUARANTINED" in codes
            return flake


def test_redis_cluster(tmp_path: Path) -> None:
    """Namespaces on each node: all requests about one go to the node that has it."""
    with servers.redis_cluster(tmp_path) as nodes:
        cluster = redis_client.RedisCluster(
            host="127.0.0.1", port=nodes[0].port, password=servers.PASSWORD
        )
        used = set()
        ids: list[int] = []
        with contextlib.ExitStack() as stack:
            for namespace in map(str, range(12)):
                init_store(cluster, SECRET, "new", namespace=namespace, **limits(SHORT))
                flake = Randflake.leased(cluster, SECRET, namespace=namespace, **SHORT)
                ids += stack.enter_context(flake).generate_many(10)
                used.add(cluster.get_node_from_key(f"randflake:{{{namespace}}}").port)
                assert list_leases(cluster, namespace=namespace).held == 1
            assert used == {node.port for node in nodes}
            # A server that forgets is recognised by its own settings, not by another server's.
            by_port = {node.port: node for node in nodes}
            other = by_port[cluster.get_node_from_key("randflake:{0}").port]
            with redis_client.Redis.from_url(other.url()) as client:
                client.config_set("maxmemory-policy", "allkeys-lru")
            for namespace in map(str, range(12)):
                node = cluster.get_node_from_key(f"randflake:{{{namespace}}}")
                is_weak = node.port == other.port
                got = outcome(lambda it=namespace: again(cluster, it))
                assert got == ("WEAK_STORE" if is_weak else "leased")
            # A URL names one node.
            stranger = next(node for node in nodes if node is not other)
            with pytest.raises(StoreError, match="Redis Cluster") as caught:
                init_store(stranger.url(), SECRET, "new", namespace="0")
            assert caught.value.code == "STORE_UNAVAILABLE"
        cluster.close()


def again(store: object, namespace: str) -> str:
    with Randflake.leased(store, SECRET, namespace=namespace, **SHORT):
        return "leased"


def test_a_slot_that_moves(tmp_path: Path) -> None:
    """The node that gets a namespace is another server: it begins with a fence."""
    init: dict[str, Any] = {"ttl": 6, "max_skew": 1}
    options: dict[str, Any] = {"namespace": "moves", "max_wait": 60, **init}
    with servers.redis_cluster(tmp_path) as nodes:
        cluster = redis_client.RedisCluster(
            host="127.0.0.1", port=nodes[0].port, password=servers.PASSWORD, socket_timeout=10
        )
        init_store(cluster, SECRET, "new", namespace="moves", **limits(init))
        key = "randflake:{moves}"
        slot = cluster.keyslot(key)
        source_port = cluster.get_node_from_key(key).port
        (source,) = (node for node in nodes if node.port == source_port)
        target = next(node for node in nodes if node.port != source_port)
        with (
            Randflake.leased(cluster, SECRET, acquire_timeout=60, **options) as flake,
            redis_client.Redis.from_url(source.url()) as old,
            redis_client.Redis.from_url(target.url()) as new,
        ):
            before = flake.node_ids
            new_id, old_id = (it.execute_command("CLUSTER MYID") for it in (new, old))
            new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", old_id)
            old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", new_id)
            auth = ["AUTH", servers.PASSWORD, "KEYS", key]
            old.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 60_000, *auth)
            for it in (new, old):
                it.execute_command("CLUSTER SETSLOT", slot, "NODE", new_id)
            late = leased_once_it_can(cluster, **options)
            with late:
                eventually(lambda: status(flake).state == "holding")
                ids = flake.generate_many(1000) + late.generate_many(1000)
                assert len(set(ids)) == 2000
                assert set(before).isdisjoint(late.node_ids) or set(flake.node_ids) != set(before)
        cluster.close()


def test_a_cluster_whose_masters_have_replicas(tmp_path: Path) -> None:
    """A lease counts once the replica has it, and a promoted replica begins with a fence."""
    init: dict[str, Any] = {"ttl": 6, "max_skew": 1}
    options: dict[str, Any] = {"namespace": "replicas", "max_wait": 60, **init}
    with servers.redis_cluster(tmp_path, replicas=True) as nodes:
        cluster = redis_client.RedisCluster(
            host="127.0.0.1", port=nodes[0].port, password=servers.PASSWORD
        )
        init_store(cluster, SECRET, "new", namespace="replicas", **limits(init))
        port = cluster.get_node_from_key("randflake:{replicas}").port
        number = [node.port for node in nodes].index(port)
        master, replica = nodes[number], nodes[number + 3]
        with Randflake.leased(cluster, SECRET, acquire_timeout=60, **options) as flake:
            ids = flake.generate_many(100)
            replica.send(signal.SIGSTOP)
            with pytest.raises(StoreError, match="0 of its replicas have confirmed"):
                Randflake.leased(cluster, SECRET, namespace="replicas", acquire_timeout=0, **init)
            replica.send(signal.SIGCONT)
            eventually(lambda: status(flake).last_error is None)
            master.stop(signal.SIGKILL)
            with redis_client.Redis.from_url(replica.url()) as promoted:
                eventually(lambda: promoted.info("replication")["role"] == "master")
            master.start()  # as the required replica of the new master
            late = leased_once_it_can(cluster, **options)
            with late:
                eventually(lambda: status(flake).state == "holding")
                ids += flake.generate_many(1000) + late.generate_many(1000)
                assert len(set(ids)) == len(ids)
                assert set(flake.node_ids).isdisjoint(late.node_ids)
        cluster.close()


def test_valkey(tmp_path: Path) -> None:
    with servers.valkey(tmp_path) as server:
        init_store(server.url(), SECRET, "new", **limits(SHORT))
        with (
            redis_client.Redis.from_url(server.url()) as client,
            Randflake.leased(server.url(), SECRET, **SHORT) as one,
            Randflake.leased(client, SECRET, **SHORT) as other,
        ):
            assert one.node_ids != other.node_ids
            eventually(lambda: status(one).renewals > 0 and status(other).renewals > 0)
            assert one.generate() != other.generate()


def test_clients_of_valkey_are_refused() -> None:
    import valkey

    with pytest.raises(InvalidArgumentError, match=r"redis\.Redis") as caught:
        Randflake.leased(valkey.Valkey(), SECRET)  # type: ignore[arg-type]
    assert caught.value.code == "INVALID_ARGUMENT"
