"""Leased generators in real processes: fork, multiprocessing, and the end of an interpreter."""

import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import LEASED_SECRET as SECRET, ends_in, in_child, locked, outcome, run_python
from randflake import Inspector, LeaseStatus, Randflake, RetryLaterError, StoreError

READER = Inspector(SECRET)


def is_given_back(store: Path, node_ids: tuple[int, ...]) -> bool:
    """Returns whether the leases, of 300 seconds, have ended."""
    ends = ends_in(store)
    return all(ends[node_id] <= time.time() + 2 for node_id in node_ids)


def begin_with(code: str) -> str:
    """Returns code with what it needs before it: sys.argv has the store and the secret."""
    return f"""
import atexit, os, sys, threading, time, warnings
from randflake import Randflake, RandflakeError

# Python 3.12 and newer, of every fork in a process with threads.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

def leased(**options):
    return Randflake.leased(sys.argv[1], sys.argv[2], **options)
{code}"""


def run(code: str, store: Path) -> list[str]:
    """Runs code in a process of its own, which must succeed and end; returns its lines."""
    return run_python(begin_with(code), str(store), SECRET).splitlines()


def node_ids_of(line: str) -> tuple[int, ...]:
    return tuple(int(number) for number in line.split())


def test_a_child_leases_again_and_the_parent_continues(store: Path) -> None:
    flake = Randflake.leased(store, SECRET)
    before = flake.generate_many(100)
    node_ids = flake.node_ids

    def work() -> dict[str, Any]:
        shown = flake.lease, flake.node_ids, repr(flake)
        made = [flake.generate(), *flake.generate_many(100), *flake.generate_many(20_000)]
        status = flake.lease
        own = flake.node_ids
        flake.close()
        return {
            "shown": shown,
            "made": made,
            "read": flake.inspect(before[0]) == READER.inspect(before[0]),
            "status": status,
            "own": own,
            "closed": outcome(flake.generate),
        }

    child = in_child(work)
    assert child["shown"] == (None, (), "<randflake.Randflake node_ids=[]>")
    assert child["own"] == child["status"].node_ids
    assert (child["status"].state, child["status"].renewals) == ("holding", 0)
    assert child["read"]
    assert child["closed"] == "CLOSED"
    assert {READER.inspect(id).node_id for id in child["made"]} == set(child["own"])
    after = flake.generate_many(100)
    assert len({*before, *after, *child["made"]}) == 200 + 20_101
    assert flake.node_ids == node_ids
    assert not set(child["own"]) & set(node_ids)
    assert is_given_back(store, child["own"])
    assert not is_given_back(store, node_ids)


def test_a_child_of_a_child_leases_again_too(store: Path) -> None:
    flake = Randflake.leased(store, SECRET)

    def ids(deeper: int) -> list[int]:
        mine = flake.generate_many(100)
        return mine + in_child(lambda: ids(deeper - 1)) if deeper else mine

    made = ids(3)
    assert len(set(made)) == len(made) == 400
    assert len({READER.inspect(id).node_id for id in made}) == 4


@pytest.mark.parametrize("acquire_timeout", [0, 0.5])
def test_a_child_learns_why_it_gets_no_lease(store: Path, acquire_timeout: float) -> None:
    flake = Randflake.leased(store, SECRET, acquire_timeout=acquire_timeout)

    def refusal(call: Callable[[], object]) -> tuple[str, str, bool]:
        with pytest.raises(RetryLaterError) as raised:
            call()
        error, cause = raised.value, raised.value.__cause__
        assert isinstance(cause, StoreError)
        return error.code, cause.code, 0.05 <= error.retry_after <= 5

    def work() -> list[Any]:
        with locked(store):
            refusals = [refusal(flake.generate), refusal(lambda: flake.generate_many(20_000))]
            shown = flake.lease
        return [*refusals, shown, len(flake.generate_many(10))]

    refused = ("LEASE_UNAVAILABLE", "STORE_UNAVAILABLE", True)
    assert in_child(work) == [refused, refused, None, 10]
    assert flake.generate()


@pytest.mark.parametrize(
    "leave",
    ["flake.close()", "del flake", "sys.exit()", "flake.__exit__(None, None, None)", "0"],
)
@pytest.mark.parametrize("use", ["flake.generate()", "0"])
def test_a_child_gives_back_its_own_lease_alone(store: Path, use: str, leave: str) -> None:
    code = f"""
with leased() as flake:
    print(*flake.node_ids, flush=True)
    flake.generate()
    child = os.fork()
    if child == 0:
        {use}
        print(*flake.node_ids, flush=True)
        {leave}
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    flake.generate()
    print(*flake.node_ids, flush=True)
    os._exit(0)
"""
    before, of_child, after = run(code, store)
    assert before == after
    assert not is_given_back(store, node_ids_of(before))
    assert (of_child != "") == (use != "0")
    assert is_given_back(store, node_ids_of(of_child))


def test_a_child_that_raises_through_a_with_block(store: Path) -> None:
    code = """
def serve():
    with leased() as flake:
        print(*flake.node_ids, flush=True)
        child = os.fork()
        if child == 0:
            flake.generate()
            print(*flake.node_ids, flush=True)
            raise SystemExit(3)
        assert os.waitpid(child, 0)[1] == 3 << 8
        flake.generate()
        os._exit(0)
serve()
"""
    parent, child = map(node_ids_of, run(code, store))
    assert is_given_back(store, child)
    assert not is_given_back(store, parent)


def test_forks_while_threads_generate_and_renew(store: Path) -> None:
    flake = Randflake.leased(store, SECRET, ttl=9, max_skew=0, max_drift=0, max_wait=60)
    done = threading.Event()
    made: list[int] = []

    def work() -> None:
        while not done.is_set():
            made.extend(flake.generate_many(100))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        forks = 0
        renewals = 0
        while renewals < 2 or forks < 10:
            made += in_child(lambda: [flake.generate(), *flake.generate_many(99)])
            forks += 1
            status = flake.lease
            assert isinstance(status, LeaseStatus)
            assert status.losses == 0
            renewals = status.renewals
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(set(made)) == len(made)


def test_workers_of_a_server_that_loads_its_application_first(store: Path) -> None:
    code = """
flake = leased()
parent = [flake.generate() for _ in range(1000)]
workers = []
for _ in range(4):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        ids = [flake.generate() for _ in range(5000)]
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            print(*flake.node_ids, *ids, file=pipe)
        sys.exit()
    os.close(writing)
    workers.append((child, reading))
parent += [flake.generate() for _ in range(1000)]
print(*flake.node_ids, *parent)
for child, reading in workers:
    print(open(reading).read(), end="")
    assert os.waitpid(child, 0)[1] == 0
"""
    lines = [node_ids_of(line) for line in run(code, store)]
    assert len({node_id for node_id, *_ in lines}) == 5
    ids = [id for _, *ids in lines for id in ids]
    assert len(set(ids)) == len(ids) == 22_000
    assert is_given_back(store, tuple(node_id for node_id, *_ in lines))


INHERITED: list[Randflake] = []


def inherited_ids(_: int) -> tuple[tuple[int, ...], list[int]]:
    return INHERITED[0].node_ids, INHERITED[0].generate_many(1000)


def test_multiprocessing_by_fork_hands_a_generator_on(store: Path) -> None:
    INHERITED[:] = [Randflake.leased(store, SECRET)]
    ids = INHERITED[0].generate_many(1000)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        for _, part in pool.map(inherited_ids, range(12), chunksize=1):
            ids += part
    ids += INHERITED[0].generate_many(1000)
    INHERITED.clear()
    assert len(set(ids)) == len(ids) == 14_000


def own_ids(store: Path) -> tuple[int, list[int]]:
    flake = Randflake.leased(store, SECRET)
    return flake.node_ids[0], flake.generate_many(1000)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing_with_leases_of_their_own(store: Path, method: str) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        parts = pool.map(own_ids, [store] * 6, chunksize=1)
    ids = [id for _, part in parts for id in part]
    assert len(set(ids)) == len(ids) == 6000


KEPT: list[Randflake] = []


def keep_one(store: Path, results: Any) -> None:
    KEPT.append(Randflake.leased(store, SECRET))
    results.send(KEPT[0].node_ids)


def use_inherited(_: Path, results: Any) -> None:
    INHERITED[0].generate()
    results.send(INHERITED[0].node_ids)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("fork", keep_one),
        ("forkserver", keep_one),
        ("spawn", keep_one),
        ("fork", use_inherited),
    ],
)
def test_the_end_of_a_child_of_multiprocessing_gives_back(
    store: Path, method: str, target: Any
) -> None:
    INHERITED[:] = [Randflake.leased(store, SECRET)]
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process: Any = context.Process(target=target, args=(store, there))
    process.start()
    node_ids = here.recv()
    process.join()
    assert process.exitcode == 0
    assert is_given_back(store, node_ids)
    assert not is_given_back(store, INHERITED[0].node_ids)
    INHERITED.clear()


@pytest.mark.parametrize(
    "code",
    [
        "flake = leased(); print(*flake.node_ids)",
        "print(*leased().node_ids)",
        """
def main():
    flake = leased(node_count=2)
    print(*flake.node_ids)
main()
""",
        """
flakes = [leased() for _ in range(5)]
print(*(flake.node_ids[0] for flake in flakes))
""",
        """
flake = leased()
print(*flake.node_ids)
sys.exit(0)
""",
        """
class Cycle: pass
cycle = Cycle()
cycle.cycle, cycle.flake = cycle, leased()
print(*cycle.flake.node_ids)
del cycle
""",
        """
flake = leased()
print(*flake.node_ids)
threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
""",
    ],
)
def test_an_exit_without_close_gives_back(store: Path, code: str) -> None:
    (line,) = run(code, store)
    assert node_ids_of(line)
    assert is_given_back(store, node_ids_of(line))


def test_an_exit_by_an_error_gives_back(store: Path) -> None:
    code = begin_with("flake = leased(); print(*flake.node_ids); 1 / 0")
    command = [sys.executable, "-c", code, str(store), SECRET]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert is_given_back(store, node_ids_of(done.stdout))


def test_functions_that_run_at_the_exit_can_still_generate(store: Path) -> None:
    code = """
def late():
    print("late" if flake.generate() else "")
class Last:
    def __del__(self):
        print("later" if flake.generate() else "")
atexit.register(late)
flake = leased()
last = Last()
"""
    # PyPy calls no `__del__` of what is still there at the end.
    later = [] if sys.implementation.name == "pypy" else ["later"]
    assert run(code, store) == ["late", *later]


def test_an_interpreter_ends_while_threads_of_daemons_wait_and_generate(store: Path) -> None:
    code = """
from randflake import generate_secret
other = sys.argv[1] + "2"
Randflake.leased(other, sys.argv[2], ttl=2, max_skew=0, max_drift=0).close()
waiting = Randflake.leased(other, sys.argv[2], ttl=2, max_skew=0, max_drift=0, max_wait=60)
os.unlink(other)
busy = leased(max_wait=60, max_drift=0)

def repeat(call):
    while True:
        try:
            call()
        except RandflakeError as error:
            assert error.code in ("SEQUENCE_EXHAUSTED", "LEASE_UNAVAILABLE"), error
for call in (
    busy.generate,                          # for half of each second, and waits for the other
    lambda: busy.generate_many(1000),
    lambda: busy.generate_many(50_000),
    lambda: waiting.generate(),             # whose lease is over and does not come back
    lambda: waiting.generate_many(20_000),
    lambda: leased().close(),
):
    threading.Thread(target=repeat, args=[call], daemon=True).start()
while waiting.lease.seconds_left:
    time.sleep(0.1)
class EndsSlowly:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)  # the others ask for the GIL meanwhile
sys.last = EndsSlowly()
print(*busy.node_ids)
"""
    (line,) = run(code, store)
    assert is_given_back(store, node_ids_of(line))


def test_a_thread_stays_in_the_call_that_comes_too_late(store: Path) -> None:
    code = """
class Slow:
    def __fspath__(self, sleep=time.sleep):
        called.set()
        sleep(1)  # the end waits for it, and the other thread calls meanwhile
        return sys.argv[1]

def repeat(call):
    while True:
        call()
called = threading.Event()
for call in lambda: Randflake.leased(Slow(), sys.argv[2]), lambda: leased().close():
    threading.Thread(target=repeat, args=[call], daemon=True).start()
called.wait()
"""
    assert run(code, store) == []


def test_an_exit_does_not_wait_for_ever_for_a_store(store: Path) -> None:
    code = begin_with("flakes = [leased() for _ in range(20)]; print(flush=True); input()")
    command = [sys.executable, "-c", code, str(store), SECRET]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        with locked(store):
            before = time.monotonic()
            assert process.communicate("\n", timeout=300) == ("", "")
            # It waits five seconds for all of them, not for each.
            assert time.monotonic() - before < 60
        assert process.returncode == 0
    assert min(ends_in(store).values()) > time.time() + 200, "they are idle to their end"
