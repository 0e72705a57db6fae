"""Runs a fleet of holders in Rust, Python and Node.js on one store under random faults, and counts
ids and repeats.

    soak.py --minutes 2 [--store sqlite|postgres|mariadb|mysql|redis|etcd] [--seed 7] [--sabotage]

It ends with one line, and fails on any repeat, on a holder that fails, and, if it runs for five
minutes or longer, if a kind of fault did not happen. With --sabotage no fault is needed: two of the
holders have the same manually assigned node id, which must be reported.
The Rust holder must have been built: `make soak` does.

On a SQLite file there is more: the holders in Python keep opening and closing the file, those in
Node.js have two copies of the package and lease from both, and beside the fleet a manually
assigned node id goes from process to process. The next process has loaded the library long before,
and takes over at once when the previous one ends or is killed.

On the same store, other processes draw sequential numbers, under the same faults: see drawers.py.

Every process has a log of its ids, LIFE.PID.ids. It is read, checked and removed when the process
has ended; a process that was not killed leaves LIFE.PID.end behind. A fork is noticed by its log.
"""

import argparse
import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from check import Checker, Verdict
from drawers import Drawers
from servers import free_port
from stores import Store, copy_of_the_node_package, open_store

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "target" / os.environ.get("CARGO_BUILD_TARGET", "")
RUST = BUILT / os.environ.get("PROFILE", "debug") / "randflake-soak"
HOLDERS: dict[str, list[str | Path]] = {
    "rust": [RUST, "hold"],
    "python": [sys.executable, HERE / "holder.py"],
    "node": ["node", HERE / "holder.cjs"],
}
FORKING = {"rust", "python"}

FLEET = 12
"""How many holders there are, not counting forked ones."""
CROWD = 16
"""The maximum, including forked ones."""
FAULTS = ["kill", "pause", "fork", "exit"]
"""Faults of processes; each store has its own as well."""
BETWEEN_FAULTS = 0.4
"""Seconds, on average."""
LAST_WORDS = 300
"""How many seconds the fleet may take to end."""
ENOUGH = 5
"""Within this many minutes every kind of fault must have happened."""
MANUAL = 7
"""The node id of the saboteurs."""
HANDED_OVER = 8
"""The node id that goes from process to process."""


@dataclass
class Life:
    """A process from its first id, or from its fork, to its end."""

    number: int
    language: str
    ttl: int
    handle: int
    """A descriptor of the process."""
    log: Path
    is_fork: bool
    is_manual: bool
    paused_until: float | None = None
    leaving: bool = False
    killed: bool = False

    def send(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self.handle, number)

    def has_ended(self) -> bool:
        return bool(select.select([self.handle], [], [], 0)[0])


@dataclass
class Start:
    """A process that was started here."""

    language: str
    ttl: int
    process: subprocess.Popen[bytes]
    is_manual: bool


class Fleet:
    """The holders, their store, and what has happened to them."""

    def __init__(self, kind: str, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.logs = directory / "logs"
        self.logs.mkdir()
        secret = self.random.randbytes(16).hex()
        self.environment = {**os.environ, "RANDFLAKE_SECRET": secret}
        self.store: Store = open_store(kind, directory, secret, self.random, RUST)
        self.hands_over = kind == "sqlite"
        if kind == "sqlite":
            self.environment["RANDFLAKE_COPY"] = str(copy_of_the_node_package(directory))
        # The process that listens on this port has the node id: the system frees a killed process's
        # port.
        self.hand_over_port = str(free_port())
        self.checker = Checker(self.store.stamps)
        self.drawers = Drawers(self.store.address, directory / "numbers", self.random, RUST.parent)
        self.starts: list[Start] = []
        self.lives: dict[Path, Life] = {}
        self.made: Counter[str] = Counter()
        """Lives by language."""
        self.faults: Counter[str] = Counter(dict.fromkeys([*FAULTS, *self.store.faults], 0))
        self.failures: list[str] = []

    def start(self, language: str, *manual: str) -> None:
        ttl = self.random.choice(self.store.ttls)
        node_count = self.random.choice([1, 1, 1, 2])
        log = self.logs / str(len(self.starts))
        options = [str(ttl), str(node_count), *manual]
        process = subprocess.Popen(
            [*HOLDERS[language], self.store.address, log, *options],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            # So that it can be killed with its forks. In just its own process group, the system
            # would send SIGHUP to a paused fork when its parent ends.
            start_new_session=True,
        )
        self.starts.append(Start(language, ttl, process, bool(manual)))

    def watch(self) -> None:
        """Finds the processes that have started or ended, and does what is due."""
        for log in self.logs.glob("*.ids"):
            if log not in self.lives:
                self._begin(log)
        for life in [life for life in self.lives.values() if life.has_ended()]:
            self._end(life)
        for start in self.starts:
            # A process with a log is judged by its log; others may not be handling signals yet.
            if start.process.poll() not in (None, 0, -signal.SIGKILL, -signal.SIGTERM):
                self._fail(f"a holder in {start.language} ended with {start.process.returncode}")
                start.process.returncode = 0
        now = time.monotonic()
        for life in self.lives.values():
            if life.paused_until is not None and life.paused_until <= now:
                self._resume(life)
        self.drawers.watch()
        self.store.watch()

    def fill_up(self) -> None:
        """Replaces the processes that have ended."""
        self.drawers.fill_up()
        alive = [start for start in self.starts if start.process.poll() is None]
        if self.hands_over:
            for language in HOLDERS.keys() - {it.language for it in alive if it.is_manual}:
                self.start(language, str(HANDED_OVER), self.hand_over_port)
        running = Counter(start.language for start in alive if not start.is_manual)
        while running.total() < FLEET:
            language = min(HOLDERS, key=lambda language: running[language])
            self.start(language)
            running[language] += 1

    def harm(self) -> None:
        """Lets a random fault happen to a random process, or to the store."""
        self.drawers.harm()
        fault = self.random.choice([*FAULTS, *self.store.faults])
        if fault in self.store.faults:
            self.faults[fault] += self.store.harm(fault)
            return
        awake = [life for life in self.lives.values() if life.paused_until is None]
        if fault == "fork":
            # An interpreter that is shutting down no longer handles signals, and is killed by them.
            awake = [life for life in awake if life.language in FORKING and not life.leaving]
            awake = [life for life in awake if not life.is_manual]
        if not awake or (fault == "fork" and len(self.lives) >= CROWD):
            return
        life = self.random.choice(sorted(awake, key=lambda life: life.number))
        try:
            match fault:
                case "kill":
                    life.send(signal.SIGKILL)
                    life.killed = True
                    self.faults["kill"] += 1
                case "pause":
                    life.send(signal.SIGSTOP)
                    # Its last lease has ended by then.
                    past_the_end = life.ttl + self.random.uniform(1, 4)
                    life.paused_until = time.monotonic() + past_the_end
                case "fork":
                    life.send(signal.SIGUSR1)
                case "exit":
                    life.send(signal.SIGTERM)
                    life.leaving = True
        except ProcessLookupError:
            pass  # it has ended by itself

    def finish(self) -> None:
        """Makes all processes end and release what they have."""
        self.store.heal()
        for life in self.lives.values():
            if life.paused_until is not None:
                self._resume(life)
        deadline = time.monotonic() + LAST_WORDS
        while self.lives or any(start.process.poll() is None for start in self.starts):
            if time.monotonic() > deadline:
                self._fail(f"{len(self.lives)} holders did not end")
                break
            for start in self.starts:
                start.process.terminate()
            for life in self.lives.values():
                if not life.has_ended():
                    life.send(signal.SIGTERM)
            self.watch()
            time.sleep(0.1)
        if not self.drawers.finish():
            self._fail("processes that draw numbers did not end")

    def kill(self) -> None:
        """Leaves no process behind, not even a fork that has no log yet."""
        self.drawers.kill()
        for start in self.starts:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(start.process.pid, signal.SIGKILL)
            start.process.wait()

    def verdict(self) -> Verdict:
        manual = {HANDED_OVER} if self.hands_over else set()
        return self.checker.judge(self.store.history(), manual)

    def saboteurs_run(self) -> bool:
        """Returns whether the two that were started first have both made ids."""
        logs = {log.name.split(".")[0]: log for log in self.lives}
        return all(name in logs and logs[name].stat().st_size for name in ("0", "1"))

    def _begin(self, log: Path) -> None:
        number, pid = (int(part) for part in log.name.split(".")[:2])
        start = self.starts[number]
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            # It has already ended, and the rest is read next time.
            handle = os.open(os.devnull, os.O_RDONLY)
        life = len(self.lives) + self.made.total()
        is_fork = pid != start.process.pid
        self.lives[log] = Life(
            life, start.language, start.ttl, handle, log, is_fork, start.is_manual
        )

    def _end(self, life: Life) -> None:
        os.close(life.handle)
        del self.lives[life.log]
        self.made[life.language] += 1
        ids = life.log.read_bytes()
        # A killed process may have written half an id.
        self.checker.add(life.number, np.frombuffer(ids[: len(ids) // 8 * 8], np.int64))
        life.log.unlink()
        if life.is_fork and ids:
            self.faults["fork"] += 1
        last_word = life.log.with_suffix(".end")
        if last_word.exists():
            last_word.unlink()
            self.faults["exit"] += 1
        elif not life.killed:
            self._fail(f"life {life.number}, in {life.language}, has ended without being killed")

    def _resume(self, life: Life) -> None:
        life.paused_until = None
        if not life.has_ended():
            life.send(signal.SIGCONT)
            self.faults["pause"] += 1

    def _fail(self, what: str) -> None:
        print(f"soak: {what}", file=sys.stderr, flush=True)
        self.failures.append(what)


def soak(kind: str, minutes: float, seed: int, sabotage: bool) -> bool:
    """Runs a fleet, prints the result, and returns whether it is good."""
    with tempfile.TemporaryDirectory(prefix="randflake-soak-") as directory:
        fleet = Fleet(kind, Path(directory), seed)
        try:
            for _ in range(2 if sabotage else 0):
                fleet.start("python", str(MANUAL), "0")
            begun = time.monotonic()
            end = begun + 60 * minutes
            next_fault = time.monotonic() + 2
            while time.monotonic() < end:
                fleet.fill_up()
                fleet.watch()
                if sabotage and not fleet.saboteurs_run() and end < begun + LAST_WORDS:
                    end = time.monotonic() + 60 * minutes  # from when both are there
                if time.monotonic() >= next_fault and not sabotage:
                    fleet.harm()
                    next_fault += fleet.random.uniform(0, 2 * BETWEEN_FAULTS)
                time.sleep(0.02)
            exits = fleet.faults["exit"]
            fleet.finish()
            fleet.faults["exit"] = exits  # these were no faults
        finally:
            fleet.kill()
            fleet.store.close()
        verdict = fleet.verdict()
    languages = ", ".join(f"{fleet.made[language]} {language}" for language in HOLDERS)
    faults = ", ".join(f"{count} {fault}" for fault, count in fleet.faults.items())
    print(
        f"soak of {kind}: {minutes:g} minutes, seed {seed}: {verdict.ids} ids of"
        f" {fleet.made.total()} processes ({languages}) under {verdict.leases} leases; node ids"
        f" went from one to another {verdict.handed_over} times, and {verdict.manual} times without"
        f" a lease; faults: {faults}; {verdict.repeated_ids} repeated ids,"
        f" {verdict.shared_seconds} shared seconds, {verdict.overlaps} overlaps,"
        f" {verdict.uncovered} uncovered seconds, {len(fleet.failures)} failures"
    )
    drawers = fleet.drawers
    harmed = ", ".join(f"{count} {fault}" for fault, count in drawers.faults.items())
    print(
        f"  and {drawers.numbers} sequential numbers of {drawers.started} processes; {harmed};"
        f" the counter was fenced {drawers.fences} times; {drawers.repeated} repeated numbers"
    )
    happened = [*fleet.faults.values(), *(fleet.made[language] for language in HOLDERS)]
    happened += [verdict.handed_over, drawers.numbers, *drawers.faults.values()]
    if fleet.hands_over:
        happened.append(verdict.manual)
    # Servers rest after each fault: in a few minutes not every kind of fault gets a turn.
    missing = minutes >= ENOUGH and not all(happened)
    if missing:
        print("soak: not everything that is to be tested happened; run it for longer")
    return verdict.is_good() and not drawers.repeated and not fleet.failures and not missing


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="See the head of this file.")
    arguments.add_argument(
        "--store",
        choices=["sqlite", "postgres", "mariadb", "mysql", "redis", "etcd"],
        default="sqlite",
    )
    arguments.add_argument("--minutes", type=float, default=2)
    arguments.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    arguments.add_argument("--sabotage", action="store_true")
    options = arguments.parse_args()
    print(f"soak of {options.store}: seed {options.seed}", flush=True)
    sys.exit(0 if soak(options.store, options.minutes, options.seed, options.sabotage) else 1)
