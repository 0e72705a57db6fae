"""randflake.sqlalchemy, with the real SQLAlchemy on SQLite, the newest and the oldest."""

import asyncio
import doctest
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar

import pytest
import randflake.sqlalchemy
import sqlalchemy
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.operations.ops import UpgradeOps
from conftest import OTHER_SECRET, ROOT, SECRET, named, run_python
from randflake import (
    Cloak,
    Codes,
    InvalidArgumentError,
    InvalidTypeError,
    Layout,
    Randflake,
    Snowflake,
    decode_string,
    encode_string,
)
from randflake.sqlalchemy import IdType
from randflake.text import TextForm
from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    ForeignKey,
    MetaData,
    Table,
    bindparam,
    case,
    create_engine,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    union,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import InvalidRequestError, StatementError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    MappedAsDataclass,
    Session,
    immediateload,
    joinedload,
    lazyload,
    mapped_column,
    relationship,
    selectinload,
    subqueryload,
)
from sqlalchemy.orm.exc import FlushError
from sqlalchemy.schema import CreateTable

# The oldest that imports with this Python.
OLDEST = "2.0.10" if sys.version_info < (3, 13) else "2.0.31"

NEGATIVE = -4594531474933654033
DIGITS = decode_string("1234567890123")
"""Its text looks like another number."""
IDS = [NEGATIVE, DIGITS, 0, 1, -1, 2**63 - 1, -(2**63)]

FORM = TextForm("post", cloak=Cloak(SECRET, "post.id"))
TYPES: list[IdType] = [
    IdType(),
    IdType(as_text=True),
    IdType(TextForm("post")),
    IdType(TextForm(cloak=Cloak(SECRET, "post.id"))),
    IdType(TextForm(codes=Codes(SECRET, "post.id", 13, "crockford"))),
    IdType(FORM),
]
of_each_type = pytest.mark.parametrize("id_type", TYPES, ids=repr)

flake = Randflake(60, SECRET)


def outside(id_type: IdType, id: int) -> int | str:
    """Returns what an attribute of this type shows."""
    if id_type.form is not None:
        return id_type.form.encode(id)
    return encode_string(id) if id_type.as_text else id


def text(id_type: IdType, id: int) -> str:
    return (id_type.form or TextForm()).encode(id)


def models(id_type: IdType) -> tuple[Any, Any]:
    """Returns a class of posts, and one of comments on them."""

    class Base(DeclarativeBase):
        pass

    class Post(Base):
        __tablename__ = "post"
        id: Mapped[Any] = mapped_column(id_type, primary_key=True, default=flake.generate)
        title: Mapped[str] = mapped_column(default="")
        comments: Mapped[list["Comment"]] = relationship(back_populates="post")

    class Comment(Base):
        __tablename__ = "comment"
        id: Mapped[int] = mapped_column(IdType(), primary_key=True, default=flake.generate)
        post_id: Mapped[Any] = mapped_column(ForeignKey("post.id"))
        post: Mapped[Post] = relationship(back_populates="comments")

    return Post, Comment


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine("sqlite://")
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session


def make_tables(session: Session, model: Any) -> None:
    model.metadata.create_all(session.connection())


def numbers(session: Session, table: str = "post") -> set[int]:
    """Returns what the database holds."""
    return {id for (id,) in session.connection().exec_driver_sql(f"select id from {table}")}


def test_the_oldest_version(older: Callable[..., None]) -> None:
    older(f"sqlalchemy=={OLDEST}")


def ddl(dialect: Any, **options: Any) -> str:
    table = Table("t", MetaData(), Column("id", IdType(), primary_key=True, **options))
    return str(CreateTable(table).compile(dialect=dialect))


@pytest.mark.parametrize("default", [None, flake.generate])
def test_no_database_numbers_a_primary_key(default: Any) -> None:
    for dialect, column in {
        postgresql.dialect(): "id BIGINT NOT NULL,",
        mysql.dialect(): "id BIGINT NOT NULL,",
        sqlite.dialect(): "id INTEGER NOT NULL,",
    }.items():
        assert column in ddl(dialect, default=default)


def test_a_database_numbers_a_primary_key_when_asked_to() -> None:
    assert "BIGSERIAL" in ddl(postgresql.dialect(), autoincrement=True)
    assert "BIGINT NOT NULL AUTO_INCREMENT" in ddl(mysql.dialect(), autoincrement=True)
    assert "id INTEGER NOT NULL," in ddl(sqlite.dialect(), autoincrement=True)


def test_a_row_without_an_id_is_refused(session: Session) -> None:
    class Base(DeclarativeBase):
        pass

    class Post(Base):
        __tablename__ = "post"
        id: Mapped[int] = mapped_column(IdType(), primary_key=True)

    make_tables(session, Post)
    session.add(Post())
    with (
        pytest.warns(Warning, match="no Python-side or server-side default"),
        pytest.raises(FlushError, match="NULL identity"),
    ):
        session.flush()


@of_each_type
def test_an_attribute_shows_what_an_id_is_outside_before_and_after_the_flush(
    session: Session, id_type: IdType
) -> None:
    Post, _ = models(id_type)
    make_tables(session, Post)
    made = Post()
    session.add(made)
    session.flush()
    shown = made.id
    (number,) = numbers(session)
    assert shown == outside(id_type, number)
    assert type(shown) is id_type.python_type
    session.refresh(made)
    assert made.id == shown
    for id in IDS:
        for given in (id, text(id_type, id)):
            post = Post(id=given)
            assert post.id == outside(id_type, id)
            session.merge(post)
            session.flush()
        session.expire_all()
        assert session.get(Post, outside(id_type, id)).id == outside(id_type, id)
    assert numbers(session) == {number, *IDS}


@of_each_type
def test_queries_take_numbers_and_texts(session: Session, id_type: IdType) -> None:
    Post, _ = models(id_type)
    make_tables(session, Post)
    session.add_all(Post(id=id) for id in IDS)
    session.flush()
    shown = {outside(id_type, id) for id in IDS}
    # A list of the other kind finds the same.
    for given in (IDS, [text(id_type, id) for id in IDS]):
        for found in (Post.id.in_(given), Post.id.in_(set(given)), ~Post.id.not_in(tuple(given))):
            assert set(session.scalars(select(Post.id).where(found))) == shown
        for id in given:
            (one,) = session.scalars(select(Post).where(Post.id == id))
            assert one is session.get(Post, id)
            assert list(session.scalars(select(Post).filter_by(id=id))) == [one]
            assert session.scalar(select(func.count()).where(Post.id != id)) == len(IDS) - 1
            where = select(Post).where(Post.id == bindparam("id"))
            assert list(session.scalars(where, {"id": id})) == [one]
            assert session.scalar(select(literal(id, id_type))) == one.id
            rendered = str(
                select(Post.id)
                .where(Post.id == id)
                .compile(session.connection(), compile_kwargs={"literal_binds": True})
            )
            (row,) = session.connection().exec_driver_sql(rendered).all()
            assert outside(id_type, row[0]) == one.id
    assert session.scalar(select(func.max(Post.id))) == outside(id_type, max(IDS))
    in_order = [outside(id_type, id) for id in sorted(IDS)]
    assert list(session.scalars(select(Post.id).order_by(Post.id))) == in_order
    assert session.scalars(select(Post.id).where(Post.id.is_(None))).all() == []
    assert session.scalars(select(Post.id).where(Post.id.in_([]))).all() == []
    assert session.scalar(select(Post.id % 1000).where(Post.id == DIGITS)) == DIGITS % 1000


def test_a_cloaked_column_is_searched_by_time(session: Session) -> None:
    Post, _ = models(IdType(FORM))
    make_tables(session, Post)
    layout = Layout("twitter")
    first = datetime(2025, 11, 20, tzinfo=UTC)
    days = [first + timedelta(days=day) for day in range(3)]
    with Snowflake(61, layout) as snowflakes:
        now = snowflakes.generate()
    ids = [layout.pack(int(day.timestamp() * 1000) + 5, 1, 0) for day in days]
    session.add_all(Post(id=id) for id in [*ids, now])
    session.flush()
    of_the_second = Post.id.between(layout.first_id_at(days[1]), layout.last_id_at(days[2]))
    assert list(session.scalars(select(Post.id).where(of_the_second))) == [FORM.encode(ids[1])]
    newest = select(Post.id).order_by(Post.id.desc()).limit(2)
    assert list(session.scalars(newest)) == [FORM.encode(now), FORM.encode(ids[2])]


@of_each_type
def test_a_session_knows_which_of_its_rows_were_changed_or_deleted(
    session: Session, id_type: IdType
) -> None:
    """It looks for them in Python, where texts are not in the order of numbers."""
    Post, _ = models(id_type)
    make_tables(session, Post)
    posts = {id: Post(id=id) for id in IDS}
    session.add_all(posts.values())
    session.flush()
    for number, id in enumerate([NEGATIVE, text(id_type, NEGATIVE)]):
        session.execute(update(Post).where(Post.id == id).values(title=str(number)))
        assert posts[NEGATIVE].title == str(number)
    session.execute(update(Post).where(Post.id.between(0, text(id_type, DIGITS))).values(title="b"))
    assert {id for id, post in posts.items() if post.title == "b"} == {
        id for id in IDS if 0 <= id <= DIGITS
    }
    session.execute(delete(Post).where(Post.id < 0))
    assert {id for id, post in posts.items() if post in session} == {id for id in IDS if id >= 0}
    assert numbers(session) == {id for id in IDS if id >= 0}
    session.execute(delete(Post).where(Post.id.in_([text(id_type, DIGITS), 0])))
    assert {id for id, post in posts.items() if post in session} == {1, 2**63 - 1}


@of_each_type
def test_a_session_leaves_what_it_would_compare_as_texts_to_the_database(
    session: Session, id_type: IdType
) -> None:
    Post, _ = models(id_type)
    make_tables(session, Post)
    rows = [Post(id=id) for id in IDS]
    session.add_all(rows)
    session.flush()

    def titles(where: Any, title: str) -> set[int]:
        session.execute(update(Post).where(where).values(title=title))
        return {id for id, row in zip(IDS, rows, strict=True) if row.title == title}

    for number, id in enumerate([DIGITS, text(id_type, DIGITS)]):
        value = literal(id, id_type)
        assert titles(Post.id == value, f"a{number}") == {DIGITS}
        assert titles(value == Post.id, f"b{number}") == {DIGITS}
        assert titles(Post.id < value, f"c{number}") == {id for id in IDS if id < DIGITS}
        listed = bindparam("ids", [id], expanding=True, type_=id_type)
        assert titles(Post.id.in_(listed), f"d{number}") == {DIGITS}
        assert titles(Post.id >= func.abs(value), f"e{number}") == {DIGITS, 2**63 - 1}


@of_each_type
def test_relationships(session: Session, id_type: IdType) -> None:
    Post, Comment = models(id_type)
    make_tables(session, Post)
    post = Post(comments=[Comment(), Comment()])
    session.add_all([post, Post(id=DIGITS), Comment(post_id=DIGITS)])
    session.flush()
    assert {comment.post_id for comment in post.comments} == {post.id}
    session.expire_all()
    found = session.scalars(select(Post).options(selectinload(Post.comments))).all()
    assert {len(each.comments) for each in found} == {1, 2}
    session.expunge_all()
    of_digits = session.scalars(select(Comment).where(Comment.post_id == DIGITS)).one()
    assert of_digits.post_id == outside(id_type, DIGITS)
    assert of_digits.post is session.get(Post, of_digits.post_id)
    joined = select(Comment).join(Comment.post).where(Post.id == text(id_type, DIGITS))
    assert session.scalars(joined).one() is of_digits


@pytest.mark.parametrize("key", [BigInteger(), IdType(), IdType(TextForm("other"))], ids=repr)
def test_a_table_of_many_to_many_has_keys_as_the_rows_have(session: Session, key: Any) -> None:
    """With other types, a number that is another id is stored, or no row is found."""

    def classes(*types: Any) -> tuple[Any, Any]:
        class Base(DeclarativeBase):
            pass

        pairs = Table(
            "pair",
            Base.metadata,
            Column("post_id", *types, ForeignKey("post.id"), primary_key=True),
            Column("tag_id", *types, ForeignKey("tag.id"), primary_key=True),
        )

        class Tag(Base):
            __tablename__ = "tag"
            id: Mapped[str] = mapped_column(IdType(as_text=True), primary_key=True)

        class Post(Base):
            __tablename__ = "post"
            id: Mapped[str] = mapped_column(IdType(as_text=True), primary_key=True)
            tags: Mapped[list[Tag]] = relationship(secondary=pairs)

        return Post, Tag

    Post, _ = classes(key)
    with pytest.raises(InvalidArgumentError, match="leave the type of the foreign key out"):
        Post()
    Post, Tag = classes()
    make_tables(session, Post)
    session.add(Post(id=DIGITS, tags=[Tag(id=DIGITS)]))
    session.flush()
    for load in STRATEGIES:
        session.expunge_all()
        (tag,) = session.scalars(select(Post).options(load(Post.tags))).unique().one().tags
        assert tag.id == "1234567890123"


STRATEGIES = [selectinload, subqueryload, joinedload, immediateload, lazyload]


@of_each_type
@pytest.mark.parametrize("load", STRATEGIES, ids=lambda load: load.__name__)
def test_every_way_to_load_a_relation(session: Session, id_type: IdType, load: Any) -> None:
    Post, Comment = models(id_type)
    make_tables(session, Post)
    session.add(Post(id=DIGITS, comments=[Comment(), Comment()]))
    session.flush()
    for given in (DIGITS, text(id_type, DIGITS)):
        session.expunge_all()
        posts = select(Post).where(Post.id == given).options(load(Post.comments))
        assert len(session.scalars(posts).unique().one().comments) == 2
        session.expunge_all()
        comments = select(Comment).where(Comment.post_id == given).options(load(Comment.post))
        for comment in session.scalars(comments):
            assert comment.post.id == outside(id_type, DIGITS)


def in_text(statement: Any) -> str:
    return str(statement.compile(compile_kwargs={"literal_binds": True}))


# The paths of the guide's table: each finds the post with an id that is given as number or text.

CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda post, id: post.id == id,
    "in_": lambda post, id: post.id.in_([id]),
    "between": lambda post, id: post.id.between(id, id),
    "has": lambda post, id: post.comments.any(post_id=id),
    "literal": lambda post, id: literal(id, post.id.type) == post.id,
    "tuple": lambda post, id: tuple_(post.id, post.title).in_([(id, "")]),
    "case": lambda post, id: post.id == case((post.id == id, post.id)),
    "max": lambda post, id: (
        post.id == select(func.max(post.id)).where(post.id == id).scalar_subquery()
    ),
    "coalesce": lambda post, id: func.coalesce(post.id, None) == id,
    "subquery": lambda post, id: post.id.in_(select(post.id).where(post.id == id)),
    "union": lambda post, id: post.id.in_(union(*[select(post.id).where(post.id == id)] * 2)),
}

CALLS: dict[str, Callable[[Session, Any, Any], Any]] = {
    "get": lambda session, post, id: session.get(post, id),
    "get by name": lambda session, post, id: session.get(post, {"id": id}),
    "get, locked": lambda session, post, id: session.get(post, id, with_for_update=True),
    "filter_by": lambda session, post, id: session.query(post).filter_by(id=id).one(),
    "merge": lambda session, post, id: session.merge(post(id=id, title="new")),
    "merge of what is loaded": lambda session, post, id: session.merge(
        session.get(post, id), load=False
    ),
    "compared as an object": lambda session, post, id: (
        session.scalars(
            select(post.comments.property.entity.class_).where(
                post.comments.property.entity.class_.post == post(id=id)
            )
        )
        .one()
        .post
    ),
    "text": lambda session, post, id: session.scalars(
        select(post).from_statement(
            sqlalchemy.text("select * from post where id = :id").bindparams(
                bindparam("id", id, type_=post.id.type)
            )
        )
    ).one(),
    "literal in the text": lambda session, post, id: session.scalars(
        select(post).from_statement(sqlalchemy.text(in_text(select(post).where(post.id == id))))
    ).one(),
    "upsert": lambda session, post, id: session.scalars(
        sqlite.insert(post)
        .values(id=id)
        .on_conflict_do_update(index_elements=["id"], set_={"title": "new"})
        .returning(post)
    ).one(),
}


@of_each_type
@pytest.mark.parametrize("name", [*CONDITIONS, *CALLS])
def test_every_path_finds_the_row_and_has_one_object_of_it(
    session: Session, id_type: IdType, name: str
) -> None:
    Post, Comment = models(id_type)
    make_tables(session, Post)
    post = Post(id=DIGITS, comments=[Comment()])
    session.add_all([post, Post(id=NEGATIVE)])
    session.flush()
    for given in (DIGITS, text(id_type, DIGITS)):
        if name in CALLS:
            assert CALLS[name](session, Post, given) is post
        else:
            assert session.scalars(select(Post).where(CONDITIONS[name](Post, given))).one() is post
        assert post.id == outside(id_type, DIGITS)
        post.title = ""
        session.flush()


@of_each_type
def test_many_rows_are_written_by_numbers_and_texts(session: Session, id_type: IdType) -> None:
    Post, Comment = models(id_type)
    make_tables(session, Post)
    session.bulk_insert_mappings(
        Post, [{"id": DIGITS, "title": "a"}, {"id": text(id_type, NEGATIVE), "title": "b"}]
    )
    assert numbers(session) == {DIGITS, NEGATIVE}
    titles = {DIGITS: "c", text(id_type, NEGATIVE): "d"}
    rows = [{"id": id, "title": title} for id, title in titles.items()]
    session.bulk_update_mappings(Post, rows)
    assert set(session.scalars(select(Post.title))) == {"c", "d"}
    session.execute(update(Post), [{**row, "title": row["title"] * 2} for row in rows])
    assert set(session.scalars(select(Post.title))) == {"cc", "dd"}
    made = insert(Comment).returning(Comment)
    comments = session.scalars(made, [{"post_id": id} for id in titles]).all()
    assert {comment.post.title for comment in comments} == {"cc", "dd"}


@of_each_type
@pytest.mark.parametrize("how", ["fetch", "auto"])
def test_an_object_shows_what_an_update_has_set_as_its_column_does(
    session: Session, id_type: IdType, how: str
) -> None:
    Post, Comment = models(id_type)
    make_tables(session, Post)
    session.add_all([Post(id=DIGITS), Post(id=NEGATIVE), comment := Comment(post_id=NEGATIVE)])
    session.flush()
    for given in (DIGITS, text(id_type, DIGITS)):
        for values in ({"post_id": given}, {Comment.post_id: given}):
            comment.post_id = NEGATIVE
            session.flush()
            changed = update(Comment).where(Comment.post_id == NEGATIVE).values(values)
            session.execute(changed, execution_options={"synchronize_session": how})
            assert comment.post_id == outside(id_type, DIGITS)
    session.query(Comment).update({"post_id": NEGATIVE})
    assert comment.post_id == outside(id_type, NEGATIVE)
    session.execute(update(Comment).values(post_id=Comment.post_id))
    assert comment.post_id == outside(id_type, NEGATIVE)


@of_each_type
def test_a_key_of_several_columns_takes_numbers_and_texts(
    session: Session, id_type: IdType
) -> None:
    class Base(DeclarativeBase):
        pass

    class Line(Base):
        __tablename__ = "line"
        order: Mapped[Any] = mapped_column(id_type, primary_key=True)
        number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)

    make_tables(session, Line)
    session.add(line := Line(order=DIGITS, number=1))
    session.flush()
    for given in (DIGITS, text(id_type, DIGITS)):
        assert session.get(Line, (given, 1)) is line
        assert session.merge(Line(order=given, number=1)) is line
        session.refresh(line)
        assert line.order == outside(id_type, DIGITS)


def test_what_reflects_tables_has_numbers_unless_it_is_told(session: Session) -> None:
    Post, _ = models(TYPES[-1])
    make_tables(session, Post)
    session.add(Post(id=DIGITS))
    session.flush()
    connection = session.connection()
    base = automap_base()
    base.prepare(autoload_with=connection)
    assert session.scalars(select(base.classes.post.id)).one() == DIGITS
    told = Table(
        "post", MetaData(), Column("id", TYPES[-1], primary_key=True), autoload_with=connection
    )
    assert session.scalars(select(told.c.id)).one() == FORM.encode(DIGITS)
    for numbers_in in (func.json_array(Post.id), sqlalchemy.cast(Post.id, sqlalchemy.String)):
        assert str(DIGITS) in session.scalars(select(numbers_in)).one()
    assert session.scalars(select(Post.id + 1)).one() == DIGITS + 1


def with_foreign_key(id_type: Any, key_type: Any) -> tuple[Any, Any]:
    class Base(DeclarativeBase):
        pass

    class Post(Base):
        __tablename__ = "post"
        id: Mapped[Any] = mapped_column(id_type, primary_key=True, default=flake.generate)

    class Comment(Base):
        __tablename__ = "comment"
        id: Mapped[Any] = mapped_column(key_type, ForeignKey("post.id"), primary_key=True)
        post: Mapped[Post] = relationship()

    return Post, Comment


def test_a_foreign_key_may_be_a_number_where_the_key_is_its_text(session: Session) -> None:
    Post, Comment = with_foreign_key(IdType(as_text=True), IdType())
    make_tables(session, Post)
    comment = Comment(post=Post())
    session.add(comment)
    session.flush()
    assert encode_string(comment.id) == comment.post.id
    session.expunge_all()
    assert session.scalars(select(Comment)).one().post.id == comment.post.id


def test_a_foreign_key_of_another_form_is_refused() -> None:
    """It would read the text of an id as another id."""
    cloaked = IdType(TextForm(cloak=Cloak(SECRET, "post.id")))
    other = IdType(TextForm(cloak=Cloak(OTHER_SECRET, "post.id")))
    pairs = [(cloaked, key_type) for key_type in (IdType(), IdType(as_text=True), other)]
    pairs += [(cloaked, BigInteger()), (BigInteger(), cloaked), (IdType(), cloaked)]
    for pair in pairs:
        _, Comment = with_foreign_key(*pair)
        with pytest.raises(InvalidArgumentError, match=r"comment\.id and post\.id") as refused:
            Comment()
        assert SECRET not in str(refused.value)
    for id_type in (cloaked, IdType(), BigInteger()):
        _, Comment = with_foreign_key(id_type, id_type)
        assert Comment(id=1).id == Comment(id=1).id
    with_foreign_key(IdType(), BigInteger())[1]()
    with_foreign_key(BigInteger(), IdType())[1]()


def test_every_way_to_declare_a_column(session: Session) -> None:
    ByMap = Annotated[str, "by the map of types"]
    Whole = Annotated[
        str, mapped_column(IdType(FORM), primary_key=True, insert_default=flake.generate)
    ]

    class Base(MappedAsDataclass, DeclarativeBase):
        type_annotation_map: ClassVar[dict[Any, Any]] = {ByMap: IdType(FORM)}

    class Numbered:
        id: Mapped[int] = mapped_column(IdType(FORM), primary_key=True, default=flake.generate)

    class Post(Base):
        __tablename__ = "post"
        id: Mapped[ByMap] = mapped_column(
            primary_key=True, init=False, insert_default=flake.generate
        )
        author: Mapped[ByMap | None] = mapped_column(default=None)

    class Page(Base):
        __tablename__ = "page"
        id: Mapped[Whole] = mapped_column(init=False)

    class Plain(DeclarativeBase):
        metadata = Base.metadata

    class Image(Numbered, Plain):
        __tablename__ = "image"

    class Photo(Image):
        pass

    class Film(Numbered, Plain):
        __tablename__ = "film"

    make_tables(session, Base)
    made = [Post(), Page(), Image(), Photo(), Film()]
    session.add_all(made)
    session.flush()
    for each in made:
        model = type(each)
        assert each.id.startswith("post_")
        assert FORM.decode(each.id) in numbers(session, model.__tablename__)
        session.expire(each)
        assert session.get(model, each.id) is each
    assert Post(author=DIGITS).author == FORM.encode(DIGITS)
    assert Photo(id=DIGITS).id == Image(id=DIGITS).id == FORM.encode(DIGITS)


def test_a_default_may_take_the_context_or_be_a_constant(engine: Engine) -> None:
    made: list[Any] = []

    def generate(context: Any) -> int:
        made.append(context.get_current_parameters()["title"])
        return DIGITS

    table = Table(
        "t",
        MetaData(),
        Column("id", IdType(FORM), primary_key=True, default=generate),
        Column("owner", IdType(FORM), default=NEGATIVE),
        Column("title", BigInteger),
    )
    # Each copy has its own columns, with the same defaults.
    for copy in (table, table.to_metadata(MetaData())):
        with engine.connect() as connection:
            connection.exec_driver_sql("drop table if exists t")
            copy.create(connection)
            inserted = connection.execute(insert(copy).values(title=5))
            assert inserted.inserted_primary_key == (FORM.encode(DIGITS),)
            row = connection.execute(select(copy)).one()
            assert row == (FORM.encode(DIGITS), FORM.encode(NEGATIVE), 5)
    assert made == [5, 5]


def test_what_a_foreign_key_gets_is_shown_as_its_own(session: Session) -> None:
    class Base(DeclarativeBase):
        pass

    class User(Base):
        __tablename__ = "user"
        id: Mapped[str] = mapped_column(IdType(FORM), primary_key=True, default=flake.generate)
        kind: Mapped[str] = mapped_column(default="user")
        __mapper_args__: ClassVar[dict[str, Any]] = {
            "polymorphic_on": "kind",
            "polymorphic_identity": "user",
        }

    class Admin(User):
        __tablename__ = "admin"
        id: Mapped[str] = mapped_column(ForeignKey("user.id"), primary_key=True)
        made_by: Mapped[str] = mapped_column(ForeignKey("user.id"), default=lambda: NEGATIVE)
        paid_by: Mapped[str] = mapped_column(ForeignKey("user.id"), default=DIGITS)
        __mapper_args__: ClassVar[dict[str, Any]] = {
            "polymorphic_identity": "admin",
            "inherit_condition": id == User.id,
        }

    make_tables(session, Base)
    admin = Admin()
    session.add_all([admin, User(id=NEGATIVE), User(id=DIGITS)])
    session.flush()
    shown = (admin.id, admin.made_by, admin.paid_by)
    assert shown[1:] == (FORM.encode(NEGATIVE), FORM.encode(DIGITS))
    assert numbers(session, "admin") == {FORM.decode(admin.id)}
    assert session.get(User, admin.id) is admin
    session.refresh(admin)
    assert (admin.id, admin.made_by, admin.paid_by) == shown


ROWS = 2000


@of_each_type
def test_many_rows_come_back_in_the_order_of_their_parameters(
    session: Session, id_type: IdType
) -> None:
    Post, _ = models(id_type)
    make_tables(session, Post)
    posts = [Post(title=str(n)) for n in range(ROWS)]
    session.add_all(posts)
    session.flush()
    returned = [
        session.scalars(
            insert(Post).returning(Post, sort_by_parameter_order=True),
            [{"title": str(n)} for n in range(ROWS, 2 * ROWS)],
        ).all(),
        session.execute(
            insert(Post.__table__).returning(
                Post.__table__.c.id, Post.__table__.c.title, sort_by_parameter_order=True
            ),
            [
                {"title": str(n), "id": outside(id_type, IDS[n % 2] + n)}
                for n in range(2 * ROWS, 3 * ROWS)
            ],
        ).all(),
    ]
    everything = [*posts, *returned[0], *returned[1]]
    assert [row.title for row in everything] == [str(n) for n in range(3 * ROWS)]
    session.expunge_all()
    held = {post.title: post.id for post in session.scalars(select(Post))}
    assert held == {row.title: row.id for row in everything}


def test_rows_are_never_matched_with_the_wrong_parameters(session: Session) -> None:
    """SQLAlchemy matches rows with ids as the column shows them, or refuses to."""
    Post, _ = models(IdType(FORM))
    make_tables(session, Post)
    returning = insert(Post).returning(Post.title, sort_by_parameter_order=True)
    rows = [{"id": id, "title": str(n)} for n, id in enumerate(IDS)]
    with suppress(InvalidRequestError):
        titles = session.scalars(returning, rows).all()
        assert titles == [row["title"] for row in rows]


def test_a_key_that_the_database_numbers_is_text_outside(session: Session) -> None:
    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[str] = mapped_column(IdType(FORM), primary_key=True, autoincrement=True)

    make_tables(session, Order)
    orders = [Order(), Order(), Order()]
    for order in orders:
        session.add(order)
        session.flush()
    assert [order.id for order in orders] == [FORM.encode(n) for n in (1, 2, 3)]
    assert session.get(Order, FORM.encode(2)) is orders[1]


BAD: list[Any] = ["", "post_", "POST_1", "post_01", "post_1 ", "page_1", "1.0", "é", "-1"]
BAD += [1.0, True, 2**63, -(2**63) - 1, b"1", object()]


@pytest.mark.parametrize("bad", BAD, ids=named)
@pytest.mark.parametrize("id_type", [IdType(), IdType(FORM)], ids=repr)
def test_what_is_no_id_is_refused(session: Session, id_type: IdType, bad: Any) -> None:
    Post, _ = models(id_type)
    make_tables(session, Post)
    errors: list[Any] = []
    with pytest.raises(StatementError) as statement:
        session.get(Post, bad)
    errors.append(statement.value.orig)
    assert str(statement.value.orig) in str(statement.value)
    if isinstance(bad, str | int):
        for use in (lambda: Post.id == bad, lambda: Post.id.in_([1, bad]), lambda: Post(id=bad)):
            with pytest.raises(InvalidArgumentError) as refused:
                use()
            errors.append(refused.value)
    else:  # it might be an expression, so the statement decides
        session.add(Post(id=bad))
        with pytest.raises(StatementError) as statement:
            session.flush()
        errors.append(statement.value.orig)
    assert {error.code for error in errors} == {"INVALID_ID"}


@pytest.mark.parametrize("bad", [True, "post", 1, SECRET, IdType()], ids=named)
def test_what_is_no_form_is_refused(bad: Any) -> None:
    for arguments in ([bad], [None, 1], [TextForm(), "yes"]):
        with pytest.raises(InvalidTypeError) as refused:
            IdType(*arguments)
        assert refused.value.code == "INVALID_ARGUMENT"
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("id_type", [IdType(), IdType(TextForm("post"))])
def test_a_part_of_an_id_is_not_looked_for(id_type: IdType) -> None:
    id = Column("id", id_type)
    likes = ("contains", "startswith", "endswith", "like", "regexp_match")
    for name in (*likes, "icontains", "istartswith", "iendswith", "ilike", "not_like", "not_ilike"):
        with pytest.raises(InvalidArgumentError, match="use ==, in_ or between"):
            getattr(id, name)("1")


def test_a_compiled_statement_serves_equal_forms_and_no_others(session: Session) -> None:
    def found(form: TextForm | None) -> Any:
        return session.scalar(select(literal(DIGITS, IdType(form))))

    compiled = session.get_bind()._compiled_cache  # type: ignore[union-attr]
    forms = [None, TextForm(), TextForm("post"), TextForm("page"), FORM]
    forms.append(TextForm("post", cloak=Cloak(OTHER_SECRET, "post.id")))
    shown = [found(form) for form in forms]
    assert shown == [DIGITS, *(form.encode(DIGITS) for form in forms if form is not None)]
    before = len(compiled)
    for prefix in (None, "post", "page"):
        found(TextForm(prefix))
    found(FORM)
    assert len(compiled) == before == len(forms)
    assert SECRET not in repr(list(compiled.keys()))


def test_reprs_can_be_evaluated_and_hold_no_secret() -> None:
    for id_type in (IdType(), IdType(as_text=True), IdType(TextForm("post"))):
        again = eval(repr(id_type), {"IdType": IdType, "TextForm": TextForm})
        assert (again.form, again.as_text) == (id_type.form, id_type.as_text)
    assert SECRET not in repr(IdType(FORM))


def test_what_holds_no_cloak_can_be_pickled(session: Session) -> None:
    table = Table("t", MetaData(), Column("id", IdType(TextForm("post")), primary_key=True))
    make_tables(session, table)
    statement = select(table.c.id).where(table.c.id == DIGITS)
    assert str(pickle.loads(pickle.dumps(statement))) == str(statement)
    with pytest.raises(TypeError):
        pickle.dumps(IdType(FORM))


def recipe(name: str = "render_item") -> Any:
    """Returns a function that the guide gives to Alembic."""
    guide = (ROOT / "docs" / "guides" / "sqlalchemy.md").read_text(encoding="utf-8")
    (code,) = [
        code for code in re.findall("```python\n(.*?)```", guide, re.S) if f"def {name}(" in code
    ]
    names: dict[str, Any] = {}
    exec(code, names)
    return names[name]


def test_alembic_renders_migrations_and_finds_no_difference(session: Session) -> None:
    Post, _ = models(IdType(FORM))
    connection = session.connection()
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    operations = produce_migrations(context, Post.metadata).upgrade_ops
    assert isinstance(operations, UpgradeOps)
    code = render_python_code(operations, render_item=recipe())
    assert SECRET not in code
    assert "IdType" not in code
    assert code.count("sa.BigInteger()") == 3
    exec(f"def upgrade():\n{code}\nupgrade()", {"sa": sqlalchemy, "op": Operations(context)})
    assert compare_metadata(context, Post.metadata) == []
    session.add(Post(id=DIGITS))
    session.flush()
    assert numbers(session) == {DIGITS}


def test_a_module_with_models_is_imported_without_any_setting() -> None:
    code = """
from randflake import Randflake
from randflake.sqlalchemy import IdType
from sqlalchemy.orm import DeclarativeBase, Mapped, configure_mappers, mapped_column
flake = Randflake.lazy()
class Base(DeclarativeBase):
    pass
class Post(Base):
    __tablename__ = "post"
    id: Mapped[int] = mapped_column(IdType(), primary_key=True, default=flake.generate)
configure_mappers()
print(flake.lease)
"""
    assert run_python(code) == "None\n"


def test_asynchronous_sessions() -> None:
    Post, _ = models(IdType(FORM))

    async def main() -> None:
        engine = create_async_engine("sqlite+aiosqlite://")
        try:
            async with AsyncSession(engine) as session:
                await session.run_sync(make_tables, Post)
                post = Post(title="a")
                session.add(post)
                await session.flush()
                assert await session.get(Post, post.id) is post
                number = FORM.decode(post.id)
                found = await session.scalars(select(Post).where(Post.id.in_([number, DIGITS])))
                assert found.all() == [post]
        finally:  # or its thread would never end
            await engine.dispose()

    asyncio.run(main())


def test_the_example_of_the_documentation_runs() -> None:
    results = doctest.testmod(randflake.sqlalchemy)
    assert (results.failed, results.attempted > 0) == (0, True)
