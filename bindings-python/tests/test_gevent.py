"""Leases where gevent has replaced threads with greenlets."""

from pathlib import Path

import pytest
from conftest import SECRET, run_python
from servers import STARTERS

PATCHED = """
from gevent import monkey

monkey.patch_all()

import os, sys
import gevent
from randflake import InvalidArgumentError, Randflake, init_store

store, secret = sys.argv[1:]
# On a busy machine, a request may take longer than a second of skew.
short = {"ttl": 18, "max_skew": 3}
"""

LEASES = """
turns = 0

def others():
    global turns
    while True:
        turns += 1
        gevent.sleep(0.01)

gevent.spawn(others)
init_store(store, secret, "new", max_ttl=18, max_skew=3)
descriptors = len(os.listdir("/proc/self/fd"))
with Randflake.leased(store, secret, **short) as flake:
    ids = flake.generate_many(10)
    with gevent.Timeout(60):
        while flake.lease.renewals == 0:
            before = turns
            gevent.sleep(0.05)
            assert turns > before, "other greenlets run"
    ids.append(flake.generate())
    assert flake.lease.last_error is None, flake.lease
assert len(set(ids)) == 11
# Each statement has run in a thread with descriptors of its own.
assert len(os.listdir("/proc/self/fd")) <= descriptors + 2
print("leased")
"""

CLIENTS = """
import psycopg, psycopg_pool, redis

try:
    Randflake.leased(redis.Redis(), secret)
except InvalidArgumentError as error:
    assert "gevent" in str(error), error
init_store(store, secret, "new", max_ttl=18, max_skew=3)
with psycopg.connect(store) as connection, psycopg_pool.ConnectionPool(store) as pool:
    pool.wait()  # nobody connects while the first lease is awaited
    for client in (connection, pool):
        with Randflake.leased(client, secret, **short) as flake:
            flake.generate()
print("leased")
"""


@pytest.mark.parametrize("engine", STARTERS)
def test_a_store_under_gevent(engine: str, tmp_path: Path) -> None:
    with STARTERS[engine](tmp_path) as server:
        assert run_python(PATCHED + LEASES, server.url(), SECRET) == "leased\n"


def test_clients_under_gevent(tmp_path: Path) -> None:
    with STARTERS["postgres"](tmp_path) as server:
        assert run_python(PATCHED + CLIENTS, server.url(), SECRET) == "leased\n"


CHANGES = """
import logging, threading
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(levelname)s %(message).7s")
descriptors = len(os.listdir("/proc/self/fd"))
told = []
with Randflake.leased(store, secret, on_lease_change=lambda status: told.append(status.state)):
    with gevent.Timeout(60):
        while told != ["holding"]:
            gevent.sleep(0.01)
with gevent.Timeout(60):
    while told != ["holding", "stopped"]:
        gevent.sleep(0.01)
assert len(os.listdir("/proc/self/fd")) <= descriptors + 2
"""


def test_changes_of_a_lease_are_told_and_logged(tmp_path: Path) -> None:
    printed = run_python(PATCHED + CHANGES, str(tmp_path / "ids.db"), SECRET)
    assert printed == "INFO leased \nINFO stopped\n"
