"""Randflake, the peers, and what calling costs."""

import platform
import time
import uuid

import fastuuid
import hashids
import numpy as np
import simpleflake
import sonyflake
import sqids
import ulid
import ulid_transform
import uuid_utils
from floor import Floor
from randflake import Cloak, Codes, Inspector, Layout, Randflake, Snowflake, v2
from worker import Case

BATCH = 4096
# As many node ids as one generator can have: 2**31 ids a second, more than any case makes.
NODES = range(16_384)
NUMBER = 1_234_567
SECRET = "dffd6021bb2bd5b0af676290809ec3a5"


def snowflake(name: str) -> Snowflake:
    """A generator with as many node ids as it can have, so that nothing waits."""
    layout = Layout(name)
    return Snowflake(range(layout.max_nodes), layout, restart_safe=False)


def by_the_names_of_2_1() -> v2.Generator:
    """One for which a generator with all node ids counts, so that it never comes to its end."""
    now = int(time.time())
    secret = bytes.fromhex(SECRET)
    generator = v2.Generator(v2.Config(v2.Lease(0, now, now + 86_400), secret))
    flake = Randflake(NODES, secret, restart_safe=False, max_wait=0)
    generator._next = flake._generate_in_order
    return generator


def cases() -> tuple[list[Case], dict[str, str]]:
    floor = Floor()
    flake = Randflake(list(NODES), SECRET, restart_safe=False)
    inspector = Inspector(SECRET)
    ids = flake.generate_array(BATCH)
    codes = Codes(SECRET, "orders")
    checked = Codes(SECRET, "vouchers", length=10, alphabet="crockford", check=3)
    cloak = Cloak(SECRET, "orders.id")
    of_sqids, of_hashids = sqids.Sqids(min_length=8), hashids.Hashids(SECRET, min_length=8)
    listed = [
        Case("floor_int", "an empty pyo3 method returning an int", "floor", floor.integer),
        Case("floor_str", "an empty pyo3 method returning a str", "floor", floor.text),
        Case("floor_c_int", "an empty C method returning an int", "floor", floor.c_integer),
        Case("floor_c_str", "an empty C method returning a str", "floor", floor.c_text),
        Case(
            "floor_list",
            "numpy's tolist() of 1000 ids, per id",
            "floor",
            ids[:1000].tolist,
            ids=1000,
        ),
        Case("generate", "generate()", "us", flake.generate),
        Case("generate_string", "generate_string()", "us", flake.generate_string),
        Case("v2", "v2.Generator.generate()", "us", by_the_names_of_2_1().generate),
        Case(
            "snowflake_twitter",
            "Snowflake.generate(), Twitter",
            "us",
            snowflake("twitter").generate,
        ),
        Case(
            "snowflake_discord",
            "Snowflake.generate(), Discord",
            "us",
            snowflake("discord").generate,
        ),
        Case("many", "generate_many(1000), per id", "us", flake.generate_many, 1000, 1000),
        Case("array", "generate_array(4096), per id", "us", flake.generate_array, BATCH, BATCH),
        Case(
            "fill",
            "fill(array of 4096), per id",
            "us",
            flake.fill,
            np.empty(BATCH, np.int64),
            BATCH,
        ),
        Case("inspect", "inspect()", "us", inspector.inspect, int(ids[0])),
        Case(
            "inspect_array",
            "inspect_array(4096), per id",
            "us",
            inspector.inspect_array,
            ids,
            BATCH,
        ),
        Case("cloak_hide", "Cloak.hide_string()", "us", cloak.hide_string, NUMBER),
        Case("codes_encode", "Codes.encode(), 8 digits", "us", codes.encode, NUMBER),
        Case("codes_decode", "Codes.decode(), 8 digits", "us", codes.decode, codes.encode(NUMBER)),
        Case(
            "codes_crockford",
            "Codes.encode(), 10 of crockford",
            "us",
            checked.encode,
            NUMBER,
        ),
        Case("sqids_encode", "sqids encode (no key)", "peer", of_sqids.encode, [NUMBER]),
        Case(
            "sqids_decode",
            "sqids decode (no key)",
            "peer",
            of_sqids.decode,
            of_sqids.encode([NUMBER]),
        ),
        Case("hashids_encode", "hashids encode (no cipher)", "peer", of_hashids.encode, NUMBER),
        Case(
            "hashids_decode",
            "hashids decode (no cipher)",
            "peer",
            of_hashids.decode,
            of_hashids.encode(NUMBER),
        ),
        Case("uuid4", "uuid.uuid4", "peer", uuid.uuid4),
        Case("uuid_utils", "uuid_utils.uuid4", "peer", uuid_utils.uuid4),
        Case("uuid_utils_7", "uuid_utils.uuid7", "peer", uuid_utils.uuid7),
        Case("fastuuid", "fastuuid.uuid4", "peer", fastuuid.uuid4),
        Case(
            "fastuuid_bulk",
            "fastuuid.uuid4_bulk(1000), per id",
            "peer",
            fastuuid.uuid4_bulk,
            1000,
            1000,
        ),
        Case("ulid_transform", "ulid_transform.ulid_now", "peer", ulid_transform.ulid_now),
        Case("simpleflake", "simpleflake", "peer", simpleflake.simpleflake),
        Case(
            "sonyflake_py",
            "sonyflake-py (at most 25 600 ids a second)",
            "peer",
            sonyflake.SonyFlake(machine_id=lambda: 1).next_id,
        ),
        Case("python_ulid", "python-ulid", "peer", ulid.ULID),
    ]
    return listed, {"python": platform.python_version()}
