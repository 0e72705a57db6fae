"""Writes the pages of the site about the Python package, from its docstrings and stubs.

    .venv/bin/python site/build/api_python.py FOLDER

Nothing is imported: what the package needs need not be installed.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import griffe

PACKAGE = Path(__file__).resolve().parents[2] / "bindings-python" / "python"
WIDTH = 88

# Names of versions before 2.1, for programs that have them: the guide to upgrading lists them.
OLD = {"randflake", "sparx64"}

# What a reader wants first.
FIRST = ["Randflake", "Snowflake", "Tickets", "Inspector", "Cloak", "Layout"]

# Types that have a name for type checkers alone. Those of values are shown as what they are, others
# by a word that the parameter's text explains.
PRIVATE = {
    r"\b_ChangeableClock \| ": "",
    r"\b_Secret\b": "bytes | bytearray | memoryview | str",
    r"\b_Int64Buffer\b": "Buffer | NDArray[int64]",
    r"\b_(Code|Field)\b": "str",
    r"\b_(?=[A-Z])": "",
}

PARAMETER = re.compile(r"(\*{0,2}[a-z_]\w*): +")
# Code, codes of errors, names with an underscore, calls.
NAME = re.compile(r"`[^`]+`|\b[A-Z]+(?:_[A-Z]+)+\b|\b[a-z]\w*(?:\.\w+)*(?:\(\)|_[\w.]*\w(?:\(\))?)")


def main(folder: Path) -> None:
    package = griffe.load("randflake", search_paths=[PACKAGE], allow_inspection=False)
    assert isinstance(package, griffe.Module)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    main_names = set(exports(package))
    for name, module in [("index", package), *sorted(package.modules.items())]:
        # What other modules define is mostly shown at the top.
        of_main = module is not package and set(exports(module)) <= main_names
        if name.startswith("_") or name in OLD or of_main:
            continue
        (folder / f"{name}.md").write_text("\n".join(page(module)), encoding="utf-8")


def exports(module: griffe.Module) -> list[str]:
    return [str(name) for name in module.exports or [] if not str(name).startswith("__")]


def page(module: griffe.Module) -> Iterator[str]:
    # The source says nothing that has to be edited here.
    title = f"Python: {module.path}"
    yield f"---\neditLink: false\noutline: 2\n---\n\n# {title}\n"
    yield text(module)
    names = exports(module)
    for name in sorted(names, key=lambda name: [*FIRST, name].index(name)):
        item = module.members[name]
        item = item.final_target if isinstance(item, griffe.Alias) else item
        yield f"## {name}\n"
        if isinstance(item, griffe.Class):
            yield from of_class(item)
        else:
            yield from of_member(item)


def of_class(item: griffe.Class) -> Iterator[str]:
    members = dict(item.all_members.items())
    maker = members.get("__new__", members.get("__init__"))
    bases = ", ".join(str(base) for base in item.bases if "_" not in str(base))
    head = f"class {item.name}" + (f"({bases})" if bases else "")
    yield code(head)
    if isinstance(maker, griffe.Function) and len(maker.parameters) > 0:
        yield signed(signature(maker, item.name, returns=False))
    yield text(item)
    for name, member in members.items():
        target = member.final_target if isinstance(member, griffe.Alias) else member
        if name.startswith("_") or not isinstance(target, griffe.Function | griffe.Attribute):
            continue
        yield f"### {item.name}.{name}\n"
        yield from of_member(target)


def of_member(item: griffe.Object) -> Iterator[str]:
    if isinstance(item, griffe.Function):
        for one in item.overloads or [item]:
            yield signed(signature(one, item.name))
    elif isinstance(item, griffe.Attribute):
        annotation = f": {item.annotation}" if item.annotation else ""
        value = f" = {item.value}" if item.value and not annotation else ""
        yield signed(f"{item.name}{annotation}{value}")
    yield text(item)


def signature(function: griffe.Function, name: str, *, returns: bool = True) -> str:
    # One parameter in each line, if they do not fit into one.
    label = next(
        (f"@{name}\n" for name in ("staticmethod", "classmethod") if name in function.labels), ""
    )
    is_async = "async " if "async" in function.labels else ""
    shown = function.signature(return_type=returns, name=name)
    shown = re.sub(r"\((self|cls)(, |\))", lambda found: "(" + found[2].strip(", "), shown, count=1)
    line = f"{label}{is_async}{'def ' if returns else ''}{shown}"
    if len(shown) <= WIDTH:
        return line
    begin, end = line.index("("), line.rindex(")") if not returns else closing(line)
    inside = "".join(f"    {part.strip()},\n" for part in parts(line[begin + 1 : end]))
    return f"{line[: begin + 1]}\n{inside}{line[end:]}"


def closing(line: str) -> int:
    """Returns where the parentheses of the parameters end."""
    depth = 0
    for at, letter in enumerate(line):
        depth += (letter in "([") - (letter in ")]")
        if letter == ")" and depth == 0:
            return at
    raise ValueError(line)


def parts(parameters: str) -> list[str]:
    """Splits parameters at the commas between them."""
    found, depth = [""], 0
    for letter in parameters:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def code(lines: str) -> str:
    return f"```python\n{lines}\n```\n"


def signed(lines: str) -> str:
    """Returns a signature as code, with no private names."""
    for private, shown in PRIVATE.items():
        lines = re.sub(private, shown, lines)
    return code(lines)


def text(item: griffe.Object) -> str:
    """Returns the docstring in Markdown: its paragraphs, parameters and examples."""
    docstring = item.docstring.value if item.docstring else ""
    # Lines that are indented are code, with blank ones between them.
    docstring = re.sub(r"(\n    .*)\n\n(?=    )", r"\1\n    \n", docstring)
    done = []
    for paragraph in re.split(r"\n{2,}", docstring):
        lines = paragraph.splitlines()
        if paragraph.startswith(">>>"):
            done.append(code(paragraph))
        elif lines and all(line.startswith("    ") for line in lines):
            done.append(code("\n".join(line[4:] for line in lines)))
        elif PARAMETER.match(paragraph):
            done.append("".join(parameters(lines)))
        else:
            done.append(prose(paragraph) + "\n")
    return "\n".join(done)


def parameters(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if found := PARAMETER.match(line):
            yield f"- `{found[1]}`: {prose(line[found.end() :])}\n"
        else:
            yield f"  {prose(line)}\n"


def prose(words: str) -> str:
    """Escapes what Markdown and Vue would take for theirs, and marks names as code."""
    found, done = 0, ""
    for name in NAME.finditer(words):
        done += escaped(words[found : name.start()]) + f"`{name[0].strip('`')}`"
        found = name.end()
    return done + escaped(words[found:])


def escaped(words: str) -> str:
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace("{{", "&#123;&#123;")
    return re.sub(r"([*_\[\]`])", r"\\\1", words)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
