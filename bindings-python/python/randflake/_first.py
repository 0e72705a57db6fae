"""Makes a module that is executed again, as by importlib.reload, keep its classes.

The native half is loaded once: its errors and objects have the classes that it saw first.
"""

from __future__ import annotations

import sys
from typing import Any


def keep_first(module: dict[str, Any]) -> None:
    """Gives the names in __all__ of a module's globals the values that they had the first time."""
    _, _, name = module["__name__"].rpartition(".")
    first = getattr(sys.modules["randflake"], name, None)
    kept = getattr(first, "_kept", {})
    module["_kept"] = {name: kept.get(name, module[name]) for name in module["__all__"]}
    module.update(module["_kept"])
