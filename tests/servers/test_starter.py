"""The starter gives a port once, leaves nothing behind, and says why a server does not start."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import starter

PROGRAM = [sys.executable, starter.__file__]


class Starter:
    """The program, with a request at a time."""

    def __init__(self, **environment: str) -> None:
        self.process = subprocess.Popen(
            PROGRAM,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def started(self, kind: str, **options: Any) -> dict[str, Any]:
        """Starts a server, or skips the test, loudly, where there is none."""
        answer = self.ask(start=kind, **options)
        if "missing" in answer:
            if os.environ.get("CI") == "true":
                pytest.fail(answer["missing"])
            print(f"\n*** SKIPPED: {answer['missing']} ***\n", file=sys.stderr)
            pytest.skip(answer["missing"])
        assert "failed" not in answer, answer["failed"]
        return answer

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture
def new() -> Iterator[Callable[..., Starter]]:
    """Runs the program; whatever runs in the end is ended."""
    with ExitStack() as stack:
        yield lambda **environment: stack.enter_context(closing(Starter(**environment)))


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_no_port_is_given_twice(new: Callable[..., Starter]) -> None:
    starters = [new() for _ in range(4)]
    given = [port for it in starters for port in it.ask(ports=100)["ports"]]
    given += [starter.free_port() for _ in range(100)]
    assert len(set(given)) == 500
    assert set(given) <= {*starter.PORTS}


def test_a_port_that_another_process_has_is_not_taken(
    new: Callable[..., Starter], monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = new().ask(ports=1)["ports"]
    monkeypatch.setattr(starter, "PORTS", [port])
    with pytest.raises(starter.Failed):
        starter.free_port()


@pytest.mark.parametrize("above", [0, 10_000])
def test_a_port_that_something_listens_on_is_not_taken(
    above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = starter.free_port()
    monkeypatch.setattr(starter, "PORTS", [port])
    os.close(starter._held.pop(port))
    with socket.create_server(("127.0.0.1", port + above)), pytest.raises(starter.Failed):
        starter.free_port()
    assert starter.free_port() == port


def test_a_stopped_server_keeps_its_port(
    new: Callable[..., Starter], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = new()
    port = it.started("redis")["port"]
    assert it.ask(end="KILL")["pid"] is None
    assert not listens(port)
    monkeypatch.setattr(starter, "PORTS", [port])
    with pytest.raises(starter.Failed):
        starter.free_port()
    assert it.ask(run=[])["port"] == port
    assert listens(port)


@pytest.mark.parametrize("kind", ["postgres", "mariadb", "redis", "etcd"])
@pytest.mark.parametrize("state", ["runs", "is frozen", "has ended"])
def test_nothing_is_left_when_the_input_ends(
    kind: str, state: str, new: Callable[..., Starter]
) -> None:
    it = new()
    server = it.started(kind)
    folder = Path(server["folder"])
    assert starter.processes_in(folder)
    if state == "is frozen":
        starter.signal_all(starter.processes_in(folder), signal.SIGSTOP)
    if state == "has ended":
        it.ask(end="KILL")
        assert not starter.processes_in(folder)
    it.close()
    assert it.process.returncode == 0
    assert not starter.processes_in(folder)
    assert not folder.exists()
    assert not listens(server["port"])


def test_nothing_is_left_when_the_tests_are_killed() -> None:
    code = f"""
import subprocess, sys, time
starter = subprocess.Popen({PROGRAM!r}, stdin=subprocess.PIPE)
starter.stdin.write(b'{{"start": "redis"}}\\n')
starter.stdin.flush()
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        answer = json.loads(tests.stdout.readline())
        tests.kill()
    if "missing" in answer:
        assert os.environ.get("CI") != "true", answer["missing"]
        pytest.skip(answer["missing"])
    folder = Path(answer["folder"])
    eventually(lambda: not folder.exists())
    assert not starter.processes_in(folder)


def test_a_terminated_starter_ends_its_server(new: Callable[..., Starter]) -> None:
    it = new()
    folder = Path(it.started("redis")["folder"])
    it.process.send_signal(signal.SIGINT)  # the tests hear it as well, and decide
    assert it.ask(run=[])["folder"] == str(folder)
    it.process.terminate()
    it.process.wait(60)
    assert not starter.processes_in(folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        ("postgres", ["-c", "no_such_setting=1"], "no_such_setting"),
        ("mariadb", ["--no-such-setting"], "no-such-setting"),
        ("redis", ["--no-such-setting", "1"], "no-such-setting"),
        ("etcd", ["--no-such-setting"], "no-such-setting"),
    ],
)
def test_a_server_that_cannot_start_answers_its_log_at_once(
    kind: str, arguments: list[str], said: str, new: Callable[..., Starter]
) -> None:
    it = new()
    begun = time.monotonic()
    answer = it.ask(start=kind, arguments=arguments)
    if "missing" in answer:
        it.started(kind)  # skips this
    assert said in answer["failed"]
    assert "has ended" in answer["failed"], "it waited for something that had ended"
    assert time.monotonic() - begun < starter.PATIENCE


def test_a_server_whose_port_was_taken_gets_another_one() -> None:
    try:
        server = starter.Server("redis")
    except starter.Missing as missing:
        pytest.skip(str(missing))
    with closing(server), socket.create_server(("127.0.0.1", server.port)) as taken:
        server.start()
        assert server.port != taken.getsockname()[1]
        assert listens(server.port)
        server.stop(signal.SIGKILL)
        fails = pytest.raises(starter.Failed, match="Address already in use")
        with socket.create_server(("127.0.0.1", server.port)), fails:
            server.start()  # somebody knows its port by now


# Others are found without PATH.
@pytest.mark.parametrize("kind", ["redis", "etcd"])
def test_what_is_not_installed_is_named(kind: str, new: Callable[..., Starter]) -> None:
    answer = new(PATH="/nowhere").ask(start=kind)
    package = starter.KINDS[kind].package
    assert f"is not installed (Debian: apt-get install {package})" in answer["missing"]


def test_data_folders_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter, "PREPARED", tmp_path / "servers")
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "data").mkdir()
        time.sleep(0.1)  # for the others to find it unfinished, if they can
        (folder / "data" / "file").write_text("whole")

    def read(_: int) -> str:
        prepared = starter.prepared("kind", [sys.executable], ["how"], make)
        return (prepared / "file").read_text()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(4))) == ["whole"] * 4
    assert len(made) == 1
    assert not made[0].exists()
    with pytest.raises(ZeroDivisionError):
        starter.prepared("kind", [sys.executable], ["otherwise"], lambda _: print(1 // 0))
    starter.prepared("kind", [sys.executable], ["otherwise"], make)
    assert len(made) == 2
