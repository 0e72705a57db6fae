"""The files of the repository, and the fenced code blocks of its documents."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")


@dataclass(frozen=True)
class Block:
    """One fenced code block."""

    document: Path
    """Its file, relative to the root."""
    line: int
    language: str
    code: str
    output: str | None
    """What the `text` block right below it says the code prints."""

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


@cache
def repository_files() -> list[Path]:
    """Returns what is, or would be, committed: paths relative to the root."""
    # The owner of a checkout need not be the user who runs the tests.
    git = ["git", "-c", "safe.directory=*"]
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = [Path(name) for name in listed.split("\0") if name]
    return [path for path in paths if (ROOT / path).is_file()]


def documents() -> list[Path]:
    """Returns every Markdown file of the repository, the README of the root first.

    Its `sh` blocks install what those of the others use.
    """
    found = sorted(path for path in repository_files() if path.suffix == ".md")
    return sorted(found, key=lambda path: path != Path("README.md"))


def blocks_of(document: Path) -> list[Block]:
    """Returns the code blocks of one document, each with the output it claims."""
    return blocks_in(document, (ROOT / document).read_text(encoding="utf-8"))


def blocks_in(document: Path, text: str) -> list[Block]:
    """Returns the code blocks of a document's text."""
    found: list[Block] = []
    code: list[str] = []
    opened: re.Match[str] | None = None
    start = 0
    # Where a `text` block would belong to the block before it: only blank lines in between.
    adjacent = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None:
            if fence:
                opened, start, code = fence, number, []
            elif line.strip():
                adjacent = False
            continue
        closes = (
            fence is not None
            and not fence["info"].strip()
            and fence["fence"].startswith(opened["fence"])
        )
        if not closes:
            code.append(line.removeprefix(opened["indent"]))
            continue
        language = (opened["info"].split() or [""])[0].split(",")[0].lower()
        body = "\n".join(code) + "\n"
        if language == "text" and adjacent:
            before = found.pop()
            found.append(Block(document, before.line, before.language, before.code, body))
            adjacent = False
        else:
            found.append(Block(document, start, language, body, None))
            adjacent = True
        opened = None
    if opened is not None:
        raise ValueError(f"{document}:{start}: the block is never closed")
    return found


def prints(claimed: str, printed: str) -> bool:
    """Returns whether the output is what a document claims; `…` stands for anything in one line."""
    pattern = ".*".join(re.escape(part) for part in claimed.strip().split("…"))
    return re.fullmatch(pattern, printed.strip()) is not None
