"""What generators, tickets and `randflake serve` say and do while the clock of their process steps.

Each runs in a process of its own, whose clock libfaketime sets: no other clock changes. For an
instant after a step, a second thread of that process may be shown the time before it once more,
which no real clock does. So what is to be seen may come a little later, or after another step.
"""

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.request import urlopen

import pytest
import servers
from randflake import init_store
from starter import Missing
from test_command import ROOT, built
from test_serve import serving

__all__ = ["built"]

SECRET = "dffd6021bb2bd5b0af676290809ec3a5"

HOUR = 3600

CHILD = """
import asyncio, json, os, sys
from randflake import DatedTickets, Layout, Randflake, RandflakeError, Snowflake, Tickets

store, kind = sys.argv[1:]
seconds = Layout(
    fields=[("time", 31), ("node", 10), ("sequence", 13)], tick_ms=1000, epoch_ms=1767225600000
)
flake = {
    "randflake": lambda: Randflake.leased(store),
    "manual randflake": lambda: Randflake(7, os.environ["RANDFLAKE_SECRET"]),
    "manual twitter": lambda: Snowflake(7, "twitter"),
    "seconds": lambda: Snowflake.leased(store, seconds),
    "drifting": lambda: Snowflake.leased(store, "twitter", max_drift=1),
    "tickets": lambda: Tickets.leased(store, "orders", create=True),
    "dated": lambda: DatedTickets(store, "orders", period="day", create=True),
}.get(kind, lambda: Snowflake.leased(store, kind))()

async def is_ready():
    try:
        await asyncio.wait_for(flake.ready(), 0.3)
    except TimeoutError:
        return False
    return True

def status():
    lease = flake.lease
    return {
        "state": lease and lease.state,
        "why": lease and lease.last_error and lease.last_error.code,
        "nodes": flake.node_ids,
    }

def generate():
    try:
        return {"id": flake.generate()}
    except RandflakeError as error:
        cause = error.__cause__
        return {"code": error.code, "after": error.retry_after, "cause": cause and cause.code}

def metrics():
    found = flake.metrics()
    return {"waits": dict(found.waits), "skew": found.clock_skew_seconds}

print("{}", flush=True)
for line in sys.stdin:
    call = {"generate": generate, "status": status, "metrics": metrics}.get(line.strip())
    answer = call() if call else {"ready": asyncio.run(is_ready())}
    print(json.dumps(answer), flush=True)
"""


NODE = """
const { createInterface } = require('node:readline')
const { Snowflake } = require(process.argv[1])

const calls = {
  generate: (flake) => {
    try {
      return { id: Number(flake.generate()) }
    } catch (error) {
      return { code: error.code, after: error.retryAfterMs / 1000 }
    }
  },
  status: ({ lease }) => ({ state: lease.state, why: lease.lastError?.code, nodes: lease.nodeIds }),
  ready: async (flake) => {
    const late = new Promise((resolve) => setTimeout(resolve, 300, false))
    return { ready: await Promise.race([flake.ready().then(() => true), late]) }
  },
}

async function main() {
  const flake = await Snowflake.leased(process.argv[2], { layout: 'twitter', maxWaitMs: 0 })
  console.log('{}')
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await calls[line](flake)))
  }
  process.exit()
}

main()
"""


class Clock:
    """The clock of some processes: how many seconds it is ahead of the machine's."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.dial = folder / "clock"
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self.dial),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0)

    def set(self, seconds: float) -> None:
        following = self.dial.with_suffix(".new")
        following.write_text(f"{seconds:+}", encoding="utf-8")
        following.replace(self.dial)


class Running:
    """A process with a generator."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.read()

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return json.loads(line)

    def says(self, call: str) -> Any:
        assert self.process.stdin is not None
        print(call, file=self.process.stdin, flush=True)
        return self.read()

    def id(self) -> Any:
        said = self.says("generate")
        assert "id" in said, said
        return said["id"]


class Start(Protocol):
    def __call__(self, kind: str, store: str | None = None) -> Running: ...


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    folders = [f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib", "/usr/lib64"]
    found = [it for folder in folders if (it := Path(folder, "faketime/libfaketime.so.1")).exists()]
    if not found:
        servers.skip(Missing("libfaketime is missing (apt-get install faketime)"))
    return Clock(tmp_path, found[0])


@pytest.fixture
def start(clock: Clock, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(kind: str, store: str | None = None) -> Running:
            path = store or str(tmp_path / f"{kind}.db")
            command = [sys.executable, "-c", CHILD, path, kind]
            if kind == "node":
                command = ["node", "-e", NODE, str(ROOT / "bindings-node"), path]
            process = subprocess.Popen(
                command,
                env={**os.environ, **clock.environment, "RANDFLAKE_SECRET": SECRET},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return Running(process)

        yield start


def comes(is_so: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def until(is_so: Callable[[], object]) -> None:
    assert comes(is_so, 60), "it never came"


def until_after_steps(clock: Clock, seconds: float, is_so: Callable[[], object]) -> None:
    """Waits; if its second thread was shown the earlier time, until it has seen a step."""
    for step in range(4):
        if comes(is_so, 15):
            return
        clock.set(seconds - 20 * (step + 1))
    pytest.fail("it never came")


WAITING = {"state": "waiting", "why": "CLOCK_MOVED_BACK"}


def assert_waits(running: Running, seconds: float) -> None:
    """It says that its clock is behind, before a call, in the call, and after it."""
    until(lambda: WAITING.items() <= running.says("status").items())
    refused = running.says("generate")
    assert refused["code"] == "CLOCK_MOVED_BACK", refused
    assert seconds - 60 < refused["after"] <= seconds


@pytest.mark.parametrize("kind", ["twitter", "leaf", "instagram", "sonyflake", "seconds", "node"])
def test_a_snowflake_whose_clock_is_back_is_not_ready(
    kind: str, clock: Clock, start: Start
) -> None:
    running = start(kind)
    first = running.id()
    assert running.says("ready") == {"ready": True}
    clock.set(-HOUR)
    assert_waits(running, HOUR)
    assert running.says("ready") == {"ready": False}
    time.sleep(2)  # it has another lease by now, and still keeps its order
    assert running.says("status")["state"] == "waiting"
    clock.set(0)
    until(lambda: running.says("status")["state"] == "holding")
    assert running.says("ready") == {"ready": True}
    assert running.id() > first


def test_a_snowflake_waits_for_as_long_as_its_clock_was_ahead(clock: Clock, start: Start) -> None:
    running = start("twitter")
    running.id()
    clock.set(HOUR)
    ahead = running.id()
    clock.set(0)
    assert_waits(running, HOUR)
    # The way out, if the order does not matter: another process.
    assert start("twitter").id() < ahead


@pytest.mark.parametrize("back", [True, False])
def test_a_randflake_takes_another_lease(back: bool, clock: Clock, start: Start) -> None:
    running = start("randflake")
    ids = [running.id()]
    if not back:
        clock.set(HOUR)
        ids.append(running.id())
    before = running.says("status")["nodes"]
    clock.set(-HOUR if back else 0)
    seen = [running.says("status")]

    def has_another_lease() -> bool:
        seen.append(running.says("status"))
        return bool(seen[-1]["state"] == "holding" and seen[-1]["nodes"] != before)

    until_after_steps(clock, -HOUR if back else 0, has_another_lease)
    told = {(state["state"], state["why"]) for state in seen}
    assert told & {("waiting", "CLOCK_MOVED_BACK"), ("retrying", "CLOCK_SKEW")}
    assert running.says("ready") == {"ready": True}
    ids.append(running.id())
    assert len({*ids}) == len(ids)


def test_small_steps_back_are_absorbed_or_waited_for(clock: Clock, start: Start) -> None:
    drifting = {"randflake": 8, "drifting": 0.9}
    running = {kind: start(kind) for kind in [*drifting, "sonyflake"]}
    for kind, seconds in drifting.items():
        first = running[kind].id()
        clock.set(-seconds)
        began = time.monotonic()
        second = running[kind].id()
        assert second > first or kind == "randflake"
        assert running[kind].says("metrics")["waits"]["CLOCK_MOVED_BACK"] == 0
        assert time.monotonic() - began < 0.8
        clock.set(0)
    first = running["sonyflake"].id()
    clock.set(-0.5)
    assert running["sonyflake"].id() > first
    assert running["sonyflake"].says("metrics")["waits"]["CLOCK_MOVED_BACK"] == 1


@pytest.mark.parametrize("kind", ["manual randflake", "manual twitter"])
def test_with_a_node_id_of_its_own_only_ready_says_it(
    kind: str, clock: Clock, start: Start
) -> None:
    running = start(kind)
    running.id()
    time.sleep(1)
    running.id()
    clock.set(-HOUR)
    assert running.says("ready") == {"ready": False}
    assert running.says("generate")["code"] == "CLOCK_MOVED_BACK"
    assert running.says("status")["state"] is None
    clock.set(HOUR)
    running.id()


def test_tickets_have_no_clock_and_dated_ones_never_go_back(clock: Clock, start: Start) -> None:
    tickets, dated = start("tickets"), start("dated")
    numbers, texts = [], []
    for seconds in (0, -2 * HOUR, 25 * HOUR, -25 * HOUR, 0):
        clock.set(seconds)
        numbers.append(tickets.id())
        texts.append(dated.id())
    assert numbers == [1, 2, 3, 4, 5]
    dates = [text.partition("-")[0] for text in texts]
    assert dates == sorted(dates)
    assert len({*texts}) == 5


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    with servers.postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


def test_the_clock_of_a_store_is_compared(
    postgres: servers.Server, clock: Clock, start: Start
) -> None:
    init_store(postgres.url(), SECRET, "new")
    clock.set(3)
    running = start("randflake", postgres.url())
    running.id()
    # Less on a slow machine, since the store looks at its clock later.
    assert -4 <= running.says("metrics")["skew"] < 2
    clock.set(60)
    running.says("generate")

    def refused() -> bool:
        state = running.says("status")
        running.says("generate")
        return bool(state["why"] == "CLOCK_SKEW")

    until(refused)
    clock.set(0)
    until(lambda: running.says("status")["state"] == "holding")


def numbers(url: str, metric: str) -> dict[str, float]:
    """Returns the samples of a metric by the value of their last label."""
    with urlopen(f"{url}/metrics", timeout=60) as response:
        text = response.read().decode()
    found = re.findall(rf'^{metric}{{.*"(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {label: float(value) for label, value in found}


@contextmanager
def as_in_the_process(clock: Clock) -> Iterator[None]:
    """Starts what begins meanwhile with the clock."""
    before = {name: os.environ.get(name) for name in clock.environment}
    os.environ.update(clock.environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@pytest.mark.usefixtures("built")
def test_the_readiness_of_serve_knows_a_clock_that_is_back(clock: Clock, tmp_path: Path) -> None:
    with ExitStack() as stack:
        with as_in_the_process(clock):
            started: AbstractContextManager[Any] = serving(tmp_path, str(tmp_path / "ids.db"))
            server = stack.enter_context(started)
        until(lambda: server.ask("GET", "/readyz").status == 200)
        first = server.ask("POST", "/v1/ids").body["ids"]
        clock.set(-HOUR)
        refused = server.ask("GET", "/readyz")
        assert (refused.status, refused.body["code"]) == (503, "CLOCK_MOVED_BACK")
        # By and by it has other node ids, and is ready without anyone who sets the clock.
        until_after_steps(clock, -HOUR, lambda: server.ask("GET", "/readyz").status == 200)
        second = server.ask("POST", "/v1/ids").body["ids"]
        assert first != second
        assert numbers(server.url, "randflake_lease_replacements_total")["default"] >= 1
        clock.set(0)
