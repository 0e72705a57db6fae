"""Generators with leased node ids, in one process."""

import copy
import decimal
import gc
import math
import os
import pickle
import resource
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import (
    LEASED_SECRET as SECRET,
    OTHER_SECRET,
    ends_in,
    interrupted,
    locked,
    named,
    outcome,
    run_python,
    status,
    together,
)
from randflake import (
    Inspector,
    InvalidArgumentError,
    InvalidTypeError,
    Lease,
    LeaseStatus,
    Randflake,
    RandflakeError,
    RetryLaterError,
    StoreError,
    generate_secret,
)

READER = Inspector(SECRET)


def leased(store: Any, secret: Any = SECRET, **options: Any) -> Randflake:
    return Randflake.leased(store, secret, **options)


def short(store: Path, **options: Any) -> Randflake:
    """A generator whose lease of two seconds is renewed after less than one.

    On a busy machine it may end before: tests that must hold it for longer take six seconds.
    """
    return leased(store, **{"ttl": 2, "max_skew": 0, "max_drift": 0, **options})


def until(what: str, is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def refused(call: Callable[[], Any], *, type_is_wrong: bool = False) -> str:
    """Asserts that a call raises INVALID_ARGUMENT, and of which kind."""
    with pytest.raises(InvalidArgumentError) as raised:
        call()
    assert type(raised.value) is (InvalidTypeError if type_is_wrong else InvalidArgumentError)
    assert raised.value.code == "INVALID_ARGUMENT"
    return str(raised.value)


NO_INTEGERS = [None, True, 1.0, math.nan, "1", b"1", [1], object(), 1j, decimal.Decimal(1)]
NO_NUMBERS = [None, True, "1", b"1", [1], object(), 1j]
NO_DURATIONS = [-1, -0.001, 86_400.5, 2**40, 10**400, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("node_count", NO_INTEGERS),
        ("ttl", NO_INTEGERS[1:]),  # None means 300
        ("max_skew", NO_INTEGERS),
        ("max_drift", NO_INTEGERS[1:]),  # None means 10
        ("max_wait", NO_NUMBERS),
        ("acquire_timeout", NO_NUMBERS),
        ("namespace", [True, 1, b"default", ["default"], Path("default")]),  # None means one
    ],
)
def test_options_of_the_wrong_type(store: Path, option: str, values: list[Any]) -> None:
    for value in values:
        refused(lambda value=value: leased(store, **{option: value}), type_is_wrong=True)
    assert not store.exists()


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("node_count", [0, -1, 16_385, 2**32, 2**32 + 1, 2**63, 2**70, -(2**70)]),
        ("ttl", [0, -1, 29, 86_401, 2**32 + 300, 2**70]),
        ("max_skew", [51, -1, 2**32, 2**70]),
        ("max_drift", [101, -1, 2**32, 2**70]),  # a third of 300 seconds at most
        ("max_wait", NO_DURATIONS),
        ("acquire_timeout", NO_DURATIONS),
        ("namespace", ["", "a" * 201, "ä" * 101, "a\n", "\0", "\ud800"]),
    ],
)
def test_options_out_of_range(store: Path, option: str, values: list[Any]) -> None:
    for value in values:
        assert "got" in refused(lambda value=value: leased(store, **{option: value}))


@pytest.mark.parametrize(
    ("option", "bound"), [("node_count", "16384"), ("ttl", "86400"), ("max_skew", "sixth")]
)
def test_the_bound_is_named(store: Path, option: str, bound: str) -> None:
    for value in (-1, 2**32, 2**70, "1"):
        said = refused(
            lambda value=value: leased(store, **{option: value}), type_is_wrong=value == "1"
        )
        assert bound in said


def test_options_at_the_ends_of_their_ranges(store: Path) -> None:
    class Two:
        def __index__(self) -> int:
            return 2

    for options in (
        {"node_count": Two(), "ttl": np.int64(30), "max_skew": np.uint8(5)},
        {"ttl": None, "max_drift": 0, "max_wait": 0, "acquire_timeout": 0},
        {"max_drift": 100, "max_wait": 86_400, "acquire_timeout": np.float32(86_400)},
        {"namespace": "ä" * 100, "ttl": 1, "max_skew": 0},
        {"namespace": "b" * 200, "ttl": 86_400, "max_skew": 14_400},
    ):
        with leased(store, **options) as flake:
            assert flake.node_ids


def test_unknown_and_positional_options_are_type_errors(store: Path) -> None:
    for call in (
        lambda: Randflake.leased(store, SECRET, 1),  # type: ignore[call-arg]
        lambda: Randflake.leased(store, SECRET, nodes=1),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError):
            call()


class PathOf:
    def __init__(self, path: Any) -> None:
        self.path = path

    def __fspath__(self) -> Any:
        if isinstance(self.path, Exception):
            raise self.path
        return self.path


def test_a_store_is_any_path(store: Path) -> None:
    class Text(str):
        __slots__ = ()

    undecodable = os.fsdecode(os.fsencode(store.parent) + b"/\xff.db")
    forms = [store, str(store), os.fsencode(store), PathOf(str(store)), Text(store)]
    forms += [PathOf(os.fsencode(store)), undecodable, os.fsencode(undecodable)]
    flakes = [leased(form) for form in forms]
    assert len({flake.node_ids for flake in flakes}) == len(forms)
    assert len(ends_in(store)) == 6
    assert Path(undecodable).exists()


def test_a_relative_path_is_of_the_directory_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with leased("ids.db") as flake:
        monkeypatch.chdir("/")
        node_ids = flake.node_ids
    ends = ends_in(tmp_path / "ids.db")
    assert tuple(ends) == node_ids
    assert ends[node_ids[0]] <= time.time() + 2, "given back in the same file"


@pytest.mark.parametrize(
    "store", [True, 1, 1.5, [], object(), bytearray(b"a"), PathOf(1), PathOf(None)], ids=named
)
def test_a_store_of_the_wrong_type(store: Any) -> None:
    assert "got" in refused(lambda: leased(store), type_is_wrong=True)


@pytest.mark.parametrize(
    "store", ["", b"", "/", "..", ":memory:", "a\0b", b"a\0b", PathOf("a\0"), "\ud800"], ids=named
)
def test_a_store_that_is_no_path_of_a_file(store: Any) -> None:
    refused(lambda: leased(store))


def test_what_a_path_raises_goes_on_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError, match="mine"):
        leased(PathOf(ZeroDivisionError("mine")))


@pytest.mark.parametrize("scheme", ["mongodb", "http", "file", "sqlite"])
def test_a_url_is_refused_without_its_password(scheme: str) -> None:
    message = refused(lambda: leased(f"{scheme}://me:hush@host/db"))
    assert f"{scheme}://" in message
    assert "hush" not in message


def test_each_takes_a_lease_of_its_own(store: Path) -> None:
    flakes = [leased(store, node_count=count) for count in (1, 2, 1, 3)]
    node_ids = [node_id for flake in flakes for node_id in flake.node_ids]
    assert len(set(node_ids)) == 7
    ids: list[int] = []
    for flake in flakes:
        made = [flake.generate(), *flake.generate_many(1000), *flake.generate_array(20_000)]
        buffer = array("q", bytes(8 * 1000))
        flake.fill(buffer)
        text = flake.generate_string()
        ids += [*made, *buffer, flake.encrypt(flake.decrypt(text))]
        assert {flake.inspect(id).node_id for id in made} <= set(flake.node_ids)
    assert len(set(ids)) == len(ids) == 4 * 22_002


def test_ten_threads(store: Path) -> None:
    flake = leased(store)
    parts: list[list[int]] = []

    def work(_: int) -> None:
        parts.append([flake.generate() for _ in range(5000)] + flake.generate_many(5000))

    together(10, work)
    ids = [id for part in parts for id in part]
    assert len(set(ids)) == len(ids) == 100_000


def test_ten_threads_that_lease(store: Path) -> None:
    flakes: list[Randflake] = []
    together(10, lambda _: flakes.append(leased(store)))
    assert len({flake.node_ids for flake in flakes}) == 10


def test_a_burst_borrows_seconds_that_the_lease_covers(store: Path) -> None:
    flake = leased(store, max_wait=0)
    ids = flake.generate_array(500_000)
    assert not any(flake.metrics().waits.values()), "it borrows, and waits for no second"
    lease = status(flake)
    parts = READER.inspect_array(ids)
    assert parts.timestamp.max() <= time.time() + 10
    assert parts.timestamp.max() >= parts.timestamp.min() + 3
    assert lease.start <= parts.timestamp.min()
    assert parts.timestamp.max() < lease.end_exclusive
    assert len(np.unique(ids)) == 500_000


def test_the_status(store: Path) -> None:
    begun = time.time()
    flake = leased(store, node_count=2)
    before = time.time()
    lease = status(flake)
    after = time.time()
    assert lease.state == "holding"
    assert lease.node_ids == flake.node_ids == tuple(sorted(flake.node_ids))
    assert (lease.renewals, lease.losses, lease.last_error) == (0, 0, None)
    assert 290 - (after - begun) < lease.seconds_left <= 300
    assert lease.end_exclusive - after < lease.seconds_left + 1
    assert lease.end_exclusive - before >= lease.seconds_left - 1
    assert lease.start <= flake.inspect(flake.generate()).timestamp < lease.end_exclusive
    later = flake.lease
    assert isinstance(later, LeaseStatus)
    assert later.seconds_left < lease.seconds_left
    assert later._replace(seconds_left=0) == lease._replace(seconds_left=0)
    assert pickle.loads(pickle.dumps(lease)) == lease
    with pytest.raises(AttributeError):
        lease.state = "mine"  # type: ignore[misc]


def test_it_goes_on_for_many_terms_of_its_lease(store: Path) -> None:
    flake = short(store, ttl=6, max_wait=60)
    first = flake.lease
    assert isinstance(first, LeaseStatus)
    ids = []
    last = first

    def has_renewed() -> bool:
        nonlocal last
        ids.append(flake.generate())
        assert isinstance(flake.lease, LeaseStatus)
        last = flake.lease
        return last.renewals >= 3

    until("three renewals", has_renewed)
    assert len(set(ids)) == len(ids)
    assert (last.node_ids, last.state) == (first.node_ids, "holding")
    assert last.end_exclusive > first.end_exclusive
    assert ends_in(store)[flake.node_ids[0]] >= last.end_exclusive


def test_closing_gives_the_node_ids_back(store: Path) -> None:
    flake = leased(store, node_count=3)
    node_ids = flake.node_ids
    id = flake.generate()
    assert all(end > time.time() + 200 for end in ends_in(store).values())
    flake.close()
    ends = ends_in(store)
    assert set(ends) == set(node_ids)
    used_until = flake.inspect(id).timestamp + 1
    assert all(used_until <= end <= time.time() + 2 for end in ends.values())
    with locked(store):
        before = time.monotonic()
        for _ in range(20):
            flake.close()
        # Each call that waits does so for five seconds.
        assert time.monotonic() - before < 60, "nothing is left to do"


def test_closed(store: Path) -> None:
    with leased(store) as flake:
        id = flake.generate()
        raw, parts = flake.decrypt(id), flake.inspect(id)
    for call in (
        flake.generate,
        flake.generate_string,
        lambda: flake.generate_many(1),
        lambda: flake.generate_many(20_000),
        lambda: flake.generate_array(1),
        lambda: flake.fill(array("q", [1])),
    ):
        assert outcome(call) == "CLOSED"
    assert flake.lease is None
    assert flake.node_ids == ()
    assert (flake.decrypt(id), flake.inspect(id), flake.encrypt(raw)) == (raw, parts, id)


def test_a_context_closes_and_lets_errors_through(store: Path) -> None:
    with pytest.raises(ZeroDivisionError), leased(store) as flake:
        raise ZeroDivisionError
    assert outcome(flake.generate) == "CLOSED"
    assert all(end <= time.time() + 2 for end in ends_in(store).values())


def test_a_collected_generator_gives_its_node_id_back_without_a_wait(store: Path) -> None:
    flakes = [leased(store) for _ in range(3)]
    flakes.clear()
    gc.collect()
    until("three are given back", lambda: max(ends_in(store).values()) <= time.time() + 2)
    flakes = [leased(store) for _ in range(20)]
    with locked(store):
        before = time.monotonic()
        flakes.clear()
        gc.collect()
        # Each call that waits does so for five seconds.
        assert time.monotonic() - before < 60, "the file is not available for now"


def test_a_lease_is_lost_without_waiting_for_python(store: Path) -> None:
    """Renewals need no GIL: this thread keeps it for longer than the lease."""
    flake = short(store, ttl=6)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        ends = time.monotonic() + 6.5
        while time.monotonic() < ends:
            pass
    finally:
        sys.setswitchinterval(interval)
    lease = status(flake)
    assert lease.renewals >= 2
    assert lease.seconds_left > 0


def test_the_lease_of_a_store_cannot_be_extended_manually(store: Path) -> None:
    flake = leased(store)
    before = flake.lease
    assert isinstance(before, LeaseStatus)
    with pytest.raises(InvalidArgumentError, match="automatically") as raised:
        flake.extend_lease(before.end_exclusive + 100)
    assert raised.value.code == "INVALID_LEASE"
    assert isinstance(flake.lease, LeaseStatus)
    assert flake.lease.end_exclusive == before.end_exclusive


def test_another_secret_is_refused(store: Path) -> None:
    leased(store).close()
    before = time.monotonic()
    with pytest.raises(StoreError, match="another namespace") as raised:
        leased(store, OTHER_SECRET, acquire_timeout=600)
    assert time.monotonic() - before < 120, "waiting would not help"
    assert raised.value.code == "SECRET_MISMATCH"
    assert raised.value.retry_after is None
    with leased(store, OTHER_SECRET, namespace="other") as flake:
        assert flake.generate()


def test_stores_that_cannot_be_used(tmp_path: Path) -> None:
    def code(store: Path) -> object:
        # Waiting does not help: an hour's wait would be noticed.
        return outcome(lambda: leased(store, acquire_timeout=3600).close())

    assert code(tmp_path / "missing" / "ids.db") == "INVALID_ARGUMENT"
    assert code(tmp_path) == "INVALID_ARGUMENT"
    garbage = tmp_path / "garbage"
    garbage.write_bytes(bytes([7]) * 4096)
    assert code(garbage) == "INVALID_ARGUMENT"
    assert garbage.read_bytes() == bytes([7]) * 4096
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("create table mine (x)")
    connection.close()
    assert code(foreign) == "INVALID_ARGUMENT"


def test_a_file_that_is_read_only() -> None:
    # Root may write everything, and other users cannot see into pytest's folders.
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "ids.db"
        leased(store).close()
        for path, mode in ((store, 0o444), (store.parent, 0o555)):
            path.chmod(mode)
        child = os.fork()
        if child == 0:
            as_expected = False
            try:
                if os.geteuid() == 0:
                    os.setuid(65_534)
                leased(store, acquire_timeout=3600)
            except InvalidArgumentError as error:
                as_expected = error.code == "INVALID_ARGUMENT" and "read-only" in str(error)
            finally:
                os._exit(0 if as_expected else 1)
        assert os.waitpid(child, 0)[1] == 0
        store.parent.chmod(0o755)


def test_all_node_ids_are_leased(store: Path) -> None:
    secret = generate_secret()  # its node ids are not assigned manually
    leased(store, secret).close()
    take_most = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1])
connection.execute("delete from node")
connection.execute(
    "with recursive taken (node_id) as (select 3 union all select node_id + 1 from taken "
    "where node_id < 131071) insert into node (namespace, node_id, start, end_exclusive, note, "
    "version) select id, node_id, :now, :now + 300, '', 1 from taken, namespace",
    {"now": int(time.time())},
)
connection.commit()
"""
    begun = time.monotonic()
    run_python(take_most, str(store))
    flakes = [leased(store, secret, node_count=5)]
    assert flakes[0].node_ids == (0, 1, 2), "fewer, where there are no more"
    with pytest.raises(StoreError) as raised:
        leased(store, secret, acquire_timeout=0)
    assert raised.value.code == "NODES_EXHAUSTED"
    assert raised.value.retry_after is not None
    assert 290 - (time.monotonic() - begun) < raised.value.retry_after <= 300
    waiting = threading.Thread(
        target=lambda: flakes.append(leased(store, secret, acquire_timeout=120))
    )
    waiting.start()
    time.sleep(0.3)
    flakes[0].close()
    waiting.join()
    ids = {flakes[1].generate() for _ in range(1000)}
    assert flakes[1].node_ids[0] in (0, 1, 2)
    assert len(ids) == 1000


def test_an_outage_ends_in_an_error_and_passes(store: Path) -> None:
    flake = short(store, max_wait=0)
    with locked(store):
        until("the lease is over", lambda: outcome(flake.generate) == "LEASE_UNAVAILABLE")
        until("it is noticed", lambda: flake.lease and flake.lease.last_error)  # type: ignore[union-attr]
        lease = status(flake)
    assert (lease.state, lease.seconds_left) == ("expired", 0)
    assert isinstance(lease.last_error, StoreError)
    assert lease.last_error.code == "STORE_UNAVAILABLE"
    assert lease.last_error_at is not None
    assert lease.start < lease.last_error_at <= time.time()
    assert pickle.loads(pickle.dumps(lease)) == lease
    until("it recovers", lambda: isinstance(outcome(flake.generate), int))
    until("all is well", lambda: flake.lease[7:9] == (None, None))  # type: ignore[index]


@pytest.mark.parametrize("count", [None, 1, 20_000])
def test_without_a_lease_a_call_says_why_and_when(store: Path, count: int | None) -> None:
    flake = short(store, max_wait=0.1)
    call = flake.generate if count is None else lambda: flake.generate_many(count)
    with locked(store):
        until("it is noticed", lambda: flake.lease and flake.lease.last_error)  # type: ignore[union-attr]
        until("the lease is over", lambda: outcome(flake.generate) == "LEASE_UNAVAILABLE")
        with pytest.raises(RetryLaterError) as raised:
            call()
    error = raised.value
    assert error.code == "LEASE_UNAVAILABLE"
    assert 0.05 <= error.retry_after <= 5
    cause = error.__cause__
    assert isinstance(cause, StoreError)
    assert cause.code == "STORE_UNAVAILABLE"
    assert str(cause) in str(error)
    assert pickle.loads(pickle.dumps(error)) == error


def test_a_batch_goes_on_over_renewals(store: Path) -> None:
    flake = short(store, max_wait=60)
    end = flake.lease.end_exclusive  # type: ignore[union-attr]
    ids = flake.generate_array(4 * 131_072)  # four seconds' worth, and the lease has two
    assert len(np.unique(ids)) == len(ids)
    assert READER.inspect(int(ids[-1])).timestamp >= end


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("method", ["generate_many", "generate_array"])
def test_what_is_refused_takes_no_memory(store: Path, method: str) -> None:
    now = int(time.time())
    minute = Lease(now, now + 60)
    before = peak_bytes()
    secret = generate_secret()
    for flake in (leased(store), Randflake(1, secret), Randflake(2, secret, lease=minute)):
        with flake, pytest.raises(InvalidArgumentError, match="takes 7629 seconds") as invalid:
            getattr(flake, method)(1_000_000_000)
        assert invalid.value.code == "INVALID_ARGUMENT"
    with Randflake(2, secret, lease=minute) as flake:  # it would be three gigabytes
        assert outcome(lambda: getattr(flake, method)(3000 * 131_072)) == "LEASE_EXPIRED"
    assert peak_bytes() - before < 500_000_000


def test_a_file_that_is_replaced_is_noticed_and_leased_from_in_the_end(store: Path) -> None:
    told: list[LeaseStatus] = []
    flake = short(store, ttl=6, max_wait=60, on_lease_change=told.append)
    copied = shutil.copy(store, store.with_suffix(".copy"))
    Path(copied).replace(store)
    until("it is noticed", lambda: any(it.last_error for it in told))
    error = next(it.last_error for it in told if it.last_error)
    assert isinstance(error, StoreError)
    assert error.code == "STORE_REPLACED"
    until("another lease", lambda: told[-1].start != told[0].start)
    before = [it for it in told if it.start == told[0].start]
    assert told[len(before)].start >= before[-1].end_exclusive
    assert flake.generate()


def test_ctrl_c_ends_the_wait_for_the_first_lease(store: Path) -> None:
    short(store).close()
    with locked(store):
        assert interrupted(lambda: short(store, acquire_timeout=600)) < 120
    until("nothing is leased", lambda: max(ends_in(store).values()) <= time.time() + 1)


@pytest.mark.parametrize("count", [1, 20_000])
def test_ctrl_c_ends_the_wait_for_another_lease(store: Path, count: int) -> None:
    flake = short(store, max_wait=600)
    with locked(store):
        until("the lease is over", lambda: status(flake).state == "expired")
        assert interrupted(lambda: flake.generate_many(count)) < 120
    assert len(flake.generate_many(count)) == count


def test_other_threads_run_while_a_store_is_asked(store: Path) -> None:
    short(store).close()
    with locked(store):
        waiter = threading.Thread(
            target=lambda: outcome(lambda: short(store, acquire_timeout=0)), daemon=True
        )
        waiter.start()
        seen = set()
        while waiter.is_alive():
            seen.add(int(time.monotonic() * 100))
    assert len(seen) > 15, "of about 200 hundredths of a second"


def test_pickle_and_copy_are_refused(store: Path) -> None:
    flake = leased(store)
    for call in (
        lambda: pickle.dumps(flake),
        lambda: copy.copy(flake),
        lambda: copy.deepcopy(flake),
    ):
        assert "pickled or copied" in refused(call, type_is_wrong=True)


def test_nothing_shows_the_secret(store: Path) -> None:
    flake = leased(store)
    shown = [repr(flake), str(flake), repr(flake.lease)]
    for call in (
        lambda: leased(store, OTHER_SECRET),
        lambda: leased(store.parent, acquire_timeout=0),
        lambda: leased(store, ttl=0),
        lambda: flake.extend_lease(2_000_000_000),
    ):
        with pytest.raises(RandflakeError) as raised:
            call()
        shown += [repr(raised.value), str(raised.value)]
    flake.close()
    file = store.read_bytes()
    for secret in (SECRET, OTHER_SECRET):
        assert not any(secret in text for text in shown)
        assert secret.encode() not in file
        assert bytes.fromhex(secret) not in file
    assert repr(flake) == "<randflake.Randflake node_ids=[]>"
