"""randflake.sqlalchemy on PostgreSQL and MariaDB, with drivers that block and that do not."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import servers
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from conftest import SECRET
from randflake import Cloak, Randflake, init_store
from randflake.sqlalchemy import IdType
from randflake.text import TextForm
from sqlalchemy import Engine, String, create_engine, delete, insert, inspect, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from test_sqlalchemy import DIGITS, IDS, NEGATIVE, OLDEST, recipe

FORM = TextForm("post", cloak=Cloak(SECRET, "post.id"))
ROWS = 2000

flake = Randflake(62, SECRET)


class Base(DeclarativeBase):
    pass


class Post(Base):
    __tablename__ = "post"
    id: Mapped[int] = mapped_column(IdType(), primary_key=True, default=flake.generate)
    title: Mapped[str] = mapped_column(String(40), default="")


class Hidden(Base):
    __tablename__ = "hidden"
    id: Mapped[str] = mapped_column(IdType(FORM), primary_key=True, default=flake.generate)
    title: Mapped[str] = mapped_column(String(40), default="")


class Numbered(Base):
    __tablename__ = "numbered"
    id: Mapped[str] = mapped_column(IdType(FORM), primary_key=True, autoincrement=True)


class Given(Base):
    __tablename__ = "given"
    id: Mapped[int] = mapped_column(IdType(), primary_key=True)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], servers.Server]]:
    """Starts each server once."""
    started: dict[str, servers.Server] = {}
    with ExitStack() as stack:

        def start(scheme: str) -> servers.Server:
            if scheme not in started:
                starter = {"postgresql": servers.postgres, "mariadb": servers.mariadb}[scheme]
                started[scheme] = stack.enter_context(starter(tmp_path_factory.mktemp(scheme)))
            return started[scheme]

        yield start


def test_the_oldest_version(older: Callable[..., None]) -> None:
    older(f"sqlalchemy=={OLDEST}")


def dropped(engine: Engine, include_name: Callable[..., bool] | None = None) -> list[str]:
    """Returns which tables a migration would drop that Alembic writes by itself."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_name": include_name})
        changes = compare_metadata(context, Base.metadata)
    engine.dispose()
    return [change[1].name for change in changes if change[0] == "remove_table"]


def test_alembic_leaves_the_lease_table_alone(start: Callable[[str], servers.Server]) -> None:
    postgres, mariadb = start("postgresql"), start("mariadb")
    for url in (postgres.url(), mariadb.url()):
        init_store(url, SECRET, "new")
    engine = create_engine(postgres.url().replace("postgresql:", "postgresql+psycopg:"))
    assert dropped(engine) == []
    # There are no schemas: the guide has what helps.
    engine = create_engine(mariadb.url().replace("mysql:", "mysql+pymysql:"))
    assert dropped(engine) == ["randflake_entry"]
    assert dropped(engine, recipe("include_name")) == []
    mariadb.mysql("drop table randflake_entry")
    mariadb.mysql("create database randflake")
    init_store(mariadb.url().replace("/ids", "/randflake"), SECRET, "new")
    assert dropped(engine) == []


def begin(session: Session) -> None:
    Base.metadata.drop_all(session.connection())
    Base.metadata.create_all(session.connection())


def columns(session: Session) -> None:
    """Signed, of 64 bits, and numbered by nobody."""
    for table in ("post", "hidden", "given"):
        column = inspect(session.connection()).get_columns(table)[0]
        assert str(column["type"]).partition("(")[0] == "BIGINT"
        assert not getattr(column["type"], "unsigned", False)
        assert column["default"] is None
        assert not column.get("autoincrement")
    (numbered,) = inspect(session.connection()).get_columns("numbered")
    assert numbered["autoincrement"]
    session.commit()
    with pytest.raises(DBAPIError):
        session.execute(text("insert into given values (default)"))


def many_rows(session: Session) -> None:
    for model in (Post, Hidden):
        posts: list[Any] = [model(title=str(n)) for n in range(ROWS)]
        session.add_all(posts)
        session.flush()
        rows = [{"title": str(n)} for n in range(ROWS, 2 * ROWS)]
        returning = insert(model).returning(model, sort_by_parameter_order=True)
        posts += session.scalars(returning, rows).all()
        session.execute(insert(model), [{"id": id} for id in IDS])
        session.expunge_all()
        held = {post.title: post.id for post in session.scalars(select(model)) if post.title}
        assert held == {post.title: post.id for post in posts}
        assert [post.title for post in posts] == [str(n) for n in range(2 * ROWS)]
        numbers = {id for (id,) in session.execute(text(f"select id from {model.__tablename__}"))}
        assert numbers >= set(IDS)
        assert len(numbers) == 2 * ROWS + len(IDS)


def queries(session: Session) -> None:
    for model, outside, to_text in (
        (Post, lambda id: id, TextForm().encode),
        (Hidden, FORM.encode, FORM.encode),
    ):
        posts: dict[int, Any] = {id: model(id=id) for id in IDS}
        session.add_all(posts.values())
        session.flush()
        for given in (IDS, [to_text(id) for id in IDS]):
            assert len(session.scalars(select(model).where(model.id.in_(given))).all()) == len(IDS)
            for id in given:
                assert session.get(model, id) in posts.values()
        between = select(model.id).where(model.id.between(NEGATIVE, to_text(DIGITS)))
        in_order = [outside(id) for id in sorted(IDS) if NEGATIVE <= id <= DIGITS]
        assert list(session.scalars(between.order_by(model.id))) == in_order
        session.execute(update(model).where(model.id >= DIGITS).values(title="late"))
        assert {id for id in IDS if posts[id].title} == {id for id in IDS if id >= DIGITS}
        session.execute(delete(model).where(model.id == to_text(NEGATIVE)))
        assert posts[NEGATIVE] not in session
        assert posts[DIGITS] in session


def keys_of_the_database(session: Session) -> None:
    orders = [Numbered() for _ in range(10)]
    session.add_all(orders)
    session.flush()
    assert [order.id for order in orders] == [FORM.encode(n) for n in range(1, 11)]


DRIVERS = ["postgresql+psycopg", "postgresql+asyncpg", "mariadb+pymysql"]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("work", [columns, many_rows, queries, keys_of_the_database])
def test_ids(
    start: Callable[[str], servers.Server], driver: str, work: Callable[[Session], None]
) -> None:
    scheme = driver.partition("+")[0]
    server = start(scheme)
    url = server.url().replace(server.scheme, driver, 1)
    if driver != "postgresql+asyncpg":
        engine = create_engine(url)
        with Session(engine) as session:
            begin(session)
            work(session)
        engine.dispose()
        return

    async def main() -> None:
        engine = create_async_engine(url)
        async with AsyncSession(engine) as session:
            await session.run_sync(begin)
            await session.run_sync(work)
        await engine.dispose()

    asyncio.run(main())
