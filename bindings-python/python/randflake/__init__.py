"""Unique 64-bit ids that outsiders cannot predict, order or count.

    from randflake import Randflake

    flake = Randflake.leased("ids.db", secret)
    id = flake.generate()

The node id is leased from a SQLite file, or from PostgreSQL, Redis or etcd: no other process has it
at the same time. See the README.
"""

import importlib
import typing

from randflake._randflake import Lease, Randflake, __version__, generate_secret
from randflake.arrays import PartsArray
from randflake.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    LifetimeWarning,
    RandflakeError,
    RetryLaterError,
    StoreError,
    WeakSecretWarning,
)
from randflake.ids import (
    Cloak,
    Inspector,
    Parts,
    decode_string,
    decode_strings,
    encode_string,
    encode_strings,
)
from randflake.leases import LeaseStatus, Metrics, NodeStatus, StoreLimits, StoreStatus
from randflake.operators import (
    fence_store,
    init_store,
    inspect_lease,
    list_leases,
    release_lease,
    repair_lease,
    repair_store,
)
from randflake.snowflake import BoundaryFlake, Layout, RawParts, Snowflake
from randflake.tickets import (
    CounterStatus,
    Tickets,
    TicketsMetrics,
    fence_tickets,
    init_tickets,
    list_tickets,
    show_tickets,
)

if typing.TYPE_CHECKING:
    # What type checkers take a leased generator for.
    from randflake._randflake import LeasedRandflake as LeasedRandflake
    from randflake.randflake import (
        RANDFLAKE_EPOCH_OFFSET as RANDFLAKE_EPOCH_OFFSET,
        RANDFLAKE_MAX_NODE as RANDFLAKE_MAX_NODE,
        RANDFLAKE_MAX_SEQUENCE as RANDFLAKE_MAX_SEQUENCE,
        RANDFLAKE_MAX_TIMESTAMP as RANDFLAKE_MAX_TIMESTAMP,
        ErrConsistencyViolation as ErrConsistencyViolation,
        ErrInvalidID as ErrInvalidID,
        ErrInvalidLease as ErrInvalidLease,
        ErrInvalidNode as ErrInvalidNode,
        ErrInvalidSecret as ErrInvalidSecret,
        ErrRandflakeDead as ErrRandflakeDead,
        ErrResourceExhausted as ErrResourceExhausted,
        Generator as Generator,
        LeaseInfo as LeaseInfo,
    )
    from randflake.snowflake import LeasedSnowflake as LeasedSnowflake
    from randflake.sparx64 import (
        ErrInvalidBuffer as ErrInvalidBuffer,
        ErrInvalidKey as ErrInvalidKey,
        Sparx64 as Sparx64,
    )

__all__ = [
    "BoundaryFlake",
    "Cloak",
    "CounterStatus",
    "Inspector",
    "InvalidArgumentError",
    "InvalidTypeError",
    "Layout",
    "Lease",
    "LeaseStatus",
    "LifetimeWarning",
    "Metrics",
    "NodeStatus",
    "Parts",
    "PartsArray",
    "Randflake",
    "RandflakeError",
    "RawParts",
    "RetryLaterError",
    "Snowflake",
    "StoreError",
    "StoreLimits",
    "StoreStatus",
    "Tickets",
    "TicketsMetrics",
    "WeakSecretWarning",
    "__version__",
    "decode_string",
    "decode_strings",
    "encode_string",
    "encode_strings",
    "fence_store",
    "fence_tickets",
    "generate_secret",
    "init_store",
    "init_tickets",
    "inspect_lease",
    "list_leases",
    "list_tickets",
    "release_lease",
    "repair_lease",
    "repair_store",
    "show_tickets",
]

_PUBLISHED = {
    **dict.fromkeys(("ErrInvalidBuffer", "ErrInvalidKey", "Sparx64"), "randflake.sparx64"),
    **dict.fromkeys(
        (
            "ErrConsistencyViolation",
            "ErrInvalidID",
            "ErrInvalidLease",
            "ErrInvalidNode",
            "ErrInvalidSecret",
            "ErrRandflakeDead",
            "ErrResourceExhausted",
            "Generator",
            "LeaseInfo",
            "RANDFLAKE_EPOCH_OFFSET",
            "RANDFLAKE_MAX_NODE",
            "RANDFLAKE_MAX_SEQUENCE",
            "RANDFLAKE_MAX_TIMESTAMP",
        ),
        "randflake.randflake",
    ),
}
"""Where the names of the published 2.1 are, which are loaded with their first use."""


def __getattr__(name: str) -> typing.Any:
    module = _PUBLISHED.get(name)
    if module is None:
        raise AttributeError(f"module 'randflake' has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)
