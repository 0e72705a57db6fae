"""randflake.testing: stand-ins for leased generators in tests of applications."""

import asyncio
import copy
import logging
import pickle
from array import array
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
import randflake.testing
from conftest import NOW, SECRET, Main, in_child, outcome
from randflake import (
    Inspector,
    InvalidArgumentError,
    LeaseStatus,
    Randflake,
    RandflakeError,
    RetryLaterError,
    Snowflake,
    StoreError,
    Tickets,
)
from randflake._fake import LASTING, RETRY_LATER
from randflake._fake_tickets import LASTING_OF_TICKETS
from randflake.testing import FakeRandflake, FakeSnowflake, FakeTickets

Fake = FakeRandflake | FakeSnowflake
fakes = pytest.mark.parametrize("make", [FakeRandflake, FakeSnowflake])


def lease_of(flake: Fake) -> LeaseStatus:
    assert flake.lease is not None
    return flake.lease


def seconds(flake: FakeRandflake) -> list[int]:
    """Returns the times of three ids, after the first moment of a fake."""
    return [flake.inspect(flake.generate()).timestamp - NOW for _ in range(3)]


def test_the_ids_are_the_same_in_each_run_and_in_node() -> None:
    flake = FakeRandflake()
    assert (flake.generate_string(), flake.generate()) == ("d1ladjl4a6ikc", 1185974778066149345)
    parts = flake.inspect(flake.generate())
    assert (parts.timestamp, parts.node_id, parts.sequence) == (NOW, 1, 2)
    snowflake = FakeSnowflake(tick=0.001)
    assert snowflake.generate_many(2) == [1991476617016250368, 1991476617016250369]
    assert snowflake.generate() == 1991476617020444672


def test_every_form_of_call_makes_its_ids() -> None:
    flake = FakeRandflake(node_id=[7, 8])
    ids = array("q", bytes(8 * 3))
    flake.fill(ids)
    made: list[Any] = [*ids, *flake.generate_many(2), *flake.generate_array(2).tolist()]
    made += [*flake.generate_strings(2), flake.generate(), flake.generate_string()]
    assert [flake.inspect(id).sequence for id in made] == list(range(11))
    assert isinstance(flake.generate_array(1), np.ndarray)


@fakes
def test_each_passes_for_what_it_stands_for_and_shows_what_it_is(make: type[Fake]) -> None:
    flake = make()
    assert isinstance(flake, Randflake if make is FakeRandflake else Snowflake)
    assert repr(flake) == f"<randflake.testing.{make.__name__} node_ids=[1]>"
    assert {"generate", "inspect", "fail_next", "node_ids"} <= set(dir(flake))
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        assert outcome(lambda refused=refused: refused(flake)) == "INVALID_ARGUMENT"
    assert outcome(lambda: flake.extend_lease(NOW + 999)) == "INVALID_LEASE"
    with pytest.raises(AttributeError):
        flake.nothing  # type: ignore[union-attr]  # noqa: B018


@fakes
def test_making_one_is_logged(make: type[Fake], caplog: pytest.LogCaptureFixture) -> None:
    make()
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("randflake", logging.WARNING)
    ]
    assert make.__name__ in caplog.text


def test_the_clock_stands_still_ticks_and_is_set() -> None:
    still, ticking = FakeRandflake(), FakeRandflake(tick=0.5, start=NOW)
    assert (seconds(still), seconds(ticking)) == ([0, 0, 0], [0, 0, 1])
    assert ticking.time == NOW + 1.5
    still.time = datetime(2025, 11, 20, 13, 0, 7, tzinfo=timezone(timedelta(hours=1)))
    assert seconds(still) == [7, 7, 7]
    still.advance(2.5)
    assert seconds(still) == [9, 9, 9]
    still.time = NOW - 60
    assert outcome(still.generate) == "CLOCK_MOVED_BACK"


def test_a_clock_that_is_given_is_read() -> None:
    now = NOW + 5.0
    flake = FakeRandflake(clock=lambda: now)
    assert (seconds(flake), flake.time) == ([5, 5, 5], NOW + 5)
    now += 1
    assert seconds(flake) == [6, 6, 6]
    assert outcome(lambda: flake.advance(1)) == "INVALID_ARGUMENT"


def test_every_millisecond_of_a_second_is_its_own_tick() -> None:
    flake = FakeSnowflake(tick=0.001)
    times = [flake.inspect(flake.generate()).unix_ms for _ in range(1000)]
    assert times == list(range(NOW * 1000, NOW * 1000 + 1000))


def test_where_a_call_would_wait_the_clock_goes_on() -> None:
    flake = FakeRandflake(max_drift=0)
    flake.generate_many(131_072)
    assert (seconds(flake), flake.time) == ([1, 1, 1], NOW + 1)
    hasty = FakeRandflake(max_drift=0, max_wait=0)
    hasty.generate_many(131_072)
    assert outcome(hasty.generate) == "SEQUENCE_EXHAUSTED"


@pytest.mark.parametrize("code", RETRY_LATER)
def test_the_next_call_fails_with_what_passes(code: str) -> None:
    flake = FakeRandflake()
    flake.fail_next(code, retry_after=2)
    with pytest.raises(RetryLaterError) as raised:
        flake.generate()
    assert (raised.value.code, raised.value.retry_after) == (code, 2)
    assert isinstance(raised.value.__cause__, StoreError) == (code == "LEASE_UNAVAILABLE")
    assert flake.inspect(flake.generate()).sequence == 0


@pytest.mark.parametrize("code", LASTING)
def test_the_next_call_fails_with_what_lasts(code: str) -> None:
    flake = FakeRandflake()
    flake.fail_next(code, times=6)
    calls: list[Callable[[], object]] = [
        flake.generate,
        flake.generate_string,
        lambda: flake.generate_many(1),
        lambda: flake.generate_strings(1),
        lambda: flake.generate_array(1),
        lambda: flake.fill(array("q", [0])),
    ]
    for call in calls:
        with pytest.raises(RandflakeError) as raised:
            call()
        assert (type(raised.value), raised.value.code) == (RandflakeError, code)
    assert flake.inspect(flake.generate()).sequence == 0


def test_its_errors_are_of_the_classes_of_real_ones() -> None:
    with FakeRandflake(start=NOW, ttl=6, max_drift=0) as flake:
        flake.break_store()
        flake.advance(6)
        with pytest.raises(RetryLaterError) as expired:
            flake.generate()
    assert expired.value.code == "LEASE_UNAVAILABLE"
    assert 0 < expired.value.retry_after <= 5
    assert isinstance(expired.value.__cause__, StoreError)
    assert outcome(flake.generate) == "CLOSED"
    assert flake.lease is None


@fakes
def test_a_lease_is_renewed_and_ends_where_its_store_is_broken(make: type[Fake]) -> None:
    flake = make(ttl=60)
    first = lease_of(flake)
    assert (first.state, first.node_ids, first.renewals) == ("holding", (1,), 0)
    assert (first.start, first.end_exclusive, first.seconds_left) == (NOW, NOW + 60, 60)
    flake.advance(20)
    assert (lease_of(flake).renewals, lease_of(flake).end_exclusive) == (1, NOW + 80)
    flake.break_store("NODES_EXHAUSTED")
    broken = lease_of(flake)
    assert (broken.state, broken.last_error_at, broken.seconds_left) == ("retrying", NOW + 20, 60)
    assert broken.last_error is not None
    assert broken.last_error.code == "NODES_EXHAUSTED"
    flake.generate()
    flake.advance(60)
    assert (lease_of(flake).state, lease_of(flake).seconds_left) == ("expired", 0)
    with pytest.raises(RetryLaterError) as raised:
        flake.generate()
    assert raised.value.__cause__ == broken.last_error
    flake.mend_store()
    assert (lease_of(flake).state, lease_of(flake).last_error) == ("holding", None)
    id = flake.generate()
    made = flake.inspect(id)
    assert getattr(made, "timestamp", getattr(made, "unix_ms", 0) // 1000) == NOW + 80


@fakes
def test_it_stands_for_leased(make: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randflake, "Randflake", make)
    second: Any = SECRET if make is FakeRandflake else "discord"
    flake = randflake.Randflake.leased("redis://nowhere", second, namespace="a", ttl=60, max_skew=1)
    assert type(flake) is make
    assert lease_of(flake).end_exclusive == NOW + 60
    if isinstance(flake, FakeRandflake):
        assert Inspector(SECRET).inspect(flake.generate()).node_id == 1


@fakes
def test_asynchronous_calls_wait_for_nothing(make: type[Fake]) -> None:
    async def main() -> None:
        async with make.leased_async("redis://nowhere") as flake:
            assert type(flake) is make
            assert len(await flake.generate_many_async(3)) == 3
            flake.fail_next("LEASE_UNAVAILABLE")
            with pytest.raises(RetryLaterError):
                await flake.generate_many_async(1)
            await flake.ready()
            flake.break_store()
            flake.advance(400)
            waiting = asyncio.ensure_future(flake.ready())
            await asyncio.sleep(0.01)
            assert not waiting.done()
            flake.mend_store()
            await waiting
        assert outcome(flake.generate) == "CLOSED"
        opened = await make.leased_async()
        await opened.aclose()
        assert opened.lease is None

    asyncio.run(main())


@fakes
def test_changes_are_told_at_once_and_counted(make: type[Fake]) -> None:
    told: list[LeaseStatus] = []
    with make.lazy(on_lease_change=told.append) as flake:
        flake.generate_many(10)
        flake.break_store("NODES_EXHAUSTED")
        flake.advance(400)
        assert lease_of(flake).state == "expired"
        flake.mend_store()
        metrics = flake.metrics()
    states = [status.state for status in told]
    assert states == ["holding", "retrying", "expired", "holding", "stopped"]
    assert {(status.store, status.namespace) for status in told} == {("memory", "default")}
    assert (metrics.ids_generated, metrics.store_errors) == (10, {"NODES_EXHAUSTED": 1})
    assert (metrics.store_requests, metrics.clock_skew_seconds) == (3, 0)


def test_in_a_forked_child_it_makes_nothing() -> None:
    flake = FakeRandflake()
    assert in_child(lambda: outcome(flake.generate)) == "FORKED"
    assert flake.inspect(flake.generate()).sequence == 0


@pytest.mark.parametrize(
    "options",
    [
        {"start": "now"},
        {"start": float("nan")},
        {"start": datetime(2030, 1, 1)},  # noqa: DTZ001
        {"start": NOW, "clock": lambda: NOW},
        {"tick": 1, "clock": lambda: NOW},
        {"clock": 7},
        {"ttl": 0},
        {"node_id": -1},
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        FakeRandflake(**options)


def test_codes_that_nothing_raises_are_refused() -> None:
    flake = FakeRandflake(start=datetime(2030, 1, 1, tzinfo=UTC))
    assert outcome(lambda: flake.fail_next("INVALID_ID")) == "INVALID_ARGUMENT"
    assert outcome(lambda: flake.break_store("CLOSED")) == "INVALID_ARGUMENT"


def test_tickets_are_in_a_row_in_every_form_of_call() -> None:
    orders = FakeTickets("orders", start=7, step=2)
    numbers = array("q", bytes(8 * 2))
    orders.fill(numbers)
    made: list[Any] = [*numbers, orders.generate(), *orders.generate_many(2)]
    made += orders.generate_array(1).tolist()
    assert made == [7, 9, 11, 13, 15, 17]
    assert FakeTickets("orders").generate() == 1, "each begins at its start"
    metrics = orders.metrics()
    assert (metrics.numbers_generated, metrics.blocks_drawn, metrics.reserve) == (6, 1, 4)
    assert (metrics.waits, metrics.last_error) == (0, None)
    for wrong in (-1, 1.5, "3", None):
        assert outcome(lambda wrong=wrong: orders.generate_many(wrong)) == "INVALID_ARGUMENT"
    assert orders.generate() == 19


def test_tickets_pass_for_what_they_stand_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("randflake.Tickets", FakeTickets)
    orders = randflake.Tickets.leased(
        "redis://nowhere", "orders", start=5, step=5, max_block=9, namespace="shop"
    )
    assert isinstance(orders, Tickets)
    assert (orders.name, orders.generate(), orders.generate()) == ("orders", 5, 10)
    assert randflake.Tickets.lazy(None, "orders").generate() == 1
    assert repr(orders) == "<randflake.testing.FakeTickets name='orders'>"
    assert {"generate", "fail_next", "name"} <= set(dir(orders))
    assert "made a FakeTickets" in caplog.text
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        assert outcome(lambda refused=refused: refused(orders)) == "INVALID_ARGUMENT"
    for options in ({"start": 0}, {"step": "1"}):
        assert outcome(lambda options=options: FakeTickets("a", **options)) == "INVALID_ARGUMENT"
    for name in ("", "a b", 1):
        assert outcome(lambda name=name: FakeTickets(name)) == "INVALID_ARGUMENT"


def test_the_next_call_for_tickets_fails() -> None:
    orders = FakeTickets()
    orders.fail_next("LEASE_UNAVAILABLE", retry_after=2, times=2)
    with pytest.raises(RetryLaterError) as raised:
        orders.generate()
    assert isinstance(raised.value.__cause__, StoreError)
    assert (raised.value.retry_after, raised.value.__cause__.code) == (2, "STORE_UNAVAILABLE")
    assert outcome(lambda: orders.generate_many(2)) == "LEASE_UNAVAILABLE"
    for code in LASTING_OF_TICKETS:
        orders.fail_next(code)
        assert outcome(orders.generate) == code
    for code in ("SEQUENCE_EXHAUSTED", "STORE_UNAVAILABLE", ""):
        assert outcome(lambda code=code: orders.fail_next(code)) == "INVALID_ARGUMENT"
    assert orders.generate() == 1, "no failure takes a number"
    last = FakeTickets(start=2**53 - 1)
    assert (last.generate(), outcome(last.generate)) == (2**53 - 1, "LIFETIME_OVER")


def test_a_broken_store_leaves_the_tickets_that_were_drawn() -> None:
    orders = FakeTickets()
    orders.break_store(left=5)
    assert orders.metrics().reserve == 5
    assert outcome(lambda: orders.generate_many(6)) == "LEASE_UNAVAILABLE"
    assert orders.generate_many(3) == [1, 2, 3]
    numbers = array("q", bytes(8 * 3))
    assert outcome(lambda: orders.fill(numbers)) == "LEASE_UNAVAILABLE"
    assert orders.generate_array(2).tolist() == [4, 5]
    with pytest.raises(RetryLaterError) as raised:
        orders.generate()
    assert isinstance(raised.value.__cause__, StoreError)
    assert orders.metrics().store_errors == {"STORE_UNAVAILABLE": 1}
    orders.mend_store()
    assert (orders.generate(), orders.metrics().last_error) == (6, None)
    orders.break_store("STORE_QUARANTINED")
    with pytest.raises(StoreError) as refused:
        orders.generate()
    assert refused.value.code == "STORE_QUARANTINED"
    for code in ("LEASE_LOST", "NODES_EXHAUSTED", "CLOSED"):
        assert outcome(lambda code=code: orders.break_store(code)) == "INVALID_ARGUMENT"
    orders.close()
    assert (outcome(orders.generate), orders.metrics().reserve) == ("CLOSED", 0)


def test_asynchronous_calls_for_tickets(run: Callable[[Main], Any]) -> None:
    async def main() -> None:
        async with FakeTickets.leased_async("redis://nowhere", "orders", start=3) as orders:
            await orders.ready()
            assert await orders.generate_many_async(2) == [3, 4]
            assert (await orders.generate_array_async(1)).tolist() == [5]
            orders.break_store("WEAK_STORE")
            with pytest.raises(StoreError):
                await orders.ready()
            orders.break_store()
            assert outcome(orders.generate) == "LEASE_UNAVAILABLE"
            orders.mend_store()
            await orders.ready()
            assert orders.generate() == 6
        assert outcome(orders.generate) == "CLOSED"
        with await FakeTickets.leased_async(None, "orders") as orders:
            assert orders.generate() == 1
        await orders.aclose()

    run(main)


def test_in_a_forked_child_a_fake_hands_out_no_ticket() -> None:
    orders = FakeTickets()
    assert orders.generate() == 1
    assert in_child(lambda: outcome(orders.generate)) == "FORKED"
    assert orders.generate() == 2
