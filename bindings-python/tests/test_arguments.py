"""Bad input: each gets the documented error of its domain."""

import contextlib
import decimal
import itertools
import math
import warnings
from array import array
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
import randflake
from conftest import NOW, OTHER_SECRET, SECRET, ScriptedClock, named, run_python
from hypothesis import given, strategies as st
from randflake import (
    Inspector,
    InvalidArgumentError,
    InvalidTypeError,
    Lease,
    Parts,
    Randflake,
    RandflakeError,
    decode_string,
    encode_string,
    generate_secret,
)

LEASE = Lease(NOW, NOW + 300)

# Python refuses to write it in decimal digits.
HUGE = pytest.param(10**5000, id="10**5000")


class BrokenIndex:
    def __index__(self) -> int:
        raise ZeroDivisionError("mine")


class IndexOfText:
    def __index__(self) -> int:
        return "7"  # type: ignore[return-value]


class OnlyLength:
    def __len__(self) -> int:
        return 3


class Seven:
    def __index__(self) -> int:
        return 7


class Half:
    def __float__(self) -> float:
        return 0.5


def refused(call: Any, code: str, *, type_is_wrong: bool) -> None:
    """Asserts that a call raises the domain error of that code, and of which kind."""
    with pytest.raises(InvalidArgumentError) as raised:
        call()
    assert type(raised.value) is (InvalidTypeError if type_is_wrong else InvalidArgumentError)
    assert isinstance(raised.value, TypeError) == type_is_wrong
    assert isinstance(raised.value, ValueError)
    assert raised.value.code == code
    assert "got" in str(raised.value), "says what was wrong"


# Of any parameter that is an integer.
NO_INTEGERS = [
    None,
    True,
    False,
    1.0,
    math.nan,
    "1",
    b"\x01",
    [1],
    (),
    {},
    object(),
    1j,
    decimal.Decimal(1),
    np.float64(1),
    np.bool_(True),
    np.array([1, 2]),
    IndexOfText(),
    int,
]


def without(values: list[Any], *types: type) -> list[Any]:
    return [value for value in values if not isinstance(value, types)]


def make(node_id: Any = 1, secret: Any = SECRET, **options: Any) -> Randflake:
    return Randflake(node_id, secret, **{"clock": ScriptedClock(), **options})


@pytest.mark.parametrize("node_id", [-1, 131_072, 2**32 + 7, 2**63, 2**70, -(2**70), HUGE])
def test_node_id_out_of_range(node_id: int) -> None:
    refused(lambda: make(node_id), "INVALID_NODE", type_is_wrong=False)
    refused(lambda: make([1, node_id]), "INVALID_NODE", type_is_wrong=False)


@pytest.mark.parametrize("node_id", without(NO_INTEGERS, list, tuple, dict, np.ndarray), ids=named)
def test_node_id_of_the_wrong_type(node_id: Any) -> None:
    if node_id != "1":  # one node id may be decimal text, as the environment has it
        refused(lambda: make(node_id), "INVALID_NODE", type_is_wrong=True)
    refused(lambda: make([1, node_id]), "INVALID_NODE", type_is_wrong=True)


@pytest.mark.parametrize(
    "node_ids",
    [[[1]], [(1,)], [{}], itertools.count(), iter([1]), OnlyLength(), {"a": 1}],
    ids=named,
)
def test_node_ids_nested_or_endless(node_ids: Any) -> None:
    refused(lambda: make(node_ids), "INVALID_NODE", type_is_wrong=True)


@pytest.mark.parametrize(
    "node_ids", [[], (), {}, np.array([], np.int64), [1, 1], range(16_385), range(2**60)], ids=named
)
def test_node_ids_that_are_no_list_for_a_generator(node_ids: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        make(node_ids)
    assert raised.value.code == "INVALID_NODE"


@pytest.mark.parametrize(
    ("node_id", "node_ids"),
    [
        (7, (7,)),
        (0, (0,)),
        (131_071, (131_071,)),
        (np.int64(7), (7,)),
        (np.uint8(7), (7,)),
        (Seven(), (7,)),
        ([9, 7, 8], (7, 8, 9)),
        ((7,), (7,)),
        (range(3), (0, 1, 2)),
        (array("H", [7]), (7,)),
        (np.arange(3), (0, 1, 2)),
        (range(16_384), tuple(range(16_384))),
    ],
)
def test_node_ids_in_any_form(node_id: Any, node_ids: tuple[int, ...]) -> None:
    assert make(node_id).node_ids == node_ids


SECRETS = [
    ("", False),
    ("0" * 31, False),
    ("0" * 33, False),
    ("g" * 32, False),
    ("-" + "0" * 31, False),
    ("0x" + "0" * 30, False),
    ("0" * 31 + "\u0660", False),
    ("0" * 31 + "\ud800", False),
    ("\ud800", False),
    ("\ud800" * 32, False),
    (b"", False),
    (b"0" * 15, False),
    (b"0" * 17, False),
    (SECRET.encode(), False),
    (None, True),
    (True, True),
    (16, True),
    (1.5, True),
    (list(range(16)), True),
    (bytearray(15), False),
    (memoryview(bytes(17)), False),
    (np.zeros(16, np.uint8), True),
    (int(SECRET, 16), True),
]


@pytest.mark.parametrize(("secret", "type_is_wrong"), SECRETS, ids=named)
def test_secret(secret: Any, type_is_wrong: bool) -> None:
    for use in (lambda: make(secret=secret), lambda: Inspector(secret)):
        refused(use, "INVALID_SECRET", type_is_wrong=type_is_wrong)


def test_error_does_not_show_the_refused_secret() -> None:
    for secret in (SECRET[:31], SECRET + "0", SECRET[:31] + "x", bytes.fromhex(SECRET)[:15]):
        with pytest.raises(InvalidArgumentError) as raised:
            Inspector(secret)
        message = str(raised.value)
        assert SECRET[:6] not in message
        assert repr(bytes.fromhex(SECRET))[2:10] not in message


@pytest.mark.parametrize(
    "max_wait", [-1, -0.001, -math.inf, math.inf, math.nan, 86_401, 2**70, 10**400], ids=named
)
def test_max_wait_out_of_range(max_wait: Any) -> None:
    refused(lambda: make(max_wait=max_wait), "INVALID_ARGUMENT", type_is_wrong=False)


@pytest.mark.parametrize(
    "max_wait",
    [None, True, "1", b"1", [1], object(), 1j, datetime(2026, 1, 1, tzinfo=UTC)],
    ids=named,
)
def test_max_wait_of_the_wrong_type(max_wait: Any) -> None:
    refused(lambda: make(max_wait=max_wait), "INVALID_ARGUMENT", type_is_wrong=True)


@pytest.mark.parametrize(
    "max_wait", [0, 0.0, 86_400, np.float32(0.5), np.int64(1), decimal.Decimal("0.5"), Half()]
)
def test_max_wait_is_any_number(max_wait: Any) -> None:
    assert make(max_wait=max_wait).generate()


@pytest.mark.parametrize("max_drift", [-1, 3601, 2**32, 2**32 + 7, 2**70, -(2**70)])
def test_max_drift_out_of_range(max_drift: int) -> None:
    refused(lambda: make(max_drift=max_drift, lease=LEASE), "INVALID_ARGUMENT", type_is_wrong=False)


@pytest.mark.parametrize("max_drift", NO_INTEGERS, ids=named)
def test_max_drift_of_the_wrong_type(max_drift: Any) -> None:
    refused(lambda: make(max_drift=max_drift, lease=LEASE), "INVALID_ARGUMENT", type_is_wrong=True)


def test_max_drift_needs_a_lease() -> None:
    refused(lambda: make(max_drift=1), "INVALID_ARGUMENT", type_is_wrong=False)
    assert make(max_drift=1, lease=LEASE).generate()


@pytest.mark.parametrize("restart_safe", [None, 0, 1, "yes", [], 1.0, object()], ids=named)
def test_restart_safe(restart_safe: Any) -> None:
    refused(lambda: make(restart_safe=restart_safe), "INVALID_ARGUMENT", type_is_wrong=True)


@pytest.mark.parametrize(
    "lease", [True, 0, "lease", (NOW, NOW + 1), [NOW, NOW + 1], slice(NOW, NOW + 1), Lease]
)
def test_lease_of_the_wrong_type(lease: Any) -> None:
    refused(lambda: make(lease=lease), "INVALID_LEASE", type_is_wrong=True)


@pytest.mark.parametrize("clock", [True, 1, "clock", [], object()], ids=named)
def test_clock_of_the_wrong_type(clock: Any) -> None:
    refused(lambda: make(clock=clock), "INVALID_ARGUMENT", type_is_wrong=True)


@pytest.mark.parametrize(
    "second", [*without(NO_INTEGERS), datetime(2026, 1, 1, tzinfo=UTC)], ids=named
)
def test_unix_second_of_the_wrong_type(second: Any) -> None:
    flake = make(lease=LEASE)
    for use in (
        lambda: Lease(second, NOW),
        lambda: Lease(NOW, second),
        lambda: flake.extend_lease(second),
    ):
        refused(use, "INVALID_LEASE", type_is_wrong=True)
    assert flake.lease == LEASE


@pytest.mark.parametrize(
    ("start", "end_exclusive"),
    [
        (NOW, NOW),
        (NOW, NOW - 1),
        (1_729_999_999, NOW),
        (NOW, 2_803_741_825),
        (-1, NOW),
        (NOW, 2**70),
        (-(2**70), NOW),
        (NOW * 1000, NOW * 1000 + 1),
    ],
)
def test_lease_out_of_range(start: int, end_exclusive: int) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Lease(start, end_exclusive)
    assert raised.value.code == "INVALID_LEASE"


@pytest.mark.parametrize(
    "end_exclusive", [0, -1, 1_730_000_000, 2_803_741_825, 2**63, 2**70, -(2**70)]
)
def test_end_of_lease_out_of_range(end_exclusive: int) -> None:
    flake = make(lease=LEASE)
    with pytest.raises(InvalidArgumentError) as raised:
        flake.extend_lease(end_exclusive)
    assert raised.value.code == "INVALID_LEASE"
    assert flake.lease == LEASE


READERS = [make().inspect, make().decrypt, Inspector(SECRET).inspect, Inspector(SECRET).decrypt]


@pytest.mark.parametrize("id", [2**63, -(2**63) - 1, 2**64 - 1, 2**70, -(2**70), HUGE])
def test_id_out_of_range(id: int) -> None:
    for read in [*READERS, encode_string]:
        refused(lambda read=read: read(id), "INVALID_ID", type_is_wrong=False)


@pytest.mark.parametrize("id", without(NO_INTEGERS, str), ids=named)
def test_id_of_the_wrong_type(id: Any) -> None:
    for read in [*READERS, encode_string, decode_string]:
        refused(lambda read=read: read(id), "INVALID_ID", type_is_wrong=True)


def test_text_is_no_number_and_a_number_no_text() -> None:
    refused(lambda: encode_string("3vgoe12ccb8gh"), "INVALID_ID", type_is_wrong=True)  # type: ignore[arg-type]
    refused(lambda: decode_string(4594531474933654033), "INVALID_ID", type_is_wrong=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        *("", "0" * 13, "00", "3VGOE12CCB8GH", " 1", "1 ", "1\n", "w", "\0", "\ud800", "a\udfffb"),
        *("é", "٣", "g000000000000", "v" * 14, "4594531474933654033", "-1", "+1", "a=", "1_0"),
    ],
)
def test_text_that_is_none_of_an_id(text: str) -> None:
    for read in [*READERS, decode_string]:
        with pytest.raises(InvalidArgumentError) as raised:
            read(text)
        assert type(raised.value) is InvalidArgumentError
        assert raised.value.code == "INVALID_ID"


def test_decimal_text_says_to_pass_the_text_form() -> None:
    for text in ("4594531474933654033", "-4594531474933654033", "-1"):
        with pytest.raises(InvalidArgumentError, match="pass the text form"):
            decode_string(text)


@pytest.mark.parametrize("raw", [-1, 2**64, 2**70, -(2**63), -(2**70)])
def test_raw_out_of_range(raw: int) -> None:
    for encrypt in (make().encrypt, Inspector(SECRET).encrypt):
        refused(lambda encrypt=encrypt: encrypt(raw), "INVALID_ID", type_is_wrong=False)


@pytest.mark.parametrize("raw", NO_INTEGERS, ids=named)
def test_raw_of_the_wrong_type(raw: Any) -> None:
    for encrypt in (make().encrypt, Inspector(SECRET).encrypt):
        refused(lambda encrypt=encrypt: encrypt(raw), "INVALID_ID", type_is_wrong=True)


@pytest.mark.parametrize("n", [-1, -(2**63), 2**64, 2**70, -(2**70)])
def test_count_out_of_range(n: int) -> None:
    for generate in (make().generate_many, make().generate_array):
        refused(lambda generate=generate: generate(n), "INVALID_ARGUMENT", type_is_wrong=False)


@pytest.mark.parametrize("n", NO_INTEGERS, ids=named)
def test_count_of_the_wrong_type(n: Any) -> None:
    for generate in (make().generate_many, make().generate_array):
        refused(lambda generate=generate: generate(n), "INVALID_ARGUMENT", type_is_wrong=True)


@pytest.mark.parametrize("n", [2**62, 2**63 - 1, 2**64 - 1])
def test_count_that_fits_in_no_memory(n: int) -> None:
    for generate in (make().generate_many, make().generate_array):
        with pytest.raises(InvalidArgumentError, match="may take at most 3600") as raised:
            generate(n)
        assert raised.value.code == "INVALID_ARGUMENT"


def test_count_that_may_not_wait() -> None:
    flake = make(max_wait=0)
    with pytest.raises(InvalidArgumentError) as raised:
        flake.generate_many(131_073)
    assert raised.value.code == "INVALID_ARGUMENT"
    assert len(set(flake.generate_many(131_072))) == 131_072


def test_count_is_any_integer() -> None:
    assert make().generate_many(0) == []
    assert make().generate_array(0).shape == (0,)
    assert len(make().generate_many(np.int64(3))) == 3
    assert len(make().generate_array(Seven())) == 7


@pytest.mark.parametrize("part", without(NO_INTEGERS), ids=named)
def test_parts_of_the_wrong_type(part: Any) -> None:
    for use in (lambda: Parts(part, 0, 0), lambda: Parts(0, part, 0), lambda: Parts(0, 0, part)):
        refused(use, "INVALID_ARGUMENT", type_is_wrong=True)


@pytest.mark.parametrize("part", [2**70, -(2**70), 2**63, -(2**63) - 1, HUGE])
def test_parts_out_of_range(part: int) -> None:
    for use in (lambda: Parts(part, 0, 0), lambda: Parts(0, part, 0), lambda: Parts(0, 0, part)):
        refused(use, "INVALID_ARGUMENT", type_is_wrong=False)


def test_errors_of_foreign_conversions_go_on_as_they_are() -> None:
    for use in (
        lambda: make(BrokenIndex()),
        lambda: make([BrokenIndex()]),
        lambda: Inspector(SECRET).inspect(BrokenIndex()),
        lambda: make().generate_many(BrokenIndex()),
    ):
        with pytest.raises(ZeroDivisionError, match="mine"):
            use()


def test_unknown_and_missing_parameters_are_python_type_errors() -> None:
    for use in (
        lambda: make(max_wait_ms=1),
        lambda: Randflake(1),  # type: ignore[call-arg]
        lambda: Randflake(1, SECRET, LEASE),  # type: ignore[call-arg]
        lambda: make().generate(1),  # type: ignore[call-arg]
        lambda: generate_secret(16),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError) as raised:
            use()
        assert not isinstance(raised.value, RandflakeError)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.decimals()
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(), inner)
    ),
    max_leaves=4,
)


@given(ANYTHING)
def test_anything_is_accepted_or_refused_in_the_domain(anything: Any) -> None:
    flake = make(lease=LEASE)
    for use in (
        lambda: make(anything),
        lambda: make(secret=anything),
        lambda: make(lease=anything),
        lambda: make(max_wait=anything),
        lambda: make(max_drift=anything),
        lambda: make(restart_safe=anything),
        lambda: make(clock=lambda: anything).generate(),
        lambda: flake.inspect(anything),
        lambda: flake.encrypt(anything),
        lambda: flake.decrypt(anything),
        lambda: flake.fill(anything),
        lambda: flake.extend_lease(anything),
        lambda: Inspector(SECRET).inspect_array(anything),
        lambda: encode_string(anything),
        lambda: decode_string(anything),
        lambda: Lease(anything, anything),
        lambda: Parts(anything, anything, anything),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", randflake.WeakSecretWarning)
            with contextlib.suppress(RandflakeError):
                use()


def test_a_weak_secret_warns_once_per_process() -> None:
    code = """
import sys, warnings
from randflake import Inspector, Randflake, WeakSecretWarning
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    Inspector(sys.argv[1])
    assert not caught, "random bytes"
    Randflake(1, b"super-secret-key")
    assert [warning.category for warning in caught] == [WeakSecretWarning]
    assert caught[0].filename == "<string>", "points at the caller"
    assert "super" not in str(caught[0].message)
    Inspector(bytes(16))
    assert len(caught) == 1
print("warned")
"""
    assert run_python(code, SECRET) == "warned\n"


def test_a_weak_secret_is_refused_where_warnings_are_errors() -> None:
    code = """
from randflake import Inspector, WeakSecretWarning
import warnings
warnings.simplefilter("error")
for _ in range(2):
    try:
        Inspector(b"super-secret-key")
    except WeakSecretWarning:
        print("refused")
"""
    assert run_python(code) == "refused\nrefused\n"


def test_generated_secrets_are_fresh_and_strong() -> None:
    secrets = {generate_secret() for _ in range(100)}
    assert len(secrets) == 100
    for secret in secrets:
        assert len(bytes.fromhex(secret)) == 16
    assert Inspector(OTHER_SECRET)
