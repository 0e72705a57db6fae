"""Rules about the repository as a whole."""

import json
import re
import tomllib
from typing import Any

import pytest
from blocks import ROOT, repository_files

# Written in two parts, so that this file does not hold them.
FORBIDDEN = [
    re.compile(first + second)
    for first, second in [
        (r"/wo", r"rk/"),
        (r"/ro", r"ot/"),
        (r"pypi\.", r"org"),
        (r"npm", r"js\b"),
        (r"crates\.", r"io\b"),
    ]
]

# Lines cargo writes into its lockfiles; nothing else may name an index.
CARGO_SOURCE = 'source = "registry+https://github.com/rust-lang/crates.' + 'io-index"'


def test_no_file_names_a_machine_path_or_a_package_index() -> None:
    found = []
    for path in repository_files():
        text = (ROOT / path).read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if path.name == "Cargo.lock" and line == CARGO_SOURCE:
                continue
            found += [f"{path}:{number}: {line.strip()}" for f in FORBIDDEN if f.search(line)]
    assert not found, "\n".join(found)


def toml(path: str) -> Any:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def node_package(file: str) -> Any:
    return json.loads((ROOT / "bindings-node" / file).read_text(encoding="utf-8"))


WORKSPACE = toml("Cargo.toml")["workspace"]
VERSION = WORKSPACE["package"]["version"]


@pytest.mark.parametrize("crate", WORKSPACE["members"])
def test_every_crate_takes_the_version_of_the_workspace(crate: str) -> None:
    assert toml(f"{crate}/Cargo.toml")["package"]["version"] == {"workspace": True}


def test_crates_depend_on_each_other_in_this_version() -> None:
    ours = {
        name: dependency.get("version", VERSION)
        for name, dependency in WORKSPACE["dependencies"].items()
        if "path" in dependency
    }
    assert ours == dict.fromkeys(ours, VERSION)


def test_the_python_package_takes_the_version_of_its_crate() -> None:
    project = toml("bindings-python/pyproject.toml")["project"]
    assert "version" in project["dynamic"]
    assert "version" not in project


def test_the_node_package_has_the_version_of_the_workspace() -> None:
    lock = node_package("package-lock.json")
    assert node_package("package.json")["version"] == VERSION
    assert (lock["version"], lock["packages"][""]["version"]) == (VERSION, VERSION)


def test_the_changelog_has_an_entry_for_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(VERSION)}\b", changelog, re.MULTILINE)


def test_every_package_names_the_same_licence() -> None:
    python = toml("bindings-python/pyproject.toml")["project"]["license"]
    node = node_package("package.json")["license"]
    assert (WORKSPACE["package"]["license"], python, node) == ("MIT OR Apache-2.0",) * 3
