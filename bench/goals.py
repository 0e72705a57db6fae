"""What Randflake wants to reach, per language.

Most goals are ratios to a peer or a floor of the same run, which hold on any processor. Those that
name a processor are for machines that have one of that maker.
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
    processor: str = ""
    """What the name of the processor contains."""

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


def time(language: str, case: str, bound: float, processor: str) -> Goal:
    """At most so many nanoseconds per id."""
    return Goal(
        language, f"`{case}`", lambda medians: medians[case], bound, "ns", processor=processor
    )


def ratio(language: str, case: str, other: str, bound: float, processor: str = "") -> Goal:
    """At most so many times the nanoseconds of another case."""
    return Goal(
        language,
        f"`{case}` / `{other}`",
        lambda medians: medians[case] / medians[other],
        bound,
        "x",
        processor=processor,
    )


def faster(language: str, case: str, other: str, bound: float) -> Goal:
    """At least so many times the throughput of another case."""
    what = f"throughput of `{case}` / of `{other}`"
    return Goal(language, what, lambda medians: medians[other] / medians[case], bound, "x", True)


BY_EXTENSION = ("generate", "fill", "inspect_many")
"""The Rust cases that are also measured with lesser instructions than the processor has."""

GOALS = [
    time("rust", "generate", 6.5, "Intel"),
    time("rust", "generate", 6, "AMD"),
    ratio("rust", "generate", "ferroid_atomic", 0.55, "Intel"),
    ratio("rust", "generate", "ferroid_atomic", 1.4, "AMD"),
    ratio("rust", "generate", "uuid_v4", 0.75),
    ratio("rust", "generate", "uuid_v7", 0.15),
    # What the machine gives two threads that share nothing.
    ratio("rust", "generate_2", "generate_own_2", 1.05),
    faster("rust", "generate_2", "ferroid_atomic_2", 3),
    ratio("rust", "fill", "cipher_encrypt_many", 1.05),
    ratio("rust", "inspect", "sparx_decrypt", 0.6),
    ratio("rust", "inspect_many", "cipher_decrypt_many", 1.3),
    ratio("rust", "snowflake_twitter", "part_counter", 1.6),
    ratio("rust", "snowflake_discord", "part_counter", 1.6),
    Goal("rust", "memory of one generator", lambda m: m["memory"] / 1024, 1, "KiB"),
    ratio("python", "generate", "floor_int", 1.1),
    ratio("python", "generate", "floor_c_int", 1.3),
    ratio("python", "generate_string", "floor_str", 1.1),
    ratio("python", "generate_string", "floor_c_str", 1.3),
    ratio("python", "generate", "uuid_utils", 0.48),
    ratio("python", "generate_string", "ulid_transform", 0.8),
    faster("python", "generate", "upstream", 500),
    ratio("python", "v2", "generate", 2.5),
    ratio("python", "snowflake_twitter", "floor_c_int", 1.5),
    ratio("python", "snowflake_discord", "floor_c_int", 1.5),
    ratio("python", "many", "floor_list", 1.2),
    ratio("node", "generate", "floor_bigint", 1.3),
    ratio("node", "generate_string", "floor_string", 1.6),
    ratio("node", "generate", "random_uuid", 0.3),
    ratio("node", "generate", "sapphire", 0.4),
    ratio("node", "v2", "generate", 2.5),
    ratio("node", "snowflake_twitter", "sapphire", 0.6),
    ratio("node", "snowflake_discord", "sapphire", 0.6),
]


def for_processor(name: str) -> list[Goal]:
    """Returns the goals that count on a processor of this name."""
    return [goal for goal in GOALS if goal.processor in name]
