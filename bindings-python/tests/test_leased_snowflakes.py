"""Snowflakes with leased node ids: what differs from Randflake; everything else is the same."""

import copy
import gc
import pickle
import time
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import LEASED_SECRET as SECRET, ends_in, in_child, locked, outcome, run_python
from randflake import (
    InvalidArgumentError,
    InvalidTypeError,
    Layout,
    LeaseStatus,
    LifetimeWarning,
    Randflake,
    RandflakeError,
    Snowflake,
    StoreError,
)

CUT = Layout(
    fields=[("time", 39), ("sequence", 8), ("node", 16)], tick_ms=7, epoch_ms=1_735_689_600_003
)
"""Ticks that second boundaries split."""


def leased(store: Any, layout: Any = "twitter", **options: Any) -> Snowflake:
    return Snowflake.leased(store, layout, **options)


def status_of(flake: Snowflake) -> LeaseStatus:
    status = flake.lease
    assert isinstance(status, LeaseStatus)
    return status


def until(what: str, is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def is_given_back(store: Path, node_ids: tuple[int, ...]) -> bool:
    """Returns whether the leases, of 300 seconds, have ended."""
    ends = ends_in(store)
    return all(ends[node_id] <= time.time() + 2 for node_id in node_ids)


@pytest.mark.parametrize(
    "layout",
    ["randflake", "twitter", "discord", "leaf", "sonyflake", "sonyflake2", "instagram", CUT],
)
def test_ids_rise_and_lie_in_the_lease(store: Path, layout: Any) -> None:
    with leased(store, layout) as flake:
        buffer = array("q", bytes(8 * 300))
        ids = [flake.generate(), *flake.generate_many(300), *flake.generate_array(300).tolist()]
        flake.fill(buffer)
        ids = [id % 2**64 for id in [*ids, *buffer, flake.generate()]]
        assert ids == sorted(set(ids))
        status = status_of(flake)
        assert status.state == "holding"
        assert status.node_ids == flake.node_ids
        expected = layout if isinstance(layout, Layout) else Layout(layout)
        assert flake.layout == expected
        for parts in map(flake.inspect, ids):
            assert parts.node_id in flake.node_ids
            assert status.start * 1000 <= parts.unix_ms
            assert parts.unix_ms + expected.tick_ms <= status.end_exclusive * 1000


def test_twitter_is_the_default_layout(store: Path) -> None:
    with Snowflake.leased(store) as flake:
        assert flake.layout == Layout("twitter")
        assert flake.node_ids[0] <= 1023
        assert repr(flake) == f"<randflake.Snowflake layout=twitter node_ids={[*flake.node_ids]}>"


def test_a_namespace_has_one_layout(store: Path) -> None:
    flakes = [leased(store), leased(store, "leaf", node_count=2)]  # the same ids
    assert len({node_id for flake in flakes for node_id in flake.node_ids}) == 3
    for layout in ("discord", CUT):
        with pytest.raises(
            InvalidArgumentError, match=r"has the layout twitter, not .*name another namespace"
        ):
            leased(store, layout)
    assert outcome(lambda: Randflake.leased(store, SECRET)) == "INVALID_ARGUMENT"
    with leased(store, "discord", namespace="other") as flake:
        assert flake.generate()
    Randflake.leased(store, SECRET, namespace="orders").close()
    with pytest.raises(StoreError) as raised:
        leased(store, "randflake", namespace="orders")
    assert raised.value.code == "SECRET_MISMATCH"


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        ("simpleflake", {}, "has no node ids"),
        ("nobody's", {}, "there is no layout"),
        ("twitter", {"node_count": 1024}, "1 to 1023 node ids, got 1024"),
        ("twitter", {"max_drift": 101}, "a third of the ttl"),
        ("twitter", {"ttl": 29}, "six times"),
        ("twitter", {"namespace": ""}, "got"),
        (Layout(fields=[("time", 31), ("node", 9)], tick_ms=60_000), {}, "at least 360 seconds"),
    ],
)
def test_what_is_refused(store: Path, layout: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as raised:
        leased(store, layout, **options)
    assert raised.value.code == "INVALID_ARGUMENT"
    assert not store.exists()


@pytest.mark.parametrize(
    "options", [{"layout": 1}, {"max_drift": None}, {"ttl": 1.5}, {"create": 1}]
)
def test_options_of_the_wrong_type(store: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidTypeError):
        leased(store, **options)
    assert not store.exists()


def test_unknown_and_positional_options_are_type_errors(store: Path) -> None:
    for call in (
        lambda: Snowflake.leased(store, "twitter", 1),  # type: ignore[call-arg]
        lambda: Snowflake.leased(store, nodes=1),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError):
            call()


def test_the_end_of_a_layout(store: Path) -> None:
    with pytest.raises(RandflakeError, match="2024-11-20T13:24:16Z") as raised:
        leased(store, "baidu")
    assert raised.value.code == "LIFETIME_OVER"
    assert not store.exists()
    fields = [("time", 40), ("node", 10), ("sequence", 12)]
    in_a_year = int(time.time() * 1000) + 365 * 86_400_000 - 2**40
    ending = Layout(fields=fields, epoch_ms=in_a_year)  # type: ignore[arg-type]
    with pytest.warns(LifetimeWarning, match="custom ends at"), leased(store, ending) as flake:
        assert flake.generate()


def test_a_burst_borrows_only_with_max_drift(store: Path) -> None:
    with leased(store.with_name("other.db"), max_wait=0) as never:
        with pytest.raises(InvalidArgumentError, match="at most 4096 ids, got 4097"):
            never.generate_many(4097)
        assert never.inspect(never.generate()).unix_ms <= time.time() * 1000
    with leased(store, CUT, namespace="cut", max_wait=0, max_drift=2) as flake:
        ids = flake.generate_array(60_000)  # 235 ticks of 256 ids: 1.6 seconds
        last = flake.inspect(int(ids[-1])).unix_ms
        assert flake.inspect(int(ids[0])).unix_ms + 1600 < last
        assert last <= time.time() * 1000 + 2000
        (node_id,) = flake.node_ids
    given_back = -(-(last + 7) // 1000)
    assert ends_in(store)[node_id] == given_back, "not before the end of the last tick"


def test_it_goes_on_for_many_terms_of_its_lease(store: Path) -> None:
    flake = leased(store, ttl=6, max_skew=0, max_wait=60)
    ids: list[int] = []

    def has_renewed() -> bool:
        ids.append(flake.generate())
        return status_of(flake).renewals >= 2

    until("two renewals", has_renewed)
    assert ids == sorted(set(ids))


def test_an_outage_ends_in_an_error_and_passes(store: Path) -> None:
    flake = leased(store, ttl=2, max_skew=0, max_wait=0)
    with locked(store):
        until("the lease is over", lambda: outcome(flake.generate) == "LEASE_UNAVAILABLE")
    until("it recovers", lambda: isinstance(outcome(flake.generate), int))


def test_closed(store: Path) -> None:
    with leased(store, node_count=2) as flake:
        id = flake.generate()
        node_ids = flake.node_ids
        with pytest.raises(InvalidArgumentError, match="automatically") as raised:
            flake.extend_lease(2_000_000_000)
        assert raised.value.code == "INVALID_LEASE"
        for call in (lambda: pickle.dumps(flake), lambda: copy.copy(flake)):
            with pytest.raises(InvalidTypeError):
                call()
    assert len(node_ids) == 2
    assert is_given_back(store, node_ids)
    for call in (flake.generate, lambda: flake.generate_many(1), lambda: flake.generate_array(1)):
        assert outcome(call) == "CLOSED"
    assert (flake.lease, flake.node_ids) == (None, ())
    assert flake.inspect(id).node_id in node_ids


def test_what_is_collected_is_given_back(store: Path) -> None:
    flake = leased(store)
    node_ids = flake.node_ids
    del flake
    gc.collect()
    until("it is given back", lambda: is_given_back(store, node_ids))


def test_a_child_leases_again_and_the_parent_continues(store: Path) -> None:
    flake = leased(store)
    before = flake.generate_many(100)
    node_ids = flake.node_ids

    def work() -> dict[str, Any]:
        shown = flake.lease, flake.node_ids
        made = [flake.generate(), *flake.generate_many(100), *flake.generate_many(20_000)]
        own = flake.node_ids
        parts = flake.inspect(before[0])
        flake.close()
        return {"shown": shown, "made": made, "own": own, "parts": parts}

    child = in_child(work)
    assert child["shown"] == (None, ())
    assert child["parts"] == flake.inspect(before[0])
    assert {flake.inspect(id).node_id for id in child["made"]} == set(child["own"])
    after = flake.generate_many(100)
    assert len({*before, *after, *child["made"]}) == 200 + 20_101
    assert flake.node_ids == node_ids
    assert not set(child["own"]) & set(node_ids)
    assert is_given_back(store, child["own"])
    assert not is_given_back(store, node_ids)


def test_the_end_of_a_process_gives_back(store: Path) -> None:
    code = """
import sys
from randflake import Snowflake

kept = Snowflake.leased(sys.argv[1], "sonyflake")
kept.generate()
print(*kept.node_ids)
"""
    printed = run_python(code, str(store))
    assert is_given_back(store, tuple(int(node_id) for node_id in printed.split()))


def test_processes_that_share_few_node_ids_repeat_nothing(store: Path) -> None:
    """Each of them leases one of two node ids, again and again."""
    code = """
import sys
from randflake import Layout, Snowflake

layout = Layout(fields=[("time", 41), ("sequence", 8), ("node", 1)], tick_ms=7,
                epoch_ms=1_735_689_600_003)
for _ in range(2):
    options = {"acquire_timeout": 120, "max_wait": 60}
    with Snowflake.leased(sys.argv[1], layout, ttl=6, max_skew=1, **options) as flake:
        print(*flake.generate_many(300))
"""
    with ThreadPoolExecutor(3) as pool:
        printed = list(pool.map(lambda _: run_python(code, str(store)), range(3)))
    ids = " ".join(printed).split()
    assert len(ids) == len(set(ids)) == 3 * 2 * 300


def test_the_layout_of_the_environment(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Snowflake.lazy(store).layout == Layout("twitter")
    monkeypatch.setenv("RANDFLAKE_LAYOUT", "twitter,epoch_ms=1577836800000")
    ours = Layout("twitter", epoch_ms=1577836800000)
    with Snowflake.leased(store) as flake:
        assert flake.layout == ours
        assert abs(flake.inspect(flake.generate()).unix_ms / 1000 - time.time()) < 3600
    assert Snowflake.lazy(store, None).layout == ours
    assert Snowflake.lazy(store, "sonyflake2").layout == Layout("sonyflake2")
    monkeypatch.setenv("RANDFLAKE_LAYOUT", "nobody's")
    with pytest.raises(InvalidArgumentError, match="RANDFLAKE_LAYOUT: there is no layout"):
        Snowflake.lazy(store)
