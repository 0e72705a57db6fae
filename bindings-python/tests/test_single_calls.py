"""`generate` and `generate_string`, which Python calls without pyo3 around them."""

import inspect
import signal
from collections.abc import Callable
from typing import Any

import pytest
from conftest import SECRET, in_child, outcome, run_python, together
from randflake import Layout, Randflake, RandflakeError, RetryLaterError, Snowflake

METHODS = [
    pytest.param(Randflake, "generate", id="Randflake.generate"),
    pytest.param(Randflake, "generate_string", id="Randflake.generate_string"),
    pytest.param(Snowflake, "generate", id="Snowflake.generate"),
]

Class = type[Randflake] | type[Snowflake]


def generator(of: Class, node_id: int) -> Randflake | Snowflake:
    """On the machine's clock: another one is asked in the ordinary way."""
    if of is Randflake:
        return Randflake(node_id, SECRET, restart_safe=False)
    return Snowflake(node_id, restart_safe=False)


def scarce(tick_ms: int, **options: Any) -> Snowflake:
    """Has two ids a tick."""
    fields = [("time", 41), ("node", 0), ("sequence", 1)]
    layout = Layout(fields=fields, tick_ms=tick_ms, epoch_ms=1_700_000_000_000, sequence="zero")
    return Snowflake(0, layout, **{"restart_safe": False, **options})


@pytest.mark.parametrize(("of", "name"), METHODS)
def test_it_looks_like_any_other_method(of: Class, name: str) -> None:
    method, other = getattr(of, name), of.generate_many
    assert type(method) is type(other)
    assert method.__name__ == name
    assert method.__qualname__ == f"{of.__name__}.{name}"
    assert method.__objclass__ is of
    assert str(inspect.signature(method)) == "(self, /)"
    assert method.__doc__.startswith("Generates an id")
    assert inspect.getdoc(getattr(generator(of, 400), name)) == inspect.getdoc(method)


@pytest.mark.parametrize(("of", "name"), METHODS)
def test_wrong_calls(of: Class, name: str) -> None:
    flake = generator(of, 401)
    method: Any = getattr(of, name)
    other = generator(Snowflake if of is Randflake else Randflake, 402)
    wrong: list[Callable[[], Any]] = [
        method,
        lambda: method(None),
        lambda: method(object()),
        lambda: method(of),
        lambda: method(other),
        lambda: method(flake, 1),
        lambda: method(flake, n=1),
        lambda: method(self=flake),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()
    assert method(flake) != getattr(flake, name)()


@pytest.mark.parametrize(("of", "name"), METHODS)
def test_closed(of: Class, name: str) -> None:
    flake = generator(of, 403)
    call = getattr(flake, name)
    call()
    flake.close()
    for _ in range(2):
        with pytest.raises(RandflakeError) as raised:
            call()
        assert (type(raised.value), raised.value.code) == (RandflakeError, "CLOSED")
        assert raised.value.__context__ is None


@pytest.mark.parametrize(("of", "name"), METHODS)
def test_in_a_child_it_is_forked(of: Class, name: str) -> None:
    call = getattr(generator(of, 404), name)
    before = {call() for _ in range(5)}
    assert in_child(lambda: [outcome(call) for _ in range(5)]) == ["FORKED"] * 5
    assert len(before | {call() for _ in range(5)}) == 10


def test_exhausted() -> None:
    flake = scarce(2000, max_wait=0)
    with pytest.raises(RetryLaterError) as raised:
        # All but the first few have a tick of two seconds for it.
        [flake.generate() for _ in range(100)]
    assert raised.value.code == "SEQUENCE_EXHAUSTED"
    assert raised.value.retry_after is not None
    assert 0 < raised.value.retry_after <= 2


def test_it_waits() -> None:
    flake = scarce(20, max_wait=60)
    ids = [flake.generate() for _ in range(8)]
    assert ids == sorted(set(ids))
    assert flake.inspect(ids[-1]).unix_ms - flake.inspect(ids[0]).unix_ms >= 3 * 20


def test_the_handler_of_a_signal_generates_during_a_wait() -> None:
    flake, other = scarce(100, max_wait=60), generator(Snowflake, 407)
    handled: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(other.generate()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        ids = [flake.generate() for _ in range(6)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ids == sorted(set(ids))
    assert handled == sorted(set(handled)) != []


def test_it_generates_and_waits_while_the_interpreter_ends() -> None:
    """At that point pyo3 no longer attaches a thread unless it knows that it is attached."""
    code = """
import builtins, os
from randflake import Layout, Randflake, RandflakeError, Snowflake

class Last:
    def __init__(self):
        fields = [("time", 41), ("node", 0), ("sequence", 1)]
        layout = Layout(fields=fields, tick_ms=20, epoch_ms=1_700_000_000_000, sequence="zero")
        self.scarce = Snowflake(0, layout, max_wait=20, restart_safe=False)
        self.closed = Snowflake(1, restart_safe=False)
        self.injected = Randflake(405, "%s", clock=lambda: 1_763_640_000)
        self.closed.close()
        self.write, self.error = os.write, RandflakeError

    def __del__(self):
        ids = {self.scarce.generate() for _ in range(6)}
        ids |= {self.injected.generate() for _ in range(6)}
        try:
            self.closed.generate()
        except self.error as error:
            self.write(1, b"%%d %%s" %% (len(ids), error.code.encode()))

builtins.last = Last()
"""
    assert run_python(code % SECRET) == "12 CLOSED"


@pytest.mark.parametrize(("of", "name"), METHODS)
def test_ten_threads_repeat_nothing(of: Class, name: str) -> None:
    call = getattr(generator(of, 406), name)
    made: list[list[Any]] = [[] for _ in range(10)]

    def work(number: int) -> None:
        mine = made[number]
        for _ in range(1000):
            mine.append(call())

    together(10, work)
    ids = [id for mine in made for id in mine]
    assert len(set(ids)) == len(ids) == 10_000
