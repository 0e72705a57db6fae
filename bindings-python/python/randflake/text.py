"""How the ids of a column look outside: in JSON and in URLs.

    from randflake import Cloak
    from randflake.text import TextForm

    posts = TextForm("post", cloak=Cloak(secret, "posts.id"))

Adapters of frameworks take a TextForm, so that one declaration applies to the whole application.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Self, SupportsIndex

from randflake._arguments import wrong_type
from randflake.errors import InvalidArgumentError
from randflake.ids import Cloak, Codes, decode_string, encode_string

__all__ = ["TextForm"]

# As in the TypeID specification 0.3.
_PREFIX = re.compile("[a-z]([a-z_]{0,61}[a-z])?")

# The first of 13 digits has four bits.
_DIGITS = "(0|[1-9a-v][0-9a-v]{0,11}|[1-9a-f][0-9a-v]{12})"


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the ids of a column look outside.

    Without arguments, as encode_string writes them. Two forms are equal if they have the same
    prefix, cloak and codes.

    prefix: what comes before an underscore and the id, so that a text shows what it identifies: 1
    to 63 of the characters a-z and _, neither beginning nor ending with an underscore.
    cloak: hides the number, so that the number inside can be sortable, such as a Snowflake. Inside
    is what a BIGINT holds: a number from 2**63 on is negative there.
    codes: makes codes of the numbers 0 to capacity - 1. Decoding reads what they read.

    Raises InvalidArgumentError with the code INVALID_ARGUMENT.

    >>> from randflake import Cloak
    >>> from randflake.text import TextForm
    >>> TextForm("user").encode(4594531474933654033)
    'user_3vgoe12ccb8gh'
    >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
    >>> TextForm("order", cloak=cloak).encode(1)
    'order_4adf4pr4nl7ug'
    >>> from randflake import Codes
    >>> codes = Codes("dffd6021bb2bd5b0af676290809ec3a5", "orders")
    >>> TextForm(codes=codes).encode(1)
    '86483743'
    """

    prefix: str | None = None
    """What comes before an underscore and the id, or None."""
    _: KW_ONLY
    cloak: Cloak | None = None
    """What hides the number, or None."""
    codes: Codes | None = None
    """What makes codes of the number, or None."""

    def __post_init__(self) -> None:
        prefix, cloak = self.prefix, self.cloak
        if not isinstance(prefix, str | None):
            raise wrong_type("prefix must be a str", prefix)
        if prefix is not None and not _PREFIX.fullmatch(prefix):
            raise InvalidArgumentError(
                "a prefix has 1 to 63 of the characters a-z and _, not first and not last an "
                f"underscore, got {len(prefix)} characters",
                "INVALID_ARGUMENT",
            )
        if not isinstance(cloak, Cloak | None):
            raise wrong_type("cloak must be a Cloak", cloak)
        if not isinstance(self.codes, Codes | None):
            raise wrong_type("codes must be Codes", self.codes)
        if cloak is not None and self.codes is not None:
            raise InvalidArgumentError(
                "codes hide the number by themselves: pass cloak or codes", "INVALID_ARGUMENT"
            )

    @property
    def pattern(self) -> str:
        """A regular expression that matches exactly the texts of this form, for JSON schemas.

        With codes, it also matches texts whose check is wrong.

        >>> import re
        >>> from randflake.text import TextForm
        >>> re.fullmatch(TextForm("user").pattern, "user_3vgoe12ccb8gh") is not None
        True
        """
        digits = _DIGITS if self.codes is None else self.codes.pattern[1:-1]
        return f"^{self._start}{digits}$"

    def encode(self, id: SupportsIndex) -> str:
        """Returns the text of an id.

        id: a signed 64-bit integer; with codes, a number that has one.

        Raises InvalidArgumentError with the code INVALID_ID.

        >>> from randflake.text import TextForm
        >>> TextForm("user").encode(-1)
        'user_fvvvvvvvvvvvv'
        """
        digits = encode_string(id)
        if self.codes is not None:
            # A negative number has no code, unless they have all 64 bits.
            all_bits = self.codes.capacity == 2**64
            digits = self.codes.encode(int(digits, 32) if all_bits else id)
        elif self.cloak is not None:
            # The digits are of the unsigned number, as cloaks hide it.
            digits = self.cloak.hide_string(int(digits, 32))
        return self._start + digits

    def decode(self, text: str) -> int:
        """Returns the id of a text, which must be exactly as encode writes it, or as codes read it.

        Raises InvalidArgumentError with the code INVALID_ID for any other text.

        >>> from randflake.text import TextForm
        >>> TextForm("user").decode("user_3vgoe12ccb8gh")
        4594531474933654033
        """
        digits = text
        if isinstance(text, str):
            if not text.startswith(self._start):
                raise InvalidArgumentError(
                    f"an id's text must be {self._described} here", "INVALID_ID"
                )
            digits = text.removeprefix(self._start)
        if self.codes is not None:
            number = self.codes.decode(digits)
        elif self.cloak is not None:
            number = self.cloak.reveal(decode_string(digits))
        else:
            return decode_string(digits)
        return number if number < 2**63 else number - 2**64

    def _as_written(self, text: str) -> str:
        """Returns a text as encode writes it: codes may be typed in other ways."""
        number = self.decode(text)
        return text if self.codes is None else self.encode(number)

    @property
    def _described(self) -> str:
        """How a text looks, in words."""
        digits = "1 to 13 of the characters 0-9 and a-v"
        if self.codes is not None:
            digits = f"a code such as {self.codes.pattern[1:-1]} matches"
        return f'"{self._start}" and {digits}' if self._start else digits

    @property
    def _start(self) -> str:
        return "" if self.prefix is None else f"{self.prefix}_"

    # It never changes, and frameworks copy what fields are declared with, which a cloak refuses.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
