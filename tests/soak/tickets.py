"""Processes draw numbers from one counter, are killed at random and start again.

    make soak-tickets STORES="sqlite etcd" PROCESSES=100 NUMBERS=10000000

Two rules are checked at the end: no number came twice, and for each kill at most one process's
numbers are missing. Each process logs what it was handed, batch by batch, so for each kill up to a
batch was handed out and is not in a log.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from servers import STARTERS

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "target" / os.environ.get("CARGO_BUILD_TARGET", "")
RUST = BUILT / os.environ.get("PROFILE", "debug")

MAX_BLOCK = 5_000
BATCH = 1_000
"""Numbers that a process takes at once and then logs, as in main.rs."""


@contextmanager
def store_of(kind: str, folder: Path) -> Iterator[str]:
    """Yields the address of a store that has a namespace of tickets."""
    if kind == "sqlite":
        address = str(folder / "tickets.db")
        tickets("init", "--new", "--store", address)
        yield address
        return
    with STARTERS[kind](folder) as server:
        tickets("init", "--new", "--store", server.url())
        yield server.url()


def tickets(*arguments: str) -> str:
    command = [str(RUST / "randflake"), "tickets", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


class Fleet:
    """Processes that draw from one counter."""

    def __init__(self, store: str, folder: Path, count: int) -> None:
        self._store, self._logs, self._started = store, folder, 0
        self._running = [self._start() for _ in range(count)]
        self._ending: list[subprocess.Popen[bytes]] = []
        self.kills = 0

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "RANDFLAKE_SECRET": "9d4be0a1c35f7826b60ef4d7132a985c"}
        # Each has its own name: the system reuses process ids.
        log = str(self._logs / str(self._started))
        self._started += 1
        command = [str(RUST / "randflake-soak"), "tickets", self._store, "soak", log]
        return subprocess.Popen([*command, str(MAX_BLOCK), "5"], env=environment)

    def replace_one(self, chance: random.Random) -> None:
        """Kills a process, or ends it, or leaves it stopped for a while; another one starts."""
        index = chance.randrange(len(self._running))
        process = self._running[index]
        kinds = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP]
        how = chance.choice(kinds)
        process.send_signal(how)
        if how == signal.SIGSTOP:
            time.sleep(0.05)
            process.send_signal(signal.SIGCONT)
            return
        if how == signal.SIGKILL:
            assert process.wait(60) == -how, process.returncode
            self.kills += 1
        else:
            # It gives back what it has, which may take a while; others are killed meanwhile.
            self._ending.append(process)
        self._running[index] = self._start()

    def end(self) -> None:
        for process in self._running:
            process.terminate()
        statuses = {process.wait(120) for process in [*self._running, *self._ending]}
        # A process that has just started does not handle SIGTERM yet.
        assert statuses <= {0, -signal.SIGTERM}, statuses

    def kill(self) -> None:
        for process in [*self._running, *self._ending]:
            process.kill()
            process.wait()

    def logged(self) -> int:
        return sum(log.stat().st_size for log in self._logs.glob("*.numbers")) // 8

    def numbers(self) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
        whole = []
        for log in self._logs.glob("*.numbers"):
            read = log.read_bytes()
            whole.append(np.frombuffer(read[: len(read) // 8 * 8], np.uint64))
        return np.concatenate(whole)


def soak(kind: str, processes: int, numbers: int, seed: int) -> str:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name, store_of(kind, Path(name)) as store:
        folder = Path(name) / "logs"
        folder.mkdir()
        fleet = Fleet(store, folder, processes)
        try:
            # On a fast machine all numbers are drawn before many processes were killed.
            while fleet.logged() < numbers or fleet.kills < processes:
                time.sleep(0.1)
                fleet.replace_one(chance)
            fleet.end()
        finally:
            fleet.kill()
        made = fleet.numbers()
        distinct = np.unique(made)
        repeated = len(made) - len(distinct)
        counter = json.loads(tickets("show", "soak", "--json", "--store", store))
    missing = counter["next"] - 1 - counter["given_back"] - len(distinct)
    bound = fleet.kills * (MAX_BLOCK + BATCH)
    result = (
        f"tickets of {kind}, seed {seed}: {len(made)} numbers of {processes} processes, "
        f"{fleet.kills} kills; {repeated} repeated, {missing} lost of at most {bound}"
    )
    assert not repeated, result
    assert 0 <= missing <= bound, result
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    stores = ["sqlite", "postgres", "mariadb", "mysql", "redis", "etcd"]
    parser.add_argument("--store", choices=stores, nargs="+", required=True)
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--numbers", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args()
    for kind in given.store:
        print(soak(kind, given.processes, given.numbers, given.seed), flush=True)
