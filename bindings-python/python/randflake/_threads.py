"""Threads of the system's, also where gevent has put greenlets in their place.

Imports next to nothing: an event loop waits for it.
"""

from __future__ import annotations

import sys
from _thread import start_new_thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def start_thread(call: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    """Makes a call on a thread of the system's, also where gevent has put greenlets in their place.

    The end of the process does not wait for it.
    """
    monkey = sys.modules.get("gevent.monkey")
    start = monkey.get_original("_thread", "start_new_thread") if monkey else start_new_thread
    start(call, arguments)


def end_greenlets() -> None:
    """Closes the descriptors of what has run greenlets in this thread, if anything has.

    Makes nothing that has not: two threads that make their first hub at a time wait for ever.
    """
    if is_gevents("_thread"):
        hub = sys.modules["gevent._hub_local"].get_hub_if_exists()
        if hub is not None:
            hub.destroy(destroy_loop=True)


def is_gevents(module: str) -> bool:
    """Returns whether gevent has replaced the functions of a module."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched(module))
