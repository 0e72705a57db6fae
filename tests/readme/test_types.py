"""Has mypy check every Python block of every document, each by itself, against the package's types.

Strictly, but for what examples leave out: annotations of their own functions, the types of other
packages, and that the lease is None once a generator is closed.
"""

import subprocess
import sys
from pathlib import Path

from blocks import ROOT, blocks_of, documents

NOT_ASKED = ["--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls"]
NOT_ASKED += ["--ignore-missing-imports", "--no-warn-return-any", "--disable-error-code=union-attr"]


def test_python_blocks_have_the_right_types(tmp_path: Path) -> None:
    written = []
    for document in documents():
        for block in blocks_of(document):
            if block.language == "python":
                name = f"{document.with_suffix('')}_{block.line}".replace("/", "_")
                written.append(tmp_path / (name.replace("-", "_").replace(".", "_") + ".py"))
                written[-1].write_text(block.code, encoding="utf-8")
    assert len(written) > 20
    # A use that is wrong, so that this is known to see one.
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from randflake import Randflake\n\nRandflake(1, secret=16)\n")
    command = [sys.executable, "-m", "mypy", "--strict", *NOT_ASKED, "--config-file="]
    checked = subprocess.run(
        [*command, f"--cache-dir={tmp_path / 'cache'}", *map(str, [*written, wrong])],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, checked.stdout + checked.stderr
    assert "wrong.py:3" in errors[0]
