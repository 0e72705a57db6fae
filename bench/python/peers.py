"""Ids of the Python peers that are installed, and what the peers make of ours; see ../peers.py."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import packages_distributions

import sonyflake

Read = Callable[[int], tuple[int, int, int]]
"""Returns unix milliseconds, node id and sequence of an id."""


def of_sonyflake(epoch: datetime, decompose: Callable[[int], tuple[int, int, int]]) -> Read:
    def read(raw: int) -> tuple[int, int, int]:
        ticks, node, sequence = decompose(raw)
        return int(epoch.timestamp()) * 1000 + ticks * 10, node, sequence

    return read


def sonyflake_1() -> tuple[Callable[[], int], Read]:
    flake = sonyflake.SonyFlake(machine_id=lambda: 0x0A2B)

    def decompose(raw: int) -> tuple[int, int, int]:
        parts = sonyflake.SonyFlake.decompose(raw)
        return parts["time"], parts["machine_id"], parts["sequence"]

    return flake.next_id, of_sonyflake(datetime(2014, 9, 1, tzinfo=UTC), decompose)


def sonyflake_2() -> tuple[Callable[[], int], Read]:
    epoch = datetime(2025, 1, 1, tzinfo=UTC)
    flake = sonyflake.Sonyflake(start_time=epoch, machine_id=0xF00D)

    def decompose(raw: int) -> tuple[int, int, int]:
        parts = flake.decompose(raw)
        return parts.time, parts.machine_id, parts.sequence

    return flake.next_id, of_sonyflake(epoch, decompose)


def simpleflake() -> tuple[Callable[[], int], Read]:
    from simpleflake import parse_simpleflake, simpleflake

    def read(raw: int) -> tuple[int, int, int]:
        parts = parse_simpleflake(raw)
        return round(parts.timestamp * 1000), 0, parts.random_bits

    return simpleflake, read


# The two that are called sonyflake live in environments of their own.
if "sonyflake-py" in packages_distributions()["sonyflake"]:
    PEERS = {
        "sonyflake": ("sonyflake-py", *sonyflake_1()),
        "simpleflake": ("simpleflake", *simpleflake()),
    }
else:
    PEERS = {"sonyflake2": ("sonyflake", *sonyflake_2())}

for layout, (peer, make, read) in PEERS.items():
    for made in [make() for _ in range(3)]:
        print("made", peer, layout, made, *read(made))
for line in sys.stdin:
    layout, id = line.split()
    if layout in PEERS:
        peer, _, read = PEERS[layout]
        print("read", peer, layout, id, *read(int(id)))
