"""What can be done with ids without generating any: reading, hiding and text."""

from randflake._randflake import (
    Cloak,
    Inspector,
    Parts,
    decode_string,
    decode_strings,
    encode_string,
    encode_strings,
)

__all__ = [
    "Cloak",
    "Inspector",
    "Parts",
    "decode_string",
    "decode_strings",
    "encode_string",
    "encode_strings",
]
