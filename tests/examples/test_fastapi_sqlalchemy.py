"""examples/fastapi_sqlalchemy under uvicorn."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from applications import EXAMPLES, Application, Client
from randflake import decode_string
from randflake.text import TextForm

from .checks import NAMES, ORDER, check_answers_503, check_missing, check_rows, held

FOLDER = EXAMPLES / "fastapi_sqlalchemy"
COMMAND = [sys.executable, "-m", "uvicorn", "main:app", "--port", "PORT"]


@pytest.fixture
def shop(settings: dict[str, str]) -> dict[str, str]:
    """The settings of the shop, for which all is made that is made once."""
    subprocess.run([sys.executable, "main.py"], check=True, cwd=FOLDER, env=settings)
    return settings


def test_no_row_that_clients_know_is_lost_or_made_twice(
    shop: dict[str, str], tmp_path: Path
) -> None:
    workers = [*COMMAND, "--workers", "2"]
    with Application(workers, FOLDER, shop, tmp_path / "log") as application:
        _, items = check_rows(application, NAMES)

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
    check_missing(client)


def check_openapi(document: Any) -> None:
    """Ids are text."""
    (parameter,) = document["paths"]["/orders/{id}"]["get"]["parameters"]
    assert parameter["schema"] == {"type": "string", "pattern": ORDER.pattern, "title": "Id"}
    properties = document["components"]["schemas"]["ItemAnswer"]["properties"]
    assert properties["id"]["pattern"] == TextForm().pattern
    assert properties["order_id"]["pattern"] == ORDER.pattern


def test_answers_503_while_there_is_no_id(shop: dict[str, str], tmp_path: Path) -> None:
    check_answers_503(COMMAND, FOLDER, shop, tmp_path / "log")


def test_refuses_what_is_no_id_and_gives_node_ids_back_at_its_end(
    shop: dict[str, str], tmp_path: Path
) -> None:
    with Application(COMMAND, FOLDER, shop, tmp_path / "log") as application:
        with Client(application.port) as client:
            order = client.post("/orders", {"customer": "Ada", "items": ["a book"]})
            check_refusals(client, order)
            check_openapi(client.get("/openapi.json"))
        assert held(shop) == 2
        application.stop()
    assert held(shop) == 0
