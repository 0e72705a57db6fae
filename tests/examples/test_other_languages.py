"""examples/go-snowflake and examples/java-snowflake, which lease from `randflake serve`."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from applications import EXAMPLES
from randflake import init_store
from servers import program

ROOT = EXAMPLES.parent
COMMAND = ROOT / "target" / os.environ.get("CARGO_BUILD_TARGET", "") / "debug" / "randflake"

GO = EXAMPLES / "go-snowflake"
JAVA = EXAMPLES / "java-snowflake"
JDK = "default-jdk-headless"

EPOCH_MS = 1_577_836_800_000
TWITTER = f"twitter,epoch_ms={EPOCH_MS}"
SONYFLAKE = f"sonyflake,epoch_ms={EPOCH_MS}"
"""25 600 ids a second, so that a run lasts longer than a lease."""
TTL = 12
"""The shortest where clocks may differ by two seconds."""


class Term(NamedTuple):
    """A lease, whatever its name."""

    node_id: int
    start: int


class Relay(ThreadingHTTPServer):
    """Passes requests on to the service, remembers what it granted, and does harm."""

    daemon_threads = True

    def __init__(self, service: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.service = service
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.harm = ""
        """What happens to the first renewal of each lease: "answer is lost", "lease is lost"; or to
        all: "none arrive"."""
        self.harmed: set[Term] = set()
        self.terms: dict[str, Term] = {}
        self.ends: dict[Term, int] = {}
        self.tokens: dict[Term, list[str]] = {}
        self.used_until: dict[Term, int] = {}

    def handle_error(self, *_: Any) -> None:
        """Says nothing: programs that are killed close no connection."""

    def ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, str]:
        try:
            with urlopen(Request(f"{self.service}{path}", body, method=method)) as answer:
                return answer.status, answer.read(), ""
        except HTTPError as refused:
            return refused.code, refused.read(), refused.headers.get("Retry-After", "")

    def answer(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, str] | None:
        """Returns the answer of the service, or none if it does not arrive."""
        name, operation = [*path.split("/"), "", ""][3:5]
        is_harmed = False
        if operation == "renew":
            term = self.terms[name]
            self.tokens.setdefault(term, []).append(json.loads(body or b"")["next_token"])
            is_harmed = self.harm == "none arrive" or term not in self.harmed
            self.harmed.add(term)
        if is_harmed and self.harm == "none arrive":
            return None
        if is_harmed and self.harm == "lease is lost":
            # The end stays where it is.
            assert self.ask("POST", f"/v1/leases/{name}/release", b"{}")[0] == 200
        status, text, retry_after = self.ask(method, path, body)
        if is_harmed and self.harm == "answer is lost":
            return None
        if status == 201 or (status, operation) == (200, "renew"):
            lease = json.loads(text)
            (node_id,) = lease["node_ids"]
            term = Term(node_id, lease["start"])
            self.terms[lease["lease"]] = term
            self.ends[term] = lease["end_exclusive"]
        elif operation == "release":
            assert json.loads(text) == {"released": 1}
            self.used_until[self.terms[name]] = json.loads(body or b"")["used_until"]
        return status, text, retry_after


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length else None
        answer = self.server.answer(self.command, self.path, body)
        if answer is None:
            self.close_connection = True
            return
        status, text, retry_after = answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Says nothing: paths have the names of leases in them."""


@contextmanager
def serving(folder: Path, layout: str) -> Iterator[Relay]:
    """Starts the service on a file, behind a relay."""
    store, errors = folder / "ids.db", folder / "errors"
    init_store(store, mode="new", layout=layout, max_skew=2)
    options = ["--layout", layout, "--listen", "127.0.0.1:0", "--max-wait", "60"]
    with (
        errors.open("w") as stderr,
        subprocess.Popen([COMMAND, "serve", "--store", store, *options], stderr=stderr) as process,
    ):
        try:
            listening = None
            deadline = time.monotonic() + 60
            while listening is None:
                said = errors.read_text()
                assert process.poll() is None, said
                assert time.monotonic() < deadline, said
                listening = re.search(r"listening on (\S+)\s", said)
                time.sleep(0.02)
            with Relay(listening[1]) as relay:
                Thread(target=relay.serve_forever, daemon=True).start()
                yield relay
                relay.shutdown()
            process.terminate()
            assert process.wait(120) == 0
        finally:
            process.kill()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The command of each program."""
    built = tmp_path_factory.mktemp("go") / "go-snowflake"
    subprocess.run([program("go", "golang-go"), "build", "-o", built, "."], cwd=GO, check=True)
    return {"go": [str(built)], "java": [program("java", JDK), str(JAVA / "Snowflakes.java")]}


class Run:
    """A program that prints ids into a file."""

    def __init__(self, command: list[str], relay: Relay, count: int, file: Path) -> None:
        options = {"--url": relay.url, "--count": count, "--threads": 4, "--ttl": TTL}
        arguments = [str(part) for pair in options.items() for part in pair]
        self.count = count
        self._file = file
        self._errors = file.with_suffix(".errors")
        with file.open("wb") as out, self._errors.open("wb") as errors:
            self.process = subprocess.Popen([*command, *arguments], stdout=out, stderr=errors)

    def ids(self) -> list[int]:
        """Returns what it has printed so far; a killed one leaves a part of a line."""
        lines = self._file.read_text().splitlines(keepends=True)
        return [int(line) for line in lines if line.endswith("\n")]

    def end(self, code: int = 0) -> list[int]:
        """Waits for its end, and returns its ids."""
        assert self.process.wait(120) == code, self.errors()
        ids = self.ids()
        assert (len(ids) == self.count) == (code == 0)
        return ids

    def errors(self) -> str:
        return self._errors.read_text()


def check(
    relay: Relay, runs: list[list[int]], tick_ms: int, node_shift: int, node_bits: int
) -> set[Term]:
    """Checks that no id repeats and each is in a lease, and returns which leases were used."""
    for ids in runs:
        assert len(set(ids)) == len(ids)
    seconds = [
        {
            (
                id >> node_shift & (1 << node_bits) - 1,
                ((id >> (22 if tick_ms == 1 else 24)) * tick_ms + EPOCH_MS) // 1000,
            )
            for id in ids
        }
        for ids in runs
    ]
    used = set().union(*seconds)
    # No second of a node id is stamped by two programs, and so no id of one is that of another.
    assert sum(map(len, seconds)) == len(used)
    last: dict[Term, int] = {}
    for node_id, second in used:
        (term,) = [
            term
            for term, end in relay.ends.items()
            # One that is over by now may have been followed by another.
            if term.node_id == node_id and term.start <= second < relay.used_until.get(term, end)
        ]
        last[term] = max(last.get(term, 0), second)
    for term, used_until in relay.used_until.items():
        assert used_until == (last[term] + 1 if term in last else term.start)
    return set(last)


@pytest.mark.parametrize("killed", ["go", "java"])
def test_no_id_repeats_beside_others_and_after_a_kill(
    killed: str, programs: dict[str, list[str]], tmp_path: Path
) -> None:
    count = 100_000
    with serving(tmp_path, TWITTER) as relay:
        endless = Run(programs[killed], relay, 10**9, tmp_path / "killed")
        others = [Run(programs[name], relay, count, tmp_path / name) for name in programs]
        while endless.process.poll() is None and len(endless.ids()) < count:
            time.sleep(0.02)
        endless.process.kill()
        endless.process.wait()
        others.append(Run(programs[killed], relay, count, tmp_path / "again"))
        ids = [*(run.end() for run in others), endless.ids()]
    assert sum(map(len, ids)) >= 4 * count
    used = check(relay, ids, tick_ms=1, node_shift=12, node_bits=10)
    assert len(used) == 4
    # All but the one that was killed.
    assert len(relay.used_until) == 3


@pytest.mark.parametrize("harm", ["answer is lost", "lease is lost"])
def test_ids_go_on_beyond_the_first_lease(
    harm: str, programs: dict[str, list[str]], tmp_path: Path
) -> None:
    with serving(tmp_path, SONYFLAKE) as relay:
        relay.harm = harm
        count = 25_600 * (TTL + 2)
        runs = [Run(programs[name], relay, count, tmp_path / name) for name in programs]
        ids = [run.end() for run in runs]
    used = check(relay, ids, tick_ms=10, node_shift=0, node_bits=16)
    # Each takes another lease in place of a lost one, and releases only the last.
    assert len(used) >= 4 if harm == "lease is lost" else len(used) == 2
    assert len(relay.used_until) == 2
    for tokens in relay.tokens.values():
        assert all(re.fullmatch("[0-9a-f]{32}", token) for token in tokens)
        # A renewal without an answer is repeated with its token, and each other one has its own.
        is_repeated = harm == "answer is lost"
        assert len(set(tokens)) == len(tokens) - is_repeated
        assert (tokens[:1] == tokens[1:2]) == is_repeated


def test_no_id_is_made_after_the_end_that_was_answered(
    programs: dict[str, list[str]], tmp_path: Path
) -> None:
    with serving(tmp_path, SONYFLAKE) as relay:
        relay.harm = "none arrive"
        count = 25_600 * 60
        runs = [Run(programs[name], relay, count, tmp_path / name) for name in programs]
        ids = [run.end(code=1) for run in runs]
    assert len(check(relay, ids, tick_ms=10, node_shift=0, node_bits=16)) == 2
    for run in runs:
        assert "no lease covers this second" in run.errors()
        # Errors have no lease in them, which is a secret.
        assert not [name for name in relay.terms if name.split(".")[0] in run.errors()]


def test_another_layout_is_refused(programs: dict[str, list[str]], tmp_path: Path) -> None:
    with serving(tmp_path, f"leaf,epoch_ms={EPOCH_MS}") as relay:
        for name in programs:
            run = Run(programs[name], relay, 1, tmp_path / name)
            assert run.end(code=1) == []
            assert "only for layouts" in run.errors()
    assert not relay.ends


def test_go_is_tidy_and_keeps_its_rules_if_the_clock_is_wrong() -> None:
    go = program("go", "golang-go")
    assert subprocess.check_output([program("gofmt", "golang-go"), "-l", GO]) == b""
    subprocess.run([go, "vet", "."], cwd=GO, check=True)
    subprocess.run([go, "test", "-count=1", "."], cwd=GO, check=True)


def test_java_keeps_its_rules_if_the_clock_is_wrong(tmp_path: Path) -> None:
    files = [shutil.copy(file, tmp_path) for file in JAVA.glob("*.java")]
    compiler = [program("javac", JDK), "-Xlint:all,-serial", "-Werror", "-encoding", "UTF-8"]
    subprocess.run([*compiler, "-d", tmp_path, *files], check=True)
    subprocess.run([program("java", JDK), "-cp", tmp_path, "SnowflakesTest"], check=True)
