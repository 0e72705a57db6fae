"""The functions that `randflake sql` prints, in a MariaDB, and in a MySQL where there is one."""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest
import servers
from blocks import blocks_of, prints
from randflake import Cloak, Inspector, Layout, Snowflake, decode_string
from randflake.errors import RandflakeError
from randflake.text import TextForm

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [str(Path(sys.executable).parent / "randflake"), "sql", "--dialect", "mysql"]
SECRET = "dffd6021bb2bd5b0af676290809ec3a5"
OTHER = "00112233445566778899aabbccddeeff"
SQLSTATE = "22023"
GUIDE = Path("docs/guides/sql-mysql.md")

ORDERS = 1764000000000
"""A unix millisecond at which some ids of the tests are made."""

FUNCTIONS = {
    "clock_ms",
    "cloak_key",
    "decode_prefixed",
    "decode_string",
    "decrypt",
    "decrypt_block",
    "digits_value",
    "encode_prefixed",
    "encode_string",
    "encrypt",
    "encrypt_block",
    "hide",
    "hmac",
    "inspect_field",
    "inspect_ms",
    "inspect_node",
    "inspect_sequence",
    "inspect_time",
    "next_id",
    "next_id_at",
    "refuse",
    "refuse_text",
    "reveal",
    "round_keys",
    "secret",
    "shard_of",
    "text_start",
}


def vectors(name: str) -> Any:
    return json.loads((ROOT / "tests" / "vectors" / f"{name}.json").read_text(encoding="utf-8"))


def signed(number: str | int) -> int:
    """What a BIGINT holds of an unsigned 64-bit number."""
    return (int(number) + 2**63) % 2**64 - 2**63


def script(*arguments: str) -> str:
    return subprocess.run([*COMMAND, *arguments], check=True, capture_output=True, text=True).stdout


class Session:
    """A connection, and short ways to use it."""

    def __init__(self, server: servers.Server, secret: str | None = None, **options: Any) -> None:
        login: dict[str, Any] = {"user": "randflake", "password": servers.PASSWORD}
        login |= {"host": "127.0.0.1", "port": server.port, "database": "ids", "autocommit": True}
        self.connection = pymysql.connect(**(login | options))
        if secret is not None:
            self.use(secret)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def rows(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(query, arguments or None)
            return list(cursor.fetchall())

    def row(self, query: str, *arguments: object) -> tuple[Any, ...]:
        [row] = self.rows(query, *arguments)
        return row

    def value(self, query: str, *arguments: object) -> Any:
        """The one value that a query returns."""
        [found] = self.row(query, *arguments)
        return found

    def use(self, secret: str | None) -> None:
        self.rows("set @randflake_secret = %s", secret)

    def refused(self, query: str, *arguments: object) -> tuple[str, str]:
        """How a query is refused: the code and the message."""
        with pytest.raises(pymysql.err.OperationalError) as caught:
            self.rows(query, *arguments)
        # MariaDB has a function `encrypt` of its own, and notes that first.
        for number in (1, 2):
            self.rows(
                f"get diagnostics condition {number} @state = returned_sqlstate,"
                " @code = subclass_origin, @message = message_text"
            )
            state, code, message = self.row("select @state, @code, @message")
            if state == SQLSTATE:
                break
        assert (state, message) == (SQLSTATE, caught.value.args[1])
        assert len(message) <= 128
        return str(code), str(message)

    def load(self, text: str) -> None:
        """Runs a script as the client of MySQL does, which knows `delimiter`."""
        delimiter, statement = ";", ""
        for line in text.splitlines():
            if line.startswith("delimiter "):
                delimiter = line.split()[1]
            elif not line.startswith("--"):
                statement += line + "\n"
                if statement.rstrip().endswith(delimiter):
                    self.rows(statement.rstrip().removesuffix(delimiter))
                    statement = ""
        assert not statement.strip()


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    """A server with the functions."""
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.running(
            request.param, Path(folder), "--innodb-flush-log-at-trx-commit=0"
        ) as server,
    ):
        with Session(server) as admin:
            # MySQL has a binary log by default.
            admin.rows("set global log_bin_trust_function_creators = 1")
            admin.load(script())
        yield server


@pytest.fixture
def session(server: servers.Server) -> Iterator[Session]:
    """A session with the secret, and nothing that next_id has made."""
    with Session(server, SECRET) as session:
        session.rows("delete from randflake.last_id")
        yield session


def test_the_cipher_passes_its_vectors(session: Session) -> None:
    for case in vectors("sparx")["cases"]:
        raw, id = signed(case["raw"]), int(case["id"])
        session.use(case["secret"])
        found = session.row("select randflake.encrypt(%s), randflake.decrypt(%s)", raw, id)
        assert found == (id, raw), case["name"]


def test_ids_pass_their_vectors(session: Session) -> None:
    for case in vectors("ids")["cases"]:
        raw, id = signed(case["raw"]), int(case["id"])
        session.use(case["secret"])
        query = (
            "select randflake.inspect_ms(raw, l), randflake.inspect_node(raw, l),"
            " randflake.inspect_sequence(raw, l)"
            " from (select randflake.decrypt(%s) as raw, 'randflake' as l) as d"
        )
        parts = (case["timestamp"] * 1000, case["node_id"], case["sequence"])
        assert session.row(query, id) == parts, case["name"]
        query = "select randflake.encrypt(%s), randflake.decrypt(%s), randflake.encode_string(%s)"
        assert session.row(query, raw, id, id) == (id, raw, case["text"]), case["name"]


def test_cloaks_pass_their_vectors(session: Session) -> None:
    for case in vectors("cloak")["cases"]:
        number, hidden, label = signed(case["number"]), int(case["hidden"]), case["label"]
        session.use(case["secret"])
        query = "select randflake.hide(%s, %s), randflake.reveal(%s, %s)"
        found = session.row(query, number, label, hidden, label)
        assert found == (hidden, number), case["name"]


def said(text: str, form: TextForm | None = None) -> str:
    """What this text is refused with, as long as MySQL has room for it."""
    with pytest.raises(RandflakeError) as caught:
        decode_string(text) if form is None else form.decode(text)
    return str(caught.value).replace(", as the text form of a column does", "")


def test_texts_pass_their_vectors(session: Session) -> None:
    cases = vectors("text")
    for case in cases["valid"]:
        id, text = int(case["id"]), case["text"]
        assert session.value("select randflake.encode_string(%s)", id) == text, case["name"]
        assert session.value("select randflake.decode_string(%s)", text) == id, case["name"]
    for case in cases["invalid"]:
        found = session.refused("select randflake.decode_string(%s)", case["text"])
        assert found == ("INVALID_ID", said(case["text"])), case["name"]
    for text in ("\u00e9" * 7, "\u00e9" * 14):
        found = session.refused("select randflake.decode_string(%s)", text)
        assert found == ("INVALID_ID", said(text)), text


def test_text_forms_pass_their_vectors(session: Session) -> None:
    def call(form: dict[str, Any], function: str, argument: str) -> tuple[str, list[str]]:
        if "prefix" in form:
            return f"randflake.{function}_prefixed({argument}, %s)", [form["prefix"]]
        return f"randflake.{function}_string({argument})", []

    cases = vectors("text_form")
    for case in cases["valid"]:
        form, label = cases["forms"][case["form"]], []
        argument, reader = "%s", "{}"
        if "cloak" in form:
            session.use(form["cloak"]["secret"])
            label = [form["cloak"]["label"]]
            argument, reader = "randflake.hide(%s, %s)", "randflake.reveal({}, %s)"
        encode, prefix = call(form, "encode", argument)
        decode = reader.format(call(form, "decode", "%s")[0])
        id, text = int(case["id"]), case["text"]
        assert session.value(f"select {encode}", id, *label, *prefix) == text, case["name"]
        assert session.value(f"select {decode}", text, *prefix, *label) == id, case["name"]
    for case in cases["invalid"]:
        form = cases["forms"][case["form"]]
        decode, prefix = call(form, "decode", "%s")
        found = session.refused(f"select {decode}", case["text"], *prefix)
        expected = said(case["text"], TextForm(form.get("prefix")))
        assert found == ("INVALID_ID", expected), case["name"]
    for case in cases["bad_prefixes"]:
        for query in ("encode_prefixed(1, %s)", "decode_prefixed('1', %s)"):
            code, message = session.refused(f"select randflake.{query}", case["prefix"])
            assert code == "INVALID_ARGUMENT", case["name"]
            assert message.startswith("a prefix has 1 to 63 of the characters a-z and _"), message


def test_texts_are_ascii_and_read_by_their_bytes(session: Session) -> None:
    query = "select charset(t), collation(t), t = upper(t) from (select {} as t) as d"
    for call in ("randflake.encode_string(-5)", "randflake.encode_prefixed(-5, 'user')"):
        assert session.row(query.format(call)) == ("ascii", "ascii_bin", 0)
    for id in (0, 1, -1, 2**63 - 1, -(2**63)):
        text = session.value("select randflake.encode_string(%s)", id)
        assert decode_string(text) == id
    # Spaces at the end, other letters and accents are equal in most collations.
    for text in ("A", "a ", "\u00e1", "user_a", "a\n", "a\0", "\uff11"):
        assert session.refused("select randflake.decode_string(%s)", text)[0] == "INVALID_ID", text
        query = "select randflake.decode_prefixed(%s, 'user')"
        assert session.refused(query, f"user_{text}")[0] == "INVALID_ID", text
    for text in ("USER_7", "us\u00e9r_7", "user_7 "):
        query = "select randflake.decode_prefixed(%s, 'user')"
        assert session.refused(query, text)[0] == "INVALID_ID", text
    session.rows("create table note (body varchar(99)) character set utf8mb4")
    session.rows("insert into note values ('fvvvvvvvvvvvv')")
    query = "select count(*) from note where body = randflake.encode_string(-1)"
    assert session.value(query) == 1
    session.rows("drop table note")


def test_layouts_pass_their_vectors(session: Session) -> None:
    query = (
        "select randflake.inspect_ms(i, l), randflake.inspect_node(i, l),"
        " randflake.inspect_sequence(i, l), randflake.inspect_time(i, l)"
        " from (select %s as i, %s as l) d"
    )

    def check(id: int, text: str, parts: tuple[int, int, int], name: str) -> None:
        read = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=parts[0])
        assert session.row(query, id, text) == (*parts, read.replace(tzinfo=None)), name

    presets = set()
    for case in vectors("layouts")["cases"] + vectors("peers")["cases"]:
        try:
            layout = Layout(case["layout"])
        except RandflakeError:
            continue  # one that is described by its fields
        presets.add(layout.name)
        id = signed(case["id"])
        parts = (case["unix_ms"], case["node_id"] or 0, case["sequence"])
        check(id, layout.name, parts, case["name"])
        moved = (parts[0] - layout.epoch_ms + 1577836800001, *parts[1:])
        check(id, f"{layout.name},epoch_ms=1577836800001", moved, case["name"])
    assert len(presets) >= 7
    code, message = session.refused("select randflake.inspect_ms(1, 'snow')")
    assert code == "INVALID_ARGUMENT"
    for name in message.partition("there are ")[2].split(", "):
        layout = Layout(name)
        is_unsigned = sum(bits for _, bits in layout.fields) == 64
        for id in (0, 2**63 - 1, *((-1, -(2**63)) if is_unsigned else ())):
            read = layout.inspect(id % 2**64)
            check(id, name, (read.unix_ms, read.node_id, read.sequence), name)


def test_what_is_no_layout_or_none_of_its_ids_is_refused(session: Session) -> None:
    query = "select randflake.inspect_node(%s, %s)"
    for text in ("", "Twitter", "twitter ", "snow", "twitter\n", "time:41,node:10", "x" * 5000):
        code, message = session.refused(query, 1, text)
        assert code == "INVALID_ARGUMENT", text
        assert message.startswith("there is no layout "), message
    for options in (
        ",",
        ",epoch_ms=",
        ",epoch_ms=-1",
        ",epoch_ms=1\n",
        ",tick_ms=1",
        "," + "1" * 5000,
    ):
        code, message = session.refused(query, 1, "twitter" + options)
        assert code == "INVALID_ARGUMENT", options
        assert message.startswith("the layout has "), message
    for late in ("9223372036855", "99999999999999999999"):
        code, _ = session.refused(query, 1, f"twitter,epoch_ms={late}")
        assert code == "INVALID_ARGUMENT", late
    for id in (-1, -(2**63)):
        with pytest.raises(RandflakeError) as caught:
            Layout("sonyflake2").inspect(id % 2**64)
        assert session.refused(query, id, "sonyflake2") == ("INVALID_ID", str(caught.value))


def test_null_is_null_with_and_without_a_secret(server: servers.Server) -> None:
    calls = ["encode_string(null)", "encode_prefixed(null, 'user')", "encode_prefixed(1, null)"]
    calls += ["decode_string(null)", "decode_prefixed(null, 'user')", "decode_prefixed('1', null)"]
    calls += ["encrypt(null)", "decrypt(null)", "shard_of(null)"]
    calls += ["next_id(null, 'orders')", "next_id(5, null)"]
    for name in ("hide", "reveal"):
        calls += [f"{name}(null, 'a')", f"{name}(1, null)", f"{name}(null, null)"]
    for name in ("inspect_ms", "inspect_time", "inspect_node", "inspect_sequence"):
        calls += [f"{name}(null, 'twitter')", f"{name}(1, null)"]
    with Session(server) as session:
        for call in calls:
            assert session.value(f"select randflake.{call}") is None, call


def test_what_is_no_bigint_is_refused(session: Session) -> None:
    for call in ("encode_string(9223372036854775808)", "decrypt(9223372036854775808)"):
        with pytest.raises(pymysql.err.DataError):
            session.rows(f"select randflake.{call}")


def test_a_secret_that_is_missing_or_malformed_is_named_and_not_shown(
    server: servers.Server,
) -> None:
    with Session(server) as session:
        for bad in (
            None,
            "",
            SECRET[:-1],
            SECRET + "0",
            "zZ4711zZ" + SECRET[8:],
            " " + SECRET[1:],
            SECRET[:-1] + "\n",
            SECRET[:-1] + "\u00e9",
        ):
            session.use(bad)
            for call in ("decrypt(1)", "encrypt(1)", "hide(1, 'a')", "reveal(1, 'a')"):
                code, message = session.refused(f"select randflake.{call}")
                assert code == "INVALID_SECRET"
                assert message.startswith("the variable @randflake_secret "), message
                warnings = str(session.rows("show warnings"))
                for shown in (message, warnings):
                    assert not bad or bad not in shown
                    assert "4711" not in shown
                    assert SECRET[8:16] not in shown
        session.use(SECRET.upper())
        assert session.value("select randflake.hide(5, 'a')") == Cloak(SECRET, "a").hide(5)


@pytest.mark.parametrize(
    "mode", ["", "ANSI_QUOTES,PIPES_AS_CONCAT", "NO_UNSIGNED_SUBTRACTION", "NO_BACKSLASH_ESCAPES"]
)
def test_the_mode_of_a_session_changes_nothing(server: servers.Server, mode: str) -> None:
    with Session(server, SECRET) as session:
        session.rows("set sql_mode = %s", mode)
        session.load(script("--schema", "ids_2"))
        for schema in ("randflake", "ids_2"):
            query = (
                f"select {schema}.decrypt(-5), {schema}.hide(-5, 'a'), {schema}.decode_string('a')"
            )
            assert session.row(query) == (
                signed(Inspector(SECRET).decrypt(-5)),
                Cloak(SECRET, "a").hide(2**64 - 5),
                10,
            )
            assert session.refused(f"select {schema}.decode_string('01')")[0] == "INVALID_ID"
        session.rows("drop database ids_2")


@pytest.mark.parametrize("charset", ["latin1", "utf8mb4", "ascii"])
def test_labels_are_in_utf8_whatever_the_connection_has(
    server: servers.Server, charset: str
) -> None:
    with Session(server, SECRET, charset=charset) as session:
        label = "bestellungen" if charset == "ascii" else "bestellungen-\u00fc"
        found = session.value("select randflake.hide(5, %s)", label)
        assert found == Cloak(SECRET, label).hide(5)
        assert session.value("select randflake.encode_string(-1)") == "fvvvvvvvvvvvv"


AT = "select randflake.next_id_at(5, %s, %s)"


def test_an_id_of_a_trigger_says_its_shard_and_its_time(session: Session) -> None:
    layout = Layout("instagram")
    session.rows("create table orders (id bigint not null default 0 primary key, total int)")
    session.rows(
        "create trigger orders_id before insert on orders for each row"
        " set new.id = if(new.id = 0, randflake.next_id(5, 'orders'), new.id)"
    )
    # The clock of a session may be set, and its time zone has hours that come twice.
    session.rows("set time_zone = '-11:00', timestamp = 1300000000")
    before = time.time_ns() // 1_000_000
    session.rows("insert into orders (total) values " + ", ".join(["(7)"] * 3000))
    after = time.time_ns() // 1_000_000
    rows = session.rows("select id, randflake.shard_of(id) from orders order by id")
    assert len(rows) == 3000
    assert {shard for _, shard in rows} == {5}
    for id in (rows[0][0], rows[-1][0]):
        assert layout.inspect(id).node_id == 5
        assert before - 2 <= layout.inspect(id).unix_ms <= after + 5
    session.rows("drop table orders")


def test_the_shard_has_bounds(session: Session) -> None:
    for shard in (0, 8191):
        query = "select randflake.shard_of(randflake.next_id(%s, 'orders'))"
        assert session.value(query, shard) == shard
    for shard in (-1, 8192, 2**31 - 1):
        code, message = session.refused("select randflake.next_id(%s, 'orders')", shard)
        assert code == "INVALID_NODE"
        with pytest.raises(RandflakeError) as caught:
            Snowflake(shard % 2**32, Layout("instagram"))
        assert message == str(caught.value).replace(str(shard % 2**32), str(shard))


def test_a_clock_that_steps_back_repeats_no_id(session: Session) -> None:
    layout = Layout("instagram")
    steps = [0, 0, 1, -1, -4999, 7, 7, 6, -4993, 2000, 7]
    ids = [session.value(AT, "orders", ORDERS + step) for step in steps]
    assert ids == sorted(set(ids))
    read = [layout.inspect(id) for id in ids]
    # Ids run ahead of a clock that steps back, and do not wait for it.
    assert [it.unix_ms - ORDERS for it in read] == [0, 0, 1, 1, 1, 7, 7, 7, 7, 2000, 2000]
    assert [it.sequence for it in read] == [0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 1]
    # Too far ahead, and nothing is taken.
    for step, behind in ((-3001, 5001), (-86_400_000, 86_402_000)):
        code, message = session.refused(AT, "orders", ORDERS + step)
        assert (code, f"is {behind} ms behind" in message) == ("CLOCK_MOVED_BACK", True), message
    assert layout.inspect(session.value(AT, "orders", ORDERS)).sequence == 2
    # Each sequence has a row of its own.
    assert session.value(AT, "invoices", ORDERS) == ids[0]


def test_more_ids_than_a_millisecond_has_use_the_next_one(session: Session) -> None:
    layout = Layout("instagram")
    session.rows("create table made (n int auto_increment primary key, id bigint)")
    for count in (1000, 1000, 500):
        values = ", ".join([f"(randflake.next_id_at(5, 'orders', {ORDERS}))"] * count)
        session.rows(f"insert into made (id) values {values}")
    ids = [id for (id,) in session.rows("select id from made order by n")]
    assert ids == [layout.pack(ORDERS + i // 1024, 5, i % 1024) for i in range(2500)]
    session.rows("drop table made")


def test_ids_have_the_lifetime_of_the_layout(session: Session) -> None:
    layout = Layout("instagram")
    assert layout.inspect(session.value(AT, "orders", layout.epoch_ms)).unix_ms == layout.epoch_ms
    code, _ = session.refused(AT, "orders", layout.epoch_ms - 1)
    assert code == "CLOCK_BEFORE_EPOCH"
    end = layout.epoch_ms + 2**41
    # Negative, as the layout has it in a signed column.
    assert session.value(AT, "orders", end - 1) == signed(layout.pack(end - 1, 5, 0))
    code, message = session.refused(AT, "orders", end)
    assert (code, str(end) in message) == ("LIFETIME_OVER", True)


def test_a_value_that_was_lowered_repeats_no_id_after_the_time_of_the_last_one(
    session: Session,
) -> None:
    first = [session.value(AT, "orders", ORDERS + step) for step in (0, 0, 1)]
    session.rows("delete from randflake.last_id")
    assert session.value(AT, "orders", ORDERS + 2) not in first
    # And it does repeat one before that: the condition that the comment names.
    session.rows("update randflake.last_id set value = 0")
    assert session.value(AT, "orders", ORDERS) == first[0]


def test_a_transaction_has_the_row_until_its_end_and_sees_what_others_made(
    server: servers.Server, session: Session
) -> None:
    with Session(server) as other:
        other.rows("set innodb_lock_wait_timeout = 1")
        # It reads what there was when it began, but not in next_id.
        session.rows("begin")
        session.rows("select * from randflake.last_id")
        made = other.value(AT, "orders", ORDERS)
        assert session.value(AT, "orders", ORDERS) == made + 1
        with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
            other.rows(AT, "orders", ORDERS)
        # Other sequences are free.
        assert other.value(AT, "invoices", ORDERS) == made
        session.rows("rollback")
        # What was rolled back can come again in the same millisecond, as the comment says.
        assert other.value(AT, "orders", ORDERS) == made + 1


@pytest.mark.usefixtures("session")
def test_ids_of_many_sessions_are_unique(server: servers.Server) -> None:
    """Some make one at a time, others in transactions; the first ones race for a new row."""
    many = "select " + ", ".join(["randflake.next_id(5, 'orders')"] * 249)

    def make(seed: int) -> list[int]:
        draw, made = random.Random(seed), []
        with Session(server) as connection:
            for _ in range(100):
                made.append(connection.value("select randflake.next_id(5, 'orders')"))
                if draw.random() < 0.5:
                    connection.rows("begin")
                made += connection.row(many)
                connection.rows("commit")
        return made

    with ThreadPoolExecutor(8) as threads:
        of_sessions = list(threads.map(make, range(8)))
    assert all(ids == sorted(ids) for ids in of_sessions)
    ids = [id for made in of_sessions for id in made]
    assert len(set(ids)) == len(ids) == 200_000


def test_an_id_leads_to_its_shard(server: servers.Server) -> None:
    """Two schemas stand for two servers; the id alone says which of them has the row."""
    with Session(server) as session:
        for shard in (7, 8191):
            session.load(script("--schema", f"shard_{shard}"))
            session.rows(f"create table shard_{shard}.orders (id bigint primary key, buyer text)")
        placed = {}
        for number in range(100):
            home, buyer = (7, 8191)[number % 2], f"buyer {number}"
            id = session.value(f"select shard_{home}.next_id({home}, 'orders')")
            session.rows(f"insert into shard_{home}.orders values (%s, %s)", id, buyer)
            placed[id] = buyer
        assert len(placed) == 100
        for id, buyer in placed.items():
            home = Layout("instagram").inspect(id).node_id
            query = (
                f"select buyer, shard_{home}.shard_of(id) from shard_{home}.orders where id = %s"
            )
            assert session.row(query, id) == (buyer, home)
        for shard in (7, 8191):
            session.rows(f"drop database shard_{shard}")


def test_a_trigger_hides_a_sequence_and_needs_the_secret_of_the_session(
    server: servers.Server, session: Session
) -> None:
    if server.kind != "mariadb":
        pytest.skip("MySQL has no sequences")
    session.rows("create sequence orders_seq")
    session.rows("create table orders (id bigint not null default 0 primary key, total int)")
    session.rows(
        "create trigger orders_id before insert on orders for each row"
        " set new.id = if(new.id = 0, randflake.hide(nextval(orders_seq), 'orders.id'), new.id)"
    )
    session.rows("insert into orders (total) values (7), (8), (9)")
    ids = [id for (id,) in session.rows("select id from orders order by total")]
    cloak = Cloak(SECRET, "orders.id")
    assert [cloak.reveal(id) for id in ids] == [1, 2, 3]
    with Session(server) as without:
        refusal = without.refused("insert into orders (total) values (7)")
        assert refusal[0] == "INVALID_SECRET"
    session.rows("drop table orders")
    session.rows("drop sequence orders_seq")


def test_who_may_execute_needs_no_right_on_the_table(server: servers.Server) -> None:
    with Session(server) as admin:
        admin.rows("create user app@'127.0.0.1' identified by %s", servers.PASSWORD)
        admin.rows("grant execute on randflake.* to app@'127.0.0.1'")
        with Session(server, SECRET, user="app", database=None) as app:
            assert app.value("select randflake.hide(5, 'a')") == Cloak(SECRET, "a").hide(5)
            assert app.value("select randflake.shard_of(randflake.next_id(5, 'orders'))") == 5
            assert app.refused("select randflake.decode_string('01')")[0] == "INVALID_ID"
            for statement in ("select * from", "delete from"):
                with pytest.raises(pymysql.err.OperationalError, match="denied"):
                    app.rows(f"{statement} randflake.last_id")
        admin.rows("drop user app@'127.0.0.1'")


def test_the_catalogue_says_what_the_functions_are(session: Session) -> None:
    version = subprocess.run(
        [COMMAND[0], "--version"], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    rows = session.rows(
        "select routine_name, is_deterministic, sql_data_access, security_type, routine_comment,"
        " sql_mode from information_schema.routines where routine_schema = 'randflake'"
    )
    assert {row[0] for row in rows} == FUNCTIONS
    of_session = {"secret", "cloak_key", "encrypt", "decrypt", "hide", "reveal", "clock_ms"}
    for name, deterministic, access, security, comment, mode in rows:
        writes = name in {"next_id", "next_id_at"}
        is_function = name not in {"refuse", "refuse_text"}
        same = is_function and not writes and name not in of_session
        assert deterministic == ("YES" if same else "NO"), name
        assert access == ("MODIFIES SQL DATA" if writes else "NO SQL"), name
        assert security == ("DEFINER" if writes else "INVOKER"), name
        assert "STRICT_ALL_TABLES" in mode, name
        assert comment.endswith(f" Randflake {version}"), name


def test_loading_again_keeps_what_was_made(session: Session) -> None:
    made = session.value(AT, "orders", ORDERS)
    mode = session.value("select @@sql_mode")
    session.load(script())
    assert session.value("select @@sql_mode") == mode
    assert session.value(AT, "orders", ORDERS) == made + 1


def test_the_guide_prints_what_it_claims(server: servers.Server) -> None:
    """It is loaded by the client, which knows `delimiter`."""
    login = ["--host=127.0.0.1", f"--port={server.port}", "--user=randflake", "--batch"]

    def client(script: str, *arguments: str) -> str:
        return subprocess.run(
            [servers.program("mariadb", "mariadb-client"), *login, *arguments],
            input=script,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "MYSQL_PWD": servers.PASSWORD},
        ).stdout

    assert "randflake sql --dialect mysql | mysql" in (ROOT / GUIDE).read_text(encoding="utf-8")
    assert client(script()) == ""
    with Session(server) as admin:
        admin.rows("create database guide")
        blocks = [block for block in blocks_of(GUIDE) if block.language == "sql"]
        assert len(blocks) == 3
        for block in blocks:
            assert block.output is not None
            assert prints(block.output, client(block.code, "guide")), block
        admin.rows("drop database guide")


def test_with_a_binary_log_the_loader_needs_the_trust_that_the_guide_names() -> None:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="randflake-server-"))
        settings = ["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]
        server = stack.enter_context(servers.mariadb(Path(folder), *settings))
        admin = stack.enter_context(Session(server))
        admin.rows("create user owner@'127.0.0.1' identified by %s", servers.PASSWORD)
        admin.rows("grant all on randflake.* to owner@'127.0.0.1'")
        owner = stack.enter_context(Session(server, user="owner", database=None))
        for loader in (owner, admin):
            with pytest.raises(pymysql.err.OperationalError, match="log_bin_trust_function"):
                loader.load(script())
        admin.rows("set global log_bin_trust_function_creators = 1")
        owner.load(script())
        assert owner.value("select randflake.shard_of(randflake.next_id(5, 'orders'))") == 5
        # Rows are logged, and not the variable with the secret.
        owner.use(SECRET)
        owner.rows("create table randflake.note (id bigint)")
        owner.rows("insert into randflake.note values (randflake.hide(5, 'a'))")
        events = str(admin.rows("show binlog events"))
        assert "randflake.note" in events
        assert SECRET not in events
