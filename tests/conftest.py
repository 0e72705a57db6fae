"""Has the tests find the servers that those of the Python package start, and show their logs."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bindings-python" / "tests"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Has the report of a test that failed show what its servers said."""
    report = yield
    if starter := sys.modules.get("starter"):  # most tests have no server
        starter.add_logs(report)
    return report
