"""The functions that `randflake sql` prints, in a PostgreSQL."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import servers
from blocks import blocks_of, prints
from psycopg import Connection, errors, sql
from psycopg.conninfo import make_conninfo
from randflake import Cloak, Inspector, Layout, Snowflake, decode_string
from randflake.errors import RandflakeError
from randflake.text import TextForm

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [str(Path(sys.executable).parent / "randflake"), "sql", "--dialect", "postgres"]
SECRET = "dffd6021bb2bd5b0af676290809ec3a5"
OTHER = "00112233445566778899aabbccddeeff"
GUIDE = Path("docs/guides/sql.md")
GUIDE_SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"
# Its text form has digits only.
DIGITS = 1228503247364293699

LAYOUTS = [
    "randflake",
    "twitter",
    "discord",
    "leaf",
    "baidu",
    "sonyflake",
    "sonyflake2",
    "instagram",
    "simpleflake",
]

PUBLIC = {
    "encode_string": "i",
    "decode_string": "i",
    "encrypt": "s",
    "decrypt": "s",
    "encrypt_many": "s",
    "decrypt_many": "s",
    "inspect": "s",
    "hide": "s",
    "reveal": "s",
    "hide_many": "s",
    "reveal_many": "s",
    "inspect_raw": "i",
    "shard_of": "i",
    "next_id": "v",
}
"""The functions for users, and whether they are immutable, stable or volatile."""

INTERNAL = {
    "text_start": "i",
    "round_keys": "i",
    "encrypt_block": "i",
    "decrypt_block": "i",
    "secret": "s",
    "cloak_key": "s",
    "next_id_at": "v",
}

ORDERS = 1764000000000
"""A unix millisecond at which some ids of the tests are made."""


def vectors(name: str) -> Any:
    return json.loads((ROOT / "tests" / "vectors" / f"{name}.json").read_text(encoding="utf-8"))


def signed(number: str) -> int:
    """What a BIGINT holds of an unsigned 64-bit number."""
    return (int(number) + 2**63) % 2**64 - 2**63


def script(*arguments: str) -> str:
    return subprocess.run([*COMMAND, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """A server with the functions, which logs all it can."""
    with (
        tempfile.TemporaryDirectory(prefix="randflake-server-") as folder,
        servers.postgres(Path(folder)) as server,
    ):
        with psycopg.connect(server.url(), autocommit=True) as admin:
            for setting, value in {
                "shared_preload_libraries": "pg_stat_statements",
                "log_statement": "all",
                "log_duration": "on",
                "log_connections": "on",
                "log_error_verbosity": "verbose",
                "log_min_error_statement": "debug5",
                "log_parameter_max_length": "0",
                "fsync": "off",
            }.items():
                name = sql.Identifier(setting)
                admin.execute(sql.SQL("alter system set {} = {}").format(name, value))
        server.stop(signal.SIGINT)
        server.start()
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute("create extension pg_stat_statements")
            admin.execute(script())
        yield server


def connect(server: servers.Server, secret: str | None = None, **options: Any) -> Connection:
    if secret is not None:
        options["options"] = f"-c randflake.secret={secret}"
    return psycopg.connect(make_conninfo(server.url(), **options), autocommit=True)


@pytest.fixture
def session(server: servers.Server) -> Iterator[Connection]:
    """A session with the secret."""
    with connect(server, SECRET) as connection:
        yield connection


def value(connection: Connection, query: str, *arguments: object) -> Any:
    """The one value that a query returns."""
    row = connection.execute(query, arguments).fetchone()
    assert row is not None
    (found,) = row
    return found


def use(connection: Connection, secret: str) -> None:
    connection.execute("select set_config('randflake.secret', %s, false)", [secret])


def test_the_cipher_passes_its_vectors(session: Connection) -> None:
    for case in vectors("sparx")["cases"]:
        raw, id = signed(case["raw"]), int(case["id"])
        use(session, case["secret"])
        found = session.execute(
            "select randflake.encrypt(%s), randflake.decrypt(%s)", [raw, id]
        ).fetchone()
        assert found == (id, raw), case["name"]


def test_ids_pass_their_vectors(session: Connection) -> None:
    for case in vectors("ids")["cases"]:
        raw, id = signed(case["raw"]), int(case["id"])
        use(session, case["secret"])
        query = "select extract(epoch from time), node_id, sequence from randflake.inspect(%s)"
        parts = (case["timestamp"], case["node_id"], case["sequence"])
        assert session.execute(query, [id]).fetchone() == parts, case["name"]
        query = "select randflake.encrypt(%s), randflake.decrypt(%s), randflake.encode_string(%s)"
        found = session.execute(query, [raw, id, id]).fetchone()
        assert found == (id, raw, case["text"]), case["name"]


def test_cloaks_pass_their_vectors(session: Connection) -> None:
    for case in vectors("cloak")["cases"]:
        number, hidden, label = signed(case["number"]), int(case["hidden"]), case["label"]
        use(session, case["secret"])
        query = "select randflake.hide(%s, %s), randflake.reveal(%s, %s)"
        found = session.execute(query, [number, label, hidden, label]).fetchone()
        assert found == (hidden, number), case["name"]


def refused(connection: Connection, query: str, *arguments: object) -> tuple[str, str]:
    """How a query is refused: the code and the message."""
    with pytest.raises(errors.InvalidParameterValue) as caught:
        connection.execute(query, arguments)
    diagnostic = caught.value.diag
    assert diagnostic.sqlstate == "22023"
    return str(diagnostic.message_detail), str(diagnostic.message_primary)


def test_texts_pass_their_vectors(session: Connection) -> None:
    cases = vectors("text")
    for case in cases["valid"]:
        id, text = int(case["id"]), case["text"]
        assert value(session, "select randflake.encode_string(%s)", id) == text, case["name"]
        assert value(session, "select randflake.decode_string(%s)", text) == id, case["name"]
    for case in cases["invalid"]:
        # PostgreSQL has no text with a NUL.
        if "\0" in case["text"]:
            continue
        with pytest.raises(RandflakeError) as caught:
            decode_string(case["text"])
        found = refused(session, "select randflake.decode_string(%s)", case["text"])
        assert found == ("INVALID_ID", str(caught.value)), case["name"]
    for text in ("\u00e9" * 7, "\u00e9" * 14):
        with pytest.raises(RandflakeError) as caught:
            decode_string(text)
        found = refused(session, "select randflake.decode_string(%s)", text)
        assert found == ("INVALID_ID", str(caught.value)), text


def test_text_forms_pass_their_vectors(session: Connection) -> None:
    def call(form: dict[str, Any], function: str, argument: str) -> tuple[str, list[str]]:
        prefix = [form["prefix"]] if "prefix" in form else []
        return f"randflake.{function}({argument}{', %s' * len(prefix)})", prefix

    cases = vectors("text_form")
    for case in cases["valid"]:
        form = cases["forms"][case["form"]]
        if "cloak" in form:
            use(session, form["cloak"]["secret"])
            label = [form["cloak"]["label"]]
            encode, prefix = call(form, "encode_string", "randflake.hide(%s, %s)")
            decode, _ = call(form, "decode_string", "%s")
            decode = f"randflake.reveal({decode}, %s)"
        else:
            label = []
            encode, prefix = call(form, "encode_string", "%s")
            decode, _ = call(form, "decode_string", "%s")
        id, text = int(case["id"]), case["text"]
        assert value(session, f"select {encode}", id, *label, *prefix) == text, case["name"]
        assert value(session, f"select {decode}", text, *prefix, *label) == id, case["name"]
    for case in cases["invalid"]:
        form = cases["forms"][case["form"]]
        with pytest.raises(RandflakeError) as caught:
            TextForm(form.get("prefix")).decode(case["text"])
        decode, prefix = call(form, "decode_string", "%s")
        found = refused(session, f"select {decode}", case["text"], *prefix)
        assert found == ("INVALID_ID", str(caught.value)), case["name"]
    for case in cases["bad_prefixes"]:
        for query in ("encode_string(1, %s)", "decode_string('1', %s)"):
            code, message = refused(session, f"select randflake.{query}", case["prefix"])
            assert code == "INVALID_ARGUMENT", case["name"]
            assert message.startswith("a prefix has 1 to 63 of the characters a-z and _"), message


def test_a_text_of_digits_and_negative_ids_keep_their_meaning(session: Connection) -> None:
    for id in (DIGITS, -1, -(2**63), 0, 2**63 - 1):
        text = value(session, "select randflake.encode_string(%s)", id)
        assert decode_string(text) == id
        assert value(session, "select randflake.decode_string(%s)", text) == id
    assert value(session, "select randflake.encode_string(%s)", DIGITS).isdecimal()
    cloak, number = Cloak(SECRET, "posts.id"), -7
    hidden = value(session, "select randflake.hide(%s, 'posts.id')", number)
    assert cloak.reveal(hidden) == number + 2**64
    assert value(session, "select randflake.reveal(%s, 'posts.id')", hidden) == number


def test_texts_are_read_strictly_whatever_their_collation_is(session: Connection) -> None:
    session.execute(
        "create collation careless"
        " (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    assert value(session, "select 'A' = 'a' collate careless")
    query = "select randflake.decode_string(%s collate careless, 'user' collate careless)"
    assert value(session, query, "user_7") == 7
    for text in ("USER_7", "us\u00e9r_7", "user_A"):
        assert refused(session, query, text)[0] == "INVALID_ID", text
    query = "select randflake.decode_string(%s collate careless)"
    assert value(session, query, "a") == 10
    assert refused(session, query, "A")[0] == "INVALID_ID"
    query = "select randflake.encode_string(1, 'User' collate careless)"
    assert refused(session, query)[0] == "INVALID_ARGUMENT"
    session.execute("drop collation careless")


def refused_for_now(connection: Connection, query: str, *arguments: object) -> tuple[str, str]:
    """How a query is refused that may succeed at another time: the code and the message."""
    with pytest.raises(errors.ObjectNotInPrerequisiteState) as caught:
        connection.execute(query, arguments)
    diagnostic = caught.value.diag
    return str(diagnostic.message_detail), str(diagnostic.message_primary)


def test_layouts_pass_their_vectors(session: Connection) -> None:
    query = (
        "select (extract(epoch from time) * 1000)::bigint, node_id, sequence"
        " from randflake.inspect_raw(%s, %s)"
    )
    presets = set()
    for case in vectors("layouts")["cases"] + vectors("peers")["cases"]:
        try:
            layout = Layout(case["layout"])
        except RandflakeError:
            continue  # one that is described by its fields
        presets.add(layout.name)
        id = signed(case["id"])
        parts = (case["unix_ms"], case["node_id"] or 0, case["sequence"])
        assert session.execute(query, [id, layout.name]).fetchone() == parts, case["name"]
        moved = (parts[0] - layout.epoch_ms + 1577836800001, *parts[1:])
        text = f"{layout.name},epoch_ms=1577836800001"
        assert session.execute(query, [id, text]).fetchone() == moved, case["name"]
    assert len(presets) >= 7
    for layout in map(Layout, LAYOUTS):
        is_unsigned = sum(bits for _, bits in layout.fields) == 64
        for id in (0, 2**63 - 1, *((-1, -(2**63)) if is_unsigned else ())):
            read = layout.inspect(id % 2**64)
            parts = (read.unix_ms, read.node_id, read.sequence)
            assert session.execute(query, [id, layout.name]).fetchone() == parts, layout.name


def test_what_is_no_layout_or_none_of_its_ids_is_refused(session: Connection) -> None:
    query = "select * from randflake.inspect_raw(%s, %s)"
    for text in ("", "Twitter", "twitter ", "snow", "twitter\n", "time:41,node:10,sequence:12"):
        code, message = refused(session, query, 1, text)
        assert code == "INVALID_ARGUMENT", text
        assert message.startswith("there is no layout "), message
        assert message.endswith(", ".join(LAYOUTS)), message
    for options in (
        ",",
        ",epoch_ms=",
        ",epoch_ms=-1",
        ",epoch_ms=1\n",
        ",tick_ms=1",
        ",epoch_ms=1e3",
    ):
        code, message = refused(session, query, 1, "twitter" + options)
        assert code == "INVALID_ARGUMENT", options
        assert message.startswith("the layout has "), message
    assert refused(session, query, 1, "twitter,epoch_ms=9223372036855")[0] == "INVALID_ARGUMENT"
    for id in (-1, -(2**63)):
        with pytest.raises(RandflakeError) as caught:
            Layout("sonyflake2").inspect(id % 2**64)
        assert refused(session, query, id, "sonyflake2") == ("INVALID_ID", str(caught.value))


@pytest.fixture
def sequence(session: Connection) -> Iterator[str]:
    """A sequence without a value."""
    session.execute("create sequence order_seq")
    yield "order_seq"
    session.execute("drop sequence order_seq cascade")


def test_an_id_of_a_default_says_its_shard_and_its_time(session: Connection, sequence: str) -> None:
    layout = Layout("instagram")
    session.execute(
        f"create table orders (id bigint primary key default randflake.next_id(5, '{sequence}'))"
    )
    before = time.time_ns() // 1_000_000
    rows = session.execute(
        "insert into orders select from generate_series(1, 5000)"
        " returning id, randflake.shard_of(id)"
    ).fetchall()
    after = time.time_ns() // 1_000_000
    ids = [id for id, _ in rows]
    assert ids == sorted(set(ids))
    assert {shard for _, shard in rows} == {5}
    for id in (ids[0], ids[-1]):
        assert layout.inspect(id).node_id == 5
        assert before <= layout.inspect(id).unix_ms <= after + 5
    session.execute("drop table orders")


def test_the_shard_has_bounds(session: Connection, sequence: str) -> None:
    for shard in (0, 8191):
        assert (
            value(session, "select randflake.shard_of(randflake.next_id(%s, %s))", shard, sequence)
            == shard
        )
    for shard in (-1, 8192, 2**31 - 1):
        code, message = refused(session, "select randflake.next_id(%s, %s)", shard, sequence)
        assert code == "INVALID_NODE"
        with pytest.raises(RandflakeError) as caught:
            Snowflake(shard % 2**32, Layout("instagram"))
        assert message == str(caught.value).replace(str(shard % 2**32), str(shard))


def test_the_sequence_must_be_one_of_64_bits(session: Connection) -> None:
    session.execute("create sequence short as integer")
    with pytest.raises(errors.NumericValueOutOfRange):
        session.execute("select randflake.next_id(5, 'short')")
    session.execute("drop sequence short")
    with pytest.raises(errors.WrongObjectType):
        session.execute("select randflake.next_id(5, 'pg_class')")


AT = "select randflake.next_id_at(5, %s, %s)"


def test_a_role_needs_two_rights_on_the_sequence(
    server: servers.Server, session: Connection, sequence: str
) -> None:
    session.execute(f"create role app login password '{servers.PASSWORD}'")
    session.execute("grant usage on schema randflake to app")
    with connect(server, user="app") as app:
        for right in ("usage", "update"):
            with pytest.raises(errors.InsufficientPrivilege):
                app.execute("select randflake.next_id(5, %s)", [f"randflake.{sequence}"])
            session.execute(f"grant {right} on sequence {sequence} to app")
        query = "select randflake.shard_of(randflake.next_id(5, %s))"
        assert value(app, query, f"randflake.{sequence}") == 5
    session.execute("drop owned by app")
    session.execute("drop role app")


def test_a_clock_that_steps_back_repeats_no_id(session: Connection, sequence: str) -> None:
    layout = Layout("instagram")
    steps = [0, 0, 1, -1, -4999, 7, 7, 6, -4993, 2000, 7]
    ids = [value(session, AT, sequence, ORDERS + step) for step in steps]
    assert ids == sorted(set(ids))
    read = [layout.inspect(id) for id in ids]
    # Ids run ahead of a clock that steps back, and do not wait for it.
    assert [it.unix_ms - ORDERS for it in read] == [0, 0, 1, 1, 1, 7, 7, 7, 7, 2000, 2000]
    assert [it.sequence for it in read] == [0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 1]
    # Too far ahead, and nothing is taken.
    for step, behind in ((-3001, 5001), (-86_400_000, 86_402_000)):
        code, message = refused_for_now(session, AT, sequence, ORDERS + step)
        assert (code, f"is {behind} ms behind" in message) == ("CLOCK_MOVED_BACK", True), message
    assert layout.inspect(value(session, AT, sequence, ORDERS)).sequence == 2


def test_more_ids_than_a_millisecond_has_use_the_next_one(
    session: Connection, sequence: str
) -> None:
    query = "select randflake.next_id_at(5, %s, %s) from generate_series(1, 2500)"
    ids = [id for (id,) in session.execute(query, [sequence, ORDERS])]
    layout = Layout("instagram")
    expected = [layout.pack(ORDERS + i // 1024, 5, i % 1024) for i in range(2500)]
    assert ids == expected


def test_ids_have_the_lifetime_of_the_layout(session: Connection, sequence: str) -> None:
    layout = Layout("instagram")
    assert layout.inspect(value(session, AT, sequence, layout.epoch_ms)).unix_ms == layout.epoch_ms
    assert refused_for_now(session, AT, sequence, layout.epoch_ms - 1)[0] == "CLOCK_BEFORE_EPOCH"
    end = layout.epoch_ms + 2**41
    # Negative, as the layout has it in a signed column.
    assert value(session, AT, sequence, end - 1) == signed(str(layout.pack(end - 1, 5, 0)))
    code, message = refused_for_now(session, AT, sequence, end)
    assert (code, str(end) in message) == ("LIFETIME_OVER", True)


def test_a_value_that_was_lowered_repeats_no_id_after_the_time_of_the_last_one(
    session: Connection, sequence: str
) -> None:
    """As after a restored backup, or the promotion of a standby that lacks the last values."""
    first = [value(session, AT, sequence, ORDERS + step) for step in (0, 0, 1)]
    session.execute(f"alter sequence {sequence} restart")
    assert value(session, AT, sequence, ORDERS + 2) not in first
    # And it does repeat one before that: the condition that the comment names.
    session.execute(f"alter sequence {sequence} restart")
    assert value(session, AT, sequence, ORDERS) == first[0]


def test_a_rollback_gives_no_id_back_and_no_lock_is_kept(
    server: servers.Server, session: Connection, sequence: str
) -> None:
    with connect(server) as other:
        other.execute("set lock_timeout = '5s'")
        with session.transaction(force_rollback=True):
            mine = value(session, AT, sequence, ORDERS)
            # The transaction is open, and nobody waits for it.
            assert value(other, AT, sequence, ORDERS) > mine
        assert value(session, AT, sequence, ORDERS) == mine + 2
        with session.transaction():
            # A session that waits is cancelled, and one that has made an error goes on.
            session.execute(
                "select pg_advisory_xact_lock(1919313510, %s::regclass::oid::int)", [sequence]
            )
            other.execute("set statement_timeout = '100ms'")
            with pytest.raises(errors.QueryCanceled):
                other.execute(AT, [sequence, ORDERS])
            with pytest.raises(errors.ObjectNotInPrerequisiteState), session.transaction():
                session.execute(AT, [sequence, 5])
        assert value(session, "select count(*) from pg_locks where locktype = 'advisory'") == 0
        assert value(other, AT, sequence, ORDERS) == mine + 3


def test_ids_of_many_sessions_are_unique(server: servers.Server, sequence: str) -> None:
    query = "select randflake.next_id(5, %s) from generate_series(1, %s)"

    def make(transactions: int) -> list[int]:
        with connect(server) as connection:
            made = []
            for count in [1, 249] * transactions:
                made += [id for (id,) in connection.execute(query, [sequence, count])]
            return made

    with ThreadPoolExecutor(8) as threads:
        of_sessions = list(threads.map(make, [100] * 8))
    assert all(ids == sorted(ids) for ids in of_sessions)
    ids = [id for made in of_sessions for id in made]
    assert len(set(ids)) == len(ids) == 200_000


def test_an_id_leads_to_its_shard(server: servers.Server) -> None:
    """Two databases with the same tables; the id alone says which of them has the row."""
    with connect(server) as admin, contextlib.ExitStack() as stack:
        shards = {}
        for shard in (7, 8191):
            admin.execute(f"create database shard_{shard}")
            shards[shard] = stack.enter_context(connect(server, dbname=f"shard_{shard}"))
            shards[shard].execute(script())
            shards[shard].execute("create sequence orders_seq")
            shards[shard].execute(
                "create table orders (buyer text, id bigint primary key"
                f" default randflake.next_id({shard}, 'orders_seq')"
                f" check (randflake.shard_of(id) = {shard}))"
            )
        placed = {}
        for number in range(100):
            home = shards[(7, 8191)[number % 2]]
            buyer = f"buyer {number}"
            placed[value(home, "insert into orders values (%s) returning id", buyer)] = buyer
        assert len(placed) == 100
        layout = Layout("instagram")
        for id, buyer in placed.items():
            home = shards[layout.inspect(id).node_id]
            assert value(home, "select buyer from orders where id = %s", id) == buyer
        # A row in the wrong place is refused.
        with pytest.raises(errors.CheckViolation):
            shards[7].execute("insert into orders values ('x', %s)", [layout.pack(ORDERS, 8191, 0)])
        stack.close()
        for shard in shards:
            admin.execute(f"drop database shard_{shard}")


def test_a_default_hides_a_sequence_and_needs_the_secret_of_the_session(
    server: servers.Server, session: Connection, sequence: str
) -> None:
    session.execute(
        "create table orders (total integer, id bigint primary key"
        f" default randflake.hide(nextval('{sequence}'), 'orders.id'))"
    )
    ids = [value(session, "insert into orders values (7) returning id") for _ in range(3)]
    cloak = Cloak(SECRET, "orders.id")
    assert [cloak.reveal(id) for id in ids] == [1, 2, 3]
    assert ids == [signed(str(cloak.hide(number))) for number in (1, 2, 3)]
    with connect(server) as without:
        assert refused(without, "insert into orders values (7)")[0] == "INVALID_SECRET"
    default = value(
        session,
        "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'orders'::regclass",
    )
    assert SECRET not in default
    session.execute("drop table orders")


def test_many_are_as_each(session: Connection) -> None:
    ids = [DIGITS, -1, None, -(2**63), 0, 2**63 - 1, -1]
    for one, many, *label in [
        ("encrypt", "encrypt_many"),
        ("decrypt", "decrypt_many"),
        ("hide", "hide_many", "posts.id"),
        ("reveal", "reveal_many", "posts.id"),
    ]:
        more = ", %s" * len(label)
        each = [
            value(session, f"select randflake.{one}(%s::bigint{more})", id, *label) for id in ids
        ]
        query = f"select randflake.{many}(%s::bigint[]{more})"
        assert value(session, query, ids, *label) == each, many
        assert value(session, query, [], *label) == [], many
        # Half of a round trip of each.
        assert (each[2], len(set(each))) == (None, 6)


def test_null_is_null_with_and_without_a_secret(server: servers.Server) -> None:
    calls = ["encode_string(null)", "encode_string(null, 'user')", "encode_string(1, null)"]
    calls += ["decode_string(null)", "decode_string(null, 'user')", "decode_string('1', null)"]
    calls += ["shard_of(null)", "next_id(null, 'pg_class')", "next_id(5, null)"]
    calls += [f"{name}(null)" for name in ("encrypt", "decrypt", "encrypt_many", "decrypt_many")]
    for name in ("hide", "reveal", "hide_many", "reveal_many"):
        calls += [f"{name}(null, 'posts.id')", f"{name}(null, null)"]
    with connect(server) as connection:
        for call in calls:
            assert value(connection, f"select randflake.{call}") is None, call
    with connect(server, SECRET) as connection:
        for call in ("inspect(null)", "inspect_raw(null, 'twitter')", "inspect_raw(1, null)"):
            row = connection.execute(f"select * from randflake.{call}").fetchone()
            assert row == (None, None, None), call


def test_what_is_no_bigint_is_refused(session: Connection) -> None:
    for call, error in {
        "encode_string(9223372036854775808)": errors.UndefinedFunction,
        "encode_string(1.5)": errors.UndefinedFunction,
        "encode_string('3vgoe12ccb8gh'::text)": errors.UndefinedFunction,
        "decode_string(4594531474933654033)": errors.UndefinedFunction,
        "decrypt('3vgoe12ccb8gh')": errors.InvalidTextRepresentation,
        "decrypt('9223372036854775808')": errors.NumericValueOutOfRange,
        "reveal('3vgoe12ccb8gh', 'posts.id')": errors.InvalidTextRepresentation,
        "hide(1)": errors.UndefinedFunction,
    }.items():
        with pytest.raises(error):
            session.execute(f"select randflake.{call}")


def test_a_secret_that_is_missing_or_malformed_is_named_and_not_shown(
    server: servers.Server,
) -> None:
    with connect(server) as connection:
        for bad in (
            None,
            "",
            SECRET[:-1],
            SECRET + "0",
            "zZ4711zZ" + SECRET[8:],
            " " + SECRET[1:],
            SECRET[:-1] + "\n",
            SECRET[:-1] + "é",
            "\\x" + SECRET[2:],
        ):
            if bad is not None:
                use(connection, bad)
            for call in (
                "select randflake.decrypt(1)",
                "select randflake.encrypt(1)",
                "select randflake.decrypt_many('{1}')",
                "select * from randflake.inspect(1)",
                "select randflake.hide(1, 'posts.id')",
                "select randflake.reveal_many('{1}', 'posts.id')",
            ):
                with pytest.raises(errors.InvalidParameterValue) as caught:
                    connection.execute(call)
                diagnostic = caught.value.diag
                assert diagnostic.message_detail == "INVALID_SECRET"
                message = diagnostic.message_primary or ""
                assert message.startswith("the setting randflake.secret "), message
                said = f"{message} {diagnostic.message_hint} {diagnostic.context}"
                if bad:
                    assert bad not in said
                    assert "4711" not in said
                    assert SECRET[8:16] not in said
                else:
                    assert "is not set" in message
        assert "zZ4711zZ" not in (server.folder / "log").read_text(encoding="utf-8")


def test_the_secret_reaches_no_log_and_no_statistics(server: servers.Server) -> None:
    with connect(server, SECRET) as first, connect(server) as second:
        second.execute("begin")
        second.execute("select set_config('randflake.secret', %s, true)", [SECRET])
        for connection in (first, second):
            connection.execute("select randflake.decrypt(1), randflake.hide(1, 'posts.id')")
            connection.execute("select * from randflake.inspect(1)")
            activity = value(connection, "select string_agg(query, ' ') from pg_stat_activity")
            assert SECRET not in activity
        # An error below the functions of the cipher.
        with pytest.raises(errors.NumericValueOutOfRange) as caught:
            first.execute("select randflake.hide(1, repeat('x', 100)) * 9000000000000000000")
        assert SECRET not in f"{caught.value} {caught.value.diag.context}"
        second.execute("commit")
        # It ends with the transaction.
        assert refused(second, "select randflake.decrypt(1)")[0] == "INVALID_SECRET"
        statistics = value(first, "select string_agg(query, ' ') from pg_stat_statements")
        assert "randflake.decrypt" in statistics
        assert SECRET not in statistics
    log = (server.folder / "log").read_text(encoding="utf-8")
    assert "randflake.decrypt" in log
    assert SECRET not in log


def test_a_log_of_statements_has_bind_parameters_unless_it_is_told_otherwise(
    server: servers.Server,
) -> None:
    """The guide says what to tell it."""
    seen = "5eed5eed5eed5eed5eed5eed5eed5eed"
    with connect(server) as connection:
        for length in (0, -1):
            assert seen not in (server.folder / "log").read_text(encoding="utf-8")
            connection.execute(f"set log_parameter_max_length = {length}")
            use(connection, seen)
    assert seen in (server.folder / "log").read_text(encoding="utf-8")


def test_the_setting_of_a_role_is_readable_by_all(server: servers.Server) -> None:
    """The guide warns of it."""
    with connect(server) as admin:
        admin.execute(f"create role app login password '{servers.PASSWORD}'")
        admin.execute("create role guest nologin")
        admin.execute(f"alter role app set randflake.secret = '{OTHER}'")
        admin.execute("set role guest")
        settings = value(
            admin, "select string_agg(s.setconfig::text, ' ') from pg_db_role_setting s"
        )
        assert OTHER in settings
        admin.execute("reset role")
        admin.execute("alter role app reset randflake.secret")
        # Nobody else may use the schema before it is granted.
        with connect(server, SECRET, user="app") as app:
            with pytest.raises(errors.InsufficientPrivilege):
                app.execute("select randflake.decrypt(1)")
            admin.execute("grant usage on schema randflake to app")
            assert value(app, "select randflake.decrypt(1)") == signed(
                str(Inspector(SECRET).decrypt(1))
            )
        admin.execute("drop owned by app")
        admin.execute("drop role app, guest")


@pytest.mark.parametrize("mode", ["auto", "force_generic_plan", "force_custom_plan"])
def test_a_prepared_statement_follows_the_secret(server: servers.Server, mode: str) -> None:
    expected = {
        secret: (
            signed(str(Inspector(secret).decrypt(-5))),
            Cloak(secret, "posts.id").hide(5),
            Inspector(secret).inspect(-5).node_id,
        )
        for secret in (SECRET, OTHER)
    }
    query = (
        "select randflake.decrypt({0}), randflake.hide({1}, 'posts.id'), node_id"
        " from randflake.inspect({0})"
    )
    with connect(server) as connection:
        connection.execute(f"set plan_cache_mode = {mode}")
        connection.execute(f"prepare with_parameters(bigint, bigint) as {query.format('$1', '$2')}")
        connection.execute(f"prepare with_constants as {query.format('(-5)', '5')}")
        for secret in [SECRET, OTHER] * 7:
            use(connection, secret)
            for call in ("with_parameters(-5, 5)", "with_constants"):
                assert connection.execute(f"execute {call}").fetchone() == expected[secret]
        # A query that begins under one secret, and a function that was compiled under another.
        both = connection.execute(
            "select set_config('randflake.secret', s, false), randflake.decrypt(-5)"
            " from unnest(%s::text[]) as s",
            [[SECRET, OTHER, SECRET]],
        ).fetchall()
        assert both == [(secret, expected[secret][0]) for secret in (SECRET, OTHER, SECRET)]


def test_sessions_with_different_secrets_do_not_meet(server: servers.Server) -> None:
    with connect(server, SECRET) as one, connect(server, OTHER) as other:
        for connection, secret in [(one, SECRET), (other, OTHER)] * 3:
            found = value(connection, "select randflake.decrypt(-5)")
            assert found == signed(str(Inspector(secret).decrypt(-5)))


def test_parallel_workers_have_the_secret(session: Connection) -> None:
    session.execute(
        "create table post as select i::bigint as id from generate_series(1, 2000) as i"
    )
    for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
        session.execute(f"set {setting} = 0")
    query = (
        "select sum(randflake.decrypt(id) % 1000), sum(node_id),"
        " sum(length(randflake.encode_string(id)))"
        " from post, randflake.inspect(id)"
    )
    plan = session.execute(f"explain (analyze, timing off, summary off) {query}").fetchall()
    launched = [line for (line,) in plan if "Workers Launched" in line]
    assert launched
    assert "0" not in launched[0], launched
    parallel = session.execute(query).fetchone()
    session.execute("set max_parallel_workers_per_gather = 0")
    assert session.execute(query).fetchone() == parallel
    inspector = Inspector(SECRET)
    assert parallel is not None
    assert parallel[1] == sum(inspector.inspect(id).node_id for id in range(1, 2001))
    session.execute("drop table post")


def test_a_query_computes_the_keys_of_inspect_once(session: Connection) -> None:
    plan = session.execute(
        "explain verbose select * from generate_series(1, 9::bigint) as id, randflake.inspect(id)"
    ).fetchall()
    text = "\n".join(line for (line,) in plan)
    assert "InitPlan" in text
    assert SECRET not in text


def test_texts_may_be_indexed_and_what_depends_on_the_secret_may_not(session: Connection) -> None:
    session.execute(
        "create table post (id bigint primary key,"
        " text text generated always as (randflake.encode_string(id, 'post')) stored unique)"
    )
    session.execute("create unique index on post (randflake.encode_string(id))")
    session.execute("insert into post select i::bigint from generate_series(-500, 500) as i")
    session.execute("analyze post")
    session.execute("set enable_seqscan = off")
    query = "select id from post where randflake.encode_string(id) = 'fvvvvvvvvvvvv'"
    assert value(session, query) == -1
    assert "Index" in value(session, f"explain (format json) {query}")[0]["Plan"]["Node Type"]
    assert value(session, "select text from post where id = -1") == "post_fvvvvvvvvvvvv"
    for expression in (
        "randflake.decrypt(id)",
        "randflake.encrypt(id)",
        "randflake.hide(id, 'posts.id')",
        "randflake.reveal(id, 'posts.id')",
        "randflake.encode_string(randflake.hide(id, 'posts.id'))",
    ):
        with pytest.raises(errors.InvalidObjectDefinition):
            session.execute(f"create index on post (({expression}))")
    session.execute("drop table post")


def test_functions_and_operators_of_a_user_are_never_called(server: servers.Server) -> None:
    """A user who may create them in a schema of the path could read the secret, or forge ids."""
    with connect(server, SECRET) as connection:
        connection.execute("create schema evil")
        called = "language plpgsql as $$ begin raise 'called'; end $$"
        built_in = connection.execute(
            "select proname, pg_get_function_identity_arguments(oid), prorettype::regtype::text"
            " from pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind = 'f'"
            " and not proretset and provariadic = 0 and proname in ('sha256', 'current_setting',"
            " 'coalesce', 'substr', 'strpos', 'length', 'octet_length', 'left', 'repeat', 'encode',"
            " 'decode', 'int8send', 'get_byte', 'translate', 'to_timestamp', 'convert_to',"
            " 'substring', 'int4', 'int8', 'bit')"
        ).fetchall()
        assert len(built_in) > 20
        for name, arguments, returned in built_in:
            connection.execute(
                f'create function evil."{name}"({arguments}) returns {returned} {called}'
            )
        for name in ("encode_string", "decode_string", "secret", "round_keys", "decrypt_block"):
            connection.execute(f"create function evil.{name}(bigint) returns bigint {called}")
        connection.execute(f"create function evil.unnest(bigint[]) returns setof bigint {called}")
        connection.execute(f"create function evil.format(text, text) returns text {called}")
        operators = connection.execute(
            "select distinct oprname, format_type(oprleft, null), format_type(oprright, null),"
            " format_type(oprresult, null) from pg_operator where oprname in"
            " ('+', '-', '*', '&', '|', '#', '<<', '>>', '||', '=', '~') and oprkind = 'b' and"
            " oprleft::regtype::text in ('bigint', 'integer', 'text', 'bytea') and"
            " oprright::regtype::text in ('bigint', 'integer', 'text', 'bytea')"
        ).fetchall()
        assert len(operators) > 20
        for number, (name, left, right, returned) in enumerate(operators):
            function = f"evil.operator_{number}"
            connection.execute(
                f"create function {function}({left}, {right}) returns {returned} {called}"
            )
            connection.execute(
                f"create operator evil.{name}"
                f" (function = {function}, leftarg = {left}, rightarg = {right})"
            )
        connection.execute("create domain evil.int4 as text check (value is null)")
        connection.execute("create domain evil.timestamptz as text check (value is null)")
        queries = [
            "select randflake.encode_string(-5), randflake.encode_string(-5, 'user')",
            "select randflake.decode_string('user_7', 'user'), randflake.decode_string('7')",
            "select randflake.decrypt(-5), randflake.encrypt(-5)",
            "select randflake.hide(-5, 'posts.id'), randflake.reveal(-5, 'posts.id')",
            "select randflake.decrypt_many('{-5}'), randflake.encrypt_many('{-5}')",
            "select randflake.hide_many('{5}', 'a'), randflake.reveal_many('{5}', 'a')",
            "select * from randflake.inspect(-5)",
            "select randflake.secret(), randflake.cloak_key('posts.id')",
            "select randflake.round_keys(randflake.secret()), randflake.text_start('user')",
            "select *, randflake.shard_of(-5) from randflake.inspect_raw(-5, 'discord,epoch_ms=5')",
            "select setval('public.post_seq', 1),"
            " randflake.next_id_at(5, 'public.post_seq', 1764000000000)",
        ]
        connection.execute("create sequence public.post_seq")
        expected = [connection.execute(query).fetchall() for query in queries]
        with connect(server, SECRET) as attacked:
            attacked.execute("set search_path = evil, pg_temp, pg_catalog")
            with pytest.raises(errors.RaiseException, match="called"):
                attacked.execute("select 1::bigint # 2::bigint")
            found = [attacked.execute(query).fetchall() for query in queries]
        assert found == expected
        connection.execute("drop schema evil cascade")
        connection.execute("drop sequence public.post_seq")


def test_the_catalogue_says_what_the_functions_are(session: Connection) -> None:
    rows = session.execute(
        "select proname, provolatile, proparallel, proisstrict, prosecdef, proconfig, lanname,"
        " obj_description(p.oid, 'pg_proc')"
        " from pg_proc p join pg_language l on l.oid = prolang"
        " where pronamespace = 'randflake'::regnamespace"
    ).fetchall()
    assert {row[0]: row[1] for row in rows} == PUBLIC | INTERNAL
    version = subprocess.run(
        [COMMAND[0], "--version"], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    for name, _, parallel, strict, definer, config, language, comment in rows:
        generates = name in {"next_id", "next_id_at"}
        assert (parallel, definer) == ("u" if generates else "s", False), name
        # `inspect` has a row for NULL, so that a query that inspects a column loses none.
        assert strict == (name not in {"inspect", "inspect_raw", "next_id_at"}), name
        assert config == (["search_path=pg_catalog, pg_temp"] if language == "plpgsql" else None)
        assert comment.endswith(f" Randflake {version}"), name
        assert comment.startswith("Internal: ") == (name in INTERNAL), name


def test_loading_again_changes_nothing(session: Connection) -> None:
    catalogue = (
        "select proname, p.oid, prosrc, proacl from pg_proc p"
        " where pronamespace = 'randflake'::regnamespace order by 1, 2"
    )
    session.execute(
        "create table post (id bigint, text text generated always as"
        " (randflake.encode_string(id)) stored)"
    )
    before = session.execute(catalogue).fetchall()
    # All or nothing, with all that PL/pgSQL can complain of.
    session.execute("set plpgsql.extra_errors = 'all'")
    with session.transaction():
        session.execute(script())
    assert session.execute(catalogue).fetchall() == before
    session.execute("drop table post")


def test_another_schema_holds_the_same(session: Connection) -> None:
    session.execute(script("--schema", "ids_2"))
    session.execute("alter schema randflake rename to away")
    try:
        query = "select ids_2.decrypt(-5), ids_2.hide(-5, 'a'), ids_2.encode_string(-5, 'user')"
        assert session.execute(query).fetchone() == (
            signed(str(Inspector(SECRET).decrypt(-5))),
            Cloak(SECRET, "a").hide(2**64 - 5),
            TextForm("user").encode(-5),
        )
        query = "select node_id from ids_2.inspect(-5)"
        assert value(session, query) == Inspector(SECRET).inspect(-5).node_id
    finally:
        session.execute("alter schema away rename to randflake")
        session.execute("drop schema ids_2 cascade")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_labels_are_in_utf8_whatever_the_database_has(
    server: servers.Server, encoding: str
) -> None:
    with connect(server) as admin:
        admin.execute(f"create database other template template0 encoding '{encoding}'")
        with connect(server, SECRET, dbname="other", client_encoding="UTF8") as connection:
            connection.execute(script())
            hidden = value(connection, "select randflake.hide(5, 'bestellungen-ü')")
            assert hidden == Cloak(SECRET, "bestellungen-ü").hide(5)
            assert refused(connection, "select randflake.decode_string('é')")[0] == "INVALID_ID"
        admin.execute("drop database other")


def test_the_guide_prints_what_it_claims(server: servers.Server) -> None:
    with connect(server) as admin:
        admin.execute("create database guide")

    def psql(script: str, *arguments: str) -> str:
        database = make_conninfo(server.url(), dbname="guide")
        printed = subprocess.run(
            [servers.program("psql", "postgresql-client"), "-Xq", *arguments, database],
            input=script,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PGOPTIONS": f"-c randflake.secret={GUIDE_SECRET}", "PGTZ": "UTC"},
        ).stdout
        return "\n".join(line.rstrip() for line in printed.splitlines())

    load = ["--single-transaction", "--set", "ON_ERROR_STOP=1"]
    guide = (ROOT / GUIDE).read_text(encoding="utf-8")
    assert f"randflake sql --dialect postgres | psql {' '.join(load)}" in guide
    assert psql(script(), *load) == ""
    blocks = [block for block in blocks_of(GUIDE) if block.language == "sql"]
    assert len(blocks) == 5
    for block in blocks:
        assert block.output is not None
        assert prints(block.output, psql(block.code, *load)), block
    # The trap that it begins with.
    with connect(server, dbname="guide") as connection:
        query = "select id from post where id = "
        assert value(connection, f"{query} randflake.decode_string('1234567890123')") == DIGITS
        assert connection.execute(f"{query} '1234567890123'").fetchall() == []
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.execute(f"{query} '3vgoe12ccb8gh'")
