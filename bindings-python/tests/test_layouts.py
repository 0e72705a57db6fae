"""`Layout` and `RawParts`: the vectors of the Snowflake family, and what a layout refuses."""

import copy
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from conftest import VECTORS, cases, named
from hypothesis import given, strategies as st
from randflake import InvalidArgumentError, InvalidTypeError, Layout, RawParts, Snowflake

LAYOUTS = json.loads((VECTORS / "layouts.json").read_text(encoding="utf-8"))["layouts"]
TEXTS = json.loads((VECTORS / "layout_texts.json").read_text(encoding="utf-8"))
PRESETS = [name for name, layout in LAYOUTS.items() if "custom" not in layout]
TWITTER = Layout("twitter")


def described(layout: dict[str, Any]) -> Layout:
    """Makes a layout of the vectors from only its fields."""
    sequence = layout["sequence"]
    split = layout.get("node_split")
    return Layout(
        fields=[(field, bits) for field, bits in layout["fields"]],
        tick_ms=layout["tick_ms"],
        epoch_ms=layout["epoch_ms"],
        sequence=sequence if isinstance(sequence, str) else tuple(sequence),
        unsigned=sum(bits for _, bits in layout["fields"]) == 64,
        node_split=split and (split[0][1], split[1][1]),
    )


def layouts_of(name: str) -> list[Layout]:
    return [described(LAYOUTS[name]), *([Layout(name)] if name in PRESETS else [])]


@pytest.mark.parametrize("case", cases("layouts.json") + cases("peers.json"))
def test_the_vectors_in_both_directions(case: dict[str, Any]) -> None:
    raw, node_id = int(case["id"]), case["node_id"] or 0
    parts = RawParts(case["unix_ms"], node_id, case["sequence"])
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=case["unix_ms"])
    for layout in layouts_of(case["layout"]):
        assert layout.inspect(raw) == parts
        assert parts.datetime == time
        for when in (case["unix_ms"], time, time.astimezone(timezone(timedelta(hours=8)))):
            assert layout.pack(when, node_id, case["sequence"]) == raw
            assert layout.first_id_at(when) == int(case["first_id"])
            assert layout.last_id_at(when) == int(case["last_id"])
        if "node_parts" in case:
            datacenter, worker = case["node_parts"]
            assert layout.split_node(node_id) == (datacenter, worker)
            assert layout.join_node(datacenter, worker) == node_id
        else:
            assert layout.split_node(node_id) is None


@pytest.mark.parametrize("case", TEXTS["layouts"], ids=lambda case: case["text"])
def test_texts_of_layouts(case: dict[str, Any]) -> None:
    layout = Layout(case["text"])
    assert str(layout) == case["written"]
    assert layout.name == case["name"]
    assert Layout(str(layout)) == layout
    other = described(case)
    for name in ("fields", "tick_ms", "epoch_ms", "sequence", "unsigned"):
        assert getattr(layout, name) == getattr(other, name)


@pytest.mark.parametrize("text", TEXTS["refused"])
def test_what_is_not_the_text_of_a_layout(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        Layout(text)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_the_vectors_say(name: str) -> None:
    preset, custom = Layout(name), described(LAYOUTS[name])
    assert (preset.name, custom.name) == (name, "custom")
    for name_of_property in (
        "fields",
        "tick_ms",
        "epoch_ms",
        "sequence",
        "unsigned",
        "node_split",
        "max_node_id",
        "max_sequence",
        "ids_per_node",
        "max_nodes",
        "ends_at",
        "negative_from",
    ):
        assert getattr(preset, name_of_property) == getattr(custom, name_of_property)
    assert [list(field) for field in preset.fields] == LAYOUTS[name]["fields"]


@given(st.sampled_from(sorted(LAYOUTS)), st.data())
def test_packing_undoes_reading(name: str, data: st.DataObject) -> None:
    for layout in layouts_of(name):
        raw = data.draw(st.integers(0, 2 ** sum(bits for _, bits in layout.fields) - 1))
        parts = layout.inspect(raw)
        assert layout.pack(parts.unix_ms, parts.node_id, parts.sequence) == raw
        assert layout.first_id_at(parts.unix_ms) <= raw <= layout.last_id_at(parts.unix_ms)


@given(st.integers(TWITTER.epoch_ms, TWITTER.ends_at - 1), st.integers(0, 999))
def test_a_datetime_is_rounded_down_to_its_millisecond(unix_ms: int, micros: int) -> None:
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=unix_ms, microseconds=micros)
    assert TWITTER.pack(time, 1, 2) == TWITTER.pack(unix_ms, 1, 2)


def test_the_ids_of_neighbouring_ticks_neither_overlap_nor_leave_a_gap() -> None:
    for name in PRESETS:
        layout = Layout(name)
        now = layout.epoch_ms + 1_000_000
        later = now + layout.tick_ms
        assert layout.last_id_at(now) + 1 == layout.first_id_at(later), name


def test_a_datetime_whose_differences_are_of_a_class_of_its_own() -> None:
    class Difference(timedelta):
        __floordiv__ = None  # type: ignore[assignment]

    class Time(datetime):
        def __sub__(self, other: datetime) -> Difference:  # type: ignore[override]
            return Difference(seconds=self.timestamp() - other.timestamp())

    for microsecond in (0, 999):
        time = Time(2026, 5, 4, 3, 2, 1, microsecond, UTC)
        assert TWITTER.first_id_at(time) == TWITTER.first_id_at(1_777_863_721_000)


def test_there_are_no_ranges_of_time_where_the_time_is_not_on_top() -> None:
    layout = Layout(fields=[("node", 10), ("time", 41), ("sequence", 12)])
    for bound in (layout.first_id_at, layout.last_id_at):
        with pytest.raises(InvalidArgumentError, match="not in the order of their time") as raised:
            bound(1_763_640_000_000)
        assert raised.value.code == "INVALID_ARGUMENT"


def test_what_is_left_of_a_layout() -> None:
    assert Layout("baidu").remaining() == 0
    ends = TWITTER.ends_at / 1000 - datetime.now(UTC).timestamp()
    assert ends - 60 < TWITTER.remaining() < ends + 60
    assert TWITTER.negative_from is None
    assert Layout("simpleflake").negative_from == 2_046_214_427_776


VALUES = [
    *map(Layout, PRESETS),
    Layout("twitter", sequence="continuing"),
    Layout("leaf", sequence=("random", 7)),
    Layout("twitter", epoch_ms=0),
    Layout("leaf", epoch_ms=1, sequence="zero"),
    *map(described, LAYOUTS.values()),
]


@pytest.mark.parametrize("layout", VALUES, ids=repr)
def test_layouts_survive_pickle_and_copy(layout: Layout) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(layout, protocol)) == layout
    assert copy.copy(layout) == copy.deepcopy(layout) == layout
    assert eval(repr(layout), {"Layout": Layout}) == layout
    assert hash(eval(repr(layout), {"Layout": Layout})) == hash(layout)
    assert [other for other in VALUES if other == layout] == [layout]


def test_a_preset_may_have_another_epoch() -> None:
    ours = Layout("twitter", epoch_ms=1735689600000)
    assert ours.inspect(1 << 22).unix_ms == 1735689600001
    assert Layout("twitter,epoch_ms=1735689600000") == ours != Layout("twitter")
    assert Layout("twitter", epoch_ms=Layout("twitter").epoch_ms) == Layout("twitter")


def test_a_layout_may_be_for_reading_alone() -> None:
    # Mastodon's, whose time and sequence are too wide to be counted together.
    layout = Layout(fields=[("time", 48), ("sequence", 16)], unsigned=True)
    assert layout.inspect(116_000_000_000_000_000).unix_ms == 1_770_019_531_250
    with pytest.raises(InvalidArgumentError, match="can be read, but not generated"):
        Snowflake(0, layout)


def test_raw_parts_compare_and_pickle() -> None:
    parts = RawParts(unix_ms=1_763_640_000_000, node_id=1, sequence=2)
    assert parts == RawParts(1_763_640_000_000, 1, 2)
    assert hash(parts) == hash(RawParts(1_763_640_000_000, 1, 2))
    assert len({parts, *(RawParts(parts.unix_ms, n, s) for n in (1, 2) for s in (2, 3))}) == 4
    assert parts != RawParts(parts.unix_ms + 1, 1, 2)
    assert parts != (parts.unix_ms, 1, 2)
    assert pickle.loads(pickle.dumps(parts)) == copy.deepcopy(parts) == parts
    assert eval(repr(parts), {"RawParts": RawParts}) == parts
    assert parts.datetime.tzinfo is UTC
    with pytest.raises(AttributeError):
        parts.sequence = 3  # type: ignore[misc]


def test_a_time_that_no_datetime_can_show() -> None:
    last = RawParts(253_402_300_799_999, 0, 0)
    assert last.datetime == datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    for unix_ms in (last.unix_ms + 1, 2**63 - 1, -(2**63)):
        with pytest.raises(InvalidArgumentError, match="datetimes") as raised:
            _ = RawParts(unix_ms, 0, 0).datetime
        assert raised.value.code == "INVALID_ARGUMENT"


FIELDS = [("time", 41), ("node", 10), ("sequence", 12)]

REFUSED: list[Any] = [
    {"name": "snowflake"},
    {"name": "Twitter"},
    {"name": ""},
    {"name": "\ud800"},
    {"name": "twitter", "fields": FIELDS},
    {"name": "twitter", "tick_ms": 1},
    {"name": "twitter", "epoch_ms": -1},
    {"name": "twitter,epoch_ms=-1"},
    {"name": "twitter,tick_ms=1"},
    {"name": "twitter", "unsigned": True},
    {"name": "twitter", "node_split": (5, 5)},
    {"name": "twitter", "sequence": "one"},
    {"name": "twitter", "sequence": ("random", 0)},
    {"name": "twitter", "sequence": ("random", 4097)},
    {"name": "twitter", "sequence": ("random", 2**32)},
    {"name": "twitter", "sequence": ("zero", 1)},
    {"name": "twitter", "sequence": ("random",)},
    {"name": "twitter", "sequence": ("random", 1, 2)},
    {},
    {"tick_ms": 10},
    {"fields": []},
    {"fields": [("node", 10)]},
    {"fields": [("time", 0)]},
    {"fields": [("time", 62)]},
    {"fields": [("time", -1)]},
    {"fields": [("time", 2**32)]},
    {"fields": [("time", 2**64)]},
    {"fields": [("time", 41), ("time", 2)]},
    {"fields": [("time", 20), ("node", 33)]},
    {"fields": [("time", 42), ("node", 10), ("sequence", 12)]},
    {"fields": [("time", 41, 0)]},
    {"fields": [("time",)]},
    {"fields": [("clock", 41)]},
    {"fields": [*FIELDS, ("node", 0)]},
    {"fields": FIELDS, "tick_ms": 0},
    {"fields": FIELDS, "tick_ms": -1},
    {"fields": FIELDS, "tick_ms": 86_400_001},
    {"fields": FIELDS, "tick_ms": 2**70},
    {"fields": FIELDS, "epoch_ms": -1},
    {"fields": FIELDS, "epoch_ms": 2**63},
    {"fields": FIELDS, "node_split": (5, 6)},
    {"fields": FIELDS, "node_split": (5,)},
    {"fields": FIELDS, "node_split": (-5, 15)},
    {"fields": FIELDS, "node_split": (2**32 - 1, 11)},
]


@pytest.mark.parametrize("arguments", REFUSED, ids=named)
def test_what_is_no_layout_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Layout(**arguments)
    assert type(raised.value) is InvalidArgumentError
    assert raised.value.code == "INVALID_ARGUMENT"


MISTYPED: list[Any] = [
    {"name": 1},
    {"name": b"twitter"},
    {"name": TWITTER},
    {"fields": 41},
    {"fields": "time"},
    {"fields": [41]},
    {"fields": ["time"]},
    {"fields": [(41, "time")]},
    {"fields": [("time", "41")]},
    {"fields": [("time", 41.0)]},
    {"fields": [("time", True)]},
    {"fields": FIELDS, "tick_ms": 1.5},
    {"fields": FIELDS, "tick_ms": True},
    {"fields": FIELDS, "epoch_ms": "0"},
    {"fields": FIELDS, "epoch_ms": datetime(2020, 1, 1, tzinfo=UTC)},
    {"fields": FIELDS, "unsigned": 1},
    {"fields": FIELDS, "unsigned": None},
    {"fields": FIELDS, "node_split": 5},
    {"fields": FIELDS, "node_split": ("5", "5")},
    {"name": "twitter", "sequence": 0},
    {"name": "twitter", "sequence": (1, 2)},
    {"name": "twitter", "sequence": ("random", "100")},
    {"name": "twitter", "sequence": ("random", 1.5)},
]


@pytest.mark.parametrize("arguments", MISTYPED, ids=named)
def test_arguments_of_the_wrong_type_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidTypeError) as raised:
        Layout(**arguments)
    assert raised.value.code == "INVALID_ARGUMENT"


NOW_MS = 1_763_640_000_000

CALLS: list[Any] = [
    *(("inspect", (raw,), "INVALID_ID") for raw in (-1, 2**63, 2**64, 2**80, "1", 1.0, True, None)),
    *(
        (method, (time, *rest), "INVALID_ARGUMENT")
        for method, rest in (("pack", (1, 0)), ("first_id_at", ()), ("last_id_at", ()))
        for time in (
            TWITTER.epoch_ms - 1,
            TWITTER.ends_at,
            2**63 - 1,
            -(2**63),
            2**63,
            NOW_MS / 1000,
            "2025-11-20",
            True,
            None,
            datetime(2025, 11, 20),  # noqa: DTZ001
            datetime(2025, 11, 20).date(),  # noqa: DTZ001
            datetime(1, 1, 1, tzinfo=UTC),
            datetime.max.replace(tzinfo=UTC),
        )
    ),
    *(("pack", (NOW_MS, id, 0), "INVALID_NODE") for id in (-1, 1024, 2**32, 2**64, "1", 1.0, None)),
    *(
        ("pack", (NOW_MS, 0, number), "INVALID_ARGUMENT")
        for number in (-1, 4096, 2**32, 2**64, "1", 1.0, None)
    ),
    *(("split_node", (id,), "INVALID_NODE") for id in (-1, 1024, 2**32, "1", 1.0, None)),
    *(
        ("join_node", parts, "INVALID_NODE")
        for parts in ((32, 0), (0, 32), (-1, 0), (0, 2**32), ("0", 0), (0, 1.0), (True, 0))
    ),
]


@pytest.mark.parametrize(("method", "arguments", "code"), CALLS, ids=named)
def test_bad_input_is_refused(method: str, arguments: tuple[Any, ...], code: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        getattr(TWITTER, method)(*arguments)
    assert raised.value.code == code


@pytest.mark.parametrize("part", [-(2**63) - 1, 2**63, "1", 1.0, True, None], ids=named)
def test_raw_parts_refuse_what_is_no_integer(part: Any) -> None:
    for place in range(3):
        parts: list[Any] = [0, 0, 0]
        parts[place] = part
        with pytest.raises(InvalidArgumentError) as raised:
            RawParts(*parts)
        assert raised.value.code == "INVALID_ARGUMENT"
