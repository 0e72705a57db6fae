"""The packages under test runners, which load them again for each file of tests, or into realms."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import randflake
from randflake import list_leases

ROOT = Path(__file__).resolve().parents[2]
MODULES = Path(__file__).parent / "node_modules"
SECRET = "dffd6021bb2bd5b0af676290809ec3a5"

# What a file of tests of an application does: errors, changes of a lease, both ends.
FILE_OF_TESTS = """
HEAD
const store = process.env.RANDFLAKE_STORE

test('errors are of this file', async () => {
  expect(() => new Randflake(-1, 'x')).toThrow(RandflakeError)
  await expect(Randflake.leased('mysql://nobody')).rejects.toThrow(RandflakeError)
})

test('a lease is told, used and given back', async () => {
  const states = []
  const onLeaseChange = ({ state }) => states.push(state)
  const flake = await Randflake.leased({ namespace: 'FILE', onLeaseChange })
  expect(new Set(flake.generateMany(1000)).size).toBe(1000)
  await flake.closeAsync()
  const counts = await listLeases(store, { namespace: 'FILE' })
  expect(counts.held).toBe(0)
  while (states.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(states).toEqual(['holding', 'stopped'])
})

test('a lease is left for the end of the process', async () => {
  const flake = await Randflake.leased({ namespace: 'FILE' })
  expect(typeof flake.generate()).toBe('bigint')
  expect(process.listenerCount('exit')).toBeLessThan(20)
})
"""
REQUIRES = "const { listLeases, Randflake, RandflakeError } = require('randflake')"
IMPORTS = """import { expect, test } from 'vitest'
import { listLeases, Randflake, RandflakeError } from 'randflake'"""
HIDES = """// As jest 29 and the vm pools of vitest do with Node 20.
delete Symbol.dispose
delete Symbol.asyncDispose
"""

JEST = [str(MODULES / "jest" / "bin" / "jest.js"), "--config={}", "--rootDir=."]
VITEST = [str(MODULES / "vitest" / "vitest.mjs"), "run"]
RUNNERS = {
    "jest": (HIDES + REQUIRES, [*JEST, "--runInBand"]),
    "jest in workers": (HIDES + REQUIRES, [*JEST, "--maxWorkers=2", "--workerIdleMemoryLimit=2GB"]),
    "vitest with threads": (IMPORTS, [*VITEST, "--pool=threads"]),
    "vitest with forks": (IMPORTS, [*VITEST, "--pool=forks"]),
    "vitest with threads and realms": (IMPORTS, [*VITEST, "--pool=vmThreads"]),
    "vitest with forks and realms": (IMPORTS, [*VITEST, "--pool=vmForks"]),
    "vitest in one realm": (IMPORTS, [*VITEST, "--no-isolate", "--pool=threads"]),
}


def run(command: list[str], folder: Path) -> None:
    environment = os.environ | {
        "RANDFLAKE_STORE": str(folder / "ids.db"),
        "RANDFLAKE_SECRET": SECRET,
        "CI": "1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not MODULES.exists(), reason="needs target/setup/runners")
@pytest.mark.parametrize(("head", "command"), RUNNERS.values(), ids=RUNNERS)
def test_each_file_of_tests_of_node_has_a_package_that_works(
    tmp_path: Path, head: str, command: list[str]
) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "randflake").symlink_to(ROOT / "bindings-node")
    (tmp_path / "node_modules" / "vitest").symlink_to(MODULES / "vitest")
    ending = ".test.mjs" if head == IMPORTS else ".test.cjs"
    if head != IMPORTS:
        command = [*command, "--testMatch=**/*.test.cjs"]
    for name in ("one", "other", "third"):
        code = FILE_OF_TESTS.replace("HEAD", head).replace("FILE", name)
        (tmp_path / f"{name}{ending}").write_text(code, encoding="utf-8")
    run(["node", *command], tmp_path)


PYTHON_TESTS = """
import sys

import pytest
import randflake
from randflake import Inspector, Randflake, RandflakeError


def test_errors_are_of_this_file():
    with pytest.raises(RandflakeError):
        Inspector("?")


def test_a_program_that_reloads_catches_them_too():
    for name in [name for name in sys.modules if name.partition(".")[0] == "randflake"]:
        del sys.modules[name]
    import randflake as again

    assert again is randflake
    with pytest.raises(again.RandflakeError):
        Inspector("?")
    with pytest.raises(RandflakeError):
        again.Inspector("?")


def test_a_lease_is_left_for_the_end_of_the_process():
    global flake
    flake = Randflake.leased(namespace=__name__)
    flake.generate()
"""


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_each_file_of_tests_of_python_has_a_package_that_works(tmp_path: Path, mode: str) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"test_{folder}.py").write_text(PYTHON_TESTS, encoding="utf-8")
    run([sys.executable, "-m", "pytest", "-q", f"--import-mode={mode}", "."], tmp_path)
    held = [list_leases(tmp_path / "ids.db", namespace=name).held for name in names(mode)]
    assert held == [0, 0]


def names(mode: str) -> list[str]:
    """The names of those two modules."""
    if mode == "prepend":
        return ["test_one", "test_other"]
    return ["one.test_one", "other.test_other"]


def test_a_package_in_an_archive_is_refused_clearly(tmp_path: Path) -> None:
    shutil.make_archive(
        str(tmp_path / "all"), "zip", Path(randflake.__file__).parents[1], "randflake"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'all.zip')!r}); import randflake"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "randflake has native code, which no archive can hold" in last
