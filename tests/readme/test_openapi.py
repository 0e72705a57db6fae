"""The document that `randflake serve` describes its routes with, and the examples in it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from blocks import ROOT
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import OpenAPIV31SpecValidator

DOCUMENT = json.loads((ROOT / "serve/src/openapi.json").read_text(encoding="utf-8"))


def test_it_is_an_openapi_document() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_what_is_none_is_found() -> None:
    wrong = {**DOCUMENT, "paths": {"/v1/ids": {"post": {"responses": {"200": {}}}}}}
    assert list(OpenAPIV31SpecValidator(wrong).iter_errors())


def contents(where: str, node: Any) -> Iterator[tuple[str, Any]]:
    """Yields every description of a body that has examples."""
    if isinstance(node, dict):
        if "schema" in node and ("example" in node or "examples" in node):
            yield where, node
        for name, value in node.items():
            yield from contents(f"{where}/{name}", value)


CONTENTS = dict(contents("", DOCUMENT))


@pytest.mark.parametrize("where", CONTENTS)
def test_examples_are_as_their_schema_says(where: str) -> None:
    content = CONTENTS[where]
    named = content.get("examples", {"": {"value": content.get("example")}})
    # Beside what it refers to.
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    validator = Draft202012Validator(schema)
    for example in named.values():
        validator.validate(example["value"])


def test_codes_are_those_of_the_errors() -> None:
    codes = DOCUMENT["components"]["schemas"]["error"]["properties"]["code"]["enum"]
    documented = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [code for code in codes if f"| `{code}` |" not in documented] == ["UNAUTHORIZED", "BUSY"]
