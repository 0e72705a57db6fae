"""FF1 of NIST SP 800-38G with AES-256, step by step as the standard has it, and the codes that
follow from it: written without a line of the core, so that each checks the other.

    python tests/cross_language/ff1.py    # writes tests/vectors/codes.json anew
"""

from __future__ import annotations

import hashlib
import hmac
import json
from math import ceil, log2
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

FILE = Path(__file__).resolve().parents[1] / "vectors/codes.json"

ALPHABETS = {
    "digits": "0123456789",
    "crockford": "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
    "letters": "BCDFGHJKLMNPQRSTVWXZ",
}


def num(numerals: list[int], radix: int) -> int:
    number = 0
    for numeral in numerals:
        number = number * radix + numeral
    return number


def str_m(number: int, radix: int, m: int) -> list[int]:
    numerals = []
    for _ in range(m):
        number, numeral = divmod(number, radix)
        numerals.append(numeral)
    return numerals[::-1]


def prf(key: bytes, blocks: bytes) -> bytes:
    """The last block of CBC with a zero vector."""
    cbc = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    return (cbc.update(blocks) + cbc.finalize())[-16:]


def ciph(key: bytes, block: bytes) -> bytes:
    ecb = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return ecb.update(block) + ecb.finalize()


def ff1(
    key: bytes, radix: int, tweak: bytes, numerals: list[int], *, decrypt: bool = False
) -> list[int]:
    n, t = len(numerals), len(tweak)
    u = n // 2
    v = n - u
    a, b = numerals[:u], numerals[u:]
    byte_count = ceil(ceil(v * log2(radix)) / 8)
    d = 4 * ceil(byte_count / 4) + 4
    p = bytes([1, 2, 1]) + radix.to_bytes(3, "big") + bytes([10, u % 256])
    p += n.to_bytes(4, "big") + t.to_bytes(4, "big")
    for i in reversed(range(10)) if decrypt else range(10):
        known, changed = (a, b) if decrypt else (b, a)
        q = tweak + bytes((-t - byte_count - 1) % 16) + bytes([i])
        q += num(known, radix).to_bytes(byte_count, "big")
        r = prf(key, p + q)
        s = r
        for j in range(1, ceil(d / 16)):
            s += ciph(key, bytes(x ^ y for x, y in zip(r, j.to_bytes(16, "big"), strict=True)))
        y = int.from_bytes(s[:d], "big")
        m = u if i % 2 == 0 else v
        c = str_m((num(changed, radix) + (-y if decrypt else y)) % radix**m, radix, m)
        a, b = (c, a) if decrypt else (b, c)
    return a + b


def key_of(secret: bytes, label: str) -> bytes:
    """HKDF-SHA256 without salt: 32 bytes, the first block."""
    pseudorandom = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(pseudorandom, b"randflake codes v1" + label.encode() + b"\x01", "sha256")


def code_of(case: dict[str, Any]) -> str:
    symbols = ALPHABETS.get(case["alphabet"], case["alphabet"])
    key = key_of(bytes.fromhex(case["secret"]), case["label"])
    numerals = str_m(int(case["number"]), len(symbols), case["length"])
    return "".join(symbols[each] for each in ff1(key, len(symbols), b"", numerals))


def main() -> None:
    file = json.loads(FILE.read_text())
    for case in file["cases"]:
        case["code"] = code_of(case)
    FILE.write_text(rendered(file))


def rendered(file: dict[str, Any]) -> str:
    """One line for each case."""
    lines = ["{", f'  "_comment": {json.dumps(file["_comment"], ensure_ascii=False)},']
    lists = [name for name in file if name != "_comment"]
    for name in lists:
        lines.append(f'  "{name}": [')
        cases = [json.dumps(case, ensure_ascii=False) for case in file[name]]
        lines += [f"    {case}," for case in cases[:-1]] + [f"    {cases[-1]}"]
        lines.append("  ]" if name == lists[-1] else "  ],")
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    main()
