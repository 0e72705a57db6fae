"""Whole applications under their real servers, killed and started again while clients make rows.

An application is a command that serves HTTP on a port. It finds the database, the store of its
leases and the secret in its environment; the fixture `settings` of tests/examples makes them.

    def test_the_shop(settings: dict[str, str], tmp_path: Path) -> None:
        command = [sys.executable, "-m", "uvicorn", "main:app", "--port", "PORT"]

        def make(client: Client) -> list[str]:
            return [client.post("/orders", {"customer": "Ada"})["id"]]

        with Application(command, EXAMPLES / "shop", settings, tmp_path / "log") as application:
            ids = make_rows(application, make, 10_000)
            assert len(set(ids)) == len(ids)
            orders = get_all(application, [f"/orders/{id}" for id in ids])
            assert [order["id"] for order in orders] == ids
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self, TypeVar

from servers import free_port

Row = TypeVar("Row")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"
"""The RANDFLAKE_SECRET of `settings`."""

CLIENTS = 8
PATIENCE = 300
"""After how many seconds without a new row a test fails."""


class UnansweredError(Exception):
    """A request has no answer: the application was killed, or cannot make ids now."""


class Client:
    """A client that keeps its connection."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Returns the status of the answer and its JSON."""
        content = None if body is None else json.dumps(body)
        try:
            headers = {"Content-Type": "application/json"}
            self._connection.request(method, path, content, headers)
            with self._connection.getresponse() as response:
                text = response.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise UnansweredError(f"{method} {path}") from error
        if response.status == 503:
            assert int(response.headers["Retry-After"]) >= 1, path
            raise UnansweredError(f"{method} {path}: 503")
        is_json = response.headers.get_content_subtype().endswith("json")
        return response.status, json.loads(text) if is_json else text.decode()

    def get(self, path: str) -> Any:
        """Returns the JSON of an existing row."""
        status, answer = self.request("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def post(self, path: str, body: object) -> Any:
        """Returns the JSON of a new row."""
        status, answer = self.request("POST", path, body)
        assert status in (200, 201), (path, status, answer)
        return answer


class Application:
    """A running application, with all of its processes."""

    def __init__(
        self, command: list[str], folder: Path, environment: dict[str, str], log: Path
    ) -> None:
        """Starts it when it is entered, and stops it at the end.

        command: PORT in it stands for the port, which is in the environment, too.
        folder: where it runs.
        environment: variables in addition to this process's.
        """
        self.port = free_port()
        self._command = [part.replace("PORT", str(self.port)) for part in command]
        self._folder = folder
        self._environment = {**os.environ, **environment, "PORT": str(self.port)}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        deadline = time.monotonic() + PATIENCE
        while True:
            # The killed one may still hold the port for a moment, so that it cannot start.
            if self._process is None or self._process.poll() is not None:
                with self._log.open("ab") as log:
                    self._process = subprocess.Popen(
                        self._command,
                        cwd=self._folder,
                        env=self._environment,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, self.log()
                time.sleep(0.05)

    def kill(self) -> None:
        """Ends all of its processes at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """Asks its first process to end, as an operator does, and waits for that."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._process = None

    def log(self) -> str:
        return self._log.read_text(errors="replace")


def make_rows(
    application: Application,
    make: Callable[[Client], list[Row]],
    count: int,
    *,
    kills: int = 3,
) -> list[Row]:
    """Makes clients create this many rows, and kills and starts the application meanwhile.

    make: creates one or more rows with a request, and returns them. Requests without an answer are
    repeated.

    Returns the rows that were acknowledged.
    """
    made: list[Row] = []
    failed = False

    def work() -> None:
        nonlocal failed
        unanswered_since: float | None = None
        with Client(application.port) as client:
            while len(made) < count and not failed:
                try:
                    made.extend(make(client))
                    unanswered_since = None
                except UnansweredError:
                    unanswered_since = unanswered_since or time.monotonic()
                    if time.monotonic() > unanswered_since + PATIENCE:
                        failed = True
                        raise
                    time.sleep(0.02)
                except BaseException:
                    failed = True
                    raise

    with ThreadPoolExecutor(CLIENTS) as executor:
        working = [executor.submit(work) for _ in range(CLIENTS)]
        try:
            for kill in range(1, kills + 1):
                while len(made) < count * kill // (kills + 1) and not failed:
                    time.sleep(0.005)
                application.kill()
                application.start()
            for client in working:
                client.result()
        except BaseException as error:
            failed = True
            error.add_note(application.log()[-5000:])
            raise
    return made


def get_all(application: Application, paths: list[str]) -> list[Any]:
    """Returns the JSON of all of these paths, each of which must exist."""

    def get(paths: list[str]) -> list[Any]:
        with Client(application.port) as client:
            return [client.get(path) for path in paths]

    size = -(-len(paths) // CLIENTS)
    with ThreadPoolExecutor(CLIENTS) as executor:
        parts = [paths[start : start + size] for start in range(0, len(paths), size)]
        return [answer for part in executor.map(get, parts) for answer in part]
