"""Sequential numbers from PostgreSQL, MariaDB, Redis and etcd, on servers that the tests start."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis as redis_client
import servers
from conftest import eventually, in_child, interrupted, outcome, run_python
from randflake import (
    CounterStatus,
    InvalidArgumentError,
    StoreError,
    Tickets,
    fence_store,
    fence_tickets,
    init_tickets,
    list_tickets,
    show_tickets,
)
from servers import Server


@pytest.fixture(params=["postgres", "mariadb", "redis", "etcd"])
def server(request: pytest.FixtureRequest, start: Callable[[str], Server]) -> Server:
    return start(request.param)


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """The test's own namespace."""
    return str(request.node.name)


def fenced(url: str, above: int, namespace: str = "tickets") -> CounterStatus:
    """Fences a counter; in Redis, once numbers can no longer be drawn from a former master."""
    done: list[CounterStatus] = []
    refusals: list[StoreError] = []

    def fences() -> bool:
        try:
            done.append(fence_tickets(url, "a", above, namespace=namespace))
        except StoreError as error:
            refusals.append(error)
        return bool(done)

    eventually(fences)
    assert all(error.code == "STORE_QUARANTINED" for error in refusals)
    assert all(error.retry_after is not None and error.retry_after <= 12 for error in refusals)
    return done[0]


def test_numbers_from_a_url(server: Server, namespace: str) -> None:
    url = server.url()
    for call in (
        lambda: Tickets.leased(url, "a", namespace=namespace),
        lambda: list_tickets(url, namespace=namespace),
        lambda: show_tickets(url, "a", namespace=namespace),
        lambda: fence_tickets(url, "a", 0, namespace=namespace),
    ):
        assert outcome(call) == "STORE_NOT_INITIALIZED"
    init_tickets(url, "new", namespace=namespace)
    init_tickets(url, "new", namespace=namespace)  # checks it
    with (
        Tickets.leased(url, "a", namespace=namespace, max_block=50, max_wait=60) as one,
        Tickets.leased(url, "a", namespace=namespace, max_wait=60) as other,
    ):
        numbers = one.generate_many(500) + other.generate_many(500)
        numbers += [tickets.generate() for _ in range(100) for tickets in (one, other)]
    assert len(set(numbers)) == 1200
    shown = show_tickets(url, "a", namespace=namespace)
    assert shown is not None
    assert shown.next is not None
    assert shown.next - 1 - shown.given_back == 1200, "what was left was given back"
    assert (shown.blocks, shown.must_be_fenced) == (0, False)
    assert list_tickets(url, namespace=namespace) == [shown]
    with pytest.raises(InvalidArgumentError, match="start"):
        Tickets.leased(url, "a", namespace=namespace, start=5)


def test_fences(server: Server, namespace: str) -> None:
    url = server.url()
    init_tickets(url, "new", namespace=namespace)
    with Tickets.leased(url, "a", namespace=namespace) as tickets:
        assert tickets.generate_many(3) == [1, 2, 3]
    fence_store(url, namespace=namespace)
    with pytest.raises(StoreError, match="fence_tickets") as raised:
        Tickets.leased(url, "a", namespace=namespace)
    assert raised.value.code == "STORE_QUARANTINED"
    assert fenced(url, 1000, namespace).next == 1001
    with Tickets.leased(url, "a", namespace=namespace) as tickets:
        assert tickets.generate() == 1001


def test_a_redis_that_forgets(tmp_path: Path) -> None:
    with servers.redis(tmp_path, "--appendonly", "no", "--save", "") as server:
        url = server.url()
        init_tickets(url, "new", allow_weak_store=True)
        for call in (
            lambda: Tickets.leased(url, "a"),
            lambda: show_tickets(url, "a"),
            lambda: fence_tickets(url, "a", 7),
        ):
            assert outcome(call) == "WEAK_STORE"
        assert show_tickets(url, "a", allow_weak_store=True) is None
        assert fence_tickets(url, "a", 7, allow_weak_store=True).next == 8
        with Tickets.leased(url, "a", allow_weak_store=True) as tickets:
            assert tickets.generate() == 8
        shown = show_tickets(url, "a", allow_weak_store=True)
        assert shown is not None
        assert shown.next == 9


def test_a_child_connects_again(server: Server, namespace: str) -> None:
    init_tickets(server.url(), "new", namespace=namespace)
    with Tickets.leased(server.url(), "a", namespace=namespace, max_wait=60) as tickets:
        numbers = tickets.generate_many(100)

        def work() -> list[int]:
            made = tickets.generate_many(100)
            tickets.close()
            return made

        numbers += in_child(work) + tickets.generate_many(100)
        assert len(set(numbers)) == 300


def test_the_end_of_a_process_gives_back(server: Server, namespace: str) -> None:
    code = """
import sys
from randflake import Tickets
tickets = Tickets.lazy(sys.argv[1], "a", namespace=sys.argv[2], min_block=100)
print(tickets.generate())
"""
    init_tickets(server.url(), "new", namespace=namespace)
    for number in ("1\n", "2\n"):
        assert run_python(code, server.url(), namespace) == number


def test_clients(start: Callable[[str], Server], namespace: str) -> None:
    postgres, redis = start("postgres"), start("redis")
    with (
        psycopg.connect(postgres.url(), autocommit=True) as connection,
        redis_client.Redis.from_url(redis.url()) as client,
    ):
        for store in (connection, client):
            init_tickets(store, "new", namespace=namespace)
            with Tickets.leased(store, "a", namespace=namespace, max_wait=60) as tickets:
                assert tickets.generate_many(30) == list(range(1, 31))
                assert in_child(lambda it=tickets: outcome(it.generate)) == "FORKED"
                assert tickets.generate() == 31


def test_a_client_of_the_loop(start: Callable[[str], Server], namespace: str) -> None:
    asyncpg = pytest.importorskip("asyncpg")
    url = start("postgres").url()
    init_tickets(url, "new", namespace=namespace)

    async def main() -> list[int]:
        async with (
            asyncpg.create_pool(url) as pool,
            Tickets.leased_async(pool, "a", namespace=namespace, max_wait=60) as tickets,
        ):
            await tickets.ready()
            return [tickets.generate(), *await tickets.generate_many_async(100)]

    assert asyncio.run(main()) == list(range(1, 102))
    with Tickets.leased(url, "a", namespace=namespace) as tickets:
        assert tickets.generate() == 102


def test_what_a_redis_has_lost_is_not_handed_out(tmp_path: Path) -> None:
    with servers.redis(tmp_path) as server:
        url = server.url()
        init_tickets(url, "new")
        tickets = Tickets.leased(url, "a", max_block=20, max_wait=0)
        made = tickets.generate_many(5)
        with redis_client.Redis.from_url(url) as client:
            client.flushall()
        init_tickets(url, "quarantine")
        with pytest.raises(StoreError):
            Tickets.leased(url, "a")
        # It has blocks from before, and continues with them: none of those numbers may come again.
        outcomes: list[Any] = []

        def ends() -> bool:
            outcomes.append(outcome(tickets.generate))
            return outcomes[-1] in ("STORE_QUARANTINED", "STORE_REPLACED")

        eventually(ends)
        made += [number for number in outcomes if isinstance(number, int)]
        tickets.close()
        assert fenced(url, max(made)).next == max(made) + 1
        with Tickets.leased(url, "a", max_wait=60) as again:
            made += again.generate_many(100)
        assert len(set(made)) == len(made)


class Hanging:
    """A client that never returns, as with a server behind a broken network."""

    server = "redis"

    def run(self, text: str, parameters: list[str]) -> Any:
        del text, parameters
        threading.Event().wait()


def test_ctrl_c_ends_the_wait_for_a_first_block() -> None:
    assert interrupted(lambda: Tickets.leased(Hanging(), "a", acquire_timeout=600)) < 120
    lazy = Tickets.lazy(Hanging(), "a", acquire_timeout=600)
    assert interrupted(lazy.generate) < 120
