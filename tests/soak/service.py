"""Three services, and generators in Go and Java, make Snowflakes from one store, and are killed at
random.

    make soak-service NUMBERS=10000000 [STORES=postgres]

Clients ask the services for ids; programs in Go and Java (examples/go-snowflake,
examples/java-snowflake) lease their node ids from one of the services. Everything is killed with
SIGKILL again and again, and started anew. At the end no id may have come twice.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
from array import array
from pathlib import Path

import numpy as np

from tickets import RUST, store_of

ROOT = Path(__file__).resolve().parents[2]
COMMAND = RUST / "randflake"
LAYOUT = "twitter,epoch_ms=1577836800000"
PORTS = 3
BATCH = 10_000
TTL = "30"


class Soak:
    def __init__(self, store: str, folder: Path, wanted: int, seed: int) -> None:
        self.store, self.folder, self.wanted = store, folder, wanted
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.batches: list[array[int]] = []
        self.count, self.kills, self.by = 0, 0, dict[str, int]()
        self.ended = threading.Event()
        self.ports = [free_port() for _ in range(PORTS)]

    def keep(self, maker: str, ids: array[int]) -> None:
        with self.lock:
            self.batches.append(ids)
            self.count += len(ids)
            self.by[maker] = self.by.get(maker, 0) + len(ids)
            if self.count >= self.wanted:
                self.ended.set()

    def lifetime(self) -> float:
        with self.lock:
            return self.random.uniform(2, 12)

    def serve(self, port: int) -> None:
        """Runs a service, kills it, and starts it again."""
        command = [str(COMMAND), "serve", "--store", self.store, "--layout", LAYOUT]
        command += ["--listen", f"127.0.0.1:{port}", "--ttl", TTL, "--node-count", "2"]
        while not self.ended.is_set():
            service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            self.ended.wait(self.lifetime())
            service.send_signal(signal.SIGKILL)
            service.wait()
            self.kills += not self.ended.is_set()

    def ask(self) -> None:
        """Asks all services in turn. What a dead one has not answered is lost."""
        turn = 0
        while not self.ended.is_set():
            turn += 1
            connection = http.client.HTTPConnection("127.0.0.1", self.ports[turn % PORTS], 10)
            try:
                for _ in range(20):
                    connection.request("POST", f"/v1/ids?count={BATCH}")
                    answer = connection.getresponse()
                    content = answer.read()
                    if answer.status != 200:
                        time.sleep(0.1)
                        break
                    ids = array("Q", map(int, json.loads(content)["ids"]))
                    self.keep("services", ids)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
            finally:
                connection.close()

    def generate(self, maker: str, command: list[str]) -> None:
        """Runs a program, kills it, and starts it again. Reads the whole lines of its output."""
        while not self.ended.is_set():
            port = self.ports[self.random.randrange(PORTS)]
            log = self.folder / f"{maker}-{time.monotonic_ns()}"
            options = ["--url", f"http://127.0.0.1:{port}", "--count", "200000", "--ttl", TTL]
            with log.open("wb") as out:
                program = subprocess.Popen(
                    [*command, *options, "--threads", "2"], stdout=out, stderr=subprocess.DEVNULL
                )
                try:
                    program.wait(self.lifetime())
                except subprocess.TimeoutExpired:
                    program.send_signal(signal.SIGKILL)
                    program.wait()
                    self.kills += 1
            whole, _, _ = log.read_bytes().rpartition(b"\n")
            log.unlink()
            if whole:
                self.keep(maker, array("Q", map(int, whole.split(b"\n"))))
            else:
                time.sleep(0.2)

    def run(self) -> bool:
        go = self.folder / "go-snowflake"
        build = ["go", "build", "-o", str(go), "."]
        subprocess.run(build, cwd=ROOT / "examples/go-snowflake", check=True)
        java = ROOT / "examples/java-snowflake/Snowflakes.java"
        classes = self.folder / "classes"
        subprocess.run(["javac", "-d", str(classes), str(java)], check=True)
        programs = {"Go": [str(go)], "Java": ["java", "-cp", str(classes), "Snowflakes"]}
        threads = [threading.Thread(target=self.serve, args=[port]) for port in self.ports]
        threads += [threading.Thread(target=self.ask) for _ in range(PORTS)]
        threads += [threading.Thread(target=self.generate, args=each) for each in programs.items()]
        for thread in threads:
            thread.start()
        while not self.ended.wait(10):
            print(f"{self.count} ids, {self.kills} kills", flush=True)
        for thread in threads:
            thread.join()
        ids = np.concatenate([np.frombuffer(batch, dtype=np.uint64) for batch in self.batches])
        repeated = len(ids) - len(np.unique(ids))
        nodes = len(np.unique(ids >> np.uint64(12) & np.uint64(1023)))
        print(
            f"{len(ids)} ids ({self.by}) of {nodes} node ids, {self.kills} kills: "
            f"{repeated} repeated",
            flush=True,
        )
        return repeated == 0 and len(self.by) == 3 and self.kills > 0


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--store", nargs="+", default=["sqlite"])
    parser.add_argument("--numbers", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    os.environ.pop("RANDFLAKE_SECRET", None)
    good = True
    for kind in options.store:
        print(f"soak of services on {kind}: seed {options.seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="randflake-service-") as directory:
            folder = Path(directory)
            with store_of(kind, folder) as store:
                init = ["lease", "init", "--new", "--layout", LAYOUT, "--store", store]
                subprocess.run([str(COMMAND), *init], check=True, stdout=subprocess.DEVNULL)
                good &= Soak(store, folder, options.numbers, options.seed).run()
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
