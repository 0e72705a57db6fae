"""Another package of this name, which was on the Python index before this one: versions to 2.1."""

import os
import sys
import warnings

_ONLY_THERE = "_core.py"
"""A file of that package, in its folder `randflake`, which this one does not have."""


def warn_of_it() -> None:
    """Warns if that package is there, too: the order of sys.path decides which one is imported."""
    for entry in sys.path:
        # Import ignores others. Unlike those of pathlib, these functions raise for no folder.
        if not isinstance(entry, str):
            continue
        folder = os.path.join(entry, "randflake")  # noqa: PTH118
        if os.path.isfile(os.path.join(folder, _ONLY_THERE)):  # noqa: PTH113, PTH118
            warnings.warn(
                f"{folder} is of another package named randflake, version 2.1 or older; which of "
                "the two is imported depends on sys.path. Remove both, then install this one: "
                f"{sys.executable} -m pip uninstall randflake",
                RuntimeWarning,
                stacklevel=3,
            )
