"""What `lease` returns of a generator with leased node ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from randflake.errors import RandflakeError

__all__ = ["LeaseStatus"]


class LeaseStatus(NamedTuple):
    """How the lease of a generator was doing when it was asked.

    >>> import tempfile
    >>> from randflake import Randflake, generate_secret
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Randflake.leased(folder + "/ids.db", generate_secret(), ttl=60) as flake:
    ...         status = flake.lease
    >>> status.state, status.renewals, status.last_error
    ('holding', 0, None)
    >>> 50 < status.seconds_left <= 60
    True
    """

    state: str
    """"holding" while all is well.

    "retrying" if the store did not grant what it was last asked, or a lease was lost: the generator
    goes on to the end of what it has. "stopped" if it will not try again.
    """
    node_ids: tuple[int, ...]
    """The node ids, sorted."""
    start: int
    """The first unix second of the lease."""
    end_exclusive: int
    """The first unix second after the lease."""
    seconds_left: float
    """The time to that end by the machine's clock; 0 if it is over."""
    renewals: int
    """How many renewals the store has granted."""
    losses: int
    """How many node ids went to somebody else before they were given back."""
    last_error: RandflakeError | None
    """The last failure, also when all has been well since."""
