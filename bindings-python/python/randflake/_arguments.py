"""Arguments of more than one module that is Python alone."""

from __future__ import annotations

from randflake.errors import InvalidTypeError


def wrong_type(rule: str, got: object) -> InvalidTypeError:
    """Makes the error of an argument of the wrong type.

    It does not show what it got, which may be a secret in the wrong place.
    """
    return InvalidTypeError(f"{rule}, got {type(got).__qualname__}", "INVALID_ARGUMENT")
