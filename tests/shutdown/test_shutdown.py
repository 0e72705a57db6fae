"""The recipes of docs/guides/shutdown.md under the real servers: what they leave in the store.

Each starts a server, gets ids, sends SIGTERM to its first process alone, waits for its end, and
looks into the store: no node id is held any more.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

import pytest
from randflake import Layout, init_store, list_leases
from redis import Redis
from servers import STARTERS, free_port

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guides/shutdown.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")

SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"

BLOCK = re.compile(r"^```(?:python|js)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILES = {
    re.match(r"(?:#|//) (\S+)\n", code)[1]: code  # type: ignore[index]
    for code in BLOCK.findall(GUIDE)
}
"""The programs of the guide, by the file that their first line names."""

# What is no recipe: the smallest applications that use them.
FILES["shop/__init__.py"] = ""
FILES["shop/settings.py"] = """
SECRET_KEY = "of no use to anybody"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
"""
FILES["shop/urls.py"] = """
from django.http import JsonResponse
from django.urls import path
from shop.ids import flake

urlpatterns = [path("", lambda request: JsonResponse({"id": flake.generate_string()}))]
"""
FILES["shop/wsgi.py"] = """
import os
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
application = get_wsgi_application()
"""
# Without any lifespan.
FILES["bare.py"] = """
from shop.ids import flake


async def app(scope, receive, send):
    assert scope["type"] == "http"
    body = b'{"id": "%s"}' % flake.generate_string().encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"""
FILES["eager.py"] = FILES["wsgi.py"].replace("Randflake.lazy(", "Randflake.leased(")
(FILES["main.py"],) = (code for code in BLOCK.findall(README) if "FastAPI(" in code)
(FILES["express.mjs"],) = (code for code in BLOCK.findall(README) if "app.listen(PORT)" in code)


def python(*command: str) -> list[str]:
    return [sys.executable, "-m", *command]


def gunicorn(worker: str, application: str, *options: str) -> list[str]:
    bind = ["--bind", "127.0.0.1:PORT", "--workers", "2", "--worker-class", worker]
    return python("gunicorn", *bind, *options, application)


def uvicorn(application: str, *options: str) -> list[str]:
    return python("uvicorn", application, "--port", "PORT", *options)


PM2 = str(ROOT / "tests/shutdown/node_modules/.bin/pm2")
AXUM = str(ROOT / "target" / os.environ.get("CARGO_BUILD_TARGET", "") / "debug/examples/axum")

GUNICORN = {
    "sync": "wsgi:app",
    "gthread": "wsgi:app",
    "gevent": "wsgi:app",
    "asgi": "main:app",
    "uvicorn_worker.UvicornWorker": "main:app",
}

SERVERS = {
    "uvicorn": (1, uvicorn("main:app")),
    "uvicorn --workers": (2, uvicorn("main:app", "--workers", "2")),
    "uvicorn, Django": (1, uvicorn("shop.asgi:application")),
    **{f"gunicorn, {worker}": (2, gunicorn(worker, app)) for worker, app in GUNICORN.items()},
    **{
        f"gunicorn --preload, {worker}": (2, gunicorn(worker, app, "--preload"))
        for worker, app in GUNICORN.items()
    },
    "gunicorn --preload, leased in the module": (3, gunicorn("sync", "eager:app", "--preload")),
    "gunicorn, Django": (2, gunicorn("gthread", "shop.wsgi:application")),
    "gunicorn, uvicorn_worker.UvicornWorker, Django": (
        2,
        gunicorn("uvicorn_worker.UvicornWorker", "shop.asgi:application"),
    ),
    "runserver": (1, [sys.executable, "manage.py", "runserver", "--noreload", "PORT"]),
    "node:http": (1, ["node", "server.mjs"]),
    "Express": (1, ["node", "express.mjs"]),
    "cluster": (2, ["node", "cluster.mjs"]),
    "pm2-runtime, fork": (1, [f"{PM2}-runtime", "start", "server.mjs"]),
    "pm2-runtime, cluster": (2, [f"{PM2}-runtime", "start", "ecosystem.config.cjs"]),
    "axum": (1, [AXUM]),
}
"""How many leases each has, and its command."""


@dataclass
class Running:
    """A server, or another program, and its store."""

    process: subprocess.Popen[str]
    store: str | Path
    port: int
    log: Path
    ids: list[str] = field(default_factory=list)

    def ask(self) -> None:
        """Gets an id, once the server has started."""
        deadline = time.monotonic() + 60
        while True:
            assert self.process.poll() is None, self.log.read_text()
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/", timeout=10) as response:
                    self.ids.append(response.read().decode())
                    return
            except (OSError, HTTPException):  # also of a time limit
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.05)

    def ask_until(self, leases: int) -> None:
        """Gets ids until all workers have leased: one that is just starting may miss SIGTERM."""
        deadline = time.monotonic() + 180
        while len(self.ids) < 50 or self.states() != ["held"] * leases:
            assert time.monotonic() < deadline, (self.states(), self.log.read_text())
            self.ask()

    def end(self) -> float:
        """Sends SIGTERM, and returns how many seconds the process took to end."""
        asked = time.monotonic()
        self.process.terminate()
        self.process.wait(60)
        return time.monotonic() - asked

    def states(self) -> list[str]:
        """Returns what became of all node ids that were ever leased."""
        return [lease.state for lease in list_leases(self.store).leases]


def write_files(folder: Path) -> None:
    for name, code in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "randflake").symlink_to(ROOT / "bindings-node")
    for package in ("express", "ioredis"):
        (modules / package).symlink_to(ROOT / "bindings-node/node_modules" / package)


@contextmanager
def running(command: list[str], folder: Path, store: str | Path) -> Iterator[Running]:
    """Runs a program of the guide; whatever is left of it in the end is killed."""
    port = free_port()
    environment = {
        **os.environ,
        "PORT": str(port),
        "RANDFLAKE_STORE": str(store),
        "RANDFLAKE_SECRET": SECRET,
        "PM2_HOME": str(folder / "pm2"),
    }
    log = folder / "log"
    with log.open("a") as output:
        process = subprocess.Popen(
            [part.replace("PORT", str(port)) for part in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    try:
        yield Running(process, store, port, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the guide, and a store that was made beforehand."""
    write_files(tmp_path)
    init_store(tmp_path / "ids.db", SECRET, "new")
    return tmp_path


@pytest.mark.parametrize("name", SERVERS)
def test_no_node_id_is_held_when_the_server_has_ended(name: str, folder: Path) -> None:
    leases, command = SERVERS[name]
    with running(command, folder, folder / "ids.db") as server:
        server.ask_until(leases)
        took = server.end()
        states = server.states()
    print(f"{name}: ended after {took:.2f} s")
    assert len(set(server.ids)) == len(server.ids)
    assert states == ["free"] * leases, server.log.read_text()


@pytest.mark.parametrize("name", ["node:http", "cluster"])
def test_a_signal_during_the_start_leaves_no_node_id_held(name: str, folder: Path) -> None:
    _, command = SERVERS[name]
    for start in range(8):
        with running(command, folder, folder / "ids.db") as server:
            deadline = time.monotonic() + 60
            while "held" not in server.states():
                assert time.monotonic() < deadline, (start, server.log.read_text())
            server.end()
            assert "held" not in server.states(), (start, server.log.read_text())


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with STARTERS["redis"](tmp_path_factory.mktemp("redis")) as server:
        yield server.url()


# With a server the last requests go through a client in the language, which must still run.
@pytest.mark.parametrize(
    "name",
    [
        "uvicorn --workers",
        "gunicorn, gthread",
        "gunicorn, gevent",
        "gunicorn --preload, sync",
        "node:http",
        "cluster",
        "axum",
    ],
)
def test_no_node_id_is_held_in_a_server(name: str, folder: Path, redis_url: str) -> None:
    leases, command = SERVERS[name]
    Redis.from_url(redis_url).flushall()
    init_store(redis_url, SECRET, "new")
    with running(command, folder, redis_url) as server:
        server.ask_until(leases)
        took = server.end()
        states = server.states()
    print(f"{name}, Redis: ended after {took:.2f} s")
    assert states == ["free"] * leases, server.log.read_text()


def test_no_node_id_is_held_when_a_plain_program_has_ended(folder: Path) -> None:
    command = [sys.executable, "worker.py"]
    with running(command, folder, folder / "ids.db") as program:
        assert program.process.stdout is not None
        assert program.process.stdout.readline()
        assert program.states() == ["held"]
        print(f"worker.py: ended after {program.end():.2f} s")
        assert (program.process.returncode, program.states()) == (0, ["free"])


def test_uvicorn_alone_leaves_the_node_id_held(folder: Path) -> None:
    """What the guide says of it, and that the tests above see the difference."""
    with running(uvicorn("bare:app"), folder, folder / "ids.db") as server:
        server.ask_until(1)
        server.end()
        assert (server.process.returncode, server.states()) == (-signal.SIGTERM, ["held"])


def pm2(folder: Path, *arguments: str) -> None:
    environment = {
        **os.environ,
        "PM2_HOME": str(folder / "pm2"),
        "PORT": "0",
        "RANDFLAKE_STORE": str(folder / "ids.db"),
        "RANDFLAKE_SECRET": SECRET,
    }
    subprocess.run([PM2, *arguments], cwd=folder, env=environment, check=True, timeout=120)


@pytest.mark.parametrize("program", ["server.mjs", "ecosystem.config.cjs"])
def test_pm2_gives_node_ids_back_at_reload_and_at_its_end(program: str, folder: Path) -> None:
    def held() -> list[int]:
        leases = list_leases(folder / "ids.db").leases
        return sorted(lease.node_id for lease in leases if lease.state == "held")

    def until_all_are_leased() -> list[int]:
        count = 2 if program == "ecosystem.config.cjs" else 1
        deadline = time.monotonic() + 60
        while len(held()) != count:
            assert time.monotonic() < deadline, held()
            time.sleep(0.05)
        return held()

    try:
        pm2(folder, "start", program)
        first = until_all_are_leased()
        pm2(folder, "reload", "all")
        second = until_all_are_leased()
        assert not set(first) & set(second)
    finally:
        pm2(folder, "kill")
    states = {lease.state for lease in list_leases(folder / "ids.db").leases}
    assert states == {"free"}


RESTARTS = 20
EIGHT = Layout(fields=[("time", 41), ("node", 3), ("sequence", 19)], tick_ms=1, epoch_ms=0)
"""A layout of eight node ids."""

# In place of the import of Randflake: without the recipes the ninth start fails.
OF_EIGHT = {
    ".py": (
        "from randflake import Randflake\n",
        f"""
import functools
from randflake import Layout, Snowflake

class Randflake:
    def leased(**options):
        return Snowflake.leased(layout={EIGHT!r}, **options)

    def lazy(**options):
        return Snowflake.lazy(layout={EIGHT!r}, **options)
""",
    ),
    ".mjs": (
        "import { Randflake } from 'randflake'\n",
        """
import { Layout, Snowflake } from 'randflake'

const fields = [['time', 41], ['node', 3], ['sequence', 19]]
const layout = new Layout({ fields, tickMs: 1, epochMs: 0 })
const Randflake = { lazy: (store, _, rest) => Snowflake.lazy(store, { layout, ...rest }) }
""",
    ),
}


def of_eight(folder: Path, program: str) -> Path:
    """Has a program of the guide lease one of eight node ids, and returns their store."""
    path = folder / program
    code = path.read_text(encoding="utf-8")
    before, after = OF_EIGHT[path.suffix]
    assert before in code
    code = code.replace(before, after)
    # Ids of a layout have no text.
    code = code.replace("flake.generate_string()", "str(flake.generate())")
    code = code.replace("flake.generateString()", "String(flake.generate())")
    path.write_text(code, encoding="utf-8")
    store = folder / "eight.db"
    init_store(store, mode="new", layout=EIGHT)
    return store


@pytest.mark.parametrize("program", ["worker.py", "server.mjs"])
def test_rolling_restarts_find_one_of_eight_node_ids(program: str, folder: Path) -> None:
    store = of_eight(folder, program)
    command = [sys.executable if program == "worker.py" else "node", program]
    ids: list[str] = []
    with ExitStack() as stack:
        old = None
        for _ in range(RESTARTS):
            new = stack.enter_context(running(command, folder, store))
            if program == "worker.py":
                assert new.process.stdout is not None
                new.ids.append(new.process.stdout.readline())
            else:
                new.ask()
            if old is not None:
                old.end()
            ids += new.ids
            old = new
        assert new.states().count("held") == 1
        new.end()
    assert all(ids), (folder / "log").read_text()
    assert len(set(ids)) == len(ids)
    assert set(new.states()) == {"free"}
    assert list_leases(store).limits.node_ids == "0-7"


def test_reloads_of_gunicorn_find_some_of_eight_node_ids(folder: Path) -> None:
    store = of_eight(folder, "wsgi.py")

    def holders() -> set[str]:
        return {lease.note for lease in list_leases(store).leases if lease.state == "held"}

    with running(gunicorn("sync", "wsgi:app"), folder, store) as server:
        server.ask_until(2)
        for _ in range(RESTARTS):
            before = holders()
            server.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 60
            while len(holders()) != 2 or holders() & before:
                assert time.monotonic() < deadline, server.log.read_text()
                server.ask()  # a lazy generator leases with its first id
        server.end()
    assert len(set(server.ids)) == len(server.ids)
    assert set(server.states()) == {"free"}
    assert "NODES_EXHAUSTED" not in server.log.read_text()


def test_the_example_of_axum_is_the_one_of_the_guide() -> None:
    (block,) = re.findall(r"^```rust,no_run\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    example = (ROOT / "leases/examples/axum.rs").read_text(encoding="utf-8")
    assert example.endswith(f"\n\n{block}")


def test_every_file_of_the_guide_is_used() -> None:
    used = " ".join(part for _, command in SERVERS.values() for part in command)
    imported = {"shop/ids.py"}
    for name in set(re.findall(r"^(?:#|//) (\S+\.\w+)$", GUIDE, re.MULTILINE)) - imported:
        module = name.removesuffix(".py").replace("/", ".")
        assert name in used or f"{module}:" in used or name == "worker.py", name
