"""What Rust calls when a lease has changed: logs it, and calls the function of the program."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from randflake._threads import end_greenlets, is_gevents, start_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from randflake.leases import LeaseStatus

    _Take = Callable[[], tuple[int, str, LeaseStatus] | None]
    """Returns the next change: its level, what to log and the status. None after the last."""

logger = logging.getLogger("randflake")
logger.addHandler(logging.NullHandler())


def begin(take: _Take, on_lease_change: Callable[[LeaseStatus], object] | None) -> None:
    """Starts a thread that takes all pending changes, in order, and ends."""
    if is_gevents("_thread"):
        start_thread(_tell, (take, on_lease_change))
        return
    # Not a thread of _thread, for which logging would leave an entry in threading's list.
    threading.Thread(
        target=_tell, args=(take, on_lease_change), name="randflake-changes", daemon=True
    ).start()


def _tell(take: _Take, on_lease_change: Callable[[LeaseStatus], object] | None) -> None:
    while (change := take()) is not None:
        level, message, status = change
        # No matter what a handler, a filter or the program raises, the next change is reported,
        # too.
        with suppress(BaseException):
            logger.log(level, message)
        if on_lease_change is not None:
            call(on_lease_change, status)
    end_greenlets()


def call(on_lease_change: Callable[[LeaseStatus], object], status: LeaseStatus) -> None:
    """Calls the function of the program; what it raises is logged and has no other effect."""
    try:
        on_lease_change(status)
    except BaseException:
        with suppress(BaseException):
            logger.exception("on_lease_change has raised an exception; the lease is not affected")
