"""`DatedTickets`: sequential numbers that begin anew with each day, month or year, from a file."""

import asyncio
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import in_child
from randflake import (
    DatedTickets,
    InvalidArgumentError,
    RandflakeError,
    StoreError,
    init_tickets,
    list_tickets,
)

PATIENCE = 600.0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "ids.db"
    init_tickets(path, "new")
    return path


def dated(store: Any, **options: Any) -> DatedTickets:
    return DatedTickets(
        store, "invoices", **{"period": "day", "acquire_timeout": PATIENCE, **options}
    )


def test_numbers_have_a_date_and_are_given_back(store: Path) -> None:
    with dated(store, prefix="INV-", period="month") as invoices:
        first = invoices.generate()
        assert re.fullmatch(r"INV-20\d{4}-000001", first)
        assert invoices.generate_many(2) == [first[:-1] + "2", first[:-1] + "3"]
        assert invoices.generate_many(0) == []
    with pytest.raises(RandflakeError) as raised:
        invoices.generate()
    assert raised.value.code == "CLOSED"
    with dated(store, period="month", digits=2) as invoices:
        assert invoices.generate()[6:] == "-04"
    [counter] = list_tickets(store)
    assert counter.name == f"invoices/{first[4:10]}"


def test_the_zone_decides_the_date(store: Path) -> None:
    dates = set()
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        with dated(store, time_zone=zone) as invoices:
            dates.add(invoices.generate()[:8])
    assert len(dates) == 2, "these are always more than a day apart"


def test_the_store_of_the_environment(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    invoices = dated(None)
    monkeypatch.delenv("RANDFLAKE_STORE", raising=False)
    with pytest.raises(InvalidArgumentError, match="RANDFLAKE_STORE"):
        invoices.generate()
    monkeypatch.setenv("RANDFLAKE_STORE", str(store))
    assert invoices.generate().endswith("-000001")
    invoices.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_draws_for_itself(store: Path) -> None:
    invoices = dated(store)
    first = invoices.generate()
    other = in_child(invoices.generate)
    assert len({first, other, invoices.generate()}) == 3


def test_a_task_waits_without_blocking(store: Path) -> None:
    async def main() -> list[str]:
        async with dated(store) as invoices:
            return await invoices.generate_many_async(3)

    assert [text[-1] for text in asyncio.run(main())] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": "week"}, "day, month or year"),
        ({"time_zone": "Europe/Nowhere"}, "IANA"),
        ({"prefix": "x" * 101}, "at most 100 bytes"),
        ({"prefix": "a\n"}, "control characters"),
        ({"digits": 0}, "1 to 16"),
        ({"digits": 17}, "1 to 16"),
        ({"digits": -1}, "1 to 16"),
        ({"step": 0}, "step"),
        ({"max_wait": -1}, "max_wait"),
    ],
)
def test_what_is_refused(store: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as raised:
        dated(store, **options)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_other_refusals(store: Path, tmp_path: Path) -> None:
    for wrong in ({"period": 1}, {"time_zone": 1}, {"prefix": b""}, {"digits": 1.5}, {"other": 1}):
        with pytest.raises(TypeError):
            dated(store, **wrong)
    with pytest.raises(InvalidArgumentError):
        DatedTickets(store, "x" * 192, period="day")
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(dated(store))
    assert repr(dated(store)) == "<randflake.DatedTickets name='invoices'>"
    with pytest.raises(StoreError) as raised:
        dated(tmp_path / "other.db").generate()
    assert raised.value.code == "STORE_NOT_INITIALIZED"
