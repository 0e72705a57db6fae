"""The errors of this package. `code` is the same string in every language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from randflake._first import keep_first

__all__ = [
    "InvalidArgumentError",
    "InvalidTypeError",
    "LifetimeWarning",
    "RandflakeError",
    "RetryLaterError",
    "StoreError",
    "WeakSecretWarning",
]


if TYPE_CHECKING:
    _Code: TypeAlias = Literal[
        "INVALID_SECRET",
        "INVALID_NODE",
        "INVALID_LEASE",
        "INVALID_ID",
        "INVALID_ARGUMENT",
        "NODE_IN_USE",
        "LEASE_NOT_STARTED",
        "LEASE_EXPIRED",
        "SEQUENCE_EXHAUSTED",
        "CLOCK_MOVED_BACK",
        "CLOCK_BEFORE_EPOCH",
        "LIFETIME_OVER",
        "FORKED",
        "CLOSED",
        "INTERNAL",
        "LEASE_UNAVAILABLE",
        "STORE_UNAVAILABLE",
        "NODES_EXHAUSTED",
        "CLOCK_SKEW",
        "LEASE_LOST",
        "STORE_QUARANTINED",
        "STORE_REPLACED",
        "STORE_NOT_INITIALIZED",
        "SECRET_MISMATCH",
        "WEAK_STORE",
        "DRIVER_MISSING",
    ]


class RandflakeError(Exception):
    """Base class of every error of this package. Errors compare and pickle.

    >>> from randflake import RandflakeError, decode_string
    >>> try:
    ...     decode_string("not an id")
    ... except RandflakeError as error:
    ...     print(error.code)
    INVALID_ID
    """

    # The notes are not in __dict__, which FastAPI shows to clients whose input is refused.
    __slots__ = ("__notes__",)

    code: _Code
    """What went wrong, as a stable name such as "SEQUENCE_EXHAUSTED"."""

    def __init__(self, message: str, code: _Code = "INTERNAL") -> None:
        super().__init__(message)
        self.code = code

    def _fields(self) -> tuple[object, ...]:
        return (*self.args, self.code)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __reduce__(self) -> tuple[object, ...]:
        # By default, exceptions are rebuilt only from args.
        notes = {"__notes__": self.__notes__} if hasattr(self, "__notes__") else {}
        return (type(self), self._fields(), self.__dict__ | notes)


class InvalidArgumentError(RandflakeError, ValueError):
    """An argument is out of its range: one of the codes that start with INVALID_."""


class InvalidTypeError(InvalidArgumentError, TypeError):
    """An argument is of the wrong type: one of the codes that start with INVALID_."""


class RetryLaterError(RandflakeError):
    """No id is available within max_wait, but one will be later.

    Its codes are SEQUENCE_EXHAUSTED, CLOCK_MOVED_BACK and LEASE_NOT_STARTED, and for a leased
    generator without a lease LEASE_UNAVAILABLE, whose __cause__ is the error of the store, if there
    was one.
    """

    retry_after: float
    """How many seconds after the failed call the same call can succeed.

    With LEASE_UNAVAILABLE, when another try makes sense: at most 5.
    """

    def __init__(self, message: str, code: _Code, retry_after: float) -> None:
        super().__init__(message, code)
        self.retry_after = retry_after

    def _fields(self) -> tuple[object, ...]:
        return (*super()._fields(), self.retry_after)


class StoreError(RandflakeError):
    """A store grants no lease, or cannot be trusted.

    Its codes are STORE_UNAVAILABLE, NODES_EXHAUSTED, CLOCK_SKEW, LEASE_LOST, STORE_QUARANTINED,
    STORE_REPLACED, STORE_NOT_INITIALIZED, SECRET_MISMATCH, WEAK_STORE and DRIVER_MISSING.
    """

    retry_after: float | None
    """After how many seconds the same call may succeed; None if that is not known."""

    def __init__(self, message: str, code: _Code, retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.retry_after = retry_after

    def _fields(self) -> tuple[object, ...]:
        return (*super()._fields(), self.retry_after)


class WeakSecretWarning(UserWarning):
    """A secret looks like a password or a pattern, which can be guessed from a few ids."""


class LifetimeWarning(UserWarning):
    """The layout of a generator ends within two years."""


keep_first(globals())
