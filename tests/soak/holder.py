"""The soak's holder in Python; see soak.py.

`holder.py STORE LOG TTL NODE_COUNT` makes ids until SIGTERM, and forks at SIGUSR1. If a node id and
a port follow, it leases none, but uses that node id as soon as it can listen on the port.
"""

import os
import signal
import socket
import sys
import threading
import time
from array import array
from pathlib import Path

from randflake import Layout, Randflake, RandflakeError, Snowflake

PASSES = {
    "LEASE_UNAVAILABLE",
    "NODES_EXHAUSTED",
    "STORE_UNAVAILABLE",
    "STORE_QUARANTINED",
    "CLOCK_SKEW",
    "SEQUENCE_EXHAUSTED",
}
"""Temporary errors: a lease that has ended, a store that is busy."""
BATCH = 1000
"""Ids per batch."""
SINGLE = 100
"""Ids from single calls. Afterwards the thread's buffer has some left."""
LAYOUT = Layout(
    fields=[("time", 41), ("node", 5), ("sequence", 17)],
    tick_ms=1000,
    epoch_ms=1_730_000_000_000,
)
"""As in stores.py."""

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


def generator(store: str, ttl: str, node_count: str, *manual: str) -> Randflake | Snowflake:
    secret = os.environ["RANDFLAKE_SECRET"]
    if manual:
        node_id, port = map(int, manual)
        wait_for(port)
        return Randflake(node_id, secret)
    if "://" in store:
        return Snowflake.leased(
            store,
            LAYOUT,
            ttl=int(ttl),
            node_count=int(node_count),
            max_skew=1,
        )
    threading.Thread(target=read, args=[store], daemon=True).start()
    return Randflake.leased(
        store,
        secret,
        ttl=int(ttl),
        node_count=int(node_count),
        max_skew=0,
    )


def generator_at_last(*options: str) -> Randflake | Snowflake:
    """Tries again until a generator is available."""
    while not ending:
        try:
            return generator(*options)
        except RandflakeError as error:
            if error.code not in PASSES:
                raise
    sys.exit()


def wait_for(port: int) -> None:
    """Listens on a port as soon as no other process does; if it is 0, on any port at once."""
    while not ending:
        try:
            # Only the system closes it, when this process ends.
            socket.create_server(("127.0.0.1", port)).detach()
        except OSError:
            time.sleep(0.001)
        else:
            return
    sys.exit()


def read(store: str) -> None:
    """Keeps opening and closing the file, as a backup or a checksum would."""
    while True:
        with Path(store).open("rb") as file:
            file.read(16)
        time.sleep(0.01)


def hold(flake: Randflake | Snowflake, log: str) -> None:
    """Makes ids and logs them, each process in its own log; reports at the end if all went well."""
    global forking
    file = name(log, "ids").open("xb", buffering=0)
    while not ending:
        if forking:
            forking = False
            if os.fork() == 0:
                file = name(log, "ids").open("xb", buffering=0)
        try:
            many = flake.generate_array(BATCH)
            singles = array("q", [flake.generate() for _ in range(SINGLE)])
            file.write(many.tobytes() + singles.tobytes())
        except RandflakeError as error:
            if error.code not in PASSES:
                raise
        time.sleep(0.05)
    flake.close()
    name(log, "end").touch(exist_ok=False)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, hear)
    signal.signal(signal.SIGUSR1, hear)
    # This process does not wait for its children, so the system must forget them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    store, log, *options = sys.argv[1:]
    hold(generator_at_last(store, *options), log)
