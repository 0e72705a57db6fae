from collections.abc import Iterable
from datetime import datetime as _datetime
from typing import NoReturn, Self, SupportsIndex, final

import numpy as np
from numpy.typing import NDArray

from randflake._randflake import _Int64Array, _Int64Buffer, _Secret
from randflake.arrays import PartsArray

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

@final
class Inspector:
    """Reads ids back; needs the secret, and no node id.

    Reading does not authenticate: every 64-bit number has parts, under every secret.

    secret: 16 bytes, or a str of 32 hex digits.

    Raises InvalidArgumentError with the code INVALID_SECRET.

    >>> from randflake import Inspector
    >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
    >>> inspector.inspect("3vgoe12ccb8gh").node_id
    42
    """

    def __new__(cls, secret: _Secret) -> Self: ...
    def inspect(self, id: SupportsIndex | str) -> Parts:
        """Reads an id back: its time, node id and sequence.

        id: an int, or its text.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def inspect_array(self, ids: _Int64Array) -> PartsArray:
        """Reads many ids back, into one numpy array for each part.

        ids: an array of native 64-bit integers, such as a numpy array of int64, or a column of
        pandas, polars or pyarrow without nulls.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for anything else, with
        INVALID_ID for an unsigned integer from 2**63 on, and ImportError where numpy is not
        installed.

        >>> from array import array
        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> columns = inspector.inspect_array(array("q", [4594531474933654033]))
        >>> columns.timestamp, columns.node_id, columns.sequence
        (array([1733706297]), array([42], dtype=uint32), array([1], dtype=uint32))
        """
    def decrypt(self, id: SupportsIndex | str) -> int:
        """Returns the sortable form of an id: time, node id and sequence, unencrypted.

        It is an unsigned 64-bit integer. Do not show it to anyone who must not know its parts.

        id: an int, or its text.

        Raises InvalidArgumentError with the code INVALID_ID.

        >>> from randflake import Inspector
        >>> Inspector("dffd6021bb2bd5b0af676290809ec3a5").decrypt(4594531474933654033)
        63673697622556673
        """
    def decrypt_many(self, ids: Iterable[SupportsIndex | str]) -> list[int]:
        """Returns the sortable forms of many ids, each as decrypt returns it.

        ids: a list of ints or texts, or anything else that holds them. An array or a column of
        64-bit integers is read at once.

        Raises what decrypt raises, and INVALID_ARGUMENT for something that is not a collection.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> inspector.decrypt_many([4594531474933654033, "3vgoe12ccb8gh"])
        [63673697622556673, 63673697622556673]
        """
    def decrypt_array(self, ids: _Int64Array) -> NDArray[np.uint64]:
        """Returns the sortable forms of many ids as a numpy array.

        ids: as inspect_array of Inspector takes them.

        Raises what inspect_array raises.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> inspector.decrypt_array(array("q", [4594531474933654033]))
        array([63673697622556673], dtype=uint64)
        """
    def decrypt_in_place(self, buffer: _Int64Buffer) -> None:
        """Turns the ids of a writable buffer into their sortable forms.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64. A sortable form from 2**63 on is negative there: number % 2**64 restores it.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> column = array("q", [4594531474933654033])
        >>> inspector.decrypt_in_place(column)
        >>> column
        array('q', [63673697622556673])
        >>> inspector.encrypt_in_place(column)
        >>> column
        array('q', [4594531474933654033])
        """
    def encrypt(self, raw: SupportsIndex) -> int:
        """Returns the id of a sortable form; undoes decrypt.

        raw: an unsigned 64-bit integer that came from decrypt. Another one may not be unique.

        Raises InvalidArgumentError with the code INVALID_ID.

        >>> from randflake import Inspector
        >>> Inspector("dffd6021bb2bd5b0af676290809ec3a5").encrypt(63673697622556673)
        4594531474933654033
        """
    def encrypt_many(self, raws: Iterable[SupportsIndex]) -> list[int]:
        """Returns the ids of many sortable forms; undoes decrypt_many.

        raws: a list of unsigned 64-bit integers that came from decrypt, or anything else that holds
        them. An array or a column of 64-bit integers is read at once.

        Raises what encrypt raises, and INVALID_ARGUMENT for something that is not a collection.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> inspector.encrypt_many([63673697622556673])
        [4594531474933654033]
        """
    def encrypt_array(self, raws: _Int64Array) -> NDArray[np.int64]:
        """Returns the ids of many sortable forms as a numpy array; undoes decrypt_array.

        raws: an array of native 64-bit integers, none of them negative, as for decrypt_array.

        Raises what inspect_array of Inspector raises.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> from array import array
        >>> inspector.encrypt_array(array("Q", [63673697622556673]))
        array([4594531474933654033])
        """
    def encrypt_in_place(self, buffer: _Int64Buffer) -> None:
        """Turns the sortable forms of a writable buffer into their ids; undoes decrypt_in_place.

        buffer: as decrypt_in_place takes it.

        Raises what decrypt_in_place raises.
        """
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...

@final
class Parts:
    """The parts of an id, which a holder of the secret can read: time, node id and sequence.

    The timestamp may be up to the generator's max_drift ahead of the clock that made it. Parts
    compare equal, hash and pickle.

    >>> from randflake import Inspector
    >>> parts = Inspector("dffd6021bb2bd5b0af676290809ec3a5").inspect(4594531474933654033)
    >>> parts
    Parts(timestamp=1733706297, node_id=42, sequence=1)
    """

    def __new__(
        cls, timestamp: SupportsIndex, node_id: SupportsIndex, sequence: SupportsIndex
    ) -> Self: ...
    @property
    def timestamp(self) -> int:
        """Unix seconds, 1730000000 to 2803741823."""
    @property
    def node_id(self) -> int:
        """0 to 131071."""
    @property
    def sequence(self) -> int:
        """The zero-based index of the id within its node and second, 0 to 131071."""
    @property
    def datetime(self) -> _datetime:
        """The timestamp as an aware datetime in UTC.

        >>> from randflake import Inspector
        >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
        >>> inspector.inspect(4594531474933654033).datetime.isoformat()
        '2024-12-09T01:04:57+00:00'
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Parts], tuple[int, int, int]]: ...

@final
class Cloak:
    """Hides any 64-bit ids: sortable ones and auto-increment keys inside, opaque ids outside.

    Each number has one hidden form and each hidden form one number, so nothing collides, and the
    database keeps the number and its index. Hiding does not authenticate: every 64-bit number
    reveals some number. Look up the result, and check who may see it.

    Numbers are unsigned: one that a signed column shows as negative is number % 2**64 here. Hidden
    forms are signed, as ids of Randflake are, and half of them are negative.

    secret: 16 bytes, or a str of 32 hex digits; see generate_secret. It may serve a Randflake, too.
    label: the purpose, such as "orders.id". Another label is another key, so that hidden forms of
    two kinds reveal nothing about each other.

    Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT.

    >>> from randflake import Cloak
    >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
    >>> cloak.hide(1)
    4987143739177344976
    >>> cloak.reveal(4987143739177344976)
    1
    """

    def __new__(cls, secret: _Secret, label: str) -> Self: ...
    def hide(self, number: SupportsIndex) -> int:
        """Hides a number.

        number: an unsigned 64-bit integer.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def hide_string(self, number: SupportsIndex) -> str:
        """Hides a number as text: 1 to 13 of the characters 0-9 and a-v, for URLs and JSON.

        Raises what hide raises.

        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> cloak.hide_string(1)
        '4adf4pr4nl7ug'
        >>> cloak.reveal("4adf4pr4nl7ug")
        1
        """
    def hide_many(self, numbers: Iterable[SupportsIndex]) -> list[int]:
        """Hides many numbers.

        numbers: a list of unsigned 64-bit integers, or anything else that holds them. An array or a
        column of 64-bit integers is read at once.

        Raises what hide raises, and INVALID_ARGUMENT for something that is not a collection.

        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> cloak.reveal_many(cloak.hide_many([1, 2, 3]))
        [1, 2, 3]
        """
    def hide_array(self, numbers: _Int64Array) -> NDArray[np.int64]:
        """Hides many numbers, and returns a numpy array.

        numbers: an array of native 64-bit integers, none of them negative, such as a numpy array of
        int64 or uint64, or a column of pandas, polars or pyarrow without nulls.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for anything else, with
        INVALID_ID for a negative number, and ImportError where numpy is not installed.

        >>> from array import array
        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> hidden = cloak.hide_array(array("q", [1, 2, 3]))
        >>> cloak.reveal_array(hidden)
        array([1, 2, 3], dtype=uint64)
        """
    def hide_in_place(self, buffer: _Int64Buffer) -> None:
        """Hides the numbers of a writable buffer in place, as fast as the machine allows.

        buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
        array of int64.

        Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer.

        >>> from array import array
        >>> from randflake import Cloak
        >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
        >>> column = array("q", [1, 2, 3])
        >>> cloak.hide_in_place(column)
        >>> column[0] == cloak.hide(1)
        True
        >>> cloak.reveal_in_place(column)
        >>> column
        array('q', [1, 2, 3])
        """
    def reveal(self, id: SupportsIndex | str) -> int:
        """Returns the number that was hidden.

        id: what hide returned, or its text.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def reveal_many(self, ids: Iterable[SupportsIndex | str]) -> list[int]:
        """Returns the numbers that were hidden.

        ids: a list of what hide returned or its text, or anything else that holds them. An array or
        a column of 64-bit integers is read at once.

        Raises what reveal raises, and INVALID_ARGUMENT for something that is not a collection.
        """
    def reveal_array(self, ids: _Int64Array) -> NDArray[np.uint64]:
        """Returns the numbers that were hidden as a numpy array; undoes hide_array.

        ids: as inspect_array of Inspector takes them.

        Raises what inspect_array raises.
        """
    def reveal_in_place(self, buffer: _Int64Buffer) -> None:
        """Reveals the ids of a writable buffer in place; undoes hide_in_place.

        buffer: as hide_in_place takes it.

        Raises what hide_in_place raises.
        """
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...

@final
class Codes:
    """Turns the numbers 0, 1, 2 and so on into codes of a fixed length, and back.

    For codes that people type: vouchers, order numbers, invitations. The codes look random. Each
    number has one code and each code at most one number, so nothing collides. The numbers come from
    a counter of yours, such as Tickets or a sequence of the database.

    secret: 16 bytes, or a str of 32 hex digits; see generate_secret. It may serve a Randflake, too.
    label: the purpose, such as "vouchers": another label is another key. Use one label for one kind
    of code.
    length: how many symbols a code has, 4 to 24. There must be at least a million texts of that
    length, so 6 digits are the fewest.
    alphabet: "digits", "crockford" (0-9 and A-Z without I, L, O and U; reads O as 0, and I and L as
    1), "letters" (A-Z without A, E, I, O, U and Y, so that codes contain no words), or 10 to 62
    ASCII letters and digits of your own, each once.
    check: how many of the symbols are a check, 0 to length - 1. One guess in
    len(alphabet) ** check is a code.

    A code is not a permission: whoever guesses one has one. See the guide on codes.

    Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT.

    >>> from randflake import Codes
    >>> codes = Codes("dffd6021bb2bd5b0af676290809ec3a5", "orders")
    >>> codes.encode(1)
    '86483743'
    >>> codes.decode("86483743")
    1
    """

    def __new__(
        cls,
        secret: _Secret,
        label: str,
        length: SupportsIndex = 8,
        alphabet: str = "digits",
        check: SupportsIndex = 0,
    ) -> Self: ...
    @property
    def length(self) -> int:
        """How many symbols a code has."""
    @property
    def alphabet(self) -> str:
        """The symbols, in the order of their values."""
    @property
    def check(self) -> int:
        """How many of the symbols are a check."""
    @property
    def capacity(self) -> int:
        """How many numbers have codes: len(alphabet) ** (length - check), at most 2**64.

        >>> from randflake import Codes
        >>> Codes("dffd6021bb2bd5b0af676290809ec3a5", "vouchers", check=2).capacity
        1000000
        """
    @property
    def pattern(self) -> str:
        """A regular expression that matches all that decode reads, and texts with a wrong check.

        >>> from randflake import Codes
        >>> Codes("dffd6021bb2bd5b0af676290809ec3a5", "vouchers").pattern
        '^[0-9]{8}$'
        """
    def encode(self, number: SupportsIndex) -> str:
        """Returns the code of a number.

        number: an integer, 0 to capacity - 1.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
    def encode_many(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """Returns the codes of many numbers.

        numbers: a list of integers, or anything else that holds them.

        Raises what encode raises, and INVALID_ARGUMENT for something that is not a collection.

        >>> from randflake import Codes
        >>> codes = Codes("dffd6021bb2bd5b0af676290809ec3a5", "orders")
        >>> codes.encode_many(range(2))
        ['34095755', '86483743']
        """
    def decode(self, code: str) -> int:
        """Returns the number of a code.

        code: of this length. If the alphabet has no letter in both cases, either case is read.
        Spaces and hyphens are refused.

        Raises InvalidArgumentError with the code INVALID_ID for anything else, and for a check that
        is not right.

        >>> from randflake import Codes
        >>> codes = Codes("dffd6021bb2bd5b0af676290809ec3a5", "v", 10, "crockford", check=3)
        >>> codes.decode(codes.encode(7).lower())
        7
        """
    def decode_many(self, codes: Iterable[str]) -> list[int]:
        """Returns the numbers of many codes; undoes encode_many.

        codes: a list of str, or anything else that holds them.

        Raises what decode raises, and INVALID_ARGUMENT for something that is not a collection.
        """
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn: ...

def encode_string(id: SupportsIndex) -> str:
    """Returns the text of an id: 1 to 13 of the characters 0-9 and a-v.

    Raises InvalidArgumentError with the code INVALID_ID if id is not a signed 64-bit integer.

    >>> from randflake import encode_string
    >>> encode_string(4594531474933654033)
    '3vgoe12ccb8gh'
    """

def encode_strings(ids: Iterable[SupportsIndex]) -> list[str]:
    """Returns the texts of many ids.

    ids: a list of ints, or anything else that holds them. An array or a column of 64-bit integers
    is read at once.

    Raises what encode_string raises, and INVALID_ARGUMENT for something that is not a collection.

    >>> from array import array
    >>> from randflake import encode_strings
    >>> encode_strings([4594531474933654033, -1])
    ['3vgoe12ccb8gh', 'fvvvvvvvvvvvv']
    >>> encode_strings(array("q", [0, 1]))
    ['0', '1']
    """

def decode_string(text: str) -> int:
    """Returns the id of a text, which must be exactly as encode_string writes it.

    Raises InvalidArgumentError with the code INVALID_ID for any other text.

    >>> from randflake import decode_string
    >>> decode_string("3vgoe12ccb8gh")
    4594531474933654033
    """

def decode_strings(texts: Iterable[str]) -> list[int]:
    """Returns the ids of many texts; undoes encode_strings.

    texts: a list of str, or anything else that holds them.

    Raises what decode_string raises, and INVALID_ARGUMENT for something that is not a collection.

    >>> from randflake import decode_strings
    >>> decode_strings(["3vgoe12ccb8gh", "fvvvvvvvvvvvv"])
    [4594531474933654033, -1]
    """
