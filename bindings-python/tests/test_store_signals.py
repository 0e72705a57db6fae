"""Signals during a request to a server that does not answer: Ctrl-C, and handlers that fork."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SECRET, eventually, run_python
from randflake import (
    Inspector,
    Layout,
    NodeStatus,
    Randflake,
    Snowflake,
    StoreError,
    Tickets,
    _urls,
    fence_store,
    fence_tickets,
    init_store,
    init_tickets,
    inspect_lease,
    list_leases,
    list_tickets,
    release_lease,
    repair_lease,
    repair_store,
    set_node_ids,
    show_tickets,
)
from servers import Server

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="/proc says which threads there are"
)

URLS = ["postgresql://app:secret@127.0.0.1:{}/app", "redis://127.0.0.1:{}/0", "etcd://127.0.0.1:{}"]

CALLS: dict[str, Callable[[str], object]] = {
    "leased": lambda url: Randflake.leased(url, SECRET, acquire_timeout=60),
    "snowflake": lambda url: Snowflake.leased(url, acquire_timeout=60),
    "generate": lambda url: Randflake.lazy(url, SECRET, acquire_timeout=60).generate(),
    "generate_many": lambda url: Randflake.lazy(url, SECRET, acquire_timeout=60).generate_many(
        20_000
    ),
    "generate_array": lambda url: Snowflake.lazy(
        url, layout="twitter", acquire_timeout=60
    ).generate_array(3),
    "init_store": lambda url: init_store(url, SECRET, "new"),
    "init_store of a layout": lambda url: init_store(url, mode="new", layout=Layout("twitter")),
    "init_tickets": lambda url: init_tickets(url, "new"),
    "fence_tickets": lambda url: fence_tickets(url, "invoices", above=1),
    "list_tickets": list_tickets,
    "show_tickets": lambda url: show_tickets(url, "invoices"),
    "tickets": lambda url: Tickets.leased(url, "invoices", acquire_timeout=60),
    "a first number": lambda url: Tickets.lazy(url, "invoices", acquire_timeout=60).generate(),
    "list_leases": list_leases,
    "inspect_lease": lambda url: inspect_lease(url, 1),
    "fence_store": fence_store,
    "set_node_ids": lambda url: set_node_ids(url, "0-6"),
    "repair_lease": lambda url: repair_lease(url, 1),
    "repair_store": repair_store,
    "release_lease": lambda url: release_lease(
        url, NodeStatus(1, "held", 1, 2_000_000_000, 9, False, "")
    ),
}


class Mine(BaseException):
    """What a handler raises."""


class Silent:
    """A server that accepts connections but never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._accepted.append(self._listener.accept()[0])

    @property
    def connections(self) -> int:
        return len(self._accepted)

    def close(self) -> None:
        if self._thread.is_alive():
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for connection in self._accepted:
            connection.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()
    eventually(lambda: not asking())


EARLIER = set(Path("/proc/self/task").iterdir())
"""Threads from other tests, which may keep objects that draw numbers."""


@pytest.fixture(autouse=True)
def _threads_of_others() -> None:
    EARLIER.update(Path("/proc/self/task").iterdir())


def asking() -> bool:
    """Returns whether a thread of this test is asking a store on behalf of a caller."""
    names = []
    for task in set(Path("/proc/self/task").iterdir()) - EARLIER:
        with contextlib.suppress(OSError):  # it has just ended
            names.append((task / "comm").read_text().strip())
    return bool({"randflake-first", "randflake-opera", "randflake-draw"} & {*names})


@contextlib.contextmanager
def signalled(when: Callable[[], bool], handler: Any) -> Iterator[None]:
    """Sends this process SIGINT once a condition holds, also before the block has begun."""

    def send() -> None:
        eventually(when)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    sender = threading.Thread(target=send)
    try:
        sender.start()
        yield
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)


def raises_mine(*_: object) -> None:
    raise Mine("mine")


@pytest.mark.parametrize("url", URLS, ids=["postgres", "redis", "etcd"])
@pytest.mark.parametrize("call", CALLS)
def test_what_a_handler_raises_ends_a_request(
    call: str, url: str, silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_urls, "TIMEOUT", 60.0)  # the handler comes before the end of the request
    connections = []

    def handler(*_: object) -> None:
        connections.append(silent.connections)
        raise Mine("mine")

    with signalled(lambda: silent.connections > 0, handler), pytest.raises(Mine) as raised:
        CALLS[call](url.format(silent.port))
    assert str(raised.value) == "mine"
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    silent.close()
    eventually(lambda: not asking())
    # What was in progress; if one failed just then, no other one.
    assert silent.connections <= connections[0] + 1


@pytest.mark.parametrize("url", URLS, ids=["postgres", "redis", "etcd"])
def test_ctrl_c_ends_the_wait_for_a_silent_server(url: str, silent: Silent) -> None:
    when = lambda: silent.connections > 0  # noqa: E731
    with signalled(when, signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        CALLS["leased"](url.format(silent.port))


def test_ctrl_c_ends_a_later_attempt(silent: Silent) -> None:
    """The first one is answered, with nothing."""
    with (
        signalled(lambda: silent.connections > 1, signal.default_int_handler),
        pytest.raises(KeyboardInterrupt),
    ):
        CALLS["leased"](URLS[2].format(silent.port))


def test_ctrl_c_ends_ready(silent: Silent) -> None:
    async def ready() -> None:
        await Randflake.lazy(URLS[1].format(silent.port), SECRET, acquire_timeout=4).ready()

    when = lambda: silent.connections > 0  # noqa: E731
    with signalled(when, signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        asyncio.run(ready())
    silent.close()


def test_ctrl_c_ends_leased_async(silent: Silent) -> None:
    async def leased() -> None:
        await Randflake.leased_async(URLS[1].format(silent.port), SECRET, acquire_timeout=4)

    when = lambda: silent.connections > 0  # noqa: E731
    with signalled(when, signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        asyncio.run(leased())
    silent.close()


def test_a_handler_that_returns_ends_nothing(silent: Silent) -> None:
    handled: list[int] = []

    def handler(*_: object) -> None:
        handled.append(silent.connections)

    with (
        signalled(lambda: silent.connections > 0, handler),
        pytest.raises(StoreError) as failed,
    ):
        Randflake.leased(URLS[1].format(silent.port), SECRET, acquire_timeout=0)
    assert failed.value.code == "STORE_UNAVAILABLE"
    assert handled == [1]


def test_another_thread_is_not_interrupted(silent: Silent) -> None:
    """Handlers run only on the main thread."""
    outcomes: list[str] = []

    def lease() -> None:
        try:
            Randflake.leased(URLS[1].format(silent.port), SECRET, acquire_timeout=0)
        except BaseException as error:
            outcomes.append(type(error).__name__)

        ended.set()

    ended = threading.Event()
    threading.Thread(target=lease).start()
    # The other thread may have connected before this one waits.
    with pytest.raises(Mine), signalled(lambda: silent.connections > 0, raises_mine):
        ended.wait()
    ended.wait()
    assert outcomes == ["StoreError"]


def test_the_command_dies_of_ctrl_c(silent: Silent) -> None:
    store = ["--store", URLS[1].format(silent.port)]
    command = [sys.executable, "-m", "randflake", "lease", "list", *store]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        eventually(lambda: silent.connections > 0)
        running.send_signal(signal.SIGINT)
        output = running.communicate(timeout=60)
    assert (running.returncode, output) == (-signal.SIGINT, (b"", b""))


@pytest.fixture
def redis(start: Callable[[str], Server], request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that is stopped; the namespace has the name of the test."""
    server = start("redis")
    namespace = request.node.name
    init_store(server.url(), SECRET, "new", namespace=namespace)
    eventually(lambda: not asking())  # the thread that made it ends slightly later
    server.send(signal.SIGSTOP)
    yield server
    server.send(signal.SIGCONT)


def test_what_is_granted_after_ctrl_c_is_given_back(
    redis: Server, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_urls, "TIMEOUT", 60.0)
    options: dict[str, Any] = {"namespace": request.node.name, "acquire_timeout": 60}
    interrupt = signalled(asking, raises_mine)
    with interrupt, pytest.raises(Mine):
        Randflake.leased(redis.url(), SECRET, **options)
    assert asking(), "it does not answer"
    redis.send(signal.SIGCONT)
    with Randflake.leased(redis.url(), SECRET, **options) as flake:
        eventually(lambda: not asking())
        held = [node for node, (_, held) in redis.leases(request.node.name).items() if held]
        # If stopping and continuing it took too long, the first request was given up.
        assert held == [*flake.node_ids] or len(held) == 2
        assert len({*flake.generate_many(1000)}) == 1000


def test_a_wait_goes_on_after_a_handler(redis: Server, request: pytest.FixtureRequest) -> None:
    def handler(*_: object) -> None:
        redis.send(signal.SIGCONT)

    with signalled(asking, handler):
        flake = Randflake.leased(
            redis.url(), SECRET, namespace=request.node.name, acquire_timeout=60
        )
    with flake:
        assert flake.generate()


FORKS = """
import contextlib, json, os, signal, sys, threading, time, warnings
from pathlib import Path
from randflake import Randflake, RandflakeError

warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
url, secret, server, namespace, how, raises = sys.argv[1:]
children = []

class Mine(BaseException):
    pass

def handler(*_):
    children.append(os.fork())
    if children[0] != 0:
        os.kill(int(server), signal.SIGCONT)
    if raises == "in both" or raises == "in the child" and children[0] == 0:
        raise Mine

def asking():
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            names.append((task / "comm").read_text())
    return "randflake-first\\n" in names

def send():
    while not asking():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, handler)
options = dict(namespace=namespace, acquire_timeout=60)
flake, ids, outcome = None, [], None
if how == "lazy":
    flake = Randflake.lazy(url, secret, **options)
threading.Thread(target=send, daemon=True).start()
try:
    if flake is None:
        flake = Randflake.leased(url, secret, **options)
    ids = flake.generate_many(1000)
    outcome = "ids"
except RandflakeError as error:
    outcome = error.code
except Mine:
    outcome = "Mine"
if outcome != "ids" and flake is not None:
    ids = flake.generate_many(1000)  # it takes a lease yet
if flake is not None:
    flake.close()
is_parent = children[0] != 0
if is_parent:
    assert os.waitpid(children[0], 0)[1] == 0
# In one write, since both write to the pipe.
os.write(1, (json.dumps([is_parent, outcome, ids[:1000]]) + "\\n").encode())
"""


@pytest.mark.parametrize("raises", ["nowhere", "in both", "in the child"])
@pytest.mark.parametrize("how", ["leased", "lazy"])
def test_a_handler_that_forks_makes_two_leases_or_one(
    how: str, raises: str, redis: Server, request: pytest.FixtureRequest
) -> None:
    assert redis.process is not None
    server = str(redis.process.pid)
    printed = run_python(FORKS, redis.url(), SECRET, server, request.node.name, how, raises)
    of = {is_parent: rest for is_parent, *rest in map(json.loads, printed.splitlines())}
    (parent, ids), (child, ids_of_child) = of[True], of[False]
    assert parent == ("Mine" if raises == "in both" else "ids")
    if raises != "nowhere":
        assert child == "Mine"
    else:
        assert child == ("ids" if how == "lazy" else "FORKED")
    assert len(ids_of_child) == (1000 if how == "lazy" else 0)
    assert len({*ids, *ids_of_child}) == len(ids) + len(ids_of_child)
    reader = Inspector(SECRET)
    nodes = [{reader.inspect(id).node_id for id in made} for made in (ids, ids_of_child)]
    assert not nodes[0] & nodes[1]
    # Nobody renews or releases what belongs to another.
    ends = redis.leases(request.node.name)
    assert {*nodes[0], *nodes[1]} <= {*ends}
