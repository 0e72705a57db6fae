"""Runs every code block of every README.

- `python` blocks run in a process of their own, in an empty folder, with the package that is
  installed beside pytest.
- `js`, `mjs`, `cjs`, `javascript` and `ts` blocks likewise, where `randflake` is the package built
  in `bindings-node`, beside a SQLite. A block with an `import` at the start of a line is an ES
  module.
- `sh` blocks run in the root of one copy of the repository, in order, with an empty virtual
  environment activated.
- `rust` blocks are run by rustdoc, so the crate has to include the README.
- A `text` block right below is what the block prints; `…` in it stands for anything in one line.

A block stands alone: it sees nothing of the ones before it, but for files that `sh` blocks made.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from blocks import ROOT, Block, blocks_in, blocks_of, prints, readmes, repository_files

PYTHON = {"python"}
NODE = {"js", "javascript", "mjs", "cjs", "ts", "typescript"}
SHELL = {"sh", "bash"}
RUST = {"rust"}
NOT_CODE = {"text", "json", "toml", "yaml", "sql", "diff"}

# Lines of `sh` blocks that are not run again, and what runs them or stands for them.
RUN_ELSEWHERE = {
    r"git clone \S+( \S+)?": "the copy of the repository is the clone",
    r"cd randflake": "the copy of the repository is the clone",
    r"make test": "these tests are part of it",
    r"make test-[a-z]+": "a part of `make test`",
    r"make lint": "checked before the tests by .ci/run",
    r"make bench": "takes minutes, and judges a machine, not the code",
    r"make fuzz( SECONDS=\d+)?": "`make test` runs the same script for seconds",
}

BLOCKS = [block for readme in readmes() for block in blocks_of(readme)]

# The crates whose documentation tests `make test-core` runs; core's own source folder.
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
TESTED_CRATES = WORKSPACE["default-members"]
LEASES = Path("leases/src")

# What examples of Node.js keep ids in: Node.js 20 has no SQLite of its own.
DATABASE = "node-sqlite3-wasm"

# A secret for the examples that read one, as they should, from their environment.
SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"


def of(languages: set[str]) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def run(
    command: list[str],
    cwd: Path,
    *,
    seconds: int | None = 300,
    environment: dict[str, str] | None = None,
) -> str:
    """Runs a command and returns what it printed; fails with all of it."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "RANDFLAKE_SECRET": SECRET, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, (
        f"exit status {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    )
    return done.stdout


def check_output(block: Block, printed: str) -> None:
    if block.output is not None:
        assert prints(block.output, printed), (
            f"{block} claims\n{block.output}\nbut prints\n{printed}"
        )


@pytest.mark.parametrize("block", of(PYTHON), ids=str)
def test_python_block_runs(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(block.code, encoding="utf-8")
    check_output(block, run([sys.executable, str(script)], tmp_path))


@pytest.mark.parametrize("block", of(NODE), ids=str)
def test_node_block_runs(block: Block, tmp_path: Path) -> None:
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "randflake").symlink_to(ROOT / "bindings-node", target_is_directory=True)
    installed = ROOT / "bindings-node" / "node_modules"
    (modules / DATABASE).symlink_to(installed / DATABASE, target_is_directory=True)
    module = re.search(r"^(import|export)\b", block.code, re.MULTILINE) is not None
    if block.language in {"ts", "typescript"}:
        if (installed / "@types").is_dir():
            (modules / "@types").symlink_to(installed / "@types", target_is_directory=True)
        source = tmp_path / ("example.mts" if module else "example.cts")
        source.write_text(block.code, encoding="utf-8")
        compiler = [str(installed / ".bin" / "tsc"), "--strict", "--module", "nodenext"]
        run([*compiler, "--target", "es2022", source.name], tmp_path)
    script = tmp_path / ("example.mjs" if module else "example.cjs")
    if block.language not in {"ts", "typescript"}:
        script.write_text(block.code, encoding="utf-8")
    check_output(block, run(["node", script.name], tmp_path))


@pytest.mark.parametrize("block", of(RUST), ids=str)
def test_rust_block_is_run_by_rustdoc(block: Block) -> None:
    # A crate of the tested ones takes its own README, and leases, which sees both, every other.
    own = block.readme.parent / "src"
    crate = own if (ROOT / own / "lib.rs").exists() and own.parts[0] in TESTED_CRATES else LEASES
    path = os.path.relpath(ROOT / block.readme, ROOT / crate)
    source = (ROOT / crate / "lib.rs").read_text(encoding="utf-8")
    assert re.search(rf'doctest.*?include_str!\("{re.escape(path)}"\)', source, re.DOTALL), (
        f'{crate}/lib.rs does not include_str!("{path}") under cfg(doctest)'
    )


def lines_to_run(code: str) -> list[str]:
    """Returns the lines of a `sh` block that nothing else runs."""
    return [
        line
        for line in code.splitlines()
        if not any(
            re.fullmatch(pattern, line.partition(" #")[0].strip()) for pattern in RUN_ELSEWHERE
        )
    ]


@pytest.fixture(scope="session")
def clone() -> Iterator[Path]:
    """A new clone with the changes of the working tree, and an empty virtual environment."""
    with tempfile.TemporaryDirectory(prefix="randflake-clone-") as folder:
        copy = Path(folder) / "randflake"
        for path in repository_files():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
        run([sys.executable, "-m", "venv", str(Path(folder) / "venv")], copy)
        yield copy


@pytest.mark.parametrize("block", of(SHELL), ids=str)
def test_shell_block_runs(block: Block, clone: Path) -> None:
    code = "\n".join(lines_to_run(block.code))
    activated = clone.parent / "venv"
    environment = {
        "VIRTUAL_ENV": str(activated),
        "PATH": f"{activated / 'bin'}{os.pathsep}{os.environ['PATH']}",
        # Kept between runs: only the first has to compile what the packages depend on.
        "CARGO_TARGET_DIR": str(ROOT / "target" / "clone"),
    }
    printed = run(
        ["bash", "-euo", "pipefail", "-c", code], clone, seconds=None, environment=environment
    )
    check_output(block, printed)


@pytest.mark.parametrize("readme", readmes(), ids=str)
def test_every_block_has_a_runner(readme: Path) -> None:
    known = PYTHON | NODE | SHELL | RUST | NOT_CODE
    strangers = [str(block) for block in blocks_of(readme) if block.language not in known]
    assert not strangers, f"blocks in a language that nothing runs, or in none: {strangers}"


def test_blocks_are_found_with_their_output() -> None:
    text = (
        "# A\n```python\nprint(1)\n```\n\n```text\n1\n```\n"
        "* item\n  ~~~sh\n  ```\n  ~~~\nwords\n```text\nnot output\n```\n"
    )
    found = [(b.line, b.language, b.code, b.output) for b in blocks_in(Path("README.md"), text)]
    assert found == [
        (2, "python", "print(1)\n", "1\n"),
        (10, "sh", "```\n", None),
        (14, "text", "not output\n", None),
    ]


def test_output_is_compared_but_for_what_varies() -> None:
    assert prints("a …, 1\nb\n", "a 12 3, 1\nb\n")
    assert not prints("a …\n", "a\nb\n")
    assert not prints("a.c\n", "abc\n")


def test_lines_that_run_elsewhere_are_left_out() -> None:
    block = "make setup\nmake test  # everything\nmake test && make demo\n"
    assert lines_to_run(block) == ["make setup", "make test && make demo"]
