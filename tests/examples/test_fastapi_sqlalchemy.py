"""examples/fastapi_sqlalchemy under uvicorn."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from applications import EXAMPLES, SECRET, Application, Client, UnansweredError, get_all, make_rows
from randflake import Cloak, decode_string, encode_string, list_leases
from randflake.text import TextForm

FOLDER = EXAMPLES / "fastapi_sqlalchemy"
COMMAND = [sys.executable, "-m", "uvicorn", "main:app", "--port", "PORT"]

ITEMS = [f"item {number}" for number in range(9)]
NEGATIVE = -4594531474933654033
DIGITS = decode_string("1234567890123")
"""Its text looks like another number."""
ORDER = TextForm("order", cloak=Cloak(SECRET, "orders.id"))


@pytest.fixture
def shop(settings: dict[str, str]) -> dict[str, str]:
    """The settings of the shop, for which all is made that is made once."""
    subprocess.run([sys.executable, "main.py"], check=True, cwd=FOLDER, env=settings)
    return settings


def by_id(order: Any) -> Any:
    """Its items have no order of their own."""
    return {**order, "items": sorted(order["items"], key=lambda item: str(item["id"]))}


def test_no_row_that_clients_know_is_lost_or_made_twice(
    shop: dict[str, str], tmp_path: Path
) -> None:
    def make(client: Client) -> list[Any]:
        order = by_id(client.post("/orders", {"customer": "Ada", "items": ITEMS}))
        return [order, *order["items"]]

    days = {datetime.now(UTC).date()}
    workers = [*COMMAND, "--workers", "2"]
    with Application(workers, FOLDER, shop, tmp_path / "log") as application:
        rows = make_rows(application, make, 10_000)
        days.add(datetime.now(UTC).date())

        ids = [row["id"] for row in rows]
        assert len(ids) >= 10_000
        assert len(set(ids)) == len(ids)
        orders = [row for row in rows if "items" in row]
        items = [row for row in rows if "items" not in row]
        assert len(items) == len(ITEMS) * len(orders)
        assert all(re.fullmatch(ORDER.pattern, order["id"]) for order in orders)
        assert all(re.fullmatch(TextForm().pattern, item["id"]) for item in items)

        got = get_all(application, [f"/orders/{order['id']}" for order in orders])
        assert [by_id(order) for order in got] == orders
        some = items[:: len(ITEMS)]
        assert get_all(application, [f"/items/{item['id']}" for item in some]) == some

        # Those of a day are found by their primary key, in the order in which they were made.
        of_days = [
            order
            for days in get_all(application, [f"/orders?day={day}" for day in sorted(days)])
            for order in days
        ]
        numbers = [ORDER.decode(order["id"]) for order in of_days]
        assert numbers == sorted(numbers)
        assert {order["id"] for order in of_days} >= {order["id"] for order in orders}
        (before,) = get_all(application, [f"/orders?day={min(days) - timedelta(days=1)}"])
        assert before == []

    # Inside are numbers, and half of those of Randflake are negative.
    with psycopg.connect(shop["DATABASE_URL"]) as connection:
        stored = {id for (id,) in connection.execute("select id from shop_item")}
    assert stored >= {decode_string(item["id"]) for item in items}
    assert 0.4 < sum(id < 0 for id in stored) / len(stored) < 0.6


def check_refusals(client: Client, order: Any) -> None:
    """Says what an id looks like, and what is not there."""
    for path in ("/orders/1", "/orders/1234567890123", "/items/01", f"/items/{order['id']}"):
        status, answer = client.request("GET", path)
        assert status == 422, path
        assert "Input should be the text of an id, such as" in answer["detail"][0]["msg"]
        assert "__notes__" not in str(answer)
    for id in (0, -1, DIGITS, NEGATIVE, 2**63 - 1, -(2**63)):
        for path in (f"/orders/{ORDER.encode(id)}", f"/items/{encode_string(id)}"):
            assert client.request("GET", path)[0] == 404, path


def check_openapi(document: Any) -> None:
    """Ids are text."""
    (parameter,) = document["paths"]["/orders/{id}"]["get"]["parameters"]
    assert parameter["schema"] == {"type": "string", "pattern": ORDER.pattern, "title": "Id"}
    properties = document["components"]["schemas"]["ItemAnswer"]["properties"]
    assert properties["id"]["pattern"] == TextForm().pattern
    assert properties["order_id"]["pattern"] == ORDER.pattern


def test_answers_503_while_there_is_no_id(shop: dict[str, str], tmp_path: Path) -> None:
    away = shop | {"RANDFLAKE_STORE": "postgresql://nobody:nothing@127.0.0.1:1/nowhere"}
    with (
        Application(COMMAND, FOLDER, away, tmp_path / "log") as application,
        Client(application.port) as client,
        pytest.raises(UnansweredError, match="503"),
    ):
        client.post("/orders", {"customer": "Ada", "items": []})


def test_refuses_what_is_no_id_and_gives_node_ids_back_at_its_end(
    shop: dict[str, str], tmp_path: Path
) -> None:
    def held() -> int:
        url = shop["RANDFLAKE_STORE"]
        return list_leases(url).held + list_leases(url, namespace="orders").held

    with Application(COMMAND, FOLDER, shop, tmp_path / "log") as application:
        with Client(application.port) as client:
            order = client.post("/orders", {"customer": "Ada", "items": ["a book"]})
            check_refusals(client, order)
            check_openapi(client.get("/openapi.json"))
        assert held() == 2
        application.stop()
    assert held() == 0
