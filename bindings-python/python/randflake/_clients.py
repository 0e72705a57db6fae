"""What Rust calls: says where a store is, and runs statements with its client."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from randflake._threads import end_greenlets, start_thread
from randflake.errors import InvalidArgumentError, InvalidTypeError
from randflake.stores import Refused, Source, Unavailable, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from randflake.stores import Rows

    _Send = Callable[[object, tuple[str, str] | None, str | None], None]
    """Takes what a call has returned, or the code and message of a refusal, or the reason for its
    failure."""


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
    """Calls the first of call with the rest, on a system thread, and sends the outcome.

    A greenlet would never run: the thread that keeps a lease and the threads that wait for the
    store do not run greenlets.
    """
    start_thread(_answer, (send, call))


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
    """Runs a statement, followed by WAIT if requested.

    An adapter without run_and_wait answers with only the rows, which grant nothing.
    """
    if wait is None or not hasattr(adapter, "run_and_wait"):
        rows: Rows = adapter.run(text, parameters)
        return rows
    return adapter.run_and_wait(text, parameters, *wait)
