"""Uses the whole package with types; `mypy --strict` accepts it.

Each wrong use is marked, and an unused mark is an error, so this also tests what the types refuse.
"""

import time
from array import array
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_type

import numpy as np
import polars as pl
import psycopg
import psycopg_pool
import randflake
import redis
import redis.asyncio
from numpy.typing import NDArray
from randflake import (
    BoundaryFlake,
    Cloak,
    Codes,
    CounterStatus,
    Inspector,
    InvalidArgumentError,
    InvalidTypeError,
    Layout,
    Lease,
    LeaseStatus,
    LifetimeWarning,
    NodeStatus,
    Parts,
    PartsArray,
    Randflake,
    RandflakeError,
    RawParts,
    RetryLaterError,
    Snowflake,
    StoreError,
    StoreLimits,
    StoreStatus,
    Tickets,
    TicketsMetrics,
    WeakSecretWarning,
    decode_string,
    decode_strings,
    encode_string,
    encode_strings,
    fence_store,
    fence_tickets,
    generate_secret,
    init_store,
    init_tickets,
    inspect_lease,
    list_leases,
    list_tickets,
    release_lease,
    repair_lease,
    repair_store,
    set_node_ids,
    show_tickets,
)
from randflake.sqlalchemy import IdType
from randflake.stores import Adapter, Refused, Rows, Unavailable
from randflake.testing import FakeRandflake, FakeSnowflake, FakeTickets
from randflake.text import TextForm
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

if TYPE_CHECKING:
    from randflake import LeasedRandflake, LeasedSnowflake


class OnlyNow:
    def now(self) -> int:
        return 1_763_640_000


class NowAndSleep:
    def now(self) -> float:
        return 1_763_640_000.5

    def sleep(self, seconds: float) -> None: ...


secret = generate_secret()
assert_type(randflake.Generator(1, 2, 3, bytes(16)).get_lease_info(), randflake.LeaseInfo)
assert_type(randflake.RANDFLAKE_MAX_NODE, int)
assert_type(randflake.Sparx64(bytes(16)).block_size(), int)
assert_type(secret, str)
assert_type(randflake.__version__, str)

Randflake(np.int64(7), bytes.fromhex(secret))
Randflake([1, 2], secret, max_wait=0, restart_safe=False)
Randflake(range(3), secret, clock=time.time)
Randflake((1,), secret, clock=OnlyNow(), lease=Lease(1_763_640_000, 1_763_640_300), max_drift=10)
Randflake("1", bytearray(16))
Randflake(1.0, secret)  # type: ignore[arg-type]
Randflake(1, 16)  # type: ignore[arg-type]
Randflake(1, secret, None)  # type: ignore[call-arg]
Randflake(1, secret, max_wait="1")  # type: ignore[arg-type]
Randflake(1, secret, lease=(1, 2))  # type: ignore[arg-type]
Randflake(1, secret, clock=1)  # type: ignore[arg-type]
Randflake(1, secret, wait=1)  # type: ignore[call-arg]

with Randflake(1, secret, clock=NowAndSleep()) as flake:
    assert_type(flake, Randflake)
    assert_type(flake.generate(), int)
    assert_type(flake.generate_string(), str)
    assert_type(flake.generate_many(3), list[int])
    assert_type(flake.generate_strings(3), list[str])
    assert_type(flake.generate_array(3), NDArray[np.int64])
    assert_type(flake.decrypt_many([1, "2"]), list[int])
    assert_type(flake.encrypt_many(array("Q", [1])), list[int])
    assert_type(flake.decrypt_array(pl.Series([1])), NDArray[np.uint64])
    flake.decrypt_in_place(array("q", [0]))
    flake.encrypt_many(["1"])  # type: ignore[list-item]
    flake.encrypt_in_place([0])  # type: ignore[arg-type]
    assert_type(flake.inspect(1), Parts)
    assert_type(flake.inspect("1"), Parts)
    assert_type(flake.decrypt(1), int)
    assert_type(flake.encrypt(1), int)
    assert_type(flake.lease, Lease | LeaseStatus | None)
    assert_type(flake.node_ids, tuple[int, ...])
    flake.fill(array("q", [0]))
    flake.fill(np.zeros(3, np.int64))
    flake.extend_lease(1_763_640_600)
    flake.generate(1)  # type: ignore[call-arg]
    flake.generate_many(1.5)  # type: ignore[arg-type]
    flake.fill([0])  # type: ignore[arg-type]
    flake.inspect(1.5)  # type: ignore[arg-type]
    flake.node_ids = (2,)  # type: ignore[misc]
    list(flake)  # type: ignore[call-overload]

with Randflake.leased(Path("ids.db"), secret, node_count=2, ttl=None, max_wait=0) as leased:
    assert_type(leased, LeasedRandflake)
    assert_type(leased.lease, LeaseStatus | None)
    if leased.lease is not None and leased.lease.state != "holding":
        assert_type(leased.lease.state, Literal["waiting", "retrying", "expired", "stopped"])
        assert_type(leased.lease.node_ids, tuple[int, ...])
        unknown: bool = leased.lease.state == "halding"  # type: ignore[comparison-overlap]
        assert_type(leased.lease.seconds_left, float)
        assert_type(leased.lease.last_error, RandflakeError | None)
Randflake.leased(b"ids.db", bytes.fromhex(secret), namespace="orders", acquire_timeout=0.5)
Randflake.leased(1, secret)  # type: ignore[arg-type]
Randflake.leased("ids.db", secret, 2)  # type: ignore[call-arg]
Randflake.leased("ids.db", secret, ttl=1.5)  # type: ignore[arg-type]
Randflake.leased("ids.db", secret, namespace=b"orders")  # type: ignore[arg-type]


async def asynchronous() -> None:
    async with Randflake.leased_async("ids.db", secret, node_count=2) as flake:
        assert_type(flake, LeasedRandflake)
        assert_type(await flake.generate_many_async(3), list[int])
        assert_type(await flake.generate_array_async(3), NDArray[np.int64])
        await flake.ready()
    either: Randflake = await Randflake.leased_async("ids.db", secret)
    await either.aclose()
    async with await Snowflake.leased_async("ids.db", layout) as snowflake:
        assert_type(snowflake, LeasedSnowflake)
    async with Snowflake(5) as manual:
        assert_type(manual, Snowflake)
    for store in (
        redis.asyncio.Redis.from_url("redis://localhost"),
        psycopg_pool.AsyncConnectionPool("postgresql://app@localhost/app"),
        create_async_engine("postgresql+asyncpg://app@localhost/app"),
        create_engine("postgresql+psycopg://app@localhost/app"),
    ):
        Randflake.leased_async(store, secret)
    Randflake.leased_async(5, secret)  # type: ignore[arg-type]
    Randflake.leased_async("ids.db", 5)  # type: ignore[arg-type]
    Randflake.leased_async("ids.db", secret).generate()  # type: ignore[attr-defined]
    await flake.generate_many_async(1.5)  # type: ignore[arg-type]


class Mine:
    server = "postgresql"

    def run(self, text: str, parameters: list[str]) -> Rows:
        if not parameters:
            raise Refused("42601", text)
        if text:
            raise Unavailable("asleep")
        return [["a", None]]


class OfNumbers:
    server = "postgresql"

    def run(self, text: str, parameters: list[str]) -> list[list[int]]:
        return [[len(text), len(parameters)]]


adapter: Adapter = Mine()
connection = psycopg.connect("postgresql://app@localhost/app")
pool = psycopg_pool.ConnectionPool("postgresql://app@localhost/app")
client = redis.Redis.from_url("redis://localhost")
for store in ("etcd://localhost:2379", adapter, connection, pool, client):
    init_store(store, secret, "quarantine", namespace="orders", max_ttl=60, max_skew=1)
    Randflake.leased(store, secret, namespace="orders", create=True, allow_weak_store=True)
init_store(Mine(), secret, mode="new")
init_store(client, bytes.fromhex(secret), "new", allow_weak_store=True)
init_store(client, layout="twitter", mode="new")
Randflake.leased(connection, secret)
Randflake.leased(pool, secret, max_skew=1)
Randflake.leased(Path("ids.db"), secret, create=False)
init_store(Path("ids.db"), secret, "quarantine")
init_store(OfNumbers(), secret, "new")  # type: ignore[call-overload]
init_store(adapter, secret, "new", create=True)  # type: ignore[call-overload]
init_store(adapter, secret)  # type: ignore[call-overload]
init_store(adapter, secret, "old")  # type: ignore[call-overload]
Randflake.leased(object(), secret)  # type: ignore[arg-type]
Randflake.leased(adapter, secret, quarantine=True)  # type: ignore[call-arg]
with connection.cursor() as cursor:
    Randflake.leased(cursor, secret)  # type: ignore[arg-type]

inspector = Inspector(secret)
columns = inspector.inspect_array(np.zeros(3, np.int64))
assert_type(columns, PartsArray)
assert_type(columns.timestamp, NDArray[np.int64])
assert_type(columns.node_id, NDArray[np.uint32])
inspector.inspect_array(array("q", [1]))
inspector.inspect_array(pl.Series([1]))
inspector.inspect_array([1])  # type: ignore[arg-type]
assert_type(inspector.encrypt_array(np.zeros(3, np.uint64)), NDArray[np.int64])
timestamps, node_ids, sequences = columns
assert_type(sequences, NDArray[np.uint32])

parts = inspector.inspect(decode_string(encode_string(7)))
assert_type(parts.timestamp, int)
assert_type(parts.datetime, datetime)
assert_type(parts == Parts(1, 2, 3), bool)
parts.sequence = 1  # type: ignore[misc]
encode_string("text")  # type: ignore[arg-type]
decode_string(7)  # type: ignore[arg-type]
assert_type(encode_strings(pl.Series([1])), list[str])
assert_type(decode_strings(["1"]), list[int])
encode_strings(["1"])  # type: ignore[list-item]
decode_strings([1])  # type: ignore[list-item]


layout = Layout(fields=[("time", 41), ("node", 10), ("sequence", 12)], sequence=("random", 9))
assert_type(layout, Layout)
assert_type(layout.inspect(1), RawParts)
assert_type(layout.pack(1_763_640_000_000, 1, 2), int)
assert_type(layout.first_id_at(datetime.now().astimezone()), int)
assert_type(layout.inspect(1).datetime, datetime)
assert_type(layout.split_node(1), tuple[int, int] | None)
assert_type(layout.ends_at, int)
Layout("leaf", sequence="continuing")
Layout("leaf", tick_ms=1)  # type: ignore[call-overload]
Layout(fields=[("clock", 41)])  # type: ignore[list-item]
Layout()  # type: ignore[call-overload]
layout.inspect("1")  # type: ignore[arg-type]
layout.first_id_at(1.5)  # type: ignore[arg-type]

with Snowflake([1, 2], layout, max_wait=0.5) as snowflake:
    assert_type(snowflake.generate(), int)
    assert_type(snowflake.generate_many(3), list[int])
    assert_type(snowflake.generate_array(3), NDArray[np.int64])
    assert_type(snowflake.inspect(1), RawParts)
    assert_type(snowflake.lease, Lease | LeaseStatus | None)
    assert_type(snowflake.layout, Layout)
    snowflake.fill(array("q", [0]))
Snowflake(1, "discord", clock=OnlyNow(), lease=Lease(1_763_640_000, 1_763_640_300), max_drift=1)
Snowflake(1.0)  # type: ignore[arg-type]
with Snowflake.leased(Path("ids.db"), layout, node_count=2, max_drift=1) as sortable:
    assert_type(sortable, LeasedSnowflake)
    assert_type(sortable.lease, LeaseStatus | None)
    snowflake = sortable
Snowflake.leased("ids.db")
Snowflake.leased("ids.db", "twitter", max_drift=None)  # type: ignore[arg-type]
Snowflake.leased("ids.db", 1)  # type: ignore[arg-type]
Snowflake.leased("ids.db", "twitter", 2)  # type: ignore[call-arg]
Snowflake(1, 2)  # type: ignore[arg-type]

cloak = Cloak(secret, "orders.id")
assert_type(cloak.hide(1), int)
assert_type(cloak.hide_string(1), str)
assert_type(cloak.hide_many(range(3)), list[int])
assert_type(cloak.reveal("1"), int)
assert_type(cloak.reveal_many(["1", 2]), list[int])
assert_type(cloak.hide_array(memoryview(array("Q", [1]))), NDArray[np.int64])
assert_type(cloak.reveal_array(np.zeros(3, np.int64)), NDArray[np.uint64])
cloak.hide_in_place(np.zeros(3, np.int64))
cloak.hide("1")  # type: ignore[arg-type]
cloak.hide_in_place([1])  # type: ignore[arg-type]
Cloak(secret)  # type: ignore[call-arg]

codes = Codes(secret, "orders", length=10, alphabet="crockford", check=3)
assert_type(codes.encode(1), str)
assert_type(codes.encode_many(range(3)), list[str])
assert_type(codes.decode("1"), int)
assert_type(codes.decode_many(["1"]), list[int])
assert_type(codes.capacity, int)
assert_type(TextForm(codes=codes).encode(1), str)
codes.encode("1")  # type: ignore[arg-type]
codes.decode(1)  # type: ignore[arg-type]
Codes(secret, "orders", alphabet=10)  # type: ignore[arg-type]

boundary = BoundaryFlake("8HFaR8qWtRlGDHnO57")
assert_type(BoundaryFlake(bytes(boundary)), BoundaryFlake)
assert_type(boundary.unix_ms, int)
assert_type(boundary.worker, bytes)
assert_type(boundary.sequence, int)
assert_type(boundary.datetime, datetime)
assert_type(boundary < boundary, bool)
BoundaryFlake(5)  # type: ignore[arg-type]

with Tickets.leased(Path("ids.db"), "orders", start=1, step=2, reserve_seconds=1) as tickets:
    assert_type(tickets, Tickets)
    assert_type(tickets.name, str)
    assert_type(tickets.generate(), int)
    assert_type(tickets.generate_many(3), list[int])
    assert_type(tickets.generate_array(3), NDArray[np.int64])
    assert_type(tickets.metrics(), TicketsMetrics)
    assert_type(tickets.metrics().store_errors, dict[str, int])
    tickets.fill(array("q", [0]))
    tickets.name = "b"  # type: ignore[misc]
Tickets.lazy(None, "orders", create=True)
Tickets("ids.db")  # type: ignore[call-arg]
Tickets.leased("ids.db")  # type: ignore[call-arg]
Tickets.leased("ids.db", "orders", "b")  # type: ignore[call-arg]
Tickets.leased("ids.db", "orders", min_block="1")  # type: ignore[arg-type]
init_tickets("ids.db", "new")
init_tickets("ids.db", "old")  # type: ignore[arg-type]
assert_type(fence_tickets("ids.db", "orders", 5), CounterStatus)
assert_type(list_tickets("ids.db"), list[CounterStatus])
assert_type(show_tickets("ids.db", "orders"), CounterStatus | None)
fence_tickets("ids.db", "orders")  # type: ignore[call-arg]


async def use_tickets() -> None:
    async with Tickets.leased_async("ids.db", "orders") as tickets:
        assert_type(tickets, Tickets)
        assert_type(await tickets.generate_many_async(3), list[int])
        await tickets.ready()


store_status = list_leases("ids.db", namespace="orders")
assert_type(store_status, StoreStatus)
assert_type(store_status.leases[0], NodeStatus)
assert_type(store_status.limits, StoreLimits)
assert_type(inspect_lease("ids.db", 7), NodeStatus | None)
assert_type(fence_store("ids.db"), int)
assert_type(set_node_ids("ids.db", "0-6,8-1023"), int)
assert_type(repair_lease("ids.db", 7, end_exclusive=1763640000), int)
assert_type(repair_store("ids.db", floor=None), int)
assert_type(release_lease("ids.db", store_status.leases[0]), int)
release_lease("ids.db", 7)  # type: ignore[arg-type]
release_lease("ids.db")  # type: ignore[call-arg]


fake = FakeRandflake(start=datetime(2030, 1, 1, tzinfo=UTC), tick=0.5, node_id=[1, 2])
injected: Randflake = fake
fake.time = datetime(2030, 1, 1, tzinfo=UTC)
assert_type(fake.time, float)
assert_type(fake.lease, LeaseStatus | None)
assert_type(fake.generate(), int)
assert_type(FakeRandflake.leased("redis://nowhere", "0", namespace="a"), FakeRandflake)
fake_tickets: Tickets = FakeTickets("orders", start=7, step=2)
assert_type(FakeTickets.leased("redis://nowhere", "orders", max_wait=0), FakeTickets)
FakeTickets().break_store("STORE_QUARANTINED", left=2)
injected_snowflake: Snowflake = FakeSnowflake(layout="discord", clock=lambda: 1.5)


class Own(Randflake): ...  # type: ignore[misc]


try:
    flake.generate()
except RetryLaterError as error:
    assert_type(error.retry_after, float)
    misspelt: bool = error.code == "LEASE_EXPIERD"  # type: ignore[comparison-overlap]
except StoreError as error:
    assert_type(error.retry_after, float | None)
except InvalidTypeError as error:
    wrong_type: TypeError = error
except InvalidArgumentError as error:
    wrong_value: ValueError = error
except RandflakeError as error:
    is_over: bool = error.code in ("CLOSED", "FORKED")

warnings: list[type[UserWarning]] = [WeakSecretWarning, LifetimeWarning]


class Base(DeclarativeBase):
    pass


class Post(Base):
    __tablename__ = "post"
    id: Mapped[int] = mapped_column(IdType(), primary_key=True, default=Randflake.lazy().generate)
    text: Mapped[str] = mapped_column(IdType(TextForm("post")))
    plain: Mapped[str | None] = mapped_column(IdType(as_text=True))


assert_type(Post().id, int)
assert_type(Post().text, str)
IdType("post")  # type: ignore[arg-type]
