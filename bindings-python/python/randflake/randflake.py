"""The names of the published `randflake.randflake`, version 2.1, for programs written for it.

They were already deprecated there: docs/guides/upgrading.md says what each name becomes.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from randflake import _randflake
from randflake.errors import RandflakeError
from randflake.v2 import (
    RANDFLAKE_EPOCH_OFFSET,
    RANDFLAKE_MAX_NODE,
    RANDFLAKE_MAX_SEQUENCE,
    RANDFLAKE_MAX_TIMESTAMP,
    Clock,
    Config,
    ErrConsistencyViolation,
    ErrInvalidID,
    ErrInvalidLease,
    ErrInvalidNode,
    ErrInvalidSecret,
    ErrRandflakeDead,
    ErrResourceExhausted,
    Generator as _Generator,
    Lease,
    _is_int,
)

__all__ = [
    "RANDFLAKE_EPOCH_OFFSET",
    "RANDFLAKE_MAX_NODE",
    "RANDFLAKE_MAX_SEQUENCE",
    "RANDFLAKE_MAX_TIMESTAMP",
    "RANDFLAKE_NODE_BITS",
    "RANDFLAKE_SEQUENCE_BITS",
    "RANDFLAKE_TIMESTAMP_BITS",
    "ErrConsistencyViolation",
    "ErrInvalidID",
    "ErrInvalidLease",
    "ErrInvalidNode",
    "ErrInvalidSecret",
    "ErrRandflakeDead",
    "ErrResourceExhausted",
    "Generator",
    "LeaseInfo",
    "RandflakeError",
]

RANDFLAKE_TIMESTAMP_BITS, RANDFLAKE_NODE_BITS, RANDFLAKE_SEQUENCE_BITS = (
    bits for _, bits in _randflake.Layout("randflake").fields
)


@dataclass
class LeaseInfo:
    """A lease; lease_end is its last second."""

    node_id: int
    lease_start: int
    lease_end: int


class Generator:
    """Generates ids of one node id from lease_start to the end of lease_end. Never waits.

    node_id: 0 to 131071. lease_start, lease_end: unix seconds. secret: 16 bytes.

    Raises ErrRandflakeDead for an end after the last second of ids, ErrInvalidLease,
    ErrInvalidNode, ErrInvalidSecret. Warns of its deprecation.
    """

    def __init__(self, node_id: int, lease_start: int, lease_end: int, secret: bytes) -> None:
        warnings.warn(
            "randflake.Generator is deprecated; use randflake.Randflake, or randflake.v2.Generator",
            DeprecationWarning,
            stacklevel=2,
        )
        self._time_source: Clock | None = None
        self._generator = _Generator(Config(_lease_of(node_id, lease_start, lease_end), secret))

    @property
    def node_id(self) -> int:
        return self._generator.lease().node_id

    @property
    def lease_start(self) -> int:
        return self._generator.lease().start

    @property
    def lease_end(self) -> int:
        """The last second of the lease."""
        return self._generator.lease().end_exclusive - 1

    @property
    def time_source(self) -> Clock | None:
        """Returns the unix second; None for the machine's clock. Can be set at any time.

        Setting something that cannot be called raises ErrConsistencyViolation.
        """
        return self._time_source

    @time_source.setter
    def time_source(self, clock: Clock | None) -> None:
        if clock is not None and not callable(clock):
            raise ErrConsistencyViolation
        self._generator._set_clock(clock)
        self._time_source = clock

    def update_lease(self, lease_start: int, lease_end: int) -> bool:
        """Sets a later end, for the same start. Returns whether that changed anything."""
        try:
            return self._generator._extend(_lease_of(self.node_id, lease_start, lease_end))
        except RandflakeError:
            return False

    def get_lease_info(self) -> LeaseInfo:
        """Returns the lease as it is now."""
        lease = self._generator.lease()
        return LeaseInfo(lease.node_id, lease.start, lease.end_exclusive - 1)

    def generate(self) -> int:
        """Returns an id. Raises what generate of randflake.v2 raises."""
        return self._generator.generate()

    def generate_string(self) -> str:
        """Returns the text form of an id. Raises what generate raises."""
        return self._generator.generate_string()

    def inspect(self, id_val: int) -> tuple[int, int, int]:
        """Returns the unix second, the node id and the sequence of an id. Raises ErrInvalidID."""
        parts = self._generator.inspect(id_val)
        return parts.timestamp, parts.node_id, parts.sequence

    def inspect_string(self, id_str: str) -> tuple[int, int, int]:
        """Does the same for a text: in any case, up to the first "=", modulo 2**64; "" is 0.

        Raises ErrInvalidID.
        """
        return self.inspect(_decoded(id_str))


def _lease_of(node_id: int, lease_start: int, lease_end: int) -> Lease:
    if not _is_int(lease_start) or not _is_int(lease_end) or lease_end < lease_start:
        raise ErrInvalidLease
    if lease_end > RANDFLAKE_MAX_TIMESTAMP:
        raise ErrRandflakeDead
    return Lease(node_id, lease_start, lease_end + 1)


def _decoded(text: str) -> int:
    if not isinstance(text, str):
        raise ErrInvalidID
    digits = text.partition("=")[0]
    if not re.fullmatch("[0-9a-vA-V]*", digits):
        raise ErrInvalidID
    number = int(digits or "0", 32) % 2**64
    return number - 2**64 if number >= 2**63 else number
