"""The document that `randflake serve` describes its routes with, and the examples in it."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from blocks import ROOT
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import OpenAPIV31SpecValidator

PROGRAM = ROOT / "target" / os.environ.get("CARGO_BUILD_TARGET", "") / "debug/randflake"
SECRET = "dffd6021bb2bd5b0af676290809ec3a5"
LAYOUT = "twitter,epoch_ms=1577836800000"


def described(*options: str) -> Any:
    """Returns the document of a server with these options."""
    command = [str(PROGRAM), "serve", "--openapi", *options]
    environment = {**os.environ, "RANDFLAKE_SECRET": SECRET}
    printed = subprocess.run(command, env=environment, capture_output=True, check=True)
    return json.loads(printed.stdout)


DOCUMENTS = {"a secret": described(), "a layout": described("--layout", LAYOUT)}
DOCUMENT = DOCUMENTS["a secret"]


@pytest.mark.parametrize("what", DOCUMENTS)
def test_it_is_an_openapi_document(what: str) -> None:
    OpenAPIV31SpecValidator(DOCUMENTS[what]).validate()


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


CONTENTS = {
    what + where: (document, node)
    for what, document in DOCUMENTS.items()
    for where, node in contents("", document)
}


@pytest.mark.parametrize("where", CONTENTS)
def test_examples_are_as_their_schema_says(where: str) -> None:
    document, content = CONTENTS[where]
    named = content.get("examples", {"": {"value": content.get("example")}})
    # Beside what it refers to.
    schema = {**content["schema"], "components": document["components"]}
    validator = Draft202012Validator(schema)
    for example in named.values():
        validator.validate(example["value"])


def test_codes_are_those_of_the_errors() -> None:
    codes = DOCUMENT["components"]["schemas"]["error"]["properties"]["code"]["enum"]
    documented = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [code for code in codes if f"| `{code}` |" not in documented] == ["UNAUTHORIZED", "BUSY"]
