"""`fill`, `generate_array` and `inspect_array`."""

import ctypes
import mmap
import sys
import threading
from array import array
from typing import Any

import numpy as np
import pytest
from conftest import NOW, SECRET, ScriptedClock, named, run_python, together
from randflake import (
    Inspector,
    InvalidArgumentError,
    InvalidTypeError,
    Lease,
    Randflake,
    RandflakeError,
)


def generator(**options: Any) -> Randflake:
    return Randflake(1, SECRET, **{"clock": ScriptedClock(), **options})


def read_only(of: Any) -> Any:
    of.flags.writeable = False
    return of


FOREIGN_ORDER = ">i8" if sys.byteorder == "little" else "<i8"
UNALIGNED = np.frombuffer(bytearray(8 * 4 + 1), np.int64, 4, offset=1)

# fill refuses each of them.
REFUSED = {
    "big-endian": (np.zeros(4, FOREIGN_ORDER), "byte order"),
    "read-only array": (read_only(np.zeros(4, np.int64)), "read-only"),
    "read-only memory": (memoryview(bytes(32)).cast("q"), "read-only"),
    "strided": (np.zeros(8, np.int64)[::2], "strides"),
    "reversed": (np.zeros(4, np.int64)[::-1], "strides"),
    "unaligned": (UNALIGNED, "aligned"),
    "uint64": (np.zeros(4, np.uint64), "unsigned"),
    "array of Q": (array("Q", [0] * 4), "unsigned"),
    "float64": (np.zeros(4), "other elements"),
    "int32": (np.zeros(4, np.int32), "other elements"),
    "complex": (np.zeros(4, complex), "other elements"),
    "bool": (np.zeros(4, bool), "other elements"),
    "objects": (np.zeros(4, object), "other elements"),
    "structures": (np.zeros(4, [("id", np.int64)]), "other elements"),
    "datetimes": (np.zeros(4, "M8[s]"), "an object of type ndarray"),
    "two-dimensional": (np.zeros((2, 2), np.int64), "one-dimensional"),
    "no dimensions": (np.zeros((), np.int64), "an object of type ndarray"),
    "bytes": (bytes(32), "other elements"),
    "bytearray": (bytearray(32), "other elements"),
    # It omits the distance between its elements.
    "ctypes": ((ctypes.c_int64 * 4)(), "an object of type c_long"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_fill_refuses(name: str) -> None:
    buffer, fault = REFUSED[name]
    flake = generator()
    with pytest.raises(InvalidArgumentError, match=fault) as raised:
        flake.fill(buffer)
    assert type(raised.value) is InvalidArgumentError
    assert raised.value.code == "INVALID_ARGUMENT"
    assert flake.inspect(flake.generate()).sequence == 0, "nothing was claimed"


@pytest.mark.parametrize("no_buffer", [None, True, 7, 1.5, "text", [0] * 4, (0,), {}, object()])
def test_no_buffer_is_a_wrong_type(no_buffer: Any) -> None:
    for use in (generator().fill, Inspector(SECRET).inspect_array):
        with pytest.raises(InvalidTypeError) as raised:
            use(no_buffer)
        assert raised.value.code == "INVALID_ARGUMENT"


def test_a_closed_memory_map_is_refused() -> None:
    memory = mmap.mmap(-1, 64)
    memory.close()
    with pytest.raises(InvalidArgumentError) as raised:
        generator().fill(memory)
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "buffer",
    [
        np.zeros(5, np.int64),
        np.zeros(5, np.longlong),
        np.zeros(5, "<i8" if sys.byteorder == "little" else ">i8"),
        np.zeros(9, np.int64)[2:7],
        array("q", [0] * 5),
        memoryview(bytearray(40)).cast("q"),
        memoryview(array("q", [0] * 5)),
        memoryview((ctypes.c_int64 * 5)()).cast("B").cast("q"),
    ],
    ids=lambda buffer: type(buffer).__name__,
)
def test_fill_takes_native_signed_64_bit_integers(buffer: Any) -> None:
    expected = generator().generate_many(5)
    generator().fill(buffer)
    assert list(buffer) == expected


def test_fill_leaves_what_is_around_a_slice_alone() -> None:
    whole = np.full(9, 7, np.int64)
    generator().fill(whole[2:7])
    assert whole[[0, 1, 7, 8]].tolist() == [7] * 4
    assert whole[2:7].tolist() == generator().generate_many(5)


@pytest.mark.parametrize(
    "nothing", [array("q"), np.zeros(0, np.int64), memoryview(bytearray()).cast("q")], ids=named
)
def test_fill_of_nothing(nothing: Any) -> None:
    flake = generator()
    flake.fill(nothing)
    assert flake.inspect(flake.generate()).sequence == 0
    flake.close()
    with pytest.raises(RandflakeError) as raised:
        flake.fill(nothing)
    assert raised.value.code == "CLOSED"


def test_every_way_to_many_ids_gives_the_same_ids() -> None:
    ids = [generator().generate_many(40_000), generator().generate_array(40_000).tolist()]
    flake = generator()
    ids.append([flake.generate() for _ in range(40_000)])
    buffer = array("q", bytes(8 * 40_000))
    generator().fill(buffer)
    assert ids[0] == ids[1] == ids[2] == buffer.tolist()
    assert len(set(ids[0])) == 40_000
    assert min(ids[0]) < 0 < max(ids[0])


def test_generate_array_is_a_native_int64_array() -> None:
    ids = generator().generate_array(3)
    assert ids.dtype == np.int64
    assert ids.shape == (3,)
    assert ids.flags.writeable
    assert ids.flags.owndata


@pytest.mark.parametrize("count", [10, 40_000])
def test_a_failing_fill_leaves_zeros(count: int) -> None:
    flake = generator(lease=Lease(NOW - 10, NOW))
    buffer = array("q", [-1]) * count
    with pytest.raises(RandflakeError) as raised:
        flake.fill(buffer)
    assert raised.value.code == "LEASE_EXPIRED"
    assert not any(buffer)


def test_a_batch_that_fails_on_its_way_leaves_zeros() -> None:
    class Stops(ScriptedClock):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt(seconds)

    buffer = array("q", [-1]) * 200_000
    with pytest.raises(KeyboardInterrupt):
        generator(clock=Stops()).fill(buffer)
    assert not any(buffer)


def test_no_other_thread_sees_a_half_filled_buffer() -> None:
    """A batch that waits between two parts shows nothing of the first part meanwhile."""
    buffer = array("q", [-1]) * 200_000
    seen = []

    class Watches(ScriptedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            watcher = threading.Thread(target=lambda: seen.append(set(buffer)))
            watcher.start()
            watcher.join()

    generator(clock=Watches()).fill(buffer)
    assert seen == [{-1}]
    assert len(set(buffer)) == 200_000


def test_a_buffer_in_use_cannot_be_resized() -> None:
    buffer = array("q", [0]) * 200_000
    errors = []

    class Resizes(ScriptedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            try:
                buffer.append(0)
            except BufferError as error:
                errors.append(error)

    generator(clock=Resizes()).fill(buffer)
    assert len(errors) == 1
    buffer.append(0)


def test_inspect_array_reads_what_generate_array_made() -> None:
    flake = Randflake([3, 9], SECRET, clock=ScriptedClock())
    ids = flake.generate_array(300_000)
    columns = Inspector(SECRET).inspect_array(ids)
    assert [column.dtype for column in columns] == [np.int64, np.uint32, np.uint32]
    assert columns.timestamp.tolist() == [NOW] * 262_144 + [NOW + 1] * (300_000 - 262_144)
    assert np.unique(columns.node_id).tolist() == [3, 9]
    for index in (0, 131_071, 131_072, 299_999):
        parts = flake.inspect(ids[index])
        row = (columns.timestamp[index], columns.node_id[index], columns.sequence[index])
        assert row == (parts.timestamp, parts.node_id, parts.sequence)


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(8)[::2],
        read_only(np.array([0, 2, 4, 6])),
        array("q", [0, 2, 4, 6]),
        np.arange(7, -1, -1)[::-2],
        np.arange(16).reshape(4, 4)[:, 0] // 2,
    ],
    ids=["strided", "read-only", "array", "reversed", "column"],
)
def test_inspect_array_reads_any_row(ids: Any) -> None:
    inspector = Inspector(SECRET)
    columns = inspector.inspect_array(ids)
    assert columns.sequence.tolist() == [inspector.inspect(id).sequence for id in (0, 2, 4, 6)]


def test_inspect_array_reads_nothing() -> None:
    columns = Inspector(SECRET).inspect_array(array("q"))
    assert [column.shape for column in columns] == [(0,)] * 3


@pytest.mark.parametrize(
    "name",
    # These are read, as test_many.py shows.
    sorted(
        REFUSED.keys()
        - {"read-only array", "read-only memory", "strided", "reversed", "uint64", "array of Q"}
    ),
)
def test_inspect_array_refuses(name: str) -> None:
    buffer, fault = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=fault) as raised:
        Inspector(SECRET).inspect_array(buffer)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_without_numpy_arrays_say_what_to_install_and_the_rest_works() -> None:
    code = """
import sys
sys.modules["numpy"] = None
from array import array
from randflake import Inspector, Randflake
flake = Randflake(1, sys.argv[1], clock=lambda: 1763640000)
for use in (lambda: flake.generate_array(1),
            lambda: Inspector(sys.argv[1]).inspect_array(array("q", [1]))):
    try:
        use()
    except ImportError as error:
        assert "pip install numpy" in str(error), error
        assert error.name == "numpy"
        assert isinstance(error.__cause__, ImportError)
    else:
        raise AssertionError("no numpy")
assert flake.inspect(flake.generate()).sequence == 0, "nothing was claimed"
ids = array("q", [0] * 10)
flake.fill(ids)
assert ids[0] and flake.generate_many(3)
print("works")
"""
    assert run_python(code, SECRET) == "works\n"


# Memory that is taken again, larger and smaller than before; no batch keeps it.
LENGTHS = [5, 4096, 1, 700, 16_384, 16_385, 3, 0, 20_000, 4096, 2]


def test_batches_show_nothing_of_earlier_ones() -> None:
    flake = generator()
    made: list[int] = []
    for length in LENGTHS:
        made += flake.generate_many(length)
        made += flake.generate_array(length).tolist()
        buffer = array("q", bytes(8 * length))
        flake.fill(buffer)
        made += buffer
    assert len(made) == 3 * sum(LENGTHS)
    # In the second of the clock and in the next one, which it slept to.
    assert made == generator().generate_many(len(made))


@pytest.mark.parametrize("length", [10, 4096, 40_000])
def test_a_failing_fill_shows_nothing_of_earlier_batches(length: int) -> None:
    generator().generate_many(length)
    flake = generator(lease=Lease(NOW - 10, NOW))
    buffer = array("q", [-1]) * length
    for _ in range(2):
        with pytest.raises(RandflakeError) as raised:
            flake.fill(buffer)
        assert raised.value.code == "LEASE_EXPIRED"
        assert not any(buffer)


def test_columns_show_nothing_of_earlier_ones() -> None:
    flake, inspector = generator(), Inspector(SECRET)
    for length in LENGTHS:
        ids = flake.generate_array(length)
        columns = inspector.inspect_array(ids)
        parts = [inspector.inspect(id) for id in ids.tolist()]
        assert columns.timestamp.tolist() == [it.timestamp for it in parts]
        assert columns.node_id.tolist() == [it.node_id for it in parts]
        assert columns.sequence.tolist() == [it.sequence for it in parts]


def test_a_batch_within_a_batch_has_memory_of_its_own() -> None:
    class Generates(ScriptedClock):
        def __init__(self) -> None:
            super().__init__()
            self.inner: list[list[int]] = []

        def now(self) -> float:
            buffer = array("q", bytes(8 * 300))
            other.fill(buffer)
            self.inner.append(list(buffer))
            self.inner.append(other.generate_many(200))
            return super().now()

        def sleep(self, seconds: float) -> None:
            self.inner.append(other.generate_array(500).tolist())
            super().sleep(seconds)

    other = Randflake(2, SECRET, clock=ScriptedClock())
    for length in (100, 400, 140_000):
        clock = Generates()
        assert generator(clock=clock).generate_many(length) == generator().generate_many(length)
        inner = [id for batch in clock.inner for id in batch]
        assert {other.inspect(id).node_id for id in inner} == {2}
        assert len(set(inner)) == len(inner) > 0


def test_batches_of_ten_threads_repeat_nothing() -> None:
    flake = Randflake(range(300, 364), SECRET, restart_safe=False)
    made: list[list[int]] = [[] for _ in range(10)]

    def work(number: int) -> None:
        mine = made[number]
        for length in LENGTHS:
            mine += flake.generate_many(length)
            mine += flake.generate_array(length).tolist()
            buffer = array("q", bytes(8 * length))
            flake.fill(buffer)
            mine += buffer

    together(10, work)
    ids = [id for mine in made for id in mine]
    assert len(set(ids)) == len(ids) == 10 * 3 * sum(LENGTHS)
