"""URLs of stores: all languages read or refuse them alike; the environment never moves a store."""

import itertools
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import SECRET, VECTORS
from randflake import Layout, Randflake, Snowflake, Tickets
from randflake._randflake import address_of
from randflake._urls import Address
from randflake.errors import InvalidArgumentError
from randflake.text import TextForm

STORES = json.loads((VECTORS / "stores.json").read_text(encoding="utf-8"))
ENGINES = [pytest.param(name, engine, id=name) for name, engine in STORES["engines"].items()]


PEM = "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n"


@pytest.fixture
def pem(tmp_path: Path) -> str:
    """The path of a file that looks like what a URL may name: `{pem}` in the vectors."""
    path = tmp_path / "pem"
    path.write_text(PEM)
    return urllib.parse.quote(str(path), safe="")


def refused(store: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Randflake.leased(store, SECRET, acquire_timeout=0)
    assert caught.value.code == "INVALID_ARGUMENT", store
    assert "hunter2" not in str(caught.value), store


@pytest.mark.parametrize(("name", "engine"), ENGINES)
def test_a_url_has_one_place(name: str, engine: dict[str, Any], pem: str) -> None:
    parts = (engine[part].items() for part in ("schemes", "logins", "hosts", "paths", "queries"))
    combined = (zip(*combination, strict=True) for combination in itertools.product(*parts))
    joined = (("".join(texts) for texts in pair) for pair in combined)
    for url, place in itertools.chain(joined, engine["whole"].items()):
        read = address_of(url.replace("{pem}", pem))
        assert read is not None, url
        address = Address(*read)
        assert (address.server, address.place) == (name, place), url
        assert "hunter2" not in repr(address)
        assert not address.password or "hunter2" in address.password.replace(":", "")


@pytest.mark.parametrize("engine", STORES["engines"].values(), ids=STORES["engines"])
def test_a_wrong_url_is_refused_before_anything_is_opened(engine: dict[str, Any], pem: str) -> None:
    for index, parts in enumerate(engine["wrong"]):
        for part in parts:
            example = list(engine["example"])
            example[index] = part
            refused("".join(example).replace("{pem}", pem))


def test_what_is_no_store_is_refused(pem: str) -> None:
    for path in STORES["no_urls"]:
        assert address_of(path) is None
    for store in STORES["no_stores"]:
        refused(store.replace("{pem}", pem))


@pytest.mark.parametrize("secret", [SECRET, SECRET.upper(), "a 16-byte secret", f"id={SECRET};"])
def test_a_secret_in_the_wrong_place_is_not_shown(secret: str, tmp_path: Path) -> None:
    """It would be in a log."""
    wrong: list[Callable[[], object]] = [
        lambda: Layout(secret),
        lambda: Layout(f"twitter,{secret}"),
        lambda: Layout(fields=[(secret, 41)]),  # type: ignore[list-item]
        lambda: Layout(fields=[("time", 41), ("node", 10), ("sequence", 12)], sequence=secret),
        lambda: Snowflake(1, secret),
        lambda: TextForm(prefix=secret),
        lambda: Tickets.leased(tmp_path / "ids.db", f"{secret}\n"),
        lambda: Randflake.leased(tmp_path / "ids.db", SECRET, namespace=f" {secret}"),
    ]
    if len(secret) == 32:
        wrong += [
            lambda: Randflake.leased(tmp_path / "ids.db", SECRET, namespace=secret),
            lambda: Randflake.leased(secret, SECRET),
        ]
    for call in wrong:
        with pytest.raises(InvalidArgumentError) as caught:
            call()
        said = str(caught.value).lower()
        assert secret.lower() not in said
        assert secret[:12].lower() not in said
