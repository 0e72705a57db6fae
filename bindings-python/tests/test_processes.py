"""Real processes: fork, multiprocessing, and one node id in two of them."""

import multiprocessing
import subprocess
import sys
import threading
import time
from array import array
from typing import Any

import pytest
from conftest import SECRET, in_child, outcome, run_python
from randflake import Inspector, Lease, Randflake, RandflakeError

READER = Inspector(SECRET)


def leased() -> Randflake:
    now = int(time.time())
    # On a busy machine others may take the ids of several seconds.
    return Randflake(100, SECRET, lease=Lease(now, now + 600), max_wait=60)


@pytest.fixture(params=["manual", "lease", "injected clock"])
def flake(request: pytest.FixtureRequest) -> Randflake:
    match request.param:
        case "manual":
            return Randflake(100, SECRET)
        case "lease":
            return leased()
        case _:
            return Randflake(100, SECRET, clock=time.time)


def test_a_live_generator_is_forked_in_a_child_and_goes_on_in_the_parent(flake: Randflake) -> None:
    before = flake.generate_many(100)
    lease = flake.lease

    def work() -> dict[str, Any]:
        buffer = array("q", [-1, -1])
        outcomes = {
            "generate": outcome(flake.generate),
            "generate_string": outcome(flake.generate_string),
            "generate_many": outcome(lambda: flake.generate_many(10)),
            "large": outcome(lambda: flake.generate_many(20_000)),
            "generate_array": outcome(lambda: flake.generate_array(10)),
            "fill": outcome(lambda: flake.fill(buffer)),
            "extend_lease": outcome(lambda: flake.extend_lease(int(time.time()) + 900)),
        }
        return {
            "outcomes": outcomes,
            "buffer": buffer.tolist(),
            "read": flake.inspect(before[0]) == READER.inspect(before[0])
            and flake.encrypt(flake.decrypt(before[0])) == before[0],
            "close": outcome(flake.close),
            "after close": outcome(flake.generate),
        }

    child = in_child(work)
    assert set(child["outcomes"].values()) == {"FORKED"}
    assert child["buffer"] == [0, 0]
    assert child["read"]
    assert child["close"] is None
    assert child["after close"] == "FORKED", "there was nothing to close"
    after = flake.generate_many(100)
    assert len(set(before + after)) == 200
    assert flake.lease == lease


def test_a_child_of_a_child_is_forked_too() -> None:
    flake = leased()
    assert in_child(lambda: in_child(lambda: outcome(flake.generate))) == "FORKED"
    assert flake.generate()


def test_constructing_an_inherited_manual_node_id_is_forked() -> None:
    flake = Randflake([101, 102], SECRET)

    def work() -> list[Any]:
        return [
            outcome(lambda: Randflake([101, 102], SECRET)),
            outcome(lambda: Randflake(101, SECRET)),
            outcome(lambda: Randflake([102, 103], SECRET)),
            outcome(lambda: Randflake(101, SECRET, restart_safe=False)),
            Randflake(103, SECRET).node_ids,
        ]

    assert in_child(work) == ["FORKED"] * 4 + [(103,)]
    flake.close()
    assert in_child(lambda: outcome(lambda: Randflake([101, 102], SECRET))) == "FORKED"


def test_a_child_with_a_node_id_of_its_own_repeats_nothing() -> None:
    parent = Randflake(104, SECRET).generate_many(1000)

    def work() -> tuple[int, list[int]]:
        forked_in = int(time.time())
        return forked_in, Randflake(105, SECRET).generate_many(1000)

    forked_in, child = in_child(work)
    assert not set(parent) & set(child)
    assert READER.inspect(child[0]).timestamp > forked_in, "waits for the second after the fork"


def test_a_fork_while_threads_generate() -> None:
    flake, other = leased(), Randflake(106, SECRET, restart_safe=False, max_wait=60)
    done = threading.Event()
    made: list[int] = []

    def work() -> None:
        while not done.is_set():
            made.extend(flake.generate_many(100))
            made.append(other.generate())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            outcomes = in_child(
                lambda: [outcome(flake.generate), outcome(other.generate), outcome(flake.close)]
            )
            assert outcomes == ["FORKED", "FORKED", None]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(set(made)) == len(made)


def test_a_fork_while_another_thread_imports_what_the_child_needs() -> None:
    code = """
import os, signal, sys, threading, types
import randflake._times
from randflake import Inspector

class Slow(types.ModuleType):
    def __getattr__(self, name):
        begun.set()
        goes_on.wait()
        return getattr(times, name)

begun, goes_on = threading.Event(), threading.Event()
times = sys.modules["randflake._times"]
sys.modules["randflake._times"] = Slow("slow")
parts = Inspector(sys.argv[1]).inspect(5173093286486018529)
thread = threading.Thread(target=lambda: parts.datetime)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    goes_on.set()
    os._exit(parts.datetime is None)
assert os.waitpid(child, 0)[1] == 0, "the child waits for a thread that it does not have"
goes_on.set()
thread.join()
print("goes on")
"""
    assert run_python(code, SECRET) == "goes on\n"


def test_a_child_ends_in_the_ordinary_way() -> None:
    code = """
import os, sys, time
from randflake import Randflake
flake = Randflake(1, sys.argv[1])
ids = {flake.generate()}
child = os.fork()
if child == 0:
    del flake
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
ids.add(flake.generate())
assert len(ids) == 2
print("goes on")
"""
    assert run_python(code, SECRET) == "goes on\n"


def made_by_worker(node_id: int) -> list[int]:
    return Randflake(node_id, SECRET).generate_many(1000)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_with_node_ids_of_their_own(method: str) -> None:
    parent = Randflake(110, SECRET).generate_many(1000)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        parts = pool.map(made_by_worker, [111, 112, 113], chunksize=1)
    ids = [*parent, *(id for part in parts for id in part)]
    assert len(set(ids)) == 4000


def inherited_outcome(flake: Randflake, results: Any) -> None:
    results.send(outcome(flake.generate))


def test_multiprocessing_does_not_hand_a_generator_on() -> None:
    flake = leased()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=inherited_outcome, args=(flake, there))
    process.start()
    assert here.recv() == "FORKED"
    process.join()
    spawned = multiprocessing.get_context("spawn").Process(
        target=inherited_outcome, args=(flake, None)
    )
    with pytest.raises(RandflakeError, match="pickled"):
        spawned.start()


GENERATE = """
import sys
from randflake import Randflake
input()
flake = Randflake(120, sys.argv[1])
print(*flake.generate_many(1000))
"""


def test_two_processes_one_after_the_other_repeat_nothing() -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", GENERATE, SECRET]
    for _ in range(20):
        both = [subprocess.Popen(command, **pipes) for _ in range(2)]
        first, second = (process.communicate("\n", timeout=300)[0].split() for process in both)
        assert [process.returncode for process in both] == [0, 0]
        assert len({*first, *second}) == 2000
        stamps = [READER.inspect(int(ids[0])).timestamp for ids in (first, second)]
        assert stamps[0] < stamps[1]
        # The first ended, and the second began, in the second that the first one stamped: on a busy
        # machine, not always.
        if stamps[1] - stamps[0] <= 2:
            break
    else:
        pytest.fail("they never ran one right after the other")


def test_what_is_not_guaranteed_two_live_processes_with_one_node_id_repeat() -> None:
    """Both count from 0 in each new second: that is why a node id is for one live process."""
    code = """
import sys, time
from randflake import Randflake
flake = Randflake(121, sys.argv[1], restart_safe=False)
print("ready", flush=True)
start = float(input())
made = []
for second in range(4):  # on a busy machine one of them may be late for some
    while time.time() < start + second:
        time.sleep(0.001)
    made += flake.generate_many(25_000)
print(*made)
"""
    command = [sys.executable, "-c", code, SECRET]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, **pipes) for _ in range(2)]
    assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
    start = f"{int(time.time()) + 1.05}\n"
    for process in both:
        process.stdin.write(start)
        process.stdin.flush()
    made = [set(process.communicate(timeout=300)[0].split()) for process in both]
    assert [len(ids) for ids in made] == [100_000] * 2, "neither repeats its own"
    assert made[0] & made[1], "but they repeat each other's"


def test_the_module_is_never_unloaded() -> None:
    """Linked with -z nodelete: what dlclose leaves must stay where it is."""
    code = """
import _ctypes, ctypes, sys
from randflake import _randflake
path = _randflake.__file__
handle = ctypes.CDLL(path)._handle
for _ in range(10):
    try:
        _ctypes.dlclose(handle)
    except OSError:
        break
print(path in open("/proc/self/maps").read())
"""
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    assert run_python(code) == "True\n"


def test_a_second_interpreter_is_refused() -> None:
    """The end of a second interpreter would close what the first one has leased."""
    code = """
import sys
import randflake
try:
    import _xxsubinterpreters as interpreters  # up to 3.12
except ImportError:
    import _interpreters as interpreters
another = interpreters.create()
script = f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import randflake
except ImportError as error:
    print(type(error).__name__, "interpreter" in str(error), flush=True)
'''
run = getattr(interpreters, "run_string", None) or interpreters.exec
run(another, script)
interpreters.destroy(another)
flake = randflake.Randflake(1, "%s", restart_safe=False)
flake.close()
try:
    flake.generate()
except randflake.RandflakeError as error:
    print(error.code)
"""
    assert run_python(code % SECRET) == "ImportError True\nCLOSED\n"
