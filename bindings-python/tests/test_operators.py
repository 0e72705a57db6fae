"""What operators see in a store and do to it, without its secret."""

import functools
import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import randflake
import servers
from conftest import SECRET
from randflake import (
    InvalidArgumentError,
    InvalidTypeError,
    NodeStatus,
    Randflake,
    StoreError,
    StoreStatus,
    fence_store,
    init_store,
    inspect_lease,
    list_leases,
    release_lease,
    repair_lease,
    repair_store,
    set_node_ids,
)

YEARS = 315_360_000


@pytest.fixture(params=["sqlite", "postgres", "mariadb", "redis", "etcd"], scope="module")
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        yield folder / "ids.db"
        return
    with servers.STARTERS[request.param](folder) as server:
        yield server.url()


def leased(store: Any, **options: Any) -> Randflake:
    if not isinstance(store, Path):
        init_store(store, SECRET, "new", namespace=options.get("namespace", "default"))
    return Randflake.leased(store, SECRET, **options)


def killed(store: Any, namespace: str) -> int:
    """Leases a node id in a process that then dies, and returns it."""
    program = f"""
        import os
        from randflake import Randflake
        flake = Randflake.leased({os.fspath(store)!r}, {SECRET!r}, namespace={namespace!r})
        flake.generate()
        print(os.getpid(), flake.node_ids[0], flush=True)
        os._exit(1)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    pid, node_id = done.stdout.split()
    status = inspect_lease(store, int(node_id), namespace=namespace)
    assert status is not None
    assert status.note.endswith(f":{pid}")
    return int(node_id)


def test_leases_are_listed_without_the_secret(store: Any) -> None:
    with leased(store, node_count=2) as flake:
        status = list_leases(store)
        assert isinstance(status, StoreStatus)
        assert [lease.node_id for lease in status.leases] == list(flake.node_ids)
        assert (status.held, status.waiting, status.free, status.implausible) == (2, 0, 131_070, 0)
        assert {lease.state for lease in status.leases} == {"held"}
        assert all(lease.note.endswith(f":{os.getpid()}") for lease in status.leases)
        lease = status.leases[0]
        assert 0 < lease.seconds_left <= 300
        assert lease.start < status.now < lease.end_exclusive
        assert inspect_lease(store, lease.node_id) is not None
        assert tuple(status.limits) == (300, 5, "0-131071", "1730000000:30:17:17", 2)
        assert (status.floor, status.floor_is_implausible, status.incarnation_changed) == (
            0,
            False,
            False,
        )
        assert SECRET not in repr(status)
    after = inspect_lease(store, lease.node_id)
    assert isinstance(after, NodeStatus)
    assert (after.state, after.note) == ("free", lease.note)
    listed = [lease.node_id for lease in status.leases]
    never = next(node for node in range(3) if node not in listed)
    assert inspect_lease(store, never) is None


def test_a_namespace_that_is_not_there_is_not_made(store: Any, tmp_path: Path) -> None:
    file = tmp_path / "nothing.db"
    calls: list[Callable[..., object]] = [
        list_leases,
        functools.partial(inspect_lease, node_id=0),
        fence_store,
        functools.partial(set_node_ids, node_ids="0-6"),
        functools.partial(repair_lease, node_id=0),
        repair_store,
        functools.partial(release_lease, lease=NodeStatus(0, "held", 0, 1, 0, False, "")),
    ]
    for call in calls:
        for missing, namespace in [(file, "default"), (store, "nobody's")]:
            with pytest.raises(StoreError) as caught:
                call(missing, namespace=namespace)
            assert caught.value.code == "STORE_NOT_INITIALIZED"
    assert not file.exists()


def test_an_operator_sets_which_node_ids_are_leased(store: Any) -> None:
    init_store(store, SECRET, "new", namespace="ranges", node_ids="7,9-10")
    with Randflake.leased(store, SECRET, namespace="ranges", node_count=3) as flake:
        assert sorted(flake.node_ids) == [7, 9, 10]
        seven = inspect_lease(store, 7, namespace="ranges")
        assert seven is not None
        unused_from = set_node_ids(store, "0-6,8-10", namespace="ranges")
        assert unused_from >= seven.end_exclusive
        status = list_leases(store, namespace="ranges")
        assert (status.limits.node_ids, status.free) == ("0-6,8-10", 8)
    for node_ids in ["", "7-", "9-8", "0-131072", "0,a"]:
        with pytest.raises(InvalidArgumentError, match="as 0-6,8-1023"):
            set_node_ids(store, node_ids, namespace="ranges")
        with pytest.raises(InvalidArgumentError, match="as 0-6,8-1023"):
            init_store(store, SECRET, "new", namespace="none", node_ids=node_ids)
    for other in [7, [7], None, b"7"]:
        with pytest.raises(TypeError, match="node_ids"):
            set_node_ids(store, other, namespace="ranges")  # type: ignore[arg-type]


def test_the_lease_of_a_killed_process_is_released(store: Any) -> None:
    leased(store, namespace="killed").close()
    node_id = killed(store, "killed")
    before = inspect_lease(store, node_id, namespace="killed")
    assert before is not None
    assert before.state == "held"
    stale = before._replace(start=before.start - 1)
    with pytest.raises(InvalidArgumentError, match="another lease"):
        release_lease(store, stale, namespace="killed")
    end_exclusive = release_lease(store, before, namespace="killed")
    after = inspect_lease(store, node_id, namespace="killed")
    assert after is not None
    assert (after.state, after.end_exclusive) == ("free", end_exclusive)
    assert end_exclusive < before.end_exclusive
    assert after.seconds_left <= 107
    assert list_leases(store, namespace="killed").waiting == 1
    with pytest.raises(InvalidArgumentError, match="no holder"):
        release_lease(store, after, namespace="killed")


def test_a_fence_keeps_new_leases_out(store: Any) -> None:
    with leased(store, namespace="fenced") as flake:
        floor = fence_store(store, namespace="fenced")
        status = list_leases(store, namespace="fenced")
        assert (status.floor, status.floor_is_implausible) == (floor, False)
        last_grant = 12 if str(store).startswith("redis") else 0
        assert 0 <= status.now + 305 + last_grant - floor <= 60
        with pytest.raises(StoreError) as caught:
            Randflake.leased(store, SECRET, namespace="fenced", acquire_timeout=0)
        assert caught.value.code == "STORE_QUARANTINED"
        assert flake.generate()
        for repair in (
            lambda: repair_store(store, namespace="fenced"),
            lambda: repair_lease(store, flake.node_ids[0], namespace="fenced"),
        ):
            with pytest.raises(InvalidArgumentError, match="needs no repair"):
                repair()


def test_what_a_wrong_clock_has_set_is_repaired(tmp_path: Path) -> None:
    file = tmp_path / "ids.db"
    with leased(file) as flake:
        (node_id,) = flake.node_ids
    connection = sqlite3.connect(file)
    with connection:
        connection.execute("update node set end_exclusive = end_exclusive + ?", [YEARS])
        connection.execute("update namespace set floor = floor + 2000000000 + ?", [YEARS])
    connection.close()
    status = list_leases(file)
    assert (status.implausible, status.leases[0].is_implausible, status.floor_is_implausible) == (
        1,
        True,
        True,
    )
    with pytest.raises(InvalidArgumentError, match="repair it"):
        release_held(file, node_id)
    with pytest.raises(InvalidArgumentError, match="no less than"):
        repair_lease(file, node_id, end_exclusive=status.now)
    mine = status.now + 1000
    assert repair_lease(file, node_id, end_exclusive=mine) == mine
    assert repair_store(file, floor=mine) == mine
    assert 305 <= repair_lease(file, node_id) - status.now <= 400
    assert 305 <= repair_store(file) - status.now <= 400
    assert list_leases(file).implausible == 0


def release_held(file: Path, node_id: int) -> None:
    """Releases a node id after its row was given a holder."""
    connection = sqlite3.connect(file)
    with connection:
        connection.execute("update node set token = zeroblob(16)")
    connection.close()
    lease = inspect_lease(file, node_id)
    assert lease is not None
    release_lease(file, lease)


@pytest.mark.parametrize("node_id", [-1, 2**32, 131_072, 2**70])
def test_node_ids_out_of_range(tmp_path: Path, node_id: int) -> None:
    file = tmp_path / "ids.db"
    leased(file).close()

    def release(store: Path, node_id: int) -> None:
        release_lease(store, NodeStatus(node_id, "held", 0, 1, 0, False, ""))

    for function in (inspect_lease, repair_lease, release):
        with pytest.raises(InvalidArgumentError) as caught:
            function(file, node_id)
        assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "call",
    [
        lambda: list_leases(7),  # type: ignore[arg-type]
        lambda: inspect_lease("ids.db", "7"),  # type: ignore[arg-type]
        lambda: inspect_lease("ids.db", None),  # type: ignore[arg-type]
        lambda: list_leases("ids.db", namespace=7),  # type: ignore[arg-type]
        lambda: repair_lease("ids.db", 7, end_exclusive=1.5),  # type: ignore[arg-type]
        lambda: repair_lease("ids.db", None),  # type: ignore[arg-type]
        lambda: repair_store("ids.db", floor="7"),  # type: ignore[arg-type]
    ],
)
def test_wrong_types(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidTypeError):
        call()


def test_a_password_is_not_shown() -> None:
    with pytest.raises(randflake.StoreError) as caught:
        list_leases("postgresql://me:hush-hush@127.0.0.1:1/app")
    assert caught.value.code == "STORE_UNAVAILABLE"
    assert "hush" not in repr(caught.value) + str(caught.value)


def test_without_a_thread_for_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("hush-hush")

    monkeypatch.setattr("randflake._threads.start_new_thread", none_left)
    with pytest.raises(randflake.StoreError) as caught:
        list_leases("etcd://127.0.0.1:1")
    assert caught.value.code == "STORE_UNAVAILABLE"
    assert str(caught.value) == "cannot reach etcd: its client raised RuntimeError"
