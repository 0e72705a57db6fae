"""The soak's holder in Python; see soak.py.

`holder.py STORE LOG TTL NODE_COUNT` makes ids until SIGTERM, and forks at SIGUSR1. With a node id
as the fifth argument it leases none, but uses that one.
"""

import os
import signal
import sys
import time
from pathlib import Path

from randflake import Randflake, RandflakeError

PASSES = {"LEASE_UNAVAILABLE", "NODES_EXHAUSTED", "STORE_UNAVAILABLE", "CLOCK_SKEW"}
"""What passes by itself: a lease that is over, a store that is busy."""

ending = False
forking = False


def hear(number: int, _frame: object) -> None:
    global ending, forking
    if number == signal.SIGTERM:
        ending = True
    else:
        forking = True


def name(log: str, kind: str) -> Path:
    """Returns the name of a file of this process."""
    return Path(f"{log}.{os.getpid()}.{kind}")


def generator(store: str, ttl: str, node_count: str, *by_hand: str) -> Randflake:
    secret = os.environ["RANDFLAKE_SECRET"]
    if by_hand:
        return Randflake(int(by_hand[0]), secret)
    return Randflake.leased(
        store,
        secret,
        ttl=int(ttl),
        node_count=int(node_count),
        max_skew=0,
        acquire_timeout=60,
    )


def hold(flake: Randflake, log: str) -> None:
    """Makes ids and logs them, each process in its own log; says at last that all went well."""
    global forking
    file = name(log, "ids").open("xb", buffering=0)
    while not ending:
        if forking:
            forking = False
            if os.fork() == 0:
                file = name(log, "ids").open("xb", buffering=0)
        try:
            one, many = flake.generate(), flake.generate_array(100)
            file.write(one.to_bytes(8, "little", signed=True) + many.tobytes())
        except RandflakeError as error:
            if error.code not in PASSES:
                raise
        time.sleep(0.05)
    flake.close()
    name(log, "end").touch(exist_ok=False)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, hear)
    signal.signal(signal.SIGUSR1, hear)
    # Nobody waits for children, so the system is told to forget them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    store, log, *options = sys.argv[1:]
    hold(generator(store, *options), log)
