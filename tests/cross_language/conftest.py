"""Has the tests find the servers of those of the Python package, and the blocks of documents."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bindings-python" / "tests"), str(ROOT / "tests" / "readme")]
