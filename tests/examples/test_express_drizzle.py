"""examples/express-drizzle under Node.js."""

import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from applications import EXAMPLES, SECRET, Application, Client, UnansweredError, get_all, make_rows
from randflake import Cloak, decode_string, encode_string, init_store, list_leases
from randflake.text import TextForm

PACKAGE = EXAMPLES.parent / "bindings-node"
PACKAGES = ["drizzle-orm", "express", "pg", "zod", "@types"]
COMMAND = ["node", "main.mjs"]

ITEMS = [f"item {number}" for number in range(9)]
NEGATIVE = -4594531474933654033
DIGITS = decode_string("1234567890123")
"""Its text looks like another number."""
ORDER = TextForm("order", cloak=Cloak(SECRET, "orders.id"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example, beside the packages that it imports."""
    installed = shutil.copytree(EXAMPLES / "express-drizzle", tmp_path / "shop") / "node_modules"
    installed.mkdir()
    (installed / "randflake").symlink_to(PACKAGE)
    for name in PACKAGES:
        (installed / name).symlink_to(PACKAGE / "node_modules" / name)
    return installed.parent


@pytest.fixture
def shop(settings: dict[str, str], folder: Path) -> dict[str, str]:
    """The settings of the shop, for which all is made that is made once."""
    init_store(settings["RANDFLAKE_STORE"], mode="new", layout="twitter", namespace="orders")
    with psycopg.connect(settings["DATABASE_URL"]) as connection:
        connection.execute((folder / "schema.sql").read_bytes())
    return settings


def by_id(order: Any) -> Any:
    """Its items have no order of their own."""
    return {**order, "items": sorted(order["items"], key=lambda item: str(item["id"]))}


def test_is_short_and_its_types_are_right(folder: Path) -> None:
    main = folder / "main.mjs"
    assert len(main.read_text(encoding="utf-8").splitlines()) < 120
    options = "--strict --checkJs --noEmit --skipLibCheck --module nodenext --target es2022"
    compiler = PACKAGE / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [compiler, *options.split(), "--types", "node", main],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_no_row_that_clients_know_is_lost_or_made_twice(
    shop: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    def make(client: Client) -> list[Any]:
        order = by_id(client.post("/orders", {"customer": "Ada", "items": ITEMS}))
        return [order, *order["items"]]

    days = {datetime.now(UTC).date()}
    with Application(COMMAND, folder, shop, tmp_path / "log") as application:
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


def check_refusals(client: Client, order: Any) -> None:
    """Says what an id looks like, and what is not there."""
    for path in ("/orders/1", "/orders/1234567890123", "/items/01", f"/items/{order['id']}"):
        status, answer = client.request("GET", path)
        assert status == 422, path
        assert "Invalid id: expected text such as" in answer["issues"][0]["message"]
    for id in (0, -1, DIGITS, NEGATIVE, 2**63 - 1, -(2**63)):
        for path in (f"/orders/{ORDER.encode(id)}", f"/items/{encode_string(id)}"):
            assert client.request("GET", path)[0] == 404, path


def test_rows_of_every_number_are_shown(shop: dict[str, str], folder: Path, tmp_path: Path) -> None:
    numbers = (DIGITS, NEGATIVE, 2**63 - 1, -(2**63))
    with psycopg.connect(shop["DATABASE_URL"]) as connection:
        for number in numbers:
            connection.execute("insert into shop_order values (%s, 'Ada')", [number])
            connection.execute("insert into shop_item values (%s, %s, 'a')", [number, number])
    with (
        Application(COMMAND, folder, shop, tmp_path / "log") as application,
        Client(application.port) as client,
    ):
        for number in numbers:
            item = {"id": encode_string(number), "order_id": ORDER.encode(number), "name": "a"}
            order = {"id": ORDER.encode(number), "customer": "Ada", "items": [item]}
            assert client.get(f"/orders/{order['id']}") == order
            assert client.get(f"/items/{item['id']}") == item


def test_answers_503_while_there_is_no_id(
    shop: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    away = shop | {"RANDFLAKE_STORE": "postgresql://nobody:nothing@127.0.0.1:1/nowhere"}
    with (
        Application(COMMAND, folder, away, tmp_path / "log") as application,
        Client(application.port) as client,
    ):
        for _ in range(3):
            with pytest.raises(UnansweredError, match="503"):
                client.post("/orders", {"customer": "Ada", "items": []})


def test_refuses_what_is_no_id_and_gives_node_ids_back_at_its_end(
    shop: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    def held() -> int:
        url = shop["RANDFLAKE_STORE"]
        return list_leases(url).held + list_leases(url, namespace="orders").held

    def make(client: Client) -> list[Any]:
        return [client.post("/orders", {"customer": "Ada", "items": ["a book"]})]

    with Application(COMMAND, folder, shop, tmp_path / "log") as application:
        order = make_rows(application, make, 1, kills=0)[0]
        with Client(application.port) as client:
            check_refusals(client, order)
        assert held() == 2
        application.stop()
    assert held() == 0
