"""Follows a tutorial as its reader would: saves its files, runs its commands, compares the output.

How a tutorial is written:

- A block below a paragraph that ends with "`path`:" is that file. If a sentence of the paragraph
  begins with "Add", the block is added at the end of the file.
- Each line of an `sh` block is run, in one shell, with what earlier blocks have left: folders,
  variables, programs in the background. After a line that ends in ` & sleep 3`, as long as a reader
  waits, the shell goes on when the application listens.
- A `text` block right below is what the block prints; `…` in it stands for anything.

Nothing else may be in a tutorial: a block that is neither a file nor run is an error.
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "readme"))

from blocks import Block, blocks_in  # noqa: E402

MARK = "\x1e"
"""Begins the output of a block."""
FILE = re.compile(r"(?P<before>.*)`(?P<path>[^`]+)`:")
BACKGROUND = re.compile(r"(?P<command>.*) &( sleep \d+)?")
PRELUDE = """\
set -euo pipefail
listens() {
    local pid=$!
    until (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
        if ! kill -0 $pid 2>/dev/null; then echo "it has ended" >&2; cat "$LOG" >&2; exit 1; fi
        sleep 0.1
    done
}
"""


@dataclass(frozen=True)
class Step:
    """A block, and the file that it is or is added to."""

    block: Block
    path: str | None
    is_added: bool

    def script(self, port: int) -> str:
        """Returns what the shell does for it."""
        if self.path is not None:
            name = shlex.quote(self.path)
            return (
                f'mkdir -p "$(dirname {name})"\n'
                f"cat {'>>' if self.is_added else '>'}{name} <<'END OF FILE'\n"
                f"{self.block.code}END OF FILE\n"
            )
        # `-e` does not end a shell for what fails before `&&`.
        commands = _commands(self.block.code)
        return "".join(f"{_waiting(it, port)}\n[ $? = 0 ] || exit\n" for it in commands)


def _commands(code: str) -> list[str]:
    """Returns the commands of a block: most are a line, some go on in the next ones."""
    commands: list[str] = []
    begun = ""
    for line in code.replace("\\\n", "").splitlines():
        begun += line
        if subprocess.run(["bash", "-n", "-c", begun], capture_output=True).returncode == 0:
            commands.append(begun)
            begun = ""
        else:
            begun += "\n"
    return [*commands, begun] if begun else commands


def _waiting(line: str, port: int) -> str:
    background = BACKGROUND.fullmatch(line)
    if background is None:
        return line
    return f'{background["command"]} >"$LOG" 2>&1 &\nlistens {port}'


def steps_of(page: Path, text: str) -> list[Step]:
    """Returns the blocks of a page, which are all files or run."""
    lines = text.splitlines()
    steps = []
    for block in blocks_in(page.relative_to(ROOT), text):
        before = " ".join(_paragraph(lines[: block.line - 1]))
        file = FILE.fullmatch(before)
        if block.language != "sh" and file is None:
            raise ValueError(f"{block}: neither `sh` nor a file, after {before!r}")
        path = None if file is None else file["path"]
        is_added = file is not None and re.search(r"(^|\. )Add ", file["before"]) is not None
        steps.append(Step(block, path, is_added))
    return steps


def _paragraph(lines: list[str]) -> list[str]:
    """Returns the last paragraph of these lines, or of a list the last item."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    start = len(lines)
    while start > 0 and lines[start - 1].strip():
        start -= 1
        if re.match(r"[-*] |\d+\. ", lines[start]):
            break
    return [re.sub(r"^([-*] |\d+\. )", "", line.strip()) for line in lines[start:]]


def follow(
    page: Path, folder: Path, environment: Mapping[str, str], ports: Mapping[int, int], port: int
) -> None:
    """Follows a page in an empty folder; raises AssertionError where it is wrong.

    environment: what the reader's shell has.
    ports: those that the page names, and those that stand for them here.
    port: that of the application, as the page names it.
    """
    text = page.read_text(encoding="utf-8")
    for named, here in ports.items():
        text = re.sub(rf"(?<![\d.]){named}(?!\d)", str(here), text)
    steps = steps_of(page, text)
    log = folder.parent / f"{folder.name}.log"
    script = [PRELUDE]
    for number, step in enumerate(steps):
        script.append(f"printf '{MARK}{number}{MARK}'\n")
        script.append(step.script(ports[port]))
    script.append(f"printf '{MARK}{len(steps)}{MARK}'\n")
    source = folder.parent / f"{folder.name}.sh"
    source.write_text("".join(script), encoding="utf-8")
    # A group of its own, so that what it has left in the background ends with it.
    process = subprocess.Popen(
        ["bash", str(source)],
        cwd=folder,
        env={**environment, "LOG": str(log)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, errors = process.communicate(timeout=1800)
    finally:
        _end(process.pid)
    done, outputs = printed.split(MARK)[1::2], printed.split(MARK)[2::2]
    logged = log.read_text(errors="replace") if log.exists() else ""
    said = f"\n\n{errors[-4000:]}\n{logged[-4000:]}"
    for step, output in zip(steps, outputs, strict=False):
        claimed = step.block.output
        assert claimed is None or _prints(claimed, output), (
            f"{step.block} prints\n{output}\nand not\n{claimed}{said}"
        )
    where = steps[min(int(done[-1]), len(steps) - 1)].block
    assert process.returncode == 0, (
        f"{where} ends with {process.returncode}, after\n{outputs[-1]}{said}"
    )


def _prints(claimed: str, printed: str) -> bool:
    """Returns whether it is what the page says; `…` stands for anything, also for lines."""
    pattern = ".*".join(re.escape(part) for part in claimed.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
