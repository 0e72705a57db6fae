"""Runs the tests of the bindings on Bun, on Deno and on PyPy.

A test that cannot hold on Bun or Deno is skipped beside its name, with what they do otherwise, by
`bindings-node/test/runtime.js`. Tests that need a server run on Node.js and CPython.
"""

from pathlib import Path

import pytest
from test_artifacts import OTHERS, ROOT, SID, needs, run

BINDING = ROOT / "bindings-node"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WITH_SERVERS = MAKEFILE.split("SLOW_NODE_TESTS = ")[1].splitlines()[0].split()
NODE_TESTS = sorted(
    file.relative_to(BINDING)
    for file in (BINDING / "test").glob("*.test.*js")
    if file.name.split(".")[0] not in WITH_SERVERS
)
RUNNERS = {
    # Its own limit is 5 seconds for each test.
    "Bun": [str(OTHERS / "bun"), "test", "--timeout", "600000"],
    "Deno": [str(OTHERS / "deno"), "test", "--allow-all", "--no-check", "--quiet"],
}
# Those that neither need packages without a wheel for PyPy, such as numpy, nor what PyPy has
# otherwise: pickles, `__qualname__` and `__dict__` of classes that are not written in Python.
PYPY_TESTS = ["boundary", "copies", "leased_changes", "leased_processes", "text_form", "v2"]


@pytest.mark.parametrize("file", NODE_TESTS, ids=lambda file: file.name.split(".")[0])
@pytest.mark.parametrize("runtime", RUNNERS)
def test_node_package(runtime: str, file: Path) -> None:
    needs(RUNNERS[runtime][:1])
    run(*RUNNERS[runtime], file, cwd=BINDING)


def test_python_package_on_pypy(tmp_path: Path) -> None:
    pypy = [*SID, "pypy3"]
    needs(pypy)
    maturin = ROOT / ".venv" / "bin" / "maturin"
    manifest = ROOT / "bindings-python" / "Cargo.toml"
    build = [*SID, str(maturin), "build", "--locked", "--quiet", "--profile", "dev"]
    run(*build, "--interpreter", "pypy3", "--manifest-path", manifest, "--out", tmp_path, cwd=ROOT)
    run(*pypy, "-m", "venv", "venv", cwd=tmp_path)
    python = [*SID, str(tmp_path / "venv" / "bin" / "python")]
    # Nothing is compiled: packages without a wheel are taken in an older version.
    pip = [
        *python,
        *["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--only-binary=:all:"],
    ]
    run(*pip, "pytest", "hypothesis", next(tmp_path.glob("*.whl")), cwd=tmp_path)
    files = [f"test_{name}.py" for name in PYPY_TESTS]
    tests = ROOT / "bindings-python" / "tests"
    run(*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, cwd=tests)
