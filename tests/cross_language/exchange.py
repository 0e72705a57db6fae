"""Python's side: makes ids, or reads the ids that another language made."""

import os
import sys

from randflake import Inspector, Randflake, decode_string, encode_string

secret = os.environ["RANDFLAKE_SECRET"]
if sys.argv[1] == "generate":
    flake = Randflake(1, secret)
    for _ in range(1000):
        id = flake.generate()
        print(id, encode_string(id))
else:
    inspector = Inspector(secret)
    for line in sys.stdin:
        number, text = line.split()
        assert decode_string(text) == int(number), line
        parts = inspector.inspect(int(number))
        assert parts == inspector.inspect(text), line
        print(parts.timestamp, parts.node_id, parts.sequence)
