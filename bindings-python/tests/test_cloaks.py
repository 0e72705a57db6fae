"""`Cloak`: the vectors, every way in and out, and what it refuses."""

import copy
import hashlib
import hmac
import pickle
import sys
import warnings
from array import array
from typing import Any

import numpy as np
import pytest
from conftest import OTHER_SECRET, SECRET, cases, named
from hypothesis import given, strategies as st
from randflake import (
    Cloak,
    Inspector,
    InvalidArgumentError,
    InvalidTypeError,
    WeakSecretWarning,
    encode_string,
)

CLOAK = Cloak(SECRET, "orders.id")
NUMBERS = st.integers(0, 2**64 - 1)


def signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


@pytest.mark.parametrize("case", cases("cloak.json"))
def test_the_vectors_in_both_directions(case: dict[str, Any]) -> None:
    number, hidden, text = int(case["number"]), int(case["hidden"]), case["text"]
    secret = bytes.fromhex(case["secret"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSecretWarning)
        cloaks = [Cloak(case["secret"], case["label"]), Cloak(secret, case["label"])]
    for cloak in cloaks:
        assert cloak.hide(number) == hidden
        assert cloak.hide_string(number) == text
        assert cloak.hide_many([number]) == [hidden]
        assert cloak.reveal(hidden) == cloak.reveal(text) == number
        assert cloak.reveal_many([hidden, text]) == [number, number]
        for row in (array("q", [signed(number)]), np.array([signed(number)], np.int64)):
            cloak.hide_in_place(row)
            assert row.tolist() == [hidden]
            cloak.reveal_in_place(row)
            assert row.tolist() == [signed(number)]
    info = b"randflake cloak v1" + case["label"].encode()
    pseudorandom = hmac.digest(bytes(32), secret, hashlib.sha256)
    key = hmac.digest(pseudorandom, info + b"\x01", hashlib.sha256)[:16]
    assert key.hex() == case["key"]
    assert Inspector(key).encrypt(number) == hidden


@given(NUMBERS)
def test_revealing_undoes_hiding(number: int) -> None:
    hidden = CLOAK.hide(number)
    assert -(2**63) <= hidden < 2**63
    assert CLOAK.hide_string(number) == encode_string(hidden)
    assert CLOAK.reveal(hidden) == CLOAK.reveal(CLOAK.hide_string(number)) == number


@given(st.lists(NUMBERS, max_size=40))
def test_many_are_hidden_as_each_is_alone(numbers: list[int]) -> None:
    hidden = [CLOAK.hide(number) for number in numbers]
    assert CLOAK.hide_many(numbers) == CLOAK.hide_many(iter(numbers)) == hidden
    assert CLOAK.reveal_many(hidden) == CLOAK.reveal_many(map(encode_string, hidden)) == numbers
    column = np.array(numbers, np.uint64).view(np.int64)
    CLOAK.hide_in_place(column)
    assert column.tolist() == hidden
    CLOAK.reveal_in_place(column)
    assert column.view(np.uint64).tolist() == numbers


def test_a_large_column_is_hidden_as_a_small_one() -> None:
    column = np.arange(100_000, dtype=np.int64)
    CLOAK.hide_in_place(column)
    assert len(np.unique(column)) == 100_000
    assert column[::9999].tolist() == CLOAK.hide_many(range(0, 100_000, 9999))
    CLOAK.reveal_in_place(column)
    assert (column == np.arange(100_000)).all()


def test_only_the_slice_that_was_given_is_changed() -> None:
    column = np.arange(10, dtype=np.int64)
    CLOAK.hide_in_place(column[3:5])
    assert column.tolist() == [0, 1, 2, CLOAK.hide(3), CLOAK.hide(4), 5, 6, 7, 8, 9]


def test_labels_and_secrets_make_keys_of_their_own() -> None:
    cloaks = [
        CLOAK,
        Cloak(SECRET, "orders.id "),
        Cloak(SECRET, ""),
        Cloak(OTHER_SECRET, "orders.id"),
        Inspector(SECRET),
    ]
    hidden = {c.hide(7) if isinstance(c, Cloak) else c.encrypt(7) for c in cloaks}
    assert len(hidden) == len(cloaks)


def test_any_integer_is_a_number() -> None:
    assert CLOAK.hide(np.uint64(2**64 - 1)) == CLOAK.hide(2**64 - 1)
    assert CLOAK.hide_many(np.array([1, 2])) == CLOAK.hide_many((1, 2))


@pytest.mark.parametrize("number", [-1, -(2**63), 2**64, 2**80], ids=named)
def test_numbers_out_of_range(number: int) -> None:
    for call in (CLOAK.hide, CLOAK.hide_string, lambda number: CLOAK.hide_many([1, number])):
        with pytest.raises(InvalidArgumentError) as raised:
            call(number)
        assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("number", [None, True, 1.0, "1", b"1", [1]], ids=named)
def test_numbers_of_the_wrong_type(number: Any) -> None:
    for call in (CLOAK.hide, CLOAK.hide_string, lambda number: CLOAK.hide_many([1, number])):
        with pytest.raises(InvalidTypeError) as raised:
            call(number)
        assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize(
    "id", [2**63, -(2**63) - 1, "", "0a"[::-1] + "w", "A", "01", "-1", None, True, 1.0], ids=named
)
def test_what_is_no_hidden_form(id: Any) -> None:
    for call in (CLOAK.reveal, lambda id: CLOAK.reveal_many([1, id])):
        with pytest.raises(InvalidArgumentError) as raised:
            call(id)
        assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("several", [None, 1, 1.5, "123", object()], ids=named)
def test_what_does_not_hold_many(several: Any) -> None:
    for call in (CLOAK.hide_many, CLOAK.reveal_many):
        with pytest.raises(InvalidTypeError) as raised:
            call(several)
        assert raised.value.code == "INVALID_ARGUMENT"


def test_errors_of_foreign_iterables_go_on_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        CLOAK.hide_many(1 // number for number in (1, 0))


FOREIGN_ORDER = ">i8" if sys.byteorder == "little" else "<i8"


@pytest.mark.parametrize(
    "buffer",
    [
        None,
        [1],
        bytes(8),
        memoryview(bytes(8)).cast("q"),
        array("Q", [0]),
        np.zeros(4, np.uint64),
        np.zeros(4, FOREIGN_ORDER),
        np.zeros((2, 2), np.int64),
        np.zeros(4, np.int64)[::2],
    ],
    ids=named,
)
def test_buffers_that_are_refused(buffer: Any) -> None:
    for call in (CLOAK.hide_in_place, CLOAK.reveal_in_place):
        with pytest.raises(InvalidArgumentError) as raised:
            call(buffer)
        assert raised.value.code == "INVALID_ARGUMENT"


def test_nothing_is_hidden_in_place() -> None:
    for nothing in (array("q"), np.zeros(0, np.int64)):
        CLOAK.hide_in_place(nothing)
        CLOAK.reveal_in_place(nothing)
    assert CLOAK.hide_many([]) == CLOAK.reveal_many([]) == []


@pytest.mark.parametrize("label", [None, 1, b"orders.id", ["orders.id"], "\ud800"], ids=named)
def test_labels_that_are_refused(label: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="label") as raised:
        Cloak(SECRET, label)
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("secret", [None, 1, "", SECRET[1:], bytes(15), bytearray(15)], ids=named)
def test_secrets_that_are_refused(secret: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Cloak(secret, "orders.id")
    assert raised.value.code == "INVALID_SECRET"


def test_nothing_shows_the_secret() -> None:
    assert repr(CLOAK) == str(CLOAK) == "<randflake.Cloak>"
    assert not hasattr(CLOAK, "__dict__")
    refusals = [lambda: copy.copy(CLOAK), lambda: copy.deepcopy(CLOAK)]
    refusals += [
        lambda protocol=protocol: pickle.dumps(CLOAK, protocol)  # type: ignore[misc]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for refusal in refusals:
        with pytest.raises(InvalidTypeError, match="cannot be pickled or copied"):
            refusal()
