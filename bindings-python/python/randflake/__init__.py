"""Unique 64-bit ids that outsiders cannot predict, order or count.

    from randflake import Randflake

    flake = Randflake.leased("ids.db", secret)
    id = flake.generate()

The node id is leased from a SQLite file, or from PostgreSQL, MySQL, Redis or etcd: no other process
has it at the same time. See the README.
"""

import importlib
import sys
import types
import typing

try:
    from randflake._randflake import (
        Lease,
        Randflake,
        __version__,
        after_restore,
        first_package as _first_package,
        generate_secret,
    )
except ModuleNotFoundError as missing:
    if missing.name != "randflake._randflake":
        raise
    raise ImportError(
        "randflake has native code, which no archive can hold, and which is made for one platform; "
        f"there is none for this Python beside {__file__}: install it with pip where it runs",
        name=missing.name,
    ) from None
from randflake._other_package import warn_of_it as _warn_of_another_package
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
    Codes,
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
    set_node_ids,
)
from randflake.snowflake import BoundaryFlake, Layout, RawParts, Snowflake
from randflake.tickets import (
    CounterStatus,
    DatedTickets,
    Tickets,
    TicketsMetrics,
    fence_tickets,
    init_tickets,
    list_tickets,
    show_tickets,
)

if typing.TYPE_CHECKING:
    # The types of leased generators for type checkers.
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
    "Codes",
    "CounterStatus",
    "DatedTickets",
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
    "after_restore",
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
    "set_node_ids",
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
"""Where the names of the published 2.1 are; they are loaded on first use."""


def __getattr__(name: str) -> typing.Any:
    module = _PUBLISHED.get(name)
    if module is None:
        raise AttributeError(f"module 'randflake' has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def _imported_by_name() -> object:
    """Imports what the native half and `__getattr__` import by name.

    Nobody calls it: tools that follow imports, such as PyInstaller and Nuitka, read it.
    """
    import atexit
    import datetime
    import multiprocessing.process
    import os

    from randflake import _async, _async_clients, _changes, _clients, _times, randflake, sparx64

    modules = _async, _async_clients, _changes, _clients, _times, randflake, sparx64
    return atexit, datetime, multiprocessing.process, os, modules


def _load_once() -> None:
    """Makes every import return the first package.

    A program may import it again, as reloaders and Sphinx's autodoc do. The native half is loaded
    once, and its errors and objects have the classes of the first package.
    """
    first = _first_package(sys.modules[__name__])
    if first is not sys.modules[__name__]:
        sys.modules[__name__] = first
        for module in list(vars(first).values()):
            if isinstance(module, types.ModuleType) and module.__name__.startswith("randflake."):
                sys.modules[module.__name__] = module


_load_once()
_warn_of_another_package()
