"""Another package of this name, which was on the Python index before this one: versions to 2.1."""

import sys
import warnings
from pathlib import Path

_ONLY_THERE = "_core.py"
"""A file of that package, in its folder `randflake`, which this one does not have."""


def warn_of_it() -> None:
    """Warns if that package is there, too: the order of sys.path decides which one is imported."""
    for entry in sys.path:
        folder = Path(entry, "randflake")
        if (folder / _ONLY_THERE).is_file():
            warnings.warn(
                f"{folder.resolve()} is of another package named randflake, version 2.1 or older; "
                "which of the two is imported depends on sys.path. Remove both, then install this "
                f"one: {sys.executable} -m pip uninstall randflake",
                RuntimeWarning,
                stacklevel=3,
            )
