"""Unique 64-bit ids that outsiders cannot predict, order or count.

    from randflake import Randflake

    flake = Randflake(node_id, secret)
    id = flake.generate()

A node id given by hand is safe for one live process at a time. See the README.
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
    WeakSecretWarning,
)

__all__ = [
    "Inspector",
    "InvalidArgumentError",
    "InvalidTypeError",
    "Lease",
    "Parts",
    "PartsArray",
    "Randflake",
    "RandflakeError",
    "RetryLaterError",
    "WeakSecretWarning",
    "__version__",
    "decode_string",
    "encode_string",
    "generate_secret",
]
