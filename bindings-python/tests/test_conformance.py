"""The vectors that every language runs."""

import warnings
from array import array
from collections import deque
from typing import Any

import numpy as np
import pytest
from conftest import cases
from randflake import (
    Inspector,
    InvalidArgumentError,
    Lease,
    Parts,
    Randflake,
    RandflakeError,
    RetryLaterError,
    WeakSecretWarning,
    decode_string,
    encode_string,
)

SECRET = "dffd6021bb2bd5b0af676290809ec3a5"


def inspector(secret: str) -> Inspector:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSecretWarning)
        return Inspector(secret)


@pytest.mark.parametrize("case", cases("ids.json"))
def test_ids(case: dict[str, Any]) -> None:
    reader = inspector(case["secret"])
    id, raw, text = int(case["id"]), int(case["raw"]), case["text"]
    parts = Parts(case["timestamp"], case["node_id"], case["sequence"])
    assert reader.encrypt(raw) == id
    assert reader.decrypt(id) == reader.decrypt(text) == raw
    assert reader.inspect(id) == reader.inspect(text) == parts
    assert encode_string(id) == text
    assert decode_string(text) == id
    assert inspector(case["secret"].upper()).encrypt(raw) == id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSecretWarning)
        assert Inspector(bytes.fromhex(case["secret"])).encrypt(raw) == id


@pytest.mark.parametrize("case", cases("ids.json"))
def test_a_generator_makes_the_ids_of_the_vectors(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSecretWarning)
        flake = Randflake(case["node_id"], case["secret"], clock=lambda: case["timestamp"])
    ids = array("q", bytes(8 * (case["sequence"] + 1)))
    flake.fill(ids)
    assert ids[-1] == int(case["id"])


@pytest.mark.parametrize("case", cases("sparx.json"))
def test_sparx(case: dict[str, Any]) -> None:
    reader = inspector(case["secret"])
    assert reader.encrypt(int(case["raw"])) == int(case["id"])
    assert reader.decrypt(int(case["id"])) == int(case["raw"])


@pytest.mark.parametrize("case", cases("text.json", "valid"))
def test_valid_text(case: dict[str, Any]) -> None:
    assert decode_string(case["text"]) == int(case["id"])
    assert encode_string(int(case["id"])) == case["text"]


@pytest.mark.parametrize("case", cases("text.json", "invalid"))
def test_invalid_text(case: dict[str, Any]) -> None:
    for read in (decode_string, inspector(SECRET).inspect, inspector(SECRET).decrypt):
        with pytest.raises(InvalidArgumentError) as raised:
            read(case["text"])
        assert raised.value.code == "INVALID_ID"


@pytest.mark.parametrize("case", cases("errors.json"))
def test_errors(case: dict[str, Any]) -> None:
    options = dict(case["options"])
    node_ids = options.pop("node_ids", [1])
    secret = options.pop("secret", SECRET)
    lease = options.pop("lease", None)
    with pytest.raises(RandflakeError) as raised:
        Randflake(
            node_ids,
            secret,
            lease=lease and Lease(lease["start"], lease["end_exclusive"]),
            clock=lambda: 1_763_640_000,
            **options,
        )
    assert raised.value.code == case["error"]
    assert not secret or secret not in str(raised.value)


class TimelineClock:
    """Hands out the readings of a step, and fails when asked for more."""

    def __init__(self) -> None:
        self.readings: deque[float] = deque()
        self.sleeps: list[float] = []

    def now(self) -> float:
        return self.readings.popleft()

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)


def runs_of(ids: "array[int]") -> list[list[int]]:
    """Returns [timestamp, node id, first sequence, count] of each run of consecutive ids."""
    parts = inspector(SECRET).inspect_array(ids)
    columns = np.array(parts, np.int64)
    goes_on = (np.diff(columns) == [[0], [0], [1]]).all(axis=0)
    firsts = np.flatnonzero(np.concatenate([[True], ~goes_on])[: len(ids)])
    counts = np.diff(np.append(firsts, len(ids)))
    return np.vstack([columns[:, firsts], counts]).T.tolist()  # type: ignore[no-any-return]


def perform(flake: Randflake, step: dict[str, Any], buffer: "array[int]") -> "array[int]":
    """Makes the call of a step and returns its ids."""
    match step["call"]:
        case "generate":
            return array("q", [flake.generate()])
        case "fill":
            flake.fill(buffer)
            return buffer
        case "extend_lease":
            flake.extend_lease(step["end_exclusive"])
        case "close":
            flake.close()
        case call:
            raise AssertionError(f"unknown call {call}")
    return array("q")


@pytest.mark.parametrize("case", cases("timelines.json"))
def test_timelines(case: dict[str, Any]) -> None:
    clock = TimelineClock()
    lease = case["lease"]
    flake = Randflake(
        case["node_ids"],
        SECRET,
        lease=lease and Lease(lease["start"], lease["end_exclusive"]),
        max_wait=case["max_wait"],
        max_drift=case["max_drift"],
        clock=clock if case["can_sleep"] else clock.now,
    )
    for number, step in enumerate(case["steps"]):
        clock.readings.extend(step["readings"])
        clock.sleeps.clear()
        buffer = array("q", [-1]) * step.get("count", 0)
        where = f"step {number}: {step}"
        if "error" in step:
            with pytest.raises(RandflakeError) as raised:
                perform(flake, step, buffer)
            error = raised.value
            assert error.code == step["error"], where
            assert isinstance(error, RetryLaterError) == (step["retry_after"] is not None), where
            assert getattr(error, "retry_after", None) == step["retry_after"], where
            assert not any(buffer), where
        else:
            assert runs_of(perform(flake, step, buffer)) == step.get("ids", []), where
        assert not clock.readings, where
        assert clock.sleeps == step["sleeps"], where
