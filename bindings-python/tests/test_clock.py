"""Injected clocks, and waits on the machine's clock."""

import signal
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import NOW, SECRET, ScriptedClock, interrupted, named, run_python
from randflake import InvalidArgumentError, InvalidTypeError, Lease, Randflake, RetryLaterError


def generator(clock: Any, **options: Any) -> Randflake:
    return Randflake(1, SECRET, clock=clock, **options)


@pytest.mark.parametrize(
    "reading",
    [
        *(NOW, NOW + 0.5, np.int64(NOW), np.float64(NOW), np.float32(2**30 + 700_000_000)),
        *(Decimal(NOW) + Decimal("0.5"), Fraction(NOW * 2 + 1, 2)),
    ],
    ids=named,
)
def test_a_clock_returns_unix_seconds(reading: Any) -> None:
    flake = generator(lambda: reading)
    assert flake.inspect(flake.generate()).timestamp == int(reading)


@pytest.mark.parametrize(
    "reading", [None, True, "now", b"", [NOW], object(), 1j, time.gmtime(0)], ids=named
)
def test_a_clock_that_returns_the_wrong_type(reading: Any) -> None:
    with pytest.raises(InvalidTypeError, match="clock") as raised:
        generator(lambda: reading).generate()
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "reading", [float("nan"), float("inf"), float("-inf"), 1e300, 10**400, NOW * 10**9]
)
def test_a_clock_that_returns_no_time(reading: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="clock") as raised:
        generator(lambda: reading).generate()
    assert raised.value.code == "INVALID_ARGUMENT"


def test_milliseconds_are_recognised() -> None:
    for reading in (NOW * 1000, NOW * 1000.0):
        with pytest.raises(InvalidArgumentError, match="milliseconds"):
            generator(lambda reading=reading: reading).generate()


def test_a_clock_without_sleep_is_read_once_more() -> None:
    readings = iter([NOW, NOW, NOW, NOW + 1])

    class OnlyNow:
        def now(self) -> float:
            return next(readings)

    flake = generator(OnlyNow())
    flake.generate_many(131_072)
    with pytest.raises(RetryLaterError) as raised:
        flake.generate()
    assert raised.value.code == "SEQUENCE_EXHAUSTED"
    assert raised.value.retry_after == 1.0
    assert flake.inspect(flake.generate()).timestamp == NOW + 1


def test_a_clock_whose_sleep_is_none_cannot_sleep() -> None:
    clock = ScriptedClock()
    clock.sleep = None  # type: ignore[method-assign, assignment]
    flake = generator(clock)
    flake.generate_many(131_072)
    with pytest.raises(RetryLaterError):
        flake.generate()


def test_an_injected_sleep_is_asked_for_the_time_that_is_missing() -> None:
    clock = ScriptedClock(NOW + 0.25)
    flake = generator(clock)
    flake.generate_many(131_072)
    assert flake.inspect(flake.generate()).timestamp == NOW + 1
    assert clock.sleeps == [0.75]


class Mine(Exception):
    pass


@pytest.mark.parametrize("error", [Mine("mine"), ValueError("mine"), KeyboardInterrupt("mine")])
@pytest.mark.parametrize("fails", ["now", "sleep"])
@pytest.mark.parametrize("call", ["generate", "generate_string", "small", "large", "fill"])
def test_what_a_clock_raises_goes_on_as_it_is(error: BaseException, fails: str, call: str) -> None:
    class Fails(ScriptedClock):
        armed = False

        def now(self) -> float:
            if self.armed and fails == "now":
                raise error
            return super().now()

        def sleep(self, seconds: float) -> None:
            if fails == "sleep":
                raise error
            super().sleep(seconds)

    clock = Fails()
    flake = generator(clock)
    flake.generate_many(131_072)
    clock.armed = True
    calls: dict[str, Callable[[], object]] = {
        "generate": flake.generate,
        "generate_string": flake.generate_string,
        "small": lambda: flake.generate_many(3),
        "large": lambda: flake.generate_many(100_000),
        "fill": lambda: flake.fill(np.zeros(100_000, np.int64)),
    }
    with pytest.raises(type(error)) as raised:
        calls[call]()
    assert raised.value is error


def test_a_clock_may_use_its_generator() -> None:
    """Waiting holds no lock: ids can be made while another call waits."""

    class Reentrant(ScriptedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            made.append(flake.generate())

    made: list[int] = []
    flake = generator(Reentrant())
    flake.generate_many(131_072)
    made.append(flake.generate())
    assert [flake.inspect(id).sequence for id in made] == [0, 1]


def waiting(max_wait: float = 60, seconds: int = 30) -> Randflake:
    """A generator whose first id is this many seconds away."""
    start = int(time.time()) + seconds
    return Randflake(1, SECRET, lease=Lease(start, start + 60), max_wait=max_wait)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("call", ["generate", "generate_string", "generate_many", "fill"])
def test_a_signal_interrupts_a_wait(call: str) -> None:
    flake = waiting(max_wait=900, seconds=600)
    calls: dict[str, Callable[[], object]] = {
        "generate": flake.generate,
        "generate_string": flake.generate_string,
        "generate_many": lambda: flake.generate_many(3),
        "fill": lambda: flake.fill(np.zeros(20_000, np.int64)),
    }
    assert interrupted(calls[call]) < 120


def test_what_the_handler_of_a_signal_raises_goes_on_as_it_is() -> None:
    def handler(*_: object) -> None:
        raise Interrupted

    def wait() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.06)
        waiting().generate()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Interrupted):
            wait()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_returns_does_not_end_the_wait() -> None:
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(time.monotonic()))
    try:
        flake = waiting(seconds=2)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        flake.generate()
        assert len(handled) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_during_a_wait() -> None:
    flake = waiting(seconds=3)
    ids: list[int] = []
    waiter = threading.Thread(target=lambda: ids.append(flake.generate()))
    waiter.start()
    seen = set()
    while waiter.is_alive():
        seen.add(int(time.monotonic() * 100))
    assert len(seen) > 15, "of at least 200 hundredths of a second"
    assert len(ids) == 1


def test_without_a_wait_the_error_says_when() -> None:
    for max_wait in (0, 0.5):
        before = time.monotonic()
        with pytest.raises(RetryLaterError) as raised:
            waiting(max_wait, seconds=600).generate()
        took = time.monotonic() - before
        assert took < 120
        assert raised.value.code == "LEASE_NOT_STARTED"
        assert 598 - took < raised.value.retry_after <= 600


def test_an_interpreter_ends_while_a_daemon_thread_waits() -> None:
    code = """
import sys, threading, time
from randflake import Lease, Randflake
start = int(time.time()) + 120
def wait(use):
    flake = Randflake(1, sys.argv[1], lease=Lease(start, start + 60), max_wait=180)
    use(flake)
for use in (lambda flake: flake.generate(), lambda flake: flake.generate_many(20_000)):
    threading.Thread(target=wait, args=[use], daemon=True).start()
time.sleep(0.1)
class EndsSlowly:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)  # the other threads ask for the GIL meanwhile
sys.last = EndsSlowly()
print("ends")
"""
    before = time.monotonic()
    assert run_python(code, SECRET) == "ends\n"
    assert time.monotonic() - before < 60
