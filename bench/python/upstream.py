"""The published pure-Python package randflake 2.1.0."""

import time

from randflake import v2
from worker import Case


def cases() -> tuple[list[Case], dict[str, str]]:
    start = int(time.time())
    flake = v2.Generator(v2.Config(v2.Lease(1, start, start + 86_400), bytes(range(16))))
    return [
        Case("upstream", "randflake 2.1.0 generate()", "peer", flake.generate),
        Case(
            "upstream_string",
            "randflake 2.1.0 generate_string()",
            "peer",
            flake.generate_string,
        ),
    ], {}
