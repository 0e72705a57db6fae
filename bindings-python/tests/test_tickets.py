"""Sequential numbers, in one process and in many."""

import copy
import inspect
import math
import multiprocessing
import pickle
import threading
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import (
    SECRET,
    eventually,
    in_child,
    interrupted,
    locked,
    named,
    outcome,
    run_python,
    together,
)
from randflake import (
    Cloak,
    InvalidArgumentError,
    InvalidTypeError,
    Randflake,
    RetryLaterError,
    StoreError,
    Tickets,
    fence_store,
    fence_tickets,
    init_store,
    init_tickets,
    list_tickets,
    show_tickets,
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The path of a store with a namespace of tickets."""
    path = tmp_path / "ids.db"
    init_tickets(path, "new")
    return path


def drawn(store: Any, name: str = "invoices", **options: Any) -> Tickets:
    return Tickets.leased(store, name, **{"max_wait": 60, **options})


def next_of(store: Path, name: str = "invoices") -> int:
    """Returns the number that is drawn next."""
    with drawn(store, name) as tickets:
        return tickets.generate()


def refused(call: Callable[[], Any], *, type_is_wrong: bool = False) -> str:
    """Asserts that a call raises INVALID_ARGUMENT, and of which kind."""
    with pytest.raises(InvalidArgumentError) as raised:
        call()
    assert type(raised.value) is (InvalidTypeError if type_is_wrong else InvalidArgumentError)
    assert raised.value.code == "INVALID_ARGUMENT"
    return str(raised.value)


def test_numbers_in_a_row(store: Path) -> None:
    with drawn(store) as invoices:
        assert invoices.name == "invoices"
        assert repr(invoices) == "<randflake.Tickets name='invoices'>"
        assert [invoices.generate() for _ in range(30)] == list(range(1, 31))
        assert invoices.generate_many(1000) == list(range(31, 1031))
        assert invoices.generate_many(0) == []
        numbers = invoices.generate_array(10)
        assert numbers.dtype == np.int64
        assert numbers.tolist() == list(range(1031, 1041))
        buffer = array("q", [0] * 10)
        invoices.fill(buffer)
        assert buffer.tolist() == list(range(1041, 1051))
    assert outcome(invoices.generate) == "CLOSED"
    invoices.close()
    assert next_of(store) == 1051, "the end gave back what was left"


def test_large_batches_and_single_numbers_share_a_counter(store: Path) -> None:
    with drawn(store, min_block=3, max_block=100, max_wait=60) as invoices:
        numbers = invoices.generate_many(20_000)
        numbers.append(invoices.generate())
        numbers += invoices.generate_array(50_000).tolist()
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 70_001, "one process alone has no gaps"


def test_start_and_step(store: Path) -> None:
    with drawn(store, "odd", start=7, step=2) as odd:
        assert odd.generate_many(3) == [7, 9, 11]
    assert next_of(store, "odd") == 13, "a counter keeps what it was made with"
    assert "start" in refused(lambda: drawn(store, "odd", start=8))
    assert "step" in refused(lambda: drawn(store, "odd", step=1))
    with drawn(store, "last", start=2**53 - 3) as last:
        assert last.generate_many(2) == [2**53 - 3, 2**53 - 2]
        assert last.generate() == 2**53 - 1
        assert outcome(last.generate) == "LIFETIME_OVER"
        assert outcome(lambda: last.generate_many(1)) == "LIFETIME_OVER"


def test_counters_are_apart(store: Path) -> None:
    init_tickets(store, "new", namespace="others")
    for options in ({}, {"namespace": "others"}):
        for name in ("a", "ä", "b" * 200, "orders:2026"):
            with drawn(store, name, **options) as tickets:
                assert (tickets.name, tickets.generate()) == (name, 1)


def test_hidden_numbers(store: Path) -> None:
    cloak = Cloak(SECRET, "invoices.id")
    with drawn(store) as invoices:
        hidden = [cloak.hide(number) for number in invoices.generate_many(1000)]
    assert len(set(hidden)) == 1000
    assert [cloak.reveal(number) for number in hidden] == list(range(1, 1001))


def test_threads_never_share_a_number(store: Path) -> None:
    made: list[list[int]] = [[] for _ in range(8)]
    invoices = drawn(store, min_block=1, max_block=256, max_wait=60)

    def work(number: int) -> None:
        mine = made[number]
        for _ in range(300):
            mine.append(invoices.generate())
            mine.extend(invoices.generate_many(7))

    together(8, work)
    invoices.close()
    for mine in made:
        assert mine == sorted(mine)
    assert len({number for mine in made for number in mine}) == 8 * 300 * 8


def test_several_draw_from_one_counter(store: Path) -> None:
    several = [drawn(store, max_block=20, max_wait=60) for _ in range(4)]
    numbers = [tickets.generate() for _ in range(200) for tickets in several]
    for tickets in several:
        tickets.close()
    assert len(set(numbers)) == len(numbers)


NO_INTEGERS = [True, 1.0, math.nan, "1", b"1", [1], object(), 1j]
NO_NUMBERS = [None, True, "1", b"1", [1], object(), 1j]
NO_DURATIONS = [-1, -0.001, 86_400.5, 2**40, 10**400, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("start", NO_INTEGERS),  # None means the counter's own
        ("step", NO_INTEGERS),
        ("min_block", [None, *NO_INTEGERS]),
        ("max_block", [None, *NO_INTEGERS]),
        ("reserve_seconds", NO_NUMBERS),
        ("max_wait", NO_NUMBERS),
        ("acquire_timeout", NO_NUMBERS),
        ("namespace", [None, True, 1, b"tickets", ["tickets"], Path("tickets")]),
        ("create", [None, 1, "yes", b"", []]),
        ("allow_weak_store", [None, 1, "yes", b"", []]),
    ],
)
def test_options_of_the_wrong_type(store: Path, option: str, values: list[Any]) -> None:
    for value in values:
        for make in (Tickets.leased, Tickets.lazy):
            refused(lambda: make(store, "a", **{option: value}), type_is_wrong=True)  # noqa: B023


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("start", [0, -1, 2**53, 2**64, 2**70, -(2**70)]),
        ("step", [0, -1, 2**53, 2**64, 2**70, -(2**70)]),
        ("min_block", [0, -1, 1_000_001, 2**64, 2**70]),
        ("max_block", [0, -1, 9, 2**53, 2**64, 2**70]),
        ("reserve_seconds", NO_DURATIONS),
        ("max_wait", NO_DURATIONS),
        ("acquire_timeout", NO_DURATIONS),
        ("namespace", ["", "a" * 201, "ä" * 101, "a\n", "\0", "\ud800"]),
    ],
)
def test_options_out_of_range(store: Path, option: str, values: list[Any]) -> None:
    for value in values:
        for make in (Tickets.leased, Tickets.lazy):
            said = refused(lambda: make(store, "a", **{option: value}))  # noqa: B023
            assert "got" in said, (option, value)


def test_names(store: Path) -> None:
    for name in ("", "a" * 201, "ä" * 101, "a b", "a\n", "\0", "\ud800"):
        for call in (
            lambda: drawn(store, name),  # noqa: B023
            lambda: Tickets.lazy(store, name),  # noqa: B023
            lambda: fence_tickets(store, name, 0),  # noqa: B023
            lambda: show_tickets(store, name),  # noqa: B023
        ):
            assert "name" in refused(call)
    for wrong in (True, 1, b"a", ["a"], object()):
        for call in (
            lambda: drawn(store, wrong),  # type: ignore[arg-type]  # noqa: B023
            lambda: Tickets.lazy(store, wrong),  # type: ignore[arg-type]  # noqa: B023
            lambda: fence_tickets(store, wrong, 0),  # type: ignore[arg-type]  # noqa: B023
            lambda: show_tickets(store, wrong),  # type: ignore[arg-type]  # noqa: B023
        ):
            assert "name" in refused(call, type_is_wrong=True)


@pytest.mark.parametrize("wrong", [True, 1, 1.5, [], object()], ids=named)
def test_what_is_no_store(wrong: Any) -> None:
    for call in (
        lambda: drawn(wrong),
        lambda: Tickets.lazy(wrong, "a"),
        lambda: init_tickets(wrong, "new"),
        lambda: fence_tickets(wrong, "a", 0),
        lambda: list_tickets(wrong),
        lambda: show_tickets(wrong, "a"),
    ):
        refused(call, type_is_wrong=True)


def test_how_many(store: Path) -> None:
    with drawn(store) as invoices:
        calls: list[Callable[[Any], Any]] = [invoices.generate_many, invoices.generate_array]
        for call in calls:
            for n in (None, True, 1.0, "1", b"1", [1]):
                refused(lambda: call(n), type_is_wrong=True)  # noqa: B023
            for n in (-1, -(2**70), 2**70, 2**62):
                refused(lambda: call(n))  # noqa: B023
        for buffer in (None, 1, "12345678", [0], object()):
            refused(lambda: invoices.fill(buffer), type_is_wrong=True)  # type: ignore[arg-type]  # noqa: B023
        for other in (array("Q", [0]), array("i", [0]), bytes(8), bytearray(8), np.zeros(1)):
            refused(lambda: invoices.fill(other))  # noqa: B023
        assert invoices.generate() == 1, "none of that has taken a number"


def test_it_is_like_any_other_class(store: Path) -> None:
    with pytest.raises(TypeError):
        Tickets()
    with drawn(store) as invoices:
        for call in (
            lambda: pickle.dumps(invoices),
            lambda: copy.copy(invoices),
            lambda: copy.deepcopy(invoices),
        ):
            assert "cannot be pickled or copied" in refused(call, type_is_wrong=True)
        for wrong in (
            lambda: Tickets.leased(store),  # type: ignore[call-arg]
            lambda: Tickets.leased(store, "a", 1),  # type: ignore[misc]
            lambda: Tickets.leased(store, "a", ttl=1),  # type: ignore[call-arg]
            lambda: invoices.generate(1),  # type: ignore[call-arg]
            lambda: Tickets.generate(None),  # type: ignore[arg-type]
            lambda: setattr(invoices, "name", "b"),
        ):
            with pytest.raises((TypeError, AttributeError)):
                wrong()
    assert str(inspect.signature(Tickets.generate)) == "(self, /)"
    for make in (Tickets.leased, Tickets.lazy, Tickets.leased_async):
        assert str(inspect.signature(make)) == (
            "(store, name, *, namespace='tickets', start=None, step=None, reserve_seconds=2.0, "
            "min_block=10, max_block=1000000, create=False, acquire_timeout=10.0, max_wait=1.0, "
            "allow_weak_store=False)"
        )


def test_a_namespace_is_made_by_word_alone(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    for make in (lambda: drawn(file), Tickets.lazy(file, "a").generate):
        with pytest.raises(StoreError) as raised:
            make()
        assert raised.value.code == "STORE_NOT_INITIALIZED"
    assert not file.exists(), "in a lost file every number would come again"
    with drawn(file, create=True) as tickets:
        assert tickets.generate() == 1
    for mode in (None, True, 1, b"new", ["new"]):
        refused(lambda: init_tickets(file, mode), type_is_wrong=True)  # type: ignore[arg-type]  # noqa: B023
    for mode in ("", "New", "old", "\ud800"):
        refused(lambda: init_tickets(file, mode))  # type: ignore[arg-type]  # noqa: B023
    init_tickets(file, "new")  # it exists, so this does nothing
    assert next_of(file) == 2


def test_tickets_and_leases_have_namespaces_of_their_own(store: Path) -> None:
    with Randflake.leased(store, SECRET, ttl=60):
        assert "namespace" in refused(lambda: drawn(store, namespace="default"))
    message = refused(lambda: Randflake.leased(store, SECRET, namespace="tickets"))
    assert "tickets" in message


def test_fences(store: Path) -> None:
    assert show_tickets(store, "invoices") is None
    with drawn(store) as invoices:
        assert invoices.generate_many(20)[-1] == 20
    shown = show_tickets(store, "invoices")
    assert shown == ("invoices", 1, 1, 21, 0, 0, False)
    fence_store(store, namespace="tickets")
    shown = show_tickets(store, "invoices")
    assert shown is not None
    assert shown.must_be_fenced
    waiting = Tickets.lazy(store, "invoices")
    for make in (lambda: drawn(store), waiting.generate):
        with pytest.raises(StoreError, match="fence_tickets") as raised:
            make()
        assert raised.value.code == "STORE_QUARANTINED"
    for above in (None, True, 1.0, "1", b"1"):
        refused(lambda: fence_tickets(store, "invoices", above), type_is_wrong=True)  # type: ignore[arg-type]  # noqa: B023
    for above in (-1, 2**53, 2**64, 2**70):
        refused(lambda: fence_tickets(store, "invoices", above))  # noqa: B023
    for option in ("start", "step"):
        for value in (True, 1.0, "1"):
            call = lambda: fence_tickets(store, "a", 0, **{option: value})  # noqa: B023, E731
            refused(call, type_is_wrong=True)
        for value in (0, -1, 2**53, 2**70):
            refused(lambda: fence_tickets(store, "a", 0, **{option: value}))  # noqa: B023
    for weak in (None, 1, "yes"):
        call = lambda: fence_tickets(store, "a", 0, allow_weak_store=weak)  # type: ignore[arg-type]  # noqa: B023, E731
        refused(call, type_is_wrong=True)
        call = lambda: show_tickets(store, "a", allow_weak_store=weak)  # type: ignore[arg-type]  # noqa: B023, E731
        refused(call, type_is_wrong=True)
    for namespace in ("", "a\n", "a" * 201):
        refused(lambda: fence_tickets(store, "a", 0, namespace=namespace))  # noqa: B023
        refused(lambda: show_tickets(store, "a", namespace=namespace))  # noqa: B023
        refused(lambda: list_tickets(store, namespace=namespace))  # noqa: B023
    assert fence_tickets(store, "invoices", 1000) == ("invoices", 1, 1, 1001, 0, 0, False)
    eventually(lambda: outcome(waiting.generate) == 1001)
    waiting.close()
    assert fence_tickets(store, "invoices", 5).next == next_of(store), "it never falls"
    assert fence_tickets(store, "even", 7, start=2, step=2).next == 8
    assert fence_tickets(store, "all", 2**53 - 1).next is None


def test_counters_are_listed_by_name(store: Path) -> None:
    assert list_tickets(store) == []
    made = [fence_tickets(store, name, 7) for name in ("invoices", "orders", "été")]
    assert list_tickets(store) == made
    fence_store(store, namespace="tickets")
    fence_tickets(store, "orders", 7)
    assert [counter.must_be_fenced for counter in list_tickets(store)] == [True, False, True]
    init_tickets(store, "new", namespace="others")
    assert list_tickets(store, namespace="others") == []


def test_a_file_is_no_weak_store(store: Path) -> None:
    for call in (
        lambda: drawn(store, allow_weak_store=True),
        lambda: Tickets.lazy(store, "a", allow_weak_store=True),
        lambda: init_tickets(store, "new", allow_weak_store=True),
        lambda: fence_tickets(store, "a", 0, allow_weak_store=True),
        lambda: list_tickets(store, allow_weak_store=True),
        lambda: show_tickets(store, "a", allow_weak_store=True),
        lambda: Randflake.leased(store, SECRET, allow_weak_store=True),
        lambda: Randflake.lazy(store, SECRET, allow_weak_store=True),
        lambda: init_store(store, SECRET, "new", allow_weak_store=True),
    ):
        assert "allow_weak_store is for servers" in refused(call)
    with drawn(store, allow_weak_store=False) as invoices:
        assert invoices.generate() == 1


def test_there_is_nothing_to_show_or_to_fence(tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    for call in (
        lambda: fence_tickets(file, "a", 0),
        lambda: list_tickets(file),
        lambda: show_tickets(file, "a"),
    ):
        assert outcome(call) == "STORE_NOT_INITIALIZED"
    assert not file.exists()


def test_an_outage_of_the_store(store: Path) -> None:
    invoices = drawn(store, min_block=10, max_block=20, max_wait=0)
    made: list[int] = []
    with locked(store):

        def take() -> bool:
            try:
                made.append(invoices.generate())
            except RetryLaterError as error:
                return error.__cause__ is not None
            return False

        eventually(take)
        with pytest.raises(RetryLaterError) as raised:
            invoices.generate_many(100)
        error = raised.value
        assert (error.code, error.retry_after > 0) == ("LEASE_UNAVAILABLE", True)
        assert isinstance(error.__cause__, StoreError)
        assert error.__cause__.code == "STORE_UNAVAILABLE"
        metrics = invoices.metrics()
        assert (metrics.numbers_generated, metrics.reserve) == (len(made), 0)
        assert metrics.store_errors["STORE_UNAVAILABLE"] >= 1
        assert isinstance(metrics.last_error, StoreError)

    eventually(lambda: isinstance(outcome(invoices.generate), int))
    assert made == list(range(1, len(made) + 1))
    invoices.close()


def test_a_call_waits_until_the_store_is_back(store: Path) -> None:
    invoices = drawn(store, min_block=10, max_block=20, max_wait=60)
    made: list[int] = []
    with locked(store):
        waiting = threading.Thread(target=lambda: made.extend(invoices.generate_many(100)))
        waiting.start()
        eventually(lambda: "STORE_UNAVAILABLE" in invoices.metrics().store_errors)
    waiting.join()
    assert made == list(range(1, 101))
    assert invoices.metrics().waits >= 1
    invoices.close()


@pytest.mark.parametrize(
    "call", [lambda it: it.generate(), lambda it: it.generate_many(100), lambda it: it.fill(ARRAY)]
)
def test_ctrl_c_ends_a_wait(store: Path, call: Callable[[Tickets], Any]) -> None:
    invoices = drawn(store, min_block=1, max_block=2, max_wait=600)
    with locked(store):

        def wait() -> None:
            while True:
                call(invoices)

        assert interrupted(wait) < 120
    assert invoices.generate() > 0
    invoices.close()


ARRAY = array("q", [0] * 100)


def test_a_close_while_others_wait(store: Path) -> None:
    invoices = drawn(store, min_block=1, max_block=2, max_wait=60)
    ended: list[str] = []
    with locked(store):

        def use() -> None:
            while isinstance(result := outcome(invoices.generate), int):
                pass
            ended.append(result)

        users = [threading.Thread(target=use) for _ in range(4)]
        for user in users:
            user.start()
        eventually(lambda: bool(invoices.metrics().store_errors))
        closer = threading.Thread(target=invoices.close)
        closer.start()
        for user in users:
            user.join()
    closer.join()
    assert ended == ["CLOSED"] * 4


def test_lazy(store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RANDFLAKE_STORE", raising=False)
    invoices = Tickets.lazy(None, "invoices")
    assert repr(invoices) == "<randflake.Tickets name='invoices'>"
    assert invoices.name == "invoices"
    assert invoices.metrics() == (0, 0, 0, 0, 0, 0, {}, None)
    assert outcome(invoices.generate) == "INVALID_ARGUMENT", "RANDFLAKE_STORE is not set"
    monkeypatch.setenv("RANDFLAKE_STORE", str(store))
    assert invoices.generate() == 1
    monkeypatch.setenv("RANDFLAKE_STORE", str(tmp_path / "other.db"))
    assert invoices.generate_many(3) == [2, 3, 4]
    invoices.close()
    assert outcome(invoices.generate) == "CLOSED"

    never = Tickets.lazy(store, "invoices")
    never.close()
    assert outcome(never.generate) == "CLOSED"
    assert next_of(store) == 5


def test_nothing_is_drawn_before_the_store_of_the_environment_is_known(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANDFLAKE_STORE", str(store))
    # A thread that draws too early fails, and so does the first call of most of these.
    for number in range(1, 21):
        invoices = Tickets.lazy(None, "invoices", min_block=1)
        assert invoices.generate() == number
        assert invoices.metrics().store_errors == {}
        invoices.close()


def test_threads_that_are_the_first(store: Path) -> None:
    invoices = Tickets.lazy(store, "invoices")
    made: list[int] = []
    together(8, lambda _: made.append(invoices.generate()))
    assert sorted(made) == list(range(1, 9))
    invoices.close()


def test_a_child_draws_for_itself(store: Path) -> None:
    invoices = drawn(store)
    before = invoices.generate_many(15)

    def work() -> dict[str, Any]:
        shown = invoices.metrics(), repr(invoices)
        made = [invoices.generate(), *invoices.generate_many(100), *invoices.generate_many(20_000)]
        invoices.close()
        return {"shown": shown, "made": made, "closed": outcome(invoices.generate)}

    child = in_child(work)
    after = invoices.generate_many(100)
    assert child["shown"] == ((0, 0, 0, 0, 0, 0, {}, None), "<randflake.Tickets name='invoices'>")
    assert child["closed"] == "CLOSED"
    assert child["made"] == sorted(child["made"])
    assert not {*before, *after} & set(child["made"])
    assert after == sorted(after)
    assert invoices.metrics().numbers_generated == 115
    invoices.close()


def test_children_of_children_and_those_that_do_nothing(store: Path) -> None:
    invoices = drawn(store)

    def numbers(deeper: int) -> list[int]:
        mine = invoices.generate_many(30)
        return mine + in_child(lambda: numbers(deeper - 1)) if deeper else mine

    made = numbers(3)
    in_child(invoices.close)
    in_child(lambda: None)
    made += invoices.generate_many(30)
    assert len(set(made)) == len(made) == 150
    invoices.close()


def take(store: str, count: int, queue: Any) -> None:
    tickets = Tickets.lazy(store, "invoices", max_block=50, max_wait=60)
    queue.put([*tickets.generate_many(count), tickets.generate()])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_give_their_tails_back(store: Path, method: str) -> None:
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [context.Process(target=take, args=(str(store), 100, queue)) for _ in range(3)]
    for process in processes:
        process.start()
    made = [number for _ in processes for number in queue.get(timeout=60)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len(set(made)) == len(made) == 303
    # Every number was handed out or is free again.
    free = set(range(1, max(made) + 1)) - set(made)
    with drawn(store, min_block=1) as tickets:
        left = {tickets.generate() for _ in range(len(free) + 1)}
    assert left == free | {max(made) + 1}


ENDS = {
    "the end": "",
    "exit": "sys.exit()",
    "an exception": "raise ValueError('mine')",
    "collected": "del tickets; import gc; gc.collect()",
    "atexit": "import atexit; atexit.register(tickets.generate)",
    "a daemon": "import threading\n"
    "threading.Thread(target=lambda: [tickets.generate() for _ in iter(int, 1)], daemon=True)"
    ".start()",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("make", ["leased", "lazy"])
def test_the_end_of_a_process_gives_the_tail_back(store: Path, make: str, end: str) -> None:
    code = f"""
import sys
from randflake import Tickets
tickets = Tickets.{make}(sys.argv[1], "invoices", min_block=1000, max_block=10_000)
print(tickets.generate(), flush=True)
{ENDS[end]}
"""
    error = "ValueError: mine" if end == "an exception" else None
    assert run_python(code, str(store), error=error) == "1\n"
    number = next_of(store)
    if end == "a daemon":
        assert number > 1
    else:
        assert number == (3 if end == "atexit" else 2)


def test_what_a_kill_loses(store: Path) -> None:
    code = """
import os, sys
from randflake import Tickets
tickets = Tickets.leased(sys.argv[1], "invoices", min_block=10, max_block=100, max_wait=60)
print(tickets.generate_many(1000)[-1], flush=True)
os._exit(0)
"""
    last = int(run_python(code, str(store)))
    assert last == 1000
    assert last < next_of(store) <= last + 101


def test_metrics(store: Path) -> None:
    with drawn(store) as invoices:
        invoices.generate_many(500)
        invoices.generate()
        metrics = invoices.metrics()
        assert (metrics.numbers_generated, metrics.store_errors, metrics.last_error) == (
            501,
            {},
            None,
        )
        assert metrics.blocks_drawn >= 1
        assert metrics.reserve >= 0
    metrics = invoices.metrics()
    assert (metrics.numbers_generated, metrics.reserve) == (501, 0)


FORKS = """
import os, signal, sys, threading, warnings
from randflake import Tickets

warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
tickets = Tickets.leased(sys.argv[1], "invoices", min_block=1, max_block=40, max_wait=60)
made = os.open(sys.argv[2], os.O_CREAT | os.O_APPEND | os.O_WRONLY)


def take(times):
    for _ in range(times):
        numbers = [tickets.generate(), *tickets.generate_many(17)]
        os.write(made, "".join(f"{number}\\n" for number in numbers).encode())


children = 0


def fork(*_):
    global children
    children += 1
    child = os.fork()
    if child == 0:
        take(5)
        tickets.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


signal.signal(signal.SIGALRM, fork)
other = threading.Thread(target=take, args=[100])
other.start()
taken = 0
for number in range(1, 6):
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while children < number:
        take(1)
        taken += 1
other.join()
print(taken)
tickets.close()
"""


def test_children_that_a_handler_forks_while_a_call_waits(store: Path, tmp_path: Path) -> None:
    """Calls wait most of the time, so most forks happen during one."""
    taken = int(run_python(FORKS, str(store), str(tmp_path / "made")))
    numbers = (tmp_path / "made").read_text().split()
    assert len(numbers) == 18 * (taken + 100 + 5 * 5), "5 children, each with 5 times 18"
    assert len(set(numbers)) == len(numbers)
