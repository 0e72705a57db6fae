"""What is reported when a lease changes: to a function of the program, and to its log."""

import contextlib
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import LEASED_SECRET as SECRET, ends_in, eventually, outcome, run_python
from randflake import LeaseStatus, Randflake, Snowflake

SHORT: dict[str, Any] = {"ttl": 6, "max_skew": 1}


def threads_that_tell() -> set[str]:
    """Returns the names of all threads that exist to report a change."""
    of_system = set()
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            of_system.add(path.read_text().strip())
    of_python = {thread.name for thread in threading.enumerate()}
    return {name for name in of_system | of_python if "change" in name or "Dummy" in name}


@pytest.mark.parametrize("kind", [Randflake, Snowflake])
def test_the_function_is_called_from_the_first_lease_to_the_end(kind: Any, store: Path) -> None:
    told: list[LeaseStatus] = []
    how = [store, SECRET] if kind is Randflake else [store, "instagram"]
    with kind.leased(*how, namespace="orders", on_lease_change=told.append) as flake:
        node_ids = flake.node_ids
        eventually(lambda: len(told) == 1)
    eventually(lambda: len(told) == 2)
    assert [status.state for status in told] == ["holding", "stopped"]
    for status in told:
        assert isinstance(status, LeaseStatus)
        assert (status.node_ids, status.namespace) == (node_ids, "orders")
        assert status.store == str(store)
        assert (status.renewals, status.replacements, status.losses) == (0, 0, 0)


def test_each_change_is_logged(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "randflake")
    with Randflake.leased(store, SECRET) as flake:
        nodes = f"node ids {list(flake.node_ids)}"
    eventually(lambda: len(caplog.records) == 2)
    leased, stopped = caplog.records
    assert (leased.name, leased.levelname, stopped.levelname) == ("randflake", "INFO", "INFO")
    assert leased.getMessage().startswith(
        f'leased {nodes} of the namespace "default" from {store};'
    )
    assert stopped.getMessage() == f"stopped; no more ids of {nodes}"
    assert SECRET not in caplog.text


def test_nothing_is_printed_where_logging_is_not_set_up(store: Path) -> None:
    code = """
import sys
from randflake import Randflake
from randflake.testing import FakeRandflake
with Randflake.leased(*sys.argv[1:]) as flake: flake.generate()
FakeRandflake()
"""
    assert run_python(code, str(store), SECRET) == ""


def test_the_function_may_use_the_generator_and_even_close_it(store: Path) -> None:
    made: list[object] = []
    given = threading.Event()
    flakes: list[Randflake] = []

    def use(status: LeaseStatus) -> None:
        given.wait()
        flake = flakes[0]
        made.append((status.state, flake.lease is not None, outcome(flake.generate)))
        if status.state == "holding":
            flake.generate_many(1000)
            flake.close()

    flakes.append(Randflake.leased(store, SECRET, on_lease_change=use))
    given.set()
    eventually(lambda: len(made) == 2)
    assert made[0] == ("holding", True, made[0][2])  # type: ignore[index]
    assert isinstance(made[0][2], int)  # type: ignore[index]
    assert made[1] == ("stopped", False, "CLOSED")
    assert max(ends_in(store).values()) > 0


class Unusual(BaseException):
    """What no handler expects."""


@pytest.mark.parametrize("raised", [ValueError("mine"), SystemExit(3), Unusual()], ids=repr)
def test_what_the_function_raises_is_logged_and_touches_nothing(
    raised: BaseException, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def fail(status: LeaseStatus) -> None:
        told.append(status.state)
        raise raised

    with Randflake.leased(store, SECRET, on_lease_change=fail, **SHORT) as flake:
        eventually(lambda: len(told) == 1)
        assert flake.lease is not None
        assert flake.lease.state == "holding"
        eventually(lambda: flake.lease is not None and flake.lease.renewals > 0)
        flake.generate()
    eventually(lambda: told == ["holding", "stopped"])
    eventually(lambda: len(caplog.records) == 2)
    for record in caplog.records:
        assert (record.levelname, record.name) == ("ERROR", "randflake")
        assert record.exc_info is not None
        assert record.exc_info[1] is raised


def test_a_filter_that_raises_stops_nothing(store: Path) -> None:
    told: list[str] = []
    logger = logging.getLogger("randflake")

    def broken(record: logging.LogRecord) -> bool:
        raise ValueError(record)

    logger.addFilter(broken)
    logger.setLevel(logging.INFO)
    try:
        with Randflake.leased(
            store, SECRET, on_lease_change=lambda status: told.append(status.state)
        ):
            pass
        eventually(lambda: told == ["holding", "stopped"])
    finally:
        logger.removeFilter(broken)
        logger.setLevel(logging.NOTSET)


def test_changes_are_told_one_after_the_other_on_a_thread_that_ends(store: Path) -> None:
    eventually(lambda: not threads_that_tell())  # left over from the previous test
    begun, go_on = threading.Event(), threading.Event()
    told: list[tuple[str, int]] = []
    running: list[int] = []

    def slow(status: LeaseStatus) -> None:
        running.append(1)
        assert len(running) == 1, "two at once"
        begun.set()
        assert go_on.wait(60)
        assert threads_that_tell()
        told.append((status.state, threading.get_ident()))
        running.clear()

    flake = Randflake.leased(store, SECRET, on_lease_change=slow)
    assert begun.wait(60)
    # No call waits for it, and neither does the end.
    flake.generate()
    flake.close()
    assert told == []
    go_on.set()
    eventually(lambda: len(told) == 2)
    (first, thread), (last, same_thread) = told
    assert (first, last) == ("holding", "stopped")
    assert thread == same_thread != threading.get_ident()
    eventually(lambda: not threads_that_tell())


def test_a_forked_child_is_told_of_its_own_lease(store: Path) -> None:
    code = """
import os, sys, time, threading
from randflake import Randflake

# The parent forks while its own function still runs.
told, hold = [], threading.Event()
def tell(status):
    told.append((os.getpid(), status.state, status.node_ids))
    if os.getpid() == parent:
        hold.wait(60)

def eventually(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, told
        time.sleep(0.01)

parent = os.getpid()
flake = Randflake.leased(*sys.argv[1:], on_lease_change=tell)
eventually(lambda: len(told) == 1)
if (child := os.fork()) == 0:
    told.clear()
    flake.generate()
    own = flake.node_ids
    eventually(lambda: len(told) == 1)
    flake.close()
    eventually(lambda: len(told) == 2)
    expected = [(os.getpid(), "holding", own), (os.getpid(), "stopped", own)]
    os._exit(0 if told == expected else 1)
assert os.waitpid(child, 0)[1] == 0
hold.set()
flake.close()
eventually(lambda: len(told) == 2)
assert [state for _, state, _ in told] == ["holding", "stopped"]
print("told")
"""
    assert run_python(code, str(store), SECRET) == "told\n"


AT_EXIT = """
import atexit, logging, sys, time
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(levelname)s %(message).7s")
from randflake import Randflake

def tell(status):
    time.sleep(0.3)
    print("told", status.state, flush=True)

flake = Randflake.leased(*sys.argv[1:], on_lease_change=tell)
flake.close()
"""


def test_the_end_of_the_process_waits_for_what_is_being_told(store: Path) -> None:
    printed = run_python(AT_EXIT, str(store), SECRET)
    assert printed.split("\n")[:-1] == [
        "INFO leased ",
        "told holding",
        "INFO stopped",
        "told stopped",
    ]


def test_a_function_that_never_returns_delays_the_end_by_seconds_only(store: Path) -> None:
    code = """
import sys, threading
from randflake import Randflake
begun = threading.Event()
def tell(status):
    begun.set()
    threading.Event().wait()
flake = Randflake.leased(*sys.argv[1:], on_lease_change=tell)
begun.wait()
print(flake.node_ids[0])
"""
    node_id = int(run_python(code, str(store), SECRET))
    # It has given its node id back.
    with Randflake.leased(store, SECRET, namespace="default") as flake:
        assert flake.lease is not None
    assert node_id in ends_in(store)


def test_at_the_end_of_the_process_nothing_is_told_any_more(store: Path) -> None:
    code = """
import sys
from randflake import Randflake
def tell(status):
    print(status.state, flush=True)
flake = Randflake.leased(*sys.argv[1:], on_lease_change=tell)
"""
    for _ in range(5):
        assert run_python(code, str(store), SECRET) in ("", "holding\n")


@pytest.mark.parametrize("wrong", [1, "print", []], ids=repr)
def test_what_is_not_callable_is_refused(wrong: Any, store: Path) -> None:
    assert outcome(lambda: Randflake.leased(store, SECRET, on_lease_change=wrong)) == (
        "INVALID_ARGUMENT"
    )
    assert not store.exists()
