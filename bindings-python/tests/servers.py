"""Servers for tests: on free ports of the loopback interface, with a password where they have one.

A server that is not installed skips its tests and says so; where CI is "true" it fails them.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "open-sesame-4711"


@dataclass
class Server:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    port: int
    scheme: str
    user: str = ""
    path: str = ""

    def url(self, password: str = PASSWORD) -> str:
        login = "" if self.scheme == "etcd" else f"{self.user}:{password}@"
        return f"{self.scheme}://{login}127.0.0.1:{self.port}{self.path}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def program(name: str, package: str) -> str:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, versions)]))
    if found is None:
        missing = f"{name} is not installed (Debian: apt-get install {package})"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        print(f"\n*** SKIPPED: {missing} ***\n", file=sys.stderr)
        pytest.skip(missing)
    return found


@contextmanager
def running(
    command: list[str], folder: Path, ready: str, end: signal.Signals, user: str | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server until its log says that it is ready, and stops it in the end."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, user=user)
    try:
        deadline = time.monotonic() + 20
        while ready not in log.read_text(errors="replace"):
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(end)
        process.wait()


@contextmanager
def postgres(folder: Path) -> Iterator[Server]:
    initdb, server = program("initdb", "postgresql"), program("postgres", "postgresql")
    # PostgreSQL refuses to run as root.
    user = "nobody" if os.geteuid() == 0 else None
    passwords = folder / "password"
    passwords.write_text(PASSWORD)
    if user:
        for above in [folder, *folder.parents][:3]:
            above.chmod(above.stat().st_mode | 0o011)
        for path in (folder, passwords):
            os.chown(path, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    options = ["--no-sync", "--no-locale", "--encoding=UTF8", "--username=randflake"]
    login = ["--auth=scram-sha-256", f"--pwfile={passwords}"]
    subprocess.run(
        [initdb, *options, *login, "-D", data],
        check=True,
        capture_output=True,
        user=user,
        cwd=folder,
    )
    port = free_port()
    command = [server, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder)]
    with running(command, folder, "ready to accept", signal.SIGQUIT, user) as process:
        yield Server(process, port, "postgresql", "randflake", "/postgres")


@contextmanager
def redis(folder: Path, *arguments: str) -> Iterator[Server]:
    port = free_port()
    command = [program("redis-server", "redis-server"), "--port", str(port)]
    command += ["--bind", "127.0.0.1", "--requirepass", PASSWORD, "--dir", str(folder)]
    ready = "Ready to accept connections"
    with running([*command, *arguments], folder, ready, signal.SIGKILL) as process:
        yield Server(process, port, "redis", path="/0")


@contextmanager
def etcd(folder: Path) -> Iterator[Server]:
    port, peer_port = free_port(), free_port()
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    command = [program("etcd", "etcd-server"), "--data-dir", str(folder / "data")]
    command += ["--listen-client-urls", client, "--advertise-client-urls", client]
    command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    command += ["--initial-cluster", f"default={peer}"]
    ready = "ready to serve client requests"
    with running(command, folder, ready, signal.SIGKILL) as process:
        yield Server(process, port, "etcd")


STARTERS: dict[str, Callable[[Path], AbstractContextManager[Server]]] = {
    "postgres": postgres,
    "redis": lambda folder: redis(folder, "--appendonly", "yes"),
    "etcd": etcd,
}
