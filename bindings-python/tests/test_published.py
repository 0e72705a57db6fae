"""The names of the published 2.1, compared with the published package itself."""

import contextlib
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import randflake
import randflake.randflake
import randflake.sparx64
import randflake.v2

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target" / "setup" / "published-2.1.0"
SCHEDULES = int(os.environ.get("SCHEDULES", "20000"))
FAILURE = ZeroDivisionError()
FIRST, LAST = randflake.v2.RANDFLAKE_EPOCH_OFFSET, randflake.v2.RANDFLAKE_MAX_TIMESTAMP


@pytest.fixture(scope="session")
def published() -> Iterator[ModuleType]:
    """The published package, under another name, since ours has its own."""
    if not (FOLDER / "randflake").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command = [*pip, "--no-deps", "--target", str(FOLDER), "randflake==2.1.0"]
        subprocess.run(command, check=True)
    spec = importlib.util.spec_from_file_location(
        "published",
        FOLDER / "randflake" / "__init__.py",
        submodule_search_locations=[str(FOLDER / "randflake")],
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["published"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    importlib.import_module("published.v2")
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "published"]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", randflake.WeakSecretWarning)
        yield


def outcome(call: Callable[[], Any]) -> Any:
    """Returns what a call returns as plain values, or the name of what it raises."""
    try:
        result = call()
    except Exception as error:
        return type(error).__name__
    return plain(result)


def plain(value: Any) -> Any:
    for names in (
        ("timestamp", "node_id", "sequence"),
        ("node_id", "start", "end_exclusive"),
        ("node_id", "lease_start", "lease_end"),
    ):
        if not isinstance(value, type) and all(hasattr(value, name) for name in names):
            return tuple(getattr(value, name) for name in names)
    return None if hasattr(value, "generate") else value


def secret_of(dice: random.Random) -> Any:
    secret = dice.randbytes(16)
    return dice.choice(
        [secret] * 12
        + [bytearray(secret), memoryview(secret), dice.randbytes(15), dice.randbytes(17)]
        + [b"", secret.hex(), None, list(secret)]
    )


def second_of(dice: random.Random) -> Any:
    edges = [FIRST, LAST]
    near = dice.choice(edges) + dice.randint(-2, 2)
    return dice.choice([dice.randint(FIRST, LAST)] * 12 + [near] * 6 + [0, -1, 2**40, 1e9, True])


def node_of(dice: random.Random) -> Any:
    return dice.choice([dice.randint(0, 131_071)] * 20 + [0, 131_071, 131_072, -1, 1.0, True, "5"])


def text_of(dice: random.Random) -> Any:
    digits = "0123456789abcdefghijklmnopqrstuv"
    some = "".join(dice.choices(digits, k=dice.randint(0, 15)))
    other = "".join(dice.choices(digits.upper() + digits + "=-_w \u0663", k=dice.randint(0, 15)))
    return dice.choice([some, some, other, "0" + some, some + "=" + other, None, b"abc", 5])


def clock_readings(dice: random.Random, start: Any, end: Any) -> list[Any]:
    """The seconds of a clock that mostly advances, in and around a lease."""
    now = start if isinstance(start, int) else FIRST
    readings: list[Any] = []
    for _ in range(dice.randint(1, 6)):
        step = dice.choice([0, 0, 0, 1, 1, 2, -1, dice.randint(-5, 5)])
        now = dice.choice([now + step] * 9 + [end])
        readings.append(now)
        now = now if isinstance(now, int) else FIRST
    odd = [None, 1.5, True, "now", -1, 2**70, FAILURE]
    return [dice.choice([reading] * 20 + [dice.choice(odd)]) for reading in readings]


class Program:
    """A program for 2.1, and each of its steps with its outcome."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.steps: list[tuple[str, tuple[Any, ...], Any]] = []
        self.reading: Any = None

    def do(self, name: str, *arguments: Any) -> Any:
        """Does one step. With the same names as in play_published.cjs."""
        step = getattr(self, name, None) or getattr(self.generator, name)
        result = outcome(lambda: step(*arguments))
        self.steps.append((name, arguments, result))
        return result

    def clock(self) -> Any:
        if isinstance(self.reading, Exception):
            raise self.reading
        return self.reading

    def show(self, reading: Any) -> None:
        """Sets the clock."""
        self.reading = reading

    def new_v2(self, node: Any, start: Any, end: Any, secret: Any) -> None:
        v2 = self.module.v2
        self.generator = v2.Generator(v2.Config(v2.Lease(node, start, end), secret, self.clock))

    def extend_lease(self, *lease: Any) -> None:
        self.generator.extend_lease(self.module.v2.Lease(*lease))

    def encode_string(self, number: Any) -> Any:
        return self.module.v2.encode_string(number)

    def decode_string(self, text: Any) -> Any:
        return self.module.v2.decode_string(text)

    def new_legacy(self, *arguments: Any) -> None:
        self.generator = self.module.randflake.Generator(*arguments)

    def set_time_source(self, clock: Any = None) -> None:
        self.generator.time_source = clock or (lambda: self.clock())


def lease_of(dice: random.Random) -> tuple[Any, Any]:
    start = second_of(dice)
    return start, dice.choice([start + dice.randint(-1, 6), second_of(dice)])


def in_v2(module: Any, seed: int) -> Program:
    """Plays the schedule of a seed."""
    dice, program = random.Random(seed), Program(module)
    start, end = lease_of(dice)
    node, secret = node_of(dice), secret_of(dice)
    if program.do("new_v2", node, start, end, secret) is None:
        is_extended = dice.random() < 0.3
        for reading in clock_readings(dice, start, end):
            program.do("show", reading)
            program.do("generate")
            if is_extended:
                program.do("extend_lease", dice.choice([node] * 5 + [3]), start, second_of(dice))
            program.do("lease")
        program.do("generate_string")
        number = dice.choice([dice.randint(-(2**63), 2**63 - 1), 2**63, True, 1.0, "1"])
        program.do("inspect", number)
        program.do("inspect_string", text_of(dice))
        program.do("encode_string", number)
    program.do("decode_string", text_of(dice))
    return program


def in_legacy(module: Any, seed: int) -> Program:
    dice, program = random.Random(seed), Program(module)
    start, end = lease_of(dice)
    if program.do("new_legacy", node_of(dice), start, end, secret_of(dice)) is not None:
        return program
    program.do("set_time_source", dice.choice([5, "now"]))
    program.do("set_time_source")
    for reading in clock_readings(dice, start, end):
        program.do("show", reading)
        program.do("generate")
        if dice.random() < 0.3:  # another clock that shows the same
            program.do("set_time_source")
        if dice.random() < 0.3:
            program.do("update_lease", dice.choice([start] * 5 + [FIRST]), second_of(dice))
        program.do("get_lease_info")
    program.do("inspect_string", text_of(dice))
    program.do("generate_string")
    return program


@pytest.mark.parametrize("play", [in_v2, in_legacy])
def test_random_schedules_end_as_in_the_published_package(
    published: ModuleType, play: Callable[[Any, int], Program]
) -> None:
    for seed in range(SCHEDULES // 2):
        assert play(randflake, seed).steps == play(published, seed).steps, f"seed {seed}"


@pytest.mark.parametrize("play", [in_v2, in_legacy])
def test_random_schedules_end_so_in_node_as_well(
    published: ModuleType, play: Callable[[Any, int], Program]
) -> None:
    lines = []
    for seed in range(SCHEDULES // 2):
        with contextlib.suppress(TypeError):  # JavaScript has no such values
            lines.append(json.dumps(for_node(play(published, seed).steps)))
    assert len(lines) > SCHEDULES // 4
    command = ["node", str(Path(__file__).with_name("play_published.cjs"))]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{len(lines)} programs\n"), done.stderr[-2000:]


def for_node(value: Any) -> Any:
    """Returns a value as play_published.cjs reads it."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int):
        return {"integer": str(value)}
    if isinstance(value, float) and not value.is_integer():
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": value.hex()}
    if isinstance(value, Exception):
        return {"error": type(value).__name__}
    if isinstance(value, list | tuple) and not all(isinstance(each, int) for each in value):
        return [for_node(each) for each in value]
    if isinstance(value, tuple):
        return [for_node(each) for each in value]
    raise TypeError(value)


def test_blocks_are_those_of_the_published_package(published: Any) -> None:
    dice = random.Random(1)
    for _ in range(2000):
        key, block = dice.randbytes(16), dice.randbytes(8)
        for name in ("encrypt", "decrypt"):
            done = []
            for module in (randflake, published):
                dst = bytearray(dice.randbytes(9))
                dst[8] = 7
                getattr(module.Sparx64(dice.choice([key, list(key)])), name)(dst, block)
                done.append(bytes(dst))
            assert done[0] == done[1]
    for module in (randflake, published):
        for key in (b"", bytes(15), bytes(17)):
            with pytest.raises(module.ErrInvalidKey):
                module.Sparx64(key)
        for dst, src in ((bytearray(8), bytes(7)), (bytearray(7), bytes(8))):
            with pytest.raises(module.ErrInvalidBuffer):
                module.Sparx64(bytes(16)).encrypt(dst, src)
        assert module.Sparx64(bytes(16)).block_size() == 8


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(("language", "examples"), [("python", 2), ("typescript", 1)])
def test_the_examples_of_the_published_readme_run(language: str, examples: int) -> None:
    (readme,) = FOLDER.glob("randflake-*.dist-info/METADATA")
    blocks = re.findall(
        rf"^```{language}\n(.*?)^```$", readme.read_text(), re.MULTILINE | re.DOTALL
    )
    run = {
        "python": [sys.executable, "-c"],
        "typescript": ["node", "--input-type=module", "--eval"],
    }[language]
    assert len(blocks) == examples
    for block in blocks:
        node = ROOT / "bindings-node"  # where `randflake` names this package
        done = subprocess.run([*run, block], cwd=node, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("published")
def test_all_public_names_are_there_and_say_the_same() -> None:
    for path in ("", ".v2", ".randflake", ".sparx64"):
        theirs = importlib.import_module("published" + path)
        ours = importlib.import_module("randflake" + path)
        names = getattr(theirs, "__all__", None) or [
            name
            for name, value in vars(theirs).items()
            if name.startswith("RANDFLAKE_") or getattr(value, "__module__", "")[:9] == "published"
        ]
        for name in names:
            if name.startswith("_"):
                continue
            value = getattr(ours, name)
            assert not isinstance(value, int) or value == getattr(theirs, name)
