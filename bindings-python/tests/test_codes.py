"""`Codes`: the vectors, every way in and out, what it refuses, and codes as the form of ids."""

import contextlib
import copy
import json
import pickle
import re
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from conftest import OTHER_SECRET, SECRET, VECTORS, cases, named, refuses_the_second
from hypothesis import given, strategies as st
from randflake import (
    Cloak,
    Codes,
    InvalidArgumentError,
    InvalidTypeError,
    WeakSecretWarning,
    encode_string,
)
from randflake.text import TextForm

CODES = Codes(SECRET, "orders")
CHECKED = Codes(SECRET, "vouchers", length=10, alphabet="crockford", check=3)
READ = json.loads((VECTORS / "codes.json").read_text(encoding="utf-8"))["read"]


def described(case: dict[str, Any]) -> Codes:
    options = {name: case[name] for name in ("length", "alphabet", "check")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSecretWarning)
        return Codes(case.get("secret", SECRET), case.get("label", "orders"), **options)


@pytest.mark.parametrize("case", cases("codes.json"))
def test_the_vectors_in_both_directions(case: dict[str, Any]) -> None:
    codes, number, code = described(case), int(case["number"]), case["code"]
    assert codes.encode(number) == code
    assert codes.decode(code) == number
    assert codes.encode_many([number]) == [code]
    assert codes.decode_many([code]) == [number]
    assert re.fullmatch(codes.pattern, code)
    assert codes.length == case["length"] == len(code)
    assert codes.check == case["check"]
    assert set(code) <= set(codes.alphabet)


@pytest.mark.parametrize("case", READ, ids=lambda case: case["name"])
def test_what_is_read_as_well(case: dict[str, Any]) -> None:
    codes = described(case)
    assert codes.decode(case["code"]) == int(case["number"])
    assert re.fullmatch(codes.pattern, case["code"])


@pytest.mark.parametrize("case", cases("codes.json", "invalid"))
def test_what_is_no_code(case: dict[str, Any]) -> None:
    codes = described(case)
    refuses_the_second(codes.decode_many, codes.decode, [codes.encode(0), case["code"]])


@pytest.mark.parametrize("case", cases("codes.json", "capacities"))
def test_capacities(case: dict[str, Any]) -> None:
    codes = described(case)
    assert codes.capacity == int(case["capacity"])
    assert codes.decode(codes.encode(codes.capacity - 1)) == codes.capacity - 1
    with pytest.raises(InvalidArgumentError) as raised:
        codes.encode(codes.capacity)
    assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("case", cases("codes.json", "invalid_options"))
def test_options_that_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        described(case)
    assert raised.value.code == "INVALID_ARGUMENT"


@given(st.lists(st.integers(0, 32**7 - 1), max_size=20))
def test_decoding_undoes_encoding(numbers: list[int]) -> None:
    codes = [CHECKED.encode(number) for number in numbers]
    assert CHECKED.encode_many(numbers) == CHECKED.encode_many(iter(numbers)) == codes
    assert CHECKED.decode_many(codes) == CHECKED.decode_many(iter(codes)) == numbers
    assert CHECKED.decode_many(code.lower() for code in codes) == numbers
    assert CHECKED.encode_many(np.array(numbers, np.int64)) == codes


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for codes in (CODES, CHECKED):
        with contextlib.suppress(InvalidArgumentError):
            number = codes.decode(text)
            assert codes.encode(number).lower() == text.lower()


def test_labels_and_secrets_make_keys_of_their_own() -> None:
    made = [CODES, Codes(SECRET, "orders "), Codes(SECRET, ""), Codes(OTHER_SECRET, "orders")]
    assert len({codes.encode(7) for codes in made}) == len(made)


def test_threads_share_codes() -> None:
    expected = CODES.encode_many(range(1000))
    made: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: made.append(CODES.encode_many(range(1000))))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [expected] * 10


@pytest.mark.parametrize("number", [-1, 10**8, -(2**63), 2**64, 2**80], ids=named)
def test_numbers_out_of_range(number: int) -> None:
    refuses_the_second(CODES.encode_many, CODES.encode, [1, number])


@pytest.mark.parametrize("number", [None, True, 1.0, "1", b"1", [1]], ids=named)
def test_numbers_of_the_wrong_type(number: Any) -> None:
    with pytest.raises(InvalidTypeError) as raised:
        CODES.encode(number)
    assert raised.value.code == "INVALID_ID"
    refuses_the_second(CODES.encode_many, CODES.encode, [1, number])


@pytest.mark.parametrize("code", [None, 86483743, b"86483743", ["86483743"]], ids=named)
def test_codes_of_the_wrong_type(code: Any) -> None:
    with pytest.raises(InvalidTypeError) as raised:
        CODES.decode(code)
    assert raised.value.code == "INVALID_ID"
    refuses_the_second(CODES.decode_many, CODES.decode, [CODES.encode(1), code])


@pytest.mark.parametrize("several", [None, 1, 1.5, "123", object()], ids=named)
def test_what_does_not_hold_many(several: Any) -> None:
    for call in (CODES.encode_many, CODES.decode_many):
        with pytest.raises(InvalidTypeError) as raised:
            call(several)
        assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "options",
    [
        {"length": "8"},
        {"length": 8.0},
        {"length": True},
        {"length": -1},
        {"length": 2**80},
        {"check": None},
        {"check": -1},
        {"alphabet": 10},
        {"alphabet": b"digits"},
        {"alphabet": "\ud800"},
        {"label": None},
    ],
    ids=str,
)
def test_options_of_the_wrong_type(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Codes(**{"secret": SECRET, "label": "orders", **options})
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("secret", [None, 1, "", SECRET[1:], bytes(15)], ids=named)
def test_secrets_that_are_refused(secret: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Codes(secret, "orders")
    assert raised.value.code == "INVALID_SECRET"


def test_nothing_shows_the_secret() -> None:
    assert repr(CODES) == "<randflake.Codes length=8 alphabet='0123456789' check=0>"
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidTypeError, match="cannot be pickled or copied"):
            refused(CODES)


FORM = TextForm("voucher", codes=CHECKED)


def test_codes_are_the_form_of_ids() -> None:
    text = FORM.encode(7)
    assert text == "voucher_" + CHECKED.encode(7)
    assert FORM.decode(text) == FORM.decode("voucher_" + CHECKED.encode(7).lower()) == 7
    assert re.fullmatch(FORM.pattern, text)
    assert TextForm(codes=CODES).encode(1) == CODES.encode(1)
    assert TextForm(codes=CODES) == TextForm(codes=CODES) != TextForm(codes=CHECKED)


def test_codes_may_have_all_64_bits() -> None:
    form = TextForm(codes=Codes(SECRET, "all", 13, "crockford"))
    for id in (0, 2**63 - 1, -1, -(2**63)):
        assert form.decode(form.encode(id)) == id


@pytest.mark.parametrize("text", ["", "voucher_", CHECKED.encode(7), "voucher_0123456789"])
def test_texts_that_a_form_refuses(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        FORM.decode(text)
    assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("id", [-1, 32**7, 2**63, True, "1"], ids=named)
def test_ids_that_a_form_refuses(id: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        FORM.encode(id)
    assert raised.value.code == "INVALID_ID"


def test_forms_that_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="cloak or codes"):
        TextForm(codes=CODES, cloak=Cloak(SECRET, "orders"))
    with pytest.raises(InvalidTypeError, match=r"codes must be Codes, got str$"):
        TextForm(codes="digits")  # type: ignore[arg-type]
    assert encode_string(1) == "1"
