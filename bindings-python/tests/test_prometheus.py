"""randflake.prometheus, with the real prometheus_client, in one process and in many."""

import re
from pathlib import Path

import pytest
from conftest import LEASED_SECRET as SECRET, eventually, locked, outcome, run_python
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from randflake import (
    Layout,
    Randflake,
    Snowflake,
    Tickets,
    __version__,
    generate_secret,
    prometheus,
)
from randflake.prometheus import observe


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"randflake_{name}", {"generator": "orders", **labels})


def test_the_names_kinds_and_labels_are_those_of_the_guide() -> None:
    registry = CollectorRegistry()
    observe(Randflake(40, generate_secret()), registry=registry)
    text = generate_latest(registry).decode()
    shown = {}
    for family in text_string_to_metric_families(text):
        suffix = "_total" if family.type == "counter" else ""
        shown[family.name + suffix] = family.type
    guide = (Path(__file__).parents[2] / "docs/guides/monitoring.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(randflake_\w+)` \| (\w+).* \| (?:`(\w+)` )?\|$", guide, re.MULTILINE)
    assert shown == {name: kind for name, kind, _ in rows}
    labels = {name: label or None for name, _, label in rows if name.endswith("_total")}
    counters = prometheus._COUNTERS.items()
    assert labels == {f"{name}_total": label for name, (_, label) in counters}


def test_a_scrape_shows_what_was_generated(store: Path) -> None:
    registry = CollectorRegistry()
    with Randflake.leased(store, SECRET) as flake:  # not renewed for more than a minute
        observe(flake, name="orders", registry=registry)
        assert value(registry, "ids_generated_total") == 0
        flake.generate_many(1000)
        assert value(registry, "ids_generated_total") == 1000
        flake.generate_many(500)
        assert value(registry, "ids_generated_total") == 1500
        assert value(registry, "store_request_duration_seconds_count") == 1
        took = value(registry, "store_request_duration_seconds_sum")
        assert took is not None
        assert 0 < took < 60
        left = value(registry, "lease_remaining_seconds")
        assert left is not None
        assert 0 < left <= 300
        for name in ("lease_renewals_total", "lease_replacements_total", "lease_losses_total"):
            assert value(registry, name) == 0
        end = Layout("randflake").ends_at / 1000
        assert value(registry, "layout_end_timestamp_seconds") == end
        build = {"version": __version__}
        assert registry.get_sample_value("randflake_build_info", build) == 1
    assert value(registry, "lease_remaining_seconds") is None
    assert value(registry, "ids_generated_total") == 1500


def test_tickets_have_the_name_of_their_counter(store: Path) -> None:
    registry = CollectorRegistry()

    def of(name: str, counter: str = "orders", **labels: str) -> float | None:
        labels["counter"] = counter
        return registry.get_sample_value(f"randflake_tickets_{name}", labels)

    with Tickets.leased(store, "orders", create=True, max_wait=0) as orders:
        observe(orders, registry=registry)
        observe(orders, name="again", registry=registry)
        observe(Randflake(44, generate_secret()), name="orders", registry=registry)
        assert of("issued_total") == 0
        orders.generate_many(7)
        assert (of("issued_total"), of("issued_total", "again")) == (7, 7)
        assert (of("blocks_total") or 0) >= 1
        assert (of("reserve") or 0) >= 3
        assert of("waits_total") == 0
        assert value(registry, "ids_generated_total") == 0
        with Tickets.leased(store, "orders") as other:
            assert outcome(lambda: observe(other, registry=registry)) == "INVALID_ARGUMENT"
        orders.close()
        assert (of("reserve"), of("issued_total")) == (0, 7)
        with locked(store):
            lazy = Tickets.lazy(store, "orders", acquire_timeout=0.1)
            observe(lazy, registry=registry)
            assert of("issued_total") == 0
            assert outcome(lazy.generate) == "LEASE_UNAVAILABLE"
            eventually(lambda: (of("store_errors_total", code="STORE_UNAVAILABLE") or 0) >= 1)
        lazy.close()


def test_tickets_without_numbers_are_not_replaced(store: Path) -> None:
    registry = CollectorRegistry()
    one, other = Tickets.lazy(store, "orders"), Tickets.lazy(store, "orders")
    observe(one, registry=registry)
    observe(one, registry=registry)
    assert outcome(lambda: observe(other, registry=registry)) == "INVALID_ARGUMENT"
    one.close()
    observe(other, registry=registry)
    other.close()


def test_calls_that_waited_are_counted_by_what_they_waited_for() -> None:
    registry = CollectorRegistry()
    flake = Snowflake(41, "sonyflake")  # 256 ids in 10 ms
    observe(flake, name="orders", registry=registry)
    flake.generate_many(1000)
    assert (value(registry, "waits_total", reason="SEQUENCE_EXHAUSTED") or 0) >= 1


def test_generators_are_told_apart_by_name() -> None:
    registry = CollectorRegistry()
    one, other = Randflake(42, generate_secret()), Randflake(43, generate_secret())
    observe(one, name="orders", registry=registry)
    observe(one, name="orders", registry=registry)
    assert outcome(lambda: observe(other, name="orders", registry=registry)) == "INVALID_ARGUMENT"
    observe(other, name="users", registry=registry)
    other.generate_many(7)
    assert value(registry, "ids_generated_total") == 0
    assert value(registry, "ids_generated_total", generator="users") == 7
    one.close()
    observe(other, name="orders", registry=registry)
    assert value(registry, "ids_generated_total") == 7


# Workers of a server that was loaded before it forked: each has a lease of its own.
WORKERS = """
import os, struct, sys, time
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from randflake import Randflake, Tickets
import randflake.prometheus

store, secret = sys.argv[1:]
randflake.prometheus._EVERY = 0.05
flake = Randflake.leased(store, secret)  # not renewed for more than a minute
flake.generate_many(5)
randflake.prometheus.observe(flake, name="orders")
# Of the same name as the generator.
tickets = Tickets.leased(store + ".tickets", "orders", create=True)
tickets.generate_many(4)
randflake.prometheus.observe(tickets)

registry = CollectorRegistry()
MultiProcessCollector(registry)
def value(name, label="generator"):
    try:
        return registry.get_sample_value("randflake_" + name, {label: "orders"})
    except struct.error:
        return None  # a file that another process has just made is empty
def eventually(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)

pipes, children = [], []
for worker in range(3):
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(writing)
        flake.generate_many(100)
        tickets.generate_many(10)
        os.read(reading, 1)
        # The last ids are written at the end of the process.
        flake.generate_many(20)
        sys.exit(0)
    os.close(reading)
    pipes.append(writing)
    children.append(child)
eventually(lambda: value("ids_generated_total") == 305)
eventually(lambda: value("store_request_duration_seconds_count") == 4)
eventually(lambda: value("tickets_issued_total", "counter") == 34)
eventually(lambda: value("tickets_reserve", "counter") > 0)
assert 0 < value("store_request_duration_seconds_sum") < 60
assert 0 < value("lease_remaining_seconds") <= 300, value("lease_remaining_seconds")
for pipe, child in zip(pipes, children):
    os.write(pipe, b"!")
    assert os.waitpid(child, 0)[1] == 0
    mark_process_dead(child)
assert value("ids_generated_total") == 365, value("ids_generated_total")
flake.close()
tickets.close()
eventually(lambda: value("tickets_reserve", "counter") == 0)
eventually(lambda: value("lease_remaining_seconds") == float("inf"))
print(value("ids_generated_total"), value("tickets_issued_total", "counter"))
print(value("layout_end_timestamp_seconds"))
"""


def test_several_processes_make_one_number(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "numbers"
    files.mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(files))
    printed = run_python(WORKERS, str(store), SECRET)
    assert printed == f"365.0 34.0\n{Layout('randflake').ends_at / 1000}\n"
