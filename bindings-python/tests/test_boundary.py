"""`BoundaryFlake`: the vectors, its forms, and what it refuses."""

import copy
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conftest import cases, named
from hypothesis import given, strategies as st
from randflake import BoundaryFlake, InvalidArgumentError, InvalidTypeError

BYTES = st.binary(min_size=16, max_size=16)


@pytest.mark.parametrize("case", cases("boundary.json"))
def test_the_vectors_in_both_directions(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["bytes"])
    for form in (case["text"], raw, bytearray(raw)):
        flake = BoundaryFlake(form)
        assert (str(flake), bytes(flake)) == (case["text"], raw)
        assert flake.unix_ms == int(case["unix_ms"])
        assert flake.worker == bytes.fromhex(case["worker"])
        assert flake.sequence == case["sequence"]
        assert repr(flake) == f"BoundaryFlake('{case['text']}')"


@pytest.mark.parametrize("case", cases("boundary.json", "invalid"))
def test_what_is_no_text_of_one_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        BoundaryFlake(case["text"])
    assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("other", [b"", bytes(15), bytes(17), "\udc80"], ids=named)
def test_other_bytes_and_half_characters_are_refused(other: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        BoundaryFlake(other)
    assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("other", [None, 5, 1.5, ["8"], memoryview(bytes(16))], ids=named)
def test_other_types_are_refused(other: Any) -> None:
    with pytest.raises(InvalidTypeError, match="or 16 bytes") as raised:
        BoundaryFlake(other)
    assert raised.value.code == "INVALID_ID"


@given(BYTES, BYTES)
def test_ids_compare_as_their_bytes(one: bytes, other: bytes) -> None:
    assert (BoundaryFlake(one) < BoundaryFlake(other)) == (one < other)
    assert (BoundaryFlake(one) == BoundaryFlake(other)) == (one == other)
    assert BoundaryFlake(one) == BoundaryFlake(str(BoundaryFlake(one)))
    assert len({BoundaryFlake(one), BoundaryFlake(one), BoundaryFlake(other)}) == len({one, other})


def test_times_are_datetimes_as_far_as_these_go() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    last = (datetime.max.replace(tzinfo=UTC) - epoch) // timedelta(milliseconds=1)
    for unix_ms in (0, 1326409013776, last):
        flake = BoundaryFlake(unix_ms.to_bytes(8) + bytes(8))
        assert flake.datetime == epoch + timedelta(milliseconds=unix_ms)
    for unix_ms in (last + 1, 2**63, 2**64 - 1):
        with pytest.raises(InvalidArgumentError, match=str(unix_ms)):
            BoundaryFlake(unix_ms.to_bytes(8) + bytes(8)).datetime  # noqa: B018


def test_ids_pickle_copy_and_are_frozen() -> None:
    flake: Any = BoundaryFlake("8HFaR8qWtRlGDHnO57")
    assert pickle.loads(pickle.dumps(flake)) == copy.deepcopy(flake) == flake
    with pytest.raises(AttributeError):
        flake.sequence = 6
    assert flake != "8HFaR8qWtRlGDHnO57"
