"""Stores with a server when something breaks: servers are stopped, killed and emptied."""

import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg_pool
import pytest
import redis as redis_client
import servers
from conftest import SECRET, eventually, outcome, status
from randflake import LeaseStatus, Randflake, RandflakeError, StoreError, init_store
from servers import PASSWORD, STARTERS, Server, limits
from sqlalchemy import create_engine

TTL = 12
SHORT: dict[str, Any] = {"ttl": TTL, "max_skew": 2}
# For tests that need a few requests to fail, each after seconds, while the lease lasts.
LONG: dict[str, Any] = {"ttl": 30, "max_skew": 2}


def leased(store: object, **options: Any) -> Randflake:
    return Randflake.leased(store, SECRET, **{**SHORT, **options})  # type: ignore[arg-type]


def refusal(store: object, **options: Any) -> StoreError:
    for _ in range(10):
        with pytest.raises(StoreError) as caught:
            leased(store, acquire_timeout=0, **options)
        # On a busy machine, a request may take longer than such a short skew allows.
        if caught.value.code != "CLOCK_SKEW":
            break
    return caught.value


def last_error(flake: Randflake) -> RandflakeError:
    eventually(lambda: status(flake).last_error is not None)
    error = status(flake).last_error
    assert error is not None
    return error


def silence(server: Server) -> None:
    """Takes a server down: cleanly, by a kill, or by making it stop answering."""
    how = {
        "postgresql": signal.SIGINT,
        "mysql": signal.SIGTERM,
        "etcd": signal.SIGKILL,
        "redis": signal.SIGSTOP,
    }
    if server.scheme == "redis":  # one that is restarted is in quarantine, see below
        server.send(how[server.scheme])
    else:
        server.stop(how[server.scheme])


def bring_back(server: Server) -> None:
    if server.scheme == "redis":
        server.send(signal.SIGCONT)
    else:
        server.start()


def an_outage_and_a_kill(server: Server) -> None:
    init_store(server.url(), SECRET, "new", **limits(SHORT))
    with leased(server.url(), max_wait=0) as flake:
        ids = [flake.generate()]
        end = time.time() + status(flake).seconds_left  # or later, if it is renewed just now
        silence(server)
        while isinstance(made := outcome(flake.generate), int):
            ids.append(made)
            assert time.time() < end + 120, "it goes on after its lease"
            time.sleep(0.02)
        assert made == "LEASE_UNAVAILABLE"
        assert time.time() >= end, "until then it goes on"
        assert max(flake.inspect(id).timestamp for id in ids) < status(flake).end_exclusive
        error = last_error(flake)
        assert error.code == "STORE_UNAVAILABLE"
        assert PASSWORD not in str(error)
        bring_back(server)
        eventually(lambda: isinstance(outcome(flake.generate), int))
        ids += flake.generate_many(1000)

        server.stop(signal.SIGKILL)
        renewals = status(flake).renewals
        server.start()
        if server.scheme == "redis":  # it may have forgotten something, and knows that
            quarantined = refusal(server.url())
            assert quarantined.code == "STORE_QUARANTINED"
            assert quarantined.retry_after is not None
            # The skew, and the time for which an old master may still grant.
            assert 0 < quarantined.retry_after <= TTL + SHORT["max_skew"] + 12
        else:
            with leased(server.url(), acquire_timeout=60) as other:
                ids += other.generate_many(1000)
        eventually(lambda: status(flake).renewals > renewals)
        ids += flake.generate_many(1000)
        # A killed Redis does not know whether it granted such a short lease.
        assert server.scheme == "redis" or status(flake).losses == 0
        assert len(set(ids)) == len(ids)


def forgets_everything(server: Server, empty: Callable[[Server], None]) -> None:
    init_store(server.url(), SECRET, "new", **limits(SHORT))
    with leased(server.url(), max_wait=0) as flake:
        end = time.time() + status(flake).seconds_left
        empty(server)
        assert refusal(server.url()).code == "STORE_NOT_INITIALIZED"
        made = outcome(flake.generate)
        is_over = time.time() >= end  # a slow machine may take this long
        assert made != "LEASE_UNAVAILABLE" or is_over, "what was granted is granted"
        init_store(server.url(), SECRET, "quarantine", **limits(SHORT))
        assert refusal(server.url()).code == "STORE_QUARANTINED"
        eventually(lambda: getattr(status(flake).last_error, "code", None) == "STORE_REPLACED")
        eventually(lambda: outcome(flake.generate) == "LEASE_UNAVAILABLE")
        end_exclusive = status(flake).end_exclusive
        with leased(server.url(), acquire_timeout=60) as other:
            start = other.inspect(other.generate()).timestamp
            assert start >= end_exclusive, "the quarantine outlasts every lease"
        eventually(lambda: isinstance(outcome(flake.generate), int))
        assert status(flake).start >= end_exclusive


def flush(server: Server) -> None:
    with redis_client.Redis.from_url(server.url()) as client:
        client.flushall()


def start_empty(server: Server) -> None:
    server.stop(signal.SIGKILL)
    shutil.rmtree(server.folder / "appendonlydir")
    server.start()


def waits_for_its_pool(server: Server) -> None:
    with psycopg_pool.ConnectionPool(server.url(), min_size=1, max_size=1) as pool:
        init_store(pool, SECRET, "new", **limits(LONG))
        with leased(pool, **LONG) as flake:
            with pool.connection():
                error = refusal(pool)
                assert error.code == "STORE_UNAVAILABLE"
                assert "connection" in str(error)
                assert last_error(flake).code == "STORE_UNAVAILABLE"
                assert flake.generate(), "it rides on"
            eventually(lambda: status(flake).renewals > 0)


def a_promoted_replica(folder: Path, lose: Callable[[Server], None]) -> None:
    """It lacks the last grants, and could grant the same node ids."""
    with contextlib.ExitStack() as stack:
        primary, replica = stack.enter_context(servers.mariadb_with_replica(folder))
        link = stack.enter_context(contextlib.closing(servers.Link(primary)))
        init_store(primary.url(), SECRET, "new", **limits(SHORT))
        engine = create_engine(link.url().replace("mysql:", "mysql+pymysql:"))
        stack.callback(engine.dispose)
        stores = [link.url(), engine]

        def lease_of_each() -> list[Randflake]:
            flakes = [leased(store, acquire_timeout=120, max_wait=0) for store in stores]
            return [stack.enter_context(flake) for flake in flakes]

        known = lease_of_each()
        servers.stop_taking(primary, replica)
        lost = lease_of_each()
        before = known + lost
        assert len({flake.node_ids for flake in before}) == len(before)
        ids = [id for flake in before for id in flake.generate_many(100)]

        lose(primary)
        servers.promote(replica)
        link.move(replica)
        ends = [status(flake).end_exclusive for flake in lost]
        for store in stores:
            # A pool may have connections that are closed, and lend each once.
            eventually(lambda store=store: refusal(store).code != "STORE_UNAVAILABLE")
            error = refusal(store)
            assert error.code == "STORE_QUARANTINED"
            assert error.retry_after is not None
            assert 0 < error.retry_after <= TTL + SHORT["max_skew"]

        def have_begun_again() -> bool:
            ids.extend(made for flake in before if isinstance(made := outcome(flake.generate), int))
            return all(status(it).start >= end for it, end in zip(lost, ends, strict=True))

        eventually(have_begun_again)
        assert all(status(flake).losses > 0 for flake in lost)
        others = lease_of_each()
        assert all(status(flake).start >= max(ends) for flake in others)
        for flake in before + others:
            eventually(lambda flake=flake: isinstance(outcome(flake.generate), int))
            ids += flake.generate_many(100)
        assert len(set(ids)) == len(ids)


def kill(server: Server) -> None:
    server.stop(signal.SIGKILL)


def cut_off(_: Server) -> None:
    """It keeps running, but nobody connects to it any longer."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """All at once: they mostly wait."""

    def on(engine: str, check: Callable[..., None], *arguments: object) -> Future[None]:
        folder = tmp_path_factory.mktemp(engine)

        def run() -> None:
            with STARTERS[engine](folder) as server:
                check(server, *arguments)

        return pool.submit(run)

    def on_replica(lose: Callable[[Server], None]) -> Future[None]:
        return pool.submit(a_promoted_replica, tmp_path_factory.mktemp("replica"), lose)

    with ThreadPoolExecutor(10) as pool:
        yield {
            **{engine: on(engine, an_outage_and_a_kill) for engine in STARTERS},
            "flush": on("redis", forgets_everything, flush),
            "empty": on("redis", forgets_everything, start_empty),
            "pool": on("postgres", waits_for_its_pool),
            "killed": on_replica(kill),
            "cut off": on_replica(cut_off),
        }


@pytest.mark.parametrize("engine", STARTERS)
def test_a_generator_rides_out_an_outage(running: dict[str, Future[None]], engine: str) -> None:
    running[engine].result()


@pytest.mark.parametrize("how", ["flush", "empty"])
def test_an_emptied_redis_grants_nothing(running: dict[str, Future[None]], how: str) -> None:
    running[how].result()


def test_a_pool_without_a_connection_to_spare(running: dict[str, Future[None]]) -> None:
    running["pool"].result()


@pytest.mark.parametrize("primary", ["killed", "cut off"])
def test_a_promoted_replica_of_mariadb(running: dict[str, Future[None]], primary: str) -> None:
    running[primary].result()


@pytest.mark.parametrize("engine", STARTERS)
def test_tls(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with STARTERS[engine](tmp_path, tls=True) as server:
        certificates = {name: str(server.folder / f"{name}.pem") for name in ("ca", "cert", "key")}
        shown = {
            "postgres": "?sslmode=verify-full&",
            "mariadb": "?ssl-mode=VERIFY_IDENTITY&",
            "redis": "?",
            "etcd": f"?sslcert={certificates['cert']}&sslkey={certificates['key']}&",
        }
        wary = (server.url() + shown[engine])[:-1]
        trusting = f"{server.url()}{shown[engine]}sslrootcert={certificates['ca']}"
        error = refusal(wary)
        assert error.code == "STORE_UNAVAILABLE"
        assert "certificate" in str(error)
        init_store(trusting, SECRET, "new", **limits(SHORT))
        with leased(trusting) as flake:
            assert flake.generate()
        if engine == "etcd":
            assert refusal(f"{server.url()}?sslrootcert={certificates['ca']}").code == error.code
            monkeypatch.setenv("SSL_CERT_FILE", certificates["ca"])
            with leased(wary) as flake:
                assert flake.generate()


def test_etcd_with_users(tmp_path: Path) -> None:
    with servers.etcd(tmp_path) as server:
        for user in ("root", "app"):
            server.etcd("auth/user/add", {"name": user, "password": PASSWORD})
            server.etcd("auth/role/add", {"name": user})
            server.etcd("auth/user/grant", {"user": user, "role": user})
        # The permission that the README names is enough: all keys that begin with randflake/.
        keys = {"key": "cmFuZGZsYWtlLw==", "range_end": "cmFuZGZsYWtlMA=="}
        permission = {"name": "app", "perm": {"permType": "READWRITE", **keys}}
        server.etcd("auth/role/grant", permission)
        server.etcd("auth/enable", {})

        def url(login: str) -> str:
            return server.url().replace("//", f"//{login}")

        init_store(url(f"app:{PASSWORD}@"), SECRET, "new", **limits(SHORT))
        with leased(url(f"app:{PASSWORD}@")) as flake:
            eventually(lambda: status(flake).renewals > 0)
        for login in ("app:hush-hush@", ""):
            error = refusal(url(login))
            assert error.code == "STORE_UNAVAILABLE"
            assert "hush" not in str(error)


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_an_outage_is_told_and_logged_in_order(
    kind: str, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "randflake")
    told: list[LeaseStatus] = []
    with STARTERS[kind](tmp_path_factory.mktemp(kind)) as server:
        init_store(server.url(), SECRET, "new", **limits(SHORT))
        with leased(server.url(), on_lease_change=told.append, max_wait=0) as flake:
            nodes = f"node ids {list(flake.node_ids)}"
            flake.generate()
            silence(server)
            eventually(lambda: outcome(flake.generate) == "LEASE_UNAVAILABLE")
            eventually(lambda: [status.state for status in told][-1] == "expired")
            bring_back(server)
            eventually(lambda: told[-1].state == "holding")
            metrics = flake.metrics()
        eventually(lambda: told[-1].state == "stopped")
    states = [status.state for status in told]
    assert states == ["holding", "retrying", "expired", "holding", "stopped"]
    place = server.url().replace(f":{PASSWORD}@", "@").replace("://@", "://")
    assert {status.store for status in told} == {place}
    assert [told[index].last_error is None for index in (0, 1, 2, 4)] == [True, False, False, True]
    lines = [record for record in caplog.records if record.name == "randflake"]
    levels = [line.levelname for line in lines]
    assert levels[:3] + levels[4:] == ["INFO", "WARNING", "ERROR", "INFO"]
    assert levels[3] == ("INFO" if told[3].node_ids == told[0].node_ids else "WARNING")
    for line in lines[:3]:
        assert nodes in line.getMessage()
        assert (
            f"{'leased' if line.levelname == 'INFO' else 'STORE_UNAVAILABLE'}" in line.getMessage()
        )
    assert PASSWORD not in caplog.text
    assert SECRET not in caplog.text
    assert metrics.store_errors is not None
    assert metrics.store_errors["STORE_UNAVAILABLE"] > 0
    assert metrics.store_requests is not None
    assert metrics.store_requests > metrics.store_errors["STORE_UNAVAILABLE"]
    assert metrics.store_request_seconds is not None
    assert metrics.store_request_seconds > 0
    assert metrics.clock_skew_seconds == 0
