"""What Randflake wants to reach, per language.

Nanoseconds are goals for the machine that they were set on, an x86-64 processor of AMD's Zen 5 at
about 3.9 GHz; ratios are goals everywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Medians = Mapping[str, float]
"""The nanoseconds per id of each case of a language, and the facts that are numbers."""


@dataclass(frozen=True)
class Goal:
    language: str
    what: str
    value: Callable[[Medians], float]
    bound: float
    unit: str
    at_least: bool = False

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


def time(language: str, case: str, bound: float) -> Goal:
    """At most so many nanoseconds per id."""
    return Goal(language, f"`{case}`", lambda medians: medians[case], bound, "ns")


def ratio(language: str, case: str, other: str, bound: float) -> Goal:
    """At most so many times the nanoseconds of another case."""
    what = f"`{case}` / `{other}`"
    return Goal(language, what, lambda medians: medians[case] / medians[other], bound, "x")


def faster(language: str, case: str, other: str, bound: float) -> Goal:
    """At least so many times the throughput of another case."""
    what = f"throughput of `{case}` / of `{other}`"
    return Goal(language, what, lambda medians: medians[other] / medians[case], bound, "x", True)


BY_EXTENSION = {
    "generate": {"AVX-512": 9, "AVX2": 10, "SSE2": 13},
    "fill": {"AVX-512": 0.9, "AVX2": 3.0, "SSE2": 6.5},
    "inspect_many": {"AVX-512": 1.0, "AVX2": 3.3, "SSE2": 8.0},
}
"""The limits of the Rust cases by the instructions that the cipher uses, the best ones first."""

GOALS = [
    ratio("rust", "generate", "ferroid_atomic", 2),
    ratio("rust", "generate", "uuid_v4", 1.2),
    ratio("rust", "generate", "uuid_v7", 0.15),
    faster("rust", "generate_2", "generate", 1.6),
    faster("rust", "generate_2", "ferroid_atomic_2", 3),
    ratio("rust", "fill", "cipher_encrypt_many", 1.15),
    time("rust", "inspect", 40),
    ratio("rust", "inspect", "sparx_decrypt", 0.6),
    time("rust", "snowflake_twitter", 30),
    time("rust", "snowflake_discord", 30),
    Goal("rust", "memory of one generator", lambda m: m["memory"] / 1024, 16, "KiB"),
    ratio("python", "generate", "floor_int", 1.35),
    ratio("python", "generate_string", "floor_str", 1.35),
    ratio("python", "generate", "uuid_utils", 0.65),
    ratio("python", "generate_string", "ulid_transform", 0.8),
    faster("python", "generate", "upstream", 500),
    time("python", "snowflake_twitter", 60),
    time("python", "snowflake_discord", 60),
    time("python", "array", 3.2),
    time("python", "many", 17),
    ratio("node", "generate", "floor_bigint", 1.8),
    ratio("node", "generate_string", "floor_string", 1.8),
    ratio("node", "generate", "random_uuid", 0.3),
    ratio("node", "generate", "sapphire", 0.4),
    ratio("node", "snowflake_twitter", "sapphire", 0.6),
    ratio("node", "snowflake_discord", "sapphire", 0.6),
    time("node", "fill", 3.2),
]


def for_machine(extension: str) -> list[Goal]:
    """All goals where the cipher uses these instructions, or is held to lesser ones."""
    by_extension = []
    for case, bounds in BY_EXTENSION.items():
        names = list(bounds)
        for name in names[names.index(extension) :] if extension in names else []:
            measured = case if name == extension else f"{case}_{name.lower()}"
            by_extension.append(time("rust", measured, bounds[name]))
    return by_extension + GOALS
