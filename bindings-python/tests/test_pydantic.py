"""randflake.pydantic, with the real Pydantic and FastAPI, the newest and the oldest."""

import ast
import asyncio
import dataclasses
import doctest
import functools
import inspect as inspection
import json
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pydantic
import pydantic.dataclasses
import pytest
import randflake.pydantic
from conftest import SECRET, named
from fastapi import FastAPI
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    RootModel,
    TypeAdapter,
    ValidationError,
    computed_field,
    field_validator,
    model_validator,
)
from randflake import (
    Cloak,
    Codes,
    InvalidArgumentError,
    InvalidTypeError,
    decode_string,
    encode_string,
)
from randflake.pydantic import AsText, Id, TextId
from randflake.text import TextForm
from typing_extensions import TypedDict

# The oldest versions with wheels for this Python, starting from what the guide says.
OLDEST = {
    "pydantic": {(3, 13): "2.8.0", (3, 14): "2.12.0"}.get(sys.version_info[:2], "2.7.0"),
    "pydantic-core": {(3, 13): "2.20.0", (3, 14): "2.41.1"}.get(sys.version_info[:2], "2.18.1"),
    "fastapi": "0.112.0",
    "starlette": "0.37.2",
}

NEGATIVE = -4594531474933654033
DIGITS = decode_string("1234567890123")
"""Its text looks like another number."""

FORMS = [
    TextForm(),
    TextForm("post"),
    TextForm(cloak=Cloak(SECRET, "post.id")),
    TextForm("post", cloak=Cloak(SECRET, "post.id")),
    TextForm("post", codes=Codes(SECRET, "post.id", 13, "crockford")),
]
PATTERN = TextForm().pattern


def test_the_oldest_versions(older: Callable[..., None]) -> None:
    older(*(f"{name}=={version}" for name, version in OLDEST.items()))


def test_the_examples_run() -> None:
    source = inspection.getsource(randflake.pydantic)
    docstrings = [
        str(node.value.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    out: list[str] = []
    for text in docstrings:
        example = doctest.DocTestParser().get_doctest(text, {}, "pydantic", None, None)
        doctest.DocTestRunner(verbose=False).run(example, out=out.append)
    assert "".join(docstrings).count(">>>") > 5
    assert not out, "".join(out)


def refused(call: Callable[[], object]) -> str:
    """Returns why Pydantic refuses it; the only reason must be the id."""
    with pytest.raises(ValidationError) as raised:
        call()
    (error,) = raised.value.errors(include_url=False)
    assert error["type"] == "randflake_id"
    # No error in it, whose attributes FastAPI would show.
    assert set(error) == {"type", "loc", "msg", "input"}
    return error["msg"]


@pytest.mark.parametrize("form", FORMS, ids=named)
@pytest.mark.parametrize("id", [0, 4594531474933654033, NEGATIVE, DIGITS, -(2**63), 2**63 - 1])
def test_is_int_inside_and_text_in_json(form: TextForm, id: int) -> None:
    class Post(BaseModel):
        id: Annotated[int, AsText(form)]

    text = form.encode(id)
    post = Post(id=id)
    assert type(post.id) is int
    assert post.model_dump() == {"id": id}
    assert post.model_dump(mode="json") == {"id": text}
    assert post.model_dump_json() == f'{{"id":"{text}"}}'
    for other in (
        Post.model_validate({"id": text}),
        Post.model_validate({"id": id}),
        Post.model_validate(post.model_dump()),
        Post.model_validate_json(post.model_dump_json()),
        Post.model_validate_strings({"id": text}),
    ):
        assert other == post


def test_a_text_of_digits_is_never_read_as_a_decimal() -> None:
    ids = TypeAdapter(Id)
    assert ids.validate_python("1234567890123") == DIGITS
    assert ids.validate_json('"1234567890123"') == DIGITS
    assert ids.dump_json(DIGITS) == b'"1234567890123"'


@pytest.mark.parametrize("json", ["5", "-1", "0", "1.5", "true", "null", "18446744073709551616"])
def test_a_number_in_json_is_refused(json: str) -> None:
    ids = TypeAdapter(Id)
    assert refused(lambda: ids.validate_json(json)) == (
        "Input should be the text of an id, such as 3vgoe12ccb8gh, as a string; a number may have "
        "been rounded"
    )


@pytest.mark.parametrize("text", ["", "01", "3VGOE12CCB8GH", "{x}", "post_1", "-1", str(NEGATIVE)])
def test_a_text_that_is_none_of_an_id_is_refused(text: str) -> None:
    ids, posts = TypeAdapter(Id), TypeAdapter(Annotated[int, AsText(TextForm("user"))])
    for refusal in (
        refused(lambda: ids.validate_python(text)),
        refused(lambda: ids.validate_json(json.dumps(text))),
    ):
        assert refusal == (
            "Input should be the text of an id, such as 3vgoe12ccb8gh: 1 to 13 of the characters "
            "0-9 and a-v"
        )
    assert refused(lambda: posts.validate_python(text)) == (
        'Input should be the text of an id, such as user_3vgoe12ccb8gh: "user_" and 1 to 13 of the '
        "characters 0-9 and a-v"
    )


@pytest.mark.parametrize("value", [None, True, 1.0, b"1", [1], 2**63, -(2**63) - 1], ids=named)
def test_what_is_no_id_is_refused_from_python(value: object) -> None:
    ids = TypeAdapter(Id)
    assert "or in Python a signed 64-bit integer" in refused(lambda: ids.validate_python(value))


def test_numbers_of_numpy_become_ints() -> None:
    numpy = pytest.importorskip("numpy")
    assert type(TypeAdapter(Id).validate_python(numpy.int64(NEGATIVE))) is int


def test_strict_mode_takes_int_from_python_and_text_from_json() -> None:
    class Post(BaseModel):
        model_config = ConfigDict(strict=True)
        id: Id

    assert Post(id=NEGATIVE).id == NEGATIVE
    assert Post.model_validate_json('{"id":"1234567890123"}').id == DIGITS
    refused(lambda: Post.model_validate({"id": "1234567890123"}))
    refused(lambda: Post.model_validate_json('{"id":5}'))


def test_text_only_refuses_numbers_from_python() -> None:
    ids = TypeAdapter(TextId)
    assert ids.validate_python("1234567890123") == DIGITS
    assert ids.dump_python(DIGITS, mode="json") == "1234567890123"
    assert "may have been rounded" in refused(lambda: ids.validate_python(5))


class Everywhere(BaseModel):
    required: Id
    optional: Id | None = None
    many: list[Id] = []
    keys: dict[Id, Id] = {}
    pair: tuple[Id, str] = (0, "")
    other: Id | str = "other"


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_the_schema_is_of_text_wherever_an_id_is(mode: Any) -> None:
    schema = Everywhere.model_json_schema(mode=mode)["properties"]
    text = {"type": "string", "pattern": PATTERN}
    assert schema["required"] == {"title": "Required", **text}
    assert schema["optional"]["anyOf"] == [text, {"type": "null"}]
    assert schema["many"]["items"] == text
    assert schema["pair"]["prefixItems"] == [text, {"type": "string"}]
    assert schema["other"]["anyOf"] == [text, {"type": "string"}]
    keys = schema["keys"]
    assert keys.get("patternProperties", {PATTERN: keys.get("additionalProperties")}) == {
        PATTERN: text
    }


def test_what_is_dumped_is_what_the_schema_says_and_is_read_back() -> None:
    all_of_them = Everywhere(
        required=DIGITS,
        optional=NEGATIVE,
        many=[DIGITS, NEGATIVE],
        keys={DIGITS: NEGATIVE, NEGATIVE: DIGITS},
        pair=(NEGATIVE, "-1"),
        other=NEGATIVE,
    )
    negative = encode_string(NEGATIVE)
    in_json = {
        "required": "1234567890123",
        "optional": negative,
        "many": ["1234567890123", negative],
        "keys": {"1234567890123": negative, negative: "1234567890123"},
        "pair": [negative, "-1"],
        "other": negative,
    }
    assert json.loads(all_of_them.model_dump_json()) == in_json
    assert all_of_them.model_dump(mode="json") == in_json
    assert all_of_them.model_dump()["keys"] == {DIGITS: NEGATIVE, NEGATIVE: DIGITS}
    assert Everywhere.model_validate_json(all_of_them.model_dump_json()) == all_of_them
    assert Everywhere.model_validate(all_of_them.model_dump()) == all_of_them
    assert Everywhere.model_validate({**in_json, "other": NEGATIVE}) == all_of_them


def test_other_rules_of_a_field_hold_too() -> None:
    ids = TypeAdapter(Annotated[int, Field(gt=0), AsText()])
    assert ids.validate_python("1234567890123") == DIGITS
    with pytest.raises(ValidationError, match="greater than 0"):
        ids.validate_python(encode_string(NEGATIVE))


def test_what_became_no_id_later_is_not_dumped() -> None:
    class Post(BaseModel):
        id: Id

    post = Post(id=1)
    for value in ("1", True, 2**63, None):
        post.id = value  # type: ignore[assignment]
        with pytest.raises(Exception, match="signed 64-bit integer"):
            post.model_dump_json()


@pytest.mark.parametrize("other", [str, int | None, float, bool], ids=named)
def test_is_for_int_alone(other: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"is for int alone, got \w.*: write Annotated\[int, AsText"
    ):
        TypeAdapter(Annotated[other, AsText()]).validate_python("1")


# The paths of the guide's table.


class Plain(BaseModel):
    id: Id


class Own(Plain):
    def __init__(self, **data: Any) -> None:
        super().__init__(**data)


def decorated(init: Any) -> Any:
    @functools.wraps(init)
    def call(*arguments: Any, **options: Any) -> None:
        init(*arguments, **options)

    return call


class OwnDecorated(Plain):
    @decorated
    def __init__(self, **data: Any) -> None:
        super().__init__(**data)


class OwnStrict(Own):
    model_config = ConfigDict(strict=True)


class OwnAround(BaseModel):
    inside: Plain

    def __init__(self, **data: Any) -> None:
        self.prepare(data)

    def prepare(self, data: dict[str, Any]) -> None:
        """As in SQLModel: `__init__` does not call the validator itself."""
        type(self).__pydantic_validator__.validate_python(data, self_instance=self)


class OwnRoot(RootModel[Id]):
    def __init__(self, root: Any) -> None:
        super().__init__(root)


class Cat(BaseModel):
    kind: Literal["cat"]
    id: Id


class Dog(BaseModel):
    kind: Literal["dog"]
    id: Annotated[int, AsText(TextForm("dog"))]


class TypedRow(TypedDict):
    id: Id


class Pair(NamedTuple):
    id: Id


@pydantic.dataclasses.dataclass
class Data:
    id: Id


@dataclasses.dataclass
class OwnData:
    id: Id

    def __init__(self, id: int) -> None:
        self.id = id


Of = TypeVar("Of")


class Box(BaseModel, Generic[Of]):
    of: Of


PATHS: dict[str, tuple[Any, str]] = {
    "model": (Plain, '{"id":ID}'),
    "own init": (Own, '{"id":ID}'),
    "own init, decorated": (OwnDecorated, '{"id":ID}'),
    "own init, strict": (OwnStrict, '{"id":ID}'),
    "own init around": (OwnAround, '{"inside":{"id":ID}}'),
    "own init inside": (list[Own], '[{"id":ID}]'),
    "own init of a root": (OwnRoot, "ID"),
    "root": (RootModel[list[Id]], "[ID]"),
    "union": (Annotated[Cat | Dog, Field(discriminator="kind")], '{"kind":"cat","id":ID}'),
    "dictionary": (TypedRow, '{"id":ID}'),
    "dataclass": (Data, '{"id":ID}'),
    "dataclass, own init": (OwnData, '{"id":ID}'),
    "generic": (Box[Id], '{"of":ID}'),
    "generic of own": (Box[Own], '{"of":{"id":ID}}'),
}


@pytest.mark.parametrize("name", PATHS)
def test_every_path_takes_text_from_json_and_gives_text_to_it(name: str) -> None:
    path, json = PATHS[name]
    adapter = TypeAdapter(path)
    text = json.replace("ID", '"1234567890123"')
    read = adapter.validate_json(text)
    assert str(DIGITS) in repr(read)
    assert adapter.dump_json(read).decode() == text
    refused(lambda: adapter.validate_json(json.replace("ID", "1228503247364293699")))
    if isinstance(path, type) and issubclass(path, BaseModel):
        assert path.model_validate_json(text) == read
        refused(lambda: path.model_validate_json(json.replace("ID", "1228503247364293699")))


def test_a_named_tuple_and_a_json_string_read_text_alone() -> None:
    pairs, strings = TypeAdapter(Pair), TypeAdapter(Json[Id])
    assert pairs.validate_json('["1234567890123"]') == Pair(DIGITS)
    refused(lambda: pairs.validate_json("[5]"))
    assert strings.validate_python('"1234567890123"') == DIGITS
    refused(lambda: strings.validate_python("5"))


def test_a_model_with_an_init_of_its_own_takes_numbers_from_python() -> None:
    class Reads(BaseModel):
        """Makes another model while it reads JSON."""

        text: str
        made: Any = None

        @field_validator("text")
        @classmethod
        def make(cls, text: str) -> str:
            assert Own(id=NEGATIVE) == Own.model_validate({"id": NEGATIVE})
            return text

        @model_validator(mode="after")
        def make_again(self) -> "Reads":
            assert OwnDecorated(id=NEGATIVE).id == NEGATIVE
            return self

    Reads.model_validate_json('{"text": "t"}')
    for made in (Own(id=NEGATIVE), Own.model_validate({"id": NEGATIVE}), OwnStrict(id=NEGATIVE)):
        assert made.id == NEGATIVE
    assert TypeAdapter(list[Own]).validate_python([{"id": NEGATIVE}]) == [Own(id=NEGATIVE)]
    assert OwnAround(inside={"id": NEGATIVE}).inside.id == NEGATIVE


def test_what_pydantic_does_not_check_is_an_id_in_json_or_an_error() -> None:
    class Computed(BaseModel):
        number: int

        @computed_field  # type: ignore[prop-decorator]
        @property
        def id(self) -> Id:
            return self.number

    dumped = '{"id":"1234567890123"}'
    assert Plain.model_construct(id=DIGITS).model_dump_json() == dumped
    assert Plain(id=1).model_copy(update={"id": DIGITS}).model_dump_json() == dumped
    assert Computed(number=DIGITS).model_dump_json(exclude={"number"}) == dumped
    with pytest.raises(Exception, match="signed 64-bit integer"):
        Plain.model_construct(id="1234567890123").model_dump_json()


def test_a_union_of_ids_does_not_know_the_form_of_an_int() -> None:
    """What the guide says, and its alternative."""
    users, dogs = (AsText(TextForm(prefix)) for prefix in ("user", "dog"))
    either = TypeAdapter[Any](Annotated[int, users] | Annotated[int, dogs])
    assert either.validate_json('"dog_1234567890123"') == DIGITS
    assert either.dump_json(DIGITS) == b'"user_1234567890123"'
    assert TypeAdapter[Any](Id | str).validate_json('"hello"') == decode_string("hello")
    assert TypeAdapter[Any](Id | int).validate_json("5") == 5
    kinds = TypeAdapter[Any](Annotated[Cat | Dog, Field(discriminator="kind")])
    for dumped in ('{"kind":"cat","id":"1"}', '{"kind":"dog","id":"dog_1"}'):
        assert kinds.dump_json(kinds.validate_json(dumped)).decode() == dumped


def test_sqlmodel_reads_text_alone_from_json() -> None:
    if OLDEST["pydantic"] == pydantic.VERSION:
        pytest.skip("the newest version is asked")
    from randflake.sqlalchemy import IdType
    from sqlmodel import Field as SqlField, SQLModel

    class Hero(SQLModel):
        id: Id

    assert Hero.model_validate_json('{"id":"1234567890123"}') == Hero(id=DIGITS)
    assert Hero(id=DIGITS).model_dump_json() == '{"id":"1234567890123"}'

    class Row(SQLModel, table=True):
        id: Id = SqlField(sa_type=IdType, primary_key=True)

    # As the guide says.
    assert Row.model_validate_json('{"id":"1234567890123"}').id == "1234567890123"
    assert Row.model_validate({"id": "1234567890123"}).id == DIGITS
    assert Row.model_validate(Hero(id=DIGITS)).model_dump_json() == '{"id":"1234567890123"}'
    refused(lambda: Hero.model_validate_json('{"id":1228503247364293699}'))


@pytest.mark.parametrize("form", ["user", 5, TextForm, SECRET], ids=named)
def test_a_form_is_a_text_form(form: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"^form must be a TextForm, got \w+$"):
        AsText(form)
    with pytest.raises(InvalidTypeError, match=r"^text_only must be a bool, got \w+$"):
        AsText(text_only=form)


def test_shows_no_secret() -> None:
    assert SECRET not in repr(AsText(FORMS[-1]))
    ids = TypeAdapter(Annotated[int, AsText(FORMS[-1])])
    assert SECRET not in repr(ids.core_schema) + refused(lambda: ids.validate_python("x" * 40))


# FastAPI

POST = TextForm("post", cloak=Cloak(SECRET, "post.id"))
PostId = Annotated[int, AsText(POST)]
app = FastAPI()
taken: list[tuple[int, int | None, list[int]]] = []


class Comment(BaseModel):
    id: TextId
    post: PostId | None = None
    likes: list[Id] = []


class Row:
    """As of a database."""

    id, post, likes = DIGITS, 1, (NEGATIVE,)


@app.get("/posts/{post}")
def get_post(post: PostId, after: Id | None = None) -> dict[str, Id]:
    return {"after": after or 0, "negative": NEGATIVE} if post == 1 else {}


@app.post("/comments")
def make_comment(comment: Comment) -> Comment:
    taken.append((comment.id, comment.post, comment.likes))
    return comment


@app.get("/own")
def own_validator(id: Annotated[int, BeforeValidator(decode_string)]) -> Id:
    return id


@app.get("/row", response_model=Comment)
def row() -> Any:
    return {"id": encode_string(Row.id), "post": Row.post, "likes": Row.likes}


def request(method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Asks the application, and returns the status and the JSON of its response."""
    path, _, query = path.partition("?")
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"content-type", b"application/json")],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    text = b"".join(message.get("body", b"") for message in sent)
    assert SECRET.encode() not in text
    return sent[0]["status"], json.loads(text)


def test_fastapi_takes_ids_in_paths_and_queries() -> None:
    path = f"/posts/{POST.encode(1)}"
    negative = encode_string(NEGATIVE)
    assert request("GET", path) == (200, {"after": "0", "negative": negative})
    for text in ("1234567890123", negative):
        assert request("GET", f"{path}?after={text}") == (
            200,
            {"after": text, "negative": negative},
        )


def test_fastapi_takes_ids_in_bodies_and_sends_text() -> None:
    taken.clear()
    comment = {
        "id": "1234567890123",
        "post": POST.encode(DIGITS),
        "likes": [encode_string(NEGATIVE), "1234567890123"],
    }
    assert request("POST", "/comments", comment) == (200, comment)
    assert taken == [(DIGITS, DIGITS, [NEGATIVE, DIGITS])]
    assert request("GET", "/row") == (
        200,
        {"id": "1234567890123", "post": POST.encode(1), "likes": [encode_string(NEGATIVE)]},
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/posts/1", None),
        ("GET", f"/posts/{NEGATIVE}", None),
        ("GET", "/posts/user_1", None),
        ("GET", f"/posts/{POST.encode(1)}?after=01", None),
        ("GET", f"/posts/{POST.encode(1)}?after={NEGATIVE}", None),
        ("POST", "/comments", {"id": 1228503247364293699}),
        ("POST", "/comments", {"id": "3VGOE12CCB8GH"}),
        ("POST", "/comments", {"id": "1", "post": "1"}),
        ("POST", "/comments", {"id": "1", "likes": ["1", "-1"]}),
    ],
)
def test_fastapi_answers_422_and_says_what_an_id_looks_like(
    method: str, path: str, body: object
) -> None:
    status, answer = request(method, path, body)
    assert status == 422
    (error,) = answer["detail"]
    assert re.match(
        r"Input should be the text of an id, such as (post_)?3vgoe12ccb8gh", error["msg"]
    )
    assert set(error) <= {"type", "loc", "msg", "input", "ctx"}
    assert not error.get("ctx")
    assert "__notes__" not in str(answer)


def test_fastapi_shows_no_notes_of_an_error_of_a_validator_of_ones_own() -> None:
    assert request("GET", "/own?id=1234567890123") == (200, "1234567890123")
    status, answer = request("GET", "/own?id=01")
    assert status == 422
    (error,) = answer["detail"]
    assert error["ctx"] == {"error": {"code": "INVALID_ID"}}


def test_openapi_describes_ids_as_text() -> None:
    document = app.openapi()
    plain, post = (
        {"type": "string", "pattern": PATTERN},
        {"type": "string", "pattern": POST.pattern},
    )
    path, after = document["paths"]["/posts/{post}"]["get"]["parameters"]
    assert path["schema"] == {"title": "Post", **post}
    assert after["schema"]["anyOf"] == [plain, {"type": "null"}]
    answer = document["paths"]["/posts/{post}"]["get"]["responses"]["200"]["content"]
    assert answer["application/json"]["schema"]["additionalProperties"] == plain
    comments = [
        schema["properties"]
        for name, schema in document["components"]["schemas"].items()
        if name.startswith("Comment")
    ]
    assert comments
    for comment in comments:
        assert comment["id"] == {"title": "Id", **plain}
        assert comment["post"]["anyOf"] == [post, {"type": "null"}]
        assert comment["likes"]["items"] == plain
