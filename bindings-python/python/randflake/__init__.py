"""Unique 64-bit ids that outsiders cannot predict, order or count.

    from randflake import Randflake

    flake = Randflake.leased("ids.db", secret)
    id = flake.generate()

The node id comes from a SQLite file, and nobody else has it meanwhile. See the README.
"""

from randflake._randflake import (
    Inspector,
    Lease,
    Parts,
    Randflake,
    __version__,
    decode_string,
    encode_string,
    generate_secret,
)
from randflake.arrays import PartsArray
from randflake.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    RandflakeError,
    RetryLaterError,
    StoreError,
    WeakSecretWarning,
)
from randflake.leases import LeaseStatus

__all__ = [
    "Inspector",
    "InvalidArgumentError",
    "InvalidTypeError",
    "Lease",
    "LeaseStatus",
    "Parts",
    "PartsArray",
    "Randflake",
    "RandflakeError",
    "RetryLaterError",
    "StoreError",
    "WeakSecretWarning",
    "__version__",
    "decode_string",
    "encode_string",
    "generate_secret",
]
