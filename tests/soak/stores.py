"""The stores that the holders of the soak lease from, and the faults of each.

A SQLite file has ids of Randflake, and a history that the checker compares with them. Servers have
ids of a layout with few node ids, so that two holders of one node id would soon be noticed.
"""

import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import psycopg
import redis
import servers
from check import HISTORY, Change, Stamps
from numpy.typing import NDArray
from randflake import Inspector, Layout, init_store

FREE = 20
"""How many node ids of a file are available to the holders, some of which have two."""

NODE_BITS, SEQUENCE_BITS = 5, 17
LAYOUT = Layout(
    fields=[("time", 41), ("node", NODE_BITS), ("sequence", SEQUENCE_BITS)],
    tick_ms=1000,
    epoch_ms=1_730_000_000_000,
)
"""The layout of ids from a store with a server; also in holder.py, holder.cjs and main.rs."""
LONGEST_LEASE = 8
MAX_LAG = 5
"""How many seconds a Redis still counts a silent replica."""


class Store(Protocol):
    """A store that holders lease from."""

    address: str
    """The path or URL that they get."""
    faults: ClassVar[list[str]]
    """The kinds of fault that `harm` knows."""
    ttls: ClassVar[list[int]]

    def harm(self, fault: str) -> bool:
        """Does it, and returns whether it could; `watch` or `heal` ends it."""

    def watch(self) -> None:
        """Ends what is due."""

    def heal(self) -> None:
        """Ends all faults."""

    def close(self) -> None:
        """Ends the servers."""

    def stamps(self, ids: NDArray[np.int64]) -> Stamps:
        """Returns node ids and seconds of ids."""

    def history(self) -> Iterable[Change] | None:
        """Returns every change of a lease, if the store records them."""


class Later:
    """Calls to make at some later time, in order of that time."""

    def __init__(self) -> None:
        self._due: list[tuple[float, Callable[[], object]]] = []

    def add(self, seconds: float, what: Callable[[], object]) -> None:
        self._due.append((time.monotonic() + seconds, what))
        self._due.sort(key=lambda due: due[0])

    def do(self, until: float | None = None) -> None:
        """Does what is due; all of it at infinity."""
        until = time.monotonic() if until is None else until
        while self._due and self._due[0][0] <= until:
            self._due.pop(0)[1]()

    def __bool__(self) -> bool:
        return bool(self._due)


class File:
    """A SQLite file."""

    faults: ClassVar[list[str]] = ["lock"]
    ttls: ClassVar[list[int]] = [2, 3, 4, 6]

    def __init__(self, directory: Path, secret: str, random: random.Random, rust: Path) -> None:
        self._random = random
        self._path = directory / "ids.db"
        self.address = str(self._path)
        self._inspector = Inspector(secret)
        self._later = Later()
        environment = {**os.environ, "RANDFLAKE_SECRET": secret}
        subprocess.run([rust, "reserve", self._path, str(FREE)], env=environment, check=True)
        with sqlite3.connect(self._path) as store:
            store.executescript(HISTORY)
        store.close()

    def harm(self, fault: str) -> bool:
        assert fault == "lock"
        if self._later:
            return False
        store = sqlite3.connect(self._path, timeout=0.1, isolation_level=None)
        try:
            store.execute("begin exclusive")
        except sqlite3.OperationalError:
            store.close()  # a process has the lock, or is paused with it
            return False
        self._later.add(self._random.uniform(0.1, 3), store.close)
        return True

    def watch(self) -> None:
        self._later.do()

    def heal(self) -> None:
        self._later.do(float("inf"))

    def close(self) -> None:
        self.heal()

    def stamps(self, ids: NDArray[np.int64]) -> Stamps:
        parts = self._inspector.inspect_array(ids)
        return parts.node_id.astype(np.int64), parts.timestamp

    def history(self) -> Iterable[Change]:
        store = sqlite3.connect(self._path)
        changes = store.execute(
            "select node_id, start, end_exclusive, token from history order by change"
        ).fetchall()
        store.close()
        return changes


class Remote:
    """The common part of stores with a server."""

    # Clocks on one machine do not differ, but two readings of one clock do.
    ttls: ClassVar[list[int]] = [6, LONGEST_LEASE]

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.later = Later()
        self.running = ExitStack()

    def init(self, address: str) -> None:
        self.address = address
        init_store(address, layout=LAYOUT, max_ttl=LONGEST_LEASE, max_skew=1, mode="new")

    def watch(self) -> None:
        self.later.do()

    def heal(self) -> None:
        self.later.do(float("inf"))

    def close(self) -> None:
        self.heal()
        self.running.close()

    def stamps(self, ids: NDArray[np.int64]) -> Stamps:
        seconds = (ids >> (NODE_BITS + SEQUENCE_BITS)) + LAYOUT.epoch_ms // 1000
        return ids >> SEQUENCE_BITS & LAYOUT.max_node_id, seconds

    def history(self) -> None:
        return None

    def freeze(self, server: servers.Server, seconds: float) -> None:
        """Stops a server as it is, with all of its processes, for a while."""
        assert server.process is not None
        # The first one first, so that it starts no others.
        signal_all([server.process.pid], signal.SIGSTOP)
        stopped = [server.process.pid, *children(server.process.pid)]
        signal_all(stopped, signal.SIGSTOP)
        self.later.add(seconds, lambda: signal_all(stopped, signal.SIGCONT))

    def restart(self, server: servers.Server) -> None:
        """Kills a server, and starts it again."""
        server.stop(server.end)
        server.start()


class OneServer(Remote):
    """One server of a kind."""

    faults: ClassVar[list[str]] = ["freeze", "restart"]

    def __init__(self, kind: str, directory: Path, random: random.Random) -> None:
        super().__init__(random)
        self._server = self.running.enter_context(servers.running(kind, directory))
        self.init(self._server.url())

    def harm(self, fault: str) -> bool:
        if self.later:
            return False
        match fault:
            case "lock":
                self.later.add(self.random.uniform(1, 6), self.lock())
            case "freeze":
                self.freeze(self._server, self.random.uniform(1, LONGEST_LEASE + 4))
            case "restart":
                self.restart(self._server)
        return True

    def lock(self) -> Callable[[], object]:
        """Locks the table of a database, and returns a function that unlocks it."""
        raise NotImplementedError


class PostgreSQL(OneServer):
    faults: ClassVar[list[str]] = ["lock", *OneServer.faults]

    def lock(self) -> Callable[[], object]:
        connection = psycopg.connect(self._server.url())
        connection.execute("lock table randflake_leases.entry in access exclusive mode")
        return connection.close


class MySQL(OneServer):
    """MariaDB, too."""

    faults: ClassVar[list[str]] = ["lock", *OneServer.faults]

    def lock(self) -> Callable[[], object]:
        connection = self._server.connect()
        connection.query("lock tables randflake_entry write")
        close: Callable[[], object] = connection.close
        return close


class RedisPair(Remote):
    """A master and a replica, which change places. Clients find the master at an address that a
    failover moves, like a virtual address; connections to the old master stay open for a while, so
    that it continues to grant, as far as it is allowed to.
    """

    faults: ClassVar[list[str]] = ["freeze", "restart", "failover", "failback", "late failover"]

    def __init__(self, directory: Path, random: random.Random) -> None:
        super().__init__(random)
        settings = [*servers.DURABLE, "--masterauth", servers.PASSWORD]
        settings += ["--min-replicas-to-write", "1", "--min-replicas-max-lag", str(MAX_LAG)]
        settings += ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]
        self._servers: list[servers.Server] = []
        for name in ["one", "other"]:
            (directory / name).mkdir()
            started = servers.redis(directory / name, *settings)
            self._servers.append(self.running.enter_context(started))
        # The link from each server to its replica.
        self._links = [Forward(server.port) for server in self._servers]
        self._clients = Forward(self._servers[0].port)
        self._master = 0
        self._follow(1, 0)
        self._until_replicated()
        address = self._servers[0].url()
        self.init(address.replace(f":{self._servers[0].port}/", f":{self._clients.port}/"))

    def harm(self, fault: str) -> bool:
        if self.later:
            return False
        old, new = self._master, 1 - self._master
        match fault:
            case "freeze":
                self.freeze(self._servers[old], self.random.uniform(1, LONGEST_LEASE + 4))
            case "restart":
                self.restart(self._servers[old])
                self._rest()
            case "failover":
                # The replica never receives writes that are acknowledged while the link is silent.
                self._links[old].frozen = True
                self.later.add(self.random.uniform(0, MAX_LAG), lambda: self._fail_over(old, new))
                self._rest()
            case "failback":
                # There and back before a client has seen the other one.
                self._links[old].frozen = True
                self._clients.disconnect()
                self._command(new, "REPLICAOF", "NO", "ONE")
                self._links[old].frozen = False
                self._links[old].disconnect()
                self._follow(old, new)
                self.later.add(MAX_LAG, lambda: self._back(old, new))
                self._rest()
            case "late failover":
                # The old master is stopped with requests in its queue, and handles them late.
                self.freeze(self._servers[old], self.random.uniform(MAX_LAG, LONGEST_LEASE))
                self.later.add(MAX_LAG / 2, lambda: self._fail_over(old, new))
                self._rest()
        return True

    def close(self) -> None:
        super().close()
        for forward in [self._clients, *self._links]:
            forward.close()

    def _rest(self) -> None:
        """Lets the replica catch up, and nearly always the quarantine pass."""
        self.later.add(self.random.uniform(LONGEST_LEASE, 4 * LONGEST_LEASE), lambda: None)

    def _fail_over(self, old: int, new: int) -> None:
        self._command(new, "REPLICAOF", "NO", "ONE")
        self._master = new
        # New connections find the new master; existing ones keep the old one for a while.
        self._clients.target = self._servers[new].port
        self.later.add(self.random.uniform(0, 2 * MAX_LAG), lambda: self._demote(old, new))

    def _demote(self, old: int, new: int) -> None:
        self._clients.disconnect()
        self._links[old].frozen = False
        self._links[old].disconnect()
        self._follow(old, new)

    def _back(self, old: int, new: int) -> None:
        self._command(old, "REPLICAOF", "NO", "ONE")
        self._follow(new, old)

    def _follow(self, replica: int, master: int) -> None:
        self._command(replica, "REPLICAOF", "127.0.0.1", str(self._links[master].port))

    def _until_replicated(self) -> None:
        deadline = time.monotonic() + 60
        with self._connection(self._master, 60) as client:
            while client.info("replication").get("slave0", {}).get("state") != "online":
                assert time.monotonic() < deadline, "the replica does not follow"
                time.sleep(0.05)

    def _command(self, number: int, *words: str) -> None:
        """Sends a command to a server. A stopped server does it when it continues."""
        with self._connection(number) as client, suppress(redis.TimeoutError):
            client.execute_command(*words)

    def _connection(self, number: int, patience: float = 1) -> redis.Redis:
        port = self._servers[number].port
        return redis.Redis(port=port, password=servers.PASSWORD, socket_timeout=patience)


class Forward:
    """A port that leads to another one, which can change."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.frozen = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._connections: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def disconnect(self) -> None:
        """Ends all connections."""
        for connection in list(self._connections):
            end(connection)

    def close(self) -> None:
        self._listener.close()
        self.disconnect()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self._connections |= {client, server}
            for ends in [(client, server), (server, client)]:
                threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                while self.frozen:
                    time.sleep(0.01)
                sink.sendall(data)
        except OSError:
            pass
        for connection in (source, sink):
            end(connection)
            self._connections.discard(connection)


def end(connection: socket.socket) -> None:
    """Ends a connection that another thread may be reading."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        connection.close()


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Sends a signal to processes, some of which may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def children(pid: int) -> list[int]:
    """Returns the children of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def open_store(kind: str, directory: Path, secret: str, random: random.Random, rust: Path) -> Store:
    folder = directory / kind
    folder.mkdir()
    match kind:
        case "sqlite":
            return File(folder, secret, random, rust)
        case "postgres":
            return PostgreSQL(kind, folder, random)
        case "mariadb" | "mysql":
            return MySQL(kind, folder, random)
        case "redis":
            return RedisPair(folder, random)
        case "etcd":
            return OneServer(kind, folder, random)
    raise ValueError(f"there is no store {kind!r}")


def copy_of_the_node_package(directory: Path) -> Path:
    """Copies the package, as in a nested node_modules: a second native half is loaded."""
    package = Path(__file__).resolve().parents[2] / "bindings-node"
    copy = directory / "copy"
    copy.mkdir()
    for file in [*package.glob("*.js"), *package.glob("*.node"), package / "package.json"]:
        shutil.copy(file, copy)
    shutil.copytree(package / "lib", copy / "lib")
    return copy
