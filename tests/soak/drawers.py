"""The part of the soak's fleet that draws numbers from a counter; see soak.py.

The processes are killed, paused, forked and ended, and their store suffers the same faults as the
holders' store. When one of them is told that the counter must be fenced, they do what an operator
does: all are stopped, the counter is fenced above every number in their logs, and all are
restarted.
"""

import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

COUNT = 3
"""How many processes draw, not counting forked ones."""
CROWD = 5
"""The maximum, including forked ones."""
MAX_BLOCK = 5_000
PAUSE_MS = 300
"""Between two batches."""
STOPS = 60
"""How many seconds a process may take to stop; then it is killed."""


@dataclass
class Drawer:
    """A process with a log of its numbers."""

    log: Path
    paused_until: float | None = None
    read: int = 0
    """How many bytes of the log are checked."""

    @property
    def pid(self) -> int:
        return int(self.log.name.split(".")[1])

    def send(self, number: signal.Signals) -> bool:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def has_ended(self) -> bool:
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        return state == "Z"


class Drawers:
    """The processes, and every number that they got."""

    def __init__(self, store: str, logs: Path, chance: random.Random, programs: Path) -> None:
        self._store, self._logs, self._random, self._programs = store, logs, chance, programs
        logs.mkdir()
        if self._randflake("init", "--new").wait() != 0:
            raise RuntimeError("a counter could not be made: see `randflake tickets init`")
        self._running: list[subprocess.Popen[bytes]] = []
        self._drawers: dict[Path, Drawer] = {}
        self._stop_by: float | None = None
        self._fence: subprocess.Popen[bytes] | None = None
        self._seen = np.zeros(1 << 20, np.bool_)
        self._highest = 0
        self.numbers = self.repeated = self.fences = self.started = 0
        self.faults = dict.fromkeys(["kill", "pause", "fork", "exit"], 0)

    def fill_up(self) -> None:
        """Replaces the processes that have ended."""
        self._running = [process for process in self._running if process.poll() is None]
        while self._stop_by is None and len(self._running) < COUNT:
            log = str(self._logs / str(self.started))
            program = str(self._programs / "randflake-soak")
            options = [self._store, "soak", log, str(MAX_BLOCK), str(PAUSE_MS)]
            command = [program, "tickets", *options]
            environment = {**os.environ, "RANDFLAKE_SECRET": "9d4be0a1c35f7826b60ef4d7132a985c"}
            process = subprocess.Popen(command, env=environment, start_new_session=True)
            self._running.append(process)
            self.started += 1

    def watch(self) -> None:
        """Reads what was drawn, and continues with what an operator does."""
        for log in self._logs.glob("*.numbers"):
            self._drawers.setdefault(log, Drawer(log))
        for drawer in list(self._drawers.values()):
            ended = drawer.has_ended()
            self._read(drawer)
            if ended:
                del self._drawers[drawer.log]
                drawer.log.unlink()
                drawer.log.with_suffix(".end").unlink(missing_ok=True)
            elif drawer.paused_until is not None and drawer.paused_until <= time.monotonic():
                drawer.paused_until = None
                self.faults["pause"] += drawer.send(signal.SIGCONT)
        if self._stop_by is None:
            if any(self._logs.glob("*.refused")):
                self._stop()
        elif self._drawers or any(process.poll() is None for process in self._running):
            self._stop_late()
        else:
            self._go_on_fencing()

    def harm(self) -> None:
        """Lets a random fault happen to a random process."""
        awake = [it for it in self._drawers.values() if it.paused_until is None]
        if not awake or self._stop_by is not None:
            return
        drawer = self._random.choice(sorted(awake, key=lambda drawer: drawer.log))
        fault = self._random.choice(list(self.faults))
        match fault:
            case "kill":
                self.faults[fault] += drawer.send(signal.SIGKILL)
            case "pause":
                drawer.send(signal.SIGSTOP)
                drawer.paused_until = time.monotonic() + self._random.uniform(1, 12)
            case "fork" if len(self._drawers) < CROWD:
                self.faults[fault] += drawer.send(signal.SIGUSR1)
            case "exit":
                self.faults[fault] += drawer.send(signal.SIGTERM)

    def finish(self) -> bool:
        """Makes all processes end, and returns whether they did."""
        self._stop()
        self._store = ""  # nothing is fenced any more
        while self._drawers or any(process.poll() is None for process in self._running):
            assert self._stop_by is not None
            if time.monotonic() > self._stop_by + STOPS:
                return False
            self.watch()
            time.sleep(0.1)
        return True

    def kill(self) -> None:
        """Leaves no process behind."""
        for drawer in self._drawers.values():
            drawer.send(signal.SIGKILL)
        for process in [*self._running, *([self._fence] if self._fence else [])]:
            process.kill()
            process.wait()

    def _stop(self) -> None:
        self._stop_by = time.monotonic() + STOPS
        self._tell_all(signal.SIGTERM)

    def _stop_late(self) -> None:
        assert self._stop_by is not None
        # Again: a process that has just started or was just forked may have missed the signal.
        late = time.monotonic() > self._stop_by
        self._tell_all(signal.SIGKILL if late else signal.SIGTERM)

    def _tell_all(self, number: signal.Signals) -> None:
        for drawer in self._drawers.values():
            drawer.paused_until = None
            drawer.send(number)
            drawer.send(signal.SIGCONT)
        for process in self._running:
            process.send_signal(number)

    def _go_on_fencing(self) -> None:
        if not self._store:
            return
        if self._fence is None:
            self._fence = self._randflake("fence", "soak", "--above", str(self._highest), "--yes")
        elif self._fence.poll() is not None:
            done, self._fence = self._fence.returncode == 0, None
            if done:
                self.fences += 1
                self._stop_by = None
                for refused in self._logs.glob("*.refused"):
                    refused.unlink()

    def _randflake(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [str(self._programs / "randflake"), "tickets", *arguments, "--store", self._store]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet)

    def _read(self, drawer: Drawer) -> None:
        with drawer.log.open("rb") as file:
            file.seek(drawer.read)
            data = file.read()
        # A killed process may have written half a number.
        numbers = np.frombuffer(data[: len(data) // 8 * 8], np.uint64).astype(np.int64)
        if not len(numbers):
            return
        drawer.read += len(numbers) * 8
        self._highest = max(self._highest, int(numbers.max()))
        while self._highest >= len(self._seen):
            self._seen = np.concatenate([self._seen, np.zeros_like(self._seen)])
        distinct = np.unique(numbers)
        self.numbers += len(numbers)
        self.repeated += len(numbers) - len(distinct) + int(self._seen[distinct].sum())
        self._seen[distinct] = True
