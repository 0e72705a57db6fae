"""What the clients of all servers have in common: limits, and the address that a URL gives."""

from __future__ import annotations

import importlib
import urllib.parse
from typing import NamedTuple

from randflake.errors import StoreError

TIMEOUT = 3.0
"""The longest wait for a connection, and for an answer, in seconds."""


def driver(module: str, extra: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        raise StoreError(
            f"{module}, which talks to that server, is not installed: pip install "
            f"'randflake[{extra}]'",
            "DRIVER_MISSING",
        ) from None


class Address(NamedTuple):
    """The parts of a URL, as Rust has read it: a client is given these parts, not the URL."""

    server: str
    """As in an Adapter."""
    hosts: list[tuple[str, int]]
    user: str | None
    password: str | None
    database: str
    tls: bool
    options: dict[str, str]
    place: str
    """For people: a URL without its password."""
    key: str
    """What URLs have in common that use a single client."""

    def __repr__(self) -> str:
        return f"Address({self.place})"

    def hidden(self) -> tuple[str, ...]:
        """Returns what must not be shown: the password, as it is and as URLs have it."""
        if not self.password:
            return ()
        return (self.password, urllib.parse.quote(self.password, safe=""))


def without(hidden: tuple[str, ...], error: Exception) -> str:
    message = str(error)
    for secret in hidden:
        message = message.replace(secret, "***")
    return message.strip()
