"""Helpers that the tests share."""

import asyncio
import contextlib
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from randflake import InvalidArgumentError, LeaseStatus, Randflake, RandflakeError

if TYPE_CHECKING:
    from servers import Server

# An example may take long on a machine that is busy.
CASES = int(os.environ.get("HYPOTHESIS_CASES", "100"))
hypothesis.settings.register_profile("any machine", deadline=None, max_examples=CASES)
hypothesis.settings.load_profile("any machine")

# Random bytes, so that there is no warning; node ids of one process are bound to their secret.
SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"
OTHER_SECRET = "51f0c2b7684e9ad3e01b7c5538d26f94"
# Only for leases: a process cannot lease what it has once assigned to a secret manually, or the
# other way around, and stores grant node ids at random.
LEASED_SECRET = "b7402d9fe1586ac3047f9be82c61d35a"

NOW = 1_763_640_000
"""The time that injected clocks show."""

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"


Main = Callable[[], Coroutine[Any, Any, Any]]
"""An asynchronous program."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests of leases last.

    A node id that a store granted to this process can no longer be assigned manually, and stores
    grant node ids at random.
    """
    lease = ("leased", "lazy", "store", "django")
    items.sort(key=lambda item: any(word in item.path.name for word in lease))


@pytest.fixture(autouse=True, scope="session")
def hears_ctrl_c() -> None:
    """Processes in the background of a shell ignore it, and some tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], "Server"]]:
    """Starts each server once."""
    import servers  # most tests do without its clients

    started: dict[str, Server] = {}
    with contextlib.ExitStack() as stack:

        def start(engine: str) -> "Server":
            if engine not in started:
                running = servers.STARTERS[engine](tmp_path_factory.mktemp(engine))
                started[engine] = stack.enter_context(running)
            return started[engine]

        yield start


@pytest.fixture
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Runs the tests of this file, except the calling one, with older versions of packages.

    Each is given as `name==version`, and is installed once, without what it depends on: that comes
    from .venv, unless it is named, too.
    """

    def older(*requirements: str) -> None:
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        folder = ROOT / "target" / "setup" / "-".join([python, *sorted(requirements)])
        if not folder.exists():
            made = folder.with_name(f"{folder.name}-{os.getpid()}")
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            pip += ["--disable-pip-version-check", "--target", str(made), *requirements]
            subprocess.run(pip, check=True, timeout=600)
            try:
                made.rename(folder)
            except OSError:  # another run was first
                shutil.rmtree(made)
        code = """
import sys
from importlib.metadata import version
import pytest
for requirement in sys.argv[1].split():
    name, _, wanted = requirement.partition("==")
    assert version(name) == wanted, (name, version(name))
sys.exit(pytest.main(sys.argv[2:]))
"""
        this = request.node.nodeid.partition("[")[0]
        arguments = ["-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'older'}"]
        arguments += [f"--rootdir={request.config.rootpath}", f"--deselect={this}"]
        done = subprocess.run(
            [sys.executable, "-c", code, " ".join(requirements), *arguments, str(request.path)],
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return older


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The path of a store that does not exist yet."""
    return tmp_path / "ids.db"


def cases(file: str, key: str = "cases") -> list[Any]:
    """Returns the cases of a vector file as named parameters."""
    vectors = json.loads((VECTORS / file).read_text(encoding="utf-8"))[key]
    return [pytest.param(case, id=case["name"]) for case in vectors]


def named(value: object) -> str:
    """Names a parameter, the same in each run."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text


# As in `pyproject.toml`: Python 3.12 and newer warn of every fork in a process with threads.
FORKS_WARN_NOT = "ignore:This process:DeprecationWarning"


def refuses_the_second(
    many: Callable[[Any], Any], one: Callable[[Any], Any], items: list[Any]
) -> None:
    """Checks that many refuse an item as one does, and say which it is."""
    with pytest.raises(InvalidArgumentError) as alone:
        one(items[1])
    with pytest.raises(InvalidArgumentError) as raised:
        many(items)
    assert type(raised.value) is type(alone.value)
    assert raised.value.code == alone.value.code == "INVALID_ID"
    assert str(raised.value) == f"at index 1: {alone.value}"


def run_python(code: str, *arguments: str, error: str | None = None) -> str:
    """Runs code in a process of its own and returns what it printed.

    error: the last line of the traceback with which it ends; None if it must succeed.
    """
    done = subprocess.run(
        [sys.executable, "-W", FORKS_WARN_NOT, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if error is None:
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    else:
        ended = done.returncode, *done.stderr.splitlines()[-1:]
        assert ended == (1, error), done.stdout + done.stderr
    return done.stdout


def in_child(work: Callable[[], Any]) -> Any:
    """Forks, does the work in the child, and returns its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(work(), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return pickle.loads(result)


def outcome(call: Callable[[], Any]) -> Any:
    """Returns the error's code or the result."""
    try:
        return call()
    except RandflakeError as error:
        return error.code


def together(threads: int, work: Callable[[int], object]) -> None:
    """Runs work in this many threads, all started at once."""
    barrier = threading.Barrier(threads)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=[number]) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not errors


def interrupted(call: Callable[[], object]) -> float:
    """Sends Ctrl-C while a call waits, and returns how long after it the call ended."""
    begun = threading.Event()
    ended = threading.Event()
    waiter = Path(f"/proc/self/task/{threading.get_native_id()}/status")
    sent: list[float] = []

    def pauses() -> int:
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", waiter.read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def interrupt() -> None:
        begun.wait()
        before = pauses()
        # It sleeps a little, again and again.
        eventually(lambda: pauses() >= before + 5 or ended.is_set())
        if ended.is_set():
            return  # without it; the next test is not interrupted instead
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    begun.set()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        return time.monotonic() - sent[0]
    finally:
        ended.set()
        sender.join()


def pauses() -> int:
    """Returns how often this thread has waited for anything."""
    me = Path(f"/proc/self/task/{threading.get_native_id()}/status").read_text()
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", me, re.MULTILINE)
    assert found is not None
    return int(found[1])


def status(flake: Randflake) -> LeaseStatus:
    assert isinstance(flake.lease, LeaseStatus)
    return flake.lease


def run_on_uvloop(main: Main) -> Any:
    with asyncio.Runner(loop_factory=import_module("uvloop").new_event_loop) as runner:
        return runner.run(main())


LOOPS: dict[str, Callable[[Main], Any]] = {
    "asyncio": lambda main: asyncio.run(main()),
    "uvloop": run_on_uvloop,
    "trio": lambda main: import_module("trio").run(main),
}


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Main], Any]:
    """Runs an asynchronous program on each kind of loop."""
    return LOOPS[request.param]


async def until(is_so: Callable[[], object]) -> None:
    """Waits as eventually does, on a loop of any kind."""
    trio = sys.modules.get("trio")
    loop = trio if trio is not None and trio.lowlevel.in_trio_task() else asyncio
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        await loop.sleep(0.01)


def eventually(is_so: Callable[[], bool]) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def ends_in(store: Path) -> dict[int, int]:
    """Returns the end of the last lease of each node id.

    Asks in a process of its own: another SQLite in this one could undo our transaction.
    """
    code = """
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("select node_id, end_exclusive from node")
print(json.dumps(dict(rows.fetchall())))
"""
    ends = json.loads(run_python(code, str(store)))
    return {int(node_id): end_exclusive for node_id, end_exclusive in ends.items()}


@contextmanager
def locked(store: Path) -> Iterator[None]:
    """Makes another process lock the file."""
    code = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
connection.execute("begin exclusive")
print("locked", flush=True)
input()
"""
    command = [sys.executable, "-c", code, str(store)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        try:
            yield
        finally:
            other.communicate("\n")


class ScriptedClock:
    """Shows the time it is given; a sleep passes at once."""

    def __init__(self, now: float = NOW) -> None:
        self.time = now
        self.sleeps: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.time += seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Makes the report of a failed test show what its servers said."""
    report = yield
    if starter := sys.modules.get("starter"):  # most tests have no server
        starter.add_logs(report)
    return report
