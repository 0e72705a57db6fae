"""Measures Randflake beside its peers, in Rust, Python and Node, and reports.

    python bench/run.py           all rounds; writes docs/benchmarks.md and docs/benchmarks.svg
    python bench/run.py --quick   a few rounds; only prints

`make bench` builds the packages first. What is installed goes to target/bench and bench/node.
"""

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import plot
import report

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILT = ROOT / "target" / "bench"

# A sample is the fastest of so many runs.
RUNS = 8

# More than this share of one processor, used by others, disturbs a round.
DISTURBING = 0.12

# How to build the Rust cases for processors that have no more than this.
LEFT_OUT = {
    "AVX2": "--cfg randflake_no_avx512",
    "SSE2": "--cfg randflake_no_avx512 --cfg randflake_no_avx2",
}

Sample = dict[tuple[str, str], float]
"""The nanoseconds per id of each language's cases."""


def run(*command: str | Path, cwd: Path = BENCH, **environment: str) -> None:
    """Runs a command that has to succeed."""
    subprocess.run(command, cwd=cwd, check=True, env={**os.environ, **environment})


def environment(name: str, *packages: str | Path) -> Path:
    """Makes a virtual environment with these packages and returns its Python."""
    folder = BUILT / name
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True, clear=True)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def build() -> dict[str, list[str | Path]]:
    """Builds the cases, installs the peers and returns each worker's command."""
    cargo = BUILT / "cargo"
    # The variable makes pyo3 build an extension, which links to no Python.
    run(
        *("cargo", "build", "--locked", "--release", "--target-dir", cargo),
        PYO3_BUILD_EXTENSION_MODULE="1",
    )
    for extension, flags in LEFT_OUT.items():
        run(
            *("cargo", "build", "--locked", "--release", "-p", "bench-rust"),
            *("--target-dir", BUILT / extension),
            RUSTFLAGS=flags,
        )
    library = {"darwin": "dylib"}.get(sys.platform, "so")
    ours = environment("python", "-r", BENCH / "python" / "requirements.txt")
    [wheel] = (ROOT / "target" / "dist" / "python").glob("*.whl")
    environment("python", "--no-deps", "--force-reinstall", wheel)
    upstream = environment("upstream", "-r", BENCH / "python" / "requirements-upstream.txt")
    [site] = (BUILT / "python" / "lib").glob("python3*/site-packages")
    (site / "floor.abi3.so").write_bytes((cargo / "release" / f"libfloor.{library}").read_bytes())
    run("npm", "ci", "--no-audit", "--no-fund", "--silent", cwd=BENCH / "node")
    worker = BENCH / "python" / "worker.py"
    node_floor = cargo / "release" / f"libnode_floor.{library}"
    return {
        "rust": [cargo / "release" / "bench-rust"],
        **{it: [BUILT / it / "release" / "bench-rust"] for it in LEFT_OUT},
        "python": [ours, worker, "ours"],
        "upstream": [upstream, worker, "upstream"],
        "node": [
            "node",
            BENCH / "node" / "worker.js",
            node_floor,
        ],
    }


class Worker:
    """A process that runs cases."""

    def __init__(self, command: list[str | Path]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.says: dict[str, Any] = json.loads(self.answer())

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args!r} ended with status {self.process.wait()}")
        return line

    def run(self, case: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(case + "\n")
        return float(self.answer())

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def others_cpu_seconds(workers: list[Worker]) -> float:
    """Returns how long the processors have worked for other processes; 0 without /proc/stat."""
    try:
        # user nice system idle iowait irq softirq steal; the two guest columns are in user.
        ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        ours = sum(worker.cpu_seconds() for worker in workers) + time.process_time()
    except OSError:
        return 0.0
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK") - ours


def measure(workers: dict[str, Worker], wanted: int) -> tuple[list[Sample], dict[str, int]]:
    """Returns the samples of so many rounds, and how many rounds there were and were disturbed."""
    cases = [
        (language, name)
        for language, it in workers.items()
        for name, _, _ in report.wanted(language, it.says)
    ]
    everyone = list(workers.values())
    for language, case in cases:  # to find out how many times make a run
        workers[language].run(case)
    rounds: list[tuple[float, Sample]] = []
    undisturbed = 0
    while undisturbed < wanted and len(rounds) < 3 * wanted:
        start, before = time.perf_counter(), others_cpu_seconds(everyone)
        sample = dict.fromkeys(cases, math.inf)
        for _ in range(RUNS):
            random.shuffle(cases)
            for language, case in cases:
                nanos = workers[language].run(case)
                sample[language, case] = min(sample[language, case], nanos)
        took = time.perf_counter() - start
        disturbed = (others_cpu_seconds(everyone) - before) / took
        rounds.append((disturbed, sample))
        undisturbed += disturbed <= DISTURBING
        print(
            f"round {len(rounds):2}: {took:.1f} s, others used {disturbed:.0%} of a processor",
            file=sys.stderr,
        )
    # If too few were undisturbed, the least disturbed ones are used; the report says so.
    rounds.sort(key=lambda it: it[0])
    kept = [sample for _, sample in rounds[:wanted]]
    disturbed = sum(it[0] > DISTURBING for it in rounds[:wanted])
    return kept, {"rounds": len(rounds), "kept": len(kept), "disturbed": disturbed}


def machine() -> dict[str, str]:
    """Names the machine and the tools."""
    model = platform.processor() or platform.machine()
    try:
        cpu = Path("/proc/cpuinfo").read_text()
        named = dict(line.split(":", 1) for line in cpu.splitlines() if ":" in line)
        fields = {name.strip(): value.strip() for name, value in named.items()}
        model = f"{fields['model name']}, family {fields['cpu family']} model {fields['model']}"
    except (OSError, KeyError):
        pass
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True)
    return {
        "Processor": f"{model}, {os.cpu_count()} processors",
        "System": f"{platform.system()} {platform.release()}",
        "Rust": rustc.stdout.split()[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures Randflake beside its peers.")
    parser.add_argument("--quick", action="store_true", help="a few rounds; writes nothing")
    quick = parser.parse_args().quick
    started = {language: Worker(command) for language, command in build().items()}
    # A processor without the extension has no goal for it.
    workers = {
        language: worker
        for language, worker in started.items()
        if language not in LEFT_OUT or worker.says["facts"]["backend"] == language
    }
    samples, rounds = measure(workers, 3 if quick else 21)
    says = {language: worker.says for language, worker in workers.items()}
    for worker in started.values():
        worker.close()
    results = report.Results.of(says, samples, rounds, machine())
    print(report.text(results))
    if not quick:
        docs = ROOT / "docs"
        notes = (BENCH / "notes.md").read_text(encoding="utf-8")
        (docs / "benchmarks.md").write_text(report.page(results, notes), encoding="utf-8")
        (docs / "benchmarks.svg").write_text(plot.svg(results), encoding="utf-8")


if __name__ == "__main__":
    main()
