"""What `Inspector.inspect_array` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
    """0 to 131071, counted from 0 in each second of each node."""
