"""Ids in Pydantic models: int inside, text in JSON. Needs the package pydantic, from 2.7 on.

    from randflake.pydantic import Id

    class Post(BaseModel):
        id: Id

FastAPI takes them in paths, queries and bodies, and describes them in its OpenAPI document.
"""

from __future__ import annotations

import operator
import sys
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticCustomError, core_schema

from randflake._arguments import wrong_type
from randflake._form import form_of
from randflake.errors import InvalidArgumentError, InvalidTypeError
from randflake.ids import encode_string
from randflake.text import TextForm

if TYPE_CHECKING:
    from types import FrameType

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

__all__ = ["AsText", "Id", "TextId"]

_EXAMPLE = 4594531474933654033

# The frames of these functions show what is read.
_MODEL_FROM_JSON = BaseModel.model_validate_json.__func__.__code__  # type: ignore[attr-defined]
_MODEL_FROM_PYTHON = BaseModel.model_validate.__func__.__code__  # type: ignore[attr-defined]
_FROM_JSON = TypeAdapter.validate_json.__code__
_FROM_PYTHON = TypeAdapter.validate_python.__code__


@dataclass(frozen=True, slots=True)
class AsText:
    """Declares that an int of a Pydantic model is an id, and how its text looks in JSON.

    Models take the text from JSON, and int or text from Python; in strict mode, only int from
    Python. They give int to Python and text to JSON. Anything that is not an id is a
    ValidationError of the type "randflake_id".

    form: the text form; without it, the plain one.
    text_only: whether a number is refused from Python, too. FastAPI turns the JSON of a request
    into Python objects before it calls Pydantic, so only this refuses a number in a body, which the
    client may have rounded. Set it where the form has codes of digits: as a number, such a code is
    another id.

    Raises InvalidTypeError with the code INVALID_ARGUMENT.

    >>> from typing import Annotated
    >>> from pydantic import BaseModel
    >>> from randflake.pydantic import AsText
    >>> from randflake.text import TextForm
    >>> class User(BaseModel):
    ...     id: Annotated[int, AsText(TextForm("user"))]
    >>> user = User(id=4594531474933654033)
    >>> user.model_dump_json()
    '{"id":"user_3vgoe12ccb8gh"}'
    >>> User.model_validate_json('{"id":"user_3vgoe12ccb8gh"}') == user
    True
    """

    form: TextForm | None = None
    """The text form, or None."""
    _: KW_ONLY
    text_only: bool = False
    """Whether a number is refused from Python, too."""

    def __post_init__(self) -> None:
        form_of(self.form)  # refuses what is not a form
        if not isinstance(self.text_only, bool):
            raise wrong_type("text_only must be a bool", self.text_only)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        number = handler(source)
        if number["type"] != "int":
            raise InvalidArgumentError(
                f"AsText is for int alone, got {getattr(source, '__name__', source)}: write "
                "Annotated[int, AsText()], which takes texts too and is int inside, and "
                "Annotated[int, AsText()] | None for one that may be missing",
                "INVALID_ARGUMENT",
            )
        from_json = core_schema.no_info_before_validator_function(self._read_text, number)
        from_python = core_schema.lax_or_strict_schema(
            core_schema.no_info_before_validator_function(self._read, number),
            core_schema.no_info_before_validator_function(self._read_number, number),
        )
        return core_schema.json_or_python_schema(
            from_json,
            from_json if self.text_only else from_python,
            serialization=core_schema.plain_serializer_function_ser_schema(
                self._form.encode, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": self._form.pattern}

    @property
    def _form(self) -> TextForm:
        return form_of(self.form)

    def _read(self, value: object) -> int:
        return self._read_text(value) if isinstance(value, str) else self._read_number(value)

    def _read_number(self, value: Any) -> int:
        return self._read_text(value) if _is_of_json() else self._checked(value)

    def _read_text(self, value: Any) -> int:
        try:
            return self._form.decode(value)
        except InvalidTypeError:
            raise self._no_id(", as a string; a number may have been rounded") from None
        except InvalidArgumentError:
            raise self._no_id(f": {self._form._described}") from None

    def _checked(self, value: Any) -> int:
        try:
            encode_string(value)
        except InvalidArgumentError:
            raise self._no_id(", or in Python a signed 64-bit integer") from None
        return operator.index(value)

    def _no_id(self, rule: str) -> PydanticCustomError:
        # Without the error itself, whose attributes FastAPI would send to the client.
        like = f", such as {TextForm(self._form.prefix).encode(_EXAMPLE)}"
        if self._form.codes is not None:
            like = ""  # would be somebody's
        return PydanticCustomError("randflake_id", f"Input should be the text of an id{like}{rule}")


def _is_of_json() -> bool:
    """Whether a model with an `__init__` of its own, as every model of SQLModel, is reading JSON.

    Pydantic calls that `__init__` with Python objects, and only the callers show that they come
    from JSON.
    """
    frame: FrameType | None = sys._getframe(1)
    called = frame
    while frame:
        code = frame.f_code
        if code is _MODEL_FROM_JSON or code is _FROM_JSON:
            return _is_init(called)
        if code is _MODEL_FROM_PYTHON or code is _FROM_PYTHON:
            break
        called, frame = frame, frame.f_back
    return False


def _is_init(frame: Any) -> bool:
    """Whether a model is made there; a validator that makes another one does not read JSON."""
    first = next(iter(frame.f_locals.values()), None)
    if isinstance(first, tuple) and first:  # as a decorator has it
        first = first[0]
    code = getattr(type(first).__init__, "__code__", None)  # type: ignore[misc]
    return isinstance(first, BaseModel) and code is frame.f_code


Id: TypeAlias = Annotated[int, AsText()]
"""An id in its plain text form: int in Python, text in JSON. Use it as the type of a field.

>>> from pydantic import BaseModel
>>> from randflake.pydantic import Id
>>> class Post(BaseModel):
...     id: Id
>>> Post(id=4594531474933654033).model_dump_json()
'{"id":"3vgoe12ccb8gh"}'
>>> Post.model_validate_json('{"id":"3vgoe12ccb8gh"}').id
4594531474933654033
"""

TextId: TypeAlias = Annotated[int, AsText(text_only=True)]
"""Like Id, for what clients send: it is read only from its text, also from Python.

FastAPI turns JSON into Python objects before it calls Pydantic: an Id in the body of a request
would take a number, which the client may have rounded.

>>> from pydantic import BaseModel
>>> from randflake.pydantic import TextId
>>> class Answer(BaseModel):
...     post: TextId
>>> Answer.model_validate({"post": "3vgoe12ccb8gh"}).post
4594531474933654033
>>> try:
...     Answer.model_validate({"post": 4594531474933654033})
... except ValueError as error:
...     print("rounded" in str(error))
True
"""
