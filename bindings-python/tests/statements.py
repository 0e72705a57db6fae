"""Runs statements for the conformance tests of stores, which are in Rust: leases/tests/languages.

Prints the port on which it listens, and ends with its standard input. Each connection is a client,
and sends one statement per line.
"""

import asyncio
import json
import re
import socketserver
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg_pool
import pymysql
import redis
import redis.asyncio
import sqlalchemy
import sqlalchemy.ext.asyncio
from randflake import _urls, stores
from randflake._async_clients import on_this_loop


def block_of(document: str, name: str) -> str:
    """Returns the only Python code block of a document that contains a name."""
    text = (Path(__file__).parents[2] / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if name in block)
    return str(block)


def of_the_guide(name: str) -> Any:
    """Returns what a code block of the guide to PostgreSQL defines."""
    defined: dict[str, Any] = {}
    exec(block_of("docs/guides/postgresql.md", f"class {name}"), defined)
    return defined[name]


def pg8000(url: str) -> Any:
    parts = urlsplit(url)
    login = {"host": parts.hostname, "port": parts.port, "user": parts.username}
    return of_the_guide("Pg8000")(**login, database=parts.path[1:], password=parts.password)


def mysql(url: str) -> Any:
    """A connection as the driver makes it: without autocommit."""
    parts = urlsplit(url)
    login = {"host": parts.hostname, "port": parts.port, "user": parts.username}
    return pymysql.connect(**login, database=parts.path[1:], password=parts.password)


def store_of(client: str, url: str) -> Callable[[], object]:
    """Returns what makes the store of a connection: of its own, or one for all."""
    if client == "pg8000":
        return lambda: pg8000(url)
    if client == "psycopg_pool":
        pool = psycopg_pool.ConnectionPool(url, min_size=1, max_size=20, open=True)
        return lambda: pool
    if client == "pymysql":
        return lambda: mysql(url)
    if client == "sqlalchemy_pymysql":
        engine = sqlalchemy.create_engine(url.replace("mysql:", "mysql+pymysql:"), pool_size=20)
        return lambda: engine
    if client == "redis":
        shared = redis.Redis.from_url(url)
        return lambda: shared
    return lambda: url


def adapters_of(client: str, url: str) -> Callable[[], object]:
    """Returns what makes the adapter of a connection, for a client of an event loop."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def made() -> object:
        if client == "asyncpg":
            return await asyncpg.create_pool(url, min_size=1, max_size=20)
        if client == "psycopg_async":
            pool = psycopg_pool.AsyncConnectionPool(url, min_size=1, max_size=20, open=False)
            await pool.open()
            return pool
        if client == "sqlalchemy":
            url_of_driver = url.replace("postgresql:", "postgresql+asyncpg:")
            return sqlalchemy.ext.asyncio.create_async_engine(url_of_driver, pool_size=20)
        return redis.asyncio.Redis.from_url(url)

    async def adapter(store: object) -> object:
        return on_this_loop(store)

    store = asyncio.run_coroutine_threadsafe(made(), loop).result()
    return lambda: asyncio.run_coroutine_threadsafe(adapter(store), loop).result()


OF_A_LOOP = ("asyncpg", "psycopg_async", "sqlalchemy", "redis_async")


class Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        source = stores.source_of(make())
        assert source is not None
        adapter = source.open()
        for line in self.rfile:
            self.wfile.write(json.dumps(answer(adapter, **json.loads(line))).encode() + b"\n")
        getattr(adapter, "discard", lambda: None)()


def answer(
    adapter: Any, text: str, parameters: list[str], wait: list[int] | None
) -> dict[str, Any]:
    try:
        if wait is not None:
            rows, replicas = adapter.run_and_wait(text, parameters, *wait)
            return {"rows": rows, "replicas": replicas}
        return {"rows": adapter.run(text, parameters)}
    except stores.Refused as error:
        return {"refused": [error.code, error.message]}
    except Exception as error:
        return {"failed": repr(error)}


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    make = (adapters_of if sys.argv[1] in OF_A_LOOP else store_of)(*sys.argv[1:])
    _urls.TIMEOUT = 20.0  # for a busy machine
    with Server(("127.0.0.1", 0), Connection) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)
        sys.stdin.read()
