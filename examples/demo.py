"""The Python half of `make demo`.

demo.py secret                   prints a new secret
demo.py generate STORE COUNT     leases a node id, makes ids and prints what is in them
demo.py read                     prints what is in the ids on standard input

The secret is read from RANDFLAKE_SECRET.
"""

import os
import sys

from randflake import Inspector, Randflake, encode_string, generate_secret


def describe(inspector: Inspector, id: int) -> str:
    parts = inspector.inspect(id)
    time = parts.datetime.strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = (id, encode_string(id), time, parts.node_id, parts.sequence)
    return "\t".join(str(field) for field in fields)


match sys.argv[1:]:
    case ["secret"]:
        print(generate_secret())
    case ["generate", store, count]:
        secret = os.environ["RANDFLAKE_SECRET"]
        with Randflake.leased(store, secret) as flake:
            for id in flake.generate_many(int(count)):
                print(describe(Inspector(secret), id))
    case ["read"]:
        inspector = Inspector(os.environ["RANDFLAKE_SECRET"])
        for line in sys.stdin:
            print(describe(inspector, int(line)))
    case _:
        sys.exit(__doc__)
