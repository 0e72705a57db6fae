"""randflake.sqlalchemy, with the real SQLAlchemy on SQLite, the newest and the oldest."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import SECRET
from randflake import (
    Cloak,
    Randflake,
    decode_string,
    encode_string,
)
from randflake.sqlalchemy import IdType
from randflake.text import TextForm
from sqlalchemy import (
    Engine,
    create_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

# The oldest that imports with this Python.
OLDEST = "2.0.20" if sys.version_info < (3, 13) else "2.0.41"

NEGATIVE = -4594531474933654033
DIGITS = decode_string("1234567890123")
"""Its text looks like another number."""

CLOAK = Cloak(SECRET, "post.id")
TYPES: list[IdType[Any]] = [
    IdType(),
    IdType(as_text=True),
    IdType(TextForm("post")),
    IdType(TextForm(cloak=CLOAK)),
    IdType(TextForm("post", cloak=CLOAK)),
]

flake = Randflake(1, SECRET)


def outside(id_type: IdType[Any], id: int) -> int | str:
    """Returns what an attribute of this type shows."""
    if id_type.form is not None:
        return id_type.form.encode(id)
    return encode_string(id) if id_type.as_text else id


def text(id_type: IdType[Any], id: int) -> str:
    return (id_type.form or TextForm()).encode(id)


def test_the_oldest_version(older: Callable[..., None]) -> None:
    older(f"sqlalchemy=={OLDEST}")


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine("sqlite://")
    yield engine
    engine.dispose()


@pytest.mark.parametrize("id_type", TYPES, ids=repr)
def test_an_attribute_is_what_an_id_is_outside_before_and_after_the_flush(
    engine: Engine, id_type: IdType[Any]
) -> None:
    class Base(DeclarativeBase):
        pass

    class Post(Base):
        __tablename__ = "post"
        id: Mapped[Any] = mapped_column(id_type, primary_key=True, default=flake.generate)

    Base.metadata.create_all(engine)
    with Session(engine) as session:
        made = Post()
        session.add(made)
        session.flush()
        shown = made.id
        assert session.get(Post, shown) is made
        session.refresh(made)
        assert made.id == shown
        for id in (NEGATIVE, DIGITS):
            for given in (id, text(id_type, id)):
                assert Post(id=given).id == outside(id_type, id)
