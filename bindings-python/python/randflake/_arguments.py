"""Arguments of more than one pure Python module."""

from __future__ import annotations

from randflake.errors import InvalidTypeError


def wrong_type(rule: str, got: object) -> InvalidTypeError:
    """Makes the error of an argument of the wrong type.

    It does not show what it got, which may be a misplaced secret.
    """
    return InvalidTypeError(f"{rule}, got {type(got).__qualname__}", "INVALID_ARGUMENT")
