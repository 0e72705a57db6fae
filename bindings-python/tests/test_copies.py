"""Two copies of the package in one process, as where a program bundles its own."""

import shutil
from pathlib import Path

import randflake
from conftest import run_python

HOLD = """
import importlib, sys, threading, time

folders, store = sys.argv[1:3], sys.argv[3]


def copy_in(folder):
    for name in [name for name in sys.modules if name.partition(".")[0] == "randflake"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("randflake")
    finally:
        sys.path.remove(folder)


copies = [copy_in(folder) for folder in folders]
assert copies[0].Snowflake is not copies[1].Snowflake
# Two node ids, so that the copies want the same ones all the time.
fields = [("time", 41), ("node", 1), ("sequence", 12)]
held, failed, guard = set(), [], threading.Lock()


def hold(copy):
    layout = copy.Layout(fields=fields, tick_ms=1, epoch_ms=1_735_689_600_000)
    for _ in range(25):
        if failed:
            return
        try:
            with copy.Snowflake.leased(store, layout, acquire_timeout=60) as flake:
                [node_id] = flake.node_ids
                with guard:
                    if node_id in held:
                        failed.append(f"{node_id} is held by two")
                    held.add(node_id)
                time.sleep(0.001)
                with guard:
                    held.discard(node_id)
        except Exception as error:
            failed.append(repr(error))


threads = [threading.Thread(target=hold, args=[copy]) for copy in copies * 2]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""


def test_two_copies_never_hold_one_node_id(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        shutil.copytree(Path(randflake.__file__).parent, folder / "randflake")
    assert run_python(HOLD, *map(str, folders), str(tmp_path / "ids.db")) == "[]\n"
