"""Uses the package that is installed, and its command. Needs nothing else, on any platform."""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import randflake
from randflake import Inspector, Lease, Randflake, generate_secret


def main() -> None:
    assert randflake.__version__ == version("randflake")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "the import turned the lock of the interpreter on"  # type: ignore[attr-defined]
    secret = generate_secret()
    with Randflake(7, secret) as flake:
        assert Inspector(secret).inspect(flake.generate()).node_id == 7
        assert Inspector(secret).inspect(flake.generate_string()).node_id == 7
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "ids.db"
        with Randflake.leased(store, secret) as flake:
            assert len(set(flake.generate_many(1000))) == 1000
        use_command(secret, store)
    end_beside_others(secret)
    print("used")


def end_beside_others(secret: str) -> None:
    """Leaves threads that wait for their lease: before 3.14, the end unwinds them with glibc."""
    start = int(time.time()) + 600
    flake = Randflake(8, secret, lease=Lease(start, start + 60), max_wait=900)
    for _ in range(4):
        threading.Thread(target=flake.generate, daemon=True).start()
    time.sleep(1)
    sys.last = EndsSlowly()  # type: ignore[attr-defined]


class EndsSlowly:
    def __del__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        sleep(1)  # The other threads ask for the GIL meanwhile.


def use_command(secret: str, store: Path) -> None:
    def run(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "randflake", *arguments],
            env={**os.environ, "RANDFLAKE_SECRET": secret},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout

    id = run("generate", "--store", str(store)).strip()
    assert json.loads(run("inspect", "--json", id))["id"] == id


if __name__ == "__main__":
    main()
