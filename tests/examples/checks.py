"""What holds for the shop of examples/ in every framework.

The shops differ in how their paths end and in what a client sends for an item: these are the
arguments `slash` and `items` here.
"""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from applications import SECRET, Application, Client, UnansweredError, get_all, make_rows
from randflake import Cloak, decode_string, encode_string, list_leases
from randflake.text import TextForm

NEGATIVE = -4594531474933654033
DIGITS = decode_string("1234567890123")
"""Its text looks like another number."""
ORDER = TextForm("order", cloak=Cloak(SECRET, "orders.id"))
"""How ids of orders look; those of items have the plain form."""
ROWS = int(os.environ.get("ROWS", "2500"))
"""How many rows clients make at least."""
NAMES = [f"item {number}" for number in range(9)]
"""The items of each order that check_rows makes."""


def held(settings: dict[str, str]) -> int:
    """Returns how many node ids are leased, for items and for orders."""
    url = settings["RANDFLAKE_STORE"]
    return list_leases(url).held + list_leases(url, namespace="orders").held


def check_rows(
    application: Application, items: list[Any], slash: str = ""
) -> tuple[list[Any], list[Any]]:
    """Checks that no row that clients know is lost or made twice, over kills of the application.

    Returns the orders and the items that clients know.
    """

    def make(client: Client) -> list[Any]:
        body = {"customer": "Ada", "items": items}
        order = _by_id(client.post(f"/orders{slash}", body))
        return [order, *order["items"]]

    days = {datetime.now(UTC).date()}
    rows = make_rows(application, make, ROWS)
    days.add(datetime.now(UTC).date())

    ids = [row["id"] for row in rows]
    assert len(ids) >= ROWS
    assert len(set(ids)) == len(ids)
    orders = [row for row in rows if "items" in row]
    made = [row for row in rows if "items" not in row]
    assert len(made) == len(items) * len(orders)
    assert all(re.fullmatch(ORDER.pattern, order["id"]) for order in orders)
    assert all(re.fullmatch(TextForm().pattern, item["id"]) for item in made)

    got = get_all(application, [f"/orders/{order['id']}{slash}" for order in orders])
    assert [_by_id(order) for order in got] == orders
    some = made[:: len(items)]
    assert get_all(application, [f"/items/{item['id']}{slash}" for item in some]) == some

    # Those of a day are found by their primary key, in the order in which they were made.
    of_days = [
        order
        for found in get_all(application, [f"/orders{slash}?day={day}" for day in sorted(days)])
        for order in found
    ]
    numbers = [ORDER.decode(order["id"]) for order in of_days]
    assert numbers == sorted(numbers)
    assert {order["id"] for order in of_days} >= {order["id"] for order in orders}
    (before,) = get_all(application, [f"/orders{slash}?day={min(days) - timedelta(days=1)}"])
    assert before == []
    return orders, made


def check_missing(client: Client, slash: str = "") -> None:
    """Checks that an id of no row is a 404, also at the edges of what an id can be."""
    for id in (0, -1, DIGITS, NEGATIVE, 2**63 - 1, -(2**63)):
        for path in (f"/orders/{ORDER.encode(id)}{slash}", f"/items/{encode_string(id)}{slash}"):
            assert client.request("GET", path)[0] == 404, path


def check_answers_503(
    command: list[str], folder: Path, settings: dict[str, str], log: Path, slash: str = ""
) -> None:
    """Checks that each request for an id is a 503 while there is none: the store is away."""
    away = settings | {"RANDFLAKE_STORE": "postgresql://nobody:nothing@127.0.0.1:1/nowhere"}
    with (
        Application(command, folder, away, log) as application,
        Client(application.port) as client,
    ):
        for _ in range(3):
            with pytest.raises(UnansweredError, match="503"):
                client.post(f"/orders{slash}", {"customer": "Ada", "items": []})


def _by_id(order: Any) -> Any:
    """Its items have no order of their own."""
    return {**order, "items": sorted(order["items"], key=lambda item: str(item["id"]))}
