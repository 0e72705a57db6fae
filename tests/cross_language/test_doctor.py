"""`randflake lease doctor` and `lease check` on servers, through each client."""

import contextlib
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis as redis_client
import servers
from randflake import Randflake, fence_tickets, init_tickets
from servers import PASSWORD, Server
from test_command import COMMANDS, SECRET, built, environment, run, succeed

assert built  # a fixture, which pytest finds in this module

pytestmark = pytest.mark.usefixtures("built")


@contextlib.contextmanager
def started(name: str, *arguments: str) -> Iterator[Server]:
    # Not below pytest's own folder: another run closes that one to PostgreSQL's user.
    with tempfile.TemporaryDirectory(prefix="randflake-server-") as folder:
        starter = servers.STARTERS[name]
        with starter(Path(folder), *arguments) as server:
            yield server


@pytest.fixture(scope="module", params=servers.STARTERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with started(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with started("postgres") as server:
        initialise(server.url())
        yield server


@pytest.fixture
def redis() -> Iterator[Server]:
    with started("redis") as server:
        initialise(server.url())
        yield server


def initialise(url: str) -> None:
    succeed(COMMANDS["cargo"], "lease init --new", Path("/"), store=url)


def doctor(name: str, url: str, arguments: str = "") -> dict[str, list[dict[str, str]]]:
    """Returns the findings by verdict, without what changes by the second."""
    environ = environment(url)
    command = [*COMMANDS[name], "lease", "doctor", "--json", *arguments.split()]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert done.stderr == "", done
    assert PASSWORD not in done.stdout
    said = json.loads(done.stdout)
    verdicts: dict[str, list[dict[str, str]]] = {"ok": [], "note": [], "wrong": []}
    for finding in said["findings"]:
        if finding["subject"] != "reach":
            finding["text"] = re.sub(r"headroom \d+", "headroom", finding["text"])
            verdicts[finding["verdict"]].append(finding)
    assert said["ok"] == (not verdicts["wrong"])
    assert done.returncode == (0 if said["ok"] else 1)
    return verdicts


def subjects(findings: list[dict[str, str]]) -> list[str]:
    return [finding["subject"] for finding in findings]


def written(server: Server) -> Any:
    """What tells whether anything was written."""
    if server.scheme == "postgresql":
        with psycopg.connect(server.url()) as connection:
            select = "select xmin::text, entry::text from randflake_leases.entry"
            return connection.execute(select).fetchall()
    if server.scheme == "mysql":
        return server.mysql("select sum(writes) from randflake_entry")
    if server.scheme == "redis":
        with redis_client.Redis.from_url(server.url()) as client:
            return client.info("persistence")["rdb_changes_since_last_save"]
    return server.etcd("kv/range", {"key": "AA=="})["header"]["revision"]


def test_each_client_finds_the_same_and_writes_nothing(server: Server, tmp_path: Path) -> None:
    names = ("cargo", "pip", "npm")
    before = [doctor(name, server.url()) for name in names]
    assert subjects(before[0]["wrong"]) == ["namespace"]
    assert "STORE_NOT_INITIALIZED: " in before[0]["wrong"][0]["text"]
    initialise(server.url())
    succeed(COMMANDS["cargo"], "generate", tmp_path, store=server.url())
    state = written(server)
    found = [doctor(name, server.url()) for name in names]
    assert not found[0]["wrong"]
    fine = subjects(found[0]["ok"])
    assert {"environment", "server", "persistence", "permissions", "namespace", "ends"} <= {*fine}
    assert before[0] == before[1] == before[2]
    assert found[0] == found[1] == found[2]
    said = [
        run(COMMANDS[name], "lease check --json", tmp_path, store=server.url()) for name in names
    ]
    assert written(server) == state
    for done in said:
        assert (done.code, done.stderr) == (0, "")
        assert json.loads(done.stdout)["ok"]


def test_a_role_that_may_not_write_is_told_which_right_it_lacks(postgres: Server) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("create role reader login password 'hunter2'")
        url = postgres.url("hunter2").replace("//randflake:", "//reader:")
        found = doctor("cargo", url)
        lacks = "lacks usage on schema randflake_leases, select on randflake_leases.entry, insert"
        assert any(lacks in wrong["text"] for wrong in found["wrong"])
        connection.execute("grant usage on schema randflake_leases to reader")
        connection.execute("grant select on randflake_leases.entry to reader")
        found = doctor("cargo", url)
        assert subjects(found["wrong"]) == ["permissions"]
        lacks = "lacks insert on randflake_leases.entry, update on randflake_leases.entry; grant it"
        assert lacks in found["wrong"][0]["text"]
        connection.execute("grant insert, update on randflake_leases.entry to reader")
        assert not doctor("cargo", url)["wrong"]
        connection.execute("alter role reader set default_transaction_read_only = on")
        (wrong,) = doctor("cargo", url)["wrong"]
        assert (wrong["subject"], "read-only" in wrong["text"]) == ("permissions", True)


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_init_says_what_a_role_needs(kind: str) -> None:
    with started(kind) as server:
        may_do_what_init_says(kind, server)


def may_do_what_init_says(kind: str, server: Server) -> None:
    command = [*COMMANDS["cargo"], "lease", "init", "--new", "--namespace", "granted"]
    environ = environment(server.url())
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    grants = [line.strip() for line in done.stdout.splitlines() if line.startswith("  grant ")]
    assert grants, done
    if kind == "postgres":
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("create role app login password 'hunter2'")
            for grant in grants:
                connection.execute(grant)
    else:
        # Before it, on this machine, the server finds the user without a name.
        server.mysql("drop user if exists ''@localhost")
        server.mysql("create user app identified by 'hunter2'")
        for grant in grants:
            server.mysql(grant)
    url = server.url("hunter2").replace("//randflake:", "//app:")
    assert not doctor("cargo", url, "--namespace granted")["wrong"]
    with Randflake.leased(url, SECRET, namespace="granted") as flake:
        assert flake.generate()


def test_a_role_that_may_not_count_is_told_which_right_it_lacks(postgres: Server) -> None:
    init_tickets(postgres.url(), "new")
    fence_tickets(postgres.url(), "orders", 7)
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("create role counter login password 'hunter2'")
        connection.execute("grant usage on schema randflake_leases to counter")
        connection.execute("grant select on randflake_leases.entry to counter")
        url = postgres.url("hunter2").replace("//randflake:", "//counter:")
        found = doctor("cargo", url, "--namespace tickets")
        assert subjects(found["wrong"]) == ["permissions"]
        lacks = "lacks insert on randflake_leases.entry, update on randflake_leases.entry; grant it"
        assert lacks in found["wrong"][0]["text"]
        (counters,) = (it for it in found["ok"] if it["subject"] == "counters")
        assert counters["text"] == "1 in all, and none has to be fenced"
        connection.execute("grant insert, update on randflake_leases.entry to counter")
        assert not doctor("cargo", url, "--namespace tickets")["wrong"]


def test_a_postgres_that_may_lose_leases_is_found(postgres: Server) -> None:
    def fsync(value: str) -> None:
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute(f"alter system set fsync = {value}")
            connection.execute("select pg_reload_conf()")
        # A connection has the setting with which the server forked it, until it hears of another.
        while True:
            with psycopg.connect(postgres.url(), autocommit=True) as connection:
                if connection.execute("show fsync").fetchone() == (value,):
                    return

    fsync("off")
    (wrong,) = doctor("cargo", postgres.url())["wrong"]
    assert (wrong["subject"], "fsync is off" in wrong["text"]) == ("persistence", True)
    allowed = doctor("cargo", postgres.url(), "--allow-weak-store")
    assert (allowed["wrong"], subjects(allowed["note"])) == ([], ["persistence"])
    fsync("on")


Change = Callable[[redis_client.Redis], object]


@pytest.mark.parametrize(
    ("change", "subject", "says"),
    [
        (lambda it: it.config_set("maxmemory-policy", "allkeys-lru"), "persistence", "evicts keys"),
        (lambda it: it.config_set("appendonly", "no"), "persistence", "does not persist to disk"),
        (lambda it: it.config_set("maxmemory", "1mb"), "memory", "maxmemory"),
        (lambda it: it.replicaof("127.0.0.1", "1"), "replicas", "it is a replica"),
    ],
    ids=["eviction", "no file", "memory", "replica"],
)
def test_what_is_wrong_with_a_redis_is_found(
    redis: Server, change: Change, subject: str, says: str
) -> None:
    with redis_client.Redis.from_url(redis.url()) as client:
        change(client)
    wrong = doctor("cargo", redis.url())["wrong"]
    assert subjects(wrong) == [subject]
    assert says in wrong[0]["text"]
    if subject == "persistence":
        allowed = doctor("cargo", redis.url(), "--allow-weak-store")
        assert (allowed["wrong"], subjects(allowed["note"])) == ([], ["persistence"])


def test_a_user_of_redis_that_may_not_write_is_found(redis: Server) -> None:
    with redis_client.Redis.from_url(redis.url()) as client:
        rights = ["~*", "+@all", "-hset"]
        client.execute_command("ACL", "SETUSER", "app", "on", ">hunter2", *rights)
        client.set("randflake:{taken}", "something else")
    url = redis.url("hunter2").replace("//:", "//app:")
    (wrong,) = doctor("cargo", url)["wrong"]
    assert (wrong["subject"], "HSET" in wrong["text"]) == ("permissions", True)
    wrong, *_ = doctor("cargo", redis.url(), "--namespace taken")["wrong"]
    assert (wrong["subject"], "another --namespace" in wrong["text"]) == ("permissions", True)


def test_replicas_of_redis_must_confirm() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.redis_with_replica(Path(folder)) as (master, replica),
    ):
        initialise(master.url())
        found = doctor("cargo", master.url())
        assert not found["wrong"]
        (replicas,) = [it for it in found["ok"] if it["subject"] == "replicas"]
        assert "1 confirm each grant" in replicas["text"]
        assert "replicas" in subjects(doctor("pip", replica.url())["wrong"])
        with redis_client.Redis.from_url(master.url()) as client:
            client.config_set("min-replicas-to-write", "0")
        wrong = doctor("npm", master.url())["wrong"]
        assert subjects(wrong) == ["persistence"]
        assert "waits for none" in wrong[0]["text"]


def test_a_user_of_etcd_that_may_not_write_is_found() -> None:
    with started("etcd") as etcd:
        initialise(etcd.url())
        below = {"key": "cmFuZGZsYWtlLw==", "range_end": "cmFuZGZsYWtlMA=="}
        etcd.etcd("auth/user/add", {"name": "root", "password": "hunter2"})
        etcd.etcd("auth/user/grant", {"user": "root", "role": "root"})
        etcd.etcd("auth/user/add", {"name": "app", "password": "hunter2"})
        etcd.etcd("auth/role/add", {"name": "reader"})
        permission = {"permType": "READ", **below}
        etcd.etcd("auth/role/grant", {"name": "reader", "perm": permission})
        etcd.etcd("auth/user/grant", {"user": "app", "role": "reader"})
        etcd.etcd("auth/enable", {})
        url = f"etcd://app:hunter2@127.0.0.1:{etcd.port}"
        (wrong,) = doctor("cargo", url)["wrong"]
        assert (wrong["subject"], "may not write" in wrong["text"]) == ("permissions", True)
        assert "permission denied" in wrong["text"]
        root = doctor("cargo", f"etcd://root:hunter2@127.0.0.1:{etcd.port}")
        assert not root["wrong"]
