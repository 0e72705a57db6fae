"""What Rust calls: says where a store is, and runs statements with its client."""

from __future__ import annotations

import os
import sys
from _thread import start_new_thread
from typing import TYPE_CHECKING, Any

from randflake.errors import InvalidArgumentError, InvalidTypeError
from randflake.stores import Refused, Source, Unavailable, is_gevents, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from randflake.stores import Rows

    _Send = Callable[[object, tuple[str, str] | None, str | None], None]
    """Takes what a call has returned, or the code and message of a refusal, or why it failed."""


def located(store: object) -> Source | str:
    """Returns how to run statements on a store with a server, and the path of any other store."""
    source = source_of(store)
    if source is not None:
        return source
    try:
        path = os.fsdecode(store)  # type: ignore[arg-type]  # which it checks
        os.fsencode(path)
    except TypeError:
        raise InvalidTypeError(
            "store must be the path of a SQLite file, a str or an os.PathLike, or the URL or a "
            f"client of a server, got an object of type {type(store).__name__}",
            "INVALID_ARGUMENT",
        ) from None
    except UnicodeError:
        raise InvalidArgumentError(
            "store must be the path of a SQLite file, got text that no path can have",
            "INVALID_ARGUMENT",
        ) from None
    return path


def begin(send: _Send, call: tuple[Any, ...]) -> None:
    """Calls the first of call with the rest, on a thread of the system's, and sends the outcome.

    A greenlet would never run: neither the thread that keeps a lease nor one that waits for the
    store runs greenlets.
    """
    start_thread(_answer, (send, call))


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


def _answer(send: _Send, call: tuple[Any, ...]) -> None:
    value, refused, why = None, None, None
    try:
        value = call[0](*call[1:])
    except Refused as error:
        refused = (error.code, error.message)
    except Unavailable as error:
        why = str(error)
    except BaseException as error:
        # Not its message, which may have a password.
        why = f"its client raised {type(error).__qualname__}"
    end_greenlets()
    send(value, refused, why)


def run(adapter: Any, text: str, parameters: list[str], wait: tuple[int, int] | None) -> object:
    """Runs a statement, with WAIT behind it if it is asked for.

    An adapter without run_and_wait answers with the rows alone, which grant nothing.
    """
    if wait is None or not hasattr(adapter, "run_and_wait"):
        rows: Rows = adapter.run(text, parameters)
        return rows
    return adapter.run_and_wait(text, parameters, *wait)
