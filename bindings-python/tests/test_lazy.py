"""Lazy generators, and settings from the environment."""

import asyncio
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import (
    LEASED_SECRET as SECRET,
    OTHER_SECRET,
    ends_in,
    in_child,
    locked,
    outcome,
    run_python,
)
from randflake import (
    Inspector,
    InvalidArgumentError,
    Layout,
    LifetimeWarning,
    Randflake,
    RetryLaterError,
    Snowflake,
    StoreError,
    Tickets,
    WeakSecretWarning,
    list_leases,
)
from randflake.stores import Unavailable

VARIABLES = [
    "RANDFLAKE_STORE",
    "RANDFLAKE_SECRET",
    "RANDFLAKE_SECRET_FILE",
    "RANDFLAKE_NAMESPACE",
]

READER = Inspector(SECRET)


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_the_first_id_takes_the_lease(store: Path) -> None:
    with Randflake.lazy(store, SECRET) as flake:
        assert (flake.node_ids, flake.lease) == ((), None)
        assert repr(flake) == "<randflake.Randflake node_ids=[]>"
        raw = READER.decrypt(flake.encrypt(5))
        assert (raw, flake.inspect(1)) == (5, READER.inspect(1))
        assert not store.exists(), "reading leases nothing"
        id = flake.generate()
        assert flake.node_ids == (READER.inspect(id).node_id,)
        assert flake.lease is not None
        assert flake.lease.state == "holding"
        assert len({id, flake.generate(), *flake.generate_many(20_000)}) == 20_002
    (end,) = ends_in(store).values()
    assert end <= READER.inspect(id).timestamp + 120, "given back, and not at 300"
    assert outcome(flake.generate) == "CLOSED"
    assert flake.inspect(id) == READER.inspect(id)


@pytest.mark.parametrize(
    "use",
    [
        lambda flake: flake.generate(),
        lambda flake: flake.generate_many(10),
        lambda flake: flake.generate_many(20_000),
        lambda flake: flake.generate_array(10),
        lambda flake: flake.fill(memoryview(bytearray(80)).cast("q")),
    ],
    ids=["generate", "generate_many", "large", "array", "fill"],
)
def test_whatever_makes_ids_takes_the_lease(store: Path, use: Callable[[Any], Any]) -> None:
    # In a layout with more node ids than the tests use: they could no longer assign a leased one.
    snowflake = Snowflake.lazy(store, "instagram")
    for flake in (Randflake.lazy(store, SECRET, namespace="r"), snowflake):
        use(flake)
        assert len(flake.node_ids) == 1
        flake.close()


def test_nothing_is_read_before_the_first_use(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flake, snowflake = Randflake.lazy(), Snowflake.lazy(layout="instagram")
    assert (flake.node_ids, snowflake.node_ids) == ((), ())
    for use in (flake.generate, flake.generate_string, lambda: flake.inspect(1)):
        with pytest.raises(InvalidArgumentError, match="set RANDFLAKE_SECRET to") as raised:
            use()
        assert raised.value.code == "INVALID_SECRET"
    monkeypatch.setenv("RANDFLAKE_SECRET", SECRET)
    assert flake.inspect(1) == READER.inspect(1)
    for of in (flake, snowflake):
        with pytest.raises(InvalidArgumentError, match="RANDFLAKE_STORE") as raised:
            of.generate()
        assert raised.value.code == "INVALID_ARGUMENT"
    monkeypatch.setenv("RANDFLAKE_STORE", str(store))
    # What was read stays: an inspector and a generator with two secrets would not agree.
    monkeypatch.setenv("RANDFLAKE_SECRET", OTHER_SECRET)
    id = flake.generate()
    assert READER.inspect(id).node_id == flake.node_ids[0]
    monkeypatch.setenv("RANDFLAKE_STORE", str(store.with_name("other.db")))
    flake.generate()
    with pytest.raises(InvalidArgumentError):
        Snowflake.lazy(store).generate()  # that namespace has a secret
    snowflake.generate()
    flake.close()
    snowflake.close()


def test_the_file_of_a_secret(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    monkeypatch.setenv("RANDFLAKE_STORE", str(store))
    monkeypatch.setenv("RANDFLAKE_SECRET_FILE", str(file))
    for of in (Randflake.leased, Randflake.lazy):
        with of() as flake:
            assert READER.inspect(flake.generate()).node_id == flake.node_ids[0]
    monkeypatch.setenv("RANDFLAKE_SECRET", SECRET)
    with pytest.raises(InvalidArgumentError, match="RANDFLAKE_SECRET and RANDFLAKE_SECRET_FILE"):
        Randflake.leased()
    monkeypatch.delenv("RANDFLAKE_SECRET")
    for wrong in (file.with_name("missing"), tmp_path):
        monkeypatch.setenv("RANDFLAKE_SECRET_FILE", str(wrong))
        with pytest.raises(InvalidArgumentError, match=f"RANDFLAKE_SECRET_FILE: .*{wrong}"):
            Randflake.leased()
    file.write_text("hunter2 hunter2 hunter2 hunter2")
    monkeypatch.setenv("RANDFLAKE_SECRET_FILE", str(file))
    with pytest.raises(InvalidArgumentError) as raised:
        Randflake.lazy().generate()
    assert "hunter2" not in str(raised.value)


def test_arguments_come_before_the_environment(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One secret under two namespaces repeats ids, so a call that names all takes nothing else."""
    monkeypatch.setenv("RANDFLAKE_STORE", str(store))
    monkeypatch.setenv("RANDFLAKE_SECRET", SECRET)
    monkeypatch.setenv("RANDFLAKE_NAMESPACE", "orders")

    def held(namespace: str) -> int:
        try:
            return list_leases(store, namespace=namespace).held
        except StoreError as error:
            assert error.code == "STORE_NOT_INITIALIZED"  # noqa: PT017
            return 0

    def namespace_of(make: Callable[[], Randflake]) -> str:
        before = {name: held(name) for name in ("default", "orders", "other")}
        flake = make()
        flake.generate()
        (name,) = (name for name in before if held(name) > before[name])
        flake.close()
        return name

    assert namespace_of(lambda: Randflake.lazy()) == "orders"
    assert namespace_of(lambda: Randflake.leased(secret=SECRET)) == "orders"
    assert namespace_of(lambda: Randflake.lazy(store)) == "orders"
    assert namespace_of(lambda: Randflake.lazy(namespace="other")) == "other"
    assert namespace_of(lambda: Randflake.lazy(store, SECRET)) == "default"
    assert namespace_of(lambda: Randflake.leased(store, SECRET, namespace=None)) == "default"
    monkeypatch.setenv("RANDFLAKE_SECRET", "x")
    monkeypatch.setenv("RANDFLAKE_STORE", "mongodb://x")
    assert namespace_of(lambda: Randflake.lazy(store, SECRET)) == "default"


def test_arguments_are_checked_at_once_and_the_secret_is_not(store: Path) -> None:
    for options in (
        {"node_count": 0},
        {"ttl": 29},
        {"max_drift": 101},
        {"max_wait": -1},
        {"namespace": ""},
    ):
        with pytest.raises(InvalidArgumentError):
            Randflake.lazy(store, SECRET, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nodes'"):
        Randflake.lazy(store, SECRET, nodes=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgumentError):
        Randflake.lazy(1, SECRET)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        Snowflake.lazy(store, "nothing")
    # Framework settings may have an empty secret where no ids are made.
    flake = Randflake.lazy(store, "")
    for use in (flake.generate, lambda: flake.decrypt(1)):
        assert outcome(use) == "INVALID_SECRET"
    assert not store.exists()


def test_a_relative_path_is_resolved_where_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    given, of_environment = Randflake.lazy("ids.db", SECRET), Randflake.lazy(secret=SECRET)
    monkeypatch.chdir(there)
    monkeypatch.setenv("RANDFLAKE_STORE", "environment.db")
    given.generate()
    of_environment.generate()
    assert (here / "ids.db").exists()
    assert (there / "environment.db").exists()
    given.close()
    of_environment.close()


def test_closed_before_the_first_use_is_closed(store: Path) -> None:
    with Randflake.lazy(store, SECRET) as flake:
        pass
    assert outcome(flake.generate) == "CLOSED"
    assert outcome(lambda: flake.generate_many(3)) == "CLOSED"
    assert in_child(lambda: outcome(flake.generate)) == "CLOSED"
    assert flake.inspect(1) == READER.inspect(1)
    assert (flake.node_ids, flake.lease) == ((), None)
    assert not store.exists()
    Randflake.lazy(store, SECRET)  # collected unused
    assert not store.exists()


def test_it_cannot_be_copied(store: Path) -> None:
    import copy
    import pickle

    flake = Randflake.lazy(store, SECRET)
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InvalidArgumentError, match="cannot be pickled or copied"):
            make(flake)


def test_warnings_come_with_the_first_use(store: Path) -> None:
    code = """
import sys, warnings
from randflake import Randflake, Snowflake, Layout
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    flake = Randflake.lazy(sys.argv[1], b"sixteen letters!")
    print(len(caught))
    flake.inspect(1)
    flake.generate()
    print(*(f"{w.category.__name__} {w.lineno}" for w in caught))
"""
    assert run_python(code, str(store)).split("\n")[:2] == ["0", "WeakSecretWarning 8"]
    layout = Layout(
        fields=[("time", 39), ("node", 12), ("sequence", 12)], tick_ms=1, epoch_ms=1_250_000_000_000
    )
    store = store.with_name("other.db")
    snowflake = Snowflake.lazy(store, layout)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LifetimeWarning):
            snowflake.generate()
        assert not store.exists()
    with pytest.warns(LifetimeWarning):
        snowflake.generate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        snowflake.generate()
    snowflake.close()


def test_threads_take_one_lease(store: Path) -> None:
    flake = Randflake.lazy(store, SECRET)
    barrier = threading.Barrier(8)

    def first() -> list[int]:
        barrier.wait()
        return [flake.generate(), *flake.generate_many(100)]

    with ThreadPoolExecutor(8) as threads:
        made = [id for done in [threads.submit(first) for _ in range(8)] for id in done.result()]
    assert len(set(made)) == 8 * 101
    assert {READER.inspect(id).node_id for id in made} == set(flake.node_ids)
    assert len(ends_in(store)) == 1, "one lease"
    flake.close()


def test_children_lease_each(store: Path) -> None:
    """As in a prefork server whose master has loaded the module, and perhaps made ids itself."""
    for master_first in (False, True):
        flake = Randflake.lazy(store, SECRET)
        made = flake.generate_many(100) if master_first else []
        used = flake.inspect(1)  # the secret was read in the master

        def work(flake: Randflake = flake) -> tuple[list[int], tuple[int, ...], bool]:
            before = flake.node_ids
            with ThreadPoolExecutor(2) as threads:
                ids = [threads.submit(flake.generate) for _ in range(2)]
                made = [id.result() for id in ids] + flake.generate_many(100)
            return made, flake.node_ids, before == ()

        results = [in_child(work) for _ in range(4)]
        made += flake.generate_many(100)
        for ids, node_ids, had_none in results:
            assert had_none
            assert {READER.inspect(id).node_id for id in ids} == set(node_ids)
            made += ids
        assert used == READER.inspect(1)
        assert len(set(made)) == len(made)
        assert len({flake.node_ids, *(node_ids for _, node_ids, _ in results)}) == 5
        flake.close()


def test_an_outage_at_the_first_id_passes(store: Path) -> None:
    Randflake.leased(store, SECRET).close()
    flake = Randflake.lazy(store, SECRET, acquire_timeout=0)
    with locked(store):
        with pytest.raises(RetryLaterError) as raised:
            flake.generate()
        assert raised.value.code == "LEASE_UNAVAILABLE"
        assert isinstance(raised.value.__cause__, StoreError)
        assert raised.value.retry_after is not None
    flake.generate()
    other = Randflake.lazy(store, OTHER_SECRET)
    for _ in range(2):
        with pytest.raises(StoreError) as mismatch:
            other.generate()
        assert mismatch.value.code == "SECRET_MISMATCH"
    flake.close()


def test_the_end_of_the_process_gives_it_back(store: Path) -> None:
    code = """
import os
from randflake import Randflake
unused, flake = Randflake.lazy(), Randflake.lazy()
print(flake.generate())
if os.fork() == 0:
    print(flake.generate(), flush=True)
    raise SystemExit
os.wait()
"""
    environment = {"RANDFLAKE_STORE": str(store), "RANDFLAKE_SECRET": SECRET}
    os.environ.update(environment)
    try:
        ids = [int(line) for line in run_python(code).split()]
    finally:
        for name in environment:
            del os.environ[name]
    assert len(ids) == 2
    ends = ends_in(store)
    assert set(ends) == {READER.inspect(id).node_id for id in ids}
    for id in ids:
        parts = READER.inspect(id)
        assert ends[parts.node_id] <= parts.timestamp + 120


def test_a_weak_secret_of_the_environment_is_warned_of(store: Path) -> None:
    code = """
import os, sys, warnings
from randflake import Randflake
os.environ["RANDFLAKE_SECRET"] = "00" * 16
os.environ["RANDFLAKE_STORE"] = sys.argv[1]
flake = Randflake.lazy()
with warnings.catch_warnings(record=True) as caught:
    flake.generate()
print(*(w.category.__name__ for w in caught))
"""
    assert run_python(code, str(store)).strip() == WeakSecretWarning.__name__


class Away:
    """A store with a server that never answers well."""

    server = "postgresql"

    def run(self, _text: str, _parameters: list[str]) -> list[list[str | None]]:
        raise Unavailable("it is down")


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_ready_fails_where_nothing_comes_in_time_and_says_why(timeout: float) -> None:
    lazy = [
        Randflake.lazy(Away(), SECRET, acquire_timeout=timeout),
        Tickets.lazy(Away(), "invoices", acquire_timeout=timeout),
    ]
    for each in lazy:
        with pytest.raises(RetryLaterError, match="it is down") as raised:
            asyncio.run(each.ready())
        assert raised.value.code == "LEASE_UNAVAILABLE"
        assert isinstance(raised.value.__cause__, StoreError)
