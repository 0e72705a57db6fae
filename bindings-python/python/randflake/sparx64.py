"""The names of the published `randflake.sparx64`, version 2.1, for programs written for it.

>>> from randflake.sparx64 import Sparx64
>>> block = bytearray(8)
>>> Sparx64(bytes(range(16))).encrypt(block, b"8 bytes.")
>>> Sparx64(bytes(range(16))).decrypt(block, bytes(block))
>>> bytes(block)
b'8 bytes.'
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from randflake.ids import Inspector

__all__ = ["ErrInvalidBuffer", "ErrInvalidKey", "Sparx64", "SparxError"]


class SparxError(Exception):
    """Base class of the errors of this module."""


class ErrInvalidKey(SparxError):
    """The key is not 16 bytes, or was destroyed."""

    def __init__(self) -> None:
        super().__init__("the key must be 16 bytes, and is gone after destroy()")


class ErrInvalidBuffer(SparxError):
    """The source is not 8 bytes, or the destination has no room for them."""

    def __init__(self) -> None:
        super().__init__("src must be 8 bytes, and dst must hold 8 or more")


class Sparx64:
    """The cipher SPARX-64/128. An id is its packed form, little-endian, encrypted.

    key: 16 bytes, or a sequence of 16 ints from 0 to 255. Raises ErrInvalidKey.
    """

    def __init__(self, key: Sequence[int]) -> None:
        if len(key) != 16:
            raise ErrInvalidKey
        try:
            self._inspector: Inspector | None = Inspector(bytes(key))
        except (TypeError, ValueError) as error:
            raise ErrInvalidKey from error

    def encrypt(self, dst: MutableSequence[int], src: Sequence[int]) -> None:
        """Encrypts the 8 bytes of src into the first 8 of dst. Raises ErrInvalidBuffer."""
        block = int.from_bytes(_checked(dst, src), "little")
        dst[:8] = (self._cipher().encrypt(block) % 2**64).to_bytes(8, "little")

    def decrypt(self, dst: MutableSequence[int], src: Sequence[int]) -> None:
        """Decrypts the 8 bytes of src into the first 8 of dst. Raises ErrInvalidBuffer."""
        block = int.from_bytes(_checked(dst, src), "little", signed=True)
        dst[:8] = self._cipher().decrypt(block).to_bytes(8, "little")

    def block_size(self) -> int:
        """Returns 8."""
        return 8

    def destroy(self) -> None:
        """Forgets the key. Later calls raise ErrInvalidKey."""
        self._inspector = None

    def _cipher(self) -> Inspector:
        if self._inspector is None:
            raise ErrInvalidKey
        return self._inspector


def _checked(dst: MutableSequence[int], src: Sequence[int]) -> bytes:
    if len(src) != 8 or len(dst) < 8:
        raise ErrInvalidBuffer
    try:
        return bytes(src)
    except (TypeError, ValueError) as error:
        raise ErrInvalidBuffer from error
