"""Rules about the repository as a whole."""

import json
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from blocks import FENCE, ROOT, documents, repository_files

CRATES = ["cli", "core", "leases", "serve", "tickets"]
"""The folders of those that are published, beside the conformance tests."""

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


def test_every_feature_of_a_crate_is_tested() -> None:
    features = {
        f"{crate['package']['name']}/{feature}"
        for crate in map(toml, [f"{crate}/Cargo.toml" for crate in CRATES])
        for feature in crate.get("features", {}).keys() - {"default"}
    }
    databases = {
        f"randflake/{feature}"
        for versions in ["newest", "oldest"]
        for feature in toml(f"tests/databases/{versions}/Cargo.toml")["dev-dependencies"][
            "randflake"
        ]["features"]
    }
    assert features == {*WORKSPACE["metadata"]["features"].split(), *databases}


def test_crates_depend_on_each_other_in_this_version_alone() -> None:
    # What they use of each other may change in any version.
    exact = f"={VERSION}"
    ours = {
        name: dependency.get("version", exact)
        for name, dependency in WORKSPACE["dependencies"].items()
        if "path" in dependency
    }
    assert ours == dict.fromkeys(ours, exact)


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


@pytest.mark.parametrize("binding", ["python", "node"])
def test_a_package_has_the_licences_of_what_is_compiled_in(binding: str) -> None:
    # Without what derives code: that runs in the compiler.
    options = ["--edges=no-dev,no-build,no-proc-macro", "--target=all", "--prefix=none"]
    command = ["cargo", "tree", "--locked", "-p", f"randflake-{binding}", *options]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    # serde_json names serde for systems that do not exist, to keep their versions together.
    crates = {line.split()[0] for line in listed.splitlines()} - {"serde"}
    text = (ROOT / f"bindings-{binding}/LICENSE-THIRD-PARTY").read_text(encoding="utf-8")
    named = set(re.findall(r"^- (\S+)$", text, re.MULTILINE))
    ours = {crate for crate in crates if crate.startswith("randflake")}
    assert crates - ours <= named, "run: make licences"


# How long a document may be, in lines: a page that one reads from beginning to end.
LENGTHS = {
    "README.md": 200,
    "bindings-node/README.md": 150,
    "bindings-python/README.md": 150,
    "cli/README.md": 150,
    "core/README.md": 150,
    "leases/README.md": 150,
}


@pytest.mark.parametrize("document", LENGTHS)
def test_a_readme_is_short(document: str) -> None:
    lines = (ROOT / document).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LENGTHS[document]


# Where a page of a registry shows a README, relative links lead nowhere.
SHOWN_ELSEWHERE = ["bindings-node", "bindings-python", *CRATES]
BLOB = "https://github.com/randflake/randflake/blob/main/"
LINK = re.compile(r"\]\(([^()\s]+)\)")


def prose(document: Path) -> str:
    """Returns a document without its code blocks."""
    lines: list[str] = []
    fence = ""
    for line in (ROOT / document).read_text(encoding="utf-8").splitlines():
        mark = FENCE.match(line)
        if fence:
            if mark and not mark["info"].strip() and mark["fence"].startswith(fence):
                fence = ""
        elif mark:
            fence = mark["fence"]
        else:
            lines.append(line)
    return "\n".join(lines)


@cache
def anchors(document: Path) -> set[str]:
    """Returns what GitHub makes of the headings of a document."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        later = (f"{slug}-{number}" for number in range(1, 100))
        found.add(slug if slug not in found else next(name for name in later if name not in found))
    return found


def broken(document: Path, link: str) -> bool:
    """Returns whether a link into the repository leads nowhere."""
    if link.startswith(BLOB):
        path, _, anchor = link.removeprefix(BLOB).partition("#")
        target = ROOT / path
    elif ":" in link:
        return False
    else:
        path, _, anchor = link.partition("#")
        target = (ROOT / document.parent / path).resolve() if path else ROOT / document
    if not target.exists():
        return True
    return bool(anchor) and anchor not in anchors(target.relative_to(ROOT))


@pytest.mark.parametrize("document", documents(), ids=str)
def test_every_link_into_the_repository_leads_somewhere(document: Path) -> None:
    links = LINK.findall(prose(document))
    assert not [link for link in links if broken(document, link)]


@pytest.mark.parametrize("folder", SHOWN_ELSEWHERE)
def test_a_readme_that_a_registry_shows_has_no_relative_links(folder: str) -> None:
    links = LINK.findall(prose(Path(folder) / "README.md"))
    assert not [link for link in links if ":" not in link and not link.startswith("#")]


def test_links_and_anchors_that_lead_nowhere_are_found() -> None:
    readme = Path("README.md")
    assert anchors(Path("SECURITY.md")) >= {"security", "reporting-a-vulnerability"}
    for link in ["#quick-start", "LICENSE-MIT", f"{BLOB}SECURITY.md#security", "https://a.example"]:
        assert not broken(readme, link)
    for link in ["#none", "docs/none.md", "SECURITY.md#none", f"{BLOB}none.md"]:
        assert broken(readme, link)


# What holds the names that ARCHITECTURE.md speaks of, and what it names of other projects.
SOURCES = {".rs", ".py", ".pyi", ".js", ".ts", ".toml", ".sql", ".lua", ".json", ""}
OF_OTHERS = {"CLOCK_REALTIME_COARSE", "rdtsc"}


@cache
def words_of_the_sources() -> set[str]:
    texts = (
        (ROOT / path).read_text(encoding="utf-8", errors="replace")
        for path in repository_files()
        if path.suffix in SOURCES and path.parts[:2] != ("tests", "readme")
    )
    return {word for text in texts for word in re.findall(r"\w+", text)} | OF_OTHERS


@cache
def definitions() -> set[str]:
    """Returns what is defined in Rust."""
    texts = (
        (ROOT / path).read_text("utf-8") for path in repository_files() if path.suffix == ".rs"
    )
    item = re.compile(r"\b(?:fn|struct|enum|trait|type|const|static|mod)\s+(\w+)")
    return {name for text in texts for name in item.findall(text)}


def is_path_of_the_repository(name: str) -> bool:
    """Returns whether a file, or a folder with a slash behind it, has this path or ends with it."""
    pattern = rf"(.*/)?{re.escape(name)}" + ("(/.*)?" if "." not in name.split("/")[-1] else "")
    return any(re.fullmatch(pattern, str(path)) for path in repository_files())


def unknown_names(text: str) -> list[str]:
    """Returns the paths and identifiers in backticks that are nowhere in the repository."""
    names = [
        name for name in re.findall(r"`([^`]+)`", text) if " " not in name and ":/" not in name
    ]
    paths = {name for name in names if re.fullmatch(r"[\w.*-]*/[\w./-]*|[\w-]+\.\w{2,4}", name)}
    identifiers = {name for name in names if re.fullmatch(r"[A-Za-z_][\w:]*(\(\))?", name)}
    unknown = [name for name in paths if not is_path_of_the_repository(name.rstrip("/"))]
    known = words_of_the_sources()
    unknown += [name for name in identifiers if not set(re.findall(r"\w+", name)) <= known]
    members = {name: name.removesuffix("()").split("::")[1:] for name in identifiers}
    unknown += [name for name, parts in members.items() if not set(parts) <= definitions()]
    return sorted(set(unknown))


def test_the_names_in_the_architecture_exist() -> None:
    assert unknown_names(prose(Path("ARCHITECTURE.md"))) == []


@pytest.mark.parametrize("document", documents(), ids=str)
def test_every_path_from_the_root_that_a_document_names_exists(document: Path) -> None:
    folders = {path.parts[0] for path in repository_files() if len(path.parts) > 1}
    names = re.findall(r"`([\w.-]+/[\w./-]*)`", prose(document))
    named = {name.rstrip("/") for name in names if name.split("/")[0] in folders}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_the_code_that_the_chooser_ends_in_is_in_a_page_that_it_names() -> None:
    chooser = ROOT / "docs" / "chooser.md"
    code = re.compile(r"\| `([^`]+)` \| ([^|]+) \|$", re.MULTILINE)
    found = code.findall(chooser.read_text(encoding="utf-8"))
    assert len(found) > 10
    for line, pages in found:
        links = re.findall(r"\]\(([^)#]+)", pages)
        texts = [(chooser.parent / link).read_text(encoding="utf-8") for link in links]
        assert any(line in text for text in texts), line


def test_no_example_tells_a_client_to_try_again_at_once() -> None:
    rounded = re.compile(r"ceil\(\w+\.retry_?after", re.IGNORECASE)
    shown = [
        path for path in repository_files() if path.parts[0] in ("README.md", "docs", "examples")
    ]
    texts = [(path, (ROOT / path).read_text("utf-8", "ignore")) for path in shown]
    lines = [
        (path, line) for path, text in texts for line in text.splitlines() if rounded.search(line)
    ]
    assert len(lines) > 5
    assert [(path, line) for path, line in lines if "max(1, " not in line] == []


# Of each server, the statements, and what in them a managed server may refuse.
USED = {
    "postgres/*.sql": r"\b(?:pg|txid)_\w+(?=\()",
    "mysql/*.sql": r"(?<=@@)(?:global\.)?(\w+)",
    "redis/*.lua": r"(?<=call\(')[A-Z]+",
    "etcd/*.rs": r"(?<=\")/?v3/[a-z/]+(?=\")",
}


@pytest.mark.parametrize("files", USED)
def test_what_a_managed_server_must_allow_is_written_down(files: str) -> None:
    guide = (ROOT / "docs/guides/servers.md").read_text(encoding="utf-8")
    section = guide.partition("## Managed servers")[2].partition("\n## ")[0]
    texts = [path.read_text("utf-8") for path in (ROOT / "leases/src/stores").glob(files)]
    used = {name for text in texts for name in re.findall(USED[files], text)}
    # What only an operator's command asks, and what a session has.
    used -= {"pg_is_in_recovery", "in_transaction"}
    assert used
    assert sorted(name for name in used if name not in section) == []


def test_names_that_do_not_exist_are_found() -> None:
    known = "`core/src/`, `clock.rs`, `Layout::max_nodes`, `time()`"
    unknown = "`none.rs`, `core/none`, `No_such`, `Layout::none`"
    assert unknown_names(f"{known}, {unknown}") == [
        "Layout::none",
        "No_such",
        "core/none",
        "none.rs",
    ]
