"""What a PostgreSQL has committed without its standbys counts for no client, whoever said so."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import servers
from randflake import init_store
from test_command import CARGO, ROOT, SECRET

ASYNC = """
import asyncio, os, sys
import {driver}
from randflake import Randflake

async def main():
    connection = await {connect}(os.environ["RANDFLAKE_STORE"]{options})
    async with Randflake.leased_async(connection, acquire_timeout=6) as flake:
        print(flake.generate())

asyncio.run(main())
"""
NODE = """
const { Client, Pool } = require('pg')
const { Randflake } = require('randflake')
const open = async (url) => {
  if (OWN) return new Pool({ connectionString: url })
  const client = new Client(url)
  await client.connect()
  return client
}
open(process.env.RANDFLAKE_STORE)
  .then((store) =>
    Randflake.leased(store, process.env.RANDFLAKE_SECRET, { acquireTimeoutMs: 6000 }),
  )
  .then((flake) => process.stdout.write(`${flake.generate()}\\n`))
  .catch(({ code, message }) => process.stderr.write(`${code}: ${message}\\n`))
  .finally(() => process.exit(1)) // what connects to the server is still open
"""
GENERATE = ["generate", "--acquire-timeout", "6"]
PSYCOPG = {"driver": "psycopg", "connect": "psycopg.AsyncConnection.connect"}
CLIENTS: dict[str, list[str]] = {
    "Rust": [str(CARGO), *GENERATE],
    "psycopg": [sys.executable, "-m", "randflake", *GENERATE],
    "psycopg, asynchronous": [
        *(sys.executable, "-c"),
        ASYNC.format(**PSYCOPG, options=", autocommit=True"),
    ],
    "asyncpg": [
        *(sys.executable, "-c"),
        ASYNC.format(driver="asyncpg", connect="asyncpg.connect", options=""),
    ],
    "pg": ["node", str(ROOT / "bindings-node" / "command.js"), *GENERATE],
    "pg, a pool": ["node", "-e", NODE.replace("OWN", "true")],
    "pg, a client": ["node", "-e", NODE.replace("OWN", "false")],
}


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """A PostgreSQL whose standby is away, where somebody cancels each wait for it."""
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.postgres(Path(folder)) as server,
        psycopg.connect(server.url(), autocommit=True) as session,
    ):
        init_store(server.url(), SECRET, "new")
        session.execute("set synchronous_commit = local")
        session.execute("alter system set synchronous_standby_names = 'away'")
        session.execute("select pg_reload_conf()")
        ended = threading.Event()

        def cancel() -> None:
            while not ended.wait(0.05):
                session.execute(
                    "select pg_cancel_backend(pid) from pg_stat_activity "
                    "where wait_event = 'SyncRep'"
                )

        thread = threading.Thread(target=cancel)
        thread.start()
        yield server.url()
        ended.set()
        thread.join()


def test_a_commit_without_its_standbys_counts_for_no_client(store: str) -> None:
    environment = {**os.environ, "RANDFLAKE_STORE": store, "RANDFLAKE_SECRET": SECRET}
    node = ROOT / "bindings-node"  # where `randflake` and `pg` are found
    programs = {
        name: subprocess.Popen(
            command,
            cwd=node,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, command in CLIENTS.items()
    }
    for name, program in programs.items():
        printed, said = program.communicate(timeout=300)
        assert printed == "", f"{name} made an id"
        assert program.returncode != 0, name
        # A connection of the caller's is closed then, and there is no other.
        why = ("wait for standbys was cancelled", "connection is closed", "not queryable")
        assert any(it in said for it in why), f"{name}: {said}"
