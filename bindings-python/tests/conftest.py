"""What the tests share."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Random bytes, so that nothing warns; node ids of one process are bound to their secret.
SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"
OTHER_SECRET = "51f0c2b7684e9ad3e01b7c5538d26f94"

NOW = 1_763_640_000
"""What injected clocks show."""

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors"


def cases(file: str, key: str = "cases") -> list[Any]:
    """Returns the cases of a vector file as parameters that bear their names."""
    vectors = json.loads((VECTORS / file).read_text(encoding="utf-8"))[key]
    return [pytest.param(case, id=case["name"]) for case in vectors]


def named(value: object) -> str:
    """Names a parameter, the same in each run."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text


def run_python(code: str, *arguments: str) -> str:
    """Runs code in a process of its own and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


class ScriptedClock:
    """Shows the time it is told; a sleep passes at once."""

    def __init__(self, now: float = NOW) -> None:
        self.time = now
        self.sleeps: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.time += seconds
