"""Clocks and times as Python has them."""

from datetime import UTC, datetime, timedelta

from randflake.errors import InvalidArgumentError, InvalidTypeError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def datetime_of(unix_ms: int) -> datetime:
    """Returns unix milliseconds as an aware datetime in UTC."""
    try:
        return _EPOCH + timedelta(milliseconds=unix_ms)
    except OverflowError:
        raise InvalidArgumentError(
            f"datetimes end with the year 9999, got {unix_ms} unix milliseconds",
            "INVALID_ARGUMENT",
        ) from None


def unix_ms_of(time: datetime) -> int | None:
    """Returns the millisecond of a datetime, rounded down; None without a time zone."""
    if time.utcoffset() is None:
        return None
    # Not `time - _EPOCH`: what a subclass, such as pendulum's, returns may not be divisible.
    return datetime.__sub__(time, _EPOCH) // timedelta(milliseconds=1)


def clock_of(clock: object) -> tuple[object, object]:
    """Returns the function that tells a clock's time, and the one that sleeps by it, or None."""
    now, sleep = getattr(clock, "now", None), getattr(clock, "sleep", None)
    if now is None:
        now, sleep = clock, None
    if not callable(now) or not (sleep is None or callable(sleep)):
        raise InvalidTypeError(
            "clock must have a method now(), and may have sleep(seconds), or be a callable that "
            f"returns unix seconds, got an object of type {type(clock).__name__}",
            "INVALID_ARGUMENT",
        )
    return now, sleep
