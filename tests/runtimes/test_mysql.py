"""Leases from the newest MySQL, which a tree of Debian sid has; other tests have MariaDB.

`make test-runtimes` makes the tree, with `scripts/sid`; without it these tests say so.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from randflake import Randflake, init_store
from test_artifacts import ROOT, run

sys.path.append(str(ROOT / "tests" / "servers"))

import starter

SECRET = "dffd6021bb2bd5b0af676290809ec3a5"

IN_PYTHON = """
import sys
from contextlib import closing
from urllib.parse import urlsplit

import pymysql
from randflake import InvalidArgumentError, Randflake, init_store
from sqlalchemy import create_engine

url, secret, wanted = sys.argv[1:]
at = urlsplit(url)
login = {"host": at.hostname, "port": at.port, "user": at.username, "password": at.password}
with closing(pymysql.connect(**login, database="ids")) as connection:
    engine = create_engine(url.replace("mysql:", "mysql+pymysql:"))
    for name, store in {"url": url, "connection": connection, "engine": engine}.items():
        lease = lambda: Randflake.leased(store, secret, namespace=f"python {name}")
        init_store(store, secret, "new", namespace=f"python {name}")
        with lease() as one, lease() as other:
            assert one.node_ids != other.node_ids
            ids = {*one.generate_many(1000), *other.generate_many(1000)}
            assert len(ids) == 2000
    engine.dispose()
    connection.begin()
    try:
        Randflake.leased(connection, secret, namespace="python connection")
    except InvalidArgumentError as error:
        assert "transaction" in str(error), error
    else:
        raise AssertionError("a transaction could be rolled back")
# Another process leases what this one does not.
with Randflake.leased(url, secret, namespace=wanted) as flake:
    print(flake.node_ids[0], *flake.generate_many(1000))
"""
IN_JAVASCRIPT = """
const assert = require('node:assert/strict')
const mariadb = require('mariadb')
const callbacks = require('mariadb/callback')
const mysql = require('mysql2/promise')
const { initStore, Randflake } = require('./index.js')

async function main(url, secret, wanted) {
  const { hostname: host, port, username: user, password } = new URL(url)
  // Without TLS it asks the server for the key by which it hides the password.
  const own = { host, port: Number(port), user, password, allowPublicKeyRetrieval: true }
  const login = { ...own, database: 'ids' }
  const stores = {
    url,
    'a pool of mysql2': mysql.createPool(url),
    'a connection of mysql2': await mysql.createConnection(url),
    'a pool of mariadb': mariadb.createPool(login),
    'a pool of mariadb with callbacks': callbacks.createPool(login),
    'a connection of mariadb': await mariadb.createConnection(login),
  }
  for (const [name, store] of Object.entries(stores)) {
    const options = { namespace: `node ${name}` }
    await initStore(store, secret, 'new', options)
    const lease = () => Randflake.leased(store, secret, options)
    const flakes = await Promise.all([lease(), lease()])
    assert.notDeepEqual(flakes[0].nodeIds, flakes[1].nodeIds)
    assert.equal(new Set(flakes.flatMap((flake) => [...flake.generateMany(1000)])).size, 2000)
    await Promise.all(flakes.map((flake) => flake.closeAsync()))
    if (name.startsWith('a connection')) {
      await store.query('begin')
      await assert.rejects(lease(), { code: 'INVALID_ARGUMENT', message: /transaction/ })
    }
    if (store !== url) await store.end()
  }
  // Another process leases what this one does not.
  const flake = await Randflake.leased(url, secret, { namespace: wanted })
  console.log(flake.nodeIds[0], ...[...flake.generateMany(1000)].map(String))
  await flake.closeAsync()
}
main(...process.argv.slice(1))
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Starts a MySQL."""
    try:
        server = starter.Server("mysql")
    except starter.Missing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        print(f"\n*** SKIPPED: {error} ***\n", file=sys.stderr)
        pytest.skip(str(error))
    with closing(server):
        server.start()
        yield server.url()


def test_the_newest_mysql(url: str) -> None:
    init_store(url, SECRET, "new")
    commands = {
        ROOT / "bindings-python": [sys.executable, "-c", IN_PYTHON],
        ROOT / "bindings-node": ["node", "-e", IN_JAVASCRIPT],
    }
    with Randflake.leased(url, SECRET) as flake:
        ids = {str(id) for id in flake.generate_many(1000)}
        for folder, command in commands.items():
            node_id, *made = run(*command, url, SECRET, "default", cwd=folder).split()
            assert int(node_id) not in flake.node_ids
            ids |= set(made)
    assert len(ids) == 3000
