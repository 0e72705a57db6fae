"""`randflake serve` on stores with a server, and what the commands of pip and npm say of it."""

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import servers
from randflake import Inspector
from test_command import COMMANDS, built, run, succeed

__all__ = ["built"]

SECRET = "dffd6021bb2bd5b0af676290809ec3a5"

pytestmark = pytest.mark.usefixtures("built")


class Answer(NamedTuple):
    """What a request was answered with."""

    status: int
    body: Any


class Serving(NamedTuple):
    """A server that runs."""

    process: subprocess.Popen[str]
    url: str

    def ask(self, method: str, path: str, **fields: Any) -> Answer:
        body = json.dumps(fields).encode() if fields else None
        request = Request(f"{self.url}{path}", data=body, method=method)
        try:
            with urlopen(request, timeout=120) as response:
                return Answer(response.status, json.load(response))
        except HTTPError as refused:
            return Answer(refused.code, json.load(refused))


@contextmanager
def serving(folder: Path, store: str) -> Iterator[Serving]:
    """Starts the command of cargo, ends it, and checks that it ends as it should."""
    errors = folder / "errors"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [*COMMANDS["cargo"], "serve", "--listen", "127.0.0.1:0", "--max-wait", "60"],
            cwd=folder,
            env={**os.environ, "RANDFLAKE_SECRET": SECRET, "RANDFLAKE_STORE": store},
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            listening = None
            deadline = time.monotonic() + 60
            while listening is None:
                said = errors.read_text()  # of a line that is being written, a part
                assert process.poll() is None, said
                assert time.monotonic() < deadline
                listening = re.search(r"listening on (\S+)\s", said)
            yield Serving(process, listening[1])
            process.terminate()
            assert process.wait(120) == 0
        finally:
            process.kill()


@pytest.fixture(scope="module", params=servers.STARTERS)
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    # Not below pytest's own folder: another run closes that one to PostgreSQL's user.
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.STARTERS[request.param](Path(folder)) as started,
    ):
        yield started


def test_it_serves_from_a_store_with_a_server(server: servers.Server, tmp_path: Path) -> None:
    store, command = server.url(), COMMANDS["cargo"]
    succeed(command, "lease init --new", tmp_path, store=store)
    succeed(command, "tickets init --new", tmp_path, store=store)
    with serving(tmp_path, store) as one:
        ids = one.ask("POST", "/v1/ids?count=1000").body["ids"]
        assert len(set(ids)) == 1000
        own = Inspector(SECRET).inspect(ids[0]).node_id

        lease = one.ask("POST", "/v1/leases", count=3, note="a client").body
        assert len(lease["node_ids"]) == 3
        assert own not in lease["node_ids"]
        assert "a client" in succeed(command, "lease list", tmp_path, store=store)
        path = f"/v1/leases/{lease['lease']}"
        renewed = one.ask("POST", f"{path}/renew").body
        assert renewed["start"] == lease["start"]
        assert renewed["end_exclusive"] >= lease["end_exclusive"]
        skewed = one.ask("POST", f"{path}/renew", now=lease["start"] - 3600)
        assert (skewed.status, skewed.body["code"]) == (409, "CLOCK_SKEW")
        released = one.ask("POST", f"{path}/release", used_until=lease["start"])
        assert released == (200, {"released": 3})
        lost = one.ask("POST", f"{path}/renew")
        assert (lost.status, lost.body["code"]) == (410, "LEASE_LOST")

        tickets = one.ask("POST", "/v1/tickets/orders?count=3")
        assert tickets == (200, {"tickets": ["1", "2", "3"]})
    held = json.loads(succeed(command, "lease list --json", tmp_path, store=store))["counts"]
    assert held["held"] == 0
    with serving(tmp_path, store) as other:
        assert other.ask("POST", "/v1/tickets/orders") == (200, {"tickets": ["4"]})


def test_no_password_is_said(server: servers.Server, tmp_path: Path) -> None:
    scheme, _, rest = server.url().partition("://")
    host = rest.rpartition("@")[2]
    errors = tmp_path / "errors"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [*COMMANDS["cargo"], "serve", "--listen", "127.0.0.1:0"],
            env={
                **os.environ,
                "RANDFLAKE_SECRET": SECRET,
                "RANDFLAKE_STORE": f"{scheme}://nobody:a-password@{host}",
            },
            stderr=stderr,
        ) as process,
    ):
        # Its address, and why it has no lease; or, where that server asks for no password, a lease.
        deadline = time.monotonic() + 60
        while len(errors.read_text().splitlines()) < 2 and process.poll() is None:
            assert time.monotonic() < deadline, errors.read_text()
            time.sleep(0.02)
        process.kill()
    said = errors.read_text()
    assert "a-password" not in said, said
    assert "listening on" in said, said


@pytest.mark.parametrize("name", ["pip", "npm"])
def test_the_packages_say_who_can_serve(name: str, tmp_path: Path) -> None:
    done = run(COMMANDS[name], "serve --store ids.db", tmp_path)
    assert (done.code, done.stdout) == (2, "")
    assert "cargo" in done.stderr
    assert not list(tmp_path.iterdir())
