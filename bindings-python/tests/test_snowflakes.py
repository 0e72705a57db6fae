"""`Snowflake`: the behaviour of `Randflake`, over any layout."""

import copy
import multiprocessing
import pickle
import time
from array import array
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from conftest import NOW, ScriptedClock, cases, in_child, named, outcome, run_python, together
from numpy.typing import NDArray
from randflake import (
    InvalidArgumentError,
    InvalidTypeError,
    Layout,
    Lease,
    LifetimeWarning,
    RandflakeError,
    RetryLaterError,
    Snowflake,
)
from test_conformance import TimelineClock

LEASE = Lease(NOW, NOW + 300)
LIVE = ["twitter", "discord", "leaf", "sonyflake", "sonyflake2", "instagram", "randflake"]
"""The presets that have a node id and have not ended."""


OWN: dict[str, Any] = {
    "uid_generator_readme": {
        "fields": [("time", 29), ("node", 21), ("sequence", 13)],
        "tick_ms": 1000,
        "epoch_ms": 1_474_300_800_000,
    },
    "uid_starter": {
        "fields": [("time", 30), ("node", 16), ("sequence", 7)],
        "tick_ms": 1000,
        "epoch_ms": 1_550_592_000_000,
    },
}


def showing(unix_ms: int) -> float:
    """Returns the unix seconds of the middle of a millisecond, so that rounding cannot leave it."""
    return (unix_ms + 0.5) / 1000


def generator(**options: Any) -> Snowflake:
    return Snowflake(1, **{"clock": ScriptedClock(), **options})


class FineClock:
    """Counts nanoseconds, since a float would lose a sleep of a few."""

    def __init__(self) -> None:
        self.nanos = NOW * 10**9
        self.sleeps: list[float] = []

    def now(self) -> float:
        return self.nanos / 10**9

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.nanos += round(seconds * 10**9)


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(RandflakeError) as raised:
        call()
    return raised.value.code


@pytest.mark.parametrize("case", cases("layouts.json") + cases("peers.json"))
def test_a_generator_makes_the_ids_of_the_vectors(case: dict[str, Any]) -> None:
    name = case["layout"]
    if name in ("uid_generator_readme", "uid_starter"):
        layout = Layout(**OWN[name])
    elif name == "simpleflake":
        return  # its ticks cannot begin with 0: there are too many ids to count in one
    else:
        layout = Layout(name, sequence="zero")
    node_id, sequence = case["node_id"], case["sequence"]
    flake = Snowflake(node_id, layout, clock=lambda: showing(case["unix_ms"]))
    ids = flake.generate_many(sequence + 1)
    assert ids[-1] == int(case["id"])
    assert flake.inspect(ids[-1]).unix_ms == case["unix_ms"]


def test_a_float_shows_the_middle_of_each_millisecond_and_not_always_its_begin() -> None:
    def shown(clock: float) -> int:
        flake = Snowflake(1, clock=lambda: clock)
        return flake.inspect(flake.generate()).unix_ms

    milliseconds = range(NOW * 1000, NOW * 1000 + 1000)
    assert [shown(showing(unix_ms)) for unix_ms in milliseconds] == list(milliseconds)
    assert {shown(unix_ms / 1000) - unix_ms for unix_ms in milliseconds} == {-1, 0}


@pytest.mark.parametrize("name", [*LIVE, "simpleflake"])
def test_ids_rise_and_say_where_and_when_they_were_made(name: str) -> None:
    layout = Layout(name)
    node_id = min([*LIVE, name].index(name) + 70, layout.max_node_id)
    before = time.time()
    with Snowflake(node_id, layout, max_wait=5) as flake:
        ids = [flake.generate() for _ in range(500)]
        ids += flake.generate_many(500)
        buffer = array("q", bytes(8 * 500))
        flake.fill(buffer)
        ids += [id % 2**64 for id in buffer]
        ids += [int(id) % 2**64 for id in flake.generate_array(500)]
        assert flake.layout == layout
        assert flake.node_ids == (node_id,)
    assert len(set(ids)) == 2000
    if layout.fields[1][0] == "node" or layout.max_node_id == 0:
        assert ids == sorted(ids)
    for id in ids:
        parts = layout.inspect(id)
        assert parts == flake.inspect(id)
        assert parts.node_id == node_id
        tick = layout.tick_ms / 1000
        assert before - tick <= parts.unix_ms / 1000 <= time.time()
        assert isinstance(parts.datetime, datetime)


def test_twitter_is_the_default_layout() -> None:
    assert generator().layout == Layout("twitter")
    assert generator(layout="discord").layout == Layout("discord")
    assert generator(layout=Layout("leaf", sequence="zero")).layout.sequence == "zero"


def test_every_way_to_many_ids_gives_the_same_ids() -> None:
    ways: list[Callable[[Snowflake], list[int]]] = [
        lambda flake: [flake.generate() for _ in range(4096)],
        lambda flake: flake.generate_many(4096),
        lambda flake: flake.generate_array(4096).tolist(),  # type: ignore[no-any-return]
    ]
    one, *others = [way(generator()) for way in ways]
    assert one == [Layout("twitter").pack(NOW * 1000, 1, number) for number in range(4096)]
    assert all(other == one for other in others)
    array_of_ids = generator().generate_array(3)
    assert array_of_ids.dtype == np.int64


def test_an_id_of_all_64_bits_is_unsigned_alone_and_signed_in_an_array() -> None:
    when = Layout("simpleflake").negative_from
    assert when is not None
    make = lambda: Snowflake(0, "simpleflake", clock=lambda: showing(when))  # noqa: E731
    id = make().generate()
    assert id >= 2**63
    assert make().generate_many(1) == [id]
    assert make().generate_array(1).tolist() == [id - 2**64]


def test_a_tick_has_so_many_ids_and_no_more() -> None:
    for name in ("twitter", "leaf", "sonyflake", "discord"):
        layout = Layout(name)
        flake = generator(layout=name, max_wait=0)
        assert len(set(flake.generate_many(layout.ids_per_node))) == layout.ids_per_node
        with pytest.raises(RetryLaterError) as raised:
            flake.generate()
        assert raised.value.code == "SEQUENCE_EXHAUSTED"
        assert raised.value.retry_after == layout.tick_ms / 1000


def test_a_batch_waits_for_its_ticks() -> None:
    clock = FineClock()
    flake = generator(clock=clock)
    ids = flake.generate_many(3 * 4096)
    assert ids == sorted(set(ids))
    assert flake.inspect(ids[-1]).unix_ms == NOW * 1000 + 2
    assert clock.sleeps[0] == 0.001
    assert clock.nanos - NOW * 10**9 < 2_001_000


def test_a_large_batch_on_the_real_clock_repeats_nothing() -> None:
    flake = Snowflake(500, max_wait=5)
    ids = flake.generate_array(50_000)
    assert len(np.unique(ids)) == 50_000
    assert (np.diff(ids) > 0).all()


def test_a_burst_borrows_coming_ticks_under_a_lease() -> None:
    flake = generator(lease=LEASE, max_drift=1, max_wait=0)
    ids = flake.generate_many(1001 * 4096)
    assert flake.inspect(ids[-1]).unix_ms == (NOW + 1) * 1000
    assert code_of(flake.generate) == "SEQUENCE_EXHAUSTED"
    assert code_of(lambda: generator(max_drift=1)) == "INVALID_ARGUMENT"


def test_a_lease_ends_and_is_extended() -> None:
    clock = ScriptedClock(NOW + 299.9995)
    flake = generator(lease=LEASE, clock=clock, max_wait=0)
    assert flake.lease == LEASE
    assert flake.generate()
    clock.time = NOW + 300
    assert code_of(flake.generate) == "LEASE_EXPIRED"
    flake.extend_lease(NOW + 301)
    flake.extend_lease(NOW + 200)
    assert flake.lease == Lease(NOW, NOW + 301)
    assert flake.inspect(flake.generate()).unix_ms == (NOW + 300) * 1000
    assert code_of(lambda: generator().extend_lease(NOW)) == "INVALID_LEASE"
    assert generator().lease is None


def test_closed() -> None:
    flake = generator(lease=LEASE)
    id = flake.generate()
    flake.close()
    flake.close()
    for call in (
        flake.generate,
        lambda: flake.generate_many(1),
        lambda: flake.generate_many(0),
        lambda: flake.generate_array(1),
        lambda: flake.fill(array("q", [1])),
        lambda: flake.extend_lease(NOW + 400),
    ):
        assert code_of(call) == "CLOSED"
    assert flake.node_ids == ()
    assert flake.lease is None
    assert flake.inspect(id).node_id == 1


def test_a_context_closes_and_lets_errors_through() -> None:
    with generator() as flake:
        assert flake.generate()
    assert code_of(flake.generate) == "CLOSED"
    with pytest.raises(ZeroDivisionError), generator() as flake:
        raise ZeroDivisionError
    assert code_of(flake.generate) == "CLOSED"


def test_a_failing_fill_leaves_zeros() -> None:
    flake = generator(max_wait=0)
    flake.generate()
    buffer = array("q", [-1] * 4096)
    assert code_of(lambda: flake.fill(buffer)) == "SEQUENCE_EXHAUSTED"
    assert not any(buffer)


def test_repr_shows_layout_and_node_ids() -> None:
    flake = Snowflake([9, 8], "discord", clock=ScriptedClock())
    assert repr(flake) == "<randflake.Snowflake layout=discord node_ids=[8, 9]>"


def test_a_generator_refuses_pickle_and_copy() -> None:
    refusals: list[Callable[[], object]] = [
        lambda: copy.copy(generator()),
        lambda: copy.deepcopy([generator()]),
    ]
    refusals += [
        lambda protocol=protocol: pickle.dumps(generator(), protocol)  # type: ignore[misc]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for refusal in refusals:
        with pytest.raises(InvalidTypeError, match="cannot be pickled or copied"):
            refusal()


# Lifetime


def test_a_layout_that_has_ended_is_refused() -> None:
    with pytest.raises(RandflakeError, match="2024-11-20T13:24:16Z") as raised:
        Snowflake(1, "baidu")
    assert raised.value.code == "LIFETIME_OVER"


def test_the_last_tick_is_the_last() -> None:
    layout = Layout("sonyflake2")
    clock = ScriptedClock(showing(layout.ends_at - 10))
    flake = generator(layout=layout, clock=clock, max_wait=0)
    assert flake.inspect(flake.generate()).unix_ms == layout.ends_at - 10
    clock.time = showing(layout.ends_at)
    assert code_of(flake.generate) == "LIFETIME_OVER"
    clock = ScriptedClock(layout.epoch_ms / 1000 - 1)
    assert code_of(generator(layout=layout, clock=clock).generate) == "CLOCK_BEFORE_EPOCH"


def ending_in(days: int) -> Layout:
    """Makes a layout of 34 years that ends this many days from now."""
    end_ms = int(time.time() * 1000) + days * 86_400_000
    fields = [("time", 40), ("node", 10), ("sequence", 12)]
    return Layout(fields=fields, epoch_ms=end_ms - 2**40)  # type: ignore[arg-type]


def test_a_generator_warns_of_a_layout_that_ends_within_two_years() -> None:
    with pytest.warns(LifetimeWarning, match="custom ends at .*: 364 days are left|365 days"):
        assert Snowflake(1, ending_in(365)).generate()
    Snowflake(1, ending_in(3 * 365))  # a warning would be an error here
    generator(layout=ending_in(365), clock=time.time)  # not for a test clock


# Uniqueness: one record of issued ids for each node id of a layout


def test_objects_of_one_node_id_share_their_ids() -> None:
    one, other = Snowflake(510), Snowflake(510)
    ids = [flake.generate() for _ in range(5000) for flake in (one, other)]
    assert len(set(ids)) == 10_000


def test_threads_are_never_given_the_same_id() -> None:
    flake = Snowflake(511, max_wait=10)
    results: list[list[int]] = []

    def work(_: int) -> None:
        results.append([flake.generate() for _ in range(5000)] + flake.generate_many(5000))

    together(4, work)
    assert len({id for result in results for id in result}) == 40_000


def test_a_node_id_cannot_be_had_twice_in_another_way() -> None:
    Snowflake([520, 521])
    assert code_of(lambda: Snowflake(520)) == "NODE_IN_USE"
    assert code_of(lambda: Snowflake(521, Layout("twitter", sequence="continuing"))) == (
        "NODE_IN_USE"
    )
    # A preset and its description pack alike.
    twin = Layout(fields=Layout("twitter").fields, epoch_ms=Layout("twitter").epoch_ms)
    assert code_of(lambda: Snowflake(521, twin)) == "NODE_IN_USE"


@pytest.mark.parametrize("lease", [False, True])
def test_a_generator_is_forked_in_a_child_and_goes_on_in_the_parent(lease: bool) -> None:
    now = int(time.time())
    flake = Snowflake(530 + lease, lease=Lease(now, now + 600) if lease else None)
    before = flake.generate_many(100)

    def work() -> dict[str, Any]:
        buffer = array("q", [-1, -1])
        return {
            "outcomes": [
                outcome(flake.generate),
                outcome(lambda: flake.generate_many(10)),
                outcome(lambda: flake.generate_many(20_000)),
                outcome(lambda: flake.generate_array(10)),
                outcome(lambda: flake.fill(buffer)),
                outcome(lambda: flake.extend_lease(now + 900)),
            ],
            "buffer": buffer.tolist(),
            "read": flake.inspect(before[0]).node_id,
            "close": outcome(flake.close),
        }

    child = in_child(work)
    assert set(child["outcomes"]) == {"FORKED"}
    assert child["buffer"] == [0, 0]
    assert child["read"] == 530 + lease
    after = flake.generate_many(100)
    assert before + after == sorted({*before, *after})


def test_a_child_is_refused_the_node_id_of_its_parent_and_uses_its_own() -> None:
    flake = Snowflake(540)
    before = flake.generate_many(100)
    child = in_child(
        lambda: (outcome(lambda: Snowflake(540)), Snowflake(541, max_wait=5).generate_many(100))
    )
    assert child[0] == "FORKED"
    assert len({*before, *child[1], *flake.generate_many(100)}) == 300


def ids_of_a_node(node_id: int) -> list[int]:
    return Snowflake(node_id, max_wait=5).generate_many(1000)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_with_node_ids_of_their_own(method: str) -> None:
    first = 550 if method == "fork" else 560
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(ids_of_a_node, range(first, first + 4), chunksize=2)
    assert len({id for result in results for id in result}) == 4000


def test_two_processes_one_after_the_other_repeat_nothing() -> None:
    code = "from randflake import Snowflake; print(Snowflake(570).generate_many(2000))"
    one, other = (set(eval(run_python(code))) for _ in range(2))
    assert len(one | other) == 4000


@pytest.mark.parametrize("case", cases("timelines.json"))
def test_the_timelines_of_randflake_hold_for_its_layout(case: dict[str, Any]) -> None:
    clock = TimelineClock()
    lease = case["lease"]
    flake = Snowflake(
        case["node_ids"],
        "randflake",
        lease=lease and Lease(lease["start"], lease["end_exclusive"]),
        max_wait=case["max_wait"],
        max_drift=case["max_drift"],
        clock=ConstructionClock(clock, case["can_sleep"]),
    )
    for number, step in enumerate(case["steps"]):
        clock.readings.extend(step["readings"])
        clock.sleeps.clear()
        where = f"step {number}: {step}"
        if "error" in step:
            with pytest.raises(RandflakeError) as raised:
                perform(flake, step)
            assert raised.value.code == step["error"], where
            assert getattr(raised.value, "retry_after", None) == step["retry_after"], where
        else:
            assert np.array_equal(perform(flake, step), expected(step)), where
        assert not clock.readings, where
        assert clock.sleeps == step["sleeps"], where


class ConstructionClock:
    """Includes a reading for the constructor, which checks whether the layout has ended."""

    def __init__(self, clock: TimelineClock, can_sleep: bool) -> None:
        self.clock = clock
        self.constructed = False
        self.sleep = clock.sleep if can_sleep else None

    def now(self) -> float:
        if not self.constructed:
            self.constructed = True
            return NOW
        return self.clock.now()


def expected(step: dict[str, Any]) -> NDArray[np.uint64]:
    """Returns the ids of a step: runs of sequences, which are the lowest bits."""
    runs = [
        np.uint64(Layout("randflake").pack(timestamp * 1000, node_id, first))
        + np.arange(count, dtype=np.uint64)
        for timestamp, node_id, first, count in step.get("ids", [])
    ]
    return np.concatenate([np.empty(0, np.uint64), *runs])


def perform(flake: Snowflake, step: dict[str, Any]) -> NDArray[np.uint64]:
    """Makes the call of a step and returns its ids."""
    match step["call"]:
        case "generate":
            return np.array([flake.generate()], np.uint64)
        case "fill":
            return flake.generate_array(step["count"]).view(np.uint64)
        case "extend_lease":
            flake.extend_lease(step["end_exclusive"])
        case "close":
            flake.close()
        case call:
            raise AssertionError(f"unknown call {call}")
    return np.empty(0, np.uint64)


# Arguments


@pytest.mark.parametrize(
    "node_id",
    [-1, 1024, 2**32, 2**64, [], [1, 1], [1024], range(1024), range(10**12)],
    ids=named,
)
def test_node_ids_out_of_the_range_of_the_layout(node_id: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Snowflake(node_id, clock=ScriptedClock())
    assert raised.value.code == "INVALID_NODE"
    assert "131071" not in str(raised.value), "the bound of another layout"


@pytest.mark.parametrize(
    "node_id", [None, True, 1.0, "one", b"1", ["1"], [1.0], [[1]], {}], ids=named
)
def test_node_ids_of_the_wrong_type(node_id: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Snowflake(node_id, clock=ScriptedClock())
    assert raised.value.code == "INVALID_NODE"


def test_a_layout_without_node_ids_takes_0() -> None:
    assert Snowflake(0, "simpleflake", clock=ScriptedClock()).node_ids == (0,)
    assert code_of(lambda: Snowflake(1, "simpleflake", clock=ScriptedClock())) == "INVALID_NODE"


@pytest.mark.parametrize(
    "options",
    [
        {"layout": "mastodon"},
        {"layout": None},
        {"layout": 41},
        {"layout": b"twitter"},
        {"layout": Layout},
        {"max_wait": -1},
        {"max_wait": 86_401},
        {"max_wait": "1"},
        {"max_drift": 1},
        {"max_drift": -1},
        {"max_drift": 1.5},
        {"max_drift": 3601, "lease": LEASE},
        {"restart_safe": 1},
        {"clock": 1},
    ],
    ids=named,
)
def test_other_bad_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        generator(**options)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_a_lease_outside_the_lifetime_of_the_layout() -> None:
    late = Layout(fields=Layout("twitter").fields, epoch_ms=(NOW - 10) * 1000)
    assert generator(layout=late, lease=LEASE).generate()
    early = Lease(NOW - 100, NOW)
    assert code_of(lambda: generator(layout=late, lease=early)) == "INVALID_LEASE"
    for lease in (1, (NOW, NOW + 1), "lease"):
        assert code_of(lambda lease=lease: generator(lease=lease)) == "INVALID_LEASE"  # type: ignore[misc]


@pytest.mark.parametrize("n", [-1, 2**64, 1.0, "1", None, True, 2**62], ids=named)
def test_counts_that_are_refused(n: Any) -> None:
    flake = generator()
    for call in (flake.generate_many, flake.generate_array):
        with pytest.raises(InvalidArgumentError) as raised:
            call(n)
        assert raised.value.code == "INVALID_ARGUMENT"
    assert flake.inspect(flake.generate()).sequence == 0, "nothing was claimed"


@pytest.mark.parametrize(
    "buffer", [None, [0], bytes(8), array("Q", [0]), np.zeros(4, np.int64)[::2]], ids=named
)
def test_buffers_that_are_refused(buffer: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        generator().fill(buffer)
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("raw", [-1, 2**63, 2**64, "1", 1.0, True, None], ids=named)
def test_ids_that_are_refused(raw: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        generator().inspect(raw)
    assert raised.value.code == "INVALID_ID"


def test_the_clock_may_fail() -> None:
    def broken() -> float:
        raise OSError("no time")

    with pytest.raises(OSError, match="no time"):
        generator(clock=broken)
    moments = iter([datetime.fromtimestamp(NOW, UTC).timestamp(), "late"])
    flake = generator(clock=lambda: next(moments))
    assert code_of(flake.generate) == "INVALID_ARGUMENT"
