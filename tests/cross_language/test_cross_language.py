"""An id made in each language is read, to the same parts, in all of them."""

import os
import secrets
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# As `make test-rust` builds it: only the first of the two has to compile.
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
FEATURES = ["--features", WORKSPACE["metadata"]["features"]]
CARGO = ["cargo", "run", "--quiet", "--locked", "--profile", "test", *FEATURES]
LANGUAGES = {
    "python": [sys.executable, str(HERE / "exchange.py")],
    "node": ["node", str(HERE / "exchange.cjs")],
    "rust": [*CARGO, "--example", "exchange", "--"],
}
NODE_IDS = {"python": 1, "node": 2, "rust": 3}
SECRET = secrets.token_hex(16)
BEGUN = time.time()


def exchange(language: str, verb: str, given: str = "") -> str:
    """Runs one language's side."""
    environment = {**os.environ, "RANDFLAKE_SECRET": SECRET}
    command = [*LANGUAGES[language], verb]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, input=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """A thousand ids of each language, as `number text` lines."""
    return {language: exchange(language, "generate") for language in LANGUAGES}


@pytest.mark.parametrize("maker", LANGUAGES)
def test_every_language_reads_the_ids_of(maker: str, made: dict[str, str]) -> None:
    readings = {reader: exchange(reader, "inspect", made[maker]) for reader in LANGUAGES}
    assert readings["python"] == readings["node"] == readings["rust"]

    parts = [tuple(map(int, line.split())) for line in readings["python"].splitlines()]
    assert len(set(parts)) == len(parts) == 1000
    for timestamp, node_id, _ in parts:
        assert BEGUN - 1 < timestamp <= time.time()  # it may take minutes to compile one
        assert node_id == NODE_IDS[maker]


def test_no_id_is_made_twice(made: dict[str, str]) -> None:
    ids = [line for lines in made.values() for line in lines.splitlines()]
    assert len(set(ids)) == len(ids) == 3000
