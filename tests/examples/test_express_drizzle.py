"""examples/express-drizzle under Node.js."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from applications import EXAMPLES, Application, Client, make_rows
from randflake import encode_string, init_store

from .checks import (
    DIGITS,
    NAMES,
    NEGATIVE,
    ORDER,
    check_answers_503,
    check_missing,
    check_rows,
    held,
)

PACKAGE = EXAMPLES.parent / "bindings-node"
PACKAGES = ["drizzle-orm", "express", "pg", "zod", "@types"]
COMMAND = ["node", "main.mjs"]


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
    with Application(COMMAND, folder, shop, tmp_path / "log") as application:
        check_rows(application, NAMES)


def check_refusals(client: Client, order: Any) -> None:
    """Says what an id looks like, and what is not there."""
    for path in ("/orders/1", "/orders/1234567890123", "/items/01", f"/items/{order['id']}"):
        status, answer = client.request("GET", path)
        assert status == 422, path
        assert "Invalid id: expected text such as" in answer["issues"][0]["message"]
    check_missing(client)


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
    check_answers_503(COMMAND, folder, shop, tmp_path / "log")


def test_refuses_what_is_no_id_and_gives_node_ids_back_at_its_end(
    shop: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    def make(client: Client) -> list[Any]:
        return [client.post("/orders", {"customer": "Ada", "items": ["a book"]})]

    with Application(COMMAND, folder, shop, tmp_path / "log") as application:
        order = make_rows(application, make, 1, kills=0)[0]
        with Client(application.port) as client:
            check_refusals(client, order)
        assert held(shop) == 2
        application.stop()
    assert held(shop) == 0
