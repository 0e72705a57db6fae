"""Metrics of generators and Tickets for Prometheus. Needs the package prometheus_client.

    from randflake.prometheus import observe

    observe(flake)

In multiprocess mode, where PROMETHEUS_MULTIPROC_DIR is set, custom collectors do not work. In that
mode each process writes its own numbers every five seconds, and at its end.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Summary
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from randflake._randflake import Layout, Randflake, Snowflake, Tickets, __version__
from randflake.errors import InvalidArgumentError
from randflake.leases import LeaseStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

__all__ = ["observe"]

_Observed: TypeAlias = Randflake | Snowflake | Tickets

_Key: TypeAlias = tuple[str, str]
"""The label that has the name, and the name."""

_EVERY = 5.0
"""Seconds between two writes in multiprocess mode, fewer than between two scrapes."""

_REMAINING = "randflake_lease_remaining_seconds"
_SKEW = "randflake_clock_skew_seconds"
_REQUESTS = "randflake_store_request_duration_seconds"
_REQUESTS_ARE = "How long requests to the store took."
_BUILD = "randflake_build_info"
_BUILD_IS = "The version of the package."

# By name: what it is, and the label in addition to the name of the generator or of the counter.
_COUNTERS = {
    "randflake_ids_generated": ("Ids that were claimed.", None),
    "randflake_waits": ("Calls that waited, by the code of what they waited for.", "reason"),
    "randflake_lease_renewals": ("Renewals that the store has granted.", None),
    "randflake_lease_replacements": ("Times that other node ids replaced lost ones.", None),
    "randflake_lease_losses": ("Node ids that another process leased too early.", None),
    "randflake_store_errors": ("Requests that the store did not grant, by code.", "code"),
    "randflake_tickets_issued": ("Numbers that were handed out.", None),
    "randflake_tickets_blocks": ("Blocks of numbers that were drawn.", None),
    "randflake_tickets_waits": ("Calls that waited for a block.", None),
    "randflake_tickets_store_errors": (
        "Requests for numbers that the store did not grant, by code.",
        "code",
    ),
}
# By name: what it is, and how the numbers of several processes are combined.
_GAUGES: dict[str, tuple[str, Literal["livemin", "livemostrecent", "livesum", "max"]]] = {
    _REMAINING: ("Time to the end of the lease.", "livemin"),
    _SKEW: ("The store's clock minus this machine's.", "livemostrecent"),
    "randflake_layout_end_timestamp_seconds": ("The unix second in which ids end.", "max"),
    "randflake_tickets_reserve": ("Numbers that are drawn but not yet handed out.", "livesum"),
}


def observe(
    flake: _Observed, *, name: str | None = None, registry: CollectorRegistry = REGISTRY
) -> None:
    """Adds the metrics of a generator or a Tickets to a registry, until the end of the process.

    flake: any generator; one with manually assigned node ids has fewer numbers. Or a Tickets.
    name: the value of the label "generator", which tells several generators of a process apart;
    "default" unless given. For a Tickets, the value of the label "counter"; its own name unless
    given.
    registry: where it is shown; not used in multiprocess mode.

    Raises InvalidArgumentError with INVALID_ARGUMENT if another open one has that name.

    >>> from prometheus_client import CollectorRegistry
    >>> from randflake import Randflake, generate_secret
    >>> from randflake.prometheus import observe
    >>> registry = CollectorRegistry()
    >>> flake = Randflake(3, generate_secret())
    >>> observe(flake, name="orders", registry=registry)
    >>> ids = flake.generate_many(1000)
    >>> registry.get_sample_value("randflake_ids_generated_total", {"generator": "orders"})
    1000
    """
    with _lock:
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            shown: dict[_Key, _Observed] = _files_of_this_process().flakes
        elif registry in _collectors:
            shown = _collectors[registry].flakes
        else:
            collector = _collectors[registry] = _Collector()
            registry.register(collector)
            shown = collector.flakes
        key = _key(flake, name)
        known = shown.get(key)
        if known is not None and known is not flake and _is_open(known):
            raise InvalidArgumentError(
                f"another {key[0]} is observed under this name; give each its own name",
                "INVALID_ARGUMENT",
            )
        shown[key] = flake


def _key(flake: _Observed, name: str | None) -> _Key:
    if isinstance(flake, Tickets):
        return "counter", flake.name if name is None else name
    return "generator", "default" if name is None else name


def _is_open(known: _Observed) -> bool:
    if isinstance(known, Tickets):
        return not known._is_closed
    return bool(known.node_ids)


class _Reading:
    """What has been done so far."""

    def __init__(self, flake: _Observed) -> None:
        # By name of the metric, and value of the label other than the name's.
        self.counters: dict[tuple[str, str], float] = {}
        self.gauges: dict[str, float] = {}
        self.requests: tuple[int, float] | None = None
        if isinstance(flake, Tickets):
            self._read_tickets(flake)
        else:
            self._read_generator(flake)

    def _read_tickets(self, tickets: Tickets) -> None:
        metrics = tickets.metrics()
        self.counters["randflake_tickets_issued", ""] = metrics.numbers_generated
        self.counters["randflake_tickets_blocks", ""] = metrics.blocks_drawn
        self.counters["randflake_tickets_waits", ""] = metrics.waits
        for code, count in metrics.store_errors.items():
            self.counters["randflake_tickets_store_errors", code] = count
        self.gauges["randflake_tickets_reserve"] = metrics.reserve

    def _read_generator(self, flake: Randflake | Snowflake) -> None:
        metrics, lease = flake.metrics(), flake.lease
        layout = flake.layout if isinstance(flake, Snowflake) else Layout("randflake")
        self.counters["randflake_ids_generated", ""] = metrics.ids_generated
        for reason, count in metrics.waits.items():
            self.counters["randflake_waits", reason] = count
        self.gauges["randflake_layout_end_timestamp_seconds"] = layout.ends_at / 1000
        if metrics.store_requests is not None:
            self.requests = (metrics.store_requests, metrics.store_request_seconds or 0.0)
        for code, count in (metrics.store_errors or {}).items():
            self.counters["randflake_store_errors", code] = count
        if metrics.clock_skew_seconds is not None:
            self.gauges[_SKEW] = metrics.clock_skew_seconds
        if isinstance(lease, LeaseStatus):
            self.counters["randflake_lease_renewals", ""] = lease.renewals
            self.counters["randflake_lease_replacements", ""] = lease.replacements
            self.counters["randflake_lease_losses", ""] = lease.losses
            self.gauges[_REMAINING] = lease.seconds_left


class _Collector:
    """Reads the generators of a registry at each scrape."""

    def __init__(self) -> None:
        self.flakes: dict[_Key, _Observed] = {}

    def describe(self) -> Iterator[Metric]:
        yield from _families({})

    def collect(self) -> Iterator[Metric]:
        with _lock:
            flakes = dict(self.flakes)
        yield from _families({key: _Reading(flake) for key, flake in flakes.items()})


def _families(readings: dict[_Key, _Reading]) -> Iterator[Metric]:
    for metric, (text, label) in _COUNTERS.items():
        counter = CounterMetricFamily(metric, text, labels=_labels(metric, label))
        for (_, name), reading in readings.items():
            for (of, value), count in reading.counters.items():
                if of == metric:
                    counter.add_metric([name, value] if label else [name], count)
        yield counter
    for metric, (text, _) in _GAUGES.items():
        gauge = GaugeMetricFamily(metric, text, labels=_labels(metric))
        for (_, name), reading in readings.items():
            if metric in reading.gauges:
                gauge.add_metric([name], reading.gauges[metric])
        yield gauge
    requests = SummaryMetricFamily(_REQUESTS, _REQUESTS_ARE, labels=_labels(_REQUESTS))
    for (_, name), reading in readings.items():
        if reading.requests is not None:
            requests.add_metric([name], *reading.requests)
    yield requests
    build = GaugeMetricFamily(_BUILD, _BUILD_IS, labels=["version"])
    build.add_metric([__version__], 1)
    yield build


class _Files:
    """Writes the numbers of this process for multiprocess mode.

    A forked child inherits it and continues with files of its own, which prometheus_client opens.
    """

    def __init__(self) -> None:
        self.flakes: dict[_Key, _Observed] = {}
        # In no registry: scrapes read the files.
        self._counters = {
            metric: Counter(metric, text, _labels(metric, label), registry=None)
            for metric, (text, label) in _COUNTERS.items()
        }
        self._gauges = {
            metric: Gauge(metric, text, _labels(metric), registry=None, multiprocess_mode=mode)
            for metric, (text, mode) in _GAUGES.items()
        }
        self._requests = Summary(_REQUESTS, _REQUESTS_ARE, _labels(_REQUESTS), registry=None)
        build = Gauge(_BUILD, _BUILD_IS, ["version"], registry=None, multiprocess_mode="max")
        build.labels(__version__).set(1)
        self._written: dict[tuple[str, ...], float] = {}
        self._leased: set[_Key] = set()

    def write(self) -> None:
        for key, flake in list(self.flakes.items()):
            _, name = key
            reading = _Reading(flake)
            for (metric, value), count in reading.counters.items():
                labels = [name, value] if value else [name]
                counter = self._counters[metric].labels(*labels)
                counter.inc(self._growth((metric, *labels), count))
            self._write_requests(name, reading)
            for metric, number in reading.gauges.items():
                self._gauges[metric].labels(name).set(number)
            if _REMAINING in reading.gauges:
                self._leased.add(key)
            elif key in self._leased:
                # Closed, or a child that does not need a lease yet: no reason for an alert.
                self._gauges[_REMAINING].labels(name).set(math.inf)

    def skip(self) -> None:
        """Treats what a forked child has from its parent as written: the parent writes that."""
        for (_, name), flake in self.flakes.items():
            reading = _Reading(flake)
            for (metric, value), count in reading.counters.items():
                self._growth((metric, name, value) if value else (metric, name), count)
            if reading.requests is not None:
                for what, number in zip(("count", "sum"), reading.requests, strict=True):
                    self._growth((_REQUESTS, name, what), number)

    def _write_requests(self, name: str, reading: _Reading) -> None:
        if reading.requests is None:
            return
        requests, seconds = reading.requests
        count = self._growth((_REQUESTS, name, "count"), requests)
        total = self._growth((_REQUESTS, name, "sum"), seconds)
        # A Summary takes one value after another: this many values of their mean give the same
        # count and sum.
        for _ in range(round(count)):
            self._requests.labels(name).observe(total / count)

    def _growth(self, key: tuple[str, ...], now: float) -> float:
        """Returns by how much a count has grown since it was last written."""
        before = self._written.get(key, 0)
        self._written[key] = now
        # It starts over at zero if another generator has taken the name.
        return now - before if now >= before else now


_collectors: WeakKeyDictionary[CollectorRegistry, _Collector] = WeakKeyDictionary()
_files: _Files | None = None

# Held by every thread that reads or writes here, and during a fork: so a child finds it free.
_lock = threading.Lock()


def _labels(metric: str, other: str | None = None) -> list[str]:
    name = "counter" if metric.startswith("randflake_tickets_") else "generator"
    return [name, other] if other else [name]


def _files_of_this_process() -> _Files:
    global _files
    if _files is None:
        _files = _Files()
        atexit.register(_write)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_lock.acquire,
                after_in_parent=_lock.release,
                after_in_child=_begin_in_child,
            )
        _start()
    return _files


def _start() -> None:
    threading.Thread(
        target=_write_again_and_again, name="randflake-prometheus", daemon=True
    ).start()


def _begin_in_child() -> None:
    _lock.release()
    if _files is not None:
        _files.skip()
        _start()


def _write_again_and_again() -> None:
    while True:
        _write()
        time.sleep(_EVERY)


def _write() -> None:
    try:
        with _lock:
            if _files is not None:
                _files.write()
    except Exception:  # as when there is no space left
        logging.getLogger("randflake").exception("cannot write the metrics for Prometheus")
