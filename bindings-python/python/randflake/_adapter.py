"""How statements are run with any client; randflake.stores has the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Rows = Sequence[Sequence[str | None]]
"""Rows of text."""


class Adapter(Protocol):
    """Runs statements with any other client. The guide of PostgreSQL has one.

    The thread that keeps a lease calls it, one call at a time. It may also have two methods:
    discard(), to give up a connection that may deliver the answer to another statement, and rest(),
    to close a connection of its own that is not needed for the next minute.

    For a Redis whose replicas must confirm a lease (min-replicas-to-write) it must have a method
    run_and_wait(text, parameters, replicas, milliseconds): it runs the statement as run does, sends
    WAIT with the other two behind it on the same connection and in one round trip, and returns a
    tuple of the rows and the number that WAIT said. Without it, such a Redis is a WEAK_STORE.
    """

    server: str
    """Which kind of server it talks to: "postgresql", "mysql", "redis" or "etcd"."""

    def run(self, text: str, parameters: list[str]) -> Rows:
        """Runs one statement, committed when this returns, and returns its rows.

        Waits no longer than a few seconds, and ends on the server what it gives up: otherwise each
        further statement would wait beside one that waits for a lock. In PostgreSQL text is one SQL
        statement with $1, $2…, and it runs outside of any transaction; parameters and columns are
        all of type text. Raise Unavailable on a warning from the source file syncrep.c: somebody
        cancelled the wait for standbys. In MySQL its parameters are ?, and the answer to a
        statement without rows is one row of one cell, its insert id, or "0". In Redis text is a
        command and parameters are its arguments; a list of lists is returned as it is, a flat list
        or a map as one row, anything else as one row of one cell. In etcd text is the path of a
        request, the only parameter is the JSON to POST, and the answer is one row of two cells: its
        body, and its Date header, or None if it has none. Without that header, leases are kept by
        this machine's clock, and a fence, a quarantine, a repair and a release for a dead holder
        are refused: they need two clocks that agree.

        Raises Refused for an error that the server itself reports, and anything else if the server
        is unreachable; only the class name of that is shown, or the message of an Unavailable.
        """
        ...


class Refused(Exception):
    """The server answered with an error. It must not contain a password."""

    code: str
    """SQLSTATE of PostgreSQL, the number of MySQL's error, the first word of Redis's message."""
    message: str

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class Unavailable(Exception):
    """The server cannot be reached. The message is shown, and must not contain a password."""
