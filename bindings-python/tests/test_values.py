"""`Parts`, `Lease`, the errors, their rules, and what the package shows."""

import copy
import dataclasses
import doctest
import importlib.metadata
import inspect as inspection
import pickle
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import randflake
import randflake.testing
import randflake.text
from conftest import NOW, SECRET, named
from hypothesis import given, strategies as st
from randflake import (
    Inspector,
    InvalidArgumentError,
    InvalidTypeError,
    Lease,
    Parts,
    Randflake,
    RandflakeError,
    RetryLaterError,
    StoreError,
    decode_string,
    encode_string,
)

IDS = st.integers(-(2**63), 2**63 - 1)
RAWS = st.integers(0, 2**64 - 1)
READER = Inspector(SECRET)


@given(IDS)
def test_text_and_number_are_one_id(id: int) -> None:
    text = encode_string(id)
    assert decode_string(text) == id
    assert READER.inspect(text) == READER.inspect(id)
    assert int(text, 32) == id % 2**64


@given(st.text("0123456789abcdefghijklmnopqrstuvw", max_size=15))
def test_a_text_that_can_be_read_is_the_text_that_is_written(text: str) -> None:
    try:
        id = decode_string(text)
    except InvalidArgumentError:
        return
    assert encode_string(id) == text


@given(IDS)
def test_encryption_undoes_decryption(id: int) -> None:
    assert READER.encrypt(READER.decrypt(id)) == id


@given(RAWS)
def test_decryption_undoes_encryption(raw: int) -> None:
    assert READER.decrypt(READER.encrypt(raw)) == raw


@given(RAWS)
def test_parts_are_the_fields_of_raw(raw: int) -> None:
    parts = READER.inspect(READER.encrypt(raw))
    assert raw == parts.timestamp - 1_730_000_000 << 34 | parts.node_id << 17 | parts.sequence
    assert parts.datetime == datetime.fromtimestamp(parts.timestamp, UTC)


@given(RAWS, RAWS)
def test_a_raw_is_sorted_as_its_parts(one: int, other: int) -> None:
    parts = [READER.inspect(READER.encrypt(raw)) for raw in (one, other)]
    first, second = [(part.timestamp, part.node_id, part.sequence) for part in parts]
    assert (one < other) == (first < second)


@given(IDS)
def test_parts_survive_pickle_and_copy(id: int) -> None:
    parts = READER.inspect(id)
    assert pickle.loads(pickle.dumps(parts)) == parts
    assert copy.deepcopy(parts) == parts
    assert eval(repr(parts), {"Parts": Parts}) == parts


@given(st.integers(NOW, NOW + 1000), st.integers(1, 1000))
def test_leases_survive_pickle_and_copy(start: int, seconds: int) -> None:
    lease = Lease(start, start + seconds)
    assert pickle.loads(pickle.dumps(lease)) == lease
    assert copy.copy(lease) == lease
    assert eval(repr(lease), {"Lease": Lease}) == lease


def test_parts_compare_and_hash() -> None:
    parts = Parts(NOW, 1, 2)
    assert parts == Parts(timestamp=NOW, node_id=1, sequence=2)
    assert hash(parts) == hash(Parts(NOW, 1, 2))
    assert len({parts, Parts(NOW, 1, 2), Parts(NOW, 1, 3), Parts(NOW, 2, 2)}) == 3
    assert parts != Parts(NOW + 1, 1, 2)
    assert parts != (NOW, 1, 2)
    assert parts != None  # noqa: E711
    with pytest.raises(TypeError):
        parts < Parts(NOW, 1, 3)  # type: ignore[operator]  # noqa: B015
    with pytest.raises(AttributeError):
        parts.sequence = 3  # type: ignore[misc]
    assert repr(parts) == f"Parts(timestamp={NOW}, node_id=1, sequence=2)"


def test_leases_compare_and_hash() -> None:
    lease = Lease(NOW, NOW + 1)
    assert (lease.start, lease.end_exclusive) == (NOW, NOW + 1)
    assert lease == Lease(start=NOW, end_exclusive=NOW + 1)
    assert hash(lease) == hash(Lease(NOW, NOW + 1))
    assert lease != Lease(NOW, NOW + 2)
    assert lease != (NOW, NOW + 1)
    with pytest.raises(AttributeError):
        lease.end_exclusive = NOW + 9  # type: ignore[misc]


def test_a_time_is_aware_and_in_utc() -> None:
    last = Parts(2_803_741_823, 0, 0).datetime
    assert last == datetime(2058, 11, 5, 17, 10, 23, tzinfo=UTC)
    assert last.tzinfo is UTC


ERRORS = [
    RandflakeError("closed", "CLOSED"),
    InvalidArgumentError("bad", "INVALID_ID"),
    InvalidTypeError("bad", "INVALID_NODE"),
    RetryLaterError("later", "SEQUENCE_EXHAUSTED", 0.5),
    StoreError("later", "NODES_EXHAUSTED", 0.5),
    StoreError("never", "SECRET_MISMATCH"),
]


@pytest.mark.parametrize("error", ERRORS, ids=named)
def test_errors_compare_and_pickle(error: RandflakeError) -> None:
    error.add_note("a note")
    for twin in (
        pickle.loads(pickle.dumps(error)),
        copy.copy(error),
        copy.deepcopy(error),
    ):
        assert twin == error
        assert hash(twin) == hash(error)
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert twin.__dict__ == error.__dict__
        assert twin.__notes__ == ["a note"]
        assert "__notes__" not in vars(twin)  # which FastAPI shows to clients
    assert [other for other in ERRORS if other == error] == [error]
    assert error != Exception(str(error))


def test_errors_differ_in_each_field() -> None:
    later = RetryLaterError("later", "SEQUENCE_EXHAUSTED", 0.5)
    assert later == RetryLaterError("later", "SEQUENCE_EXHAUSTED", 0.5)
    assert later != RetryLaterError("other", "SEQUENCE_EXHAUSTED", 0.5)
    assert later != RetryLaterError("later", "CLOCK_MOVED_BACK", 0.5)
    assert later != RetryLaterError("later", "SEQUENCE_EXHAUSTED", 0.25)
    assert later != RandflakeError("later", "SEQUENCE_EXHAUSTED")
    busy = StoreError("later", "NODES_EXHAUSTED", 0.5)
    assert busy == StoreError("later", "NODES_EXHAUSTED", 0.5)
    assert busy != StoreError("later", "NODES_EXHAUSTED", 0.25)
    assert busy != StoreError("later", "NODES_EXHAUSTED")
    assert StoreError("never", "SECRET_MISMATCH").retry_after is None


def test_errors_that_were_raised_pickle() -> None:
    for call in (
        lambda: decode_string(""),
        lambda: Randflake(None, SECRET),  # type: ignore[arg-type]
        lambda: Randflake(1, SECRET, max_wait=0, clock=lambda: NOW).generate_many(131_073),
    ):
        with pytest.raises(RandflakeError) as raised:
            call()
        assert pickle.loads(pickle.dumps(raised.value)) == raised.value


def test_the_bases_of_the_errors() -> None:
    assert RandflakeError.__bases__ == (Exception,)
    assert InvalidArgumentError.__bases__ == (RandflakeError, ValueError)
    assert InvalidTypeError.__bases__ == (InvalidArgumentError, TypeError)
    assert RetryLaterError.__bases__ == (RandflakeError,)
    assert StoreError.__bases__ == (RandflakeError,)
    assert issubclass(randflake.WeakSecretWarning, UserWarning)


def test_the_version_is_the_one_that_is_installed() -> None:
    assert randflake.__version__ == importlib.metadata.version("randflake")


def test_everything_in_all_is_there_and_everything_there_is_in_all() -> None:
    public = {name for name in vars(randflake) if not name.startswith("_")}
    modules = {name for name in public if inspection.ismodule(getattr(randflake, name))}
    assert public - modules | {"__version__"} == set(randflake.__all__)
    assert randflake.__all__ == sorted(randflake.__all__)


def documented() -> list[Any]:
    """Everything public that should have a docstring: classes, functions, and their members."""
    found: list[Any] = []
    modules = [randflake, randflake.testing, randflake.text]
    names = [(module, name) for module in modules for name in module.__all__]
    for module, name in names:
        item = getattr(module, name)
        if name == "__version__":
            continue
        found.append(pytest.param(item, id=name))
        if inspection.isclass(item) and item.__module__ in [each.__name__ for each in modules]:
            inherited = [*vars(item.__base__)] if item.__base__ is not object else []
            members = [member for member in [*vars(item), *inherited] if not member.startswith("_")]
            if dataclasses.is_dataclass(item):  # its fields are documented where they are declared
                members = [m for m in members if m not in item.__dataclass_fields__]
            found += [pytest.param(getattr(item, m), id=f"{name}.{m}") for m in members]
    return found


@pytest.mark.parametrize("item", documented())
def test_the_documentation_is_there_and_its_examples_run(item: Any) -> None:
    text = inspection.getdoc(item)
    assert text
    assert text.split("\n")[0].endswith("."), "a sentence first"
    example = doctest.DocTestParser().get_doctest(text, {}, repr(item), None, None)
    out: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(example, out=out.append)
    assert results.failed == 0, "".join(out)
    if inspection.isclass(item) and item.__module__ == "randflake":
        assert example.examples


def test_the_type_of_codes_has_every_code() -> None:
    here = Path(__file__).parents[2]
    table = re.findall(r'= "([A-Z_]+)",', (here / "core/src/error.rs").read_text())
    source = Path(randflake.errors.__file__).read_text()
    literal = re.search(r"Literal\[(.+?)\]", source, re.DOTALL)
    assert literal is not None
    assert re.findall('"([A-Z_]+)"', literal[1]) == table


def test_signatures_are_readable() -> None:
    assert str(inspection.signature(Randflake)) == (
        "(node_id, secret, *, lease=None, max_wait=1.0, max_drift=0, restart_safe=True, clock=None)"
    )
    assert str(inspection.signature(Randflake.leased)) == (
        "(store=None, secret=None, *, node_count=1, ttl=None, namespace=None, acquire_timeout=10, "
        "max_wait=1.0, max_drift=None, max_skew=5, create=None, allow_weak_store=False, "
        "on_lease_change=None)"
    )
    assert str(inspection.signature(Randflake.generate_many)) == "(self, /, n)"
    assert str(inspection.signature(encode_string)) == "(id)"
