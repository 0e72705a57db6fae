"""After a restore, what was made before belongs to another process. Each in its own process."""

from pathlib import Path

from conftest import LEASED_SECRET as SECRET, run_python

BEGIN = """
import sys
from randflake import Inspector, Randflake, RandflakeError, Snowflake, Tickets, after_restore

def outcome(call):
    try:
        call()
    except RandflakeError as error:
        return error.code
    return "done"

store, secret = sys.argv[1:]
"""


def run(code: str, store: Path) -> list[str]:
    return run_python(BEGIN + code, str(store), SECRET).splitlines()


def test_manual_node_ids_are_another_process_s(store: Path) -> None:
    code = """
flake, posts = Randflake(1, secret), Snowflake(1)
id = flake.generate()
assert after_restore() is None
print(outcome(flake.generate), outcome(lambda: flake.generate_many(300)), outcome(posts.generate))
print(outcome(lambda: Randflake(1, secret)), outcome(Randflake(2, secret).generate))
print(flake.inspect(id).node_id)
"""
    assert run(code, store) == ["FORKED FORKED FORKED", "FORKED done", "1"]


def test_generators_of_the_published_version_are_another_process_s(store: Path) -> None:
    code = """
import time
from randflake import v2
now = int(time.time())
lease = v2.Lease(3, now, now + 300)
used, unused = [v2.Generator(v2.Config(lease, bytes.fromhex(secret))) for _ in range(2)]
used.generate()
after_restore()
print(outcome(used.generate), outcome(unused.generate))
"""
    assert run(code, store) == ["FORKED FORKED"]


def test_a_leased_generator_begins_anew(store: Path) -> None:
    code = """
flake = Randflake.leased(store, secret)
before, ids = flake.node_id, flake.generate_many(100)
for _ in range(3):
    after_restore()
    assert flake.lease is None and flake.node_ids == ()
    ids += [flake.generate(), *flake.generate_many(1000)]
    assert flake.lease.state == "holding"
print(len(ids) - len(set(ids)), len({Inspector(secret).inspect(id).node_id for id in ids}))
flake.close()
after_restore()
print(outcome(flake.generate))
"""
    assert run(code, store) == ["0 4", "CLOSED"]


def test_numbers_of_before_are_not_handed_out(store: Path) -> None:
    code = """
orders = Tickets.leased(store, "orders", create=True, min_block=10)
before = [orders.generate() for _ in range(3)]
after_restore()
after = [orders.generate() for _ in range(3)]
orders.close()
print(before, min(*after, Tickets.leased(store, "orders").generate()) > 10)
"""
    assert run(code, store) == ["[1, 2, 3] True"]
