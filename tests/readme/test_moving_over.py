"""The guide to moving over, step by step, while simulated old systems insert rows."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import servers
from blocks import FENCE, ROOT, Block, blocks_of, prints
from randflake import Layout, Snowflake, Tickets, list_leases, set_node_ids

GUIDE = Path("docs/guides/moving-over.md")
TICKETS = Path("docs/guides/tickets.md")
FOLDER = "/var/lib/shop"
SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"

OUR_EPOCH = 1_577_836_800_000  # 2020-01-01 UTC
OURS = Layout("twitter", epoch_ms=OUR_EPOCH)
TWITTER_EPOCH = 1_288_834_974_657
UID = "time:29,node:21,sequence:13,tick_ms=1000,epoch_ms=1474300800000"


def sections(document: Path) -> dict[str, list[Block]]:
    """Returns the blocks below each heading of a document, as far as the next heading."""
    found: dict[str, list[Block]] = defaultdict(list)
    blocks = {block.line: block for block in blocks_of(document)}
    heading = fence = ""
    for number, line in enumerate((ROOT / document).read_text("utf-8").splitlines(), 1):
        mark = FENCE.match(line)
        if not fence and number in blocks:
            found[heading].append(blocks[number])
        if mark and (not fence or line.startswith(fence)):
            fence = "" if fence else mark["fence"]
        elif not fence and line.startswith("#"):
            heading = line.lstrip("# ")
    return found


SECTIONS = sections(GUIDE)


class Reader:
    """Someone who does what the guide says, in one place."""

    def __init__(self, folder: Path, *databases: servers.Server) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "RANDFLAKE_STORE"},
            "RANDFLAKE_SECRET": SECRET,
            "TZ": "UTC",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        for database in databases:
            if database.scheme == "postgresql":
                self.environment["DATABASE_URL"] = database.url()
                continue
            self.environment |= {"MYSQL_URL": database.url(), "MYSQL_HOME": str(folder)}
            url = urlsplit(database.url())
            (folder / "my.cnf").write_text(
                f"[client]\nprotocol=tcp\nhost={url.hostname}\nport={url.port}\n"
                f"user={url.username}\npassword={url.password}\n[mysql]\ndatabase={url.path[1:]}\n",
                encoding="utf-8",
            )

    def store(self, name: str) -> Path:
        return self.folder / name

    def start(self, block: Block) -> subprocess.Popen[str]:
        code = block.code.replace(FOLDER, str(self.folder))
        shell = ["bash", "-euo", "pipefail", "-c", code]
        return subprocess.Popen(
            shell if block.language == "sh" else [sys.executable, "-c", code],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def does(self, block: Block) -> str:
        """Runs a block to its end, and compares what it prints with the guide."""
        with self.start(block) as running:
            printed, errors = running.communicate(timeout=300)
        assert running.returncode == 0, f"{block}\n{printed}\n{errors}"
        printed = printed.replace(str(self.folder), FOLDER)
        if block.output is not None:
            assert prints(block.output, printed), f"{block} prints\n{printed}"
        return printed

    def generates(self, store: str, layout: str, count: int) -> list[int]:
        """Has a new process generate ids."""
        arguments = ["generate", "--store", str(self.store(store)), "--layout", layout]
        printed = subprocess.run(
            [Path(sys.executable).parent / "randflake", *arguments, "-n", str(count)],
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        ).stdout
        return [int(line) for line in printed.split()]


class OldSnowflake:
    """A Snowflake as others have written it: by its own arithmetic."""

    def __init__(self, worker: int, epoch_ms: int, first: Callable[[], int] = lambda: 0) -> None:
        self.worker, self.epoch_ms, self.first = worker, epoch_ms, first
        self.last, self.sequence = -1, 0

    def generate(self) -> int:
        now = time.time_ns() // 1_000_000
        if now > self.last:
            self.last, self.sequence = now, self.first()
        else:
            self.sequence += 1
            if self.sequence == 4096:
                while now <= self.last:
                    now = time.time_ns() // 1_000_000
                self.last, self.sequence = now, self.first()
        return (self.last - self.epoch_ms) << 22 | self.worker << 12 | self.sequence


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Repeats work in a thread, until it is told to stop, which raises what the work raised."""
    stopped, errors = threading.Event(), []

    def repeat() -> None:
        try:
            while not stopped.is_set():
                work()
                time.sleep(0.001)
        except BaseException as error:
            errors.append(error)

    def stop() -> None:
        stopped.set()
        thread.join()
        if errors:
            raise errors[0]

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield stop
    finally:
        stop()


@pytest.fixture(scope="module")
def postgres() -> Iterator[servers.Server]:
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.postgres(Path(folder)) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[servers.Server]:
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.mariadb(Path(folder)) as server,
    ):
        yield server


def session(server: servers.Server) -> psycopg.Connection[Any]:
    """A session of an application, which a lock that is held for long makes fail."""
    options = "-c statement_timeout=5s"
    return psycopg.connect(server.url(), autocommit=True, options=options)


def test_a_snowflake_hands_its_node_ids_over(tmp_path: Path, postgres: servers.Server) -> None:
    [check, init, new, take_over, largest] = SECTIONS["From a Snowflake"]
    reader = Reader(tmp_path, postgres)
    reader.does(check)
    reader.does(init)
    old = OldSnowflake(7, OUR_EPOCH)
    with session(postgres) as writer:
        insert = "insert into post (id, title) values (%s, %s)"
        writer.execute(
            "create table post (number bigint generated always as identity,"
            " id bigint primary key, title text not null)"
        )
        with meanwhile(lambda: writer.execute(insert, [old.generate(), "old"])) as stop:
            reader.does(new)
            together = [reader.start(new), reader.start(new)]
            for process in together:
                with process:
                    printed, errors = process.communicate(timeout=300)
                assert (process.returncode, printed) == (0, "False\n"), errors
            stop()
        last = old.generate()
        writer.execute(insert, [last, "old"])
        assert str(last) in reader.does(largest)
        reader.does(take_over)
        # Of all node ids, the one that is new.
        set_node_ids(reader.store("ids.db"), "7")
        layout = f"twitter,epoch_ms={OUR_EPOCH}"
        ours = reader.generates("ids.db", layout, 1000)
        for id in ours:
            writer.execute(insert, [id, "taken over"])
        rows = writer.execute("select id, title from post order by number").fetchall()
    assert {OURS.inspect(id).node_id for id in ours} == {7}
    by_node: dict[int, list[int]] = defaultdict(list)
    for id, _ in rows:
        by_node[OURS.inspect(id).node_id].append(id)
    assert all(ids == sorted(ids) for ids in by_node.values())
    # All nodes together, as far as one row is surely older than the other.
    times = [OURS.inspect(id).unix_ms for id, _ in rows]
    assert all(later > earlier - 1000 for earlier, later in pairwise(times))
    counts = Counter(title.split()[0] for _, title in rows)
    assert counts.pop("old") > 100
    assert counts == {"new": 900, "taken": 1000}


def test_leaf_keeps_the_worker_ids_that_it_may_have(tmp_path: Path) -> None:
    [init, check] = SECTIONS["Snowflake mode"]
    reader = Reader(tmp_path)
    reader.does(init)
    reader.does(check)
    leaf, made = Layout("leaf"), list[int]()
    # The three that are listed, and one that starts later.
    old = [OldSnowflake(it, TWITTER_EPOCH, lambda: random.randrange(100)) for it in range(4)]
    with meanwhile(lambda: made.extend(it.generate() for it in old)) as stop:
        new = [id for _ in range(3) for id in reader.generates("leaf.db", "leaf", 2000)]
        stop()
    assert len({*made, *new}) == len(made) + len(new)
    assert {leaf.inspect(id).node_id for id in made} == {0, 1, 2, 3}
    assert min(leaf.inspect(id).node_id for id in new) >= 11
    assert new == sorted(new)


def test_leaf_hands_its_counters_over(tmp_path: Path, mariadb: servers.Server) -> None:
    guide = sections(TICKETS)
    [take, fence] = guide["From Leaf"]
    reader = Reader(tmp_path, mariadb)
    reader.does(guide["From AUTO_INCREMENT of MySQL or MariaDB"][0])
    reader.does(take)
    # A server that has loaded what is below `max_id`, as Leaf does.
    loaded = {"parcels": iter(range(1, 2001)), "users": iter(range(600_001, 700_001))}
    old: dict[str, list[int]] = {name: [next(it)] for name, it in loaded.items()}
    reader.does(fence)
    for name, numbers in loaded.items():
        with Tickets.leased(mariadb.url(), name) as tickets:
            new = tickets.generate_many(50)
            old[name] += numbers  # the rest, up to the end of the segment
            new += tickets.generate_many(50)
        assert not {*new} & {*old[name]}
        assert min(new) > max(old[name])
    with pytest.raises(Exception, match="leaf_alloc"):
        mariadb.mysql("update leaf_alloc set max_id = max_id + step where biz_tag = 'parcels'")


def test_uid_generator_keeps_its_worker_ids(tmp_path: Path, mariadb: servers.Server) -> None:
    [fields, plan, take, init] = SECTIONS["From UidGenerator"]
    reader = Reader(tmp_path, mariadb)
    for block in (fields, plan, take, init):
        reader.does(block)
    # Its cached mode, in the fourth start: full seconds, far ahead of the clock.
    second = int(time.time()) - 1_474_300_800
    old = {
        (second + ahead) << 34 | 4 << 13 | sequence
        for ahead in range(-5, 60)
        for sequence in range(8192)
    }
    new = reader.generates("uid.db", UID, 5000)
    assert len({*new} - old) == 5000
    assert new == sorted(new)
    [status] = list_leases(reader.store("uid.db")).leases
    assert status.node_id >= 10004


def test_uuids_are_replaced_on_postgresql(tmp_path: Path, postgres: servers.Server) -> None:
    [take, add, constrain, switch, drop] = SECTIONS["On PostgreSQL"]
    fill = SECTIONS["Filling a column"][0]
    reader = Reader(tmp_path, postgres)
    reader.does(take)
    with (
        Snowflake.leased(tmp_path / "dual.db", OURS) as flake,  # stands for the application's ids
        session(postgres) as before,
        session(postgres) as after,
    ):
        old = "insert into account (name) values ('written by old')"
        both = "insert into account (new_id, name) values (%s, 'written by new')"
        written = list[int]()

        def write_both() -> None:
            id = flake.generate()
            after.execute(both, [id])
            written.append(id)

        with meanwhile(lambda: before.execute(old)) as stop_old:
            reader.does(add)
            with meanwhile(write_both) as stop_new:
                with reader.start(fill) as killed:  # somewhere in the middle
                    count = "select count(*) from account where new_id is not null"
                    while (row := count_of(postgres, count)) < 2000 and killed.poll() is None:
                        time.sleep(0.005)
                    killed.send_signal(signal.SIGKILL)
                assert row > 0
                stop_old()
                reader.does(fill)
                reader.does(constrain)
                reader.does(switch)
                time.sleep(0.2)
                stop_new()
        assert count_of(postgres, "select count(*) from account where new_id is null") == 0
        found = {id for (id,) in after.execute("select new_id from account")}
        assert len(found) == count_of(postgres, "select count(*) from account")
        assert {*written} <= found
        reader.does(drop)
        with pytest.raises(psycopg.errors.NotNullViolation):
            after.execute("insert into account (name) values ('without')")


def count_of(server: servers.Server, query: str) -> int:
    with session(server) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_uuids_are_replaced_on_mysql(tmp_path: Path, mariadb: servers.Server) -> None:
    [take, add, constrain, switch] = SECTIONS["On MySQL and MariaDB"]
    fill = SECTIONS["Filling a column"][1]
    reader = Reader(tmp_path, mariadb)
    reader.does(take)
    old = "insert into account (id, name) values (%s, 'written by old')"
    both = "insert into account (id, name, new_id) values (%s, 'written by new', %s)"
    with (
        Snowflake.leased(tmp_path / "dual.db", OURS) as flake,
        mariadb.connect(autocommit=True) as before,
        mariadb.connect(autocommit=True) as after,
    ):
        for connection in (before, after):
            connection.cursor().execute("set lock_wait_timeout = 5, innodb_lock_wait_timeout = 5")

        def write_both() -> None:
            after.cursor().execute(both, [str(uuid.uuid4()), flake.generate()])

        with meanwhile(lambda: before.cursor().execute(old, [str(uuid.uuid4())])) as stop_old:
            reader.does(add)
            with meanwhile(write_both) as stop_new:
                time.sleep(0.3)
                stop_old()
                reader.does(fill)
                reader.does(constrain)
                time.sleep(0.3)
                stop_new()
    reader.does(switch)
    [(rows, distinct)] = mariadb.mysql("select count(*), count(distinct id) from account")
    assert rows == distinct > 1000


def test_a_table_is_filled_from_files(tmp_path: Path, postgres: servers.Server) -> None:
    [_, _, take, pairs, fill, pack] = SECTIONS["Filling a column"]
    reader = Reader(tmp_path, postgres)
    for block in (take, pairs, fill, pack):
        reader.does(block)
    found = "select count(distinct new_id) from product"
    assert count_of(postgres, found) == 5000
    with reader.start(fill) as again:
        assert again.communicate(timeout=60)[0] == "0\n"


def test_every_block_is_run_here() -> None:
    assert {heading for heading, blocks in SECTIONS.items() if blocks} == {
        "From a Snowflake",
        "Snowflake mode",
        "From UidGenerator",
        "On PostgreSQL",
        "On MySQL and MariaDB",
        "Filling a column",
    }
