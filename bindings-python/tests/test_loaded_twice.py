"""The package where a program loads it again, or where a tool must find what it loads."""

import ast
import re
from pathlib import Path

import pytest
import randflake
from conftest import run_python

PACKAGE = Path(randflake.__file__).parent
NATIVE = Path(__file__).parent.parent / "src"

RELOADS = {
    "all modules": "forget('randflake', True); import randflake",
    "the package alone": "forget('randflake', False); import randflake",
    "a module alone": "forget('randflake.errors', False); import randflake.errors, randflake",
    "importlib.reload": "importlib.reload(randflake)",
    "importlib.reload of the errors": "importlib.reload(randflake.errors)",
    "what autodoc does": """
typing.TYPE_CHECKING = True
for name in [name for name in sys.modules if name.partition(".")[0] == "randflake"]:
    with contextlib.suppress(ImportError):
        importlib.reload(sys.modules[name])
typing.TYPE_CHECKING = False
""",
}

CHECK = """
import contextlib, importlib, pickle, sys, typing
import randflake
from randflake import Randflake, RandflakeError as First, InvalidArgumentError
import randflake.stores  # which the native half loads later

def forget(name, whole):
    for other in list(sys.modules):
        if other == name or whole and other.startswith(name + "."):
            del sys.modules[other]

store, reload = sys.argv[1:]
changes = []
flake = Randflake.leased(store, randflake.generate_secret(), on_lease_change=changes.append)
for _ in range(40):  # as many as the interpreter has places for functions at its end
    exec(reload)

for Error in (First, randflake.RandflakeError, randflake.errors.RandflakeError):
    for call in (
        lambda: randflake.Inspector("?"),
        lambda: randflake.encode_string("?"),
        lambda: flake.inspect("?"),
        lambda: randflake.Randflake.leased("redis://nobody:1", "0" * 32, acquire_timeout="?"),
        lambda: randflake.Randflake.leased(b"", "?"),
        lambda: randflake.Randflake.leased("mongodb://nobody", randflake.generate_secret()),
        lambda: randflake.init_store(7, "?", mode="new"),
    ):
        try:
            call()
        except Error as error:
            assert pickle.loads(pickle.dumps(error)) == error
        else:
            raise AssertionError
try:
    raise randflake.StoreError("text", "STORE_UNAVAILABLE")
except First:
    pass

# What a client refuses is known as that: the classes of both halves are the same.
class Client:
    server = "postgresql"

    def run(self, text, parameters):
        raise randflake.stores.Unavailable("mine")

try:
    randflake.Randflake.leased(Client(), randflake.generate_secret(), acquire_timeout=0)
except randflake.StoreError as error:
    assert "mine" in str(error), error

assert isinstance(flake, randflake.Randflake)
status = flake.lease
assert isinstance(status, randflake.LeaseStatus)
assert pickle.loads(pickle.dumps(status)) == status
assert type(flake.metrics()) is randflake.Metrics
flake.generate()
flake.close()
again = randflake.Randflake.leased(store, randflake.generate_secret(), namespace="other")
print(type(again) is Randflake)
"""


@pytest.mark.parametrize("reload", RELOADS.values(), ids=RELOADS)
def test_a_package_that_is_imported_again_is_the_first_one(tmp_path: Path, reload: str) -> None:
    store = tmp_path / "ids.db"
    assert run_python(CHECK, str(store), reload) == "True\n"
    # What is leased at the end is given back once.
    assert randflake.list_leases(store, namespace="other").held == 0


def names_in(pattern: str, files: list[Path]) -> set[str]:
    return {name for file in files for name in re.findall(pattern, file.read_text())}


def test_tools_that_follow_imports_find_what_is_imported_by_name() -> None:
    by_name = names_in(r'import\((?:[\w.()]+, )?"([\w.]+)"', [*NATIVE.rglob("*.rs")])
    python = [*PACKAGE.glob("*.py")]
    by_name |= names_in(r'"(randflake\.\w+)"', python) - {"randflake.stores"}
    assert {"randflake._clients", "randflake._async_clients", "datetime"} < by_name
    found = {"sys"}  # which every program has
    for file in python:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    assert by_name - found == set()


# What versions up to 2.1 consist of, by another author, and what another module may be called.
@pytest.mark.parametrize(("file", "is_warned_of"), [("_core.py", True), ("core.py", False)])
def test_another_package_of_this_name_is_warned_of(
    tmp_path: Path, file: str, is_warned_of: bool
) -> None:
    other = tmp_path / "randflake" / file
    other.parent.mkdir()
    other.touch()
    code = """
import sys, warnings
sys.path += ["", chr(0), "n" * 100_000, None, b"bytes", sys.argv[1]]
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import randflake
print(*{(it.category.__name__, it.filename, sys.argv[1] in str(it.message)) for it in seen})
"""
    seen = run_python(code, str(tmp_path)).strip()
    assert seen == ("('RuntimeWarning', '<string>', True)" if is_warned_of else "")
