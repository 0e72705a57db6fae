"""Tables of what was measured."""

import json
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import goals

BENCH = Path(__file__).resolve().parent
LANGUAGES = {"rust": "Rust", "python": "Python", "node": "Node.js"}
CAP = "131 072 ids per node id and second"

# The extensions that are also measured, on machines that offer more.
EXTENSIONS = ("AVX2", "SSE2")


def wanted(worker: str, said: dict[str, Any]) -> list[list[str]]:
    """The cases of a worker that are measured: name, label, kind."""
    cases: list[list[str]] = said["cases"]
    if worker not in EXTENSIONS:
        return cases
    return [case for case in cases if case[0] in goals.BY_EXTENSION]


@dataclass(frozen=True)
class Case:
    name: str
    label: str
    kind: str
    median: float
    """Nanoseconds per id, like the others."""
    p10: float
    p90: float


@dataclass(frozen=True)
class Results:
    cases: dict[str, list[Case]]
    """Of each language."""
    facts: dict[str, Any]
    rounds: dict[str, int]
    machine: dict[str, str]

    @classmethod
    def of(
        cls,
        says: dict[str, dict[str, Any]],
        samples: list[dict[tuple[str, str], float]],
        rounds: dict[str, int],
        machine: dict[str, str],
    ) -> "Results":
        cases: dict[str, list[Case]] = {language: [] for language in LANGUAGES}
        facts: dict[str, Any] = {}
        for worker, said in says.items():
            language = {"upstream": "python"} | dict.fromkeys(EXTENSIONS, "rust")
            for name, label, kind in wanted(worker, said):
                values = [sample[worker, name] for sample in samples]
                deciles = quantiles(values, n=10, method="inclusive")
                if worker in EXTENSIONS:
                    name, label, kind = f"{name}_{worker.lower()}", f"{label}, {worker}", "part"
                case = Case(name, label, kind, median(values), deciles[0], deciles[-1])
                cases[language.get(worker, worker)].append(case)
            facts = said["facts"] | facts
        machine |= {"Python": facts["python"], "Node.js": facts["node"]}
        return cls(cases, facts, rounds, machine | {"The cipher uses": facts["backend"]})


def number(value: float) -> str:
    """Three digits, or all before the point."""
    if value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.{1 if value >= 10 else 2 if value >= 1 else 3}f}"


def times(language: str, results: Results) -> list[list[str]]:
    """The rows of a language's table: us, floors, peers; the fastest first."""
    cases = results.cases[language]
    ours = next(case.median for case in cases if case.name == "generate")
    rank = {"us": 0, "part": 1, "floor": 2, "peer": 3}
    kinds = {"us": "Randflake", "part": "a part of it", "floor": "floor", "peer": "peer"}
    return [
        ["", "case", "ns per id", "p10", "p90", "x of generate()"],
        *(
            [
                kinds[case.kind],
                f"{case.label} [`{case.name}`]",
                *map(number, (case.median, case.p10, case.p90, case.median / ours)),
            ]
            for case in sorted(cases, key=lambda case: (rank[case.kind], case.median))
        ),
    ]


def goal_rows(language: str, results: Results) -> list[list[str]]:
    """The rows of a language's goals."""
    medians = {case.name: case.median for case in results.cases[language]}
    medians["memory"] = results.facts["memory"]
    rows = [["goal", "bound", "measured", ""]]
    for goal in goals.for_processor(results.machine["Processor"]):
        if goal.language != language:
            continue
        value = goal.value(medians)
        sign = "≥" if goal.at_least else "≤"
        mark = "✓ met" if goal.is_met(value) else "✗ missed"
        rows.append(
            [goal.what, f"{sign} {goal.bound:g} {goal.unit}", f"{number(value)} {goal.unit}", mark]
        )
    return rows


def table(rows: list[list[str]], numbers: range) -> str:
    """A Markdown table, which is also readable as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(cells: list[str]) -> str:
        aligned = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(aligned)} |"

    rule = [
        "-" * (width - 1) + ":" if column in numbers else "-" * width
        for column, width in enumerate(widths)
    ]
    return "\n".join([line(rows[0]), line(rule), *map(line, rows[1:])])


def warning(results: Results) -> str:
    """Returns a warning if figures are disturbed, otherwise nothing."""
    disturbed = results.rounds["disturbed"]
    if not disturbed:
        return ""
    return (
        f"**Disturbed: in {disturbed} of the {results.rounds['kept']} rounds other processes took "
        "more than 12 % of a processor, as no better ones were available. These figures are "
        "preliminary.**\n\n"
    )


def text(results: Results) -> str:
    """All tables, and what they were measured on."""
    parts = [f"{name}: {value}" for name, value in results.machine.items()]
    measured = "; ".join([*parts, time.strftime("%Y-%m-%d", time.gmtime())])
    rounds = results.rounds
    out = (
        f"{measured}.\nMedians of {rounds['kept']} rounds, the least disturbed ones of "
        f"{rounds['rounds']}.\n\n{warning(results)}"
    )
    for language, title in LANGUAGES.items():
        out += (
            f"## {title}\n\nns per id, in a layout that caps them at {CAP}: "
            "many node ids keep all cases inside.\n\n"
            f"{table(times(language, results), range(2, 6))}\n\n"
            f"{table(goal_rows(language, results), range(1, 3))}\n\n"
        )
    return out


def page(results: Results, notes: str) -> str:
    """The page of the documentation."""
    return (
        "# Benchmarks\n\n<!-- Written by `make bench`; do not edit. -->\n\n"
        "![ns per id of Randflake and of its peers, per language](benchmarks.svg)\n\n"
        f"{text(results)}"
        "Goals in nanoseconds are for an AMD Zen 5 at about 3.9 GHz; ratios are goals on every "
        f"machine.\n\n{notes}\n{peers()}"
    )


def versions() -> dict[str, dict[str, str]]:
    """Returns the version of each peer, per language."""
    rust = tomllib.loads((BENCH / "rust" / "Cargo.toml").read_text())["dependencies"]
    locked = tomllib.loads((BENCH / "Cargo.lock").read_text())["package"]
    names = rust.keys() - {"randflake", "zeroize", "libc"}
    lines = [
        line
        for file in ("requirements.txt", "requirements-upstream.txt")
        for line in (BENCH / "python" / file).read_text().splitlines()
    ]
    python = dict(line.split("==") for line in lines if "==" in line and "numpy" not in line)
    node: dict[str, str] = json.loads((BENCH / "node" / "package.json").read_text())["dependencies"]
    return {
        "Rust": {it["name"]: it["version"] for it in locked if it["name"] in names},
        "Python": python,
        "Node.js": node,
    }


def peers() -> str:
    """Lists the peers."""
    rows = []
    for language, of_language in versions().items():
        named = sorted(f"{name} {version}" for name, version in of_language.items())
        rows.append(f"- {language}: {', '.join(named)}")
    return "## Peers\n\n" + "\n".join(rows) + "\n"
