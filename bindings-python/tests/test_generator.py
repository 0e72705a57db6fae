"""A generator from its construction to its end, its properties, and threads."""

import copy
import pickle
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from conftest import NOW, OTHER_SECRET, SECRET, ScriptedClock, named, together
from randflake import (
    Inspector,
    InvalidTypeError,
    Lease,
    Randflake,
    RandflakeError,
    RetryLaterError,
    decode_string,
)

LEASE = Lease(NOW, NOW + 300)


def generator(**options: Any) -> Randflake:
    return Randflake(1, SECRET, **{"clock": ScriptedClock(), **options})


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(RandflakeError) as raised:
        call()
    return raised.value.code


def test_ids_count_up_inside_and_look_random_outside() -> None:
    flake = generator()
    ids = [flake.generate() for _ in range(1000)]
    assert [flake.inspect(id).sequence for id in ids] == list(range(1000))
    assert sorted(ids) != ids
    assert 400 < sum(id < 0 for id in ids) < 600


def test_text_and_number_are_the_same_ids() -> None:
    flake, twin = generator(), generator()
    assert [decode_string(flake.generate_string()) for _ in range(100)] == twin.generate_many(100)


def test_reading_needs_no_open_generator() -> None:
    flake = generator()
    id = flake.generate()
    raw, parts = flake.decrypt(id), flake.inspect(id)
    flake.close()
    assert flake.inspect(id) == parts
    assert flake.decrypt(id) == raw
    assert flake.encrypt(raw) == id


def test_closed() -> None:
    flake = generator(lease=LEASE)
    flake.close()
    flake.close()
    for call in (
        flake.generate,
        flake.generate_string,
        lambda: flake.generate_many(1),
        lambda: flake.generate_many(0),
        lambda: flake.generate_array(1),
        lambda: flake.fill(array("q", [1])),
        lambda: flake.extend_lease(NOW + 400),
    ):
        assert code_of(call) == "CLOSED"
    assert flake.node_ids == ()
    assert flake.lease is None


def test_a_context_closes_and_lets_errors_through() -> None:
    with generator() as flake:
        assert flake.generate()
    assert code_of(flake.generate) == "CLOSED"
    with pytest.raises(ZeroDivisionError), generator() as flake:
        raise ZeroDivisionError
    assert code_of(flake.generate) == "CLOSED"


def test_a_lease_ends_and_is_extended() -> None:
    clock = ScriptedClock(NOW + 299)
    flake = generator(lease=LEASE, clock=clock, max_wait=0)
    assert flake.lease == LEASE
    assert flake.generate()
    clock.time = NOW + 300
    assert code_of(flake.generate) == "LEASE_EXPIRED"
    flake.extend_lease(NOW + 301)
    flake.extend_lease(NOW + 200)
    assert flake.lease == Lease(NOW, NOW + 301)
    assert flake.inspect(flake.generate()).timestamp == NOW + 300
    assert code_of(lambda: generator().extend_lease(NOW)) == "INVALID_LEASE"
    assert generator().lease is None


def test_drift_lends_coming_seconds() -> None:
    flake = generator(lease=LEASE, max_drift=2, max_wait=0)
    flake.generate_many(3 * 131_072)
    with pytest.raises(RetryLaterError) as raised:
        flake.generate()
    assert raised.value.code == "SEQUENCE_EXHAUSTED"
    assert raised.value.retry_after == 1.0


@pytest.mark.parametrize(
    ("time", "code"), [(1_729_999_999, "CLOCK_BEFORE_EPOCH"), (2_803_741_824, "LIFETIME_OVER")]
)
def test_the_life_of_the_format(time: int, code: str) -> None:
    flake = generator(clock=lambda: time)
    with pytest.raises(RandflakeError) as raised:
        flake.generate()
    assert raised.value.code == code
    assert not isinstance(raised.value, RetryLaterError)


def test_repr_shows_node_ids_only() -> None:
    assert repr(generator()) == str(generator()) == "<randflake.Randflake node_ids=[1]>"
    several = Randflake([9, 8], SECRET, lease=LEASE, clock=ScriptedClock())
    assert repr(several) == "<randflake.Randflake node_ids=[8, 9]>"
    assert repr(Inspector(SECRET)) == "<randflake.Inspector>"


def test_nothing_shows_the_secret() -> None:
    flake, inspector = generator(), Inspector(bytes.fromhex(SECRET))
    for holder in (flake, inspector):
        names = [name for name in dir(holder) if not callable(getattr(holder, name))]
        shown = [repr(holder), str(holder), format(holder), *map(str, names)]
        shown += [repr(getattr(holder, name)) for name in names]
        for text in shown:
            assert SECRET not in text.lower()
            assert repr(bytes.fromhex(SECRET)) not in text
        assert not hasattr(holder, "__dict__")
        assert not hasattr(holder, "secret")


@pytest.mark.parametrize("holder", [generator(), Inspector(SECRET)], ids=named)
def test_holders_of_a_secret_refuse_pickle_and_copy(holder: Any) -> None:
    refusals: list[Callable[[], object]] = [
        lambda: copy.copy(holder),
        lambda: copy.deepcopy(holder),
        lambda: copy.deepcopy([holder]),
    ]
    refusals += [
        lambda protocol=protocol: pickle.dumps(holder, protocol)  # type: ignore[misc]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for refusal in refusals:
        with pytest.raises(InvalidTypeError, match="cannot be pickled or copied") as raised:
            refusal()
        assert raised.value.code == "INVALID_ARGUMENT"


def test_a_generator_is_no_iterator() -> None:
    with pytest.raises(TypeError):
        iter(generator())  # type: ignore[call-overload]


def test_attributes_cannot_be_set() -> None:
    for holder in (generator(), Inspector(SECRET), LEASE):
        with pytest.raises(AttributeError):
            holder.node_ids = (2,)  # type: ignore[union-attr, misc]


def test_ten_threads_with_one_generator_repeat_nothing() -> None:
    flake = Randflake(range(40, 50), SECRET)
    made: list[list[int]] = [[] for _ in range(10)]

    def work(number: int) -> None:
        ids = made[number]
        for _ in range(300):
            ids.append(flake.generate())
            ids.append(decode_string(flake.generate_string()))
            ids.extend(flake.generate_many(50))
        ids.extend(flake.generate_array(20_000).tolist())
        buffer = array("q", bytes(8 * 20_000))
        flake.fill(buffer)
        ids.extend(buffer)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        together(10, work)
    finally:
        sys.setswitchinterval(interval)
    ids = [id for part in made for id in part]
    assert len(ids) == 10 * (300 * 52 + 40_000)
    assert len(set(ids)) == len(ids)
    assert {flake.inspect(id).node_id for id in ids} <= set(range(40, 50))
    for part in made:
        stamps = [flake.inspect(id).timestamp for id in part]
        assert stamps == sorted(stamps), "time does not run backwards in any thread"


def test_threads_that_close_and_generate_end_in_ids_or_closed() -> None:
    for _ in range(20):
        flake = generator(lease=LEASE)
        codes: list[str] = []

        def work(number: int, flake: Randflake = flake, codes: list[str] = codes) -> None:
            try:
                for _ in range(100):
                    flake.generate()
                    if number == 0:
                        flake.close()
            except RandflakeError as error:
                codes.append(error.code)

        together(4, work)
        assert set(codes) == {"CLOSED"}


def test_two_objects_with_one_node_id_repeat_nothing() -> None:
    one, other = Randflake(60, SECRET), Randflake([60], bytes.fromhex(SECRET))
    ids = [id for _ in range(100) for id in (one.generate(), *other.generate_many(20))]
    assert len(set(ids)) == 2100
    one.close()
    again = Randflake(60, SECRET)
    ids += [*other.generate_many(1000), *again.generate_many(1000)]
    assert len(set(ids)) == 4100


def test_two_objects_in_two_threads_repeat_nothing() -> None:
    made: list[list[int]] = [[] for _ in range(8)]
    together(8, lambda number: made[number].extend(Randflake(61, SECRET).generate_many(5000)))
    assert len({id for part in made for id in part}) == 40_000


def test_an_object_waits_unless_another_one_is_open() -> None:
    for _ in range(2):
        made = int(time.time())
        flake = Randflake(62, SECRET)
        assert flake.inspect(flake.generate()).timestamp > made
        with Randflake(62, SECRET, max_wait=0) as other:
            assert other.generate()
        flake.close()


def test_overlapping_lists_of_node_ids() -> None:
    flake = Randflake([70, 71], SECRET)
    for overlapping in (70, [71], [71, 72], [69, 70, 71]):
        assert code_of(lambda node=overlapping: Randflake(node, SECRET)) == "NODE_IN_USE"  # type: ignore[misc]
    assert Randflake([71, 70], SECRET).node_ids == (70, 71)
    assert Randflake([72, 73], SECRET).node_ids == (72, 73)
    assert Randflake(70, OTHER_SECRET).node_ids == (70,)
    flake.close()
    assert code_of(lambda: Randflake(70, SECRET)) == "NODE_IN_USE"


def test_injected_clocks_share_nothing() -> None:
    assert generator().generate() == generator().generate()
    assert Randflake([1, 2], SECRET, clock=ScriptedClock()).generate()
