"""The plot for the README: ns per id, us and peers, per language."""

from html import escape
from math import floor, log10

from report import LANGUAGES, Case, Results, number

WIDTH = 840
LEFT, RIGHT = 268, 64
# Beside the longest labels.
MARGIN = 40
ROW = 20

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #57606a }
  .title { font-size: 15px; font-weight: 600; fill: #24292f }
  .us { fill: #0b6b63; font-weight: 600 }
  rect.peer { fill: #afb8c1 }
  rect.floor { fill: #d0d7de }
  text.peer, text.floor { font-weight: 400 }
  .grid { stroke: #d0d7de; stroke-dasharray: 2 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 }
    .title { fill: #f0f6fc }
    .us { fill: #6fd3c6 }
    rect.peer { fill: #656c76 }
    rect.floor { fill: #3d444d }
    .grid { stroke: #3d444d }
  }
"""


def shown(cases: list[Case]) -> list[Case]:
    """The time that one thread needs for an id, the fastest first."""
    hidden = ("inspect", "sparx", "_2")
    return sorted(
        (c for c in cases if c.kind != "part" and not any(word in c.name for word in hidden)),
        key=lambda case: case.median,
    )


def svg(results: Results) -> str:
    """Returns the plot."""
    panels = {title: shown(results.cases[language]) for language, title in LANGUAGES.items()}
    medians = [case.median for cases in panels.values() for case in cases]
    low = floor(log10(min(medians)))
    decades = log10(max(medians)) - low

    def x(ns: float) -> float:
        return LEFT + (log10(ns) - low) / decades * (WIDTH - LEFT - RIGHT)

    out, y = [], 28
    for title, cases in panels.items():
        out.append(f'<text class="title" x="{LEFT}" y="{y}">{title}</text>')
        top = y + 10
        bottom = top + ROW * len(cases)
        for power in range(low, low + int(decades) + 1):
            at = f"{x(10.0**power):.1f}"
            out.append(f'<path class="grid" d="M{at} {top}V{bottom}"/>')
            out.append(
                f'<text x="{at}" y="{bottom + 14}" text-anchor="middle">{10.0**power:g} ns</text>'
            )
        for row, case in enumerate(cases):
            middle = top + ROW * row + ROW / 2
            end = x(case.median)
            out.append(
                f'<text class="{case.kind}" x="{LEFT - 8}" y="{middle + 4:.0f}" text-anchor="end">'
                f"{escape(case.label)}</text>"
                f'<rect class="{case.kind}" x="{LEFT}" y="{middle - 6:.0f}" '
                f'width="{end - LEFT:.1f}" height="12" rx="2"/>'
                f'<text class="{case.kind}" x="{end + 5:.1f}" y="{middle + 4:.0f}">'
                f"{number(case.median)}</text>"
            )
        y = bottom + 48
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN} 0 {WIDTH + MARGIN} {y}" '
        'role="img" aria-labelledby="title">\n<title id="title">Nanoseconds per id, of Randflake '
        f"and of other generators, in Rust, Python and Node.js</title>\n<style>{STYLE}</style>\n"
        + "\n".join(out)
        + f'\n<text x="{LEFT}" y="{y - 14}">ns per id, logarithmic: less is faster. '
        "A node id gives at most 131 072 ids a second.</text>\n</svg>\n"
    )
