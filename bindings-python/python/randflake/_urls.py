"""What the clients of all servers have in common: their limits, and what a URL must not show."""

from __future__ import annotations

import importlib
import urllib.parse

from randflake.errors import InvalidArgumentError, StoreError

TIMEOUT = 3.0
"""Longest wait for a connection, and for an answer, in seconds."""


def driver(module: str, extra: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        raise StoreError(
            f"there is no module {module}, which talks to that server; pip install "
            f"'randflake[{extra}]'",
            "DRIVER_MISSING",
        ) from None


def bad_url(server: str, example: str) -> InvalidArgumentError:
    """Shows nothing of the URL, which may hold a password."""
    return InvalidArgumentError(
        f"this is no URL of {server}; one looks like {example}", "INVALID_ARGUMENT"
    )


def passwords_of(url: str) -> tuple[str, ...]:
    """Returns what must not be shown of a URL, as it is written and as it is meant."""
    parts = urllib.parse.urlsplit(url)
    query = urllib.parse.parse_qsl(parts.query)
    found = [parts.netloc.rpartition("@")[0].partition(":")[2]]
    found += [value for name, value in query if "password" in name]
    found += [urllib.parse.unquote(secret) for secret in found]
    return tuple(secret for secret in found if secret)


def without(hidden: tuple[str, ...], error: Exception) -> str:
    message = str(error)
    for secret in hidden:
        message = message.replace(secret, "***")
    return message.strip()
