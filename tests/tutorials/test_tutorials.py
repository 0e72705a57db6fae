"""Each page of docs/tutorials is followed in an empty folder, with real servers."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pymysql  # type: ignore[import-untyped]
import pytest
from follow import HERE, ROOT, follow
from npm_registry import registry
from servers import PASSWORD, STARTERS, Server, free_port

PAGES = ROOT / "docs" / "tutorials"
# npm takes no version that is newer. pip takes those of requirements-dev.txt.
BEFORE = "2026-11-20T00:00:00.000Z"
LONGEST = 250
"""How many lines a page has at most."""
# Of this machine, which a reader does not have.
NOT_PASSED = re.compile(
    r"RANDFLAKE_|PYTEST|PYTHON|VIRTUAL_ENV|MAKE|CARGO_(BUILD|TARGET)|PROMETHEUS|NODE_|npm_"
)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the shell of a reader has, once the packages are published."""
    wheels = ROOT / "target" / "dist" / "python"
    assert list(wheels.glob("*.whl")), "run `make python-for-tests`"
    programs = tmp_path_factory.mktemp("programs")
    base = Path(getattr(sys, "_base_executable", sys.executable))
    for name in ("python", "python3"):
        (programs / name).symlink_to(base)
    constraints = programs / "constraints.txt"
    pinned = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    constraints.write_text(re.sub(r"\[[^]]*\]", "", pinned), encoding="utf-8")
    tarballs = tmp_path_factory.mktemp("npm")
    packed = [str(ROOT / "scripts" / "artifacts.py"), "npm", "--out", str(tarballs)]
    packed += ["--prebuilds", str(ROOT / "bindings-node")]
    subprocess.run([sys.executable, *packed], check=True, cwd=ROOT, capture_output=True)
    passed = {key: value for key, value in os.environ.items() if not NOT_PASSED.match(key)}
    found = [str(Path(it).parent) for it in map(shutil.which, ("node", "cargo")) if it]
    paths = [str(HERE / "bin"), str(programs), *found, "/usr/local/bin", "/usr/bin", "/bin"]
    links = [os.environ.get("PIP_FIND_LINKS", ""), str(wheels)]
    with registry(sorted(tarballs.glob("*.tgz")), "2026-01-01T00:00:00.000Z") as npm:
        yield passed | {
            "PATH": ":".join(dict.fromkeys(paths)),
            "PIP_CONSTRAINT": str(constraints),
            "PIP_FIND_LINKS": " ".join(links).strip(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "npm_config_registry": npm,
            "npm_config_before": BEFORE,
            "npm_config_audit": "false",
            "npm_config_fund": "false",
            "npm_config_update_notifier": "false",
        }


@contextmanager
def postgres(folder: Path) -> Iterator[Server]:
    """A server with the administrator of the image."""
    with STARTERS["postgres"](folder) as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("create role postgres superuser login password 'admin'")
        yield server


@contextmanager
def mysql(folder: Path) -> Iterator[Server]:
    """A MariaDB with the administrator of the image of MySQL."""
    with STARTERS["mariadb"](folder) as server:
        login = {"user": "randflake", "password": PASSWORD, "host": "127.0.0.1"}
        with pymysql.connect(port=server.port, **login) as connection:
            cursor = connection.cursor()
            cursor.execute("create user root@'%' identified by 'admin'")
            cursor.execute("grant all on *.* to root@'%' with grant option")
            # Those of MariaDB come first where they have a host; the image does not have them.
            cursor.execute("select user, host from mysql.user where user in ('', 'root')")
            for user, host in cursor.fetchall():
                if host not in ("", "%"):
                    cursor.execute("drop user %s@%s", (user, host))
        yield server


SERVERS = {"postgres": (postgres, 5432), "mysql": (mysql, 3306)}
TUTORIALS: dict[str, tuple[str, int, *tuple[int, ...]]] = {
    "axum.md": ("postgres", 8000),
    "django.md": ("postgres", 8000),
    "express.md": ("postgres", 3000, 9464),
    "fastapi.md": ("postgres", 8000),
    "nestjs.md": ("mysql", 3000, 3001),
}
"""The server of each page, the port of its application, and other ports of that."""


def test_every_page_is_followed() -> None:
    assert {page.name for page in PAGES.glob("*.md")} == set(TUTORIALS)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_page_is_short(name: str) -> None:
    lines = (PAGES / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_page_works(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    kind, application, *others = TUTORIALS[name]
    start, named = SERVERS[kind]
    folder = tmp_path / "reader"
    folder.mkdir()
    # Where cargo installs commands.
    installed = tmp_path / "cargo" / "bin"
    installed.mkdir(parents=True)
    paths = f"{environment['PATH']}:{installed}"
    environment = environment | {"CARGO_INSTALL_ROOT": str(installed.parent), "PATH": paths}
    with start(tmp_path) as server:
        ports = {named: server.port} | {port: free_port() for port in (application, *others)}
        follow(PAGES / name, folder, environment, ports, application)
