"""The text form that adapters of frameworks are given."""

from __future__ import annotations

from randflake._arguments import wrong_type
from randflake.text import TextForm

_PLAIN = TextForm()


def form_of(given: TextForm | None) -> TextForm:
    """Returns the form that the argument `form` names, or the plain one.

    Raises InvalidTypeError with the code INVALID_ARGUMENT.
    """
    if given is None:
        return _PLAIN
    if not isinstance(given, TextForm):
        raise wrong_type("form must be a TextForm", given)
    return given
