"""System threads, also where gevent has replaced threads with greenlets.

Imports almost nothing: an event loop waits for it.
"""

from __future__ import annotations

import os
import sys
from _thread import start_new_thread
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def start_thread(call: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    """Makes a call on a system thread, also where gevent has replaced threads with greenlets.

    The end of the process does not wait for it.
    """
    monkey = sys.modules.get("gevent.monkey")
    start = monkey.get_original("_thread", "start_new_thread") if monkey else start_new_thread
    start(call, arguments)


class Queue:
    """Makes calls on at most this many threads, in their order. A call must not raise.

    Has no lock, which gevent might have replaced and a forked child would find taken.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._free = deque([None] * self._most)

    def add(self, call: Callable[[], object]) -> None:
        self._calls.append(call)
        if self._takes_thread():
            try:
                start_thread(self._work, ())
            except BaseException:
                self._free.append(None)
                raise

    def _takes_thread(self) -> bool:
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def _work(self) -> None:
        while True:
            try:
                call = self._calls.popleft()
            except IndexError:
                self._free.append(None)
                # A call that was added just before has found no thread.
                if self._calls and self._takes_thread():
                    continue
                return
            call()


def end_greenlets() -> None:
    """Closes the descriptors of the hub that has run greenlets in this thread, if there is one.

    Does not make a hub: two threads that make their first hub at the same time wait forever.
    """
    if is_gevents("_thread"):
        hub = sys.modules["gevent._hub_local"].get_hub_if_exists()
        if hub is not None:
            hub.destroy(destroy_loop=True)


def is_gevents(module: str) -> bool:
    """Returns whether gevent has replaced the functions of a module."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched(module))
