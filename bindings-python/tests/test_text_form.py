"""How the ids of a column look outside."""

import copy
import json
import pickle
import re
from typing import Any

import pytest
from conftest import OTHER_SECRET, SECRET, VECTORS, cases, named
from randflake import Cloak, InvalidArgumentError, InvalidTypeError, decode_string, encode_string
from randflake.text import TextForm

DESCRIBED = json.loads((VECTORS / "text_form.json").read_text(encoding="utf-8"))["forms"]


def cloak_of(described: dict[str, Any]) -> Cloak | None:
    cloak = described.get("cloak")
    return None if cloak is None else Cloak(cloak["secret"], cloak["label"])


FORMS = {
    name: TextForm(described.get("prefix"), cloak=cloak_of(described))
    for name, described in DESCRIBED.items()
}


@pytest.mark.parametrize("case", cases("text_form.json", "valid"))
def test_valid_text(case: dict[str, Any]) -> None:
    form = FORMS[case["form"]]
    assert form.encode(int(case["id"])) == case["text"]
    assert form.decode(case["text"]) == int(case["id"])
    assert re.fullmatch(form.pattern, case["text"])


@pytest.mark.parametrize("case", cases("text_form.json", "invalid"))
def test_invalid_text(case: dict[str, Any]) -> None:
    form = FORMS[case["form"]]
    with pytest.raises(InvalidArgumentError) as raised:
        form.decode(case["text"])
    assert raised.value.code == "INVALID_ID"
    assert not re.fullmatch(form.pattern, case["text"])


@pytest.mark.parametrize("name", FORMS)
def test_the_pattern_is_that_of_every_language(name: str) -> None:
    assert FORMS[name].pattern == DESCRIBED[name]["pattern"]


@pytest.mark.parametrize("case", cases("text_form.json", "bad_prefixes"))
def test_refuses_bad_prefixes(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="1 to 63 of the characters a-z and _") as raised:
        TextForm(case["prefix"])
    assert raised.value.code == "INVALID_ARGUMENT"


def test_without_arguments_is_the_text_form() -> None:
    for id in (0, 4594531474933654033, -1, decode_string("1234567890123")):
        assert TextForm().encode(id) == encode_string(id)
        assert TextForm().decode(encode_string(id)) == id


def test_says_which_prefix_a_text_must_have() -> None:
    with pytest.raises(InvalidArgumentError, match='must be "user_" and 1 to 13 of the characters'):
        TextForm("user").decode("post_3vgoe12ccb8gh")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("text", [None, 7, -1, b"3vgoe12ccb8gh", 1.0, ["3vgoe12ccb8gh"]], ids=named)
def test_decodes_a_str_alone(form: TextForm, text: Any) -> None:
    with pytest.raises(InvalidTypeError, match="must be a str") as raised:
        form.decode(text)
    assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("id", [None, "1", 1.0, True, 2**63, -(2**63) - 1, 2**64], ids=named)
def test_encodes_a_signed_number_alone(form: TextForm, id: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="signed 64-bit integer") as raised:
        form.encode(id)
    assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("prefix", [7, b"user", ["user"], True], ids=named)
def test_a_prefix_is_a_str(prefix: Any) -> None:
    with pytest.raises(InvalidTypeError, match="prefix must be a str, got") as raised:
        TextForm(prefix)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_a_secret_in_place_of_a_cloak_is_not_told() -> None:
    cloak: Any = SECRET
    with pytest.raises(InvalidTypeError, match=r"cloak must be a Cloak, got str$") as raised:
        TextForm("user", cloak=cloak)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_forms_are_equal_by_prefix_and_cloak() -> None:
    cloak, other = Cloak(SECRET, "users.id"), Cloak(OTHER_SECRET, "users.id")
    forms = {
        *(TextForm(), TextForm(), TextForm("user"), TextForm("user"), TextForm("post")),
        *(TextForm("user", cloak=cloak), TextForm("user", cloak=cloak)),
        *(TextForm("user", cloak=other), TextForm(cloak=cloak)),
    }
    assert len(forms) == 6
    user: object = "user"
    assert TextForm("user") != user


def test_shows_no_secret() -> None:
    assert repr(TextForm()) == "TextForm(prefix=None, cloak=None, codes=None)"
    form = TextForm("user", cloak=Cloak(SECRET, "users.id"))
    assert repr(form) == "TextForm(prefix='user', cloak=<randflake.Cloak>, codes=None)"


def test_never_changes_and_so_is_its_own_copy() -> None:
    form = TextForm("user", cloak=Cloak(SECRET, "users.id"))
    assert copy.copy(form) is copy.deepcopy(form) is form
    with pytest.raises(AttributeError):
        form.prefix = "post"  # type: ignore[misc]


def test_pickles_without_a_cloak_alone() -> None:
    assert pickle.loads(pickle.dumps(TextForm("user"))) == TextForm("user")
    with pytest.raises(TypeError, match="a cloak cannot be pickled"):
        pickle.dumps(TextForm("user", cloak=Cloak(SECRET, "users.id")))
