#!/usr/bin/env python3
"""Shows that tests catch the bugs they are there for: each mutant breaks one line of the product.

    tests/mutants/run.py loom                the loom tests of the core
    tests/mutants/run.py simulation          the simulation of the whole system
    tests/mutants/run.py loom --all          every mutant, not only those of files that have changed
    tests/mutants/run.py simulation --only WORD [--others]
                                             those with this word in their name, and which other
                                             tests of the crates notice them

First the tests run as they are. Then, in a copy of the workspace, each mutant has to make one
fail. `caught.json` has a digest for each file: of the file, its mutants and the tests, when all its
mutants were last caught. The mutants of a file are run if that has changed, and the digest is
written anew: commit it. In any case, the line of each mutant has to be there exactly once.

A mutant fails this program if it survives, if it does not compile, or if its test does not end,
since that names no bug, and is what a slow machine looks like too.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import loom
import simulation

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORD = HERE / "caught.json"
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]

# For one build and its tests. It only guards against hanging.
SECONDS = 1800
# So many seeds of the simulation are run until one fails.
SEEDS = 10_000


class Mutant(NamedTuple):
    """A bug: in `file`, `old` becomes `new`, and `test` has to fail."""

    name: str
    file: str
    old: str
    new: str
    test: str = ""


class Suite(NamedTuple):
    """Tests, and the mutants that they have to catch."""

    mutants: list[Mutant]
    tests: list[str]
    """The files of the tests."""
    unmutated: Callable[[], bool]
    """Runs the tests as they are, in the workspace, and returns whether they pass."""
    notices: Callable[[Path, Mutant], tuple[str, str]]
    """Runs them on a mutated copy: how a test has failed, if it has, and what was printed."""


# --- the loom tests of the core ------------------------------------------------

LOOM = ["test", "--locked", "-p", "randflake", "--lib"]
LOOM_FLAGS = {"RUSTFLAGS": "--cfg loom"}


def loom_unmutated() -> bool:
    command = [*LOOM, "--target-dir", str(ROOT / "target/loom"), "loom_tests"]
    return "test result: ok" in cargo(ROOT, command, LOOM_FLAGS, show=True)


def loom_notices(copy: Path, mutant: Mutant) -> tuple[str, str]:
    # Only what is copied is built there: cargo would take it for the crates themselves.
    folder = ["--target-dir", str(ROOT / "target/mutants/loom")]
    output = cargo(copy, [*LOOM, *folder, f"loom_tests::{mutant.test}"], LOOM_FLAGS)
    return mutant.test if "test result: FAILED" in output else "", output


# --- the simulation of the whole system ----------------------------------------

SIMULATION = ["--lib", "--", "--ignored", "--exact", "--nocapture", "simulation::many_seeds"]


def seeds(count: int) -> dict[str, str]:
    return {"SEEDS": str(count), "SEED": "", "FIRST": ""}


def simulation_unmutated() -> bool:
    # Of all crates with these features, as `make test-rust` has built them.
    features = ["--features", WORKSPACE["metadata"]["features"]]
    output = cargo(ROOT, ["test", "--locked", *features, *SIMULATION], seeds(300), show=True)
    return output.count("1 passed") == 2 and "FAILED" not in output


def simulation_notices(copy: Path, mutant: Mutant) -> tuple[str, str]:
    output = ""
    # Those of counters first, which take less time.
    for package in ["randflake-tickets", "randflake-leases"]:
        if package == "randflake-leases" and mutant.file.startswith("tickets/"):
            continue
        command = ["test", "--locked", "--target-dir", str(ROOT / "target/mutants/simulation")]
        command += ["-p", package, "--no-default-features", *SIMULATION]
        output = cargo(copy, command, seeds(SEEDS))
        failed = re.search(r"seeds \[([\d, ]+)\] failed", output)
        why = re.search(r"panicked at .*\n(.*)", output)
        if failed:
            return f"seed {failed[1]}: {why[1][:90] if why else ''}", output
    return "", output


# Which other tests a mutant is shown to.
OTHERS = [
    ["-p", "randflake-leases", "--lib", "--", "--skip", "simulation"],
    ["-p", "randflake-tickets", "--lib", "--", "--skip", "simulation"],
    ["-p", "randflake-leases", "--test", "keeper", "--test", "memory",
     "--test", "sqlite"],
    ["-p", "randflake-leases", "--test", "leased", "--test", "leased_processes"],
    ["-p", "randflake"],
]  # fmt: skip


def show_others(copy: Path) -> None:
    for other in OTHERS:
        folder = ["--target-dir", str(ROOT / "target/mutants/others")]
        command = ["test", "--locked", *folder, *other]
        output = cargo(copy, command, {})
        # Tests that start processes name what failed in their own way.
        failed = r"^(?:test .* \.\.\. FAILED|error: test failed.*)"
        failures = re.findall(failed, output, re.MULTILINE)
        built = "test result" in output
        print(f"         {' '.join(other)}: {failures if built else output[-800:]}", flush=True)


# --- both -----------------------------------------------------------------------

SUITES = {
    "loom": Suite(
        [Mutant(*mutant) for mutant in loom.MUTANTS],
        ["core/src/generator/loom_tests.rs"],
        loom_unmutated,
        loom_notices,
    ),
    "simulation": Suite(
        [Mutant(*mutant) for mutant in simulation.MUTANTS],
        ["tests/simulation"],
        simulation_unmutated,
        simulation_notices,
    ),
}


def cargo(
    folder: Path, arguments: list[str], environment: dict[str, str], *, show: bool = False
) -> str:
    """Runs cargo in a folder, and returns what it prints."""
    # A copy is built again for each mutant, of which most is the same.
    incremental = {} if folder == ROOT else {"CARGO_INCREMENTAL": "1"}
    child = subprocess.Popen(
        ["cargo", *arguments],
        cwd=folder,
        env={**os.environ, "RUST_BACKTRACE": "0", **incremental, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    try:
        output: str = child.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        output = f"no end after {SECONDS} seconds"
    finally:
        if child.poll() is None:
            # All of the group: cargo does not take with it what it started.
            os.killpg(child.pid, signal.SIGKILL)
    if show:
        print(output, flush=True)
    return output


def digest(suite: Suite, file: str) -> str:
    """Returns the state of a file, its mutants and the tests."""
    parts = [(ROOT / file).read_bytes()]
    parts += [repr(mutant).encode() for mutant in suite.mutants if mutant.file == file]
    for test in suite.tests:
        path = ROOT / test
        parts += [
            it.read_bytes() for it in ([path] if path.is_file() else sorted(path.glob("**/*.rs")))
        ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def stale(suite: Suite) -> list[str]:
    """Returns the mutants whose line is not there exactly once."""
    return [
        f"stale    {mutant.name}: its line is not in {mutant.file} exactly once"
        for mutant in suite.mutants
        if (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) != 1
    ]


def changed(name: str) -> list[str]:
    """Returns the files whose mutants have to be run."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))[name]
    files = dict.fromkeys(mutant.file for mutant in SUITES[name].mutants)
    return [file for file in files if recorded.get(file) != digest(SUITES[name], file)]


def record(name: str, files: list[str]) -> None:
    """Notes that all mutants of these files were caught."""
    everything = json.loads(RECORD.read_text(encoding="utf-8"))
    suite = SUITES[name]
    mutated = {mutant.file for mutant in suite.mutants}
    kept = {file: text for file, text in everything[name].items() if file in mutated}
    everything[name] = dict(sorted({**kept, **{it: digest(suite, it) for it in files}}.items()))
    RECORD.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")


def copy_of_the_workspace(name: str) -> Path:
    """Copies what cargo needs to test the crates."""
    copy = ROOT / "target" / "mutants" / name / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    skipped = shutil.ignore_patterns("node_modules")
    for member in WORKSPACE["members"]:
        # With new times: cargo must not take what it built of an earlier copy for this one.
        shutil.copytree(ROOT / member, copy / member, ignore=skipped, copy_function=shutil.copy)
    # What is not a member, and what those include.
    shutil.copytree(ROOT / "tests/simulation", copy / "tests/simulation")
    for file in ["Cargo.toml", "Cargo.lock", "README.md"]:
        shutil.copy(ROOT / file, copy)
    return copy


def survivors(name: str, mutants: list[Mutant], *, others: bool) -> set[str]:
    """Runs mutants, and returns the files of those that survive."""
    copy = copy_of_the_workspace(name)
    survived = set()
    for mutant in mutants:
        path = copy / mutant.file
        source = path.read_text(encoding="utf-8")
        path.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        how, output = SUITES[name].notices(copy, mutant)
        if how:
            print(f"caught   {mutant.name}, by {how}", flush=True)
        else:
            print(f"SURVIVED {mutant.name}\n{output[-2000:]}", flush=True)
            survived.add(mutant.file)
        if others:
            show_others(copy)
        path.write_text(source, encoding="utf-8")
    return survived


def main() -> int:
    parser = argparse.ArgumentParser(description="Shows that tests catch mutants.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--all", action="store_true", help="run all mutants")
    parser.add_argument("--only", help="run the mutants whose name has this word")
    parser.add_argument("--others", action="store_true", help="show which other tests notice")
    options = parser.parse_args()
    suite = SUITES[options.suite]

    print("\n".join(missing := stale(suite)))
    if missing:
        return 1
    if options.only is None and not suite.unmutated():
        print("the tests fail without any mutant")
        return 1
    files = list(dict.fromkeys(it.file for it in suite.mutants))
    if options.only is None and not options.all:
        files = changed(options.suite)
    mutants = [it for it in suite.mutants if it.file in files and (options.only or "") in it.name]
    if not mutants:
        print(f"caught before, and nothing has changed: all {len(suite.mutants)} mutants")
        return 0
    survived = survivors(options.suite, mutants, others=options.others)
    if options.only is None:
        record(options.suite, [file for file in files if file not in survived])
    print(f"mutants run: {len(mutants)} of {len(suite.mutants)}; survived: {sorted(survived)}")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
