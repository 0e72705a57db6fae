"""Uses the package that is installed, and its command. Needs nothing else, on any platform."""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path

import randflake
from randflake import Inspector, Randflake, generate_secret


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
    flake = Randflake(7, secret, max_wait=60)
    for _ in range(8):
        threading.Thread(target=make_ids, args=[flake], daemon=True).start()
    print("used")


def make_ids(flake: Randflake) -> None:
    """Goes on while the interpreter ends: before Python 3.14, that unwinds the thread."""
    while True:
        flake.generate_many(1000)


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
