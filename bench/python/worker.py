"""Measures the Python cases of the module named on the command line.

Says on the first line which there are, then does one run of each case that it is asked for by
name; see ../run.py.
"""

import importlib
import json
import sys
import time
from dataclasses import dataclass
from timeit import Timer
from typing import Any

# How long one run takes, in seconds.
RUN = 0.005


@dataclass
class Case:
    """Something to measure."""

    name: str
    label: str
    kind: str
    """`us`, `peer` or `floor`."""
    call: Any
    """The function that the loop calls, as its local variable."""
    argument: Any = None
    """The arguments of the call, if any."""
    ids: int = 1
    """How many ids a call makes."""
    times: int = 0

    def run(self) -> float:
        """Returns the nanoseconds per id, the loop included."""
        timer = Timer(
            "call()" if self.argument is None else "call(argument)",
            "call, argument = case.call, case.argument",
            time.perf_counter,
            {"case": self},
        )
        if not self.times:
            self.times = 1
            while timer.timeit(self.times) < RUN / 2:
                self.times *= 2
        # Earlier cases have evicted this one from the caches.
        timer.timeit(self.times // 4 + 1)
        each = timer.timeit(self.times) / self.times
        # A disturbance of the first runs must not decide how long the others are.
        self.times = max(1, int(RUN / each))
        return each / self.ids * 1e9


def serve(cases: list[Case], facts: dict[str, str]) -> None:
    by_name = {case.name: case for case in cases}
    listed = [(case.name, case.label, case.kind) for case in cases]
    print(json.dumps({"cases": listed, "facts": facts}), flush=True)
    for line in sys.stdin:
        print(by_name[line.strip()].run(), flush=True)


if __name__ == "__main__":
    # Under its own name, so that there is one class Case.
    sys.modules["worker"] = sys.modules["__main__"]
    serve(*importlib.import_module(sys.argv[1]).cases())
