"""Writes tests/vectors/peers.json: ids of other implementations, and how they read ours.

    make python && .venv/bin/python bench/peers.py

Asks the peers of `make bench`; all ids are new each time. `make vectors` then completes the file.
"""

import json
import os
import subprocess
from typing import Any

import randflake
import report
from randflake import Layout, Snowflake
from run import BENCH, BUILT, ROOT, environment, run

US = f"randflake {randflake.__version__}"

COMMENT = (
    "Cases as in layouts.json, which has the layouts: ids that other implementations made, with "
    "the parts that they were asked for or that they read in them, and ids that Randflake made, "
    "with the parts that others (read_by) read in them. programs tells how each implementation "
    "was run, by bench/peers.py. first_id, last_id and node_parts were computed by the reference "
    "of tests/generate, which packs each id again, too."
)

LAYOUTS = ["twitter", "discord", "instagram", "sonyflake", "sonyflake2", "simpleflake"]
"""Those that a peer reads."""

PROGRAMS = {
    "cargo run --locked --manifest-path bench/Cargo.toml --bin peers": "Rust",
    "node bench/node/peers.js": "Node.js",
    "target/bench/python/bin/python bench/python/peers.py": "Python",
    "target/bench/upstream/bin/python bench/python/peers.py": "Python",
}


def ours(name: str) -> list[int]:
    """Returns ids of a generator, and those with all bits of one field set."""
    layout = Layout(name)
    now = 1_763_640_000_500
    # A half is a half in a float, too.
    flake = Snowflake(layout.max_node_id * 2 // 3, layout, clock=lambda: now / 1000)
    return [
        flake.generate(),
        flake.generate(),
        layout.pack(layout.ends_at - 1, 0, 0),
        layout.pack(now, layout.max_node_id, 0),
        layout.pack(now, 0, layout.max_sequence),
    ]


def cases() -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Runs the programs. Returns the one of each peer, and what all of them said."""
    asked = "".join(f"{name} {id}\n" for name in LAYOUTS for id in ours(name))
    versions = report.versions()
    programs, cases = {}, []
    for command, language in PROGRAMS.items():
        said = subprocess.run(
            command.split(),
            cwd=ROOT,
            check=True,
            env={**os.environ, "CARGO_TARGET_DIR": str(BUILT / "cargo")},
            input=asked,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        for line in said.splitlines():
            verb, peer, layout, id, unix_ms, node_id, sequence = line.split()
            by = f"{peer} {versions[language][peer]}"
            programs[by] = command
            cases.append(
                {
                    "name": f"{peer}: {verb} {layout} {id}",
                    "layout": layout,
                    "unix_ms": int(unix_ms),
                    "node_id": int(node_id) if Layout(layout).max_node_id else None,
                    "sequence": int(sequence),
                    "id": id,
                    **({"made_by": by} if verb == "made" else {"made_by": US, "read_by": by}),
                }
            )
    return programs, cases


def main() -> None:
    environment("python", "-r", BENCH / "python" / "requirements.txt")
    environment("upstream", "-r", BENCH / "python" / "requirements-upstream.txt")
    run("npm", "ci", "--no-audit", "--no-fund", "--silent", cwd=BENCH / "node")
    programs, all_cases = cases()
    file = {"_comment": COMMENT, "programs": programs, "cases": all_cases}
    vectors = ROOT / "tests" / "vectors" / "peers.json"
    vectors.write_text(json.dumps(file), encoding="utf-8")
    run("make", "vectors", cwd=ROOT)


if __name__ == "__main__":
    main()
