"""What programs for the published 2.1 rely on; see also test_published.py."""

import importlib
import json
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import randflake
from conftest import VECTORS, in_child, outcome, together
from randflake import Inspector, Randflake, RandflakeError, generate_secret, v2
from randflake.randflake import Generator as Legacy
from randflake.sparx64 import ErrInvalidBuffer, ErrInvalidKey, Sparx64, SparxError
from randflake.v2 import Config, Generator, Lease

FIRST = v2.RANDFLAKE_EPOCH_OFFSET
SECRET = bytes.fromhex("9d4be0a1c35f7826b60ef4d7132a985c")

pytestmark = pytest.mark.filterwarnings("ignore:randflake.Generator is deprecated")


class Clock:
    now: Any = FIRST + 10

    def __call__(self) -> Any:
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


def new_v2(clock: Callable[[], int] | None, start: int = FIRST, end: int = FIRST + 100) -> Any:
    return Generator(Config(Lease(7, start, end), SECRET, clock))


def new_legacy(clock: Callable[[], int] | None, start: int = FIRST, end: int = FIRST + 100) -> Any:
    generator = Legacy(7, start, end - 1, SECRET)
    generator.time_source = clock
    return generator


@pytest.fixture(params=[new_v2, new_legacy])
def new(request: pytest.FixtureRequest) -> Any:
    return request.param


def parts(ids: list[int]) -> list[tuple[int, int]]:
    read = Inspector(SECRET).inspect
    return [(it.timestamp, it.sequence) for it in map(read, ids)]


def test_a_second_counts_from_zero_and_a_step_back_is_refused(new: Callable[..., Any]) -> None:
    clock = Clock()
    generator = new(clock)
    ids = [generator.generate(), generator.generate()]
    clock.now += 1
    ids.append(generator.generate())
    clock.now -= 1
    with pytest.raises(v2.ErrConsistencyViolation) as raised:
        generator.generate()
    assert isinstance(raised.value.__cause__, RandflakeError), "with what the core says"
    clock.now += 1
    ids.append(generator.generate())
    at = FIRST + 10
    assert parts(ids) == [(at, 0), (at, 1), (at + 1, 0), (at + 1, 1)]


def test_a_full_second_is_refused_at_once_and_the_next_one_is_whole(
    new: Callable[..., Any],
) -> None:
    clock = Clock()
    generator = new(clock)
    ids = [generator.generate() for _ in range(v2.RANDFLAKE_MAX_SEQUENCE + 1)]
    for _ in range(2):
        with pytest.raises(v2.ErrResourceExhausted):
            generator.generate()
    clock.now += 1
    ids.append(generator.generate())
    assert len(set(ids)) == len(ids)
    assert parts(ids[-2:]) == [(FIRST + 10, v2.RANDFLAKE_MAX_SEQUENCE), (FIRST + 11, 0)]


@pytest.mark.parametrize("is_injected", [False, True])
def test_eight_threads_leave_no_gap(new: Callable[..., Any], is_injected: bool) -> None:
    now = int(time.time())
    generator = new((lambda: now) if is_injected else None, now, now + 600)
    ids: list[list[int]] = [[] for _ in range(8)]

    def generate(thread: int) -> None:
        ids[thread] = [generator.generate() for _ in range(128)]

    together(8, generate)
    made = parts([id for some in ids for id in some])
    for second in {second for second, _ in made}:
        numbers = sorted(number for at, number in made if at == second)
        first = numbers[0]  # on the machine's clock, others with this node id share what is issued
        assert numbers == list(range(first, first + len(numbers)))
        assert first == 0 or not is_injected


def test_a_clock_that_fails_uses_no_number(new: Callable[..., Any]) -> None:
    clock = Clock()
    generator = new(clock)
    first = generator.generate()
    clock.now = ZeroDivisionError("no time")
    with pytest.raises(ZeroDivisionError, match="no time"):
        generator.generate()
    for odd in (None, True, 1.5, "now"):
        clock.now = odd
        with pytest.raises(v2.ErrConsistencyViolation):
            generator.generate()
    for outside in (FIRST - 1, FIRST + 100, -1, 2**80):
        clock.now = outside
        with pytest.raises(v2.ErrInvalidLease):
            generator.generate()
    clock.now = Clock.now
    assert parts([first, generator.generate()]) == [(FIRST + 10, 0), (FIRST + 10, 1)]


def test_the_machines_clock_is_shared_by_all_of_a_node_id() -> None:
    now = int(time.time())
    lease, secret = Lease(7, now, now + 600), bytes.fromhex(generate_secret())
    generators = [Generator(Config(lease, secret)) for _ in range(3)]
    ids = [generator.generate() for _ in range(100) for generator in generators]
    ids += Randflake(7, secret, lease=randflake.Lease(now, now + 600)).generate_many(100)
    assert len(set(ids)) == 400, "2.1 would repeat them"


def test_a_generator_keeps_what_it_issued_when_its_clock_is_changed() -> None:
    now = int(time.time())
    secret = bytes.fromhex(generate_secret())
    generator = Legacy(7, now - 100, now + 600, secret)
    assert generator.time_source is None
    ids = [generator.generate() for _ in range(3)]
    last = generator.inspect(ids[-1])[0]
    generator.time_source = lambda: last - 1
    with pytest.raises(v2.ErrConsistencyViolation):
        generator.generate()
    generator.time_source = lambda: last
    ids.append(generator.generate())
    assert generator.inspect(ids[-1])[0] == last
    generator.time_source = lambda: last + 500
    ids.append(generator.generate())
    generator.time_source = None
    with pytest.raises(v2.ErrConsistencyViolation):
        generator.generate()
    assert len(set(ids)) == len(ids)
    with pytest.raises(v2.ErrConsistencyViolation):
        generator.time_source = 5  # type: ignore[assignment]


def test_a_generator_shares_the_machines_clock_as_soon_as_it_is_set_back_to_that() -> None:
    now = int(time.time())
    secret = bytes.fromhex(generate_secret())
    back, back_in_a_call, always = (Legacy(7, now - 100, now + 600, secret) for _ in range(3))

    def set_back() -> int:
        back_in_a_call.time_source = None
        return int(time.time())

    back.time_source = lambda: int(time.time())
    ids = [back.generate() for _ in range(3)]
    back.time_source = None
    back_in_a_call.time_source = set_back
    for _ in range(100):
        ids += [it.generate() for it in (back, back_in_a_call, always)]
    assert len(set(ids)) == len(ids)


def test_a_child_is_refused_even_if_the_fork_caught_another_thread() -> None:
    now = int(time.time())
    secret = bytes.fromhex(generate_secret())
    generator = Generator(Config(Lease(7, now, now + 600), secret))
    forked: list[Any] = []

    def generate() -> Any:
        signal.alarm(60)  # ends the child if it waits for a thread that it lacks
        return outcome(generator.generate)

    with generator._lock:
        together(1, lambda _: forked.append(in_child(generate)))
    assert forked == ["FORKED"]


def test_a_lease_ends_before_its_end_and_can_be_extended() -> None:
    clock = Clock()
    generator = new_v2(clock, FIRST, FIRST + 11)
    generator.generate()
    clock.now += 1
    with pytest.raises(v2.ErrInvalidLease):
        generator.generate()
    for end in (FIRST + 5, FIRST + 11, FIRST + 20, FIRST + 12):
        generator.extend_lease(Lease(7, FIRST, end))
    assert generator.lease() == Lease(7, FIRST, FIRST + 20)
    generator.generate()
    for wrong in (Lease(8, FIRST, FIRST + 30), Lease(7, FIRST + 1, FIRST + 30), None, 5):
        with pytest.raises(v2.ErrInvalidLease):
            generator.extend_lease(wrong)
    # Also before the first id.
    later = new_v2(clock, FIRST, FIRST + 11)
    later.extend_lease(Lease(7, FIRST, FIRST + 12))
    assert later.generate()


def test_the_end_of_the_old_names_is_a_second_of_the_lease() -> None:
    clock = Clock()
    generator = Legacy(7, FIRST, FIRST + 10, SECRET)
    generator.time_source = clock
    generator.generate()
    clock.now += 1
    with pytest.raises(v2.ErrInvalidLease):
        generator.generate()
    updates = [
        (FIRST, FIRST + 12),
        (FIRST, FIRST + 12),
        (FIRST, FIRST + 3),
        (FIRST + 1, FIRST + 99),
    ]
    assert [generator.update_lease(*it) for it in updates] == [True, False, False, False]
    assert not generator.update_lease(FIRST, v2.RANDFLAKE_MAX_TIMESTAMP + 1)
    assert (generator.node_id, generator.lease_start, generator.lease_end) == (7, FIRST, FIRST + 12)
    info = generator.get_lease_info()
    assert info == randflake.LeaseInfo(7, FIRST, FIRST + 12)
    assert generator.inspect(generator.generate()) == (FIRST + 11, 7, 0)


def test_bad_leases_nodes_and_secrets_have_their_errors() -> None:
    last = v2.RANDFLAKE_MAX_TIMESTAMP
    for node in (-1, 131_072, 2**70, True, 1.0, "1", None):
        with pytest.raises(v2.ErrInvalidNode):
            Lease(node, FIRST, FIRST + 1)  # type: ignore[arg-type]
    bad: list[tuple[Any, Any]] = [(FIRST - 1, FIRST), (FIRST, FIRST), (FIRST + 1, FIRST)]
    bad += [(FIRST, last + 2), (None, FIRST), (FIRST, 1e9), (True, FIRST)]
    for start, end in bad:
        with pytest.raises(v2.ErrInvalidLease):
            Lease(1, start, end)
    with pytest.raises(v2.ErrRandflakeDead):
        Legacy(1, FIRST, last + 1, SECRET)
    assert Legacy(1, FIRST, last, SECRET).lease_end == last
    lease = Lease(1, FIRST, last + 1)
    for secret in (b"", bytes(15), bytes(17), "0" * 16, [0] * 16, None):
        with pytest.raises(v2.ErrInvalidSecret):
            Config(lease, secret)  # type: ignore[arg-type]
    with pytest.raises(v2.ErrConsistencyViolation):
        Config(lease, SECRET, 5)  # type: ignore[arg-type]
    for config in (None, lease):
        with pytest.raises(v2.ErrInvalidLease):
            Generator(config)  # type: ignore[arg-type]
        with pytest.raises(v2.ErrInvalidLease):
            Config(config if config is None else config.start, SECRET)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_secret_is_copied(kind: Any) -> None:
    bytes_of_it = bytearray(SECRET)
    secret = bytes_of_it if kind is bytearray else memoryview(bytes_of_it)
    clock = Clock()
    config = Config(Lease(7, FIRST, FIRST + 100), secret, clock)  # type: ignore[arg-type]
    manual = Randflake(7, secret, clock=lambda: clock())
    bytes_of_it[:] = bytes(16)
    assert Generator(config).generate() == new_v2(clock).generate() == manual.generate()
    assert SECRET.hex() not in repr(config)
    assert repr(SECRET) not in repr(config)


def test_configurations_are_read_only() -> None:
    lease = Lease(7, FIRST, FIRST + 1)
    config = Config(lease, SECRET)
    for holder, name in ((lease, "node_id"), (config, "secret"), (config, "clock")):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(holder, name, 1)


def test_texts_are_strict_and_those_of_the_old_names_are_not() -> None:
    digits = randflake.decode_string("1234567890123")
    for number in (0, 1, -1, digits, 2**63 - 1, -(2**63)):
        assert v2.decode_string(v2.encode_string(number)) == number
    for text in ("", "00", "01", "A", "3VGOE12CCB8GH", "1=", "w", "g000000000000", "0" * 14, " 1"):
        with pytest.raises(v2.ErrInvalidID):
            v2.decode_string(text)
    for wrong in (2**63, -(2**63) - 1, True, 1.0, "1", None):
        with pytest.raises(v2.ErrInvalidID):
            v2.encode_string(wrong)  # type: ignore[arg-type]
        with pytest.raises(v2.ErrInvalidID):
            new_v2(None).inspect(wrong)
    read = Legacy(7, FIRST, FIRST + 100, SECRET).inspect_string
    for same in (
        "3vgoe12ccb8gh",
        "3VGOE12ccb8GH",
        "003vgoe12ccb8gh=",
        "3vgoe12ccb8gh==!",
        "g3vgoe12ccb8gh",
    ):
        assert read(same) == read("3vgoe12ccb8gh")
    assert read("") == read("=") == read("0")
    for text in ("_", "3_4", " 3", "+3", "w", "\u0663", None, 5):
        with pytest.raises(v2.ErrInvalidID):
            read(text)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::randflake.WeakSecretWarning")
def test_the_vectors_are_read() -> None:
    for case in json.loads((VECTORS / "ids.json").read_text())["cases"]:
        secret = bytes.fromhex(case["secret"])
        generator = Generator(Config(Lease(7, FIRST, FIRST + 1), secret))
        wanted = (case["timestamp"], case["node_id"], case["sequence"])
        read = generator.inspect(int(case["id"]))
        assert (read.timestamp, read.node_id, read.sequence) == wanted


def test_only_the_constructor_warns_and_points_at_its_caller() -> None:
    with pytest.warns(DeprecationWarning, match="randflake.v2") as caught:
        generator = Legacy(7, FIRST, FIRST + 100, SECRET)
    assert [warning.filename for warning in caught] == [__file__]
    generator.time_source = Clock()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert generator.inspect_string(generator.generate_string())[1] == 7


def test_errors_take_no_arguments_and_are_randflake_errors() -> None:
    names = [name for name in v2.__all__ if name.startswith("Err")]
    for name in names:
        error = getattr(v2, name)()
        assert isinstance(error, RandflakeError)
        assert not isinstance(error, (ValueError, RuntimeError))
        assert str(error)
        assert error.code
        assert error == type(error)()
        assert error.__reduce__()[:2] == (type(error), ())
    assert str(RandflakeError("mine")) == "mine"
    for error in (ErrInvalidKey, ErrInvalidBuffer):
        assert isinstance(error(), SparxError)


def test_what_2_1_did_not_know_passes_through() -> None:
    now = int(time.time())
    secret = bytes.fromhex(generate_secret())
    used = Generator(Config(Lease(7, now, now + 600), secret))
    used.generate()
    unused = Generator(Config(Lease(8, now, now + 600), secret))
    assert in_child(lambda: [outcome(it.generate) for it in (used, unused)]) == ["FORKED"] * 2
    Randflake((30, 31), secret)
    in_use = Generator(Config(Lease(30, now, now + 600), secret))
    assert outcome(in_use.generate) == "NODE_IN_USE"


def test_the_cipher_takes_buffers() -> None:
    cipher = Sparx64(SECRET)
    block, text = bytearray(9), [0] * 8
    cipher.encrypt(block, b"\x00\x01\x02\x03\x04\x05\x06\x07")
    assert block[8] == 0
    cipher.decrypt(text, memoryview(block)[:8])
    assert text == list(range(8))
    assert Inspector(SECRET).encrypt(int.from_bytes(bytes(range(8)), "little")) == int.from_bytes(
        block[:8], "little", signed=True
    )
    for key in (b"", bytes(15), [256] * 16, ["a"] * 16):
        with pytest.raises(ErrInvalidKey):
            Sparx64(key)  # type: ignore[arg-type]
    for dst, src in ((bytearray(7), bytes(8)), (bytearray(8), bytes(9)), (bytearray(8), [256] * 8)):
        with pytest.raises(ErrInvalidBuffer):
            cipher.encrypt(dst, src)
    cipher.destroy()
    with pytest.raises(ErrInvalidKey):
        cipher.encrypt(block, bytes(8))
    assert cipher.block_size() == 8


def test_the_names_at_the_top_load_nothing_before_their_use() -> None:
    code = """
import sys, randflake
print([name for name in ("v2", "randflake", "sparx64") if f"randflake.{name}" in sys.modules])
from randflake import Generator, Sparx64
print(Generator.__module__, Sparx64.__module__, hasattr(randflake, "Nonsense"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "randflake.randflake randflake.sparx64 False"]
    for name in randflake._PUBLISHED:
        assert getattr(randflake, name) is getattr(
            importlib.import_module(randflake._PUBLISHED[name]), name
        )


def test_the_class_of_the_article_is_ported_by_its_import() -> None:
    flake = Randflake(node_id="5", secret=bytearray(SECRET))
    assert flake.node_id == 5
    assert flake.inspect(flake.generate()).node_id == 5
    for wrong in ("", "-1", "5.0", " 5", "\u0665", "131072", "9" * 30):
        with pytest.raises(randflake.InvalidArgumentError, match="131071") as raised:
            Randflake(wrong, SECRET)
        assert raised.value.code == "INVALID_NODE"
    assert not hasattr(Randflake((100, 101), generate_secret()), "node_id")
