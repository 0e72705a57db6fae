"""examples/django_drf under gunicorn, which loads it before it forks two workers."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from applications import EXAMPLES, SECRET, Application, Client, UnansweredError, get_all, make_rows
from randflake import Cloak, decode_string, encode_string, init_store, list_leases
from randflake.text import TextForm

FOLDER = EXAMPLES / "django_drf"
COMMAND = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2"]
COMMAND += ["--worker-class", "gthread", "--threads", "4", "--bind", "127.0.0.1:PORT"]
COMMAND += ["django.core.wsgi:get_wsgi_application()"]

ITEMS = [{"name": f"item {number}"} for number in range(9)]
NEGATIVE = -4594531474933654033
DIGITS = decode_string("1234567890123")
"""Its text looks like another number."""
ORDER = TextForm("order", cloak=Cloak(SECRET, "orders.id"))


def held(settings: dict[str, str]) -> int:
    url = settings["RANDFLAKE_STORE"]
    return list_leases(url).held + list_leases(url, namespace="orders").held


@pytest.fixture
def shop(settings: dict[str, str]) -> dict[str, str]:
    """The settings of the shop, for which all is made that is made once."""
    names = {"SECRET_KEY": "of no use to anybody", "DJANGO_SETTINGS_MODULE": "orders.settings"}
    settings = settings | names
    init_store(settings["RANDFLAKE_STORE"], mode="new", layout="twitter", namespace="orders")
    command = [sys.executable, "-m", "django", "migrate", "--run-syncdb"]
    subprocess.run(command, check=True, cwd=FOLDER, env=settings)
    assert held(settings) == 0
    return settings


def by_id(order: Any) -> Any:
    """Its items have no order of their own."""
    return {**order, "items": sorted(order["items"], key=lambda item: str(item["id"]))}


def test_no_row_that_clients_know_is_lost_or_made_twice(
    shop: dict[str, str], tmp_path: Path
) -> None:
    def make(client: Client) -> list[Any]:
        order = by_id(client.post("/orders/", {"customer": "Ada", "items": ITEMS}))
        return [order, *order["items"]]

    days = {datetime.now(UTC).date()}
    with Application(COMMAND, FOLDER, shop, tmp_path / "log") as application:
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
        assert sum(decode_string(item["id"]) < 0 for item in items) > len(items) / 3

        got = get_all(application, [f"/orders/{order['id']}/" for order in orders])
        assert [by_id(order) for order in got] == orders
        some = items[:: len(ITEMS)]
        assert get_all(application, [f"/items/{item['id']}/" for item in some]) == some

        # Those of a day are found by their primary key, in the order in which they were made.
        of_days = [
            order
            for found in get_all(application, [f"/orders/?day={day}" for day in sorted(days)])
            for order in found
        ]
        numbers = [ORDER.decode(order["id"]) for order in of_days]
        assert numbers == sorted(numbers)
        assert {order["id"] for order in of_days} >= {order["id"] for order in orders}
        (before,) = get_all(application, [f"/orders/?day={min(days) - timedelta(days=1)}"])
        assert before == []


def test_takes_texts_alone_and_gives_node_ids_back_at_its_end(
    shop: dict[str, str], tmp_path: Path
) -> None:
    with Application(COMMAND, FOLDER, shop, tmp_path / "log") as application:
        with Client(application.port) as client:
            order = client.post("/orders/", {"customer": "Ada", "items": []})
            item = client.post("/items/", {"order": order["id"], "name": "a book"})
            assert client.get(f"/orders/{order['id']}/")["items"] == [item]
            number = ORDER.decode(order["id"])
            for bad in (number, float(number), encode_string(number), "order_01", None):
                status, answer = client.request("POST", "/items/", {"order": bad, "name": "b"})
                assert (status, [*answer]) == (400, ["order"]), bad
            for path in ("1", "no-id", order["id"], str(number), "01"):
                assert client.request("GET", f"/items/{path}/")[0] == 404, path
            for id in (0, -1, DIGITS, NEGATIVE, 2**63 - 1, -(2**63)):
                for path in (f"/orders/{ORDER.encode(id)}/", f"/items/{encode_string(id)}/"):
                    assert client.request("GET", path)[0] == 404, path
        assert held(shop) >= 2
        application.stop()
    assert held(shop) == 0


def test_answers_503_while_there_is_no_id(shop: dict[str, str], tmp_path: Path) -> None:
    away = shop | {"RANDFLAKE_STORE": "postgresql://nobody:nothing@127.0.0.1:1/nowhere"}
    with (
        Application(COMMAND, FOLDER, away, tmp_path / "log") as application,
        Client(application.port) as client,
        pytest.raises(UnansweredError, match="503"),
    ):
        client.post("/orders/", {"customer": "Ada", "items": []})
