"""Arrays of numpy, which does not have to be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from randflake._first import keep_first

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PartsArray"]


class PartsArray(NamedTuple):
    """The parts of many ids, one numpy array for each."""

    timestamp: NDArray[np.int64]
    """Unix seconds, 1730000000 to 2803741823."""
    node_id: NDArray[np.uint32]
    """0 to 131071."""
    sequence: NDArray[np.uint32]
    """The zero-based index of the id within its node and second, 0 to 131071."""


def empty_of(dtype: str) -> tuple[Callable[..., NDArray[Any]], np.dtype[Any]]:
    """Returns what makes an array of a length and a dtype, without setting elements, and the dtype.

    numpy takes longer to find a dtype than to use it.
    """
    try:
        import numpy as np
    except ImportError as cause:
        raise ImportError(
            "arrays need numpy, which could not be imported; install it with: pip install numpy",
            name="numpy",  # as of the import statement, so that callers can tell what is missing
        ) from cause
    return np.empty, np.dtype(dtype)


keep_first(globals())
