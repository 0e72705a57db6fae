"""The command `randflake` of cargo, of pip and of npm: one command, to the byte."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import servers

ROOT = Path(__file__).resolve().parents[2]
CARGO = ROOT / "target" / os.environ.get("CARGO_BUILD_TARGET", "") / "debug" / "randflake"
COMMANDS: dict[str, list[str]] = {
    "cargo": [str(CARGO)],
    "pip": [str(Path(sys.executable).parent / "randflake")],
    "python -m": [sys.executable, "-m", "randflake"],
    "npm": ["node", str(ROOT / "bindings-node" / "command.js")],
}
SECRET = "dffd6021bb2bd5b0af676290809ec3a5"
HELP = (ROOT / "cli" / "tests" / "help.txt").read_text(encoding="utf-8")

# All on one line each, and the input: what is printed is the same today and tomorrow.
SAME = {
    "a table": ("inspect 3vgoe12ccb8gh -6187568801575574419 1733706297", ""),
    "JSON": ("inspect --json 3vgoe12ccb8gh", ""),
    "the input": ("inspect --json", "3vgoe12ccb8gh\n\nxyz!\n4594531474933654033\n"),
    "a layout": ("inspect --layout twitter 1541815603606036480", ""),
    "text": ("text", "4594531474933654033\n-6187568801575574419\nxyz!\n"),
    "numbers": ("number 3vgoe12ccb8gh ak8amul3cop3d 4594531474933654033", ""),
    "functions of PostgreSQL": ("sql --dialect postgres", ""),
    "functions of MySQL": ("sql --dialect mysql", ""),
    "completions for bash": ("completions bash", ""),
    "completions for an unknown shell": ("completions cmd", ""),
    "no file": ("inspect --secret-file none 1", ""),
    "no store": ("generate", ""),
    "an unknown store": ("generate --store mongodb://app:password@host/app", ""),
    "no such directory": ("generate --store none/ids.db --acquire-timeout 0", ""),
    "a secret": ("inspect --secret 00112233445566778899aabbccddeeff 1", ""),
    "a typing error": ("generat", ""),
    "a node id": ("generate --node 131072", ""),
    "a file without leases": ("lease list --store ids.db", ""),
    "a file without counters": ("tickets show orders --store ids.db", ""),
    "no consent": ("tickets fence orders --above 7 --store ids.db", ""),
    "the version": ("--version", ""),
}

pytestmark = pytest.mark.usefixtures("built")


class Done(NamedTuple):
    """What a process has left behind."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def built() -> None:
    # For its own tests, as `make test-rust` does: `cargo build` would compile all it needs again.
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    features = manifest["workspace"]["metadata"]["features"]
    build = ["cargo", "test", "--quiet", "--locked", "--features", features, "--no-run"]
    subprocess.run([*build, "--test", "command"], cwd=ROOT, check=True)


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> list[str]:
    return COMMANDS[request.param]


HOSTILE: dict[str, str] = {}
"""More variables, which must not matter."""


def environment(store: str | None) -> dict[str, str]:
    dropped = {"RANDFLAKE_STORE", "NO_COLOR"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    kept |= {"RANDFLAKE_SECRET": SECRET, "TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}
    kept |= HOSTILE
    return kept if store is None else kept | {"RANDFLAKE_STORE": store}


def run(
    command: list[str], arguments: str, cwd: Path, given: str = "", store: str | None = None
) -> Done:
    done = subprocess.run(
        [*command, *arguments.split()],
        cwd=cwd,
        env=environment(store),
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def succeed(
    command: list[str], arguments: str, cwd: Path, given: str = "", store: str | None = None
) -> str:
    done = run(command, arguments, cwd, given, store)
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout


@pytest.mark.parametrize("command", ["pip", "npm"], indirect=True)
def test_the_help_is_the_same(command: list[str], tmp_path: Path) -> None:
    printed = ""
    for line in HELP.splitlines():
        if line.startswith("$ randflake "):
            arguments = line.removeprefix("$ randflake ")
            printed += f"{line}\n{succeed(command, arguments, tmp_path)}\n"
    assert printed == HELP


@pytest.mark.parametrize("case", SAME)
def test_what_is_said_is_the_same(case: str, tmp_path: Path) -> None:
    arguments, given = SAME[case]
    said = {name: run(command, arguments, tmp_path, given) for name, command in COMMANDS.items()}
    for name, done in said.items():
        assert done == said["cargo"], name


def test_each_reads_what_the_others_make(tmp_path: Path) -> None:
    made = [
        succeed(command, f"generate -n 100 --store ids.db --format {form}", tmp_path)
        for command in COMMANDS.values()
        for form in ("int", "string")
    ]
    ids = "".join(made)
    readings = {succeed(command, "inspect --json", tmp_path, ids) for command in COMMANDS.values()}
    assert len(readings) == 1
    numbers = [json.loads(line)["id"] for line in readings.pop().splitlines()]
    assert len(set(numbers)) == len(numbers) == 100 * len(made)


@pytest.mark.parametrize("command", ["pip", "npm"], indirect=True)
def test_a_million_ids_are_made_at_once(command: list[str], tmp_path: Path) -> None:
    ids = succeed(command, "generate -n 1000000 --store ids.db", tmp_path).splitlines()
    assert len(set(ids)) == 1_000_000


@contextlib.contextmanager
def generating(
    command: list[str], arguments: str, cwd: Path, store: str | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that makes ids for longer than any test takes, and has made the first."""
    with subprocess.Popen(
        [*command, "generate", "-n", "1000000000", *arguments.split()],
        cwd=cwd,
        env=environment(store),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell that runs these tests in the background has it ignored, in all its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            assert process.stdout is not None
            assert int(process.stdout.readline())
            yield process
        finally:
            process.kill()


def test_a_reader_that_stops_is_no_error(command: list[str], tmp_path: Path) -> None:
    with generating(command, "--store ids.db", tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_ctrl_c_ends_a_long_run(command: list[str], tmp_path: Path) -> None:
    with generating(command, "--store ids.db", tmp_path) as process:
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        # What shells make 130 of. It waits for no pipe that is full.
        assert process.wait(timeout=300) == -signal.SIGINT
        assert process.stderr.read() == b""


def on_a_terminal(arguments: str, cwd: Path, typed: str = "", **variables: str) -> tuple[int, str]:
    """Runs the command with a terminal for its input and its errors, and for its output."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMANDS["cargo"], *arguments.split()],
        cwd=cwd,
        env=environment(None) | {"TERM": "xterm"} | variables,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        seen = b""
        # Linux says so when the other side is closed.
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 4096):
                seen += chunk
    os.close(ours)
    return process.returncode, seen.decode().replace("\r\n", "\n")


def test_colours_are_for_terminals(tmp_path: Path) -> None:
    inspect = "inspect 3vgoe12ccb8gh xyz!"
    code, seen = on_a_terminal(inspect, tmp_path)
    assert code == 1
    assert seen.count("\x1b[1m") == seen.count("\x1b[31m") == 1
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, seen = on_a_terminal(inspect, tmp_path, **plain)
        assert (code, "\x1b" in seen) == (1, False), plain
    assert "\x1b" not in run(COMMANDS["cargo"], inspect, tmp_path).stdout


def test_a_terminal_is_asked(tmp_path: Path) -> None:
    succeed(COMMANDS["cargo"], "generate --store ids.db", tmp_path)
    for typed, code, says in [
        ("\n", 1, "nothing was done"),
        ("no\n", 1, "nothing was done"),
        ("Y\n", 0, "nothing is granted until "),
        ("yes\n", 0, "nothing is granted until "),
    ]:
        seen = on_a_terminal("lease fence --store ids.db", tmp_path, typed)
        assert (seen[0], says in seen[1], "continue? [y/N]" in seen[1]) == (code, True, True), seen


@pytest.fixture(scope="module", params=servers.STARTERS)
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server, with its password."""
    # Not below pytest's own folder: another run closes that one to PostgreSQL's user.
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.STARTERS[request.param](Path(folder)) as server,
    ):
        yield server.url()


def place_of(store: str) -> str:
    """The URL of a server without its password."""
    return re.sub(":[^:@/]*@", "@", store).replace("://@", "://")


def listed(command: list[str], cwd: Path, store: str) -> Any:
    """What the command lists, but for what changes by the second."""
    listing = json.loads(succeed(command, "lease list --json", cwd, store=store))
    del listing["now"]
    for node in listing["nodes"]:
        del node["seconds_left"]
    return listing


def test_each_looks_after_a_store_with_a_server(store: str, tmp_path: Path) -> None:
    for name in ("pip", "npm", "cargo"):
        done = run(COMMANDS[name], "lease list", tmp_path, store=store)
        if name == "pip":
            assert done.stderr.startswith("randflake: STORE_NOT_INITIALIZED: "), done
        outcome = "is ready" if name == "pip" else "exists, unchanged"
        said = f'namespace "default" in {place_of(store)} {outcome}\n'
        # Then it may say what a role needs.
        assert succeed(COMMANDS[name], "lease init --new", tmp_path, store=store).startswith(said)

    ids = [
        succeed(COMMANDS[name], "generate -n 100", tmp_path, store=store)
        for name in ("pip", "npm", "cargo")
    ]
    assert len(set("".join(ids).split())) == 300

    for name in ("pip", "npm", "cargo"):
        command = COMMANDS[name]
        with generating(command, "", tmp_path, store) as process:
            note = f":{process.pid}"
        (held,) = [
            node
            for node in listed(command, tmp_path, store)["nodes"]
            if node["state"] == "held" and node["note"].endswith(note)
        ]
        release = f"lease release {held['node_id']} --holder {held['note']}"
        refused = run(command, release, tmp_path, store=store)
        assert (refused.code, refused.stdout) == (2, ""), refused
        released = run(command, f"{release} --yes", tmp_path, store=store)
        assert released.code == 0, released
        shown = succeed(command, f"lease inspect --json {held['node_id']}", tmp_path, store=store)
        (node,) = json.loads(shown)["nodes"]
        assert not node["held"]
        assert node["end_exclusive"] < held["end_exclusive"]

    # What is free in one second may be over in the next, and is never held again.
    listings = [listed(COMMANDS[name], tmp_path, store) for name in ("pip", "npm", "cargo")]
    for listing in listings:
        del listing["counts"]
    assert listings[0] == listings[1] == listings[2]

    for name in ("pip", "npm", "cargo"):
        before = int(time.time())
        fenced = run(COMMANDS[name], "lease fence --yes", tmp_path, store=store)
        assert fenced.code == 0, fenced
        assert fenced.stdout.startswith("nothing is granted until "), fenced
        assert listed(COMMANDS[name], tmp_path, store)["floor"] >= before + 300
        text = succeed(COMMANDS[name], "lease list", tmp_path, store=store)
        assert "quarantine: nothing is granted for " in text
        assert max(map(len, text.splitlines())) <= 80


def test_each_looks_after_the_counters_of_a_store_with_a_server(store: str, tmp_path: Path) -> None:
    for name in ("pip", "npm", "cargo"):
        command = COMMANDS[name]
        if name == "pip":
            done = run(command, "tickets show orders", tmp_path, store=store)
            assert done.stderr.startswith("randflake: STORE_NOT_INITIALIZED: "), done
        outcome = "is ready" if name == "pip" else "exists, unchanged"
        said = f'namespace "tickets" in {place_of(store)} {outcome}\n'
        assert succeed(command, "tickets init --new", tmp_path, store=store).startswith(said)

    for number, name in enumerate(("pip", "npm", "cargo"), 1):
        above = 10_000 * number
        fence = f"tickets fence orders --above {above} --yes"
        fenced = run(COMMANDS[name], fence, tmp_path, store=store)
        assert fenced.code == 0, fenced
        assert fenced.stdout == f'the next number of counter "orders" is {above + 1}\n'
        shown = {
            succeed(command, "tickets show orders --json", tmp_path, store=store)
            for command in COMMANDS.values()
        }
        (counter,) = map(json.loads, shown)
        listed_by = {
            succeed(command, "tickets list --json", tmp_path, store=store)
            for command in COMMANDS.values()
        }
        assert [*map(json.loads, listed_by)] == [{"counters": [counter]}]
        assert (counter["next"], counter["must_be_fenced"]) == (above + 1, False)

    # As after a restored backup. In Redis, a counter is not fenced again right after that.
    for name in ("pip", "npm", "cargo"):
        fence = "lease fence --namespace tickets --yes"
        fenced = run(COMMANDS[name], fence, tmp_path, store=store)
        assert fenced.code == 0, fenced
        text = succeed(COMMANDS[name], "tickets show orders", tmp_path, store=store)
        assert "nothing is drawn until" in text


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_no_environment_moves_a_store(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these moved it, or its tables, with some client."""
    hostile = {
        "PGHOST": "nowhere.invalid",
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGUSER": "nobody",
        "PGDATABASE": "template1",
        "PGOPTIONS": "-c search_path=pg_temp",
        "PGTARGETSESSIONATTRS": "standby",
        "PGLOADBALANCEHOSTS": "random",
    }
    for name in COMMANDS:
        succeed(COMMANDS[name], "lease init --new", tmp_path, store=store)

    def leases(name: str) -> list[Any]:
        """What a store has, without what changes as time passes."""
        status = listed(COMMANDS[name], tmp_path, store)
        nodes = [(each["node_id"], each["start"], each["note"]) for each in status["nodes"]]
        return [status["limits"], status["floor"], *nodes]

    before = leases("cargo")
    for name, value in hostile.items():
        monkeypatch.setitem(HOSTILE, name, value)
    for name in COMMANDS:
        said = succeed(COMMANDS[name], "lease init --new", tmp_path, store=store)
        assert said == f'namespace "default" in {place_of(store)} exists, unchanged\n'
        assert leases(name) == before, name


@pytest.mark.parametrize("store", ["redis"], indirect=True)
def test_a_number_of_redis_is_the_same_in_each(store: str, tmp_path: Path) -> None:
    third = store.removesuffix("/0") + "/3"
    for name in COMMANDS:
        ready = succeed(COMMANDS[name], "lease init --new --max-ttl 120", tmp_path, store=third)
        assert "/3 " in ready, ready
        assert listed(COMMANDS[name], tmp_path, third)["limits"]["max_ttl"] == 120
        none = run(COMMANDS[name], "lease list", tmp_path, store=store.removesuffix("/0") + "/99")
        assert (none.code, none.stdout) == (1, ""), none


@pytest.mark.parametrize("store", ["postgres", "redis"], indirect=True)
def test_no_password_is_said(store: str, command: list[str], tmp_path: Path) -> None:
    wrong = store.replace(servers.PASSWORD, "not-the-password")
    done = run(command, "lease list", tmp_path, store=wrong)
    assert (done.code, done.stdout) == (1, ""), done
    assert done.stderr.startswith("randflake: STORE_UNAVAILABLE: "), done
    assert "not-the-password" not in done.stderr
