"""FF1 in Python agrees with NIST's samples, and the vectors of codes with it."""

import json
import string

import ff1
import pytest

KEY = bytes.fromhex("2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94")
DIGITS = string.digits + string.ascii_lowercase


@pytest.mark.parametrize(
    ("radix", "tweak", "plain", "encrypted"),
    [
        (10, b"", "0123456789", "6657667009"),
        (10, b"9876543210", "0123456789", "1001623463"),
        (36, b"7777pqrs777", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"),
    ],
)
def test_the_samples_of_nist_with_aes_256(
    radix: int, tweak: bytes, plain: str, encrypted: str
) -> None:
    numerals = [[DIGITS.index(digit) for digit in text] for text in (plain, encrypted)]
    assert ff1.ff1(KEY, radix, tweak, numerals[0]) == numerals[1]
    assert ff1.ff1(KEY, radix, tweak, numerals[1], decrypt=True) == numerals[0]


def test_the_vectors_are_what_python_computes() -> None:
    text = ff1.FILE.read_text()
    file = json.loads(text)
    assert ff1.rendered(file) == text
    for case in file["cases"]:
        assert ff1.code_of(case) == case["code"], case
