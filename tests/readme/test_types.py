"""Has type checkers check every block of every document, each by itself, with the package's types.

Strictly, but for what examples leave out: annotations of their own functions, and the types of
other packages. TypeScript is checked where it is run, in test_readme.py.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT, blocks_of, documents
from test_readme import NODE_PACKAGES, RECIPES

RUNNERS = ROOT / "tests/runners/node_modules"
NODE = ROOT / "bindings-node/node_modules"

NOT_ASKED = ["--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls"]
NOT_ASKED += ["--allow-subclassing-any"]
NOT_ASKED += ["--ignore-missing-imports", "--no-warn-return-any"]

# What the types of Node.js, of a SQLite and of what the recipes are for say, a file that is another
# block, and what Django adds to models when it runs.
OF_OTHERS = r"AddressInfo|SQLiteValue|\./server\.mjs|docs_guides_node_|attribute \"objects\""


def write_blocks(folder: Path, languages: set[str], wrong: str) -> list[str]:
    """Writes the blocks to files, and one with a use that is wrong, so that this is seen."""
    written = []
    for document in documents():
        # What is added to a file that Django makes does not stand alone.
        is_added = document == Path("docs/tutorials/django.md")
        for block in blocks_of(document):
            if is_added and "INSTALLED_APPS +=" in block.code:
                continue
            if block.language in languages:
                name = re.sub(r"\W", "_", f"{document.with_suffix('')}_{block.line}")
                is_module = re.search(r"^(import|export)\b", block.code, re.MULTILINE)
                ending = "py" if languages == {"python"} else "mjs" if is_module else "cjs"
                written.append(f"{name}.{ending}")
                (folder / written[-1]).write_text(block.code, encoding="utf-8")
    assert len(written) > 20
    (folder / wrong).write_text(WRONG[wrong])
    return [*written, wrong]


WRONG = {
    "wrong.py": "from randflake import Randflake\n\nRandflake(1, secret=16)\n",
    "wrong.cjs": "const { Randflake } = require('randflake')\n\nnew Randflake(1, 16)\n",
}


def check(folder: Path, *command: str | Path) -> list[str]:
    """Returns the errors that a type checker finds, and has found the wrong use."""
    checked = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    errors = [line for line in checked.stdout.splitlines() if re.search(r"\berror\b.*:", line)]
    found = [line for line in errors if re.search(r"wrong\.c?[pj][ys]\b.\d", line)]
    assert len(found) == 1, checked.stdout + checked.stderr
    return [line for line in errors if line not in found and not re.search(OF_OTHERS, line)]


def test_python_blocks_pass_mypy(tmp_path: Path) -> None:
    files = write_blocks(tmp_path, {"python"}, "wrong.py")
    command = [sys.executable, "-m", "mypy", "--strict", *NOT_ASKED, "--config-file="]
    assert check(tmp_path, *command, f"--cache-dir={tmp_path / 'cache'}", *files) == []


@pytest.mark.skipif(not RUNNERS.exists(), reason="needs target/setup/runners")
def test_python_blocks_and_a_consumer_pass_pyright(tmp_path: Path) -> None:
    write_blocks(tmp_path, {"python"}, "wrong.py")
    consumer = ROOT / "bindings-python/tests/typing/consumer.py"
    (tmp_path / "consumer.py").write_text(consumer.read_text(encoding="utf-8"), encoding="utf-8")
    settings = {
        "typeCheckingMode": "standard",
        "reportMissingImports": False,
        # As mypy does for the consumer: a mark of a wrong use that is none is an error.
        "reportUnnecessaryComparison": True,
        "reportUnnecessaryTypeIgnoreComment": True,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    pyright = RUNNERS / "pyright/index.js"
    assert check(tmp_path, "node", pyright, "--pythonpath", sys.executable) == []


def test_javascript_blocks_pass_typescript(tmp_path: Path) -> None:
    """JavaScript has no annotations, so not strictly."""
    files = write_blocks(tmp_path, {"js"}, "wrong.cjs")
    (tmp_path / "node_modules").mkdir()
    links = {name: NODE / name for name in ["@types", *NODE_PACKAGES]}
    dependencies = json.loads((RECIPES / "package.json").read_text(encoding="utf-8"))
    for name in dependencies["devDependencies"]:
        links.setdefault(name, RECIPES / "node_modules" / name)
    links |= {"randflake": ROOT / "bindings-node", "vitest": RUNNERS / "vitest"}
    for name, path in links.items():
        (tmp_path / "node_modules" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "node_modules" / name).symlink_to(path)
    # Those of jest, which has no types of its own.
    names = ("jest", "expect", "test", "beforeEach", "afterEach")
    (tmp_path / "jest.d.ts").write_text("\n".join(f"declare const {name}: any" for name in names))
    options = ["--noEmit", "--allowJs", "--checkJs", "--strict", "false", "--skipLibCheck"]
    options += ["--types", "node", "--lib", "esnext", "--module", "nodenext", "--target", "es2023"]
    assert check(tmp_path, NODE / ".bin/tsc", *options, "jest.d.ts", *files) == []
