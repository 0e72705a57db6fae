"""Counts instructions, which other programs on the machine do not change as they change times.

An id may cost 8 % more instructions than bounds.json says. `make instructions-bounds` writes what
is counted there: run it, and commit the result, where more instructions are worth it or fewer are
needed.
"""

import json
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOUNDS = Path(__file__).with_name("bounds.json")

IDS = {
    "generate": 131_072,
    "fill": 131_072,
    "inspect": 32_768,
    "inspect_many": 131_072,
    "snowflake": 262_144,
}
"""How many ids a count is taken over; multiples of 4096. Enough of Snowflake's that it does not
matter how many are made before it knows how fast the processor's counter is."""

ROOM = 1.08
"""By which factor an id may take more instructions than recorded."""

ROOM_FOR_TICKS = 1.4
"""The same for Snowflakes: the slower the machine, the more milliseconds begin in as many ids."""

ROOM_FOR_COMPILERS = 1.2
"""The same with another compiler than the recorded one: each has its own way."""

ROOM_FOR_A_LEASE = 1.03
"""By which factor an id of a leased generator may take more instructions than a manual one."""


def build() -> Path:
    """Builds the program, as the library is built for users."""
    host = subprocess.check_output(["rustc", "--print", "host-tuple"], text=True).strip()
    build = [
        *("cargo", "build", "--locked", "--release", "--quiet", "--message-format=json"),
        *("--target", host, "-p", "randflake-instructions"),
    ]
    output = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    programs = [Path(program) for program in re.findall(r'"executable":"([^"]+)"', output)]
    [program] = [program for program in programs if program.stem == "randflake-instructions"]
    return program


def compiler() -> str:
    """Returns the version of the compiler."""
    version = ["rustc", "--version"]
    return subprocess.run(version, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def valgrind(tool: str, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a program under valgrind."""
    return subprocess.run(
        ["valgrind", f"--tool={tool}", *command], check=True, capture_output=True, text=True
    )


def extension(program: Path) -> str:
    """Returns which instructions the cipher uses under valgrind, which knows no AVX-512."""
    return valgrind("none", "-q", program).stdout.strip()


def total(program: Path, case: str, ids: int) -> int:
    """Returns how many instructions the program runs."""
    counted = valgrind("callgrind", "--callgrind-out-file=/dev/null", program, case, str(ids))
    collected = re.search(r"Collected : (\d+)", counted.stderr)
    assert collected is not None, counted.stderr
    return int(collected[1])


def per_id(program: Path, case: str) -> float:
    """Returns how many instructions an id takes; what starting takes cancels out."""
    ids = IDS[case]
    return round((total(program, case, 2 * ids) - total(program, case, ids)) / ids, 2)


def too_many(counted: float, recorded: float, room: float) -> bool:
    return counted > room * recorded


def record() -> None:
    """Writes down what is counted now."""
    program = build()
    counts = {extension(program): {case: per_id(program, case) for case in IDS}}
    recorded = json.loads(BOUNDS.read_text(encoding="utf-8")) if BOUNDS.exists() else {}
    if recorded.get("rustc") == compiler().split()[1]:
        counts = recorded["per id"] | counts
    written = {"rustc": compiler().split()[1], "per id": counts}
    BOUNDS.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def program() -> Path:
    if shutil.which("valgrind") is None:
        message = "NO INSTRUCTIONS COUNTED: valgrind is missing (apt-get install valgrind)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return build()


@pytest.mark.parametrize("case", IDS)
def test_an_id_takes_no_more_instructions_than_recorded(program: Path, case: str) -> None:
    bounds = json.loads(BOUNDS.read_text(encoding="utf-8"))
    used = extension(program)
    if used not in bounds["per id"]:
        pytest.skip(f"NO INSTRUCTIONS COUNTED: no bounds for {used}; run make instructions-bounds")
    recorded = bounds["per id"][used][case]
    same_compiler = bounds["rustc"] == compiler().split()[1]
    counted = per_id(program, case)
    print(f"{case} with {used}: {counted} instructions; rustc {bounds['rustc']} had {recorded}")
    room = ROOM_FOR_TICKS if case == "snowflake" else ROOM
    assert not too_many(
        counted, recorded, room if same_compiler else max(room, ROOM_FOR_COMPILERS)
    ), "make it faster, or say why not in the commit and run make instructions-bounds"
    if same_compiler and too_many(recorded, counted, room):
        warnings.warn("far fewer than recorded: run make instructions-bounds", stacklevel=1)


def test_a_lease_costs_next_to_nothing(program: Path) -> None:
    bounds = json.loads(BOUNDS.read_text(encoding="utf-8"))
    same_compiler = bounds["rustc"] == compiler().split()[1]
    manual, leased = (per_id(program.with_name(name), "generate") for name in ("manual", "leased"))
    print(f"{leased} instructions with a lease, {manual} with manual node ids")
    assert not too_many(leased, manual, ROOM_FOR_A_LEASE if same_compiler else ROOM_FOR_COMPILERS)


def test_a_growth_of_a_tenth_is_too_many() -> None:
    assert too_many(110, 100, ROOM)
    assert not too_many(105, 100, ROOM)


if __name__ == "__main__":
    record()
