"""The database, the store and the secret of an application.

How to test another one: bindings-python/tests/applications.py.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from applications import SECRET
from randflake import init_store
from servers import STARTERS, Server

# So that a failure shows the values in it, as it does in a test.
pytest.register_assert_rewrite("examples.checks")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with STARTERS["postgres"](tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def settings(postgres: Server, tmp_path: Path) -> dict[str, str]:
    """The environment of an application: a database of its own, in which its leases are, too.

    The namespace "default" is there for Randflake; make others with init_store.
    """
    name = tmp_path.name
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            psycopg.sql.SQL("create database {}").format(psycopg.sql.Identifier(name))
        )
    url = postgres.url().rpartition("/")[0] + f"/{name}"
    init_store(url, SECRET, "new")
    return {"DATABASE_URL": url, "RANDFLAKE_STORE": url, "RANDFLAKE_SECRET": SECRET}
