"""Writes the pages of the site about the Rust crates, from what rustdoc made of them.

    .venv/bin/python site/build/api_rust.py DOC FOLDER

DOC is the folder of rustdoc. Of each public item of a crate: its declaration, methods,
fields and variants with their documentation; no implementations of traits.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

CRATES = ["randflake", "randflake_leases", "randflake_tickets"]

# What people use, which comes first; the rest follows in the order of names.
FIRST = [
    *("leased", "leased_snowflake", "Leased", "LeasedBuilder", "Location", "LeaseStatus"),
    *("Tickets", "DatedTickets", "TicketsBuilder"),
    *("Randflake", "Snowflake", "Generator", "Id", "Secret", "Inspector", "Parts", "Cloak"),
    *("Codes", "Layout", "Builder", "Error", "ErrorKind"),
]

# What is not read aloud: links to the source, signs beside headings.
IGNORED = {"src", "anchor", "doc-anchor", "hideme", "tooltip", "rightside", "non-exhaustive"}
MEMBERS = {"method", "tymethod", "variant", "structfield", "associatedconstant", "associatedtype"}
# The sections of a page of which something is shown.
SHOWN = {
    *("implementations", "fields", "variants", "required-methods", "provided-methods"),
    *("required-associated-types", "provided-associated-types", "required-associated-consts"),
}
VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}
BULLET = "- "


def main(doc: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for crate in CRATES:
        root = doc / crate
        listed = re.findall(r'<li><a href="([^"]+)">', (root / "all.html").read_text("utf-8"))
        assert listed, f"{root} lists nothing"
        pages: dict[str, list[str]] = {}
        for path in sorted(listed, key=place):
            *modules, file = path.split("/")
            page = "::".join([crate, *modules[:1]])
            if page not in pages:
                about = read(root.joinpath(*modules[:1], "index.html"))
                pages[page] = [
                    f"---\neditLink: false\noutline: 2\n---\n\n# Rust: {page}\n\n",
                    about,
                ]
            name = "::".join([*modules[1:], file.split(".")[1]])
            pages[page].append(f"## {name}\n\n{read(root / path, name)}\n")
        for page, texts in pages.items():
            name = "index" if page == CRATES[0] else page.replace("::", ".")
            (folder / f"{name}.md").write_text("".join(texts), encoding="utf-8")


def place(path: str) -> tuple[str, int, str]:
    """Returns by what the items of a crate are sorted: by module, use and name, not by kind."""
    module, _, file = path.rpartition("/")
    name = file.split(".")[1]
    return module, FIRST.index(name) if name in FIRST else len(FIRST), name


def read(path: Path, name: str = "") -> str:
    """Returns in Markdown what rustdoc's page of an item says; of a module, without a name."""
    item = Item(name)
    item.feed(path.read_text(encoding="utf-8"))
    return item.text()


class Item(HTMLParser):
    """Reads the page of one item, and writes Markdown."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.done: list[str] = []
        self.stack: list[tuple[str, str]] = []
        self.is_shown = False
        self.cells = 0

    def text(self) -> str:
        return re.sub(r"\n{3,}", "\n\n", "".join(self.done)).strip() + "\n\n"

    def inside(self, tag: str, kind: str = "") -> bool:
        return any(tag == one and kind in classes for one, classes in self.stack)

    def is_ignored(self) -> bool:
        ignored = any(set(classes.split()) & IGNORED for _, classes in self.stack)
        return ignored or not self.is_shown or not self.is_wanted()

    def is_wanted(self) -> bool:
        return self.inside("div", "docblock") or self.is_code()

    def is_code(self) -> bool:
        return (
            self.inside("pre")
            or (self.inside("span", "structfield") and self.inside("code"))
            or (self.inside("section", "variant") and self.inside("h3"))
            or (self.inside("section") and self.inside("h4", "code-header"))
        )

    def write(self, text: str) -> None:
        if not self.is_ignored():
            self.done.append(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        classes, id = values.get("class", ""), values.get("id", "")
        if id == "main-content":
            self.is_shown = True
        if tag == "h2" and not self.inside("div", "docblock"):
            self.is_shown = id in SHOWN
        if tag in VOID:
            return
        self.stack.append((tag, classes))
        kind, _, member = id.partition(".")
        if kind in MEMBERS and member and tag in {"section", "span"} and self.is_shown:
            self.done.append(f"\n\n### {self.name}::{re.sub('-[0-9]+$', '', member)}\n\n")
        if self.starts_code():
            self.write(f"\n\n```{'text' if 'language-text' in classes else 'rust'}\n")
        elif not self.is_code():
            self.start_of_prose(tag)

    def starts_code(self) -> bool:
        """Returns whether a block of code begins here: not the code in a line of text."""
        newest = self.stack.pop()
        was_code = self.is_code()
        self.stack.append(newest)
        return self.is_code() and not was_code

    def start_of_prose(self, tag: str) -> None:
        if tag == "code":
            self.write("`")
        elif tag == "li":
            self.write(f"\n{BULLET}")
        elif tag in {"p", "ul", "ol", "table"} and not self.inside("li"):
            self.write("\n\n")
        elif re.fullmatch("h[1-6]", tag):
            self.write("\n\n**")
        elif tag == "tr":
            self.cells = 0
        elif tag in {"td", "th"}:
            self.cells += 1
            self.write("| ")

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or all(tag != one for one, _ in self.stack):
            return
        was_code, was_ignored = self.is_code(), self.is_ignored()
        while self.stack.pop()[0] != tag:
            pass
        if was_ignored:
            return
        if was_code:
            if not self.is_code():
                self.done.append("\n```\n\n")
        elif tag == "code":
            self.done.append("`")
        elif re.fullmatch("h[1-6]", tag):
            self.done.append("**\n\n")
        elif tag in {"td", "th"}:
            self.done.append(" ")
        elif tag == "tr":
            self.done.append("|\n")
        elif tag == "thead":
            self.done.append("|" + "---|" * self.cells + "\n")

    def handle_data(self, data: str) -> None:
        if self.is_ignored():
            return
        if self.is_code():
            self.done.append(data)
        elif self.inside("code"):
            self.done.append(data.replace("|", "\\|") if self.inside("table") else data)
        elif data.strip() or not self.inside("table"):
            words = data.replace("\n", " " if self.inside("li") or self.inside("table") else "\n")
            words = words.replace("&", "&amp;").replace("<", "&lt;").replace("{{", "&#123;&#123;")
            self.done.append(re.sub(r"([*_\[\]`])", r"\\\1", words))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
