"""Many ids at once: texts, sortable forms, and arrays and columns of other libraries."""

import sys
import warnings
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import SECRET, ScriptedClock, cases, named, refuses_the_second, run_python
from hypothesis import given, strategies as st
from randflake import (
    Cloak,
    Inspector,
    InvalidArgumentError,
    InvalidTypeError,
    Randflake,
    RandflakeError,
    WeakSecretWarning,
    decode_string,
    decode_strings,
    encode_string,
    encode_strings,
)

CLOAK = Cloak(SECRET, "orders.id")
FLAKE = Randflake(1, SECRET, clock=ScriptedClock())
INSPECTOR = Inspector(SECRET)
IDS = st.integers(-(2**63), 2**63 - 1)
RAWS = st.integers(0, 2**64 - 1)

# What takes many ids, and returns a list.
OF_IDS = [
    pytest.param(encode_strings, encode_string, id="encode_strings"),
    pytest.param(FLAKE.decrypt_many, FLAKE.decrypt, id="Randflake.decrypt_many"),
    pytest.param(INSPECTOR.decrypt_many, INSPECTOR.decrypt, id="Inspector.decrypt_many"),
    pytest.param(CLOAK.reveal_many, CLOAK.reveal, id="Cloak.reveal_many"),
]
OF_RAWS = [
    pytest.param(FLAKE.encrypt_many, FLAKE.encrypt, id="Randflake.encrypt_many"),
    pytest.param(INSPECTOR.encrypt_many, INSPECTOR.encrypt, id="Inspector.encrypt_many"),
    pytest.param(CLOAK.hide_many, CLOAK.hide, id="Cloak.hide_many"),
]
# The same for arrays.
ARRAYS_OF_IDS = [
    pytest.param(FLAKE.decrypt_array, FLAKE.decrypt, id="Randflake.decrypt_array"),
    pytest.param(INSPECTOR.decrypt_array, INSPECTOR.decrypt, id="Inspector.decrypt_array"),
    pytest.param(CLOAK.reveal_array, CLOAK.reveal, id="Cloak.reveal_array"),
    pytest.param(
        lambda ids: INSPECTOR.inspect_array(ids).sequence,
        lambda id: INSPECTOR.inspect(id).sequence,
        id="Inspector.inspect_array",
    ),
]
ARRAYS_OF_RAWS = [
    pytest.param(FLAKE.encrypt_array, FLAKE.encrypt, id="Randflake.encrypt_array"),
    pytest.param(INSPECTOR.encrypt_array, INSPECTOR.encrypt, id="Inspector.encrypt_array"),
    pytest.param(CLOAK.hide_array, CLOAK.hide, id="Cloak.hide_array"),
]


def alone(parameters: list[Any]) -> list[Any]:
    """Leaves out what takes one."""
    return [pytest.param(it.values[0], id=it.id) for it in parameters]


MANY = [*alone(OF_IDS + OF_RAWS), pytest.param(decode_strings, id="decode_strings")]
ARRAYS = alone(ARRAYS_OF_IDS + ARRAYS_OF_RAWS)

NUMBERS = [0, 1, 2**62, 2**63 - 1, 5]


class OwnColumn:
    """From a library that this package does not know."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = np.array(numbers)

    def __array__(self) -> Any:
        return self.numbers


COLUMNS: dict[str, Any] = {
    "int64": np.array(NUMBERS),
    "uint64": np.array(NUMBERS, np.uint64),
    "strided": np.repeat(np.array(NUMBERS), 2)[::2],
    "strided uint64": np.repeat(np.array(NUMBERS, np.uint64), 2)[::2],
    "array of q": array("q", NUMBERS),
    "array of Q": array("Q", NUMBERS),
    "memoryview": memoryview(array("q", NUMBERS)),
    "pyarrow": pa.array(NUMBERS),
    "pyarrow uint64": pa.array(NUMBERS, pa.uint64()),
    "pyarrow slice": pa.array([7, *NUMBERS])[1:],
    "pyarrow chunked": pa.chunked_array([NUMBERS[:2], NUMBERS[2:]]),
    "polars": pl.Series(NUMBERS),
    "polars uint64": pl.Series(NUMBERS, dtype=pl.UInt64),
    "polars chunks": pl.concat([pl.Series(NUMBERS[:2]), pl.Series(NUMBERS[2:])], rechunk=False),
    "pandas": pd.Series(NUMBERS),
    "pandas uint64": pd.Series(NUMBERS, dtype="uint64"),
    "pandas nullable": pd.Series(NUMBERS, dtype="Int64"),
    "pandas on pyarrow": pd.Series(NUMBERS, dtype="int64[pyarrow]"),
    "pandas index": pd.Index(NUMBERS),
    "pandas of a frame": pd.DataFrame({"a": NUMBERS, "b": NUMBERS})["a"],
    "own": OwnColumn(*NUMBERS),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(("many", "one"), OF_IDS + OF_RAWS + ARRAYS_OF_IDS + ARRAYS_OF_RAWS)
def test_columns_are_read_as_their_numbers(
    name: str, many: Callable[[Any], Any], one: Callable[[Any], Any]
) -> None:
    assert list(many(COLUMNS[name])) == [one(number) for number in NUMBERS]


@pytest.mark.parametrize(
    "column", [np.array([1, -1]), pa.array([1, -1]), pl.Series([1, -1])], ids=named
)
def test_negative_numbers_of_columns(column: Any) -> None:
    for take in (encode_strings, INSPECTOR.decrypt_many, INSPECTOR.decrypt_array):
        assert len(take(column)) == 2
    for refuse in (CLOAK.hide_many, CLOAK.hide_array, FLAKE.encrypt_many, FLAKE.encrypt_array):
        with pytest.raises(InvalidArgumentError) as raised:
            refuse(column)
        assert raised.value.code == "INVALID_ID"
        refusal = "a raw value must be an unsigned 64-bit integer, got -1"
        assert str(raised.value) == f"at index 1: {refusal}"


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 2**63 + 5], np.uint64),
        array("Q", [2**63 + 5]),
        pa.array([2**63 + 5], pa.uint64()),
        pl.Series([2**63 + 5], dtype=pl.UInt64),
        pd.Series([2**63 + 5], dtype="uint64"),
    ],
    ids=named,
)
def test_unsigned_numbers_of_columns(column: Any) -> None:
    for take in (CLOAK.hide_many, CLOAK.hide_array, FLAKE.encrypt_many, FLAKE.encrypt_array):
        assert len(take(column)) > 0
    assert CLOAK.hide_many(column)[-1] == CLOAK.hide_array(column)[-1] == CLOAK.hide(2**63 + 5)
    refusals: list[Callable[[Any], Any]] = [
        encode_strings,
        INSPECTOR.decrypt_many,
        INSPECTOR.decrypt_array,
        INSPECTOR.inspect_array,
    ]
    for refuse in refusals:
        refusal = rf"^at index {len(column) - 1}: an id must be a signed 64-bit"
        with pytest.raises(InvalidArgumentError, match=refusal) as raised:
            refuse(column)
        assert raised.value.code == "INVALID_ID"


FOREIGN_ORDER = ">i8" if sys.byteorder == "little" else "<i8"

# Not an array of 64-bit integers, and what the error says.
NO_ARRAYS: dict[str, tuple[Any, str]] = {
    "pyarrow with a null": (pa.array([1, None]), "nulls"),
    "polars with a null": (pl.Series([1, None]), "nulls"),
    "pandas with a null": (pd.Series([1, None]), "nulls"),
    "pandas nullable with a null": (pd.Series([1, None], dtype="Int64"), "nulls"),
    "floats": (np.zeros(2), "other elements"),
    "polars of floats": (pl.Series([1.5]), "other elements"),
    "pyarrow of int32": (pa.array([1], pa.int32()), "other elements"),
    "polars of uint32": (pl.Series([1], dtype=pl.UInt32), "other elements"),
    "texts": (pl.Series(["1"]), "other elements"),
    "times": (pa.array([1], pa.timestamp("s")), "an object of type ndarray"),
    "another byte order": (np.zeros(2, FOREIGN_ORDER), "byte order"),
    "a frame": (pl.DataFrame({"a": [1]}), "one-dimensional"),
    "two dimensions": (np.zeros((2, 2), np.int64), "one-dimensional"),
    "bytes": (bytes(16), "other elements"),
}


@pytest.mark.parametrize("name", NO_ARRAYS)
@pytest.mark.parametrize("take", ARRAYS)
def test_what_is_no_array(name: str, take: Callable[[Any], Any]) -> None:
    column, fault = NO_ARRAYS[name]
    with pytest.raises(InvalidArgumentError, match=fault) as raised:
        take(column)
    assert type(raised.value) is InvalidArgumentError
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("no_array", [None, 7, "text", [1, 2], np.ndarray, pl.Series], ids=named)
@pytest.mark.parametrize("take", ARRAYS)
def test_arrays_of_the_wrong_type(no_array: Any, take: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidTypeError) as raised:
        take(no_array)
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(("many", "one"), OF_IDS + OF_RAWS)
def test_other_arrays_are_read_one_by_one(
    many: Callable[[Any], Any], one: Callable[[Any], Any]
) -> None:
    for numbers in (np.array([1, 2], np.int32), array("i", [1, 2]), np.array([1, 2], ">i8")):
        assert many(numbers) == [one(1), one(2)]
    for column in (pl.Series([1, None]), pd.Series([1.5]), pa.array(["a"]), pa.array([1, None])):
        with pytest.raises(InvalidTypeError, match="got an object of type") as raised:
            many(column)
        assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize(
    "several",
    [None, 1, "123", b"123", bytearray(b"123"), np.int64(1), object(), np.ndarray],
    ids=named,
)
@pytest.mark.parametrize("many", MANY)
def test_what_does_not_hold_many(several: Any, many: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidTypeError, match="must be in a list") as raised:
        many(several)
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("id", [-(2**63) - 1, 2**63, None, True, 1.0, b"1"], ids=named)
@pytest.mark.parametrize(("many", "one"), OF_IDS)
def test_what_is_no_id(many: Callable[[Any], Any], one: Callable[[Any], Any], id: Any) -> None:
    refuses_the_second(many, one, [1, id, 1])


@pytest.mark.parametrize("raw", [-1, 2**64, None, True, 1.0, "1"], ids=named)
@pytest.mark.parametrize(("many", "one"), OF_RAWS)
def test_what_is_no_raw_value(
    many: Callable[[Any], Any], one: Callable[[Any], Any], raw: Any
) -> None:
    refuses_the_second(many, one, [1, raw, 1])


@pytest.mark.parametrize(
    "text", ["", "01", "A", "g" * 13, "-1", "\ud800", None, 1, b"1"], ids=named
)
def test_what_is_no_text(text: Any) -> None:
    refuses_the_second(decode_strings, decode_string, ["1", text, "1"])


def test_encode_strings_takes_no_text() -> None:
    with pytest.raises(InvalidTypeError) as raised:
        encode_strings([encode_string(1)])  # type: ignore[list-item]
    assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize(
    "buffer",
    [None, [1], bytes(8), memoryview(bytes(8)).cast("q"), array("Q", [0]), np.zeros(4)[::2]],
    ids=named,
)
def test_buffers_that_are_refused(buffer: Any) -> None:
    for of in (FLAKE, INSPECTOR):
        for call in (of.encrypt_in_place, of.decrypt_in_place):
            with pytest.raises(InvalidArgumentError) as raised:
                call(buffer)
            assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("column", [pa.array([1]), pl.Series([1]), pd.Series([1])], ids=named)
def test_a_column_is_not_changed_in_place(column: Any) -> None:
    for call in (INSPECTOR.decrypt_in_place, CLOAK.hide_in_place, FLAKE.fill):
        with pytest.raises(InvalidTypeError) as raised:
            call(column)
        assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("case", cases("ids.json"))
def test_the_vectors(case: dict[str, Any]) -> None:
    raw, id, text = int(case["raw"]), int(case["id"]), case["text"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSecretWarning)
        inspector = Inspector(bytes.fromhex(case["secret"]))
    assert inspector.decrypt_many([id, text]) == [raw, raw]
    assert inspector.encrypt_many([raw]) == [id]
    assert inspector.decrypt_array(np.array([id])).tolist() == [raw]
    assert inspector.encrypt_array(np.array([raw], np.uint64)).tolist() == [id]
    assert (encode_strings([id]), decode_strings([text])) == ([text], [id])


@given(st.lists(IDS, max_size=40))
def test_many_ids_are_as_each_is_alone(ids: list[int]) -> None:
    texts = [encode_string(id) for id in ids]
    assert encode_strings(ids) == encode_strings(iter(ids)) == encode_strings(array("q", ids))
    assert encode_strings(ids) == texts
    assert decode_strings(texts) == decode_strings(np.array(texts, str)) == ids
    raws = [INSPECTOR.decrypt(id) for id in ids]
    for of in (FLAKE, INSPECTOR):
        assert of.decrypt_many(ids) == of.decrypt_many(texts) == raws
        assert of.encrypt_many(raws) == of.encrypt_many(tuple(raws)) == ids
        column = np.array(ids, np.int64)
        assert of.decrypt_array(column).tolist() == raws
        of.decrypt_in_place(column)
        assert column.view(np.uint64).tolist() == raws
        of.encrypt_in_place(column)
        assert column.tolist() == ids


@given(st.lists(RAWS, max_size=40))
def test_many_sortable_forms_are_as_each_is_alone(raws: list[int]) -> None:
    ids = [INSPECTOR.encrypt(raw) for raw in raws]
    for of in (FLAKE, INSPECTOR):
        assert of.encrypt_many(raws) == ids
        assert of.encrypt_array(np.array(raws, np.uint64)).tolist() == ids


def test_the_types_of_arrays() -> None:
    for array_of_ids in (FLAKE.encrypt_array, INSPECTOR.encrypt_array, CLOAK.hide_array):
        assert array_of_ids(np.arange(3)).dtype == np.int64
    for array_of_raws in (FLAKE.decrypt_array, INSPECTOR.decrypt_array, CLOAK.reveal_array):
        assert array_of_raws(np.arange(3)).dtype == np.uint64
        assert array_of_raws(np.arange(0)).shape == (0,)


def test_nothing() -> None:
    assert encode_strings([]) == decode_strings([]) == FLAKE.generate_strings(0) == []
    assert INSPECTOR.decrypt_many(pl.Series([], dtype=pl.Int64)) == []
    assert FLAKE.encrypt_many(array("Q")) == []


def test_a_large_column_is_read_as_a_small_one() -> None:
    column = np.arange(100_000)
    raws = INSPECTOR.decrypt_array(column)
    assert raws[::9999].tolist() == INSPECTOR.decrypt_many(column[::9999])
    assert (INSPECTOR.encrypt_array(raws) == column).all()
    assert INSPECTOR.encrypt_many(raws) == column.tolist()


def test_what_is_given_is_not_changed() -> None:
    column = np.arange(5)
    for call in (INSPECTOR.decrypt_many, INSPECTOR.decrypt_array, CLOAK.hide_array):
        call(column)
    assert column.tolist() == [0, 1, 2, 3, 4]


def test_generate_strings_are_the_texts_of_generate_many() -> None:
    def flake() -> Randflake:
        return Randflake(1, SECRET, clock=ScriptedClock())

    texts = flake().generate_strings(20_000)
    assert texts == encode_strings(flake().generate_many(20_000))
    assert {type(text) for text in texts} == {str}


@pytest.mark.parametrize("n", [-1, 2**64, None, 1.5, "1"], ids=named)
def test_generate_strings_refuses(n: Any) -> None:
    flake = Randflake(1, SECRET, clock=ScriptedClock())
    with pytest.raises(InvalidArgumentError) as raised:
        flake.generate_strings(n)
    assert raised.value.code == "INVALID_ARGUMENT"
    assert flake.inspect(flake.generate()).sequence == 0, "nothing was claimed"


def test_generate_strings_after_close() -> None:
    flake = Randflake(1, SECRET, clock=ScriptedClock())
    flake.close()
    with pytest.raises(RandflakeError) as raised:
        flake.generate_strings(1)
    assert raised.value.code == "CLOSED"


def test_errors_of_foreign_objects_go_on_as_they_are() -> None:
    class Broken:
        def __array__(self) -> Any:
            raise ZeroDivisionError

    for call in (encode_strings, INSPECTOR.decrypt_array, CLOAK.hide_many):
        with pytest.raises(ZeroDivisionError):
            call(Broken())  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        encode_strings(1 // number for number in (1, 0))
    with pytest.raises(ZeroDivisionError):
        decode_strings(str(1 // number) for number in (1, 0))

    class Closed:
        def __index__(self) -> int:
            return closed.generate()

    closed = Randflake(1, SECRET, clock=ScriptedClock())
    closed.close()
    with pytest.raises(RandflakeError) as raised:
        encode_strings([1, Closed()])
    assert raised.value.code == "CLOSED"
    assert "at index" not in str(raised.value)


def test_libraries_are_not_imported_and_columns_work_without_numpy() -> None:
    code = """
import sys
from randflake import Inspector, encode_strings
for name in ("numpy", "pandas", "polars", "pyarrow"):
    assert name not in sys.modules, name
sys.modules["numpy"] = None
import pyarrow
assert encode_strings(pyarrow.array([1, 2])) == ["1", "2"]
try:
    Inspector(sys.argv[1]).decrypt_array(pyarrow.array([1]))
except ImportError:
    print("needs numpy")
"""
    assert run_python(code, SECRET) == "needs numpy\n"
