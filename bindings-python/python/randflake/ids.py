"""What can be done with ids without generating any: reading, hiding, codes and text."""

from randflake._randflake import (
    Cloak,
    Codes,
    Inspector,
    Parts,
    decode_string,
    decode_strings,
    encode_string,
    encode_strings,
)

__all__ = [
    "Cloak",
    "Codes",
    "Inspector",
    "Parts",
    "decode_string",
    "decode_strings",
    "encode_string",
    "encode_strings",
]
