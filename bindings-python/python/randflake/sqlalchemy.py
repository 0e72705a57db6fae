"""A column type for ids. Needs SQLAlchemy 2.

    from randflake import Randflake
    from randflake.sqlalchemy import IdType

    flake = Randflake.lazy()

    class Post(Base):
        __tablename__ = "post"
        id: Mapped[int] = mapped_column(IdType(), primary_key=True, default=flake.generate)

With a form, attributes are texts, but the database still holds numbers.
"""

# The type is also three rules for whoever declares a column of it, which a type alone cannot state:
# the column is not numbered by the database, its default and what is set is what it shows, and a
# comparison is one of numbers. A Session keeps what it was given until it reads the row again, and
# finds its objects by it.

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from sqlalchemy import BigInteger, BindParameter, Column, Integer, TypeCoerce, event, type_coerce
from sqlalchemy.exc import NoReferenceError
from sqlalchemy.orm import ColumnProperty, Mapper
from sqlalchemy.schema import ColumnDefault
from sqlalchemy.sql.operators import (
    between_op,
    contains_op,
    endswith_op,
    icontains_op,
    iendswith_op,
    ilike_op,
    istartswith_op,
    like_op,
    not_between_op,
    not_ilike_op,
    not_like_op,
    not_regexp_match_op,
    regexp_match_op,
    startswith_op,
)
from sqlalchemy.types import TypeDecorator

from randflake._arguments import wrong_type
from randflake._form import form_of
from randflake.errors import InvalidArgumentError
from randflake.ids import encode_string
from randflake.text import TextForm

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Dialect, ForeignKey
    from sqlalchemy.sql.operators import OperatorType

__all__ = ["IdType"]

_ID = (str, SupportsIndex)
_MANY = (list, tuple, set, frozenset)

_ORDERS = (operator.lt, operator.le, operator.gt, operator.ge, between_op, not_between_op)

_OF_TEXTS = (
    *(contains_op, startswith_op, endswith_op, like_op, regexp_match_op),
    *(icontains_op, istartswith_op, iendswith_op, ilike_op),
    *(not_like_op, not_ilike_op, not_regexp_match_op),
)


class _Comparator(TypeDecorator.Comparator[Any], BigInteger.Comparator[Any]):
    """Compares with numbers, no matter what ids are outside.

    After an UPDATE or DELETE a Session looks for its rows by comparing attributes in Python, where
    a number never equals a text, and texts sort differently. It leaves comparisons as another type
    to the database.
    """

    __slots__ = ()

    def operate(self, op: OperatorType, *other: Any, **kwargs: Any) -> ColumnElement[Any]:
        id_type = self.expr.type
        assert isinstance(id_type, IdType)
        if op in _OF_TEXTS:  # the database would look into the decimal digits
            raise InvalidArgumentError(
                "an id has no parts to look for: use ==, in_ or between", "INVALID_ARGUMENT"
            )
        sides = self.expr, *(id_type._number(value) for value in other)
        is_text = id_type._is_text and (
            op in _ORDERS or any(isinstance(value, _ID + _MANY) for value in other)
        )
        if is_text or any(map(_is_literal, sides)):
            sides = tuple(map(_for_database, sides))
        expression, *others = sides
        if expression is self.expr:
            return super().operate(op, *others, **kwargs)
        return expression.operate(op, *others, **kwargs)  # type: ignore[no-any-return]


class _AttributeComparator(ColumnProperty.Comparator[Any]):
    """Makes `update().values(…)` take an id as the attribute shows it; a Session copies it."""

    __slots__ = ()

    def _bulk_update_tuples(self, value: Any) -> Any:
        id_type: Any = self.prop.columns[0].type
        return super()._bulk_update_tuples(id_type._outside(value))


def _is_literal(side: Any) -> bool:
    return isinstance(side, BindParameter) and isinstance(side.type, IdType)


def _for_database(side: Any) -> Any:
    """Returns what a Session does not compare in Python, for a column of ids."""
    is_column = not isinstance(side, BindParameter | TypeCoerce)
    is_id = is_column and isinstance(getattr(side, "type", None), IdType)
    return type_coerce(side, IdType()) if is_id else side


class IdType(TypeDecorator[Any]):
    """An id: BIGINT in the database, and INTEGER in SQLite, which is 64 bits there.

    Outside, that is in attributes and results, it is an int, or with a form its text. Values in
    queries and inserts may be either, so you can find a range of days by ids from a Layout.

    form: how the id looks outside. With a Cloak in it, the number in the database is sortable, and
    the text hides it.
    as_text: whether the id is also its text outside without a form.

    A primary key is not numbered by the database: give it default=flake.generate. To let the
    database number it, under a Cloak, set autoincrement=True.

    Raises InvalidTypeError with the code INVALID_ARGUMENT. A value that is not an id raises
    InvalidArgumentError with INVALID_ID: directly where an attribute is set, and in a statement as
    the cause (`orig`) of sqlalchemy.exc.StatementError.

    >>> from randflake.sqlalchemy import IdType
    >>> from randflake.text import TextForm
    >>> from sqlalchemy import Column, MetaData, Table, create_engine, select
    >>> posts = Table("post", MetaData(), Column("id", IdType(TextForm("post")), primary_key=True))
    >>> engine = create_engine("sqlite://")
    >>> with engine.begin() as connection:
    ...     posts.create(connection)
    ...     _ = connection.execute(posts.insert(), {"id": 4594531474933654033})
    ...     connection.scalar(select(posts.c.id).where(posts.c.id == "post_3vgoe12ccb8gh"))
    'post_3vgoe12ccb8gh'
    >>> engine.dispose()
    """

    impl = BigInteger().with_variant(Integer(), "sqlite")
    cache_ok = True
    comparator_factory = _Comparator

    def __init__(self, form: TextForm | None = None, as_text: bool = False) -> None:
        form_of(form)  # refuses what is not a form
        if not isinstance(as_text, bool):
            raise wrong_type("as_text must be a bool", as_text)
        super().__init__()
        # Named like the arguments, so that they are in the keys of compiled statements.
        self.form = form
        self.as_text = as_text

    @property
    def python_type(self) -> type[int | str]:
        """The type of attributes, for code that asks a column for it."""
        return str if self._is_text else int

    @property
    def _form(self) -> TextForm:
        return form_of(self.form)

    @property
    def _is_text(self) -> bool:
        return self.as_text or self.form is not None

    def process_bind_param(self, value: Any, dialect: Dialect | None = None) -> int | None:  # noqa: ARG002
        """Returns the number of an id, or of its text."""
        if value is None:
            return None
        if isinstance(value, str):
            return self._form.decode(value)
        encode_string(value)  # refuses what is not an id
        return operator.index(value)

    def process_result_value(self, value: Any, dialect: Dialect | None = None) -> Any:  # noqa: ARG002
        """Returns the outside form of a number in the database."""
        if value is None or not self._is_text:
            return value
        return self._form.encode(value)

    # Anything that is not an id is left alone: None, an expression in SQL, or what a statement will
    # refuse.

    def _number(self, value: Any) -> Any:
        """Returns the number of an id or of its text, or the numbers of a list."""
        if isinstance(value, _ID):
            return self.process_bind_param(value)
        return [self._number(each) for each in value] if isinstance(value, _MANY) else value

    def _outside(self, value: Any) -> Any:
        """Returns the outside form of an id that is given as a number or as its text."""
        if isinstance(value, _ID):
            return self.process_result_value(self.process_bind_param(value))
        return value

    def __repr__(self) -> str:
        if self.form is not None:
            return f"IdType({self.form!r})"
        return "IdType(as_text=True)" if self.as_text else "IdType()"


@event.listens_for(Column, "after_parent_attach")
def _prepare_column(column: Column[Any], *_: object) -> None:
    if isinstance(column.type, IdType):
        if column.autoincrement == "auto":
            # A primary key without a default would become BIGSERIAL or AUTO_INCREMENT.
            column.autoincrement = False
        _convert_default(column, column.type)


@event.listens_for(Mapper, "mapper_configured")
def _prepare_attributes(mapper: Mapper[Any], mapped: Any) -> None:
    for attribute in mapper.column_attrs:
        column = attribute.columns[0]
        for key in column.foreign_keys:
            _compare_forms(column, key)
        if isinstance(column.type, IdType):
            descriptor = getattr(mapped, attribute.key)
            _convert_what_is_set(descriptor, column.type)
            if type(descriptor.comparator) is ColumnProperty.Comparator:
                descriptor.comparator = _AttributeComparator(attribute, mapper)
            # A foreign key may have got its type only now.
            if column.foreign_keys and isinstance(column, Column):
                _convert_default(column, column.type)
    for relation in mapper.relationships:
        for each in () if relation.secondary is None else relation.secondary.columns:
            for key in each.foreign_keys:
                # There, no attribute converts between the number and the text of an id.
                _compare_forms(each, key, alike=True)


def _convert_default(column: Column[Any], id_type: IdType) -> None:
    """Makes the default the outside form of the id: an attribute keeps it as it was made."""
    default = column.default
    if isinstance(default, ColumnDefault):
        if default.is_callable:
            generate = default.arg
            default.arg = lambda context: id_type._outside(generate(context))
        else:
            default.arg = id_type._outside(default.arg)


def _convert_what_is_set(attribute: Any, id_type: IdType) -> None:
    """Makes an attribute show the outside form of an id as soon as it is set."""

    def convert(_: object, value: Any, *__: object) -> Any:
        return id_type._outside(value)

    event.listen(attribute, "set", convert, retval=True)


def _compare_forms(column: ColumnElement[Any], key: ForeignKey, *, alike: bool = False) -> None:
    """Refuses a foreign key that would read another form: a Session treats one key as the other."""
    try:
        types = (column.type, key.column.type)
    except NoReferenceError:
        return
    ids = [each for each in types if isinstance(each, IdType)]
    are_numbers = not any(each._is_text for each in ids)
    agree = len(ids) == 2 and ids[0]._form == ids[1]._form
    if alike:
        agree = agree and ids[0]._is_text == ids[1]._is_text
    if not are_numbers and not agree:
        raise InvalidArgumentError(
            f"{column} and {key.target_fullname}, which it points to, have ids of different forms; "
            "leave the type of the foreign key out, so that it is the same",
            "INVALID_ARGUMENT",
        )
