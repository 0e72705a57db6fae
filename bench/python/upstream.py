"""The published pure-Python package randflake 2.1.0, and a peer that has another one's name."""

import time
from datetime import UTC, datetime

import sonyflake
from randflake import v2
from worker import Case


def cases() -> tuple[list[Case], dict[str, str]]:
    start = int(time.time())
    flake = v2.Generator(v2.Config(v2.Lease(1, start, start + 86_400), bytes(range(16))))
    theirs = sonyflake.Sonyflake(start_time=datetime(2025, 1, 1, tzinfo=UTC), machine_id=1)
    return [
        Case(
            "sonyflake",
            "sonyflake (at most 25 600 ids a second)",
            "peer",
            theirs.next_id,
        ),
        Case("upstream", "randflake 2.1.0 generate()", "peer", flake.generate),
        Case(
            "upstream_string",
            "randflake 2.1.0 generate_string()",
            "peer",
            flake.generate_string,
        ),
    ], {}
