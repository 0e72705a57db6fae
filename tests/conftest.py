"""Has the tests find the servers that those of the Python package start."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bindings-python" / "tests"))
