"""Tests that the soak finds what it looks for."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence, Set
from pathlib import Path

import numpy as np
import pytest
from check import Change, Checker, Stamps, Verdict
from numpy.typing import NDArray
from randflake import Inspector, generate_secret

SECRET = generate_secret()
TOKENS = [bytes([number]) * 16 for number in range(4)]
SECOND = 1_800_000_000
EPOCH = 1_730_000_000


def ids(*stamps: tuple[int, int, int]) -> Sequence[int]:
    """Returns the ids of node id, second after SECOND, and sequence."""
    encrypt = Inspector(SECRET).encrypt
    return [
        encrypt((SECOND + second - EPOCH) << 34 | node_id << 17 | sequence)
        for node_id, second, sequence in stamps
    ]


def verdict(
    holders: list[Sequence[int]], history: list[Change], manual: Set[int] = frozenset()
) -> Verdict:
    inspector = Inspector(SECRET)

    def stamps(ids: NDArray[np.int64]) -> Stamps:
        parts = inspector.inspect_array(ids)
        return parts.node_id.astype(np.int64), parts.timestamp

    checker = Checker(stamps)
    for number, made in enumerate(holders):
        checker.add(number, np.array(made, np.int64))
    absolute = [(node, SECOND + start, SECOND + end, token) for node, start, end, token in history]
    return checker.judge(absolute, manual)


def test_good_holders_are_good() -> None:
    history: list[Change] = [
        (7, 0, 10, TOKENS[0]),
        (8, 0, 10, TOKENS[1]),
        (7, 0, 15, TOKENS[0]),  # renewed
        (7, 0, 3, None),  # released
        (7, 3, 3, TOKENS[2]),  # never used
        (7, 3, 3, None),
        (7, 3, 13, TOKENS[3]),
    ]
    first = ids((7, 0, 0), (7, 0, 1), (7, 2, 0))
    second = ids((8, 0, 0), (7, 3, 0), (7, 12, 131_071))
    assert verdict([first, second], history) == Verdict(ids=6, leases=4)
    third = ids((7, 3, 0))
    found = verdict([first, ids((8, 9, 0)), third], history)
    assert (found.is_good(), found.handed_over) == (True, 0), "none had the one in between"
    history = [(7, 0, 3, TOKENS[0]), (7, 3, 6, TOKENS[1])]
    assert verdict([first, third], history) == Verdict(ids=4, leases=2, handed_over=1)


def test_a_manually_assigned_node_id_needs_no_lease() -> None:
    holders = [ids((7, 0, 0), (7, 1, 0)), ids((7, 2, 0)), ids((7, 3, 0), (7, 5, 0))]
    assert verdict(holders, [], {7}) == Verdict(ids=5, manual=2)
    found = verdict([*holders, ids((7, 5, 1))], [], {7})
    assert (found.is_good(), found.shared_seconds) == (False, 1)


LEASE: Change = (7, 0, 10, TOKENS[0])

BAD: dict[str, tuple[list[Sequence[int]], list[Change], Verdict]] = {
    "an id twice": ([ids((7, 0, 0), (7, 0, 0))], [LEASE], Verdict(2, 1, repeated_ids=1)),
    "two holders in a second": (
        [ids((7, 0, 0)), ids((7, 0, 1))],
        [LEASE],
        Verdict(2, 1, shared_seconds=1),
    ),
    "two holders of a lease": (
        [ids((7, 0, 0)), ids((7, 1, 0))],
        [LEASE],
        Verdict(2, 1, uncovered=1),
    ),
    "no lease": ([ids((7, 0, 0))], [], Verdict(1, uncovered=1)),
    "before the lease": ([ids((7, -1, 0))], [LEASE], Verdict(1, 1, uncovered=1)),
    "after the lease": ([ids((7, 10, 0))], [LEASE], Verdict(1, 1, uncovered=1)),
    "after the release": (
        [ids((7, 5, 0))],
        [LEASE, (7, 0, 5, None)],
        Verdict(1, 1, uncovered=1),
    ),
    "leases that overlap": ([], [LEASE, (7, 9, 19, TOKENS[1])], Verdict(leases=2, overlaps=1)),
    "a renewal that shortens": ([], [LEASE, (7, 0, 9, TOKENS[0])], Verdict(leases=1, overlaps=1)),
    "a renewal that moves": ([], [LEASE, (7, 1, 19, TOKENS[0])], Verdict(leases=1, overlaps=1)),
    "a release of more": ([], [LEASE, (7, 0, 11, None)], Verdict(leases=1, overlaps=1)),
    "a release of nothing": ([], [(7, 0, 11, None)], Verdict(leases=0, overlaps=1)),
}


@pytest.mark.parametrize("what", BAD)
def test_it_finds(what: str) -> None:
    holders, history, expected = BAD[what]
    found = verdict(holders, history)
    assert found == expected
    assert not found.is_good()


def test_two_holders_with_one_manually_assigned_node_id_are_found() -> None:
    soak = str(Path(__file__).with_name("soak.py"))
    command = [sys.executable, soak, "--sabotage", "--minutes", "0.2"]
    tests = str(Path(__file__).parents[2] / "bindings-python" / "tests")
    environment = {**os.environ, "PYTHONPATH": tests}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    report = re.search(r" (\d+) shared seconds, 0 overlaps, (\d+) uncovered", done.stdout)
    assert report is not None, (done.stdout, done.stderr)
    assert int(report[1]) > 0
    assert int(report[2]) > 0
