"""The names of the published `randflake.v2`, version 2.1, for programs that were written for it.

Ids, errors and leases are as in 2.1; the implementation is that of `Randflake`. New programs use
`Randflake`: docs/guides/upgrading.md says what each name becomes.

>>> import time
>>> from randflake.v2 import Config, Generator, Lease
>>> now = int(time.time())
>>> secret = bytes.fromhex("9d4be0a1c35f7826b60ef4d7132a985c")
>>> generator = Generator(Config(Lease(4200, now, now + 600), secret))
>>> generator.inspect(generator.generate()).node_id
4200
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, TypeAlias, TypeGuard

from randflake import _randflake, ids
from randflake.errors import RandflakeError
from randflake.ids import Parts

__all__ = [
    "RANDFLAKE_EPOCH_OFFSET",
    "RANDFLAKE_MAX_NODE",
    "RANDFLAKE_MAX_SEQUENCE",
    "RANDFLAKE_MAX_TIMESTAMP",
    "Clock",
    "Config",
    "ErrConsistencyViolation",
    "ErrInvalidID",
    "ErrInvalidLease",
    "ErrInvalidNode",
    "ErrInvalidSecret",
    "ErrRandflakeDead",
    "ErrResourceExhausted",
    "Generator",
    "Lease",
    "Parts",
    "RandflakeError",
    "decode_string",
    "encode_string",
]

Clock: TypeAlias = Callable[[], int]
"""Returns the unix second, as an int."""

_LAYOUT = _randflake.Layout("randflake")

RANDFLAKE_EPOCH_OFFSET = _LAYOUT.epoch_ms // 1000
"""The unix second at which ids begin."""
RANDFLAKE_MAX_TIMESTAMP = _LAYOUT.ends_at // 1000 - 1
"""The last unix second of an id."""
RANDFLAKE_MAX_NODE = _LAYOUT.max_node_id
RANDFLAKE_MAX_SEQUENCE = _LAYOUT.max_sequence


class _Error(RandflakeError):
    """An error that is made without arguments."""

    _message: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(self._message, type(self).code)

    def _fields(self) -> tuple[object, ...]:
        return ()


class ErrRandflakeDead(_Error):
    """The end of a lease lies after the last second of ids."""

    code = "LIFETIME_OVER"
    _message = f"ids end after the unix second {RANDFLAKE_MAX_TIMESTAMP}; end the lease there"


class ErrInvalidSecret(_Error):
    """The secret is not 16 bytes."""

    code = "INVALID_SECRET"
    _message = "the secret must be 16 bytes, as bytes, a bytearray or a memoryview"


class ErrInvalidLease(_Error):
    """The lease is not valid, belongs to another node, or does not cover the current second."""

    code = "INVALID_LEASE"
    _message = (
        "the lease must be in unix seconds within the lifetime of ids, with start < end_exclusive, "
        "and hold the current second; take one that does"
    )


class ErrInvalidNode(_Error):
    """The node id is out of range."""

    code = "INVALID_NODE"
    _message = f"the node id must be an int from 0 to {RANDFLAKE_MAX_NODE}"


class ErrResourceExhausted(_Error):
    """The second has no more ids; the next second has."""

    code = "SEQUENCE_EXHAUSTED"
    _message = (
        f"all {RANDFLAKE_MAX_SEQUENCE + 1} ids of this second are used; wait for the next one"
    )


class ErrConsistencyViolation(_Error):
    """The clock moved back, or does not show an int."""

    code = "CLOCK_MOVED_BACK"
    _message = "the clock must show unix seconds as an int, and never move back; correct it"


class ErrInvalidID(_Error):
    """The value is not a valid id or its text."""

    code = "INVALID_ID"
    _message = "an id is a signed 64-bit int, or its text of at most 13 digits from 0-9 and a-v"


_ERRORS: dict[str, type[_Error]] = {
    "INVALID_ID": ErrInvalidID,
    "INVALID_NODE": ErrInvalidNode,
    "INVALID_SECRET": ErrInvalidSecret,
    "INVALID_LEASE": ErrInvalidLease,
    "LEASE_NOT_STARTED": ErrInvalidLease,
    "LEASE_EXPIRED": ErrInvalidLease,
    "LIFETIME_OVER": ErrInvalidLease,
    "CLOCK_BEFORE_EPOCH": ErrInvalidLease,
    "SEQUENCE_EXHAUSTED": ErrResourceExhausted,
    "CLOCK_MOVED_BACK": ErrConsistencyViolation,
}
"""The error of 2.1 for each code of the core. Other codes did not exist, and pass through."""


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Lease:
    """The seconds in which a node id may be used.

    node_id: 0 to 131071. start, end_exclusive: the first unix second, and the one after the last.

    Raises ErrInvalidNode and ErrInvalidLease.

    >>> from randflake.v2 import Lease
    >>> Lease(42, 1763640000, 1763640300).end_exclusive
    1763640300
    """

    node_id: int
    start: int
    end_exclusive: int

    def __post_init__(self) -> None:
        if not _is_int(self.node_id) or not 0 <= self.node_id <= RANDFLAKE_MAX_NODE:
            raise ErrInvalidNode
        if not (_is_int(self.start) and _is_int(self.end_exclusive)):
            raise ErrInvalidLease
        if not RANDFLAKE_EPOCH_OFFSET <= self.start < self.end_exclusive:
            raise ErrInvalidLease
        if self.end_exclusive > RANDFLAKE_MAX_TIMESTAMP + 1:
            raise ErrInvalidLease


@dataclass(frozen=True)
class Config:
    """What a generator is made of.

    lease: only this generator may use its node id in its seconds.
    secret: 16 bytes, which are copied.
    clock: returns the unix second; the machine's if it is None.

    Raises ErrInvalidLease, ErrInvalidSecret, and ErrConsistencyViolation for a clock that cannot be
    called.
    """

    lease: Lease
    secret: bytes = field(repr=False)
    clock: Clock | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.lease, Lease):
            raise ErrInvalidLease
        if not isinstance(self.secret, (bytes, bytearray, memoryview)):
            raise ErrInvalidSecret
        secret = bytes(self.secret)
        if len(secret) != 16:
            raise ErrInvalidSecret
        object.__setattr__(self, "secret", secret)
        if self.clock is not None and not callable(self.clock):
            raise ErrConsistencyViolation


def encode_string(value: int) -> str:
    """Returns the text form of an id. Raises ErrInvalidID."""
    return ids.encode_string(_checked(value))


def decode_string(value: str) -> int:
    """Returns the id of a text form, which must be canonical. Raises ErrInvalidID."""
    if not isinstance(value, str):
        raise ErrInvalidID
    try:
        return ids.decode_string(value)
    except RandflakeError as error:
        raise ErrInvalidID from error


def _checked(value: int) -> int:
    if not _is_int(value) or not -(2**63) <= value < 2**63:
        raise ErrInvalidID
    return value


class Generator:
    """Generates ids of one node id while its lease holds. Never waits. Can be shared by threads.

    config: a Config.

    Raises ErrInvalidLease for anything else.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_config",
        "_flake",
        "_inspector",
        "_is_alone",
        "_last_alone",
        "_lock",
        "_next",
        "_process",
    )

    def __init__(self, config: Config) -> None:
        if not isinstance(config, Config):
            raise ErrInvalidLease
        self._config = config
        self._inspector = ids.Inspector(config.secret)
        # A finalizer may call during another call.
        self._lock = threading.RLock()
        self._clock = _randflake._ChangeableClock(self._reading_of(config.clock))
        self._is_alone = config.clock is not None
        self._last_alone = (0, 0)
        self._flake: _randflake.Randflake | None = None
        self._next: Callable[[], int] = self._first
        self._process = _randflake.fork_id()

    def generate(self) -> int:
        """Returns an id.

        Raises ErrInvalidLease outside the lease, ErrResourceExhausted where the second has no more
        ids, ErrConsistencyViolation where the clock moved back, and what an injected clock raises.
        """
        try:
            return self._next()
        except _Error:
            raise
        except RandflakeError as error:
            made = _ERRORS.get(error.code)
            if made is None:
                raise
            raise made from error

    def generate_string(self) -> str:
        """Returns the text form of an id. Raises what generate raises."""
        return ids.encode_string(self.generate())

    def extend_lease(self, next_lease: Lease) -> None:
        """Sets a later end. One that is not later changes nothing.

        next_lease: a Lease with the same node id and start.

        Raises ErrInvalidLease for any other.
        """
        if not isinstance(next_lease, Lease):
            raise ErrInvalidLease
        self._extend(next_lease)

    def lease(self) -> Lease:
        """Returns the lease as it is now."""
        return self._config.lease

    def inspect(self, value: int) -> Parts:
        """Returns what an id is made of, no matter who made it. Raises ErrInvalidID."""
        return self._inspector.inspect(_checked(value))

    def inspect_string(self, value: str) -> Parts:
        """Returns what the id of a text form is made of. Raises ErrInvalidID."""
        return self.inspect(decode_string(value))

    def _first(self) -> int:
        """Generates the first id.

        The generator is made here, since with the old names its clock is set later. On the
        machine's clock it shares what it has issued with others of its node id; on another clock it
        does not.
        """
        with self._unforked_lock():
            if self._flake is None:
                lease = self._config.lease
                flake = _randflake.Randflake(
                    lease.node_id,
                    self._config.secret,
                    lease=_randflake.Lease(lease.start, lease.end_exclusive),
                    max_wait=0,
                    clock=self._clock,
                )
                call: Callable[[], int] = flake._generate_in_order
                if self._is_alone:
                    call = partial(self._next_alone, flake)
                elif self._last_alone > (0, 0):
                    call = partial(self._next_after_alone, flake)
                if self._flake is None:  # a finalizer may have made one
                    self._flake, self._next = flake, call
        return self._next()

    def _unforked_lock(self) -> threading.RLock:
        """Returns the lock, unless a thread of the parent may hold it."""
        if self._process != _randflake.fork_id():
            raise RandflakeError(
                "the process of this generator was forked or restored; make one with a node id "
                "that no other process has",
                "FORKED",
            )
        return self._lock

    def _next_alone(self, flake: _randflake.Randflake) -> int:
        id = flake._generate_in_order()
        with self._unforked_lock():
            if flake is self._flake:
                self._last_alone = max(self._last_alone, self._place_of(id))
                return id
        return self._next()  # the clock was set to the machine's in the meantime

    def _next_after_alone(self, flake: _randflake.Randflake) -> int:
        """Generates an id after the ones that it has issued by itself."""
        place = (0, 0)
        while place <= self._last_alone:
            id = flake._generate_in_order()
            place = self._place_of(id)
            if place[0] < self._last_alone[0]:
                raise ErrConsistencyViolation
        self._next = flake._generate_in_order
        return id

    def _place_of(self, id: int) -> tuple[int, int]:
        parts = self._inspector.inspect(id)
        return parts.timestamp, parts.sequence

    def _extend(self, lease: Lease) -> bool:
        with self._unforked_lock():
            current = self._config.lease
            if (lease.node_id, lease.start) != (current.node_id, current.start):
                raise ErrInvalidLease
            if lease.end_exclusive <= current.end_exclusive:
                return False
            if self._flake is not None:
                self._flake.extend_lease(lease.end_exclusive)
            self._config = replace(self._config, lease=lease)
            return True

    def _set_clock(self, clock: Clock | None) -> None:
        with self._unforked_lock():
            if self._flake is None:
                self._is_alone = clock is not None
            elif clock is None and self._is_alone:
                # From now on it is one of the generators that share the machine's clock.
                self._clock = _randflake._ChangeableClock(None)
                self._is_alone, self._flake, self._next = False, None, self._first
            self._clock.set(self._reading_of(clock))

    def _reading_of(self, clock: Clock | None) -> Clock | None:
        """Returns a clock that refuses what 2.1 refused, in its order."""
        if clock is None:
            return None

        def reading() -> int:
            now = clock()
            if not _is_int(now):
                raise ErrConsistencyViolation
            if not self.lease().start <= now < self.lease().end_exclusive:
                raise ErrInvalidLease
            return now

        return reading
