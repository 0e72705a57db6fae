"""examples/django_drf under gunicorn, which loads it before it forks two workers."""

import subprocess
import sys
from pathlib import Path

import pytest
from applications import EXAMPLES, Application, Client
from randflake import decode_string, encode_string, init_store

from .checks import NAMES, ORDER, check_answers_503, check_missing, check_rows, held

FOLDER = EXAMPLES / "django_drf"
COMMAND = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2"]
COMMAND += ["--worker-class", "gthread", "--threads", "4", "--bind", "127.0.0.1:PORT"]
COMMAND += ["django.core.wsgi:get_wsgi_application()"]

ITEMS = [{"name": name} for name in NAMES]


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


def test_no_row_that_clients_know_is_lost_or_made_twice(
    shop: dict[str, str], tmp_path: Path
) -> None:
    with Application(COMMAND, FOLDER, shop, tmp_path / "log") as application:
        _, items = check_rows(application, ITEMS, slash="/")
    assert sum(decode_string(item["id"]) < 0 for item in items) > len(items) / 3


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
            check_missing(client, slash="/")
        assert held(shop) >= 2
        application.stop()
    assert held(shop) == 0


def test_answers_503_while_there_is_no_id(shop: dict[str, str], tmp_path: Path) -> None:
    check_answers_503(COMMAND, FOLDER, shop, tmp_path / "log", slash="/")
